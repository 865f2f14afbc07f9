//! Row factors that make a matrix Hermitian.
//!
//! If A = D S with a Hermitian S and a positive diagonal D, as for finite volumes whose rows were divided by the cell
//! volume, the ratio a_ij / conj(a_ji) of every coupling is d_i / d_j. D therefore follows from a walk through the
//! graph, up to a factor for each component, and the couplings that close cycles show whether A has this form.

use super::MultigridBackend;
use super::diagonal::{ones, times};
use super::strength::packed;
use crate::backend::{Backend, Host};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::scalar::Scalar;
use crate::work::look_at;
use num_traits::{Float, One, Zero};

/// Row factors may span at most this factor. Constant convection is symmetric up to factors that grow exponentially
/// along it; if they are larger than this, symmetry is of no use.
const SPAN: f64 = 1e10;

/// Rows that are examined before all others, to reject most matrices quickly.
const FIRST_ROWS: usize = 1000;

/// The largest relative difference between the factors found along two paths around a cycle: rounding errors of
/// thousands of divisions.
const ROUNDING: f64 = 1e-9;

/// Row factors L, and L A.
pub(super) type Symmetrized<T, B> = (<B as Backend>::Vec<T>, Csr<T, B>);

/// Positive row factors that make a non-Hermitian matrix Hermitian, and the resulting matrix; `None` if there are no
/// such factors, or if there are and `is_wanted` returns false.
pub(super) fn symmetrized<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    is_wanted: &dyn Fn() -> Result<bool>,
) -> Result<Option<Symmetrized<T, B>>> {
    let Some(factors) = factors_of_rows(backend, a)? else { return Ok(None) };
    if !is_wanted()? {
        return Ok(None);
    }
    let factors = backend.upload(factors.into_iter().map(T::from_real).collect())?;
    let s = times(backend, a, &factors, &*ones(backend, a.rows())?)?;
    Ok(Some((factors, s)))
}

/// Positive row factors with which A becomes Hermitian, if there are any. If there are none, the first rows nearly
/// always show it.
fn factors_of_rows<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
) -> Result<Option<Vec<T::Real>>> {
    let first = leading(&a.window(backend, 0..a.rows().min(FIRST_ROWS))?);
    if symmetrizing(&first)?.is_none() {
        return Ok(None);
    }
    symmetrizing(&a.to_host(backend)?)
}

/// The leading square block.
fn leading<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let n = a.rows();
    let (mut offsets, mut indices, mut values) = (vec![0_u64], Vec::new(), Vec::new());
    for i in 0..n {
        let (columns, entries) = a.row(i);
        let within = columns.partition_point(|&j| (j as usize) < n);
        indices.extend_from_slice(&columns[..within]);
        values.extend_from_slice(&entries[..within]);
        offsets.push(indices.len() as u64);
    }
    Csr::from_parts_unchecked(n, n, packed(offsets), indices, values)
}

/// The row factors of a square matrix, by a walk through each component of its graph.
fn symmetrizing<T: Scalar>(a: &Csr<T>) -> Result<Option<Vec<T::Real>>> {
    let n = a.rows();
    // If the pattern is symmetric, A^T has its entries in the same places as A.
    let mirrored = a.transpose(&Host)?;
    if mirrored.parts().indices != a.parts().indices {
        return Ok(None);
    }
    let rounding = T::Real::from_f64(ROUNDING).max(T::Real::epsilon() * T::Real::from_f64(1e3));
    let mut factors = vec![T::Real::zero(); n];
    let mut queue = Vec::new();
    for first in 0..n {
        if factors[first] > T::Real::zero() {
            continue;
        }
        factors[first] = T::Real::one();
        queue.push(first as u32);
        let (mut smallest, mut largest) = (T::Real::one(), T::Real::one());
        let mut next = 0;
        while next < queue.len() {
            look_at(next);
            let i = queue[next] as usize;
            next += 1;
            let ((columns, values), (others, mirrored)) = (a.row(i), mirrored.row(i));
            if columns != others {
                return Ok(None);
            }
            for ((&j, &there), &back) in both(columns, values).zip(mirrored) {
                // l_i a_ij must be conj(l_j a_ji); on the diagonal, it must be real.
                let (wanted, back) = (T::from_real(factors[i]) * there, back.conj());
                if there == T::zero() && back == T::zero() {
                    continue;
                }
                let factor = &mut factors[j as usize];
                if *factor == T::Real::zero() {
                    *factor = (wanted / back).re();
                    if !Float::is_finite(*factor) || *factor <= T::Real::zero() {
                        return Ok(None);
                    }
                    (smallest, largest) = (smallest.min(*factor), largest.max(*factor));
                    if largest > smallest * T::Real::from_f64(SPAN) {
                        return Ok(None);
                    }
                    queue.push(j);
                }
                let difference = (wanted - T::from_real(*factor) * back).abs();
                if difference.is_nan() || difference > rounding * wanted.abs() {
                    return Ok(None);
                }
            }
        }
        queue.clear();
    }
    Ok(Some(factors))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::generate;
    use crate::matrix::Triplets;
    use num_complex::Complex;

    pub(in crate::multigrid) fn of(entries: &[(usize, usize, f64)], n: usize) -> Csr<f64> {
        let mut triplets = Triplets::new(n, n).unwrap();
        entries.iter().for_each(|&(i, j, value)| triplets.push(i, j, value).unwrap());
        crate::assemble::to_csr(&crate::Host, triplets).unwrap()
    }

    #[test]
    fn factors_of_rows_are_found_on_every_component() {
        // Two components, the rows of the first scaled by 1, 4 and 2, those of the second by 1 and 3.
        let entries =
            [(0, 0, 2.0), (0, 2, -1.0), (2, 0, -2.0), (2, 2, 6.0), (2, 1, -2.0), (1, 2, -4.0), (1, 1, 8.0)];
        let others = [(3, 3, 1.0), (3, 4, 0.5), (4, 3, 1.5), (4, 4, 3.0)];
        let a = of(&[&entries[..], &others[..]].concat(), 5);
        assert_eq!(symmetrizing(&a).unwrap().unwrap(), [1.0, 0.25, 0.5, 1.0, 1.0 / 3.0]);
        assert!(symmetrized(&crate::Host, &a, &|| Ok(true)).unwrap().is_some());
    }

    #[test]
    fn what_no_factors_make_symmetric_is_told() {
        let chain = |back: f64| vec![(0, 0, 1.0), (1, 1, 1.0), (0, 1, -1.0), (1, 0, back)];
        assert!(symmetrizing(&of(&chain(-0.5), 2)).unwrap().is_some());
        assert!(symmetrizing(&of(&chain(0.5), 2)).unwrap().is_none(), "another sign");
        assert!(symmetrizing(&of(&chain(0.0), 2)).unwrap().is_none(), "a coupling one way");
        assert!(symmetrizing(&of(&chain(-1e-20), 2)).unwrap().is_none(), "factors beyond use");
        // Around a cycle the factors must agree with the first one again.
        let circle = |last: f64| {
            let pairs = [(0, 1, 2.0), (1, 2, 3.0), (2, 0, last)];
            let both = pairs.into_iter().flat_map(|(i, j, ratio)| [(i, j, -ratio), (j, i, -1.0)]);
            of(&both.collect::<Vec<_>>(), 3)
        };
        assert!(
            symmetrizing(&circle(1.0 / 6.0)).unwrap().is_some()
                && symmetrizing(&circle(0.2)).unwrap().is_none()
        );
        // A diagonal that is not real is not that of a Hermitian matrix, whatever the factor.
        let complex = of(&chain(-0.5), 2).map(|value| Complex::new(value, 0.0));
        assert!(symmetrizing(&complex).unwrap().is_some());
        assert!(symmetrizing(&complex.map(|value| value * Complex::new(0.0, 1.0))).unwrap().is_none());
        let wind = generate::convection_diffusion([12, 12, 12], 1e-2).unwrap();
        assert!(symmetrized(&crate::Host, &wind, &|| Ok(true)).unwrap().is_none());
    }
}
