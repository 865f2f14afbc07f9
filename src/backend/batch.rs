//! Many small systems at once, each with a verdict of its own.

use super::Backend;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The entries of the systems.
#[derive(Debug)]
pub enum BatchEntries<'a, T: Scalar, B: Backend> {
    /// All n x n numbers of a system, row by row, and one system behind the other.
    Dense(&'a B::Slice<T>),
    /// Compressed rows.
    Compressed {
        /// Where rows begin and end: the rows of one system if all have its pattern, else those of all systems, one
        /// behind the other.
        offsets: &'a B::Slice<u64>,
        /// Columns, counted from 0 in each system.
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
    /// How many there are.
    pub systems: usize,
    /// Unknowns of each system, or of the largest one if they differ.
    pub size: usize,
    /// Stored entries of each system; 0 if systems have patterns of their own.
    pub entries_each: usize,
    /// Stored entries of the longest row of all.
    pub longest: usize,
    /// The row in all rows at which each system begins, and at last the number of rows; none if all have one pattern or
    /// are dense.
    pub starts: Option<&'a B::Slice<u64>>,
    /// The entries.
    pub entries: BatchEntries<'a, T, B>,
}

/// What x has to fulfil.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchGoal {
    /// The largest ||b - A x|| / ||b||.
    pub relative: f64,
    /// Or the largest ||b - A x||.
    pub absolute: f64,
    /// Whether the same has to hold with each row divided by its norm.
    pub row_wise: bool,
    /// Whether only those systems are solved that are uncertain so far.
    pub uncertain_only: bool,
}

impl BatchGoal {
    /// Whether a system with these steps is to be solved.
    pub(crate) fn asks_for(&self, steps: u32) -> bool {
        !self.uncertain_only || steps == UNCERTAIN
    }
}

/// Stands in the place of the steps of refinement of a system of which nothing is certain.
pub const UNCERTAIN: u32 = u32::MAX;

/// Added to tenths of the right digits of x, stands in the place of the steps of refinement of a system in single
/// precision: before it was rounded, x did meet the goal, so that no better one can be handed out.
pub const LIMITED: u32 = 1 << 31;

/// The maximum number of steps of refinement. Each has to halve the excess of the residual at least.
pub(crate) const REFINEMENTS: u32 = 4;
/// Systems are scaled by one power of two, which keeps a Hermitian matrix Hermitian, if the exponents of the largest
/// entries of their rows differ by less.
pub(crate) const UNSCALED: i32 = 300;
/// The maximum number of iterations for a right-hand side.
pub(crate) const ITERATIONS: u32 = 500;
/// As in `verdict`: the relative error of a computed norm in units of rounding, and the rounding errors of a row in
/// addition to those of its products and sums.
pub(crate) const NORM_UNITS: u32 = 64;
pub(crate) const BESIDE: u32 = 4;
/// Powers of two up to this exponent and their reciprocals are normal numbers, with some range to spare.
pub(crate) const POWERS: i32 = 1000;

/// Right-hand sides with their solutions and verdicts: k numbers for each row, row by row.
#[derive(Debug)]
pub struct BatchVectors<'a, T: Scalar, B: Backend> {
    /// Right-hand sides of each system.
    pub count: usize,
    /// All right-hand sides.
    pub b: &'a B::Slice<T>,
    /// All solutions.
    pub x: &'a mut B::Slice<T>,
    /// Steps of refinement or iterations of each system whose x meets the goal in exact arithmetic; else [`UNCERTAIN`],
    /// or [`LIMITED`] with digits.
    pub steps: &'a mut B::Slice<u32>,
    /// The largest ||b - A x|| / ||b|| of each system; NaN if it is uncertain.
    pub residuals: &'a mut B::Slice<f64>,
    /// One number, which is raised to the largest of the steps if that is [`LIMITED`] or more.
    pub worst: &'a mut B::Slice<u32>,
}

/// L and U of one sparse pattern without pivoting: rows of both together, in the order of elimination, with columns
/// that ascend.
#[derive(Debug)]
pub struct BatchElimination<'a, B: Backend> {
    /// The old number of each unknown, in the order of elimination.
    pub order: &'a B::Slice<u32>,
    /// Where rows begin and end.
    pub offsets: &'a B::Slice<u32>,
    /// Columns, by their new numbers.
    pub columns: &'a B::Slice<u32>,
    /// Where the diagonal entry of each row is.
    pub diagonals: &'a B::Slice<u32>,
    /// The place of each stored entry of a system in the factors.
    pub places: &'a B::Slice<u32>,
    /// Entries of the longest row.
    pub longest: usize,
}

impl<B: Backend> BatchElimination<'_, B> {
    /// Returns an error if this is the pattern of other systems.
    pub(crate) fn check<T: Scalar>(&self, systems: &BatchParts<'_, T, B>) -> Result<()> {
        Error::check_dimension("number of entries' places", systems.entries_each, B::len(self.places))?;
        Error::check_dimension("length of the order of elimination", systems.size, B::len(self.order))
    }
}

/// How a backend iterates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchIteration {
    /// By BiCGSTAB.
    BiCgStab,
    /// By conjugate gradients, for Hermitian matrices that are positive definite.
    Cg,
}

/// Rows of which an iteration can eliminate the first ones of each system beforehand: their unknowns depend on no other
/// of these.
///
/// ```text
/// | 4 1 . |    order 0 2 1, 2 eliminated: the rows 0 and 2 have no entry in the columns 2 and 0
/// | 1 4 1 |
/// | . 1 4 |
/// ```
#[derive(Debug)]
pub struct BatchReduction<'a, B: Backend> {
    /// The rows of each system, first those that can be eliminated: those of one system if all have its pattern, else
    /// of all systems.
    pub order: &'a B::Slice<u32>,
    /// How many can be eliminated in each system: one number if all have one pattern.
    pub eliminated: &'a B::Slice<u32>,
    /// The smallest of these numbers.
    pub fewest: usize,
}

impl<B: Backend> BatchReduction<'_, B> {
    /// Returns an error if these are the rows of other systems.
    pub(crate) fn check<T: Scalar>(&self, systems: &BatchParts<'_, T, B>, rows: usize) -> Result<()> {
        let (numbers, rows) = match systems.starts {
            Some(_) => (systems.systems, rows),
            None => (1, systems.size),
        };
        Error::check_dimension("length of the order of rows", rows, B::len(self.order))?;
        Error::check_dimension("number of numbers of rows", numbers, B::len(self.eliminated))
    }
}

/// The solution of many small systems.
pub trait BatchSteps: Backend {
    /// Memory that is kept from one call to the next.
    type BatchRoom<T: Scalar>: Default + Send + Sync + std::fmt::Debug + 'static;

    /// The largest system that [`BatchSteps::solve_dense_batch`] takes.
    const MOST_DENSE: usize;

    /// The largest system that [`BatchSteps::solve_sparse_batch`] takes.
    const MOST_SPARSE: usize;

    /// The largest system that [`BatchSteps::iterate_batch`] takes.
    const MOST_ITERATED: usize;

    /// Whether a system of up to [`BatchSteps::MOST_DENSE`] unknowns is eliminated as a dense one, with partial
    /// pivoting, if sparse elimination leaves it uncertain.
    const DENSE_BEHIND_SPARSE: bool;

    /// The price of a multiplication of sparse elimination, relative to that of dense elimination.
    const SPARSE_PRICE: f64;

    /// Solves each system by Gaussian elimination with partial pivoting, or without if it is Hermitian and proves to be
    /// positive definite, and judges x. An uncertain system, such as one with infinities or NaN, does not affect the
    /// others.
    ///
    /// # Errors
    /// If sizes do not agree, if memory runs out, and if the device fails.
    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut Self::BatchRoom<T>,
    ) -> Result<()>;

    /// The same for systems of one pattern, by elimination without pivoting. Systems that need pivoting are left
    /// uncertain.
    ///
    /// # Errors
    /// Those of [`BatchSteps::solve_dense_batch`], and if the systems are not compressed rows of one pattern.
    fn solve_sparse_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        pattern: &BatchElimination<'_, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut Self::BatchRoom<T>,
    ) -> Result<()>;

    /// The same for compressed rows, by iteration on the unknowns that the reduction leaves, with the diagonal of what
    /// is left of A as preconditioner, each system until it has ended. Systems that take more than 500 iterations are
    /// left uncertain.
    ///
    /// # Errors
    /// Those of [`BatchSteps::solve_dense_batch`], and if the systems are dense.
    fn iterate_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        way: (BatchIteration, &BatchReduction<'_, Self>),
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut Self::BatchRoom<T>,
    ) -> Result<()>;
}

impl<T: Scalar, B: Backend> BatchParts<'_, T, B> {
    /// Returns an error if lengths do not agree.
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
        Error::check_dimension("number of worst steps", 1, B::len(vectors.worst))?;
        Error::check_dimension("number of residuals", self.systems, B::len(vectors.residuals))
    }
}
