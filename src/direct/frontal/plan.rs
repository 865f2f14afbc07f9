//! The structure of fronts for a backend that eliminates them in its own memory.

use super::numeric::{PREFERENCE, in_parent};
use super::tree::{NONE, Tree};
use crate::backend::{FrontPlan, NO_FRONT, OffsetsRef};
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::parallel::{Cut, both};
use crate::prepare::Scaling;
use crate::scalar::{Scalar, Symmetry};

/// Rows that a thread takes at a time.
const ROWS: usize = 1 << 10;

/// How M = P R A C is computed from A.
pub(in super::super) struct Preparation<'a> {
    pub(in super::super) scaling: &'a Scaling,
    /// P, unless it is the identity.
    pub(in super::super) rows: Option<&'a Permutation>,
    /// For columns of A that are to be pivots in pairs, the number of the partner; empty if there are no pairs.
    pub(in super::super) partners: &'a [u32],
    /// The symmetry of M.
    pub(in super::super) symmetry: Symmetry,
    /// Pivots below this fraction of the largest entry are replaced.
    pub(in super::super) least: f64,
    /// The maximum number of columns that are eliminated together.
    pub(in super::super) block: u32,
}

/// The plan for `a`, whose M + M^T has this structure.
pub(in super::super) fn plan<T: Scalar>(a: &Csr<T>, tree: &Tree, how: &Preparation<'_>) -> FrontPlan {
    let count = tree.len();
    let to = tree.order.clone();
    let from: Vec<u32> = match how.rows {
        Some(rows) => to.iter().map(|&k| rows.new_to_old()[k as usize]).collect(),
        None => to.clone(),
    };
    let mut factors_at = vec![0];
    let (mut blocks_at, mut blocks) = (vec![0], Vec::new());
    let together = |column: u32| {
        let pair = to.get(column as usize..column as usize + 2);
        pair.is_some_and(|pair| how.partners.get(pair[0] as usize) == Some(&pair[1]))
    };
    for s in 0..count {
        let ((w, r), begin) = (tree.shape(s), tree.begin[s]);
        factors_at.push(factors_at[s] + (w * (w + 2 * r)) as u64);
        in_blocks(w as u32, how.block, |k| together(begin + k - 1), &mut blocks);
        blocks_at.push(blocks.len());
    }
    let places_of = |s: usize| if tree.parents[s] == NONE { Vec::new() } else { in_parent(tree, s) };
    let places: Vec<Vec<u32>> = (0..count).into_par_iter().with_min_len(64).map(places_of).collect();
    let unit = |scales: &[f64]| scales.iter().all(|&scale| scale == 1.0);
    let (rows, columns) = (how.scaling.rows(), how.scaling.columns());
    let is_unit = unit(rows) && unit(columns);
    let picked = |scales: &[f64], order: &[u32]| order.iter().map(|&k| scales[k as usize]).collect();
    FrontPlan {
        begin: tree.begin.clone(),
        parents: tree.parents.iter().map(|&parent| if parent == NONE { NO_FRONT } else { parent }).collect(),
        rows_at: tree.rows_at.clone(),
        rows: tree.rows.clone(),
        places: places.concat(),
        blocks_at,
        blocks,
        targets: targets(a, tree, (&from, &to), &factors_at),
        factors_at,
        scales: (!is_unit).then(|| scales(a, rows, columns)),
        scaling: (!is_unit).then(|| (picked(rows, &from), picked(columns, &to))),
        from,
        to,
        preference: PREFERENCE,
        least: how.least,
        symmetry: how.symmetry,
        multiplications: (0..count).map(|s| multiplications(tree.shape(s))).sum(),
    }
}

/// Multiplications of LU in a front.
fn multiplications((w, r): (usize, usize)) -> f64 {
    let (w, r) = (w as f64, r as f64);
    w * (w * w / 3.0 + w * r + r * r)
}

/// Cuts `width` columns into blocks of at most `most`. A block that would end between columns that belong together ends
/// one column sooner.
fn in_blocks(width: u32, most: u32, together: impl Fn(u32) -> bool, blocks: &mut Vec<u32>) {
    let mut at = 0;
    while at < width {
        blocks.push(at);
        let end = (at + most).min(width);
        at = if end < width && end > at + 1 && together(end) { end - 1 } else { end };
    }
    blocks.push(width);
}

/// The offset at which each row begins.
fn starts<T: Scalar>(a: &Csr<T>) -> Vec<u64> {
    match a.parts().offsets {
        OffsetsRef::Lower(offsets) => offsets.iter().map(|&at| u64::from(at)).collect(),
        OffsetsRef::Wide(offsets) => offsets.to_vec(),
    }
}

/// Computes a number for each entry of A, by groups of rows.
fn by_rows<T: Scalar, N: Default + Copy + Send>(
    a: &Csr<T>,
    fill: impl Fn(usize, &[u32], &mut [N]) + Sync,
) -> Vec<N> {
    let starts = starts(a);
    let mut all = vec![N::default(); a.nonzeros()];
    let groups: Vec<u64> = (0..a.rows()).step_by(ROWS).map(|row| starts[row]).collect();
    let cut = Cut::new(&mut all, &groups).expect("rows begin one behind the other");
    cut.enumerate().for_each(|(group, mut part)| {
        for row in group * ROWS..((group + 1) * ROWS).min(a.rows()) {
            let columns = a.row(row).0;
            let (own, rest) = part.split_at_mut(columns.len());
            fill(row, columns, own);
            part = rest;
        }
    });
    all
}

fn scales<T: Scalar>(a: &Csr<T>, rows: &[f64], columns: &[f64]) -> Vec<f64> {
    by_rows(a, |row, indices, scales: &mut [f64]| {
        for (scale, &column) in scales.iter_mut().zip(indices) {
            *scale = rows[row] * columns[column as usize];
        }
    })
}

/// The place in the factors of each entry of A.
fn targets<T: Scalar>(a: &Csr<T>, tree: &Tree, (from, to): (&[u32], &[u32]), factors_at: &[u64]) -> Vec<u64> {
    let n = to.len();
    let (mut new_row, mut new_column, mut of) = (vec![0_u32; n], vec![0_u32; n], vec![0_u32; n]);
    for (new, (&row, &column)) in both(from, to).enumerate() {
        (new_row[row as usize], new_column[column as usize]) = (new as u32, new as u32);
    }
    for s in 0..tree.len() {
        of[tree.begin[s] as usize..tree.begin[s + 1] as usize].fill(s as u32);
    }
    by_rows(a, |row, indices, targets: &mut [u64]| {
        let i = new_row[row];
        for (target, &column) in targets.iter_mut().zip(indices) {
            let j = new_column[column as usize];
            let s = of[i.min(j) as usize] as usize;
            let ((w, r), begin) = (tree.shape(s), tree.begin[s]);
            let place = |new: u32| {
                if ((new - begin) as usize) < w {
                    (new - begin) as usize
                } else {
                    w + tree.rows(s).partition_point(|&other| other < new)
                }
            };
            let (i, j, m) = (place(i), place(j), w + r);
            *target = factors_at[s] + if j < w { j * m + i } else { m * w + (j - w) * w + i } as u64;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::in_blocks;

    #[test]
    fn blocks_keep_together_what_belongs_together() {
        let blocks = |width, pairs: &[u32]| {
            let mut blocks = Vec::new();
            in_blocks(width, 4, |k| pairs.contains(&k), &mut blocks);
            blocks
        };
        assert_eq!(blocks(4, &[]), [0, 4]);
        assert_eq!(blocks(9, &[]), [0, 4, 8, 9]);
        // Columns 3 and 4 are a pair, and 7 and 8.
        assert_eq!(blocks(9, &[4, 8]), [0, 3, 7, 9]);
        assert_eq!(blocks(1, &[1]), [0, 1]);
    }
}
