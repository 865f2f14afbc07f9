//! Solvers for matrices given as arrays. New values are given in the order of these arrays.

use super::{Builder, Solvable, Solver};
use crate::assemble::{Arrays, Assemble, Kept, Layout, check_pattern, fingerprint_of};
#[cfg(feature = "cuda")]
use crate::backend::{Backend, Cuda};
use crate::backend::{Conversions, Host};
use crate::error::{Error, Result};
use crate::matrix::Csr;

/// A [`Solver`] with the map from the caller's values to those of its matrix.
#[derive(Debug)]
pub struct ArraySolver<T: Solvable> {
    /// The solver.
    pub solver: Solver<T>,
    order: Order<T>,
    /// The fingerprint of the arrays that it was built from, if these were on the host and values will be replaced.
    given: Option<u64>,
    /// The fingerprint of the matrix that these arrays give, once a matrix was compared with it.
    pattern: Option<u64>,
}

/// The order of the caller's values.
#[derive(Debug)]
enum Order<T: Solvable> {
    /// The order of the solver's matrix, or an order that need not be known because values are not replaced.
    Own,
    /// Another order, with the map on the host.
    Host(Box<Kept<T, Host>>),
    /// Another order, with the map on the solver's GPU.
    #[cfg(feature = "cuda")]
    Cuda(Cuda, Box<Kept<T, Cuda>>),
}

impl Builder {
    /// A solver for a matrix given by arrays on the host, which computes on [`Builder::device`]. `keep` says that
    /// values will be replaced by [`ArraySolver::update`].
    ///
    /// # Errors
    /// If the arrays are not those of a matrix, and as [`Builder::build`].
    pub fn build_arrays<T: Solvable>(
        &self,
        arrays: &Arrays<'_, T, Host>,
        keep: bool,
    ) -> Result<ArraySolver<T>> {
        let (a, kept) = arrays.build(&Host, keep)?;
        let given = keep.then(|| arrays.fingerprint());
        let pattern = given.filter(|_| kept.is_none() && arrays.layout == Layout::Rows);
        let order = kept.map_or(Order::Own, |kept| Order::Host(Box::new(kept)));
        Ok(ArraySolver { solver: self.build(a)?, order, given, pattern })
    }

    /// [`Builder::build_arrays`] for arrays on a GPU. The solver computes on that GPU. The arrays have been read when
    /// this returns.
    ///
    /// # Errors
    /// As [`Builder::build_arrays`].
    #[cfg(feature = "cuda")]
    pub fn build_arrays_on<T: Solvable>(
        &self,
        cuda: &Cuda,
        arrays: &Arrays<'_, T, Cuda>,
        keep: bool,
    ) -> Result<ArraySolver<T>> {
        let _compiling = cuda.compile_ahead(self.kernels::<T>());
        let (a, kept) = arrays.build(cuda, keep)?;
        cuda.synchronize()?;
        let order = kept.map_or(Order::Own, |kept| Order::Cuda(*cuda, Box::new(kept)));
        Ok(ArraySolver { solver: self.build_on(cuda, a)?, order, given: None, pattern: None })
    }
}

impl<T: Solvable> ArraySolver<T> {
    /// Replaces all values; the new ones are in the order of the arrays ([`Solver::update`]).
    ///
    /// # Errors
    /// As [`Solver::update`].
    pub fn update(&mut self, values: &[T]) -> Result<()> {
        match &mut self.order {
            Order::Own => self.solver.update(values),
            Order::Host(kept) => {
                let (a, assembly) = &mut **kept;
                assembly.update(&Host, values, a)?;
                self.solver.update(a.parts().values)
            }
            #[cfg(feature = "cuda")]
            Order::Cuda(cuda, _) => {
                let (cuda, values) = (*cuda, cuda.upload(values.to_vec())?);
                self.update_on(&cuda, &values)
            }
        }
    }

    /// [`ArraySolver::update`] with values on the GPU that the solver computes on.
    ///
    /// # Errors
    /// As [`Solver::update_on`].
    #[cfg(feature = "cuda")]
    pub fn update_on(&mut self, cuda: &Cuda, values: &<Cuda as Backend>::Slice<T>) -> Result<()> {
        match &mut self.order {
            Order::Own => self.solver.update_on(cuda, values),
            Order::Host(_) => self.update(&cuda.download(values)?),
            Order::Cuda(_, kept) => {
                let (a, assembly) = &mut **kept;
                assembly.update(cuda, values, a)?;
                self.solver.update_on(cuda, a.parts().values)
            }
        }
    }
    /// Takes the values of a matrix with the same pattern. Rows need not be sorted, entries may be given twice, and the
    /// layout may differ from that of the arrays that this was built from.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] with the first position that only one of the two matrices has; nothing has changed
    /// then. Also as [`Arrays::build`] and [`Solver::update`].
    pub fn update_matrix(&mut self, arrays: &Arrays<'_, T, Host>) -> Result<()> {
        if self.given.is_some_and(|given| given == arrays.fingerprint()) {
            return self.update(arrays.values);
        }
        let a = self.of_same_pattern(&Host, arrays)?;
        self.solver.update(a.parts().values)
    }

    /// A solver for A^T ([`Solver::transposed`]), whose new values are those of A^T in rows with ascending columns.
    ///
    /// # Errors
    /// As [`Solver::transposed`].
    pub fn transposed(&self) -> Result<Self> {
        Ok(Self { solver: self.solver.transposed()?, order: Order::Own, given: None, pattern: None })
    }

    /// [`ArraySolver::update_matrix`] with a matrix on the GPU that the solver computes on.
    ///
    /// # Errors
    /// As [`ArraySolver::update_matrix`].
    #[cfg(feature = "cuda")]
    pub fn update_matrix_on(&mut self, cuda: &Cuda, arrays: &Arrays<'_, T, Cuda>) -> Result<()> {
        let a = self.of_same_pattern(cuda, arrays)?;
        self.solver.update_on(cuda, a.parts().values)
    }

    /// Builds the matrix of these arrays, and checks that it has the pattern of the solver's matrix.
    fn of_same_pattern<B: Assemble + Conversions>(
        &mut self,
        backend: &B,
        arrays: &Arrays<'_, T, B>,
    ) -> Result<Csr<T, B>> {
        let own = (self.solver.rows(), self.solver.columns());
        if arrays.shape != own {
            let (given, own) =
                (format!("{} x {}", arrays.shape.0, arrays.shape.1), format!("{} x {}", own.0, own.1));
            return Err(Error::InvalidMatrix(format!(
                "the new matrix has another shape: {given} instead of {own}"
            )));
        }
        let a = arrays.to_csr(backend)?;
        let new = a.to_host(backend)?;
        let now = fingerprint_of(&new);
        if self.pattern != Some(now) {
            let own = self.solver.pattern()?;
            self.pattern = Some(fingerprint_of(&own));
            if self.pattern != Some(now) {
                check_pattern(&own, &new)?;
            }
        }
        Ok(a)
    }
}
