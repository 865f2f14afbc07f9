//! The banner and the size line.

use super::fault;
use crate::error::{Error, Result};
use crate::scalar::Symmetry;
use std::path::Path;

/// How a file lists its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A row index, a column index and a value per line.
    Coordinate,
    /// Every value, column after column.
    Array,
}

/// The type of the values in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Decimal numbers; `double` is accepted as well.
    Real,
    /// Integers; `unsigned-integer` is accepted as well.
    Integer,
    /// Real and imaginary part.
    Complex,
    /// No values, only the pattern.
    Pattern,
}

impl Format {
    /// The word in the banner.
    pub fn name(self) -> &'static str {
        match self {
            Format::Coordinate => "coordinate",
            Format::Array => "array",
        }
    }
}

impl Field {
    /// The word in the banner.
    pub fn name(self) -> &'static str {
        match self {
            Field::Real => "real",
            Field::Integer => "integer",
            Field::Complex => "complex",
            Field::Pattern => "pattern",
        }
    }
}

/// The header of a file: everything before its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub(super) vector: bool,
    pub(super) format: Format,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) entries: u64,
    pub(super) repeated: u64,
}

impl Header {
    /// The header of a file in another format.
    pub(crate) fn new(
        format: Format,
        field: Field,
        symmetry: Symmetry,
        (rows, columns): (usize, usize),
        entries: u64,
    ) -> Self {
        Self { vector: false, format, field, symmetry, rows, columns, entries, repeated: 0 }
    }

    /// Coordinates or a full array.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The type of the values.
    pub fn field(&self) -> Field {
        self.field
    }

    /// The symmetry. A `hermitian` file with real values counts as [`Symmetry::Symmetric`].
    pub fn symmetry(&self) -> Symmetry {
        self.symmetry
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of entries in the file; for a symmetric matrix those of one triangle.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Number of entries of a symmetric matrix that the file gives in both triangles with the same values; each is used
    /// once. Known after the entries were read. Other programs may add such entries.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Sets [`Header::repeated`].
    pub(crate) fn with_repeated(self, repeated: u64) -> Self {
        Self { repeated, ..self }
    }

    /// The minimum number of bytes in an entry, including its line end.
    pub(super) fn entry_bytes(&self) -> u64 {
        let indices = match self.format {
            Format::Coordinate if self.vector => 2,
            Format::Coordinate => 4,
            Format::Array => 0,
        };
        let value = match self.field {
            Field::Pattern => 0,
            Field::Real | Field::Integer => 2,
            Field::Complex => 4,
        };
        indices + value
    }
}

/// Parses lines until the banner and the sizes are known.
pub(super) struct HeaderParser<'a> {
    path: &'a Path,
    line: u64,
    banner: Option<Banner>,
}

/// The words of the first line.
#[derive(Clone, Copy)]
struct Banner {
    vector: bool,
    format: Format,
    field: Field,
    symmetry: Symmetry,
}

impl<'a> HeaderParser<'a> {
    pub(super) fn new(path: &'a Path) -> Self {
        Self { path, line: 0, banner: None }
    }

    /// Lines parsed so far.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn error(&self, cause: impl Into<String>) -> Error {
        Error::Parse { path: self.path.to_owned(), line: self.line.max(1), cause: cause.into() }
    }

    /// The error for a file that ends here.
    pub(super) fn ended(&self) -> Error {
        match (self.line, self.banner) {
            (0, _) => self.error("the file is empty"),
            (_, None) => self.error(NO_BANNER),
            (_, Some(_)) => self.error("the file ends before the line of sizes"),
        }
    }

    /// The error for a file that is not text.
    pub(super) fn ended_without_banner(&self) -> Error {
        self.error(NO_BANNER)
    }

    /// Parses the next line, without its line end. Returns the header after its last line.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<Option<Header>> {
        self.line += 1;
        let line = if self.line == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        let line = line.trim_ascii();
        match self.banner {
            _ if line.is_empty() => Ok(None),
            None => {
                self.banner = Some(self.banner(line)?);
                Ok(None)
            }
            Some(_) if line[0] == b'%' => Ok(None),
            Some(banner) => self.sizes(banner, line).map(Some),
        }
    }

    fn banner(&self, line: &[u8]) -> Result<Banner> {
        let lower = line.to_ascii_lowercase();
        let words = lower.strip_prefix(b"%%matrixmarket").or(lower.strip_prefix(b"%matrixmarket"));
        let Some(words) = words.filter(|w| w.first().is_none_or(u8::is_ascii_whitespace)) else {
            return Err(match archive(line) {
                Some(kind) => self.error(format!(
                    "the file is {kind}, not a Matrix Market file: unpack it first (only gzip is read packed)"
                )),
                None => self.error(NO_BANNER),
            });
        };
        if words.contains(&b'\r') {
            return Err(self.error(
                "lines end with a carriage return only; convert the file, so that they end with \\n",
            ));
        }
        let mut words = words.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let mut next = |what: &str, choices: &str| match words.next() {
            Some(word) => Ok(fault::word(word)),
            None => Err(self.error(format!("the banner ends before the {what}: one of {choices}"))),
        };
        let unknown = |what: &str, word: &str, choices: &str| {
            self.error(format!("unknown {what} `{word}`: one of {choices}"))
        };
        const OBJECTS: &str = "matrix, vector";
        let vector = match next("object", OBJECTS)?.as_str() {
            "matrix" => false,
            "vector" => true,
            other => return Err(unknown("object", other, OBJECTS)),
        };
        const FORMATS: &str = "coordinate, array";
        let format = match next("format", FORMATS)?.as_str() {
            "coordinate" => Format::Coordinate,
            "array" => Format::Array,
            other => return Err(unknown("format", other, FORMATS)),
        };
        const FIELDS: &str = "real, double, integer, unsigned-integer, complex, pattern";
        let field = match next("field", FIELDS)?.as_str() {
            "real" | "double" => Field::Real,
            "integer" | "unsigned-integer" => Field::Integer,
            "complex" => Field::Complex,
            "pattern" => Field::Pattern,
            other => return Err(unknown("field", other, FIELDS)),
        };
        const SYMMETRIES: &str = "general, symmetric, skew-symmetric, hermitian";
        let symmetry = match next("symmetry", SYMMETRIES)?.as_str() {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" => Symmetry::SkewSymmetric,
            "hermitian" => Symmetry::Hermitian,
            other => return Err(unknown("symmetry", other, SYMMETRIES)),
        };
        match (format, field, symmetry) {
            (Format::Array, Field::Pattern, _) => {
                Err(self.error("an array needs values, but the field is pattern"))
            }
            (_, Field::Pattern, Symmetry::SkewSymmetric | Symmetry::Hermitian) => {
                Err(self.error(format!("a pattern has no values, so it cannot be {}", symmetry.name())))
            }
            _ if vector && symmetry != Symmetry::General => Err(self.error("a vector must be general")),
            // The conjugate of a real number is itself.
            (_, Field::Real | Field::Integer, Symmetry::Hermitian) => {
                Ok(Banner { vector, format, field, symmetry: Symmetry::Symmetric })
            }
            _ => Ok(Banner { vector, format, field, symmetry }),
        }
    }

    fn sizes(&self, banner: Banner, line: &[u8]) -> Result<Header> {
        let Banner { vector, format, field, symmetry } = banner;
        let expected: &[&str] = match (vector, format) {
            (false, Format::Coordinate) => &["rows", "columns", "entries"],
            (false, Format::Array) => &["rows", "columns"],
            (true, Format::Coordinate) => &["rows", "entries"],
            (true, Format::Array) => &["rows"],
        };
        let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).collect();
        let words = words.split(|w| w.starts_with(b"%")).next().unwrap_or_default();
        if words.len() != expected.len() {
            return Err(self.error(format!(
                "the line of sizes needs {} numbers ({}), not {}",
                expected.len(),
                expected.join(", "),
                words.len()
            )));
        }
        let mut sizes = [1u64; 3];
        for ((size, word), what) in sizes.iter_mut().zip(words).zip(expected) {
            let text = std::str::from_utf8(word).ok().filter(|w| w.bytes().all(|b| b.is_ascii_digit()));
            let Some(text) = text else {
                return Err(
                    self.error(format!("number of {what} `{}` is not a whole number", fault::word(word)))
                );
            };
            *size = text.parse().unwrap_or(u64::MAX);
        }
        let [rows, columns, mut entries] = sizes;
        let columns = if vector { 1 } else { columns };
        if vector && format == Format::Coordinate {
            entries = sizes[1];
        }
        for (what, size) in [("rows", rows), ("columns", columns)] {
            if size > 1 << 32 {
                return Err(
                    self.error(format!("too many {what}: indices have 32 bits, so at most {}", 1u64 << 32))
                );
            }
        }
        if symmetry != Symmetry::General && rows != columns {
            return Err(
                self.error(format!("a {} matrix must be square, not {rows} x {columns}", symmetry.name()))
            );
        }
        if format == Format::Array {
            entries = match symmetry {
                Symmetry::General => rows.saturating_mul(columns),
                Symmetry::Symmetric | Symmetry::Hermitian => rows.saturating_mul(rows + 1) / 2,
                Symmetry::SkewSymmetric => rows.saturating_mul(rows.saturating_sub(1)) / 2,
            };
        }
        if (rows == 0 || columns == 0) && entries > 0 {
            return Err(self.error(format!("a {rows} x {columns} matrix cannot have {entries} entries")));
        }
        Ok(Header {
            vector,
            format,
            field,
            symmetry,
            rows: rows as usize,
            columns: columns as usize,
            entries,
            repeated: 0,
        })
    }
}

/// The archive or compression format that a file seems to have, by its first bytes.
fn archive(start: &[u8]) -> Option<&'static str> {
    match start {
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [b'B', b'Z', b'h', ..] => Some("compressed by bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("compressed by xz"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("compressed by zstd"),
        _ if start.get(257..262) == Some(b"ustar") => Some("a tar archive"),
        _ => None,
    }
}

const NO_BANNER: &str = "not a Matrix Market file: the first line must start with `%%MatrixMarket matrix`";
