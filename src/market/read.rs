//! Reading: what a caller asks for, on top of the parser of entries.

use super::entries::{self, Summary};
use super::header::{Format, Header};
use super::meter::Meter;
use super::parallel::{self, Entries};
use super::source::Source;
use super::triangle;
use crate::error::{Error, Result};
use crate::matrix::Triplets;
use crate::scalar::Scalar;
use crate::scalar::Symmetry;
use std::path::Path;
use std::sync::Arc;

/// What [`read_triplets`] and [`read_dense`](super::read_dense) refuse although the file is well formed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    empty_lines: usize,
    meter: Option<Arc<Meter>>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { empty_lines: 1 << 20, meter: None }
    }
}

impl ReadOptions {
    /// A matrix may have so many rows, or columns, more than 64 an entry of the file; 2^20 unless set. Everything later
    /// takes memory by the row and column, so this keeps a header alone from asking for gigabytes.
    pub fn empty_lines(mut self, limit: usize) -> Self {
        self.empty_lines = limit;
        self
    }

    /// Counts bytes of a Matrix Market file while they are read, for somebody who waits.
    pub fn meter(mut self, meter: Arc<Meter>) -> Self {
        self.meter = Some(meter);
        self
    }

    /// The meter, if there is one.
    pub(super) fn metered(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }

    /// Why a full array of `header`'s size is refused, if it is: its places are what counts.
    pub(crate) fn refuse_dense(&self, header: &Header) -> Option<String> {
        let places = (header.rows as u64).saturating_mul(header.columns as u64);
        let limit = header.entries.saturating_mul(64).saturating_add(self.empty_lines as u64);
        (places > limit).then(|| {
            format!(
                "a full array of {} x {} values for {} entries would take memory out of proportion to the file",
                header.rows, header.columns, header.entries
            )
        })
    }

    /// Why a sparse matrix of `header`'s size is refused, if it is.
    pub(crate) fn refuse(&self, header: &Header) -> Option<String> {
        let limit = header.entries.saturating_mul(64).saturating_add(self.empty_lines as u64);
        let sizes = [("rows", header.rows), ("columns", header.columns)];
        let (what, size) = sizes.into_iter().find(|(_, size)| *size as u64 > limit)?;
        Some(format!(
            "{size} {what} for {} entries would take memory out of proportion to the file; \
             at most {limit} are accepted (a program can raise ReadOptions::empty_lines)",
            header.entries
        ))
    }

    pub(super) fn check_dense(&self, path: &Path, header: &Header, line: u64) -> Result<()> {
        let refused = self.refuse_dense(header);
        refused.map_or(Ok(()), |cause| Err(Error::Parse { path: path.to_owned(), line, cause }))
    }

    pub(super) fn check(&self, path: &Path, header: &Header, line: u64) -> Result<()> {
        let refused = self.refuse(header);
        refused.map_or(Ok(()), |cause| Err(Error::Parse { path: path.to_owned(), line, cause }))
    }
}

/// The order of a file's entries, in so far as no sorting is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Row after row, the columns of each ascending; no entry twice.
    Rows,
    /// Column after column, the rows of each ascending; no entry twice.
    Columns,
    /// Any other, perhaps with duplicates.
    Any,
}

impl Order {
    pub(super) fn of(summary: &Summary) -> Self {
        match summary {
            s if s.by_rows() => Order::Rows,
            s if s.by_columns() => Order::Columns,
            _ => Order::Any,
        }
    }
}

/// A file's header and its entries as they are stored: of a symmetric matrix one triangle.
#[derive(Debug, Clone)]
pub struct MatrixFile<T> {
    header: Header,
    triplets: Triplets<T>,
    order: Order,
}

impl<T: Scalar> MatrixFile<T> {
    /// A file of any format, its entries checked.
    pub(crate) fn new(header: Header, triplets: Triplets<T>, order: Order) -> Self {
        Self { header, triplets, order }
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The stored entries; a pattern's values are one.
    pub fn triplets(&self) -> &Triplets<T> {
        &self.triplets
    }

    /// How the entries that are not stored follow.
    pub fn symmetry(&self) -> Symmetry {
        self.header.symmetry
    }

    /// The order of the stored entries.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Takes header, entries and their order apart.
    pub fn into_parts(self) -> (Header, Triplets<T>, Order) {
        (self.header, self.triplets, self.order)
    }
}

/// Reads the banner and the sizes; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, or is no Matrix Market file; the message names file, line and cause.
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    header_of(Source::open(path.as_ref(), None)?)
}

/// As [`read_header`], of an open source.
pub(crate) fn header_of(mut source: Source) -> Result<Header> {
    parallel::header(&mut source).map(|found| found.0)
}

/// Reads a matrix as it is stored. `-` is standard input; gzip is recognised by its content. A full array gives its
/// entries that are not zero.
///
/// Memory: 8 bytes and a value for each entry, and 12 MiB of text. Time: about the parsing of numbers, on every thread
/// of the current rayon pool.
///
/// # Errors
/// If the file cannot be read, is not what the format allows (file, line and cause are named), holds complex values and
/// `T` is real, or is refused by the options.
pub fn read_triplets<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<MatrixFile<T>> {
    triplets_of(Source::open(path.as_ref(), options.metered())?, options)
}

/// As [`read_triplets`], of an open source.
pub(crate) fn triplets_of<T: Scalar>(source: Source, options: &ReadOptions) -> Result<MatrixFile<T>> {
    let path = source.path().to_owned();
    let mut entries = parallel::entries::<T>(source, |header, line| options.check(&path, header, line))?;
    match entries.header.format {
        Format::Array => array(entries),
        Format::Coordinate => {
            if entries.header.vector {
                entries.columns = vec![0; entries.values.len()];
            }
            if entries.summary.above && entries.summary.below {
                once_each(&mut entries)?;
            }
            let order = Order::of(&entries.summary);
            let Entries { header, rows, columns, values, .. } = entries;
            // The parser refuses a place outside of the matrix, with its line.
            let triplets =
                Triplets::from_parts_unchecked(header.rows, header.columns, rows, columns, values)?;
            Ok(MatrixFile { header, triplets, order })
        }
    }
}

/// Takes out what a symmetric file says twice.
fn once_each<T: Scalar>(entries: &mut Entries<T>) -> Result<()> {
    let Entries { header, rows, columns, values, lines, .. } = entries;
    match triangle::once_each(header.symmetry, rows, columns, values) {
        Ok(count) => header.repeated = count,
        Err(k) => return Err(lines.error(k, triangle::told_twice(header.symmetry, rows[k], columns[k]))),
    }
    Ok(())
}

/// The values of an array that are not zero, as triplets.
fn array<T: Scalar>(entries: Entries<T>) -> Result<MatrixFile<T>> {
    let header = entries.header;
    let mut triplets = Triplets::new(header.rows, header.columns)?;
    for (k, (row, column)) in places(&header).enumerate() {
        let value = entries.values[k];
        if row == column {
            let check = entries::diagonal(header.symmetry, value);
            check.map_err(|cause| entries.lines.error(k, cause.message("")))?;
        }
        if !value.is_zero() {
            triplets.push(row, column, value)?;
        }
    }
    Ok(MatrixFile { header, triplets, order: Order::Columns })
}

/// Row and column of each value of an array, in the order of the file.
pub(super) fn places(header: &Header) -> impl Iterator<Item = (usize, usize)> + use<> {
    let (rows, symmetry) = (header.rows, header.symmetry);
    (0..header.columns).flat_map(move |column| {
        let first = match symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric | Symmetry::Hermitian => column,
            Symmetry::SkewSymmetric => column + 1,
        };
        (first..rows).map(move |row| (row, column))
    })
}
