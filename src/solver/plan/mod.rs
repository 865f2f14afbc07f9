//! What is chosen for a matrix: the precision and the stages here and in `precision`, the format and the
//! preconditioner in `store`, multigrid in `levels`.

mod levels;
mod precision;
mod store;

use super::SolverBackend;
use super::builder::Builder;
use super::forecast::{MORE_PRODUCTS, expected_products};
use super::mesh::Mesh;
use super::names::{Method, Precision, PreconditionerChoice as Name};
use super::preconditioner::Setup;
use super::report::{Decision, Seconds};
use super::stage::{Plan, Stage};
use super::system::Stored;
use crate::error::{Error, Result};
use crate::krylov::SolveOptions;
use crate::matrix::{ChoiceReport, Csr};
use crate::scalar::{Element, Scalar};
use std::time::Instant;
pub(super) use store::in_one_call;

/// The name that lets a solver choose the format.
pub(super) const AUTO: &str = "auto";

pub(super) const AS_ASKED: &str = "as asked for";
pub(super) const SPD: &str = "the matrix is Hermitian, and may be positive definite";
pub(super) const GENERAL: &str = "the matrix is not Hermitian";
const TALL: &str = "the matrix is not square: least squares";
const WIDE: &str =
    "fewer rows than columns: of all solutions that of least norm, which scaled columns do not give";
const HALF: &str = "half the precision moves half the bytes";
const RESCUE: &str = "in full precision, where half the precision does not serve";
const POLYNOMIAL: &str = "a polynomial in half the precision moves so many fewer bytes";
const INSTEAD: &str = "where the polynomial does not serve";
pub(super) const GRIDS: &str = "the matrix is on a grid, so that multigrid is soon set up";
const MESH: &str = "the matrix is that of a large mesh, on which conjugate gradients take many iterations";
const SYMMETRIZED: &str = "the matrix is symmetric up to factors of its rows: multigrid takes few iterations";
const CLASSICAL: &str =
    "couplings have one sign: classical multigrid takes few iterations, whatever the size";
pub(super) const PLAIN: &str = "where multigrid does not serve";

/// A matrix made ready to be solved with.
pub(super) struct System<T: Scalar, B: SolverBackend> {
    pub(super) stored: Stored<T, B>,
    pub(super) stages: Vec<Stage<T, B>>,
    /// How the format was chosen, where it was.
    pub(super) choice: Option<ChoiceReport>,
}

/// What is told of the preparation.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) decisions: Vec<Decision>,
    pub(super) seconds: Seconds,
}

/// Runs a step, and adds the time that it took.
pub(super) fn timed<R>(seconds: &mut f64, step: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = step();
    *seconds += start.elapsed().as_secs_f64();
    result
}

/// What decides, in one place.
pub(super) struct Planner<'a, B: SolverBackend> {
    pub(super) hermitian: bool,
    /// Rows and columns of the matrix.
    pub(super) shape: (usize, usize),
    pub(super) backend: &'a B,
    pub(super) wishes: &'a Builder,
    pub(super) options: &'a SolveOptions,
    pub(super) notes: &'a mut Notes,
    /// What was found out of a mesh before its unknowns were renumbered.
    pub(super) mesh: Option<Mesh>,
}

impl<B: SolverBackend> Planner<'_, B> {
    /// Chooses for a matrix whose values stay.
    pub(super) fn system<T: Scalar>(&mut self, a: Csr<T, B>) -> Result<System<T, B>> {
        let auto = self.wishes.format == AUTO;
        // Small integers and binary fractions, as stencils have them, fit a narrower type: the same bits of x, fewer
        // bytes.
        let backend = self.backend;
        let narrow =
            timed(
                &mut self.notes.seconds.convert,
                || {
                    if auto { a.into_narrow(backend) } else { Ok(Err(a)) }
                },
            )?;
        match narrow {
            Ok(narrow) => {
                let name = <T::Narrow as Element>::NAME;
                self.note(Decision::new("values", name, "every value is held in it without loss"));
                self.in_precision(narrow, Stored::Narrow)
            }
            Err(a) => self.in_precision(a, Stored::Full),
        }
    }

    /// Chooses for a matrix whose values are replaced: CSR, so that they can be.
    pub(super) fn open<T: Scalar>(&mut self, a: Csr<T, B>) -> Result<System<T, B>> {
        let (backend, method, name) = (self.backend, self.first(), self.named_or(Name::Jacobi));
        let setup = timed(&mut self.notes.seconds.setup, || {
            Setup::new(backend, &a, (method, name), self.wishes.near_null.as_ref())
        })?;
        self.note(Decision::new("format", Csr::<T, B>::NAME, "values are replaced in it"));
        let stages = self.stages(a.columns(), setup, name, self.why())?;
        Ok(System { stored: Stored::Open(Box::new(a)), stages, choice: None })
    }

    /// Refuses a method that was named for a matrix of another shape, or in a precision that it has not.
    pub(super) fn check(&self, rows: usize, columns: usize) -> Result<()> {
        let method = self.wishes.method;
        if !self.is_square() && !matches!(method, Method::Auto | Method::Lsmr) {
            return Err(Error::Unsupported(format!(
                "{rows} x {columns} is not square: {method} solves square systems; lsmr takes others"
            )));
        }
        if let Some(near_null) = &self.wishes.near_null {
            near_null.check(columns)?;
        }
        if !matches!(method, Method::Auto | Method::Cg) && self.wishes.precision != Precision::Double {
            let precision = self.wishes.precision;
            return Err(Error::Unsupported(format!("method {method} in precision {precision}: cg has it")));
        }
        Ok(())
    }

    pub(super) fn is_square(&self) -> bool {
        self.shape.0 == self.shape.1
    }

    /// Whether there are fewer equations than unknowns, and nothing says which method and preconditioner are wanted.
    pub(super) fn is_underdetermined(&self) -> bool {
        let wishes = (self.wishes.method, self.wishes.preconditioner);
        self.shape.0 < self.shape.1 && wishes == (Method::Auto, Name::Auto)
    }

    /// Whether there are more equations than unknowns, and nothing says which method and preconditioner are wanted.
    pub(super) fn is_overdetermined(&self) -> bool {
        let wishes = (self.wishes.method, self.wishes.preconditioner);
        self.shape.0 > self.shape.1 && wishes == (Method::Auto, Name::Auto)
    }

    /// The preconditioner that is wished for; none where scaled columns would change which solution is found.
    fn wish(&self) -> Name {
        match self.wishes.preconditioner {
            _ if self.is_underdetermined() => Name::None,
            // What is known of near-null vectors is known for multigrid.
            Name::Auto if self.wishes.near_null.is_some() => Name::Multigrid(Default::default()),
            named => named,
        }
    }

    /// The method to begin with.
    pub(super) fn first(&self) -> Method {
        match self.wishes.method {
            Method::Auto if !self.is_square() => Method::Lsmr,
            Method::Auto if self.hermitian => Method::Cg,
            Method::Auto => Method::Gmres,
            named => named,
        }
    }

    /// Why it is the first.
    fn why(&self) -> &'static str {
        match (self.wishes.method, self.first()) {
            (Method::Auto, Method::Lsmr) if self.is_underdetermined() => WIDE,
            (Method::Auto, Method::Lsmr) => TALL,
            (Method::Auto, Method::Gmres) => GENERAL,
            (Method::Auto, _) => SPD,
            _ => AS_ASKED,
        }
    }

    /// The preconditioner that is wished for, or another where that is left to us.
    fn named_or(&self, other: Name) -> Name {
        match self.wish() {
            Name::Auto => other,
            named => named,
        }
    }

    pub(super) fn plan(
        &self,
        n: usize,
        preconditioner: Name,
        precision: Precision,
        why: &'static str,
    ) -> Plan {
        let products = expected_products(n, 1, self.wishes.max_iterations);
        let iterations = match preconditioner {
            Name::Chebyshev(steps) | Name::ChebyshevSingle(steps) => {
                (MORE_PRODUCTS * products as f64 / steps as f64).ceil() as usize
            }
            _ => products,
        };
        let (method, Builder { condition, memory_limit: memory, .. }) = (self.first(), self.wishes);
        let (share, flops, condition, memory) = (None, None, *condition, *memory);
        let (race, indefinite, takes_over) = (false, false, false);
        Plan {
            method,
            preconditioner,
            precision,
            why,
            iterations,
            share,
            flops,
            memory,
            condition,
            race,
            indefinite,
            takes_over,
        }
    }

    /// Products with a matrix of `n` rows that are to be expected.
    fn products(&self, n: usize) -> usize {
        self.wishes.expected_products(n)
    }

    fn note(&mut self, decision: Decision) {
        self.notes.decisions.push(decision);
    }
}
