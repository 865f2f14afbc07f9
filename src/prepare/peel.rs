//! Rows and columns with one entry.

use super::pattern::Pattern;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use crate::work::look_at;

/// A forced pair. When it was found, and apart from pairs found before, the row had no entry except in this column
/// (`by_row`), or the column had none except in this row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forced {
    pub(super) row: u32,
    pub(super) column: u32,
    pub(super) by_row: bool,
}

/// Matches rows and columns with a single entry, sets them aside, and goes on with those that have a single entry then.
/// Some maximum matching contains these pairs (Karp and Sipser, "Maximum matchings in sparse random graphs", FOCS
/// 1981). Also returns the pattern of the transpose, which is computed only if there is such a row or column.
pub(super) fn peel(pattern: &Pattern<'_>) -> Result<(Vec<Forced>, Option<Pattern<'static>>)> {
    let mut rows: Vec<u32> = (0..pattern.rows()).map(|row| pattern.row(row).len() as u32).collect();
    let mut columns = vec![0_u32; pattern.columns()];
    pattern.indices().iter().for_each(|&column| columns[column as usize] += 1);
    let singles = |counts: &[u32]| {
        (0..).zip(counts).filter(|(_, count)| **count == 1).map(|(k, _)| k).collect::<Vec<u32>>()
    };
    let (mut single_rows, mut single_columns) = (singles(&rows), singles(&columns));
    if single_rows.is_empty() && single_columns.is_empty() {
        return Ok((Vec::new(), None));
    }
    // The smallest comes first.
    single_rows.reverse();
    single_columns.reverse();
    let transposed = pattern.transposed()?;
    let (mut row_gone, mut column_gone) = (vec![false; rows.len()], vec![false; columns.len()]);
    let mut forced = Vec::new();
    loop {
        look_at(forced.len());
        let (row, column, by_row) = if let Some(row) = single_rows.pop() {
            let left = pattern.row(row as usize).iter().find(|&&column| !column_gone[column as usize]);
            match left {
                Some(&column) if !row_gone[row as usize] => (row, column, true),
                _ => continue,
            }
        } else if let Some(column) = single_columns.pop() {
            let left = transposed.row(column as usize).iter().find(|&&row| !row_gone[row as usize]);
            match left {
                Some(&row) if !column_gone[column as usize] => (row, column, false),
                _ => continue,
            }
        } else {
            return Ok((forced, Some(transposed)));
        };
        forced.push(Forced { row, column, by_row });
        (row_gone[row as usize], column_gone[column as usize]) = (true, true);
        let lose = |counts: &mut [u32], gone: &[bool], others: &[u32], singles: &mut Vec<u32>| {
            for &other in others.iter().filter(|&&other| !gone[other as usize]) {
                counts[other as usize] -= 1;
                if counts[other as usize] == 1 {
                    singles.push(other);
                }
            }
        };
        lose(&mut rows, &row_gone, transposed.row(column as usize), &mut single_rows);
        lose(&mut columns, &column_gone, pattern.row(row as usize), &mut single_columns);
    }
}

/// Returns the order in which substitution finds the unknowns of a matrix that is triangular after permutations: each
/// row with the column of its unknown. `None` if the matrix is not of this kind.
pub(crate) fn triangular_order<T: Scalar>(a: &Csr<T>) -> Result<Option<Vec<(u32, u32)>>> {
    if a.rows() != a.columns() {
        return Ok(None);
    }
    let (forced, _) = peel(&Pattern::nonzero(a)?)?;
    if forced.len() < a.rows() {
        return Ok(None);
    }
    // A row that was single gives its unknown from those found before. A column that was single has no entry in rows
    // set aside later, so its unknown is found after all of these.
    let pair = |forced: &Forced| (forced.row, forced.column);
    let (by_row, by_column): (Vec<_>, Vec<_>) = forced.iter().partition(|forced| forced.by_row);
    Ok(Some(by_row.into_iter().map(pair).chain(by_column.into_iter().rev().map(pair)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_are_found_in_any_order_of_rows_and_columns() {
        let of = |entries: &[(usize, u32)]| {
            let mut offsets = vec![0];
            for row in 0..3 {
                offsets.push(offsets[row] + entries.iter().filter(|(i, _)| *i == row).count());
            }
            let columns = entries.iter().map(|&(_, column)| column).collect();
            let a = Csr::from_parts(3, 3, offsets, columns, vec![1.0; entries.len()]).unwrap();
            triangular_order(&a).unwrap()
        };
        assert_eq!(of(&[(0, 1), (1, 0), (1, 2), (2, 0), (2, 1)]), Some(vec![(0, 1), (2, 0), (1, 2)]));
        // Rows 0 and 1 need each other.
        assert_eq!(of(&[(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]), None);
        assert_eq!(of(&[(0, 0), (1, 1)]), None);
    }
}
