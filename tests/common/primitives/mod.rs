//! Cases of the primitives for every backend, each compared with a sequential twin; `all_cases` runs all of them.

mod arrange;
pub mod merge;
mod reduce;
mod repeat;
mod runs;
mod scan;
mod select;
pub mod sort;

pub use arrange::{gather_scatter_cases, pack_cases};
pub use merge::{merge_cases, merge_sort_cases};
pub use reduce::{reduce_by_key_cases, reduce_cases, segmented_reduce_cases};
pub use repeat::same_bits_cases;
pub use runs::{gather_sum_cases, mark_refusals, staged_cases};
pub use scan::{scan_cases, segmented_scan_cases};
pub use select::{histogram_cases, offsets_cases, select_cases};
pub use sort::{radix_sort_cases, segmented_sort_cases};

use crate::random::Random;
use residua::backend::{Order, Primitives, RunSums, Scan};
use residua::scalar::{Combine, Element, Key, Sum};
use std::cell::RefCell;

/// Zero, one, sizes around the limits of warps, tiles (as in `src/backend/cuda/tuning/table.rs`: 1025 and 2049 for
/// sorts, 1921 for reduce-by-key, 2305 for scans by heads, 2881 for sums of segments, 4097 for scans and merges, 8193
/// for selections) and chunks of the host, and primes; or the sizes given to [`with_sizes`].
fn sizes() -> Vec<usize> {
    let all = [
        0, 1, 2, 31, 33, 191, 257, 1025, 1921, 2049, 2305, 2881, 4097, 4099, 8193, 16384, 32769, 49152,
        100_003,
    ];
    SIZES.with_borrow(|sizes| sizes.clone().unwrap_or_else(|| all.to_vec()))
}

/// Those of `sizes` that are not larger than the largest given to [`with_sizes`].
fn small_enough(sizes: &[usize]) -> Vec<usize> {
    let largest = SIZES.with_borrow(|sizes| sizes.as_ref().and_then(|sizes| sizes.iter().max().copied()));
    sizes.iter().copied().filter(|&n| largest.is_none_or(|largest| n <= largest)).collect()
}

thread_local! {
    static SIZES: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
}

/// Runs cases on this thread with these sizes: under a sanitizer every kernel is a hundred times slower, and on several
/// streams every allocation waits.
#[allow(dead_code)] // Not every test program does.
pub fn with_sizes(sizes: &[usize], body: impl FnOnce()) {
    SIZES.set(Some(sizes.to_vec()));
    body();
    SIZES.set(None);
}

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            reduce_cases,
            segmented_reduce_cases,
            reduce_by_key_cases,
            scan_cases,
            segmented_scan_cases,
            histogram_cases,
            offsets_cases,
            select_cases,
            radix_sort_cases,
            segmented_sort_cases,
            merge_cases,
            merge_sort_cases,
            gather_scatter_cases,
            gather_sum_cases,
            mark_refusals,
            staged_cases,
            pack_cases,
            same_bits_cases,
            refusals
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// Runs all cases.
pub fn all_cases<B: RunSums>(b: &B) {
    macro_rules! run {
        ($($name:ident),*) => { $($name(b);)* };
    }
    each_case!(run);
}

fn up<T: Element, B: Primitives>(b: &B, x: &[T]) -> B::Vec<T> {
    b.upload(x.to_vec()).unwrap()
}

fn down<T: Element, B: Primitives>(b: &B, x: &B::Slice<T>) -> Vec<T> {
    b.download(x).unwrap()
}

/// Keys as bits, so that NaN and the sign of zero count.
fn ordered<K: Key>(keys: &[K]) -> Vec<u64> {
    keys.iter().map(|k| k.to_ordered()).collect()
}

fn fold<T: Element, O: Combine<T>>(_op: O, x: &[T]) -> T {
    x.iter().fold(O::identity(), |a, &b| O::combine(a, b))
}

/// Ascending offsets of random, often empty segments that cover `n` elements.
fn random_offsets(random: &mut Random, n: usize) -> Vec<usize> {
    let mut offsets = vec![0];
    let mut at = 0;
    while at < n {
        let longest = if random.below(50) == 0 { 5000 } else { 7 };
        at = (at + random.below(longest)).min(n);
        offsets.push(at);
    }
    offsets.push(n);
    offsets
}

fn narrow(x: &[usize]) -> Vec<u32> {
    x.iter().map(|&x| x as u32).collect()
}

/// Keys in runs of about `length`.
fn runs(random: &mut Random, n: usize, length: usize) -> Vec<u64> {
    let mut key = 0;
    random.vec(n, |r| {
        key += u64::from(r.below(length) == 0);
        key * 1_000_000_007
    })
}

pub const SPECIAL: &str = "NaN, zeros, infinities";

/// Keys that are difficult to sort, in bits of their ordered form: any; equal; with constant digits; and mixed NaN,
/// zeros of both signs, infinities and the smallest numbers if the type has them. For many keys, only the first and the
/// last of these.
pub fn patterns<K: Key>(random: &mut Random, n: usize) -> Vec<(&'static str, Vec<K>)> {
    let mask = u64::MAX >> (64 - K::BITS);
    let mut any = |varying: u64| random.vec(n, |r| K::from_ordered(r.next() & mask & varying));
    let (all, few, digit) = (any(u64::MAX), any(0x0600_0005), any(!0xff00));
    let mut sorted = all.clone();
    sorted.sort_by_key(|k| k.to_ordered());
    let reversed = sorted.iter().rev().copied().collect();
    let (minus_zero, infinity) = (mask >> 1, if K::BITS == 32 { 0xff80_0000 } else { 0xfff0 << 48 });
    let special = [0, mask, minus_zero, minus_zero + 1, minus_zero + 2, infinity, mask ^ infinity];
    let special = random.vec(n, |r| K::from_ordered(special[r.below(special.len())]));
    if n > 20_000 {
        return vec![("any", all), (SPECIAL, special)];
    }
    vec![
        ("any", all),
        ("sorted", sorted),
        ("reversed", reversed),
        ("all equal", vec![K::default(); n]),
        ("one digit constant", digit),
        ("few varying bits", few),
        (SPECIAL, special),
    ]
}

/// Lengths that do not match and indices out of range are errors.
pub fn refusals<B: Primitives>(b: &B) {
    let three = up(b, &[1u32, 2, 3]);
    let mut two = b.zeros::<u32>(2).unwrap();
    assert!(b.scan(Scan::Inclusive, Sum, &three, &mut two).is_err());
    assert!(b.exclusive_scan(&three, &mut two).is_err());
    assert!(b.reduce(Sum, &three, &mut two).is_err());
    assert!(b.merge(Order::Ascending, &three, &three, &mut two).is_err());
    assert!(b.pack(&three, &two, 4, &mut b.zeros(3).unwrap()).is_err());
    let refused = b.gather(&two, &three, &mut b.zeros(3).unwrap()).and_then(|()| b.synchronize());
    assert!(refused.is_err(), "an index out of range");
}
