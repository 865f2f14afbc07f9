//! Operations on a basis of vectors that are stored one after another, and the small dense steps of its Hessenberg
//! matrix, on the device.

use super::Cuda;
use super::launch::kernels;
use super::slice::Slice;
use super::tuning::{self, BasisProducts, MOST_VECTORS};
use super::workspace::Reduction;
use crate::backend::Hessenberg;
use crate::backend::host::basis::check;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "basis.cu", types(T: Scalar as SCALAR);
        fn basis_products(
            basis: &Slice<T>,
            count: u32,
            slice: u32,
            rows: u32,
            w: &Slice<T>,
            n: usize,
            out: &mut Slice<T>,
            reduction: Reduction,
        );
        fn basis_update(
            alpha: T,
            basis: &Slice<T>,
            count: u32,
            h: &Slice<T>,
            w: &mut Slice<T>,
            n: usize,
            square: Option<&mut Slice<T>>,
            reduction: Reduction,
        );
    }
    kernels! {
        "basis_project.cu", types(T: Scalar as SCALAR);
        fn basis_project(
            basis: &Slice<T>,
            count: u32,
            h: &Slice<T>,
            w: &mut Slice<T>,
            n: usize,
            out: &mut Slice<T>,
            reduction: Reduction,
        );
    }
    kernels! {
        "hessenberg.cu", types(T: Scalar as SCALAR);
        fn hessenberg_step(
            j: u32,
            columns: u32,
            first: &Slice<T>,
            second: &Slice<T>,
            r: &mut Slice<T>,
            rotations: &mut Slice<T>,
            g: &mut Slice<T>,
            state: &mut Slice<T>,
            norm: u32,
        );
        fn triangular_solve(count: u32, stride: u64, r: &Slice<T>, g: &Slice<T>, y: &mut Slice<T>);
    }
}

/// See [`VectorOps::basis_products`](crate::backend::VectorOps::basis_products).
pub(super) fn products<T: Scalar>(
    cuda: Cuda,
    basis: &Slice<T>,
    count: usize,
    w: &Slice<T>,
    out: &mut Slice<T>,
) -> Result<()> {
    let n = w.len();
    check(basis.len(), count, n, out.len())?;
    for first in (0..count).step_by(MOST_VECTORS) {
        let vectors = MOST_VECTORS.min(count - first);
        let BasisProducts { shape, slice, rows } =
            tuning::basis_products(cuda.0.chip, vectors, n, size_of::<T>());
        let (_, counter) = cuda.0.workspaces.reduction();
        let (_guard, partials) = cuda.0.workspaces.pieces(vectors * rows as usize)?;
        let basis = basis.part(first * n..(first + vectors) * n);
        let out = out.part_mut(first..first + vectors);
        kernel::basis_products(
            cuda,
            shape,
            basis,
            vectors as u32,
            slice,
            rows,
            w,
            n,
            out,
            (partials, counter),
        )?;
    }
    Ok(())
}

/// See [`VectorOps::basis_project`](crate::backend::VectorOps::basis_project).
pub(super) fn project<T: Scalar>(
    cuda: Cuda,
    basis: &Slice<T>,
    count: usize,
    h: &Slice<T>,
    w: &mut Slice<T>,
    out: &mut Slice<T>,
) -> Result<()> {
    let n = w.len();
    check(basis.len(), count, n, h.len().min(out.len()))?;
    let Some(shape) = tuning::basis_project(cuda.0.chip, count, n, size_of::<T>()) else {
        update(cuda, -T::one(), basis, count, h, w, None)?;
        return products(cuda, basis, count, w, out);
    };
    let (_, counter) = cuda.0.workspaces.reduction();
    let (_guard, partials) = cuda.0.workspaces.pieces(count * shape.blocks as usize)?;
    kernel::basis_project(cuda, shape, basis, count as u32, h, w, n, out, (partials, counter))
}

/// See [`VectorOps::basis_update`](crate::backend::VectorOps::basis_update).
pub(super) fn update<T: Scalar>(
    cuda: Cuda,
    alpha: T,
    basis: &Slice<T>,
    count: usize,
    h: &Slice<T>,
    w: &mut Slice<T>,
    square: Option<&mut Slice<T>>,
) -> Result<()> {
    let n = w.len();
    check(basis.len(), count, n, h.len())?;
    if let Some(square) = &square {
        Error::check_dimension("length of the squared norm", 1, square.len())?;
    }
    let shape = tuning::basis_update(cuda.0.chip, n, size_of::<T>());
    let reduction = cuda.0.workspaces.reduction();
    kernel::basis_update(cuda, shape, alpha, basis, count as u32, h, w, n, square, reduction)
}

/// See [`VectorOps::hessenberg_step`](crate::backend::VectorOps::hessenberg_step).
pub(super) fn hessenberg_step<T: Scalar>(
    cuda: Cuda,
    column: usize,
    hessenberg: Hessenberg<'_, T, Cuda>,
) -> Result<()> {
    hessenberg.check(column)?;
    let Hessenberg { columns, passes: [first, second], r, rotations, g, state, norm } = hessenberg;
    if norm.place() >= state.len() {
        return Err(Error::InvalidArgument(format!(
            "a norm at place {} of {} scalars",
            norm.place(),
            state.len()
        )));
    }
    let (shape, norm) = (tuning::hessenberg(), norm.place() as u32);
    let (j, columns) = (column as u32, columns as u32);
    kernel::hessenberg_step(cuda, shape, j, columns, first, second, r, rotations, g, state, norm)
}

/// See [`VectorOps::triangular_solve`](crate::backend::VectorOps::triangular_solve).
pub(super) fn triangular_solve<T: Scalar>(
    cuda: Cuda,
    count: usize,
    stride: usize,
    r: &Slice<T>,
    g: &Slice<T>,
    y: &mut Slice<T>,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let needed = (count - 1).saturating_mul(stride).saturating_add(count);
    if r.len() < needed || g.len() < count || y.len() < count {
        return Err(Error::InvalidArgument(format!("a triangular system of {count} unknowns: too short")));
    }
    kernel::triangular_solve(cuda, tuning::triangular_solve(), count as u32, stride as u64, r, g, y)
}
