//! Elements as the bytes that ranks send to each other.

use super::Element;

/// The bytes of some elements.
pub(crate) fn bytes_of<E: Element>(values: &[E]) -> &[u8] {
    // SAFETY: an element is plain bits without padding: a float, an integer or two floats. Bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of some elements, mutable.
pub(crate) fn bytes_of_mut<E: Element>(values: &mut [E]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; any bits of the right length are a valid element.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The elements of which these are the bytes; bytes of an incomplete element at the end are left out.
pub(crate) fn elements_of<E: Element>(bytes: &[u8]) -> Vec<E> {
    let mut values = vec![E::default(); bytes.len() / size_of::<E>()];
    let whole = size_of_val(&values[..]);
    bytes_of_mut(&mut values).copy_from_slice(&bytes[..whole]);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn elements_survive_as_bytes() {
        let values = [Complex::new(1.5_f32, -0.0), Complex::new(f32::MIN_POSITIVE, 3.0)];
        assert_eq!(elements_of::<Complex<f32>>(bytes_of(&values)), values);
        let numbers = [1_u64, u64::MAX];
        assert_eq!(bytes_of(&numbers)[..9], [1, 0, 0, 0, 0, 0, 0, 0, 255]);
        // A byte too many, and none.
        assert_eq!(elements_of::<u64>(&bytes_of(&numbers)[..15]), [1]);
        assert!(elements_of::<f64>(&[]).is_empty());
    }
}
