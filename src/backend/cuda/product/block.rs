//! CSR with several vectors at once.

use super::{Form, csr};
use crate::backend::cuda::Cuda;
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::policy::{self, CsrBlock};
use crate::backend::cuda::slice::Slice;
use crate::backend::{CsrParts, with_offsets};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar, Widen};

mod kernel {
    use super::*;
    kernels! {
        "csr_block.cu", types(T: Scalar as SCALAR, V: Element as STORED, I: Offset as OFFSET);
        fn csr_block(
            rows: u64,
            count: u64,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            alpha: T,
            x: &Slice<T>,
            beta: T,
            y: &mut Slice<T>,
            vectors: u32,
            capacity: u32,
            longest: u32,
        );
        fn csr_block_long(
            rows: u64,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            alpha: T,
            x: &Slice<T>,
            beta: T,
            y: &mut Slice<T>,
            vectors: u32,
            longest: u32,
        );
    }
}

pub(super) fn product<V: Widen<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    vectors: usize,
    form: Form<'_, T>,
) -> Result<()> {
    let Form { alpha, x, beta, y, .. } = form;
    let extent = csr::extent(cuda, &a)?;
    let (rows, count) = (a.rows as u64, a.values.len() as u64);
    let aligned = (x.address() | y.address()).is_multiple_of(16);
    let size = (a.rows, a.values.len());
    let CsrBlock { shape, capacity, long, longest } =
        policy::csr_block::<T, V>(cuda.0.chip, extent, size, vectors, aligned);
    let vectors = vectors as u32;
    with_offsets!(a.offsets, offsets => {
        kernel::csr_block(
            cuda, shape, rows, count, offsets, a.indices, a.values, alpha, x, beta, &mut *y, vectors, capacity, longest,
        )?;
        kernel::csr_block_long(cuda, long, rows, offsets, a.indices, a.values, alpha, x, beta, y, vectors, longest)
    })
}
