//! Histograms, and offsets of sorted segment numbers.

use super::chunks;
use super::memory::PARALLEL_FROM;
use crate::parallel::prelude::*;
use crate::scalar::Offset;

/// Counts keys. Each task has its own counters. There are as many tasks as threads, but not so many that there are more
/// counters than keys; the counts do not depend on the split.
pub(super) fn histogram(keys: &[u32], counts: &mut [u32]) {
    let count = |keys: &[u32], counts: &mut [u32]| {
        for &key in keys {
            if let Some(count) = counts.get_mut(key as usize) {
                *count += 1;
            }
        }
    };
    counts.fill(0);
    let tasks = rayon::current_num_threads().min(keys.len() / (2 * counts.len().max(1)));
    if tasks < 2 || keys.len() < PARALLEL_FROM {
        return count(keys, counts);
    }
    let partial: Vec<Vec<u32>> = keys
        .par_chunks(keys.len().div_ceil(tasks))
        .map(|keys| {
            let mut own = vec![0; counts.len()];
            count(keys, &mut own);
            own
        })
        .collect();
    chunks::fill(counts, |range, counts| {
        for own in &partial {
            counts.iter_mut().zip(&own[range.clone()]).for_each(|(count, own)| *count += own);
        }
    });
}

/// `offsets[s]` = the number of elements of the ascending `segments` that are below s.
pub(super) fn offsets_of_sorted<I: Offset>(segments: &[u32], offsets: &mut [I]) {
    chunks::fill(offsets, |range, offsets| {
        let mut k = segments.partition_point(|&s| (s as usize) < range.start);
        for (s, offset) in range.zip(offsets) {
            while k < segments.len() && (segments[k] as usize) < s {
                k += 1;
            }
            *offset = I::from_usize(k);
        }
    });
}

/// `segments[i]` = the segment of element i.
pub(super) fn expand_offsets<I: Offset>(offsets: &[I], segments: &mut [u32]) {
    chunks::fill(segments, |range, segments| {
        // The last segment that starts at or before the chunk. Empty segments before it are skipped.
        let mut s = offsets.partition_point(|&o| o.to_usize() <= range.start).saturating_sub(1);
        for (i, segment) in range.zip(segments) {
            while s + 2 < offsets.len() && offsets[s + 1].to_usize() <= i {
                s += 1;
            }
            *segment = s as u32;
        }
    });
}

/// `heads[i]` = 1 if a nonempty segment starts at i.
pub(super) fn head_flags<I: Offset>(offsets: &[I], heads: &mut [u8]) {
    chunks::fill(heads, |range, heads| {
        heads.fill(0);
        let first = offsets.partition_point(|&o| o.to_usize() < range.start);
        let starts = offsets[first..].iter().map(|&o| o.to_usize());
        // An empty segment starts where the next segment with elements does, so it adds no mark.
        starts.take_while(|&o| o < range.end).for_each(|o| heads[o - range.start] = 1);
    });
}
