//! Products with matrices that are stored by diagonals, with one thread for neighbouring rows. For A^T there is a
//! thread for each column; if half of a symmetric matrix is stored, A^T is A.

use super::{Form, summed};
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::workspace::Reduction;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{ChebyshevStep, DiaParts, Gemv, VectorOps};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "dia.cu", types(T: Scalar as SCALAR, V: Element as STORED);
        fn dia(
            rows: usize, columns: usize, stored: u32, count: u32, distances: &Slice<i64>, values: &Slice<V>,
            form: Form<'_, T>,
        );
        fn dia_dot(
            rows: usize, columns: usize, stored: u32, count: u32, distances: &Slice<i64>, values: &Slice<V>,
            one: T, x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>, reduction: Reduction,
        );
        fn dia_chebyshev(
            rows: usize, stored: u32, count: u32, distances: &Slice<i64>, values: &Slice<V>,
            keep: T::Real, momentum: T::Real, step: T::Real, d: Option<&Slice<T::Real>>,
            r: &Slice<T>, z: &Slice<T>, last: &mut Slice<T>,
        );
        fn dia_transposed(
            rows: usize, columns: usize, diagonals: u32, distances: &Slice<i64>, values: &Slice<V>,
            form: Form<'_, T>,
        );
    }
}

/// Returns the numbers of rows and columns, of stored diagonals, and of entries in a row, and the array that the
/// kernels read.
fn sizes<'a, V: Element>(a: &DiaParts<'a, V, Cuda>) -> ((usize, usize), (u32, u32), &'a Slice<i64>) {
    let counts = (a.distances.len() as u32, a.diagonals() as u32);
    ((a.rows, a.columns), counts, if a.mirrored > 0 { a.steps } else { a.distances })
}

fn shape<V: Element, T: Element>(a: &DiaParts<'_, V, Cuda>) -> Shape {
    match a.mirrored {
        0 => tuning::dia::<T>(a.rows, a.distances.len(), a.values.address().is_multiple_of(16)),
        _ => tuning::half_dia(a.rows, a.diagonals()),
    }
}

fn dot_shape<V: Element, T: Element>(a: &DiaParts<'_, V, Cuda>) -> Shape {
    match a.mirrored {
        0 => shape::<V, T>(a),
        _ => tuning::half_dia_dot::<T>(a.rows, a.diagonals()),
    }
}

pub(super) fn product<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: DiaParts<'_, V, Cuda>,
    gemv: Gemv<'_, T, Cuda>,
) -> Result<()> {
    let ((rows, columns), (stored, count), distances) = sizes(&a);
    let (transposes, op) = (gemv.op.transposes(), gemv.op);
    let op = if transposes { op.transposed() } else { op };
    let form = Form::new(cuda, "dia", Gemv { op, ..gemv })?;
    if transposes && a.mirrored == 0 {
        let shape = tuning::dia_transposed(a.columns);
        return kernel::dia_transposed(cuda, shape, rows, columns, count, a.distances, a.values, form);
    }
    let shape = shape::<V, T>(&a);
    kernel::dia(cuda, shape, rows, columns, stored, count, distances, a.values, form)
}

/// A step of Chebyshev's iteration from z, fused with the product A z.
pub(super) fn chebyshev<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: DiaParts<'_, V, Cuda>,
    ChebyshevStep { keep, momentum, step, d, r, last }: ChebyshevStep<'_, T, Cuda>,
    z: &Slice<T>,
) -> Result<()> {
    let ((rows, _), (stored, count), distances) = sizes(&a);
    let shape = shape::<V, T>(&a);
    kernel::dia_chebyshev(
        cuda, shape, rows, stored, count, distances, a.values, keep, momentum, step, d, r, z, last,
    )
}

pub(super) fn product_dot<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: DiaParts<'_, V, Cuda>,
    x: &Slice<T>,
    y: &mut Slice<T>,
    xy: &mut Slice<T>,
) -> Result<()> {
    if a.rows == 0 {
        return cuda.dot(x, y, xy);
    }
    let (((rows, columns), (stored, count), distances), shape) = (sizes(&a), dot_shape::<V, T>(&a));
    summed(cuda, shape, xy, |xy, reduction| {
        kernel::dia_dot(
            cuda,
            shape,
            rows,
            columns,
            stored,
            count,
            distances,
            a.values,
            T::one(),
            x,
            y,
            xy,
            reduction,
        )
    })
}
