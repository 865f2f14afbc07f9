//! Matrices on grids of points: the steps between two levels of multigrid where the next level has a point for each box
//! of 2 x 2 x 2 points.

use super::{Backend, DIA_SECTION};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// Neighbours that a point can have, itself included.
pub const NEIGHBOURS: usize = 27;

/// Points of a box: point (x, y, z) has the number x + nx (y + ny z).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// nx, ny and nz.
    pub sizes: [usize; 3],
}

impl Grid {
    /// Number of points.
    pub fn points(self) -> usize {
        self.sizes.iter().product()
    }

    /// The grid of boxes of two points a side; a box at an end may have one.
    #[must_use]
    pub fn coarser(self) -> Self {
        Self { sizes: self.sizes.map(|size| size.div_ceil(2)) }
    }

    /// x, y and z of a point.
    pub(crate) fn place(self, point: usize) -> [usize; 3] {
        let [nx, ny, _] = self.sizes;
        [point % nx, point / nx % ny, point / nx / ny]
    }

    /// How far apart the numbers of points are that are (dx, dy, dz) apart.
    pub(crate) fn distance(self, [dx, dy, dz]: [i64; 3]) -> i64 {
        let [nx, ny, _] = self.sizes.map(|size| size as i64);
        dx + nx * (dy + ny * dz)
    }

    /// The neighbour of a point, where there is one.
    pub(crate) fn neighbour(self, place: [usize; 3], by: [i64; 3]) -> Option<[usize; 3]> {
        let mut other = place;
        for axis in 0..3 {
            other[axis] = other[axis].checked_add_signed(by[axis] as isize)?;
            if other[axis] >= self.sizes[axis] {
                return None;
            }
        }
        Some(other)
    }
}

/// To which neighbours points are coupled: bit (dx + 1) + 3 (dy + 1) + 9 (dz + 1) stands for the one that is (dx, dy,
/// dz) away. In this order the numbers of a point's neighbours ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours(pub u32);

impl Neighbours {
    /// How many there are.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// How far away each is, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = [i64; 3]> {
        let all = (0..NEIGHBOURS as u32).filter(move |bit| self.0 >> bit & 1 == 1);
        all.map(|bit| [bit % 3, bit / 3 % 3, bit / 9].map(|d| i64::from(d) - 1))
    }

    /// With the one that is (dx, dy, dz) away.
    #[must_use]
    pub fn with(self, by: [i64; 3]) -> Self {
        Self(self.0 | 1 << Self::bit(by))
    }

    /// The place in [`Neighbours::iter`] of the one that is (dx, dy, dz) away, if it is there.
    pub(crate) fn number(self, by: [i64; 3]) -> Option<usize> {
        let bit = Self::bit(by);
        (self.0 >> bit & 1 == 1).then(|| (self.0 & ((1 << bit) - 1)).count_ones() as usize)
    }

    fn bit([dx, dy, dz]: [i64; 3]) -> u32 {
        ((dx + 1) + 3 * (dy + 1) + 9 * (dz + 1)) as u32
    }
}

/// A matrix that couples each point to neighbours. Its entries lie as those of all diagonals of [`super::DiaParts`], of
/// which diagonal k is that of neighbour k.
pub struct GridMatrix<'a, T: Scalar, B: Backend> {
    /// The points.
    pub grid: Grid,
    /// The neighbours.
    pub neighbours: Neighbours,
    /// An entry for each neighbour of each point, and [`super::no_entry`] where there is none.
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

/// Values that a matrix on a grid is stored in.
pub fn grid_values(grid: Grid, neighbours: Neighbours) -> usize {
    grid.points().next_multiple_of(DIA_SECTION) * neighbours.count()
}

impl<T: Scalar, B: Backend> GridMatrix<'_, T, B> {
    /// Refuses another number of values.
    pub(crate) fn check(&self) -> Result<()> {
        Error::check_dimension(
            "values of a matrix on a grid",
            grid_values(self.grid, self.neighbours),
            B::len(self.values),
        )
    }
}

/// Steps of multigrid on grids. P takes a value of a box to each of its points. Nothing here waits for the device, and
/// everything is deterministic.
pub trait GridSteps: Backend {
    /// P^T A P on the grid of boxes, with the same neighbours, into `values` (layout: [`GridMatrix`]). `unfit[0]`
    /// becomes 1 where an entry couples a point to one that is no neighbour, or is infinite or NaN, and stays as it is
    /// otherwise.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn grid_coarser<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        values: &mut Self::Slice<T>,
        unfit: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The reciprocals of the sums of magnitudes of rows; zero where that is no number.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn grid_scales<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        scales: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// `coarse` = P^T `fine`: the sum over each box.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn grid_restrict<T: Scalar>(
        &self,
        grid: Grid,
        fine: &Self::Slice<T>,
        coarse: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `fine` += P `coarse`.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn grid_prolong<T: Scalar>(
        &self,
        grid: Grid,
        coarse: &Self::Slice<T>,
        fine: &mut Self::Slice<T>,
    ) -> Result<()>;
}
