//! A solver for a matrix, with values of any of the four types.

use crate::builder::builder;
use crate::device::{Lying, Place};
use crate::matrix::{Indices, Layout, arrays_of, layout_of};
use crate::report::Report;
use crate::run::{Ear, LONG, forked, gpu_is_of_a_parent, listening, open_gpu, raise, set_up};
use crate::typed::{Solves, Typed, Value};
use num_complex::Complex;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use residua::Solver;
use residua::scalar::Symmetry;
use residua::solver::{ArraySolver, Builder, Device, Solvable, SolveReport};
use residua::work::Work;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Evaluates an expression that is the same for all types.
macro_rules! typed {
    ($typed:expr, $state:ident => $value:expr) => {
        match $typed {
            Typed::F32($state) => $value,
            Typed::F64($state) => $value,
            Typed::C32($state) => $value,
            Typed::C64($state) => $value,
        }
    };
}

/// Calls `$function::<T>(..)` with the type of the array.
macro_rules! by_type {
    ($array:expr, $function:ident($($argument:expr),*)) => {{
        let array = $array;
        if let Ok(array) = array.extract() {
            $function::<f64>(array, $($argument),*)
        } else if let Ok(array) = array.extract() {
            $function::<f32>(array, $($argument),*)
        } else if let Ok(array) = array.extract() {
            $function::<Complex<f64>>(array, $($argument),*)
        } else if let Ok(array) = array.extract() {
            $function::<Complex<f32>>(array, $($argument),*)
        } else {
            Err(crate::engine::no_array(array))
        }
    }};
}
pub(crate) use by_type;

pub(crate) fn no_array(array: &Bound<'_, PyAny>) -> PyErr {
    let given = match array.getattr("dtype") {
        Ok(dtype) => format!("an array of {dtype}"),
        Err(_) => "something other than an array".into(),
    };
    PyTypeError::new_err(format!(
        "{given} was given, but a vector of float32, float64, complex64 or complex128 is needed"
    ))
}

/// A solver for a matrix: the compiled half of `residua.Solver`.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct Engine {
    /// None after the solver was abandoned in a forked process.
    typed: Mutex<Option<Typed>>,
    /// The thread that solves at the moment, see [`thread`]; 0 if none does.
    solving: AtomicU64,
    tolerance: f64,
    on_gpu: bool,
    entries: usize,
    /// True if the next solve may have to factorise, or to set up something else.
    fresh: AtomicBool,
}

/// A number for the calling thread, from 1.
fn thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local!(static OWN: u64 = LAST.fetch_add(1, Ordering::Relaxed) + 1);
    OWN.with(|own| *own)
}

/// Marks a solver as in use by this thread, until it is dropped.
struct Solving<'a>(&'a AtomicU64);

impl<'a> Solving<'a> {
    fn new(place: &'a AtomicU64) -> Self {
        place.store(thread(), Ordering::Relaxed);
        Self(place)
    }
}

impl Drop for Solving<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.on_gpu && gpu_is_of_a_parent() {
            // Freeing would call CUDA with a context that is not there.
            let typed = self.typed.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            std::mem::forget(typed);
        }
    }
}

/// Builds a solver from arrays of a type.
fn built<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
    (builder, keep): (&Builder, bool),
) -> PyResult<Typed> {
    let arrays = arrays_of(matrix, indices, &values)?;
    set_up(py, arrays.values.len() >= LONG, || builder.build_arrays(&arrays, keep)).map(T::typed)
}

/// Solves for one or more right-hand sides.
fn solved<T: Value>(
    b: PyReadonlyArray1<'_, T>,
    x: &Bound<'_, PyAny>,
    engine: &Engine,
    observer: Option<&Py<PyAny>>,
    several: bool,
) -> PyResult<Vec<Report>> {
    let mut x: PyReadwriteArray1<'_, T> = x.extract().map_err(|_| no_array(x))?;
    let (b, x) = (b.as_slice()?, x.as_slice_mut()?);
    engine.solve_by(observer, several, move |state: &mut ArraySolver<T>, ear| {
        let told = |progress: &residua::solver::Progress| {
            ear.hear(progress.right_hand_side, progress.iteration, progress.residual_norm)
        };
        if several {
            state.solver.solve_many_with(b, x, told)
        } else {
            Ok(vec![state.solver.solve_with(b, x, told)?])
        }
    })
}

/// Solves with the factors of an earlier solve.
fn solved_quickly<T: Value>(
    b: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    engine: &Engine,
    transposed: bool,
) -> PyResult<bool> {
    let mut x: PyReadwriteArray1<'_, T> = x.extract().map_err(|_| no_array(x))?;
    let (b, x) = (b.as_slice()?, x.as_slice_mut()?);
    engine.refuse_callbacks()?;
    let work = Work::default();
    listening(py, &work, false, || {
        let mut typed = engine.lock();
        engine.state::<T>(&mut typed)?.solver.solve_quickly(transposed, b, x).map_err(raise)
    })?
}

fn updated<T: Value>(values: PyReadonlyArray1<'_, T>, py: Python<'_>, engine: &Engine) -> PyResult<()> {
    let values = values.as_slice()?;
    engine.update_by(py, |state: &mut ArraySolver<T>| state.update(values))
}

fn updated_by_matrix<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    engine: &Engine,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
) -> PyResult<()> {
    let arrays = arrays_of(matrix, indices, &values)?;
    engine.update_by(py, |state: &mut ArraySolver<T>| state.update_matrix(&arrays))
}

impl Engine {
    fn lock(&self) -> MutexGuard<'_, Option<Typed>> {
        // A panic in a solve leaves a solver that reports, at worst, that it did not converge.
        self.typed.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns an error for a call from within this solver's own solve, which would wait for itself.
    fn refuse_callbacks(&self) -> PyResult<()> {
        if self.solving.load(Ordering::Relaxed) == thread() {
            return Err(PyRuntimeError::new_err("the solver is in use: its own callback cannot call it"));
        }
        Ok(())
    }

    fn state<'a, T: Value>(&self, typed: &'a mut Option<Typed>) -> PyResult<&'a mut ArraySolver<T>> {
        if self.on_gpu && gpu_is_of_a_parent() {
            return Err(forked());
        }
        let typed = typed.as_mut().ok_or_else(|| PyRuntimeError::new_err("the solver is gone"))?;
        let own = typed!(&*typed, state => name_of(&state.solver));
        T::of(typed).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "values of type {} do not fit into a solver of {own}",
                <T as residua::Element>::NAME
            ))
        })
    }
}

impl Solves for Engine {
    /// Replaces the solver's values, with the interpreter's lock released.
    fn update_by<T: Value>(
        &self,
        py: Python<'_>,
        update: impl FnOnce(&mut ArraySolver<T>) -> residua::Result<()> + Send,
    ) -> PyResult<()> {
        self.refuse_callbacks()?;
        self.fresh.store(true, Ordering::Relaxed);
        let work = Work::default();
        listening(py, &work, self.entries >= LONG, || {
            let mut typed = self.lock();
            let state = self.state::<T>(&mut typed)?;
            work.run(|| update(state)).map_err(raise)
        })?
    }

    /// Runs a solve with the lock released, and converts its reports for Python.
    fn solve_by<T: Value>(
        &self,
        observer: Option<&Py<PyAny>>,
        several: bool,
        solve: impl FnOnce(&mut ArraySolver<T>, &mut Ear<'_>) -> residua::Result<Vec<SolveReport>> + Send,
    ) -> PyResult<Vec<Report>> {
        self.refuse_callbacks()?;
        let work = Work::default();
        let mut ear = Ear::new(observer, &work);
        let heard = &mut ear;
        let long = self.fresh.swap(false, Ordering::Relaxed) && self.entries >= LONG;
        let reports = Python::attach(|py| {
            listening(py, &work, long, || {
                let mut typed = self.lock();
                let state = self.state::<T>(&mut typed)?;
                let _solving = Solving::new(&self.solving);
                let reports = work.run(|| solve(state, heard)).map_err(raise)?;
                let history = |k| if several { state.solver.history_of(k) } else { state.solver.history() };
                let reports = reports.into_iter().enumerate();
                Ok(reports
                    .map(|(k, report)| Report::of_solver(report, history(k).to_vec(), self.tolerance))
                    .collect())
            })
        });
        if work.is_stopped() {
            self.fresh.store(true, Ordering::Relaxed);
        }
        let reports = reports?;
        ear.check()?;
        reports
    }
}

fn name_of<T: Solvable>(_: &Solver<T>) -> &'static str {
    <T as residua::Element>::NAME
}

#[pymethods]
impl Engine {
    /// A solver for a matrix in one of the formats "csr" (offsets of rows, columns), "csc" (offsets of columns, rows)
    /// or "coo" (rows, columns). `keep`: values will be replaced, in the order in which they are given here.
    #[new]
    #[pyo3(signature = (layout, shape, first, second, values, keep, settings))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a matrix")]
    fn new(
        py: Python<'_>,
        layout: &str,
        shape: (usize, usize),
        first: Indices<'_>,
        second: Indices<'_>,
        values: &Bound<'_, PyAny>,
        keep: bool,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (mut builder, mut device) = builder(settings)?;
        if gpu_is_of_a_parent() && device == Device::Auto {
            device = Device::Cpu;
            builder = builder.device(device);
        }
        let entries = values.len()?;
        let expected: usize = match settings.get_item("right_hand_sides")? {
            Some(number) if !number.is_none() => number.extract()?,
            _ => 1,
        };
        let may_open = match device {
            Device::Cpu => false,
            Device::Auto => Device::too_small(shape.0, entries, expected).is_none(),
            _ => true,
        };
        if may_open {
            open_gpu()?;
        }
        let layout = layout_of(layout)?;
        let typed = by_type!(values, built(py, (layout, shape), (&first, &second), (&builder, keep)))?;
        Self::of(typed, settings)
    }

    /// A solver on a GPU for a matrix that is stored there: as above, with address, length and bits of each array of
    /// indices, and address and length of the values, which are of the type named `dtype`.
    #[staticmethod]
    #[pyo3(signature = (ordinal, layout, shape, first, second, values, dtype, keep, settings))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a matrix")]
    fn on_gpu(
        py: Python<'_>,
        ordinal: usize,
        layout: &str,
        shape: (usize, usize),
        first: Lying,
        second: Lying,
        values: Lying,
        dtype: &str,
        keep: bool,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (builder, _) = builder(settings)?;
        open_gpu()?;
        let build = match dtype {
            "float32" => crate::device::build::<f32>,
            "float64" => crate::device::build::<f64>,
            "complex64" => crate::device::build::<Complex<f32>>,
            "complex128" => crate::device::build::<Complex<f64>>,
            _ => return Err(PyTypeError::new_err(format!("values of type {dtype} are not supported"))),
        };
        let arrays = [first, second, values];
        Self::of(build(py, ordinal, (layout_of(layout)?, shape), arrays, (&builder, keep))?, settings)
    }

    /// Solves from x, which is replaced by the solution. With `several`, right-hand sides are stored one after another.
    /// Returns one report for each. `observer(right-hand side, iteration, residual norm)` ends the solve by returning
    /// True.
    #[pyo3(signature = (b, x, several = false, observer = None))]
    fn solve(
        &self,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        several: bool,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Report>> {
        by_type!(b, solved(x, self, observer.as_ref(), several))
    }

    /// Solves for right-hand sides one after another, transposed or not, with the factors of an earlier solve and
    /// without a report. False if there are none, or if one product does not show that x is accurate; x must then not
    /// be used.
    fn solve_quickly(&self, b: &Bound<'_, PyAny>, x: &Bound<'_, PyAny>, transposed: bool) -> PyResult<bool> {
        let py = b.py();
        by_type!(b, solved_quickly(py, x, self, transposed))
    }

    /// A solver of the transposed matrix with the same settings.
    fn transposed(&self, py: Python<'_>) -> PyResult<Self> {
        self.refuse_callbacks()?;
        let work = Work::default();
        let typed = listening(py, &work, self.entries >= LONG, || {
            let typed = self.lock();
            if self.on_gpu && gpu_is_of_a_parent() {
                return Err(forked());
            }
            let made = work.set_up(|| {
                typed
                    .as_ref()
                    .map(|typed| {
                        Ok(match typed {
                            Typed::F32(state) => Typed::F32(state.transposed()?),
                            Typed::F64(state) => Typed::F64(state.transposed()?),
                            Typed::C32(state) => Typed::C32(state.transposed()?),
                            Typed::C64(state) => Typed::C64(state.transposed()?),
                        })
                    })
                    .transpose()
            });
            made.map_err(raise)?.ok_or_else(|| PyRuntimeError::new_err("the solver is gone"))
        })??;
        Ok(Self {
            typed: Mutex::new(Some(typed)),
            solving: AtomicU64::new(0),
            tolerance: self.tolerance,
            on_gpu: self.on_gpu,
            entries: self.entries,
            fresh: AtomicBool::new(true),
        })
    }

    /// Like `solve`, with vectors on a GPU: addresses and lengths, with values of the solver's type. If `stream` is
    /// given, the solve waits for the work that it has so far, and its later work waits for x.
    #[pyo3(signature = (ordinal, b, x, several = false, stream = None))]
    fn solve_device(
        &self,
        py: Python<'_>,
        ordinal: usize,
        b: (u64, usize),
        x: (u64, usize),
        several: bool,
        stream: Option<u64>,
    ) -> PyResult<Vec<Report>> {
        open_gpu()?;
        let kind = self.tell(py, |typed| match typed {
            Typed::F32(_) => crate::device::solve::<f32, Self>,
            Typed::F64(_) => crate::device::solve::<f64, Self>,
            Typed::C32(_) => crate::device::solve::<Complex<f32>, Self>,
            Typed::C64(_) => crate::device::solve::<Complex<f64>, Self>,
        })?;
        kind(self, ordinal, b, x, several, stream)
    }

    /// Like `update`, with values on the solver's GPU: address, length and bits of a value.
    fn update_gpu(&self, py: Python<'_>, ordinal: usize, values: Lying) -> PyResult<()> {
        open_gpu()?;
        let kind = self.tell(py, |typed| match typed {
            Typed::F32(_) => crate::device::update::<f32, Self>,
            Typed::F64(_) => crate::device::update::<f64, Self>,
            Typed::C32(_) => crate::device::update::<Complex<f32>, Self>,
            Typed::C64(_) => crate::device::update::<Complex<f64>, Self>,
        })?;
        kind(self, py, ordinal, values)
    }

    /// Replaces the values of the matrix, in the order in which they were given.
    fn update(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        by_type!(values, updated(py, self))
    }

    /// Replaces the values by those of a matrix in any format, whose pattern must be that of the solver's matrix.
    fn update_matrix(
        &self,
        py: Python<'_>,
        layout: &str,
        shape: (usize, usize),
        first: Indices<'_>,
        second: Indices<'_>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let layout = layout_of(layout)?;
        by_type!(values, updated_by_matrix(py, self, (layout, shape), (&first, &second)))
    }

    /// Like `update_matrix`, with a matrix on the solver's GPU, whose arrays are given as for `on_gpu`.
    #[allow(clippy::too_many_arguments, reason = "the parts of a matrix")]
    fn update_matrix_gpu(
        &self,
        py: Python<'_>,
        ordinal: usize,
        layout: &str,
        shape: (usize, usize),
        first: Lying,
        second: Lying,
        values: Lying,
    ) -> PyResult<()> {
        open_gpu()?;
        let kind = self.tell(py, |typed| match typed {
            Typed::F32(_) => crate::device::update_matrix::<f32, Self>,
            Typed::F64(_) => crate::device::update_matrix::<f64, Self>,
            Typed::C32(_) => crate::device::update_matrix::<Complex<f32>, Self>,
            Typed::C64(_) => crate::device::update_matrix::<Complex<f64>, Self>,
        })?;
        kind(self, py, ordinal, (layout_of(layout)?, shape), [first, second, values])
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        self.tell(py, |typed| typed!(typed, state => (state.solver.rows(), state.solver.columns())))
    }

    /// Number of stored entries.
    #[getter]
    fn nnz(&self, py: Python<'_>) -> PyResult<usize> {
        self.tell(py, |typed| typed!(typed, state => state.solver.nonzeros()))
    }

    /// The device that it computes on.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<String> {
        self.tell(py, |typed| typed!(typed, state => state.solver.device().to_string()))
    }

    /// "symmetric", "hermitian" or "general".
    #[getter]
    fn symmetry(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.tell(py, |typed| match typed!(typed, state => state.solver.symmetry()) {
            Symmetry::Symmetric => "symmetric",
            Symmetry::Hermitian => "hermitian",
            Symmetry::SkewSymmetric => "skew-symmetric",
            Symmetry::General => "general",
        })
    }
}

impl Engine {
    fn of(typed: Typed, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let device = typed!(&typed, state => state.solver.device().to_string());
        let single = matches!(typed, Typed::F32(_) | Typed::C32(_));
        let tolerance = match settings.get_item("rtol")? {
            Some(rtol) if !rtol.is_none() => rtol.extract()?,
            _ if single => 1e-5,
            _ => 1e-8,
        };
        let on_gpu = Place::of_solver(&device).is_gpu();
        let entries = typed!(&typed, state => state.solver.nonzeros());
        Ok(Self {
            typed: Mutex::new(Some(typed)),
            solving: AtomicU64::new(0),
            tolerance,
            on_gpu,
            entries,
            fresh: AtomicBool::new(true),
        })
    }

    /// Reads a property of the solver; waits for a solve in progress without the interpreter's lock.
    fn tell<R: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Typed) -> R + Send) -> PyResult<R> {
        self.refuse_callbacks()?;
        py.detach(|| self.lock().as_ref().map(ask))
            .ok_or_else(|| PyRuntimeError::new_err("the solver is gone"))
    }
}
