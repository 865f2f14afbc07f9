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
//! What is read beyond the letter of the format: `double` and `unsigned-integer` as fields, the object `vector`, a banner
//! with one `%` or after blanks or blank lines, the upper triangle in place of the lower, comments after an entry, a
//! value of 1 in a pattern, and gzip (several members too) under any name. What is refused although others accept it: values that are not finite, text
//! after a complete entry, both triangles under a symmetric banner, a diagonal that contradicts the banner, and sizes out
//! of proportion to the file ([`ReadOptions`]). Integers beyond 2^53 are rounded to the number type as reals are.

mod dense;
mod entries;
mod fault;
mod header;
mod number;
mod parallel;
mod read;
mod source;
mod triangle;

pub use crate::assemble::Symmetry;
pub use dense::{DenseFile, read_dense};
pub use header::{Field, Format, Header};
pub use read::{MatrixFile, Order, ReadOptions, read_header, read_triplets};
