//! Options of a hierarchy, and its sizes.

use crate::error::{Error, Result};
use crate::scalar::Scalar;
use serde::Serialize;
use std::fmt;

/// The scaling of residuals in smoothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Smoothing {
    /// Blocks if many unknowns have a neighbour with |a_ij| above half of sqrt(a_ii a_jj), else the diagonal; always
    /// the diagonal for classical coarsening.
    #[default]
    Auto,
    /// The reciprocals of the row sums of magnitudes.
    Diagonal,
    /// The inverses of blocks of about 8 strongly coupled unknowns: for meshes with bad elements, and couplings of both
    /// signs.
    Blocks,
}

/// How coarse unknowns are chosen if levels are not on grids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coarsening {
    /// Classical if nearly all couplings have the opposite sign to the diagonal, nodes have one unknown, no vectors are
    /// given, and A is not Hermitian, or is a large grid whose couplings jump by four decades in many rows; else
    /// aggregates.
    #[default]
    Auto,
    /// Aggregates of strongly coupled unknowns.
    Aggregation,
    /// Some of the unknowns, from which the others interpolate, and no grids: for M-matrices, whose couplings have the
    /// opposite sign to the diagonal. It takes fewer iterations than aggregates if couplings have a direction or for
    /// networks without geometry, but more entries and time for the setup. For matrices whose nodes have one unknown,
    /// without given vectors.
    Classical,
}

/// How prolongations are computed from aggregates, if levels are not on grids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Prolongation {
    /// Smoothed once, along strong couplings.
    #[default]
    Smoothed,
    /// Of nearly minimal energy: each row has the aggregates within two strong couplings, 8 at most, with values that a
    /// few steps of an iteration bring near the minimum of energy. It runs on the CPU, and takes a third fewer
    /// iterations on meshes with flat elements. For Hermitian matrices whose nodes have one unknown, without given
    /// vectors.
    LeastEnergy,
}

/// Options of [`Multigrid`](super::Multigrid). The defaults suit scalar problems.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MultigridOptions {
    /// A coupling is strong if it is at least this fraction of the smaller of the largest couplings of its two rows.
    /// The fraction is multiplied by 0.4 for [`Prolongation::LeastEnergy`], and by 0.6 if smoothing is in blocks, each
    /// unknown is a node and no near-null vectors are given. For [`Coarsening::Classical`], row i depends strongly on
    /// the columns with -a_ij at least this fraction of the row's largest.
    pub strength: f64,
    /// The number of unknowns of each node, which are numbered one after another: 3 for displacements in three
    /// dimensions.
    pub unknowns_a_node: usize,
    /// The scaling of residuals in smoothing.
    pub smoothing: Smoothing,
    /// How coarse unknowns are chosen if levels are not on grids.
    pub coarsening: Coarsening,
    /// How prolongations are computed from aggregates.
    pub prolongation: Prolongation,
    /// With classical coarsening, an unknown interpolates from at most this many coarse ones.
    pub weights: usize,
    /// Steps of smoothing before and after the correction. Default: two if the eigenvalues of A are real, but one with
    /// blocks and if each unknown is a node; else three, because plain steps damp less (upwind differences at a cell
    /// Peclet number of 100 on 64^3 points took 52 iterations with two and 37 with three).
    pub steps: Option<usize>,
    /// A matrix of at most this many rows is not coarsened further; unknowns of very flat elements that are kept on all
    /// levels may add up to half of that.
    pub coarsest_rows: usize,
    /// The maximum number of entries in all levels together, as a multiple of those of the finest. A level that would
    /// exceed it gets a prolongation that is not smoothed (with classical coarsening, fewer weights for each unknown).
    /// So does a level whose products, counted in advance, would be more than a hundred times the finest level's
    /// entries.
    pub most_entries: f64,
    /// True if the cycle runs in half the precision. Its levels are then computed in half the precision too if each
    /// unknown is a node and no near-null vectors are given.
    pub narrow: bool,
    /// True if the eigenvalues of A are real, as for a Hermitian matrix: then smoothing uses Chebyshev's weights, and
    /// levels on grids interpolate. Else each step has weight one, which converges for every diagonally dominant
    /// matrix, and levels on grids are boxes, unless A turns out to be Hermitian.
    pub real_eigenvalues: bool,
    /// True if a matrix on a grid of points gets levels on grids, provided that couplings along all axes are about
    /// equally strong.
    pub boxes: bool,
    /// True if levels are examined for convection that they do not resolve: A is not Hermitian, and not on a grid.
    pub(super) diffusion: bool,
    /// True if such levels are smoothed with incomplete factors.
    pub(super) factors: bool,
}

impl Default for MultigridOptions {
    fn default() -> Self {
        Self {
            strength: 0.25,
            unknowns_a_node: 1,
            smoothing: Smoothing::Auto,
            coarsening: Coarsening::Auto,
            prolongation: Prolongation::Smoothed,
            weights: 4,
            steps: None,
            coarsest_rows: 400,
            most_entries: 3.0,
            narrow: false,
            real_eigenvalues: true,
            boxes: true,
            diffusion: false,
            factors: false,
        }
    }
}

impl MultigridOptions {
    /// Sets [`MultigridOptions::strength`].
    #[must_use]
    pub fn strength(mut self, strength: f64) -> Self {
        self.strength = strength;
        self
    }

    /// Sets [`MultigridOptions::unknowns_a_node`].
    #[must_use]
    pub fn unknowns_a_node(mut self, unknowns: usize) -> Self {
        self.unknowns_a_node = unknowns;
        self
    }

    /// Sets [`MultigridOptions::smoothing`].
    #[must_use]
    pub fn smoothing(mut self, smoothing: Smoothing) -> Self {
        self.smoothing = smoothing;
        self
    }

    /// Sets [`MultigridOptions::coarsening`].
    #[must_use]
    pub fn coarsening(mut self, coarsening: Coarsening) -> Self {
        self.coarsening = coarsening;
        self
    }

    /// Sets [`MultigridOptions::weights`].
    #[must_use]
    pub fn weights(mut self, most: usize) -> Self {
        self.weights = most;
        self
    }

    /// Sets [`MultigridOptions::prolongation`].
    #[must_use]
    pub fn prolongation(mut self, prolongation: Prolongation) -> Self {
        self.prolongation = prolongation;
        self
    }

    /// Sets [`MultigridOptions::steps`].
    #[must_use]
    pub fn steps(mut self, steps: usize) -> Self {
        self.steps = Some(steps);
        self
    }

    /// Sets [`MultigridOptions::coarsest_rows`].
    #[must_use]
    pub fn coarsest_rows(mut self, rows: usize) -> Self {
        self.coarsest_rows = rows;
        self
    }

    /// Sets [`MultigridOptions::most_entries`].
    #[must_use]
    pub fn most_entries(mut self, times: f64) -> Self {
        self.most_entries = times;
        self
    }

    /// Sets [`MultigridOptions::narrow`].
    #[must_use]
    pub fn narrow(mut self, narrow: bool) -> Self {
        self.narrow = narrow;
        self
    }

    /// Sets [`MultigridOptions::real_eigenvalues`].
    #[must_use]
    pub fn real_eigenvalues(mut self, real: bool) -> Self {
        self.real_eigenvalues = real;
        self
    }

    /// Sets [`MultigridOptions::boxes`].
    #[must_use]
    pub fn boxes(mut self, boxes: bool) -> Self {
        self.boxes = boxes;
        self
    }

    /// Chooses the diagonal for smoothing of classical levels, if [`Smoothing::Auto`] was given: interpolation along
    /// strong couplings represents the errors that blocks would damp (docs/internals/multigrid/decisions.md).
    pub(super) fn with_smoothing_decided(&self) -> Self {
        let mut options = self.clone();
        if self.coarsening == Coarsening::Classical && self.smoothing == Smoothing::Auto {
            options.smoothing = Smoothing::Diagonal;
        }
        options
    }

    /// Returns whether new values need a new hierarchy, because levels of this kind cannot be updated on kept patterns.
    pub(super) fn is_made_anew(&self) -> bool {
        self.prolongation == Prolongation::LeastEnergy
            || self.coarsening == Coarsening::Classical
            || self.diffusion
    }

    /// Returns whether all levels are Hermitian.
    pub(super) fn is_hermitian(&self) -> bool {
        self.real_eigenvalues && !self.diffusion
    }

    /// Returns whether a cycle for matrices of `T` has lower precision than `T`.
    pub(super) fn is_narrow<T: Scalar>(&self) -> bool {
        self.narrow && size_of::<T::Lower>() < size_of::<T>()
    }

    /// The number of steps of smoothing before and after the correction. With blocks a second step reduces the
    /// iterations to four fifths at best, but takes more time (docs/internals/multigrid/decisions.md); with one step
    /// elasticity would need 1.5 times as many iterations.
    pub(super) fn smoothing_steps(&self, in_blocks: bool) -> usize {
        let of_kind = match self.real_eigenvalues {
            false => 3,
            true if in_blocks && self.unknowns_a_node == 1 => 1,
            true => 2,
        };
        self.steps.unwrap_or(of_kind)
    }

    /// Returns an error for values out of range.
    pub(super) fn check(&self) -> Result<()> {
        let refused = |what: String| Err(Error::InvalidArgument(what));
        if !(0.0..=1.0).contains(&self.strength) {
            return refused(format!(
                "the threshold for strong connections must be from 0 to 1, not {}",
                self.strength
            ));
        }
        if self.weights == 0 {
            return refused("multigrid needs at least one weight per unknown".into());
        }
        if self.unknowns_a_node == 0 || self.steps == Some(0) || self.coarsest_rows == 0 {
            return refused(
                "multigrid needs at least one unknown per node, one step and one coarsest row".into(),
            );
        }
        if self.most_entries.is_nan() || self.most_entries < 1.0 {
            return refused(format!(
                "the limit on entries must be at least 1 time those of the matrix, not {}",
                self.most_entries
            ));
        }
        Ok(())
    }
}

/// Size of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LevelFacts {
    /// Rows of its matrix.
    pub rows: usize,
    /// Entries of its matrix.
    pub entries: usize,
}

/// The sizes of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultigridFacts {
    /// Its levels, finest first.
    pub levels: Vec<LevelFacts>,
    /// True if its levels are on grids.
    pub grid: bool,
    /// True if they are levels of L A R, with diagonal L and R such that constants are near the null space.
    pub scaled: bool,
}

impl MultigridFacts {
    /// Entries of all levels divided by those of the finest: the cost of a cycle relative to smoothing on the finest
    /// level.
    pub fn operator_complexity(&self) -> f64 {
        operator_complexity(&self.levels)
    }

    /// Rows of all levels divided by those of the finest.
    pub fn grid_complexity(&self) -> f64 {
        times_the_finest(&self.levels, |level| level.rows)
    }
}

/// [`MultigridFacts::operator_complexity`] of these levels.
pub(crate) fn operator_complexity(levels: &[LevelFacts]) -> f64 {
    times_the_finest(levels, |level| level.entries)
}

fn times_the_finest(levels: &[LevelFacts], size: impl Fn(&LevelFacts) -> usize) -> f64 {
    let all = levels.iter().map(&size).sum::<usize>();
    all as f64 / levels.first().map_or(1, size).max(1) as f64
}

impl fmt::Display for MultigridFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} levels{}{}, {:.2} times the entries and {:.2} times the rows of the matrix:",
            self.levels.len(),
            if self.grid { " of grids" } else { "" },
            if self.scaled { " of a scaled matrix" } else { "" },
            self.operator_complexity(),
            self.grid_complexity()
        )?;
        for LevelFacts { rows, entries } in &self.levels {
            write!(
                f,
                "\n  {rows} rows, {entries} entries, {:.1} per row",
                *entries as f64 / (*rows).max(1) as f64
            )?;
        }
        Ok(())
    }
}
