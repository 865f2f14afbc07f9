//! Operations of preconditioners, in addition to the steps of solvers: small dense systems, one for each block or row
//! of the matrix, steps of a polynomial, and vectors in half the precision.

use super::{Backend, CsrParts, OffsetsRef, VectorOps};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};

/// The maximum number of rows in a dense block or a local system: each row takes one lane of a warp.
pub const DENSE_LIMIT: usize = 32;

/// A diagonal entry below this fraction of the norm of its row counts as missing.
pub const SMALL_DIAGONAL: f64 = 1e-3;

/// A block-diagonal matrix with small dense blocks. Rows `starts[k]..starts[k + 1]` form block k, and entry (i, j) of a
/// block of size s, counted within the block, is at `offsets[k] + j s + i`.
///
/// ```text
///     | 4 1     |      starts  0 2 3
///     | 1 5     |      offsets 0 4 5
///     |       2 |      values  4 1 1 5 | 2      block_of  0 0 1
/// ```
#[derive(Debug)]
pub struct BlockParts<'a, B: Backend> {
    /// The first row of each block, and the number of rows at the end.
    pub starts: &'a B::Slice<u32>,
    /// The block of each row.
    pub block_of: &'a B::Slice<u32>,
    /// The start of each block's values, and the number of all values at the end.
    pub offsets: &'a B::Slice<u64>,
}

impl<B: Backend> Clone for BlockParts<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for BlockParts<'_, B> {}

/// One step of Chebyshev's iteration for A z = r: `last` = `keep` z + `momentum` `last` + `step` d .* (r - A z). `last`
/// is not read if `momentum` is zero.
pub struct ChebyshevStep<'a, T: Scalar, B: Backend> {
    /// The factor of z.
    pub keep: T::Real,
    /// The factor of `last`, the vector before z.
    pub momentum: T::Real,
    /// The factor of the scaled residual.
    pub step: T::Real,
    /// The inverse of A's diagonal; `None` means ones.
    pub d: Option<&'a B::Slice<T::Real>>,
    /// The right-hand side.
    pub r: &'a B::Slice<T>,
    /// The vector before z. The step overwrites it with the vector after z.
    pub last: &'a mut B::Slice<T>,
}

impl<T: Scalar, B: Backend> std::fmt::Debug for ChebyshevStep<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { keep, momentum, step, .. } = self;
        write!(f, "ChebyshevStep: {keep} z + {momentum} last + {step} D (r - A z)")
    }
}

impl<T: Scalar, B: Backend> ChebyshevStep<'_, T, B> {
    /// Returns an error for vectors whose length is not `n`.
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        Error::check_dimension("length of the diagonal", n, self.d.map_or(n, |d| B::len(d)))?;
        Error::check_dimension("length of r", n, B::len(self.r))?;
        Error::check_dimension("length of the vector before z", n, B::len(self.last))
    }
}

/// The pair (z, A z).
pub type WithProduct<'a, T, B> = (&'a <B as Backend>::Slice<T>, &'a <B as Backend>::Slice<T>);

/// Steps of preconditioners. No step waits for the device, and all are deterministic.
pub trait PreconditionSteps: VectorOps {
    /// True if this is a device on which the number of bytes moved determines the time, so that a preconditioner with
    /// fewer bytes is faster.
    const IS_DEVICE: bool = false;

    /// Inverts the diagonal blocks of a Hermitian A into `inverses` (layout: [`BlockParts`]). The inverses are exactly
    /// Hermitian. `first_bad[0]` = the first row at which a block was found not to be positive definite, because
    /// Gauss-Jordan elimination without row exchanges had a pivot that is not positive; `u32::MAX` if there is none.
    ///
    /// # Errors
    /// If the device fails.
    fn block_inverses<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: BlockParts<'_, Self>,
        inverses: &mut Self::Slice<T>,
        first_bad: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// z = M r for a block-diagonal M.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn block_multiply<T: Scalar>(
        &self,
        blocks: BlockParts<'_, Self>,
        values: &Self::Slice<T>,
        r: &Self::Slice<T>,
        z: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// A step of Chebyshev's iteration. `from` has z and the product A z; without it z is zero, and `last` becomes
    /// `step` d .* r.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn chebyshev_step<T: Scalar>(
        &self,
        step: ChebyshevStep<'_, T, Self>,
        from: Option<WithProduct<'_, T, Self>>,
    ) -> Result<()>;

    /// `lengths[i]` = the number of entries of row i on and left of the diagonal, at most the `limit` nearest to it; 0
    /// if the diagonal entry is missing. `lengths` has one more element than A has rows, which is set to 0.
    ///
    /// # Errors
    /// If the device fails.
    fn lower_lengths<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        limit: usize,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Computes the factor G of a factorised sparse approximate inverse of a Hermitian A. Its row lengths are those of
    /// [`PreconditionSteps::lower_lengths`], and its rows start at `offsets`. If J are the columns of row i, the row g
    /// solves g A(J, J) = c e_i, with the c for which G A G^H has a unit diagonal. `first_bad[0]` = the first row for
    /// which A(J, J) is not positive definite, or `u32::MAX`.
    ///
    /// # Errors
    /// If the device fails.
    #[allow(clippy::too_many_arguments)]
    fn sparse_factor<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        limit: usize,
        offsets: OffsetsRef<'_, Self>,
        columns: &mut Self::Slice<u32>,
        values: &mut Self::Slice<T>,
        first_bad: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// y = scale x, rounded to half the precision.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn narrow<T: Scalar>(
        &self,
        scale: T::Real,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T::Lower>,
    ) -> Result<()>;

    /// `changed[0]` = 1 if half the precision can't represent an element of x exactly ([`Scalar::narrow`]), else 0.
    ///
    /// # Errors
    /// If the device fails.
    fn narrow_changes<T: Scalar>(&self, x: &Self::Slice<T>, changed: &mut Self::Slice<u32>) -> Result<()>;

    /// y = x, where x has half the precision.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn widen<T: Scalar>(&self, x: &Self::Slice<T::Lower>, y: &mut Self::Slice<T>) -> Result<()>;

    /// y += scale x, where x has half the precision.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn add_narrow<T: Scalar>(
        &self,
        scale: T::Real,
        x: &Self::Slice<T::Lower>,
        y: &mut Self::Slice<T>,
    ) -> Result<()>;
}
