//! Products of coordinates, sorted by row. Each task takes a fixed number of entries, and owns the rows that end in it.
//! If it has a part of a row that another task owns, it returns the part as a carry; carries are added at the end, in
//! order.

use super::{Scale, transposed};
use crate::backend::{CooParts, Host};
use crate::parallel::prelude::*;
use crate::scalar::{Promote, Scalar};

/// The number of entries in a task.
const TASK: usize = 1 << 15;

/// y = alpha A x + beta y.
pub(super) fn product<V: Promote<T>, T: Scalar>(
    a: CooParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let entries = a.values.len();
    let mut tasks = Vec::with_capacity(entries.div_ceil(TASK));
    // Task t owns the rows after the last row of task t - 1, up to its own last row. The final task owns the rest.
    let (mut owned, mut rest) = (0, &mut *y);
    for start in (0..entries.max(1)).step_by(TASK) {
        let end = (start + TASK).min(entries);
        let last = if end == entries { a.rows } else { a.row_indices[end - 1] as usize + 1 };
        let (mine, others) = rest.split_at_mut(last - owned);
        tasks.push((start..end, owned, mine));
        (owned, rest) = (last, others);
    }
    let run = |(range, first, y): (std::ops::Range<usize>, usize, &mut [T])| {
        let rows = &a.row_indices[range.clone()];
        let entries = a.column_indices[range.clone()].iter().zip(&a.values[range]);
        let mut entries = entries.map(|(&j, &v)| value(v) * x[j as usize]);
        let mut taken = 0;
        let mut sum_of = |row: usize| {
            let mut sum = T::zero();
            while taken < rows.len() && rows[taken] as usize == row {
                sum += entries.next().unwrap_or_default();
                taken += 1;
            }
            sum
        };
        let continued = first > 0 && rows.first().is_some_and(|&row| row as usize == first - 1);
        let carry = continued.then(|| sum_of(first - 1));
        for (row, y) in y.iter_mut().enumerate() {
            *y = scale.finish(sum_of(first + row), *y);
        }
        (first, carry)
    };
    for (first, carry) in tasks.into_par_iter().map(run).collect() {
        // Without a carry y must not change: adding a zero would turn -0 into +0.
        if let Some(carry) = carry {
            y[first - 1] += scale.alpha * carry;
        }
    }
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<V: Promote<T>, T: Scalar>(
    a: CooParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let entries = a.values.len();
    let blocks = transposed::blocks(entries, a.columns);
    let range = |b| transposed::hull(a.column_indices[transposed::block(entries, blocks, b)].iter().copied());
    let scatter = |b, sums: &mut [T], base| {
        let block = transposed::block(entries, blocks, b);
        let places = a.row_indices[block.clone()].iter().zip(&a.column_indices[block.clone()]);
        for ((&i, &j), &v) in places.zip(&a.values[block]) {
            sums[j as usize - base] += value(v) * x[i as usize];
        }
    };
    transposed::collect(blocks, &range, &scatter, scale, y);
}
