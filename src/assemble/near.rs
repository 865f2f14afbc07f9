//! Values of triplets brought near their nonzeros before they are summed, where they come from all over memory.
//!
//! Memory delivers 32 bytes for each value that is fetched alone. So they are brought to buckets first, in whole lines
//! ([`RunSums::to_buckets`]), each so small that it stays in a cache while the nonzeros fed from it are summed. What
//! goes where is planned once, with the map: sources then name places in the buckets, in the same order, so that sums
//! have the same bits.
//!
//! Bytes: 2 a triplet for the plan, and room for the values. A pass reads a value and 2 bytes and writes the value.
//!
//! Where a block of a device has so much fast memory that a bucket fits, tiles of values are ordered instead, and sums
//! take what each tile has for their bucket ([`RunSums::sum_tiles`]).

use crate::backend::{RunSums, bounds_at, buckets_of, sources_at};
use crate::error::Result;
use crate::lock::lock;
use crate::scalar::Scalar;
use std::any::Any;
use std::sync::Mutex;

/// Stretches of sources that are looked at, and the sources of each.
const SAMPLES: usize = 16;
const STRETCH: usize = 128;
/// Values of a line, nearly: neighbours that memory delivers together.
const LINE: u32 = 16;

/// Where values go, and the room for them.
#[derive(Debug)]
pub(super) struct Near<B: RunSums> {
    slots: B::Vec<u16>,
    runs: B::Vec<u32>,
    rooms: Rooms,
}

/// Room for values on their way, one for each type that has been summed, never freed before the map: a recording may
/// refer to it.
#[derive(Debug, Default)]
pub(super) struct Rooms(Mutex<Vec<Box<dyn Any + Send + Sync>>>);

impl Rooms {
    /// What `body` makes of a room for so many values. Allocates the first time that values are of this type.
    pub(super) fn with<T: Scalar, B: RunSums>(
        &self,
        backend: &B,
        length: usize,
        body: impl FnOnce(&mut B::Vec<T>) -> Result<()>,
    ) -> Result<()> {
        // Held until all is enqueued: another thread's values come behind. What a panic left there is overwritten.
        let mut rooms = lock(&self.0);
        if let Some(room) = rooms.iter_mut().find_map(|room| room.downcast_mut::<B::Vec<T>>()) {
            return body(room);
        }
        let mut room = backend.buffer::<T>(length)?;
        let done = body(&mut room);
        rooms.push(Box::new(room));
        done
    }
}

/// Whether it pays to move values near their nonzeros first: where they come in an order far from that of these
/// (general: each is the source of one nonzero), and where several make up a nonzero: else matrix, map and room would
/// take more than two and a half times the memory of the triplets.
pub(super) fn pays<B: RunSums>(backend: &B, sources: &B::Slice<u32>, nonzeros: usize) -> Result<bool> {
    Ok(nonzeros <= B::len(sources) / 4 * 3 && scattered(backend, sources)?)
}

impl<B: RunSums> Near<B> {
    /// The plan, after which marked sources name places in the buckets of 2^`bits`.
    /// `places`: the triplets' row and column indices, by which the sources are sorted.
    ///
    /// Temporary memory: 4 bytes a triplet.
    pub(super) fn plan(
        backend: &B,
        bits: u32,
        (is, js): (&B::Slice<u32>, &B::Slice<u32>),
        sources: &mut B::Vec<u32>,
    ) -> Result<Self> {
        let n = B::len(&**sources);
        let (count, length) = buckets_of(n, bits)?;
        let at = backend.upload((1..count).map(|bucket| (bucket << bits) as u32).collect())?;
        let [rows, columns, numbers] = bounds_at(backend, (is, js), sources, &at)?;
        let mut places = backend.buffer(n)?;
        backend.rank_places((is, js), [&*rows, &*columns, &*numbers], bits, &mut places)?;
        let (mut slots, mut runs) = (backend.buffer(n)?, backend.buffer(length)?);
        backend.plan_buckets(&mut places, bits, &mut slots, &mut runs)?;
        backend.follow(&places, sources)?;
        Ok(Self { slots, runs, rooms: Rooms::default() })
    }

    /// What `body` makes of the values where they have been brought. Allocates the first time that values are of this
    /// type.
    pub(super) fn bring<T: Scalar>(
        &self,
        backend: &B,
        values: &B::Slice<T>,
        body: impl FnOnce(&B::Slice<T>) -> Result<()>,
    ) -> Result<()> {
        self.rooms.with(backend, B::len(values), |room| {
            backend.to_buckets(values, &self.slots, &self.runs, room)?;
            body(room)
        })
    }
}

/// Whether sources, or indices, that follow each other mostly lie in different lines, by a sample.
pub(super) fn scattered<B: RunSums>(backend: &B, sources: &B::Slice<u32>) -> Result<bool> {
    let n = B::len(sources);
    let length = STRETCH.min(n);
    let starts = (0..SAMPLES).map(|k| k * ((n - length) / SAMPLES));
    let at = starts.flat_map(|start| start..start + length).map(|at| at as u32).collect();
    let found = sources_at(backend, sources, &*backend.upload(at)?)?;
    let lines: usize = found
        .chunks(length.max(1))
        .map(|tile| {
            let mut lines: Vec<u32> = tile.iter().map(|source| source / LINE).collect();
            lines.sort_unstable();
            lines.dedup();
            lines.len()
        })
        .sum();
    Ok(2 * lines > found.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Host, RUN_TILE};
    use crate::scalar::Symmetry;

    /// What devices take where tiles do not fit, on few values.
    #[test]
    fn buckets_keep_the_order_of_sums() {
        let n = 3000_u32;
        // Places of pairs, three triplets each, far apart.
        let place = |i: u32| i * 1013 % n / 3;
        let (is, js): (Vec<_>, Vec<_>) = (0..n).map(|i| (place(i) / 30, place(i) % 30)).unzip();
        let mut sources: Vec<u32> = (0..n).collect();
        sources.sort_by_key(|&i| place(i));
        let starts: Vec<u32> = (0..n).step_by(3).collect();
        let mut before = vec![0; sources.len().div_ceil(RUN_TILE)];
        Host.mark_runs(&starts, &mut sources, &mut before).unwrap();
        let values: Vec<f64> = (0..n).map(|i| 1e6 / f64::from(i + 1)).collect();
        let sum = |values: &[f64], sources: &[u32]| {
            let mut out = vec![0.0; starts.len()];
            Host.gather_sum(Symmetry::General, values, sources, &before, &mut out).map(|()| out)
        };
        let right = sum(&values, &sources).unwrap();
        let near = Near::plan(&Host, 6, (&is, &js), &mut sources).unwrap();
        for _ in 0..2 {
            let brought = near.bring(&Host, &values, |values| {
                assert_eq!(sum(values, &sources)?, right);
                Ok(())
            });
            brought.unwrap();
        }
    }
}
