//! Elimination of the columns of a wide front on all threads.
//!
//! # Symmetric matrices
//!
//! A search among all rows of a front reads columns of its full height at each step, and only one thread can do that.
//! In a wide front the pivots of a group are therefore chosen within the block on its diagonal, which stays in a cache,
//! and all threads work on the rows below:
//!
//! ```text
//! | F11   .  |   F11 = L11 D L11^T                          one thread
//! | F21  F22 |   W = F21 L11^-T and L21 = W D^-1            rows on all threads
//!                F22 - L21 W^T                              columns on all threads
//! ```
//!
//! The entries of L21 show whether the pivots were large enough: if one is too large, or if a pivot had to be
//! perturbed, nothing of the group is kept, and its pivots are searched for among all rows of the front (Duff, Hogg and
//! Lopez, "A new sparse LDL^T solver using a posteriori threshold pivoting", SIAM J. Sci. Comput. 42, 2020).
//!
//! # Unsymmetric matrices
//!
//! Pivots come from the square block F11 in any case. It is therefore eliminated first, in a copy that is not higher
//! than it is wide, and all threads work on the rows below, as above: with U11 = D V they are W = F21 V^-1 and L21 = W
//! D^-1.

use super::dense::{Front, Pivots, panel};
use super::symmetric::{GROUP, SymmetricFront, TWO};
use crate::direct::Factorable;
use crate::parallel::prelude::*;
use crate::scalar::Real;
use crate::work::Meter;
use std::borrow::Cow;
use std::ops::Range;

/// The largest entry of L that is accepted in the rows of the front's own columns: the inverse of the threshold of 0.01
/// that is usual for symmetric matrices (Duff, Hogg and Lopez, as above).
const LARGEST: f64 = 100.0;

/// Rows below a block, and columns of it, that a thread takes at a time. The rows of 128 numbers fit into a
/// second-level cache, and eight columns share its lines.
const ROWS: usize = 64;
const COLUMNS: usize = 8;

/// Computes an entry of a row of L from the row of W: the entry at the same place times `own`, plus the entry at place
/// `at` times `other`.
#[derive(Clone, Copy, Default)]
struct Divided<T> {
    own: T,
    other: T,
    at: usize,
}

impl<T: Factorable> Divided<T> {
    #[inline(always)]
    fn of(self, row: &[T], k: usize) -> T {
        row[k] * self.own + row[self.at] * self.other
    }
}

impl<T: Factorable> SymmetricFront<'_, T> {
    /// Eliminates a group of columns with pivots from its diagonal block, and returns the number of perturbed pivots;
    /// or leaves the front as it is if these pivots are too small. It is never left if pivots are not searched for.
    pub(super) fn group(
        &mut self,
        group: &Range<usize>,
        pivots: Pivots,
        work: &mut [T],
        meter: &Meter,
    ) -> Option<usize> {
        let (m, n, end) = (self.height, group.len(), group.end);
        let (block, rest) = work.split_at_mut(n * n);
        let (lower, rows) = rest.split_at_mut(n * (n + 1));
        let rows = &mut rows[..n * (m - end)];
        for (k, column) in block.chunks_exact_mut(n).enumerate() {
            column[k..].copy_from_slice(&self.panel[(group.start + k) * m..][group.start + k..end]);
        }
        let mut swaps = [0; GROUP];
        let swaps = &mut swaps[..n];
        let mut own = SymmetricFront {
            width: n,
            height: n,
            panel: &mut *block,
            contribution: &mut [],
            swaps: &mut *swaps,
        };
        let made_up = own.eliminate_own(pivots, lower, meter);
        let swaps = &*swaps;
        if pivots.in_order.is_none() && made_up > 0 && end < self.width {
            return None;
        }
        let lower = &mut lower[..n * n];
        lower.copy_from_slice(block);
        let mut divided = [Divided::default(); GROUP];
        let mut order: [usize; GROUP] = std::array::from_fn(|k| k);
        for k in 0..n {
            order.swap(k, (swaps[k] & !TWO) as usize);
            let pivot = block[k * n + k];
            if swaps[k] & TWO != 0 {
                let (off, next) = (block[k * n + k + 1], block[(k + 1) * n + k + 1]);
                let (one, two) = (pivot / off, next / off);
                let inverse = T::from_f64(1.0) / (off * (one * two - T::from_f64(1.0)));
                divided[k] = Divided { own: two * inverse, other: -inverse, at: k + 1 };
                divided[k + 1] = Divided { own: one * inverse, other: -inverse, at: k };
                // This place of L, which is zero, holds the entry of D next to the diagonal.
                lower[k * n + k + 1] = T::default();
            } else if k == 0 || swaps[k - 1] & TWO == 0 {
                divided[k] = Divided { own: T::from_f64(1.0) / pivot, other: T::default(), at: k };
            }
        }
        let (lower, divided) = (&*lower, &divided[..n]);
        let columns = |k: usize| (group.start + order[k]) * m + end;
        let own_rows = if pivots.in_order.is_none() { self.width - end } else { 0 };
        let largest = solved_rows((&*self.panel, &columns), (lower, n), rows, meter, &|first, rows| {
            let checked = rows.chunks_exact(n).take(own_rows.saturating_sub(first));
            checked.fold(0.0_f64, |largest, row| {
                let sizes = divided.iter().enumerate().map(|(k, divided)| divided.of(row, k).abs2().to_f64());
                sizes.fold(largest, f64::max)
            })
        });
        if largest > LARGEST * LARGEST {
            return None;
        }
        let rows = &*rows;
        let (before, behind) = self.panel.split_at_mut(group.start * m);
        if swaps.iter().enumerate().any(|(k, &with)| (with & !TWO) as usize != k) {
            before.par_chunks_mut(m * COLUMNS).for_each(|columns| {
                for column in columns.chunks_exact_mut(m) {
                    let own = &mut column[group.clone()];
                    swaps.iter().enumerate().for_each(|(k, &with)| own.swap(k, (with & !TWO) as usize));
                }
            });
        }
        behind[..n * m].par_chunks_mut(m * COLUMNS).enumerate().for_each(|(chunk, columns)| {
            for (column, k) in columns.chunks_exact_mut(m).zip(chunk * COLUMNS..) {
                column[group.start + k..end].copy_from_slice(&block[k * n + k..(k + 1) * n]);
                let divided = divided[k];
                for (value, row) in column[end..].iter_mut().zip(rows.chunks_exact(n)) {
                    *value = divided.of(row, k);
                }
            }
        });
        for (own, &with) in self.swaps[group.clone()].iter_mut().zip(swaps) {
            *own = (with & TWO) | ((with & !TWO) + group.start as u32);
        }
        let products = |_: &[T], columns: Range<usize>| {
            Cow::Borrowed(&rows[(columns.start - end) * n..(columns.end - end) * n])
        };
        self.behind(group.clone(), end..self.width, products, meter);
        Some(made_up)
    }
}

/// Computes the rows of W, one after another, from columns of a panel: each is L^-1 times the original row, where L is
/// a unit lower triangle of `n` columns. Entries of column k begin at `columns(k)`. `check` is called with some rows
/// and the number of the first; its largest result is returned.
fn solved_rows<T: Factorable>(
    (panel, columns): (&[T], &(dyn Fn(usize) -> usize + Sync)),
    (lower, n): (&[T], usize),
    rows: &mut [T],
    meter: &Meter,
    check: &(dyn Fn(usize, &[T]) -> f64 + Sync),
) -> f64 {
    let largest = rows.par_chunks_mut(n * ROWS).enumerate().map(|(chunk, rows)| {
        meter.advance(0);
        let first = chunk * ROWS;
        for k in 0..n {
            let column = &panel[columns(k) + first..];
            rows[k..].iter_mut().step_by(n).zip(column).for_each(|(place, &value)| *place = value);
        }
        T::eliminate_apart(lower, n, n, rows, &mut []);
        check(first, rows)
    });
    largest.reduce(|| 0.0, f64::max)
}

impl<T: Factorable> Front<'_, T> {
    /// Eliminates the front's own columns, and returns the number of perturbed pivots.
    pub(super) fn square_first(&mut self, pivots: Pivots, work: &mut Vec<T>, meter: &Meter) -> usize {
        let (m, w) = (self.height, self.width);
        let size = w * (w + m);
        if work.len() < size {
            work.resize(size, T::default());
        }
        let (square, rest) = work.split_at_mut(w * w);
        let (lower, rows) = rest.split_at_mut(w * w);
        let rows = &mut rows[..w * (m - w)];
        let copied = square.par_chunks_mut(w).zip(self.panel.par_chunks(m)).with_min_len(COLUMNS);
        copied.for_each(|(column, own)| column.copy_from_slice(&own[..w]));
        let made_up = panel(square, w, 0, w, (pivots, meter), self.swaps);
        let square = &*square;
        let inverse = |k: usize| T::from_f64(1.0) / square[k * w + k];
        let inverses: Vec<T> = (0..w).map(inverse).collect();
        lower.par_chunks_mut(w).enumerate().with_min_len(COLUMNS).for_each(|(k, column)| {
            let row = square[k..].iter().step_by(w).skip(k + 1);
            column[k + 1..].iter_mut().zip(row).for_each(|(place, &value)| *place = value * inverses[k]);
        });
        solved_rows((&*self.panel, &|k| k * m + w), (lower, w), rows, meter, &|_, _| 0.0);
        let rows = &*rows;
        self.panel.par_chunks_mut(m * COLUMNS).enumerate().for_each(|(chunk, columns)| {
            for (column, k) in columns.chunks_exact_mut(m).zip(chunk * COLUMNS..) {
                column[..w].copy_from_slice(&square[k * w..(k + 1) * w]);
                for (value, row) in column[w..].iter_mut().zip(rows.chunks_exact(w)) {
                    *value = row[k] * inverses[k];
                }
            }
        });
        made_up
    }
}
