//! Moves elements to buckets, tile by tile. The host itself does not use it, because its caches are large enough.

use crate::backend::BUCKET_TILE;
use crate::error::{Error, Result};

/// The number of bounds that are not above each pair and its index.
pub(super) fn rank((high, low): (&[u32], &[u32]), bounds: [&[u32]; 3], bits: u32, out: &mut [u32]) {
    let [firsts, seconds, numbers] = bounds;
    let bounds: Vec<_> = (0..firsts.len()).map(|b| (firsts[b], seconds[b], numbers[b])).collect();
    for (i, out) in out.iter_mut().enumerate() {
        let own = (high[i], low[i], i as u32);
        *out = (bounds.partition_point(|&bound| bound <= own) as u32) << bits;
    }
}

/// Computes slots, runs and places, as [`RunSums::plan_buckets`](crate::backend::RunSums::plan_buckets) defines them.
pub(super) fn plan(
    places: &mut [u32],
    (bits, buckets): (u32, usize),
    slots: &mut [u16],
    runs: &mut [u32],
) -> Result<()> {
    if places.iter().any(|place| (place >> bits) as usize >= buckets) {
        return Err(Error::InvalidArgument("a place lies behind the last bucket".into()));
    }
    // How many there are in each bucket, then where its next run goes.
    let mut next = vec![0_u32; buckets];
    places.iter().for_each(|place| next[(place >> bits) as usize] += 1);
    let mut before = 0;
    for next in &mut next {
        before += std::mem::replace(next, before);
    }
    let tiles = places.chunks_mut(BUCKET_TILE).zip(slots.chunks_mut(BUCKET_TILE));
    for ((places, slots), runs) in tiles.zip(runs.chunks_mut(2 * buckets)) {
        let mut start = vec![0_u32; buckets + 1];
        places.iter().for_each(|place| start[(place >> bits) as usize + 1] += 1);
        for b in 0..buckets {
            start[b + 1] += start[b];
            (runs[2 * b], runs[2 * b + 1]) = (next[b], start[b]);
            next[b] += start[b + 1] - start[b];
        }
        for (place, slot) in places.iter_mut().zip(slots) {
            let b = (*place >> bits) as usize;
            *slot = start[b] as u16;
            *place = runs[2 * b] + start[b] - runs[2 * b + 1];
            start[b] += 1;
        }
    }
    Ok(())
}

/// Moves elements as planned.
pub(super) fn fill<T: Copy>(x: &[T], slots: &[u16], buckets: usize, runs: &[u32], out: &mut [T]) {
    let mut sources = vec![0; BUCKET_TILE];
    for ((x, slots), runs) in
        x.chunks(BUCKET_TILE).zip(slots.chunks(BUCKET_TILE)).zip(runs.chunks((2 * buckets).max(1)))
    {
        slots.iter().enumerate().for_each(|(i, &slot)| sources[usize::from(slot)] = i);
        for b in 0..buckets {
            let end = if b + 1 < buckets { runs[2 * b + 3] as usize } else { x.len() };
            let own = &sources[runs[2 * b + 1] as usize..end];
            let out = &mut out[runs[2 * b] as usize..][..own.len()];
            out.iter_mut().zip(own).for_each(|(out, &i)| *out = x[i]);
        }
    }
}
