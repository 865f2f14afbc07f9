//! Properties of the rows of a matrix, on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{Backend, CsrParts, CsrPattern, RowFacts, SMALL_DIAGONAL};
use crate::error::{Error, Result};
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "csr_krylov.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn inverse_diagonal(
            rows: usize,
            a: CsrParts<'_, V, Cuda>,
            inverse: &mut Slice<T::Real>,
            rounded: Option<&mut Slice<f32>>,
            found: &mut Slice<u32>,
        );
        fn symmetry(
            rows: usize,
            a: CsrParts<'_, V, Cuda>,
            found: &mut Slice<T::Real>,
            unmatched: &mut Slice<u64>,
        );
        fn symmetry_below(
            rows: usize,
            a: CsrParts<'_, V, Cuda>,
            found: &mut Slice<T::Real>,
            unmatched: &mut Slice<u64>,
        );
    }
    kernels! {
        "blocks.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn same_columns(rows: usize, a: CsrPattern<'_, Cuda>, same: &mut Slice<u8>);
        fn row_inverses(
            rows: usize,
            a: CsrParts<'_, V, Cuda>,
            small: f64,
            positive: u32,
            d: &mut Slice<T::Real>,
        );
    }
}

impl RowFacts for Cuda {
    fn csr_inverse_diagonal<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        inverse: &mut Slice<T::Real>,
        rounded: &mut Slice<f32>,
        found: &mut Slice<u32>,
    ) -> Result<()> {
        Error::check_dimension("length of the diagonal", a.rows, inverse.len())?;
        Error::check_dimension("length of what is found", 3, found.len())?;
        let rounded = if rounded.is_empty() { None } else { Some(rounded) };
        if let Some(rounded) = &rounded {
            Error::check_dimension("length of the rounded diagonal", a.rows, rounded.len())?;
        }
        self.fill(u32::MAX, found)?;
        let shape = tuning::rows(self.0.chip, a.rows);
        kernel::inverse_diagonal::<T, V>(*self, shape, a.rows, a, inverse, rounded, found)
    }

    fn csr_symmetry<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &mut Slice<T::Real>,
    ) -> Result<()> {
        Error::check_dimension("length of what is found", 3, found.len())?;
        self.fill(T::Real::default(), found)?;
        let shape = tuning::csr(self.0.chip, a.rows, a.indices.len());
        let (rows, mut left) = (a.rows, self.zeros(1)?);
        kernel::symmetry::<T, V>(*self, shape, rows, a, found, &mut left)?;
        kernel::symmetry_below::<T, V>(*self, shape, rows, a, found, &mut left)
    }

    fn same_columns<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        same: &mut Slice<u8>,
    ) -> Result<()> {
        Error::check_dimension("length of the marks", a.rows, same.len())?;
        let shape = tuning::elementwise(self.0.chip, a.rows);
        kernel::same_columns::<T, V>(*self, shape, a.rows, a.pattern(), same)
    }

    fn row_inverses<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        positive: bool,
        d: &mut Slice<T::Real>,
    ) -> Result<()> {
        Error::check_dimension("length of the diagonal", a.rows, d.len())?;
        let shape = tuning::elementwise(self.0.chip, 32 * a.rows);
        let positive = u32::from(positive);
        kernel::row_inverses::<T, V>(*self, shape, a.rows, a, SMALL_DIAGONAL, positive, d)
    }
}
