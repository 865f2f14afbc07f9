//! Artificial diffusion for levels that do not resolve the convection.
//!
//! With S = (A + A^H) / 2 and N = (A - A^H) / 2, upwind differences have |n_ij| <= -s_ij if the diagonal is positive.
//! Then smoothing damps errors, and interpolation along strong couplings works. Central differences and finite elements
//! have this property up to a cell Peclet number of 2, and their coarser levels up to a smaller one, since couplings of
//! S get weaker from level to level compared to those of N. The levels are therefore those of A + L, which adds the
//! missing part as diffusion along each coupling,
//!
//! ```text
//! l_ij = l_ji = -max(0, |n_ij| + s_ij) if s_ij < 0, else 0,   l_ii = -sum of l_ij
//! ```
//!
//! which is upwinding (Kuzmin and Turek, Flux correction tools for finite elements, Journal of Computational Physics
//! 175, 2002), used in the preconditioner only. Couplings with s_ij > 0, which flat elements and their coarser levels
//! have, are left as they are: with |n_ij| added there, a mesh took 27 iterations instead of 17.

use super::MultigridBackend;
use super::blocks::{MANY, STRONG};
use super::classical::Diagonal;
use super::diagonal::ones;
use super::galerkin::conjugate_transpose;
use crate::backend::{Host, Offsets};
use crate::error::Result;
use crate::matrix::{Csr, add};
use crate::parallel::{both, of_stretches};
use crate::scalar::{Real, Scalar};
use num_traits::Zero;

/// Diffusion below this fraction of the magnitudes is rounding error, as in rows that were scaled.
const ROUNDING: f64 = 1e-9;

/// A row has strong convection if its sum of |n_ij| is at least this times its sum of |s_ij|. If most rows have,
/// incomplete factors smooth better: a mesh with upwinding took 43 iterations with them and 70 with blocks. If few
/// have, blocks are as good, and incomplete factors of flat elements with varying coefficients may amplify errors.
const WINDY: f64 = 0.25;

/// The number of rows of a task.
const ROWS: usize = 1 << 10;

/// A + L, and properties of A.
pub(super) struct Resolved<T: Scalar> {
    pub(super) a: Csr<T>,
    /// True if L is not zero.
    pub(super) differs: bool,
    /// True if many unknowns have couplings of S that need blocks.
    pub(super) wants_blocks: bool,
    /// True if one of these couplings has the sign of the diagonal, as very flat elements cause. Of 200 000 random
    /// points, 10 have one if the convex hull is included and none without it; each causes a slowly converging error on
    /// classical levels.
    pub(super) has_flat: bool,
    /// True if convection is strong in most rows.
    pub(super) is_windy: bool,
}

/// The additions to the entries of some rows, and sums over these rows.
#[derive(Default)]
struct Stretch<T> {
    values: Vec<T>,
    strong: usize,
    has_flat: bool,
    windy: usize,
    added: f64,
    all: f64,
}

/// Computes A + L for a matrix that is not Hermitian.
pub(super) fn resolved<T: Scalar>(mut a: Csr<T>) -> Result<Resolved<T>> {
    let n = a.rows();
    let (mirrored, diagonal) = (a.transpose(&Host)?, Diagonal::of(&a));
    let size = |i: usize| diagonal.values[i].abs().to_f64();
    let stretches = of_stretches(&(0..n), ROWS, |rows| {
        let mut this = Stretch { values: Vec::new(), ..Stretch::default() };
        for i in rows {
            let ((columns, values), (others, back)) = (a.row(i), mirrored.row(i));
            let (first, mut at) = (this.values.len(), 0);
            let (mut sum, mut place) = (T::Real::zero(), None);
            let (mut is_strong, mut is_flat) = (false, false);
            let (mut sum_of_s, mut sum_of_n) = (0.0, 0.0);
            for (&j, &value) in both(columns, values) {
                this.all += value.abs().to_f64();
                this.values.push(value);
                if j as usize == i {
                    place = Some(this.values.len() - 1);
                    continue;
                }
                at += others[at..].partition_point(|&other| other < j);
                let there = others.get(at) == Some(&j);
                let back = if there { back[at].conj() } else { T::zero() };
                let (of_s, of_n) = (value + back, value - back);
                (sum_of_s, sum_of_n) = (sum_of_s + of_s.abs().to_f64(), sum_of_n + of_n.abs().to_f64());
                if !there {
                    continue;
                }
                let half = T::Real::from_f64(0.5);
                let resolves = -half * diagonal.signed(i, of_s);
                let lacks = half * of_n.abs() - resolves;
                let most = STRONG * STRONG * size(i) * size(j as usize);
                let strong = 0.25 * of_s.abs2().to_f64() > most;
                is_strong |= strong;
                is_flat |= strong && resolves < T::Real::zero();
                if resolves > T::Real::zero() && lacks > T::Real::zero() {
                    let place = this.values.len() - 1;
                    this.values[place] -= diagonal.of_sign(i, lacks);
                    sum += lacks;
                }
            }
            match place {
                Some(place) => this.values[place] += diagonal.of_sign(i, sum),
                // There is no diagonal entry to add to.
                None => this.values.splice(first.., values.iter().copied()).for_each(drop),
            }
            this.added += sum.to_f64();
            this.strong += usize::from(is_strong);
            this.has_flat |= is_flat;
            this.windy += usize::from(sum_of_n > WINDY * sum_of_s);
        }
        this
    });
    let sum = |of: fn(&Stretch<T>) -> f64| stretches.iter().map(of).sum::<f64>();
    let differs = sum(|some| some.added) > ROUNDING * sum(|some| some.all);
    let wants_blocks = sum(|some| some.strong as f64) > MANY * n as f64;
    let is_windy = 2.0 * sum(|some| some.windy as f64) > n as f64;
    let has_flat = stretches.iter().any(|some| some.has_flat);
    if differs {
        a.replace_values(stretches.into_iter().flat_map(|some| some.values).collect());
    }
    Ok(Resolved { a, differs, wants_blocks, has_flat, is_windy })
}

/// [`resolved`] for a matrix in the memory of any backend.
pub(super) fn with_diffusion<T: Scalar, B: MultigridBackend>(backend: &B, a: Csr<T, B>) -> Result<Csr<T, B>> {
    let Resolved { a: made, differs, .. } = resolved(a.to_host(backend)?)?;
    if differs { made.into_backend(backend) } else { Ok(a) }
}

/// S, whose strong couplings define the aggregates (those of A may go only one way along the convection), and A^H, on
/// one pattern. The difference of A 1 and S 1 is added to the diagonal of S, so that a prolongation that is smoothed
/// with S still represents constants where a flow crosses the boundary.
pub(super) fn symmetric_part<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
) -> Result<[Csr<T, B>; 2]> {
    let (adjoint, half) = (conjugate_transpose(backend, a)?, T::from_f64(0.5));
    let symmetric = add(backend, half, a, half, &adjoint)?;
    let n = a.rows();
    let (ones, mut sums) = (ones(backend, n)?, backend.buffer::<T>(n)?);
    symmetric.product(backend, T::one(), &ones, T::zero(), &mut sums)?;
    a.product(backend, T::one(), &ones, -T::one(), &mut sums)?;
    let (mut offsets, mut indices) = (backend.buffer::<u32>(n + 1)?, backend.buffer::<u32>(n)?);
    backend.sequence::<u32>(&mut offsets)?;
    backend.sequence::<u32>(&mut indices)?;
    let missing = Csr::from_parts_unchecked(n, n, Offsets::Lower(offsets), indices, sums);
    let symmetric = add(backend, T::one(), &symmetric, T::one(), &missing)?;
    Ok([symmetric, add(backend, T::zero(), a, T::one(), &adjoint)?])
}

#[cfg(test)]
mod tests {
    use super::super::symmetrize::tests::of;
    use super::*;
    use crate::generate;

    /// -u'' + wind u' by central differences on a line.
    fn central(n: usize, wind: f64) -> Csr<f64> {
        let row = |i: usize| {
            let beside = [(i > 0).then(|| i - 1), (i + 1 < n).then_some(i + 1)];
            let coupled = beside.into_iter().zip([-1.0 - wind, wind - 1.0]);
            coupled.filter_map(move |(j, value)| j.map(|j| (i, j, value))).chain([(i, i, 2.0)])
        };
        of(&(0..n).flat_map(row).collect::<Vec<_>>(), n)
    }

    #[test]
    fn what_is_resolved_stays() {
        for a in [central(30, 0.9), generate::convection_diffusion([6, 7, 8], 1e-3).unwrap()] {
            for signed in [a.copied(&Host).unwrap(), a.map(|value| -value)] {
                let same = resolved(signed.copied(&Host).unwrap()).unwrap();
                assert!(
                    !same.differs
                        && !same.wants_blocks
                        && !same.has_flat
                        && same.a.parts().values == signed.parts().values
                );
            }
        }
    }

    #[test]
    fn the_symmetric_part_has_the_row_sums_of_the_matrix() {
        // The wind crosses both ends.
        let a = central(30, 0.7);
        let [symmetric, adjoint] = symmetric_part(&Host, &a).unwrap();
        for i in 0..30 {
            let sum = |a: &Csr<f64>| a.row(i).1.iter().sum::<f64>();
            assert!((sum(&symmetric) - sum(&a)).abs() < 1e-14, "row {i}");
            for (&j, &value) in both(a.row(i).0, a.row(i).1).filter(|entry| *entry.0 as usize != i) {
                let j = j as usize;
                assert_eq!(symmetric.get(i, j), Some(0.5 * (value + a.get(j, i).unwrap())));
                assert_eq!(adjoint.get(j, i), Some(value));
            }
        }
        let crossed = |i: usize| (a.row(i).1.iter().sum::<f64>() - 1.0).abs() > 0.5;
        assert!(crossed(0) && crossed(29));
    }

    #[test]
    fn diffusion_is_upwinding() {
        for sign in [1.0, -1.0] {
            let a = central(40, 3.0).map(|value| sign * value);
            let Resolved { a: made, differs, is_windy, .. } = resolved(a.copied(&Host).unwrap()).unwrap();
            assert!(differs && is_windy);
            let breeze = central(40, 0.2).map(|value| sign * value);
            assert!(!resolved(breeze).unwrap().is_windy);
            for i in 0..40 {
                let sums = [&a, &made].map(|a| a.row(i).1.iter().sum::<f64>());
                assert!((sums[0] - sums[1]).abs() < 1e-14);
                for (&j, &value) in both(made.row(i).0, made.row(i).1) {
                    let (i, j) = (i, j as usize);
                    let added = value - a.get(i, j).unwrap();
                    assert_eq!(added, made.get(j, i).unwrap() - a.get(j, i).unwrap());
                    assert!(i == j || sign * value <= 0.0, "a coupling against the wind");
                }
            }
        }
        // A coupling with the sign of the diagonal is one of a flat element.
        let flat = of(&[(0, 0, 2.0), (0, 1, 1.5), (1, 0, 1.25), (1, 1, 2.0)], 2);
        let same = resolved(flat.copied(&Host).unwrap()).unwrap();
        assert!(
            !same.differs
                && same.wants_blocks
                && same.has_flat
                && same.a.parts().values == flat.parts().values
        );
    }

    #[test]
    fn rows_without_a_diagonal_stay() {
        let made = resolved(of(&[(0, 0, 1.0), (0, 1, 2.0), (1, 0, -4.0)], 2)).unwrap().a;
        assert_eq!([made.get(0, 0), made.get(0, 1), made.get(1, 0)], [Some(3.0), Some(0.0), Some(-4.0)]);
    }
}
