//! Functions for benchmarks of whole solves on a device.

use residua::generate::Random;
use residua::{Backend, Csr, Cuda, Host, Scalar};
use std::time::Instant;

/// Returns the time of the fastest of a few runs in milliseconds, and the result of the last one.
pub fn fastest<R>(
    cuda: &Cuda,
    runs: usize,
    mut run: impl FnMut() -> residua::Result<R>,
) -> residua::Result<(f64, R)> {
    let (mut best, mut last) = (f64::INFINITY, None);
    for _ in 0..runs {
        cuda.synchronize()?;
        let start = Instant::now();
        let result = run()?;
        cuda.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        last = Some(result);
    }
    Ok((best, last.expect("one run at least")))
}

/// A x for a random x; a vector of ones would favour some methods.
pub fn of_random_x<T: Scalar>(a: &Csr<T>) -> residua::Result<Vec<T>> {
    let mut random = Random::new(1);
    let solution: Vec<T> = (0..a.columns()).map(|_| T::from_f64(random.unit() - 0.5)).collect();
    let mut b = vec![T::zero(); a.rows()];
    a.product(&Host, T::one(), &solution, T::zero(), &mut b)?;
    Ok(b)
}
