//! The facts of a system from which its candidates are listed: its shape and symmetry, the device, the caller's
//! options, and the kind of multigrid that suits it.

use crate::krylov::SolveOptions;
use crate::prices::budgets::{LEVELS_FROM, MEDIUM, SMALL};
use crate::scalar::Scalar;
use crate::solver::builder::Builder;
use crate::solver::names::{Method, PreconditionerChoice as Name};
use serde::Serialize;

/// Multigrid that suits a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) struct Hierarchy {
    pub(in crate::solver) why: &'static str,
    /// Whether it is set up already; otherwise it is set up when it is tried.
    pub(in crate::solver) is_made: bool,
}

/// The facts by which methods were chosen, for the report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SystemFacts {
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub columns: usize,
    /// Stored entries.
    pub nonzeros: usize,
    /// Stored entries of the longest row.
    pub longest_row: usize,
    /// Whether A equals its conjugate transpose.
    pub hermitian: bool,
    /// Whether numbers are complex.
    pub complex: bool,
    /// True if vectors are in the memory of a GPU.
    pub on_device: bool,
    /// The maximum number of iterations of all methods together.
    pub iteration_limit: usize,
    /// The reason why multigrid suits A; `None` if nothing indicates that it does.
    pub multigrid: Option<&'static str>,
    /// Whether multigrid was set up when the solver was built.
    pub multigrid_is_made: bool,
    /// Steps of the polynomial in half the precision, if it was chosen for conjugate gradients.
    pub polynomial: Option<usize>,
    /// The expected seconds of a factorisation within the band of A; `None` if the band is not narrow.
    pub narrow_band: Option<f64>,
}

impl SystemFacts {
    pub(in crate::solver) fn of<T: Scalar>(facts: &Facts, longest_row: usize) -> Self {
        Self {
            rows: facts.rows,
            columns: facts.columns,
            nonzeros: facts.nonzeros,
            longest_row,
            hermitian: facts.hermitian,
            complex: T::COMPLEX,
            on_device: facts.on_device,
            iteration_limit: facts.iteration_limit,
            multigrid: facts.hierarchy.map(|hierarchy| hierarchy.why),
            multigrid_is_made: facts.hierarchy.is_some_and(|hierarchy| hierarchy.is_made),
            polynomial: facts.polynomial,
            narrow_band: facts.narrow_band,
        }
    }
}

/// The facts of a system; [`super::candidates`] depends on nothing else.
#[derive(Debug, Clone)]
pub(in crate::solver) struct Facts {
    pub(in crate::solver) rows: usize,
    pub(in crate::solver) columns: usize,
    pub(in crate::solver) nonzeros: usize,
    pub(in crate::solver) hermitian: bool,
    /// True if vectors are in the memory of a GPU.
    pub(in crate::solver) on_device: bool,
    /// The method and preconditioner that the caller has named; `Auto` if none was named.
    pub(in crate::solver) method: Method,
    pub(in crate::solver) preconditioner: Name,
    pub(in crate::solver) has_near_null: bool,
    pub(in crate::solver) max_iterations: Option<usize>,
    pub(in crate::solver) right_hand_sides: usize,
    /// Whether factorisations estimate the condition number, and the maximum bytes of a factorisation.
    pub(in crate::solver) condition: bool,
    pub(in crate::solver) memory: Option<u64>,
    /// The maximum number of iterations of all candidates together.
    pub(in crate::solver) iteration_limit: usize,
    /// The multigrid that suits the matrix, if one was found.
    pub(in crate::solver) hierarchy: Option<Hierarchy>,
    /// The number of steps of the polynomial in half the precision, if one was chosen for conjugate gradients.
    pub(in crate::solver) polynomial: Option<usize>,
    /// The expected seconds of a factorisation within the band, if that takes less time than a search for an order of
    /// elimination.
    pub(in crate::solver) narrow_band: Option<f64>,
    /// The number of ranks over which the rows are distributed.
    pub(in crate::solver) ranks: usize,
    /// Methods and preconditioners that the caller has listed; empty if all may be tried.
    pub(in crate::solver) wanted: Vec<(Method, Name)>,
}

impl Facts {
    /// The facts of a matrix of this shape, before the search for a suitable multigrid.
    pub(in crate::solver) fn of(
        wishes: &Builder,
        options: &SolveOptions,
        [rows, columns, nonzeros]: [usize; 3],
        (hermitian, on_device): (bool, bool),
    ) -> Self {
        Self {
            rows,
            columns,
            nonzeros,
            hermitian,
            on_device,
            method: wishes.method,
            preconditioner: wishes.preconditioner,
            has_near_null: wishes.near_null.is_some(),
            max_iterations: wishes.max_iterations,
            right_hand_sides: wishes.right_hand_sides,
            condition: wishes.condition,
            memory: wishes.memory_limit,
            iteration_limit: options.iteration_limit(columns),
            hierarchy: None,
            polynomial: None,
            narrow_band: None,
            ranks: 1,
            wanted: wishes.candidates.clone(),
        }
    }

    pub(in crate::solver) fn is_square(&self) -> bool {
        self.rows == self.columns
    }

    /// Whether the caller has named neither a method nor a preconditioner.
    pub(super) fn is_free(&self) -> bool {
        self.method == Method::Auto && self.preconditioner == Name::Auto && self.wanted.is_empty()
    }

    /// Whether there are fewer equations than unknowns and the solver chooses the method.
    pub(in crate::solver) fn is_underdetermined(&self) -> bool {
        self.rows < self.columns && self.is_free()
    }

    /// Whether there are more equations than unknowns and the solver chooses the method.
    pub(in crate::solver) fn is_overdetermined(&self) -> bool {
        self.rows > self.columns && self.is_free()
    }

    /// The preconditioner that the caller has named; if none, no preconditioner for an underdetermined system, since
    /// scaled columns would change which solution is found.
    pub(in crate::solver) fn wish(&self) -> Name {
        match self.preconditioner {
            Name::Auto if self.rows < self.columns => Name::None,
            // Near-null vectors are given for multigrid.
            Name::Auto if self.has_near_null => Name::Multigrid(Default::default()),
            named => named,
        }
    }

    /// The preconditioner that the caller wants, or `other` if the caller has named none.
    pub(in crate::solver) fn named_or(&self, other: Name) -> Name {
        match self.wish() {
            Name::Auto => other,
            named => named,
        }
    }

    /// The method to begin with.
    pub(in crate::solver) fn first_method(&self) -> Method {
        match self.method {
            Method::Auto if !self.is_square() => Method::Lsmr,
            Method::Auto if self.hermitian => Method::Cg,
            Method::Auto => Method::Gmres,
            named => named,
        }
    }

    /// Whether the solver may choose among the preconditioners of square matrices.
    fn may_choose(&self) -> bool {
        self.is_free() && self.is_square() && self.max_iterations.is_none()
    }

    /// Whether a factorisation is likely to be quick, or is left out by a race if it is not.
    pub(super) fn is_small(&self) -> bool {
        self.columns <= SMALL || self.races()
    }

    /// Whether iterations run a race with a factorisation: they come first, and are given up if it is forecast to
    /// finish earlier. There is no race for several right-hand sides, which share the factors, nor on a device, where
    /// the order alone takes longer than most iterations.
    pub(in crate::solver) fn races(&self) -> bool {
        self.may_choose() && self.columns <= MEDIUM && self.right_hand_sides <= 1 && !self.on_device
    }

    /// The same for a matrix that is not square, whose factorisation solves the least-squares problem too.
    pub(super) fn races_for_squares(&self) -> bool {
        self.is_free()
            && !self.is_square()
            && self.max_iterations.is_none()
            && !self.on_device
            && self.right_hand_sides <= 1
    }

    /// Whether the solver may choose multigrid.
    pub(in crate::solver) fn may_take_levels(&self) -> bool {
        self.may_choose() && self.columns >= LEVELS_FROM && !self.has_near_null
    }

    /// Whether multigrid may be set up before anything was tried.
    pub(in crate::solver) fn may_make_levels(&self) -> bool {
        self.may_take_levels() && self.narrow_band.is_none()
    }

    /// Whether a factorisation within a narrow band comes first, because there is no race with iterations.
    pub(super) fn begins_with_band(&self) -> bool {
        self.narrow_band.is_some() && self.may_choose() && !self.on_device && !self.races()
    }

    /// Whether a factorisation comes first, after a few iterations at most.
    pub(in crate::solver) fn begins_with_factors(&self) -> bool {
        self.method == Method::Auto && self.first_method() == Method::Gmres && self.is_small()
    }

    /// Whether the solver may choose incomplete factorisations.
    pub(super) fn may_take_factors(&self) -> bool {
        self.preconditioner == Name::Auto
    }
}
