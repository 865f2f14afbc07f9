//! Elimination within one front of a symmetric matrix: L D L^T, without conjugation if entries are complex.
//!
//! ```text
//! | F11  .  |   F11 = L11 D L11^T, L21 = F21 L11^-T D^-1: stored in the factor
//! | F21  C  |   C - L21 D L21^T: the contribution
//! ```
//!
//! Pivots have one row or two, chosen among the front's own by the rule of Bunch and Kaufman ("Some stable methods for
//! calculating inertia and solving symmetric linear systems", Math. Comp. 31, 1977). A column is updated when a pivot
//! is searched for in it, and the columns after a block of pivots are updated together, as in LAPACK's `sytrf`. Only
//! lower triangles are read; entries above them have no meaning.

use super::dense::{PLAIN, Pivots, WIDE, subtract_columns};
use crate::direct::Factorable;
use crate::parallel::prelude::*;
use crate::parallel::{Cut, vectorised};
use crate::scalar::Real;
use crate::work::Meter;
use std::borrow::Cow;
use std::ops::Range;

/// Marks the first step of a 2 x 2 pivot.
pub(super) const TWO: u32 = 1 << 31;

/// The square of (1 + sqrt 17) / 8, for which 1 x 1 and 2 x 2 pivots have the same bound of growth.
const ALPHA: f64 = 0.410_097_050_8;

/// The number of pivots in a block, and in a group of blocks. After each block the other columns of its group are
/// updated, and after the group all others, which are thus read and written four times less often.
pub(super) const BLOCK: usize = 32;
pub(super) const GROUP: usize = 128;

/// The number of tasks that share the columns of a triangle, and limits of the columns in each. Half of the square on
/// the diagonal is computed needlessly, and a product of few columns is slow.
const TASKS: usize = 32;
const LEAST: usize = 32;
const MOST: usize = 96;

/// A front: `height` rows of its own `width` columns, and the contribution.
pub(super) struct SymmetricFront<'a, T> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) panel: &'a mut [T],
    pub(super) contribution: &'a mut [T],
    /// The row that is exchanged with each row, marked by [`TWO`] if it is the first of a 2 x 2 pivot.
    pub(super) swaps: &'a mut [u32],
}

/// The pivot that a step chooses.
enum Pivot {
    /// A 1 x 1 pivot in this row.
    One(usize),
    /// A 2 x 2 pivot of the current row and this one.
    Two(usize),
}

/// Returns rows of L D, collected from columns with `height` entries each.
fn of_columns<'a, T: Factorable>(
    columns: &'a [T],
    height: usize,
    count: usize,
) -> impl Fn(&[T], Range<usize>) -> Cow<'a, [T]> + Sync {
    move |_, rows| rows.flat_map(|j| columns.chunks_exact(height).take(count).map(move |w| w[j])).collect()
}

/// Divides the columns of a lower triangle, or trapezoid, of this height into tasks of about the same work, and returns
/// the first column of each. Results depend on them, so they depend on the front alone.
fn tasks(columns: usize, height: usize) -> Vec<usize> {
    let each = columns * (2 * height - columns) / (2 * TASKS);
    let (mut first, mut starts) = (0, Vec::new());
    while first < columns {
        starts.push(first);
        first += (each / (height - first)).next_multiple_of(8).clamp(LEAST, MOST);
    }
    starts
}

impl<T: Factorable> SymmetricFront<'_, T> {
    /// Eliminates the front's own columns, and returns the number of pivots that were perturbed because they were
    /// too small. `meter` can stop the elimination; `work` is workspace.
    pub(super) fn eliminate(&mut self, pivots: Pivots, work: &mut Vec<T>, meter: &Meter) -> usize {
        let group = self.width.min(GROUP);
        let of_block = if self.width < WIDE { 0 } else { group * (2 * group + 1) };
        let size = of_block + self.height * (group + 1);
        if work.len() < size {
            work.resize(size, T::default());
        }
        let made_up = self.eliminate_own(pivots, work, meter);
        self.contribute(meter);
        made_up
    }

    /// Eliminates like `eliminate`, but does not compute the contribution.
    pub(super) fn eliminate_own(&mut self, pivots: Pivots, work: &mut [T], meter: &Meter) -> usize {
        match pivots.in_order {
            Some(rule) => self.all_in_order(rule, pivots, work, meter),
            None => self.among_all(pivots, work, meter),
        }
    }

    /// Searches for pivots among all rows of the front, unless it is wide and the block on the diagonal has large ones.
    fn among_all(&mut self, pivots: Pivots, work: &mut [T], meter: &Meter) -> usize {
        let (mut from, mut made_up) = (0, 0);
        let mut most = GROUP;
        while from < self.width {
            let group = from..(from + most).min(self.width);
            if self.width >= WIDE
                && let Some(new) = self.group(&group, pivots, work, meter)
            {
                (from, most) = (group.end, GROUP);
                made_up += new;
                continue;
            }
            while from < group.end {
                meter.advance(0);
                let block = from..(from + BLOCK).min(group.end);
                let to = vectorised(|| self.block(&group, block.clone(), pivots.least, work, &mut made_up));
                let own = &work[(block.start - group.start) * self.height..];
                self.behind(
                    block.start..to,
                    to..group.end,
                    of_columns(own, self.height, to - block.start),
                    meter,
                );
                from = to;
                if to < block.end {
                    // Columns after the group are not up to date, so they cannot be exchanged with those within. The
                    // next group has one block, for which that makes no difference.
                    most = BLOCK;
                    break;
                }
            }
            let products = of_columns(work, self.height, from - group.start);
            self.behind(group.start..from, from.max(group.end)..self.width, products, meter);
        }
        made_up
    }

    /// Eliminates a block of columns of a group, and returns where it ends, which is early if the best pivot is after
    /// the group. Column c of `work` becomes that of L D for pivot `group.start + c`.
    #[inline(always)]
    fn block(
        &mut self,
        group: &Range<usize>,
        block: Range<usize>,
        least: f64,
        work: &mut [T],
        made_up: &mut usize,
    ) -> usize {
        let (m, from) = (self.height, group.start);
        let mut k = block.start;
        while k < block.end {
            let c = k - from;
            self.up_to_date(group, block.start, (k, k), work);
            match self.choose(group, block.start, k, least, work) {
                Pivot::One(with) | Pivot::Two(with) if with >= group.end && group.len() > BLOCK => return k,
                Pivot::One(with) => {
                    if with != k {
                        self.exchange(k, with, &mut work[..(c + 2) * m]);
                        work.copy_within((c + 1) * m + k..(c + 2) * m, c * m + k);
                    }
                    self.swaps[k] = with as u32;
                    let (own, product) = (&mut self.panel[k * m..(k + 1) * m], &work[c * m..(c + 1) * m]);
                    own[k] = product[k];
                    // NaN remains, so that the factor is known not to be finite.
                    if own[k].abs2().to_f64() < least * least {
                        own[k] = T::from_f64(least);
                        *made_up += 1;
                    }
                    let inverse = T::from_f64(1.0) / own[k];
                    let (own, product) = (&mut own[k + 1..], &product[k + 1..]);
                    for (i, own) in own.iter_mut().enumerate() {
                        *own = product[i] * inverse;
                    }
                    k += 1;
                }
                Pivot::Two(with) => {
                    self.exchange(k + 1, with, &mut work[..(c + 2) * m]);
                    (self.swaps[k], self.swaps[k + 1]) = (k as u32 | TWO, with as u32);
                    let (first, second) = work[c * m..(c + 2) * m].split_at(m);
                    let off = first[k + 1];
                    let (one, two) = (first[k] / off, second[k + 1] / off);
                    let inverse = T::from_f64(1.0) / (off * (one * two - T::from_f64(1.0)));
                    let (left, right) = self.panel[k * m..(k + 2) * m].split_at_mut(m);
                    (left[k], left[k + 1], right[k + 1]) = (first[k], off, second[k + 1]);
                    for i in k + 2..m {
                        left[i] = (first[i] * two - second[i]) * inverse;
                        right[i] = (second[i] * one - first[i]) * inverse;
                    }
                    k += 2;
                }
            }
        }
        k
    }

    /// Copies `column`, from row k on, to column k of the group's `work`, or to the next column if `column` is not k.
    /// Then it subtracts what was eliminated since the entries' last update: by the block that begins at `from`, or, if
    /// they are in columns after the group, by the whole group so far.
    #[inline(always)]
    fn up_to_date(&self, group: &Range<usize>, from: usize, (k, column): (usize, usize), work: &mut [T]) {
        let (m, panel) = (self.height, &*self.panel);
        let (done, rest) = work.split_at_mut((k - group.start) * m);
        let place = usize::from(column != k) * m;
        let target = &mut rest[place..place + m];
        for j in k..column {
            target[j] = panel[j * m + column];
        }
        target[column..].copy_from_slice(&panel[column * m + column..(column + 1) * m]);
        let mut factors = [T::default(); GROUP];
        factors.iter_mut().zip(done.chunks_exact(m)).for_each(|(factor, done)| *factor = done[column]);
        // Entries of this row in columns of the group are stored there, and the others in the column itself.
        let behind = if column < group.end { m } else { group.end };
        for (rows, first) in [(k..behind, from), (behind..m, group.start)] {
            let factors = &factors[first - group.start..k - group.start];
            subtract_columns(&mut target[rows.clone()], (&panel[first * m..], m, rows.start), factors);
        }
    }

    /// Chooses the pivot of step k, whose column is up to date. If another row is considered, its column is placed
    /// after this one in `work`.
    #[inline(always)]
    fn choose(&self, group: &Range<usize>, from: usize, k: usize, least: f64, work: &mut [T]) -> Pivot {
        let (m, c) = (self.height, k - group.start);
        let size = |value: &T| value.abs2().to_f64();
        // Squares are compared because magnitudes of complex numbers need a root.
        let largest = |column: &[T], without: usize| {
            let rows = column.iter().enumerate().take(self.width).skip(k);
            rows.filter(|(i, _)| *i != without).fold((k, 0.0), |(at, most), (i, value)| {
                let value = size(value);
                if value > most { (i, value) } else { (at, most) }
            })
        };
        let column = &work[c * m..(c + 1) * m];
        let own = size(&column[k]);
        let (row, most) = largest(column, k);
        if most < least * least || own >= ALPHA * most {
            return Pivot::One(k);
        }
        self.up_to_date(group, from, (k, row), work);
        let column = &work[(c + 1) * m..(c + 2) * m];
        let (_, most_of_row) = largest(column, row);
        if own * most_of_row >= ALPHA * most * most {
            Pivot::One(k)
        } else if size(&column[row]) >= ALPHA * most_of_row {
            Pivot::One(row)
        } else {
            Pivot::Two(row)
        }
    }

    /// Exchanges two rows and columns, of which `at` comes first. The column of `with` is already in `work`, and that
    /// of `at` takes its place.
    #[inline(always)]
    fn exchange(&mut self, at: usize, with: usize, work: &mut [T]) {
        if at == with {
            return;
        }
        let (m, panel) = (self.height, &mut *self.panel);
        panel[with * m + with] = panel[at * m + at];
        for i in at + 1..with {
            panel[i * m + with] = panel[at * m + i];
        }
        let (first, second) = panel.split_at_mut(with * m);
        second[with + 1..m].copy_from_slice(&first[at * m + with + 1..(at + 1) * m]);
        for j in 0..at {
            panel.swap(j * m + at, j * m + with);
        }
        work.chunks_exact_mut(m).for_each(|column| column.swap(at, with));
    }

    /// Subtracts the contributions of `pivots` from the front's own `columns` after them. `products` returns rows of L
    /// D, one after the other; it gets the columns of these pivots.
    pub(super) fn behind<'b>(
        &mut self,
        pivots: Range<usize>,
        columns: Range<usize>,
        products: impl Fn(&[T], Range<usize>) -> Cow<'b, [T]> + Sync,
        meter: &Meter,
    ) where
        T: 'b,
    {
        let m = self.height;
        if columns.is_empty() || pivots.is_empty() {
            return;
        }
        let (left, right) = self.panel.split_at_mut(columns.start * m);
        let (left, right) = (&left[pivots.start * m..pivots.end * m], &mut right[..columns.len() * m]);
        let firsts = tasks(columns.len(), m - columns.start);
        let at: Vec<u64> = firsts.iter().map(|&first| (first * m) as u64).collect();
        Cut::new(right, &at).expect("columns ascend").zip(&firsts).for_each(|(target, first)| {
            meter.advance(0);
            let first = columns.start + first;
            T::subtract_product(left, m, first, &products(left, first..first + target.len() / m), target);
        });
    }

    /// Computes C - L21 D L21^T.
    fn contribute(&mut self, meter: &Meter) {
        let (m, w, r) = (self.height, self.width, self.height - self.width);
        if r == 0 {
            return;
        }
        let (panel, swaps) = (&*self.panel, &*self.swaps);
        let task = |target: &mut [T], first: usize| {
            meter.advance(0);
            let columns = first..first + target.len() / r;
            // D L21^T.
            let mut products = Vec::with_capacity(columns.len() * w);
            for row in columns.clone() {
                let mut k = 0;
                while k < w {
                    let here = &panel[k * m..(k + 1) * m];
                    if swaps[k] & TWO == 0 {
                        products.push(here[k] * here[w + row]);
                        k += 1;
                    } else {
                        let next = &panel[(k + 1) * m..(k + 2) * m];
                        let (one, two, off) = (here[w + row], next[w + row], here[k + 1]);
                        products.push(here[k] * one + off * two);
                        products.push(off * one + next[k + 1] * two);
                        k += 2;
                    }
                }
            }
            if target.len() * w <= PLAIN || w < 3 {
                vectorised(|| {
                    let targets = columns.zip(target.chunks_exact_mut(r));
                    for ((row, target), products) in targets.zip(products.chunks_exact(w)) {
                        subtract_columns(&mut target[row..], (panel, m, w + row), products);
                    }
                });
            } else {
                T::subtract_product(panel, m, w + first, &products, target);
            }
        };
        if r <= LEAST {
            // Most fronts are small, and a list of tasks takes time.
            return task(&mut *self.contribution, 0);
        }
        let firsts = tasks(r, r);
        let at: Vec<u64> = firsts.iter().map(|&first| (first * r) as u64).collect();
        let targets = Cut::new(self.contribution, &at).expect("columns ascend");
        targets.zip(&firsts).for_each(|(target, &first)| task(target, first));
    }
}
