//! Operations on a basis of vectors that are stored one after another, and the small dense steps of its Hessenberg
//! matrix, on the CPU.

use super::sums::{Several, chunk_size, for_chunks, inner, sum_chunks};
use crate::backend::{CgStatus, Hessenberg, Host, Slot};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Real, Scalar};
use num_traits::{Float, Zero};

/// The number of basis vectors that one pass over w processes; their sums fit the registers.
const AT_ONCE: usize = 8;

/// Returns an error if the basis or the coefficients are too short for `count` vectors as long as w.
pub(in crate::backend) fn check(basis: usize, count: usize, n: usize, coefficients: usize) -> Result<()> {
    if basis < count.saturating_mul(n) || coefficients < count {
        return Err(Error::InvalidArgument(format!(
            "a basis of {basis} entries and {coefficients} coefficients for {count} vectors of {n}"
        )));
    }
    Ok(())
}

/// `out[j]` = v_j^H w.
pub(super) fn products<T: Scalar>(basis: &[T], count: usize, w: &[T], out: &mut [T]) -> Result<()> {
    let n = w.len();
    check(basis.len(), count, n, out.len())?;
    for first in (0..count).step_by(AT_ONCE) {
        let vectors = AT_ONCE.min(count - first);
        let size = chunk_size(n);
        let sums = sum_chunks(n, w.par_chunks(size).enumerate(), |(chunk, w)| {
            let mut sums = Several::<T, AT_ONCE>::default();
            for (k, sum) in sums.0[..vectors].iter_mut().enumerate() {
                let at = (first + k) * n + chunk * size;
                *sum = inner(&basis[at..at + w.len()], w);
            }
            sums
        });
        out[first..first + vectors].copy_from_slice(&sums.0[..vectors]);
    }
    Ok(())
}

/// w += alpha V h; returns ||w||^2 if requested.
pub(super) fn update<T: Scalar>(
    alpha: T,
    basis: &[T],
    count: usize,
    h: &[T],
    w: &mut [T],
    norm: bool,
) -> Result<T> {
    let n = w.len();
    check(basis.len(), count, n, h.len())?;
    let size = chunk_size(n);
    let add = |chunk: usize, w: &mut [T]| {
        for (k, &h) in h[..count].iter().enumerate() {
            let (at, factor) = (k * n + chunk * size, alpha * h);
            let v = &basis[at..at + w.len()];
            w.iter_mut().zip(v).for_each(|(w, &v)| *w += factor * v);
        }
    };
    let chunks = w.par_chunks_mut(size).enumerate();
    if !norm {
        for_chunks(n, chunks, |(chunk, w)| add(chunk, w));
        return Ok(T::zero());
    }
    Ok(sum_chunks(n, chunks, |(chunk, w)| {
        add(chunk, w);
        inner(w, w)
    }))
}

/// See [`VectorOps::hessenberg_step`](crate::backend::VectorOps::hessenberg_step).
pub(super) fn hessenberg_step<T: Scalar>(j: usize, h: Hessenberg<'_, T, Host>) -> Result<()> {
    h.check(j)?;
    let Hessenberg { columns, passes, r, rotations, g, state, norm } = h;
    let (status, ended) = (Slot::STATUS.place(), Slot::ENDED.place());
    state[ended] = state[status];
    if state[ended] != T::zero() {
        return Ok(());
    }
    let column = &mut r[j * (columns + 1)..(j + 1) * (columns + 1)];
    let below = Float::sqrt(state[norm.place()].re());
    for i in 0..=j {
        column[i] = passes[0][i] + passes[1][i];
    }
    let zero = T::Real::zero();
    let inverse = if below > zero { below.recip() } else { zero };
    state[norm.place()] = T::from_real(inverse);
    if let Some(fault) = rotate(j, column, below, rotations, g, state) {
        (state[status], state[ended]) = (T::from_real(fault.to_real()), T::from_real(fault.to_real()));
    }
    Ok(())
}

/// If the remainder of a vector is shorter than this fraction of the vector, it consists only of rounding errors.
pub(super) fn negligible<R: Real>() -> R {
    Float::powf(R::epsilon(), R::from_f64(0.7))
}

/// Adds column j of the Hessenberg matrix, with `below` as its subdiagonal entry, to the QR factorisation: applies the
/// earlier rotations and computes a new one. If the column is invalid, returns the reason and changes nothing.
pub(super) fn rotate<T: Scalar>(
    j: usize,
    column: &mut [T],
    below: T::Real,
    rotations: &mut [T],
    g: &mut [T],
    state: &mut [T],
) -> Option<CgStatus> {
    let zero = T::Real::zero();
    let size = column[..=j].iter().fold(below * below, |sum, entry| sum + entry.abs2());
    let size = Float::sqrt(size);
    for i in 0..j {
        let (c, s) = (rotations[2 * i], rotations[2 * i + 1]);
        let (above, under) = (column[i], column[i + 1]);
        column[i] = c * above + s * under;
        column[i + 1] = c * under - s.conj() * above;
    }
    let diagonal = column[j];
    let magnitude = Scalar::abs(diagonal);
    let length = Float::hypot(magnitude, below);
    if !Float::is_finite(size) {
        return Some(CgStatus::NotFinite);
    }
    if length <= size * T::Real::epsilon() {
        return Some(CgStatus::Breakdown);
    }
    let phase = if magnitude > zero { diagonal * T::from_real(magnitude.recip()) } else { T::one() };
    let (c, s) = (T::from_real(magnitude / length), phase * T::from_real(below / length));
    (rotations[2 * j], rotations[2 * j + 1]) = (c, s);
    column[j] = phase * T::from_real(length);
    g[j + 1] = -s.conj() * g[j];
    g[j] = c * g[j];
    let rr = g[j + 1].abs2();
    state[Slot::RR.place()] = T::from_real(rr);
    if rr <= state[Slot::THRESHOLD.place()].re() {
        state[Slot::STATUS.place()] = T::from_real(CgStatus::Converged.to_real());
    }
    None
}

/// y = R^-1 g by back substitution.
pub(super) fn triangular_solve<T: Scalar>(
    count: usize,
    stride: usize,
    r: &[T],
    g: &[T],
    y: &mut [T],
) -> Result<()> {
    if count > 0 && (r.len() < (count - 1) * stride + count || g.len() < count || y.len() < count) {
        return Err(Error::InvalidArgument(format!("a triangular system of {count} unknowns: too short")));
    }
    y[..count].copy_from_slice(&g[..count]);
    for j in (0..count).rev() {
        y[j] /= r[j * stride + j];
        let solved = y[j];
        for i in 0..j {
            y[i] -= r[j * stride + i] * solved;
        }
    }
    Ok(())
}
