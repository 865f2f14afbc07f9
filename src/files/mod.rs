//! Reads files of all supported formats. The content determines the format, not the name.
//!
//! | file | recognised by | read as |
//! |---|---|---|
//! | Matrix Market ([`crate::market`]), plain or gzip | everything else | matrix, vectors |
//! | SuiteSparse Collection, `.tar.gz` or `.tar` | `ustar` | `NAME/NAME.mtx` or `.rb`; `NAME/NAME_b` is b |
//! | NumPy `.npy` | its magic | full array: matrix, vectors |
//! | SciPy `.npz` (`save_npz`: csr, csc, coo, bsr, dia), or one array in an `.npz` | zip | matrix, vectors |
//! | Rutherford-Boeing, Harwell-Boeing (assembled) | lines 2 to 4 | matrix; right-hand sides after it are b |
//! | PETSc binary: `Mat` (seqaij, dense), `Vec` | class id | matrix, vectors; a `Vec` after a `Mat` is b |
//! | MATLAB `.mat` of version 5 | its first line | the array A, else the first sparse one; b is b |
//! | AMGX's systems | `%%AMGX` | matrix; `rhs` is b |
//! | numbers as text, one row per line | the first line | vectors |
//!
//! A pipe is read as Matrix Market.

mod amgx;
mod archive;
mod bytes;
mod cards;
mod found;
mod harwell;
mod lines;
mod matlab;
mod npy;
mod npz;
mod numbers;
mod petsc;
mod reading;
mod resident;
mod source;
mod stored;
mod table;
mod tar;
mod widened;
mod zip;

use crate::error::{Error, Result};
use crate::market::{self, DenseFile, Header, MatrixFile, ReadOptions};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use petsc::Objects;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

pub use archive::{write_npz, write_npz_array};
pub use npy::write_npy;
pub use reading::Reading;
pub use resident::Resident;
pub use stored::Stored;

/// The format of a file, as its first bytes show.
enum Kind {
    Market,
    Tar,
    Npy,
    Npz,
    Petsc,
    Harwell,
    Matlab,
    Amgx,
    Table,
}

/// Opens a file and unpacks gzip; returns whether it was compressed.
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
    // The reader of the content reports a damaged stream.
    let _ = open(path)?.0.take(512).read_to_end(&mut start);
    Ok(match start.as_slice() {
        s if s.get(257..262) == Some(b"ustar") => Kind::Tar,
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Kind::Npy,
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Kind::Npz,
        s if petsc::is(s) => Kind::Petsc,
        s if harwell::is(s) => Kind::Harwell,
        s if matlab::is(s) => Kind::Matlab,
        s if amgx::is(s) => Kind::Amgx,
        s if table::is(s) => Kind::Table,
        _ => Kind::Market,
    })
}

/// Reads a file of a binary format.
fn binary<T: Scalar>(path: &Path, kind: &Kind, options: &ReadOptions) -> Result<Stored<T>> {
    match kind {
        Kind::Npy => npy::Array::open(source::Source::open(path)?)?.read(path),
        Kind::Npz => npz::read(path, options),
        _ => Objects::open(path)?.read(path, false)?.ok_or_else(|| nothing(path)),
    }
}

fn matlab(path: &Path) -> Result<matlab::Variables> {
    matlab::Variables::read(path, open(path)?.0)
}

fn nothing(path: &Path) -> Error {
    bytes::content(path, 0, "there is no matrix and no vector in this file")
}

/// The error for complex values if the caller's type is real.
fn complex(path: &Path) -> Error {
    let what = "the file holds complex values, but real ones are requested";
    Error::Unsupported(format!("{}: {what}", path.display()))
}

/// Reads the header of a file; `-` is standard input.
///
/// # Errors
/// If the file cannot be read or its format is unknown; the message has the file, the position and the cause.
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Market => market::read_header(path),
        Kind::Tar => tar::matrix(path)?.header(),
        Kind::Harwell => Ok(harwell::read(path, open(path)?.0, true)?.header),
        Kind::Npy => npy::header(path, open(path)?.0),
        Kind::Npz => npz::header(path),
        Kind::Petsc => Objects::open(path)?.header(false).ok_or_else(|| nothing(path)),
        Kind::Matlab => Ok(matlab(path)?.into_matrix().ok_or_else(|| nothing(path))?.header),
        Kind::Amgx => Ok(amgx::read(path, open(path)?.0)?.matrix.header),
        Kind::Table => Ok(table::read(path, open(path)?.0)?.header),
    }
}

/// Reads a matrix: [`Stored`] returns it assembled, or as triplets.
///
/// Binary formats are read in place by all threads of the current rayon pool. Compressed rows with ascending columns
/// are used as CSR without sorting.
///
/// # Errors
/// As [`market::read_triplets`], for any format.
pub fn read_stored<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Stored<T>> {
    let path = path.as_ref();
    Ok(match kind(path)? {
        Kind::Market => market::read_triplets(path, options)?.into(),
        Kind::Tar => tar::matrix(path)?.triplets(options)?.into(),
        Kind::Harwell => harwell::read(path, open(path)?.0, false)?.triplets(path, options)?.into(),
        Kind::Matlab => {
            matlab(path)?.into_matrix().ok_or_else(|| nothing(path))?.triplets(path, options)?.into()
        }
        Kind::Amgx => amgx::read(path, open(path)?.0)?.matrix.triplets(path, options)?.into(),
        Kind::Table => {
            let cause = table::NO_MATRIX.into();
            return Err(Error::Parse { path: path.to_owned(), line: 1, cause });
        }
        other => binary(path, &other, options)?.accepted(path, options)?,
    })
}

/// Reads the entries of a matrix as they are stored.
///
/// # Errors
/// As [`read_stored`].
pub fn read_triplets<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<MatrixFile<T>> {
    read_stored(path, options)?.into_triplets()
}

/// Reads a matrix and assembles it: entries implied by symmetry are added, duplicates are summed.
///
/// # Errors
/// As [`read_stored`], with its default options.
pub fn read_csr<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>> {
    read_stored(path, &ReadOptions::default())?.into_csr()
}

/// Reads a full matrix, or vectors.
///
/// # Errors
/// As [`market::read_dense`], for any format.
pub fn read_dense<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<DenseFile<T>> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Market => market::read_dense(path, options),
        Kind::Tar => tar::matrix(path)?.dense(options),
        Kind::Harwell => harwell::read(path, open(path)?.0, false)?.dense(path, options),
        Kind::Matlab => matlab(path)?.into_vectors().ok_or_else(|| nothing(path))?.dense(path, options),
        Kind::Amgx => {
            let system = amgx::read(path, open(path)?.0)?;
            system.right_hand_side.unwrap_or(system.matrix).dense(path, options)
        }
        Kind::Table => table::read(path, open(path)?.0)?.dense(path, options),
        other => binary(path, &other, options)?.into_dense(path, options),
    }
}

/// Reads the header of the right-hand side that came with the matrix, if there is one.
///
/// # Errors
/// If the file cannot be read.
pub fn right_hand_side_header(path: impl AsRef<Path>) -> Result<Option<Header>> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Tar => tar::right_hand_side(path)?.map(tar::Member::header).transpose(),
        Kind::Petsc => Ok(Objects::open(path)?.header(true)),
        Kind::Harwell => Ok(harwell::right_hand_side(path, open(path)?.0, true)?.map(|b| b.header)),
        Kind::Matlab => Ok(matlab(path)?.into_right_hand_side().map(|(_, b)| b.header)),
        Kind::Amgx => Ok(amgx::read(path, open(path)?.0)?.right_hand_side.map(|b| b.header)),
        _ => Ok(None),
    }
}

/// Reads the right-hand side that came with the matrix, with its name, if there is one.
///
/// # Errors
/// As [`read_dense`].
pub fn right_hand_side<T: Scalar>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Option<(String, DenseFile<T>)>> {
    let path = path.as_ref();
    let behind = || format!("{}: the vector behind the matrix", path.display());
    Ok(match kind(path)? {
        Kind::Tar => match tar::right_hand_side(path)? {
            Some(b) => Some((b.label.display().to_string(), b.dense(options)?)),
            None => None,
        },
        Kind::Petsc => match Objects::open(path)?.read(path, true)? {
            Some(b) => Some((behind(), b.into_dense(path, options)?)),
            None => None,
        },
        Kind::Harwell => match harwell::right_hand_side(path, open(path)?.0, false)? {
            Some(b) => Some((behind(), b.dense(path, options)?)),
            None => None,
        },
        Kind::Matlab => match matlab(path)?.into_right_hand_side() {
            Some((name, b)) => Some((format!("{}: {name}", path.display()), b.dense(path, options)?)),
            None => None,
        },
        Kind::Amgx => match amgx::read(path, open(path)?.0)?.right_hand_side {
            Some(b) => Some((behind(), b.dense(path, options)?)),
            None => None,
        },
        _ => None,
    })
}
