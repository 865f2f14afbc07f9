//! The steps of a Krylov iteration on the CPU.

use super::Host;
use super::recurrence::{Pair, settle, single, step_along, turn};
use super::several::{self, Systems};
use super::sums::{LANES, chunk_size, for_chunks, sum_chunks};
use crate::backend::{CgSlot, Inverse, KrylovSteps, PartDirection, PartResidual};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Scalar};
use num_traits::Zero;
use std::ops::Add;

impl KrylovSteps for Host {
    fn cg_residual<T: Scalar>(
        &self,
        inverse: Inverse<'_, T, Self>,
        pq: &[T],
        q: &[T],
        r: &mut [T],
        rz: &mut [T],
        state: &mut [T::Real],
    ) -> Result<()> {
        Error::check_dimension("length of q", r.len(), q.len())?;
        if pq.len() > 1 {
            return several::residual(Systems::new(inverse, pq.len(), r.len(), state)?, pq, q, r, rz, state);
        }
        let Some(alpha) = step_along(pq[0], state) else { return Ok(()) };
        let Pair(rr, new_rho) = descent(inverse, T::from_real(alpha), q, r)?;
        if !matches!(inverse, Inverse::General(_)) {
            rz[0] = T::from_real(new_rho);
        }
        settle(alpha, rr, state);
        Ok(())
    }

    fn cg_direction<T: Scalar>(
        &self,
        inverse: Inverse<'_, T, Self>,
        r: &[T],
        rz: &[T],
        p: &mut [T],
        x: &mut [T],
        state: &mut [T::Real],
    ) -> Result<()> {
        let z = match inverse {
            Inverse::General(z) => z,
            _ => r,
        };
        Error::check_dimension("length of p", x.len(), p.len())?;
        Error::check_dimension("length of r", x.len(), z.len())?;
        if rz.len() > 1 {
            return several::direction(Systems::new(inverse, rz.len(), x.len(), state)?, z, rz, p, x, state);
        }
        let Some((alpha, beta)) = turn(rz[0], state) else { return Ok(()) };
        match inverse {
            Inverse::Diagonal(d) => return weighted_advance((alpha, beta), z, d, |d| d, p, x),
            Inverse::Rounded(d) => return weighted_advance((alpha, beta), z, d, single, p, x),
            Inverse::Identity | Inverse::General(_) => {}
        }
        let size = chunk_size(x.len());
        let chunks = z.par_chunks(size).zip(p.par_chunks_mut(size)).zip(x.par_chunks_mut(size));
        for_chunks(z.len(), chunks, |((z, p), x)| {
            for ((z, p), x) in z.iter().zip(p).zip(x) {
                *x += alpha * *p;
                *p = *z + beta * *p;
            }
        });
        Ok(())
    }

    fn cg_part_residual<T: Scalar>(&self, step: PartResidual<'_, T, Self>) -> Result<()> {
        let PartResidual { inverse, pq, q, r, sums, state } = step;
        Error::check_dimension("length of q", r.len(), q.len())?;
        let Some(alpha) = step_along(of_all(pq, 1)?[0], state) else { return Ok(()) };
        let Pair(rr, rz) = descent(inverse, T::from_real(alpha), q, r)?;
        sums[0] = T::from_real(rr);
        if !matches!(inverse, Inverse::General(_)) {
            sums[1] = T::from_real(rz);
        }
        state[CgSlot::ALPHA] = alpha;
        Ok(())
    }

    fn cg_part_direction<T: Scalar>(&self, step: PartDirection<'_, T, Self>) -> Result<()> {
        let PartDirection { inverse, r, sums, p, x, state } = step;
        let sums = of_all(sums, 2)?;
        let alpha = std::mem::replace(&mut state[CgSlot::ALPHA], T::Real::zero());
        if alpha == T::Real::zero() {
            return Ok(());
        }
        settle(alpha, sums[0].re(), state);
        self.cg_direction(inverse, r, &sums[1..], p, x, state)
    }
}

/// r -= step q; returns r.r and r.z. With a general inverse, the latter is r.r instead.
fn descent<T: Scalar>(inverse: Inverse<'_, T, Host>, step: T, q: &[T], r: &mut [T]) -> Result<Pair<T::Real>> {
    match inverse {
        Inverse::Diagonal(d) => weighted_descent(step, q, d, |d| d, r),
        Inverse::Rounded(d) => weighted_descent(step, q, d, single, r),
        Inverse::Identity | Inverse::General(_) => {
            let (n, size) = (r.len(), chunk_size(r.len()));
            let chunks = r.par_chunks_mut(size).zip(q.par_chunks(size));
            let rr = sum_chunks(n, chunks, |(r, q)| descend(step, q, r));
            Ok(Pair(rr, rr))
        }
    }
}

/// Checks and returns the sums over all ranks that a step needs.
fn of_all<T>(sums: Option<&[T]>, count: usize) -> Result<&[T]> {
    let sums = sums.unwrap_or_default();
    Error::check_dimension("sums over all parts", count, sums.len())?;
    Ok(sums)
}

/// r -= step q; returns r.r and r.(d .* r). `wide` converts an entry of d to the working precision.
fn weighted_descent<T: Scalar, D: Element>(
    step: T,
    q: &[T],
    d: &[D],
    wide: impl Fn(D) -> T::Real + Sync,
    r: &mut [T],
) -> Result<Pair<T::Real>> {
    let (n, size) = (r.len(), chunk_size(r.len()));
    Error::check_dimension("length of the diagonal", n, d.len())?;
    let chunks = r.par_chunks_mut(size).zip(q.par_chunks(size)).zip(d.par_chunks(size));
    Ok(sum_chunks(n, chunks, |((r, q), d)| descend_weighted(step, q, d, &wide, r)))
}

/// x += alpha p; p = d .* z + beta p.
fn weighted_advance<T: Scalar, D: Element>(
    (alpha, beta): (T, T),
    z: &[T],
    d: &[D],
    wide: impl Fn(D) -> T::Real + Sync,
    p: &mut [T],
    x: &mut [T],
) -> Result<()> {
    let size = chunk_size(x.len());
    Error::check_dimension("length of the diagonal", z.len(), d.len())?;
    let chunks = z.par_chunks(size).zip(p.par_chunks_mut(size)).zip(x.par_chunks_mut(size));
    for_chunks(z.len(), chunks.zip(d.par_chunks(size)), |(((z, p), x), d)| {
        for (((z, p), x), d) in z.iter().zip(p).zip(x).zip(d) {
            *x += alpha * *p;
            *p = T::from_real(wide(*d)) * *z + beta * *p;
        }
    });
    Ok(())
}

/// r -= step q; returns r.r.
fn descend<T: Scalar>(step: T, q: &[T], r: &mut [T]) -> T::Real {
    let mut sums = [T::Real::zero(); LANES];
    let (qs, q_rest) = q.as_chunks::<LANES>();
    let (rs, r_rest) = r.as_chunks_mut::<LANES>();
    for (r, q) in rs.iter_mut().zip(qs) {
        for lane in 0..LANES {
            r[lane] -= step * q[lane];
            sums[lane] += r[lane].abs2();
        }
    }
    for (lane, (r, &q)) in r_rest.iter_mut().zip(q_rest).enumerate() {
        *r -= step * q;
        sums[lane] += r.abs2();
    }
    sums.into_iter().sum()
}

/// [`weighted_descent`] of a chunk.
fn descend_weighted<T: Scalar, D: Element>(
    step: T,
    q: &[T],
    d: &[D],
    wide: impl Fn(D) -> T::Real,
    r: &mut [T],
) -> Pair<T::Real> {
    let mut sums = [Pair(T::Real::zero(), T::Real::zero()); LANES];
    let (qs, q_rest) = q.as_chunks::<LANES>();
    let (ds, d_rest) = d.as_chunks::<LANES>();
    let (rs, r_rest) = r.as_chunks_mut::<LANES>();
    let mut one = |lane: usize, r: &mut T, q: T, d: T::Real| {
        *r -= step * q;
        let rr = r.abs2();
        sums[lane] = sums[lane] + Pair(rr, d * rr);
    };
    for ((r, q), d) in rs.iter_mut().zip(qs).zip(ds) {
        for lane in 0..LANES {
            one(lane, &mut r[lane], q[lane], wide(d[lane]));
        }
    }
    for (lane, ((r, &q), &d)) in r_rest.iter_mut().zip(q_rest).zip(d_rest).enumerate() {
        one(lane, r, q, wide(d));
    }
    sums.into_iter().fold(Pair::default(), Add::add)
}
