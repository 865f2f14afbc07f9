//! Geometric hierarchies: if a matrix couples the points of a grid to their neighbours, every other point along each
//! axis becomes a point of the next level, and no search for strong couplings is needed.
//!
//! For a Hermitian matrix, the points between interpolate with the weights of their rows (`crate::backend::GridSteps`).
//! For others, and for stencils on a CPU, boxes of 2 x 2 x 2 points become the points of the next level (cell-centred
//! aggregation), and the first levels are solved by two cycles each to make up for the low order of this prolongation
//! (`cycle`).

use super::MultigridBackend;
use super::cycle::{Coarsest, Cycle, Level, Transfer};
use super::dense;
use super::on_grid::{Below, OnGrid};
use super::options::{MultigridFacts, MultigridOptions};
use super::smoother::{Scaling, Smoother};
use crate::backend::{
    CsrParts, DIA_SECTION, Diagonals, Grid, Host, NEIGHBOURS, Neighbours, first_place, grid_values,
    is_no_entry, no_entry,
};
use crate::error::Result;
use crate::matrix::{Csr, Dia};
use crate::parallel::both;
use crate::scalar::{Real, Scalar};

/// On a grid with fewer points per side, different neighbours have the same distance.
const LEAST_SIDE: i64 = 3;

/// The number of levels below the finest that are solved by two cycles each.
const TWICE: usize = 2;

/// A level of at most this many points is examined on the host, which takes up to a millisecond.
const LOOKED_AT: usize = 5_000;

/// Cubic boxes are suitable if the weakest of the couplings along x, y and z is at least this fraction of the
/// strongest.
const COMPARABLE: f64 = 0.25;

/// Windows of rows of the finest matrix that are examined, and rows of each.
const WINDOWS: usize = 4;
const WINDOW: usize = 256;

/// The bound of [`COMPARABLE`] for the ratios of the couplings of single points, on average. Layers of a power grid
/// with different strong directions, or a strong direction along a diagonal, have equally strong couplings along all
/// axes when added up. Coefficients from a lognormal distribution have 0.4.
const LOCALLY: f64 = 0.15;

/// If one minus the standard deviation of the relative row sums is at least this, unknowns have about the same units.
/// Grids have more than 0.9. With units that vary from 0.5 to 2 at random it is 0.79, and grids take three times the
/// iterations of a matrix that is scaled first (`scaling`).
const IN_LIKE_UNITS: f64 = 0.82;

/// The grid of `points` points, in two or three dimensions, on which these index distances between coupled points are
/// those between neighbours; `None` if there is no such grid.
pub(crate) fn of_distances(points: usize, distances: &[i64]) -> Option<(Grid, Neighbours)> {
    let beyond = |least: i64| distances.iter().copied().filter(|&d| d > least).min();
    let n = points as i64;
    // The smallest distance above 1 belongs to the next line, or to a diagonal neighbour one point before it.
    let lines = beyond(1).into_iter().flat_map(|first| [first, first + 1]);
    let lines = lines.filter(|&nx| nx >= LEAST_SIDE && n % nx == 0);
    lines
        .flat_map(|nx| {
            let planes = beyond(nx + 1)
                .into_iter()
                .flat_map(move |first| [0, 1, nx - 1, nx, nx + 1].map(|more| first + more).into_iter());
            let planes =
                planes.filter(move |&plane| plane % nx == 0 && plane / nx >= LEAST_SIDE && n % plane == 0);
            let flat = [nx, n / nx, 1];
            std::iter::once(flat).chain(planes.map(move |plane| [nx, plane / nx, n / plane]))
        })
        .find_map(|sizes| {
            let grid = Grid { sizes: sizes.map(|size| size as usize) };
            let all = Neighbours::ALL;
            let of = |distance: i64| {
                all.iter().find(|&by| grid.distance(by) == distance && (by[2] == 0 || sizes[2] > 1))
            };
            let found = distances.iter().map(|&d| of(d)).collect::<Option<Vec<_>>>()?;
            Some((grid, found.into_iter().fold(Neighbours(0), Neighbours::with)))
        })
}

/// Returns the couplings between boxes: the given neighbours of points, and with each of them those nearer along each
/// axis.
fn closed(neighbours: Neighbours) -> Neighbours {
    let nearer = |by: [i64; 3]| {
        (0..8).map(move |bits| [0, 1, 2].map(|axis| if bits >> axis & 1 == 1 { 0 } else { by[axis] }))
    };
    neighbours.iter().flat_map(nearer).fold(neighbours, Neighbours::with)
}

/// The grid of a matrix.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) grid: Grid,
    pub(super) neighbours: Neighbours,
    /// The index distances from a row to the columns of its entries.
    distances: Vec<i64>,
}

/// The grid of a matrix if a hierarchy can be built on it; `None` if the matrix is on no grid, or if couplings along
/// one axis are much weaker than along another. `known` are its diagonals, if they have been determined.
pub(super) fn suited<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    options: &MultigridOptions,
    known: Option<&Diagonals>,
) -> Result<Option<Found>> {
    if a.rows() <= options.coarsest_rows {
        return Ok(None);
    }
    let found = match known {
        Some(known) => of_diagonals(a.rows(), known),
        None => found(backend, a)?,
    };
    let Some(found) = found else { return Ok(None) };
    if options.real_eigenvalues && !are_comparable(&local_ratios(backend, a, found.grid, found.neighbours)?) {
        return Ok(None);
    }
    Ok(Some(found))
}

/// A cycle and the sizes of its levels, or `None`.
type Made<T, B> = Option<(Cycle<T, B>, MultigridFacts)>;

/// Builds the cycle and its levels for a matrix on the grid that was found. Returns `None` in the cases of [`levels`].
pub(super) fn hierarchy<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    found: Found,
    options: &MultigridOptions,
) -> Result<Made<T, B>> {
    let on_grid = (found.grid, found.neighbours);
    let finest = match backend.grid_stencil(a.parts(), found.grid, found.neighbours)? {
        Some(stencil) => OnGrid::Stencil(stencil),
        None => match by_diagonals(backend, a.parts(), found) {
            Some(diagonals) => OnGrid::Diagonals(diagonals),
            None => return Ok(None),
        },
    };
    levels(backend, on_grid, finest, options, None)
}

/// [`hierarchy`] in half the precision.
pub(super) fn narrow_hierarchy<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    found: Found,
    options: &MultigridOptions,
) -> Result<Made<T::Lower, B>> {
    let on_grid = (found.grid, found.neighbours);
    let stencil = backend.grid_stencil(a.parts(), found.grid, found.neighbours)?;
    let finest = if let Some(stencil) = stencil.and_then(|stencil| stencil.to_lower()) {
        OnGrid::Stencil(stencil)
    } else {
        let mut values = backend.buffer(a.nonzeros())?;
        backend.narrow::<T>(num_traits::One::one(), a.parts().values, &mut values)?;
        match by_diagonals(backend, a.parts().with_values(&values), found) {
            Some(diagonals) => OnGrid::Diagonals(diagonals),
            None => return Ok(None),
        }
    };
    levels(backend, on_grid, finest, options, None)
}

/// All diagonals, if they can be stored.
fn by_diagonals<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: CsrParts<'_, T, B>,
    found: Found,
) -> Option<Dia<T, B>> {
    Dia::whole_of_known(backend, a, found.distances).ok()
}

/// The grid of a matrix, if it is on one.
pub(super) fn found<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<Option<Found>> {
    if a.nonzeros() > NEIGHBOURS * a.rows() {
        return Ok(None);
    }
    let (size, parts) = ((a.rows(), a.columns()), a.parts());
    let found = backend.diagonals(size, parts.offsets, parts.indices, NEIGHBOURS)?;
    Ok(of_diagonals(a.rows(), &found))
}

/// The grid of a matrix whose diagonals are known.
fn of_diagonals(rows: usize, found: &Diagonals) -> Option<Found> {
    if found.distances.len() != found.count {
        return None;
    }
    let (grid, neighbours) = of_distances(rows, &found.distances)?;
    let distances = found.distances.clone();
    (closed(neighbours) == neighbours).then_some(Found { grid, neighbours, distances })
}

/// Builds the levels from a matrix on a grid downwards. `above` is the number of levels of boxes above it, if there are
/// any. Returns `None` if couplings along one axis are much weaker than along another, if an entry leads out of the
/// grid, or if values are infinite or NaN.
pub(super) fn levels<T: Scalar, B: MultigridBackend>(
    backend: &B,
    (mut grid, mut neighbours): (Grid, Neighbours),
    finest: OnGrid<T, B>,
    options: &MultigridOptions,
    above: Option<usize>,
) -> Result<Made<T, B>> {
    let (mut matrix, mut levels, mut facts) = (finest, Vec::new(), Vec::new());
    let mut unfit = backend.zeros(1)?;
    let mut looked = false;
    while grid.points() > options.coarsest_rows {
        facts.push(matrix.facts());
        if !looked && grid.points() <= LOOKED_AT {
            looked = true;
            if !comparable(grid, neighbours, &matrix.values(backend)?) {
                return Ok(None);
            }
        }
        // All levels below one of boxes are of boxes too.
        let between = options.real_eigenvalues && above.is_none();
        let below = matrix.below(backend, (grid, neighbours), between, &mut unfit)?;
        let Some(Below { scales, transfer, next, neighbours: of_next }) = below else { return Ok(None) };
        let twice =
            matches!(transfer, Transfer::Boxes(_)) && is_solved_twice(above.unwrap_or(0) + levels.len());
        let a = std::mem::replace(&mut matrix, next).into_stored();
        levels.push(Level { a, smoother: smoother(scales, options), transfer, twice });
        neighbours = of_next;
        grid = grid.coarser();
    }
    if backend.value(&unfit)? != 0 {
        return Ok(None);
    }
    facts.push(matrix.facts());
    let coarsest = to_csr(grid, neighbours, &matrix.values(backend)?)?;
    let inverse =
        if options.real_eigenvalues { dense::inverse(&coarsest) } else { dense::general_inverse(&coarsest) };
    let Ok(inverse) = inverse else { return Ok(None) };
    let coarsest = Coarsest::Inverse(inverse.into_backend(backend)?);
    Ok(Some((
        Cycle { levels, coarsest, chebyshev: options.real_eigenvalues },
        MultigridFacts { levels: facts, grid: true, scaled: false },
    )))
}

/// Returns whether the level below level number `level` is solved by two cycles.
pub(super) fn is_solved_twice(level: usize) -> bool {
    level < TWICE
}

/// A smoother scaled by the reciprocals of row sums.
pub(super) fn smoother<T: Scalar, B: MultigridBackend>(
    scales: B::Vec<T::Real>,
    options: &MultigridOptions,
) -> Smoother<T, B> {
    match options.real_eigenvalues {
        true => Smoother::new(Scaling::Diagonal(scales), options.smoothing_steps(false), 1.0),
        false => Smoother::plain(Scaling::Diagonal(scales), options.smoothing_steps(false)),
    }
}

/// For each pair of axes, then for both diagonals of each coordinate plane: the sum over points of the weaker coupling
/// divided by the stronger, and the number of points that have couplings. A coupling with the sign of the diagonal
/// counts as none.
///
/// The last element is one minus the standard deviation of row sums, relative to the sums of magnitudes, and again the
/// number of points.
pub(super) type Ratios = [[f64; 7]; 2];

/// Returns whether the couplings of each point are about equally strong on average, and unknowns have similar units.
pub(super) fn are_comparable([ratios, points]: &Ratios) -> bool {
    let least = [LOCALLY; 6].into_iter().chain([IN_LIKE_UNITS]);
    ratios.iter().zip(points).zip(least).all(|((&ratio, points), least)| ratio >= least * points)
}

/// The ratios of a sample of rows.
pub(super) fn local_ratios<T, B>(
    backend: &B,
    a: &Csr<T, B>,
    grid: Grid,
    neighbours: Neighbours,
) -> Result<Ratios>
where
    T: Scalar,
    B: MultigridBackend,
{
    let rows = a.rows();
    let directions: Vec<([i64; 3], i64)> = neighbours.iter().map(|by| (by, grid.distance(by))).collect();
    let (mut ratios, mut points) = ([0.0; 7], [0.0; 7]);
    let starts = (0..rows).step_by(rows.div_ceil(WINDOWS).max(WINDOW));
    let windows: Vec<_> = starts.map(|start| start..(start + WINDOW).min(rows)).collect();
    for (start, window) in windows.iter().map(|rows| rows.start).zip(a.windows(backend, &windows)?) {
        let mut sums = Vec::with_capacity(window.rows());
        for i in 0..window.rows() {
            let (columns, values) = window.row(i);
            let row = (start + i) as i64;
            let sum = |size: fn(T) -> f64| values.iter().map(|&value| size(value)).sum::<f64>();
            sums.push(sum(|value| value.re().to_f64()) / sum(|value| value.abs().to_f64()));
            let diagonal =
                columns.iter().position(|&j| i64::from(j) == row).map_or(1.0, |at| values[at].re().to_f64());
            // Three axes, then the two diagonals of the planes xy, xz and yz.
            let mut along = [0.0; 9];
            for (&j, value) in both(columns, values) {
                let found = directions.iter().find(|(_, distance)| *distance == i64::from(j) - row);
                let Some(place) = found.and_then(|(by, _)| direction(*by)) else { continue };
                along[place] += (-value.re().to_f64() * diagonal.signum()).max(0.0);
            }
            for (k, [first, second]) in
                [[0, 1], [0, 2], [1, 2], [3, 4], [5, 6], [7, 8]].into_iter().enumerate()
            {
                let (least, most) = (along[first].min(along[second]), along[first].max(along[second]));
                let flat = k < 3 && [first, second].iter().any(|&axis| grid.sizes[axis] == 1);
                if most > 0.0 && !flat {
                    ratios[k] += least / most;
                    points[k] += 1.0;
                }
            }
        }
        let (rows, mean) = (sums.len() as f64, sums.iter().sum::<f64>() / sums.len() as f64);
        let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / rows;
        ratios[6] += rows * (1.0 - variance.sqrt());
        points[6] += rows;
    }
    Ok([ratios, points])
}

/// The index of the axis, or of the diagonal of a plane, on which a neighbour is.
fn direction(by: [i64; 3]) -> Option<usize> {
    match by {
        [0, 0, 0] => None,
        [_, 0, 0] => Some(0),
        [0, _, 0] => Some(1),
        [0, 0, _] => Some(2),
        [x, y, 0] => Some(3 + usize::from(x != y)),
        [x, 0, z] => Some(5 + usize::from(x != z)),
        [0, y, z] => Some(7 + usize::from(y != z)),
        _ => None,
    }
}

/// Returns whether the couplings along all axes are about equally strong. The coupling along an axis is the sum over
/// all neighbours displaced along it, of either sign. With interpolation, the couplings along a weak axis add up to
/// little.
fn comparable<T: Scalar>(grid: Grid, neighbours: Neighbours, values: &[T]) -> bool {
    let (mut sums, points) = ([0.0; 3], grid.points());
    let away: Vec<[i64; 3]> = neighbours.iter().collect();
    let Some(own) = neighbours.number([0; 3]) else { return false };
    for row in 0..points {
        let first = first_place(row, away.len());
        let sign = values[first + own * DIA_SECTION].re().to_f64().signum();
        for (k, by) in away.iter().enumerate() {
            let value = values[first + k * DIA_SECTION];
            if !is_no_entry(value) {
                let coupling = -sign * value.re().to_f64();
                (0..3).filter(|&axis| by[axis] != 0).for_each(|axis| sums[axis] += coupling);
            }
        }
    }
    // An axis with few points has few couplings.
    let sums = (0..3).filter(|&axis| grid.sizes[axis] > 1).map(|axis| {
        let size = grid.sizes[axis] as f64;
        sums[axis] * size / (size - 1.0)
    });
    let (least, most) =
        sums.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), sum| (least.min(sum), most.max(sum)));
    least >= COMPARABLE * most && most > 0.0
}

/// The values of a matrix in the layout of the grid; `None` if it has couplings other than to neighbours.
pub(super) fn values_of<T: Scalar>(grid: Grid, neighbours: Neighbours, a: &Csr<T>) -> Option<Vec<T>> {
    let mut values = vec![no_entry(); grid_values(grid, neighbours)];
    for row in 0..a.rows() {
        let (columns, entries) = a.row(row);
        for (&column, &value) in both(columns, entries) {
            let k = neighbours.number(grid.between(row, column as usize)?)?;
            values[first_place(row, neighbours.count()) + k * DIA_SECTION] = value;
        }
    }
    Some(values)
}

/// Converts to CSR on the host.
pub(super) fn to_csr<T: Scalar>(grid: Grid, neighbours: Neighbours, values: &[T]) -> Result<Csr<T, Host>> {
    let (mut offsets, mut indices, mut entries) = (vec![0], Vec::new(), Vec::new());
    for row in 0..grid.points() {
        let place = grid.place(row);
        for (k, by) in neighbours.iter().enumerate() {
            if let Some(other) = grid.neighbour(place, by) {
                let value = values[first_place(row, neighbours.count()) + k * DIA_SECTION];
                indices.push(grid.number(other) as u32);
                entries.push(if is_no_entry(value) { T::zero() } else { value });
            }
        }
        offsets.push(entries.len());
    }
    Csr::from_parts(grid.points(), grid.points(), offsets, indices, entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_found_from_the_distances_of_their_neighbours() {
        let seven = [-20, -5, -1, 0, 1, 5, 20];
        let (grid, neighbours) = of_distances(60, &seven).unwrap();
        assert_eq!((grid.sizes, neighbours.count()), ([5, 4, 3], 7));
        let (grid, _) = of_distances(35, &[-5, -1, 0, 1, 5]).unwrap();
        assert_eq!(grid.sizes, [5, 7, 1]);
        let all = Neighbours::ALL;
        let box_ = Grid { sizes: [4, 5, 6] };
        let distances: Vec<i64> = all.iter().map(|by| box_.distance(by)).collect();
        assert_eq!(of_distances(120, &distances), Some((box_, all)));
        let nine: Vec<i64> = all.iter().filter(|by| by[2] == 0).map(|by| box_.distance(by)).collect();
        assert_eq!(of_distances(120, &nine).unwrap().0.sizes, [4, 30, 1]);
        for (points, distances) in [(61, &seven[..]), (60, &[-1, 0, 1]), (60, &[-7, -2, 0, 2, 7])] {
            assert_eq!(of_distances(points, distances), None);
        }
        assert_eq!(closed(Neighbours(0).with([1, 1, 0])).count(), 4);
    }
}
