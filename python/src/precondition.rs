//! Preconditioners alone: the compiled half of `residua.jacobi` and similar functions.

use crate::engine::{by_type, no_array};
use crate::matrix::{Indices, Layout, arrays_of, layout_of};
use crate::run::{LONG, detached, raise, set_up};
use crate::typed::Value;
use num_complex::Complex;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use residua::precondition::Preconditioner as Applied;
use residua::solver::{AlonePreconditioner, PreconditionerChoice};
use residua::work::Work;
use residua::{Error, Host};
use std::any::Any;

/// z = M^-1 r on the CPU.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct Preconditioner {
    /// An [`AlonePreconditioner`] of one of four types.
    m: Box<dyn Any + Send + Sync>,
}

fn built<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    choice: PreconditionerChoice,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
) -> PyResult<Preconditioner> {
    let arrays = arrays_of(matrix, indices, &values)?;
    let long = arrays.values.len() >= LONG;
    let made = set_up(py, long, || choice.set_up(&Host, &arrays.to_csr(&Host)?));
    Ok(Preconditioner { m: Box::new(made?) })
}

fn applied<T: Value>(r: PyReadonlyArray1<'_, T>, z: &Bound<'_, PyAny>, m: &Preconditioner) -> PyResult<()> {
    let mut z_array: PyReadwriteArray1<'_, T> = z.extract().map_err(|_| no_array(z))?;
    let (r, z_values) = (r.as_slice()?, z_array.as_slice_mut()?);
    let m: &AlonePreconditioner<T, Host> = m.m.downcast_ref().ok_or_else(|| {
        let name = <T as residua::Element>::NAME;
        PyTypeError::new_err(format!(
            "values of type {name} do not fit into a preconditioner of another type"
        ))
    })?;
    detached(z.py(), &Work::default(), || m.apply(&Host, r, z_values))?.map_err(raise)
}

#[pymethods]
impl Preconditioner {
    /// The preconditioner with this name for a matrix, given as for `Engine`.
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        layout: &str,
        shape: (usize, usize),
        first: Indices<'_>,
        second: Indices<'_>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let choice: PreconditionerChoice = name.parse().map_err(|error: Error| raise(error))?;
        let layout = layout_of(layout)?;
        by_type!(values, built(py, choice, (layout, shape), (&first, &second)))
    }

    /// z = M^-1 r.
    fn apply(&self, r: &Bound<'_, PyAny>, z: &Bound<'_, PyAny>) -> PyResult<()> {
        by_type!(r, applied(z, self))
    }
}
