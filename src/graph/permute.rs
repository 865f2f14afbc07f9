//! The symmetric permutation P A P^T.

use super::Permutation;
use crate::backend::{GraphSteps, Host, Offsets, OffsetsRef};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// P A P^T: rows and columns are permuted alike, and the columns of each row are sorted. Uses several threads, and one
/// pass over the nonzeros.
///
/// # Errors
/// If A is not square, if the permutation does not have one element per row of A, or if memory runs out.
pub fn permute_symmetric<V: Scalar>(a: &Csr<V>, permutation: &Permutation) -> Result<Csr<V>> {
    permute_symmetric_on(&Host, a, permutation)
}

/// P A P^T in the memory of any backend, as [`permute_symmetric`].
///
/// # Errors
/// As [`permute_symmetric`], and if the device fails.
pub fn permute_symmetric_on<V: Scalar, B: GraphSteps>(
    backend: &B,
    a: &Csr<V, B>,
    permutation: &Permutation<B>,
) -> Result<Csr<V, B>> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    Error::check_dimension("length of the permutation", a.rows(), permutation.len())?;
    let parts = a.parts();
    let (new_to_old, old_to_new) = (permutation.new_to_old(), permutation.old_to_new());
    let mut lengths = backend.zeros(a.rows() + 1)?;
    backend.permuted_lengths(parts.offsets, new_to_old, &mut lengths)?;
    // The width of the offsets stays the same.
    let offsets = match parts.offsets {
        OffsetsRef::Lower(_) => {
            let mut offsets = backend.zeros(a.rows() + 1)?;
            backend.exclusive_scan::<u32>(&lengths, &mut offsets)?;
            Offsets::Lower(offsets)
        }
        OffsetsRef::Wide(_) => {
            let mut offsets = backend.zeros(a.rows() + 1)?;
            backend.exclusive_scan::<u64>(&lengths, &mut offsets)?;
            Offsets::Wide(offsets)
        }
    };
    drop(lengths);
    let (mut indices, mut values) = (backend.zeros(a.nonzeros())?, backend.zeros(a.nonzeros())?);
    backend.permute_rows(parts, new_to_old, old_to_new, offsets.as_ref(), &mut indices, &mut values)?;
    Ok(Csr::from_parts_unchecked(a.rows(), a.columns(), offsets, indices, values))
}
