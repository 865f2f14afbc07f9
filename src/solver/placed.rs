//! A solver on a backend: how it is set up, and set up anew for other values.

use super::SolverBackend;
use super::builder::Builder;
use super::columns::{Here, OnHost};
use super::core::Core;
use super::engine::{About, Engine, OnBackend};
use super::finite;
use super::nullspace::{Beside, NullSpace};
use super::plan::{Notes, Planner, System, timed};
use super::report::{Decision, SolveReport, Trail};
use super::sign::{NEGATED, with_positive_diagonal};
use super::symmetry::{self, Found};
use super::system::{Order, Stored, reorder};
use super::watch::Watch;
use crate::backend::{Backend, Host};
use crate::direct::{RightHandSides, seconds_in_narrow_band};
use crate::error::{Error, Result};
use crate::graph;
use crate::krylov::SolveOptions;
use crate::matrix::Csr;
use crate::prices;
use crate::scalar::Scalar;
use crate::verdict::{Equilibrated, RowNorms, equilibrated};
use std::any::Any;
use std::time::Instant;

/// A right-hand side and a solution.
pub(super) type Pair<T, B> = (<B as Backend>::Vec<T>, <B as Backend>::Vec<T>);

/// A solver in the memory of a backend.
pub(super) struct Placed<T: Scalar, B: SolverBackend> {
    pub(super) backend: B,
    pub(super) wishes: Builder,
    pub(super) core: Core<T, B>,
    /// True if -A is stored, and solved for -x.
    pub(super) negated: bool,
    pub(super) order: Option<Order<T, B>>,
    /// The row and column scaling of the stored matrix, if it is scaled.
    pub(super) scaled: Option<Equilibrated<T, B>>,
    /// b and x in the order and scale of the stored matrix, kept from solve to solve.
    pub(super) room: Option<Pair<T, B>>,
    /// The null space, if it is known, with workspaces for a right-hand side and a solution.
    pub(super) null: Option<Beside<T, B>>,
    /// Copies of the caller's vectors in this memory, allocated at first use.
    pub(super) vectors: Option<(B::Vec<T>, B::Vec<T>)>,
    /// The caller's new values in this memory, allocated at first use.
    pub(super) values: Option<B::Vec<T>>,
    /// The matrix in CSR, kept in addition to the format for products if new values require a new setup.
    pub(super) beside: Option<Csr<T, B>>,
    pub(super) about: About,
}

impl<T: Scalar, B: SolverBackend> Placed<T, B> {
    /// Analyses a matrix, and makes all choices for it. `why` is the reason for this backend if the caller did not name
    /// it.
    pub(super) fn build(backend: &B, a: Csr<T, B>, wishes: &Builder, why: Option<String>) -> Result<Self> {
        let mut notes = Notes::default();
        notes.decisions.push(Decision::new("device", backend.description(), why.unwrap_or_default()));
        let mut looked = 0.0;
        timed(&mut looked, || finite::check_matrix(backend, &a))?;
        let found = timed(&mut looked, || symmetry::of(backend, &a, wishes.symmetry, wishes.method))?;
        notes.seconds.look = looked;
        let known = match found.looked {
            true => "looked at",
            false if a.rows() != a.columns() => "not square",
            false => wishes.known_from,
        };
        notes.decisions.push(Decision::new("prices", prices::machine::name()?, ""));
        let decision = Decision::new("symmetry", found.word::<T>(), known);
        notes.decisions.push(Decision { seconds: Some(looked), ..decision });
        Self::new(backend, a, wishes, found, notes)
    }

    /// Makes an engine for a matrix whose symmetry is known.
    fn new(backend: &B, mut a: Csr<T, B>, wishes: &Builder, found: Found, mut notes: Notes) -> Result<Self> {
        let options = wishes.options();
        let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());
        let symmetry = found.symmetry();
        let negated = found.hermitian && with_positive_diagonal(backend, &mut a)?;
        if negated {
            notes.decisions.push(Decision::new("sign", "-A", NEGATED));
        }
        let mut spent = 0.0;
        let null = timed(&mut spent, || NullSpace::of(backend, &a, wishes, found.hermitian))?;
        notes.seconds.look += spent;
        notes.decisions.extend(null.decision.map(|told| Decision { seconds: Some(spent), ..told }));
        let null = match null.space {
            Some(space) => Some(Beside { space, b: backend.zeros(rows)?, x: backend.zeros(columns)? }),
            None => None,
        };
        let hermitian = found.hermitian;
        let mut planner = Planner {
            hermitian,
            shape: (rows, columns),
            backend,
            wishes,
            options: &options,
            notes: &mut notes,
            mesh: None,
            units: None,
            narrow_band: narrow_band(&a),
            before: None,
        };
        let levels = planner.facts(nonzeros).may_make_levels().then_some(hermitian);
        let mut spent = 0.0;
        let (a, order, decision) = timed(&mut spent, || {
            let products = wishes.expected_products(columns).max(planner.products_of_named_levels(&a)?);
            let how = (wishes.order()?, levels);
            reorder(backend, a, how, products, |a| planner.products_of_levels(a))
        })?;
        if order.is_some() {
            planner.narrow_band = planner.narrow_band.or_else(|| narrow_band(&a));
        }
        let spent = if decision.why == super::choice::AS_ASKED { 0.0 } else { spent };
        planner.notes.seconds.reorder = spent;
        planner.notes.decisions.push(Decision { seconds: Some(spent), ..decision });
        planner.check(rows, columns)?;
        let (a, norms, scaled) =
            timed(&mut planner.notes.seconds.look, || judged_by(backend, a, (wishes, &options), hermitian))?;
        if let Some(scaled) = &scaled {
            planner.notes.decisions.push(scaling_decision(scaled, &norms));
            planner.units = scaled.units();
        }
        let open = wishes.updates && wishes.can_stay_open();
        // Multigrid on a grid is set up again for new values in any case, so all other choices are free too.
        let anew = open && planner.takes_levels_of_a_grid(&a)?;
        let beside = if anew { Some(a.copied(backend)?) } else { None };
        let mut system = if open && !anew { planner.open(a)? } else { planner.system(a)? };
        let device = backend.description();
        let choice = system.choice.take();
        let core = Core::new(backend, system, options, notes, norms);
        let about = About { rows, columns, nonzeros, symmetry, hermitian, device, choice };
        Ok(Self {
            backend: backend.clone(),
            wishes: wishes.clone(),
            core,
            negated,
            order,
            scaled,
            room: None,
            null,
            vectors: None,
            values: None,
            beside,
            about,
        })
    }

    /// Stores the matrix in a form whose values can be replaced: in CSR instead of its format, or in addition to it.
    /// The latter is for setups that can't be updated, because of what the caller named or because of multigrid on a
    /// grid.
    fn reopen(&mut self) -> Result<()> {
        let a = self.core.stored().to_csr(&self.backend)?;
        if self.wishes.can_stay_open() && !self.core.is_by_levels_of_a_grid() {
            return self.replace(|planner| planner.open(a));
        }
        self.beside = Some(a);
        Ok(())
    }

    /// Replaces the stored system by another one.
    fn replace(&mut self, plan: impl FnOnce(&mut Planner<'_, B>) -> Result<System<T, B>>) -> Result<()> {
        let (options, mut notes) = (self.wishes.options(), Notes::default());
        let before = Some((self.core.stored().format(), self.core.stored().values()));
        let system = plan(&mut Planner {
            hermitian: self.about.hermitian,
            shape: self.about.shape(),
            backend: &self.backend,
            wishes: &self.wishes,
            options: &options,
            notes: &mut notes,
            mesh: None,
            units: self.scaled.as_ref().and_then(Equilibrated::units),
            narrow_band: self.core.narrow_band(),
            before,
        })?;
        self.core.replace(system, notes);
        Ok(())
    }

    /// Makes all choices again for a matrix with new values.
    fn rebuild(&mut self, a: Csr<T, B>) -> Result<()> {
        self.replace(|planner| planner.system(a))
    }
}

/// The expected seconds of a factorisation within the band of a matrix in the memory of the host, if that is narrow.
fn narrow_band<T: Scalar, B: SolverBackend>(a: &Csr<T, B>) -> Option<f64> {
    let any: &dyn Any = a;
    any.downcast_ref::<Csr<T, Host>>().and_then(seconds_in_narrow_band)
}

/// The matrix, with its rows scaled if necessary, and the norms by which residuals are judged.
type Judged<T, B> = (Csr<T, B>, RowNorms<T, B>, Option<Equilibrated<T, B>>);

fn judged_by<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: Csr<T, B>,
    (wishes, options): (&Builder, &SolveOptions),
    hermitian: bool,
) -> Result<Judged<T, B>> {
    let mut norms = RowNorms::of(backend, &a, wishes.row_wise, hermitian)?;
    if !wishes.may_scale() {
        return Ok((a, norms, None));
    }
    match equilibrated(backend, &a, &mut norms, hermitian, options)? {
        Some((scaled, factors)) => Ok((scaled, norms, Some(factors))),
        None => Ok((a, norms, None)),
    }
}

fn scaling_decision<T: Scalar, B: SolverBackend>(
    scaled: &Equilibrated<T, B>,
    norms: &RowNorms<T, B>,
) -> Decision {
    let why = format!(
        "rows have norms from {:.1e} to {:.1e} and are scaled by powers of two",
        norms.least, norms.most
    );
    Decision::new("scaling", scaled.words(), why)
}

impl<T: Scalar, B: SolverBackend> Engine<T> for Placed<T, B> {
    fn solve(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<SolveReport> {
        if let Some(here) = self.on_host() {
            return here.solve_on(b, x, watch);
        }
        Error::check_dimension("length of b", self.about.rows, b.len())?;
        Error::check_dimension("length of x", self.about.columns, x.len())?;
        let (mut here_b, mut here_x) = self.take_vectors()?;
        self.backend.write(b, &mut here_b)?;
        self.backend.write(x, &mut here_x)?;
        let report = self.solve_on(&here_b, &mut here_x, watch);
        self.backend.read(&here_x, x)?;
        self.vectors = Some((here_b, here_x));
        report
    }

    fn solve_many(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<Vec<SolveReport>> {
        let (shape, count) = (self.about.shape(), self.count(b.len(), x.len())?);
        self.each(count, &mut OnHost { shape, b, x }, watch)
    }

    fn update(&mut self, values: &[T]) -> Result<()> {
        if let Some(here) = self.on_host() {
            return here.update_on(values);
        }
        Error::check_dimension("number of values", self.about.nonzeros, values.len())?;
        let mut here = match self.values.take() {
            Some(here) => here,
            None => self.backend.zeros(values.len())?,
        };
        self.backend.write(values, &mut here)?;
        let done = self.update_on(&here);
        self.values = Some(here);
        done
    }

    fn pattern(&self) -> Result<Csr<T>> {
        let a = self.core.stored().to_csr(&self.backend)?.to_host(&self.backend)?;
        match &self.order {
            None => Ok(a),
            Some(order) => {
                graph::permute_symmetric(&a, &order.permutation.to_host(&self.backend)?.into_inverse())
            }
        }
    }

    fn solve_quickly(&mut self, transposed: bool, b: RightHandSides<'_, T>, x: &mut [T]) -> Result<bool> {
        if self.order.is_some() || self.scaled.is_some() || self.null.is_some() {
            return Ok(false);
        }
        let good = self.core.solve_quickly(transposed, b, x)?;
        if good && self.negated {
            x.iter_mut().for_each(|x| *x = -*x);
        }
        Ok(good)
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.core.history(right_hand_side)
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn trail(&self) -> &Trail {
        &self.core.trail
    }
}

impl<T: Scalar, B: SolverBackend> OnBackend<T, B> for Placed<T, B> {
    fn solve_on(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        self.core.forget_histories();
        self.solve_one(b, x, watch)
    }

    fn solve_many_on(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SolveReport>> {
        let (shape, count) = (self.about.shape(), self.count(B::len(b), B::len(x))?);
        self.each(count, &mut Here::<T, B> { shape, b, x }, watch)
    }

    fn update_on(&mut self, values: &B::Slice<T>) -> Result<()> {
        Error::check_dimension("number of values", self.about.nonzeros, B::len(values))?;
        let start = Instant::now();
        if self.beside.is_none() && !matches!(self.core.stored(), Stored::Open(_)) {
            self.reopen()?;
        }
        finite::check_vector(&self.backend, values, "the new values")?;
        let Self { backend, core, order, beside, negated, null, .. } = self;
        let (hermitian, options) = (self.about.hermitian, core.options.clone());
        let is_beside = beside.is_some();
        let (target, norms) = match (&mut *beside, &mut core.stored) {
            (Some(a), _) => (a, &mut core.norms),
            (None, Stored::Open(a)) => (&mut **a, &mut core.norms),
            _ => return Err(Error::Unsupported("new values for a matrix in this format".into())),
        };
        match order {
            None => backend.copy(values, target.values_mut())?,
            Some(order) => order.write_values(backend, values, target)?,
        }
        if *negated {
            // The new values may have the opposite sign.
            *negated = with_positive_diagonal(backend, target)?;
        }
        if let Some(found) = &null
            && !found.space.is_given()
            && !found.space.holds(backend, target)?
        {
            *null = None;
        }
        norms.update(backend, target)?;
        let scaled = match self.wishes.may_scale() {
            true => equilibrated(backend, target, norms, hermitian, &options)?,
            false => None,
        };
        self.scaled = None;
        if is_beside {
            let a = match scaled {
                Some((a, scaled)) => {
                    self.scaled = Some(scaled);
                    a
                }
                None => target.copied(&self.backend)?,
            };
            self.rebuild(a)?;
        } else {
            if let Some((a, scaled)) = scaled {
                self.scaled = Some(scaled);
                backend.copy(a.parts().values, target.values_mut())?;
            }
            self.core.update()?;
        }
        self.core.seconds.update = start.elapsed().as_secs_f64();
        Ok(())
    }

    fn transposed(&self) -> Result<Box<dyn OnBackend<T, B>>> {
        let backend = &self.backend;
        let mut a = self.core.stored().to_csr(backend)?;
        if let Some(scaled) = &self.scaled {
            a = scaled.undone(backend, a)?;
        }
        if self.negated {
            backend.scale_in_place(-T::one(), a.values_mut())?;
        }
        let mut a = a.transpose(backend)?;
        if let Some(order) = &self.order {
            let back = order.permutation.to_host(backend)?.into_inverse();
            a = graph::permute_symmetric(&a.to_host(backend)?, &back)?.into_backend(backend)?;
        }
        let wishes = self.wishes.clone().of_transpose(self.about.hermitian && !T::COMPLEX);
        Ok(Box::new(Self::build(backend, a, &wishes, Some("the format of the solver of A".into()))?))
    }
}
