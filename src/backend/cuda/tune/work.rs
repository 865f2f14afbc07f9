//! What is timed: an operation of [`Primitives`] on an input of the kind that a line of the table stands for.

use crate::backend::cuda::{Cuda, Slice};
use crate::backend::{Backend, Order, Primitives, Scan};
use crate::error::Result;
use crate::mixing::mixed;
use crate::parallel::prelude::*;
use crate::scalar::{Element, Key, Max, Sum};

/// What a piece of work is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Bring back what a run overwrites.
    Prepare,
    /// What is timed.
    Run,
    /// A number that tells one result from another.
    Digest,
}

pub(super) type Work<'a> = Box<dyn FnMut(Step) -> Result<u64> + 'a>;

/// Mean length of rows, in the segmented operations.
const MEAN: usize = 27;
const BINS: usize = 1 << 20;

/// Bits that look random (splitmix64).
fn hash(i: usize) -> u64 {
    mixed((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn make<T: Element>(
    cuda: &Cuda,
    n: usize,
    item: impl Fn(usize) -> T + Sync + Send,
) -> Result<super::super::DeviceVec<T>> {
    cuda.upload((0..n).into_par_iter().map(item).collect())
}

/// Some of the elements, spread over all, in one number.
fn digest<K: Key>(cuda: &Cuda, x: &Slice<K>, used: usize) -> Result<u64> {
    const SAMPLES: usize = 64;
    let mut sum = used as u64;
    for sample in 0..SAMPLES.min(used) {
        let at = sample * (used - 1) / SAMPLES.min(used);
        let item = cuda.value(Cuda::part(x, at..at + 1))?;
        sum = hash(sum as usize ^ item.to_ordered() as usize);
    }
    Ok(sum)
}

/// The work for a line; `None` for lines that nothing is timed for.
pub(super) fn of<'a>(cuda: &'a Cuda, kernel: &str, variant: &str, n: usize) -> Result<Option<Work<'a>>> {
    let wide = !matches!(variant, "4" | "keys4" | "pairs4");
    Ok(Some(match kernel {
        "reduce" => reduce(cuda, n)?,
        "scan" | "scan_bulk" if variant == "4" => scan(cuda, n, |i| hash(i) as u32 & 0xff)?,
        "scan" | "scan_bulk" => scan(cuda, n, |i| hash(i) & 0xff)?,
        "scan_any" => scan_any(cuda, n)?,
        "compact" if variant == "wide" => compact(cuda, n, false, hash)?,
        "compact" => compact(cuda, n, variant == "UNIQUE", |i| hash(i / 4) as u32)?,
        "reduce_by_key" => reduce_by_key(cuda, n)?,
        "sort" if wide && variant == "keys8" => sort(cuda, n, false, hash)?,
        "sort" if wide => sort(cuda, n, true, hash)?,
        "sort" => sort(cuda, n, variant == "pairs4", |i| hash(i) as u32)?,
        "merge" if variant == "8" => merge_sort::<u64>(cuda, n)?,
        "merge" => merge_sort::<u32>(cuda, n)?,
        "segmented" => segmented(cuda, n)?,
        "segmented_sort" => segmented_sort(cuda, n)?,
        "histogram_cached" | "histogram_by_tiles" => histogram(cuda, n)?,
        "gather" => gather(cuda, n)?,
        _ => return Ok(None),
    }))
}

fn reduce(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let x = make(cuda, n, hash)?;
    let mut out = cuda.zeros::<u64>(1)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => cuda.reduce(Sum, &x, &mut out).map(|()| 0),
        Step::Digest => digest(cuda, &out, 1),
    }))
}

fn scan<K: Key + crate::scalar::Number>(
    cuda: &Cuda,
    n: usize,
    item: impl Fn(usize) -> K + Sync + Send,
) -> Result<Work<'_>> {
    let x = make(cuda, n, item)?;
    let mut out = cuda.zeros::<K>(n)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => cuda.scan(Scan::Exclusive, Sum, &x, &mut out).map(|()| 0),
        Step::Digest => digest(cuda, &out, n),
    }))
}

fn scan_any(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let x = make(cuda, n, |i| hash(i) as u32)?;
    let heads = make(cuda, n, |i| u8::from(hash(i).is_multiple_of(MEAN as u64)))?;
    let mut out = cuda.zeros::<u32>(n)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => cuda.segmented_scan(Scan::Inclusive, Max, &x, &heads, &mut out).map(|()| 0),
        Step::Digest => digest(cuda, &out, n),
    }))
}

fn compact<K: Key>(
    cuda: &Cuda,
    n: usize,
    unique: bool,
    item: impl Fn(usize) -> K + Sync + Send,
) -> Result<Work<'_>> {
    let x = make(cuda, n, item)?;
    let flags = make(cuda, n, |i| hash(i) as u8 & 1)?;
    let mut out = cuda.zeros::<K>(n)?;
    let mut kept = 0;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => {
            kept = if unique { cuda.unique(&x, &mut out) } else { cuda.compact(&x, &flags, &mut out) }?;
            Ok(0)
        }
        Step::Digest => digest(cuda, &out, kept),
    }))
}

fn reduce_by_key(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let keys = make(cuda, n, |i| hash(i / 4))?;
    let values = make(cuda, n, hash)?;
    let (mut keys_out, mut sums) = (cuda.zeros::<u64>(n)?, cuda.zeros::<u64>(n)?);
    let mut runs = 0;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => {
            runs = cuda.reduce_by_key(Sum, &keys, &values, &mut keys_out, &mut sums)?;
            Ok(0)
        }
        Step::Digest => Ok(digest(cuda, &sums, runs)? ^ digest(cuda, &keys_out, runs)?),
    }))
}

fn sort<K: Key>(
    cuda: &Cuda,
    n: usize,
    with_values: bool,
    item: impl Fn(usize) -> K + Sync + Send,
) -> Result<Work<'_>> {
    let original = make(cuda, n, item)?;
    let mut keys = cuda.zeros::<K>(n)?;
    let mut values = make(cuda, if with_values { n } else { 0 }, |i| i as u32)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => cuda.copy(&original, &mut keys).map(|()| 0),
        Step::Run if with_values => cuda.sort_pairs(&mut keys, &mut values, 0..K::BITS).map(|()| 0),
        Step::Run => cuda.sort(&mut keys, 0..K::BITS).map(|()| 0),
        Step::Digest => digest(cuda, &keys, n),
    }))
}

fn merge_sort<V: Element + TryFrom<usize>>(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let original = make(cuda, n, hash)?;
    let mut keys = cuda.zeros::<u64>(n)?;
    let mut values = make(cuda, n, |i| V::try_from(i).unwrap_or_default())?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => cuda.copy(&original, &mut keys).map(|()| 0),
        Step::Run => cuda.merge_sort_pairs(Order::Ascending, &mut keys, &mut values).map(|()| 0),
        Step::Digest => digest(cuda, &keys, n),
    }))
}

/// Offsets of segments of a mean length, from none to twice that.
fn offsets(cuda: &Cuda, n: usize) -> Result<super::super::DeviceVec<u32>> {
    let count = n / MEAN;
    make(cuda, count + 1, |s| match s {
        0 => 0,
        s if s == count => n as u32,
        s => (s * MEAN + hash(s) as usize % MEAN) as u32,
    })
}

fn segmented(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let x = make(cuda, n, hash)?;
    let offsets = offsets(cuda, n)?;
    let mut out = cuda.zeros::<u64>(n / MEAN)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => cuda.segmented_reduce(Sum, &x, &offsets, &mut out).map(|()| 0),
        Step::Digest => digest(cuda, &out, n / MEAN),
    }))
}

fn segmented_sort(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let original = make(cuda, n, |i| hash(i) as u32)?;
    let offsets = offsets(cuda, n)?;
    let mut keys = cuda.zeros::<u32>(n)?;
    let mut values = make(cuda, n, |i| i as f64)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => cuda.copy(&original, &mut keys).map(|()| 0),
        Step::Run => cuda.segmented_sort_pairs(&offsets, &mut keys, &mut values).map(|()| 0),
        Step::Digest => digest(cuda, &keys, n),
    }))
}

fn histogram(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let keys = make(cuda, n, |i| (hash(i) % BINS as u64) as u32)?;
    let mut counts = cuda.zeros::<u32>(BINS)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => cuda.histogram(&keys, &mut counts).map(|()| 0),
        Step::Digest => digest(cuda, &counts, BINS),
    }))
}

fn gather(cuda: &Cuda, n: usize) -> Result<Work<'_>> {
    let x = make(cuda, n, hash)?;
    let indices = make(cuda, n, move |i| (hash(i) % n as u64) as u32)?;
    let mut out = cuda.zeros::<u64>(n)?;
    Ok(Box::new(move |step| match step {
        Step::Prepare => Ok(0),
        Step::Run => cuda.gather(&x, &indices, &mut out).map(|()| 0),
        Step::Digest => digest(cuda, &out, n),
    }))
}
