//! Permutes rows and columns: P A Q.

use crate::backend::host::by_column;
use crate::backend::{Backend, Host, NARROW_LIMIT, Offsets};
use crate::error::{Error, Result};
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// Returns the matrix whose row i is row `rows.new_to_old()[i]` of A, and whose column j is column
/// `columns.new_to_old()[j]` of A. If rows and columns have the same order, use
/// [`permute_symmetric`](crate::graph::permute_symmetric).
///
/// # Errors
/// If the length of a permutation is not the number of rows or columns, or if memory runs out.
pub fn permute<T: Scalar>(a: &Csr<T>, rows: &Permutation, columns: &Permutation) -> Result<Csr<T>> {
    Error::check_dimension("length of the permutation of rows", a.rows(), rows.len())?;
    Error::check_dimension("length of the permutation of columns", a.columns(), columns.len())?;
    let parts = a.parts();
    let starts = parts.offsets.download(&Host)?;
    let mut offsets = Host.zeros::<u64>(a.rows() + 1)?;
    let mut indices = Host.zeros::<u32>(a.nonzeros())?;
    let mut values = Host.zeros::<T>(a.nonzeros())?;
    let mut line: Vec<(u32, T)> = Vec::new();
    let mut at = 0;
    for (new, &old) in rows.new_to_old().iter().enumerate() {
        let places = starts[old as usize]..starts[old as usize + 1];
        line.clear();
        line.extend(places.map(|k| (columns.old_to_new()[parts.indices[k] as usize], parts.values[k])));
        by_column(&mut line);
        for &(column, value) in &line {
            (indices[at], values[at]) = (column, value);
            at += 1;
        }
        offsets[new + 1] = at as u64;
    }
    let offsets = if at <= NARROW_LIMIT {
        Offsets::Lower(offsets.into_iter().map(|offset| offset as u32).collect())
    } else {
        Offsets::Wide(offsets)
    };
    Ok(Csr::from_parts_unchecked(a.rows(), a.columns(), offsets, indices, values))
}
