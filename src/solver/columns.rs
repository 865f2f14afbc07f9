//! Several right-hand sides and solutions, stored one after another in the caller's memory.

use super::SolverBackend;
use crate::error::Result;
use crate::scalar::Scalar;
use std::ops::Range;

/// The source of right-hand sides and starting vectors, and the destination of solutions, all in the caller's order.
pub(super) trait Columns<T: Scalar, B: SolverBackend> {
    /// Loads right-hand side `number`, and the starting vector of its solve.
    fn load(&self, backend: &B, number: usize, b: &mut B::Slice<T>, x: &mut B::Slice<T>) -> Result<()>;

    /// Stores solution `number`.
    fn store(&mut self, backend: &B, number: usize, x: &B::Slice<T>) -> Result<()>;
}

/// The range of column `number` of `n` entries each.
pub(super) fn column(n: usize, number: usize) -> Range<usize> {
    number * n..(number + 1) * n
}

/// Columns on the host.
pub(super) struct OnHost<'a, T> {
    /// Rows and columns of the matrix: the lengths of a right-hand side and of a solution.
    pub(super) shape: (usize, usize),
    pub(super) b: &'a [T],
    pub(super) x: &'a mut [T],
}

impl<T: Scalar, B: SolverBackend> Columns<T, B> for OnHost<'_, T> {
    fn load(&self, backend: &B, number: usize, b: &mut B::Slice<T>, x: &mut B::Slice<T>) -> Result<()> {
        backend.write(&self.b[column(self.shape.0, number)], b)?;
        backend.write(&self.x[column(self.shape.1, number)], x)
    }

    fn store(&mut self, backend: &B, number: usize, x: &B::Slice<T>) -> Result<()> {
        backend.read(x, &mut self.x[column(self.shape.1, number)])
    }
}

/// Columns in the memory of the backend.
pub(super) struct Here<'a, T: Scalar, B: SolverBackend> {
    /// Rows and columns of the matrix: the lengths of a right-hand side and of a solution.
    pub(super) shape: (usize, usize),
    pub(super) b: &'a B::Slice<T>,
    pub(super) x: &'a mut B::Slice<T>,
}

impl<T: Scalar, B: SolverBackend> Columns<T, B> for Here<'_, T, B> {
    fn load(&self, backend: &B, number: usize, b: &mut B::Slice<T>, x: &mut B::Slice<T>) -> Result<()> {
        backend.copy(B::part(self.b, column(self.shape.0, number)), b)?;
        backend.copy(B::part(self.x, column(self.shape.1, number)), x)
    }

    fn store(&mut self, backend: &B, number: usize, x: &B::Slice<T>) -> Result<()> {
        backend.copy(x, B::part_mut(self.x, column(self.shape.1, number)))
    }
}
