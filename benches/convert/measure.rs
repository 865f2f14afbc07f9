//! Measures times and memory of calls, and reads the arguments of the command line.

use residua::backend::Backend;
use residua::{Cuda, Result};
use std::time::Instant;

/// Returns the median time of `runs` calls in milliseconds, after one to warm up. `prepare` is not timed.
pub fn median<P, R>(
    b: &Cuda,
    runs: usize,
    mut prepare: impl FnMut() -> Result<P>,
    mut call: impl FnMut(P) -> Result<R>,
) -> Result<f64> {
    let mut times = Vec::new();
    for run in 0..=runs {
        let input = prepare()?;
        b.synchronize()?;
        let start = Instant::now();
        let result = call(input)?;
        b.synchronize()?;
        let time = start.elapsed().as_secs_f64() * 1e3;
        drop(result);
        if run > 0 {
            times.push(time);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The result of `call`, and its peak memory in bytes beyond what was in use before.
pub fn peak<R>(b: &Cuda, call: impl FnOnce() -> Result<R>) -> Result<(R, f64)> {
    b.synchronize()?;
    b.forget_peak();
    let before = b.peak_memory();
    let result = call()?;
    b.synchronize()?;
    Ok((result, (b.peak_memory() - before) as f64))
}

/// The part of the measurements to run, from the argument `only:PART`; `None` means all.
pub fn only() -> Option<String> {
    std::env::args().find_map(|word| word.strip_prefix("only:").map(String::from))
}

/// Pseudorandom bits (splitmix64).
pub fn hash(x: u64) -> u64 {
    let z = x.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
