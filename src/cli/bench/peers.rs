//! cuSPARSE beside us: same device, same stream, same arrays where the format is the same.

use super::line::Line;
use super::place::Bench;
use super::timing::in_batches;
use crate::backend::cuda::{CuSparse, CuSparseFormat};
use crate::{Backend, Csr, Cuda, Error, Real, Result, Scalar};
use num_traits::Float;

pub(super) fn measure<T: Scalar>(
    bench: &Bench<Cuda>,
    start: &Line,
    (host, a): (&Csr<T>, &Csr<T, Cuda>),
    lines: &mut Vec<Line>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let library = match CuSparse::load(bench.backend) {
        Ok(library) => library,
        Err(Error::Unsupported(reason)) => {
            notes.push(reason);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    notes.push(format!("cuSPARSE {}", library.version_text()));
    let backend = &bench.backend;
    let x = backend.upload(vec![T::one(); a.columns()])?;
    let mut y = backend.zeros::<T>(a.rows())?;
    let mut ours = backend.zeros::<T>(a.rows())?;
    a.product(backend, T::one(), &x, T::zero(), &mut ours)?;
    let ours = backend.download(&ours)?;
    let bounds = rounding_bounds(host);
    for format in CuSparseFormat::ALL {
        let mut line = Line { format: format.name().into(), ..start.clone() };
        let measured = library.product(format, a, &x, &mut y).and_then(|mut product| {
            let measured = in_batches(backend, bench.time, || product.multiply())?;
            let moved = product.bytes();
            line.bytes = (moved - (a.rows() + a.columns()) * size_of::<T>()) as u64;
            line.padding = product.padding(a.nonzeros()) as u64;
            line.product(measured, moved, bench.copy());
            let theirs = backend.download(product.target())?;
            let apart = |row: usize| (ours[row] - theirs[row]).abs().to_f64();
            if let Some(row) = (0..ours.len()).find(|&row| apart(row) > bounds[row]) {
                notes.push(format!(
                    "{} and csr differ in row {row}: {} and {}",
                    format.name(),
                    theirs[row],
                    ours[row]
                ));
            }
            Ok(())
        });
        line.refuse(measured)?;
        lines.push(line);
    }
    Ok(())
}

/// How far apart two sums of each row may be by rounding alone, in any order, where x is 1 everywhere: twice the bound
/// of one (Higham 2002, section 4.2).
fn rounding_bounds<T: Scalar>(a: &Csr<T>) -> Vec<f64> {
    let unit = <T::Real as Float>::epsilon().to_f64() / 2.0;
    let row = |i| {
        let (_, values) = a.row(i);
        let size: f64 = values.iter().map(|value| value.abs().to_f64()).sum();
        2.0 * values.len() as f64 * unit * size
    };
    (0..a.rows()).map(row).collect()
}
