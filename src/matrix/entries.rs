//! Reading and building CSR matrices on the host, entry by entry.

use super::Csr;
use crate::backend::{Host, OffsetsRef, with_offsets};
use crate::error::Result;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::ops::{Mul, Range};

impl<V: Scalar> Csr<V, Host> {
    /// The identity of order `n`.
    ///
    /// # Errors
    /// If there are 2^32 rows or more.
    pub fn identity(n: usize) -> Result<Self> {
        Self::from_diagonal(vec![V::one(); n])
    }

    /// The square matrix with these values on its diagonal; zeros are stored too.
    ///
    /// # Errors
    /// If there are 2^32 rows or more.
    pub fn from_diagonal(values: Vec<V>) -> Result<Self> {
        let n = values.len();
        super::triplets::check_dimensions(n, n)?;
        Self::from_parts(n, n, (0..=n).collect(), (0..n).map(|j| j as u32).collect(), values)
    }

    /// The range of the entries of row `i`.
    fn range(&self, i: usize) -> Range<usize> {
        with_offsets!(self.parts().offsets, offsets => offsets[i].to_usize()..offsets[i + 1].to_usize())
    }

    /// The end of row `i`.
    #[cfg(feature = "sprs")]
    pub(super) fn row_end(&self, i: usize) -> usize {
        self.range(i).end
    }

    /// Columns and values of row `i`.
    ///
    /// # Panics
    /// If there is no such row, as indexing does.
    pub fn row(&self, i: usize) -> (&[u32], &[V]) {
        let range = self.range(i);
        (&self.parts().indices[range.clone()], &self.parts().values[range])
    }

    /// The stored entry at (i, j).
    ///
    /// # Panics
    /// If there is no row `i`, as indexing does.
    pub fn get(&self, i: usize, j: usize) -> Option<V> {
        let (columns, values) = self.row(i);
        u32::try_from(j).ok().and_then(|j| columns.binary_search(&j).ok()).map(|k| values[k])
    }

    /// Every stored entry as (row, column, value), in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, V)> + '_ {
        (0..self.rows()).flat_map(|i| {
            let (columns, values) = self.row(i);
            both(columns, values).map(move |(&j, &v)| (i, j as usize, v))
        })
    }

    /// The diagonal, with zero for entries that are not stored; as long as the shorter side.
    pub fn diagonal(&self) -> Vec<V> {
        let mut diagonal = vec![V::default(); self.rows().min(self.columns())];
        let each = diagonal.par_iter_mut().enumerate().with_min_len(1 << 10);
        each.for_each(|(i, entry)| *entry = self.get(i, i).unwrap_or_default());
        diagonal
    }

    /// The same pattern with values `f(value)`.
    pub fn map<W: Scalar>(&self, f: impl Fn(V) -> W + Sync + Send) -> Csr<W, Host> {
        let from = self.parts().values;
        let mut values = vec![W::default(); from.len()];
        values.par_iter_mut().zip(from).with_min_len(1 << 12).for_each(|(value, &v)| *value = f(v));
        self.with_values(values)
    }

    /// Returns whether the matrix is square and (j, i) is stored wherever (i, j) is.
    pub fn is_structurally_symmetric(&self) -> bool {
        self.mirrors(|_, mirror| mirror.is_some())
    }

    /// Returns whether A^T = A, exactly: no tolerance. An entry that is not stored counts as zero.
    pub fn is_symmetric(&self) -> bool {
        self.mirrors(|value, mirror| value == mirror.unwrap_or_default())
    }

    /// Returns whether A^H = A, exactly: no tolerance. An entry that is not stored counts as zero.
    pub fn is_hermitian(&self) -> bool {
        self.mirrors(|value, mirror| value == mirror.unwrap_or_default().conj())
    }

    /// Returns whether the matrix is square and `agree(a_ij, a_ji)` for every stored a_ij. One binary search for each
    /// entry, in several threads.
    fn mirrors(&self, agree: impl Fn(V, Option<V>) -> bool + Sync + Send) -> bool {
        self.rows() == self.columns()
            && (0..self.rows()).into_par_iter().with_min_len(1 << 10).all(|i| {
                let (columns, values) = self.row(i);
                both(columns, values).all(|(&j, &v)| agree(v, self.get(j as usize, i)))
            })
    }
}

impl<V: Scalar> Clone for Csr<V, Host> {
    fn clone(&self) -> Self {
        self.with_values(self.parts().values.to_vec())
    }
}

/// Equal shapes, patterns and values.
impl<V: Scalar> PartialEq for Csr<V, Host> {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.parts(), other.parts());
        let offsets = match (a.offsets, b.offsets) {
            (OffsetsRef::Lower(a), OffsetsRef::Lower(b)) => a == b,
            (OffsetsRef::Wide(a), OffsetsRef::Wide(b)) => a == b,
            _ => false,
        };
        (a.rows, a.columns) == (b.rows, b.columns)
            && offsets
            && a.indices == b.indices
            && a.values == b.values
    }
}

/// A x as a new vector; [`Csr::product`] writes into an existing one.
///
/// ```
/// let a = residua::generate::poisson2d(3, 1)?;
/// let x = vec![1.0, 2.0, 3.0];
/// assert_eq!(&a * &x, [2.0, 4.0, 10.0]);
/// # Ok::<(), residua::Error>(())
/// ```
impl<V: Scalar, X: AsRef<[V]> + ?Sized> Mul<&X> for &Csr<V, Host> {
    type Output = Vec<V>;

    /// # Panics
    /// If the length of x is not the number of columns.
    fn mul(self, x: &X) -> Vec<V> {
        let x = x.as_ref();
        assert_eq!(x.len(), self.columns(), "length of x, and columns of A");
        let mut y = vec![V::zero(); self.rows()];
        self.product(&Host, V::one(), x, V::zero(), &mut y).expect("vectors of the right length");
        y
    }
}
