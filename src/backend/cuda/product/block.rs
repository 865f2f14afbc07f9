//! Products of CSR with several vectors.

use super::{Form, csr};
use crate::backend::cuda::Cuda;
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning::{self, CsrBlock};
use crate::backend::cuda::vector::check_block;
use crate::backend::{CsrParts, OffsetsRef, VectorOps};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "csr_block.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn csr_block(
            rows: usize,
            count: usize,
            a: CsrParts<'_, V, Cuda>,
            alpha: T,
            x: &Slice<T>,
            beta: T,
            y: &mut Slice<T>,
            vectors: u32,
            capacity: u32,
        );
    }
    kernels! {
        "csr_block.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        /// Computes y = A x and, in `partials`, each block's sums of x.y, one for each vector.
        fn csr_block_dot(
            rows: usize,
            count: usize,
            a: CsrParts<'_, V, Cuda>,
            x: &Slice<T>,
            y: &mut Slice<T>,
            vectors: u32,
            capacity: u32,
            partials: u64,
        );
    }
    kernels! {
        "csr_block_tiles.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn csr_block_tiles(
            rows: usize,
            count: usize,
            tile_rows: &Slice<u32>,
            a: CsrParts<'_, V, Cuda>,
            alpha: T,
            x: &Slice<T>,
            beta: T,
            y: &mut Slice<T>,
            vectors: u32,
            pieces: u64,
        );
    }
    kernels! {
        "csr_block_tiles.cu", types(T: Scalar as SCALAR, V: Element as STORED; offsets as OFFSET);
        fn csr_block_join(
            rows: usize,
            count: usize,
            tile_rows: &Slice<u32>,
            offsets: OffsetsRef<'_, Cuda>,
            alpha: T,
            beta: T,
            y: &mut Slice<T>,
            vectors: u32,
            pieces: u64,
        );
    }
}

/// Uses one pass if tiles have whole rows; a second launch then adds up the blocks' sums.
pub(super) fn product_dot<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    x: &Slice<T>,
    y: &mut Slice<T>,
    xy: &mut Slice<T>,
) -> Result<()> {
    let vectors = xy.len();
    check_block(vectors, x.len())?;
    let extent = csr::extent(cuda, &a)?;
    let (rows, count) = (a.rows, a.values.len());
    let aligned = (x.address() | y.address()).is_multiple_of(16);
    match tuning::csr_block::<T, V>(extent, (a.rows, a.values.len()), vectors, aligned) {
        CsrBlock::Rows { shape, capacity } => {
            let sums = vectors * shape.blocks as usize;
            let (_guard, partials) = cuda.0.workspaces.pieces(sums)?;
            kernel::csr_block_dot(cuda, shape, rows, count, a, x, y, vectors as u32, capacity, partials)?;
            cuda.sums(Slice::at(partials, sums), xy)
        }
        CsrBlock::Tiles { .. } => {
            let one = T::one();
            product(cuda, a, vectors, Form { conjugate: 0, alpha: one, x, beta: T::zero(), y })?;
            cuda.dot(x, y, xy)
        }
    }
}

pub(super) fn product<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    vectors: usize,
    form: Form<'_, T>,
) -> Result<()> {
    let Form { alpha, x, beta, y, .. } = form;
    let extent = csr::extent(cuda, &a)?;
    let (rows, count) = (a.rows, a.values.len());
    let aligned = (x.address() | y.address()).is_multiple_of(16);
    let size = (a.rows, a.values.len());
    let way = tuning::csr_block::<T, V>(extent, size, vectors, aligned);
    let across = vectors as u32;
    match way {
        CsrBlock::Rows { shape, capacity } => {
            kernel::csr_block(cuda, shape, rows, count, a, alpha, x, beta, y, across, capacity)
        }
        CsrBlock::Tiles { tiles, shape, joins } => {
            let starts = csr::tile_rows(cuda, &a)?;
            let (_guard, pieces) = cuda.0.workspaces.pieces(2 * vectors * tiles)?;
            kernel::csr_block_tiles(
                cuda, shape, rows, count, starts, a, alpha, x, beta, &mut *y, across, pieces,
            )?;
            kernel::csr_block_join::<T, V>(
                cuda, joins, rows, count, starts, a.offsets, alpha, beta, y, across, pieces,
            )
        }
    }
}
