//! Sparse products and sums: C = A B, R A P, alpha A + beta B.

use super::Csr;
use crate::backend::{OffsetsRef, SparseProducts, offsets_of};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// C = A B, columns ascending. Every entry that the patterns allow is stored, even if it is zero, so that
/// [`multiply_again`] can take new values. The bits are the same on every backend and for any number of threads.
///
/// ```
/// use residua::{Host, generate, matrix};
/// let a = generate::tridiagonal(5)?;
/// let square = matrix::multiply(&Host, &a, &a)?;
/// assert_eq!(square.row(2), (&[0, 1, 2, 3, 4][..], &[1.0, -4.0, 6.0, -4.0, 1.0][..]));
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If A does not have as many columns as B has rows, if memory runs out, or if the device fails.
pub fn multiply<V: Scalar, B: SparseProducts>(
    backend: &B,
    a: &Csr<V, B>,
    b: &Csr<V, B>,
) -> Result<Csr<V, B>> {
    multiply_within(backend, a, b, usize::MAX).map(|product| product.expect("a product of any size"))
}

/// [`multiply`] if C has at most `most` entries, else `None`. A device counts them before it computes them.
pub(crate) fn multiply_within<V: Scalar, B: SparseProducts>(
    backend: &B,
    a: &Csr<V, B>,
    b: &Csr<V, B>,
    most: usize,
) -> Result<Option<Csr<V, B>>> {
    Error::check_dimension("rows of the second factor", a.columns(), b.rows())?;
    let arrays = backend.multiply_rows(a.parts(), b.parts(), None, most)?;
    Ok(arrays.map(|(offsets, indices, values)| {
        Csr::from_parts_unchecked(a.rows(), b.columns(), offsets, indices, values)
    }))
}

/// [`multiply`] with the row starts of C known from factors with the same patterns. C has `entries` entries.
pub(crate) fn multiply_at<V: Scalar, B: SparseProducts>(
    backend: &B,
    a: &Csr<V, B>,
    b: &Csr<V, B>,
    (starts, entries): (OffsetsRef<'_, B>, usize),
) -> Result<Csr<V, B>> {
    Error::check_dimension("rows of the second factor", a.columns(), b.rows())?;
    Error::check_dimension("rows of the product", a.rows() + 1, starts.len())?;
    let arrays = backend.multiply_rows(a.parts(), b.parts(), Some((starts, entries)), usize::MAX)?;
    let (offsets, indices, values) = arrays.expect("a product of any size");
    Ok(Csr::from_parts_unchecked(a.rows(), b.columns(), offsets, indices, values))
}

/// Computes C = A B again for a C from [`multiply`], with factors of the same patterns: only values are computed.
///
/// # Errors
/// If sizes differ, or if the device fails. A C of another pattern gets meaningless values.
pub fn multiply_again<V: Scalar, B: SparseProducts>(
    backend: &B,
    a: &Csr<V, B>,
    b: &Csr<V, B>,
    c: &mut Csr<V, B>,
) -> Result<()> {
    Error::check_dimension("rows of the second factor", a.columns(), b.rows())?;
    Error::check_dimension("rows of the product", a.rows(), c.rows())?;
    Error::check_dimension("columns of the product", b.columns(), c.columns())?;
    let (pattern, values) = c.pattern_and_values();
    backend.multiply_values(a.parts(), b.parts(), pattern, values)
}

/// A P and R (A P), the product of multigrid between two levels. The first is kept, for new values of A on the same
/// pattern.
#[derive(Debug)]
pub struct TripleProduct<V: Scalar, B: SparseProducts> {
    half: Csr<V, B>,
    product: Csr<V, B>,
}

impl<V: Scalar, B: SparseProducts> TripleProduct<V, B> {
    /// R A P.
    ///
    /// # Errors
    /// As [`multiply`].
    pub fn new(backend: &B, r: &Csr<V, B>, a: &Csr<V, B>, p: &Csr<V, B>) -> Result<Self> {
        let half = multiply(backend, a, p)?;
        let product = multiply(backend, r, &half)?;
        Ok(Self { half, product })
    }

    /// Computes the product for new values in factors of the same patterns.
    ///
    /// # Errors
    /// As [`multiply_again`].
    pub fn update(&mut self, backend: &B, r: &Csr<V, B>, a: &Csr<V, B>, p: &Csr<V, B>) -> Result<()> {
        multiply_again(backend, a, p, &mut self.half)?;
        multiply_again(backend, r, &self.half, &mut self.product)
    }

    /// Bytes of A P and R A P.
    pub fn storage_bytes(&self) -> usize {
        self.half.storage_bytes() + self.product.storage_bytes()
    }

    /// R A P.
    pub fn product(&self) -> &Csr<V, B> {
        &self.product
    }

    /// R A P alone; A P is dropped.
    pub fn into_product(self) -> Csr<V, B> {
        self.product
    }
}

/// alpha A + beta B. The pattern is the union of both, whatever alpha and beta are.
///
/// # Errors
/// If sizes differ, if memory runs out, or if the device fails.
pub fn add<V: Scalar, B: SparseProducts>(
    backend: &B,
    alpha: V,
    a: &Csr<V, B>,
    beta: V,
    b: &Csr<V, B>,
) -> Result<Csr<V, B>> {
    Error::check_dimension("rows of the second summand", a.rows(), b.rows())?;
    Error::check_dimension("columns of the second summand", a.columns(), b.columns())?;
    let mut lengths = backend.buffer(a.rows() + 1)?;
    backend.add_lengths(a.parts().pattern(), b.parts().pattern(), &mut lengths)?;
    let (offsets, nonzeros) = offsets_of(backend, &lengths)?;
    drop(lengths);
    let (mut indices, mut values) = (backend.buffer(nonzeros)?, backend.buffer(nonzeros)?);
    let (left, right) = ((alpha, a.parts()), (beta, b.parts()));
    backend.add_rows(left, right, offsets.as_ref(), &mut indices, &mut values)?;
    Ok(Csr::from_parts_unchecked(a.rows(), a.columns(), offsets, indices, values))
}
