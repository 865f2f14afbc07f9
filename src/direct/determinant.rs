//! What factors on a device tell about the matrix besides the solution: its determinant and its inertia.

use super::device::{DirectBackend, Made, OnDevice, apply, length};
use crate::backend::Determinant;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::scalar::Scalar;

/// Steps of refinement that show whether rounding may have changed the inertia, and the factor by which each must
/// reduce the residual.
const CONTRACTIONS: usize = 5;
const CONTRACTED: f64 = 0.1;

impl<T: Scalar, B: DirectBackend> Made<'_, T, B> {
    /// The determinant of A. If pivots were perturbed it is that of another matrix, which is an error.
    fn determinant(&self, what: &str) -> Result<Determinant<T>> {
        match self.factors.perturbed() {
            Some(0) | None => self.factors.determinant(),
            Some(count) => Err(Error::Unsupported(format!(
                "{what}: {count} pivots were perturbed, so it is not that of A"
            ))),
        }
    }
}

impl<T: Scalar, B: DirectBackend> OnDevice<T, B> {
    /// The sign of the determinant of A, a number of magnitude 1, and the natural logarithm of its magnitude, which
    /// does not overflow. Factorises if there are no factors yet.
    ///
    /// # Errors
    /// If every kind of factorisation fails, pivots were perturbed, the library does not tell it, or the device fails.
    pub fn log_determinant(&mut self) -> Result<(T, f64)> {
        let found = self.made()?.determinant("the determinant")?;
        Ok((found.sign, found.logarithm))
    }

    /// The numbers of positive and of negative eigenvalues of a Hermitian A, by Sylvester's law from the pivots.
    /// Factorises if there are no factors yet.
    ///
    /// The factors are those of A + E with rounding errors E. An eigenvalue changes its sign on the way from A + E to A
    /// only if E (A + E)^-1 has an eigenvalue of at least 1, and then steps of refinement, which multiply the residual
    /// by it, do not converge. So they must converge for a random residual.
    ///
    /// # Errors
    /// As [`OnDevice::log_determinant`], if A is not Hermitian, and if rounding may have changed the sign of an
    /// eigenvalue.
    pub fn inertia(&mut self) -> Result<(usize, usize)> {
        let n = self.matrix().rows();
        let made = self.made()?;
        let Some(negative): Option<usize> = made.determinant("the inertia")?.negative else {
            return Err(Error::Unsupported("the inertia of a matrix that is not Hermitian".into()));
        };
        let mut random = Random::new(1);
        let start: Vec<T> = (0..n).map(|_| T::from_f64(random.between(-1.0, 1.0))).collect();
        let mut r = made.backend.upload(start)?;
        let (mut d, mut left) = (made.backend.zeros(n)?, made.backend.zeros(n)?);
        let mut size = length(made.backend, &r)?;
        for _ in 0..CONTRACTIONS {
            apply(made.backend, made.factors, made.prepared, 1, &r, &mut d)?;
            made.backend.csr_residual(made.a.parts(), T::one(), &r, &d, &mut left)?;
            let reached = length(made.backend, &left)?;
            if reached.is_nan() || reached > CONTRACTED * size {
                let why = "the inertia, because an eigenvalue may be zero up to rounding";
                return Err(Error::Unsupported(why.into()));
            }
            if reached == 0.0 {
                break;
            }
            // The next step starts from the direction of this residual, at a size where nothing underflows.
            made.backend.axpby(T::from_f64(1.0 / reached), &left, T::default(), &mut r)?;
            size = 1.0;
        }
        Ok((n.saturating_sub(negative), negative))
    }
}
