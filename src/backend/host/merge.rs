//! Merging by co-rank: for any k, a search finds how many of the first k merged elements come from each input, so every
//! range of the result can be merged independently. Merge sort sorts chunks separately and then merges them in pairs.

use super::radix::Payload;
use crate::backend::Order;
use crate::parallel::prelude::*;
use crate::scalar::Key;

/// The number of elements of the result for one task.
const TILE: usize = 1 << 14;

/// The number of elements that are sorted together before merging begins.
const RUN: usize = 1 << 13;

/// Returns a key as bits that ascend in the requested order.
#[inline(always)]
fn rank<K: Key>(order: Order, key: K) -> u64 {
    match order {
        Order::Ascending => key.to_ordered(),
        Order::Descending => !key.to_ordered(),
    }
}

/// Returns how many of the first `k` merged elements come from `a`. Among equal keys, those of `a` come first.
fn co_rank<K: Key>(order: Order, k: usize, a: &[K], b: &[K]) -> usize {
    let (mut low, mut high) = (k.saturating_sub(b.len()), k.min(a.len()));
    while low < high {
        let i = low + (high - low) / 2;
        // `a[i]` is among the first k elements if and only if it comes before `b[k - 1 - i]`.
        if rank(order, a[i]) <= rank(order, b[k - 1 - i]) { low = i + 1 } else { high = i }
    }
    low
}

/// Keys with their values.
type Pairs<'a, K, V> = (&'a [K], &'a [V]);
/// Keys with their values, mutable.
type PairsMut<'a, K, V> = (&'a mut [K], &'a mut [V]);

fn merge_tile<K: Key, V: Payload>(
    order: Order,
    (a, av): Pairs<'_, K, V>,
    (b, bv): Pairs<'_, K, V>,
    (out, out_values): PairsMut<'_, K, V>,
) {
    let (mut i, mut j) = (0, 0);
    for (key, value) in out.iter_mut().zip(out_values) {
        let from_a = j == b.len() || (i < a.len() && rank(order, a[i]) <= rank(order, b[j]));
        if from_a {
            (*key, *value) = (a[i], av[i]);
            i += 1;
        } else {
            (*key, *value) = (b[j], bv[j]);
            j += 1;
        }
    }
}

/// Merges `a` and `b` into `out`.
pub(super) fn merge<K: Key, V: Payload>(
    order: Order,
    (a, av): Pairs<'_, K, V>,
    (b, bv): Pairs<'_, K, V>,
    (out, out_values): PairsMut<'_, K, V>,
) {
    let n = out.len();
    let tile = |t: usize, out: &mut [K], out_values: &mut [V]| {
        let (start, end) = (t * TILE, (t * TILE + TILE).min(n));
        let (i, i_end) = (co_rank(order, start, a, b), co_rank(order, end, a, b));
        let (of_a, of_b) = (i..i_end, start - i..end - i_end);
        let (a, av) = (&a[of_a.clone()], &av[of_a]);
        let (b, bv) = (&b[of_b.clone()], &bv[of_b]);
        merge_tile(order, (a, av), (b, bv), (out, out_values));
    };
    if n <= TILE {
        return tile(0, out, out_values);
    }
    let tiles = out.par_chunks_mut(TILE).zip(out_values.par_chunks_mut(TILE));
    tiles.enumerate().for_each(|(t, (out, out_values))| tile(t, out, out_values));
}

/// Sorts stably by comparisons.
pub(super) fn sort<K: Key, V: Payload>(order: Order, keys: &mut Vec<K>, values: &mut Vec<V>) {
    let n = keys.len();
    let runs = keys.par_chunks_mut(RUN).zip(values.par_chunks_mut(RUN));
    runs.for_each(|(keys, values)| sort_run(order, keys, values));
    if n <= RUN {
        return;
    }
    let mut other_keys = vec![K::default(); n];
    let mut other_values = vec![V::default(); n];
    let mut run = RUN;
    while run < n {
        let (keys_in, values_in) = (&**keys, &**values);
        let out = other_keys.par_chunks_mut(2 * run).zip(other_values.par_chunks_mut(2 * run));
        out.enumerate().for_each(|(pair, out)| {
            let start = pair * 2 * run;
            let (middle, end) = ((start + run).min(n), start + out.0.len());
            let a = (&keys_in[start..middle], &values_in[start..middle]);
            merge(order, a, (&keys_in[middle..end], &values_in[middle..end]), out);
        });
        std::mem::swap(keys, &mut other_keys);
        std::mem::swap(values, &mut other_values);
        run *= 2;
    }
}

fn sort_run<K: Key, V: Payload>(order: Order, keys: &mut [K], values: &mut [V]) {
    if keys.is_sorted_by_key(|&key| rank(order, key)) {
        return;
    }
    let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    pairs.sort_by_key(|pair| rank(order, pair.0));
    for (pair, (key, value)) in pairs.into_iter().zip(keys.iter_mut().zip(values)) {
        (*key, *value) = pair;
    }
}
