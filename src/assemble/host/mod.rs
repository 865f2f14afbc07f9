//! Assembly on the CPU in little memory.
//!
//! The general way ([`super::sorting`]) carries 12 bytes of keys and numbers a triplet through several passes over
//! main memory, twice (a pass needs a second buffer). Here one pass over main memory distributes the entries into
//! buckets of consecutive rows that fit the second-level cache; each bucket is then sorted and summed there, in place.
//! Measured on 20 million random triplets: see docs/benchmarks/cpu.md, "Assembly".
//!
//! Bytes a triplet, values of 8 bytes, keys of 4 (8 where a row within its bucket and a column exceed 32 bits):
//!
//! ```text
//! rows, columns, values                        4 + 4 + 8            16
//! values in buckets beside them                4 + 4 + 8 + 8        24
//! those freed, keys in buckets                 4 + 4     + 8 + 4    20
//! rows and columns freed, sums in place                    8 + 4    12
//! ```
//!
//! A stored half takes half as much in the first three columns. Triplets that are sorted by (row, column) are
//! not moved at all; where they are sorted by column, or are one triangle sorted either way, every row receives its
//! columns in order, and buckets are sorted by row alone.

mod bucket;
mod order;
mod partition;

use super::sorting::significant_bits;
use super::{Assemble, ResidentTriplets, Symmetry};
use crate::backend::{Backend, Host, NARROW_LIMIT, Offsets, Primitives};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};
use bucket::Bucket;
use order::Arrangement;
use partition::{Entries, Keys, Plan, Values};
use std::any::Any;

impl Assemble for Host {
    fn assemble<T: Scalar>(&self, triplets: ResidentTriplets<T, Host>, symmetry: Symmetry) -> Result<Csr<T>> {
        let entries = triplets.len().saturating_mul(if symmetry == Symmetry::General { 1 } else { 2 });
        if entries <= NARROW_LIMIT {
            assemble::<T, u32>(triplets, symmetry, Offsets::Narrow)
        } else {
            assemble::<T, u64>(triplets, symmetry, Offsets::Wide)
        }
    }
}

fn assemble<T: Scalar, O: Offset>(
    triplets: ResidentTriplets<T, Host>,
    symmetry: Symmetry,
    wrap: fn(Vec<O>) -> Offsets<Host>,
) -> Result<Csr<T>> {
    let ResidentTriplets { rows, columns, row_indices: is, column_indices: js, mut values, .. } = triplets;
    match order::arrangement(&is, &js, symmetry) {
        Arrangement::Sorted { duplicates } => {
            let (mut is, mut js) = (is, js);
            if duplicates {
                order::sum_neighbours(&mut is, &mut js, &mut values);
            }
            let mut offsets = Host.zeros::<O>(rows + 1)?;
            Host.offsets_of_sorted(&is, &mut offsets)?;
            Ok(finish(rows, columns, offsets, wrap, js, values))
        }
        arrangement => {
            let low = if arrangement == Arrangement::RowsInOrder { significant_bits(columns) } else { 0 };
            let shape = Shape::new(rows, columns, is.len(), low);
            let entries = Entries { is, js, values, symmetry };
            let (offsets, indices, values) = if shape.key_bits() <= 32 {
                in_buckets::<T, u32, O>(shape, entries)?
            } else {
                in_buckets::<T, u64, O>(shape, entries)?
            };
            Ok(finish(rows, columns, offsets, wrap, indices, values))
        }
    }
}

/// Offsets were sized for all triplets; what is left of them may be few enough for the narrow kind.
fn finish<T: Scalar, O: Offset>(
    rows: usize,
    columns: usize,
    offsets: Vec<O>,
    wrap: fn(Vec<O>) -> Offsets<Host>,
    indices: Vec<u32>,
    values: Vec<T>,
) -> Csr<T> {
    let offsets = if O::MAX > NARROW_LIMIT && values.len() <= NARROW_LIMIT {
        Offsets::Narrow(offsets.into_iter().map(|o| o.to_usize() as u32).collect())
    } else {
        wrap(offsets)
    };
    Csr::from_parts_unchecked(rows, columns, offsets, indices, values)
}

/// How rows and columns are split: `row >> row_shift` is the bucket, the rest of the row and the column are the key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    rows: usize,
    /// Bits of a column.
    column_bits: u32,
    /// Bits of a row within its bucket.
    row_shift: u32,
    /// Key bits below this one are in order already.
    low: u32,
}

impl Shape {
    fn new(rows: usize, columns: usize, triplets: usize, low: u32) -> Self {
        let row_bits = significant_bits(rows);
        let wanted = significant_bits(triplets.div_ceil(bucket::TARGET));
        let row_shift = row_bits - wanted.min(partition::DIGIT).min(row_bits);
        Self { rows, column_bits: significant_bits(columns), row_shift, low }
    }

    fn key_bits(self) -> u32 {
        self.row_shift + self.column_bits
    }

    fn buckets(self) -> usize {
        self.rows.div_ceil(1 << self.row_shift).max(1)
    }
}

/// Row offsets, column indices and values.
type Arrays<T, O> = (Vec<O>, Vec<u32>, Vec<T>);

fn in_buckets<T: Scalar, K: Offset, O: Offset>(shape: Shape, entries: Entries<T>) -> Result<Arrays<T, O>> {
    let Entries { is, js, values, symmetry } = entries;
    let of_keys = Keys::<K>::new(shape, symmetry, &is, &js);
    let plan = Plan::new(is.len(), shape.buckets(), &of_keys);
    let mut moved = Host.zeros::<T>(plan.len())?;
    plan.scatter(&mut moved, &Values::new(shape, symmetry, &is, &js, &values));
    drop(values);
    let mut values = moved;
    let mut keys = Host.zeros::<K>(plan.len())?;
    plan.scatter(&mut keys, &of_keys);
    drop((is, js));

    let buckets = bucket::split(shape, plan.starts(), &mut keys, &mut values)?;
    let mut offsets = Host.zeros::<O>(shape.rows + 1)?;
    let counts = bucket::sum_all(shape, &buckets, &mut keys, &mut values, &mut offsets[1..]);
    bucket::finish_offsets(shape, &buckets, &counts, &mut offsets[1..]);
    close_gaps(&buckets, &counts, &mut values);
    close_gaps(&buckets, &counts, &mut keys);
    Ok((offsets, into_indices(keys), values))
}

/// Moves what each bucket kept to the end of what those before it kept.
fn close_gaps<T: Copy>(buckets: &[Bucket], counts: &[usize], x: &mut Vec<T>) {
    let mut end = 0;
    for (bucket, &count) in buckets.iter().zip(counts) {
        if bucket.start != end {
            x.copy_within(bucket.start..bucket.start + count, end);
        }
        end += count;
    }
    x.truncate(end);
    x.shrink_to_fit();
}

/// Keys of which only columns are left, as columns: the same buffer where keys have 32 bits.
fn into_indices<K: Offset>(keys: Vec<K>) -> Vec<u32> {
    let mut keys: Box<dyn Any> = Box::new(keys);
    match keys.downcast_mut::<Vec<u32>>() {
        Some(keys) => std::mem::take(keys),
        None => {
            let keys = keys.downcast::<Vec<u64>>().map_or_else(|_| Vec::new(), |keys| *keys);
            keys.into_iter().map(|key| key as u32).collect()
        }
    }
}
