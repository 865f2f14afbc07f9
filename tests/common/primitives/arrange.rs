//! Moving elements: gather, scatter, keys of two halves.

use super::{down, sizes, up};
use crate::random::Random;
use residua::backend::Primitives;

pub fn gather_scatter_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 13);
        let mut permutation: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            permutation.swap(i, random.below(i + 1));
        }
        let x = random.vec(n, |r| r.next());
        let expected: Vec<u64> = permutation.iter().map(|&p| x[p as usize]).collect();
        let (x, p) = (up(b, &x), up(b, &permutation));
        let mut gathered = b.zeros(n).unwrap();
        b.gather(&x, &p, &mut gathered).unwrap();
        assert_eq!(down(b, &gathered), expected);
        let mut back = b.zeros(n).unwrap();
        b.scatter(&gathered, &p, &mut back).unwrap();
        assert_eq!(down(b, &back), down(b, &x));
        let mut sequence = b.zeros::<u32>(n).unwrap();
        b.sequence(&mut sequence).unwrap();
        assert!(down(b, &sequence).into_iter().eq(0..n as u32));
        b.add_constant(5, &mut sequence).unwrap();
        assert!(down(b, &sequence).into_iter().eq(5..n as u32 + 5));
    }
    // Scattering a few leaves the others alone.
    let mut out = up(b, &[9u8; 10]);
    b.scatter(&up(b, &[1u8, 2]), &up(b, &[7u64, 3]), &mut out).unwrap();
    assert_eq!(down(b, &out), [9, 9, 9, 2, 9, 9, 9, 1, 9, 9]);
}

pub fn pack_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        for shift in [0, 5, 20, 32] {
            let mut random = Random(n as u64 + 15);
            let mask = (1u64 << shift) - 1;
            let high = random.vec(n, |r| (r.next() & mask) as u32);
            let mut low = random.vec(n, |r| (r.next() & mask) as u32);
            low.iter_mut().zip(&high).step_by(3).for_each(|(l, &h)| *l = h);
            let pack = |h: u32, l: u32| u64::from(h) << shift | u64::from(l);
            let expected: Vec<u64> = high.iter().zip(&low).map(|(&h, &l)| pack(h, l)).collect();
            let (h, l) = (up(b, &high), up(b, &low));
            let mut packed = b.zeros(n).unwrap();
            b.pack(&h, &l, shift, &mut packed).unwrap();
            assert_eq!(down(b, &packed), expected, "{n}, shift {shift}");
            let (mut h2, mut l2) = (b.zeros(n).unwrap(), b.zeros(n).unwrap());
            b.unpack(&packed, shift, &mut h2, &mut l2).unwrap();
            assert_eq!((down(b, &h2), down(b, &l2)), (high.clone(), low.clone()), "{n}, shift {shift}");
            let (mut rows, mut columns) = (b.zeros(2 * n).unwrap(), b.zeros(2 * n).unwrap());
            b.mirror(&h, &l, 77, (&mut rows, &mut columns)).unwrap();
            let pairs: Vec<(u32, u32)> = down(b, &rows).into_iter().zip(down(b, &columns)).collect();
            for (i, pair) in pairs.chunks(2).enumerate() {
                let (h, l) = (high[i], low[i]);
                let mirror = if h == l { (77, 0) } else { (l, h) };
                assert_eq!(pair, [(h, l), mirror], "{i} of {n}, shift {shift}");
            }
        }
    }
}
