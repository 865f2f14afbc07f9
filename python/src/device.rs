//! Vectors and matrices on a GPU, and streams of other libraries. The caller has made our stream wait for the work that
//! writes them (`stream`, `run_after`), and makes its own stream wait for ours afterwards (`run_before`): the host
//! waits for neither.

use crate::report::Report;
use crate::run::{LONG, open_gpu, raise, set_up};
use crate::typed::{Solves, Typed, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use residua::assemble::{Arrays, Integers, Layout};
use residua::solver::Builder;
use residua::{Backend, Cuda, Error};

/// A one-dimensional array on a GPU: address, number of elements, and bits of an element.
pub(crate) type Lying = (u64, usize, u32);

/// The device of a solver, by its description.
pub(crate) enum Place {
    Cpu,
    Gpu,
}

impl Place {
    /// The host's description begins with "cpu"; all others are those of GPUs.
    pub(crate) fn of_solver(description: &str) -> Self {
        if description.starts_with("cpu") { Place::Cpu } else { Place::Gpu }
    }

    pub(crate) fn is_gpu(&self) -> bool {
        matches!(self, Place::Gpu)
    }
}

/// The driver's number of the stream that has all work of this package on a GPU.
#[pyfunction]
pub(crate) fn stream(py: Python<'_>, ordinal: usize) -> PyResult<u64> {
    open_gpu()?;
    py.detach(|| Cuda::new(ordinal)).map(|cuda| cuda.stream_number()).map_err(raise)
}

/// Makes this package's later work on a GPU wait for the work that a stream of another library has so far.
#[pyfunction]
pub(crate) fn run_after(py: Python<'_>, ordinal: usize, stream: u64) -> PyResult<()> {
    open_gpu()?;
    // SAFETY: the Python side has the stream from its library's own object, which keeps it alive.
    py.detach(|| unsafe { Cuda::new(ordinal)?.run_after(stream) }).map_err(raise)
}

/// Makes later work of another library's stream wait for this package's work on a GPU.
#[pyfunction]
pub(crate) fn run_before(py: Python<'_>, ordinal: usize, stream: u64) -> PyResult<()> {
    open_gpu()?;
    // SAFETY: as above.
    py.detach(|| unsafe { Cuda::new(ordinal)?.run_before(stream) }).map_err(raise)
}

/// Waits on the host for this package's work on a GPU.
#[pyfunction]
pub(crate) fn wait(py: Python<'_>, ordinal: usize) -> PyResult<()> {
    open_gpu()?;
    py.detach(|| Cuda::new(ordinal)?.synchronize()).map_err(raise)
}

/// Solves with right-hand sides and starting vectors at these addresses of a GPU, with the given numbers of values;
/// solutions replace the starting vectors. If a stream is given, this package's work waits for the work that it has so
/// far, and its later work waits for ours.
pub(crate) fn solve<T: Value, E: Solves>(
    engine: &E,
    ordinal: usize,
    (b, b_len): (u64, usize),
    (x, x_len): (u64, usize),
    several: bool,
    stream: Option<u64>,
) -> PyResult<Vec<Report>> {
    engine.solve_by::<T>(None, several, move |state, ear| {
        let cuda = Cuda::new(ordinal)?;
        if let Some(stream) = stream {
            // SAFETY: the Python side has the stream from its library's own object, which keeps it alive.
            unsafe { cuda.run_after(stream)? };
        }
        // SAFETY: the Python side has read address, length, type and contiguity from the array's own description and
        // checked all of them against the solver. It holds a reference to both arrays until this returns, and has made
        // our stream wait for the one on which they were written.
        let b = unsafe { cuda.foreign::<T>(b, b_len) };
        // SAFETY: as above; x is a new array that nothing else has seen yet.
        let x = unsafe { cuda.foreign_mut::<T>(x, x_len) };
        let told = |progress: &residua::solver::Progress| {
            ear.hear(progress.right_hand_side, progress.iteration, progress.residual_norm)
        };
        let solved = if several {
            state.solver.solve_many_on_with(&cuda, b, x, told)
        } else {
            state.solver.solve_on_with(&cuda, b, x, told).map(|report| vec![report])
        };
        if let Some(stream) = stream {
            // This is needed after an error too, because work enqueued before the error still reads and writes these
            // arrays.
            // SAFETY: as above.
            unsafe { cuda.run_before(stream)? };
        }
        solved
    })
}

/// The values of an array on a GPU.
///
/// # Safety
/// As for [`Cuda::foreign`], with integers of `bits` bits.
unsafe fn integers<'a>(cuda: &Cuda, (address, len, bits): Lying) -> residua::Result<Integers<'a, Cuda>> {
    match bits {
        // SAFETY: guaranteed by the caller.
        32 => Ok(Integers::Short(unsafe { cuda.foreign(address, len) })),
        // SAFETY: guaranteed by the caller.
        64 => Ok(Integers::Long(unsafe { cuda.foreign(address, len) })),
        _ => Err(Error::InvalidArgument(format!("the indices have {bits} bits, but must have 32 or 64"))),
    }
}

/// A solver on a GPU for a matrix that is stored there: offsets or rows, columns, values.
pub(crate) fn build<T: Value>(
    py: Python<'_>,
    ordinal: usize,
    (layout, shape): (Layout, (usize, usize)),
    [first, second, values]: [Lying; 3],
    (builder, keep): (&Builder, bool),
) -> PyResult<Typed> {
    set_up(py, values.1 >= LONG, || {
        let cuda = Cuda::new(ordinal)?;
        // SAFETY: the Python side has read address, length and type of each array from its own description. It holds a
        // reference to them until this returns, and has made our stream wait for the one on which they were written.
        let arrays = unsafe { arrays::<T>(&cuda, (layout, shape), [first, second, values])? };
        builder.build_arrays_on(&cuda, &arrays, keep).map(T::typed)
    })
}

/// The arrays of a matrix on a GPU.
///
/// # Safety
/// As for [`Cuda::foreign`], with integers and values of the given types.
unsafe fn arrays<'a, T: Value>(
    cuda: &Cuda,
    (layout, shape): (Layout, (usize, usize)),
    [first, second, values]: [Lying; 3],
) -> residua::Result<Arrays<'a, T, Cuda>> {
    // SAFETY: guaranteed by the caller.
    let (first, second, values) =
        unsafe { (integers(cuda, first)?, integers(cuda, second)?, cuda.foreign::<T>(values.0, values.1)) };
    Ok(Arrays { layout, shape, base: 0, first, second, values })
}

/// Returns an error if values have another width than the solver's.
fn check_width<T: Value>(bits: u32) -> PyResult<()> {
    if bits as usize == 8 * size_of::<T>() {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "the values have {bits} bits, but the solver has values of another type"
    )))
}

/// Replaces the values of a solver on a GPU by those of a matrix there.
pub(crate) fn update_matrix<T: Value, E: Solves>(
    engine: &E,
    py: Python<'_>,
    ordinal: usize,
    matrix: (Layout, (usize, usize)),
    lying: [Lying; 3],
) -> PyResult<()> {
    check_width::<T>(lying[2].2)?;
    engine.update_by::<T>(py, |state| {
        let cuda = Cuda::new(ordinal)?;
        // SAFETY: as for the arrays of a matrix that a solver is built from.
        let arrays = unsafe { arrays::<T>(&cuda, matrix, lying)? };
        state.update_matrix_on(&cuda, &arrays)
    })
}

/// Replaces the values of a solver on a GPU by new ones there.
pub(crate) fn update<T: Value, E: Solves>(
    engine: &E,
    py: Python<'_>,
    ordinal: usize,
    (address, len, bits): Lying,
) -> PyResult<()> {
    check_width::<T>(bits)?;
    engine.update_by::<T>(py, |state| {
        let cuda = Cuda::new(ordinal)?;
        // SAFETY: as for the arrays of a matrix.
        let values = unsafe { cuda.foreign::<T>(address, len) };
        state.update_on(&cuda, values)
    })
}
