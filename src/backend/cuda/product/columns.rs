//! Products with formats that are stored by columns of many rows, with one thread for each row.

use super::{Form, settled, summed};
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::workspace::Reduction;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{EllParts, JdsParts, OffsetsRef, SellParts, VectorOps};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "ell.cu", types(T: Scalar as SCALAR, V: Element as STORED);
        fn ell(
            rows: usize,
            width: u32,
            lengths: &Slice<u32>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            form: Form<'_, T>,
            settled: u32,
        );
    }
    kernels! {
        "jds.cu", types(T: Scalar as SCALAR, V: Element as STORED; offsets as OFFSET);
        fn jds(
            rows: usize,
            diagonals: u64,
            order: &Slice<u32>,
            offsets: OffsetsRef<'_, Cuda>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            form: Form<'_, T>,
        );
    }
    kernels! {
        "sell.cu", types(T: Scalar as SCALAR, V: Element as STORED; offsets as OFFSET);
        /// `order` is null if rows keep their order; `lengths` is null if no column has the index that marks padding.
        fn sell(
            rows: usize,
            height: u32,
            order: Option<&Slice<u32>>,
            lengths: Option<&Slice<u32>>,
            offsets: OffsetsRef<'_, Cuda>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            form: Form<'_, T>,
            settled: u32,
        );
        fn sell_dot(
            rows: usize,
            height: u32,
            order: Option<&Slice<u32>>,
            lengths: Option<&Slice<u32>>,
            offsets: OffsetsRef<'_, Cuda>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            one: T,
            x: &Slice<T>,
            y: &mut Slice<T>,
            xy: &mut Slice<T>,
            reduction: Reduction,
        );
    }
}

pub(super) fn ell<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: EllParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let (shape, rows, width) = (tuning::ell(a.rows, a.width), a.rows, a.width as u32);
    let settled = settled(cuda, &[a.lengths.addresses(), a.indices.addresses(), a.values.addresses()]);
    kernel::ell(cuda, shape, rows, width, a.lengths, a.indices, a.values, form, settled)
}

pub(super) fn jds<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: JdsParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let (shape, rows, order) = (tuning::row_a_thread(a.rows), a.rows, a.order.as_slice());
    let diagonals = a.offsets.len() as u64 - 1;
    kernel::jds(cuda, shape, rows, diagonals, order, a.offsets, a.indices, a.values, form)
}

/// Returns a slice's height as the kernel takes it. If it does not fit, the matrix has only one slice with rows.
fn height(height: usize) -> u32 {
    u32::try_from(height).unwrap_or(u32::MAX)
}

fn sell_shape<V: Element, T: Element>(a: &SellParts<'_, V, Cuda>) -> Shape {
    let aligned = (a.indices.address() | a.values.address()).is_multiple_of(16);
    tuning::sell::<T>(a.rows, a.values.len(), a.height, aligned, lengths(a).is_none())
}

/// Returns the row lengths, if a column may have the index that marks padding; otherwise they are not needed.
fn lengths<'a, V: Element>(a: &SellParts<'a, V, Cuda>) -> Option<&'a Slice<u32>> {
    (a.columns > u32::MAX as usize).then_some(a.lengths)
}

pub(super) fn sell<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: SellParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let (shape, rows, height) = (sell_shape::<V, T>(&a), a.rows, height(a.height));
    let (order, lengths) = (a.order.map(|order| order.as_slice()), lengths(&a));
    let settled = settled(cuda, &[a.offsets.addresses(), a.indices.addresses(), a.values.addresses()]);
    kernel::sell(cuda, shape, rows, height, order, lengths, a.offsets, a.indices, a.values, form, settled)
}

pub(super) fn sell_dot<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: SellParts<'_, V, Cuda>,
    x: &Slice<T>,
    y: &mut Slice<T>,
    xy: &mut Slice<T>,
) -> Result<()> {
    if a.rows == 0 {
        return cuda.dot(x, y, xy);
    }
    let (shape, rows, height) = (sell_shape::<V, T>(&a), a.rows, height(a.height));
    let (order, lengths) = (a.order.map(|order| order.as_slice()), lengths(&a));
    summed(cuda, shape, xy, |xy, reduction| {
        kernel::sell_dot(
            cuda,
            shape,
            rows,
            height,
            order,
            lengths,
            a.offsets,
            a.indices,
            a.values,
            T::one(),
            x,
            y,
            xy,
            reduction,
        )
    })
}
