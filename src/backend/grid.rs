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

use super::{Backend, ChebyshevStep, CsrParts, DIA_SECTION, GridStencil, PreconditionSteps};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The maximum number of neighbours of a point, including itself.
pub const NEIGHBOURS: usize = 27;

/// The points of a box: point (x, y, z) has the number x + nx (y + ny z).
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

    /// Returns the grid of boxes of two points per side. The last box along an axis may have one.
    #[must_use]
    pub fn coarser(self) -> Self {
        Self { sizes: self.sizes.map(|size| size.div_ceil(2)) }
    }

    /// x, y and z of a point.
    pub(crate) fn place(self, point: usize) -> [usize; 3] {
        let [nx, ny, _] = self.sizes;
        [point % nx, point / nx % ny, point / nx / ny]
    }

    /// The number of the point at x, y and z.
    pub(crate) fn number(self, [x, y, z]: [usize; 3]) -> usize {
        let [nx, ny, _] = self.sizes;
        x + nx * (y + ny * z)
    }

    /// Returns whether there is a point at x, y and z.
    pub(crate) fn has(self, place: [usize; 3]) -> bool {
        (0..3).all(|axis| place[axis] < self.sizes[axis])
    }

    /// Returns the difference between the numbers of two points at displacement (dx, dy, dz).
    pub(crate) fn distance(self, [dx, dy, dz]: [i64; 3]) -> i64 {
        let [nx, ny, _] = self.sizes.map(|size| size as i64);
        dx + nx * (dy + ny * dz)
    }

    /// The neighbour of a point, if it exists.
    pub(crate) fn neighbour(self, place: [usize; 3], by: [i64; 3]) -> Option<[usize; 3]> {
        let mut other = place;
        for axis in 0..3 {
            other[axis] = other[axis].checked_add_signed(by[axis] as isize)?;
        }
        self.has(other).then_some(other)
    }

    /// Returns the displacement from a point to another if they are neighbours.
    pub(crate) fn between(self, from: usize, to: usize) -> Option<[i64; 3]> {
        let (from, to) = (self.place(from), self.place(to));
        let by = [0, 1, 2].map(|axis| to[axis] as i64 - from[axis] as i64);
        by.iter().all(|d| d.abs() <= 1).then_some(by)
    }

    /// Counts the pairs of a point and one of its neighbours on the grid.
    pub(crate) fn pairs(self, neighbours: Neighbours) -> usize {
        let with_neighbour = |by: [i64; 3]| -> usize {
            (0..3).map(|axis| self.sizes[axis].saturating_sub(by[axis].unsigned_abs() as usize)).product()
        };
        neighbours.iter().map(with_neighbour).sum()
    }
}

/// A set of neighbours, as a bit mask: bit (dx + 1) + 3 (dy + 1) + 9 (dz + 1) is the neighbour at displacement (dx, dy,
/// dz). In the order of bits, the numbers of a point's neighbours ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours(pub u32);

impl Neighbours {
    /// All neighbours in three dimensions, and the point itself.
    pub const ALL: Self = Self((1 << NEIGHBOURS) - 1);

    /// All neighbours in a plane of constant z, and the point itself.
    pub const IN_PLANE: Self = Self(0b111_111_111 << 9);

    /// The number of neighbours.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The displacements of these neighbours, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = [i64; 3]> {
        let all = (0..NEIGHBOURS as u32).filter(move |bit| self.0 >> bit & 1 == 1);
        all.map(|bit| [bit % 3, bit / 3 % 3, bit / 9].map(|d| i64::from(d) - 1))
    }

    /// Adds the neighbour at displacement (dx, dy, dz).
    #[must_use]
    pub fn with(self, by: [i64; 3]) -> Self {
        Self(self.0 | 1 << Self::bit(by))
    }

    /// The index in [`Neighbours::iter`] of the neighbour at displacement (dx, dy, dz), if it is included.
    pub(crate) fn number(self, by: [i64; 3]) -> Option<usize> {
        let bit = Self::bit(by);
        (self.0 >> bit & 1 == 1).then(|| (self.0 & ((1 << bit) - 1)).count_ones() as usize)
    }

    fn bit([dx, dy, dz]: [i64; 3]) -> u32 {
        ((dx + 1) + 3 * (dy + 1) + 9 * (dz + 1)) as u32
    }
}

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

/// The number of stored values of a matrix on a grid.
pub fn grid_values(grid: Grid, neighbours: Neighbours) -> usize {
    grid.points().next_multiple_of(DIA_SECTION) * neighbours.count()
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

/// Computes P^T A P for boxes of 2 x 2 x 2 points: sums of A's entries over the points of a box.
pub(crate) struct BoxSums {
    away: Vec<[i64; 3]>,
    /// For each of the 8 positions in a box and each neighbour of a point there: the number of the neighbouring box
    /// that contains this neighbour.
    boxes_of: [[usize; NEIGHBOURS]; 8],
}

impl BoxSums {
    /// The neighbours of a box are those of its points, and all that are nearer along an axis.
    pub(crate) fn new(neighbours: Neighbours) -> Self {
        let away: Vec<[i64; 3]> = neighbours.iter().collect();
        let mut boxes_of = [[0; NEIGHBOURS]; 8];
        for (within, boxes) in boxes_of.iter_mut().enumerate() {
            for (number, by) in boxes.iter_mut().zip(&away) {
                let at = [within & 1, within >> 1 & 1, within >> 2].map(|bit| bit as i64);
                let to = [0, 1, 2].map(|axis| (at[axis] + by[axis]).div_euclid(2));
                *number = neighbours.number(to).expect("neighbours of a box are those of its points");
            }
        }
        Self { away, boxes_of }
    }

    /// Returns the entries of a box's row. `row(point)(k)` is the entry of a point of `grid` for its neighbour k, or
    /// zero if there is none. Also returns false if an entry is not finite, or belongs to a neighbour outside of the
    /// grid.
    pub(crate) fn row<T: Scalar, V: Fn(usize) -> T>(
        &self,
        grid: Grid,
        place: [usize; 3],
        row: impl Fn([usize; 3]) -> V,
    ) -> ([T; NEIGHBOURS], bool) {
        let (mut sums, mut fits) = ([T::zero(); NEIGHBOURS], true);
        for (within, boxes) in self.boxes_of.iter().enumerate() {
            let point = [0, 1, 2].map(|axis| 2 * place[axis] + (within >> axis & 1));
            if !grid.has(point) {
                continue;
            }
            let value_of = row(point);
            for (k, &by) in self.away.iter().enumerate() {
                let value = value_of(k);
                if value == T::zero() {
                    continue;
                }
                fits &= value.is_finite() && grid.neighbour(point, by).is_some();
                sums[boxes[k]] += value;
            }
        }
        (sums, fits)
    }
}

/// Returns bit masks of the axes along which a displacement is not zero, and along which it is negative.
pub(crate) fn bits_of(step: [i64; 3]) -> (usize, usize) {
    let bits = |of: fn(i64) -> bool| (0..3).map(|axis| usize::from(of(step[axis])) << axis).sum();
    (bits(|d| d != 0), bits(|d| d < 0))
}

/// For each set `odd` of axes, the number of the first weight of a point whose coordinates are odd along these axes
/// (bit 0 for x). The point has one weight for each coarse point that it interpolates from, and these weights are
/// consecutive.
pub(crate) const FIRST_WEIGHT: [usize; 8] = [0, 0, 2, 4, 8, 10, 14, 18];

/// The number of weights of a box in two dimensions, and in three.
const WEIGHTS: [usize; 2] = [8, 26];

/// Returns the number of the weight between a point with odd coordinates along `odd` and one of the coarse points
/// around it: along the axes in `corner` (a subset of `odd`) that coarse point is above the point, along the others
/// below.
pub(crate) fn weight_number(odd: usize, corner: usize) -> usize {
    let bits = (0..3).filter(|bit| odd >> bit & 1 == 1).enumerate();
    FIRST_WEIGHT[odd] + bits.map(|(place, bit)| (corner >> bit & 1) << place).sum::<usize>()
}

/// Returns the number of weights of a grid. A box belongs to its point with even coordinates, point I of the next
/// level. Weight `number` of this box is at `number` times the number of points of the next level, plus I.
pub fn grid_weights(grid: Grid) -> usize {
    WEIGHTS[usize::from(grid.sizes[2] > 1)] * grid.coarser().points()
}

/// Returns an error if the number of weights is not [`grid_weights`].
pub(crate) fn check_weights(grid: Grid, weights: usize) -> Result<()> {
    Error::check_dimension("weights of a grid", grid_weights(grid), weights)
}

/// The neighbours on the next level if the prolongation interpolates: all, or all in the plane.
pub(crate) fn interpolated(grid: Grid) -> Neighbours {
    if grid.sizes[2] > 1 { Neighbours::ALL } else { Neighbours::IN_PLANE }
}

/// To get the weights of a point, its entries are divided by its diagonal entry plus the entries that are added to it.
/// If that sum is less than this fraction of the sum of magnitudes of the other entries, they are divided by the latter
/// instead, so that weights stay bounded.
pub(crate) const LEAST_LEFT: f64 = 0.25;

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

    /// Computes the weights of the interpolating prolongation for a matrix on a grid (layout: [`grid_weights`]).
    /// `unfit[0]` is as for [`GridSteps::grid_coarser`].
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
