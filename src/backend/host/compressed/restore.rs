//! Reads compressed matrices entry by entry.

use crate::backend::{
    CompressedBody, CompressedColumns, CompressedParts, CompressedValues, Host, KindParts, LongParts,
    OffsetsRef, SECTION, SectionParts, base_of,
};
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Promote, Scalar};

/// The number of rows in a task.
const CHUNK: usize = 1 << 12;

/// Returns a single offset, for code that reads one for each slice: a loop compiled for each width would not pay.
pub(in crate::backend::host) fn at(offsets: OffsetsRef<'_, Host>, i: usize) -> usize {
    match offsets {
        OffsetsRef::Lower(o) => o[i].to_usize(),
        OffsetsRef::Wide(o) => o[i].to_usize(),
    }
}

impl KindParts<'_, Host> {
    /// Returns the range of the row's entries in the tables.
    pub(in crate::backend::host) fn range(&self, row: usize) -> std::ops::Range<usize> {
        let kind = usize::from(self.of_row[row]);
        self.starts[kind] as usize..self.starts[kind + 1] as usize
    }
}

/// Reads a matrix's entries one position at a time, however they are stored. Used by transposed products and
/// conversions.
pub(in crate::backend::host) struct Reader<'a, V: Scalar> {
    body: CompressedBody<'a, V, Host>,
}

impl<'a, V: Scalar> Reader<'a, V> {
    pub(in crate::backend::host) fn new(a: CompressedParts<'a, V, Host>) -> Self {
        Self { body: a.body }
    }

    /// Returns the row at a position.
    pub(in crate::backend::host) fn row(&self, position: usize) -> usize {
        match &self.body {
            CompressedBody::Sections(SectionParts { order: Some(order), .. }) => order.row(position),
            _ => position,
        }
    }

    /// Calls `entry(column, value)` for each entry of the row at a position, from left to right.
    pub(in crate::backend::host) fn each(&self, position: usize, mut entry: impl FnMut(usize, V)) {
        match &self.body {
            CompressedBody::Lines(kinds, values, _) => {
                for k in kinds.range(position) {
                    entry((position as u32).wrapping_add(kinds.distances[k]) as usize, values[k]);
                }
            }
            CompressedBody::Sections(a) => self.each_of_section(a, position, entry),
            CompressedBody::Balanced(none, _) => match **none {},
        }
    }

    fn each_of_section(
        &self,
        a: &SectionParts<'_, V, Host>,
        position: usize,
        mut entry: impl FnMut(usize, V),
    ) {
        let (section, lane, row) = (position / SECTION, position % SECTION, self.row(position) as u32);
        let first = at(a.entries, section);
        let width = (at(a.entries, section + 1) - first) / SECTION;
        let words = &a.words[at(a.word_offsets, section)..at(a.word_offsets, section + 1)];
        let per_quad = words.len() / (width.div_ceil(4) * SECTION).max(1);
        let of_columns =
            per_quad - usize::from(per_quad > 0 && matches!(a.values, CompressedValues::Codes(_)));
        let word = |k: usize, j: usize| words[(k / 4 * per_quad + j) * SECTION + lane];
        for k in 0..width {
            let column = match &a.columns {
                CompressedColumns::Kinds(kinds) => {
                    let range = kinds.range(row as usize);
                    if k >= range.len() {
                        break;
                    }
                    row.wrapping_add(kinds.distances[range.start + k])
                }
                CompressedColumns::Codes(distances) => match word(k, 0) >> (8 * (k % 4)) & 255 {
                    255 => break,
                    code => row.wrapping_add(distances[code as usize]),
                },
                CompressedColumns::Wide(bases) if of_columns == 2 => {
                    match word(k, k % 4 / 2) >> (16 * (k % 2)) & 65535 {
                        65535 => break,
                        code => {
                            row.wrapping_add(base_of(&bases.as_chunks().0[section], code)).wrapping_add(code)
                        }
                    }
                }
                CompressedColumns::Wide(_) => match word(k, k % 4) {
                    u32::MAX => break,
                    column => column,
                },
            };
            let value = match &a.values {
                CompressedValues::Codes(values) => {
                    values[(word(k, of_columns) >> (8 * (k % 4)) & 255) as usize]
                }
                CompressedValues::Lower(values) => values[first + k * SECTION + lane].widen(),
                CompressedValues::Full(values) => values[first + k * SECTION + lane],
            };
            entry(column as usize, value);
        }
    }
}

impl<V: Scalar> LongParts<'_, V, Host> {
    /// Returns the columns and values of long row i.
    fn entries(&self, i: usize) -> (&[u32], &[V]) {
        let range = at(self.offsets, i)..at(self.offsets, i + 1);
        (&self.indices[range.clone()], &self.values[range])
    }
}

pub(super) fn lengths<V: Scalar>(a: CompressedParts<'_, V, Host>, lengths: &mut [u32]) {
    let reader = Reader::new(a);
    let mut counts = vec![0; a.rows];
    let each = counts.par_iter_mut().enumerate().with_min_len(CHUNK);
    each.for_each(|(position, count)| reader.each(position, |_, _| *count += 1));
    counts.into_iter().enumerate().for_each(|(position, count)| lengths[reader.row(position)] = count);
    if let Some(long) = a.long {
        for (i, &row) in long.rows.iter().enumerate() {
            lengths[row as usize] = (at(long.offsets, i + 1) - at(long.offsets, i)) as u32;
        }
    }
}

pub(super) fn fill<O: Offset, V: Scalar>(
    a: CompressedParts<'_, V, Host>,
    offsets: &[O],
    indices: &mut [u32],
    values: &mut [V],
) {
    let reader = Reader::new(a);
    // Chunks are multiples of windows, so the positions of a chunk contain exactly the rows with these numbers.
    let ends: Vec<usize> =
        (0..a.rows.div_ceil(CHUNK)).map(|c| offsets[((c + 1) * CHUNK).min(a.rows)].to_usize()).collect();
    let sizes = || ends.iter().scan(0, |last, &end| Some(end - std::mem::replace(last, end)));
    let parts = super::chunks::split(indices, sizes()).into_iter().zip(super::chunks::split(values, sizes()));
    let parts: Vec<_> = parts.enumerate().collect();
    parts.into_par_iter().for_each(|(chunk, (indices, values))| {
        let first = chunk * CHUNK;
        let base = offsets[first].to_usize();
        for position in first..(first + CHUNK).min(a.rows) {
            let mut to = offsets[reader.row(position)].to_usize() - base;
            reader.each(position, |column, value| {
                (indices[to], values[to]) = (column as u32, value);
                to += 1;
            });
        }
    });
    if let Some(long) = a.long {
        for (i, &row) in long.rows.iter().enumerate() {
            let (columns, numbers) = long.entries(i);
            let to = offsets[row as usize].to_usize()..offsets[row as usize + 1].to_usize();
            indices[to.clone()].copy_from_slice(columns);
            values[to].copy_from_slice(numbers);
        }
    }
}
