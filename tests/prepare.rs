//! Matchings, scalings and block forms of the collection's matrices.

#[path = "common/collection.rs"]
mod collection;

use num_complex::Complex;
use residua::market::read_csr;
use residua::prepare::*;
use residua::{Csr, Host, Scalar};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files of the collection, if it exists.
fn files() -> Vec<PathBuf> {
    let Some(folder) = collection::folder() else { return Vec::new() };
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().contains(".mtx")).collect();
    files.sort();
    files
}

/// The largest magnitudes in scaled rows and columns must be 1 or 0, and matched entries must be 1.
fn check<T: Scalar<Real = f64>>(a: &Csr<T>, path: &Path) -> [Duration; 5] {
    let mut times = [Duration::ZERO; 5];
    let start = Instant::now();
    let pattern = Pattern::nonzero(a).unwrap();
    let most = maximum_matching(&pattern).unwrap();
    times[0] = start.elapsed();
    let start = Instant::now();
    let best = maximum_product_matching(a).unwrap();
    times[1] = start.elapsed();
    assert_eq!(best.matching().pairs(), most.pairs(), "{}", path.display());
    let scaled = best.scaling().apply(a).unwrap();
    let parts = scaled.parts();
    let starts = parts.offsets.download(&Host).unwrap();
    let mut largest = vec![0.0_f64; a.columns()];
    // Some need factors outside the range of doubles; then only rows are scaled as stated.
    let extreme = best.scaling().columns().iter().any(|factor| factor.log2().abs() > 499.9);
    for row in 0..a.rows() {
        let mut across = 0.0_f64;
        for k in starts[row]..starts[row + 1] {
            let (column, size) = (parts.indices[k], parts.values[k].abs());
            across = across.max(size);
            largest[column as usize] = largest[column as usize].max(size);
            if !extreme && best.matching().column_of()[row] == column {
                assert!((size - 1.0).abs() < 1e-10, "{} {row} {column}: {size}", path.display());
            }
        }
        assert!(across == 0.0 || (across - 1.0).abs() < 1e-8, "{} row {row}: {across}", path.display());
    }
    assert!(
        extreme || largest.iter().all(|&size| size == 0.0 || (size - 1.0).abs() < 1e-8),
        "{}",
        path.display()
    );
    let start = Instant::now();
    let form = block_triangular(&pattern, &most).unwrap();
    times[2] = start.elapsed();
    let other = block_triangular(&pattern, best.matching()).unwrap();
    assert_eq!(form.blocks().len(), other.blocks().len(), "{}", path.display());
    let start = Instant::now();
    equilibrate(a).unwrap();
    times[3] = start.elapsed();
    if a.rows() == a.columns() {
        let start = Instant::now();
        symmetric_matching(a).unwrap();
        times[4] = start.elapsed();
    }
    times
}

#[test]
fn files_are_matched_and_scaled_as_promised() {
    let mut seen = Vec::new();
    for path in files() {
        let (times, rows, nonzeros) = if let Ok(a) = read_csr::<f64>(&path) {
            (check(&a, &path), a.rows(), a.nonzeros())
        } else if let Ok(a) = read_csr::<Complex<f64>>(&path) {
            (check(&a, &path), a.rows(), a.nonzeros())
        } else {
            println!("{}: {}", path.display(), read_csr::<f64>(&path).err().unwrap());
            continue;
        };
        seen.push((times.iter().sum::<Duration>(), times, rows, nonzeros, path));
    }
    seen.sort();
    for (_, times, rows, nonzeros, path) in seen.iter().rev().take(12) {
        let name = path.file_name().unwrap().to_string_lossy();
        println!(
            "{name}: {rows} rows, {nonzeros} nonzeros: cardinality {:?}, product {:?}, blocks {:?}, Ruiz {:?}, symmetric {:?}",
            times[0], times[1], times[2], times[3], times[4]
        );
    }
}
