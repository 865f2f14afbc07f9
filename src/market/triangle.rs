//! Checks that the entries of a symmetric file are in one triangle, or that entries given in both agree.

use crate::scalar::{Scalar, Symmetry};
use rayon::slice::ParallelSliceMut;

/// The specification requires the lower triangle. The upper one is accepted too, and so is a mixture. If (i, j) and (j,
/// i) are both given, once each and with values that agree, they are the same entry: the later one is removed, since
/// mirroring both would double it. Returns how many were removed.
///
/// # Errors
/// The index of the later entry of a pair that does not agree, or that is given more than once: whether to add such
/// entries or to use one would be a guess.
pub(crate) fn once_each<T: Scalar>(
    symmetry: Symmetry,
    rows: &mut Vec<u32>,
    columns: &mut Vec<u32>,
    values: &mut Vec<T>,
) -> Result<u64, usize> {
    if symmetry == Symmetry::General {
        return Ok(0);
    }
    // (position in the lower triangle, index of the entry), sorted by position.
    let mut places: Vec<(u64, usize)> = (0..rows.len())
        .filter(|&k| rows[k] != columns[k])
        .map(|k| (u64::from(rows[k].max(columns[k])) << 32 | u64::from(rows[k].min(columns[k])), k))
        .collect();
    places.par_sort_unstable();
    let upper = |k: usize| columns[k] > rows[k];
    let (mut clash, mut again) = (None, Vec::new());
    for group in places.chunk_by(|one, two| one.0 == two.0) {
        let Some(other) = group.iter().find(|(_, k)| upper(*k) != upper(group[0].1)) else { continue };
        let agree = group.len() == 2 && symmetry.mirror(values[group[0].1]) == values[other.1];
        if agree {
            again.push(other.1);
        } else {
            clash = Some(clash.unwrap_or(other.1).min(other.1));
        }
    }
    if let Some(k) = clash {
        return Err(k);
    }
    again.sort_unstable();
    for list in [rows, columns] {
        without(list, &again);
    }
    without(values, &again);
    Ok(again.len() as u64)
}

/// Removes the entries with these indices, which ascend.
fn without<V: Copy>(list: &mut Vec<V>, numbers: &[usize]) {
    let (mut k, mut next) = (0, numbers.iter().peekable());
    list.retain(|_| {
        let out = next.next_if(|&&number| number == k).is_some();
        k += 1;
        !out
    });
}

/// The message about an entry that [`once_each`] has found.
pub(crate) fn told_twice(symmetry: Symmetry, row: u32, column: u32) -> String {
    format!(
        "entry ({}, {}) of a {} matrix is given in both triangles, and not as the same once in each; keep one, or \
         declare the matrix general",
        row + 1,
        column + 1,
        symmetry.name()
    )
}
