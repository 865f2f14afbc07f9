//! The representation of numbers in binary files, and their conversion to the types of a matrix.

use crate::market::Field;
use crate::parallel::vectorised;
use crate::scalar::{Offset, Scalar};

/// A type of numbers, as NumPy names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Type {
    /// `f`, `c`, `i`, `u` or `b`; `S` and `U` are text.
    pub(super) letter: u8,
    /// Bytes of one number.
    pub(super) size: usize,
    /// True if the most significant byte comes first.
    pub(super) big: bool,
}

/// An invalid number: its index among those converted together, and its value.
pub(super) type Bad = (usize, i64);

/// Converts numbers of `N` bytes.
#[inline(always)]
fn each<const N: usize, V>(raw: &[u8], out: &mut [V], mut turn: impl FnMut([u8; N]) -> V) {
    for (bytes, place) in raw.as_chunks::<N>().0.iter().zip(out) {
        *place = turn(*bytes);
    }
}

impl Type {
    pub(super) fn field(self) -> Field {
        if self.letter == b'c' { Field::Complex } else { Field::Real }
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self.letter, b'S' | b'U')
    }

    /// Converts big-endian numbers to little-endian ones, in place; real and imaginary parts separately.
    fn to_little(self, raw: &mut [u8]) {
        fn reverse<const N: usize>(raw: &mut [u8]) {
            for part in raw.as_chunks_mut::<N>().0 {
                part.reverse();
            }
        }
        match if self.letter == b'c' { self.size / 2 } else { self.size } {
            _ if !self.big => {}
            2 => reverse::<2>(raw),
            4 => reverse::<4>(raw),
            8 => reverse::<8>(raw),
            _ => {}
        }
    }

    /// Converts integers. One beyond 2^63 is not a valid index or value.
    #[inline(always)]
    fn integers<V>(self, raw: &mut [u8], out: &mut [V], mut turn: impl FnMut(i64) -> V) {
        self.to_little(raw);
        match (self.letter, self.size) {
            (b'i', 4) => each(raw, out, |bytes| turn(i32::from_le_bytes(bytes).into())),
            (b'i', 8) => each(raw, out, |bytes| turn(i64::from_le_bytes(bytes))),
            (letter, size) => {
                let unused = 64 - 8 * size as u32;
                for (bytes, place) in raw.chunks_exact(size).zip(out) {
                    let mut word = [0; 8];
                    word[..size].copy_from_slice(bytes);
                    let bits = u64::from_le_bytes(word);
                    *place = turn(if letter == b'i' {
                        ((bits << unused) as i64) >> unused
                    } else {
                        i64::try_from(bits).unwrap_or(i64::MAX)
                    });
                }
            }
        }
    }

    /// Converts to signed integers.
    pub(super) fn to_signed(self, raw: &mut [u8], out: &mut [i64]) -> Option<Bad> {
        self.integers(raw, out, |value| value);
        None
    }

    /// Converts to indices from zero to below `limit`, which `O` can represent. Returns the first invalid one, if there
    /// is one.
    pub(super) fn to_indices<O: Offset>(self, raw: &mut [u8], out: &mut [O], limit: u64) -> Option<Bad> {
        let good = vectorised(
            #[inline(always)]
            || {
                let mut good = true;
                self.integers(
                    raw,
                    out,
                    #[inline(always)]
                    |value| {
                        let inside = (value as u64) < limit;
                        good &= inside;
                        O::from_usize(if inside { value as usize } else { 0 })
                    },
                );
                good
            },
        );
        if good {
            return None;
        }
        // The bytes are in little-endian order now.
        let (mut bad, mut place) = (None, 0);
        Self { big: false, ..self }.integers(raw, &mut vec![(); out.len()], |value| {
            if bad.is_none() && value as u64 >= limit {
                bad = Some((place, value));
            }
            place += 1;
        });
        bad
    }

    /// Converts numbers of any type. Returns the first that is not finite, if there is one.
    pub(super) fn to_values<T: Scalar>(self, raw: &mut [u8], out: &mut [T]) -> Option<Bad> {
        let good = vectorised(
            #[inline(always)]
            || {
                self.to_little(raw);
                match (self.letter, self.size) {
                    (b'f', 8) => each(raw, out, |bytes| T::from_f64(f64::from_le_bytes(bytes))),
                    (b'f', _) => each(raw, out, |bytes| T::from_f64(f32::from_le_bytes(bytes).into())),
                    (b'c', 16) => each(raw, out, |bytes| {
                        let [re, im] = halves::<8, 16>(bytes).map(f64::from_le_bytes);
                        T::from_parts(re, im).unwrap_or_default()
                    }),
                    (b'c', _) => each(raw, out, |bytes| {
                        let [re, im] = halves::<4, 8>(bytes).map(f32::from_le_bytes);
                        T::from_parts(re.into(), im.into()).unwrap_or_default()
                    }),
                    // The bytes are in little-endian order now.
                    _ => Self { big: false, ..self }.integers(raw, out, |value| T::from_f64(value as f64)),
                }
                // Without a branch, so that the compiler vectorises it.
                out.iter().fold(true, |all, value| all & value.is_finite())
            },
        );
        if good { None } else { out.iter().position(|value| !value.is_finite()).map(|place| (place, 0)) }
    }
}

/// The two halves of a complex number.
#[inline(always)]
fn halves<const N: usize, const M: usize>(bytes: [u8; M]) -> [[u8; N]; 2] {
    let mut parts = [[0; N]; 2];
    parts[0].copy_from_slice(&bytes[..N]);
    parts[1].copy_from_slice(&bytes[N..]);
    parts
}
