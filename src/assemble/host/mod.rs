//! Assembly of a CSR matrix from triplets on the CPU, with little memory.
//!
//! The general method ([`super::sorting`]) moves a key and an entry number of 12 bytes together for each triplet
//! through several passes over main memory, and needs a second buffer of that size. The method of this module passes
//! over main memory once to distribute the entries into buckets of consecutive rows. A bucket fits the second-level
//! cache, where it is then sorted and summed in place. docs/internals/benchmarks/cpu.md, "Assembly", has its times for
//! 20 million random triplets.
//!
//! The table lists the bytes per triplet. Values take 8 bytes and keys 4, or 8 if a row within its bucket and a column
//! together exceed 32 bits. The columns are row indices and column indices, values, values in buckets, and keys:
//!
//! ```text
//! the triplets                                 4 + 4 + 8            16
//! values copied to buckets                     4 + 4 + 8 + 8        24
//! original values freed, keys in buckets       4 + 4     + 8 + 4    20
//! indices freed, sums formed in place                      8 + 4    12
//! ```
//!
//! If only one triangle is stored, the first three columns take half as much. Triplets that are sorted by (row, column)
//! are not moved at all. If they are sorted by column, or are one triangle sorted by row or by column, then every row
//! receives its columns in ascending order, and buckets need sorting by row only.

mod bucket;
mod order;
mod partition;

use super::sorting::significant_bits;
use super::{Assemble, ResidentTriplets, Symmetry};
use crate::backend::{Backend, Host, NARROW_LIMIT, Offsets, Primitives};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::scalar::{Offset, Scalar};
use bucket::Bucket;
pub(crate) use order::Arrangement;
pub(crate) use partition::Stretch;
use partition::{Keys, Plan, Values};
use std::any::Any;
use std::ops::Range;

impl Assemble for Host {
    fn assemble<T: Scalar>(&self, triplets: ResidentTriplets<T, Host>, symmetry: Symmetry) -> Result<Csr<T>> {
        let ResidentTriplets { rows, columns, row_indices: is, column_indices: js, values, .. } = triplets;
        let arrangement = order::arrangement(&is, &js, symmetry);
        let entries = Entries { stretches: vec![Stretch { is, js, values }], symmetry };
        entries.assemble([rows, columns], 0..rows, arrangement)
    }
}

/// Assembles the rows `own` of a matrix from triplets that come in consecutive pieces. Entries and mirror images in
/// other rows are left out. `arrangement` is the order of the triplets of all pieces together. The result has the size
/// of the whole matrix, with the other rows empty. Its rows `own` have the same bits as those that [`super::Assembler`]
/// computes.
///
/// # Errors
/// If memory runs out.
#[cfg(any(test, all(unix, feature = "ranks", feature = "cli")))]
pub(crate) fn some_rows<T: Scalar>(
    [rows, columns]: [usize; 2],
    own: Range<usize>,
    (stretches, symmetry): (Vec<Stretch<T>>, Symmetry),
    arrangement: Arrangement,
) -> Result<Csr<T>> {
    Entries { stretches, symmetry }.assemble([rows, columns], own, arrangement)
}

/// The triplets to assemble, in consecutive pieces.
struct Entries<T> {
    stretches: Vec<Stretch<T>>,
    symmetry: Symmetry,
}

impl<T: Scalar> Entries<T> {
    fn len(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.is.len()).sum()
    }

    fn assemble(
        self,
        [rows, columns]: [usize; 2],
        own: Range<usize>,
        arrangement: Arrangement,
    ) -> Result<Csr<T>> {
        let entries = self.len().saturating_mul(if self.symmetry == Symmetry::General { 1 } else { 2 });
        let whole = Whole { rows, columns, own };
        if entries <= NARROW_LIMIT {
            assemble::<T, u32>(self, whole, arrangement, Offsets::Lower)
        } else {
            assemble::<T, u64>(self, whole, arrangement, Offsets::Wide)
        }
    }

    /// Returns the triplets of the rows `own` as one piece. The rows of the triplets must ascend.
    fn joined(self, own: &Range<usize>) -> Stretch<T> {
        let mut all: Option<Stretch<T>> = None;
        for mut stretch in self.stretches {
            let place = |row: usize| stretch.is.partition_point(|&i| (i as usize) < row);
            let kept = place(own.start)..place(own.end);
            stretch.keep(kept);
            match &mut all {
                None => all = Some(stretch),
                // The shorter of two pieces is copied, here in front of the longer one.
                Some(before) if before.is.len() < stretch.is.len() => {
                    stretch.is.splice(..0, before.is.drain(..));
                    stretch.js.splice(..0, before.js.drain(..));
                    stretch.values.splice(..0, before.values.drain(..));
                    *before = stretch;
                }
                Some(before) => {
                    before.is.append(&mut stretch.is);
                    before.js.append(&mut stretch.js);
                    before.values.append(&mut stretch.values);
                }
            }
        }
        all.unwrap_or(Stretch { is: Vec::new(), js: Vec::new(), values: Vec::new() })
    }
}

/// The size of a matrix, and which of its rows are assembled.
struct Whole {
    rows: usize,
    columns: usize,
    own: Range<usize>,
}

fn assemble<T: Scalar, O: Offset>(
    entries: Entries<T>,
    whole: Whole,
    arrangement: Arrangement,
    wrap: fn(Vec<O>) -> Offsets<Host>,
) -> Result<Csr<T>> {
    let Whole { rows, columns, own } = whole;
    match arrangement {
        Arrangement::Sorted { duplicates } => {
            let Stretch { mut is, mut js, mut values } = entries.joined(&own);
            if duplicates {
                order::sum_neighbours(&mut is, &mut js, &mut values);
            }
            let mut offsets = Host.zeros::<O>(rows + 1)?;
            Host.offsets_of_sorted(&is, &mut offsets)?;
            Ok(finish(rows, columns, offsets, wrap, js, values))
        }
        arrangement => {
            let low = if arrangement == Arrangement::RowsInOrder { significant_bits(columns) } else { 0 };
            let shape = Shape::new(&own, columns, entries.len(), low);
            let (offsets, indices, values) = if shape.key_bits() <= 32 {
                in_buckets::<T, u32, O>(shape, entries, rows)?
            } else {
                in_buckets::<T, u64, O>(shape, entries, rows)?
            };
            Ok(finish(rows, columns, offsets, wrap, indices, values))
        }
    }
}

/// Builds the matrix. The type of the offsets was chosen by the number of triplets; after summing, the entries may be
/// few enough for 32-bit offsets, to which they are then converted.
fn finish<T: Scalar, O: Offset>(
    rows: usize,
    columns: usize,
    offsets: Vec<O>,
    wrap: fn(Vec<O>) -> Offsets<Host>,
    indices: Vec<u32>,
    values: Vec<T>,
) -> Csr<T> {
    let offsets = if O::MAX > NARROW_LIMIT && values.len() <= NARROW_LIMIT {
        Offsets::Lower(offsets.into_iter().map(|o| o.to_usize() as u32).collect())
    } else {
        wrap(offsets)
    };
    Csr::from_parts_unchecked(rows, columns, offsets, indices, values)
}

/// How a place of the matrix is split into a bucket and a key. `row >> row_shift` is the bucket; the low bits of the
/// row, followed by those of the column, are the key. Rows are counted from the first one that is assembled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    first: usize,
    rows: usize,
    /// The number of bits of a column in a key.
    column_bits: u32,
    /// The number of bits of a row in a key.
    row_shift: u32,
    /// The first key bit to sort by. The entries of a row are in the order of the lower bits already.
    low: u32,
}

impl Shape {
    fn new(own: &Range<usize>, columns: usize, triplets: usize, low: u32) -> Self {
        let (first, rows) = (own.start, own.len());
        let row_bits = significant_bits(rows);
        let wanted = significant_bits(triplets.div_ceil(bucket::TARGET));
        let row_shift = row_bits - wanted.min(partition::DIGIT).min(row_bits);
        Self { first, rows, column_bits: significant_bits(columns), row_shift, low }
    }

    /// Returns the number of a row of the whole matrix among those that are assembled, or `None` if it is not one of
    /// them.
    #[inline(always)]
    fn row(self, row: u32) -> Option<usize> {
        let row = (row as usize).wrapping_sub(self.first);
        (row < self.rows).then_some(row)
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

fn in_buckets<T: Scalar, K: Offset, O: Offset>(
    shape: Shape,
    entries: Entries<T>,
    rows: usize,
) -> Result<Arrays<T, O>> {
    let inputs = entries.len();
    let Entries { mut stretches, symmetry } = entries;
    let plan = Plan::new(inputs, shape.buckets(), &Keys::<T, K>::new(shape, symmetry, &stretches));
    let mut values = Host.zeros::<T>(plan.len())?;
    plan.scatter(&mut values, &Values::new(shape, symmetry, &stretches));
    stretches.iter_mut().for_each(|stretch| stretch.values = Vec::new());
    let mut keys = Host.zeros::<K>(plan.len())?;
    plan.scatter(&mut keys, &Keys::<T, K>::new(shape, symmetry, &stretches));
    drop(stretches);

    let buckets = bucket::split(shape, plan.starts(), &mut keys, &mut values)?;
    let mut offsets = Host.zeros::<O>(rows + 1)?;
    let (_, after) = offsets[1..].split_at_mut(shape.first);
    let (own, after) = after.split_at_mut(shape.rows);
    let counts = bucket::sum_all(shape, &buckets, &mut keys, &mut values, own);
    bucket::finish_offsets(shape, &buckets, &counts, own);
    after.fill(O::from_usize(counts.iter().sum()));
    close_gaps(&buckets, &counts, &mut values);
    close_gaps(&buckets, &counts, &mut keys);
    Ok((offsets, into_indices(keys), values))
}

/// Moves the sums of all buckets together. Summing has left unused places at the end of each bucket.
fn close_gaps<T: Copy>(buckets: &[Bucket], counts: &[usize], x: &mut Vec<T>) {
    let mut end = 0;
    for (bucket, &count) in both(buckets, counts) {
        if bucket.start != end {
            x.copy_within(bucket.start..bucket.start + count, end);
        }
        end += count;
    }
    x.truncate(end);
    x.shrink_to_fit();
}

/// Converts keys, of which only the columns are left, to column indices. Keys of 32 bits need no copy.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Assembler;
    use crate::matrix::Triplets;
    use crate::random::Random;

    /// Returns random places of a matrix in the order `arrangement`. Places are repeated, and are in both triangles, if
    /// the symmetry and the arrangement allow it.
    fn places(n: u32, symmetry: Symmetry, arrangement: Arrangement) -> Vec<(u32, u32)> {
        let mut random = Random::new(7);
        let mut number = || random.below(u64::from(n)) as u32;
        let mut places: Vec<(u32, u32)> = (0..9 * n).map(|_| (number(), number())).collect();
        if arrangement != Arrangement::Any {
            if symmetry != Symmetry::General {
                places.iter_mut().for_each(|(i, j)| (*i, *j) = (*i.max(j), *i.min(j)));
            }
            places.sort_unstable();
            if arrangement == Arrangement::RowsInOrder {
                places.sort_by_key(|&(_, j)| j);
            } else {
                places.dedup();
            }
        }
        places
    }

    #[test]
    fn some_rows_have_the_bits_of_all() {
        let sorted = Arrangement::Sorted { duplicates: false };
        for (symmetry, arrangement) in [
            (Symmetry::General, sorted),
            (Symmetry::General, Arrangement::RowsInOrder),
            (Symmetry::General, Arrangement::Any),
            (Symmetry::Symmetric, Arrangement::RowsInOrder),
            (Symmetry::SkewSymmetric, Arrangement::Any),
        ] {
            let n = 97;
            let (is, mut js): (Vec<u32>, Vec<u32>) = places(n, symmetry, arrangement).into_iter().unzip();
            if symmetry == Symmetry::SkewSymmetric {
                js.iter_mut().zip(&is).filter(|(j, i)| j == i).for_each(|(j, i)| *j = (i + 1) % n);
            }
            let values: Vec<f64> = (0..is.len()).map(|k| 1.0 / (k + 1) as f64).collect();
            let all = Triplets::from_parts(n as usize, n as usize, is.clone(), js.clone(), values.clone());
            let whole = Assembler::default().symmetry(symmetry).to_csr(&Host, all.unwrap()).unwrap();
            for own in [0..97, 0..40, 40..41, 41..97, 97..97] {
                for cuts in [[0, is.len()], [100, 101], [is.len() / 3, is.len() / 2]] {
                    let ends = [0, cuts[0], cuts[1], is.len()];
                    let stretch = |w: &[usize]| Stretch {
                        is: is[w[0]..w[1]].to_vec(),
                        js: js[w[0]..w[1]].to_vec(),
                        values: values[w[0]..w[1]].to_vec(),
                    };
                    let stretches = ends.windows(2).map(stretch).collect();
                    let some = some_rows([97, 97], own.clone(), (stretches, symmetry), arrangement).unwrap();
                    for row in 0..97 {
                        let expected = if own.contains(&row) { whole.row(row) } else { (&[][..], &[][..]) };
                        assert_eq!(some.row(row), expected, "{symmetry:?} {arrangement:?} {own:?} {row}");
                    }
                }
            }
        }
    }
}
