//! Solvers of the four types of values.

use crate::report::Report;
use crate::run::Ear;
use num_complex::Complex;
use numpy::Element;
use pyo3::prelude::*;
use residua::solver::{ArraySolver, Solvable, SolveReport};

/// A solver of one of four types.
pub(crate) enum Typed {
    F32(ArraySolver<f32>),
    F64(ArraySolver<f64>),
    C32(ArraySolver<Complex<f32>>),
    C64(ArraySolver<Complex<f64>>),
}

/// A type of values for solvers, known to NumPy and the library.
pub(crate) trait Value: Solvable + Element {
    /// The state, if it is of this type.
    fn of(typed: &mut Typed) -> Option<&mut ArraySolver<Self>>;
    /// A state of this type.
    fn typed(state: ArraySolver<Self>) -> Typed;
}

macro_rules! value {
    ($($t:ty => $variant:ident;)*) => {$(
        impl Value for $t {
            fn of(typed: &mut Typed) -> Option<&mut ArraySolver<Self>> {
                if let Typed::$variant(state) = typed { Some(state) } else { None }
            }

            fn typed(state: ArraySolver<Self>) -> Typed {
                Typed::$variant(state)
            }
        }
    )*};
}

value! {
    f32 => F32;
    f64 => F64;
    Complex<f32> => C32;
    Complex<f64> => C64;
}

/// A solver whose state is of one of the four types, and in use by one call at a time.
pub(crate) trait Solves {
    /// Replaces the solver's values, with the interpreter's lock released.
    fn update_by<T: Value>(
        &self,
        py: Python<'_>,
        update: impl FnOnce(&mut ArraySolver<T>) -> residua::Result<()> + Send,
    ) -> PyResult<()>;

    /// Runs a solve with the lock released, and converts its reports for Python.
    fn solve_by<T: Value>(
        &self,
        observer: Option<&Py<PyAny>>,
        several: bool,
        solve: impl FnOnce(&mut ArraySolver<T>, &mut Ear<'_>) -> residua::Result<Vec<SolveReport>> + Send,
    ) -> PyResult<Vec<Report>>;
}
