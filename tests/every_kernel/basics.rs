//! Memory, vectors and primitives.

use crate::primitives::{self as cases, with_sizes};
use crate::{backend, random::Random, vector_ops};
use num_complex::Complex;
use residua::backend::{Backend, Primitives, Scan, VectorOps};
use residua::scalar::{Key, Scalar, Sum};
use residua::{Cuda, Host, Real};

/// Numbers of elements: none, one, one more than a warp, and more than a tile of every primitive.
const SIZES: [usize; 4] = [0, 1, 33, 9001];

pub fn memory(b: &Cuda) {
    backend::part_cases(b);
    backend::recording_cases(b);
    backend::mailbox_cases(b);
    for n in SIZES {
        let (mut bytes, mut wide) = (b.zeros::<u8>(n).unwrap(), b.zeros::<Complex<f64>>(n).unwrap());
        b.fill(7, &mut bytes).unwrap();
        b.fill(Complex::new(1.0, 2.0), &mut wide).unwrap();
        assert!(b.download(&bytes).unwrap() == vec![7; n]);
        assert!(b.download(&wide).unwrap() == vec![Complex::new(1.0, 2.0); n]);
    }
    for (nx, ny, nz) in [(1, 1, 1), (1, 5, 2), (7, 13, 11)] {
        let there = b.poisson3d::<f64>(nx, ny, nz).unwrap().to_host(b).unwrap();
        assert!(residua::generate::poisson3d(nx, ny, nz).unwrap() == there);
        let there = b.poisson3d_27::<f64>(nx, ny, nz).unwrap().to_host(b).unwrap();
        assert!(residua::generate::poisson3d_27(nx, ny, nz).unwrap() == there);
    }
}

pub fn vectors_side_by_side(b: &Cuda) {
    crate::backend::interleaved_cases(b);
}

pub fn vectors(b: &Cuda) {
    fn results<T: Scalar, B: VectorOps>(b: &B, n: usize, shift: usize) -> Vec<T> {
        let value = |i: usize| T::from_parts((i % 13) as f64 - 5.0, 0.0).unwrap_or_else(T::zero);
        let x = b.upload((0..n + shift).map(value).collect()).unwrap();
        let mut y = b.upload((0..n + shift).map(|i| value(3 * i)).collect()).unwrap();
        let d = b.upload((0..n).map(|i| T::Real::from_f64((i % 5) as f64)).collect()).unwrap();
        let (x, y) = (B::part(&*x, shift..n + shift), B::part_mut(&mut *y, shift..n + shift));
        let (mut z, mut out, mut norm) = (b.zeros(n).unwrap(), b.zeros(1).unwrap(), b.zeros(1).unwrap());
        let mut all = Vec::new();
        b.dot(x, y, &mut out).unwrap();
        all.extend(b.download(&*out).unwrap());
        b.norm2_squared(x, &mut norm).unwrap();
        all.extend(b.download(&*norm).unwrap().into_iter().map(|norm| T::from_f64(norm.to_f64())));
        b.multiply(x, y, &mut z).unwrap();
        all.extend(b.download(&*z).unwrap());
        b.scale_in_place(T::from_f64(0.5), &mut z).unwrap();
        all.extend(b.download(&*z).unwrap());
        b.scale(&d, x, &mut z).unwrap();
        all.extend(b.download(&*z).unwrap());
        b.axpby(T::from_f64(2.0), x, T::from_f64(-3.0), y).unwrap();
        all.extend(b.download(&*y).unwrap());
        b.axpby(T::from_f64(2.0), x, T::zero(), y).unwrap();
        all.extend(b.download(&*y).unwrap());
        all
    }
    // Small integers: exact in any order.
    for (n, shift) in SIZES.into_iter().zip([0, 1, 1, 0]).chain([(9001, 1)]) {
        assert!(results::<f64, _>(b, n, shift) == results::<f64, _>(&Host, n, shift), "{n}");
        assert!(results::<f32, _>(b, n, shift) == results::<f32, _>(&Host, n, shift), "{n}");
        let (there, here) = (results::<Complex<f64>, _>(b, n, shift), results(&Host, n, shift));
        assert!(there == here, "{n}");
    }
}

pub fn linear_updates(b: &Cuda) {
    for counts in [[1, 1, 0], [3, 2, 2], [4, 4, 4], [0, 2, 1], [2, 0, 2]] {
        vector_ops::updates_of(b, &SIZES, counts);
    }
    vector_ops::programs_end(b);
    vector_ops::long_programs(b);
    vector_ops::recorded_recurrence(b);
}

pub fn bases(b: &Cuda) {
    vector_ops::basis_of(b, &[1, 9, 31], &SIZES);
    vector_ops::hessenberg_of(b, 9, &[0, 8]);
    vector_ops::hessenberg_ends(b);
    vector_ops::triangular_cases(b);
}

pub fn pairs(b: &Cuda) {
    vector_ops::pairs_of(b, &[1, 6, 30], &SIZES);
    vector_ops::pair_processes(b);
    vector_ops::pair_ends(b);
}

pub fn reductions(b: &Cuda) {
    with_sizes(&SIZES, || {
        cases::reduce_cases(b);
        cases::segmented_reduce_cases(b);
        cases::reduce_by_key_cases(b);
    });
}

pub fn scans(b: &Cuda) {
    with_sizes(&SIZES, || {
        cases::scan_cases(b);
        cases::segmented_scan_cases(b);
    });
}

pub fn selections(b: &Cuda) {
    with_sizes(&SIZES, || {
        cases::histogram_cases(b);
        cases::offsets_cases(b);
        cases::select_cases(b);
    });
    // More bins than shared memory holds, some of them beyond the keys.
    let keys: Vec<u32> = (0..9001).map(|i: u32| i.wrapping_mul(0x9e37_79b9) >> 17).collect();
    let (mut here, mut there) = (vec![0; 30_000], b.zeros(30_000).unwrap());
    Host.histogram(&keys, &mut here).unwrap();
    b.histogram(&b.upload(keys).unwrap(), &mut there).unwrap();
    assert!(b.download(&there).unwrap() == here);
}

pub fn sorts(b: &Cuda) {
    fn of<K: Key>(b: &Cuda, bits: std::ops::Range<u32>) {
        for n in SIZES {
            for (pattern, keys) in cases::patterns::<K>(&mut Random(n as u64), n) {
                if pattern == "any" {
                    cases::sort::check_sort(b, &keys, bits.clone(), pattern);
                }
                if ["any", "one digit constant"].contains(&pattern) {
                    cases::sort::check_sort(b, &keys, 0..K::BITS, pattern);
                }
            }
        }
    }
    of::<u32>(b, 3..17);
    of::<u64>(b, 5..5);
    of::<f64>(b, 50..64);
}

pub fn segmented_sorts(b: &Cuda) {
    with_sizes(&SIZES, || cases::segmented_sort_cases(b));
}

pub fn merges(b: &Cuda) {
    cases::merge::merges_of(b, &[(0, 0), (33, 1), (4099, 4099)]);
    cases::merge::merge_sort_type::<u64, _>(b, 9001);
    cases::merge::merge_sort_type::<f32, _>(b, 33);
}

pub fn moves(b: &Cuda) {
    with_sizes(&SIZES, || {
        cases::gather_scatter_cases(b);
        cases::gather_sum_cases(b);
        cases::pack_cases(b);
        cases::refusals(b);
    });
}

pub fn runs_staged(b: &Cuda) {
    with_sizes(&SIZES, || cases::staged_cases(b));
}

/// Runs the kernels that are used only for large arrays.
pub fn large(b: &Cuda) {
    let n = (1 << 25) + 3;
    let x = Random(1).vec(n, |r| r.next() as u32 >> 8);
    let (mut here, mut there) = (vec![0_u32; n], b.zeros(n).unwrap());
    Host.scan(Scan::Inclusive, Sum, &x, &mut here).unwrap();
    let on_device = b.upload(x).unwrap();
    b.scan(Scan::Inclusive, Sum, &on_device, &mut there).unwrap();
    assert!(b.download(&there).unwrap() == here);
    drop((there, on_device));
    let bins = 1 << 17;
    let keys = Random(2).vec((1 << 24) + 3, |r| r.below(bins + 2) as u32);
    let (mut here, mut there) = (vec![0_u32; bins], b.zeros(bins).unwrap());
    Host.histogram(&keys, &mut here).unwrap();
    b.histogram(&b.upload(keys).unwrap(), &mut there).unwrap();
    assert!(b.download(&there).unwrap() == here);
}
