//! Multigrid for matrices whose rows are distributed over several ranks.
//!
//! ```text
//! level      0      1      2   |   3 ... coarsest
//! rank 0    rows   rows   rows | all rows: every rank has these levels as a whole,
//! rank 1    rows   rows   rows | and solves them as a single rank would
//! ```
//!
//! Aggregates are within ranks, so that each rank finds its own, and a row of the next level belongs to the rank that
//! has the aggregate. Prolongations are smoothed across the borders of ranks, and the owner of each row adds up its
//! contributions to R A P. A level therefore hardly differs from that of a single rank, and the number of iterations
//! hardly grows with the number of ranks. Every matrix of a distributed level is a [`Spread`] operator, and the cycle
//! is that of a single rank.
//!
//! | file | what it holds |
//! |---|---|
//! | `rows` | exchange of matrix rows between ranks |
//! | `general` | levels by smoothed aggregation |
//! | `planes` | the planes of a grid that each rank has, and a rank's matrix there |
//! | `between` | levels on grids by interpolation |
//! | `slabs` | levels on grids by boxes |

mod between;
mod general;
mod planes;
mod rows;
mod slabs;

use self::general::{Levels, Rows};
use self::rows::{Halo, gathered};
pub(crate) use self::slabs::{planes, seeming_grid, some_distances};
use super::assemble::{COARSEST_STEPS, moved};
use super::blocks::Scales;
use super::cycle::{Coarsest, Cycle, Gathered, Level, Stored, Transfer};
use super::options::{Coarsening, MultigridFacts, MultigridOptions, Prolongation, Smoothing};
use super::setup::Hierarchy;
use super::smoother::LevelMatrix;
use super::smoother::{Scaling, Smoother};
use super::tentative::NearNull;
use super::{AnyCycle, Multigrid, MultigridBackend, Plans};
use crate::backend::{Communicator, Host, Space};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};
use crate::spread::{Edge, Spread, own_columns, split};
use num_traits::{Float, Zero};
use std::ops::Range;

/// The rows of a rank: the block of its own columns, the entries beside it, and what puts both together on the host with
/// the columns of the whole matrix, for levels that are set up there.
pub(crate) type PartOf<'a, T, B> = (&'a Csr<T, B>, &'a Edge<T>, &'a dyn Fn() -> Result<Csr<T>>);

/// A level of at most this many rows over all ranks is gathered: on CPUs, and on GPUs, where every exchange takes a
/// launch.
const GATHERED: usize = 2000;
const GATHERED_ON_DEVICES: usize = 200_000;

/// A level that could not be coarsened is gathered if it has at most this multiple of that number of rows.
const STAGNANT: usize = 4;

impl<T: Scalar, B: MultigridBackend> Multigrid<T, B> {
    /// Builds a hierarchy together with the other ranks of a space. `a` has this rank's rows with global column
    /// indices, and `rows` are the rows of each rank. All ranks call it with the same options. The preconditioner is
    /// for this rank's entries of vectors; it cannot be updated with new values.
    ///
    /// # Errors
    /// As [`Multigrid::new`], if nodes have several unknowns, and if another rank has failed.
    pub fn spread<C: Communicator<B>>(
        space: &Space<B, C>,
        a: &Csr<T>,
        rows: &[Range<usize>],
        options: &MultigridOptions,
    ) -> Result<Self> {
        let part = space.communicator().part();
        Error::check_dimension("parts", space.communicator().parts(), rows.len())?;
        Error::check_dimension("rows of this part", rows[part].len(), a.rows())?;
        Error::check_dimension("columns", rows.last().map_or(0, |rows| rows.end), a.columns())?;
        let (own, edge) = split(&Host, a, &(0..a.rows()), &rows[part])?;
        let own = own.into_backend(space.backend())?;
        let made = Self::spread_with(space, (&own, &edge, &|| a.copied(&Host)), rows, options, false)?;
        made.ok_or_else(|| Error::Unsupported("multigrid for this distributed matrix".into()))
    }

    /// As [`Multigrid::spread`] for the parts of this rank's rows. With `grids_only`, returns `None` if the matrix is on
    /// no grid of which ranks have whole planes.
    pub(crate) fn spread_with<C: Communicator<B>>(
        space: &Space<B, C>,
        (own, edge, on_host): PartOf<'_, T, B>,
        rows: &[Range<usize>],
        options: &MultigridOptions,
        grids_only: bool,
    ) -> Result<Option<Self>> {
        options.check()?;
        let (backend, communicator, here) = (space.backend(), space.communicator(), own.rows());
        if options.unknowns_a_node > 1 {
            return Err(Error::Unsupported(
                "multigrid with several unknowns per node on several ranks".into(),
            ));
        }
        if options.prolongation != Prolongation::Smoothed {
            return Err(Error::Unsupported("energy-minimising prolongation on several ranks".into()));
        }
        if options.coarsening == Coarsening::Classical {
            return Err(Error::Unsupported("classical coarsening on several ranks".into()));
        }
        let build = Build { space, options };
        let made = |cycle, facts| {
            let options = options.clone();
            Ok(Some(Self {
                cycle,
                plans: Plans::Full(Vec::new()),
                kept: None,
                scaled: None,
                options,
                asked: None,
                facts,
                own: Some(here),
                units: None,
            }))
        };
        let gathered = gathered_rows(space, options);
        let large = rows.last().map_or(0, |rows| rows.end) > options.coarsest_rows;
        if options.boxes && large {
            let numbers = edge.rows.clone();
            if options.is_narrow::<T>() {
                let edge = Edge { rows: numbers, a: edge.a.to_rounded(&Host)? };
                if let Some((cycle, facts)) = build.grids(&own.to_rounded(backend)?, edge, rows, gathered)? {
                    return made(AnyCycle::Lower(cycle), facts);
                }
            } else {
                let edge = Edge { rows: numbers, a: edge.a.copied(&Host)? };
                if let Some((cycle, facts)) = build.grids(own, edge, rows, gathered)? {
                    return made(AnyCycle::Full(cycle), facts);
                }
            }
        }
        if grids_only {
            return Ok(None);
        }
        let a = on_host()?;
        if space.count(!a.parts().values.iter().all(|value| value.is_finite()))? > 0 {
            return Err(Error::InvalidMatrix("an entry is infinite or NaN".into()));
        }
        let finest = Rows { a, parts: rows.to_vec() };
        let levels = general::levels(space, finest, options, gathered)?;
        let near_null = whole_vector::<T::Real, B, C>(communicator, &levels.near_null)?;
        let facts = MultigridFacts { levels: levels.facts.clone(), grid: false, scaled: false };
        if options.is_narrow::<T>() {
            let (cycle, facts) = build.cycle(levels, near_null, facts, |a| a.to_rounded(&Host))?;
            made(AnyCycle::Lower(cycle), facts)
        } else {
            let (cycle, facts) = build.cycle(levels, near_null, facts, Ok)?;
            made(AnyCycle::Full(cycle), facts)
        }
    }
}

/// The number of rows at which a level is gathered.
fn gathered_rows<B: MultigridBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    options: &MultigridOptions,
) -> usize {
    let device = space.communicator().latency() > 0.0;
    (if device { GATHERED_ON_DEVICES } else { GATHERED }).max(options.coarsest_rows)
}

/// Gathers the whole vector on all ranks.
fn whole_vector<R: Real, B: MultigridBackend, C: Communicator<B>>(
    communicator: &C,
    own: &[R],
) -> Result<Vec<R>> {
    let all =
        communicator.gather(own.iter().flat_map(|&value| Real::to_f64(value).to_le_bytes()).collect())?;
    let words = all.iter().flat_map(|bytes| bytes.as_chunks().0);
    Ok(words.map(|word| R::from_f64(f64::from_le_bytes(*word))).collect())
}

/// The context for building cycles.
struct Build<'a, B: MultigridBackend, C> {
    space: &'a Space<B, C>,
    options: &'a MultigridOptions,
}

impl<B: MultigridBackend, C: Communicator<B>> Build<'_, B, C> {
    /// The cycle, in the precision of `rounded`, and its levels.
    fn cycle<T: Scalar, S: Scalar<Lower = T::Lower>>(
        &self,
        levels: Levels<T>,
        near_null: Vec<T::Real>,
        mut facts: MultigridFacts,
        rounded: impl Fn(Csr<T>) -> Result<Csr<S>>,
    ) -> Result<(Cycle<S, B>, MultigridFacts)> {
        let Levels { levels, coarsest, stagnates, .. } = levels;
        let mut in_blocks = match self.options.smoothing {
            Smoothing::Auto => None,
            Smoothing::Diagonal => Some(false),
            Smoothing::Blocks => Some(true),
        };
        let mut made = Vec::new();
        let ends: Vec<Vec<Range<usize>>> =
            levels.iter().skip(1).map(|level| level.fine.parts.clone()).collect();
        let ends = ends.into_iter().chain([coarsest.parts.clone()]);
        for (level, coarse_parts) in levels.into_iter().zip(ends) {
            let Rows { a, parts } = level.fine;
            let a = rounded(a)?;
            let smoother = self.smoother(&a, &parts, &mut in_blocks, self.options.smoothing_steps(false))?;
            let transfer = Transfer::Spread {
                prolongation: self.operator(&rounded(level.prolongation)?, &coarse_parts)?,
                restriction: self.operator(&rounded(level.restriction)?, &parts)?,
            };
            made.push(Level {
                a: Stored::Spread(self.operator(&a, &parts)?),
                smoother,
                transfer,
                twice: false,
            });
        }
        let rows = coarsest.parts.last().map_or(0, |rows| rows.end);
        let coarsest = if stagnates && rows > STAGNANT * gathered_rows(self.space, self.options) {
            let a = rounded(coarsest.a)?;
            let smoother = self.smoother(&a, &coarsest.parts, &mut in_blocks, COARSEST_STEPS)?;
            Coarsest::Smoothed(Stored::Spread(self.operator(&a, &coarsest.parts)?), smoother)
        } else {
            let backend = self.space.backend();
            let whole = gathered::<T, B, C>(self.space.communicator(), &coarsest.a)?.into_backend(backend)?;
            let near_null = NearNull::One(backend.upload(near_null)?);
            let Hierarchy { levels, coarsest: last, .. } =
                Hierarchy::new(backend, whole, Some(near_null), None, self.options)?;
            facts.levels.pop();
            facts.levels.extend(super::setup::facts(&levels, &last));
            let matrices = levels.into_iter().map(|level| [level.a, level.prolongation, level.restriction]);
            let matrices = matrices.collect();
            let on_backend = |a: Csr<T, B>| rounded(a.to_host(backend)?)?.into_backend(backend);
            let cycle = moved(backend, matrices, last, None, self.options, &on_backend)?;
            Coarsest::Gathered(Box::new(self.gathered(cycle, &coarsest.parts, false)?))
        };
        Ok((Cycle { levels: made, coarsest, chebyshev: self.options.real_eigenvalues }, facts))
    }

    /// A cycle for the whole system, on each rank.
    fn gathered<S: Scalar>(
        &self,
        cycle: Cycle<S, B>,
        parts: &[Range<usize>],
        twice: bool,
    ) -> Result<Gathered<S, B>> {
        let rows = parts.last().map_or(0, |rows| rows.end);
        let identity = Csr::from_parts(
            rows,
            rows,
            (0..=rows).collect(),
            (0..rows as u32).collect(),
            vec![S::one(); rows],
        )?;
        let whole = Stored::Spread(self.operator(&identity, parts)?);
        Ok(Gathered { whole, cycle, own: parts[self.space.communicator().part()].clone(), twice })
    }

    /// This rank's rows of a matrix as an operator; `columns` says which rank owns which columns.
    fn operator<S: Scalar>(&self, a: &Csr<S>, columns: &[Range<usize>]) -> Result<Box<LevelMatrix<S, B>>> {
        let communicator = self.space.communicator().clone();
        Ok(Box::new(Spread::local(self.space.backend(), communicator, a, columns)?))
    }

    /// The smoother of a distributed level, scaled by whole rows. Unless the options say whether to use blocks, the
    /// first level decides by what most ranks find.
    fn smoother<S: Scalar>(
        &self,
        a: &Csr<S>,
        parts: &[Range<usize>],
        in_blocks: &mut Option<bool>,
        steps: usize,
    ) -> Result<Smoother<S, B>> {
        let (backend, communicator) = (self.space.backend(), self.space.communicator());
        let own = &parts[communicator.part()];
        let scales = Scales::new(&Host, &own_columns(a, &(0..a.rows()), own)?)?;
        let blocks = match *in_blocks {
            Some(blocks) => blocks,
            None => 2 * self.space.count(scales.blocks_pay(&Host)?)? > parts.len(),
        };
        *in_blocks = Some(blocks);
        let halo = Halo::of(communicator, a, parts)?;
        let beyond = halo.values(communicator, &scales.of_diagonal)?;
        // The sum of a row outside of its rank's columns, with A scaled to a unit diagonal.
        let outside = |row: usize| {
            let (columns, values) = a.row(row);
            let entries = columns.iter().zip(values).filter_map(|(column, value)| {
                let place = halo.numbers.binary_search(column).ok()?;
                Some(value.abs().to_f64() * beyond[place])
            });
            entries.sum::<f64>() * scales.of_diagonal[row]
        };
        let scaling = if blocks {
            let mut widened = own_columns(a, &(0..a.rows()), own)?;
            let diagonals: Vec<(usize, S)> = places_of_diagonal(&widened)
                .map(|(row, place)| (place, outside(row) / scales.of_diagonal[row].powi(2)))
                .filter(|(_, more)| more.is_finite())
                .map(|(place, more)| (place, S::from_real(S::Real::from_f64(more))))
                .collect();
            diagonals.into_iter().for_each(|(place, more)| widened.values_mut()[place] += more);
            let inverses = scales.block_inverses(&Host, &widened, self.options.real_eigenvalues)?;
            Scaling::Blocks(inverses.into_backend(backend)?)
        } else {
            let sums = scales.of_sums.iter().enumerate().map(|(row, &sum)| {
                // `sum` is 1 / a_ii divided by the row sum of the scaled matrix.
                let more = S::Real::from_f64(outside(row) / scales.of_diagonal[row].powi(2));
                if more > S::Real::zero() && Float::is_finite(more) && sum > S::Real::zero() {
                    (sum.recip() + more).recip()
                } else {
                    sum
                }
            });
            Scaling::Diagonal(backend.upload(sums.collect())?)
        };
        Ok(if self.options.real_eigenvalues {
            Smoother::new(scaling, steps, 1.0)
        } else {
            Smoother::plain(scaling, steps)
        })
    }
}

/// The rows that have a diagonal entry, with its position among the values.
fn places_of_diagonal<S: Scalar>(a: &Csr<S>) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut first = 0;
    (0..a.rows()).filter_map(move |row| {
        let columns = a.row(row).0;
        let start = first;
        first += columns.len();
        columns.binary_search(&(row as u32)).ok().map(|place| (row, start + place))
    })
}
