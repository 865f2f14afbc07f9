//! cuSPARSE beside us: same device, same stream, same arrays where the format is the same.

use super::compare::{Bench, refuse};
use super::line::Line;
use super::timing::in_batches;
use residua::backend::cuda::{CuSparse, CuSparseFormat};
use residua::{Backend, Csr, Cuda, Error, Result, Scalar};

pub(super) fn measure<T: Scalar>(
    bench: &Bench<Cuda>,
    start: &Line,
    a: &Csr<T, Cuda>,
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
    for format in CuSparseFormat::ALL {
        let mut line = Line { format: format.name().into(), ..start.clone() };
        let measured = library.product(format, a, &x, &mut y).and_then(|mut product| {
            let measured = in_batches(backend, bench.time, || product.multiply())?;
            let moved = product.bytes();
            line.bytes = (moved - (a.rows() + a.columns()) * size_of::<T>()) as u64;
            line.padding = product.padding(a.nonzeros()) as u64;
            line.product(measured, moved, bench.copy());
            let theirs = backend.download(product.target())?;
            if let Some(row) = ours.iter().zip(&theirs).position(|(a, b)| differ(*a, *b)) {
                notes.push(format!(
                    "{} and csr differ in row {row}: {} and {}",
                    format.name(),
                    theirs[row],
                    ours[row]
                ));
            }
            Ok(())
        });
        refuse(&mut line, measured)?;
        lines.push(line);
    }
    Ok(())
}

/// Whether two sums of a row are further apart than rounding puts them.
fn differ<T: Scalar>(a: T, b: T) -> bool {
    use residua::Real;
    let tolerance = if size_of::<T::Real>() == 4 { 1e-3 } else { 1e-9 };
    (a - b).abs().to_f64() > tolerance * (1.0 + a.abs().to_f64())
}
