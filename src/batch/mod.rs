//! Thousands of small systems at once, each with a verdict of its own.
//!
//! ```text
//! values, b -> a backend eliminates or iterates, and judges each x -> converged, precision_limit (in single precision)
//!           -> what it leaves uncertain, `Solver` solves one by one on the CPU -> converged, singular, ...
//! ```
//!
//! So a verdict means the same as for a single system ([`Outcome`]). A system that fails does not affect the others: x
//! has the same bits alone and among any others.
//!
//! ```
//! use residua::{Host, batch::Batch};
//! // Two systems of two unknowns, the second one singular.
//! let values = [4.0, 1.0, 1.0, 3.0, 1.0, 2.0, 2.0, 4.0];
//! let mut x = [0.0; 4];
//! let mut batch = Batch::<f64>::dense(Host, 2, 2)?;
//! let verdicts = batch.solve_into(&values, &[5.0, 4.0, 1.0, 1.0], &mut x)?;
//! assert!(verdicts.outcomes[0].is_converged() && (x[0] - 1.0).abs() < 1e-12);
//! assert!(!verdicts.outcomes[1].is_converged());
//! # Ok::<(), residua::Error>(())
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `pattern` | which entries of the systems are stored |
//! | `symbolic` | order and fill of the elimination of a sparse pattern |
//! | `reduction` | rows that an iteration eliminates beforehand |
//! | `apart` | systems that are solved one by one |
//! | `told` | verdicts, on the host or still with a backend |

mod apart;
mod pattern;
mod reduction;
mod symbolic;
mod told;

use crate::backend::{
    BatchGoal, BatchIteration, BatchParts, BatchSteps, BatchVectors, Host, LIMITED, REFINEMENTS, UNCERTAIN,
};
use crate::error::{Error, Result};
use crate::krylov::{Outcome, SolveOptions};
use crate::solver::Solvable;
use pattern::Pattern;
use reduction::Reduced;
use std::str::FromStr;
use std::sync::Arc;
use symbolic::{Eliminated, Symbolic};
pub use told::{Stored, Told, Verdicts};

/// Clearing and using an entry of the factors takes as long as this number of multiplications of an elimination.
const A_FACTOR: f64 = 4.0;

/// How systems are solved. Systems that a method leaves uncertain are solved in the next way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// By elimination, or by iteration if the backend cannot eliminate systems of this size and pattern.
    #[default]
    Auto,
    /// By elimination.
    Lu,
    /// By BiCGSTAB, unless systems are dense or have more than 4096 unknowns. Unknowns that depend on no other of their
    /// kind, such as every second one of a grid, are eliminated first; the preconditioner is the diagonal of the rest.
    BiCgStab,
    /// The same by conjugate gradients, for Hermitian matrices that are positive definite.
    Cg,
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "lu" => Ok(Self::Lu),
            "bicgstab" => Ok(Self::BiCgStab),
            "cg" => Ok(Self::Cg),
            _ => Err(Error::InvalidArgument(format!(
                "method '{text}' of a batch: choose one of auto, lu, bicgstab, cg"
            ))),
        }
    }
}

/// Ways to solve, tried one after the other for systems of which nothing is certain so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Iterate,
    Eliminate,
    EliminateDense,
}

/// Many systems of one kind, whose values may change from solve to solve. What depends on their pattern is kept, and so
/// is memory: from the second solve on, nothing is allocated unless a system is left to `Solver` or a caller keeps
/// verdicts.
///
/// Values, right-hand sides and solutions are in the memory of the backend. Right-hand sides are stored row by row: k
/// numbers for each row, all rows of a system, one system behind the other.
#[derive(Debug)]
pub struct Batch<T: Solvable, B: BatchSteps = Host> {
    backend: B,
    pattern: Pattern<B>,
    /// None unless sparse elimination is worth it.
    elimination: Option<Eliminated<B>>,
    /// Made when an iteration first needs it.
    reduced: Option<Reduced<B>>,
    options: SolveOptions,
    row_wise: bool,
    method: Method,
    room: B::BatchRoom<T>,
    /// The verdicts of the last solve and of the one before it, unless a caller has these.
    stored: [Arc<Stored<B>>; 2],
    /// One number, and what it was when it was last read.
    worst: B::Vec<u32>,
    worst_here: u32,
    steps_here: Vec<u32>,
    verdicts: Verdicts,
}

impl<T: Solvable, B: BatchSteps> Batch<T, B> {
    /// `systems` dense matrices of `size` rows. Values are those of all of them, row by row.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn dense(backend: B, systems: usize, size: usize) -> Result<Self> {
        let pattern = Pattern::dense(systems, size)?;
        Self::new(backend, pattern)
    }

    /// `systems` matrices of one pattern: compressed rows, in each of which columns ascend. Values are those of the
    /// first system in this order, then those of the second, and so on.
    ///
    /// # Errors
    /// If the pattern is invalid or not square, and if memory runs out.
    pub fn one_pattern(backend: B, systems: usize, offsets: Vec<u64>, columns: Vec<u32>) -> Result<Self> {
        let pattern = Pattern::of_all(&backend, systems, offsets, columns)?;
        Self::new(backend, pattern)
    }

    /// Matrices of any sizes and patterns: the compressed rows of all, one matrix behind the other. `starts` has the
    /// row at which each matrix begins, and at last the number of rows. Columns are counted from 0 in each matrix, and
    /// ascend in each row.
    ///
    /// # Errors
    /// If a pattern is invalid or not square, and if memory runs out.
    pub fn each_its_own(backend: B, starts: Vec<u64>, offsets: Vec<u64>, columns: Vec<u32>) -> Result<Self> {
        let pattern = Pattern::of_each(&backend, starts, offsets, columns)?;
        Self::new(backend, pattern)
    }

    fn new(backend: B, pattern: Pattern<B>) -> Result<Self> {
        let systems = pattern.systems();
        let elimination = match pattern.of_one() {
            Some((offsets, columns)) if pattern.size() <= B::MOST_SPARSE => {
                let symbolic = Symbolic::new(pattern.size(), offsets, columns)?;
                let worth = symbolic.filter(|symbolic| {
                    let sparse = symbolic.multiplications + A_FACTOR * symbolic.entries() as f64;
                    pattern.size() > B::MOST_DENSE
                        || B::SPARSE_PRICE * sparse < (pattern.size() as f64).powi(3) / 3.0
                });
                worth.map(|symbolic| symbolic.into_memory(&backend)).transpose()?
            }
            _ => None,
        };
        Ok(Self {
            elimination,
            reduced: None,
            stored: [Arc::new(Stored::new(&backend, systems)?), Arc::new(Stored::new(&backend, 0)?)],
            worst: backend.zeros(1)?,
            worst_here: 0,
            steps_here: vec![0; systems],
            verdicts: Verdicts {
                outcomes: vec![Outcome::Converged; systems],
                residuals: vec![0.0; systems],
                iterations: vec![0; systems],
                apart: 0,
                all_converged: true,
            },
            backend,
            pattern,
            options: SolveOptions::default(),
            row_wise: true,
            method: Method::Auto,
            room: Default::default(),
        })
    }

    /// A system has converged if ||b - A x|| is at most this times ||b||. Default: 1e-8 in double precision, 1e-5 in
    /// single.
    #[must_use]
    pub fn tolerance(mut self, relative: f64) -> Self {
        self.options = self.options.tolerance(relative);
        self
    }

    /// A system has also converged if ||b - A x|| is at most this. Default: 0.
    #[must_use]
    pub fn absolute_tolerance(mut self, absolute: f64) -> Self {
        self.options = self.options.absolute_tolerance(absolute);
        self
    }

    /// Whether the same has to hold with each row divided by its norm. Default: yes.
    #[must_use]
    pub fn row_wise(mut self, yes: bool) -> Self {
        self.row_wise = yes;
        self
    }

    /// How systems are solved. Default: [`Method::Auto`].
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// How many systems there are.
    pub fn systems(&self) -> usize {
        self.pattern.systems()
    }

    /// Rows of all systems together.
    pub fn rows(&self) -> usize {
        self.pattern.rows()
    }

    /// Values of all systems together.
    pub fn entries(&self) -> usize {
        self.pattern.entries()
    }

    /// Whether systems are solved in this way.
    fn makes(&self, attempt: Attempt) -> bool {
        let size = self.pattern.size();
        match attempt {
            Attempt::Iterate => {
                let eliminated = self.elimination.is_some() || size <= B::MOST_DENSE;
                let wanted = match self.method {
                    Method::BiCgStab | Method::Cg => true,
                    Method::Auto => !eliminated,
                    Method::Lu => false,
                };
                wanted && !self.pattern.is_dense() && size <= B::MOST_ITERATED
            }
            Attempt::Eliminate => self.elimination.is_some(),
            // On a CPU, `Solver` takes less time than a dense elimination for a system that needs other pivots than
            // sparse elimination has.
            Attempt::EliminateDense => {
                size <= B::MOST_DENSE && (self.elimination.is_none() || B::DENSE_BEHIND_SPARSE)
            }
        }
    }

    /// Solves all systems with these values, with as many right-hand sides each as b has numbers a row.
    ///
    /// The x of a system that has not converged is the best that was found; NaN if A or b is not finite.
    ///
    /// # Errors
    /// If lengths do not agree, if the tolerance is invalid, if memory runs out, and if the device fails.
    pub fn solve_into(
        &mut self,
        values: &B::Slice<T>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<&Verdicts> {
        if self.attempt(values, b, x)? {
            self.stored[0].read(&mut self.verdicts.iterations, &mut self.verdicts.residuals)?;
        }
        Ok(&self.verdicts)
    }

    /// The same, but if all systems have converged, the verdicts stay with the backend until they are read: most of the
    /// time of a solve of many tiny systems on a GPU would be this copy.
    ///
    /// # Errors
    /// As [`Batch::solve_into`].
    pub fn solve_there(
        &mut self,
        values: &B::Slice<T>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<Told<'_, B>> {
        Ok(match self.attempt(values, b, x)? {
            true => Told::AllConverged(self.stored[0].clone()),
            false => Told::Each(&self.verdicts),
        })
    }

    /// What the last [`Batch::solve_into`] returned, or a solve after it that told of each.
    pub fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// Solves all systems. Returns whether residuals and steps are with the backend, all systems having converged;
    /// otherwise the verdicts are complete.
    fn attempt(&mut self, values: &B::Slice<T>, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<bool> {
        self.options.check()?;
        let (rows, length) = (self.pattern.rows(), B::len(b));
        let count = length.checked_div(rows).unwrap_or(0);
        Error::check_dimension("number of right-hand sides' entries", rows * count, length)?;
        Error::check_dimension("number of entries of x", length, B::len(x))?;
        Error::check_dimension("number of values", self.pattern.entries(), B::len(values))?;
        if !self.verdicts.all_converged {
            self.verdicts.outcomes.fill(Outcome::Converged);
            self.verdicts.all_converged = true;
            self.verdicts.apart = 0;
        }
        if count == 0 || self.pattern.systems() == 0 {
            self.verdicts.residuals.fill(0.0);
            self.verdicts.iterations.fill(0);
            return Ok(false);
        }
        if Arc::get_mut(&mut self.stored[0]).is_none() {
            self.stored.swap(0, 1);
        }
        let mut goal = BatchGoal {
            relative: self.options.threshold_of_one::<T>(),
            absolute: self.options.threshold::<T>(0.0),
            row_wise: self.row_wise,
            uncertain_only: false,
        };
        for attempt in [Attempt::Iterate, Attempt::Eliminate, Attempt::EliminateDense] {
            if !self.makes(attempt) || goal.uncertain_only && self.worst_here < UNCERTAIN {
                continue;
            }
            self.make(attempt, &goal, values, (b, count), x)?;
            if !goal.uncertain_only && self.worst_here < LIMITED {
                return Ok(true);
            }
            goal.uncertain_only = true;
        }
        if goal.uncertain_only {
            self.stored[0].read(&mut self.steps_here, &mut self.verdicts.residuals)?;
        } else {
            self.steps_here.fill(UNCERTAIN);
        }
        self.take_steps();
        self.solve_the_rest(values, b, x, count)?;
        Ok(false)
    }

    /// Has the backend solve all systems in one way, or those that are uncertain.
    fn make(
        &mut self,
        attempt: Attempt,
        goal: &BatchGoal,
        values: &B::Slice<T>,
        (b, count): (&B::Slice<T>, usize),
        x: &mut B::Slice<T>,
    ) -> Result<()> {
        if attempt == Attempt::Iterate && self.reduced.is_none() {
            self.reduced = Reduced::new(&self.backend, &self.pattern)?;
        }
        if self.worst_here > 0 {
            self.backend.fill(0, &mut self.worst)?;
        }
        let iteration = match self.method {
            Method::Cg => BatchIteration::Cg,
            _ => BatchIteration::BiCgStab,
        };
        let (backend, room) = (&self.backend, &mut self.room);
        let Stored { steps, residuals, .. } =
            Stored::of(&mut self.stored[0], backend, self.pattern.systems())?;
        let systems: BatchParts<'_, T, B> = self.pattern.parts(values);
        let (steps, residuals, worst) = (&mut **steps, &mut **residuals, &mut *self.worst);
        let vectors = BatchVectors { count, b, x, steps, residuals, worst };
        match (attempt, &self.elimination, &self.reduced) {
            (Attempt::Iterate, _, Some(reduced)) => {
                backend.iterate_batch(&systems, (iteration, &reduced.parts()), vectors, goal, room)?;
            }
            (Attempt::Eliminate, Some(pattern), _) => {
                backend.solve_sparse_batch(&systems, &pattern.parts(), vectors, goal, room)?;
            }
            _ => backend.solve_dense_batch(&systems, vectors, goal, room)?,
        }
        self.backend.read(&self.worst, std::slice::from_mut(&mut self.worst_here))
    }

    /// Sets outcomes and iterations from what the backend has reported of each system.
    fn take_steps(&mut self) {
        let told = self.steps_here.iter().zip(&mut self.verdicts.iterations);
        for (system, (&steps, iterations)) in told.enumerate() {
            *iterations = steps;
            if steps >= LIMITED {
                self.verdicts.all_converged = false;
                // An uncertain system gets another outcome from `Solver`.
                let digits = f64::from(steps & !LIMITED) / 10.0;
                self.verdicts.outcomes[system] = Outcome::PrecisionLimit { digits };
                *iterations = REFINEMENTS;
            }
        }
    }
}
