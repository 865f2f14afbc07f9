//! Systems as AMGX writes them: Matrix Market coordinates with a line `%%AMGX` of words after the banner, and further
//! numbers behind the entries. By example, [4 1; 0 4] x = (1, 2):
//!
//! ```text
//! %%MatrixMarket matrix coordinate real general
//! %%AMGX diagonal rhs             <- also: solution, sorted, base0, and one or two sizes of blocks; or %%NVAMG
//! 2 2 1                           <- rows, columns, entries, the diagonal not counted
//! 1 2 1.0
//! 4.0                             <- diagonal: one number a row
//! 4.0
//! 1.0                             <- rhs: b, behind a line with its length if the program was not AMGX
//! 2.0
//! ```
//!
//! (AMGX's `ReadMatrixMarket`.) Entries are scalars even if block sizes are given. Only a separate diagonal would then
//! consist of blocks, which is refused. A solution is AMGX's starting vector, and is not read.

use super::found::{Found, Numbers};
use crate::error::{Error, Result};
use crate::market::{Field, Format, Header, Symmetry};
use num_complex::Complex;
use std::io::Read;
use std::path::Path;

/// Returns whether one of the first lines names the format.
pub(super) fn is(start: &[u8]) -> bool {
    let mut lines = start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let banner = lines.next().is_some_and(|line| line.to_ascii_lowercase().starts_with(b"%%matrixmarket"));
    banner && lines.take_while(|line| line.is_empty() || line[0] == b'%').any(|line| named(line).is_some())
}

/// The words after the name of the format, in lower case.
fn named(line: &[u8]) -> Option<String> {
    let lower = String::from_utf8_lossy(line).to_ascii_lowercase();
    let words = lower.strip_prefix("%%amgx").or_else(|| lower.strip_prefix("%%nvamg"))?;
    words.chars().next().is_none_or(|first| first.is_ascii_whitespace()).then(|| words.to_owned())
}

/// A matrix, and b if the file has one.
pub(super) struct System {
    pub(super) matrix: Found,
    pub(super) right_hand_side: Option<Found>,
}

/// Reads a system.
///
/// # Errors
/// The line, and what is wrong with it.
pub(super) fn read(path: &Path, mut reader: impl Read) -> Result<System> {
    let mut text = String::new();
    reader.read_to_string(&mut text).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let mut numbers = Words { path, lines: text.lines().enumerate(), line: 0, words: Vec::new() };
    let (mut words, mut field, mut symmetry) = (String::new(), Field::Real, Symmetry::General);
    let sizes = loop {
        let Some(line) = numbers.next_line() else {
            return Err(numbers.error("the file ends before the sizes"));
        };
        if let Some(more) = named(line.as_bytes()) {
            words += &more;
        } else if line.starts_with("%%") {
            let banner = line.to_ascii_lowercase();
            let mut said = banner.split_ascii_whitespace().skip(1);
            if said.next() != Some("matrix") || said.next() != Some("coordinate") {
                return Err(numbers
                    .error("AMGX's systems must begin with a matrix in coordinates (`matrix coordinate`)"));
            }
            field = match said.next() {
                Some("real" | "double" | "integer") => Field::Real,
                Some("complex") => Field::Complex,
                _ => return Err(numbers.error("the field is neither real nor complex")),
            };
            symmetry = match said.next() {
                Some("general") => Symmetry::General,
                Some("symmetric") => Symmetry::Symmetric,
                Some("skew-symmetric") => Symmetry::SkewSymmetric,
                Some("hermitian") if field == Field::Complex => Symmetry::Hermitian,
                Some("hermitian") => Symmetry::Symmetric,
                _ => return Err(numbers.error("unknown symmetry")),
            };
        } else if !line.is_empty() && !line.starts_with('%') {
            break line.to_owned();
        }
    };
    let sizes: Option<Vec<u64>> = sizes.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let Some(&[rows, columns, entries]) = sizes.as_deref() else {
        return Err(numbers.error("the line of sizes needs rows, columns and entries"));
    };
    if rows.max(columns) > 1 << 32 {
        return Err(numbers.error("there are too many rows or columns: indices have 32 bits"));
    }
    let has = |what: &str| words.split_ascii_whitespace().any(|word| word == what);
    let in_blocks = words.split_ascii_whitespace().any(|word| word.parse().is_ok_and(|size: u64| size > 1));
    if has("diagonal") && (in_blocks || rows != columns) {
        return Err(numbers.error("a separate diagonal is supported only for a square matrix without blocks"));
    }
    let base = if has("base0") { 0 } else { 1 };
    let (mut is, mut js, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..entries {
        for (list, size) in [(&mut is, rows), (&mut js, columns)] {
            let index = numbers.whole()?;
            match index.checked_sub(base).filter(|&index| index < size) {
                Some(index) => list.push(index as u32),
                None => return Err(numbers.error(format!("index {index} is outside of the matrix"))),
            }
        }
        values.push(numbers.value(field)?);
    }
    if has("diagonal") {
        for place in 0..rows {
            is.push(place as u32);
            js.push(place as u32);
            values.push(numbers.value(field)?);
        }
    }
    let right_hand_side = match has("rhs") {
        true => {
            numbers.begin_vectors(rows, field, 1 + u64::from(has("solution")))?;
            let b = (0..rows).map(|_| numbers.value(field)).collect::<Result<Vec<_>>>()?;
            Some(Found::array(rows, 1, typed(field, b)))
        }
        false => None,
    };
    let size = (rows as usize, columns as usize);
    let header = Header::new(Format::Coordinate, field, symmetry, size, is.len() as u64);
    let mut matrix = Found { header, rows: is, columns: js, values: typed(field, values) };
    matrix.keep_symmetry().map_err(|(_, cause)| numbers.error(cause))?;
    Ok(System { matrix, right_hand_side })
}

fn typed(field: Field, values: Vec<Complex<f64>>) -> Numbers {
    match field {
        Field::Complex => Numbers::Complex(values),
        _ => Numbers::Real(values.iter().map(|value| value.re).collect()),
    }
}

/// The words of a text, with the line of the last one.
struct Words<'a, L> {
    path: &'a Path,
    lines: L,
    line: usize,
    /// Words of the current line, last first.
    words: Vec<&'a str>,
}

impl<'a, L: Iterator<Item = (usize, &'a str)>> Words<'a, L> {
    fn error(&self, cause: impl Into<String>) -> Error {
        Error::Parse { path: self.path.to_owned(), line: self.line as u64, cause: cause.into() }
    }

    fn next_line(&mut self) -> Option<&'a str> {
        let (number, line) = self.lines.next()?;
        self.line = number + 1;
        Some(line.trim())
    }

    fn word(&mut self) -> Result<&'a str> {
        while self.words.is_empty() {
            match self.next_line() {
                Some(line) if line.starts_with('%') => {}
                Some(line) => self.words = line.split_ascii_whitespace().rev().collect(),
                None => return Err(self.error("the file ends before its last number")),
            }
        }
        Ok(self.words.pop().unwrap_or_default())
    }

    /// Goes to the first of the vectors that end the file. Some programs write the length before each.
    fn begin_vectors(&mut self, rows: u64, field: Field, vectors: u64) -> Result<()> {
        let mut left = std::mem::take(&mut self.words);
        left.reverse();
        while let Some(line) = self.next_line() {
            if !line.starts_with('%') {
                left.extend(line.split_ascii_whitespace());
            }
        }
        let needed = vectors * rows * if field == Field::Complex { 2 } else { 1 };
        let count = left.len() as u64;
        let with_lengths = count == needed + vectors && left[0].parse() == Ok(rows);
        if count != needed && !with_lengths {
            return Err(self.error(format!("{count} numbers behind the matrix: {needed} are needed")));
        }
        self.words = left.into_iter().skip(usize::from(with_lengths)).rev().collect();
        Ok(())
    }

    fn whole(&mut self) -> Result<u64> {
        let word = self.word()?;
        word.parse().map_err(|_| self.error(format!("`{word}` is not a whole number")))
    }

    fn real(&mut self) -> Result<f64> {
        let word = self.word()?;
        word.parse().map_err(|_| self.error(format!("`{word}` is not a number")))
    }

    fn value(&mut self, field: Field) -> Result<Complex<f64>> {
        let re = self.real()?;
        Ok(Complex::new(re, if field == Field::Complex { self.real()? } else { 0.0 }))
    }
}
