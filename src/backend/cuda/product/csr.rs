//! Products with CSR matrices.

use super::bins::Bins;
use super::{Form, settled, summed};
use crate::backend::cuda::launch::{Constants, kernels};
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning::{self, CsrWay};
use crate::backend::cuda::workspace::Reduction;
use crate::backend::cuda::{Cuda, capture};
use crate::backend::{Backend, ChebyshevStep, CsrParts, OffsetsRef, RowBins, RowExtent, VectorOps};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "csr_vector.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn csr(
            rows: usize,
            a: CsrParts<'_, V, Cuda>,
            form: Form<'_, T>,
            settled: u32,
        );
    }
    kernels! {
        "csr_stream.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn csr_stream(
            rows: usize,
            count: usize,
            a: CsrParts<'_, V, Cuda>,
            alpha: T,
            x: &Slice<T>,
            beta: T,
            y: &mut Slice<T>,
            capacity: u32,
            conjugate: u32,
        );
        fn csr_stream_chebyshev(
            rows: usize,
            count: usize,
            a: CsrParts<'_, V, Cuda>,
            keep: T::Real,
            momentum: T::Real,
            step: T::Real,
            d: Option<&Slice<T::Real>>,
            r: &Slice<T>,
            z: &Slice<T>,
            last: &mut Slice<T>,
            capacity: u32,
        );
        fn csr_stream_dot(
            rows: usize,
            count: usize,
            a: CsrParts<'_, V, Cuda>,
            one: T,
            x: &Slice<T>,
            y: &mut Slice<T>,
            capacity: u32,
            xy: &mut Slice<T>,
            reduction: Reduction,
        );
    }
    kernels! {
        "csr_balanced.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        /// `tiles` has two words for each tile. `posts` is the address of an array with one sum for each
        /// tile, initially zero.
        fn csr_balanced(
            tiles: &Slice<u64>,
            a: CsrParts<'_, V, Cuda>,
            form: Form<'_, T>,
            posts: u64,
            settled: u32,
        );
    }
    kernels! {
        "csr_binned.cu", types(T: Scalar as SCALAR, V: Element as STORED);
        /// `parts` has two words for each part. `posts` is the address of an array with one carry for
        /// each part that a block sums, initially zero.
        fn csr_binned(
            parts: &Slice<u64>,
            ends: Constants<u32, 7>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            form: Form<'_, T>,
            posts: u64,
            settled: u32,
        );
    }
    kernels! {
        "column_spread.cu", types();
        fn column_spread(count: usize, columns: &Slice<u32>, lines: &mut Slice<u64>);
    }
    kernels! {
        "row_shape.cu", types(; offsets as OFFSET);
        fn row_shape(rows: usize, offsets: OffsetsRef<'_, Cuda>, out: &mut Slice<u64>);
        fn tile_rows(rows: usize, count: usize, offsets: OffsetsRef<'_, Cuda>, tile_rows: &mut Slice<u32>);
        fn tile_starts(rows: usize, count: usize, offsets: OffsetsRef<'_, Cuda>, tiles: &mut Slice<u64>);
    }
}

/// Algorithms for products with a CSR matrix, for [`Cuda::csr_by`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CsrAlgorithm {
    /// One thread for each row, the textbook algorithm.
    Scalar,
    /// Up to 32 threads for each row, depending on the mean length of rows (Bell and Garland 2008).
    Vector,
    /// Tiles of rows that go through shared memory (after Greathouse and Daga 2014).
    Streamed,
    /// Tiles of equal work, with long rows divided (after Merrill and Garland 2016).
    Balanced,
    /// Lanes or blocks depending on the length of each row (after Ashari et al. 2014). Same as `Balanced` for matrices
    /// with 2^31 or more rows or nonzeros.
    Binned,
}

impl CsrAlgorithm {
    /// All algorithms.
    pub const ALL: [CsrAlgorithm; 5] = [
        CsrAlgorithm::Scalar,
        CsrAlgorithm::Vector,
        CsrAlgorithm::Streamed,
        CsrAlgorithm::Balanced,
        CsrAlgorithm::Binned,
    ];
}

/// Returns the extent of the rows. The first call computes it with a pass over the offsets, even while the product is
/// being recorded.
pub(in crate::backend::cuda) fn extent<V: Element>(
    cuda: Cuda,
    a: &CsrParts<'_, V, Cuda>,
) -> Result<RowExtent> {
    a.shape.extent(|| {
        capture::outside(|| {
            let mut out = cuda.zeros::<u64>(2)?;
            let shape = tuning::row_shape(cuda.0.chip, a.rows);
            kernel::row_shape(cuda, shape, a.rows, a.offsets, &mut out)?;
            let out = cuda.download(&out)?;
            Ok(RowExtent { longest: out[0], fullest: out[1] })
        })
    })
}

/// Returns whether x is read in scattered places, or `None` if that does not matter. Computed once, as [`extent`], from
/// windows of the columns.
pub(in crate::backend::cuda) fn scattered<V: Element>(
    cuda: Cuda,
    a: &CsrParts<'_, V, Cuda>,
) -> Result<Option<bool>> {
    let count = a.values.len();
    if !tuning::asks_spread(a.rows, count) {
        return Ok(None);
    }
    let scattered = a.shape.scattered(|| {
        capture::outside(|| {
            let mut lines = cuda.zeros::<u64>(1)?;
            kernel::column_spread(cuda, tuning::column_spread(count), count, a.indices, &mut lines)?;
            Ok(tuning::scattered(cuda.value(&lines)?, count))
        })
    })?;
    Ok(Some(scattered))
}

/// Returns the first row of each tile of steps. Computed once, as [`extent`].
pub(super) fn tile_rows<'a, V: Element>(cuda: Cuda, a: &CsrParts<'a, V, Cuda>) -> Result<&'a Slice<u32>> {
    a.shape.starts(|| {
        capture::outside(|| {
            let (rows, count) = (a.rows, a.values.len());
            let (tiles, shape) = tuning::block_tiles(cuda.0.chip, a.rows, a.values.len());
            let mut starts = cuda.uninitialised(tiles + 1)?;
            kernel::tile_rows(cuda, shape, rows, count, a.offsets, &mut starts)?;
            Ok(starts)
        })
    })
}

/// Returns the start of each balanced tile. Computed once, as [`extent`].
fn tile_starts<'a, V: Element>(cuda: Cuda, class: u32, a: &CsrParts<'a, V, Cuda>) -> Result<&'a Slice<u64>> {
    a.shape.tiles(class, || {
        capture::outside(|| {
            let (rows, count) = (a.rows, a.values.len());
            let (tiles, shape) = tuning::balanced_tiles(cuda.0.chip, class, a.rows, a.values.len());
            let mut starts = cuda.uninitialised(2 * (tiles + 1))?;
            kernel::tile_starts(cuda, shape, rows, count, a.offsets, &mut starts)?;
            Ok(starts)
        })
    })
}

/// Returns the rows in bins. Computed once, as [`extent`].
fn bins<'a, V: Element>(cuda: Cuda, a: &CsrParts<'a, V, Cuda>) -> Result<&'a RowBins<Cuda>> {
    a.shape.bins(|| {
        capture::outside(|| {
            let bins = Bins::new(&a.offsets.download(&cuda)?, tuning::BINNED);
            Ok(RowBins { parts: cuda.upload(bins.words())?, ends: bins.ends })
        })
    })
}

/// Chooses the algorithm for a product with the matrix.
fn way<V: Element>(cuda: Cuda, a: &CsrParts<'_, V, Cuda>) -> Result<CsrWay> {
    let extent = extent(cuda, a)?;
    tuning::csr_way::<V>(extent, a.rows, a.values.len(), || scattered(cuda, a))
}

pub(super) fn product<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let way = way(cuda, &a)?;
    run(cuda, way, a, form)
}

pub(super) fn product_by<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    algorithm: CsrAlgorithm,
    a: CsrParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let (rows, nonzeros) = (a.rows, a.values.len());
    let way = match algorithm {
        CsrAlgorithm::Scalar => tuning::csr_vector(rows, 1),
        CsrAlgorithm::Vector => tuning::csr_vector(rows, nonzeros.div_ceil(rows.max(1))),
        CsrAlgorithm::Streamed => tuning::csr_streamed::<V>(extent(cuda, &a)?, rows, nonzeros),
        CsrAlgorithm::Binned if rows.max(nonzeros) < 1 << 31 => CsrWay::Binned,
        CsrAlgorithm::Balanced | CsrAlgorithm::Binned => {
            tuning::csr_balanced::<V>(rows, nonzeros, scattered(cuda, &a)?)
        }
    };
    run(cuda, way, a, form)
}

fn run<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    way: CsrWay,
    a: CsrParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let (rows, count, columns, values) = (a.rows, a.values.len(), a.indices, a.values);
    match way {
        CsrWay::Vector { shape } => {
            let settled = settled(cuda, &[a.offsets.addresses(), columns.addresses(), values.addresses()]);
            kernel::csr(cuda, shape, rows, a, form, settled)
        }
        CsrWay::Streamed { shape, capacity } => {
            let Form { conjugate, alpha, x, beta, y } = form;
            kernel::csr_stream(cuda, shape, rows, count, a, alpha, x, beta, y, capacity, conjugate)
        }
        CsrWay::Balanced { shape, class } => {
            let tiles = tile_starts(cuda, class, &a)?;
            let (_guard, posts) = cuda.0.workspaces.posts(shape.blocks as usize * size_of::<T>() / 4)?;
            let settled = settled(cuda, &[a.offsets.addresses(), columns.addresses(), values.addresses()]);
            kernel::csr_balanced(cuda, shape, tiles, a, form, posts, settled)
        }
        CsrWay::Binned => {
            let RowBins { parts, ends } = bins(cuda, &a)?;
            let [of_blocks, .., warps] = *ends;
            let (_guard, posts) = cuda.0.workspaces.posts(of_blocks as usize * size_of::<T>() / 4)?;
            let settled = settled(cuda, &[parts.addresses(), columns.addresses(), values.addresses()]);
            let shape = tuning::binned(of_blocks, warps);
            let ends = Constants(*ends);
            kernel::csr_binned(cuda, shape, parts, ends, columns, values, form, posts, settled)
        }
    }
}

/// A step of Chebyshev's iteration from z, fused with the product A z. Returns false unless the rows are streamed.
pub(super) fn chebyshev<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    ChebyshevStep { keep, momentum, step, d, r, last }: ChebyshevStep<'_, T, Cuda>,
    z: &Slice<T>,
) -> Result<bool> {
    let (rows, count) = (a.rows, a.values.len());
    let CsrWay::Streamed { shape, capacity } = way(cuda, &a)? else { return Ok(false) };
    kernel::csr_stream_chebyshev(cuda, shape, rows, count, a, keep, momentum, step, d, r, z, last, capacity)?;
    Ok(true)
}

/// Uses one pass if rows are streamed and there are few; otherwise the inner product follows the product. In large
/// products, the time for which blocks wait for the sums of others exceeds that of reading both vectors again.
pub(super) fn product_dot<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    x: &Slice<T>,
    y: &mut Slice<T>,
    xy: &mut Slice<T>,
) -> Result<()> {
    let (rows, count, one) = (a.rows, a.values.len(), T::one());
    let extent = extent(cuda, &a)?;
    match tuning::csr_way_dot::<V, T>(extent, a.rows, a.values.len(), || scattered(cuda, &a))? {
        CsrWay::Streamed { shape, capacity } if a.rows > 0 => summed(cuda, shape, xy, |xy, reduction| {
            kernel::csr_stream_dot(cuda, shape, rows, count, a, one, x, y, capacity, xy, reduction)
        }),
        way => {
            run(cuda, way, a, Form { conjugate: 0, alpha: one, x, beta: T::zero(), y })?;
            cuda.dot(x, y, xy)
        }
    }
}
