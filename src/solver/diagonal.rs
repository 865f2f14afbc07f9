//! Diagonal scaling for matrices that need not be positive definite.

use super::SolverBackend;
use super::names::Method;
use crate::backend::{Backend, VectorOps, with_offsets};
use crate::error::Result;
use crate::matrix::Csr;
use crate::precondition::Preconditioner;
use crate::scalar::{Offset, Real, Scalar, Widen};
use num_traits::Float;
use std::ops::Range;

/// z = D r with a real diagonal D, which depends on what a method takes:
///
/// | method | D |
/// |---|---|
/// | MINRES | 1 / abs(a_ii): positive, as it must be |
/// | GMRES, BiCGSTAB | 1 / a_ii, its sign and all |
/// | LSMR | 1 / norm of column i (G. W. Stewart, Collinearity and least squares regression, Statist. Sci. 2 (1987)) |
///
/// Where that entry is missing, or so small beside the rest of its row that it says nothing, the norm of the row stands
/// for it, and 1 for a row of zeros.
#[derive(Debug)]
pub(super) struct Diagonal<T: Scalar, B: Backend> {
    d: B::Vec<T::Real>,
}

/// A diagonal entry below this share of the norm of its row is none.
const SMALL: f64 = 1e-3;

impl<T: Scalar, B: SolverBackend> Diagonal<T, B> {
    /// From a matrix, which is copied to the host for it.
    pub(super) fn new<V: Scalar + Widen<T>>(backend: &B, a: &Csr<V, B>, method: Method) -> Result<Self> {
        let a = a.to_host(backend)?;
        let rows = 0..a.columns();
        Self::of_part(backend, &a, method, rows)
    }

    /// The entries of some rows from a matrix that is there in whole.
    pub(super) fn of_part<V: Scalar + Widen<T>>(
        backend: &B,
        a: &Csr<V>,
        method: Method,
        part: Range<usize>,
    ) -> Result<Self> {
        let weights = if method == Method::Lsmr { columns(a) } else { rows(a, method) };
        let reciprocal = |weight: f64| {
            let d = T::Real::from_f64(1.0 / weight);
            if weight != 0.0 && Float::is_finite(d) && d.to_f64() != 0.0 { d } else { T::Real::from_f64(1.0) }
        };
        let d: Vec<T::Real> = weights[part].iter().copied().map(reciprocal).collect();
        Ok(Self { d: backend.upload(d)? })
    }
}

/// Scales of the rows: the diagonal, or the norm.
fn rows<V: Scalar>(a: &Csr<V>, method: Method) -> Vec<f64> {
    let parts = a.parts();
    with_offsets!(parts.offsets, offsets => (0..a.rows())
        .map(|i| {
            let row = offsets[i].to_usize()..offsets[i + 1].to_usize();
            let diagonal = parts.indices[row.clone()].binary_search(&(i as u32));
            let diagonal = diagonal.map_or(0.0, |place| parts.values[row.start + place].re().to_f64());
            let norm = norm(parts.values[row].iter().map(|value| value.abs().to_f64()));
            match diagonal {
                small if small.abs() <= SMALL * norm => norm,
                entry if method == Method::Minres => entry.abs(),
                entry => entry,
            }
        })
        .collect())
}

/// Norms of the columns.
fn columns<V: Scalar>(a: &Csr<V>) -> Vec<f64> {
    let parts = a.parts();
    let mut largest = vec![0.0_f64; a.columns()];
    let entries = || parts.indices.iter().zip(parts.values).map(|(&j, v)| (j as usize, v.abs().to_f64()));
    entries().for_each(|(j, value)| largest[j] = largest[j].max(value));
    let mut squares = vec![0.0; a.columns()];
    entries().filter(|&(j, _)| largest[j] > 0.0).for_each(|(j, v)| squares[j] += (v / largest[j]).powi(2));
    largest.into_iter().zip(squares).map(|(largest, square): (f64, f64)| largest * square.sqrt()).collect()
}

/// The 2-norm, whatever the range of the numbers.
fn norm(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    largest * values.map(|value| (value / largest).powi(2)).sum::<f64>().sqrt()
}

impl<T: Scalar, B: VectorOps> Preconditioner<T, B> for Diagonal<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(B::len(&*self.d))
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        backend.scale(&self.d, r, z)
    }

    fn bytes(&self) -> usize {
        B::len(&*self.d) * (size_of::<T::Real>() + 2 * size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;

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
