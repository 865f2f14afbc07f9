//! Reads a Matrix Market file into CSR, and reports time and peak memory: `cargo run --release --example read --
//! A.mtx`.
//!
//! Without a file it writes a small one first.

use residua::assemble::Assembler;
use residua::market::{self, ReadOptions, WriteOptions};
use residua::{Host, generate};
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
    let (header, triplets, order) =
        market::read_triplets::<f64>(&path, &ReadOptions::default())?.into_parts();
    let (read, entries) = (start.elapsed().as_secs_f64(), triplets.len());
    let after_reading = peak_memory();
    let matrix = Assembler::default().symmetry(header.symmetry()).to_csr(&Host, triplets)?;
    let total = start.elapsed().as_secs_f64();
    println!(
        "{} x {}, {}: {entries} entries in order {order:?}, {} nonzeros",
        matrix.rows(),
        matrix.columns(),
        header.symmetry().name(),
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

/// The most memory that this process has had in use, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
