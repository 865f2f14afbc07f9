//! Sizes for which a device uses the constants of large arrays and 64-bit indices. Inputs are generated there too: the
//! scan of a constant c is i c modulo 2^32, which for odd c is different for every i, in no particular order.

use residua::backend::{Backend, Order, Primitives, Scan};
use residua::scalar::{Element, Key, Sum};
use residua::{Cuda, Host};

const FACTOR: u32 = 0x9e37_79b1;

/// Key i is (i + 1) FACTOR.
fn scrambled(b: &Cuda, n: usize) -> <Cuda as Backend>::Vec<u32> {
    let mut constant = b.zeros::<u32>(n).unwrap();
    b.fill(FACTOR, &mut constant).unwrap();
    let mut keys = b.zeros::<u32>(n).unwrap();
    b.scan(Scan::Inclusive, Sum, &constant, &mut keys).unwrap();
    keys
}

fn at<T: Element>(b: &Cuda, x: &<Cuda as Backend>::Slice<T>, i: usize) -> T {
    b.download(Cuda::part(x, i..i + 1)).unwrap()[0]
}

/// Positions distributed over an array, including both ends.
fn samples(n: usize) -> impl Iterator<Item = usize> {
    (0..200).map(move |s| (s as u128 * (n as u128 - 1) / 199) as usize)
}

fn total(b: &Cuda, x: &<Cuda as Backend>::Slice<u32>) -> u32 {
    let mut sum = b.zeros::<u32>(1).unwrap();
    b.reduce(Sum, x, &mut sum).unwrap();
    at(b, &sum, 0)
}

/// The same results as on the host, just beyond the size at which the constants for large arrays begin.
pub fn agrees_with_the_host(b: &Cuda) {
    let n = (1 << 25) + 3;
    let x: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3).collect();
    let on_device = b.upload(x.clone()).unwrap();
    let (mut here, mut there) = (vec![0_u64; n], b.zeros::<u64>(n).unwrap());
    for kind in [Scan::Inclusive, Scan::Exclusive] {
        Host.scan(kind, Sum, &x, &mut here).unwrap();
        b.scan(kind, Sum, &on_device, &mut there).unwrap();
        assert!(b.download(&there).unwrap() == here, "{kind:?} scan of {n}");
        // Not aligned to 16 bytes.
        b.scan(kind, Sum, Cuda::part(&on_device, 1..n), Cuda::part_mut(&mut there, 1..n)).unwrap();
        Host.scan(kind, Sum, &x[1..], &mut here[1..]).unwrap();
        assert!(b.download(&there).unwrap()[1..] == here[1..], "{kind:?} scan of {n} from 1");
    }
    let floats: Vec<f64> = x.iter().map(|&x| (x & 0xff) as f64).collect();
    let (mut here, mut there) = (vec![0.0; n], b.zeros::<f64>(n).unwrap());
    Host.scan(Scan::Exclusive, Sum, &floats, &mut here).unwrap();
    b.scan(Scan::Exclusive, Sum, &b.upload(floats).unwrap(), &mut there).unwrap();
    assert!(b.download(&there).unwrap() == here, "exact scan of {n} floats");
    for bins in [1 << 20, (1 << 22) + 5] {
        let keys: Vec<u32> = x.iter().map(|&x| (x % (bins as u64 + 3)) as u32).collect();
        let (mut here, mut there) = (vec![0_u32; bins], b.zeros::<u32>(bins).unwrap());
        Host.histogram(&keys, &mut here).unwrap();
        let on_device = b.upload(keys.clone()).unwrap();
        b.histogram(&on_device, &mut there).unwrap();
        assert!(b.download(&there).unwrap() == here, "{bins} bins");
        assert!(b.download(&on_device).unwrap() == keys, "a histogram changed its keys");
    }
    // The size at which other constants are used for sorting.
    let n = (1 << 23) + 3;
    sorts_stably::<u64>(b, "sorted", (0..n as u64).collect());
    sorts_stably::<u64>(b, "reversed", (0..n as u64).rev().collect());
    sorts_stably::<u64>(b, "one digit constant", x[..n].iter().map(|x| x & !0xff00).collect());
    sorts_stably::<u32>(b, "all equal", vec![7; n]);
    sorts_stably::<u32>(b, "few varying bits", x[..n].iter().map(|&x| x as u32 & 0x0600_0005).collect());
    sorts_stably::<f64>(b, "NaN and zeros", x[..n].iter().map(|&x| SPECIAL[(x % 5) as usize]).collect());
}

const SPECIAL: [f64; 5] = [f64::NAN, -0.0, 0.0, f64::NEG_INFINITY, -f64::NAN];

/// Radix sort also moves positions: keys must ascend and be those of their positions, and equal keys must keep their
/// order. The same holds for merge sort.
fn sorts_stably<K: Key>(b: &Cuda, what: &str, keys: Vec<K>) {
    let sorted_by = |merging: bool| {
        let (mut k, mut places) = (b.upload(keys.clone()).unwrap(), b.zeros::<u32>(keys.len()).unwrap());
        b.sequence(&mut places).unwrap();
        match merging {
            true => b.merge_sort_pairs(Order::Ascending, &mut k, &mut places).unwrap(),
            false => b.sort_pairs(&mut k, &mut places, 0..K::BITS).unwrap(),
        }
        let bits: Vec<u64> = b.download(&k).unwrap().iter().map(|k| k.to_ordered()).collect();
        (bits, b.download(&places).unwrap())
    };
    let (sorted, places) = sorted_by(false);
    let mut before = None;
    for now in sorted.iter().copied().zip(places.iter().copied()) {
        assert!(before < Some(now) && keys[now.1 as usize].to_ordered() == now.0, "{what}");
        before = Some(now);
    }
    assert!(sorted_by(true) == (sorted, places), "{what}, by merging");
}

/// 2^31 + 3 elements.
pub fn beyond_two_to_the_31(b: &Cuda) {
    let n = (1_usize << 31) + 3;
    let (free, _) = b.memory().unwrap();
    if free < 60 << 30 {
        return eprintln!("SKIPPED, {free} bytes of device memory are too few for arrays of {n}");
    }
    let mut keys = scrambled(b, n);
    samples(n).for_each(|i| assert_eq!(at(b, &keys, i), (i as u32).wrapping_add(1).wrapping_mul(FACTOR)));
    let sum = total(b, &keys);
    {
        let mut bins = b.zeros::<u32>(1 << 20).unwrap();
        b.histogram(&keys, &mut bins).unwrap();
        let mut unique = b.zeros::<u32>(n).unwrap();
        assert_eq!(b.unique(&keys, &mut unique).unwrap(), n);
        assert_eq!(total(b, &unique), sum);
        drop(unique);
        b.sort(&mut keys, 0..32).unwrap();
        assert!(b.is_sorted(&keys, true).unwrap());
        assert_eq!(total(b, &keys), sum);
        // The number of keys below 2^20 is the position of the first greater key in the sorted array.
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = usize::midpoint(low, high);
            if at(b, &keys, middle) < 1 << 20 { low = middle + 1 } else { high = middle }
        }
        assert_eq!(total(b, &bins) as usize, low);
    }
    let mut keys = scrambled(b, n);
    let mut places = b.zeros::<u32>(n).unwrap();
    b.sequence(&mut places).unwrap();
    b.sort_pairs(&mut keys, &mut places, 0..32).unwrap();
    assert!(b.is_sorted(&keys, true).unwrap());
    for i in samples(n) {
        assert_eq!(at(b, &keys, i), at(b, &places, i).wrapping_add(1).wrapping_mul(FACTOR));
    }
    let mut keys = scrambled(b, n);
    b.sequence(&mut places).unwrap();
    b.merge_sort_pairs(Order::Ascending, &mut keys, &mut places).unwrap();
    assert!(b.is_sorted(&keys, true).unwrap());
    for i in samples(n) {
        assert_eq!(at(b, &keys, i), at(b, &places, i).wrapping_add(1).wrapping_mul(FACTOR));
    }
    // All elements form one run: its sum, and the first key.
    b.fill(5, &mut keys).unwrap();
    b.fill(1, &mut places).unwrap();
    let (mut keys_out, mut sums) = (b.zeros::<u32>(n).unwrap(), b.zeros::<u32>(n).unwrap());
    assert_eq!(b.reduce_by_key(Sum, &keys, &places, &mut keys_out, &mut sums).unwrap(), 1);
    assert_eq!((at(b, &keys_out, 0), at(b, &sums, 0)), (5, n as u32));
    drop(keys_out);
    let offsets = b.upload(vec![0_u32, 1, 1, 1 << 31, n as u32]).unwrap();
    let mut out = b.zeros::<u32>(4).unwrap();
    b.segmented_reduce(Sum, &places, &offsets, &mut out).unwrap();
    assert_eq!(b.download(&out).unwrap(), [1, 0, (1 << 31) - 1, 3]);
    let flags = {
        let mut flags = b.zeros::<u8>(n).unwrap();
        b.fill(1, Cuda::part_mut(&mut flags, (1 << 31) - 2..n)).unwrap();
        flags
    };
    assert_eq!(b.compact(&places, &flags, &mut sums).unwrap(), 5);
    b.segmented_scan(Scan::Inclusive, Sum, &places, &flags, &mut sums).unwrap();
    assert_eq!([n - 6, n - 5, n - 1].map(|i| at(b, &sums, i)), [n as u32 - 5, 1, 1]);
    let keys = scrambled(b, n);
    assert_eq!(b.partition(&keys, &flags, &mut sums).unwrap(), 5);
    drop(flags);
    assert_eq!(at(b, &sums, 0), at(b, &keys, n - 5));
    samples(n - 5).for_each(|i| assert_eq!(at(b, &sums, i + 5), at(b, &keys, i)));
    b.sequence(&mut places).unwrap();
    b.gather(&keys, &places, &mut sums).unwrap();
    samples(n).for_each(|i| assert_eq!(at(b, &sums, i), at(b, &keys, i)));
    // The first half is merged with itself.
    let (half, out) = (n / 2, Cuda::part_mut(&mut sums, 0..n / 2 * 2));
    let numbers = Cuda::part(&places, 0..half);
    b.merge(Order::Ascending, numbers, numbers, out).unwrap();
    samples(half * 2).for_each(|i| assert_eq!(at(b, &sums, i), (i / 2) as u32));
    drop(sums);
    sorts_segments_beyond_two_to_the_31(b, keys, places);
}

/// Sorts segments of 7 elements, and a last one of 5.
fn sorts_segments_beyond_two_to_the_31(
    b: &Cuda,
    mut keys: <Cuda as Backend>::Vec<u32>,
    mut places: <Cuda as Backend>::Vec<u32>,
) {
    let n = keys.len();
    let offsets = {
        let mut lengths = b.zeros::<u32>(n / 7 + 1).unwrap();
        b.fill(7, &mut lengths).unwrap();
        b.fill((n % 7) as u32, Cuda::part_mut(&mut lengths, n / 7..n / 7 + 1)).unwrap();
        let mut offsets = b.zeros::<u32>(n / 7 + 2).unwrap();
        b.exclusive_scan(&lengths, &mut offsets).unwrap();
        offsets
    };
    b.segmented_sort_pairs(&offsets, &mut keys, &mut places).unwrap();
    for i in samples(n - 1) {
        let [one, next] = [i, i + 1].map(|i| (at(b, &keys, i), at(b, &places, i) as usize));
        assert_eq!(one.0, (one.1 as u32 + 1).wrapping_mul(FACTOR), "{i}");
        assert_eq!(one.1 / 7, i / 7, "{i} stays in its segment");
        assert!(i / 7 != (i + 1) / 7 || one.0 < next.0, "{i}");
    }
}
