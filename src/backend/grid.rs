//! Matrices on grids, and the steps between two levels of geometric multigrid. Each box of 2 x 2 x 2 points becomes a
//! point of the next level.
//!
//! There are two prolongations. The first is constant on each box. The second interpolates between the points whose
//! coordinates are all even; these are the points of the next level:
//!
//! ```text
//!     0 -- x -- 0 -- x --      0  a point of the next level: keeps its value
//!     |    |    |    |         x  between two of them along x, y  along y
//!     y -- c -- y -- c --      c  between four (in space there are points between eight too)
//!     |    |    |    |
//! ```
//!
//! The weights of the second come from the matrix. A point between two others along x gets the value for which its row
//! of A x is zero, with the row's entries first summed over all points that have the same x. A point between four or
//! eight others gets the value for which its row is zero, given the values of its neighbours. The weights therefore
//! adapt to jumps of coefficients (Alcouffe, Brandt, Dendy and Painter, SIAM J. Sci. Stat. Comput. 2, 1981; Dendy,
//! Black box multigrid, J. Comput. Phys. 48, 1982).

use super::{
    Backend, ChebyshevStep, CsrParts, DIA_SECTION, Grid, GridStencil, Neighbours, PreconditionSteps,
    grid_values,
};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// A matrix with entries only between neighbours on a grid. Its values have the layout of a [`super::DiaParts`] that
/// stores all diagonals, and diagonal k is that of neighbour k.
pub struct GridMatrix<'a, T: Scalar, B: Backend> {
    /// The points.
    pub grid: Grid,
    /// The neighbours.
    pub neighbours: Neighbours,
    /// An entry for each neighbour of each point; [`super::no_entry`] if the matrix has none.
    pub values: &'a B::Slice<T>,
}

impl<T: Scalar, B: Backend> Clone for GridMatrix<'_, T, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Scalar, B: Backend> Copy for GridMatrix<'_, T, B> {}

impl<T: Scalar, B: Backend> std::fmt::Debug for GridMatrix<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GridMatrix: {:?}, {} neighbours", self.grid, self.neighbours.count())
    }
}

impl<T: Scalar, B: Backend> GridMatrix<'_, T, B> {
    /// Returns an error if the number of values is not that of the grid and its neighbours.
    pub(crate) fn check(&self) -> Result<()> {
        Error::check_dimension(
            "values of a matrix on a grid",
            grid_values(self.grid, self.neighbours),
            B::len(self.values),
        )
    }
}

/// Which rows of a matrix on a grid are copied to another matrix with the same neighbours ([`GridSteps::grid_rows`]).
#[derive(Debug, Clone, Copy)]
pub struct RowsOnGrid {
    /// The neighbours to which points are coupled.
    pub neighbours: Neighbours,
    /// The index of the first row.
    pub first: usize,
    /// The index of that row in the other matrix.
    pub place: usize,
    /// The number of consecutive rows.
    pub rows: usize,
    /// The grid of the other matrix if entries for points outside of it must be omitted.
    pub within: Option<Grid>,
}

impl RowsOnGrid {
    /// Returns an error if either matrix has too few values for these rows.
    pub(crate) fn check(&self, from: usize, to: usize) -> Result<()> {
        let least = |end: usize| end.next_multiple_of(DIA_SECTION) * self.neighbours.count();
        if from < least(self.first + self.rows) || to < least(self.place + self.rows) {
            return Err(Error::InvalidArgument(format!(
                "{} rows from {} on of a matrix of {from} values, as rows from {} on of one of {to}",
                self.rows, self.first, self.place
            )));
        }
        match self.within {
            Some(grid) => Error::check_dimension("values", grid_values(grid, self.neighbours), to),
            None => Ok(()),
        }
    }
}

/// Steps of multigrid on grids. P is constant on boxes, or interpolates with weights. No step waits for the device, and
/// all are deterministic.
pub trait GridSteps: Backend {
    /// Computes P^T A P on the grid of boxes, for the P that is constant on boxes, with the same neighbours (layout of
    /// `values`: [`GridMatrix`]). Sets `unfit[0]` to 1 if an entry belongs to a point that is not a neighbour, or is
    /// infinite or NaN.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_coarser<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        values: &mut Self::Slice<T>,
        unfit: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `scales[i]` = 1 / the sum of magnitudes in row i, or zero if that is not finite.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_scales<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        scales: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// `coarse` = P^T `fine`: the sum over each box.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_restrict<T: Scalar>(
        &self,
        grid: Grid,
        fine: &Self::Slice<T>,
        coarse: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `fine` += P `coarse`.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_prolong<T: Scalar>(
        &self,
        grid: Grid,
        coarse: &Self::Slice<T>,
        fine: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Computes the weights of the interpolating prolongation for a matrix on a grid (layout:
    /// [`grid_weights`](super::grid_weights)). `unfit[0]` is as for [`GridSteps::grid_coarser`].
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_weights<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        weights: &mut Self::Slice<T>,
        unfit: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Computes P^H A P for the prolongation with these weights. The result has all neighbours, or all in the plane.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_interpolated<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        weights: &Self::Slice<T>,
        values: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `coarse` = P^H `fine` for the prolongation with these weights.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_restrict_weighted<T: Scalar>(
        &self,
        grid: Grid,
        weights: &Self::Slice<T>,
        fine: &Self::Slice<T>,
        coarse: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `fine` += P `coarse` for the prolongation with these weights.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn grid_prolong_weighted<T: Scalar>(
        &self,
        grid: Grid,
        weights: &Self::Slice<T>,
        coarse: &Self::Slice<T>,
        fine: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Copies rows of `from` to rows of `to`, entry by entry. The values of both have the layout of a [`GridMatrix`].
    ///
    /// # Errors
    /// If one of them has too few rows, or if the device fails.
    fn grid_rows<T: Scalar>(
        &self,
        which: RowsOnGrid,
        from: &Self::Slice<T>,
        to: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Returns the matrix as a [`GridStencil`] if its rows are equal except at the boundary of the grid. `None` if they
    /// are not, if an entry belongs to a point that is not a neighbour, or is infinite or NaN. Also `None`, as in the
    /// provided method, on a backend where products with all diagonals are equally fast.
    ///
    /// # Errors
    /// If the device fails.
    fn grid_stencil<T: Scalar>(
        &self,
        _a: CsrParts<'_, T, Self>,
        _grid: Grid,
        _neighbours: Neighbours,
    ) -> Result<Option<GridStencil<T>>> {
        Ok(None)
    }

    /// y = A x. The caller checks sizes, as for [`GridSteps::grid_stencil_chebyshev`].
    ///
    /// # Errors
    /// On a backend without stencils, or if the device fails.
    fn grid_stencil_product<T: Scalar>(
        &self,
        _a: &GridStencil<T>,
        _x: &Self::Slice<T>,
        _y: &mut Self::Slice<T>,
    ) -> Result<()> {
        Err(no_stencils())
    }

    /// A step of Chebyshev's iteration, fused with the product A z.
    ///
    /// # Errors
    /// As [`GridSteps::grid_stencil_product`].
    fn grid_stencil_chebyshev<T: Scalar>(
        &self,
        _a: &GridStencil<T>,
        _step: ChebyshevStep<'_, T, Self>,
        _z: &Self::Slice<T>,
    ) -> Result<()>
    where
        Self: PreconditionSteps,
    {
        Err(no_stencils())
    }
}

/// The error of a backend without stencils.
fn no_stencils() -> Error {
    Error::Unsupported("products with a stencil on a grid, on this backend".into())
}
