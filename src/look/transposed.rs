//! The distance of a matrix to its transpose, in the memory of the backend.

use crate::backend::RowFacts;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::report::{Facts, ROUNDING};
use crate::scalar::{Real, Scalar};

/// The distance of a square matrix to its transpose and to its conjugate transpose, each as in [`Facts`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Transposed {
    /// The largest |a_ij - a_ji|, relative to the largest entry.
    pub asymmetry: f64,
    /// The largest |a_ij - conj(a_ji)|, relative to the largest entry.
    pub hermitian_defect: f64,
    symmetric: bool,
    hermitian: bool,
}

impl Transposed {
    /// Compares every entry with its mirror image, in the memory of any backend. These are the two results of
    /// [`Facts::of`] that a solver needs.
    ///
    /// # Errors
    /// If the matrix is not square, if memory runs out, or if the device fails.
    pub fn of<V: Scalar, B: RowFacts>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let mut told = Defects::of(backend, a)?.relative();
        if told.symmetric && told.asymmetry > 0.0 || told.hermitian && told.hermitian_defect > 0.0 {
            // Entries of rows in small units hardly count relative to the largest entry of all, so each difference is
            // compared with its own rows.
            let facts = Facts::of(&a.to_host(backend)?);
            told.symmetric &= facts.is_symmetric();
            told.hermitian &= facts.is_hermitian();
        }
        Ok(told)
    }

    /// As [`Facts::is_symmetric`].
    pub fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    /// As [`Facts::is_hermitian`].
    pub fn is_hermitian(&self) -> bool {
        self.hermitian
    }
}

/// The largest |a_ij|, |a_ij - a_ji| and |a_ij - conj(a_ji)| so far: of a block, then of the entries beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defects(pub(crate) [f64; 3]);

impl Defects {
    /// Those of a square matrix, in the memory of any backend.
    pub(crate) fn of<V: Scalar, B: RowFacts>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if a.rows() == 0 {
            return Ok(Self([0.0; 3]));
        }
        let mut found = backend.zeros(3)?;
        backend.csr_symmetry::<V, V>(a.parts(), &mut found)?;
        let mut most = [V::Real::default(); 3];
        backend.read(&found, &mut most)?;
        Ok(Self(most.map(Real::to_f64)))
    }

    /// Compares another entry with its mirror image.
    pub(crate) fn compare<T: Scalar>(&mut self, entry: T, mirrored: T) {
        let defects = [entry.abs(), (entry - mirrored).abs(), (entry - mirrored.conj()).abs()];
        for (most, defect) in self.0.iter_mut().zip(defects) {
            *most = most.max(defect.to_f64());
        }
    }

    pub(crate) fn relative(self) -> Transposed {
        let [largest, plain, hermitian] = self.0;
        let relative = |defect: f64| if largest > 0.0 { defect / largest } else { 0.0 };
        let (asymmetry, hermitian_defect) = (relative(plain), relative(hermitian));
        let [symmetric, hermitian] = [asymmetry, hermitian_defect].map(|defect| defect <= ROUNDING);
        Transposed { asymmetry, hermitian_defect, symmetric, hermitian }
    }
}
