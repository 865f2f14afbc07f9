//! Reads a matrix of any format into CSR, and reports time and peak memory: `cargo run --release --example read --
//! A.mtx`.
//!
//! Without a file it writes a small one first.

use residua::market::{self, ReadOptions, WriteOptions};
use residua::{files, generate};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> residua::Result<()> {
    let (path, own) = match std::env::args_os().nth(1) {
        Some(path) => (PathBuf::from(path), false),
        None => (std::env::temp_dir().join(format!("residua-example-{}.mtx", std::process::id())), true),
    };
    if own {
        market::write_csr(&path, &generate::poisson2d(200, 200)?, &WriteOptions::default())?;
    }
    let start = Instant::now();
    let stored = files::read_stored::<f64>(&path, &ReadOptions::default())?;
    let (read, header) = (start.elapsed().as_secs_f64(), stored.header().clone());
    let after_reading = peak_memory();
    let matrix = stored.into_csr()?;
    let total = start.elapsed().as_secs_f64();
    println!(
        "{} x {}, {}: {} entries, {} nonzeros",
        matrix.rows(),
        matrix.columns(),
        header.symmetry().name(),
        header.entries(),
        matrix.nonzeros()
    );
    println!("read     {read:.3} s");
    println!("assemble {:.3} s", total - read);
    println!("total    {total:.3} s");
    if let (Some(first), Some(peak)) = (after_reading, peak_memory()) {
        let csr = matrix.storage_bytes() as f64;
        println!(
            "peak     {first} bytes after reading, {peak} after assembly: {:.2} x the CSR",
            peak as f64 / csr
        );
    }
    if own {
        let _ = std::fs::remove_file(&path);
    }
    Ok(())
}

/// The peak memory of this process in bytes, if the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
