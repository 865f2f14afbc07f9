//! The steps of preconditioners on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{
    Backend, BlockParts, ChebyshevStep, CsrParts, CsrPattern, OffsetsRef, PreconditionSteps,
};
use crate::error::{Error, Result};
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "blocks.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn block_inverses(
            blocks: usize,
            a: CsrParts<'_, V, Cuda>,
            starts: &Slice<u32>,
            places: &Slice<u64>,
            inverses: &mut Slice<T>,
            first_bad: &mut Slice<u32>,
        );
    }
    kernels! {
        "blocks.cu", types(T: Scalar as SCALAR, V: Element as STORED; "u32" as OFFSET);
        fn block_multiply(
            rows: usize,
            starts: &Slice<u32>,
            block_of: &Slice<u32>,
            places: &Slice<u64>,
            values: &Slice<T>,
            r: &Slice<T>,
            z: &mut Slice<T>,
        );
    }
    kernels! {
        "chebyshev.cu", types(T: Scalar as SCALAR);
        fn chebyshev_step(
            keep: T::Real,
            momentum: T::Real,
            step: T::Real,
            d: Option<&Slice<T::Real>>,
            r: &Slice<T>,
            z: Option<&Slice<T>>,
            t: Option<&Slice<T>>,
            last: &mut Slice<T>,
            n: usize,
        );
    }
    kernels! {
        "sparse_inverse.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET, "u32" as FACTOR_OFFSET);
        fn lower_lengths(rows: usize, a: CsrPattern<'_, Cuda>, limit: u32, lengths: &mut Slice<u32>);
    }
    kernels! {
        "sparse_inverse.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET, places as FACTOR_OFFSET);
        fn sparse_factor(
            rows: usize,
            a: CsrParts<'_, V, Cuda>,
            places: OffsetsRef<'_, Cuda>,
            factor_columns: &mut Slice<u32>,
            factor: &mut Slice<T>,
            first_bad: &mut Slice<u32>,
        );
    }
    kernels! {
        "precision.cu", types(T: Scalar as SCALAR, N: Scalar as NARROW);
        fn narrow(scale: T::Real, x: &Slice<T>, y: &mut Slice<N>, n: usize);
        fn changes(x: &Slice<T>, changed: &mut Slice<u32>, n: usize);
        fn widened(x: &Slice<N>, y: &mut Slice<T>, n: usize);
        fn add_narrow(scale: T::Real, x: &Slice<N>, y: &mut Slice<T>, n: usize);
    }
}

impl PreconditionSteps for Cuda {
    const IS_DEVICE: bool = true;

    fn block_inverses<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: BlockParts<'_, Self>,
        inverses: &mut Slice<T>,
        first_bad: &mut Slice<u32>,
    ) -> Result<()> {
        self.fill(u32::MAX, first_bad)?;
        let count = blocks.starts.len() - 1;
        let shape = tuning::dense(self.0.chip, count, size_of::<T>());
        let BlockParts { starts, offsets: places, .. } = blocks;
        kernel::block_inverses(*self, shape, count, a, starts, places, inverses, first_bad)
    }

    fn block_multiply<T: Scalar>(
        &self,
        blocks: BlockParts<'_, Self>,
        values: &Slice<T>,
        r: &Slice<T>,
        z: &mut Slice<T>,
    ) -> Result<()> {
        let BlockParts { starts, block_of, offsets } = blocks;
        let rows = block_of.len();
        Error::check_dimension("length of r", rows, r.len())?;
        Error::check_dimension("length of z", rows, z.len())?;
        let shape = tuning::elementwise(self.0.chip, rows);
        kernel::block_multiply::<T, T>(*self, shape, rows, starts, block_of, offsets, values, r, z)
    }

    fn chebyshev_step<T: Scalar>(
        &self,
        by: ChebyshevStep<'_, T, Self>,
        from: Option<(&Slice<T>, &Slice<T>)>,
    ) -> Result<()> {
        let n = by.last.len();
        by.check(n)?;
        let (z, t) = from.unzip();
        Error::check_dimension("length of z", n, z.map_or(n, Slice::len))?;
        Error::check_dimension("length of A z", n, t.map_or(n, Slice::len))?;
        let ChebyshevStep { keep, momentum, step, d, r, last } = by;
        let shape = tuning::elementwise(self.0.chip, n);
        kernel::chebyshev_step::<T>(*self, shape, keep, momentum, step, d, r, z, t, last, n)
    }

    fn lower_lengths<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        limit: usize,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        Error::check_dimension("length of the lengths", a.rows + 1, lengths.len())?;
        let shape = tuning::elementwise(self.0.chip, a.rows + 1);
        let limit = limit as u32;
        kernel::lower_lengths::<T, V>(*self, shape, a.rows, a.pattern(), limit, lengths)
    }

    fn sparse_factor<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        _limit: usize,
        offsets: OffsetsRef<'_, Self>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
        first_bad: &mut Slice<u32>,
    ) -> Result<()> {
        self.fill(u32::MAX, first_bad)?;
        let shape = tuning::dense(self.0.chip, a.rows, size_of::<T>());
        kernel::sparse_factor(*self, shape, a.rows, a, offsets, columns, values, first_bad)
    }

    fn narrow<T: Scalar>(&self, scale: T::Real, x: &Slice<T>, y: &mut Slice<T::Lower>) -> Result<()> {
        Error::check_dimension("length of the narrower vector", x.len(), y.len())?;
        let shape = tuning::elementwise(self.0.chip, x.len());
        kernel::narrow::<T, T::Lower>(*self, shape, scale, x, y, x.len())
    }

    fn narrow_changes<T: Scalar>(&self, x: &Slice<T>, changed: &mut Slice<u32>) -> Result<()> {
        self.fill(0, changed)?;
        let shape = tuning::elementwise(self.0.chip, x.len());
        kernel::changes::<T, T::Lower>(*self, shape, x, changed, x.len())
    }

    fn widen<T: Scalar>(&self, x: &Slice<T::Lower>, y: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the narrower vector", y.len(), x.len())?;
        let shape = tuning::elementwise(self.0.chip, y.len());
        kernel::widened::<T, T::Lower>(*self, shape, x, y, y.len())
    }

    fn add_narrow<T: Scalar>(&self, scale: T::Real, x: &Slice<T::Lower>, y: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the narrower vector", y.len(), x.len())?;
        let shape = tuning::elementwise(self.0.chip, y.len());
        kernel::add_narrow::<T, T::Lower>(*self, shape, scale, x, y, y.len())
    }
}
