//! The points of a grid, the neighbours that a matrix couples them to, and the places of the weights of interpolation.

use super::DIA_SECTION;
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

/// The number of stored values of a matrix on a grid.
pub fn grid_values(grid: Grid, neighbours: Neighbours) -> usize {
    grid.points().next_multiple_of(DIA_SECTION) * neighbours.count()
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
