//! Bandwidth and profile of a matrix.

use super::{Adjacency, Permutation};
use crate::backend::host::pattern::over_rows;
use crate::backend::{GraphSteps, Host, with_offsets};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};

/// The largest |i - j| of a stored a_ij; 0 for a diagonal or an empty matrix. Also defined for rectangular matrices.
pub fn bandwidth<V: Scalar>(a: &Csr<V>) -> usize {
    // Columns ascend, so the first and the last entry of a row are the farthest from the diagonal.
    let parts = a.parts();
    with_offsets!(parts.offsets, offsets => over_rows(offsets, |rows| {
        rows.map(|row| {
            let line = &parts.indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
            let ends = line.first().zip(line.last());
            ends.map_or(0, |(&first, &last)| row.abs_diff(first as usize).max(row.abs_diff(last as usize)))
        }).max().unwrap_or(0)
    }, usize::max))
}

/// The bandwidth of P A P^T, without forming it.
///
/// # Errors
/// If A is not square, or if the permutation does not have one element per row of A.
pub fn bandwidth_permuted<V: Scalar>(a: &Csr<V>, permutation: &Permutation) -> Result<usize> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    Error::check_dimension("length of the permutation", a.rows(), permutation.len())?;
    let parts = a.parts();
    let new = permutation.old_to_new();
    Ok(with_offsets!(parts.offsets, offsets => over_rows(offsets, |rows| {
        rows.map(|row| {
            let line = &parts.indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
            line.iter().map(|&w| new[row].abs_diff(new[w as usize]) as usize).max().unwrap_or(0)
        }).max().unwrap_or(0)
    }, usize::max)))
}

/// The profile (envelope size) of A + A^T: the sum over all rows i of i - f_i, where f_i <= i is the first column of
/// the row in the lower triangle of A + A^T, or i if there is none. A skyline factorisation stores this many entries
/// plus the diagonal.
///
/// # Errors
/// As [`Adjacency::new`].
pub fn profile<V: Scalar>(a: &Csr<V>) -> Result<u64> {
    Ok(Host.envelope(Adjacency::new(a)?.parts(), None)?.1)
}

/// The profile of P (A + A^T) P^T, without forming it.
///
/// # Errors
/// As [`profile`], and if the permutation does not have one element per row of A.
pub fn profile_permuted<V: Scalar>(a: &Csr<V>, permutation: &Permutation) -> Result<u64> {
    Error::check_dimension("length of the permutation", a.rows(), permutation.len())?;
    Ok(Host.envelope(Adjacency::new(a)?.parts(), Some(permutation.old_to_new()))?.1)
}
