//! Options whose values are arrays: null spaces, near null spaces and the points of a mesh.

use crate::arrays::{length, slice};
use crate::options::{change, residua_options};
use crate::solver::{RESIDUA_COMPLEX64, RESIDUA_COMPLEX128, RESIDUA_FLOAT32, RESIDUA_FLOAT64, by_type};
use crate::status::{Answer, Fault, guard};
use num_complex::Complex;
use residua_core::Scalar;
use std::ffi::c_void;

/// Both sizes, and the number of elements, which is their product.
fn elements(what: &str, first: i64, second: i64) -> Answer<(usize, usize, usize)> {
    let (first, second) = (length(what, first)?, length(what, second)?);
    let all = first.checked_mul(second);
    Ok((
        first,
        second,
        all.ok_or_else(|| Fault::argument(format!("{what}: so many numbers do not fit into memory")))?,
    ))
}

/// # Safety
/// As for [`residua_options_set_null_space`].
unsafe fn null_space<T: Scalar>(
    options: *const residua_options,
    n: i64,
    count: i64,
    vectors: *const c_void,
) -> Answer {
    let (n, _, all) = elements("the null space", n, count)?;
    // SAFETY: guaranteed by the caller.
    let vectors = unsafe { slice::<T>("vectors", vectors, all)? };
    let vectors: Vec<Vec<T>> = vectors.chunks(n.max(1)).map(<[T]>::to_vec).collect();
    change(options, "null_space", |builder| builder.null_space(&vectors))
}

/// Sets the null space of A, spanned by `count` vectors of `n` elements of `type`, one after another, which are copied.
/// The part of b outside A's range is then removed, and x is the shortest of all solutions. Vectors that A does not map
/// to zero are refused when the solver is made. For constants no array is needed: option null_space.
///
/// # Safety
/// `vectors` is null or has `n` times `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_options_set_null_space(
    options: *mut residua_options,
    r#type: i32,
    n: i64,
    count: i64,
    vectors: *const c_void,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    guard(|| by_type!(r#type, T => unsafe { null_space::<T>(options, n, count, vectors) }))
}

/// Sets the near null space for multigrid: `count` vectors of `n` elements, one after another, which are copied. A maps
/// each of them almost to zero, except near boundaries.
///
/// # Safety
/// `vectors` is null or has `n` times `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_options_set_near_null_space(
    options: *mut residua_options,
    n: i64,
    count: i64,
    vectors: *const f64,
) -> i32 {
    guard(|| {
        let (n, count, all) = elements("the near null space", n, count)?;
        // SAFETY: guaranteed by the caller.
        let vectors = unsafe { slice::<f64>("vectors", vectors.cast(), all)? };
        // The library stores the entries of a row together.
        let rows = (0..n).flat_map(|i| (0..count).map(move |j| vectors[j * n + i]));
        let rows: Vec<f64> = rows.collect();
        change(options, "near_null_space", |builder| builder.near_null_space(count, rows))
    })
}

/// Sets the points of the mesh that the unknowns belong to, for multigrid: `dimensions` (1, 2 or 3) coordinates of
/// each, one point after another, which are copied. If there are as many unknowns per point as dimensions, coarse
/// levels represent the rigid body modes exactly.
///
/// # Safety
/// `coordinates` is null or has `points` times `dimensions` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_options_set_coordinates(
    options: *mut residua_options,
    dimensions: i32,
    points: i64,
    coordinates: *const f64,
) -> i32 {
    guard(|| {
        if !(1..=3).contains(&dimensions) {
            return Err(Fault::argument(format!(
                "the coordinates have {dimensions} dimensions, but only 1, 2 or 3 are possible"
            )));
        }
        let (_, dimensions, all) = elements("the coordinates", points, i64::from(dimensions))?;
        // SAFETY: guaranteed by the caller.
        let coordinates = unsafe { slice::<f64>("coordinates", coordinates.cast(), all)? };
        change(options, "coordinates", |builder| builder.coordinates(dimensions, coordinates.to_vec()))
    })
}
