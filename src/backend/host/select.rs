//! Stream compaction: every chunk counts the elements that it keeps, and then writes them after those of earlier
//! chunks.

use super::{Host, chunks};
use crate::backend::Backend;
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::scalar::{Element, Key, Offset};

/// The number of items that are selected together.
const BLOCK: usize = 256;

/// Writes `item(i)` for each i that is kept, in order. Returns their number, or `None` if `out` is too short.
fn select<T: Element>(
    n: usize,
    keep: impl Fn(usize) -> bool + Sync,
    item: impl Fn(usize) -> T + Sync,
    out: &mut [T],
) -> Option<usize> {
    let counts = chunks::map(n, |range| range.filter(|&i| keep(i)).count());
    let total = counts.iter().sum();
    if total > out.len() {
        return None;
    }
    let parts = chunks::split(out, counts).into_iter().enumerate().collect::<Vec<_>>();
    parts.into_par_iter().for_each(|(c, out)| {
        // Every item is written to the block; if it is not kept, the next item overwrites it, so there is no branch
        // that could be mispredicted.
        let (range, mut at) = (chunks::range(n, c), 0);
        for start in range.clone().step_by(BLOCK) {
            let (mut block, mut kept) = ([T::default(); BLOCK], 0);
            for i in start..(start + BLOCK).min(range.end) {
                block[kept] = item(i);
                kept += usize::from(keep(i));
            }
            out[at..at + kept].copy_from_slice(&block[..kept]);
            at += kept;
        }
    });
    Some(total)
}

/// Copies the elements whose flag is not zero. Returns their number.
pub(super) fn compact<T: Element>(x: &[T], flags: &[u8], out: &mut [T]) -> Option<usize> {
    select(x.len(), |i| flags[i] != 0, |i| x[i], out)
}

/// Copies the elements whose flag is not zero, then the others. Returns the number of the former.
pub(super) fn partition<T: Element>(x: &[T], flags: &[u8], out: &mut [T]) -> Option<usize> {
    let first = compact(x, flags, out)?;
    select(x.len(), |i| flags[i] == 0, |i| x[i], &mut out[first..])?;
    Some(first)
}

fn is_head<K: Key>(keys: &[K], i: usize) -> bool {
    i == 0 || keys[i].to_ordered() != keys[i - 1].to_ordered()
}

/// Copies the first key of each run.
pub(super) fn unique<K: Key>(keys: &[K], out: &mut [K]) -> Option<usize> {
    select(keys.len(), |i| is_head(keys, i), |i| keys[i], out)
}

/// Writes the start of each run, and the number of keys if there is space.
pub(super) fn run_starts<K: Key, I: Offset>(keys: &[K], starts: &mut [I]) -> Option<usize> {
    let runs = select(keys.len(), |i| is_head(keys, i), I::from_usize, starts)?;
    if let Some(end) = starts.get_mut(runs) {
        *end = I::from_usize(keys.len());
    }
    Some(runs)
}

/// Returns the start of each run of equal pairs, and the number of pairs.
pub(super) fn pair_starts<I: Offset>(high: &[u32], low: &[u32]) -> Result<Vec<I>> {
    let n = high.len();
    let is_head = |i: usize| i == 0 || (high[i], low[i]) != (high[i - 1], low[i - 1]);
    let runs: usize = chunks::map(n, |range| range.filter(|&i| is_head(i)).count()).iter().sum();
    let mut starts = Host.buffer(runs + 1)?;
    select(n, is_head, I::from_usize, &mut starts[..runs]);
    starts[runs] = I::from_usize(n);
    Ok(starts)
}

/// Returns whether the keys ascend; with `strictly`, whether they also have no equal neighbours.
pub(super) fn is_sorted<K: Key>(keys: &[K], strictly: bool) -> bool {
    let in_order = |i: usize| {
        let (a, b) = (keys[i - 1].to_ordered(), keys[i].to_ordered());
        a < b || (a == b && !strictly)
    };
    chunks::map(keys.len(), |range| range.start.max(1)..range.end)
        .into_par_iter()
        .all(|mut range| range.all(in_order))
}
