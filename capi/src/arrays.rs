//! A caller's arrays as a matrix.

use crate::status::{Answer, Fault, RESIDUA_INVALID_MATRIX};
use residua_core::assemble::Assembly;
use residua_core::{Csr, Host, Scalar, Triplets};
use std::ffi::c_void;

/// A matrix, and the map of new values to it where its entries are not in the caller's order.
pub(crate) type Built<T> = (Csr<T>, Option<Assembly<Host>>);

/// `len` elements of the caller.
///
/// # Safety
/// `data` is null or of `len` elements, which nothing writes to while the slice lives.
pub(crate) unsafe fn slice<'a, T>(what: &str, data: *const c_void, len: usize) -> Answer<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check::<T>(what, data, len)?;
    // SAFETY: not null, aligned, no longer than memory can be; the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// Refuses what no array can be.
pub(crate) fn check<T>(what: &str, data: *const c_void, len: usize) -> Answer {
    if data.is_null() {
        return Err(Fault::null(what));
    }
    if !data.cast::<T>().is_aligned() {
        return Err(Fault::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Fault::argument(format!("{what}: {len} elements are more than memory can hold"))),
    }
}

/// A count of the caller.
pub(crate) fn length(what: &str, count: i64) -> Answer<usize> {
    usize::try_from(count)
        .map_err(|_| Fault::argument(format!("{what} is {count}: a number from 0 on is needed")))
}

/// Indices of the caller, from 0; each is below `limit`.
///
/// # Safety
/// As [`slice`], of integers of `bits`.
pub(crate) unsafe fn indices<O: TryFrom<u64>>(
    what: &str,
    data: *const c_void,
    len: usize,
    bits: i32,
    base: i32,
    limit: u64,
) -> Answer<Vec<O>> {
    let mut made = Vec::new();
    let take = |k: usize, index: i64| {
        let moved = index.checked_sub(base.into()).and_then(|i| u64::try_from(i).ok()).filter(|&i| i < limit);
        moved.and_then(|i| O::try_from(i).ok()).ok_or_else(|| {
            let text = format!("{what}[{k}] is {index}: from {base}, there are {limit}");
            Fault::new(RESIDUA_INVALID_MATRIX, text)
        })
    };
    let room =
        |_| Fault::new(crate::RESIDUA_OUT_OF_MEMORY, format!("no memory for {len} elements of {what}"));
    match bits {
        32 => {
            // SAFETY: the caller's promise.
            let given: &[i32] = unsafe { slice(what, data, len)? };
            made.try_reserve_exact(len).map_err(room)?;
            for (k, &index) in given.iter().enumerate() {
                made.push(take(k, index.into())?);
            }
        }
        64 => {
            // SAFETY: the caller's promise.
            let given: &[i64] = unsafe { slice(what, data, len)? };
            made.try_reserve_exact(len).map_err(room)?;
            for (k, &index) in given.iter().enumerate() {
                made.push(take(k, index)?);
            }
        }
        _ => return Err(Fault::argument(format!("{what}: integers of {bits} bits; 32 or 64 are possible"))),
    }
    Ok(made)
}

/// The matrix of CSR arrays. Rows whose columns do not ascend are sorted, and what stands twice adds up.
pub(crate) fn from_csr<T: Scalar>(
    (rows, columns): (usize, usize),
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: &[T],
) -> Answer<Built<T>> {
    let wrong = |text: String| Err(Fault::new(RESIDUA_INVALID_MATRIX, text));
    if offsets.first() != Some(&0) || offsets.last() != Some(&values.len()) {
        return wrong(format!(
            "the offsets go from {:?} to {:?} (from 0), and there are {} entries",
            offsets.first(),
            offsets.last(),
            values.len()
        ));
    }
    if let Some(row) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return wrong(format!("row {row} (from 0) ends before it starts"));
    }
    let ascends = |row: &[usize]| indices[row[0]..row[1]].is_sorted_by(|a, b| a < b);
    if offsets.windows(2).all(ascends) {
        return Ok((Csr::from_parts(rows, columns, offsets, indices, values.to_vec())?, None));
    }
    let places = offsets.windows(2).enumerate();
    let row_indices =
        places.flat_map(|(row, pair)| std::iter::repeat_n(row as u32, pair[1] - pair[0])).collect();
    from_coo((rows, columns), row_indices, indices, values)
}

/// The matrix of triplets; what stands twice adds up.
pub(crate) fn from_coo<T: Scalar>(
    (rows, columns): (usize, usize),
    row_indices: Vec<u32>,
    column_indices: Vec<u32>,
    values: &[T],
) -> Answer<Built<T>> {
    let triplets = Triplets::from_parts(rows, columns, row_indices, column_indices, values.to_vec())?;
    let (a, assembly) = Assembly::new(&Host, &triplets)?;
    Ok((a, Some(assembly)))
}
