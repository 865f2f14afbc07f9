//! Reading and writing files of more than 100 MB.
//!
//! The files are generated once, in the folder `RESIDUA_SCRATCH` (otherwise the system's temporary folder): a symmetric
//! matrix as from a finite element method, and a general one as from a convection-diffusion problem, whose values have
//! all their digits. Each is also read from an uncompressed `.npz`. `benches/peers/reading.py` measures SciPy on the
//! same files.

#[path = "shared/timed.rs"]
mod timed;

use residua::Csr;
use residua::files;
use residua::generate::{self, Random};
use residua::market::{self, ReadOptions, WriteOptions};
use std::path::PathBuf;
use timed::Timed;

/// D A D with a random diagonal D, or D A E in the general case, so that values have all their digits.
fn scaled(mut matrix: Csr<f64>, symmetric: bool) -> Csr<f64> {
    let mut random = Random::new(1);
    let left: Vec<f64> = (0..matrix.rows()).map(|_| random.between(0.5, 2.0)).collect();
    let right: Vec<f64> =
        if symmetric { left.clone() } else { left.iter().map(|d| d * random.unit()).collect() };
    let parts = matrix.parts();
    let columns = parts.indices.to_vec();
    let mut offsets = vec![0usize];
    match parts.offsets {
        residua::backend::OffsetsRef::Lower(o) => offsets = o.iter().map(|&o| o as usize).collect(),
        residua::backend::OffsetsRef::Wide(o) => offsets.extend(o[1..].iter().map(|&o| o as usize)),
    }
    let values = matrix.values_mut();
    for i in 0..left.len() {
        for k in offsets[i]..offsets[i + 1] {
            let j = columns[k] as usize;
            // The smaller index comes first, so that the product is the same for (i, j) and (j, i).
            let scale = if symmetric { left[i.min(j)] * left[i.max(j)] } else { left[i] * right[j] };
            values[k] *= scale;
        }
    }
    matrix
}

/// Paths of the files, which are generated if they do not exist.
fn texts() -> Vec<(&'static str, PathBuf)> {
    let folder = std::env::var_os("RESIDUA_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
    let symmetric = folder.join("residua-symmetric.mtx");
    if !symmetric.exists() {
        let matrix = scaled(generate::elasticity3d(41, 41, 41, 0.3).unwrap(), true);
        market::write_csr(&symmetric, &matrix, &WriteOptions::default()).unwrap();
    }
    let general = folder.join("residua-general.mtx");
    if !general.exists() {
        let matrix = scaled(generate::convection_diffusion([90, 90, 90], 0.01).unwrap(), false);
        market::write_csr(&general, &matrix, &WriteOptions::default()).unwrap();
    }
    vec![("symmetric", symmetric), ("general", general)]
}

fn main() {
    for (name, path) in texts() {
        let timed = Timed::new(std::fs::metadata(&path).unwrap().len() as usize, "bytes");
        timed.time(&format!("triplets/{name}"), || {
            market::read_triplets::<f64>(&path, &ReadOptions::default()).unwrap()
        });
        timed.time(&format!("csr/{name}"), || market::read_csr::<f64>(&path).unwrap());
        let matrix = market::read_csr::<f64>(&path).unwrap();
        let target = path.with_extension("copy.mtx");
        timed.time(&format!("write/{name}"), || {
            market::write_csr(&target, &matrix, &WriteOptions::default()).unwrap();
        });
        let _ = std::fs::remove_file(&target);
        let archive = path.with_extension("npz");
        files::write_npz(&archive, &matrix).unwrap();
        let timed = Timed::new(std::fs::metadata(&archive).unwrap().len() as usize, "bytes");
        timed.time(&format!("npz/{name}"), || files::read_csr::<f64>(&archive).unwrap());
        let _ = std::fs::remove_file(&archive);
    }
}
