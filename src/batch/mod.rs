//! Thousands of small systems at once, each with a verdict of its own.
//!
//! ```text
//! values, b -> elimination of each system in the memory of a backend -> x, tested there -> converged
//!           -> what is not certain, one by one, by `Solver` on the CPU: converged, singular, precision_limit, ...
//! ```
//!
//! So a verdict means what it means for one system ([`Outcome`]), and a system that fails does not touch the others:
//! x has the same bits alone and among any others.
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
//! | `symbolic` | elimination of a sparse pattern, worked out once |
//! | `apart` | systems that are solved one by one |

mod apart;
mod pattern;
mod symbolic;

use crate::backend::{BatchGoal, BatchParts, BatchSteps, BatchVectors, Host, UNCERTAIN};
use crate::error::{Error, Result};
use crate::krylov::{Outcome, SolveOptions};
use crate::solver::Solvable;
use pattern::Pattern;
use symbolic::{Eliminated, Symbolic};

/// Multiplications of an elimination that take as long as clearing and using an entry of the factors.
const A_FACTOR: f64 = 4.0;

/// How systems are solved; what it leaves uncertain goes another way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// By elimination, or by iteration if the backend eliminates no systems of this size and pattern.
    #[default]
    Auto,
    /// By elimination.
    Lu,
    /// By BiCGSTAB with the diagonal as preconditioner, unless systems are dense or have more than 4096 unknowns.
    BiCgStab,
}

/// One after the other, for systems of which nothing is certain so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Iterate,
    Eliminate,
    EliminateDense,
}

/// What is known of each system's x.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdicts {
    /// How each system ended: of several right-hand sides the worst.
    pub outcomes: Vec<Outcome>,
    /// ||b - A x|| / ||b|| of the x that is handed out, computed anew; the largest of several right-hand sides.
    pub residuals: Vec<f64>,
    /// Steps of refinement, or iterations where a system was solved one by one; the most of several right-hand sides.
    pub iterations: Vec<u32>,
    /// How many systems were solved one by one.
    pub apart: usize,
}

impl Verdicts {
    /// Whether every system has converged.
    pub fn all_converged(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_converged)
    }
}

/// Many systems of one kind, whose values change from solve to solve. It keeps what depends on their pattern and the
/// memory of a solve: from the second solve on, nothing is allocated for systems that converge.
///
/// Values, right-hand sides and solutions lie in the memory of the backend. Right-hand sides lie row by row: k numbers
/// a row, all rows of a system, one system behind the other.
#[derive(Debug)]
pub struct Batch<T: Solvable, B: BatchSteps = Host> {
    backend: B,
    pattern: Pattern<B>,
    /// Where sparse elimination is worth it.
    elimination: Option<Eliminated<B>>,
    options: SolveOptions,
    row_wise: bool,
    method: Method,
    room: B::BatchRoom<T>,
    steps: B::Vec<u32>,
    residuals: B::Vec<f64>,
    steps_here: Vec<u32>,
    verdicts: Verdicts,
}

impl<T: Solvable, B: BatchSteps> Batch<T, B> {
    /// `systems` dense matrices of `size` rows; values are those of all, row by row.
    ///
    /// # Errors
    /// Without memory.
    pub fn dense(backend: B, systems: usize, size: usize) -> Result<Self> {
        let pattern = Pattern::dense(systems, size)?;
        Self::new(backend, pattern)
    }

    /// `systems` matrices of one pattern: compressed rows with columns that ascend in each. Values are those of the
    /// first system in this order, then those of the second, and so on.
    ///
    /// # Errors
    /// On what is no square pattern, and without memory.
    pub fn one_pattern(backend: B, systems: usize, offsets: Vec<u64>, columns: Vec<u32>) -> Result<Self> {
        let pattern = Pattern::of_all(&backend, systems, offsets, columns)?;
        Self::new(backend, pattern)
    }

    /// Matrices of any sizes and patterns: the compressed rows of all, one matrix behind the other, and in `starts` the
    /// row at which each begins, and the number of rows. Columns count in each matrix from 0, and ascend in each row.
    ///
    /// # Errors
    /// On what are no square patterns, and without memory.
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
            steps: backend.zeros(systems)?,
            residuals: backend.zeros(systems)?,
            steps_here: vec![0; systems],
            verdicts: Verdicts {
                outcomes: vec![Outcome::Converged; systems],
                residuals: vec![0.0; systems],
                iterations: vec![0; systems],
                apart: 0,
            },
            backend,
            pattern,
            options: SolveOptions::default(),
            row_wise: true,
            method: Method::Auto,
            room: Default::default(),
        })
    }

    /// A system has converged where ||b - A x|| is at most this times ||b||. Default: 1e-8 in double precision, 1e-5 in
    /// single.
    #[must_use]
    pub fn tolerance(mut self, relative: f64) -> Self {
        self.options = self.options.tolerance(relative);
        self
    }

    /// A system has also converged where ||b - A x|| is at most this. Default: 0.
    #[must_use]
    pub fn absolute_tolerance(mut self, absolute: f64) -> Self {
        self.options = self.options.absolute_tolerance(absolute);
        self
    }

    /// Whether a system has converged only where the same holds with each row divided by its norm. Default: yes.
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

    /// What the last solve has found.
    pub fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// Whether systems are tried in this way.
    fn makes(&self, attempt: Attempt) -> bool {
        let size = self.pattern.size();
        match attempt {
            Attempt::Iterate => {
                let eliminated = self.elimination.is_some() || size <= B::MOST_DENSE;
                let wanted = self.method == Method::BiCgStab || self.method == Method::Auto && !eliminated;
                wanted && !self.pattern.is_dense() && size <= B::MOST_ITERATED
            }
            Attempt::Eliminate => self.elimination.is_some(),
            // A system that needs pivots from elsewhere is left to `Solver` if sparse elimination is worth it: this
            // takes less time than one that is dense.
            Attempt::EliminateDense => {
                size <= B::MOST_DENSE && (self.elimination.is_none() || B::DENSE_BEHIND_SPARSE)
            }
        }
    }

    /// Solves all systems with these values, with as many right-hand sides each as b has numbers a row.
    ///
    /// An x of a system that has not converged is what [`Solver`](crate::Solver) leaves, and NaN where A or b is not
    /// finite.
    ///
    /// # Errors
    /// On lengths that do not agree, on a tolerance that is none, without memory, and when the device fails.
    pub fn solve_into(
        &mut self,
        values: &B::Slice<T>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<&Verdicts> {
        self.options.check()?;
        let (rows, length) = (self.pattern.rows(), B::len(b));
        let count = length.checked_div(rows).unwrap_or(0);
        Error::check_dimension("number of right-hand sides' entries", rows * count, length)?;
        Error::check_dimension("number of entries of x", length, B::len(x))?;
        Error::check_dimension("number of values", self.pattern.entries(), B::len(values))?;
        // Only systems that were solved one by one have another outcome.
        if self.verdicts.apart > 0 {
            self.verdicts.outcomes.fill(Outcome::Converged);
            self.verdicts.apart = 0;
        }
        if count == 0 || self.pattern.systems() == 0 {
            self.verdicts.residuals.fill(0.0);
            self.verdicts.iterations.fill(0);
            return Ok(&self.verdicts);
        }
        self.steps_here.fill(UNCERTAIN);
        let mut goal = BatchGoal {
            relative: self.options.threshold_of_one::<T>(),
            absolute: self.options.threshold::<T>(0.0),
            row_wise: self.row_wise,
            uncertain_only: false,
        };
        for attempt in [Attempt::Iterate, Attempt::Eliminate, Attempt::EliminateDense] {
            if !self.makes(attempt) || !self.steps_here.contains(&UNCERTAIN) {
                continue;
            }
            let systems: BatchParts<'_, T, B> = self.pattern.parts(values);
            let (steps, residuals) = (&mut *self.steps, &mut *self.residuals);
            let vectors = BatchVectors { count, b, x: &mut *x, steps, residuals };
            let (backend, room) = (&self.backend, &mut self.room);
            match (attempt, &self.elimination) {
                (Attempt::Iterate, _) => backend.iterate_batch(&systems, vectors, &goal, room)?,
                (Attempt::Eliminate, Some(pattern)) => {
                    backend.solve_sparse_batch(&systems, &pattern.parts(), vectors, &goal, room)?;
                }
                _ => backend.solve_dense_batch(&systems, vectors, &goal, room)?,
            }
            self.backend.read(&self.steps, &mut self.steps_here)?;
            self.backend.read(&self.residuals, &mut self.verdicts.residuals)?;
            goal.uncertain_only = true;
        }
        self.verdicts.iterations.copy_from_slice(&self.steps_here);
        self.solve_the_rest(values, b, x, count)?;
        Ok(&self.verdicts)
    }
}
