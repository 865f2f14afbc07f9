//! The matrix of a level on a grid.

use super::MultigridBackend;
use super::cycle::{Stored, Transfer};
use super::options::LevelFacts;
use crate::backend::{
    ChebyshevStep, Grid, GridMatrix, GridStencil, GridSteps, Neighbours, PreconditionSteps, grid_values,
    grid_weights, interpolated,
};
use crate::error::{Error, Result};
use crate::matrix::Dia;
use crate::operator::{ChebyshevProduct, LinearOperator};
use crate::scalar::Scalar;

/// The two ways to store the matrix of a level.
pub(super) enum OnGrid<T: Scalar, B: MultigridBackend> {
    /// A stencil, if rows are equal except at the boundary.
    Stencil(GridStencil<T>),
    /// All diagonals.
    Diagonals(Dia<T, B>),
}

/// The transfer and scaling of a level, and the next coarser matrix.
pub(super) struct Below<T: Scalar, B: MultigridBackend> {
    /// The reciprocals of the row sums of magnitudes.
    pub(super) scales: B::Vec<T::Real>,
    pub(super) transfer: Transfer<T, B>,
    pub(super) next: OnGrid<T, B>,
    /// The neighbours to which points of the next level are coupled.
    pub(super) neighbours: Neighbours,
}

impl<T: Scalar, B: MultigridBackend> OnGrid<T, B> {
    pub(super) fn facts(&self) -> LevelFacts {
        match self {
            Self::Stencil(a) => LevelFacts { rows: a.grid().points(), entries: a.entries() },
            Self::Diagonals(a) => LevelFacts { rows: a.rows(), entries: a.nonzeros() },
        }
    }

    /// All entries on the host, in the layout of a [`GridMatrix`].
    pub(super) fn values(&self, backend: &B) -> Result<Vec<T>> {
        match self {
            Self::Stencil(a) => Ok(a.all_values()),
            Self::Diagonals(a) => backend.download(a.parts().values),
        }
    }

    /// The transfer to the next level, and its matrix. If `between`, and unless this is a stencil, every other point
    /// becomes coarse and the others interpolate; else boxes become points. `unfit[0]` is set as by
    /// [`GridSteps::grid_coarser`].
    pub(super) fn below(
        &self,
        backend: &B,
        (grid, neighbours): (Grid, Neighbours),
        between: bool,
        unfit: &mut B::Slice<u32>,
    ) -> Result<Option<Below<T, B>>> {
        let a = match self {
            // With boxes the rows of the coarser matrix are again equal except at the boundary. Interpolation would
            // also change the rows next to the boundary.
            Self::Stencil(a) => {
                let (scales, transfer) = (backend.upload(a.scales())?, Transfer::Boxes(grid));
                let Some(next) = a.coarser() else { return Ok(None) };
                return Ok(Some(Below { scales, transfer, next: Self::Stencil(next), neighbours }));
            }
            Self::Diagonals(a) => a,
        };
        let here = GridMatrix { grid, neighbours, values: a.parts().values };
        let mut scales = backend.buffer(grid.points())?;
        backend.grid_scales(here, &mut scales)?;
        if !between {
            let next = Self::Diagonals(boxes(backend, here, unfit)?);
            return Ok(Some(Below { scales, transfer: Transfer::Boxes(grid), next, neighbours }));
        }
        let mut weights = backend.buffer(grid_weights(grid))?;
        backend.grid_weights(here, &mut weights, unfit)?;
        let next = Self::Diagonals(between_points(backend, here, &weights)?);
        let transfer = Transfer::Between { grid, weights };
        Ok(Some(Below { scales, transfer, next, neighbours: interpolated(grid) }))
    }

    pub(super) fn into_stored(self) -> Stored<T, B> {
        match self {
            Self::Stencil(a) => Stored::Stencil(a),
            Self::Diagonals(a) => Stored::Diagonals(a),
        }
    }
}

/// The coarser matrix for boxes.
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

/// The coarser matrix for interpolation with these weights.
pub(super) fn between_points<T: Scalar, B: MultigridBackend>(
    backend: &B,
    here: GridMatrix<'_, T, B>,
    weights: &B::Slice<T>,
) -> Result<Dia<T, B>> {
    let (coarse, neighbours) = (here.grid.coarser(), interpolated(here.grid));
    let mut values = backend.buffer(grid_values(coarse, neighbours))?;
    backend.grid_interpolated(here, weights, &mut values)?;
    Dia::on_grid(backend, coarse, neighbours, values)
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
