//! An operator from a closure.

use super::LinearOperator;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use std::fmt;

/// A matrix-free operator: a closure that writes y = A x.
///
/// ```
/// use residua::{Host, LinearOperator, operator::FunctionOperator};
/// // The second difference with zero ends, without a stored matrix.
/// let a = FunctionOperator::<f64, Host, _>::new(4, 4, |_, x, y| {
///     for i in 0..4 {
///         let left = if i > 0 { x[i - 1] } else { 0.0 };
///         let right = if i < 3 { x[i + 1] } else { 0.0 };
///         y[i] = 2.0 * x[i] - left - right;
///     }
///     Ok(())
/// });
/// let mut y = vec![0.0; 4];
/// a.apply(&Host, &[1.0; 4], &mut y)?;
/// assert_eq!(y, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), residua::Error>(())
/// ```
pub struct FunctionOperator<T, B, F> {
    rows: usize,
    columns: usize,
    function: F,
    types: std::marker::PhantomData<fn() -> (T, B)>,
}

impl<T, B, F> FunctionOperator<T, B, F>
where
    T: Scalar,
    B: Backend,
    F: Fn(&B, &B::Slice<T>, &mut B::Slice<T>) -> Result<()> + Send + Sync,
{
    /// An operator of the given shape; `function(backend, x, y)` writes every element of y.
    pub fn new(rows: usize, columns: usize, function: F) -> Self {
        Self { rows, columns, function, types: std::marker::PhantomData }
    }
}

impl<T, B, F> LinearOperator<T, B> for FunctionOperator<T, B, F>
where
    T: Scalar,
    B: Backend,
    F: Fn(&B, &B::Slice<T>, &mut B::Slice<T>) -> Result<()> + Send + Sync,
{
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
        Error::check_dimension("length of x", self.columns, B::len(x))?;
        Error::check_dimension("length of y", self.rows, B::len(y))?;
        (self.function)(backend, x, y)
    }

    fn bytes(&self) -> usize {
        (self.rows + self.columns) * size_of::<T>()
    }
}

impl<T, B, F> fmt::Debug for FunctionOperator<T, B, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FunctionOperator({} x {})", self.rows, self.columns)
    }
}
