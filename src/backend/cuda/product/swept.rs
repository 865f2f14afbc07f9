//! Products with bands of rows that are swept in the order of columns: a block a band.

use super::Form;
use crate::backend::SweptParts;
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, policy};
use crate::error::Result;
use crate::scalar::{Element, Scalar, Widen};

mod kernel {
    use super::*;
    kernels! {
        "swept.cu", types(T: Scalar as SCALAR, V: Element as STORED);
        fn swept(
            rows: u64, height: u32, firsts: &Slice<u32>, starts: &Slice<u64>, bases: &Slice<u32>, places: &Slice<u32>,
            values: &Slice<V>, alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>, conjugate: u32,
        );
    }
}

pub(super) fn product<V: Widen<T>, T: Scalar>(
    cuda: Cuda,
    a: SweptParts<'_, V, Cuda>,
    form: Form<'_, T>,
) -> Result<()> {
    let Form { conjugate, alpha, x, beta, y } = form;
    let (rows, height) = (a.rows as u64, a.height as u32);
    let shape = policy::swept::<T>(a.firsts.len() - 1, a.height);
    kernel::swept(
        cuda, shape, rows, height, a.firsts, a.starts, a.bases, a.places, a.values, alpha, x, beta, y,
        conjugate,
    )
}
