//! How a solver is built from its settings and a matrix.

use super::builder::Builder;
use super::device::{Device, Opened};
use super::engine::{Boxed, Held};
use super::watch::Canceller;
use super::{Solvable, Solver, SolverBackend};
use crate::backend::Host;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

impl Builder {
    /// A solver for a matrix on the host: `Csr`, which is moved into it, or `&Csr`, which is copied.
    ///
    /// # Errors
    /// If settings are invalid, if the matrix is not square or no method suits it, if the named device is not
    /// available, and if memory runs out.
    pub fn build<T: Solvable>(&self, a: impl MatrixSource<T>) -> Result<Solver<T>> {
        self.check()?;
        let (rows, _, entries) = a.size();
        let too_small = match self.device {
            Device::Auto => Device::too_small(rows, entries, self.right_hand_sides),
            _ => None,
        };
        let opened = match too_small {
            Some(reason) => Opened::Cpu(Some(reason)),
            None => self.device.open()?,
        };
        match opened {
            Opened::Cpu(reason) => {
                let reason = reason.unwrap_or_else(|| "as asked for".into());
                self.on(&Host, a.place(&Host)?, Some(reason))
            }
            #[cfg(feature = "cuda")]
            Opened::Cuda(cuda) => {
                let _compiling = cuda.compile_ahead(self.kernels::<T>());
                self.on(&cuda, a.place(&cuda)?, None)
            }
        }
    }

    /// A solver for a matrix in the memory of a backend, which is where it computes. [`Builder::device`] is ignored.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn build_on<T: Solvable, B: SolverBackend>(&self, backend: &B, a: Csr<T, B>) -> Result<Solver<T>> {
        self.check()?;
        self.on(backend, a, self.placed_because.clone())
    }

    fn on<T: Solvable, B: SolverBackend>(
        &self,
        backend: &B,
        a: Csr<T, B>,
        why: Option<String>,
    ) -> Result<Solver<T>> {
        let held: Box<dyn Held<T>> = Box::new(Boxed(backend.solver(a, self, why)?));
        Ok(Solver { held, canceller: Canceller::default(), time_limit: self.time_limit })
    }
}

/// A matrix on the host that a solver can be built from: `Csr` or `&Csr`.
pub trait MatrixSource<T: Scalar>: sealed::Sealed {
    /// Rows, columns, stored entries.
    #[doc(hidden)]
    fn size(&self) -> (usize, usize, usize);

    /// Moves or copies the matrix to the memory of a backend.
    #[doc(hidden)]
    fn place<B: SolverBackend>(self, backend: &B) -> Result<Csr<T, B>>;
}

mod sealed {
    pub trait Sealed {}
    impl<T: crate::scalar::Scalar> Sealed for crate::matrix::Csr<T> {}
    impl<T: crate::scalar::Scalar> Sealed for &crate::matrix::Csr<T> {}
}

impl<T: Scalar> MatrixSource<T> for Csr<T> {
    fn size(&self) -> (usize, usize, usize) {
        (self.rows(), self.columns(), self.nonzeros())
    }

    fn place<B: SolverBackend>(self, backend: &B) -> Result<Csr<T, B>> {
        self.into_backend(backend)
    }
}

impl<T: Scalar> MatrixSource<T> for &Csr<T> {
    fn size(&self) -> (usize, usize, usize) {
        (self.rows(), self.columns(), self.nonzeros())
    }

    fn place<B: SolverBackend>(self, backend: &B) -> Result<Csr<T, B>> {
        self.to_backend(backend)
    }
}
