//! NumPy's `.npy`: a magic number, a header in the form of a Python dictionary, and an array.

use super::bytes::Bytes;
use super::numbers::Type;
use super::source::{Source, Stretch};
use super::stored::{Entries, Stored};
use crate::backend::{Backend, Host};
use crate::error::{Error, Result};
use crate::market::{Field, Format, Header, Symmetry};
use crate::output;
use crate::parallel::prelude::*;
use crate::scalar::{Real, Scalar};
use std::io::{self, Read, Write};
use std::path::Path;

/// Values that are written at once.
pub(super) const BLOCK: usize = 1 << 12;

/// The content of the header.
pub(super) struct Head {
    pub(super) kind: Type,
    pub(super) by_columns: bool,
    pub(super) shape: Vec<u64>,
}

impl Head {
    pub(super) fn of<R: Read>(bytes: &mut Bytes<R>) -> Result<Self> {
        let magic: [u8; 8] = bytes.take("the magic of an npy file")?;
        if magic[..6] != *b"\x93NUMPY" {
            return Err(bytes.error("this is not an npy array"));
        }
        let length = match magic[6] {
            1 => u64::from(u16::from_le_bytes(bytes.take("the npy header")?)),
            _ => u64::from(u32::from_le_bytes(bytes.take("the npy header")?)),
        };
        if length > 1 << 16 {
            return Err(
                bytes.error(format!("the npy header has {length} bytes, but at most 65536 are possible"))
            );
        }
        let text = bytes.array(length, 1, "bytes of the npy header", |b| b[0])?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let after = |key: &str| {
            let found = text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
            found.ok_or_else(|| bytes.error(format!("the npy header has no `{key}`")))
        };
        let by_columns = after("fortran_order")?.starts_with("True");
        let shape = after("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let sizes = shape.map_or("?", |(inside, _)| inside).split(',').map(str::trim);
        let shape: Option<Vec<u64>> =
            sizes.filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect();
        let shape = shape.ok_or_else(|| bytes.error("the npy header's shape is no list of numbers"))?;
        let descr = after("descr")?;
        let name = descr
            .strip_prefix('\'')
            .and_then(|rest| rest.split_once('\''))
            .map_or("a record", |(name, _)| name);
        let refuse = || {
            let what = if name.contains('O') {
                "Python objects (pickle) are never loaded"
            } else {
                "numbers are expected"
            };
            bytes.error(format!("the array has dtype `{name}`: {what}"))
        };
        let (order, letter, size) = match name.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), letter, ..] => {
                (*order, *letter, name.get(2..).and_then(|size| size.parse().ok()).ok_or_else(refuse)?)
            }
            _ => return Err(refuse()),
        };
        let known = match letter {
            b'f' => matches!(size, 4 | 8),
            b'c' => matches!(size, 8 | 16),
            b'i' | b'u' => matches!(size, 1 | 2 | 4 | 8),
            b'b' => size == 1,
            b'S' | b'U' => size > 0 && size < 64,
            _ => false,
        };
        if !known {
            return Err(refuse());
        }
        let kind = Type { letter, size, big: order == b'>' };
        Ok(Self { kind, by_columns, shape })
    }

    pub(super) fn count(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &n| product.saturating_mul(n))
    }

    /// The header of a vector or full matrix, or the reason why the array is neither.
    fn array(&self) -> Result<Header, String> {
        let (rows, columns) = match self.shape[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => {
                return Err(format!(
                    "the array has {} dimensions, but one or two are expected",
                    self.shape.len()
                ));
            }
        };
        if rows > 1 << 32 || columns > 1 << 32 {
            return Err(format!("{rows} x {columns}: indices have 32 bits"));
        }
        Ok(array_header(self.kind.field(), rows, columns))
    }
}

/// Reads the header of a file's array.
pub(super) fn header(path: &Path, reader: impl Read) -> Result<Header> {
    let mut bytes = Bytes::new(path, reader);
    let head = Head::of(&mut bytes)?;
    head.array().map_err(|cause| bytes.error(cause))
}

/// An array in a file.
pub(super) struct Array {
    pub(super) head: Head,
    source: Source,
    /// The offset of its numbers.
    at: u64,
}

impl Array {
    /// Reads the header.
    pub(super) fn open(source: Source) -> Result<Self> {
        let mut bytes = source.bytes();
        let head = Head::of(&mut bytes)?;
        let at = bytes.at;
        drop(bytes);
        Ok(Self { head, source, at })
    }

    fn error(&self, cause: impl Into<String>) -> Error {
        self.source.error(self.at, cause)
    }

    /// All its numbers, provided that the file has neither fewer nor more.
    pub(super) fn stretch(&self, what: &str) -> Result<Stretch<'_>> {
        if self.head.kind.is_text() {
            return Err(self.error("the array holds text, but numbers are expected"));
        }
        let stretch = Stretch::new(&self.source, self.at, self.head.count(), self.head.kind, what)?;
        if stretch.end() < self.source.length() {
            return Err(self.source.error(stretch.end(), format!("the file goes on after the {what}")));
        }
        Ok(stretch)
    }

    /// A short text, of bytes or of four-byte characters.
    pub(super) fn word(&self) -> Result<String> {
        let Type { letter, size, .. } = self.head.kind;
        if self.head.count() != 1 || !self.head.kind.is_text() {
            return Err(self.error("the array must hold one word"));
        }
        let width = if letter == b'U' { 4 * size } else { size };
        let bytes = Type { letter: b'u', size: 1, big: false };
        let text = Stretch::new(&self.source, self.at, width as u64, bytes, "bytes of the word")?.text()?;
        Ok(text.into_iter().filter(|&byte| byte != 0).map(char::from).collect())
    }

    /// The header of a full array.
    pub(super) fn header(&self) -> Result<Header> {
        self.head.array().map_err(|cause| self.error(cause))
    }

    /// Reads the full array.
    pub(super) fn read<T: Scalar>(&self, path: &Path) -> Result<Stored<T>> {
        if self.head.kind.field() == Field::Complex && !T::COMPLEX {
            return Err(super::complex(path));
        }
        let header = self.header()?;
        let numbers = self.stretch("values")?;
        let values = numbers.finite(numbers.values()?, numbers.count)?;
        let values = if self.head.by_columns { values } else { by_columns(&header, values)? };
        Ok(Stored::new(header, Entries::Array(values)))
    }
}

/// The header of a full array.
pub(super) fn array_header(field: Field, rows: u64, columns: u64) -> Header {
    let size = (rows as usize, columns as usize);
    Header::new(Format::Array, field, Symmetry::General, size, rows.saturating_mul(columns))
}

/// Converts values from row-major to column-major order.
pub(super) fn by_columns<T: Scalar>(header: &Header, values: Vec<T>) -> Result<Vec<T>> {
    /// Columns that are filled at the same time: neighbours in memory within each row.
    const TOGETHER: usize = 16;
    let (rows, columns) = (header.rows(), header.columns());
    if rows <= 1 || columns <= 1 {
        return Ok(values);
    }
    let mut turned = Host.zeros::<T>(values.len())?;
    turned.par_chunks_mut(TOGETHER * rows).enumerate().for_each(|(k, out)| {
        let first = TOGETHER * k;
        for (i, row) in values.chunks_exact(columns).enumerate() {
            for (j, &value) in row[first..columns.min(first + TOGETHER)].iter().enumerate() {
                out[j * rows + i] = value;
            }
        }
    });
    Ok(turned)
}

/// Writes a full array, `values` column by column, as NumPy reads it; a single column is written as a vector. The file
/// appears under its name when it is complete ([`crate::output`]).
///
/// # Errors
/// Unless there are `rows * columns` values, or if the file cannot be written.
pub fn write_npy<T: Scalar>(path: impl AsRef<Path>, rows: usize, columns: usize, values: &[T]) -> Result<()> {
    Error::check_dimension("number of values", rows.saturating_mul(columns), values.len())?;
    output::write(path, |file| put_array(file, rows, columns, values))
}

/// Writes an array with its header, as [`write_npy`] does.
pub(super) fn put_array<T: Scalar>(
    to: &mut dyn Write,
    rows: usize,
    columns: usize,
    values: &[T],
) -> io::Result<()> {
    let shape = if columns == 1 { format!("({rows},)") } else { format!("({rows}, {columns})") };
    put_head(to, &descr::<T>(), true, &shape)?;
    put_values(to, values)
}

/// The name of a type in NumPy.
pub(super) fn descr<T: Scalar>() -> String {
    format!("<{}{}", if T::COMPLEX { 'c' } else { 'f' }, size_of::<T>())
}

/// Writes the magic number and the header.
pub(super) fn put_head(to: &mut dyn Write, descr: &str, by_columns: bool, shape: &str) -> io::Result<()> {
    let order = if by_columns { "True" } else { "False" };
    let mut head = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    head += &" ".repeat(63 - (10 + head.len()) % 64);
    head.push('\n');
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&(head.len() as u16).to_le_bytes())?;
    to.write_all(head.as_bytes())
}

/// Writes values in little-endian order.
pub(super) fn put_values<T: Scalar>(to: &mut dyn Write, values: &[T]) -> io::Result<()> {
    let single = size_of::<T::Real>() == 4;
    let mut block = Vec::with_capacity(BLOCK * size_of::<T>());
    for values in values.chunks(BLOCK) {
        block.clear();
        for value in values {
            let parts = [value.re().to_f64(), value.im().to_f64()];
            for part in &parts[..if T::COMPLEX { 2 } else { 1 }] {
                if single {
                    block.extend((*part as f32).to_le_bytes());
                } else {
                    block.extend(part.to_le_bytes());
                }
            }
        }
        to.write_all(&block)?;
    }
    Ok(())
}
