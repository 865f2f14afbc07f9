//! To and from nalgebra's dense matrices.

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use nalgebra::DMatrix;

/// Every entry, whether stored or not.
///
/// ```
/// use nalgebra::DMatrix;
/// use residua::Csr;
/// let dense = DMatrix::from_row_slice(2, 3, &[1.0, 0.0, 7.0, 0.0, 0.0, 8.0]);
/// let a = Csr::try_from(&dense)?;
/// assert_eq!(a.nonzeros(), 3);
/// assert_eq!(DMatrix::try_from(&a)?, dense);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`] if `rows * columns` values do not fit into memory.
impl<V: Scalar> TryFrom<&Csr<V>> for DMatrix<V> {
    type Error = Error;

    fn try_from(a: &Csr<V>) -> Result<Self> {
        let (rows, columns) = (a.rows(), a.columns());
        let bytes = (rows as u64).saturating_mul(columns as u64).saturating_mul(size_of::<V>() as u64);
        let out_of_memory = || Error::OutOfMemory { device: "cpu".into(), bytes };
        let places = rows.checked_mul(columns).ok_or_else(out_of_memory)?;
        let mut values = Vec::new();
        values.try_reserve_exact(places).map_err(|_| out_of_memory())?;
        values.resize(places, V::zero());
        a.iter().for_each(|(i, j, v)| values[j * rows + i] = v);
        Ok(DMatrix::from_vec(rows, columns, values))
    }
}

/// Converts the nonzero entries.
///
/// # Errors
/// If there are 2^32 rows or columns.
impl<V: Scalar> TryFrom<&DMatrix<V>> for Csr<V> {
    type Error = Error;

    fn try_from(a: &DMatrix<V>) -> Result<Self> {
        crate::matrix::triplets::check_dimensions(a.nrows(), a.ncols())?;
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in a.row_iter() {
            for (j, &value) in row.iter().enumerate().filter(|&(_, &value)| value != V::zero()) {
                indices.push(j as u32);
                values.push(value);
            }
            offsets.push(values.len());
        }
        Csr::from_parts(a.nrows(), a.ncols(), offsets, indices, values)
    }
}
