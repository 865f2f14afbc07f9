//! What all factorisations share: the rows of A as columns, limits, and panics and errors as reasons.

use super::faer_wrapper::Columns;
use super::options::DirectOptions;
use super::report::Reason;
use crate::backend::OffsetsRef;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use crate::work::is_stop;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// With fewer numbers than this, another thread saves no time.
pub(super) const FEW: usize = 1 << 13;

/// Runs a function of a library and turns panics into errors.
pub(super) fn caught<R>(work: impl FnOnce() -> Result<R, Reason>) -> Result<R, Reason> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        if is_stop(&*payload) {
            return Err(Reason::Stopped);
        }
        Err(Reason::Refused("the factorisation stopped with a panic".to_string()))
    })
}

/// The rows of A, as columns of A^T.
pub(super) fn columns_of_transpose<T: Scalar>(a: &Csr<T>) -> Result<Columns<'_>, Reason> {
    let parts = a.parts();
    let OffsetsRef::Lower(starts) = parts.offsets else {
        return Err(Reason::Refused("more than 2^32 entries".to_string()));
    };
    Ok(Columns { rows: a.columns(), columns: a.rows(), starts, indices: parts.indices })
}

pub(super) fn times<T: Scalar>(value: T, factor: f64) -> T {
    value * T::from_f64(factor)
}

pub(super) fn as_reason(error: crate::Error) -> Reason {
    Reason::Refused(error.to_string())
}

/// Checks the memory and the multiplications against the limits.
pub(super) fn within(bytes: u64, flops: f64, options: &DirectOptions) -> Result<(), Reason> {
    if bytes > options.memory_limit {
        return Err(Reason::TooLarge { bytes, limit: options.memory_limit });
    }
    if flops > options.flop_limit {
        return Err(Reason::TooLong { flops, limit: options.flop_limit });
    }
    Ok(())
}
