//! Operators and preconditioners that are Python functions.

use crate::typed::Value;
use numpy::{PyArray1, PyArrayMethods, ToPyArray};
use pyo3::prelude::*;
use residua::backend::Op;
use residua::precondition::Preconditioner;
use residua::{Csr, Error, Host, LinearOperator, Result};
use std::sync::Mutex;

/// An exception that Python raised during a call of the library, whose errors cannot contain it.
#[derive(Default)]
pub(crate) struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    /// Stores an exception, and returns an error for the library to pass on.
    pub(crate) fn keep(&self, error: PyErr) -> Error {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.get_or_insert(error);
        Error::InvalidArgument("a function of the caller raised an exception".into())
    }

    /// Returns whether one was kept.
    pub(crate) fn any(&self) -> bool {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).is_some()
    }

    /// The first error that was kept.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }
}

/// Calls `function(x)` with a copy of x, and reads its result into y. A linear function is not called for zero, from
/// which most solves start.
fn call<T: Value>(function: &Py<PyAny>, raised: &Raised, x: &[T], y: &mut [T]) -> Result<()> {
    if x.iter().all(|&value| value == T::zero()) {
        y.fill(T::zero());
        return Ok(());
    }
    let done = Python::attach(|py| -> PyResult<()> {
        let result = function.call1(py, (x.to_pyarray(py),))?;
        let result: &Bound<'_, PyArray1<T>> = result.bind(py).cast()?;
        let result = result.try_readonly()?;
        let values = result.as_slice()?;
        if values.len() != y.len() {
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "an operator returned {} values, but {} are needed",
                values.len(),
                y.len()
            )));
        }
        y.copy_from_slice(values);
        Ok(())
    });
    done.map_err(|error| raised.keep(error))
}

/// y = A x by a Python function, and A^H x by another one if there is one.
pub(crate) struct Called<'a> {
    pub(crate) shape: (usize, usize),
    pub(crate) product: &'a Py<PyAny>,
    pub(crate) adjoint: Option<&'a Py<PyAny>>,
    pub(crate) raised: &'a Raised,
}

impl<T: Value> LinearOperator<T, Host> for Called<'_> {
    fn rows(&self) -> usize {
        self.shape.0
    }

    fn columns(&self) -> usize {
        self.shape.1
    }

    fn apply(&self, _: &Host, x: &[T], y: &mut [T]) -> Result<()> {
        call(self.product, self.raised, x, y)
    }

    fn product_op(&self, backend: &Host, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<()> {
        use residua::backend::{Backend, VectorOps};
        let function = match (op, self.adjoint) {
            (Op::None, _) => self.product,
            (Op::ConjugateTranspose, Some(adjoint)) => adjoint,
            _ => {
                return Err(Error::Unsupported(
                    "an operator without rmatvec, for a method that needs products with A^H".into(),
                ));
            }
        };
        let mut product = backend.zeros::<T>(y.len())?;
        call(function, self.raised, x, &mut product)?;
        backend.axpby(alpha, &product, beta, y)
    }

    /// A Python function can't be recorded.
    fn waits(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        (self.shape.0 + self.shape.1) * size_of::<T>()
    }
}

/// z = M^-1 r by a Python function.
pub(crate) struct Applied<'a> {
    pub(crate) rows: usize,
    pub(crate) function: &'a Py<PyAny>,
    pub(crate) raised: &'a Raised,
}

impl<T: Value> Preconditioner<T, Host> for Applied<'_> {
    fn rows(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn apply(&self, _: &Host, r: &[T], z: &mut [T]) -> Result<()> {
        call(self.function, self.raised, r, z)
    }

    fn waits(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        2 * self.rows * size_of::<T>()
    }
}

/// A stored matrix whose products are not recorded, so that a callback sees each iteration by itself.
pub(crate) struct Slow<T: Value>(pub(crate) Csr<T>);

impl<T: Value> LinearOperator<T, Host> for Slow<T> {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn columns(&self) -> usize {
        self.0.columns()
    }

    fn apply(&self, backend: &Host, x: &[T], y: &mut [T]) -> Result<()> {
        self.0.apply(backend, x, y)
    }

    fn product_op(&self, backend: &Host, op: Op, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<()> {
        LinearOperator::product_op(&self.0, backend, op, alpha, x, beta, y)
    }

    fn accurate_residual(&self, backend: &Host, scale: T, b: &[T], x: &[T], r: &mut [T]) -> Result<bool> {
        self.0.accurate_residual(backend, scale, b, x, r)
    }

    fn waits(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        LinearOperator::<T, Host>::bytes(&self.0)
    }
}
