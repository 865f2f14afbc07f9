//! The size of a compressed matrix, before it is compressed.

use super::Compressed;
use super::compress::{is_padded, longest_rows};
use crate::backend::{CompressedSteps, SECTION, ordered_by_length, wants_order};
use crate::matrix::lengths::RowLengths;
use crate::matrix::storage::{Storage, offset_bytes};
use crate::scalar::Scalar;

/// Bytes of the largest dictionaries.
const TABLES: u64 = 1 << 12;
/// The maximum number of bytes that four entries of a row take, without their values: four columns of 32 bits and a
/// word of codes.
const QUAD: u64 = 20;

impl<V: Scalar, B: CompressedSteps> Compressed<V, B> {
    /// An upper bound: columns of 32 bits and full values. Row lengths do not show how much repeats.
    pub(in crate::matrix) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let [first, second] = longest_rows(lengths.rows(), lengths.nonzeros());
        let mut bound = Bound::of(lengths, first, value);
        if is_padded(bound.places, bound.entries) {
            bound = Bound::of(lengths, second, value);
        }
        let stored = lengths.nonzeros() as u128 + u128::from(bound.places - bound.entries);
        let other = bound.other + TABLES + lengths.rows() as u64 + offset_bytes(1, 0) as u64;
        Storage::at_most(lengths.nonzeros(), stored, value, u128::from(other))
    }
}

/// The size of a matrix whose rows of more than some number of entries stay in CSR.
struct Bound {
    /// Entries in slices, with and without padding.
    places: u64,
    entries: u64,
    /// Bytes in addition to the slices' values.
    other: u64,
}

impl Bound {
    fn of(lengths: &RowLengths, longest: usize, value: usize) -> Self {
        let (rows, all) = (lengths.rows(), lengths.as_slice());
        let mut short: Vec<u32> = all.iter().map(|&n| if n as usize > longest { 0 } else { n }).collect();
        let entries = short.iter().map(|&n| u64::from(n)).sum::<u64>();
        let (mut places, mut quads) = padded(&short);
        let mut order = 0;
        if wants_order(rows, places, entries) {
            let by_length = ordered_by_length(&short);
            short = (0..rows).map(|position| short[by_length.as_ref().row(position)]).collect();
            (places, quads) = padded(&short);
            order = rows as u64;
        }
        let long = all.iter().filter(|&&n| n as usize > longest);
        let (count, tail) = long.fold((0, 0), |(count, tail), &n| (count + 1, tail + u64::from(n)));
        let long = if count > 0 { tail * (4 + value as u64) + 12 * (count + 1) } else { 0 };
        let offsets = rows.div_ceil(SECTION) as u64 * 32 + 32;
        Bound { places, entries, other: QUAD * quads + offsets + order + long }
    }
}

/// Entries of slices as wide as their longest rows, and groups of four entries.
fn padded(lengths: &[u32]) -> (u64, u64) {
    let widths = lengths.chunks(SECTION).map(|s| u64::from(s.iter().copied().max().unwrap_or(0)));
    widths.fold((0, 0), |(places, quads), width| {
        (places + width * SECTION as u64, quads + width.div_ceil(4) * SECTION as u64)
    })
}
