//! How the levels are chosen and built.

use super::assemble::{cycle_of, narrow_cycle_of};
use super::blocks::Scales;
use super::diagonal::{ones, times};
use super::diffusion::{Resolved, resolved};
use super::grid;
use super::sample::has_jumps;
use super::scaling::{Scaled, has_near_constants, near_constants};
use super::setup::{Hierarchy, longest_row};
use super::symmetrize::symmetrized;
use super::tentative::{NearNull, Vectors};
use super::{
    AnyCycle, Asked, Coarsening, LevelFacts, Multigrid, MultigridBackend, MultigridFacts, MultigridOptions,
    Plans, Prolongation, Smoothing, check_finite, is_like_an_m_matrix,
};
use crate::backend::{Diagonals, copied};
use crate::error::{Error, Result};
use crate::look::{Defects, Transposed};
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// With longer rows a cycle stays in full precision: in half the precision, rounding errors of such long sums are as
/// large as the terms that keep such a matrix from being singular. On a graph with a vertex of 42 000 neighbours and
/// weights over six decades, conjugate gradients take 14 iterations in full precision, and do not converge in hundreds
/// in single.
const LONGEST_IN_HALF: u32 = 10_000;

/// On grids with fewer points, few parts are isolated by jumps of coefficients, and the coarsest level holds them all.
const FEW: usize = 100_000;

impl<T: Scalar, B: MultigridBackend> Multigrid<T, B> {
    /// A hierarchy for A, with the vector of ones as the near-null vector.
    ///
    /// # Errors
    /// If A is not square or has entries that are infinite or NaN, if memory runs out, or if the device fails.
    pub fn new(backend: &B, a: &Csr<T, B>, options: &MultigridOptions) -> Result<Self> {
        Self::build(backend, a, None, options)
    }

    /// As [`Multigrid::new`], with given near-null vectors: vectors that the matrix without boundary conditions maps to
    /// zero, such as the rigid body modes in elasticity. Entry (i, j) of `near_null`, vector j at row i, is at i *
    /// `vectors` + j.
    ///
    /// # Errors
    /// As [`Multigrid::new`], and if there are no vectors or they have another length.
    pub fn with_near_null(
        backend: &B,
        a: &Csr<T, B>,
        vectors: usize,
        near_null: Vec<T>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        Error::check_dimension("entries of the near-null vectors", a.rows() * vectors, near_null.len())?;
        if vectors == 0 {
            return Err(Error::InvalidArgument("multigrid needs at least one near-null vector".into()));
        }
        let alone = vectors == 1 && options.unknowns_a_node == 1;
        let near_null = if alone && near_null.iter().all(|value| *value == T::from_real(value.re())) {
            NearNull::One(backend.upload(near_null.iter().map(|value| value.re()).collect())?)
        } else {
            NearNull::Several(Vectors { count: vectors, rows: backend.upload(near_null)? })
        };
        Self::build(backend, a, Some(near_null), options)
    }

    fn build(
        backend: &B,
        a: &Csr<T, B>,
        near_null: Option<NearNull<T, B>>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        options.check()?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let classical = options.coarsening == Coarsening::Classical;
        let of_energy = options.prolongation == Prolongation::LeastEnergy;
        if classical && (options.unknowns_a_node > 1 || near_null.is_some() || of_energy) {
            let what = "classical coarsening for nodes of several unknowns, of given vectors, or with a \
                        prolongation of least energy";
            return Err(Error::Unsupported(what.into()));
        }
        if options.real_eigenvalues {
            return Self::in_units(backend, a, near_null, options);
        }
        // If the matrix turns out to be Hermitian, it gets the levels for conjugate gradients.
        let hermitian = Transposed::of(backend, a)?.is_hermitian();
        let asked = Asked { options: options.clone(), near_null: near_null.is_some(), hermitian };
        let this = if hermitian {
            Self::in_units(backend, a, near_null, &options.clone().real_eigenvalues(true))?
        } else {
            let symmetrized =
                if asked.near_null { None } else { Self::symmetrized(backend, a, options, &|| Ok(true))? };
            symmetrized.map_or_else(|| Self::in_units(backend, a, near_null, options), Ok)?
        };
        Ok(Self { asked: Some(asked), ..this })
    }

    /// A hierarchy for a matrix that is not Hermitian, if positive row factors make it so; `None` if there are no such
    /// factors, or if there are and `is_wanted` returns false.
    pub(crate) fn symmetrized(
        backend: &B,
        a: &Csr<T, B>,
        options: &MultigridOptions,
        is_wanted: &dyn Fn() -> Result<bool>,
    ) -> Result<Option<Self>> {
        let Some((factors, a)) = symmetrized(backend, a, is_wanted)? else { return Ok(None) };
        let mut this = Self::in_units(backend, &a, None, &options.clone().real_eigenvalues(true))?;
        let right = this.scaled.take().and_then(|(scaled, _)| scaled.right);
        Ok(Some(this.of_scaled(Scaled::new(backend, Some(factors), right)?, options)))
    }

    /// Turns the hierarchy of L A R into one of A, for which `options` were given.
    fn of_scaled(mut self, scaled: Scaled<T, B>, options: &MultigridOptions) -> Self {
        self.scaled = Some((scaled, options.clone()));
        self.facts.scaled = true;
        self
    }

    /// A hierarchy for D A D, or for D A without `columns`, with a positive diagonal D, built by `make`. It uses the
    /// levels of A if constants are near the null space of A and, when only rows are scaled, A is nearer to a Hermitian
    /// matrix than D A; otherwise it has those of the scaled matrix. `units` is the diagonal of D^-1.
    pub(crate) fn in_units_of(
        backend: &B,
        a: &Csr<T, B>,
        (units, columns): (B::Vec<T>, bool),
        make: impl Fn(&Csr<T, B>) -> Result<Option<Self>>,
    ) -> Result<Option<Self>> {
        let one = if columns { None } else { Some(ones::<T, B>(backend, a.rows())?) };
        let distance =
            |a: &Csr<T, B>| Defects::of(backend, a).map(|defects| defects.relative().hermitian_defect);
        let natural = times(backend, a, &units, one.as_deref().unwrap_or(&units))?;
        let is_nearer = columns || distance(&natural)? < distance(a)?;
        if !is_nearer || !has_near_constants(backend, &natural)? {
            return make(a);
        }
        let made = match make(&natural) {
            // The coarsest level of an indefinite A may be singular where that of D A is not.
            Err(Error::InvalidMatrix(_)) if !columns => return make(a),
            made => made?,
        };
        let Some(mut this) = made else { return Ok(None) };
        let (scaled, options) = match this.scaled.take() {
            None if columns => {
                (Scaled::new(backend, None, Some(copied(backend, &units)?))?, this.options.clone())
            }
            None => (Scaled::new(backend, Some(copied(backend, &units)?), None)?, this.options.clone()),
            Some((scaled, options)) => (scaled.within(backend, &units, columns)?, options),
        };
        (this.scaled, this.units) = (Some((scaled, options)), Some((units, columns)));
        Ok(Some(this))
    }

    /// Levels on a grid, or those of R^H A R if constants are not near the null space of A.
    fn in_units(
        backend: &B,
        a: &Csr<T, B>,
        near_null: Option<NearNull<T, B>>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        if options.boxes
            && options.unknowns_a_node == 1
            && near_null.is_none()
            && let Some(this) = Self::on_grid(backend, a, options, None)?
        {
            return Ok(this);
        }
        check_finite(backend, a)?;
        if !options.real_eigenvalues && options.unknowns_a_node == 1 && near_null.is_none() {
            return Self::convective(backend, a, options);
        }
        let options = &options.with_smoothing_decided();
        let found = match near_null {
            None if options.real_eigenvalues => near_constants(backend, a, options.unknowns_a_node)?,
            _ => None,
        };
        let Some((right, a, near_null)) = found else { return Self::general(backend, a, near_null, options) };
        let this = Self::general(backend, &a, near_null, options)?;
        Ok(this.of_scaled(Scaled::new(backend, None, Some(right))?, options))
    }

    /// Levels of a matrix that is not Hermitian and not on a grid, where each unknown is a node.
    fn convective(backend: &B, a: &Csr<T, B>, options: &MultigridOptions) -> Result<Self> {
        let mut options = options.clone();
        let smoothed = options.prolongation == Prolongation::Smoothed;
        let classical = match options.coarsening {
            Coarsening::Auto => smoothed && is_like_an_m_matrix(backend, a)?,
            named => named == Coarsening::Classical,
        };
        let named = options.coarsening != Coarsening::Auto;
        let free = options.smoothing == Smoothing::Auto && smoothed && !(classical && named);
        // Classical levels stay unless a coupling is so strong that flat elements may be there.
        if free && (!classical || Scales::new(backend, a)?.some_are_strong(backend)?) {
            let Resolved { a: made, differs, wants_blocks, has_flat, is_windy } =
                resolved(a.to_host(backend)?)?;
            // Classical levels are better if no elements are very flat.
            if wants_blocks && (!classical || has_flat) {
                let made = if differs { Some(made.into_backend(backend)?) } else { None };
                // With diagonal dominance, one step of Chebyshev's iteration damps all eigenvalues.
                (options.diffusion, options.real_eigenvalues) = (true, true);
                options.factors = is_windy;
                options.smoothing = Smoothing::Blocks;
                return Self::general(backend, made.as_ref().unwrap_or(a), None, &options);
            }
        }
        if classical {
            options.coarsening = Coarsening::Classical;
        }
        Self::general(backend, a, None, &options.with_smoothing_decided())
    }

    /// Levels by aggregation or classical coarsening.
    fn general(
        backend: &B,
        a: &Csr<T, B>,
        near_null: Option<NearNull<T, B>>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        // Flat elements, which need blocks, do not tolerate levels in half the precision: a Delaunay mesh of 10^6
        // points takes 81 iterations in full precision; in half the precision the cycle is not positive definite any
        // more, and the solve fails after 209.
        let mut full = options.is_narrow::<T>() && longest_row(backend, a)? > LONGEST_IN_HALF;
        let (mut rounded, mut in_blocks) = (None, None);
        if options.is_narrow::<T>() && !full && options.unknowns_a_node == 1 && near_null.is_none() {
            let a = a.to_rounded(backend)?;
            let scales = Scales::new(backend, &a)?;
            if options.real_eigenvalues {
                full = options.smoothing != Smoothing::Diagonal && scales.blocks_pay(backend)?;
                in_blocks = Some(full);
            }
            rounded = Some((a, scales));
        }
        let options = &if full { options.clone().narrow(false) } else { options.clone() };
        let of_energy = options.prolongation == Prolongation::LeastEnergy;
        if of_energy && (options.unknowns_a_node > 1 || near_null.is_some() || !options.is_hermitian()) {
            let what = "a prolongation of least energy for nodes of several unknowns, given vectors, or a matrix that \
                        is not Hermitian";
            return Err(Error::Unsupported(what.into()));
        }
        if let Some((a, scales)) = rounded.filter(|_| !full) {
            let hierarchy = Hierarchy::new(backend, a, None, in_blocks, options)?;
            let (facts, (levels, coarsest, plans)) = (hierarchy.facts(), hierarchy.into_parts());
            let cycle = AnyCycle::Lower(cycle_of(backend, levels, coarsest, Some(scales), options)?);
            return Ok(Self::made(cycle, Plans::Lower(plans), facts, options));
        }
        let hierarchy = Hierarchy::new(backend, a.copied(backend)?, near_null, in_blocks, options)?;
        let (facts, (levels, coarsest, plans)) = (hierarchy.facts(), hierarchy.into_parts());
        let cycle = if options.is_narrow::<T>() {
            AnyCycle::Lower(narrow_cycle_of(backend, levels, coarsest, options)?)
        } else {
            AnyCycle::Full(cycle_of(backend, levels, coarsest, None, options)?)
        };
        Ok(Self::made(cycle, Plans::Full(plans), facts, options))
    }

    fn made(
        cycle: AnyCycle<T, B>,
        plans: Plans<T, B>,
        levels: Vec<LevelFacts>,
        options: &MultigridOptions,
    ) -> Self {
        let facts = MultigridFacts { levels, grid: false, scaled: false };
        Self {
            cycle,
            plans,
            kept: None,
            scaled: None,
            options: options.clone(),
            asked: None,
            facts,
            own: None,
            units: None,
        }
    }

    /// A hierarchy on grids if the matrix is on one, or a classical one if such a matrix is Hermitian and its couplings
    /// jump. `known` are its diagonals, if they have been determined.
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub(crate) fn on_grid(
        backend: &B,
        a: &Csr<T, B>,
        options: &MultigridOptions,
        known: Option<&Diagonals>,
    ) -> Result<Option<Self>> {
        if options.coarsening == Coarsening::Classical {
            return Ok(None);
        }
        let Some(found) = grid::suited(backend, a, options, known)? else { return Ok(None) };
        let free = options.coarsening == Coarsening::Auto
            && options.prolongation == Prolongation::Smoothed
            && options.smoothing == Smoothing::Auto;
        if options.real_eigenvalues
            && free
            && a.rows() > FEW
            && has_jumps(backend, a)?
            && is_like_an_m_matrix(backend, a)?
        {
            check_finite(backend, a)?;
            // In half the precision, a grid of 128^3 points takes 36 iterations instead of 10.
            let options = options.clone().coarsening(Coarsening::Classical).narrow(false);
            let options = options.with_smoothing_decided();
            return Self::general(backend, a, None, &options).map(Some);
        }
        let made = if options.is_narrow::<T>() {
            let made = grid::narrow_hierarchy(backend, a, found, options)?;
            made.map(|(cycle, facts)| (AnyCycle::Lower(cycle), facts))
        } else {
            let made = grid::hierarchy(backend, a, found, options)?;
            made.map(|(cycle, facts)| (AnyCycle::Full(cycle), facts))
        };
        Ok(made.map(|(cycle, facts)| Self {
            cycle,
            plans: Plans::Full(Vec::new()),
            kept: None,
            scaled: None,
            options: options.clone(),
            asked: None,
            facts,
            own: None,
            units: None,
        }))
    }
}
