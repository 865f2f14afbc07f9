//! Products with matrices in coordinates.

use super::Form;
use crate::backend::CooParts;
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "coo.cu", types(T: Scalar as SCALAR, V: Element as STORED);
        fn coo_scale(n: usize, beta: T, y: &mut Slice<T>);
        fn coo_segmented(
            count: usize,
            rows: &Slice<u32>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            alpha: T,
            x: &Slice<T>,
            y: &mut Slice<T>,
            conjugate: u32,
            pieces: u64,
        );
        fn coo_join(count: usize, rows: &Slice<u32>, alpha: T, y: &mut Slice<T>, pieces: u64);
        fn coo_atomic(
            count: usize,
            rows: &Slice<u32>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            alpha: T,
            x: &Slice<T>,
            y: &mut Slice<T>,
            conjugate: u32,
        );
    }
}

/// y = beta y, before products are added. Returns the operands for the rest of the operation.
fn scaled<'a, V: Promote<T>, T: Scalar>(cuda: Cuda, form: Form<'a, T>) -> Result<Form<'a, T>> {
    if form.beta != T::one() {
        let n = form.y.len();
        let shape = tuning::row_shape(cuda.0.chip, n);
        kernel::coo_scale::<T, V>(cuda, shape, n, form.beta, &mut *form.y)?;
    }
    Ok(Form { beta: T::one(), ..form })
}

pub(super) fn product<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CooParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let Form { conjugate, alpha, x, y, .. } = scaled::<V, T>(cuda, form)?;
    let (tiles, joins) = tuning::coo(a.values.len());
    let (count, rows, columns) = (a.values.len(), a.row_indices, a.column_indices);
    let (_guard, pieces) = cuda.0.workspaces.pieces(2 * tiles.blocks as usize)?;
    kernel::coo_segmented(cuda, tiles, count, rows, columns, a.values, alpha, x, &mut *y, conjugate, pieces)?;
    if tiles.blocks > 1 {
        kernel::coo_join::<T, V>(cuda, joins, count, rows, alpha, y, pieces)?;
    }
    Ok(())
}

pub(super) fn by_atomics<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CooParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let Form { conjugate, alpha, x, y, .. } = scaled::<V, T>(cuda, form)?;
    let shape = tuning::coo_atomic(cuda.0.chip, a.values.len());
    let (count, rows, columns) = (a.values.len(), a.row_indices, a.column_indices);
    kernel::coo_atomic(cuda, shape, count, rows, columns, a.values, alpha, x, y, conjugate)
}
