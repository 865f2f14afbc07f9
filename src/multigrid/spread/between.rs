//! Distributed levels on grids of which each rank has some planes, where every other point is coarse and the others
//! interpolate.
//!
//! ```text
//!     the rank below | this rank               | the rank above      o  a plane of points of the next level
//!        o     x     | o     x    ...   o    x | o                   x  a plane between two of them
//!        s-2   s-1   | s     s+1            e-1  e
//! ```
//!
//! A rank extends its planes, of which the first is a plane of the next level, by the two below and the one above, and
//! does there what a single rank would do. Its own rows of P^H A P are right: they depend on the weights of planes s -
//! 2 to e, and those of plane s - 1 follow from the rows of planes s - 2 to s. Planes s - 2 and e have weights within
//! the plane only; for these, couplings to other planes are treated as couplings within the plane, and those to planes
//! s - 3 and e + 1 are added.
//!
//! In a cycle, the entries that cross the border are those of A in planes s and e - 1 that lead to s - 1 and e, the
//! weights of plane e - 1 for plane e (in P), and those of plane s - 1 for plane s (in P^H).

use super::Build;
use super::planes::{EdgePiece, Planes, Slab, Wider};
use super::rows::numbers;
use crate::backend::{
    Communicator, Grid, GridMatrix, Op, bits_of, grid_values, grid_weights, interpolated, weight_number,
};
use crate::error::{Error, Result};
use crate::matrix::Dia;
use crate::multigrid::MultigridBackend;
use crate::multigrid::cycle::{Coarsest, Cycle, Level, Stored, Transfer};
use crate::multigrid::grid;
use crate::multigrid::on_grid::OnGrid;
use crate::multigrid::options::{LevelFacts, MultigridFacts};
use crate::multigrid::smoother::LevelMatrix;
use crate::operator::LinearOperator;
use crate::parallel::of_stretches;
use crate::scalar::Scalar;
use crate::spread::{Edge, Spread};
use std::ops::Range;
use std::sync::Arc;

/// P within the points of one rank, or P^H.
struct Within<S: Scalar, B: MultigridBackend> {
    /// This rank's points.
    grid: Grid,
    weights: Arc<B::Vec<S>>,
    restricts: bool,
}

impl<S: Scalar, B: MultigridBackend> LinearOperator<S, B> for Within<S, B> {
    fn rows(&self) -> usize {
        if self.restricts { self.grid.coarser().points() } else { self.grid.points() }
    }

    fn columns(&self) -> usize {
        if self.restricts { self.grid.points() } else { self.grid.coarser().points() }
    }

    fn apply(&self, backend: &B, x: &B::Slice<S>, y: &mut B::Slice<S>) -> Result<()> {
        if self.restricts {
            return backend.grid_restrict_weighted(self.grid, &self.weights, x, y);
        }
        backend.fill(S::zero(), y)?;
        backend.grid_prolong_weighted(self.grid, &self.weights, x, y)
    }

    /// A cycle needs y += P x, and y = P^H x.
    fn product_op(
        &self,
        backend: &B,
        op: Op,
        alpha: S,
        x: &B::Slice<S>,
        beta: S,
        y: &mut B::Slice<S>,
    ) -> Result<()> {
        let plain = op == Op::None && alpha == S::one();
        if plain && beta == S::zero() {
            self.apply(backend, x, y)
        } else if plain && beta == S::one() && !self.restricts {
            backend.grid_prolong_weighted(self.grid, &self.weights, x, y)
        } else {
            Err(Error::Unsupported(
                "products with interpolation on a grid other than y = P^H x and y += P x".into(),
            ))
        }
    }

    fn bytes(&self) -> usize {
        // P and P^H share the weights.
        B::len(&*self.weights) * size_of::<S>() / 2
    }
}

/// The weights of one plane of boxes on the host, one kind of weight after another.
fn of_plane<S: Scalar, B: MultigridBackend>(
    backend: &B,
    weights: &B::Slice<S>,
    (boxes, plane): (usize, Range<usize>),
) -> Result<Vec<S>> {
    backend.download(&*chosen::<S, B>(backend, weights, (boxes, plane))?)
}

/// The weights that belong to a rank's boxes, out of those of `boxes` boxes.
fn chosen<S: Scalar, B: MultigridBackend>(
    backend: &B,
    weights: &B::Slice<S>,
    (boxes, these): (usize, Range<usize>),
) -> Result<B::Vec<S>> {
    let count = B::len(weights) / boxes;
    let mut all = backend.buffer(count * these.len())?;
    for number in 0..count {
        let from = B::part(weights, number * boxes + these.start..number * boxes + these.end);
        backend.copy(from, B::part_mut(&mut all, number * these.len()..(number + 1) * these.len()))?;
    }
    Ok(all)
}

/// The entries of `rows` of this rank in columns of other ranks; `entries` adds those of one row, counted from 0.
fn edge_of<S: Scalar>(
    columns: usize,
    rows: Range<usize>,
    entries: impl Fn(usize, &mut EdgePiece<S>) + Sync,
) -> Result<Edge<S>> {
    let pieces = of_stretches(&(0..rows.len()), 1 << 12, |stretch| {
        let mut piece = EdgePiece::default();
        stretch.for_each(|place| entries(place, &mut piece));
        piece
    });
    EdgePiece::joined(pieces, columns)
}

/// The entries of P that lead from the last plane of a rank, which is between two coarse ones, to the first of the rank
/// above. `weights` are those of the last plane of boxes.
fn prolonged<S: Scalar>(fine: &Planes, coarse: &Planes, part: usize, weights: &[S]) -> Result<Edge<S>> {
    let (plane, boxes, across) = (fine.grid(1), coarse.grid(1), 1 << fine.axis());
    let end = fine.counts[part] * fine.points();
    let columns = coarse.parts().get(part + 1).map_or(0, |above| above.start);
    edge_of(coarse.whole.points(), end - fine.points()..end, |point, piece| {
        let at = plane.place(point);
        let odd = (at[0] & 1) | (at[1] & 1) << 1 | across;
        let of_box = at.map(|at| at / 2);
        let corners = (0..8).filter(|corner| corner & !odd == 0 && corner & across != 0);
        let entry = |corner: usize| {
            let within = corner & !across;
            let to = [0, 1, 2].map(|axis| of_box[axis] + (within >> axis & 1));
            let weight = weights[weight_number(odd, corner) * boxes.points() + boxes.number(of_box)];
            boxes.has(to).then(|| ((columns + boxes.number(to)) as u32, weight))
        };
        piece.push((end - fine.points() + point) as u32, corners.filter_map(entry));
    })
}

/// The entries of P^H that lead from the first plane of the next level to the last of the rank below. `weights` are
/// those of the plane of boxes below.
fn restricted<S: Scalar>(fine: &Planes, coarse: &Planes, part: usize, weights: &[S]) -> Result<Edge<S>> {
    let (plane, boxes, across) = (fine.grid(1), coarse.grid(1), 1 << fine.axis());
    let columns = fine.parts()[part].start - fine.points();
    edge_of(fine.whole.points(), 0..coarse.points(), |point, piece| {
        let at = boxes.place(point);
        let around = (-1..=1).flat_map(|y| (-1..=1).map(move |x| [x, y, 0]));
        let entry = |by: [i64; 3]| {
            let from = plane.neighbour(at.map(|at| 2 * at), by)?;
            let (odd, back) = bits_of(by);
            let of_box = [0, 1, 2].map(|axis| at[axis] - (back >> axis & 1));
            let number = weight_number(odd | across, back | across);
            let weight = weights[number * boxes.points() + boxes.number(of_box)];
            Some(((columns + plane.number(from)) as u32, weight.conj()))
        };
        piece.push(point as u32, around.filter_map(entry));
    })
}

impl<B: MultigridBackend, C: Communicator<B>> Build<'_, B, C> {
    /// The cycle from the finest level on for this rank's planes; `None` in the cases of [`grid::levels`].
    pub(super) fn between<S: Scalar>(
        &self,
        mut slab: Slab<S, B>,
        gathered_rows: usize,
    ) -> Result<Option<(Cycle<S, B>, MultigridFacts)>> {
        let (backend, communicator) = (self.space.backend(), self.space.communicator());
        let (mut levels, mut facts, mut unfit) = (Vec::new(), Vec::new(), backend.zeros(1)?);
        while slab.planes.whole.points() > gathered_rows {
            let Some(coarse) = slab.planes.coarser() else { break };
            let edge = slab.edge()?;
            let entries = numbers::<B, C>(communicator, slab.own.nonzeros() + edge.a.nonzeros())?;
            facts.push(LevelFacts { rows: slab.planes.whole.points(), entries: entries.into_iter().sum() });
            let (level, next) = self.level_between(slab, edge, coarse, &mut unfit)?;
            levels.push(level);
            slab = next;
        }
        if self.space.count(backend.value(&unfit)? != 0)? > 0 {
            return Ok(None);
        }
        let values = backend.upload(slab.gathered(backend, communicator)?)?;
        let (whole, neighbours) = (slab.planes.whole, slab.neighbours);
        let matrix = OnGrid::Diagonals(Dia::on_grid(backend, whole, neighbours, values)?);
        let Some((cycle, below)) = grid::levels(backend, (whole, neighbours), matrix, self.options, None)?
        else {
            return Ok(None);
        };
        facts.extend(below.levels);
        let coarsest = Coarsest::Gathered(Box::new(self.gathered(cycle, &slab.planes.parts(), false)?));
        let cycle = Cycle { levels, coarsest, chebyshev: self.options.real_eigenvalues };
        Ok(Some((cycle, MultigridFacts { levels: facts, grid: true, scaled: false })))
    }

    /// A level with its transfer to the next, and this rank's matrix there.
    fn level_between<S: Scalar>(
        &self,
        slab: Slab<S, B>,
        edge: Edge<S>,
        coarse: Planes,
        unfit: &mut B::Slice<u32>,
    ) -> Result<(Level<S, B>, Slab<S, B>)> {
        let (backend, communicator) = (self.space.backend(), self.space.communicator());
        let (part, fine) = (slab.part, slab.planes.clone());
        let Wider { grid, before, values } = slab.wider(backend, communicator)?;
        let a = GridMatrix { grid, neighbours: slab.neighbours, values: &*values };
        let own = fine.grid(fine.counts[part]);
        let mut all_scales = backend.buffer(grid.points())?;
        backend.grid_scales(a, &mut all_scales)?;
        let mut scales = backend.buffer(own.points())?;
        let first = before * fine.points();
        backend.copy(B::part(&all_scales, first..first + own.points()), &mut scales)?;
        drop(all_scales);
        let mut all_weights = backend.buffer(grid_weights(grid))?;
        backend.grid_weights(a, &mut all_weights, unfit)?;
        let to = interpolated(grid);
        let mut product = backend.buffer(grid_values(grid.coarser(), to))?;
        backend.grid_interpolated(a, &all_weights, &mut product)?;
        drop(values);
        let next = Slab::within(backend, (coarse.clone(), to), part, (&product, before / 2))?;
        drop(product);
        // The weights of this rank's own boxes, and of the planes at its borders.
        let (boxes, plane, first) = (grid.coarser().points(), coarse.points(), before / 2 * coarse.points());
        let here = first..first + own.coarser().points();
        let (top, bottom) = (here.end - plane..here.end, first.saturating_sub(plane)..first);
        let none = |columns: &Planes| EdgePiece::joined(Vec::new(), columns.whole.points());
        let above = match part + 1 < fine.counts.len() {
            true => prolonged(&fine, &coarse, part, &of_plane::<S, B>(backend, &all_weights, (boxes, top))?)?,
            false => none(&coarse)?,
        };
        let below = match part > 0 {
            true => {
                restricted(&fine, &coarse, part, &of_plane::<S, B>(backend, &all_weights, (boxes, bottom))?)?
            }
            false => none(&fine)?,
        };
        let weights = Arc::new(chosen::<S, B>(backend, &all_weights, (boxes, here))?);
        drop(all_weights);
        let within = |restricts| Within { grid: own, weights: Arc::clone(&weights), restricts };
        let transfer = Transfer::Spread {
            prolongation: self.joined(Box::new(within(false)), &above, &coarse.parts())?,
            restriction: self.joined(Box::new(within(true)), &below, &fine.parts())?,
        };
        let a = Stored::Spread(self.joined(Box::new(slab.own), &edge, &fine.parts())?);
        let smoother = grid::smoother(scales, self.options);
        Ok((Level { a, smoother, transfer, twice: false }, next))
    }

    /// The operator of a matrix whose rows also have these entries in columns of other ranks.
    fn joined<S: Scalar>(
        &self,
        own: Box<LevelMatrix<S, B>>,
        edge: &Edge<S>,
        columns: &[Range<usize>],
    ) -> Result<Box<LevelMatrix<S, B>>> {
        let (backend, communicator) = (self.space.backend(), self.space.communicator());
        Ok(Box::new(Spread::joined(backend, communicator.clone(), own, edge, columns)?))
    }
}
