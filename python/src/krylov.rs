//! One Krylov method of the library on the CPU, with operators, preconditioners and callbacks written in Python.

use crate::callable::{Applied, Called, Raised, Slow};
use crate::engine::{by_type, no_array};
use crate::files::read_only;
use crate::matrix::{Indices, arrays_of, layout_of};
use crate::report::Report;
use crate::run::{Ear, detached, raise};
use crate::typed::Value;
use crate::watched::Watched;
use num_complex::Complex;
use numpy::{PyReadonlyArray1, PyReadwriteArray1, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use residua::backend::Space;
use residua::krylov::{
    BiConjugateGradients, ConjugateGradients, FlexibleMinimalResidual, Krylov, LeastSquaresResidual, Method,
    MinimalResidual, Report as KrylovReport, SolveOptions,
};
use residua::precondition::{Identity, Preconditioner};
use residua::work::Work;
use residua::{Host, LinearOperator};
use std::ops::ControlFlow;
use std::sync::Mutex;

/// A stored matrix, or functions for the product and the product with the adjoint.
#[derive(FromPyObject)]
pub(crate) enum Operator<'py> {
    Stored(String, (usize, usize), Indices<'py>, Indices<'py>, Bound<'py, PyAny>),
    Function((usize, usize), Py<PyAny>, Option<Py<PyAny>>),
}

/// The callbacks of a solve.
#[derive(Clone, Copy)]
struct Heard<'a> {
    /// Called with (right-hand side, iteration, residual norm).
    observer: Option<&'a Py<PyAny>>,
    /// Called with each iterate.
    callback: Option<&'a Py<PyAny>>,
}

/// A system and its method.
struct Task<'a, T: Value> {
    a: &'a dyn LinearOperator<T, Host>,
    m: &'a dyn Preconditioner<T, Host>,
    b: &'a [T],
    x: &'a mut [T],
    options: SolveOptions,
    raised: &'a Raised,
    heard: Heard<'a>,
}

/// Solves with a method, which is wrapped if the caller wants to see iterates.
fn drive<T: Value, M: Method<T, Host>>(
    method: M,
    task: Task<'_, T>,
    ear: &mut Ear<'_>,
) -> residua::Result<(KrylovReport, Vec<f64>)> {
    let Task { a, m, b, x, options, raised, heard } = task;
    let Some(callback) = heard.callback else {
        let mut solver = Krylov::with_method(Space::new(Host), method, options)?;
        let report = solver.solve(a, m, b, x, |iteration, norm| ear.hear(0, iteration, norm))?;
        return Ok((report, solver.into_history()));
    };
    let show = |x: &[T]| {
        let done = Python::attach(|py| callback.call1(py, (x.to_pyarray(py),)).map(drop));
        if let Err(error) = done {
            raised.keep(error);
        }
    };
    let latest = Mutex::new(Vec::new());
    let cyclic = method.cycle().is_some();
    let method = Watched::new(method, b, &latest, Some(&show));
    let mut solver = Krylov::with_method(Space::new(Host), method, options)?;
    let report = solver.solve(a, m, b, x, |iteration, norm| {
        if iteration > 0 && !cyclic {
            show(&latest.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        }
        match raised.any() {
            true => ControlFlow::Break(()),
            false => ear.hear(0, iteration, norm),
        }
    })?;
    Ok((report, solver.into_history()))
}

fn by_name<T: Value>(
    name: &str,
    restart: usize,
    task: Task<'_, T>,
    ear: &mut Ear<'_>,
) -> residua::Result<(KrylovReport, Vec<f64>)> {
    let (rows, columns) = (task.a.rows(), task.a.columns());
    match name {
        "cg" => drive(ConjugateGradients::new(&Host, columns)?, task, ear),
        "minres" => drive(MinimalResidual::new(&Host, columns)?, task, ear),
        "bicgstab" => drive(BiConjugateGradients::new(&Host, columns)?, task, ear),
        "gmres" => drive(FlexibleMinimalResidual::new(&Host, columns, restart)?, task, ear),
        "lsmr" => drive(LeastSquaresResidual::new(&Host, rows, columns)?, task, ear),
        _ => Err(residua::Error::InvalidArgument(format!("there is no Krylov method '{name}'"))),
    }
}

/// The optional arguments of a call.
struct Wishes<'a> {
    method: &'static str,
    m: Option<&'a Py<PyAny>>,
    options: SolveOptions,
    tolerance: f64,
    restart: usize,
    heard: Heard<'a>,
}

fn solved<T: Value>(
    b: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    operator: &Operator<'_>,
    wishes: Wishes<'_>,
) -> PyResult<Report> {
    let mut x: PyReadwriteArray1<'_, T> = x.extract().map_err(|_| no_array(x))?;
    let (b, x) = (b.as_slice()?, x.as_slice_mut()?);
    let (raised, work) = (Raised::default(), Work::default());
    let mut ear = Ear::new(wishes.heard.observer, &work);
    let values: Option<PyReadonlyArray1<'_, T>> = match operator {
        Operator::Stored(.., values) => Some(read_only(values)?),
        Operator::Function(..) => None,
    };
    let arrays = match (operator, &values) {
        (Operator::Stored(layout, shape, first, second, _), Some(values)) => {
            Some(arrays_of((layout_of(layout)?, *shape), (first, second), values)?)
        }
        _ => None,
    };
    let function = match operator {
        Operator::Function(shape, product, adjoint) => {
            Some(Called { shape: *shape, product, adjoint: adjoint.as_ref(), raised: &raised })
        }
        Operator::Stored(..) => None,
    };
    let (heard, kept) = (&mut ear, &raised);
    let Wishes { method, m, options, tolerance, restart, heard: hears } = wishes;
    let done = detached(py, &work, || {
        let stored;
        let a: &dyn LinearOperator<T, Host> = match (&arrays, &function) {
            (_, Some(function)) => function,
            (Some(arrays), None) => {
                stored = Slow(arrays.to_csr(&Host)?);
                if hears.callback.is_some() { &stored } else { &stored.0 }
            }
            (None, None) => return Err(residua::Error::InvalidArgument("no operator".into())),
        };
        let applied = m.map(|function| Applied { rows: a.columns(), function, raised: kept });
        let m: &dyn Preconditioner<T, Host> = match &applied {
            Some(applied) => applied,
            None => &Identity,
        };
        by_name(method, restart, Task { a, m, b, x, options, raised: kept, heard: hears }, heard)
    })?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    ear.check()?;
    let (report, history) = done.map_err(raise)?;
    Ok(Report::of_krylov(report, method, history, tolerance))
}

/// Solves A x = b, starting from x, which is replaced by the solution, by one method on the CPU. `operator` is ("csr",
/// shape, offsets, columns, values), or (shape, matvec, rmatvec or None); `m` is a function z = M^-1 r; `callback` gets
/// each iterate, `observer` gets (0, iteration, residual norm).
#[pyfunction]
#[pyo3(signature = (method, operator, b, x, *, rtol, atol = 0.0, maxiter = None, restart = 20, m = None,
    observer = None, callback = None))]
#[allow(clippy::too_many_arguments, reason = "those of SciPy's functions")]
pub(crate) fn krylov(
    py: Python<'_>,
    method: &str,
    operator: Operator<'_>,
    b: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    rtol: f64,
    atol: f64,
    maxiter: Option<usize>,
    restart: usize,
    m: Option<Py<PyAny>>,
    observer: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Report> {
    let names = ["cg", "minres", "gmres", "bicgstab", "lsmr"];
    let method = names.into_iter().find(|name| *name == method);
    let method =
        method.ok_or_else(|| PyValueError::new_err(format!("choose one of the methods {names:?}")))?;
    let mut options = SolveOptions::default().tolerance(rtol).absolute_tolerance(atol);
    if let Some(iterations) = maxiter {
        options = options.max_iterations(iterations);
    }
    let heard = Heard { observer: observer.as_ref(), callback: callback.as_ref() };
    let wishes = Wishes { method, m: m.as_ref(), options, tolerance: rtol, restart, heard };
    by_type!(b, solved(py, x, &operator, wishes))
}
