//! Triangular systems and incomplete factorisations on the CPU, level by level. The rows of a large level are processed
//! in parallel.

use super::Host;
use super::coarsen::{Entries, each};
use super::sparse::Rows;
use crate::backend::{
    CsrParts, CsrPattern, OffsetsRef, Pivots, Side, TriangleParts, TriangularSteps, with_offsets,
};
use crate::error::Result;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Scalar};
use crate::work::look_at;
use num_traits::{Float, One, Zero};

/// The minimum number of rows of a level for each thread: to start a thread takes about 5 us.
const WIDE: usize = 1 << 12;

/// Marks a column that is not in the current row.
const NOWHERE: u32 = u32::MAX;

impl TriangularSteps for Host {
    fn row_levels(&self, pattern: CsrPattern<'_, Self>, side: Side, levels: &mut [u32]) -> Result<()> {
        let rows = Rows::of(pattern);
        let mut level = |row: usize| {
            look_at(row);
            let columns = rows.columns(row);
            let needs = columns[side.places(row, columns)].iter();
            levels[row] = needs.map(|&column| levels[column as usize] + 1).max().unwrap_or(0);
        };
        match side {
            Side::Lower => (0..pattern.rows).for_each(&mut level),
            Side::Upper => (0..pattern.rows).rev().for_each(&mut level),
        }
        Ok(())
    }

    fn incomplete_lu<T: Scalar>(
        &self,
        pattern: CsrPattern<'_, Self>,
        _order: &[u32],
        pivots: Pivots,
        values: &mut [T],
        inverses: &mut [T],
        failed: &mut [u32],
    ) -> Result<()> {
        let rows = Rows::of(pattern);
        // The position of each column in the current row, counted from the row's start.
        let mut place = vec![NOWHERE; pattern.columns];
        // For each finished row, the position of the first entry right of the diagonal, counted from the row's start.
        let mut upper = vec![0; pattern.rows];
        failed[0] = 0;
        for i in 0..pattern.rows {
            look_at(i);
            let (range, columns) = (rows.range(i), rows.columns(i));
            let (before, row) = values.split_at_mut(range.start);
            let row = &mut row[..columns.len()];
            let largest = row.iter().map(|value| value.abs()).fold(T::Real::zero(), Float::max);
            for (at, &column) in columns.iter().enumerate() {
                place[column as usize] = at as u32;
            }
            let lower = Side::Lower.places(i, columns);
            let stored = columns.get(lower.end).is_some_and(|&column| column as usize == i);
            if stored {
                row[lower.end] *= T::from_f64(pivots.diagonal);
            }
            for at in lower.clone() {
                look_at(at + 1);
                let k = columns[at] as usize;
                let factor = row[at] * inverses[k];
                row[at] = factor;
                let (range, columns) = (rows.range(k), rows.columns(k));
                for (&column, &value) in both(&columns[upper[k]..], &before[range.start + upper[k]..]) {
                    let to = place[column as usize];
                    if to != NOWHERE {
                        row[to as usize] -= factor * value;
                    }
                }
            }
            for &column in columns {
                place[column as usize] = NOWHERE;
            }
            upper[i] = lower.end + usize::from(stored);
            let pivot = if stored { row[lower.end] } else { T::zero() };
            let kept = kept_pivot(pivot, largest, pivots);
            failed[0] += u32::from(kept.is_none());
            let pivot = kept.unwrap_or_else(|| replaced_pivot(pivot, largest, pivots.positive));
            if stored {
                row[lower.end] = pivot;
            }
            inverses[i] = T::one() / pivot;
        }
        Ok(())
    }

    fn triangle_lengths(
        &self,
        pattern: CsrPattern<'_, Self>,
        side: Side,
        order: &[u32],
        lengths: &mut [u32],
    ) -> Result<()> {
        let rows = Rows::of(pattern);
        lengths[order.len()] = 0;
        each(&mut lengths[..order.len()], |k, length| {
            let columns = rows.columns(order[k] as usize);
            *length = side.places(order[k] as usize, columns).len() as u32;
        });
        Ok(())
    }

    fn triangle_entries<T: Scalar>(
        &self,
        a: CsrParts<'_, T, Self>,
        side: Side,
        order: &[u32],
        places: &[u32],
        offsets: OffsetsRef<'_, Self>,
        columns: &mut [u32],
        values: &mut [T],
    ) -> Result<()> {
        let (rows, entries) = (Rows::of(a.pattern()), Entries::of(a));
        let start = |row: usize| with_offsets!(offsets, offsets => offsets[row].to_usize());
        let chunks = row_chunks(start, order.len());
        let parts = split_rows(&chunks, start, columns).into_par_iter();
        parts.zip(split_rows(&chunks, start, values)).for_each(|((chunk, columns), (_, values))| {
            let mut to = columns.iter_mut().zip(values);
            for &row in &order[chunk] {
                let range = side.places(row as usize, rows.columns(row as usize));
                for (column, value) in entries.row(row as usize).skip(range.start).take(range.len()) {
                    if let Some((to, v)) = to.next() {
                        (*to, *v) = (places[column], value);
                    }
                }
            }
        });
        Ok(())
    }

    fn triangular_solve<T: Scalar>(
        &self,
        triangle: TriangleParts<'_, T, Self>,
        r: &[T],
        x: &mut [T],
    ) -> Result<()> {
        with_offsets!(triangle.offsets, offsets => solve(&triangle, offsets, r, x));
        Ok(())
    }
}

/// Returns the pivot, or `None` if it is too small, not finite, or not positive although that is required.
fn kept_pivot<T: Scalar>(pivot: T, largest: T::Real, pivots: Pivots) -> Option<T> {
    let size = if pivots.positive { pivot.re() } else { pivot.abs() };
    // A comparison with NaN is false, so NaN is not large.
    let large = size > T::Real::from_f64(pivots.smallest) * largest && Float::is_finite(size);
    large.then(|| if pivots.positive { T::from_real(size) } else { pivot })
}

/// Returns the replacement of a pivot that fails the requirements.
fn replaced_pivot<T: Scalar>(pivot: T, largest: T::Real, positive: bool) -> T {
    let size = if largest > T::Real::zero() && Float::is_finite(largest) { largest } else { T::Real::one() };
    let negative = !positive && pivot.re() < T::Real::zero();
    T::from_real(if negative { -size } else { size })
}

fn solve<T: Scalar, I: Offset>(triangle: &TriangleParts<'_, T, Host>, offsets: &[I], r: &[T], x: &mut [T]) {
    let &TriangleParts { sources, columns, values, inverses, levels, .. } = triangle;
    let unknown = |k: usize, x: &[T]| {
        let entries = offsets[k].to_usize()..offsets[k + 1].to_usize();
        let mut sum = r[sources[k] as usize];
        for (&column, &value) in both(&columns[entries.clone()], &values[entries]) {
            sum -= value * x[column as usize];
        }
        inverses.map_or(sum, |inverses| sum * inverses[k])
    };
    for level in levels.windows(2) {
        let (first, behind) = (level[0] as usize, level[1] as usize);
        let (before, rest) = x.split_at_mut(first);
        let (now, before) = (&mut rest[..behind - first], &*before);
        if now.len() < 2 * WIDE {
            for (k, x) in now.iter_mut().enumerate() {
                *x = unknown(first + k, before);
            }
        } else {
            let tasks = now.par_iter_mut().enumerate().with_min_len(WIDE);
            tasks.for_each(|(k, x)| *x = unknown(first + k, before));
        }
    }
}
