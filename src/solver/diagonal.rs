//! Diagonal scaling for matrices that need not be positive definite.

use super::SolverBackend;
use super::names::Method;
use crate::backend::host::inverse_weight;
use crate::backend::{Backend, Host, Inverse, RowFacts, VectorOps};
use crate::error::Result;
use crate::matrix::Csr;
use crate::precondition::Preconditioner;
use crate::scalar::{Promote, Real, Scalar};
use std::ops::Range;

/// z = D r with a real diagonal D, which depends on the method:
///
/// | method | D |
/// |---|---|
/// | MINRES | 1 / abs(a_ii): positive, as it must be |
/// | GMRES, BiCGSTAB | 1 / a_ii, with its sign |
/// | LSMR | 1 / norm of column i (G. W. Stewart, Collinearity and least squares regression, Statist. Sci. 2 (1987)) |
///
/// If that entry is missing, or negligible compared to the rest of its row, the norm of the row replaces it, or 1 for a
/// row of zeros.
#[derive(Debug)]
pub(super) struct Diagonal<T: Scalar, B: Backend> {
    d: B::Vec<T::Real>,
}

impl<T: Scalar, B: SolverBackend> Diagonal<T, B> {
    /// The diagonal of a matrix; that for LSMR is computed on the host.
    pub(super) fn new<V: Scalar + Promote<T>>(backend: &B, a: &Csr<V, B>, method: Method) -> Result<Self> {
        if method == Method::Lsmr {
            let a = a.to_host(backend)?;
            return Self::of_part(backend, &a, method, 0..a.columns());
        }
        let mut d = backend.buffer(a.rows())?;
        backend.row_inverses::<V, T>(a.parts(), method == Method::Minres, &mut d)?;
        Ok(Self { d })
    }

    /// The part of the diagonal for some rows of a whole matrix.
    pub(super) fn of_part<V: Scalar + Promote<T>>(
        backend: &B,
        a: &Csr<V>,
        method: Method,
        part: Range<usize>,
    ) -> Result<Self> {
        let d = if method == Method::Lsmr {
            column_norms(a)[part].iter().copied().map(inverse_weight).collect()
        } else {
            let mut all = Host.buffer(a.rows())?;
            Host.row_inverses::<V, T>(a.parts(), method == Method::Minres, &mut all)?;
            all[part].to_vec()
        };
        Ok(Self { d: backend.upload(d)? })
    }

    /// The diagonal of the reciprocals of these weights.
    pub(super) fn of_weights(backend: &B, weights: &[f64]) -> Result<Self> {
        let d = weights.iter().copied().map(inverse_weight).collect();
        Ok(Self { d: backend.upload(d)? })
    }
}

/// Norms of the columns.
pub(super) fn column_norms<V: Scalar>(a: &Csr<V>) -> Vec<f64> {
    let parts = a.parts();
    let mut largest = vec![0.0_f64; a.columns()];
    let entries = || parts.indices.iter().zip(parts.values).map(|(&j, v)| (j as usize, v.abs().to_f64()));
    entries().for_each(|(j, value)| largest[j] = largest[j].max(value));
    let mut squares = vec![0.0; a.columns()];
    entries().filter(|&(j, _)| largest[j] > 0.0).for_each(|(j, v)| squares[j] += (v / largest[j]).powi(2));
    largest.into_iter().zip(squares).map(|(largest, square): (f64, f64)| largest * square.sqrt()).collect()
}

impl<T: Scalar, B: VectorOps> Preconditioner<T, B> for Diagonal<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(B::len(&*self.d))
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        backend.scale(&self.d, r, z)
    }

    fn fused(&self) -> Option<Inverse<'_, T, B>> {
        Some(Inverse::Diagonal(&*self.d))
    }

    fn bytes(&self) -> usize {
        B::len(&*self.d) * (size_of::<T::Real>() + 2 * size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_gets_its_diagonal() {
        // | -4  3  . |
        // |  .  .  2 |
        // |  .  4  . |
        let a = Csr::from_parts(3, 3, vec![0, 2, 3, 4], vec![0, 1, 2, 1], vec![-4.0, 3.0, 2.0, 4.0]).unwrap();
        let d = |method| Diagonal::<f64, Host>::new(&Host, &a, method).unwrap().d;
        assert_eq!(d(Method::Minres), [0.25, 0.5, 0.25]);
        assert_eq!(d(Method::Gmres), [-0.25, 0.5, 0.25]);
        assert_eq!(d(Method::Lsmr), [0.25, 0.2, 0.5]);
        let empty = Csr::<f64>::from_parts(1, 2, vec![0, 0], vec![], vec![]).unwrap();
        assert_eq!(Diagonal::<f64, Host>::new(&Host, &empty, Method::Lsmr).unwrap().d, [1.0, 1.0]);
    }
}
