//! Solving thousands of small systems at once.

use crate::arrays::length;
use crate::solver::by_type;
use crate::solver::{RESIDUA_COMPLEX64, RESIDUA_COMPLEX128, RESIDUA_FLOAT32, RESIDUA_FLOAT64};
use crate::status::{Answer, Fault, guard, text};
use num_complex::Complex;
use residua_core::Host;
use residua_core::batch::{Batch, Method};
use residua_core::solver::Solvable;
use std::ffi::{c_char, c_void};
use std::str::FromStr;

/// The arguments of a call, except its arrays of numbers.
struct Asked {
    systems: usize,
    size: usize,
    vectors: usize,
    tolerance: f64,
    method: Method,
}

/// The product of sizes given by the caller, or an error if it overflows.
fn product(sizes: &[usize]) -> Answer<usize> {
    let all = sizes.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
    all.filter(|&all| all <= isize::MAX as usize / 16)
        .ok_or_else(|| Fault::argument("the sizes are too large: such arrays do not fit into memory"))
}

/// The caller's array as a slice.
///
/// # Safety
/// `address` is null or of `len` elements.
unsafe fn array<'a, T>(what: &str, address: *const c_void, len: usize) -> Answer<&'a [T]> {
    match (len, address.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(Fault::null(what)),
        // SAFETY: guaranteed by the caller.
        _ => Ok(unsafe { std::slice::from_raw_parts(address.cast(), len) }),
    }
}

/// The caller's array as a slice that can be written to.
///
/// # Safety
/// As for [`array`], and nothing else accesses the array meanwhile.
unsafe fn array_mut<'a, T>(what: &str, address: *mut c_void, len: usize) -> Answer<&'a mut [T]> {
    match (len, address.is_null()) {
        (0, _) => Ok(&mut []),
        (_, true) => Err(Fault::null(what)),
        // SAFETY: guaranteed by the caller.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(address.cast(), len) }),
    }
}

/// # Safety
/// As for [`residua_solve_batch`].
#[allow(clippy::too_many_arguments, reason = "those of the entry")]
unsafe fn solve<T: Solvable>(
    asked: &Asked,
    offsets: *const u64,
    columns: *const u32,
    values: *const c_void,
    b: *const c_void,
    x: *mut c_void,
    solved: *mut u8,
    residuals: *mut f64,
) -> Answer {
    let Asked { systems, size, vectors, tolerance, method } = *asked;
    let batch = if offsets.is_null() {
        Batch::<T>::dense(Host, systems, size)?
    } else {
        // SAFETY: guaranteed by the caller.
        let offsets: &[u64] = unsafe { array("offsets", offsets.cast(), product(&[size])? + 1)? };
        let entries = usize::try_from(offsets[size]).map_err(|_| {
            Fault::argument("the last offset is too large: so many entries do not fit into memory")
        })?;
        // SAFETY: guaranteed by the caller.
        let columns: &[u32] = unsafe { array("columns", columns.cast(), product(&[entries])?)? };
        Batch::one_pattern(Host, systems, offsets.to_vec(), columns.to_vec())?
    };
    let batch = batch.method(method);
    let mut batch = if tolerance > 0.0 { batch.tolerance(tolerance) } else { batch };
    let entries = product(&[batch.entries()])?;
    let numbers = product(&[systems, size, vectors])?;
    // SAFETY: guaranteed by the caller.
    let (values, b, x) = unsafe {
        (
            array::<T>("values", values, entries)?,
            array::<T>("b", b, numbers)?,
            array_mut::<T>("x", x, numbers)?,
        )
    };
    let verdicts = batch.solve_into(values, b, x)?;
    if !solved.is_null() {
        // SAFETY: guaranteed by the caller.
        let solved: &mut [u8] = unsafe { array_mut("solved", solved.cast(), systems)? };
        for (solved, outcome) in solved.iter_mut().zip(&verdicts.outcomes) {
            *solved = u8::from(outcome.is_solved()) + u8::from(outcome.is_converged());
        }
    }
    if !residuals.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { array_mut("residuals", residuals.cast(), systems)? }.copy_from_slice(&verdicts.residuals);
    }
    Ok(())
}

/// Solves many small systems of `size` unknowns at once, with values of `type`. If `offsets` is null, the matrices are
/// dense, row by row; otherwise they have one pattern in CSR (`size + 1` offsets from 0, columns that ascend in each
/// row) and `values` are their entries. `b` and `x` have `vectors` numbers per row, row by row, one system after
/// another. `tolerance` 0 stands for the default. `method` is "lu" (elimination), "bicgstab" (iteration, for patterns of
/// up to 4096 unknowns), "cg" (the same if A is Hermitian and positive definite), or "auto" or null (elimination
/// whenever there is one); systems that a method leaves uncertain are solved in the next way.
///
/// A system that fails does not affect the others, and is no error. `solved`, unless null, gets a number per system: 2
/// if x meets the tolerance, 1 if x is an answer without meeting it (as accurate as the precision allows, or a
/// least-squares solution), 0 if it is none. `residuals`, unless null, gets ||b - A x|| / ||b||, computed from x.
///
/// # Safety
/// The arrays have the lengths that follow from the other arguments, x overlaps no other array, and `method` is null or
/// ends with a zero byte.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "systems in C")]
pub unsafe extern "C" fn residua_solve_batch(
    r#type: i32,
    systems: i64,
    size: i64,
    offsets: *const u64,
    columns: *const u32,
    values: *const c_void,
    vectors: i64,
    b: *const c_void,
    x: *mut c_void,
    tolerance: f64,
    method: *const c_char,
    solved: *mut u8,
    residuals: *mut f64,
) -> i32 {
    guard(|| {
        let (systems, size) = (length("systems", systems)?, length("size", size)?);
        let method = match method.is_null() {
            true => Method::Auto,
            // SAFETY: guaranteed by the caller.
            false => Method::from_str(unsafe { text("method", method)? })?,
        };
        let asked = Asked { systems, size, vectors: length("vectors", vectors)?, tolerance, method };
        // SAFETY: guaranteed by the caller.
        by_type!(r#type, T => unsafe {
            solve::<T>(&asked, offsets, columns, values, b, x, solved, residuals)
        })
    })
}
