//! Many small systems at once: the compiled half of `residua.Batch`.

use crate::run::{open_gpu, raise, set_up};
use crate::typed::Value;
use num_complex::Complex;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray1, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use residua::batch::{Batch, Method, Stored, Told, Verdicts};
use residua::krylov::Outcome;
use residua::{Backend, Cuda, Host};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The outcomes of systems, by their numbers in the array of outcomes.
const WORDS: [&str; 11] = [
    "converged",
    "precision_limit",
    "least_squares",
    "singular",
    "stagnated",
    "max_iterations",
    "not_positive_definite",
    "breakdown",
    "not_finite",
    "time_limit",
    "interrupted",
];

/// Batches with values of one type, on the CPU or on a GPU.
enum Kept<T: Value> {
    Cpu(Batch<T, Host>),
    Gpu(Cuda, Batch<T, Cuda>),
}

enum Typed {
    F32(Kept<f32>),
    F64(Kept<f64>),
    C32(Kept<Complex<f32>>),
    C64(Kept<Complex<f64>>),
}

macro_rules! typed {
    ($typed:expr, $kept:ident => $value:expr) => {
        match $typed {
            Typed::F32($kept) => $value,
            Typed::F64($kept) => $value,
            Typed::C32($kept) => $value,
            Typed::C64($kept) => $value,
        }
    };
}

/// The pattern: dense with a number and size of systems, one for all systems, or one for each.
enum Shape {
    Dense(usize, usize),
    All(usize, Vec<u64>, Vec<u32>),
    Each(Vec<u64>, Vec<u64>, Vec<u32>),
}

impl Shape {
    fn batch<T: Value, B: residua::backend::BatchSteps>(self, backend: B) -> residua::Result<Batch<T, B>> {
        match self {
            Self::Dense(systems, size) => Batch::dense(backend, systems, size),
            Self::All(systems, offsets, columns) => Batch::one_pattern(backend, systems, offsets, columns),
            Self::Each(starts, offsets, columns) => Batch::each_its_own(backend, starts, offsets, columns),
        }
    }
}

/// Relative and absolute tolerance, whether rows are divided by their norms, and the method.
type Goal = (Option<f64>, f64, bool, String);

impl<T: Value> Kept<T> {
    fn new(
        shape: Shape,
        ordinal: Option<usize>,
        (relative, absolute, row_wise, method): (Option<f64>, f64, bool, Method),
    ) -> residua::Result<Self> {
        fn with<T: Value, B: residua::backend::BatchSteps>(
            batch: Batch<T, B>,
            (relative, absolute, row_wise, method): (Option<f64>, f64, bool, Method),
        ) -> Batch<T, B> {
            let batch = batch.absolute_tolerance(absolute).row_wise(row_wise).method(method);
            match relative {
                Some(relative) => batch.tolerance(relative),
                None => batch,
            }
        }
        let goal = (relative, absolute, row_wise, method);
        Ok(match ordinal {
            None => Self::Cpu(with(shape.batch(Host)?, goal)),
            Some(ordinal) => {
                let cuda = Cuda::new(ordinal)?;
                Self::Gpu(cuda, with(shape.batch(cuda)?, goal))
            }
        })
    }

    fn verdicts(&self) -> &Verdicts {
        match self {
            Self::Cpu(batch) => batch.verdicts(),
            Self::Gpu(_, batch) => batch.verdicts(),
        }
    }

    /// Solves with arrays of NumPy.
    fn solve(&mut self, py: Python<'_>, [values, b, x]: [&Bound<'_, PyAny>; 3]) -> PyResult<()> {
        let other =
            |_| PyTypeError::new_err("values, b and x must have one dimension and the type of the batch");
        let values: PyReadonlyArray1<'_, T> = values.extract().map_err(other)?;
        let b: PyReadonlyArray1<'_, T> = b.extract().map_err(other)?;
        let mut x: PyReadwriteArray1<'_, T> = x.extract().map_err(other)?;
        let (values, b, x) = (values.as_slice()?, b.as_slice()?, x.as_slice_mut()?);
        set_up(py, true, || match self {
            Self::Cpu(batch) => batch.solve_into(values, b, x).map(|_| ()),
            Self::Gpu(cuda, batch) => {
                let (values, b) = (cuda.upload(values.to_vec())?, cuda.upload(b.to_vec())?);
                let mut there = cuda.zeros(x.len())?;
                batch.solve_into(&values, &b, &mut there)?;
                cuda.read(&there, x)
            }
        })
    }

    /// Solves with arrays on the batch's GPU: each of `values`, `b` and `x` is an address and a number of elements.
    /// `long`: whether the solve may take long, so that a second thread has to listen for Ctrl-C.
    fn solve_there(
        &mut self,
        py: Python<'_>,
        [values, b, x]: [(u64, usize); 3],
        stream: Option<u64>,
        long: bool,
    ) -> PyResult<Option<Arc<Stored<Cuda>>>> {
        set_up(py, long, || {
            let Self::Gpu(cuda, batch) = self else {
                return Err(residua::Error::InvalidArgument(
                    "the batch is on the CPU, but the arrays are on a GPU".into(),
                ));
            };
            // SAFETY: the Python side has read addresses, lengths, types and contiguity from the arrays' own
            // descriptions and holds references to them until this returns. It passes the stream on which they were
            // written, or has made our stream wait for it. x is a new array that nothing else has seen yet.
            unsafe {
                if let Some(stream) = stream {
                    cuda.run_after(stream)?;
                }
                let (values, b) = (cuda.foreign::<T>(values.0, values.1), cuda.foreign::<T>(b.0, b.1));
                let x = cuda.foreign_mut::<T>(x.0, x.1);
                let solved = batch.solve_there(values, b, x).map(|told| match told {
                    Told::AllConverged(stored) => Some(stored),
                    Told::Each(_) => None,
                });
                if let Some(stream) = stream {
                    cuda.run_before(stream)?;
                }
                solved
            }
        })
    }
}

/// Outcomes by their numbers, whether x is an answer, residuals, iterations.
type Arrays = (Py<PyArray1<u8>>, Py<PyArray1<bool>>, Py<PyArray1<f64>>, Py<PyArray1<u32>>);

enum Known {
    Here(Arrays),
    /// All have converged.
    There(Arc<Stored<Cuda>>),
}

/// What is known of each system.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct BatchVerdicts {
    known: Known,
    /// Whether every system has converged.
    #[pyo3(get)]
    all_converged: bool,
    /// How many systems were solved one by one.
    #[pyo3(get)]
    apart: usize,
    /// How many systems there are.
    #[pyo3(get)]
    systems: usize,
}

#[pymethods]
impl BatchVerdicts {
    /// Outcomes by their numbers, whether x is an answer, residuals, iterations: arrays with an entry a system.
    fn arrays(&self, py: Python<'_>) -> PyResult<Arrays> {
        Ok(match &self.known {
            Known::Here((outcomes, solved, residuals, iterations)) => (
                outcomes.clone_ref(py),
                solved.clone_ref(py),
                residuals.clone_ref(py),
                iterations.clone_ref(py),
            ),
            Known::There(stored) => {
                let (iterations, residuals) = (
                    PyArray1::<u32>::zeros(py, self.systems, false),
                    PyArray1::<f64>::zeros(py, self.systems, false),
                );
                stored
                    .read(iterations.readwrite().as_slice_mut()?, residuals.readwrite().as_slice_mut()?)
                    .map_err(raise)?;
                let outcomes = PyArray1::<u8>::zeros(py, self.systems, false);
                let solved = vec![true; self.systems].to_pyarray(py);
                (outcomes.unbind(), solved.unbind(), residuals.unbind(), iterations.unbind())
            }
        })
    }
}

impl BatchVerdicts {
    fn here(py: Python<'_>, verdicts: &Verdicts) -> Self {
        let number = |outcome: &Outcome| {
            WORDS.iter().position(|word| *word == outcome.status()).unwrap_or(WORDS.len()) as u8
        };
        let all = &verdicts.outcomes;
        let (outcomes, solved): (Vec<u8>, Vec<bool>) = if verdicts.all_converged() {
            (vec![0; all.len()], vec![true; all.len()])
        } else {
            (all.iter().map(number).collect(), all.iter().map(Outcome::is_solved).collect())
        };
        let arrays = (
            outcomes.to_pyarray(py).unbind(),
            solved.to_pyarray(py).unbind(),
            verdicts.residuals.to_pyarray(py).unbind(),
            verdicts.iterations.to_pyarray(py).unbind(),
        );
        Self {
            known: Known::Here(arrays),
            all_converged: verdicts.all_converged(),
            apart: verdicts.apart,
            systems: all.len(),
        }
    }

    fn there(stored: Arc<Stored<Cuda>>) -> Self {
        Self { all_converged: true, apart: 0, systems: stored.systems(), known: Known::There(stored) }
    }
}

/// Many systems with values of one type.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct Batches {
    typed: Mutex<Typed>,
    /// True if the last solve on the GPU left no system to the CPU, so that the next one will hardly take long.
    quick: AtomicBool,
}

#[pymethods]
impl Batches {
    /// Makes systems with values of a type, on the CPU or on a GPU. Dense ones are given by their number and size,
    /// sparse ones by offsets and columns of one pattern, or of all patterns with the row at which each begins.
    #[new]
    #[pyo3(signature = (dtype, ordinal, systems, size, starts, offsets, columns, goal))]
    #[allow(clippy::too_many_arguments, reason = "Python's arguments")]
    fn new(
        py: Python<'_>,
        dtype: &str,
        ordinal: Option<usize>,
        systems: usize,
        size: usize,
        starts: Option<PyReadonlyArray1<'_, u64>>,
        offsets: Option<PyReadonlyArray1<'_, u64>>,
        columns: Option<PyReadonlyArray1<'_, u32>>,
        goal: Goal,
    ) -> PyResult<Self> {
        if ordinal.is_some() {
            open_gpu()?;
        }
        let shape = match (starts, offsets, columns) {
            (None, None, None) => Shape::Dense(systems, size),
            (None, Some(offsets), Some(columns)) => {
                Shape::All(systems, offsets.as_slice()?.to_vec(), columns.as_slice()?.to_vec())
            }
            (Some(starts), Some(offsets), Some(columns)) => Shape::Each(
                starts.as_slice()?.to_vec(),
                offsets.as_slice()?.to_vec(),
                columns.as_slice()?.to_vec(),
            ),
            _ => return Err(PyValueError::new_err("offsets and columns must be given together")),
        };
        let (relative, absolute, row_wise, name) = goal;
        let goal = (relative, absolute, row_wise, Method::from_str(&name).map_err(raise)?);
        let typed = py
            .detach(|| {
                Ok(match dtype {
                    "float32" => Typed::F32(Kept::new(shape, ordinal, goal)?),
                    "complex64" => Typed::C32(Kept::new(shape, ordinal, goal)?),
                    "complex128" => Typed::C64(Kept::new(shape, ordinal, goal)?),
                    _ => Typed::F64(Kept::new(shape, ordinal, goal)?),
                })
            })
            .map_err(raise)?;
        Ok(Self { typed: Mutex::new(typed), quick: AtomicBool::new(false) })
    }

    /// The words for the numbers of outcomes.
    #[staticmethod]
    fn words() -> Vec<&'static str> {
        WORDS.to_vec()
    }

    /// Solves with arrays of NumPy, and writes x.
    fn solve(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
    ) -> PyResult<BatchVerdicts> {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        typed!(&mut *typed, kept => {
            kept.solve(py, [values, b, x])?;
            Ok(BatchVerdicts::here(py, kept.verdicts()))
        })
    }

    /// Solves with arrays on the batch's GPU: address and number of elements of each.
    #[pyo3(signature = (values, b, x, stream = None))]
    fn solve_device(
        &self,
        py: Python<'_>,
        values: (u64, usize),
        b: (u64, usize),
        x: (u64, usize),
        stream: Option<u64>,
    ) -> PyResult<BatchVerdicts> {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        typed!(&mut *typed, kept => {
            let stored = kept.solve_there(py, [values, b, x], stream, !self.quick.load(Ordering::Relaxed))?;
            let told = match stored {
                Some(stored) => BatchVerdicts::there(stored),
                None => BatchVerdicts::here(py, kept.verdicts()),
            };
            self.quick.store(told.apart == 0, Ordering::Relaxed);
            Ok(told)
        })
    }
}
