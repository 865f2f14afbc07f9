//! The survey's message to the host: its layout, and how the host evaluates it.

use super::super::slice::Slice;
use crate::backend::{FoundKinds, Keys, Lookup, MOST_KEYS};
use crate::scalar::{Element, Scalar};

/// The number of slots in a set (`kernels/compressed.cuh`).
pub(super) const SLOTS: usize = 1024;
/// The layout of the message: the keys of four sets and the first rows of two of them, then six counters of half a word
/// each, the totals of slice sizes, the flag for a missing key, lists of the sets' used slots, and the long rows.
const SETS: usize = 6 * SLOTS;
pub(super) const TOTALS: usize = SETS + 3;
pub(super) const WRONG: usize = TOTALS + 6;
pub(super) const LISTS: usize = WRONG + 1;
/// The number of slot indices in a word of these lists.
const LISTED: usize = 4;
pub(super) const HEAD: usize = LISTS + 4 * MOST_KEYS / LISTED;
/// The number of long rows that are copied with the message: usually enough for all, and few enough to cost little if
/// there are none.
pub(super) const ALONG: usize = 1 << 10;

/// One set of the survey. The keys in its slots are stored with all bits inverted.
struct Set<'a> {
    number: usize,
    slots: &'a [u64],
    used: Vec<usize>,
}

impl<'a> Set<'a> {
    /// Creates the set from its used slots, `listed`, sorted by `rank(slot, key)`.
    fn new(
        number: usize,
        slots: &'a [u64],
        listed: impl Iterator<Item = usize>,
        rank: &dyn Fn(usize, u64) -> u64,
    ) -> Self {
        // Each pair is sorted as one wide integer, which avoids branches that can't be predicted.
        let ranked = listed.map(|slot| u128::from(rank(slot, !slots[slot])) << 64 | slot as u128);
        let mut ranked: Vec<u128> = ranked.collect();
        ranked.sort_unstable();
        Self { number, slots, used: ranked.iter().map(|&slot| slot as usize).collect() }
    }

    /// Returns the table from slots to codes, which ascend in the sorted order.
    fn lookup(&self) -> Lookup {
        let mut codes = vec![0; SLOTS];
        self.used.iter().zip(0..=u8::MAX).for_each(|(&slot, code)| codes[slot] = code);
        Lookup { set: self.number, codes, ..Lookup::default() }
    }

    fn keys<K: Element>(&self, key: impl Fn(u64) -> K) -> Keys<K> {
        let keys = self.used.iter().map(|&slot| key(!self.slots[slot])).collect();
        Keys { keys, lookup: self.lookup() }
    }

    /// Returns the kinds. `first` has, for each slot, the first row and the length of the kind, also with all bits
    /// inverted.
    fn kinds(self, first: &[u64]) -> FoundKinds {
        let told = self.used.iter().map(|&slot| ((!first[slot] >> 32) as u32, !first[slot] as u32));
        let (first_rows, lengths) = told.unzip();
        FoundKinds { first_rows, lengths, lookup: self.lookup() }
    }
}

/// The host's evaluation of the survey's message.
pub(super) struct Told<V: Element> {
    pub(super) distances: Option<Keys<u32>>,
    pub(super) values: Option<Keys<V>>,
    pub(super) kinds: Option<FoundKinds>,
    pub(super) lines: Option<FoundKinds>,
    pub(super) narrow: bool,
    pub(super) totals: [u64; 6],
    /// The long rows, ascending, each with its length; if not all were copied, only their number.
    pub(super) long: Result<Vec<(u32, u32)>, usize>,
}

impl<V: Scalar> Told<V> {
    pub(super) fn of(told: &[u64]) -> Self {
        let counter = |which: usize| (told[SETS + which / 2] >> (32 * (which % 2))) as u32;
        let keys = |which: usize| &told[which * SLOTS..(which + 1) * SLOTS];
        // Distances are sorted as signed numbers, and values by their bits, the real part first.
        let distance = |_, key| u64::from(key as u32 ^ 1 << 31);
        let value = |_, key: u64| if V::COMPLEX { key.rotate_left(32) } else { key };
        // The host reads only the listed slots, because memory that a device has written is slow to read.
        let set = |which: usize, most: usize, rank: &dyn Fn(usize, u64) -> u64| {
            let count = counter(which) as usize;
            let list = &told[LISTS + which * MOST_KEYS / LISTED..];
            let listed = (0..count).map(|i| usize::from((list[i / LISTED] >> (16 * (i % LISTED))) as u16));
            (count <= most).then(|| Set::new(which, keys(which), listed, rank))
        };
        let distances = set(0, MOST_KEYS - 1, &distance).map(|set| set.keys(|key| key as u32));
        let values = set(1, MOST_KEYS, &value).map(|set| set.keys(value_of));
        let kinds = |which: usize| {
            let first = keys(which + 2);
            set(which, MOST_KEYS - 1, &|slot, _| !first[slot]).map(|set| set.kinds(first))
        };
        let mut totals = [0; 6];
        totals.copy_from_slice(&told[TOTALS..WRONG]);
        let count = counter(5) as usize;
        let long = match told.get(HEAD..HEAD + count) {
            Some(rows) => {
                let mut rows = rows.to_vec();
                rows.sort_unstable();
                Ok(rows.iter().map(|&two| ((two >> 32) as u32, two as u32)).collect())
            }
            None => Err(count),
        };
        Self { distances, values, kinds: kinds(2), lines: kinds(3), narrow: counter(4) == 0, totals, long }
    }
}

/// Returns the keys of one of the survey's sets.
pub(super) fn slots_of(sets: &Slice<u64>, number: usize) -> &Slice<u64> {
    sets.part(number * SLOTS..(number + 1) * SLOTS)
}

fn value_of<V: Scalar>(key: u64) -> V {
    V::from_bits(if V::COMPLEX { [key & 0xffff_ffff, key >> 32] } else { [key, 0] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_keys_as_a_byte_has_values_have_a_code_each() {
        let slots: Vec<u64> = (0..SLOTS as u64).map(|key| !key).collect();
        let set = Set::new(1, &slots, (0..MOST_KEYS).map(|key| 4 * key), &|_, key| key);
        let codes = set.lookup().codes;
        assert!((0..MOST_KEYS).all(|key| usize::from(codes[4 * key]) == key));
    }
}
