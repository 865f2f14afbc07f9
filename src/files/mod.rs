//! Files as users have them: one door, whatever the format. Content decides, not the name.
//!
//! | what | recognised by | read as |
//! |---|---|---|
//! | Matrix Market ([`crate::market`]), plain or gzip | everything else | matrix, vectors |
//! | SuiteSparse Collection, `.tar.gz` or `.tar` | `ustar` | `NAME/NAME.mtx` or `.rb`; `NAME/NAME_b` is b |
//! | NumPy `.npy` | its magic | full array: matrix, vectors |
//! | SciPy `.npz` (`save_npz`: csr, csc, coo, bsr, dia), or one array in an `.npz` | zip | matrix, vectors |
//! | Rutherford-Boeing, Harwell-Boeing (assembled) | lines 2 to 4 | matrix; right-hand sides behind it are b |
//! | PETSc binary: `Mat` (seqaij, dense), `Vec` | class id | matrix, vectors; a `Vec` behind a `Mat` is b |
//!
//! What comes through a pipe is Matrix Market.

mod archive;
mod bytes;
mod cards;
mod found;
mod harwell;
mod npy;
mod npz;
mod petsc;
mod tar;
mod zip;

use crate::assemble::Assembler;
use crate::backend::Host;
use crate::error::{Error, Result};
use crate::market::{self, DenseFile, Header, MatrixFile, ReadOptions, Reading};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use found::Found;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

pub use archive::{write_npz, write_npz_array};
pub use npy::write_npy;

enum Kind {
    Market,
    Tar,
    Npy,
    Npz,
    Petsc,
    Harwell,
}

/// The content of a file, out of gzip where it is compressed, and whether it was.
fn open(path: &Path) -> Result<(Box<dyn Read + Send>, bool)> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut start = Vec::new();
    let mut file = File::open(path).map_err(io)?;
    file.by_ref().take(2).read_to_end(&mut start).map_err(io)?;
    let compressed = start == [0x1f, 0x8b];
    let raw = std::io::Cursor::new(start).chain(BufReader::with_capacity(1 << 16, file));
    if compressed {
        Ok((Box::new(flate2::read::MultiGzDecoder::new(raw)), true))
    } else {
        Ok((Box::new(raw), false))
    }
}

fn kind(path: &Path) -> Result<Kind> {
    if !path.is_file() {
        return Ok(Kind::Market);
    }
    let mut start = Vec::new();
    // A damaged stream is told of by whoever reads it.
    let _ = open(path)?.0.take(512).read_to_end(&mut start);
    Ok(match start.as_slice() {
        s if s.get(257..262) == Some(b"ustar") => Kind::Tar,
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Kind::Npy,
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Kind::Npz,
        s if petsc::is(s) => Kind::Petsc,
        s if harwell::is(s) => Kind::Harwell,
        _ => Kind::Market,
    })
}

fn found(path: &Path, kind: &Kind, header_only: bool) -> Result<Found> {
    match kind {
        Kind::Npy => npy::read(path, open(path)?.0, header_only),
        Kind::Npz => npz::read(path, header_only),
        Kind::Harwell => harwell::read(path, open(path)?.0, header_only),
        _ => petsc::read(path, open(path)?.0, false)?
            .ok_or_else(|| bytes::content(path, 0, "there is no matrix and no vector in this file")),
    }
}

/// What a file says of itself; `-` is standard input.
///
/// # Errors
/// Where the file cannot be read, or is of no format that is known; the message names file, place and cause.
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Market => market::read_header(path),
        Kind::Tar => tar::matrix(path)?.header(),
        other => Ok(found(path, &other, true)?.header),
    }
}

/// Reads a matrix as it is stored.
///
/// # Errors
/// As [`market::read_triplets`], whatever the format.
pub fn read_triplets<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<MatrixFile<T>> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Market => market::read_triplets(path, options),
        Kind::Tar => tar::matrix(path)?.triplets(options),
        other => found(path, &other, false)?.triplets(path, options),
    }
}

/// Reads a matrix and assembles it: entries that follow by symmetry are there, duplicates are summed.
///
/// # Errors
/// As [`read_triplets`], with its default options.
pub fn read_csr<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>> {
    let (header, triplets, _) = read_triplets::<T>(path, &ReadOptions::default())?.into_parts();
    Assembler::default().symmetry(header.symmetry()).to_csr(&Host, triplets)
}

/// Reads a full matrix, or vectors.
///
/// # Errors
/// As [`market::read_dense`], whatever the format.
pub fn read_dense<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<DenseFile<T>> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Market => market::read_dense(path, options),
        Kind::Tar => tar::matrix(path)?.dense(options),
        other => found(path, &other, false)?.dense(path, options),
    }
}

/// Reads a matrix on a thread of its own.
pub fn reading<T: Scalar>(path: impl Into<PathBuf>, options: ReadOptions) -> Reading<T> {
    let path = path.into();
    if let Ok(Kind::Market) = kind(&path) {
        return Reading::start(path, options);
    }
    Reading::at_once(path.clone(), move || read_triplets(&path, &options))
}

/// What a file says of the right-hand side that came with the matrix, if one did.
///
/// # Errors
/// Where the file cannot be read.
pub fn right_hand_side_header(path: impl AsRef<Path>) -> Result<Option<Header>> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Tar => tar::right_hand_side(path)?.map(tar::Member::header).transpose(),
        Kind::Petsc => Ok(petsc::read(path, open(path)?.0, true)?.map(|b| b.header)),
        Kind::Harwell => Ok(harwell::right_hand_side(path, open(path)?.0, true)?.map(|b| b.header)),
        _ => Ok(None),
    }
}

/// Reads the right-hand side that came with the matrix, if one did; and its name.
///
/// # Errors
/// As [`read_dense`].
pub fn right_hand_side<T: Scalar>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Option<(String, DenseFile<T>)>> {
    let path = path.as_ref();
    let kind = kind(path)?;
    match kind {
        Kind::Tar => {
            let Some(b) = tar::right_hand_side(path)? else { return Ok(None) };
            let name = b.label.display().to_string();
            Ok(Some((name, b.dense(options)?)))
        }
        Kind::Petsc | Kind::Harwell => {
            let found = match kind {
                Kind::Petsc => petsc::read(path, open(path)?.0, true)?,
                _ => harwell::right_hand_side(path, open(path)?.0, false)?,
            };
            let Some(b) = found else { return Ok(None) };
            let name = format!("{}: the vector behind the matrix", path.display());
            Ok(Some((name, b.dense(path, options)?)))
        }
        _ => Ok(None),
    }
}
