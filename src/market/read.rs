//! Reading with options, on top of the parser of entries.

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
use crate::settings::settings;
use std::path::Path;
use std::sync::Arc;

/// Limits beyond which [`read_triplets`] and [`read_dense`](super::read_dense) refuse a well-formed file.
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

settings! { ReadOptions;
    /// Sets the maximum number of rows, and of columns, in addition to 64 times the entries of the file; 2^20 by
    /// default. Later steps need memory for each row and column, so this keeps a header alone from requesting
    /// gigabytes.
    pub fn empty_lines(limit: usize) => empty_lines = limit;

    /// Counts the bytes of a Matrix Market file while they are read, to show the progress.
    pub fn meter(meter: Arc<Meter>) => meter = Some(meter);
}

impl ReadOptions {
    /// The meter, if there is one.
    pub(super) fn metered(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }

    /// The reason for refusing a full array of this size, if it is refused. The limit is for the number of its values.
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

    /// The reason for refusing a sparse matrix of this size, if it is refused.
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

/// The order of a file's entries, which shows whether sorting is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// By rows, columns ascending within each, without duplicates.
    Rows,
    /// By columns, rows ascending within each, without duplicates.
    Columns,
    /// Any other order, possibly with duplicates.
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

/// A file's header and its entries as they are stored: one triangle of a symmetric matrix.
#[derive(Debug, Clone)]
pub struct MatrixFile<T> {
    header: Header,
    triplets: Triplets<T>,
    order: Order,
}

impl<T: Scalar> MatrixFile<T> {
    /// From a file of any format, with checked entries.
    pub(crate) fn new(header: Header, triplets: Triplets<T>, order: Order) -> Self {
        Self { header, triplets, order }
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The stored entries; the values of a pattern are one.
    pub fn triplets(&self) -> &Triplets<T> {
        &self.triplets
    }

    /// The symmetry, from which the entries that are not stored follow.
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
/// If the file cannot be read, or is not a Matrix Market file; the message has the file, the line and the cause.
pub fn read_header(path: impl AsRef<Path>) -> Result<Header> {
    header_of(Source::open(path.as_ref(), None)?)
}

/// [`read_header`] for an open source.
pub(crate) fn header_of(mut source: Source) -> Result<Header> {
    parallel::header(&mut source).map(|found| found.0)
}

/// Reads a matrix as it is stored. `-` is standard input; gzip is recognised by its content. For a full array, returns
/// its nonzero entries.
///
/// Memory: 8 bytes and a value for each entry, and 12 to 48 MiB for text. Time: mostly parsing numbers, in all threads
/// of the current rayon pool.
///
/// # Errors
/// If the file cannot be read or is invalid (the message has the file, the line and the cause), if it has complex
/// values and `T` is real, or if the options refuse it.
pub fn read_triplets<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<MatrixFile<T>> {
    triplets_of(Source::open(path.as_ref(), options.metered())?, options)
}

/// [`read_triplets`] for an open source.
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
            // The parser refuses entries outside of the matrix, with their line.
            let triplets =
                Triplets::from_parts_unchecked(header.rows, header.columns, rows, columns, values)?;
            Ok(MatrixFile { header, triplets, order })
        }
    }
}

/// Removes the entries that a symmetric file gives twice.
fn once_each<T: Scalar>(entries: &mut Entries<T>) -> Result<()> {
    let Entries { header, rows, columns, values, lines, .. } = entries;
    match triangle::once_each(header.symmetry, rows, columns, values) {
        Ok(count) => header.repeated = count,
        Err(k) => return Err(lines.error(k, triangle::told_twice(header.symmetry, rows[k], columns[k]))),
    }
    Ok(())
}

/// The nonzero values of an array, as triplets.
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
