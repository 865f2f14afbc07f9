//! Products of matrices stored by diagonals. Each task takes consecutive slices. The diagonals of a slice are processed
//! one after another, with one sum for each row. Along a diagonal the values and x are contiguous, so nothing is
//! gathered.
//!
//! If half of a matrix is stored, the mirror images of a diagonal in a slice are 32 consecutive values too, usually
//! from two slices. They are added first, so that a row's entries are always added in the order of their columns.
//!
//! A missing entry is stored as a NaN, and is not tested for at first. Only if the sum of a row is not finite, the row
//! is summed again, entry by entry.

use super::{Scale, prefetch};
use crate::backend::{DIA_SECTION, DiaParts, Host, is_no_entry, no_entry};
use crate::parallel::{prelude::*, task_of, worth_a_thread};
use crate::scalar::{Promote, Scalar};

/// Values are prefetched this many places ahead, 8 KiB in double precision. Measured on a 2-core AMD EPYC in f64: 7
/// points on 128^3 take 6.2 ms instead of 7.5; 27 points on 100^3 take 9.5 ms, and 15 with each diagonal in one piece.
const AHEAD: usize = 1 << 10;

/// The approximate number of stored entries in a task: the minimum and the maximum.
const LEAST: usize = 1 << 13;
const TASK: usize = 1 << 15;

/// The number of columns in a task of the transposed product.
const COLUMNS: usize = 1 << 11;

/// A matrix, and the conversion of its values to the precision of the product.
#[derive(Clone, Copy)]
struct Rows<'a, V: Scalar, F> {
    a: DiaParts<'a, V, Host>,
    value: F,
}

impl<V: Scalar, F> Rows<'_, V, F> {
    /// Returns the product of a row with x, added entry by entry.
    fn sum<T: Scalar>(&self, row: usize, x: &[T]) -> T
    where
        F: Fn(V) -> T,
    {
        let mut sum = T::zero();
        self.a.row(row).for_each(|(column, value)| sum += (self.value)(value) * x[column]);
        sum
    }

    /// Adds the products of a slice's rows on one diagonal. Row k of the slice has column `start` + k.
    #[inline(always)]
    fn add<T: Scalar>(
        &self,
        sums: &mut [T; DIA_SECTION],
        values: &[V; DIA_SECTION],
        start: i64,
        count: usize,
        x: &[T],
    ) where
        F: Fn(V) -> T,
    {
        let inside = usize::try_from(start).ok().and_then(|start| x.get(start..start + DIA_SECTION));
        // Slices that are completely inside of the matrix have their own loop, with a constant length and no bounds
        // checks.
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
    }

    /// Returns 32 mirror images on diagonal `k`: those from row `start` on, which may be negative.
    #[inline(always)]
    fn images(&self, k: usize, start: i64) -> [V; DIA_SECTION] {
        let mut images = [no_entry(); DIA_SECTION];
        let (skipped, section) =
            (start.rem_euclid(DIA_SECTION as i64) as usize, start.div_euclid(DIA_SECTION as i64));
        let of = |section: i64| {
            let at = (usize::try_from(section).ok()? * self.a.distances.len() + k) * DIA_SECTION;
            self.a.values.get(at..at + DIA_SECTION)
        };
        if let Some(values) = of(section) {
            images[..DIA_SECTION - skipped].copy_from_slice(&values[skipped..]);
        }
        if let Some(values) = of(section + 1).filter(|_| skipped > 0) {
            images[DIA_SECTION - skipped..].copy_from_slice(&values[..skipped]);
        }
        images
    }

    /// Returns the sums of the slice that starts with row `first` and has `count` rows.
    #[inline(always)]
    fn section<T: Scalar>(&self, first: usize, count: usize, x: &[T]) -> [T; DIA_SECTION]
    where
        F: Fn(V) -> T,
    {
        let mut sums = [T::zero(); DIA_SECTION];
        for (k, &distance) in self.a.distances.iter().enumerate().rev().take(self.a.mirrored) {
            let start = first as i64 - distance;
            self.add(&mut sums, &self.images(k, start), start, count, x);
        }
        let mut at = self.a.base(first);
        for &distance in self.a.distances {
            prefetch::values(self.a.values, at + AHEAD, at + AHEAD + DIA_SECTION);
            let values = self.a.values[at..at + DIA_SECTION].try_into().expect("a section's diagonal");
            self.add(&mut sums, values, first as i64 + distance, count, x);
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

/// y\[row\] = finish(state, row, sum of the row, y\[row\]). Returns the state of each task, in order.
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
    y.par_chunks_mut(task)
        .enumerate()
        .with_min_len(worth_a_thread(TASK / entries))
        .map(|(number, y)| {
            let mut state = S::default();
            for (section, y) in y.chunks_mut(DIA_SECTION).enumerate() {
                let first = number * task + section * DIA_SECTION;
                let sums = rows.section(first, y.len(), x);
                for (lane, y) in y.iter_mut().enumerate() {
                    *y = finish(&mut state, first + lane, sums[lane], *y);
                }
            }
            state
        })
        .collect()
}

/// y = alpha A^T x + beta y. The entries of a column are on the diagonals from the last to the first, so each element
/// of y is a separate sum in the order of rows.
pub(super) fn transposed<V: Promote<T> + Scalar, T: Scalar>(
    a: DiaParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    y.par_chunks_mut(COLUMNS).enumerate().for_each(|(task, y)| {
        let mut sums = vec![T::zero(); y.len()];
        let first = (task * COLUMNS) as i64;
        for (k, &distance) in a.distances.iter().enumerate().rev() {
            // The rows of this diagonal whose entries are in these columns.
            let start = (first - distance).max(0);
            let end = (first + y.len() as i64 - distance).min(a.rows as i64);
            for row in start..end {
                let entry = a.values[a.base(row as usize) + k * DIA_SECTION];
                if !is_no_entry(entry) {
                    sums[(row + distance - first) as usize] += value(entry) * x[row as usize];
                }
            }
        }
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y = scale.finish(sum, *y));
    });
}
