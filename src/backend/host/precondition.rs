//! The steps of preconditioners on the CPU.

use super::memory::PARALLEL_FROM;
use super::sums::{chunk_size, for_chunks};
use super::{Host, chunks};
use crate::backend::{
    BlockParts, ChebyshevStep, CsrParts, DENSE_LIMIT, OffsetsRef, PreconditionSteps, with_offsets,
};
use crate::error::{Error, Result};
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Promote, Real, Scalar};
use num_traits::{Float, Zero};

/// The number of blocks or rows in a task, each with a dense system.
const SYSTEMS: usize = 256;

/// A dense matrix of at most [`DENSE_LIMIT`] rows, stored by columns.
type Dense<T> = [[T; DENSE_LIMIT]; DENSE_LIMIT];

/// The number of values in a task.
const EXACT_CHUNK: usize = 1 << 14;

/// Returns an element after a step of Chebyshev's iteration. `from` has the elements of z and A z, and `step` includes
/// the diagonal.
#[inline(always)]
fn stepped<T: Scalar>((keep, momentum, step): (T, T, T), r: T, from: Option<(T, T)>, last: T) -> T {
    let next = from.map_or(step * r, |(z, t)| keep * z + step * (r - t));
    if momentum == T::zero() { next } else { next + momentum * last }
}

/// Returns, for a product that is fused with a step, the new element as a function of the row, (A z)\[row\] and the old
/// element of `last`.
#[inline(always)]
pub(super) fn step_of_row<'a, T: Scalar>(
    (keep, momentum, step): (T::Real, T::Real, T::Real),
    d: Option<&'a [T::Real]>,
    r: &'a [T],
    z: &'a [T],
) -> impl Fn(usize, T, T) -> T + Sync + Send + Copy + 'a {
    let (keep, momentum) = (T::from_real(keep), T::from_real(momentum));
    move |row, t, last| {
        let step = T::from_real(d.map_or(step, |d| step * d[row]));
        stepped((keep, momentum, step), r[row], Some((z[row], t)), last)
    }
}

/// A step of Chebyshev's iteration for consecutive rows, from z and A z.
#[inline(always)]
pub(super) fn step_of_rows<T: Scalar>(
    (keep, momentum, step): (T::Real, T::Real, T::Real),
    d: Option<&[T::Real]>,
    r: &[T],
    (z, product): (&[T], &[T]),
    last: &mut [T],
) {
    let by = (T::from_real(keep), T::from_real(momentum));
    let rows = last.iter_mut().zip(r).zip(z.iter().zip(product));
    match d {
        Some(d) => rows.zip(d).for_each(|(((last, &r), (&z, &t)), &d)| {
            *last = stepped((by.0, by.1, T::from_real(step * d)), r, Some((z, t)), *last);
        }),
        None => rows.for_each(|((last, &r), (&z, &t))| {
            *last = stepped((by.0, by.1, T::from_real(step)), r, Some((z, t)), *last);
        }),
    }
}

impl PreconditionSteps for Host {
    fn block_inverses<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: BlockParts<'_, Self>,
        inverses: &mut [T],
        first_bad: &mut [u32],
    ) -> Result<()> {
        let parts = slices(inverses, blocks.offsets);
        first_bad[0] = with_offsets!(a.offsets, offsets => {
            parts
                .into_par_iter()
                .enumerate()
                .with_min_len(if a.rows < PARALLEL_FROM { usize::MAX } else { SYSTEMS })
                .map(|(k, inverse)| {
                    let rows = blocks.starts[k] as usize..blocks.starts[k + 1] as usize;
                    let size = rows.len();
                    let mut dense = [[T::zero(); DENSE_LIMIT]; DENSE_LIMIT];
                    for (i, row) in rows.clone().enumerate() {
                        let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
                        let columns = &a.indices[range.clone()];
                        let from = columns.partition_point(|&column| (column as usize) < rows.start);
                        for (column, value) in both(&columns[from..], &a.values[range][from..]) {
                            let Some(column) = dense[..size].get_mut(*column as usize - rows.start) else { break };
                            column[i] = value.widen();
                        }
                    }
                    let bad = invert(&mut dense, size);
                    for (column, dense) in inverse.chunks_exact_mut(size).zip(&dense) {
                        column.copy_from_slice(&dense[..size]);
                    }
                    bad.map_or(u32::MAX, |i| blocks.starts[k] + i as u32)
                })
                .reduce(|| u32::MAX, u32::min)
        });
        Ok(())
    }

    fn block_multiply<T: Scalar>(
        &self,
        blocks: BlockParts<'_, Self>,
        values: &[T],
        r: &[T],
        z: &mut [T],
    ) -> Result<()> {
        Error::check_dimension("length of r", blocks.block_of.len(), r.len())?;
        Error::check_dimension("length of z", r.len(), z.len())?;
        let size = chunk_size(z.len());
        for_chunks(z.len(), z.par_chunks_mut(size).enumerate(), |(chunk, z)| {
            for (row, z) in (chunk * size..).zip(z) {
                let k = blocks.block_of[row] as usize;
                let (start, end) = (blocks.starts[k] as usize, blocks.starts[k + 1] as usize);
                let from = blocks.offsets[k].to_usize() + row - start;
                let (entries, size) = (&values[from..], end - start);
                *z = (0..size).fold(T::zero(), |sum, k| sum + entries[k * size] * r[start + k]);
            }
        });
        Ok(())
    }

    fn chebyshev_step<T: Scalar>(
        &self,
        by: ChebyshevStep<'_, T, Self>,
        from: Option<(&[T], &[T])>,
    ) -> Result<()> {
        let n = by.last.len();
        by.check(n)?;
        if let Some((z, t)) = from {
            Error::check_dimension("length of z", n, z.len())?;
            Error::check_dimension("length of A z", n, t.len())?;
        }
        let ChebyshevStep { keep, momentum, step, d, r, last } = by;
        let (keep, momentum) = (T::from_real(keep), T::from_real(momentum));
        let size = chunk_size(n);
        let chunks = last.par_chunks_mut(size).zip(r.par_chunks(size)).enumerate();
        for_chunks(n, chunks, |(chunk, (last, r))| {
            let here = chunk * size..chunk * size + last.len();
            let (d, from) = (d.map(|d| &d[here.clone()]), from.map(|(z, t)| (&z[here.clone()], &t[here])));
            for (i, (last, &r)) in last.iter_mut().zip(r).enumerate() {
                let step = T::from_real(d.map_or(step, |d| step * d[i]));
                *last = stepped((keep, momentum, step), r, from.map(|(z, t)| (z[i], t[i])), *last);
            }
        });
        Ok(())
    }

    fn lower_lengths<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        limit: usize,
        lengths: &mut [u32],
    ) -> Result<()> {
        Error::check_dimension("length of the lengths", a.rows + 1, lengths.len())?;
        let size = chunk_size(a.rows);
        with_offsets!(a.offsets, offsets => {
            for_chunks(a.rows, lengths[..a.rows].par_chunks_mut(size).enumerate(), |(chunk, lengths)| {
                for (row, length) in (chunk * size..).zip(lengths) {
                    *length = lower(offsets, a.indices, row, limit).len() as u32;
                }
            });
        });
        lengths[a.rows] = 0;
        Ok(())
    }

    fn sparse_factor<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        limit: usize,
        offsets: OffsetsRef<'_, Self>,
        columns: &mut [u32],
        values: &mut [T],
        first_bad: &mut [u32],
    ) -> Result<()> {
        first_bad[0] = with_offsets!(offsets, factor_offsets => {
            let rows = slices(columns, factor_offsets).into_par_iter().zip(slices(values, factor_offsets));
            let least = if a.rows < PARALLEL_FROM { usize::MAX } else { SYSTEMS };
            rows.enumerate()
                .with_min_len(least)
                .map(|(row, (columns, values))| {
                    let good = with_offsets!(a.offsets, offsets => {
                        factor_row::<V, T, _>((offsets, a.indices, a.values), row, limit, columns, values)
                    });
                    if good { u32::MAX } else { row as u32 }
                })
                .reduce(|| u32::MAX, u32::min)
        });
        Ok(())
    }

    fn narrow<T: Scalar>(&self, scale: T::Real, x: &[T], y: &mut [T::Lower]) -> Result<()> {
        Error::check_dimension("length of the narrower vector", x.len(), y.len())?;
        let (size, scale) = (chunk_size(x.len()), T::from_real(scale));
        for_chunks(x.len(), x.par_chunks(size).zip(y.par_chunks_mut(size)), |(x, y)| {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = (scale * x).to_lower());
        });
        Ok(())
    }

    fn narrow_changes<T: Scalar>(&self, x: &[T], changed: &mut [u32]) -> Result<()> {
        let exact = x.par_chunks(EXACT_CHUNK).all(|chunk| chunk.iter().all(|x| x.narrow().is_some()));
        changed[0] = u32::from(!exact);
        Ok(())
    }

    fn widen<T: Scalar>(&self, x: &[T::Lower], y: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the narrower vector", y.len(), x.len())?;
        let size = chunk_size(y.len());
        for_chunks(y.len(), x.par_chunks(size).zip(y.par_chunks_mut(size)), |(x, y)| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x.widen());
        });
        Ok(())
    }

    fn add_narrow<T: Scalar>(&self, scale: T::Real, x: &[T::Lower], y: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the narrower vector", y.len(), x.len())?;
        let (size, scale) = (chunk_size(y.len()), T::from_real(scale));
        for_chunks(y.len(), x.par_chunks(size).zip(y.par_chunks_mut(size)), |(x, y)| {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y += scale * x.widen());
        });
        Ok(())
    }
}

/// Cuts a buffer at these offsets.
fn slices<'a, T, O: Offset>(buffer: &'a mut [T], offsets: &[O]) -> Vec<&'a mut [T]> {
    chunks::split(buffer, offsets.windows(2).map(|w| w[1].to_usize() - w[0].to_usize()))
}

/// Returns the range of a row's entries on and left of the diagonal, at most the `limit` nearest to it; empty without a
/// diagonal entry.
fn lower<O: Offset>(offsets: &[O], indices: &[u32], row: usize, limit: usize) -> std::ops::Range<usize> {
    let start = offsets[row].to_usize();
    let columns = &indices[start..offsets[row + 1].to_usize()];
    match columns.binary_search(&(row as u32)) {
        Ok(place) => start + (place + 1).saturating_sub(limit)..start + place + 1,
        Err(_) => start..start,
    }
}

/// Returns whether a pivot is possible for a positive definite matrix.
fn is_pivot<T: Scalar>(pivot: T) -> bool {
    let reciprocal = pivot.re().recip();
    pivot.re() > T::Real::zero() && Float::is_finite(reciprocal) && pivot.is_finite()
}

/// Inverts in place (Gauss-Jordan without row exchanges), and makes the result exactly Hermitian. Returns the row of
/// the first invalid pivot, if any.
fn invert<T: Scalar>(a: &mut Dense<T>, size: usize) -> Option<usize> {
    for k in 0..size {
        if !is_pivot(a[k][k]) {
            return Some(k);
        }
        let reciprocal = T::from_real(a[k][k].re().recip());
        a[k][k] = T::one();
        let mut pivots = [T::zero(); DENSE_LIMIT];
        for (pivot, column) in pivots.iter_mut().zip(&mut a[..size]) {
            column[k] *= reciprocal;
            *pivot = column[k];
        }
        let mut factors = a[k];
        factors[k] = T::zero();
        a[k] = [T::zero(); DENSE_LIMIT];
        a[k][k] = pivots[k];
        for (column, &pivot) in a[..size].iter_mut().zip(&pivots) {
            for (entry, &factor) in column[..size].iter_mut().zip(&factors) {
                *entry -= factor * pivot;
            }
        }
    }
    for i in 0..size {
        let (before, rest) = a.split_at_mut(i);
        rest[0][i] = T::from_real(rest[0][i].re());
        for (upper, column) in rest[0].iter_mut().zip(before) {
            *upper = column[i].conj();
        }
    }
    None
}

/// Computes one row of the factor: Cholesky A(J, J) = L L^H, then L^H y = e_last. The row is conj(y).
fn factor_row<V: Promote<T>, T: Scalar, O: Offset>(
    (offsets, indices, values): (&[O], &[u32], &[V]),
    row: usize,
    limit: usize,
    columns: &mut [u32],
    factor: &mut [T],
) -> bool {
    let place = lower(offsets, indices, row, limit);
    let size = place.len();
    if size == 0 {
        return false;
    }
    columns.copy_from_slice(&indices[place]);
    // `l[j][i]` is entry (i, j), for i >= j.
    let mut l = [[T::zero(); DENSE_LIMIT]; DENSE_LIMIT];
    for (i, &other) in columns.iter().enumerate() {
        let range = offsets[other as usize].to_usize()..offsets[other as usize + 1].to_usize();
        let (mut j, mut entries) = (0, both(&indices[range.clone()], &values[range]));
        while let Some((&column, value)) = entries.next().filter(|(column, _)| **column <= other) {
            while columns[j] < column {
                j += 1;
            }
            if columns[j] == column {
                l[j][i] = value.widen();
            }
        }
    }
    for k in 0..size {
        if !is_pivot(l[k][k]) {
            return false;
        }
        let root = Float::sqrt(l[k][k].re());
        let reciprocal = T::from_real(root.recip());
        let mut column = l[k];
        column[k..size].iter_mut().for_each(|entry| *entry *= reciprocal);
        column[k] = T::from_real(root);
        for j in k + 1..size {
            let factor = column[j].conj();
            for i in j..size {
                l[j][i] -= column[i] * factor;
            }
        }
        l[k] = column;
    }
    let mut y = [T::zero(); DENSE_LIMIT];
    y[size - 1] = T::one();
    for k in (0..size).rev() {
        let known = (k + 1..size).fold(y[k], |sum, i| sum - l[k][i].conj() * y[i]);
        y[k] = known * T::from_real(l[k][k].re().recip());
    }
    for (factor, y) in factor.iter_mut().zip(y) {
        *factor = y.conj();
    }
    factor.iter().all(|value| value.is_finite()) && factor[size - 1].re() > <T::Real as Zero>::zero()
}

/// Returns 1 / weight, or 1 if that is zero or not finite.
pub(crate) fn inverse_weight<R: Real>(weight: f64) -> R {
    let inverse = R::from_f64(1.0 / weight);
    if weight != 0.0 && Float::is_finite(inverse) && inverse.to_f64() != 0.0 {
        inverse
    } else {
        R::from_f64(1.0)
    }
}
