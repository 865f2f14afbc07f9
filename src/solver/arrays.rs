//! Solvers of matrices that are a caller's arrays: new values come in the order of those arrays.

use super::{Builder, Solvable, Solver};
use crate::assemble::{Arrays, Kept};
use crate::backend::Host;
#[cfg(feature = "cuda")]
use crate::backend::{Backend, Cuda};
use crate::error::Result;

/// A [`Solver`] with the way of new values into it.
#[derive(Debug)]
pub struct ArraySolver<T: Solvable> {
    /// The solver.
    pub solver: Solver<T>,
    order: Order<T>,
}

/// In which order the caller's values are.
#[derive(Debug)]
enum Order<T: Solvable> {
    /// That of the solver's matrix, or there will be no new ones.
    Own,
    /// Another one, with the map on the host.
    Host(Box<Kept<T, Host>>),
    /// Another one, with the map on the solver's GPU.
    #[cfg(feature = "cuda")]
    Cuda(Cuda, Box<Kept<T, Cuda>>),
}

impl Builder {
    /// A solver for a matrix of arrays on the host, which computes where [`Builder::device`] says. `keep`: values will
    /// be replaced by [`ArraySolver::update`].
    ///
    /// # Errors
    /// On arrays that no matrix has, and as [`Builder::build`].
    pub fn build_arrays<T: Solvable>(
        &self,
        arrays: &Arrays<'_, T, Host>,
        keep: bool,
    ) -> Result<ArraySolver<T>> {
        let (a, kept) = arrays.build(&Host, keep)?;
        Ok(ArraySolver {
            solver: self.build(a)?,
            order: kept.map_or(Order::Own, |kept| Order::Host(Box::new(kept))),
        })
    }

    /// The same of arrays on a GPU, which is where the solver computes. The arrays have been read when this returns.
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
        Ok(ArraySolver { solver: self.build_on(cuda, a)?, order })
    }
}

impl<T: Solvable> ArraySolver<T> {
    /// Takes new values over, in the order and number of the arrays ([`Solver::update`]).
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

    /// The same with values on the GPU that the solver computes on.
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
}
