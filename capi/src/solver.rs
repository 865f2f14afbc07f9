//! Solvers: creation from arrays or a function, new values, solves.

use crate::arrays::{Place, Raw, gpu_of, length};
use crate::callback::Callback;
#[cfg(unix)]
use crate::distributed::Distributed;
use crate::engine::{Engine, Given, Stored};
use crate::function::Iterative;
use crate::handle::{destroy, give};
use crate::held::{Held, engine};
use crate::observe::log;
use crate::options::{residua_options, settings};
use crate::report::residua_report;
use crate::status::{Answer, Fault, guard};
use num_complex::Complex;
use residua_core::assemble::Layout;
use std::ffi::c_void;
use std::sync::Arc;

pub use crate::callback::residua_apply;
pub use crate::held::residua_solver;

/// Values are `float`.
pub const RESIDUA_FLOAT32: i32 = 0;
/// Values are `double`.
pub const RESIDUA_FLOAT64: i32 = 1;
/// Values are pairs of `float`: real and imaginary part.
pub const RESIDUA_COMPLEX64: i32 = 2;
/// Values are pairs of `double`: real and imaginary part.
pub const RESIDUA_COMPLEX128: i32 = 3;

/// Runs the code with `$T` as the type of values with this number.
macro_rules! by_type {
    ($number:expr, $T:ident => $body:expr) => {
        match $number {
            RESIDUA_FLOAT32 => {
                type $T = f32;
                $body
            }
            RESIDUA_FLOAT64 => {
                type $T = f64;
                $body
            }
            RESIDUA_COMPLEX64 => {
                type $T = Complex<f32>;
                $body
            }
            RESIDUA_COMPLEX128 => {
                type $T = Complex<f64>;
                $body
            }
            other => Err(Fault::argument(format!(
                "the type of values {other} is invalid: choose RESIDUA_FLOAT32 to RESIDUA_COMPLEX128"
            ))),
        }
    };
}
pub(crate) use by_type;

/// Writes the handle of a new solver.
fn put(solver: *mut *mut residua_solver, make: impl FnOnce() -> Answer<Box<dyn Engine>>) -> i32 {
    guard(|| {
        if solver.is_null() {
            return Err(Fault::null("solver"));
        }
        let made = give(Arc::new(Held::new(make()?)));
        // SAFETY: the pointer is not null, and the caller guarantees room for a handle.
        unsafe { *solver = made };
        Ok(())
    })
}

/// A solver for the caller's arrays in this place.
///
/// # Safety
/// As for [`Stored::new`].
unsafe fn stored(
    r#type: i32,
    raw: &Raw,
    options: *const residua_options,
    place: impl FnOnce() -> Answer<Place>,
) -> Answer<Box<dyn Engine>> {
    let settings = settings(options)?;
    let place = place()?;
    if settings.preconditioner.is_some() && matches!(place, Place::Host) {
        // SAFETY: guaranteed by the caller.
        return by_type!(r#type, T => Ok(Box::new(unsafe { Iterative::<T>::of_matrix(raw, &settings)? })));
    }
    // SAFETY: guaranteed by the caller.
    by_type!(r#type, T => Ok(Box::new(unsafe { Stored::<T>::new(raw, place, &settings)? })))
}

/// The GPU on which these arrays are, with the caller's stream that writes them.
fn on_gpu_of(raw: &Raw, stream: *mut c_void) -> Answer<Place> {
    let what = if raw.layout == Layout::Triplets { "rows" } else { "offsets" };
    Ok(Place::Gpu(gpu_of(what, raw.first.0)?, stream.addr() as u64))
}

/// Makes a solver for a matrix in CSR: `rows + 1` offsets of `offset_bits` (32 or 64), `entries` columns of
/// `column_bits` and values of `type`. Offsets and columns count from `base`, 0 or 1. Rows need not be sorted;
/// duplicate entries are added up. The arrays are copied. `options` may be null.
///
/// # Safety
/// The arrays have the lengths that are given; `solver` is null or can be written to.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a matrix in C")]
pub unsafe extern "C" fn residua_solver_from_csr(
    solver: *mut *mut residua_solver,
    options: *const residua_options,
    r#type: i32,
    rows: i64,
    columns: i64,
    entries: i64,
    base: i32,
    offset_bits: i32,
    offsets: *const c_void,
    column_bits: i32,
    column_indices: *const c_void,
    values: *const c_void,
) -> i32 {
    let (first, second) = ((offsets, offset_bits), (column_indices, column_bits));
    let raw = Raw { layout: Layout::Rows, shape: (rows, columns), entries, base, first, second, values };
    // SAFETY: guaranteed by the caller.
    put(solver, || unsafe { stored(r#type, &raw, options, || Ok(Place::Host)) })
}

/// Makes a solver for a matrix in coordinates: rows and columns of `index_bits` (32 or 64), counted from `base`, in any
/// order; duplicate entries are added up. The rest is as for residua_solver_from_csr.
///
/// # Safety
/// As for residua_solver_from_csr.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a matrix in C")]
pub unsafe extern "C" fn residua_solver_from_coo(
    solver: *mut *mut residua_solver,
    options: *const residua_options,
    r#type: i32,
    rows: i64,
    columns: i64,
    entries: i64,
    base: i32,
    index_bits: i32,
    row_indices: *const c_void,
    column_indices: *const c_void,
    values: *const c_void,
) -> i32 {
    let (first, second) = ((row_indices, index_bits), (column_indices, index_bits));
    let raw = Raw { layout: Layout::Triplets, shape: (rows, columns), entries, base, first, second, values };
    // SAFETY: guaranteed by the caller.
    put(solver, || unsafe { stored(r#type, &raw, options, || Ok(Place::Host)) })
}

/// Like residua_solver_from_csr, with arrays on a GPU, on which the solver then computes. `stream` is the
/// `cudaStream_t` or `CUstream` whose work writes them (null: the default stream); the arrays have been read when this
/// returns.
///
/// # Safety
/// As for residua_solver_from_csr; `stream` belongs to that GPU's primary context.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a matrix in C")]
pub unsafe extern "C" fn residua_solver_from_csr_device(
    solver: *mut *mut residua_solver,
    options: *const residua_options,
    r#type: i32,
    rows: i64,
    columns: i64,
    entries: i64,
    base: i32,
    offset_bits: i32,
    offsets: *const c_void,
    column_bits: i32,
    column_indices: *const c_void,
    values: *const c_void,
    stream: *mut c_void,
) -> i32 {
    let (first, second) = ((offsets, offset_bits), (column_indices, column_bits));
    let raw = Raw { layout: Layout::Rows, shape: (rows, columns), entries, base, first, second, values };
    // SAFETY: guaranteed by the caller.
    put(solver, || unsafe { stored(r#type, &raw, options, || on_gpu_of(&raw, stream)) })
}

/// Like residua_solver_from_coo, with arrays on a GPU, see residua_solver_from_csr_device.
///
/// # Safety
/// As for residua_solver_from_csr_device.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a matrix in C")]
pub unsafe extern "C" fn residua_solver_from_coo_device(
    solver: *mut *mut residua_solver,
    options: *const residua_options,
    r#type: i32,
    rows: i64,
    columns: i64,
    entries: i64,
    base: i32,
    index_bits: i32,
    row_indices: *const c_void,
    column_indices: *const c_void,
    values: *const c_void,
    stream: *mut c_void,
) -> i32 {
    let (first, second) = ((row_indices, index_bits), (column_indices, index_bits));
    let raw = Raw { layout: Layout::Triplets, shape: (rows, columns), entries, base, first, second, values };
    // SAFETY: guaranteed by the caller.
    put(solver, || unsafe { stored(r#type, &raw, options, || on_gpu_of(&raw, stream)) })
}

/// Makes a solver whose rows are distributed over the processes of an MPI communicator, given by its Fortran number
/// (`MPI_Comm_c2f`). Each process gives rows in CSR that follow those of the previous process: `rows` is the number of
/// its own rows, `columns` that of the whole square matrix, in which columns are numbered. `b` and `x` are then the
/// entries of its rows. All processes must make this call and every solve, with the same options, on the CPU. The MPI
/// library is the one that the program has loaded.
///
/// # Safety
/// As for residua_solver_from_csr; `comm` is the number of a communicator.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a matrix in C")]
pub unsafe extern "C" fn residua_solver_create_distributed(
    solver: *mut *mut residua_solver,
    options: *const residua_options,
    comm: i32,
    r#type: i32,
    rows: i64,
    columns: i64,
    entries: i64,
    base: i32,
    offset_bits: i32,
    offsets: *const c_void,
    column_bits: i32,
    column_indices: *const c_void,
    values: *const c_void,
) -> i32 {
    let (first, second) = ((offsets, offset_bits), (column_indices, column_bits));
    let raw = Raw { layout: Layout::Rows, shape: (rows, columns), entries, base, first, second, values };
    put(solver, || {
        #[cfg(unix)]
        {
            let settings = settings(options)?;
            // SAFETY: guaranteed by the caller.
            by_type!(r#type, T => Ok(Box::new(unsafe { Distributed::<T>::new(&raw, comm, &settings)? })))
        }
        #[cfg(not(unix))]
        {
            let _ = (options, comm, r#type, raw);
            Err(Fault::new(crate::RESIDUA_UNSUPPORTED, "distributed solvers are available only on Unix"))
        }
    })
}

/// Makes a matrix-free solver with `n` unknowns, on the CPU, without a preconditioner or with yours
/// (residua_options_set_preconditioner): `apply` writes y = A x. Methods are cg, minres, gmres (which auto selects) and
/// bicgstab. `user` is passed to `apply`, in the thread that solves.
///
/// # Safety
/// `apply` writes n elements and does not unwind; `user` is valid for it as long as the solver exists; `solver` is null
/// or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_from_function(
    solver: *mut *mut residua_solver,
    options: *const residua_options,
    r#type: i32,
    n: i64,
    apply: residua_apply,
    user: *mut c_void,
) -> i32 {
    put(solver, || {
        let settings = settings(options)?;
        let n = length("n", n)?;
        let callback = Callback { apply: apply.ok_or_else(|| Fault::null("apply"))?, user };
        by_type!(r#type, T => Ok(Box::new(Iterative::<T>::of_function(n, callback, &settings)?)))
    })
}

/// Makes a solver for A^T with the settings of `solver`, on the same device; it chooses and sets up anew, and keeps
/// factors of its own. New values for it are those of A^T, in rows with ascending columns. For complex values, A^H x = b
/// is A^T y = conj(b) with x = conj(y).
///
/// # Safety
/// `transposed` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_transposed(
    solver: *const residua_solver,
    transposed: *mut *mut residua_solver,
) -> i32 {
    put(transposed, || engine(solver)?.idle()?.engine.transposed())
}

/// Replaces the values of the matrix, in the order and number in which they were given; the pattern stays.
///
/// # Safety
/// `values` is null or has `entries` elements of the solver's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_update(
    solver: *mut residua_solver,
    values: *const c_void,
    entries: i64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    guard(|| unsafe { update(solver, values, entries, None) })
}

/// Replaces the values by those of a matrix in CSR whose entries are in the same places as the solver's; rows need not
/// be sorted, and duplicate entries are added up. With another pattern it returns RESIDUA_INVALID_MATRIX, the message
/// names the first place that only one of the two has, and the solver is not changed. Arguments are as for
/// residua_solver_from_csr.
///
/// # Safety
/// As for residua_solver_from_csr.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a matrix in C")]
pub unsafe extern "C" fn residua_solver_update_csr(
    solver: *mut residua_solver,
    rows: i64,
    columns: i64,
    entries: i64,
    base: i32,
    offset_bits: i32,
    offsets: *const c_void,
    column_bits: i32,
    column_indices: *const c_void,
    values: *const c_void,
) -> i32 {
    let (first, second) = ((offsets, offset_bits), (column_indices, column_bits));
    let raw = Raw { layout: Layout::Rows, shape: (rows, columns), entries, base, first, second, values };
    // SAFETY: guaranteed by the caller.
    guard(|| unsafe {
        let engine = engine(solver)?;
        engine.idle()?.engine.update_matrix(&raw)
    })
}

/// Like residua_solver_update_csr, with a matrix in coordinates. Arguments are as for residua_solver_from_coo.
///
/// # Safety
/// As for residua_solver_from_coo.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a matrix in C")]
pub unsafe extern "C" fn residua_solver_update_coo(
    solver: *mut residua_solver,
    rows: i64,
    columns: i64,
    entries: i64,
    base: i32,
    index_bits: i32,
    row_indices: *const c_void,
    column_indices: *const c_void,
    values: *const c_void,
) -> i32 {
    let (first, second) = ((row_indices, index_bits), (column_indices, index_bits));
    let raw = Raw { layout: Layout::Triplets, shape: (rows, columns), entries, base, first, second, values };
    // SAFETY: guaranteed by the caller.
    guard(|| unsafe {
        let engine = engine(solver)?;
        engine.idle()?.engine.update_matrix(&raw)
    })
}

/// Like residua_solver_update, with values on the GPU that the solver computes on. The GPU waits for the work that
/// `stream` has so far, and later work of `stream` waits until the values have been read.
///
/// # Safety
/// As for residua_solver_update and residua_solver_from_csr_device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_update_device(
    solver: *mut residua_solver,
    values: *const c_void,
    entries: i64,
    stream: *mut c_void,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    guard(|| unsafe { update(solver, values, entries, Some(stream.addr() as u64)) })
}

/// # Safety
/// As for [`Engine::update`].
unsafe fn update(
    solver: *const residua_solver,
    values: *const c_void,
    entries: i64,
    stream: Option<u64>,
) -> Answer {
    let (engine, entries) = (engine(solver)?, length("entries", entries)?);
    // SAFETY: guaranteed by the caller.
    unsafe { engine.idle()?.engine.update(values, entries, stream) }
}

/// Solves A x = b, starting from the given x, which is replaced by the solution. Lengths are in elements. It is no
/// error if the solve does not converge: `report` says so, and must be destroyed.
///
/// # Safety
/// `b` and `x` have the lengths that are given, in elements of the solver's type; `report` is null or can be written
/// to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_solve(
    solver: *mut residua_solver,
    b: *const c_void,
    b_length: i64,
    x: *mut c_void,
    x_length: i64,
    report: *mut *mut residua_report,
) -> i32 {
    // SAFETY: guaranteed by the caller; one report is an array of length one.
    guard(|| unsafe { solve(solver, 1, (b, b_length), (x, x_length), None, report) })
}

/// Like residua_solver_solve, for `count` right-hand sides one after another; `reports` gets as many handles.
///
/// # Safety
/// As for residua_solver_solve.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_solve_many(
    solver: *mut residua_solver,
    count: i64,
    b: *const c_void,
    b_length: i64,
    x: *mut c_void,
    x_length: i64,
    reports: *mut *mut residua_report,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    guard(|| unsafe { solve(solver, count, (b, b_length), (x, x_length), None, reports) })
}

/// Like residua_solver_solve_many, with vectors on the GPU that the solver computes on. The GPU waits for the work that
/// `stream` has so far, which writes them, and later work of `stream` waits for x: the caller need not synchronise
/// anything.
///
/// # Safety
/// As for residua_solver_solve and residua_solver_from_csr_device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_solve_device(
    solver: *mut residua_solver,
    count: i64,
    b: *const c_void,
    b_length: i64,
    x: *mut c_void,
    x_length: i64,
    stream: *mut c_void,
    reports: *mut *mut residua_report,
) -> i32 {
    let stream = Some(stream.addr() as u64);
    // SAFETY: guaranteed by the caller.
    guard(|| unsafe { solve(solver, count, (b, b_length), (x, x_length), stream, reports) })
}

/// # Safety
/// As for [`Engine::solve`], and `reports` is null or has room for `count` handles.
unsafe fn solve(
    solver: *const residua_solver,
    count: i64,
    (b, b_length): (*const c_void, i64),
    (x, x_length): (*mut c_void, i64),
    stream: Option<u64>,
    reports: *mut *mut residua_report,
) -> Answer {
    let (engine, count) = (engine(solver)?, length("count", count)?);
    if reports.is_null() {
        return Err(Fault::null("report"));
    }
    let b = Given { data: b.cast_mut(), len: length("the length of b", b_length)? };
    let x = Given { data: x, len: length("the length of x", x_length)? };
    let filed = {
        let mut inside = engine.idle()?;
        let observer = inside.observer;
        // SAFETY: guaranteed by the caller.
        unsafe { inside.engine.solve(count, b, x, (stream, observer))? }
    };
    for (k, filed) in filed.into_iter().enumerate() {
        log(filed.lines());
        // SAFETY: there are at most `count` reports, and the caller guarantees room for them.
        unsafe { *reports.add(k) = give(Arc::new(filed)) };
    }
    Ok(())
}

/// Writes the residual norms of the last solve, at the start and after each iteration, at most `capacity` numbers;
/// `length` gets the number that there are. `right_hand_side` counts from 0.
///
/// # Safety
/// `norms` has room for `capacity` numbers; `length` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_history(
    solver: *const residua_solver,
    right_hand_side: i64,
    norms: *mut f64,
    capacity: i64,
    length: *mut i64,
) -> i32 {
    guard(|| {
        let engine = engine(solver)?;
        let number = crate::arrays::length("right_hand_side", right_hand_side)?;
        let capacity = crate::arrays::length("capacity", capacity)?;
        if norms.is_null() && capacity > 0 {
            return Err(Fault::null("norms"));
        }
        let inside = engine.idle()?;
        let history = inside.engine.history(number);
        for (k, &norm) in history.iter().take(capacity).enumerate() {
            // SAFETY: k < capacity, and the caller guarantees room for that.
            unsafe { *norms.add(k) = norm };
        }
        if !length.is_null() {
            // SAFETY: the pointer is not null, and the caller guarantees room.
            unsafe { *length = history.len() as i64 };
        }
        Ok(())
    })
}

/// Destroys a solver. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn residua_solver_destroy(solver: *mut residua_solver) -> i32 {
    guard(|| destroy::<_, Held>("solver", solver))
}
