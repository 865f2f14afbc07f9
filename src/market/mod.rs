//! Matrix Market files: reading and writing.
//!
//! The format (Boisvert, Pozo, Remington: "The Matrix Market Exchange Formats", NISTIR 5935, 1996), by example, the
//! symmetric matrix [4 -1 0; -1 4 0; 0 0 2]:
//!
//! ```text
//! %%MatrixMarket matrix coordinate real symmetric      <- banner: object, format, field, symmetry; any letter case
//! % comments and blank lines may stand anywhere
//! 3 3 4                                                <- rows, columns, entries that follow
//! 1 1 4.0                                              <- row, column (from 1), value
//! 2 1 -1                                               <- of a symmetric matrix one triangle, here the lower
//! 2 2 0.4D+1                                           <- Fortran exponents
//! 3 3 2
//! ```
//!
//! Accepted beyond the specification: `double` and `unsigned-integer` as fields, the object `vector`, a banner with one
//! `%` or after blanks or blank lines, the upper triangle instead of the lower, comments after an entry, a value of 1
//! in a pattern, and gzip (also with several members) under any name. Refused although others accept it: values that
//! are not finite, text after a complete entry, an entry that is given in both triangles under a symmetric banner
//! (unless both values agree: then it is used once, [`Header::repeated`]), a diagonal that contradicts the banner, and
//! sizes out of proportion to the file ([`ReadOptions`]). Integers beyond 2^53 are rounded to the scalar type like
//! reals.

mod dense;
mod detect;
mod entries;
mod fault;
mod header;
mod in_pieces;
mod masks;
mod meter;
mod number;
mod parallel;
#[cfg(all(unix, feature = "ranks", feature = "cli"))]
mod piece;
mod read;
mod reading;
mod simple;
mod source;
mod text;
mod triangle;
mod write;

pub use crate::scalar::Symmetry;
pub(crate) use dense::dense_of;
pub use dense::{DenseFile, read_dense};
pub use detect::symmetry_of;
pub(crate) use entries::against_symmetry;
pub use header::{Field, Format, Header};
pub(crate) use in_pieces::read_at;
pub use meter::Meter;
#[cfg(all(unix, feature = "ranks", feature = "cli"))]
pub(crate) use piece::{Piece, Whole};
pub use read::{MatrixFile, Order, ReadOptions, read_header, read_triplets};
pub(crate) use read::{header_of, triplets_of};
pub use reading::Reading;
pub(crate) use source::Source;
pub(crate) use triangle::{once_each, told_twice};
pub use write::{WriteOptions, write_csr, write_dense, write_triplets};

use crate::assemble::Assembler;
use crate::backend::Host;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::path::Path;

/// Reads a matrix and assembles it: entries implied by symmetry are added, duplicates are summed.
///
/// ```
/// use residua::market;
/// let path = std::env::temp_dir().join(format!("residua-read-csr-{}.mtx", std::process::id()));
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 -1\n2 2 4\n").unwrap();
/// let a = market::read_csr::<f64>(&path)?;
/// assert_eq!((a.rows(), a.columns(), a.nonzeros()), (2, 2, 4));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// As [`read_triplets`], with its default options.
pub fn read_csr<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>> {
    let (header, triplets, _) = read_triplets::<T>(path, &ReadOptions::default())?.into_parts();
    Assembler::default().symmetry(header.symmetry()).to_csr(&Host, triplets)
}
