//! Conversions to and from every format.

use crate::measure::{hash, median, only, peak};
use rayon::prelude::*;
use residua::assemble::{Assembler, ResidentTriplets};
use residua::backend::{Backend, OffsetsRef, Primitives};
use residua::generate::{self, RmatKind};
use residua::matrix::{self, Csr, Sell, SparseMatrix};
use residua::{Cuda, Result, Scalar};
use std::time::Instant;

const HEADER: &str =
    "matrix, values, nonzeros, conversion, ms, CSR products, extra memory in parts of source and target";

/// Measures matrices that are generated on the device.
pub fn grids(b: &Cuda) -> Result<()> {
    println!("{HEADER}");
    one::<f64>(b, "7 points, 256^3", &b.poisson3d(256, 256, 256)?)?;
    one::<f32>(b, "7 points, 256^3", &b.poisson3d(256, 256, 256)?)?;
    one::<f64>(b, "27 points, 160^3", &b.poisson3d_27(160, 160, 160)?)?;
    one::<f32>(b, "27 points, 160^3", &b.poisson3d_27(160, 160, 160)?)
}

/// Measures transposes of unsymmetric patterns: grids with one more column, random columns, a power law.
pub fn unsymmetric(b: &Cuda) -> Result<()> {
    println!("{HEADER}");
    unsymmetric_of::<f64>(b)?;
    unsymmetric_of::<f32>(b)?;
    let graph = generate::rmat(1 << 21, 16, RmatKind::Directed, 1)?;
    conversions(b, "R-MAT 2^21 x 16, directed", &graph.to_backend(b)?, Some("csc"))
}

fn unsymmetric_of<T: Scalar>(b: &Cuda) -> Result<()> {
    let grid = wider(b, b.poisson3d_27::<T>(160, 160, 160)?)?;
    conversions(b, "27 points, 160^3, one more column", &grid, Some("csc"))?;
    drop(grid);
    let grid = wider(b, b.poisson3d::<T>(256, 256, 256)?)?;
    conversions(b, "7 points, 256^3, one more column", &grid, Some("csc"))?;
    drop(grid);
    conversions(b, "random, 16 a row, 2^21 rows", &random_columns::<T>(b, 1 << 21)?, Some("csc"))
}

/// Measures conversions of a matrix whose columns are random.
pub fn random(b: &Cuda) -> Result<()> {
    println!("{HEADER}");
    one(b, "random, 16 a row, 2^20 rows", &random_columns::<f64>(b, 1 << 20)?)?;
    one(b, "random, 16 a row, 2^20 rows", &random_columns::<f32>(b, 1 << 20)?)
}

fn random_columns<T: Scalar>(b: &Cuda, rows: usize) -> Result<Csr<T, Cuda>> {
    let a_row = 16;
    let all = || (0..rows * a_row).into_par_iter();
    let is = b.upload(all().map(|t| (t / a_row) as u32).collect::<Vec<_>>())?;
    let js = b.upload(all().map(|t| hash(t as u64) as u32 % rows as u32).collect::<Vec<_>>())?;
    let values = b.upload(all().map(|t| T::from_f64(t as f64)).collect::<Vec<_>>())?;
    let triplets = ResidentTriplets::from_parts(b, rows, rows, is, js, values)?;
    Assembler::default().resident_to_csr(b, triplets)
}

/// Measures the files of a folder that have real values and more than 10^5 nonzeros.
pub fn files(b: &Cuda) -> Result<()> {
    println!("{HEADER}");
    let folder = std::env::var_os("RESIDUA_MATRICES").and_then(|folder| std::fs::read_dir(folder).ok());
    let Some(folder) = folder else {
        println!("RESIDUA_MATRICES names no folder");
        return Ok(());
    };
    let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(a) = residua::market::read_csr::<f64>(&path) else { continue };
        if a.nonzeros() <= 100_000 {
            continue;
        }
        if std::env::args().any(|word| word == "enlarged") {
            let copies = (1usize << 24).div_ceil(a.nonzeros());
            one(b, &format!("{name} x {copies}"), &generate::along_the_diagonal(&a, copies)?.to_backend(b)?)?;
        } else {
            one(b, &name, &a.to_backend(b)?)?;
        }
    }
    Ok(())
}

fn wider<T: Scalar>(b: &Cuda, a: Csr<T, Cuda>) -> Result<Csr<T, Cuda>> {
    let (rows, columns, parts) = (a.rows(), a.columns(), a.parts());
    let (mut is, mut js, mut values) =
        (b.buffer(a.nonzeros())?, b.buffer(a.nonzeros())?, b.buffer(a.nonzeros())?);
    match parts.offsets {
        OffsetsRef::Lower(offsets) => b.expand_offsets(offsets, &mut is)?,
        OffsetsRef::Wide(offsets) => b.expand_offsets(offsets, &mut is)?,
    }
    b.copy(parts.indices, &mut js)?;
    b.copy(parts.values, &mut values)?;
    drop(a);
    let triplets = ResidentTriplets::from_parts(b, rows, columns + 1, is, js, values)?;
    Assembler::default().resident_to_csr(b, triplets)
}

/// Measures matrices that are generated on the host.
pub fn others(b: &Cuda) -> Result<()> {
    println!("{HEADER}");
    one::<f64>(b, "elasticity 64^3", &generate::elasticity3d(64, 64, 64, 0.3)?.to_backend(b)?)?;
    one::<f64>(b, "R-MAT 2^21 x 16", &generate::rmat(1 << 21, 16, RmatKind::Symmetric, 1)?.to_backend(b)?)
}

fn one<T: Scalar>(b: &Cuda, name: &str, a: &Csr<T, Cuda>) -> Result<()> {
    conversions(b, name, a, only().as_deref())
}

/// Measures conversions to and from one format, or all formats.
fn conversions<T: Scalar>(b: &Cuda, name: &str, a: &Csr<T, Cuda>, only: Option<&str>) -> Result<()> {
    let x = b.upload(vec![T::from_f64(1.0); a.columns()])?;
    let mut y = b.zeros::<T>(a.rows())?;
    let (one, zero) = (T::from_f64(1.0), T::from_f64(0.0));
    let product = median(b, 20, || Ok(()), |()| a.product(b, one, &x, zero, &mut y))?;
    let title = format!("{name}, {}, {}", T::NAME, a.nonzeros());
    println!("{title}, product in CSR, {product:.3}, 1");
    let mut stored: Vec<(String, Box<dyn SparseMatrix<T, Cuda>>)> = Vec::new();
    let line = |what: String, ms: f64, extra: f64| {
        println!("{title}, {what}, {ms:.3}, {:.1}, {extra:.3}", ms / product);
    };
    for format in matrix::formats::<T, Cuda, T>() {
        if format.name() == "csr" || only.is_some_and(|only| only != format.name()) {
            continue;
        }
        stored.clear();
        match peak(b, || format.build(b, a)) {
            Ok((matrix, bytes)) => {
                let both = (a.storage_bytes() + matrix.storage_bytes()) as f64;
                let extra = (bytes - matrix.storage_bytes() as f64) / both;
                stored.push((format.name().into(), matrix));
                let ms = median(b, 5, || Ok(()), |()| format.build(b, a))?;
                line(format!("csr to {}", format.name()), ms, extra);
            }
            Err(error) => println!("{title}, {}: {error}", format.name()),
        }
        for (name, matrix) in &stored {
            let (_, bytes) = peak(b, || matrix.to_csr(b))?;
            let both = (a.storage_bytes() + matrix.storage_bytes()) as f64;
            let ms = median(b, 5, || Ok(()), |()| matrix.to_csr(b))?;
            line(format!("{name} to csr"), ms, (bytes - a.storage_bytes() as f64) / both);
        }
    }
    stored.clear();
    if only.is_some() {
        return Ok(());
    }
    for (height, window) in [(32, 1), (32, 1024), (32, 1 << 16)] {
        let convert = || Sell::with_chunks(b, a, height, window);
        match convert() {
            Ok(_) => {
                line(format!("csr to sell-{height}-{window}"), median(b, 5, || Ok(()), |()| convert())?, 0.0)
            }
            Err(error) => println!("{title}, sell-{height}-{window}: {error}"),
        }
    }
    Ok(())
}

/// Measures conversions of a matrix with more nonzeros than 32-bit offsets can count.
pub fn large(b: &Cuda) -> Result<()> {
    for side in [447, 545] {
        let a = b.poisson3d_27::<f64>(side, side, side)?;
        let x = b.upload(vec![1.0; a.columns()])?;
        let mut y = b.zeros(a.rows())?;
        let ms = median(b, 5, || Ok(()), |()| a.product(b, 1.0, &x, 0.0, &mut y))?;
        println!("27 points, {side}^3, {} nonzeros: product in CSR {ms:.2} ms", a.nonzeros());
        let start = Instant::now();
        let sell = Sell::with_chunks(b, &a, 32, 1)?;
        b.synchronize()?;
        println!("27 points, {side}^3: to sell-32-1 {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
        drop(a);
        let start = Instant::now();
        let again = sell.to_csr(b)?;
        b.synchronize()?;
        println!("27 points, {side}^3: back {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
        drop(sell);
        let mut z = b.zeros(again.rows())?;
        again.product(b, 1.0, &x, 0.0, &mut z)?;
        println!("27 points, {side}^3: same product {}", b.download(&y)? == b.download(&z)?);
    }
    Ok(())
}
