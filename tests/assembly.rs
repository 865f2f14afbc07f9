//! Assembly on the host, and cases that only the host can run. `tests/gpu.rs` runs the common cases on a device.

use num_complex::Complex;
use proptest::prelude::*;
use residua::assemble::{self, Assemble, Assembler, Assembly, Symmetry};
use residua::{Host, Triplets};

#[path = "common/assembly.rs"]
mod cases;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;

use cases::*;
use random::Random;

cases::each_case!(on_host);

#[test]
fn single_precision_and_explicit_zeros() {
    let mut t = Triplets::<f32>::new(3, 3).unwrap();
    for (i, j, v) in
        [(2, 2, 0.0), (0, 1, 1e8), (0, 1, 1.0), (0, 1, -1e8), (1, 0, -0.0), (2, 0, 3.0), (2, 0, -3.0)]
    {
        t.push(i, j, v).unwrap();
    }
    check(&Host, &t, Symmetry::General);
    let a = assemble::to_csr(&Host, t).unwrap();
    assert_eq!(a.nonzeros(), 4, "explicit zeros and sums that cancel stay");
    assert_eq!(a.parts().values[1].to_bits(), (-0.0f32).to_bits(), "a lone value keeps its sign");
}

#[test]
fn contradicting_halves_are_refused() {
    let square = |value: f64| Triplets::from_parts(2, 2, vec![1], vec![1], vec![value]).unwrap();
    let skew = Assembler::default().symmetry(Symmetry::SkewSymmetric);
    assert!(skew.to_csr(&Host, square(0.0)).is_ok());
    let message = skew.to_csr(&Host, square(2.0)).unwrap_err().to_string();
    assert!(message.contains("triplet 0") && message.contains("diagonal"), "{message}");
    let hermitian = Assembler::default().symmetry(Symmetry::Hermitian);
    let z = Triplets::from_parts(2, 2, vec![0], vec![0], vec![Complex::new(1.0, 0.5)]).unwrap();
    assert!(hermitian.to_csr(&Host, z).is_err());
    let wide = Triplets::<f64>::new(2, 3).unwrap();
    assert!(Assembler::default().symmetry(Symmetry::Symmetric).to_csr(&Host, wide).is_err());
}

#[test]
fn updates_check_their_sizes() {
    let t = triplets(&mut Random(3), 50, 50, 400);
    let (mut a, map) = Assembly::new(&Host, &t).unwrap();
    assert_eq!((map.triplets(), map.nonzeros()), (400, a.nonzeros()));
    assert!(map.update(&Host, &[1.0; 399], &mut a).is_err());
    let mut other = assemble::to_csr(&Host, triplets(&mut Random(4), 50, 51, 400)).unwrap();
    assert!(map.update(&Host, &[1.0; 400], &mut other).is_err());
}

#[test]
fn same_bits_with_one_thread_and_three() {
    let mut random = Random(21);
    let t = triplets(&mut random, 100_000, 100_000, 600_000);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let a = assemble::to_csr(&Host, t.clone()).unwrap();
            let (b, _) = Host.analyse(&t.clone().into(), Symmetry::General).unwrap();
            (arrays(&a), arrays(&b))
        })
    };
    let (one, three) = (run(1), run(3));
    assert!(one == three);
    assert!(one.0 == one.1);
    assert!(one.0 == twin(&t, Symmetry::General));
}

/// Agrees with sprs for the largest number of buckets and for many chunks; the values are exact in any order of sums.
#[test]
fn sprs_agrees() {
    let mut random = Random(33);
    let (rows, columns, n) = (5000, 300, 200_000);
    let mut ours = Triplets::new(rows, columns).unwrap();
    let mut theirs = sprs::TriMat::new((rows, columns));
    for _ in 0..n {
        let (i, j, v) = (random.below(rows), random.below(columns), random.below(100) as f64);
        ours.push(i, j, v).unwrap();
        theirs.add_triplet(i, j, v);
    }
    let theirs: sprs::CsMat<f64> = theirs.to_csr();
    let (offsets, columns, values) = arrays(&assemble::to_csr(&Host, ours).unwrap());
    assert_eq!(offsets, theirs.indptr().to_proper().to_vec());
    assert!(columns.iter().map(|&j| j as usize).eq(theirs.indices().iter().copied()));
    assert!(values.iter().map(|v| v.0).eq(theirs.data().iter().map(|v| v.to_bits())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any triplets, in any order, must give the twin's matrix. The order changes only the bits of sums.
    #[test]
    fn random_triplets(seed: u64, rows in 1usize..60, columns in 1usize..60, n in 0usize..3000) {
        let mut random = Random(seed);
        let t = triplets(&mut random, rows, columns, n);
        check(&Host, &t, Symmetry::General);
        let (mut is, mut js, mut values) = t.clone().into_parts();
        for k in (1..is.len()).rev() {
            let other = random.below(k + 1);
            is.swap(k, other);
            js.swap(k, other);
            values.swap(k, other);
        }
        let shuffled = Triplets::from_parts(rows, columns, is, js, values).unwrap();
        let a = arrays(&assemble::to_csr(&Host, t).unwrap());
        let b = arrays(&assemble::to_csr(&Host, shuffled).unwrap());
        prop_assert_eq!((a.0, a.1), (b.0, b.1));
    }

    #[test]
    fn random_halves(seed: u64, size in 1usize..60, n in 0usize..3000) {
        check(&Host, &triplets(&mut Random(seed), size, size, n), Symmetry::Symmetric);
    }
}
