//! The distance of a matrix to its transpose, in the memory of the backend.

use crate::backend::RowFacts;
use crate::error::{Error, Result};
use crate::matrix::Csr;
#[cfg(doc)]
use crate::report::Facts;
use crate::report::ROUNDING;
use crate::scalar::{Real, Scalar};

/// The distance of a square matrix to its transpose and to its conjugate transpose, each as in [`Facts`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Transposed {
    /// The largest |a_ij - a_ji|, relative to the largest entry.
    pub asymmetry: f64,
    /// The largest |a_ij - conj(a_ji)|, relative to the largest entry.
    pub hermitian_defect: f64,
}

impl Transposed {
    /// Compares every entry with its mirror image, in the memory of any backend. These are the two results of
    /// [`Facts::of`] that a solver needs.
    ///
    /// # Errors
    /// If the matrix is not square, if memory runs out, or if the device fails.
    pub fn of<V: Scalar, B: RowFacts>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let mut found = backend.zeros(3)?;
        backend.csr_symmetry::<V, V>(a.parts(), &mut found)?;
        let mut most = [V::Real::default(); 3];
        backend.read(&found, &mut most)?;
        let [largest, plain, hermitian] = most.map(Real::to_f64);
        let relative = |defect: f64| if largest > 0.0 { defect / largest } else { 0.0 };
        Ok(Self { asymmetry: relative(plain), hermitian_defect: relative(hermitian) })
    }

    /// As [`Facts::is_symmetric`].
    pub fn is_symmetric(&self) -> bool {
        self.asymmetry <= ROUNDING
    }

    /// As [`Facts::is_hermitian`].
    pub fn is_hermitian(&self) -> bool {
        self.hermitian_defect <= ROUNDING
    }
}
