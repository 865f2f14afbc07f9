//! Vector operations. Results that an iteration needs again (dot products, norms) stay in one-element buffers of the
//! backend: nothing here waits for the device. Sums are deterministic: the same input gives the same bits, whatever
//! the load and the number of threads.

use super::Backend;
use crate::error::Result;
use crate::scalar::Scalar;

/// Operations on dense vectors of equal length.
///
/// Several vectors may lie side by side, interleaved: entry i of vector j of k at i * k + j. Then [`VectorOps::dot`]
/// has k results, and the steps of [`KrylovSteps`](super::KrylovSteps) take k systems; what works on each element by
/// itself needs not know.
pub trait VectorOps: Backend {
    /// `out[0]` = sum of conj(x\[i\]) y\[i\]; where `out` has k entries, 2 to 32, x and y are k interleaved vectors
    /// each, and `out[j]` is the dot product of the j-th of them.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn dot<T: Scalar>(&self, x: &Self::Slice<T>, y: &Self::Slice<T>, out: &mut Self::Slice<T>) -> Result<()>;

    /// Interleaves vectors that lie one behind the other: entry i of vector j of `vectors`, at j * n + i in `x`, goes
    /// to i * `vectors` + j in `y`.
    ///
    /// # Errors
    /// On different lengths or no multiple of `vectors`, or when the device fails.
    fn interleave<T: Scalar>(&self, vectors: usize, x: &Self::Slice<T>, y: &mut Self::Slice<T>)
    -> Result<()>;

    /// The other way: `vectors` interleaved vectors in `x` come to lie one behind the other in `y`.
    ///
    /// # Errors
    /// As [`VectorOps::interleave`].
    fn separate<T: Scalar>(&self, vectors: usize, x: &Self::Slice<T>, y: &mut Self::Slice<T>) -> Result<()>;

    /// `out[0]` = sum of |x\[i\]|^2.
    ///
    /// # Errors
    /// When the device fails.
    fn norm2_squared<T: Scalar>(&self, x: &Self::Slice<T>, out: &mut Self::Slice<T::Real>) -> Result<()>;

    /// y = alpha x + beta y. Where `beta` is zero, `y` is not read.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn axpby<T: Scalar>(&self, alpha: T, x: &Self::Slice<T>, beta: T, y: &mut Self::Slice<T>) -> Result<()>;

    /// z = x .* y, element by element.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn multiply<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        y: &Self::Slice<T>,
        z: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// z = d .* x with a real d: a diagonal matrix times a vector.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn scale<T: Scalar>(
        &self,
        d: &Self::Slice<T::Real>,
        x: &Self::Slice<T>,
        z: &mut Self::Slice<T>,
    ) -> Result<()>;
}
