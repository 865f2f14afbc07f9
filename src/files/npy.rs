//! NumPy's `.npy`: a magic, a header that is a Python dictionary, and an array.

use super::bytes::Bytes;
use super::found::{Found, Numbers};
use crate::error::{Error, Result};
use crate::output;
use crate::scalar::{Real, Scalar};
use num_complex::Complex;
use std::io::{self, Read, Write};
use std::path::Path;

/// Values that are written at a time.
pub(super) const BLOCK: usize = 1 << 12;

/// What the header says.
pub(super) struct Head {
    /// NumPy's letter of a type.
    pub(super) letter: u8,
    size: usize,
    big: bool,
    pub(super) by_columns: bool,
    pub(super) shape: Vec<u64>,
}

impl Head {
    pub(super) fn of<R: Read>(bytes: &mut Bytes<R>) -> Result<Self> {
        let magic: [u8; 8] = bytes.take("the magic of an npy file")?;
        if magic[..6] != *b"\x93NUMPY" {
            return Err(bytes.error("not an npy array"));
        }
        let length = match magic[6] {
            1 => u64::from(u16::from_le_bytes(bytes.take("the npy header")?)),
            _ => u64::from(u32::from_le_bytes(bytes.take("the npy header")?)),
        };
        if length > 1 << 16 {
            return Err(bytes.error(format!("an npy header of {length} bytes")));
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
            bytes.error(format!("an array of dtype `{name}`: {what}"))
        };
        let (order, letter, size) = match name.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), letter, ..] => {
                (*order, *letter, name[2..].parse().map_err(|_| refuse())?)
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
        Ok(Self { letter, size, big: order == b'>', by_columns, shape })
    }

    pub(super) fn count(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &n| product.saturating_mul(n))
    }

    /// A number from its bytes, turned to little endian first.
    fn part(&self, raw: &[u8]) -> [u8; 8] {
        let mut word = [0; 8];
        word[..raw.len()].copy_from_slice(raw);
        if self.big {
            word[..raw.len()].reverse();
        }
        word
    }

    fn float(&self, raw: &[u8]) -> f64 {
        let word = self.part(raw);
        if raw.len() == 4 {
            f32::from_le_bytes([word[0], word[1], word[2], word[3]]).into()
        } else {
            f64::from_le_bytes(word)
        }
    }

    /// An integer; one beyond 2^63 is none that any index or value can be.
    fn integer(&self, raw: &[u8]) -> i64 {
        let bits = u64::from_le_bytes(self.part(raw));
        let unused = 64 - 8 * raw.len() as u32;
        if self.letter == b'i' {
            ((bits << unused) as i64) >> unused
        } else {
            i64::try_from(bits).unwrap_or(i64::MAX)
        }
    }

    pub(super) fn numbers<R: Read>(&self, bytes: &mut Bytes<R>) -> Result<Numbers> {
        let (count, size) = (self.count(), self.size);
        Ok(match self.letter {
            b'f' => Numbers::Real(bytes.array(count, size, "values", |raw| self.float(raw))?),
            b'c' => Numbers::Complex(bytes.array(count, size, "values", |raw| {
                let (re, im) = raw.split_at(size / 2);
                Complex::new(self.float(re), self.float(im))
            })?),
            b'S' | b'U' => return Err(bytes.error("an array of text: numbers are expected")),
            _ => Numbers::Real(bytes.array(count, size, "values", |raw| self.integer(raw) as f64)?),
        })
    }

    pub(super) fn integers<R: Read>(&self, bytes: &mut Bytes<R>) -> Result<Vec<i64>> {
        if !matches!(self.letter, b'i' | b'u') {
            return Err(bytes.error("an array of integers is expected"));
        }
        bytes.array(self.count(), self.size, "integers", |raw| self.integer(raw))
    }

    /// A short text, of bytes or of letters with four bytes each.
    pub(super) fn word<R: Read>(&self, bytes: &mut Bytes<R>) -> Result<String> {
        if self.count() != 1 || !matches!(self.letter, b'S' | b'U') {
            return Err(bytes.error("one word is expected"));
        }
        let width = if self.letter == b'U' { 4 * self.size } else { self.size };
        let raw = bytes.array(width as u64, 1, "bytes", |raw| raw[0])?;
        Ok(raw.into_iter().filter(|&byte| byte != 0).map(char::from).collect())
    }

    /// Rows and columns of a vector or a matrix.
    pub(super) fn sizes<R>(&self, bytes: &Bytes<R>) -> Result<(u64, u64)>
    where
        R: Read,
    {
        let (rows, columns) = match self.shape[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => {
                return Err(bytes
                    .error(format!("an array of {} dimensions: one or two are expected", self.shape.len())));
            }
        };
        if rows > 1 << 32 || columns > 1 << 32 {
            return Err(bytes.error(format!("{rows} x {columns}: indices have 32 bits")));
        }
        Ok((rows, columns))
    }

    /// The full array that follows.
    pub(super) fn array<R: Read>(&self, bytes: &mut Bytes<R>, header_only: bool) -> Result<Found> {
        let (rows, columns) = self.sizes(bytes)?;
        let values = if header_only { self.empty() } else { self.numbers(bytes)? };
        if header_only || self.by_columns || rows <= 1 || columns <= 1 {
            return Ok(Found::array(rows, columns, values));
        }
        let (m, n) = (rows as usize, columns as usize);
        let places: Vec<usize> = (0..n).flat_map(|j| (0..m).map(move |i| i * n + j)).collect();
        Ok(Found::array(rows, columns, values.gathered(&places)))
    }

    pub(super) fn empty(&self) -> Numbers {
        if self.letter == b'c' { Numbers::Complex(Vec::new()) } else { Numbers::Real(Vec::new()) }
    }
}

pub(super) fn read(path: &Path, reader: impl Read, header_only: bool) -> Result<Found> {
    let mut bytes = Bytes::new(path, reader);
    let found = Head::of(&mut bytes)?.array(&mut bytes, header_only)?;
    if !header_only {
        bytes.end("the array")?;
    }
    Ok(found)
}

/// Writes a full array, `values` column after column, as NumPy reads it; one column as a vector. The file appears under
/// its name when it is complete ([`crate::output`]).
///
/// # Errors
/// Unless there are `rows * columns` values, or where the system refuses.
pub fn write_npy<T: Scalar>(path: impl AsRef<Path>, rows: usize, columns: usize, values: &[T]) -> Result<()> {
    Error::check_dimension("number of values", rows.saturating_mul(columns), values.len())?;
    output::write(path, |file| put_array(file, rows, columns, values))
}

/// An array with its header, as [`write_npy`] writes it.
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

/// NumPy's name of a type.
pub(super) fn descr<T: Scalar>() -> String {
    format!("<{}{}", if T::COMPLEX { 'c' } else { 'f' }, size_of::<T>())
}

/// Magic and header.
pub(super) fn put_head(to: &mut dyn Write, descr: &str, by_columns: bool, shape: &str) -> io::Result<()> {
    let order = if by_columns { "True" } else { "False" };
    let mut head = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    head += &" ".repeat(63 - (10 + head.len()) % 64);
    head.push('\n');
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&(head.len() as u16).to_le_bytes())?;
    to.write_all(head.as_bytes())
}

/// Values, little end first.
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
