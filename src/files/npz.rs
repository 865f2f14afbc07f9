//! SciPy's `.npz`: the arrays of a sparse matrix, and the name of its format.

use super::bytes::content;
use super::found::{Found, Numbers};
use super::npy::Head;
use super::zip::Zip;
use crate::error::Result;
use std::path::Path;

pub(super) fn read(path: &Path, header_only: bool) -> Result<Found> {
    let zip = Zip::open(path)?;
    let names = zip.names();
    if !names.contains(&"format") {
        let [only] = names[..] else {
            let cause =
                format!("neither a matrix that SciPy saved nor one array: it holds {}", names.join(", "));
            return Err(content(path, 0, cause));
        };
        let mut bytes = zip.member(only)?;
        let found = Head::of(&mut bytes)?.array(&mut bytes, header_only)?;
        if !header_only {
            bytes.end("the array")?;
        }
        return Ok(found);
    }
    let format = {
        let mut bytes = zip.member("format")?;
        let word = Head::of(&mut bytes)?.word(&mut bytes)?;
        bytes.end("the word")?;
        word
    };
    let shape = integers(&zip, "shape")?;
    let size = match shape[..] {
        [rows @ 0..=0x1_0000_0000, columns @ 0..=0x1_0000_0000] => (rows as u64, columns as u64),
        _ => {
            return Err(content(path, 0, format!("shape {shape:?}: two sizes of at most 2^32 are expected")));
        }
    };
    let mut bytes = zip.member("data")?;
    let head = Head::of(&mut bytes)?;
    if header_only {
        let mut found = Found::coordinates(size, (Vec::new(), Vec::new()), head.empty());
        let header = &found.header;
        let (kind, field, rows, columns) = (header.format(), header.field(), header.rows(), header.columns());
        found.header =
            crate::market::Header::new(kind, field, header.symmetry(), (rows, columns), head.count());
        return Ok(found);
    }
    let values = head.numbers(&mut bytes)?;
    bytes.end("the values")?;
    let stored = Stored { path, zip: &zip, size, head, values };
    match format.as_str() {
        "csr" | "csc" | "coo" if stored.head.shape.len() != 1 => {
            stored.refuse("the values are expected in one dimension".into())
        }
        "csr" => stored.compressed(size.0, [1, 1], false),
        "csc" => stored.compressed(size.1, [1, 1], true),
        "bsr" => stored.blocks(),
        "coo" => stored.coordinates(),
        "dia" => stored.diagonals(),
        other => Err(content(path, 0, format!("format `{other}`: csr, csc, coo, bsr and dia are read"))),
    }
}

fn integers(zip: &Zip, name: &str) -> Result<Vec<i64>> {
    let mut bytes = zip.member(name)?;
    let found = Head::of(&mut bytes)?.integers(&mut bytes)?;
    bytes.end("the integers")?;
    Ok(found)
}

struct Stored<'a> {
    path: &'a Path,
    zip: &'a Zip,
    size: (u64, u64),
    head: Head,
    values: Numbers,
}

impl Stored<'_> {
    fn refuse<R>(&self, cause: String) -> Result<R> {
        Err(content(self.path, 0, cause))
    }

    /// `name`, each below `limit`.
    fn indices(&self, what: &str, list: &[i64], limit: u64) -> Result<Vec<u32>> {
        match list.iter().position(|&index| index < 0 || index as u64 >= limit) {
            Some(k) => self.refuse(format!("{what} {} (number {k} from 0) is outside of {limit}", list[k])),
            None => Ok(list.iter().map(|&index| index as u32).collect()),
        }
    }

    fn blocks(self) -> Result<Found> {
        let [_, high, wide] = self.head.shape[..] else {
            return self.refuse("blocks need an array of three dimensions".into());
        };
        if high == 0 || wide == 0 || !self.size.0.is_multiple_of(high) || !self.size.1.is_multiple_of(wide) {
            return self
                .refuse(format!("blocks of {high} x {wide} in a {} x {} matrix", self.size.0, self.size.1));
        }
        let rows = self.size.0 / high;
        self.compressed(rows, [high, wide], false)
    }

    /// Compressed rows of blocks, or columns.
    fn compressed(self, lines: u64, [high, wide]: [u64; 2], by_columns: bool) -> Result<Found> {
        let offsets = integers(self.zip, "indptr")?;
        let list = integers(self.zip, "indices")?;
        let ascend = offsets.first() == Some(&0) && offsets.windows(2).all(|w| w[0] <= w[1]);
        let count = offsets.last().copied().unwrap_or(0) as u64;
        let stored = self.head.shape.first().copied().unwrap_or(0);
        if offsets.len() as u64 != lines + 1 || !ascend || count > list.len() as u64 || count > stored {
            return self.refuse(format!(
                "indptr: {lines} + 1 offsets are expected that ascend from 0 to at most {stored} entries \
                 and {} indices",
                list.len()
            ));
        }
        let across = if by_columns { self.size.0 } else { self.size.1 / wide };
        let list = self.indices("index", &list[..count as usize], across)?;
        let (mut rows, mut columns, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (line, ends) in offsets.windows(2).enumerate() {
            for (k, &index) in (ends[0] as u64..).zip(&list[ends[0] as usize..ends[1] as usize]) {
                for (r, c) in (0..high).flat_map(|r| (0..wide).map(move |c| (r, c))) {
                    rows.push((line as u64 * high + r) as u32);
                    columns.push((u64::from(index) * wide + c) as u32);
                    places.push(if self.head.by_columns {
                        k + stored * (r + high * c)
                    } else {
                        (k * high + r) * wide + c
                    } as usize);
                }
            }
        }
        let there = if by_columns { (columns, rows) } else { (rows, columns) };
        Ok(Found::coordinates(self.size, there, self.values.gathered(&places)))
    }

    fn coordinates(self) -> Result<Found> {
        let names = if self.zip.names().contains(&"row") { ["row", "col"] } else { ["coords", "coords"] };
        let (rows, columns) = if names[0] == "coords" {
            let both = integers(self.zip, "coords")?;
            let half = both.len() / 2;
            (both[..half].to_vec(), both[half..].to_vec())
        } else {
            (integers(self.zip, names[0])?, integers(self.zip, names[1])?)
        };
        if rows.len() as u64 != self.head.count() || columns.len() != rows.len() {
            return self.refuse(format!(
                "{} rows, {} columns and {} values",
                rows.len(),
                columns.len(),
                self.head.count()
            ));
        }
        let places =
            (self.indices("row", &rows, self.size.0)?, self.indices("column", &columns, self.size.1)?);
        Ok(Found::coordinates(self.size, places, self.values))
    }

    /// Entry j of a diagonal stands in column j.
    fn diagonals(self) -> Result<Found> {
        let offsets = integers(self.zip, "offsets")?;
        let [count, length] = self.head.shape[..] else {
            return self.refuse("diagonals need an array of two dimensions".into());
        };
        if offsets.len() as u64 != count {
            return self.refuse(format!("{} offsets for {count} diagonals", offsets.len()));
        }
        let (mut rows, mut columns, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (d, &offset) in offsets.iter().enumerate() {
            for j in 0..length.min(self.size.1) {
                let Some(row) =
                    (j as i64).checked_sub(offset).filter(|row| (0..self.size.0 as i64).contains(row))
                else {
                    continue;
                };
                let place =
                    if self.head.by_columns { d as u64 + count * j } else { d as u64 * length + j } as usize;
                if !self.values.is_zero(place) {
                    rows.push(row as u32);
                    columns.push(j as u32);
                    places.push(place);
                }
            }
        }
        Ok(Found::coordinates(self.size, (rows, columns), self.values.gathered(&places)))
    }
}
