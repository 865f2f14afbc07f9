//! Refuses infinities and NaN in a caller's data, and names their position.

use super::SolverBackend;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};

/// Returns whether the sum of squares is finite, which proves that all entries are; it may overflow even if they are.
fn seems_finite<T: Scalar, B: SolverBackend>(backend: &B, values: &B::Slice<T>) -> Result<bool> {
    let mut square = backend.zeros::<T::Real>(1)?;
    backend.norm2_squared(values, &mut square)?;
    Ok(backend.value(&square)?.to_f64().is_finite())
}

/// Refuses a matrix with an infinite or NaN entry; the message counts rows and columns from 0.
///
/// # Errors
/// If there is such an entry, and if the device fails.
pub(super) fn check_matrix<T: Scalar, B: SolverBackend>(backend: &B, a: &Csr<T, B>) -> Result<()> {
    if seems_finite(backend, a.parts().values)? {
        return Ok(());
    }
    let a = a.to_host(backend)?;
    check_rows(&a, 0..a.rows())
}

/// [`check_matrix`] for some rows of a matrix on the host.
///
/// # Errors
/// If there is such an entry.
pub(super) fn check_rows<T: Scalar>(a: &Csr<T>, rows: std::ops::Range<usize>) -> Result<()> {
    for row in rows {
        let (columns, values) = a.row(row);
        if let Some(k) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::InvalidMatrix(format!(
                "the entry in row {row}, column {} (from 0) is {}: infinities and NaN can't be solved with",
                columns[k], values[k]
            )));
        }
    }
    Ok(())
}

/// Refuses a vector with an infinite or NaN entry; the message begins with `what`.
///
/// # Errors
/// As [`check_matrix`].
pub(super) fn check_vector<T: Scalar, B: SolverBackend>(
    backend: &B,
    v: &B::Slice<T>,
    what: &str,
) -> Result<()> {
    if seems_finite(backend, v)? {
        return Ok(());
    }
    let v = backend.download(v)?;
    match v.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(row) => Err(Error::InvalidArgument(format!(
            "{what} has {} in row {row} (from 0): infinities and NaN can't be solved for",
            v[row]
        ))),
    }
}
