//! SciPy's `.npz`: the arrays of a sparse matrix, with the name of its format.

use super::bytes::content;
use super::lines::{self, Ascent, Lines, end, offsets};
use super::npy::Array;
use super::source::Values;
use super::stored::{Entries, Stored};
use super::widened::{diagonals, out_of_blocks};
use super::zip::Zip;
use crate::error::{Error, Result};
use crate::market::{Field, Header, Order, ReadOptions};
use crate::matrix::Triplets;
use crate::parallel::join;
use crate::scalar::Scalar;
use std::path::Path;

/// An archive whose small members have been read.
struct Archive<'a> {
    path: &'a Path,
    zip: Zip,
    /// SciPy's name of the format; empty if the archive has a single array.
    format: String,
    size: (u64, u64),
    data: Array,
}

impl<'a> Archive<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let zip = Zip::open(path)?;
        let names = zip.names();
        if !names.contains(&"format") {
            let [only] = names[..] else {
                let cause = format!(
                    "this is neither a matrix that SciPy saved nor a single array: it holds {}",
                    names.join(", ")
                );
                return Err(content(path, 0, cause));
            };
            let data = Array::open(zip.member(only)?)?;
            return Ok(Self { path, zip, format: String::new(), size: (0, 0), data });
        }
        let format = Array::open(zip.member("format")?)?.word()?;
        let shape = integers(&zip, "shape")?;
        let size = match shape[..] {
            [rows @ 0..=0x1_0000_0000, columns @ 0..=0x1_0000_0000] => (rows as u64, columns as u64),
            _ => {
                let cause = format!("the shape is {shape:?}, but two sizes of at most 2^32 are expected");
                return Err(content(path, 0, cause));
            }
        };
        let data = Array::open(zip.member("data")?)?;
        Ok(Self { path, zip, format, size, data })
    }

    fn field(&self) -> Field {
        self.data.head.kind.field()
    }

    fn header(&self) -> Result<Header> {
        if self.format.is_empty() {
            return self.data.header();
        }
        Ok(lines::header(self.field(), self.size, self.data.head.count()))
    }

    fn array(&self, name: &str) -> Result<Array> {
        Array::open(self.zip.member(name)?)
    }

    fn refuse(&self, cause: String) -> Error {
        content(self.path, 0, cause)
    }
}

fn integers(zip: &Zip, name: &str) -> Result<Vec<i64>> {
    Array::open(zip.member(name)?)?.stretch("integers")?.integers()
}

pub(super) fn header(path: &Path) -> Result<Header> {
    Archive::open(path)?.header()
}

pub(super) fn read<T: Scalar>(path: &Path, options: &ReadOptions) -> Result<Stored<T>> {
    let archive = Archive::open(path)?;
    if archive.field() == Field::Complex && !T::COMPLEX {
        return Err(super::complex(path));
    }
    if archive.format.is_empty() {
        return archive.data.read(path);
    }
    // The options are checked before memory is allocated for rows.
    if let Some(cause) = options.refuse(&archive.header()?) {
        return Err(archive.refuse(cause));
    }
    match archive.format.as_str() {
        "csr" | "csc" | "coo" if archive.data.head.shape.len() != 1 => {
            Err(archive.refuse("the values are expected in one dimension".into()))
        }
        "csr" => {
            compressed(&archive, archive.size.0, archive.size.1)?.stored(archive.field(), archive.size, false)
        }
        "csc" => {
            compressed(&archive, archive.size.1, archive.size.0)?.stored(archive.field(), archive.size, true)
        }
        "bsr" => blocks(&archive),
        "coo" => coordinates(&archive),
        "dia" => {
            let head = &archive.data.head;
            let [count, length] = head.shape[..] else {
                return Err(archive.refuse("the diagonals must be an array of two dimensions".into()));
            };
            let distances = integers(&archive.zip, "offsets")?;
            if distances.len() as u64 != count {
                return Err(
                    archive.refuse(format!("there are {} offsets for {count} diagonals", distances.len()))
                );
            }
            // Values outside of the matrix may be anything.
            let values = archive.data.stretch("values")?.values::<T>()?.unchecked();
            let place = |d: usize, j: usize| {
                if head.by_columns { d + count as usize * j } else { d * length as usize + j }
            };
            let lines = diagonals(archive.size, &distances, length, |d, j| values[place(d, j)])?;
            if let Some(k) = lines.values.iter().position(|value| !value.is_finite()) {
                return Err(archive.refuse(format!("value {k} (from 0, row after row) is not finite")));
            }
            lines.stored(archive.field(), archive.size, false)
        }
        other => Err(archive
            .refuse(format!("format `{other}` is not supported: only csr, csc, coo, bsr and dia are read"))),
    }
}

/// Reads `count` compressed lines of entries or blocks, with indices below `across`. Values are read in parallel with
/// indices: one for each entry, or all values of each block.
fn compressed<T: Scalar>(archive: &Archive<'_>, count: u64, across: u64) -> Result<Lines<T>> {
    let (indices, indptr) = (archive.array("indices")?, archive.array("indptr")?);
    let (list, starts) = (indices.stretch("integers")?, indptr.stretch("integers")?);
    let numbers = archive.data.stretch("values")?;
    let stored = archive.data.head.shape.first().copied().unwrap_or(0);
    let most = stored.min(list.count as u64);
    let refuse = || {
        archive.refuse(format!(
            "indptr: {count} + 1 offsets are expected that ascend from 0 to at most {stored} entries and {} indices",
            list.count
        ))
    };
    if starts.count as u64 != count + 1 {
        return Err(refuse());
    }
    let structure = || {
        let offsets = offsets(starts, most)?.ok_or_else(refuse)?;
        let used = end(offsets.as_ref());
        let (indices, ascending) = Ascent::new(offsets.as_ref()).read(list.first(used), "index", across)?;
        Ok((offsets, indices, ascending))
    };
    let (values, structure): (Result<Values<T>>, Result<_>) = join(|| numbers.values(), structure);
    let (values, (offsets, indices, ascending)) = (values?, structure?);
    let places = numbers.count.checked_div(stored as usize).unwrap_or(0);
    // In Fortran order the values of a block are not contiguous.
    let used = if places == 1 { indices.len() } else { numbers.count };
    let values = numbers.finite(values, used)?;
    Ok(Lines { offsets, indices, values, ascending })
}

fn blocks<T: Scalar>(archive: &Archive<'_>) -> Result<Stored<T>> {
    let (head, (rows, columns)) = (&archive.data.head, archive.size);
    let [stored, high, wide] = head.shape[..] else {
        return Err(archive.refuse("the blocks must be an array of three dimensions".into()));
    };
    if high == 0 || wide == 0 || !rows.is_multiple_of(high) || !columns.is_multiple_of(wide) {
        return Err(
            archive.refuse(format!("blocks of {high} x {wide} do not divide a {rows} x {columns} matrix"))
        );
    }
    let lines = compressed(archive, rows / high, columns / wide)?;
    let [stored, high, wide] = [stored, high, wide].map(|size| size as usize);
    let place = |block: usize, r: usize, c: usize| {
        if head.by_columns { block + stored * (r + high * c) } else { (block * high + r) * wide + c }
    };
    out_of_blocks(lines, [high, wide], place)?.stored(archive.field(), archive.size, false)
}

fn coordinates<T: Scalar>(archive: &Archive<'_>) -> Result<Stored<T>> {
    let (rows, columns) = archive.size;
    let values = archive.data.stretch("values")?;
    let places = || -> Result<(Vec<u32>, Vec<u32>)> {
        if archive.zip.names().contains(&"row") {
            let (down, across) = (archive.array("row")?, archive.array("col")?);
            let (down, across) = (down.stretch("integers")?, across.stretch("integers")?);
            let (down, across) = join(
                || down.indices_of("row", rows, &|_, _| ()),
                || across.indices_of("column", columns, &|_, _| ()),
            );
            return Ok((down?, across?));
        }
        let both = archive.array("coords")?;
        let both = both.stretch("integers")?;
        let half = both.count / 2;
        let mut down = both.indices_of("coordinate", rows.max(columns), &|_, _| ())?;
        let across = down.split_off(half);
        for (what, list, limit) in [("row", &down, rows), ("column", &across, columns)] {
            if let Some(k) = list.iter().position(|&index| u64::from(index) >= limit) {
                let cause = format!("{what} {} (number {k} from 0) is outside of {limit}", list[k]);
                return Err(archive.refuse(cause));
            }
        }
        Ok((down, across))
    };
    let (numbers, places) = join(|| values.values::<T>(), places);
    let (numbers, (down, across)) = (numbers?, places?);
    if down.len() != values.count || across.len() != values.count {
        let cause = format!(
            "there are {} rows, {} columns and {} values, but equally many are needed",
            down.len(),
            across.len(),
            values.count
        );
        return Err(archive.refuse(cause));
    }
    let numbers = values.finite(numbers, values.count)?;
    let triplets = Triplets::from_parts_unchecked(rows as usize, columns as usize, down, across, numbers)?;
    Ok(Stored::new(archive.header()?, Entries::Triplets(triplets, Order::Any)))
}
