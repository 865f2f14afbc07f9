//! Merges, and merge sort.

use super::{down, ordered, patterns, sizes, small_enough, up};
use crate::random::Random;
use residua::backend::{Order, Primitives};
use residua::scalar::Key;

fn sort_by_order<K: Key>(order: Order, pairs: &mut [(K, u32)]) {
    match order {
        Order::Ascending => pairs.sort_by_key(|p| p.0.to_ordered()),
        Order::Descending => pairs.sort_by_key(|p| std::cmp::Reverse(p.0.to_ordered())),
    }
}

pub fn merge_cases<B: Primitives>(b: &B) {
    let large = [(4099, 4099), (40_000, 3), (5, 60_000), (50_021, 49_999)];
    merges_of(b, &[&[(0, 0), (1, 0), (0, 1), (33, 1)], &large[..]].concat());
}

/// Merges of arrays of these lengths.
pub fn merges_of<B: Primitives>(b: &B, lengths: &[(usize, usize)]) {
    for &(n, m) in lengths {
        for (order, distinct) in
            [(Order::Ascending, 7), (Order::Descending, 7), (Order::Ascending, usize::MAX)]
        {
            let mut random = Random((n + m) as u64 + 11);
            let mut input = |length: usize, first: u32| {
                let mut pairs: Vec<(u64, u32)> =
                    (first..).take(length).map(|i| (random.below(distinct) as u64, i)).collect();
                sort_by_order(order, &mut pairs);
                pairs
            };
            let (a, c) = (input(n, 0), input(m, n as u32));
            let mut expected = [a.clone(), c.clone()].concat();
            sort_by_order(order, &mut expected);
            let split = |pairs: &[(u64, u32)]| -> (Vec<u64>, Vec<u32>) { pairs.iter().copied().unzip() };
            let ((a, av), (c, cv)) = (split(&a), split(&c));
            let (expected_keys, expected_values) = split(&expected);
            let (mut out, mut values) = (b.zeros(n + m).unwrap(), b.zeros(n + m).unwrap());
            b.merge(order, &up(b, &a), &up(b, &c), &mut out).unwrap();
            assert_eq!(down(b, &out), expected_keys, "{order:?} {n} + {m}");
            let (a, av, c, cv) = (up(b, &a), up(b, &av), up(b, &c), up(b, &cv));
            b.merge_pairs(order, (&*a, &*av), (&*c, &*cv), (&mut *out, &mut *values)).unwrap();
            assert_eq!(down(b, &out), expected_keys, "{order:?} {n} + {m}");
            assert_eq!(down(b, &values), expected_values, "{order:?} {n} + {m}");
        }
    }
}

pub fn merge_sort_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        merge_sort_type::<f64, B>(b, n);
    }
    for n in small_enough(&[33, 4097, 20_011]) {
        merge_sort_type::<u32, B>(b, n);
        merge_sort_type::<u64, B>(b, n);
        merge_sort_type::<i32, B>(b, n);
        merge_sort_type::<f32, B>(b, n);
    }
}

pub fn merge_sort_type<K: Key, B: Primitives>(b: &B, n: usize) {
    for (pattern, keys) in patterns::<K>(&mut Random(n as u64 + 12), n) {
        for order in [Order::Ascending, Order::Descending] {
            let mut expected: Vec<(K, u32)> = keys.iter().copied().zip(0..).collect();
            sort_by_order(order, &mut expected);
            let (expected, positions): (Vec<K>, Vec<u32>) = expected.into_iter().unzip();
            let mut k = up(b, &keys);
            b.merge_sort(order, &mut k).unwrap();
            assert_eq!(ordered(&down(b, &k)), ordered(&expected), "{pattern} {order:?} {n}");
            let (mut k, mut v) = (up(b, &keys), up(b, &(0..n as u32).collect::<Vec<_>>()));
            b.merge_sort_pairs(order, &mut k, &mut v).unwrap();
            assert_eq!(ordered(&down(b, &k)), ordered(&expected), "{pattern} {order:?} {n}");
            assert_eq!(down(b, &v), positions, "{pattern} {order:?} {n}");
        }
    }
}
