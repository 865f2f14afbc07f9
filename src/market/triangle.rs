//! The entries of a symmetric file lie in one triangle, or at least no place is given in both.

use super::parallel::Entries;
use crate::error::Result;
use crate::scalar::Scalar;
use crate::scalar::Symmetry;
use rayon::slice::ParallelSliceMut;

/// The format asks for the lower triangle. The upper one alone is accepted, and a mixture too, as long as (i, j) and
/// (j, i) are not both there: that is a full matrix under a symmetric banner, and mirroring it would double it.
///
/// # Errors
/// At the later one of such a pair.
pub(super) fn check<T: Scalar>(entries: &Entries<T>) -> Result<()> {
    let summary = &entries.summary;
    if entries.header.symmetry == Symmetry::General || !(summary.above && summary.below) {
        return Ok(());
    }
    // (lower place, entry) in order of place; the low bit of the place says in which triangle the entry is.
    let (rows, columns) = (&entries.rows, &entries.columns);
    let mut places: Vec<(u64, usize)> = (0..rows.len())
        .filter(|&k| rows[k] != columns[k])
        .map(|k| (u64::from(rows[k].max(columns[k])) << 32 | u64::from(rows[k].min(columns[k])), k))
        .collect();
    places.par_sort_unstable();
    let upper = |k: usize| columns[k] > rows[k];
    let clash = places
        .windows(2)
        .filter(|w| w[0].0 == w[1].0 && upper(w[0].1) != upper(w[1].1))
        .map(|w| w[1].1)
        .min();
    match clash {
        None => Ok(()),
        Some(k) => Err(entries.lines.error(
            k,
            format!(
                "entry ({}, {}) of a {} matrix is given in both triangles; keep one, or declare the matrix general",
                rows[k] + 1,
                columns[k] + 1,
                entries.header.symmetry.name()
            ),
        )),
    }
}
