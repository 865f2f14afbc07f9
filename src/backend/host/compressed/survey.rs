//! Finds the repetitions in a matrix. Each chunk of rows is surveyed separately, and the result does not depend on how
//! the rows are divided into chunks.

use super::{Rows, by_rows};
use crate::backend::{FoundKinds, Host, Keys, Kinds, LongRows, Lookup, MOST_KEYS, Survey};
use crate::mixing::mixed;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

/// The number of slots in the table of [`Few`]: about four for each of [`MOST_KEYS`] keys, so that searches are short.
const SLOTS: usize = 1024;

/// The real and imaginary bits of a value, or a distance or hash as the first element.
type Key = [u64; 2];

/// A set of at most [`MOST_KEYS`] distinct keys, by open addressing, each with the first row in which it occurs. `full`
/// is set if there are more.
struct Few {
    slots: Vec<Option<(Key, u32)>>,
    count: usize,
    full: bool,
}

impl Few {
    fn new() -> Self {
        Self { slots: vec![None; SLOTS], count: 0, full: false }
    }

    /// Adds a key. Returns whether it is new, or whether the set is full.
    fn add(&mut self, key: Key, row: u32) -> bool {
        if self.full {
            return true;
        }
        let mut slot = mixed(key[0] ^ key[1].rotate_left(32)) as usize % SLOTS;
        loop {
            match &mut self.slots[slot] {
                Some((found, first)) if *found == key => {
                    *first = row.min(*first);
                    return false;
                }
                Some(_) => slot = (slot + 1) % SLOTS,
                free => {
                    *free = Some((key, row));
                    self.count += 1;
                    self.full = self.count > MOST_KEYS;
                    return true;
                }
            }
        }
    }

    fn merge(&mut self, other: &Few) {
        self.full |= other.full;
        other.keys().for_each(|(key, row)| _ = self.add(key, row));
    }

    fn keys(&self) -> impl Iterator<Item = (Key, u32)> + '_ {
        self.slots.iter().flatten().copied()
    }

    /// Returns all keys, or `None` if there are more than `most`.
    fn into_keys(self, most: usize) -> Option<Vec<(Key, u32)>> {
        (!self.full && self.count <= most).then(|| self.keys().collect())
    }
}

/// Returns two hashes of a row: of its distances, and of its distances and values.
fn hashes<V: Scalar>(row: usize, columns: &[u32], values: &[V]) -> [u64; 2] {
    let start = columns.len() as u64;
    columns.iter().zip(values).fold([start, start], |[pattern, line], (&column, value)| {
        let pattern = mixed(pattern.wrapping_mul(31) ^ u64::from(column.wrapping_sub(row as u32)));
        let [re, im] = value.bits();
        [pattern, mixed(line.wrapping_mul(31) ^ pattern ^ mixed(re ^ im.rotate_left(29)))]
    })
}

/// The repetitions in a chunk of rows.
struct Found {
    distances: Few,
    values: Few,
    patterns: Few,
    lines: Few,
    narrow: bool,
    long: Vec<(u32, u32)>,
}

fn chunk<O: Offset, V: Scalar>(a: Rows<'_, O, V>, rows: Range<usize>, longest: usize) -> Found {
    let [distances, values, patterns, lines] = std::array::from_fn(|_| Few::new());
    let mut found = Found { distances, values, patterns, lines, narrow: true, long: Vec::new() };
    let first = rows.start;
    for row in rows {
        let range = a.range(row);
        if range.len() > longest {
            found.long.push((row as u32, range.len() as u32));
            continue;
        }
        let (columns, numbers) = a.entries(range.clone());
        found.narrow = found.narrow && numbers.iter().all(|v| v.narrow().is_some());
        if row > first && a.like_the_last(row, &range, true) {
            continue;
        }
        let [pattern, line] = hashes(row, columns, numbers);
        if found.patterns.add([pattern, 0], row as u32) {
            for &column in columns {
                found.distances.add([u64::from(column.wrapping_sub(row as u32)), 0], 0);
            }
        }
        if found.lines.add([line, 0], row as u32) {
            numbers.iter().for_each(|v| _ = found.values.add(v.bits(), 0));
        }
    }
    found
}

pub(super) fn survey<O: Offset, V: Scalar>(a: Rows<'_, O, V>, longest: usize) -> Survey<V, Host> {
    let mut parts = by_rows(a.a.rows, |rows| chunk(a, rows, longest)).into_iter();
    let mut all = parts.next().unwrap_or_else(|| chunk(a, 0..0, longest));
    for part in parts {
        all.distances.merge(&part.distances);
        all.values.merge(&part.values);
        all.patterns.merge(&part.patterns);
        all.lines.merge(&part.lines);
        all.narrow &= part.narrow;
        all.long.extend(part.long);
    }
    let distances = all.distances.into_keys(MOST_KEYS - 1).map(sorted_distances);
    let values = all.values.into_keys(MOST_KEYS).map(|found| Keys {
        keys: sorted_values(found).into_iter().map(V::from_bits).collect(),
        lookup: Lookup::default(),
    });
    let length = |row: u32| a.range(row as usize).len() as u32;
    let kinds = |few: Few| few.into_keys(MOST_KEYS - 1).map(|found| found_kinds(found, &length));
    let (patterns, lines) = (kinds(all.patterns), kinds(all.lines));
    let (long_rows, sets, sizes) = (LongRows::Told(all.long), vec![0], None);
    Survey { distances, values, narrow: all.narrow, kinds: patterns, lines, long_rows, sets, sizes }
}

fn sorted_distances(found: Vec<(Key, u32)>) -> Keys<u32> {
    let mut keys: Vec<u32> = found.iter().map(|(key, _)| key[0] as u32).collect();
    keys.sort_by_key(|&d| d as i32);
    Keys { keys, lookup: Lookup::default() }
}

fn sorted_values(found: Vec<(Key, u32)>) -> Vec<Key> {
    let mut keys: Vec<Key> = found.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    keys
}

/// Sorts kinds by their first rows, and hashes in ascending order with the kinds as their codes.
fn found_kinds(mut found: Vec<(Key, u32)>, length: &dyn Fn(u32) -> u32) -> FoundKinds {
    found.sort_unstable_by_key(|&(_, row)| row);
    let first_rows: Vec<u32> = found.iter().map(|&(_, row)| row).collect();
    let lengths = first_rows.iter().map(|&row| length(row)).collect();
    let mut hashes: Vec<(u64, u8)> = found.iter().zip(0..).map(|((key, _), code)| (key[0], code)).collect();
    hashes.sort_unstable();
    let (hashes, codes) = hashes.into_iter().unzip();
    FoundKinds { first_rows, lengths, lookup: Lookup { hashes, codes, ..Lookup::default() } }
}

/// Returns the kind of each row and the tables of kinds, and whether every row matches one.
pub(super) fn kinds<O: Offset, V: Scalar>(
    a: Rows<'_, O, V>,
    found: &FoundKinds,
    with_values: bool,
) -> (Kinds<V, Host>, bool) {
    let mut starts = vec![0];
    let (mut distances, mut values) = (Vec::new(), Vec::new());
    for &row in &found.first_rows {
        let (columns, numbers) = a.entries(a.range(row as usize));
        distances.extend(columns.iter().map(|j| j.wrapping_sub(row)));
        if with_values {
            values.extend_from_slice(numbers);
        }
        starts.push(distances.len() as u32);
    }
    let kind_of = |row: usize, range: Range<usize>| {
        let (columns, numbers) = a.entries(range);
        let hash = hashes(row, columns, numbers)[usize::from(with_values)];
        let kind = found.lookup.codes[found.lookup.hashes.binary_search(&hash).ok()?];
        let table = starts[usize::from(kind)] as usize..starts[usize::from(kind) + 1] as usize;
        let same =
            distances[table.clone()].iter().zip(columns).all(|(d, j)| d.wrapping_add(row as u32) == *j)
                && (!with_values
                    || values[table.clone()].iter().zip(numbers).all(|(v, w)| v.bits() == w.bits()));
        (same && table.len() == columns.len()).then_some(kind)
    };
    let mut of_row = vec![0; a.a.rows];
    let chunk = 1 << 12;
    let good =
        of_row.par_chunks_mut(chunk).enumerate().with_min_len(4).all(|(c, out): (usize, &mut [u8])| {
            let mut last = 0;
            out.iter_mut().zip(c * chunk..).enumerate().all(|(i, (out, row))| {
                let range = a.range(row);
                if i == 0 || !a.like_the_last(row, &range, with_values) {
                    match kind_of(row, range) {
                        Some(kind) => last = kind,
                        None => return false,
                    }
                }
                *out = last;
                true
            })
        });
    (Kinds { of_row, starts, distances, values }, good)
}
