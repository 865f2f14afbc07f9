//! Vector operations on the CPU.

use super::Host;
use super::memory::PARALLEL_FROM;
use crate::backend::VectorOps;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use rayon::prelude::*;

/// Elements a task; fixed, so that sums do not depend on the number of threads.
pub(super) const CHUNK: usize = 1 << 13;

/// Sums `term(chunk of 0..n)` over fixed chunks, in order.
pub(super) fn sum_chunks<S: Scalar>(n: usize, term: impl Fn(std::ops::Range<usize>) -> S + Sync) -> S {
    let chunk = |c: usize| term(c * CHUNK..((c + 1) * CHUNK).min(n));
    let chunks = n.div_ceil(CHUNK);
    if n < PARALLEL_FROM {
        return (0..chunks).map(chunk).sum();
    }
    let partial: Vec<S> = (0..chunks).into_par_iter().map(chunk).collect();
    partial.into_iter().sum()
}

/// Sum of f over both slices with eight running sums, so that additions do not wait for each other.
pub(super) fn sum_pairs<T: Scalar, S: Scalar>(x: &[T], y: &[T], f: impl Fn(T, T) -> S) -> S {
    const LANES: usize = 8;
    let mut sums = [S::default(); LANES];
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        for lane in 0..LANES {
            sums[lane] += f(x[lane], y[lane]);
        }
    }
    let rest: S = x_rest.iter().zip(y_rest).map(|(&x, &y)| f(x, y)).sum();
    sums.into_iter().sum::<S>() + rest
}

impl VectorOps for Host {
    fn dot<T: Scalar>(&self, x: &[T], y: &[T], out: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        out[0] = sum_chunks(x.len(), |c| sum_pairs(&x[c.clone()], &y[c], |x, y| x.conj() * y));
        Ok(())
    }

    fn norm2_squared<T: Scalar>(&self, x: &[T], out: &mut [T::Real]) -> Result<()> {
        out[0] = sum_chunks(x.len(), |c| sum_pairs(&x[c.clone()], &x[c], |x, _| x.abs2()));
        Ok(())
    }

    fn axpby<T: Scalar>(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        let run = |x: &[T], y: &mut [T]| {
            if beta == T::zero() {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = alpha * x);
            } else {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = alpha * x + beta * *y);
            }
        };
        if x.len() < PARALLEL_FROM {
            run(x, y);
        } else {
            y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| run(x, y));
        }
        Ok(())
    }

    fn multiply<T: Scalar>(&self, x: &[T], y: &[T], z: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        Error::check_dimension("length of the product", x.len(), z.len())?;
        let run = |x: &[T], y: &[T], z: &mut [T]| {
            z.iter_mut().zip(x.iter().zip(y)).for_each(|(z, (&x, &y))| *z = x * y);
        };
        if x.len() < PARALLEL_FROM {
            run(x, y, z);
        } else {
            let xy = x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK));
            z.par_chunks_mut(CHUNK).zip(xy).for_each(|(z, (x, y))| run(x, y, z));
        }
        Ok(())
    }
}
