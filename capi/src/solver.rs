//! Solvers: made from arrays or a function, given new values, asked to solve.

use crate::arrays::{from_coo, from_csr, indices, length, slice};
use crate::engine::{Callback, Engine, Given, MatrixFree, Stored};
use crate::handle::{Object, destroy, find, give, idle};
use crate::options::{residua_options, settings};
use crate::report::residua_report;
use crate::status::{Answer, Fault, guard};
use num_complex::Complex;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

pub use crate::engine::residua_apply;

/// Values are `float`.
pub const RESIDUA_F32: i32 = 0;
/// Values are `double`.
pub const RESIDUA_F64: i32 = 1;
/// Values are pairs of `float`: real and imaginary part.
pub const RESIDUA_C32: i32 = 2;
/// Values are pairs of `double`: real and imaginary part.
pub const RESIDUA_C64: i32 = 3;

/// A solver of one matrix for many right-hand sides.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct residua_solver {
    _opaque: [u8; 0],
}

/// Runs the code with `$T` as the type of values that a number names.
macro_rules! by_type {
    ($number:expr, $T:ident => $body:expr) => {
        match $number {
            RESIDUA_F32 => {
                type $T = f32;
                $body
            }
            RESIDUA_F64 => {
                type $T = f64;
                $body
            }
            RESIDUA_C32 => {
                type $T = Complex<f32>;
                $body
            }
            RESIDUA_C64 => {
                type $T = Complex<f64>;
                $body
            }
            other => {
                Err(Fault::argument(format!("no type of values {other}: choose RESIDUA_F32 to RESIDUA_C64")))
            }
        }
    };
}

/// Rows and columns, and entries, of a matrix whose indices count from `base`.
fn sizes((rows, columns): (i64, i64), entries: i64, base: i32) -> Answer<((usize, usize), usize)> {
    if !matches!(base, 0 | 1) {
        return Err(Fault::argument(format!("base {base}: 0 or 1 is possible")));
    }
    Ok(((length("rows", rows)?, length("columns", columns)?), length("entries", entries)?))
}

/// Where a solver's handle goes.
fn put(solver: *mut *mut residua_solver, make: impl FnOnce() -> Answer<Box<dyn Engine>>) -> i32 {
    guard(|| {
        if solver.is_null() {
            return Err(Fault::null("solver"));
        }
        let made = give(Object::Solver(Arc::new(Mutex::new(make()?))));
        // SAFETY: not null, and the entries' callers promise room for a handle.
        unsafe { *solver = made };
        Ok(())
    })
}

/// Makes a solver of a matrix in CSR: `rows + 1` offsets of `offset_bits` (32 or 64), `entries` columns of
/// `column_bits` and values of `type`. Offsets and columns count from `base`, 0 or 1. Rows need not be sorted; what
/// stands twice adds up. The arrays are copied. `options` may be null.
///
/// # Safety
/// The arrays are as long as is told; `solver` is null or can be written to.
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
    put(solver, || {
        let settings = settings(options)?;
        let (shape, entries) = sizes((rows, columns), entries, base)?;
        by_type!(r#type, T => {
            // SAFETY: the caller's promise.
            let (offsets, places, values) = unsafe {(
                indices("offsets", offsets, shape.0.saturating_add(1), offset_bits, base, entries as u64 + 1)?,
                indices("columns", column_indices, entries, column_bits, base, shape.1 as u64)?,
                slice::<T>("values", values, entries)?,
            )};
            Ok(Box::new(Stored::new(from_csr(shape, offsets, places, values)?, &settings, entries)?))
        })
    })
}

/// Makes a solver of a matrix in coordinates: rows and columns of `index_bits` (32 or 64), counted from `base`, in any
/// order; what stands twice adds up. The rest is as in residua_solver_from_csr.
///
/// # Safety
/// As residua_solver_from_csr.
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
    put(solver, || {
        let settings = settings(options)?;
        let (shape, entries) = sizes((rows, columns), entries, base)?;
        by_type!(r#type, T => {
            // SAFETY: the caller's promise.
            let (down, across, values) = unsafe {(
                indices("rows", row_indices, entries, index_bits, base, shape.0 as u64)?,
                indices("columns", column_indices, entries, index_bits, base, shape.1 as u64)?,
                slice::<T>("values", values, entries)?,
            )};
            Ok(Box::new(Stored::new(from_coo(shape, down, across, values)?, &settings, entries)?))
        })
    })
}

/// Makes a matrix-free solver of `n` unknowns, on the CPU, without a preconditioner: `apply` writes y = A x. Methods
/// are cg, minres, gmres (which auto is) and bicgstab. `user` is handed to `apply`, in whichever thread solves.
///
/// # Safety
/// `apply` writes n elements and does not unwind; `user` is what it needs for as long as the solver lives; `solver` is
/// null or can be written to.
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
        by_type!(r#type, T => Ok(Box::new(MatrixFree::<T>::new(n, callback, &settings)?)))
    })
}

fn engine(solver: *const residua_solver) -> Answer<Arc<Mutex<Box<dyn Engine>>>> {
    find("solver", solver, |object| match object {
        Object::Solver(engine) => Some(engine),
        _ => None,
    })
}

/// Replaces the values of the matrix, in the order and number in which it was given; the pattern stays.
///
/// # Safety
/// `values` is null or of `entries` elements of the solver's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_update(
    solver: *mut residua_solver,
    values: *const c_void,
    entries: i64,
) -> i32 {
    guard(|| {
        let (engine, entries) = (engine(solver)?, length("entries", entries)?);
        // SAFETY: the caller's promise.
        unsafe { idle(&engine)?.update(values, entries) }
    })
}

/// Solves A x = b from the x that is given, which takes the solution. Lengths are in elements. Not converging is no
/// error: `report` tells, and is to be destroyed.
///
/// # Safety
/// `b` and `x` are as long as is told, of the solver's type; `report` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_solve(
    solver: *mut residua_solver,
    b: *const c_void,
    b_length: i64,
    x: *mut c_void,
    x_length: i64,
    report: *mut *mut residua_report,
) -> i32 {
    // SAFETY: the caller's promise; one report is as an array of one.
    unsafe { residua_solver_solve_many(solver, 1, b, b_length, x, x_length, report) }
}

/// As residua_solver_solve, for `count` right-hand sides one behind the other; `reports` takes as many handles.
///
/// # Safety
/// As residua_solver_solve.
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
    guard(|| {
        let (engine, count) = (engine(solver)?, length("count", count)?);
        if reports.is_null() {
            return Err(Fault::null("report"));
        }
        let b = Given { data: b.cast_mut(), len: length("the length of b", b_length)? };
        let x = Given { data: x, len: length("the length of x", x_length)? };
        // SAFETY: the caller's promise.
        let filed = unsafe { idle(&engine)?.solve(count, b, x)? };
        for (k, filed) in filed.into_iter().enumerate() {
            // SAFETY: there are at most `count` reports, for which the caller promises room.
            unsafe { *reports.add(k) = give(Object::Report(Arc::new(filed))) };
        }
        Ok(())
    })
}

/// Writes the residual norms of the last solve, at the start and after each iteration, as many as `capacity` numbers
/// hold; `length` takes how many there are. `right_hand_side` counts from 0.
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
        let engine = idle(&engine)?;
        let history = engine.history(number);
        for (k, &norm) in history.iter().take(capacity).enumerate() {
            // SAFETY: k < capacity, for which the caller promises room.
            unsafe { *norms.add(k) = norm };
        }
        if !length.is_null() {
            // SAFETY: not null, and the caller promises room.
            unsafe { *length = history.len() as i64 };
        }
        Ok(())
    })
}

/// Destroys a solver. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn residua_solver_destroy(solver: *mut residua_solver) -> i32 {
    guard(|| destroy("solver", solver, |object| matches!(object, Object::Solver(_))))
}
