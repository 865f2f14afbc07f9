//! The matrix of a level of grids.

use super::MultigridBackend;
use super::cycle::Stored;
use super::options::LevelFacts;
use crate::backend::{
    Backend, ChebyshevStep, Grid, GridMatrix, GridStencil, GridSteps, Neighbours, PreconditionSteps,
    grid_values,
};
use crate::error::{Error, Result};
use crate::matrix::Dia;
use crate::operator::{ChebyshevProduct, LinearOperator};
use crate::scalar::Scalar;

/// How the matrix of a level is held.
pub(super) enum OnGrid<T: Scalar, B: MultigridBackend> {
    /// As a stencil, where rows are alike but for the sides.
    Stencil(GridStencil<T>),
    /// By diagonals.
    Diagonals(Dia<T, B>),
}

/// The scales of a level, and the matrix of the next.
type Below<T, B> = (<B as Backend>::Vec<<T as Scalar>::Real>, OnGrid<T, B>);

impl<T: Scalar, B: MultigridBackend> OnGrid<T, B> {
    pub(super) fn facts(&self) -> LevelFacts {
        match self {
            Self::Stencil(a) => LevelFacts { rows: a.grid().points(), entries: a.entries() },
            Self::Diagonals(a) => LevelFacts { rows: a.rows(), entries: a.nonzeros() },
        }
    }

    /// All entries on the host, as they lie in a [`GridMatrix`].
    pub(super) fn values(&self, backend: &B) -> Result<Vec<T>> {
        match self {
            Self::Stencil(a) => Ok(a.all_values()),
            Self::Diagonals(a) => backend.download(a.parts().values),
        }
    }

    /// The reciprocals of the sums of magnitudes of rows, and the matrix of the boxes. `unfit[0]` is told as by
    /// [`GridSteps::grid_coarser`].
    pub(super) fn scales_and_coarser(
        &self,
        backend: &B,
        (grid, neighbours): (Grid, Neighbours),
        unfit: &mut B::Slice<u32>,
    ) -> Result<Option<Below<T, B>>> {
        match self {
            Self::Stencil(a) => {
                let Some(coarser) = a.coarser() else { return Ok(None) };
                Ok(Some((backend.upload(a.scales())?, Self::Stencil(coarser))))
            }
            Self::Diagonals(a) => {
                let here = GridMatrix { grid, neighbours, values: a.parts().values };
                let mut scales = backend.buffer(grid.points())?;
                backend.grid_scales(here, &mut scales)?;
                Ok(Some((scales, Self::Diagonals(boxes(backend, here, unfit)?))))
            }
        }
    }

    pub(super) fn into_stored(self) -> Stored<T, B> {
        match self {
            Self::Stencil(a) => Stored::Stencil(a),
            Self::Diagonals(a) => Stored::Diagonals(a),
        }
    }
}

/// The matrix of the boxes.
pub(super) fn boxes<T: Scalar, B: MultigridBackend>(
    backend: &B,
    here: GridMatrix<'_, T, B>,
    unfit: &mut B::Slice<u32>,
) -> Result<Dia<T, B>> {
    let boxes = here.grid.coarser();
    let mut values = backend.buffer(grid_values(boxes, here.neighbours))?;
    backend.grid_coarser(here, &mut values, unfit)?;
    Dia::on_grid(backend, boxes, here.neighbours, values)
}

impl<T: Scalar, B: GridSteps> LinearOperator<T, B> for GridStencil<T> {
    fn rows(&self) -> usize {
        self.grid().points()
    }

    fn columns(&self) -> usize {
        self.grid().points()
    }

    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
        Error::check_dimension("length of x", self.grid().points(), B::len(x))?;
        Error::check_dimension("length of y", self.grid().points(), B::len(y))?;
        backend.grid_stencil_product(self, x, y)
    }

    fn chebyshev_product(&self) -> Option<&dyn ChebyshevProduct<T, B>>
    where
        B: PreconditionSteps,
    {
        Some(self)
    }

    fn bytes(&self) -> usize {
        self.storage_bytes() + 2 * self.grid().points() * size_of::<T>()
    }
}

impl<T: Scalar, B: GridSteps + PreconditionSteps> ChebyshevProduct<T, B> for GridStencil<T> {
    fn chebyshev_step(&self, backend: &B, step: ChebyshevStep<'_, T, B>, z: &B::Slice<T>) -> Result<bool> {
        Error::check_dimension("length of z", self.grid().points(), B::len(z))?;
        step.check(self.grid().points())?;
        backend.grid_stencil_chebyshev(self, step, z)?;
        Ok(true)
    }
}
