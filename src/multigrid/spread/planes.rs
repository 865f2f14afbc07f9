//! The planes of a grid that each rank has, and a rank's matrix of a level.

use super::rows::ranges;
use crate::backend::{
    Communicator, DIA_SECTION, Grid, Neighbours, RowsOnGrid, first_place, grid_values, is_no_entry, no_entry,
};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Dia};
use crate::multigrid::MultigridBackend;
use crate::parallel::prelude::*;
use crate::parallel::{both, of_stretches};
use crate::scalar::{Scalar, bytes_of, elements_of};
use crate::spread::Edge;
use std::ops::Range;

/// A rank's planes are extended by this many planes of the rank below, and by one of the rank above.
pub(super) const BELOW: usize = 2;

/// The level that all ranks gather has at most one point for this many of the finest.
const LEAST_COARSER: usize = 64;

/// The number of planes of each rank.
#[derive(Clone, Debug)]
pub(super) struct Planes {
    /// The grid of all ranks.
    pub(super) whole: Grid,
    pub(super) counts: Vec<usize>,
}

/// The axis across the planes, along which they follow each other in memory.
fn axis_of(whole: Grid) -> usize {
    if whole.sizes[2] > 1 { 2 } else { 1 }
}

impl Planes {
    /// The planes of the ranks' `grids`, which together are `whole`.
    pub(super) fn of(whole: Grid, grids: &[Grid]) -> Self {
        Self { whole, counts: grids.iter().map(|grid| grid.sizes[axis_of(whole)]).collect() }
    }

    pub(super) fn axis(&self) -> usize {
        axis_of(self.whole)
    }

    /// The grid of `count` planes.
    pub(super) fn grid(&self, count: usize) -> Grid {
        let mut sizes = self.whole.sizes;
        sizes[self.axis()] = count;
        Grid { sizes }
    }

    /// The number of points of a plane.
    pub(super) fn points(&self) -> usize {
        self.grid(1).points()
    }

    /// The points of each rank.
    pub(super) fn parts(&self) -> Vec<Range<usize>> {
        ranges(&self.counts.iter().map(|count| count * self.points()).collect::<Vec<_>>())
    }

    /// The planes of the next level, if each rank begins with one of them.
    pub(super) fn coarser(&self) -> Option<Self> {
        let (_, before) = self.counts.split_last()?;
        let even = before.iter().all(|&count| count > 0 && count % 2 == 0);
        let counts = self.counts.iter().map(|count| count.div_ceil(2)).collect();
        even.then(|| Self { whole: self.whole.coarser(), counts })
    }

    /// Returns whether there are such levels down to one that all ranks can gather, which may have at most `gathered`
    /// points.
    pub(super) fn suit(&self, gathered: usize) -> bool {
        let most = gathered.max(self.whole.points() / LEAST_COARSER);
        let mut planes = Some(self.clone());
        while let Some(these) = planes.as_ref().filter(|these| these.whole.points() > most) {
            planes = these.coarser();
        }
        planes.is_some()
    }
}

/// A rank's matrix of a level.
pub(super) struct Slab<S: Scalar, B: MultigridBackend> {
    pub(super) planes: Planes,
    pub(super) part: usize,
    pub(super) neighbours: Neighbours,
    /// The couplings between its own points.
    pub(super) own: Dia<S, B>,
    /// The complete rows of those of its planes that other ranks need: the index of each plane, and its values in the
    /// layout of a grid of one plane.
    ends: Vec<(usize, Vec<S>)>,
}

/// Rows per task, in whole sections.
const TASK: usize = DIA_SECTION << 7;

/// Some rows of an [`Edge`].
pub(super) struct EdgePiece<S> {
    rows: Vec<u32>,
    lengths: Vec<u32>,
    columns: Vec<u32>,
    entries: Vec<S>,
}

impl<S> Default for EdgePiece<S> {
    fn default() -> Self {
        Self { rows: Vec::new(), lengths: Vec::new(), columns: Vec::new(), entries: Vec::new() }
    }
}

impl<S: Scalar> EdgePiece<S> {
    /// Adds a row with these columns and entries, if there are any.
    pub(super) fn push(&mut self, row: u32, entries: impl Iterator<Item = (u32, S)>) {
        let before = self.entries.len();
        for (column, entry) in entries {
            self.columns.push(column);
            self.entries.push(entry);
        }
        if self.entries.len() > before {
            self.rows.push(row);
            self.lengths.push((self.entries.len() - before) as u32);
        }
    }

    /// The rows of all pieces, in their order.
    pub(super) fn joined(pieces: Vec<Self>, columns: usize) -> Result<Edge<S>> {
        let mut offsets = vec![0];
        for &length in pieces.iter().flat_map(|piece| &piece.lengths) {
            offsets.push(offsets[offsets.len() - 1] + length as usize);
        }
        let rows = pieces.iter().map(|piece| &piece.rows[..]).collect::<Vec<_>>().concat();
        let indices = pieces.iter().map(|piece| &piece.columns[..]).collect::<Vec<_>>().concat();
        let entries = pieces.iter().map(|piece| &piece.entries[..]).collect::<Vec<_>>().concat();
        Ok(Edge { a: Csr::from_parts(rows.len(), columns, offsets, indices, entries)?, rows })
    }
}

/// A rank's matrix extended by rows of other ranks, on a grid of its own.
pub(super) struct Wider<S: Scalar, B: MultigridBackend> {
    pub(super) grid: Grid,
    /// The number of planes that precede those of this rank.
    pub(super) before: usize,
    pub(super) values: B::Vec<S>,
}

impl<S: Scalar, B: MultigridBackend> Slab<S, B> {
    /// The matrix of the finest level, from the couplings between a rank's own points and its entries in other columns.
    pub(super) fn finest(
        backend: &B,
        (planes, neighbours): (Planes, Neighbours),
        part: usize,
        (own, edge): (Dia<S, B>, &Edge<S>),
    ) -> Result<Self> {
        let mut this = Self { planes, part, neighbours, own, ends: Vec::new() };
        this.ends = this.downloaded(backend, this.own.parts().values, 0)?;
        let (points, here) = (this.planes.points(), this.planes.parts()[part].clone());
        // All of these are couplings of neighbours, whose distances differ.
        let whole = this.planes.whole;
        let mut known: Vec<(i64, usize)> =
            neighbours.iter().enumerate().map(|(k, by)| (whole.distance(by), k)).collect();
        known.sort_unstable();
        // Rows with couplings to points of other ranks are in the first plane or the last.
        for (number, values) in &mut this.ends {
            let place = |row: usize| edge.rows.partition_point(|&other| (other as usize) < row);
            for place in place(*number * points)..place((*number + 1) * points) {
                let (row, (columns, entries)) = (edge.rows[place] as usize, edge.a.row(place));
                let first = first_place(row - *number * points, neighbours.count());
                for (&column, &entry) in both(columns, entries) {
                    let distance = i64::from(column) - (here.start + row) as i64;
                    if let Ok(found) = known.binary_search_by_key(&distance, |&(distance, _)| distance) {
                        values[first + known[found].1 * DIA_SECTION] = entry;
                    }
                }
            }
        }
        Ok(this)
    }

    /// This rank's planes of the next level. `values` are those of a wider grid, in which they begin at plane `before`.
    pub(super) fn within(
        backend: &B,
        (planes, neighbours): (Planes, Neighbours),
        part: usize,
        (values, before): (&B::Slice<S>, usize),
    ) -> Result<Self> {
        let grid = planes.grid(planes.counts[part]);
        let mut own = backend.buffer(grid_values(grid, neighbours))?;
        backend.fill(no_entry(), &mut own)?;
        let (first, rows) = (before * planes.points(), grid.points());
        let which = RowsOnGrid { neighbours, first, place: 0, rows, within: Some(grid) };
        backend.grid_rows(which, values, &mut own)?;
        let own = Dia::on_grid(backend, grid, neighbours, own)?;
        let mut this = Self { planes, part, neighbours, own, ends: Vec::new() };
        this.ends = this.downloaded(backend, values, before)?;
        Ok(this)
    }

    /// Downloads the planes of this rank that others need: the first for the rank below and the last two for the rank
    /// above. In `values`, `before` planes precede those of this rank.
    fn downloaded(&self, backend: &B, values: &B::Slice<S>, before: usize) -> Result<Vec<(usize, Vec<S>)>> {
        let (neighbours, rows, count) =
            (self.neighbours, self.planes.points(), self.planes.counts[self.part]);
        let mut numbers = vec![0, count.saturating_sub(BELOW), count - 1];
        numbers.dedup();
        let mut plane = backend.buffer(grid_values(self.planes.grid(1), neighbours))?;
        backend.fill(no_entry(), &mut plane)?;
        let all = numbers.into_iter().map(|number| {
            let first = (before + number) * rows;
            let which = RowsOnGrid { neighbours, first, place: 0, rows, within: None };
            backend.grid_rows(which, values, &mut plane)?;
            Ok((number, backend.download(&*plane)?))
        });
        all.collect()
    }

    /// The entries of this rank's rows in columns of others.
    pub(super) fn edge(&self) -> Result<Edge<S>> {
        let (neighbours, points, axis) = (self.neighbours, self.planes.points(), self.planes.axis());
        let (part, parts) = (self.part, self.planes.parts());
        let last = self.planes.counts[part] - 1;
        let mut pieces = Vec::new();
        for (number, values) in &self.ends {
            let leads_on = |by: [i64; 3]| match by[axis] {
                -1 => *number == 0 && part > 0,
                1 => *number == last && part + 1 < parts.len(),
                _ => false,
            };
            let away: Vec<(usize, i64)> = (neighbours.iter().enumerate())
                .filter(|(_, by)| leads_on(*by))
                .map(|(k, by)| (k, self.planes.whole.distance(by)))
                .collect();
            if away.is_empty() {
                continue;
            }
            pieces.extend(of_stretches(&(0..points), TASK, |points_here| {
                let mut piece = EdgePiece::default();
                for point in points_here {
                    let (row, first) = (number * points + point, first_place(point, neighbours.count()));
                    let found = away.iter().map(|&(k, distance)| (values[first + k * DIA_SECTION], distance));
                    let found = found.filter(|&(value, _)| !is_no_entry(value) && value != S::zero());
                    let column = |distance: i64| ((parts[part].start + row) as i64 + distance) as u32;
                    piece.push(row as u32, found.map(|(value, distance)| (column(distance), value)));
                }
                piece
            }));
        }
        EdgePiece::joined(pieces, self.planes.whole.points())
    }

    /// The matrix extended by two planes of the rank below and one of the rank above.
    pub(super) fn wider<C: Communicator<B>>(&self, backend: &B, communicator: &C) -> Result<Wider<S, B>> {
        let (neighbours, points, count) =
            (self.neighbours, self.planes.points(), self.planes.counts[self.part]);
        let (part, parts) = (self.part, self.planes.counts.len());
        let mut told = vec![Vec::new(); parts];
        if part > 0 {
            told[part - 1] = bytes_of(&self.ends[0].1).to_vec();
        }
        if part + 1 < parts {
            let last = self.ends.iter().filter(|(number, _)| *number + BELOW >= count);
            told[part + 1] = last.map(|(_, values)| bytes_of(values)).collect::<Vec<_>>().concat();
        }
        let got = communicator.deliver(told)?;
        let (before, behind) = (if part > 0 { BELOW } else { 0 }, usize::from(part + 1 < parts));
        let grid = self.planes.grid(before + count + behind);
        let mut values = backend.buffer(grid_values(grid, neighbours))?;
        backend.fill(no_entry(), &mut values)?;
        let put = |plane: &B::Slice<S>, number: usize, rows: usize, values: &mut B::Slice<S>| {
            let which = RowsOnGrid { neighbours, first: 0, place: number * points, rows, within: None };
            backend.grid_rows(which, plane, values)
        };
        put(self.own.parts().values, before, count * points, &mut values)?;
        for (number, plane) in &self.ends {
            let plane = backend.upload(plane.clone())?;
            put(&plane, before + number, points, &mut values)?;
        }
        let size = grid_values(self.planes.grid(1), neighbours);
        let axis = self.planes.axis();
        let mut theirs = |of: usize, number: usize, place: usize, outwards: Option<i64>| -> Result<()> {
            let (bytes, each) = (&got[of], size * size_of::<S>());
            let plane = bytes.get(number * each..(number + 1) * each);
            let mut plane = elements_of::<S>(plane.ok_or_else(cut_short)?);
            if let Some(side) = outwards {
                add_within(neighbours, (axis, side), points, &mut plane);
            }
            let plane = backend.upload(plane)?;
            put(&plane, place, points, &mut values)
        };
        if part > 0 {
            theirs(part - 1, 0, 0, Some(-1))?;
            theirs(part - 1, 1, 1, None)?;
        }
        if behind > 0 {
            theirs(part + 1, 0, before + count, Some(1))?;
        }
        Ok(Wider { grid, before, values })
    }

    /// The values of all ranks, in the layout of the whole grid.
    pub(super) fn gathered<C: Communicator<B>>(&self, backend: &B, communicator: &C) -> Result<Vec<S>> {
        let (count, points) = (self.neighbours.count(), self.planes.points());
        let copied = |from: (&[S], usize), to: (&mut [S], usize), rows: usize| {
            for row in 0..rows {
                let (read, write) = (first_place(from.1 + row, count), first_place(to.1 + row, count));
                for k in (0..count).map(|k| k * DIA_SECTION) {
                    to.0[write + k] = from.0[read + k];
                }
            }
        };
        let mut own = backend.download(self.own.parts().values)?;
        for (number, plane) in &self.ends {
            copied((plane, 0), (&mut own, number * points), points);
        }
        let got = communicator.gather(bytes_of(&own).to_vec())?;
        let theirs: Vec<Vec<S>> = got.iter().map(|bytes| elements_of(bytes)).collect();
        for (theirs, planes) in theirs.iter().zip(&self.planes.counts) {
            if theirs.len() != grid_values(self.planes.grid(*planes), self.neighbours) {
                return Err(cut_short());
            }
        }
        let (parts, all) = (self.planes.parts(), self.planes.whole.points());
        let mut whole = vec![no_entry(); grid_values(self.planes.whole, self.neighbours)];
        whole.par_chunks_mut(TASK * count).enumerate().for_each(|(task, values)| {
            for row in task * TASK..((task + 1) * TASK).min(all) {
                let rank = parts.partition_point(|rows| rows.end <= row);
                let read = first_place(row - parts[rank].start, count);
                let write = first_place(row - task * TASK, count);
                for k in (0..count).map(|k| k * DIA_SECTION) {
                    values[write + k] = theirs[rank][read + k];
                }
            }
        });
        Ok(whole)
    }
}

fn cut_short() -> Error {
    Error::InvalidMatrix("planes that another part has sent end early".into())
}

/// Adds entries that lead to another plane, by -1 or 1 along the axis, to those within the plane.
fn add_within<S: Scalar>(
    neighbours: Neighbours,
    (axis, side): (usize, i64),
    points: usize,
    values: &mut [S],
) {
    for (k, mut by) in neighbours.iter().enumerate().filter(|(_, by)| by[axis] == side) {
        by[axis] = 0;
        let Some(within) = neighbours.number(by) else { continue };
        for first in (0..points).map(|point| first_place(point, neighbours.count())) {
            let value = std::mem::replace(&mut values[first + k * DIA_SECTION], no_entry());
            let sum = &mut values[first + within * DIA_SECTION];
            if !is_no_entry(value) {
                *sum = if is_no_entry(*sum) { value } else { *sum + value };
            }
        }
    }
}
