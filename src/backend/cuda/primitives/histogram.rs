//! Counting keys.

use super::kernels;
use super::sort::{Pair, passes, passes_for};
use crate::backend::Backend;
use crate::backend::cuda::Cuda;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning::{self, Histogram};
use crate::error::{Error, Result};

pub(super) fn histogram(cuda: Cuda, keys: &Slice<u32>, counts: &mut Slice<u32>) -> Result<()> {
    by(cuda, tuning::histogram(keys.len(), counts.len()), keys, counts)
}

/// Computes the histogram of keys that repeat within short distances. If there are too many bins to count in shared
/// memory, it counts through a cache there.
pub(in crate::backend::cuda) fn histogram_of_neighbours(
    cuda: Cuda,
    keys: &Slice<u32>,
    counts: &mut Slice<u32>,
) -> Result<()> {
    let way = match tuning::histogram(keys.len(), counts.len()) {
        Histogram::Grouped(_, _, cached) => Histogram::Cached(cached),
        way => way,
    };
    by(cuda, way, keys, counts)
}

fn by(cuda: Cuda, way: Histogram, keys: &Slice<u32>, counts: &mut Slice<u32>) -> Result<()> {
    let (n, bins) = (keys.len(), counts.len());
    if n as u64 >> 32 != 0 {
        return Err(Error::InvalidArgument(format!("a histogram of {n} keys: 2^32 - 1 at most")));
    }
    cuda.fill(0, counts)?;
    if n == 0 || bins == 0 {
        return Ok(());
    }
    // No 32-bit key is greater than 2^32 - 1, so bins beyond that stay empty.
    let (n64, reachable) = (n, u32::try_from(bins).unwrap_or(u32::MAX));
    match way {
        Histogram::Shared(shape) => kernels::histogram(cuda, shape, keys, n64, counts, reachable),
        Histogram::Cached(shape) => kernels::histogram_cached(cuda, shape, keys, n64, counts, reachable),
        Histogram::Grouped(shape, bits, without_memory) => match grouped(cuda, keys, bits) {
            Ok(grouped) => kernels::histogram_by_tiles(cuda, shape, &grouped, n64, counts, reachable),
            Err(Error::OutOfMemory { .. }) => {
                kernels::histogram_cached(cuda, without_memory, keys, n64, counts, reachable)
            }
            Err(error) => Err(error),
        },
    }
}

/// Returns the keys, grouped by these bits.
fn grouped(
    cuda: Cuda,
    keys: &Slice<u32>,
    bits: std::ops::Range<u32>,
) -> Result<crate::backend::cuda::slice::Vec<u32>> {
    let n = keys.len();
    let first = cuda.uninitialised::<u32>(n)?;
    let pair = |keys| Pair { keys, values: (0, 0), value_bytes: ("0", 0) };
    if passes_for(&bits) == 1 {
        passes(cuda, &pair((keys, &*first)), bits)?;
        return Ok(first);
    }
    let (mut first, second) = (first, cuda.uninitialised::<u32>(n)?);
    cuda.copy(keys, &mut first)?;
    let in_second = passes(cuda, &pair((&*first, &*second)), bits)?;
    Ok(if in_second { second } else { first })
}
