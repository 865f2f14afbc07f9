//! Stencils: matrices on grids whose rows are equal except at the boundary.

use super::{BoxSums, Grid, NEIGHBOURS, Neighbours, first_place, grid_values, no_entry};
use crate::backend::DIA_SECTION;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};

/// The number of kinds of points: along each axis a point is the first, an inner one or the last.
pub(crate) const KINDS: usize = 27;

/// A matrix on a grid whose rows are equal away from the boundary: the entries of a row depend only on whether its
/// point is the first, an inner one or the last along each axis. Stencils with constant coefficients are such matrices,
/// with any boundary condition, and so are their coarser matrices P^T A P for boxes, also on grids with odd sides. At
/// most 27 different rows are stored, so a product moves only its vectors.
///
/// ```text
/// | 3 -1  .  . |      first  .  3 -1
/// |-1  2 -1  . |      between -1  2 -1
/// | . -1  2 -1 |
/// | .  . -1  1 |      last   -1  1  .
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GridStencil<T: Scalar> {
    grid: Grid,
    neighbours: Neighbours,
    entries: usize,
    /// The rows of all kinds, one after another, with a value for each neighbour; zero if there is no entry.
    values: Vec<T>,
    /// The nonzero entries of each kind.
    rows: Vec<StencilRow<T>>,
}

/// The nonzero entries of a row of a [`GridStencil`], in the order of their columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StencilRow<T> {
    /// Column minus row of each entry, modulo 2^32.
    pub(crate) distances: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl Grid {
    /// Returns the kind of a point: 3 (3 z + y) + x, with x, y and z = 0 for the first point along an axis, 2 for the
    /// last, and 1 for all others.
    pub(crate) fn kind(self, place: [usize; 3]) -> usize {
        let of = |axis: usize| match place[axis] {
            0 => 0,
            at if at + 1 == self.sizes[axis] => 2,
            _ => 1,
        };
        3 * (3 * of(2) + of(1)) + of(0)
    }

    /// Returns a point of this kind, if there is one.
    pub(crate) fn of_kind(self, kind: usize) -> Option<[usize; 3]> {
        let mut place = [kind % 3, kind / 3 % 3, kind / 9];
        for (at, size) in place.iter_mut().zip(self.sizes) {
            *at = match *at {
                0 if size > 0 => 0,
                1 if size > 2 => 1,
                2 if size > 1 => size - 1,
                _ => return None,
            };
        }
        Some(place)
    }
}

impl<T: Scalar> GridStencil<T> {
    /// Creates a matrix with this number of entries. `row` returns the row of a point, with a value for each neighbour,
    /// zero if there is no entry; it is called for one point of each kind. `None` if a value is infinite or NaN.
    pub(crate) fn new(
        grid: Grid,
        neighbours: Neighbours,
        entries: usize,
        row: impl Fn([usize; 3]) -> Option<[T; NEIGHBOURS]>,
    ) -> Option<Self> {
        let count = neighbours.count();
        let mut values = vec![T::zero(); KINDS * count];
        let mut rows = vec![StencilRow::default(); KINDS];
        for (kind, entries) in rows.iter_mut().enumerate() {
            let Some(place) = grid.of_kind(kind) else { continue };
            let row = row(place)?;
            values[kind * count..][..count].copy_from_slice(&row[..count]);
            for (by, &value) in neighbours.iter().zip(&row) {
                if !value.is_finite() {
                    return None;
                }
                if value != T::zero() {
                    entries.distances.push(grid.distance(by) as u32);
                    entries.values.push(value);
                }
            }
        }
        Some(Self { grid, neighbours, entries, values, rows })
    }

    /// The grid.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Returns the number of entries of the matrix.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the number of bytes in memory.
    pub fn storage_bytes(&self) -> usize {
        let of_rows = self.rows.iter().map(|row| row.values.len() * (size_of::<T>() + size_of::<u32>()));
        self.values.len() * size_of::<T>() + of_rows.sum::<usize>()
    }

    /// Returns the entries in the row of each point of this kind.
    pub(crate) fn row(&self, kind: usize) -> &StencilRow<T> {
        &self.rows[kind]
    }

    /// Returns a value for each neighbour of a point of this kind.
    fn values(&self, kind: usize) -> &[T] {
        let count = self.neighbours.count();
        &self.values[kind * count..][..count]
    }

    /// Returns P^T A P for boxes of 2 x 2 x 2 points, as [`GridSteps::grid_coarser`](super::GridSteps::grid_coarser)
    /// defines it. `None` if a sum overflows.
    pub(crate) fn coarser(&self) -> Option<Self> {
        let (sums, grid) = (BoxSums::new(self.neighbours), self.grid.coarser());
        Self::new(grid, self.neighbours, grid.pairs(self.neighbours), |place| {
            let (row, fits) = sums.row(self.grid, place, |point| {
                let values = self.values(self.grid.kind(point));
                move |k| values[k]
            });
            fits.then_some(row)
        })
    }

    /// Returns the stencil in half the precision.
    pub(crate) fn to_lower(&self) -> Option<GridStencil<T::Lower>> {
        let Self { grid, neighbours, entries, .. } = *self;
        GridStencil::new(grid, neighbours, entries, |place| {
            let mut row = [Zero::zero(); NEIGHBOURS];
            let values = self.values(grid.kind(place));
            row.iter_mut().zip(values).for_each(|(narrow, value)| *narrow = value.to_lower());
            Some(row)
        })
    }

    /// Returns for each row 1 / its sum of magnitudes, or zero if that is not finite.
    pub(crate) fn scales(&self) -> Vec<T::Real> {
        let of_kind = |kind: usize| {
            let sum = self.values(kind).iter().fold(T::Real::zero(), |sum, value| sum + value.abs());
            let inverse = sum.recip();
            if Float::is_finite(inverse) { inverse } else { T::Real::zero() }
        };
        let of_kinds: Vec<T::Real> = (0..KINDS).map(of_kind).collect();
        let nx = self.grid.sizes[0];
        let mut scales = Vec::with_capacity(self.grid.points());
        for line in 0..self.grid.points() / nx.max(1) {
            let kind = self.grid.kind(self.grid.place(line * nx));
            scales.push(of_kinds[kind]);
            if nx > 1 {
                scales.resize((line + 1) * nx - 1, of_kinds[kind + 1]);
                scales.push(of_kinds[kind + 2]);
            }
        }
        scales
    }

    /// Returns all entries, in the layout of a [`GridMatrix`](super::GridMatrix).
    pub(crate) fn all_values(&self) -> Vec<T> {
        let mut values = vec![no_entry(); grid_values(self.grid, self.neighbours)];
        for point in 0..self.grid.points() {
            let of_point = self.values(self.grid.kind(self.grid.place(point)));
            let first = first_place(point, of_point.len());
            for (k, &value) in of_point.iter().enumerate() {
                values[first + k * DIA_SECTION] = value;
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_a_point_where_a_grid_is_wide_enough() {
        for sizes in [[1, 1, 1], [2, 1, 3], [3, 4, 2], [5, 5, 5]] {
            let grid = Grid { sizes };
            let mut kinds = [false; KINDS];
            (0..grid.points()).for_each(|point| kinds[grid.kind(grid.place(point))] = true);
            for (kind, &there) in kinds.iter().enumerate() {
                let place = grid.of_kind(kind);
                assert_eq!(place.is_some(), there, "{sizes:?} {kind}");
                assert!(place.is_none_or(|place| grid.kind(place) == kind), "{sizes:?} {kind}");
            }
        }
    }
}
