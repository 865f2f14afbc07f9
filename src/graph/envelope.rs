//! Bandwidth and profile of a matrix.

use super::{Adjacency, Permutation};
use crate::backend::host::pattern::over_rows;
use crate::backend::{GraphSteps, Host, with_offsets};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};

/// The largest |i - j| of a stored a_ij; 0 for a diagonal or an empty matrix. Also defined for rectangular matrices.
pub fn bandwidth<V: Scalar>(a: &Csr<V>) -> usize {
    let (below, above) = band_widths(a);
    below.max(above)
}

/// The largest i - j and the largest j - i of a stored a_ij, at least 0: the numbers of diagonals below the main one, and
/// above it.
pub(crate) fn band_widths<V: Scalar>(a: &Csr<V>) -> (usize, usize) {
    // Columns ascend, so the first and the last entry of a row are the farthest from the diagonal.
    let parts = a.parts();
    with_offsets!(parts.offsets, offsets => over_rows(offsets, |rows| {
        rows.map(|row| {
            let line = &parts.indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
            let ends = line.first().zip(line.last());
            ends.map_or((0, 0), |(&first, &last)| {
                (row.saturating_sub(first as usize), (last as usize).saturating_sub(row))
            })
        }).fold((0, 0), widest)
    }, widest))
}

/// The larger width on each side.
fn widest(one: (usize, usize), other: (usize, usize)) -> (usize, usize) {
    (one.0.max(other.0), one.1.max(other.1))
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
