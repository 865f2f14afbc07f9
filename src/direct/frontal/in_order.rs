//! Elimination within one front of a symmetric matrix whose pivots are the diagonal entries, in their order.
//!
//! No pivot is searched for, so columns are updated where they are. A pivot that is too small is replaced by a larger
//! one, as in the library's sparse L D L^H (faer), and refinement corrects x. For saddle points, pivots chosen within
//! fronts take longer: they need a matching, a pattern with more entries, and exchanges.

use super::dense::{InOrder, Pivots, WIDE, subtract_columns};
use super::symmetric::{BLOCK, GROUP, SymmetricFront};
use crate::direct::Factorable;
use crate::parallel::vectorised;
use crate::work::Meter;
use std::borrow::Cow;
use std::ops::Range;

/// Returns rows of L D, computed from the `pivots` columns of a panel of this height.
fn products_of<'a, T: Factorable>(
    pivots: Range<usize>,
    height: usize,
) -> impl Fn(&[T], Range<usize>) -> Cow<'a, [T]> + Sync {
    move |left, rows| {
        let diagonal: Vec<T> = pivots.clone().zip(0..).map(|(k, at)| left[at * height + k]).collect();
        let row = |j: usize| diagonal.iter().enumerate().map(move |(at, &d)| left[at * height + j] * d);
        rows.flat_map(row).collect()
    }
}

impl<T: Factorable> SymmetricFront<'_, T> {
    /// Eliminates the front's own columns, and returns the number of pivots that were replaced.
    pub(super) fn all_in_order(
        &mut self,
        rule: InOrder,
        pivots: Pivots,
        work: &mut [T],
        meter: &Meter,
    ) -> usize {
        let (m, w) = (self.height, self.width);
        let mut replaced = 0;
        self.swaps.iter_mut().zip(0..).for_each(|(swap, k)| *swap = k);
        for from in (0..w).step_by(GROUP) {
            let group = from..(from + GROUP).min(w);
            if w >= WIDE {
                replaced += self.group(&group, pivots, work, meter).unwrap_or_default();
                continue;
            }
            for from in group.clone().step_by(BLOCK) {
                meter.advance(0);
                let block = from..(from + BLOCK).min(group.end);
                replaced += vectorised(|| self.block_in_order(block.clone(), rule));
                self.behind(block.clone(), block.end..group.end, products_of(block, m), meter);
            }
            self.behind(group.clone(), group.end..w, products_of(group, m), meter);
        }
        replaced
    }

    /// Eliminates a block of columns, each of which is first updated by those before it in the block.
    #[inline(always)]
    fn block_in_order(&mut self, block: Range<usize>, rule: InOrder) -> usize {
        let (m, start) = (self.height, block.start);
        let mut replaced = 0;
        for k in block {
            let (done, rest) = self.panel.split_at_mut(k * m);
            let (done, column) = (&done[start * m..], &mut rest[k..m]);
            let mut factors = [T::default(); BLOCK];
            for (at, factor) in factors[..k - start].iter_mut().enumerate() {
                *factor = done[at * m + k] * done[at * m + start + at];
            }
            subtract_columns(column, (done, m, k), &factors[..k - start]);
            if let Some(pivot) = rule.replacement(column[0]) {
                column[0] = pivot;
                replaced += 1;
            }
            let inverse = T::from_f64(1.0) / column[0];
            column[1..].iter_mut().for_each(|value| *value *= inverse);
        }
        replaced
    }
}
