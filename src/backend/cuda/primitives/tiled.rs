//! Sums of values in random order, by tiles (`tile_runs.cu`, `tile_sum.cu`).

use super::kernels;
use crate::backend::cuda::shape::{Shape, bytes_of};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::runs::tiled::MOST_TILED;
use crate::backend::{Backend, Primitives, RunSums, TileRuns, bounds_at, run_mark};
use crate::error::Result;
use crate::scalar::Scalar;

/// [`RunSums::tile_runs`].
pub(super) fn plan(
    cuda: Cuda,
    bytes: usize,
    (tile, places): (usize, usize),
    pairs: (&Slice<u32>, &Slice<u32>),
    starts: &Slice<u32>,
    sources: &Slice<u32>,
) -> Result<Option<TileRuns<Cuda>>> {
    let (n, runs) = (sources.len(), starts.len());
    let fits = [4, 8, 16].contains(&bytes) && (1..=1 << 31).contains(&n);
    if !fits || tile == 0 || tile % 4 != 0 || n.div_ceil(places.max(1)) > MOST_TILED {
        return Ok(None);
    }
    let (unit, tiles, chip) = (16 / bytes, n.div_ceil(tile), cuda.0.chip);
    let (first_run, bucket_of) = assign(cuda, places, pairs, starts, sources)?;
    let buckets = first_run.len() - 1;
    let mut most = cuda.zeros::<u32>(3)?;
    let (mut slots, mut unit_starts) = (cuda.uninitialised(n)?, cuda.uninitialised((buckets + 1) * tiles)?);
    kernels::order_tile(
        cuda,
        planning(tuning::order_tiles(tiles, buckets)),
        &bucket_of,
        n as u64,
        tile as u32,
        buckets as u32,
        unit as u32,
        &mut slots,
        &mut unit_starts,
        &mut most,
    )?;
    drop(bucket_of);
    let mut lists = lists_of(cuda, starts, n)?;
    let (mut pairs, mut bases) =
        (cuda.uninitialised(runs)?, cuda.uninitialised(buckets * tiles.div_ceil(32))?);
    let (rest, rest_starts) = match &mut lists {
        Some((rest, starts)) => (Some(&mut **rest), Some(&**starts)),
        None => (None, None),
    };
    kernels::order_bucket(
        cuda,
        planning(tuning::order_tiles(buckets, tiles)),
        &unit_starts,
        tiles as u32,
        &slots,
        tile as u32,
        unit as u32,
        sources,
        n as u64,
        starts,
        runs as u64,
        &first_run,
        run_mark::<u32>() as u32,
        rest_starts,
        &mut bases,
        &mut pairs,
        rest,
        &mut most,
    )?;
    let most = cuda.download(&*most)?;
    let (words, most) = (most[2] as usize, [most[0] as usize, most[1] as usize]);
    // Places and words of lists are named by 16 bits, of which one number means none.
    let narrow = usize::from(u16::MAX);
    let fits = most.iter().all(|&units| 16 * units <= chip.shared_a_block as usize && units * unit <= narrow);
    let rest = match lists {
        Some((rest, starts)) => {
            let mut first_rest = cuda.uninitialised(buckets + 1)?;
            cuda.gather(&starts, &first_run, &mut first_rest)?;
            Some((rest, first_rest))
        }
        None => None,
    };
    Ok((fits && words <= narrow).then_some(TileRuns {
        bytes,
        values: n,
        tile,
        tiles,
        buckets,
        most,
        slots,
        starts: unit_starts,
        bases,
        first_run,
        pairs,
        rest,
    }))
}

/// The shape of a kernel that reads no values, so that one unit is used for all types.
fn planning(shape: Shape) -> Shape {
    shape.variant("ITEM_BYTES", "4").variant("SHARED", "1")
}

/// The number of sums before each bucket, and of all; the bucket of each value. A bucket has the sums that start in its
/// places.
fn assign(
    cuda: Cuda,
    places: usize,
    pairs: (&Slice<u32>, &Slice<u32>),
    starts: &Slice<u32>,
    sources: &Slice<u32>,
) -> Result<(DeviceVec<u32>, DeviceVec<u32>)> {
    let (n, runs) = (sources.len(), starts.len());
    let most = n.div_ceil(places);
    let mut first_run = cuda.uninitialised::<u32>(most + 1)?;
    let shape = tuning::per_run(cuda.0.chip, most + 1);
    kernels::part_runs(cuda, shape, starts, runs as u64, places as u64, &mut first_run, most as u64)?;
    let found = cuda.download(&*first_run)?;
    // No sum starts behind the last that does.
    let buckets = found[1..].partition_point(|&run| (run as usize) < runs) + 1;
    let bounds = buckets - 1;
    let mut at = cuda.uninitialised(bounds)?;
    cuda.gather(starts, Cuda::part(&*first_run, 1..buckets), &mut at)?;
    let [high, low, _] = bounds_at(&cuda, pairs, sources, &at)?;
    // Whichever its number, a value comes to the bucket of its pair.
    let (zeros, mut bucket_of) = (cuda.zeros::<u32>(bounds)?, cuda.uninitialised(n)?);
    cuda.rank_places(pairs, [&*high, &*low, &*zeros], 0, &mut bucket_of)?;
    let mut own = cuda.uninitialised(buckets + 1)?;
    cuda.copy(Cuda::part(&*first_run, 0..buckets + 1), &mut own)?;
    Ok((own, bucket_of))
}

/// Memory for the lists of sums of more than two sources, and the number of words before each sum's list, if there are
/// any.
#[allow(clippy::type_complexity)]
fn lists_of(cuda: Cuda, starts: &Slice<u32>, n: usize) -> Result<Option<(DeviceVec<u32>, DeviceVec<u32>)>> {
    let runs = starts.len();
    let (mut words, mut before) = (cuda.zeros::<u32>(runs + 1)?, cuda.uninitialised::<u32>(runs + 1)?);
    let shape = planning(tuning::list_words(cuda.0.chip, runs));
    kernels::list_words(cuda, shape, starts, runs as u64, n as u64, &mut words)?;
    cuda.exclusive_scan(&words, &mut before)?;
    let all = cuda.value(Cuda::part(&*before, runs..runs + 1))? as usize;
    Ok(if all > 0 { Some((cuda.uninitialised(all)?, before)) } else { None })
}

/// [`RunSums::sum_tiles`].
pub(super) fn sum<T: Scalar>(
    cuda: Cuda,
    x: &Slice<T>,
    plan: &TileRuns<Cuda>,
    room: &mut Slice<T>,
    out: &mut Slice<T>,
) -> Result<()> {
    plan.check(x.len(), room.len(), out.len())?;
    let (chip, unit) = (cuda.0.chip, plan.unit());
    // Elements of another size are ordered where they are written, and fetched from there.
    let (shared, [tile, bucket]) = match size_of::<T>() == plan.bytes {
        true => ("1", plan.most.map(|units| 16 * units)),
        false => ("0", [0, 2 * plan.tiles]),
    };
    let (n, stride) = (plan.values as u64, plan.stride() as u32);
    let ends = Cuda::part(&*plan.starts, plan.buckets * plan.tiles..(plan.buckets + 1) * plan.tiles);
    let shape = tuning::take_tiles(chip, plan.tiles, tile).variant("SHARED", shared);
    let shape = shape.variant("ITEM_BYTES", bytes_of::<T>());
    let (tile, tiles) = (plan.tile as u32, plan.tiles as u32);
    kernels::to_tiles(cuda, shape, x, n, &plan.slots, tile, tiles, ends, stride, room)?;
    let shape = tuning::take_tiles(chip, plan.buckets, bucket).variant("SHARED", shared);
    let (rest, first_rest) = match &plan.rest {
        Some((rest, first)) => (Some(&**rest), Some(&**first)),
        None => (None, None),
    };
    kernels::tile_sum(
        cuda,
        shape,
        room,
        stride,
        unit as u32,
        tiles,
        &plan.starts,
        &plan.bases,
        &plan.pairs,
        rest,
        first_rest,
        &plan.first_run,
        plan.buckets as u32,
        out,
    )
}
