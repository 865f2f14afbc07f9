//! Parses the entries of one piece of text into their final arrays.

use super::fault::{Cause, Fault};
use super::header::{Field, Format, Header};
use super::number;
use super::simple::{self, Places};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::scalar::Symmetry;

/// The limits that every line is checked against.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    rows: u64,
    columns: u64,
    symmetry: Symmetry,
}

impl Shape {
    pub(super) fn new(header: &Header) -> Self {
        Self { rows: header.rows as u64, columns: header.columns as u64, symmetry: header.symmetry }
    }
}

/// Destination of entries: slices of equal length, except that an array needs no rows and columns, and a vector no
/// columns.
pub(super) struct Slots<'a, T> {
    pub(super) rows: &'a mut [u32],
    pub(super) columns: &'a mut [u32],
    pub(super) values: &'a mut [T],
}

/// A summary of the entries of one or more pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    /// Number of entries.
    pub(super) entries: usize,
    /// First and last (row, column).
    ends: Option<[(u32, u32); 2]>,
    rows_fall: bool,
    columns_fall: bool,
    /// True if there are entries above the diagonal, and below it.
    pub(super) above: bool,
    pub(super) below: bool,
    /// (entry, lines): this many lines before the entry have none.
    pub(super) skipped: Vec<(u64, u64)>,
}

#[cfg(all(unix, feature = "ranks", feature = "cli"))]
impl Summary {
    /// The summary without the skipped lines, for other processes.
    pub(super) fn to_words(&self) -> [u64; 4] {
        let of_place = |(row, column): (u32, u32)| u64::from(row) << 32 | u64::from(column);
        let flags = [self.ends.is_some(), self.rows_fall, self.columns_fall, self.above, self.below];
        let flags = flags.into_iter().enumerate().map(|(bit, flag)| u64::from(flag) << bit).sum();
        let [first, last] = self.ends.unwrap_or_default().map(of_place);
        [self.entries as u64, first, last, flags]
    }

    /// The inverse of [`Summary::to_words`].
    pub(super) fn of_words([entries, first, last, flags]: [u64; 4]) -> Self {
        let place = |word: u64| ((word >> 32) as u32, word as u32);
        let flag = |bit: u32| flags >> bit & 1 == 1;
        Self {
            entries: entries as usize,
            ends: flag(0).then(|| [place(first), place(last)]),
            rows_fall: flag(1),
            columns_fall: flag(2),
            above: flag(3),
            below: flag(4),
            skipped: Vec::new(),
        }
    }
}

impl Summary {
    /// Returns whether entries are sorted by rows, without duplicates.
    pub(super) fn by_rows(&self) -> bool {
        !self.rows_fall
    }

    /// Returns whether entries are sorted by columns, without duplicates.
    pub(super) fn by_columns(&self) -> bool {
        !self.columns_fall
    }

    /// Appends the summary of the next piece.
    pub(super) fn append(&mut self, next: Summary) {
        if let (Some([_, last]), Some([first, _])) = (self.ends, next.ends) {
            self.rows_fall |= first <= last;
            self.columns_fall |= (first.1, first.0) <= (last.1, last.0);
        }
        self.ends = match (self.ends, next.ends) {
            (Some([first, _]), Some([_, last])) => Some([first, last]),
            (some, None) | (None, some) => some,
        };
        self.rows_fall |= next.rows_fall;
        self.columns_fall |= next.columns_fall;
        self.above |= next.above;
        self.below |= next.below;
        let base = self.entries as u64;
        for (entry, lines) in next.skipped {
            note_skipped(&mut self.skipped, base + entry, lines);
        }
        self.entries += next.entries;
    }
}

fn note_skipped(skipped: &mut Vec<(u64, u64)>, entry: u64, lines: u64) {
    match skipped.last_mut() {
        Some((last, count)) if *last == entry => *count += lines,
        _ => skipped.push((entry, lines)),
    }
}

/// A parser of pieces: text with its padding, the length without it, the limits, and the destination.
pub(super) type Parser<T> = fn(&[u8], usize, Shape, Slots<'_, T>) -> Result<Summary, Fault>;

/// The parser for files with this header.
///
/// # Errors
/// If the file's values are complex and `T` is real.
pub(super) fn parser<T: Scalar>(header: &Header) -> Result<Parser<T>> {
    let indices = match header.format {
        Format::Array => 0,
        Format::Coordinate if header.vector => 1,
        Format::Coordinate => 2,
    };
    Ok(match (indices, header.field) {
        (_, Field::Complex) if !T::COMPLEX => {
            return Err(Error::Unsupported(format!(
                "the header says `complex`, but real values ({}) are expected; a pipe is always read as real",
                T::NAME
            )));
        }
        (0, Field::Real) => piece::<T, Real, 0>,
        (0, Field::Integer) => piece::<T, Integer, 0>,
        (0, Field::Complex) => piece::<T, Complex, 0>,
        (1, Field::Real) => piece::<T, Real, 1>,
        (1, Field::Integer) => piece::<T, Integer, 1>,
        (1, Field::Complex) => piece::<T, Complex, 1>,
        (1, Field::Pattern) => piece::<T, Pattern, 1>,
        (_, Field::Real) => piece::<T, Real, 2>,
        (_, Field::Integer) => piece::<T, Integer, 2>,
        (_, Field::Complex) => piece::<T, Complex, 2>,
        (_, Field::Pattern) => piece::<T, Pattern, 2>,
    })
}

/// Reads the value of a line.
trait ReadValue {
    /// The value at `at`, which is moved past it.
    fn value<T: Scalar>(text: &[u8], at: &mut usize) -> Result<T, Cause>;

    /// Row, column, value and the start of the next line, if the line that starts at `at` has the simple form.
    #[inline(always)]
    fn simple<T: Scalar>(_text: &[u8], _at: usize) -> Option<(u64, u64, T, usize)> {
        None
    }
}

struct Real;
struct Integer;
struct Complex;
struct Pattern;

impl ReadValue for Real {
    #[inline(always)]
    fn value<T: Scalar>(text: &[u8], at: &mut usize) -> Result<T, Cause> {
        number::real(text, at).map(T::from_real)
    }

    #[inline(always)]
    fn simple<T: Scalar>(text: &[u8], at: usize) -> Option<(u64, u64, T, usize)> {
        let Places { ends: [first, second, third], next } = simple::places::<3>(text, at)?;
        let row = simple::short(text, at, first)?;
        let column = simple::short(text, first + 1, second)?;
        Some((row, column, T::from_real(simple::real(text, second + 1, third)?), next))
    }
}

impl ReadValue for Integer {
    #[inline(always)]
    fn value<T: Scalar>(text: &[u8], at: &mut usize) -> Result<T, Cause> {
        number::integer(text, at).map(T::from_real)
    }
}

impl ReadValue for Complex {
    #[inline(always)]
    fn value<T: Scalar>(text: &[u8], at: &mut usize) -> Result<T, Cause> {
        let re: T::Real = number::real(text, at)?;
        *at = skip_blanks(text, *at);
        if text[*at] == b'\n' {
            return Err(Cause::Missing("imaginary part"));
        }
        let im: T::Real = number::real(text, at)?;
        Ok(T::from_parts(crate::scalar::Real::to_f64(re), crate::scalar::Real::to_f64(im))
            .unwrap_or_default())
    }
}

impl ReadValue for Pattern {
    #[inline(always)]
    fn value<T: Scalar>(text: &[u8], at: &mut usize) -> Result<T, Cause> {
        // Some writers add a value of 1 to the entries of a pattern.
        match text[*at] {
            b'\n' | b'%' => Ok(T::one()),
            b'1' if number::is_end(text[*at + 1]) => {
                *at += 1;
                Ok(T::one())
            }
            _ => Err(Cause::PatternValue),
        }
    }

    #[inline(always)]
    fn simple<T: Scalar>(text: &[u8], at: usize) -> Option<(u64, u64, T, usize)> {
        let Places { ends: [first, second], next } = simple::places::<2>(text, at)?;
        Some((simple::short(text, at, first)?, simple::short(text, first + 1, second)?, T::one(), next))
    }
}

#[inline(always)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while number::is_blank(text[at]) {
        at += 1;
    }
    at
}

#[cold]
fn line_end(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().position(|&b| b == b'\n').unwrap_or(text.len() - at)
}

/// A one-based index of at most `limit`, converted to zero-based.
#[inline(always)]
fn index(text: &[u8], at: &mut usize, what: &'static str, limit: u64) -> Result<u32, Fault> {
    *at = skip_blanks(text, *at);
    let start = *at;
    let fault = |cause| Err(Fault { at: start, cause });
    match number::unsigned(text, at) {
        Some(index) if number::is_end(text[*at]) => {
            if index.wrapping_sub(1) < limit {
                Ok((index - 1) as u32)
            } else if index == 0 {
                fault(Cause::IndexZero(what))
            } else {
                fault(Cause::IndexOutside(what, limit))
            }
        }
        _ if text[start] == b'\n' => fault(Cause::Missing(what)),
        _ => match text[start..].iter().position(|&b| number::is_end(b)) {
            Some(n) if text[start..start + n].iter().all(u8::is_ascii_digit) => {
                fault(Cause::IndexOutside(what, limit))
            }
            _ => fault(Cause::NotAnIndex(what)),
        },
    }
}

/// Parses whole lines with `INDICES` indices each.
fn piece<T: Scalar, V: ReadValue, const INDICES: usize>(
    text: &[u8],
    end: usize,
    shape: Shape,
    slots: Slots<'_, T>,
) -> Result<Summary, Fault> {
    let room = slots.values.len();
    let Slots { rows, columns, values } = slots;
    let mut summary = Summary::default();
    let mut count = 0;
    let mut last = (0, 0);
    let mut at = 0;
    while at < end {
        let (row, column, value);
        let start = at;
        match if INDICES == 2 { V::simple::<T>(text, at) } else { None } {
            Some((i, j, v, next))
                if i.wrapping_sub(1) < shape.rows && j.wrapping_sub(1) < shape.columns && count < room =>
            {
                (row, column, value, at) = ((i - 1) as u32, (j - 1) as u32, v, next);
            }
            _ => match general::<T, V, INDICES>(text, &mut at, shape, count < room)? {
                Some(entry) => (row, column, value) = entry,
                None => {
                    note_skipped(&mut summary.skipped, count as u64, 1);
                    continue;
                }
            },
        }
        values[count] = value;
        if INDICES > 0 {
            rows[count] = row;
            if count == 0 {
                summary.ends = Some([(row, column); 2]);
            } else {
                summary.rows_fall |= (row, column) <= last;
                summary.columns_fall |= (column, row) <= (last.1, last.0);
            }
            last = (row, column);
        }
        if INDICES > 1 {
            columns[count] = column;
            if shape.symmetry != Symmetry::General {
                summary.above |= column > row;
                summary.below |= column < row;
                if row == column {
                    diagonal(shape.symmetry, value).map_err(|cause| Fault { at: start, cause })?;
                }
            }
        }
        count += 1;
    }
    if let Some(ends) = &mut summary.ends {
        ends[1] = last;
    }
    summary.entries = count;
    Ok(summary)
}

/// Parses the line at `at`, and moves to the next one; `None` for a line without an entry.
fn general<T: Scalar, V: ReadValue, const INDICES: usize>(
    text: &[u8],
    at: &mut usize,
    shape: Shape,
    room: bool,
) -> Result<Option<(u32, u32, T)>, Fault> {
    *at = skip_blanks(text, *at);
    if text[*at] == b'\n' || text[*at] == b'%' {
        *at = line_end(text, *at) + 1;
        return Ok(None);
    }
    if !room {
        return Err(Fault { at: *at, cause: Cause::Surplus(0) });
    }
    let row = if INDICES > 0 { index(text, at, "row", shape.rows)? } else { 0 };
    let column = if INDICES > 1 { index(text, at, "column", shape.columns)? } else { 0 };
    *at = skip_blanks(text, *at);
    let value: T = V::value(text, at).map_err(|cause| Fault { at: *at, cause })?;
    *at = skip_blanks(text, *at);
    if text[*at] != b'\n' {
        if text[*at] != b'%' {
            return Err(Fault { at: *at, cause: Cause::Trailing });
        }
        *at = line_end(text, *at);
    }
    *at += 1;
    Ok(Some((row, column, value)))
}

/// The reason why a value on the diagonal contradicts the symmetry, if it does.
pub(crate) fn against_symmetry<T: Scalar>(symmetry: Symmetry, value: T) -> Option<String> {
    diagonal(symmetry, value).err().map(|cause| cause.message("").into_owned())
}

/// Checks a value on the diagonal against the symmetry.
pub(super) fn diagonal<T: Scalar>(symmetry: Symmetry, value: T) -> Result<(), Cause> {
    use num_traits::Zero;
    match symmetry {
        Symmetry::SkewSymmetric if !value.is_zero() => Err(Cause::SkewDiagonal),
        Symmetry::Hermitian if !value.im().is_zero() => Err(Cause::HermitianDiagonal),
        _ => Ok(()),
    }
}
