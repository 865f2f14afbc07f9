//! Refuses infinities and NaN in a caller's data, and names their position.

use super::SolverBackend;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};
use crate::spread::{Edge, joined_rows};

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
    check_rows(&a.to_host(backend)?, 0)
}

/// [`check_matrix`] for the rows of a rank, which are divided; `first` is the index of the first of them.
///
/// # Errors
/// As [`check_matrix`].
pub(super) fn check_part<T: Scalar, B: SolverBackend>(
    backend: &B,
    (own, edge): (&Csr<T, B>, &Edge<T>),
    first: usize,
) -> Result<()> {
    let beside = edge.a.parts().values.iter().all(|value| value.is_finite());
    if beside && seems_finite(backend, own.parts().values)? {
        return Ok(());
    }
    check_rows(&joined_rows(&own.to_host(backend)?, edge, first)?, first)
}

/// Refuses rows with an infinite or NaN entry; `first` is the index of the first of them.
fn check_rows<T: Scalar>(a: &Csr<T>, first: usize) -> Result<()> {
    for row in 0..a.rows() {
        let (columns, values) = a.row(row);
        if let Some(k) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::InvalidMatrix(format!(
                "the entry in row {}, column {} (from 0) is {}: infinities and NaN can't be solved with",
                first + row,
                columns[k],
                values[k]
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
