//! Products with stored matrices on the device, one file for each family of layouts.
//!
//! | layout | algorithm |
//! |---|---|
//! | CSR, rows of similar length | tiles of rows through shared memory (`csr_stream.cu`) |
//! | CSR, rows of any length | tiles of steps, with the longest rows divided (`csr_balanced.cu`) |
//! | CSR, few rows of very different lengths | bins of rows by their lengths (`csr_binned.cu`) |
//! | CSR, several vectors | lanes for the vectors of a row (`csr_block.cu`) |
//! | CSR, several vectors, rows of very different lengths | tiles of steps (`csr_block_tiles.cu`) |
//! | COO | tiles of nonzeros, segmented sums (`coo.cu`); by atomic additions only on request |
//! | ELL, JDS, SELL | a thread for each row (`ell.cu`, `jds.cu`, `sell.cu`) |
//! | diagonals | a thread for two rows, or for a column of A^T (`dia.cu`) |
//!
//! Products with A^T use a transposed copy ([`Products::transposed_copy`]), except for matrices stored by diagonals,
//! because rows would otherwise have to add to y in random order. Therefore the functions here return an error for
//! transposed products.

mod bins;
mod block;
mod columns;
mod coo;
mod csr;
mod dia;

pub use csr::CsrAlgorithm;
pub(super) use csr::{extent, scattered};

use super::launch::passed;
use super::shape::Shape;
use super::slice::Slice;
use super::workspace::Reduction;
use super::{Cuda, capture, tuning};
use crate::backend::{
    ChebyshevStep, CompressedParts, CooParts, CsrParts, DiaParts, EllParts, Gemv, JdsParts, Op, Products,
    SellParts,
};
use crate::backend::{ProductModel, Transposable};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};
use std::ops::Range;

/// The operands of y = alpha A x + beta y, and whether values are conjugated.
struct Form<'a, T: Scalar> {
    conjugate: u32,
    alpha: T,
    x: &'a Slice<T>,
    beta: T,
    y: &'a mut Slice<T>,
}

passed!(['a, T: Scalar] Form<'a, T>: alpha as T, x as &'a Slice<T>, beta as T, y as &'a mut Slice<T>, conjugate as u32);

impl<'a, T: Scalar> Form<'a, T> {
    /// Creates the operands from `gemv`. Returns an error for a transposed product.
    fn new(cuda: Cuda, what: &str, gemv: Gemv<'a, T, Cuda>) -> Result<Self> {
        let Gemv { op, alpha, x, beta, y } = gemv;
        if op.transposes() {
            return Err(Error::Unsupported(format!(
                "the transposed product of arrays in {what} on {}; the matrix's own product makes a transposed copy",
                cuda.0.name
            )));
        }
        Ok(Form { conjugate: u32::from(T::COMPLEX && op.conjugates()), alpha, x, beta, y })
    }
}

/// Returns a flag for a kernel: whether it may read the arrays of its matrix, at these addresses, before the preceding
/// launch has ended.
fn settled(cuda: Cuda, matrix: &[Range<u64>]) -> u32 {
    u32::from(capture::settled(cuda.0.ordinal, matrix))
}

/// Launches a product whose blocks compute partial sums, and adds these sums in `out`: in the last block if there are
/// few blocks, else in a second launch. `product` gets `out` and that memory.
fn summed<T: Scalar>(
    cuda: Cuda,
    shape: Shape,
    out: &mut Slice<T>,
    product: impl FnOnce(&mut Slice<T>, Reduction) -> Result<()>,
) -> Result<()> {
    let count = shape.blocks as usize;
    if tuning::joins_sums(shape) {
        let reduction = cuda.0.workspaces.reduction();
        return product(out, reduction);
    }
    let (_guard, partials) = cuda.0.workspaces.pieces(count)?;
    product(&mut *out, (partials, 0))?;
    cuda.sum(Slice::at(partials, count), out)
}

impl Products for Cuda {
    fn csr_residual<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scale: T,
        b: &Slice<T>,
        x: &Slice<T>,
        r: &mut Slice<T>,
    ) -> Result<()> {
        self.accurate_residual(a, scale, b, x, r)
    }

    fn compressed<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.compressed_product(a, gemv)
    }

    fn compressed_dot<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        xy: &mut Slice<T>,
    ) -> Result<()> {
        self.compressed_product_dot(a, x, y, xy)
    }

    fn compressed_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        step: ChebyshevStep<'_, T, Self>,
        z: &Slice<T>,
    ) -> Result<bool> {
        self.compressed_product_chebyshev(a, step, z)
    }

    fn model(&self) -> ProductModel {
        tuning::PRODUCT_MODEL
    }

    fn csr<V: Promote<T>, T: Scalar>(&self, a: CsrParts<'_, V, Self>, gemv: Gemv<'_, T, Self>) -> Result<()> {
        csr::product(*self, a, Form::new(*self, "csr", gemv)?)
    }

    fn csr_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        step: ChebyshevStep<'_, T, Self>,
        z: &Slice<T>,
    ) -> Result<bool> {
        csr::chebyshev(*self, a, step, z)
    }

    fn csr_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        xy: &mut Slice<T>,
    ) -> Result<()> {
        csr::product_dot(*self, a, x, y, xy)
    }

    fn csr_block<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        vectors: usize,
        gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        block::product(*self, a, vectors, Form::new(*self, "csr", gemv)?)
    }

    fn csr_block_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        xy: &mut Slice<T>,
    ) -> Result<()> {
        block::product_dot(*self, a, x, y, xy)
    }

    fn transposed_copy<M: Transposable<Self>>(&self, a: &M) -> Option<Result<M::Copy>> {
        Some(capture::outside(|| a.transposed(self)))
    }

    fn coo<V: Promote<T>, T: Scalar>(&self, a: CooParts<'_, V, Self>, gemv: Gemv<'_, T, Self>) -> Result<()> {
        coo::product(*self, a, Form::new(*self, "coo", gemv)?)
    }

    fn ell<V: Promote<T>, T: Scalar>(&self, a: EllParts<'_, V, Self>, gemv: Gemv<'_, T, Self>) -> Result<()> {
        columns::ell(*self, a, Form::new(*self, "ell", gemv)?)
    }

    fn dia<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: DiaParts<'_, V, Self>,
        gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        dia::product(*self, a, gemv)
    }

    fn dia_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: DiaParts<'_, V, Self>,
        step: ChebyshevStep<'_, T, Self>,
        z: &Slice<T>,
    ) -> Result<bool> {
        dia::chebyshev(*self, a, step, z)?;
        Ok(true)
    }

    fn dia_dot<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: DiaParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        xy: &mut Slice<T>,
    ) -> Result<()> {
        dia::product_dot(*self, a, x, y, xy)
    }

    fn jds<V: Promote<T>, T: Scalar>(&self, a: JdsParts<'_, V, Self>, gemv: Gemv<'_, T, Self>) -> Result<()> {
        columns::jds(*self, a, Form::new(*self, "jds", gemv)?)
    }

    fn sell<V: Promote<T>, T: Scalar>(
        &self,
        a: SellParts<'_, V, Self>,
        gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        columns::sell(*self, a, Form::new(*self, "sell", gemv)?)
    }

    fn sell_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: SellParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        xy: &mut Slice<T>,
    ) -> Result<()> {
        columns::sell_dot(*self, a, x, y, xy)
    }
}

impl Cuda {
    /// y = alpha A x + beta y with A in coordinates, by atomic additions. Their order, and with it the last bits of y,
    /// differs from run to run. This is for comparison; [`Products::coo`] is deterministic.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if the device fails.
    pub fn coo_by_atomics<V: Promote<T>, T: Scalar>(
        &self,
        a: CooParts<'_, V, Self>,
        alpha: T,
        x: &Slice<T>,
        beta: T,
        y: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("length of x", a.columns, x.len())?;
        Error::check_dimension("length of y", a.rows, y.len())?;
        coo::by_atomics(*self, a, Form::new(*self, "coo", Gemv { op: Op::None, alpha, x, beta, y })?)
    }

    /// y = alpha A x + beta y with A in CSR, with an algorithm of the caller's choice. This is for comparison;
    /// [`Products::csr`] chooses an algorithm that suits the rows.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if the device fails.
    pub fn csr_by<V: Promote<T>, T: Scalar>(
        &self,
        algorithm: CsrAlgorithm,
        a: CsrParts<'_, V, Self>,
        alpha: T,
        x: &Slice<T>,
        beta: T,
        y: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("length of x", a.columns, x.len())?;
        Error::check_dimension("length of y", a.rows, y.len())?;
        csr::product_by(
            *self,
            algorithm,
            a,
            Form::new(*self, "arrays", Gemv { op: Op::None, alpha, x, beta, y })?,
        )
    }
}
