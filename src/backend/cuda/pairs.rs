//! The two-step Arnoldi process on the device.

use super::Cuda;
use super::launch::kernels;
use super::slice::Slice;
use super::tuning;
use super::workspace::Reduction;
use crate::backend::PairScalars;
use crate::backend::host::pairs::check_factors;
use crate::backend::pairs::check_vectors;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "pair_products.cu", types(T: Scalar as SCALAR, S: Scalar as STORED);
        fn pair_products(
            basis: &Slice<S>,
            count: u32,
            first: &Slice<T>,
            second: &Slice<T>,
            n: usize,
            out: &mut Slice<T>,
            reduction: Reduction,
        );
    }
    kernels! {
        "pair_update.cu", types(T: Scalar as SCALAR, S: Scalar as STORED);
        fn pair_update(
            basis: &mut Slice<S>,
            count: u32,
            first: &Slice<T>,
            second: &Slice<T>,
            factors: &Slice<T>,
            width: u32,
            v: &mut Slice<T>,
            n: usize,
            squares: &mut Slice<T>,
            reduction: Reduction,
        );
        fn basis_combination(basis: &Slice<S>, count: u32, c: &Slice<T>, x: &mut Slice<T>, n: usize);
    }
    kernels! {
        "pair_scalars.cu", types(T: Scalar as SCALAR);
        fn pair_factors(
            column: u32,
            columns: u32,
            products: &Slice<T>,
            dense: &mut Slice<T>,
            state: &mut Slice<T>,
            taken: u32,
            lone: u32,
        );
        fn pair_columns(
            column: u32,
            columns: u32,
            squares: &Slice<T>,
            dense: &mut Slice<T>,
            state: &mut Slice<T>,
            taken: u32,
            lone: u32,
        );
    }
}

/// See [`VectorOps::pair_products`](crate::backend::VectorOps::pair_products).
pub(super) fn products<S: Scalar, T: Scalar>(
    cuda: Cuda,
    basis: &Slice<S>,
    count: usize,
    [first, second]: [&Slice<T>; 2],
    out: &mut Slice<T>,
) -> Result<()> {
    let n = first.len();
    check_vectors(basis.len(), count, 0, n, &[second.len()])?;
    let length = 4 * count + 3;
    if count == 0 || out.len() < length {
        return Err(Error::InvalidArgument(format!("{} places for the products of {count}", out.len())));
    }
    let shape = tuning::pair_products(cuda.0.chip, n, size_of::<T>());
    let (_, counter) = cuda.0.workspaces.reduction();
    let (_guard, partials) = cuda.0.workspaces.pieces(length * shape.blocks as usize)?;
    let count = count as u32;
    kernel::pair_products::<T, S>(cuda, shape, basis, count, first, second, n, out, (partials, counter))
}

/// See [`VectorOps::pair_update`](crate::backend::VectorOps::pair_update).
pub(super) fn update<S: Scalar, T: Scalar>(
    cuda: Cuda,
    basis: &mut Slice<S>,
    count: usize,
    [first, second]: [&Slice<T>; 2],
    factors: &Slice<T>,
    v: &mut Slice<T>,
    squares: &mut Slice<T>,
) -> Result<()> {
    let n = first.len();
    check_vectors(basis.len(), count, 2, n, &[second.len(), v.len()])?;
    let width = check_factors(factors.len(), count, squares.len())? as u32;
    let shape = tuning::pair_update(cuda.0.chip, n, size_of::<T>());
    let reduction = cuda.0.workspaces.reduction();
    let count = count as u32;
    kernel::pair_update::<T, S>(
        cuda, shape, basis, count, first, second, factors, width, v, n, squares, reduction,
    )
}

/// See [`VectorOps::basis_combination`](crate::backend::VectorOps::basis_combination).
pub(super) fn combination<S: Scalar, T: Scalar>(
    cuda: Cuda,
    basis: &Slice<S>,
    count: usize,
    c: &Slice<T>,
    x: &mut Slice<T>,
) -> Result<()> {
    let n = x.len();
    check_vectors(basis.len(), count, 0, n, &[])?;
    if c.len() < count {
        return Err(Error::InvalidArgument(format!("{} factors for {count} vectors", c.len())));
    }
    let shape = tuning::pair_update(cuda.0.chip, n, size_of::<T>());
    kernel::basis_combination::<T, S>(cuda, shape, basis, count as u32, c, x, n)
}

/// See [`VectorOps::pair_factors`](crate::backend::VectorOps::pair_factors).
pub(super) fn factors<T: Scalar>(cuda: Cuda, column: usize, pair: PairScalars<'_, T, Cuda>) -> Result<()> {
    pair.check(column)?;
    let PairScalars { layout, products, dense, state, taken, lone, .. } = pair;
    let (columns, place) = (layout.columns as u32, taken.place() as u32);
    let shape = tuning::hessenberg();
    kernel::pair_factors(cuda, shape, column as u32, columns, products, dense, state, place, u32::from(lone))
}

/// See [`VectorOps::pair_columns`](crate::backend::VectorOps::pair_columns).
pub(super) fn columns<T: Scalar>(cuda: Cuda, column: usize, pair: PairScalars<'_, T, Cuda>) -> Result<()> {
    pair.check(column)?;
    let PairScalars { layout, squares, dense, state, taken, lone, .. } = pair;
    let (columns, place) = (layout.columns as u32, taken.place() as u32);
    let shape = tuning::hessenberg();
    kernel::pair_columns(cuda, shape, column as u32, columns, squares, dense, state, place, u32::from(lone))
}
