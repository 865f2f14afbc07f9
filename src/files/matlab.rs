//! MATLAB's `.mat` files of version 5 (`save -v6` and `-v7` of MATLAB and Octave, `scipy.io.savemat`).
//!
//! After a header of 128 bytes a file is a sequence of elements, each with a tag (its type, its bytes) and padded to
//! eight bytes; elements of at most four bytes are stored inside their tag. An array is an element that holds others:
//! flags with the class, sizes, name, then numbers of any type; for a sparse matrix, rows and column starts precede
//! them. A compressed element is a zlib stream of one array ("MAT-File Format", The MathWorks). The fields of a
//! structure count as separate arrays, because that is how the SuiteSparse Collection stores its systems: `Problem.A`,
//! `Problem.b`.

use super::bytes::{Bytes, content};
use super::found::{Found, Numbers};
use crate::error::Result;
use flate2::read::ZlibDecoder;
use num_complex::Complex;
use std::io::Read;
use std::path::Path;

/// Bytes before the first element.
const HEADER: usize = 128;

/// Types of elements.
const ARRAY: u32 = 14;
const COMPRESSED: u32 = 15;

/// Classes of arrays: structures, sparse matrices, and the first and last of full ones.
const STRUCTURE: u32 = 2;
const SPARSE: u32 = 5;
const FULL: std::ops::RangeInclusive<u32> = 6..=15;

/// The flag of complex arrays.
const IS_COMPLEX: u32 = 0x0800;

/// The maximum depth to which structures are read.
const DEPTH: usize = 4;

/// Returns whether a file starts as one of version 5 or later.
pub(super) fn is(start: &[u8]) -> bool {
    start.starts_with(b"MATLAB ") && matches!(start.get(126..HEADER), Some(b"IM" | b"MI"))
}

/// The matrices and vectors of a file.
pub(super) struct Variables {
    all: Vec<(String, Found)>,
}

impl Variables {
    /// Reads all arrays of numbers with two dimensions.
    pub(super) fn read(path: &Path, reader: impl Read) -> Result<Self> {
        let bytes = Bytes::new(path, reader).rest()?;
        if bytes.starts_with(b"MATLAB 7.3") {
            let cause =
                "version 7.3 of MATLAB's files is HDF5, which cannot be read: save the file with '-v7'";
            return Err(content(path, 0, cause));
        }
        let swapped = bytes.get(126..HEADER) == Some(b"MI");
        let mut at = Cursor { path, bytes: &bytes[HEADER.min(bytes.len())..], at: 0, base: HEADER, swapped };
        let mut all = Vec::new();
        while at.at < at.bytes.len() {
            let from = at.base + at.at;
            match at.element()? {
                (ARRAY, data) => {
                    Cursor { bytes: data, at: 0, base: from + 8, ..at }.array("", 0, &mut all)?
                }
                (COMPRESSED, data) => {
                    let unpacked = Bytes::new(path, ZlibDecoder::new(data)).rest()?;
                    let mut inside = Cursor { path, bytes: &unpacked, at: 0, base: from, swapped };
                    if let (ARRAY, data) = inside.element()? {
                        Cursor { bytes: data, at: 0, ..inside }.array("", 0, &mut all)?;
                    }
                }
                _ => {}
            }
        }
        Ok(Self { all })
    }

    /// The number of the matrix: the array with the name A, else the first sparse one, else the first full one.
    fn matrix_number(&self) -> Option<usize> {
        let first = |is: &dyn Fn(&(String, Found)) -> bool| self.all.iter().position(is);
        first(&|(name, _)| last(name) == "A")
            .or_else(|| first(&|(_, found)| !found.is_array()))
            .or_else(|| first(&|_| true))
    }

    /// The number of the right-hand side: the array with the name b, if it is not the matrix.
    fn side_number(&self) -> Option<usize> {
        let matrix = self.matrix_number();
        let found = self.all.iter().position(|(name, _)| last(name) == "b");
        found.filter(|&number| matrix != Some(number) || self.all.len() == 1)
    }

    /// The matrix.
    pub(super) fn into_matrix(mut self) -> Option<Found> {
        self.matrix_number().map(|number| self.all.swap_remove(number).1)
    }

    /// The vectors of a file that holds some: b, else the first full array, else the matrix.
    pub(super) fn into_vectors(mut self) -> Option<Found> {
        let full = || self.all.iter().position(|(_, found)| found.is_array());
        let number = self.side_number().or_else(full).or_else(|| self.matrix_number());
        number.map(|number| self.all.swap_remove(number).1)
    }

    /// The right-hand side of a file that has a matrix too, with its name.
    pub(super) fn into_right_hand_side(mut self) -> Option<(String, Found)> {
        let number = self.side_number().filter(|&number| self.matrix_number() != Some(number));
        number.map(|number| self.all.swap_remove(number))
    }
}

/// A field's own name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A position in a sequence of elements.
struct Cursor<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
    /// The position of these bytes in the file; of a compressed array that of its stream.
    base: usize,
    /// Whether the file is big endian.
    swapped: bool,
}

impl<'a> Cursor<'a> {
    fn error(&self, cause: impl Into<String>) -> crate::Error {
        content(self.path, (self.base + self.at) as u64, cause)
    }

    fn word(&self, at: usize) -> Result<u32> {
        let Some(word) = self.bytes.get(at..).and_then(<[u8]>::first_chunk) else {
            return Err(self.error("the file ends within an array"));
        };
        Ok(if self.swapped { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) })
    }

    /// The next element: its type and its data.
    fn element(&mut self) -> Result<(u32, &'a [u8])> {
        let first = self.word(self.at)?;
        // Small elements have their size in the upper half of the type.
        let (kind, size, from) = match first >> 16 {
            0 => (first, self.word(self.at + 4)? as usize, self.at + 8),
            size => (first & 0xffff, size as usize, self.at + 4),
        };
        let Some(data) = self.bytes.get(from..from.saturating_add(size)) else {
            return Err(self.error(format!("an element of {size} bytes is longer than the file")));
        };
        let end = from + size;
        self.at = match kind {
            COMPRESSED => end,
            _ => end.next_multiple_of(8).min(self.bytes.len()),
        };
        Ok((kind, data))
    }

    /// The next element as numbers, of whatever type they are stored in.
    fn numbers(&mut self) -> Result<Vec<f64>> {
        let (kind, data) = self.element()?;
        macro_rules! read {
            ($t:ty) => {{
                let chunks = data.as_chunks::<{ size_of::<$t>() }>().0.iter();
                let one = |word: &[u8; size_of::<$t>()]| match self.swapped {
                    true => <$t>::from_be_bytes(*word) as f64,
                    false => <$t>::from_le_bytes(*word) as f64,
                };
                chunks.map(one).collect()
            }};
        }
        Ok(match kind {
            1 => read!(i8),
            2 => read!(u8),
            3 => read!(i16),
            4 => read!(u16),
            5 => read!(i32),
            6 => read!(u32),
            7 => read!(f32),
            9 => read!(f64),
            12 => read!(i64),
            13 => read!(u64),
            other => {
                return Err(
                    self.error(format!("the numbers have type {other}, but a type from 1 to 13 is expected"))
                );
            }
        })
    }

    /// Reads the `count` values of an array.
    fn values(&mut self, is_complex: bool, count: usize) -> Result<Numbers> {
        let cut = |cursor: &Self, mut numbers: Vec<f64>| {
            if numbers.len() < count {
                return Err(
                    cursor.error(format!("the file has {} numbers where {count} are needed", numbers.len()))
                );
            }
            numbers.truncate(count);
            Ok(numbers)
        };
        let real = self.numbers()?;
        let real = cut(self, real)?;
        if !is_complex {
            return Ok(Numbers::Real(real));
        }
        let imaginary = self.numbers()?;
        let imaginary = cut(self, imaginary)?;
        Ok(Numbers::Complex(real.iter().zip(imaginary).map(|(&re, im)| Complex::new(re, im)).collect()))
    }

    /// Reads an array of numbers with two dimensions, or the fields of a structure. Other arrays are skipped.
    fn array(mut self, outer: &str, depth: usize, all: &mut Vec<(String, Found)>) -> Result<()> {
        if self.bytes.is_empty() {
            // An empty field of a structure.
            return Ok(());
        }
        let (_, flags) = self.element()?;
        let Some(&flags) = flags.first_chunk() else { return Err(self.error("an array has no flags")) };
        let flags = if self.swapped { u32::from_be_bytes(flags) } else { u32::from_le_bytes(flags) };
        let (class, is_complex) = (flags & 0xff, flags & IS_COMPLEX != 0);
        let sizes = self.numbers()?;
        let own = String::from_utf8_lossy(self.element()?.1).into_owned();
        let name = match (outer, own.as_str()) {
            ("", own) => own.to_owned(),
            (outer, "") => outer.to_owned(),
            (outer, own) => format!("{outer}.{own}"),
        };
        let [rows, columns] = sizes[..] else { return Ok(()) };
        if !(0.0..=4294967296.0).contains(&rows) || !(0.0..=4294967296.0).contains(&columns) {
            return Err(self.error(format!("{name} has {rows} rows and {columns} columns")));
        }
        let (rows, columns) = (rows as u64, columns as u64);
        if class == STRUCTURE && rows * columns == 1 && depth < DEPTH {
            return self.fields(&name, depth, all);
        }
        let found = if class == SPARSE {
            self.sparse(&name, (rows, columns), is_complex)?
        } else if FULL.contains(&class) {
            let values = self.values(is_complex, rows.saturating_mul(columns) as usize)?;
            Found::array(rows, columns, values)
        } else {
            return Ok(());
        };
        all.push((name, found));
        Ok(())
    }

    /// The fields of a structure.
    fn fields(&mut self, name: &str, depth: usize, all: &mut Vec<(String, Found)>) -> Result<()> {
        let length = self.numbers()?.first().map_or(0, |&length| length as usize).max(1);
        let (_, names) = self.element()?;
        for field in names.chunks(length) {
            let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
            let field = String::from_utf8_lossy(&field[..end]).into_owned();
            let from = self.base + self.at + 8;
            let (kind, data) = self.element()?;
            if kind == ARRAY {
                let inside =
                    Cursor { path: self.path, bytes: data, at: 0, base: from, swapped: self.swapped };
                inside.array(&format!("{name}.{field}"), depth + 1, all)?;
            }
        }
        Ok(())
    }

    fn sparse(&mut self, name: &str, (rows, columns): (u64, u64), is_complex: bool) -> Result<Found> {
        let (indices, starts) = (self.numbers()?, self.numbers()?);
        let ascends = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        let count = starts.last().map_or(0, |&end| end as usize);
        if starts.len() as u64 != columns + 1 || starts[0] != 0.0 || !ascends || count > indices.len() {
            return Err(self.error(format!("the columns of {name} do not start where they should")));
        }
        let rows_of = &indices[..count];
        if let Some(bad) = rows_of.iter().find(|&&row| !(0.0..rows as f64).contains(&row)) {
            return Err(self.error(format!("{name} has an entry in row {bad} (from 0) of {rows}")));
        }
        let mut columns_of = Vec::with_capacity(count);
        for (column, pair) in starts.windows(2).enumerate() {
            columns_of.extend((pair[0] as usize..pair[1] as usize).map(|_| column as u32));
        }
        let rows_of = rows_of.iter().map(|&row| row as u32).collect();
        let values = self.values(is_complex, count)?;
        Ok(Found::coordinates((rows, columns), (rows_of, columns_of), values))
    }
}
