//! Writing matrices and vectors.

use super::detect::symmetry_of;
use super::header::Format;
use super::text::{compress, push_index, push_value, write_lines};
use crate::backend::OffsetsRef;
use crate::error::{Error, Result};
use crate::matrix::{Csr, Triplets};
use crate::output::{self, Output};
use crate::parallel::prelude::*;
use crate::scalar::{Scalar, Symmetry};
use crate::settings::settings;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// Options of writing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteOptions {
    comment: String,
    detect: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { comment: String::new(), detect: true }
    }
}

settings! { WriteOptions;
    /// Text after the banner; each of its lines becomes a comment.
    pub fn comment(text: impl Into<String>) => comment = text.into();

    /// Whether [`write_csr`] checks for symmetry and then writes one triangle (the default).
    pub fn detect_symmetry(detect: bool) => detect = detect;
}

/// Writes a matrix; `-` is standard output, and a name that ends in `.gz` is compressed. Reading it back gives the same
/// bits if all values are finite; others are written (`NaN`, `inf`), but readers refuse them. A matrix that is exactly
/// symmetric, skew-symmetric or Hermitian is written as its lower triangle.
///
/// The file appears under its name when it is complete ([`crate::output`]).
///
/// # Errors
/// If the file cannot be written; the target is then unchanged.
pub fn write_csr<T: Scalar>(path: impl AsRef<Path>, matrix: &Csr<T>, options: &WriteOptions) -> Result<()> {
    let symmetry = if options.detect { symmetry_of(matrix) } else { Symmetry::General };
    match matrix.parts().offsets {
        OffsetsRef::Lower(offsets) => csr(path.as_ref(), matrix, symmetry, |i| offsets[i] as usize, options),
        OffsetsRef::Wide(offsets) => csr(path.as_ref(), matrix, symmetry, |i| offsets[i] as usize, options),
    }
}

fn csr<T: Scalar>(
    path: &Path,
    matrix: &Csr<T>,
    symmetry: Symmetry,
    offset: impl Fn(usize) -> usize + Sync,
    options: &WriteOptions,
) -> Result<()> {
    let (rows, parts) = (matrix.rows(), matrix.parts());
    let (columns, values) = (parts.indices, parts.values);
    let row_of = |k: usize| {
        let (mut low, mut high) = (0, rows);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if offset(middle) <= k { low = middle } else { high = middle }
        }
        low
    };
    let written = |row: usize, column: u32| symmetry == Symmetry::General || column as usize <= row;
    let entries = match symmetry {
        Symmetry::General => values.len(),
        _ => (0..rows)
            .into_par_iter()
            .with_min_len(1024)
            .map(|i| columns[offset(i)..offset(i + 1)].partition_point(|&j| j as usize <= i))
            .reduce(|| 0, |a, b| a + b),
    };
    let sizes = format!("{rows} {} {entries}", matrix.columns());
    file::<T>(path, Format::Coordinate, symmetry, &sizes, options, values.len(), |range, text| {
        let mut row = row_of(range.start);
        for k in range {
            while offset(row + 1) <= k {
                row += 1;
            }
            if written(row, columns[k]) {
                line(text, row as u32, columns[k], values[k]);
            }
        }
    })
}

/// Writes triplets unchanged, under a banner that names `symmetry`; otherwise as [`write_csr`].
///
/// # Errors
/// If a symmetry other than general is given for a matrix that is not square, or if the file cannot be written.
pub fn write_triplets<T: Scalar>(
    path: impl AsRef<Path>,
    triplets: &Triplets<T>,
    symmetry: Symmetry,
    options: &WriteOptions,
) -> Result<()> {
    if symmetry != Symmetry::General {
        Error::check_dimension("columns of a square matrix", triplets.rows(), triplets.columns())?;
    }
    let (rows, columns, values) = triplets.parts();
    let sizes = format!("{} {} {}", triplets.rows(), triplets.columns(), values.len());
    file::<T>(path.as_ref(), Format::Coordinate, symmetry, &sizes, options, values.len(), |range, text| {
        for k in range {
            line(text, rows[k], columns[k], values[k]);
        }
    })
}

/// Writes a full array, `values` column by column; otherwise as [`write_csr`].
///
/// # Errors
/// Unless there are `rows * columns` values, or if the file cannot be written.
pub fn write_dense<T: Scalar>(
    path: impl AsRef<Path>,
    rows: usize,
    columns: usize,
    values: &[T],
    options: &WriteOptions,
) -> Result<()> {
    Error::check_dimension("number of values", rows.saturating_mul(columns), values.len())?;
    let sizes = format!("{rows} {columns}");
    file::<T>(
        path.as_ref(),
        Format::Array,
        Symmetry::General,
        &sizes,
        options,
        values.len(),
        |range, text| {
            for &value in &values[range] {
                push_value(text, value);
                text.push(b'\n');
            }
        },
    )
}

fn line<T: Scalar>(text: &mut Vec<u8>, row: u32, column: u32, value: T) {
    push_index(text, row);
    text.push(b' ');
    push_index(text, column);
    text.push(b' ');
    push_value(text, value);
    text.push(b'\n');
}

/// Banner, comment and sizes, then the lines of `count` items.
fn file<T: Scalar>(
    path: &Path,
    format: Format,
    symmetry: Symmetry,
    sizes: &str,
    options: &WriteOptions,
    count: usize,
    lines: impl Fn(Range<usize>, &mut Vec<u8>) + Sync,
) -> Result<()> {
    let field = if T::COMPLEX { "complex" } else { "real" };
    let mut head = format!("%%MatrixMarket matrix {} {field} {}\n", format.name(), symmetry.name());
    for comment in options.comment.lines() {
        head += &format!("% {comment}\n");
    }
    head += sizes;
    head.push('\n');
    let gzip = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    output::write(path, |output: &mut Output| -> io::Result<()> {
        if gzip {
            output.write_all(&compress(head.as_bytes())?)?;
        } else {
            output.write_all(head.as_bytes())?;
        }
        write_lines(output, gzip, count, lines)
    })
}
