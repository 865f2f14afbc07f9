//! Vector operations on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::workspace::Reduction;
use super::{Cuda, basis, linear_update, pairs, tuning};
use crate::backend::{Hessenberg, LinearUpdate, PairScalars, ScalarProgram, VectorOps};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "vector.cu", types(T: Scalar as SCALAR);
        fn dot(x: &Slice<T>, y: &Slice<T>, n: usize, out: &mut Slice<T>, reduction: Reduction);
        fn norm2_squared(x: &Slice<T>, n: usize, out: &mut Slice<T::Real>, reduction: Reduction);
        fn sum(x: &Slice<T>, n: usize, out: &mut Slice<T>, reduction: Reduction);
        fn axpby(alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>, n: usize);
        fn scale_in_place(alpha: T, x: &mut Slice<T>, n: usize);
        fn multiply(x: &Slice<T>, y: &Slice<T>, z: &mut Slice<T>, n: usize);
        fn scale(d: &Slice<T::Real>, x: &Slice<T>, z: &mut Slice<T>, n: usize);
    }
    kernels! {
        "vector_block.cu", types(T: Scalar as SCALAR);
        fn dots(k: u32, x: &Slice<T>, y: &Slice<T>, n: usize, out: &mut Slice<T>, reduction: Reduction);
        fn sums(k: u32, x: &Slice<T>, n: usize, out: &mut Slice<T>, reduction: Reduction);
        fn interleave(k: u32, x: &Slice<T>, y: &mut Slice<T>, rows: usize);
        fn separate(k: u32, x: &Slice<T>, y: &mut Slice<T>, rows: usize);
    }
}

/// Checks that `n` elements can be a block of this number of interleaved vectors, and that kernels support the number.
pub(super) fn check_block(vectors: usize, n: usize) -> Result<()> {
    if !(1..=32).contains(&vectors) {
        return Err(Error::InvalidArgument(format!(
            "{vectors} vectors were given at once, but only 1 to 32 are possible"
        )));
    }
    Error::check_dimension("entries beyond the last whole row", 0, n % vectors)
}

impl Cuda {
    /// `out[0]` = the sum of all elements.
    pub(super) fn sum<T: Scalar>(self, x: &Slice<T>, out: &mut Slice<T>) -> Result<()> {
        let shape = tuning::sum(self.0.chip, x.len(), size_of::<T>());
        let reduction = self.0.workspaces.reduction();
        kernel::sum(self, shape, x, x.len(), out, reduction)
    }

    /// `out[j]` = the sum of the j-th of several interleaved vectors.
    pub(super) fn sums<T: Scalar>(self, x: &Slice<T>, out: &mut Slice<T>) -> Result<()> {
        let (n, k) = (x.len(), out.len());
        if k == 1 {
            return self.sum(x, out);
        }
        check_block(k, n)?;
        let shape = tuning::block_sum(self.0.chip, k, n, size_of::<T>());
        let reduction = self.0.workspaces.reduction();
        kernel::sums(self, shape, k as u32, x, n, out, reduction)
    }
}

impl VectorOps for Cuda {
    /// With fewer iterations than this, a recording is not worth replaying: a replay costs 3 us more than its kernels.
    const RECORDED: usize = 4;

    fn dot<T: Scalar>(&self, x: &Slice<T>, y: &Slice<T>, out: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        let (n, k) = (x.len(), out.len());
        let reduction = self.0.workspaces.reduction();
        if k != 1 {
            check_block(k, n)?;
            let shape = tuning::block_sum(self.0.chip, k, n, size_of::<T>());
            return kernel::dots(*self, shape, k as u32, x, y, n, out, reduction);
        }
        let shape = tuning::sum(self.0.chip, n, size_of::<T>());
        kernel::dot(*self, shape, x, y, x.len(), out, reduction)
    }

    fn interleave<T: Scalar>(&self, vectors: usize, x: &Slice<T>, y: &mut Slice<T>) -> Result<()> {
        check_block(vectors, x.len())?;
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        let shape = tuning::elementwise(self.0.chip, x.len());
        kernel::interleave(*self, shape, vectors as u32, x, y, x.len() / vectors)
    }

    fn separate<T: Scalar>(&self, vectors: usize, x: &Slice<T>, y: &mut Slice<T>) -> Result<()> {
        check_block(vectors, x.len())?;
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        let shape = tuning::elementwise(self.0.chip, x.len());
        kernel::separate(*self, shape, vectors as u32, x, y, x.len() / vectors)
    }

    fn norm2_squared<T: Scalar>(&self, x: &Slice<T>, out: &mut Slice<T::Real>) -> Result<()> {
        Error::check_dimension("length of the result", 1, out.len())?;
        let shape = tuning::sum(self.0.chip, x.len(), size_of::<T>());
        let reduction = self.0.workspaces.reduction();
        kernel::norm2_squared(*self, shape, x, x.len(), out, reduction)
    }

    fn axpby<T: Scalar>(&self, alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        kernel::axpby(*self, tuning::elementwise(self.0.chip, x.len()), alpha, x, beta, y, x.len())
    }

    fn scale_in_place<T: Scalar>(&self, alpha: T, x: &mut Slice<T>) -> Result<()> {
        let n = x.len();
        kernel::scale_in_place(*self, tuning::elementwise(self.0.chip, n), alpha, x, n)
    }

    fn multiply<T: Scalar>(&self, x: &Slice<T>, y: &Slice<T>, z: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        Error::check_dimension("length of the product", x.len(), z.len())?;
        kernel::multiply(*self, tuning::elementwise(self.0.chip, x.len()), x, y, z, x.len())
    }

    fn scale<T: Scalar>(&self, d: &Slice<T::Real>, x: &Slice<T>, z: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the vector", d.len(), x.len())?;
        Error::check_dimension("length of the product", d.len(), z.len())?;
        kernel::scale(*self, tuning::elementwise(self.0.chip, x.len()), d, x, z, x.len())
    }

    fn linear_update<T: Scalar>(
        &self,
        update: LinearUpdate<'_, '_, T, Self>,
        state: &mut Slice<T>,
        then: Option<&ScalarProgram<Self>>,
    ) -> Result<()> {
        linear_update::linear_update(*self, update, state, then)
    }

    fn run_program<T: Scalar>(&self, program: &ScalarProgram<Self>, state: &mut Slice<T>) -> Result<()> {
        linear_update::run_program(*self, program, state, false)
    }

    fn basis_products<T: Scalar>(
        &self,
        basis: &Slice<T>,
        count: usize,
        w: &Slice<T>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        basis::products(*self, basis, count, w, out)
    }

    fn basis_project<T: Scalar>(
        &self,
        basis: &Slice<T>,
        count: usize,
        h: &Slice<T>,
        w: &mut Slice<T>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        basis::project(*self, basis, count, h, w, out)
    }

    fn basis_update<T: Scalar>(
        &self,
        alpha: T,
        basis: &Slice<T>,
        count: usize,
        h: &Slice<T>,
        w: &mut Slice<T>,
        square: Option<&mut Slice<T>>,
    ) -> Result<()> {
        basis::update(*self, alpha, basis, count, h, w, square)
    }

    fn hessenberg_step<T: Scalar>(&self, column: usize, hessenberg: Hessenberg<'_, T, Self>) -> Result<()> {
        basis::hessenberg_step(*self, column, hessenberg)
    }

    fn triangular_solve<T: Scalar>(
        &self,
        count: usize,
        stride: usize,
        r: &Slice<T>,
        g: &Slice<T>,
        y: &mut Slice<T>,
    ) -> Result<()> {
        basis::triangular_solve(*self, count, stride, r, g, y)
    }

    fn pair_products<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &Slice<S>,
        count: usize,
        w: [&Slice<T>; 2],
        out: &mut Slice<T>,
    ) -> Result<()> {
        pairs::products(*self, basis, count, w, out)
    }

    fn pair_factors<T: Scalar>(&self, column: usize, pair: PairScalars<'_, T, Self>) -> Result<()> {
        pairs::factors(*self, column, pair)
    }

    fn pair_update<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &mut Slice<S>,
        count: usize,
        w: [&Slice<T>; 2],
        factors: &Slice<T>,
        v: &mut Slice<T>,
        squares: &mut Slice<T>,
    ) -> Result<()> {
        pairs::update(*self, basis, count, w, factors, v, squares)
    }

    fn pair_columns<T: Scalar>(&self, column: usize, pair: PairScalars<'_, T, Self>) -> Result<()> {
        pairs::columns(*self, column, pair)
    }

    fn basis_combination<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &Slice<S>,
        count: usize,
        c: &Slice<T>,
        x: &mut Slice<T>,
    ) -> Result<()> {
        pairs::combination(*self, basis, count, c, x)
    }
}
