//! Distributed levels on grids of which each rank has some planes, with boxes as points of the next level. Boxes are
//! within ranks, so a rank's level is a grid of its own; its couplings to the planes of other ranks are added up box by
//! box too.

use super::planes::{Planes, Slab};
use super::rows::{gathered, moved_columns, numbers, placed, ranges};
use super::{Build, whole_vector};
use crate::backend::{Backend, Communicator, Grid, GridMatrix, Host, Neighbours};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Dia, add};
use crate::multigrid::MultigridBackend;
use crate::multigrid::cycle::{Coarsest, Cycle, Level, Stored, Transfer};
use crate::multigrid::grid;
use crate::multigrid::on_grid::{OnGrid, boxes};
use crate::multigrid::options::{LevelFacts, MultigridFacts};
use crate::parallel::{both, of_stretches};
use crate::scalar::Scalar;
use crate::spread::{Edge, Spread};
use num_traits::{Float, Zero};
use std::collections::BTreeMap;
use std::ops::Range;

/// If ranks have at least eight times as many planes, they end at multiples of this many, so that boxes of the first
/// levels are those of a single rank.
const ALIGNED: usize = 8;

/// Rows that are examined, in each of four places.
const WINDOW: usize = 256;

/// The grid that a matrix of `rows` rows seems to be on, from the distances between columns and rows of some of its
/// entries.
pub(crate) fn seeming_grid(rows: usize, distances: impl IntoIterator<Item = i64>) -> Option<Grid> {
    let mut all: Vec<i64> = Vec::new();
    for distance in distances {
        if let Err(place) = all.binary_search(&distance) {
            all.insert(place, distance);
        }
        if all.len() > crate::backend::NEIGHBOURS {
            return None;
        }
    }
    grid::of_distances(rows, &all).map(|(grid, _)| grid)
}

/// The distances between columns and rows for some of the entries.
pub(crate) fn some_distances<T: Scalar, B: Backend>(backend: &B, a: &Csr<T, B>) -> Result<Vec<i64>> {
    let rows = a.rows();
    let starts = (0..rows).step_by(rows.div_ceil(4).max(1));
    let windows: Vec<_> = starts.map(|start| start..(start + WINDOW).min(rows)).collect();
    let mut all = Vec::new();
    for (here, window) in windows.iter().zip(a.windows(backend, &windows)?) {
        for place in 0..window.rows() {
            let row = (here.start + place) as i64;
            all.extend(window.row(place).0.iter().map(|&column| i64::from(column) - row));
        }
        all.sort_unstable();
        all.dedup();
    }
    Ok(all)
}

/// The rows of each rank on a grid: whole planes (lines in two dimensions), about equally many for each rank. `None` if
/// there are too few.
pub(crate) fn planes(grid: Grid, parts: usize) -> Option<Vec<Range<usize>>> {
    let [nx, ny, nz] = grid.sizes;
    let (plane, count) = if nz > 1 { (nx * ny, nz) } else { (nx, ny) };
    if count < 3 * parts {
        return None;
    }
    let mut step = ALIGNED;
    while step > 1 && 8 * step * parts > count {
        step /= 2;
    }
    let bound = |part: usize| match part {
        0 => 0,
        _ if part == parts => count,
        _ => (part * count + parts * step / 2) / (parts * step) * step,
    };
    Some((0..parts).map(|part| plane * bound(part)..plane * bound(part + 1)).collect())
}

/// A level and how it is distributed.
struct Slabs<S: Scalar> {
    /// The grid of each rank.
    grids: Vec<Grid>,
    /// The points of each rank.
    parts: Vec<Range<usize>>,
    neighbours: Neighbours,
    /// The couplings of this rank's points to those of others.
    edge: Edge<S>,
}

impl<S: Scalar> Slabs<S> {
    /// The grid of all ranks together.
    fn whole(&self) -> Grid {
        let [nx, ny, nz] = self.grids[0].sizes;
        let sum = |axis: usize| self.grids.iter().map(|grid| grid.sizes[axis]).sum();
        Grid { sizes: if nz > 1 { [nx, ny, sum(2)] } else { [nx, sum(1), 1] } }
    }

    /// Returns whether all coupled points of other ranks are neighbours on the grid.
    fn fits(&self, own: &Range<usize>) -> bool {
        let whole = self.whole();
        let fits = |row: usize| {
            let from = own.start + self.edge.rows[row] as usize;
            let (columns, values) = self.edge.a.row(row);
            let beside = |&column: &u32| {
                whole.between(from, column as usize).is_some_and(|by| self.neighbours.number(by).is_some())
            };
            columns.iter().all(beside) && values.iter().all(|value| value.is_finite())
        };
        of_stretches(&(0..self.edge.a.rows()), 1 << 12, |mut rows| rows.all(fits))
            .into_iter()
            .all(|fits| fits)
    }

    /// The grids of boxes, and their couplings: sums over the points of boxes.
    fn coarser(&self, own: &Range<usize>) -> Result<Self> {
        let grids: Vec<Grid> = self.grids.iter().map(|grid| grid.coarser()).collect();
        let parts = ranges(&grids.iter().map(|grid| grid.points()).collect::<Vec<_>>());
        let of_point = |point: usize| {
            let part = self.parts.partition_point(|points| points.end <= point);
            let place = self.grids[part].place(point - self.parts[part].start);
            parts[part].start + grids[part].number(place.map(|at| at / 2))
        };
        let mut sums: BTreeMap<(usize, u32), S> = BTreeMap::new();
        for (row, &point) in self.edge.rows.iter().enumerate() {
            let to = of_point(own.start + point as usize);
            let (columns, values) = self.edge.a.row(row);
            for (&column, &value) in both(columns, values) {
                *sums.entry((to, of_point(column as usize) as u32)).or_insert(S::zero()) += value;
            }
        }
        let first = parts[self.parts.iter().position(|points| points == own).unwrap_or(0)].start;
        let (mut rows, mut offsets, mut columns, mut values) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((to, column), value) in sums {
            let row = (to - first) as u32;
            if rows.last() != Some(&row) {
                rows.push(row);
                offsets.push(values.len());
            }
            columns.push(column);
            values.push(value);
        }
        offsets.push(values.len());
        let points = parts.last().map_or(0, |points| points.end);
        let a = Csr::from_parts(rows.len(), points, offsets, columns, values)?;
        Ok(Self { grids, parts, neighbours: self.neighbours, edge: Edge { rows, a } })
    }
}

impl<B: MultigridBackend, C: Communicator<B>> Build<'_, B, C> {
    /// The cycle on grids; `None` unless all ranks have planes of one grid. `own` is the block of this rank's rows and
    /// columns, `edge` its entries in other columns.
    pub(super) fn grids<S: Scalar>(
        &self,
        own: &Csr<S, B>,
        edge: Edge<S>,
        parts: &[Range<usize>],
        gathered_rows: usize,
    ) -> Result<Option<(Cycle<S, B>, MultigridFacts)>> {
        let (backend, communicator) = (self.space.backend(), self.space.communicator());
        let part = communicator.part();
        let found = grid::found(backend, own)?;
        let found = found.map(|found| (found.grid, found.neighbours));
        let words = found.map_or([0; 4], |(grid, neighbours)| {
            let [nx, ny, nz] = grid.sizes;
            [nx, ny, nz, neighbours.0 as usize]
        });
        let told: Vec<Vec<usize>> =
            words.into_iter().map(|word| numbers::<B, C>(communicator, word)).collect::<Result<_>>()?;
        let same = |of: &[usize]| of.iter().all(|&number| number != 0 && number == of[0]);
        let flat = told[2].iter().all(|&size| size == 1);
        let like =
            same(&told[0]) && same(&told[3]) && (flat || (same(&told[1]) && told[2].iter().all(|&n| n > 1)));
        let (Some((_, neighbours)), true) = (found, like) else { return Ok(None) };
        // The ratios of couplings over all ranks.
        let mut ratios = found.map_or(Ok(Default::default()), |(grid, neighbours)| {
            grid::local_ratios(backend, own, grid, neighbours)
        })?;
        for number in ratios.iter_mut().flatten() {
            *number = whole_vector::<f64, B, C>(communicator, &[*number])?.into_iter().sum();
        }
        if self.options.real_eigenvalues && !grid::are_comparable(&ratios) {
            return Ok(None);
        }
        let grids = (0..parts.len()).map(|p| Grid { sizes: [told[0][p], told[1][p], told[2][p]] }).collect();
        let mut slabs = Slabs { grids, parts: parts.to_vec(), neighbours, edge };
        let finest = Dia::whole_from_csr(backend, own);
        let right = slabs.grids.iter().zip(parts).all(|(grid, points)| grid.points() == points.len());
        if self.space.count(finest.is_err() || !right || !slabs.fits(&parts[part]))? > 0 {
            return Ok(None);
        }
        let finest = finest?;
        let planes = Planes::of(slabs.whole(), &slabs.grids);
        let (grid, neighbours) = (slabs.grids[part], slabs.neighbours);
        // On a CPU, boxes of stencils are set up in a fraction of the time, as on a single rank.
        let stencils = || -> Result<bool> {
            let here = backend.grid_stencil(own.parts(), grid, neighbours)?.is_some();
            Ok(self.space.count(here)? == parts.len())
        };
        if self.options.real_eigenvalues && planes.suit(gathered_rows) && !stencils()? {
            let slab = Slab::finest(backend, (planes, neighbours), part, (finest, &slabs.edge))?;
            return self.between(slab, gathered_rows);
        }
        let (mut matrix, mut levels, mut facts) = (finest, Vec::new(), Vec::new());
        let mut unfit = backend.zeros(1)?;
        while slabs.whole().points() > gathered_rows {
            let here = &slabs.parts[part];
            let entries = numbers::<B, C>(communicator, matrix.nonzeros() + slabs.edge.a.nonzeros())?;
            facts.push(LevelFacts { rows: slabs.whole().points(), entries: entries.into_iter().sum() });
            let on_grid = GridMatrix { grid: slabs.grids[part], neighbours, values: matrix.parts().values };
            let mut scales = backend.buffer(here.len())?;
            backend.grid_scales(on_grid, &mut scales)?;
            self.widen(&mut scales, &slabs.edge)?;
            let next = boxes(backend, on_grid, &mut unfit)?;
            let own = Box::new(std::mem::replace(&mut matrix, next));
            let spread = Spread::joined(backend, communicator.clone(), own, &slabs.edge, &slabs.parts)?;
            levels.push(Level {
                a: Stored::Spread(Box::new(spread)),
                smoother: grid::smoother(scales, self.options),
                transfer: Transfer::Boxes(slabs.grids[part]),
                twice: grid::is_solved_twice(levels.len()),
            });
            slabs = slabs.coarser(here)?;
        }
        if self.space.count(backend.value(&unfit)? != 0)? > 0 {
            return Ok(None);
        }
        // Every rank has the next level as a whole.
        let here = &slabs.parts[part];
        let (whole, values) = (slabs.whole(), backend.download(matrix.parts().values)?);
        let own = grid::to_csr(slabs.grids[part], neighbours, &values)?;
        let Edge { rows, a } = slabs.edge;
        let beside = placed(&rows, a, here.len())?;
        let own = add(&Host, S::one(), &moved_columns(own, here.start, whole.points()), S::one(), &beside)?;
        let all = gathered::<S, B, C>(communicator, &own)?;
        let Some(values) = grid::values_of(whole, neighbours, &all) else { return Ok(None) };
        let matrix = Dia::on_grid(backend, whole, neighbours, backend.upload(values)?)?;
        let matrix = OnGrid::Diagonals(matrix);
        let below = grid::levels(backend, (whole, neighbours), matrix, self.options, Some(levels.len()))?;
        let Some((cycle, below)) = below else { return Ok(None) };
        facts.extend(below.levels);
        let twice = levels.last().is_some_and(|level: &Level<S, B>| level.twice);
        let coarsest = Coarsest::Gathered(Box::new(self.gathered(cycle, &slabs.parts, twice)?));
        let cycle = Cycle { levels, coarsest, chebyshev: self.options.real_eigenvalues };
        Ok(Some((cycle, MultigridFacts { levels: facts, grid: true, scaled: false })))
    }

    /// Adds a row's entries outside of the rank's own columns to its sum of magnitudes.
    fn widen<S: Scalar>(&self, scales: &mut B::Slice<S::Real>, edge: &Edge<S>) -> Result<()> {
        let backend = self.space.backend();
        let rows = backend.upload(edge.rows.clone())?;
        let mut there = backend.buffer::<S::Real>(edge.rows.len())?;
        backend.gather::<S::Real, u32>(scales, &rows, &mut there)?;
        let mut here = backend.download(&there)?;
        for (row, scale) in here.iter_mut().enumerate() {
            let more = edge.a.row(row).1.iter().fold(S::Real::zero(), |sum, value| sum + value.abs());
            let inverse = (scale.recip() + more).recip();
            *scale = if Float::is_finite(inverse) { inverse } else { S::Real::zero() };
        }
        Error::check_dimension("scales of rows at the border", edge.rows.len(), here.len())?;
        let here = backend.upload(here)?;
        backend.scatter::<S::Real, u32>(&here, &rows, scales)
    }
}
