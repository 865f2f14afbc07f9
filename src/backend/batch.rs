//! Many small systems at once, each with a verdict of its own.

use super::Backend;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// Where the entries of the systems lie.
#[derive(Debug)]
pub enum BatchEntries<'a, T: Scalar, B: Backend> {
    /// All n x n numbers of a system, row by row, and one system behind the other.
    Dense(&'a B::Slice<T>),
    /// Compressed rows.
    Compressed {
        /// Where rows begin and end: those of one system for all, or those of all systems, one behind the other.
        offsets: &'a B::Slice<u64>,
        /// Columns, counted in each system from 0.
        columns: &'a B::Slice<u32>,
        /// The entries of all systems.
        values: &'a B::Slice<T>,
    },
}

/// m systems.
///
/// ```text
/// one pattern, m = 2, n = 2         starts  none        offsets 0 1 3       values  4 1 5 | 6 2 7
///     | 4   |   | 6   |                                 columns 0 0 1
///     | 1 5 |   | 2 7 |
/// each its own, m = 2               starts  0 1 3       offsets 0 1 3 4     values  3 | 1 2 8
///     | 3 |     | 1 2 |                                 columns 0 0 1 1
///               |   8 |
/// ```
#[derive(Debug)]
pub struct BatchParts<'a, T: Scalar, B: Backend> {
    /// How many.
    pub systems: usize,
    /// Unknowns of each, or of the largest one where they differ.
    pub size: usize,
    /// Stored entries of a system that has the pattern of all.
    pub entries_each: usize,
    /// The row in all rows at which each system begins, and the number of all; none where all have one pattern, or are
    /// dense.
    pub starts: Option<&'a B::Slice<u64>>,
    /// Their entries.
    pub entries: BatchEntries<'a, T, B>,
}

/// What x is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchGoal {
    /// ||b - A x|| / ||b|| at most.
    pub relative: f64,
    /// Or ||b - A x|| at most.
    pub absolute: f64,
    /// Whether the same holds with each row divided by its norm.
    pub row_wise: bool,
    /// Whether systems are left as they are unless nothing is certain of them so far.
    pub uncertain_only: bool,
}

impl BatchGoal {
    /// Whether a system of which so much is known is to be solved.
    pub(crate) fn asks_for(&self, steps: u32) -> bool {
        !self.uncertain_only || steps == UNCERTAIN
    }
}

/// What stands for the steps of refinement of a system of which nothing is certain.
pub const UNCERTAIN: u32 = u32::MAX;

/// Steps of refinement at most, each of which halves what is missing at least.
pub(crate) const REFINEMENTS: u32 = 4;
/// Iterations of a right-hand side at most.
pub(crate) const ITERATIONS: u32 = 500;
/// As in `verdict`: units of rounding of a norm, and roundings of a row beside its products and sums.
pub(crate) const NORM_UNITS: u32 = 64;
pub(crate) const BESIDE: u32 = 4;
/// Powers of two up to this exponent are normal numbers, and so are their reciprocals, with some room left.
pub(crate) const POWERS: i32 = 1000;

/// Right-hand sides, and what becomes of them: k numbers a row, row by row.
#[derive(Debug)]
pub struct BatchVectors<'a, T: Scalar, B: Backend> {
    /// Right-hand sides of a system.
    pub count: usize,
    /// All right-hand sides.
    pub b: &'a B::Slice<T>,
    /// All solutions.
    pub x: &'a mut B::Slice<T>,
    /// Steps of refinement or iterations of each system; [`UNCERTAIN`] unless every x meets the goal in exact arithmetic.
    pub steps: &'a mut B::Slice<u32>,
    /// The largest ||b - A x|| / ||b|| of each system, of the x that is handed out; NaN where nothing is certain.
    pub residuals: &'a mut B::Slice<f64>,
}

/// L and U of one sparse pattern without pivoting: rows of both together, in the order of elimination, with columns
/// that ascend.
#[derive(Debug)]
pub struct BatchElimination<'a, B: Backend> {
    /// The old number of each unknown.
    pub order: &'a B::Slice<u32>,
    /// Where rows begin and end.
    pub offsets: &'a B::Slice<u32>,
    /// Columns, by their new numbers.
    pub columns: &'a B::Slice<u32>,
    /// Where the diagonal entry of each row is.
    pub diagonals: &'a B::Slice<u32>,
    /// Where each stored entry of a system goes.
    pub places: &'a B::Slice<u32>,
    /// Entries of the longest row.
    pub longest: usize,
}

impl<B: Backend> BatchElimination<'_, B> {
    /// Refuses a pattern of other systems.
    pub(crate) fn check<T: Scalar>(&self, systems: &BatchParts<'_, T, B>) -> Result<()> {
        Error::check_dimension("number of entries' places", systems.entries_each, B::len(self.places))?;
        Error::check_dimension("length of the order of elimination", systems.size, B::len(self.order))
    }
}

/// Direct solution of many small systems.
pub trait BatchSteps: Backend {
    /// What is kept from one call to the next.
    type BatchRoom<T: Scalar>: Default + Send + Sync + std::fmt::Debug + 'static;

    /// The largest system that [`BatchSteps::solve_dense_batch`] takes.
    const MOST_DENSE: usize;

    /// The largest system that [`BatchSteps::solve_sparse_batch`] takes.
    const MOST_SPARSE: usize;

    /// The largest system that [`BatchSteps::iterate_batch`] takes.
    const MOST_ITERATED: usize;

    /// Whether a system for which sparse elimination has failed is eliminated with partial pivoting, as a dense one, up
    /// to [`BatchSteps::MOST_DENSE`].
    const DENSE_BEHIND_SPARSE: bool;

    /// What a multiplication of sparse elimination costs, in those of a dense one.
    const SPARSE_PRICE: f64;

    /// Solves each system by Gaussian elimination with partial pivoting, or without where it is Hermitian and shows
    /// itself positive definite, and tests the x that is handed out. A system of which nothing is certain, among them
    /// all with infinities and NaN, does not touch the others.
    ///
    /// # Errors
    /// On sizes that do not agree, without memory, and when the device fails.
    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut Self::BatchRoom<T>,
    ) -> Result<()>;

    /// The same of systems of one pattern, by elimination without pivoting: nothing is certain of a system that needs
    /// it.
    ///
    /// # Errors
    /// As [`BatchSteps::solve_dense_batch`], and on systems that are not compressed rows of one pattern.
    fn solve_sparse_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        pattern: &BatchElimination<'_, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut Self::BatchRoom<T>,
    ) -> Result<()>;

    /// The same of compressed rows by BiCGSTAB with the diagonal as preconditioner, each system until it has ended:
    /// nothing is certain of one that takes more than 500 iterations.
    ///
    /// # Errors
    /// As [`BatchSteps::solve_dense_batch`], and on dense systems.
    fn iterate_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut Self::BatchRoom<T>,
    ) -> Result<()>;
}

impl<T: Scalar, B: Backend> BatchParts<'_, T, B> {
    /// Refuses lengths that do not agree.
    pub(crate) fn check(&self, vectors: &BatchVectors<'_, T, B>) -> Result<()> {
        let rows = match self.starts {
            None => self.systems * self.size,
            Some(starts) => {
                Error::check_dimension("number of systems' starts", self.systems + 1, B::len(starts))?;
                B::len(vectors.b).checked_div(vectors.count).unwrap_or(0)
            }
        };
        match &self.entries {
            BatchEntries::Dense(values) => {
                Error::check_dimension(
                    "number of values",
                    self.systems * self.size * self.size,
                    B::len(values),
                )?;
            }
            BatchEntries::Compressed { offsets, columns, values } => {
                let (of_rows, of_values) = match self.starts {
                    Some(_) => (rows, B::len(columns)),
                    None => (self.size, self.systems * self.entries_each),
                };
                Error::check_dimension("number of row offsets", of_rows + 1, B::len(offsets))?;
                Error::check_dimension("number of values", of_values, B::len(values))?;
            }
        }
        Error::check_dimension(
            "number of right-hand sides' entries",
            rows * vectors.count,
            B::len(vectors.b),
        )?;
        Error::check_dimension("number of entries of x", rows * vectors.count, B::len(vectors.x))?;
        Error::check_dimension("number of steps", self.systems, B::len(vectors.steps))?;
        Error::check_dimension("number of residuals", self.systems, B::len(vectors.residuals))
    }
}
