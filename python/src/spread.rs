//! A solver whose rows are distributed over the processes of an MPI communicator: the compiled half of
//! `residua.Solver(A, comm=comm)`.

use crate::builder::builder;
use crate::engine::{by_type, no_array};
use crate::matrix::{Indices, Layout, arrays_of, layout_of};
use crate::report::Report;
use crate::run::{Ear, detached, raise};
use crate::typed::Value;
use num_complex::Complex;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use residua::Host;
use residua::ranks::Group;
use residua::scalar::Symmetry;
use residua::solver::{Builder, Device, Progress, RowsSolver};
use residua::work::Work;
use std::any::Any;
use std::sync::Mutex;

/// Rows of a matrix on each of several processes, with the functions that solve with all of them.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct Spread {
    /// A [`RowsSolver`] of one of four types.
    solver: Mutex<Box<dyn Any + Send>>,
    own_rows: usize,
    nnz: usize,
    device: String,
    symmetry: &'static str,
    tolerance: f64,
}

fn built<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    group: &Group,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
    (builder, tolerance): (&Builder, Option<f64>),
) -> PyResult<Spread> {
    let arrays = arrays_of(matrix, indices, &values)?;
    let made = detached(py, &Work::default(), || builder.build_rows(group, arrays.to_csr(&Host)))?;
    let solver: RowsSolver<T> = made.map_err(raise)?;
    let symmetry = match solver.symmetry() {
        Symmetry::Symmetric => "symmetric",
        Symmetry::Hermitian => "hermitian",
        Symmetry::SkewSymmetric => "skew-symmetric",
        Symmetry::General => "general",
    };
    let tolerance = tolerance.unwrap_or(if size_of::<T::Real>() == 4 { 1e-5 } else { 1e-8 });
    Ok(Spread {
        own_rows: solver.own_rows(),
        nnz: solver.nonzeros(),
        device: format!("cpu, {}", group.description()),
        solver: Mutex::new(Box::new(solver)),
        symmetry,
        tolerance,
    })
}

fn solved<T: Value>(
    b: PyReadonlyArray1<'_, T>,
    x: &Bound<'_, PyAny>,
    spread: &Spread,
    observer: Option<&Py<PyAny>>,
) -> PyResult<Vec<Report>> {
    let py = x.py();
    let mut x: PyReadwriteArray1<'_, T> = x.extract().map_err(|_| no_array(x))?;
    let (b, x) = (b.as_slice()?, x.as_slice_mut()?);
    if b.len() != x.len() || spread.own_rows == 0 || b.len() % spread.own_rows != 0 {
        let text = format!("b has {} entries, but A has {} rows in this process", b.len(), spread.own_rows);
        return Err(PyValueError::new_err(text));
    }
    let work = Work::default();
    let mut ear = Ear::new(observer, &work);
    let heard = &mut ear;
    let reports = detached(py, &work, || {
        let mut solver = spread.solver.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let solver = solver.downcast_mut::<RowsSolver<T>>().ok_or_else(|| {
            PyTypeError::new_err(format!(
                "values of type {} do not fit into a solver of another type",
                T::NAME
            ))
        })?;
        let told = |now: &Progress| heard.hear(now.right_hand_side, now.iteration, now.residual_norm);
        let told = solver.solve_with(b, x, told).map_err(raise)?;
        let report = |(report, history)| Report::of_solver(report, history, spread.tolerance);
        Ok(told.into_iter().map(report).collect())
    })?;
    ear.check()?;
    reports
}

#[pymethods]
impl Spread {
    /// A solver for the rows that each process of a communicator gives; the communicator is given by its Fortran
    /// number.
    #[new]
    #[pyo3(signature = (comm, layout, shape, first, second, values, settings))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a matrix")]
    fn new(
        py: Python<'_>,
        comm: i32,
        layout: &str,
        shape: (usize, usize),
        first: Indices<'_>,
        second: Indices<'_>,
        values: &Bound<'_, PyAny>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (builder, device) = builder(settings)?;
        if !matches!(device, Device::Auto | Device::Cpu) {
            return Err(PyRuntimeError::new_err(
                "a solver with comm computes on the CPU: set device to \"auto\" or \"cpu\"",
            ));
        }
        let tolerance = match settings.get_item("rtol")? {
            Some(rtol) if !rtol.is_none() => Some(rtol.extract()?),
            _ => None,
        };
        let group = detached(py, &Work::default(), || Group::from_mpi(comm))?.map_err(raise)?;
        let layout = layout_of(layout)?;
        by_type!(values, built(py, &group, (layout, shape), (&first, &second), (&builder, tolerance)))
    }

    /// Solves from x, which is replaced by the solution: the entries of the rows that this process has given, for one
    /// right-hand side after another. Returns one report for each.
    #[pyo3(signature = (b, x, several = false, observer = None))]
    fn solve(
        &self,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        several: bool,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Report>> {
        let _ = several;
        by_type!(b, solved(x, self, observer.as_ref()))
    }

    /// Number of stored entries of the whole matrix.
    #[getter]
    fn nnz(&self) -> usize {
        self.nnz
    }

    /// The device that it computes on.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// "symmetric", "hermitian" or "general".
    #[getter]
    fn symmetry(&self) -> &'static str {
        self.symmetry
    }
}
