//! Plain numbers as text, one row per line, as `numpy.savetxt` and spreadsheets write them. They are read as vectors,
//! not as matrices, because three columns of numbers could also be the coordinates of a matrix.

use super::found::{Found, Numbers};
use crate::error::{Error, Result};
use std::io::Read;
use std::path::Path;

/// The maximum number of bytes that [`is`] gets.
const LOOKED_AT: usize = 512;

/// The reason for taking no matrix from such a file.
pub(super) const NO_MATRIX: &str = "not a Matrix Market file, which starts with `%%MatrixMarket matrix`: a file of \
    plain numbers can only be a right-hand side";

/// Words of a line, before a comment.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.split(|&byte| byte == b'#').next().unwrap_or_default();
    let between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';');
    line.split(between).filter(|word| !word.is_empty())
}

/// Parses a number, which may be infinite and may have an exponent as in Fortran.
fn number(word: &[u8]) -> Option<f64> {
    if !word.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let text = std::str::from_utf8(word).ok()?;
    text.parse().or_else(|_| text.replace(['d', 'D'], "e").parse()).ok()
}

/// Returns whether the first line that is no comment holds numbers and nothing else.
pub(super) fn is(start: &[u8]) -> bool {
    let lines = start.split(|&byte| byte == b'\n');
    let Some(line) = lines.into_iter().find(|line| words(line).next().is_some()) else { return false };
    let mut all: Vec<&[u8]> = words(line).collect();
    // The last word may be cut.
    if start.len() >= LOOKED_AT && line.as_ptr_range().end == start.as_ptr_range().end && all.len() > 1 {
        all.pop();
    }
    all.into_iter().all(|word| number(word).is_some())
}

/// Reads a table; one line of several numbers is a vector.
///
/// # Errors
/// The line, and what is wrong with it.
pub(super) fn read(path: &Path, mut reader: impl Read) -> Result<Found> {
    let mut text = Vec::new();
    reader.read_to_end(&mut text).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let error =
        |line: usize, cause: String| Error::Parse { path: path.to_owned(), line: line as u64 + 1, cause };
    let (mut by_rows, mut rows, mut columns) = (Vec::new(), 0, 0);
    for (place, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let before = by_rows.len();
        for word in words(line) {
            let Some(value) = number(word) else {
                let word = String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
                return Err(error(place, format!("`{word}` is not a number")));
            };
            by_rows.push(value);
        }
        let found = by_rows.len() - before;
        if found == 0 {
            continue;
        }
        if rows > 0 && found != columns {
            return Err(error(
                place,
                format!("this line has {found} numbers, but the lines before it have {columns}"),
            ));
        }
        (rows, columns) = (rows + 1, found);
    }
    if rows == 1 {
        (rows, columns) = (columns, 1);
    }
    let by_columns = (0..columns).flat_map(|j| (0..rows).map(move |i| i * columns + j));
    let values = by_columns.map(|place| by_rows[place]).collect();
    Ok(Found::array(rows as u64, columns as u64, Numbers::Real(values)))
}
