//! Enlarges a matrix by repeating it.

use super::rows::{narrow, unknowns};
use crate::backend::{Backend, Host};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;

/// `a` repeated `copies` times along the diagonal. Rows have the same lengths as in `a`, but the matrix is so large
/// that bandwidth, not latency, determines the time of a product.
///
/// ```text
/// 4 -1  .  .
/// -1 4  .  .     two copies of  4 -1
/// .  .  4 -1                   -1  4
/// .  . -1  4
/// ```
///
/// # Errors
/// If there are more than 2^32 rows or columns, or memory runs out.
pub fn along_the_diagonal<V: Scalar>(a: &Csr<V>, copies: usize) -> Result<Csr<V>> {
    let (rows, columns) = (unknowns(&[a.rows(), copies])?, unknowns(&[a.columns(), copies])?);
    let Some(nonzeros) = a.nonzeros().checked_mul(copies) else {
        return Err(Error::InvalidArgument(format!(
            "{copies} copies of {} nonzeros are too many",
            a.nonzeros()
        )));
    };
    let parts = a.parts();
    let ends = parts.offsets.download(&Host)?;
    let mut offsets = Host.zeros::<u64>(rows + 1)?;
    let mut indices = Host.zeros::<u32>(nonzeros)?;
    let mut values = Host.zeros::<V>(nonzeros)?;
    // Chunks must have a length of at least one, even if there is nothing to copy.
    let copied = |length: usize| length.max(1);
    offsets[1..].par_chunks_mut(copied(a.rows())).enumerate().for_each(|(copy, offsets)| {
        for (offset, end) in offsets.iter_mut().zip(&ends[1..]) {
            *offset = (copy * a.nonzeros() + end) as u64;
        }
    });
    indices.par_chunks_mut(copied(a.nonzeros())).enumerate().for_each(|(copy, indices)| {
        for (index, of_one) in indices.iter_mut().zip(parts.indices) {
            *index = of_one + (copy * a.columns()) as u32;
        }
    });
    values.par_chunks_mut(copied(a.nonzeros())).for_each(|values| values.copy_from_slice(parts.values));
    Ok(Csr::from_parts_unchecked(rows, columns, narrow(offsets)?, indices, values))
}
