//! Chooses the format of a matrix, and its preconditioner.

use super::{Planner, known, timed};
use crate::backend::PreconditionSteps;
use crate::error::{Error, Result};
use crate::matrix::{self, ChoiceOptions, ChoiceReport, Csr, Sell, SparseMatrix};
use crate::multigrid::longest_row;
use crate::report::bytes;
use crate::scalar::{Promote, Scalar};
use crate::solver::SolverBackend;
use crate::solver::choice::{CLASSICAL, GRIDS, Hierarchy, MESH, SYMMETRIZED};
use crate::solver::forecast::{polynomial_may_pay, polynomial_pays};
use crate::solver::many;
use crate::solver::names::{AUTO, MEASURED, Method, PreconditionerChoice as Name, SINGLE_STEPS};
use crate::solver::preconditioner::{AnyPreconditioner, single};
use crate::solver::report::Decision;
use std::time::Instant;

/// A launch that runs many iterations gives each row to one thread, which is slow for long rows: with twenty rows of
/// 10^5 entries 21 iterations took 160 ms, and with several threads a row they take 1.4 ms (H200, 2026-11-29). That is
/// 76 ns an entry, so a row of 1000 takes 76 us in each iteration. Smaller limits were not measured.
const LONGEST_OF_A_THREAD: u32 = 1000;

impl<B: SolverBackend> Planner<'_, B> {
    /// Stores a matrix in the named format, or in the one that pays for the expected products, and sets up its
    /// preconditioner. `alone` says that the system has no other precision.
    pub(super) fn store<V, T>(&mut self, a: Csr<V, B>, alone: bool) -> Result<Kept<T, B, V>>
    where
        T: Scalar,
        V: Scalar + Promote<T>,
        V::Lower: Promote<T::Lower>,
    {
        let (backend, facts) = (self.backend, self.facts(a.nonzeros()));
        let (method, wish) = (facts.first_method(), facts.wish());
        let known = known(self.wishes, self.units.as_ref());
        let mut setup = timed(&mut self.notes.seconds.setup, || {
            AnyPreconditioner::new(backend, &a, (method, wish), known)
        })?;
        let free = matches!(
            (&setup, wish),
            (AnyPreconditioner::Jacobi(_) | AnyPreconditioner::Diagonal(_), Name::Auto)
        );
        let symmetrized = if alone && free { self.levels_of_scaled_rows::<V, T>(&a)? } else { None };
        let looked_for = alone && free && symmetrized.is_none();
        let on_grid = if looked_for { self.suits_levels_of_a_grid::<V, T>(&a)? } else { None };
        let mut later = (on_grid.is_some() && facts.begins_with_factors()).then_some(GRIDS);
        let levels = match (&setup, wish) {
            _ if symmetrized.is_some() => symmetrized.map(|levels| (levels, SYMMETRIZED)),
            _ if later.is_some() => None,
            (AnyPreconditioner::Jacobi(_) | AnyPreconditioner::Diagonal(_), Name::Auto) if alone => {
                match on_grid.map_or(Ok(None), |found| self.levels_of_a_grid::<V, T>(&a, &found))? {
                    None => self.levels_of_a_mesh::<V, T>(&a)?.map(|levels| (levels, MESH)),
                    levels => levels.map(|levels| (levels, GRIDS)),
                }
            }
            _ => None,
        };
        if looked_for && levels.is_none() && later.is_none() && self.suits_classical_levels(&a)? {
            later = Some(CLASSICAL);
        }
        let start = Instant::now();
        let low = match wish {
            Name::ChebyshevSingle(_) => Some(a.to_rounded(backend)?),
            // Without enough memory for it, the choice is made without this copy.
            Name::Auto if levels.is_none() && self.may_pay::<V, T>(&a) => a.to_rounded(backend).ok(),
            _ => None,
        };
        let (operator, choice) = match self.wishes.format.as_str() {
            AUTO | MEASURED => self.automatic::<V, T>(a)?,
            name => (matrix::convert::<T, B, V>(backend, name, a)?, None),
        };
        // A format chosen for one right-hand side is replaced by the one that is fast for several together.
        let in_half = matches!(wish, Name::ChebyshevSingle(_));
        let at_once = match choice {
            Some(_) if alone && !in_half && method == Method::Cg => {
                many::instead(&*operator, &setup, self.wishes.right_hand_sides)
            }
            _ => 1,
        };
        let (operator, choice) = match operator.format() {
            format if at_once > 1 && format != Csr::<V>::NAME => {
                let csr: Box<dyn SparseMatrix<T, B, V>> = Box::new(operator.to_csr(backend)?);
                (csr, None)
            }
            _ => (operator, choice),
        };
        backend.synchronize()?;
        self.notes.seconds.convert += start.elapsed().as_secs_f64();
        self.note(format_decision(&*operator, choice.as_ref(), at_once, start.elapsed().as_secs_f64()));
        let (mut name, mut rescue, mut polynomial) = (facts.named_or(Name::Jacobi), None, None);
        let start = Instant::now();
        let mut hierarchy = later.map(|why| Hierarchy { why, is_made: false });
        if let Some((levels, why)) = levels {
            rescue = Some(std::mem::replace(&mut setup, AnyPreconditioner::Levels(levels)));
            (name, hierarchy) = (Name::Multigrid(Default::default()), Some(Hierarchy { why, is_made: true }));
        }
        if let (Some(low), AnyPreconditioner::Jacobi(_)) = (low, &setup) {
            let format = operator.format();
            match wish {
                Name::ChebyshevSingle(steps) => {
                    setup = single(backend, low, format, steps)?;
                }
                _ if at_once == 1
                    && polynomial_pays(&*operator, self.products(operator.rows()), SINGLE_STEPS) =>
                {
                    // If it can't be set up, the current preconditioner is kept.
                    if let Ok(single) = single(backend, low, format, SINGLE_STEPS) {
                        rescue = Some(std::mem::replace(&mut setup, single));
                        (name, polynomial) = (Name::ChebyshevSingle(SINGLE_STEPS), Some(SINGLE_STEPS));
                    }
                }
                _ => {}
            }
        }
        backend.synchronize()?;
        self.notes.seconds.setup += start.elapsed().as_secs_f64();
        Ok(Kept { operator, setup, rescue, hierarchy, polynomial, name, choice })
    }

    /// Returns whether a polynomial in half the precision may be faster: if vectors and matrix do not fit in a cache.
    fn may_pay<V: Scalar + Promote<T>, T: Scalar>(&self, a: &Csr<V, B>) -> bool {
        let (rows, nonzeros) = (a.rows(), a.nonzeros());
        <B as PreconditionSteps>::IS_DEVICE
            && self.facts(nonzeros).first_method() == Method::Cg
            && size_of::<T::Lower>() < size_of::<T>()
            && !in_one_call::<V, T, B>(self.backend, rows, nonzeros)
            && polynomial_may_pay::<T>(rows, self.products(rows))
    }

    /// Chooses the format: the one that persistent iterations need if the backend has them, else by the model or, if
    /// the caller asks for that, by trial.
    fn automatic<V: Scalar + Promote<T>, T: Scalar>(&self, a: Csr<V, B>) -> Result<Chosen<T, B, V>> {
        let (backend, facts) = (self.backend, self.facts(a.nonzeros()));
        let cg = facts.first_method() == Method::Cg
            && in_one_call::<V, T, B>(backend, a.rows(), a.nonzeros())
            && longest_row(backend, &a)? <= LONGEST_OF_A_THREAD;
        if cg && backend.cg_persists::<V, T>(a.rows(), a.nonzeros()) {
            return Ok((matrix::convert::<T, B, V>(backend, Csr::<V>::NAME, a)?, None));
        }
        if cg && backend.cg_streams::<V, T>(a.rows(), a.nonzeros()) {
            match matrix::build::<T, B, V>(backend, Sell::<V>::NAME, &a) {
                Err(Error::Refused { .. }) => {}
                made => return Ok((made?, None)),
            }
        }
        if let Some((format, values)) = self.before
            && values == V::NAME
            && let Ok(operator) = matrix::build::<T, B, V>(backend, format, &a)
        {
            // The pattern is unchanged, so another trial would choose the same format.
            return Ok((operator, None));
        }
        let options = ChoiceOptions::default()
            .products(self.products(a.rows()))
            .measured(self.wishes.format == MEASURED);
        let (operator, report) = matrix::choose::<T, V, B>(backend, a, &options)?.into_parts();
        Ok((operator, Some(report)))
    }
}

/// Returns whether the backend has persistent iterations for such a system.
pub(in crate::solver) fn in_one_call<V: Scalar + Promote<T>, T: Scalar, B: SolverBackend>(
    backend: &B,
    rows: usize,
    nonzeros: usize,
) -> bool {
    backend.cg_persists::<V, T>(rows, nonzeros) || backend.cg_streams::<V, T>(rows, nonzeros)
}

/// A matrix in its format, with its preconditioner.
pub(super) struct Kept<T: Scalar, B: SolverBackend, V: Scalar> {
    pub(super) operator: Box<dyn SparseMatrix<T, B, V>>,
    pub(super) setup: AnyPreconditioner<T, B>,
    /// The fallback if a preconditioner that the solver chose fails.
    pub(super) rescue: Option<AnyPreconditioner<T, B>>,
    /// Multigrid that was chosen, either made or to be made later.
    pub(super) hierarchy: Option<Hierarchy>,
    /// The steps of the polynomial that was chosen.
    pub(super) polynomial: Option<usize>,
    pub(super) name: Name,
    pub(super) choice: Option<ChoiceReport>,
}

/// A matrix in its chosen format, and how that was chosen.
type Chosen<T, B, V> = (Box<dyn SparseMatrix<T, B, V>>, Option<ChoiceReport>);

fn format_decision<T: Scalar, V: Scalar, B: SolverBackend>(
    a: &dyn SparseMatrix<T, B, V>,
    choice: Option<&ChoiceReport>,
    at_once: usize,
    seconds: f64,
) -> Decision {
    let why = match choice {
        // The format itself is named already.
        Some(choice) => choice.to_string().split_off(choice.format.len() + 2),
        None if at_once > 1 => format!("it can multiply {at_once} right-hand sides at once"),
        None => {
            "requested, chosen for earlier values, or the format in which one launch runs many iterations"
                .into()
        }
    };
    let stored = a.storage_bytes();
    Decision {
        seconds: Some(seconds),
        bytes: Some(stored),
        ..Decision::new("format", a.format(), format!("{why}; {}", bytes(stored as u64)))
    }
}
