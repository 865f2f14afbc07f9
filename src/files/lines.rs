//! Compressed rows or columns (lines) from a file: directly CSR if the indices of each line ascend, else triplets.

use super::source::{Stretch, shown_at_a_time};
use super::stored::{Entries, Stored, spelled_out};
use crate::backend::{Host, NARROW_LIMIT, Offsets, OffsetsRef, Primitives};
use crate::error::Result;
use crate::market::{Field, Format, Header, Order, Symmetry};
use crate::matrix::Csr;
use crate::scalar::{Key, Offset, Scalar};
use std::sync::atomic::{AtomicBool, Ordering};

/// The header of a coordinate matrix in which every entry is stored.
pub(super) fn header(field: Field, (rows, columns): (u64, u64), entries: u64) -> Header {
    let size = (rows as usize, columns as usize);
    Header::new(Format::Coordinate, field, Symmetry::General, size, entries)
}

/// Reads offsets that ascend from zero to at most `most`; none if they do not.
pub(super) fn offsets(list: Stretch<'_>, most: u64) -> Result<Option<Offsets<Host>>> {
    fn read<O: Offset + Key>(list: Stretch<'_>, most: u64) -> Result<Option<Vec<O>>> {
        let (offsets, fault) = list.indices::<O>(most + 1, &|_, _| ())?;
        let good = fault.is_none()
            && offsets.first() == Some(&O::from_usize(0))
            && Host.is_sorted(&offsets, false)?;
        Ok(good.then_some(offsets))
    }
    if most <= NARROW_LIMIT as u64 {
        return Ok(read(list, most)?.map(Offsets::Lower));
    }
    Ok(read::<u64>(list, most)?.map(|offsets| match offsets.last() {
        Some(&last) if last <= NARROW_LIMIT as u64 => {
            Offsets::Lower(offsets.into_iter().map(|offset| offset as u32).collect())
        }
        _ => Offsets::Wide(offsets),
    }))
}

/// The last offset.
pub(super) fn end(offsets: OffsetsRef<'_, Host>) -> usize {
    match offsets {
        OffsetsRef::Lower(offsets) => offsets.last().map_or(0, |&last| last as usize),
        OffsetsRef::Wide(offsets) => offsets.last().map_or(0, |&last| last as usize),
    }
}

/// Checks that the indices of each line ascend strictly, while they are read. It counts the positions at which an index
/// does not exceed the one before, and those of them that are the start of a line: both counts must agree.
pub(super) struct Ascent<'a> {
    offsets: OffsetsRef<'a, Host>,
    broken: AtomicBool,
}

impl<'a> Ascent<'a> {
    pub(super) fn new(offsets: OffsetsRef<'a, Host>) -> Self {
        Self { offsets, broken: AtomicBool::new(false) }
    }

    /// Checks some indices; `first` is the position of the first one.
    fn look(&self, first: usize, indices: &[u32]) {
        let good = match self.offsets {
            OffsetsRef::Lower(offsets) => drops_at_starts(offsets, first, indices),
            OffsetsRef::Wide(offsets) => drops_at_starts(offsets, first, indices),
        };
        if !good {
            self.broken.store(true, Ordering::Relaxed);
        }
    }

    /// Reads indices below `limit`; returns whether they ascend.
    pub(super) fn read(self, list: Stretch<'_>, what: &str, limit: u64) -> Result<(Vec<u32>, bool)> {
        let indices = list.indices_of(what, limit, &|first, indices| self.look(first, indices))?;
        // Pairs across two blocks have not been checked yet.
        for k in
            (1..indices.len().div_ceil(shown_at_a_time(list.kind))).map(|k| k * shown_at_a_time(list.kind))
        {
            self.look(k - 1, &indices[k - 1..=k]);
        }
        Ok((indices, !self.broken.into_inner()))
    }
}

/// Returns whether indices fail to increase only at starts of lines.
fn drops_at_starts<O: Offset>(offsets: &[O], first: usize, indices: &[u32]) -> bool {
    let Some((_, rest)) = indices.split_first() else { return true };
    let mut drops = 0u32;
    for (&before, &next) in indices.iter().zip(rest) {
        drops += u32::from(before >= next);
    }
    let mut line = offsets.partition_point(|offset| offset.to_usize() <= first);
    let mut last = first;
    while let Some(start) = offsets.get(line).map(|start| start.to_usize())
        && start - first < indices.len()
    {
        // Empty lines have the same start as the next one.
        if start != last {
            drops -= u32::from(indices[start - first - 1] >= indices[start - first]);
            last = start;
        }
        line += 1;
    }
    drops == 0
}

/// Lines with their indices and values.
pub(super) struct Lines<T> {
    pub(super) offsets: Offsets<Host>,
    pub(super) indices: Vec<u32>,
    pub(super) values: Vec<T>,
    /// True if the indices of each line ascend.
    pub(super) ascending: bool,
}

impl<T: Scalar> Lines<T> {
    /// The matrix of this size with these rows or columns.
    pub(super) fn stored(
        self,
        field: Field,
        (rows, columns): (u64, u64),
        by_columns: bool,
    ) -> Result<Stored<T>> {
        let Self { offsets, indices, values, ascending } = self;
        let header = header(field, (rows, columns), values.len() as u64);
        let size = (header.rows(), header.columns());
        let entries = match (ascending, by_columns) {
            (true, false) => {
                Entries::Rows(Csr::from_parts_unchecked(size.0, size.1, offsets, indices, values))
            }
            (true, true) => {
                Entries::Columns(Csr::from_parts_unchecked(size.1, size.0, offsets, indices, values))
            }
            _ => {
                let triplets = spelled_out(size, offsets.as_ref(), indices, values, by_columns)?;
                Entries::Triplets(triplets, Order::Any)
            }
        };
        Ok(Stored::new(header, entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_ascend_are_found_at_every_place() {
        // Lines of 3, 0, 2, 1 and 0 entries.
        let offsets = [0u32, 3, 3, 5, 6, 6];
        let good = [1, 4, 9, 0, 9, 9];
        for first in 0..6 {
            for end in first..=6 {
                assert!(drops_at_starts(&offsets, first, &good[first..end]), "{first}..{end}");
            }
        }
        for (place, value) in [(1, 1), (1, 9), (2, 4), (2, 0), (4, 0)] {
            let mut bad = good;
            bad[place] = value;
            assert!(!drops_at_starts(&offsets, 0, &bad), "{place}: {value}");
        }
        // Entries after the last line belong to none.
        assert!(!drops_at_starts(&[0u64, 2], 0, &[5, 5]));
    }
}
