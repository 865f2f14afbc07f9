//! Elementwise operations: gather, scatter, packing.

use super::chunks;
use super::memory::PARALLEL_FROM;
use crate::backend::{RUN_TILE, run_mark};
use crate::error::{Error, Result};
use crate::parallel::{Cut, prelude::*};
use crate::scalar::{Element, Offset, Scalar, Symmetry};
use std::sync::atomic::{AtomicBool, Ordering};

fn out_of_range(what: &str, length: usize, bad: bool) -> Result<()> {
    if bad {
        return Err(Error::InvalidArgument(format!("{what}: an index is not below the length {length}")));
    }
    Ok(())
}

/// `out[i]` = `x[indices[i]]`.
pub(super) fn gather<T: Element, I: Offset>(x: &[T], indices: &[I], out: &mut [T]) -> Result<()> {
    let bad = AtomicBool::new(false);
    chunks::fill(out, |range, out| {
        for (out, &index) in out.iter_mut().zip(&indices[range]) {
            match x.get(index.to_usize()) {
                Some(&x) => *out = x,
                None => bad.store(true, Ordering::Relaxed),
            }
        }
    });
    out_of_range("gather", x.len(), bad.into_inner())
}

/// `out[indices[i]]` = `x[i]`. Each task has a range of `out` and reads all indices, so no two tasks write the same
/// element, and of equal indices the last one counts, for any number of tasks.
pub(super) fn scatter<T: Element, I: Offset>(x: &[T], indices: &[I], out: &mut [T]) -> Result<()> {
    let length = out.len();
    let tasks = if x.len() < PARALLEL_FROM { 1 } else { rayon::current_num_threads().min(8) };
    let stretch = length.div_ceil(tasks).max(1);
    out.par_chunks_mut(stretch).enumerate().for_each(|(task, out)| {
        for (&index, &x) in indices.iter().zip(x) {
            if let Some(out) = out.get_mut(index.to_usize().wrapping_sub(task * stretch)) {
                *out = x;
            }
        }
    });
    out_of_range(
        "scatter",
        length,
        !indices.par_chunks(chunks::CHUNK).all(|part| part.iter().all(|index| index.to_usize() < length)),
    )
}

/// Marks the runs that start at `starts`, and counts those before each tile.
pub(super) fn mark_runs<S: Offset>(starts: &[S], sources: &mut [S], before: &mut [S]) -> Result<()> {
    let mut good = true;
    for start in starts {
        match sources.get_mut(start.to_usize()) {
            Some(source) => *source = S::from_usize(source.to_usize() | run_mark::<S>()),
            None => good = false,
        }
    }
    for (t, before) in before.iter_mut().enumerate() {
        *before = S::from_usize(starts.partition_point(|start| start.to_usize() < t * RUN_TILE));
    }
    out_of_range("mark_runs", sources.len(), !good)
}

/// Sums the runs of marked sources, each from left to right.
pub(super) fn gather_sum<T: Scalar, S: Offset>(
    symmetry: Symmetry,
    x: &[T],
    sources: &[S],
    before: &[S],
    out: &mut [T],
) -> Result<()> {
    let good = match symmetry {
        Symmetry::General => sum_runs(sources, before, out, |s| x.get(s).copied()),
        Symmetry::Symmetric => sum_runs(sources, before, out, |s| x.get(s / 2).copied()),
        Symmetry::SkewSymmetric | Symmetry::Hermitian => sum_runs(sources, before, out, |s| {
            x.get(s / 2).map(|&x| if s % 2 == 1 { symmetry.mirror(x) } else { x })
        }),
    };
    out_of_range("gather_sum", x.len(), !good)
}

/// Sums runs, each in the tile in which it starts. Returns whether every source has a value.
fn sum_runs<T: Scalar, S: Offset>(
    sources: &[S],
    before: &[S],
    out: &mut [T],
    value: impl Fn(usize) -> Option<T> + Sync,
) -> bool {
    let head = run_mark::<S>();
    // Each tile sums the runs that start in it, without building a list of runs, because a simulation calls this in
    // every time step.
    let Some(tiles) = Cut::new(out, before) else { return false };
    tiles.enumerate().with_min_len(PARALLEL_FROM / RUN_TILE).all(|(t, out)| {
        let mut rest = sources[t * RUN_TILE..].iter().map(|s| s.to_usize()).peekable();
        while !out.is_empty() && rest.next_if(|source| source & head == 0).is_some() {}
        out.iter_mut().all(|out| {
            let sum = rest.next().and_then(|first| {
                let mut sum = value(first & !head)?;
                while let Some(source) = rest.next_if(|source| source & head == 0) {
                    sum += value(source)?;
                }
                Some(sum)
            });
            sum.map(|sum| *out = sum).is_some()
        })
    })
}

/// `out[i]` = i.
pub(super) fn sequence<I: Offset>(out: &mut [I]) {
    chunks::fill(out, |range, out| range.zip(out).for_each(|(i, out)| *out = I::from_usize(i)));
}

/// `out[i]` = `high[i] << shift | low[i]`.
pub(super) fn pack(high: &[u32], low: &[u32], shift: u32, out: &mut [u64]) {
    chunks::fill(out, |range, out| {
        for ((out, &high), &low) in out.iter_mut().zip(&high[range.clone()]).zip(&low[range]) {
            *out = u64::from(high) << shift | u64::from(low);
        }
    });
}

/// Expands the indices of one stored triangle to both triangles.
pub(super) fn mirror(high: &[u32], low: &[u32], beyond: u32, out: (&mut [u32], &mut [u32])) {
    let on_diagonal = |i: usize| high[i] == low[i];
    chunks::fill(out.0.as_chunks_mut::<2>().0, |range, out| {
        range.zip(out).for_each(|(i, out)| *out = [high[i], if on_diagonal(i) { beyond } else { low[i] }]);
    });
    chunks::fill(out.1.as_chunks_mut::<2>().0, |range, out| {
        range.zip(out).for_each(|(i, out)| *out = [low[i], if on_diagonal(i) { 0 } else { high[i] }]);
    });
}

/// The inverse of [`pack`].
pub(super) fn unpack(packed: &[u64], shift: u32, high: &mut [u32], low: &mut [u32]) {
    let mask = (1u64 << shift) - 1;
    chunks::fill(high, |range, high| {
        high.iter_mut().zip(&packed[range]).for_each(|(high, &packed)| *high = (packed >> shift) as u32);
    });
    chunks::fill(low, |range, low| {
        low.iter_mut().zip(&packed[range]).for_each(|(low, &packed)| *low = (packed & mask) as u32);
    });
}
