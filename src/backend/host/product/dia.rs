//! Diagonals: each task takes consecutive sections. A section's diagonals are walked with one running sum a row; along
//! a diagonal the values and x lie side by side, so nothing is gathered.
//!
//! What stands where a row has no entry is a NaN, so nobody looks for it at first: only rows whose sum did not come out
//! finite are summed again, entry by entry.

use super::{Scale, prefetch};
use crate::backend::{DIA_SECTION, DiaParts, Host, is_no_entry};
use crate::parallel::{prelude::*, task_of, worth_a_thread};
use crate::scalar::{Scalar, Widen};

/// Values are asked for so many places ahead: 8 KiB in double precision. Measured on a 2-core AMD EPYC, f64: 7 points
/// 128^3 6.2 ms, 7.5 without; 27 points 100^3 9.5 ms, where diagonals of one piece each took 15.
const AHEAD: usize = 1 << 10;

/// Stored entries that one task takes, about, at least and at most.
const LEAST: usize = 1 << 13;
const TASK: usize = 1 << 15;

/// Columns that one task of the transposed product takes.
const COLUMNS: usize = 1 << 11;

/// A matrix, and how its values become those of the product.
#[derive(Clone, Copy)]
struct Rows<'a, V: Scalar, F> {
    a: DiaParts<'a, V, Host>,
    value: F,
}

impl<V: Scalar, F> Rows<'_, V, F> {
    /// Where a row's place on the first diagonal is.
    fn base(&self, row: usize) -> usize {
        row / DIA_SECTION * (self.a.distances.len() * DIA_SECTION) + row % DIA_SECTION
    }

    /// A row's sum, entry by entry.
    fn sum<T: Scalar>(&self, row: usize, x: &[T]) -> T
    where
        F: Fn(V) -> T,
    {
        let mut sum = T::zero();
        let values = self.a.values[self.base(row)..].iter().step_by(DIA_SECTION);
        for (distance, &value) in self.a.distances.iter().zip(values) {
            if !is_no_entry(value) {
                sum += (self.value)(value) * x[(row as i64 + distance) as usize];
            }
        }
        sum
    }

    /// The sums of the section that starts with row `first` and has `count` rows.
    #[inline(always)]
    fn section<T: Scalar>(&self, first: usize, count: usize, x: &[T]) -> [T; DIA_SECTION]
    where
        F: Fn(V) -> T,
    {
        let mut sums = [T::zero(); DIA_SECTION];
        let mut at = self.base(first);
        for &distance in self.a.distances {
            prefetch::values(self.a.values, at + AHEAD, at + AHEAD + DIA_SECTION);
            let values = &self.a.values[at..at + DIA_SECTION];
            let start = first as i64 + distance;
            let inside = usize::try_from(start).ok().and_then(|start| x.get(start..start + DIA_SECTION));
            // Whole sections within the columns apart: their loop has a constant length and no tests.
            if let Some(x) = inside {
                for lane in 0..DIA_SECTION {
                    sums[lane] += (self.value)(values[lane]) * x[lane];
                }
            } else {
                let inside = |lane: &usize| (0..x.len() as i64).contains(&(start + *lane as i64));
                for lane in (0..count).filter(inside) {
                    sums[lane] += (self.value)(values[lane]) * x[(start + lane as i64) as usize];
                }
            }
            at += DIA_SECTION;
        }
        for (lane, sum) in sums[..count].iter_mut().enumerate() {
            if !sum.is_finite() {
                *sum = self.sum(first + lane, x);
            }
        }
        sums
    }
}

/// y\[row\] = finish(state, row, sum of the row, y\[row\]); returns the state of each task, in order.
pub(super) fn product<V: Scalar, T: Scalar, S: Default + Send>(
    a: DiaParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    x: &[T],
    y: &mut [T],
    finish: impl Fn(&mut S, usize, T, T) -> T + Sync + Send + Copy,
) -> Vec<S> {
    let rows = Rows { a, value };
    let diagonals = a.distances.len().max(1);
    let entries = task_of(y.len() * diagonals, LEAST, TASK);
    let task = (entries / diagonals).next_multiple_of(DIA_SECTION);
    worth_a_thread(y.par_chunks_mut(task).enumerate(), TASK / entries)
        .map(|(number, y)| {
            let mut state = S::default();
            for (section, y) in y.chunks_mut(DIA_SECTION).enumerate() {
                let first = number * task + section * DIA_SECTION;
                let sums = rows.section(first, y.len(), x);
                for (lane, (y, sum)) in y.iter_mut().zip(sums).enumerate() {
                    *y = finish(&mut state, first + lane, sum, *y);
                }
            }
            state
        })
        .collect()
}

/// y = alpha A^T x + beta y: the entries of a column are on the diagonals from the last to the first, so each element
/// of y is a sum of its own, in the order of the rows.
pub(super) fn transposed<V: Widen<T> + Scalar, T: Scalar>(
    a: DiaParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let rows = Rows { a, value };
    y.par_chunks_mut(COLUMNS).enumerate().for_each(|(task, y)| {
        let mut sums = vec![T::zero(); y.len()];
        let first = (task * COLUMNS) as i64;
        for (k, &distance) in a.distances.iter().enumerate().rev() {
            // Rows of this diagonal whose entries are in these columns.
            let start = (first - distance).max(0);
            let end = (first + y.len() as i64 - distance).min(a.rows as i64);
            for row in start..end {
                let entry = a.values[rows.base(row as usize) + k * DIA_SECTION];
                if !is_no_entry(entry) {
                    sums[(row + distance - first) as usize] += value(entry) * x[row as usize];
                }
            }
        }
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y = scale.finish(sum, *y));
    });
}
