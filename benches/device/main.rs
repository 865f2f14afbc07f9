//! Basic figures of a CUDA device: first use, warm start, copies, and vector operations compared with the bandwidth of
//! a copy.
//!
//! `cargo bench --bench device`, or the built binary on another machine. Prints one table; the peer's figures come from
//! `benches/peers/device_vector.py` in the same run. The arguments `start`, `primitives` (compared with CUB),
//! `recurrences` and `vectors` select parts of it.

#[cfg(feature = "cuda")]
mod primitives;
#[cfg(feature = "cuda")]
mod recurrences;

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("built without CUDA: nothing to measure");
}

#[cfg(feature = "cuda")]
fn main() -> residua::Result<()> {
    use residua::backend::cuda;
    let start = std::time::Instant::now();
    let devices = match cuda::devices() {
        Ok(devices) => devices,
        Err(error) => {
            println!("nothing was measured: {error}");
            return Ok(());
        }
    };
    let found = start.elapsed();
    let start = std::time::Instant::now();
    let b = residua::Cuda::new(0)?;
    let opened = start.elapsed();
    println!("{:?}", cuda::status());
    println!("{:?}", devices[0]);
    println!("driver found and started: {:.1} ms; device opened: {:.1} ms", ms(found), ms(opened));
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wants = |part: &str| chosen.is_empty() || chosen.iter().any(|argument| argument == part);
    if wants("start") {
        measure::start(&b)?;
    }
    let copy = residua::report::copy_bandwidth(&b, 5)?;
    println!("copy on the device: {copy:.0} GB/s (read + write)");
    if wants("primitives") {
        primitives::table(&b, copy)?;
    }
    if wants("recurrences") {
        recurrences::table::<f64>(&b, copy)?;
        recurrences::table::<f32>(&b, copy)?;
    }
    if !wants("vectors") {
        return Ok(());
    }
    measure::host_copies(&b)?;
    measure::vectors::<f64>(&b, copy)?;
    measure::vectors::<f32>(&b, copy)?;
    measure::latencies(&b)
}

#[cfg(feature = "cuda")]
fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(feature = "cuda")]
mod measure {
    use super::ms;
    use residua::backend::cuda::compile::{Compiler, catalogue};
    use residua::backend::{Backend, Mailbox, Replay, VectorOps};
    use residua::{Cuda, Result, Scalar};
    use std::time::{Duration, Instant};

    /// Time per call: the median of several runs of `repeats` calls each.
    pub fn median(b: &Cuda, repeats: u32, mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
        (0..3).try_for_each(|_| call())?;
        let mut times = Vec::new();
        for _ in 0..9 {
            b.synchronize()?;
            let start = Instant::now();
            (0..repeats).try_for_each(|_| call())?;
            b.synchronize()?;
            times.push(start.elapsed() / repeats);
        }
        times.sort();
        Ok(times[times.len() / 2])
    }

    pub fn start(b: &Cuda) -> Result<()> {
        let time = Instant::now();
        let mut x = b.upload(vec![1.0_f64; 1000])?;
        let first = ms(time.elapsed());
        let time = Instant::now();
        let y = b.upload(vec![1.0_f64; 1000])?;
        b.axpby(1.0, &y, 1.0, &mut x)?;
        b.synchronize()?;
        println!(
            "first upload: {first:.2} ms; first kernel (found, compiled or cached, loaded, run): {:.1} ms",
            ms(time.elapsed())
        );
        let compiler = Compiler::get()?;
        let newest = compiler.chips().iter().rfind(|chip| **chip <= (9, 0)).copied().unwrap_or((9, 0));
        let (mut fresh, mut cached) = (Vec::new(), Vec::new());
        // Every fifth unit of the catalogue, so that all types of kernels are included.
        for unit in catalogue().into_iter().step_by(5) {
            let image = compiler.image(&unit, newest)?;
            if image.cached { cached.push(image.time) } else { fresh.push(image.time) }
        }
        for (what, mut times) in [("compiled", fresh), ("from the cache", cached)] {
            times.sort();
            if let (Some(middle), Some(last)) = (times.get(times.len() / 2), times.last()) {
                let all: Duration = times.iter().sum();
                let count = times.len();
                println!(
                    "{count} kernel files {what}: {:.2} ms median, {:.2} ms longest, {:.0} ms all",
                    ms(*middle),
                    ms(*last),
                    ms(all)
                );
            }
        }
        Ok(())
    }

    pub fn host_copies(b: &Cuda) -> Result<()> {
        let data = vec![1.5_f64; 1 << 27];
        let bytes = (data.len() * 8) as f64;
        let mut there = b.zeros::<f64>(data.len())?;
        let mut back = vec![0.0; data.len()];
        for _ in 0..2 {
            let time = Instant::now();
            b.write(&data, &mut there)?;
            b.synchronize()?;
            let to = time.elapsed();
            let time = Instant::now();
            b.read(&there, &mut back)?;
            let from = time.elapsed();
            println!(
                "1 GiB to the device: {:.1} GB/s; back: {:.1} GB/s",
                bytes / to.as_secs_f64() / 1e9,
                bytes / from.as_secs_f64() / 1e9
            );
        }
        assert!(back == data);
        Ok(())
    }

    pub fn vectors<T: Scalar>(b: &Cuda, copy: f64) -> Result<()> {
        for n in [1_usize << 16, 1 << 20, 1 << 24, 1 << 28] {
            let x = b.upload((0..n).map(|i| T::from_f64((i % 1000) as f64 * 1e-3)).collect())?;
            let mut y = b.upload((0..n).map(|i| T::from_f64((i % 999) as f64 * 1e-3)).collect())?;
            let mut z = b.zeros::<T>(n)?;
            let mut out = b.zeros::<T>(1)?;
            let mut norm = b.zeros::<T::Real>(1)?;
            let repeats = ((1_usize << 30) / n).clamp(4, 200) as u32;
            let report = |what: &str, words: usize, time: Duration| {
                let speed = (words * n * size_of::<T>()) as f64 / time.as_secs_f64() / 1e9;
                println!(
                    "{what:<14} {} n = {n:>9}  {:>9.2} us  {speed:>6.0} GB/s  {:.3} of copy",
                    T::NAME,
                    time.as_secs_f64() * 1e6,
                    speed / copy
                );
            };
            report("dot", 2, median(b, repeats, || b.dot(&x, &y, &mut out))?);
            report("norm2_squared", 1, median(b, repeats, || b.norm2_squared(&x, &mut norm))?);
            let half = T::from_f64(0.5);
            report("axpby", 3, median(b, repeats, || b.axpby(half, &x, half, &mut y))?);
            report("scale (beta 0)", 2, median(b, repeats, || b.axpby(half, &x, T::zero(), &mut y))?);
            report("multiply", 3, median(b, repeats, || b.multiply(&x, &y, &mut z))?);
            report("copy", 2, median(b, repeats, || b.copy(&x, &mut z))?);
        }
        Ok(())
    }

    pub fn latencies(b: &Cuda) -> Result<()> {
        let x = b.upload(vec![1.0_f64; 1000])?;
        let mut y = b.zeros::<f64>(1000)?;
        let mut out = b.zeros::<f64>(1)?;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let launch = median(b, 1000, || b.axpby(1.0, &x, 0.5, &mut y))?;
        let round_trip = median(b, 100, || {
            b.dot(&x, &x, &mut out)?;
            b.download(&out).map(|_| ())
        })?;
        let allocation = median(b, 1000, || b.zeros::<f64>(1000).map(|_| ()))?;
        println!(
            "a small kernel: {:.2} us; dot and its download: {:.2} us; allocate, zero and free: {:.2} us",
            us(launch),
            us(round_trip),
            us(allocation)
        );
        let mailbox = b.mailbox::<f64>(1)?;
        let posted = median(b, 100, || {
            mailbox.post(b, &out)?;
            mailbox.next(b, true, &mut [0.0]).map(|_| ())
        })?;
        let mut step = b.record(|| (0..10).try_for_each(|_| b.axpby(1.0, &x, 0.5, &mut y)))?;
        let replay = median(b, 200, || step.replay())?;
        println!(
            "a value posted and received: {:.2} us; ten small kernels recorded: {:.2} us a replay",
            us(posted),
            us(replay)
        );
        Ok(())
    }
}
