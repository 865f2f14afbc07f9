//! Rutherford-Boeing and Harwell-Boeing files: compressed sparse columns in Fortran formats.
//!
//! The format (Duff, Grimes, Lewis: "Sparse matrix test problems", ACM TOMS 15, 1989; the same authors: "The
//! Rutherford-Boeing sparse matrix collection", 1997), by example, the symmetric matrix [4 -1 0; -1 4 0; 0 0 2]:
//!
//! ```text
//! A small matrix                                                          small      <- title, key
//!              3             1             1             1             0             <- lines: all, then each part
//! RSA                        3             3             4             0             <- type, rows, columns, entries
//! (4I3)           (4I3)           (4E10.2)            (4E10.2)                       <- how lines are cut
//!   1  3  4  5                                                                       <- where each column starts
//!   1  2  2  3                                                                       <- rows
//!   4.00E+00 -1.00E+00  4.00E+00  2.00E+00                                           <- values
//! ```
//!
//! The type: Real, Complex, Integer or Pattern; Symmetric, Hermitian, skew (Z), Unsymmetric or Rectangular; Assembled.
//! Harwell-Boeing files may also have right-hand sides, described in a fifth line of the header.

use super::cards::{Cards, Cut, real, whole};
use super::found::{Found, Numbers};
use crate::error::Result;
use crate::market::{Field, Format, Header};
use crate::scalar::Symmetry;
use num_complex::Complex;
use std::io::Read;
use std::path::Path;

/// Returns whether the second to fourth line of a file are those of such a header.
pub(super) fn is(start: &[u8]) -> bool {
    let mut lines = start.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).skip(1);
    let (Some(counts), Some(kind), Some(formats)) = (lines.next(), lines.next(), lines.next()) else {
        return false;
    };
    let numbers = |text: &[u8]| {
        let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.all(|word| word.iter().all(u8::is_ascii_digit))
    };
    !counts.is_empty()
        && numbers(counts)
        && kind.len() > 3
        && b"rciqp".contains(&kind[0].to_ascii_lowercase())
        && b"suhzr".contains(&kind[1].to_ascii_lowercase())
        && b"ae".contains(&kind[2].to_ascii_lowercase())
        && numbers(&kind[3..])
        && formats.starts_with(b"(")
}

/// The content of the header.
struct Head {
    field: Field,
    symmetry: Symmetry,
    rows: u64,
    columns: u64,
    entries: u64,
    /// The formats of pointers, indices, values and right-hand sides.
    cuts: Vec<String>,
    /// The line with the formats.
    formats: u64,
    /// Type and number of the right-hand sides, and the number of indices of sparse ones.
    right: Option<(String, u64, u64)>,
}

impl Head {
    fn of<R: Read>(cards: &mut Cards<R>) -> Result<Self> {
        cards.next("the title")?;
        let lines = integers(cards, "the numbers of lines")?;
        let line = text(cards, "the type of the matrix")?;
        let Some((name, sizes)) = line.split_at_checked(3).filter(|(name, _)| name.is_ascii()) else {
            return Err(cards.error("a matrix type of three letters is expected, such as RUA"));
        };
        let kind = name.to_ascii_lowercase().into_bytes();
        let sizes = words(cards, sizes)?;
        let refuse = |cause: &str| Err(cards.error(format!("matrix type `{name}`: {cause}")));
        let field = match kind[0] {
            b'r' => Field::Real,
            b'c' => Field::Complex,
            b'i' => Field::Integer,
            b'p' => Field::Pattern,
            b'q' => return refuse("its values are in another file, which is not read"),
            _ => return refuse("the first letter is one of R, C, I and P"),
        };
        let symmetry = match kind[1] {
            b's' => Symmetry::Symmetric,
            b'h' if field == Field::Complex => Symmetry::Hermitian,
            // The conjugate of a real number is itself.
            b'h' => Symmetry::Symmetric,
            b'z' => Symmetry::SkewSymmetric,
            b'u' | b'r' => Symmetry::General,
            _ => return refuse("the second letter is one of S, H, Z, U and R"),
        };
        match kind[2] {
            b'a' => {}
            b'e' => return refuse("elemental matrices cannot be read: assemble the matrix first"),
            _ => return refuse("the third letter is A (assembled) or E (elemental)"),
        }
        if kind[0] == b'p' && symmetry == Symmetry::SkewSymmetric {
            return refuse("a pattern has no values, so it cannot be skew-symmetric");
        }
        let [rows, columns, entries, ..] = sizes[..] else {
            return Err(cards.error("rows, columns and entries are expected after the type"));
        };
        if rows > 1 << 32 || columns > 1 << 32 {
            return Err(cards.error(format!("{rows} x {columns} is too large: indices have 32 bits")));
        }
        if symmetry != Symmetry::General && rows != columns {
            let name = symmetry.name();
            return Err(cards.error(format!("a {name} matrix must be square, not {rows} x {columns}")));
        }
        let line = text(cards, "the formats")?;
        let cuts: Vec<String> = parts(&line);
        let formats = cards.next_line() - 1;
        let mut right = None;
        if lines.get(4).is_some_and(|&count| count > 0) {
            let line = text(cards, "the line that describes right-hand sides")?;
            let (kind, rest) = line.split_at_checked(3).unwrap_or((&line, ""));
            let sizes = words(cards, rest)?;
            let count =
                *sizes.first().ok_or_else(|| cards.error("the number of right-hand sides is missing"))?;
            right = Some((kind.to_ascii_uppercase(), count, sizes.get(1).copied().unwrap_or(0)));
        }
        Ok(Self { field, symmetry, rows, columns, entries, cuts, formats, right })
    }

    /// The fields of a line in part `part` of the file.
    fn cut<R: Read>(&self, cards: &Cards<R>, part: usize, what: &str) -> Result<Cut> {
        let format = self.cuts.get(part).map_or("", String::as_str);
        Cut::of(format).ok_or_else(|| {
            let cause =
                format!("`{format}` is no format for {what}: one such as (26I3) or (5E15.8) is expected");
            cards.error_at(self.formats, cause)
        })
    }

    fn header(&self) -> Header {
        let size = (self.rows as usize, self.columns as usize);
        Header::new(Format::Coordinate, self.field, self.symmetry, size, self.entries)
    }

    /// Reads `count` values, real or complex like the matrix.
    fn values<R: Read>(&self, cards: &mut Cards<R>, part: usize, count: u64, what: &str) -> Result<Numbers> {
        let cut = self.cut(cards, part, what)?;
        if self.field != Field::Complex {
            return Ok(Numbers::Real(cards.numbers(&cut, count, what, real)?));
        }
        let parts = cards.numbers(&cut, count.saturating_mul(2), "real and imaginary parts", real)?;
        Ok(Numbers::Complex(parts.chunks_exact(2).map(|z| Complex::new(z[0], z[1])).collect()))
    }

    /// Reads compressed columns: the row and column of each entry.
    fn places<R: Read>(&self, cards: &mut Cards<R>, columns: u64, entries: u64) -> Result<Places> {
        let cut = self.cut(cards, 0, "pointers")?;
        let first = cards.next_line();
        let pointers = cards.numbers(&cut, columns + 1, "column pointers", |word, _| whole(word))?;
        let ascend = pointers.windows(2).all(|pair| pair[0] <= pair[1]);
        let ends = (pointers.first().copied(), pointers.last().copied());
        if !ascend || ends != (Some(1), i64::try_from(entries + 1).ok()) {
            let cause = format!(
                "column pointers must ascend from 1 to {}, the number of entries and one",
                entries + 1
            );
            return Err(cards.error_at(first, cause));
        }
        let cut = self.cut(cards, 1, "indices")?;
        let line = cards.next_line();
        let rows = self.rows;
        let row = |word: &str, _| match whole(word)? {
            row if row >= 1 && row as u64 <= rows => Ok((row - 1) as u32),
            row => Err(format!("row index {row} is outside of a matrix with {rows} rows (from 1)")),
        };
        let list = cards.numbers(&cut, entries, "row indices", row)?;
        let lengths = pointers.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let columns = lengths.enumerate().flat_map(|(j, count)| std::iter::repeat_n(j as u32, count));
        Ok(Places { columns: columns.collect(), rows: list, line, a_line: cut.numbers() })
    }
}

/// The positions of entries, in the matrix and in the file.
struct Places {
    rows: Vec<u32>,
    columns: Vec<u32>,
    /// The line of the first row index.
    line: u64,
    /// Row indices in a line.
    a_line: Option<usize>,
}

fn text<R: Read>(cards: &mut Cards<R>, what: &str) -> Result<String> {
    Ok(cards.next(what)?.trim_ascii_start().iter().map(|&b| char::from(b)).collect())
}

fn words<R: Read>(cards: &Cards<R>, text: &str) -> Result<Vec<u64>> {
    let number = |word: &str| {
        let cause = || format!("`{}` is not a whole number of at least 0", word.escape_default());
        word.parse().map_err(|_| cards.error(cause()))
    };
    text.split_ascii_whitespace().map(number).collect()
}

fn integers<R: Read>(cards: &mut Cards<R>, what: &str) -> Result<Vec<u64>> {
    let line = text(cards, what)?;
    words(cards, &line)
}

/// Texts in parentheses, including the parentheses.
fn parts(line: &str) -> Vec<String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, byte) in line.bytes().enumerate() {
        if byte == b'(' {
            if depth == 0 {
                start = at;
            }
            depth += 1;
        } else if byte == b')' && depth > 0 {
            depth -= 1;
            if depth == 0 {
                parts.push(line[start..=at].to_owned());
            }
        }
    }
    parts
}

/// Reads the matrix.
pub(super) fn read(path: &Path, reader: impl Read, header_only: bool) -> Result<Found> {
    let mut cards = Cards::new(path, reader);
    let head = Head::of(&mut cards)?;
    if header_only {
        let values =
            if head.field == Field::Complex { Numbers::Complex(vec![]) } else { Numbers::Real(vec![]) };
        return Ok(Found { header: head.header(), rows: vec![], columns: vec![], values });
    }
    let places = head.places(&mut cards, head.columns, head.entries)?;
    let values = match head.field {
        Field::Pattern => Numbers::Real(vec![1.0; places.rows.len()]),
        _ => head.values(&mut cards, 2, head.entries, "values")?,
    };
    let Places { rows, columns, line, a_line } = places;
    let mut found = Found { header: head.header(), rows, columns, values };
    found
        .keep_symmetry()
        .map_err(|(k, cause)| cards.error_at(line + a_line.map_or(0, |count| (k / count) as u64), cause))?;
    Ok(found)
}

/// Reads the right-hand side after the matrix, if there is one.
pub(super) fn right_hand_side(path: &Path, reader: impl Read, header_only: bool) -> Result<Option<Found>> {
    let mut cards = Cards::new(path, reader);
    let head = Head::of(&mut cards)?;
    let Some((kind, count, entries)) = head.right.clone() else { return Ok(None) };
    let complex = head.field == Field::Complex;
    let full = kind.starts_with('F');
    if !full && !kind.starts_with('M') {
        let cause = format!(
            "right-hand sides have type `{}`, but only F (full) and M (as the matrix) are read",
            kind.trim()
        );
        return Err(cards.error(cause));
    }
    if header_only {
        let values = if complex { Numbers::Complex(vec![]) } else { Numbers::Real(vec![]) };
        return Ok(Some(Found::array(head.rows, count, values)));
    }
    head.places(&mut cards, head.columns, head.entries)?;
    if head.field != Field::Pattern {
        head.values(&mut cards, 2, head.entries, "values")?;
    }
    let what = "values of right-hand sides";
    if full {
        let values = head.values(&mut cards, 3, head.rows.saturating_mul(count), what)?;
        return Ok(Some(Found::array(head.rows, count, values)));
    }
    let Places { rows, columns, .. } = head.places(&mut cards, count, entries)?;
    let values = head.values(&mut cards, 3, entries, what)?;
    Ok(Some(Found::coordinates((head.rows, count), (rows, columns), values)))
}
