//! Interleaved vectors on the CPU: entry i of vector j of k is at i * k + j. There is a sum for each vector, and chunks
//! consist of whole rows.

use super::Host;
use super::recurrence::{Pair, settle, single, step_along, turn};
use super::sums::{chunk_size, for_chunks, sum_chunks};
use crate::backend::{CgSlot, Inverse};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::One;
use std::ops::Add;

/// The maximum number of vectors.
const MOST: usize = 32;

/// One sum for each vector.
#[derive(Clone, Copy)]
struct Columns<S>([S; MOST]);

impl<S: Copy + Default> Default for Columns<S> {
    fn default() -> Self {
        Self([S::default(); MOST])
    }
}

impl<S: Copy + Add<Output = S>> Add for Columns<S> {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(sum, other)| *sum = *sum + other);
        self
    }
}

/// Returns the number of elements in a task: whole rows, independent of the number of threads, so that sums do not
/// depend on it.
fn whole_rows(n: usize, k: usize) -> usize {
    chunk_size(n).next_multiple_of(k)
}

fn check(k: usize, n: usize) -> Result<()> {
    if !(1..=MOST).contains(&k) {
        return Err(Error::InvalidArgument(format!(
            "{k} vectors were given at once, but only 1 to {MOST} are possible"
        )));
    }
    Error::check_dimension("entries beyond the last whole row", 0, n % k)
}

/// `out[j]` = x_j.y_j, conjugating x_j.
pub(super) fn dots<T: Scalar>(x: &[T], y: &[T], out: &mut [T]) -> Result<()> {
    let (n, k) = (x.len(), out.len());
    check(k, n)?;
    let size = whole_rows(n, k);
    let all = sum_chunks(n, x.par_chunks(size).zip(y.par_chunks(size)), |(x, y)| {
        let mut sums = Columns::default();
        for (x, y) in x.chunks_exact(k).zip(y.chunks_exact(k)) {
            for j in 0..k {
                sums.0[j] += x[j].conj() * y[j];
            }
        }
        sums
    });
    out.copy_from_slice(&all.0[..k]);
    Ok(())
}

/// Converts from vectors stored one after another to interleaved ones.
pub(super) fn interleave<T: Scalar>(k: usize, x: &[T], y: &mut [T]) -> Result<()> {
    check(k, x.len())?;
    Error::check_dimension("length of the second vector", x.len(), y.len())?;
    let (n, rows, size) = (x.len(), x.len() / k, whole_rows(x.len(), k));
    for_chunks(n, y.par_chunks_mut(size).enumerate(), |(chunk, y)| {
        for (row, y) in (chunk * (size / k)..).zip(y.chunks_exact_mut(k)) {
            y.iter_mut().enumerate().for_each(|(j, y)| *y = x[j * rows + row]);
        }
    });
    Ok(())
}

/// Converts from interleaved vectors to ones stored one after another.
pub(super) fn separate<T: Scalar>(k: usize, x: &[T], y: &mut [T]) -> Result<()> {
    check(k, x.len())?;
    Error::check_dimension("length of the second vector", x.len(), y.len())?;
    let rows = x.len() / k;
    for (j, y) in y.chunks_exact_mut(rows.max(1)).enumerate() {
        let size = chunk_size(rows);
        for_chunks(rows, y.par_chunks_mut(size).enumerate(), |(chunk, y)| {
            y.iter_mut().zip(chunk * size..).for_each(|(y, row)| *y = x[row * k + j]);
        });
    }
    Ok(())
}

/// Several systems with one matrix. Their sizes were checked.
pub(super) struct Systems<'a, T: Scalar> {
    inverse: Inverse<'a, T, Host>,
    k: usize,
}

impl<'a, T: Scalar> Systems<'a, T> {
    /// `n` is the total length of all vectors.
    pub(super) fn new(inverse: Inverse<'a, T, Host>, k: usize, n: usize, state: &[T::Real]) -> Result<Self> {
        check(k, n)?;
        Error::check_dimension("length of the state", k * CgSlot::COUNT, state.len())?;
        let diagonal = match inverse {
            Inverse::Diagonal(d) => d.len(),
            Inverse::Rounded(d) => d.len(),
            Inverse::Identity | Inverse::General(_) => n / k,
        };
        Error::check_dimension("length of the diagonal", n / k, diagonal)?;
        Ok(Self { inverse, k })
    }
}

/// Compiles the body with `$weight` as the function from a row to its entry of the inverse, or to one if the inverse is
/// not a diagonal.
macro_rules! with_weight {
    ($inverse:expr, $weight:ident => $body:expr) => {
        match $inverse {
            Inverse::Diagonal(d) => {
                let $weight = |row: usize| d[row];
                $body
            }
            Inverse::Rounded(d) => {
                let $weight = |row: usize| single::<T::Real>(d[row]);
                $body
            }
            Inverse::Identity | Inverse::General(_) => {
                let $weight = |_: usize| T::Real::one();
                $body
            }
        }
    };
}

/// [`KrylovSteps::cg_residual`](crate::backend::KrylovSteps::cg_residual) for several systems.
pub(super) fn residual<T: Scalar>(
    systems: Systems<'_, T>,
    pq: &[T],
    q: &[T],
    r: &mut [T],
    rz: &mut [T],
    state: &mut [T::Real],
) -> Result<()> {
    let (k, n) = (systems.k, r.len());
    Error::check_dimension("length of r.z", k, rz.len())?;
    let mut alphas = [None; MOST];
    for (alpha, (&pq, state)) in alphas.iter_mut().zip(pq.iter().zip(state.chunks_exact_mut(CgSlot::COUNT))) {
        *alpha = step_along(pq, state);
    }
    if alphas.iter().all(Option::is_none) {
        return Ok(());
    }
    let steps = alphas.map(|alpha| alpha.map(T::from_real));
    let steps = &steps[..k];
    let size = whole_rows(n, k);
    let sums = with_weight!(systems.inverse, weight => {
        let chunks = r.par_chunks_mut(size).zip(q.par_chunks(size)).enumerate();
        sum_chunks(n, chunks, |(chunk, (r, q))| descend(steps, chunk * (size / k), weight, q, r))
    });
    let fused = !matches!(systems.inverse, Inverse::General(_));
    let states = state.chunks_exact_mut(CgSlot::COUNT);
    for (((alpha, Pair(rr, new_rho)), rz), state) in alphas.into_iter().zip(sums.0).zip(rz).zip(states) {
        let Some(alpha) = alpha else { continue };
        if fused {
            *rz = T::from_real(new_rho);
        }
        settle(alpha, rr, state);
    }
    Ok(())
}

/// [`KrylovSteps::cg_direction`](crate::backend::KrylovSteps::cg_direction) for several systems.
pub(super) fn direction<T: Scalar>(
    systems: Systems<'_, T>,
    z: &[T],
    rz: &[T],
    p: &mut [T],
    x: &mut [T],
    state: &mut [T::Real],
) -> Result<()> {
    let (k, n) = (systems.k, x.len());
    let mut turns = [None; MOST];
    for (to, (&rz, state)) in turns.iter_mut().zip(rz.iter().zip(state.chunks_exact_mut(CgSlot::COUNT))) {
        *to = turn(rz, state);
    }
    if turns.iter().all(Option::is_none) {
        return Ok(());
    }
    let turns = &turns[..k];
    let size = whole_rows(n, k);
    with_weight!(systems.inverse, weight => {
        let chunks = z.par_chunks(size).zip(p.par_chunks_mut(size)).zip(x.par_chunks_mut(size)).enumerate();
        for_chunks(n, chunks, |(chunk, ((z, p), x))| advance(turns, chunk * (size / k), weight, z, p, x));
    });
    Ok(())
}

/// r -= step q for whole rows from `first` on. Returns r.r and r.(d .* r) of each system.
fn descend<T: Scalar>(
    steps: &[Option<T>],
    first: usize,
    weight: impl Fn(usize) -> T::Real,
    q: &[T],
    r: &mut [T],
) -> Columns<Pair<T::Real>> {
    let k = steps.len();
    let mut sums = Columns::<Pair<T::Real>>::default();
    let mut all = [T::zero(); MOST];
    all.iter_mut().zip(steps).for_each(|(all, step)| *all = step.unwrap_or_default());
    let all = steps.iter().all(Option::is_some).then_some(&all[..k]);
    for (row, (r, q)) in (first..).zip(r.chunks_exact_mut(k).zip(q.chunks_exact(k))) {
        let (d, r, q) = (weight(row), &mut r[..k], &q[..k]);
        // The usual case has its own loop, without a test for each element of a row.
        match all {
            Some(steps) => {
                for j in 0..k {
                    r[j] -= steps[j] * q[j];
                }
            }
            None => {
                for j in 0..k {
                    r[j] = steps[j].map_or(r[j], |step| r[j] - step * q[j]);
                }
            }
        }
        for (j, r) in r.iter().enumerate() {
            let rr = r.abs2();
            sums.0[j] = sums.0[j] + Pair(rr, d * rr);
        }
    }
    sums
}

/// x += alpha p and p = d .* z + beta p for whole rows from `first` on.
fn advance<T: Scalar>(
    turns: &[Option<(T, T)>],
    first: usize,
    weight: impl Fn(usize) -> T::Real,
    z: &[T],
    p: &mut [T],
    x: &mut [T],
) {
    let k = turns.len();
    let mut all = [(T::zero(), T::zero()); MOST];
    all.iter_mut().zip(turns).for_each(|(all, turn)| *all = turn.unwrap_or_default());
    let all = turns.iter().all(Option::is_some).then_some(&all[..k]);
    let rows = z.chunks_exact(k).zip(p.chunks_exact_mut(k)).zip(x.chunks_exact_mut(k));
    for (row, ((z, p), x)) in (first..).zip(rows) {
        let (d, z, p, x) = (T::from_real(weight(row)), &z[..k], &mut p[..k], &mut x[..k]);
        let mut step = |j: usize, (alpha, beta): (T, T)| {
            x[j] += alpha * p[j];
            p[j] = d * z[j] + beta * p[j];
        };
        match all {
            Some(turns) => (0..k).for_each(|j| step(j, turns[j])),
            None => (0..k).for_each(|j| turns[j].into_iter().for_each(|turn| step(j, turn))),
        }
    }
}
