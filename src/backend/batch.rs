//! Batches of many small systems, each with its own verdict.

use super::Backend;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The storage of the systems' entries.
#[derive(Debug)]
pub enum BatchEntries<'a, T: Scalar, B: Backend> {
    /// All n x n entries of a system by rows, one system after another.
    Dense(&'a B::Slice<T>),
    /// Compressed rows.
    Compressed {
        /// The start and end of rows: those of one system for all, or those of all systems, one after another.
        offsets: &'a B::Slice<u64>,
        /// Columns, numbered from 0 within each system.
        columns: &'a B::Slice<u32>,
        /// The entries of all systems.
        values: &'a B::Slice<T>,
    },
}

/// A batch of m systems.
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
    /// The number of systems.
    pub systems: usize,
    /// Unknowns of each system, or of the largest one.
    pub size: usize,
    /// Stored entries of one system if all have the same pattern.
    pub entries_each: usize,
    /// The row, among all rows, at which each system begins, and the total; none if all systems have one pattern, or
    /// are dense.
    pub starts: Option<&'a B::Slice<u64>>,
    /// The entries of all systems.
    pub entries: BatchEntries<'a, T, B>,
}

/// The tolerance that each x has to meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchGoal {
    /// The largest ||b - A x|| / ||b||.
    pub relative: f64,
    /// The largest ||b - A x||, as an alternative.
    pub absolute: f64,
    /// True if the tolerance must also hold with each row divided by its norm.
    pub row_wise: bool,
}

/// The number of refinement steps of a system whose x could not be verified.
pub const UNCERTAIN: u32 = u32::MAX;

/// The most steps of refinement; each must at least halve the error.
pub(crate) const REFINEMENTS: u32 = 4;
/// As in `verdict`: units of rounding of a norm, and roundings of a row beside its products and sums.
pub(crate) const NORM_UNITS: u32 = 64;
pub(crate) const BESIDE: u32 = 4;
/// Powers of two up to this exponent are normal numbers, and so are their reciprocals, with a margin.
pub(crate) const POWERS: i32 = 1000;

/// Right-hand sides and results: k numbers a row, by rows.
#[derive(Debug)]
pub struct BatchVectors<'a, T: Scalar, B: Backend> {
    /// Right-hand sides of a system.
    pub count: usize,
    /// All right-hand sides.
    pub b: &'a B::Slice<T>,
    /// All solutions.
    pub x: &'a mut B::Slice<T>,
    /// Steps of refinement of each system; [`UNCERTAIN`] unless every x meets the tolerance in exact arithmetic.
    pub steps: &'a mut B::Slice<u32>,
    /// The largest ||b - A x|| / ||b|| of each system, for the x that is returned; NaN if it could not be verified.
    pub residuals: &'a mut B::Slice<f64>,
}

/// L and U on one sparse pattern without pivoting: both together by rows, in the order of elimination, with ascending
/// columns.
#[derive(Debug)]
pub struct BatchElimination<'a, B: Backend> {
    /// The old number of each unknown.
    pub order: &'a B::Slice<u32>,
    /// The start and end of rows.
    pub offsets: &'a B::Slice<u32>,
    /// Columns, in the new numbering.
    pub columns: &'a B::Slice<u32>,
    /// The position of the diagonal entry of each row.
    pub diagonals: &'a B::Slice<u32>,
    /// The position of each stored entry of a system.
    pub places: &'a B::Slice<u32>,
}

/// Direct solution of many small systems.
pub trait BatchSteps: Backend {
    /// Memory that is kept from one call to the next.
    type BatchRoom<T: Scalar>: Default + Send + Sync + std::fmt::Debug + 'static;

    /// The largest system that [`BatchSteps::solve_dense_batch`] takes.
    const MOST_DENSE: usize;

    /// The largest system that [`BatchSteps::solve_sparse_batch`] takes; 0 if it is not supported.
    const MOST_SPARSE: usize = 0;

    /// The time of a multiplication in sparse elimination, relative to one in dense elimination.
    const SPARSE_PRICE: f64 = 1.0;

    /// Solves each system by Gaussian elimination with partial pivoting (without, if it is Hermitian and found to be
    /// positive definite), and verifies the x that is returned. A system that can't be verified, for example with
    /// infinities or NaN, does not affect the others.
    ///
    /// # Errors
    /// If sizes do not agree, if memory runs out, or if the device fails.
    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut Self::BatchRoom<T>,
    ) -> Result<()>;

    /// Solves systems of one pattern, by elimination without pivoting: a system that needs pivoting is left unverified.
    ///
    /// # Errors
    /// As [`BatchSteps::solve_dense_batch`], and if it is not supported.
    fn solve_sparse_batch<T: Scalar>(
        &self,
        _systems: &BatchParts<'_, T, Self>,
        _pattern: &BatchElimination<'_, Self>,
        _vectors: BatchVectors<'_, T, Self>,
        _goal: &BatchGoal,
        _room: &mut Self::BatchRoom<T>,
    ) -> Result<()> {
        Err(Error::Unsupported(format!("sparse elimination of batches on {}", self.description())))
    }
}

impl<T: Scalar, B: Backend> BatchParts<'_, T, B> {
    /// Returns an error if lengths do not agree. `rows` is the number of rows of all systems.
    pub(crate) fn check(&self, rows: usize, vectors: &BatchVectors<'_, T, B>) -> Result<()> {
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
