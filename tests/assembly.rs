//! Assembly beside sequential twins: the structure, the order of sums, stored halves, the kept map.

use num_complex::Complex;
use proptest::prelude::*;
use residua::assemble::{self, Assemble, Assembler, Assembly, Symmetry};
use residua::backend::OffsetsRef;
use residua::{Csr, Host, Scalar, Triplets};
use std::collections::BTreeMap;

#[path = "common/primitives.rs"]
#[allow(dead_code)]
mod common;
use common::Random;

/// Row offsets, columns and values as bits.
type Arrays = (Vec<usize>, Vec<u32>, Vec<(u64, u64)>);

fn bits<T: Scalar>(value: T) -> (u64, u64) {
    use num_traits::ToPrimitive;
    let part = |x: T::Real| x.to_f64().map(f64::to_bits).unwrap_or(0);
    (part(value.re()), part(value.im()))
}

fn arrays<T: Scalar>(a: &Csr<T>) -> Arrays {
    let parts = a.parts();
    let offsets = match parts.offsets {
        OffsetsRef::Narrow(o) => o.iter().map(|&o| o as usize).collect(),
        OffsetsRef::Wide(o) => o.iter().map(|&o| o as usize).collect(),
    };
    (offsets, parts.indices.to_vec(), parts.values.iter().map(|&v| bits(v)).collect())
}

/// The sequential twin: a sorted map of places, each summed in order of appearance from its first value.
fn twin<T: Scalar>(t: &Triplets<T>, symmetry: Symmetry) -> Arrays {
    let mut places: BTreeMap<(u32, u32), T> = BTreeMap::new();
    let mut add = |i, j, value| {
        places.entry((i, j)).and_modify(|sum| *sum += value).or_insert(value);
    };
    let (is, js, values) = t.parts();
    for ((&i, &j), &value) in is.iter().zip(js).zip(values) {
        add(i, j, value);
        if symmetry != Symmetry::General && i != j {
            add(j, i, symmetry.mirror(value));
        }
    }
    let mut offsets = vec![0; t.rows() + 1];
    places.keys().for_each(|&(i, _)| offsets[i as usize + 1] += 1);
    for i in 0..t.rows() {
        offsets[i + 1] += offsets[i];
    }
    (offsets, places.keys().map(|p| p.1).collect(), places.values().map(|&v| bits(v)).collect())
}

fn check<T: Scalar>(t: &Triplets<T>, symmetry: Symmetry) {
    let expected = twin(t, symmetry);
    let assembler = Assembler::default().symmetry(symmetry);
    let a = assembler.to_csr(&Host, t.clone()).unwrap();
    assert_eq!((a.rows(), a.columns()), (t.rows(), t.columns()));
    assert_eq!(arrays(&a), expected, "assembled");
    let (mut b, map) = assembler.assembly(&Host, t).unwrap();
    assert_eq!(arrays(&b), expected, "by sorting");
    // New values on the same pattern.
    let (is, js, values) = t.parts();
    let fresh: Vec<T> =
        values.iter().enumerate().map(|(k, &v)| v * T::from_f64(1.0 + (k % 7) as f64 / 3.0)).collect();
    map.update(&Host, &fresh, &mut b).unwrap();
    let t = Triplets::from_parts(t.rows(), t.columns(), is.to_vec(), js.to_vec(), fresh).unwrap();
    assert_eq!(arrays(&b), twin(&t, symmetry), "updated");
    assert_eq!(arrays(&b), arrays(&assembler.to_csr(&Host, t).unwrap()), "updated as assembled anew");
}

/// `n` triplets of which many share a place; magnitudes differ, so that the order of a sum shows in its bits.
fn triplets(random: &mut Random, rows: usize, columns: usize, n: usize) -> Triplets<f64> {
    let mut t = Triplets::new(rows, columns).unwrap();
    for _ in 0..if rows * columns == 0 { 0 } else { n } {
        let exponent = random.below(60) as i32 - 30;
        let value = (random.next() as i64 as f64) * 2f64.powi(exponent - 60);
        t.push(random.below(rows), random.below(columns), value).unwrap();
    }
    t
}

#[test]
fn ragged_shapes() {
    let shapes = [
        (0, 0, 0),
        (0, 5, 0),
        (5, 0, 0),
        (1, 1, 40),
        (1, 1000, 5000),
        (1000, 1, 5000),
        (597, 43, 0),
        (597, 43, 1),
        (597, 43, 9000),
        (43, 597, 100_000),
        (3, 1 << 20, 50_000),
        (1 << 20, 3, 50_000),
        (70_000, 70_000, 90_000),
    ];
    for (rows, columns, n) in shapes {
        let mut random = Random((rows + columns + n) as u64);
        check(&triplets(&mut random, rows, columns, n), Symmetry::General);
        if rows == columns {
            check(&triplets(&mut random, rows, columns, n), Symmetry::Symmetric);
        }
    }
}

/// Keys of more than 32 and of more than 48 bits, up to the largest indices.
#[test]
fn wide_indices() {
    let mut random = Random(5);
    for (rows, columns) in [(1 << 16, 1 << 32), (1 << 20, 1 << 30), (1, 1 << 32)] {
        for n in [100, 40_000] {
            let mut t = triplets(&mut random, rows, columns, n);
            for corner in [columns - 1, 0, columns - 1] {
                t.push(rows - 1, corner, 1.0).unwrap();
            }
            check(&t, Symmetry::General);
        }
    }
}

/// One row, one column and one place with nearly everything: buckets that have to be distributed again.
#[test]
fn giant_rows_columns_and_places() {
    let (n, size) = (300_000, 50_000);
    for shape in 0..4 {
        let mut random = Random(shape);
        let mut t = triplets(&mut random, size, size, 20_000);
        for k in 0..n {
            let (i, j) = match shape {
                0 => (777, random.below(size)),
                1 => (random.below(size), 777),
                2 => (777, 1234),
                _ => (777 + random.below(2), if k % 3 == 0 { random.below(size) } else { 4 }),
            };
            t.push(i, j, random.next() as f64).unwrap();
        }
        check(&t, Symmetry::General);
        check(&t, Symmetry::Symmetric);
    }
}

#[test]
fn arranged_inputs() {
    let mut random = Random(9);
    let t = triplets(&mut random, 3000, 3000, 60_000);
    let (is, js, values) = t.parts();
    let entries: Vec<(u32, u32, f64)> =
        is.iter().zip(js).zip(values).map(|((&i, &j), &v)| (i, j, v)).collect();
    let build = |entries: &[(u32, u32, f64)]| {
        let mut t = Triplets::new(3000, 3000).unwrap();
        entries.iter().for_each(|&(i, j, v)| t.push(i as usize, j as usize, v).unwrap());
        t
    };
    let mut arranged = entries.clone();
    arranged.sort_by_key(|e| (e.0, e.1));
    check(&build(&arranged), Symmetry::General);
    arranged.dedup_by_key(|e| (e.0, e.1));
    check(&build(&arranged), Symmetry::General);
    arranged = entries.clone();
    arranged.sort_by_key(|e| e.1);
    check(&build(&arranged), Symmetry::General);
    arranged.sort_by_key(|e| (e.1, e.0));
    check(&build(&arranged), Symmetry::General);
    // The four arrangements of one triangle, with duplicates, and with one entry of the other triangle among them.
    let lower: Vec<_> = entries.iter().map(|&(i, j, v)| (i.max(j), i.min(j), v)).collect();
    let upper: Vec<_> = lower.iter().map(|&(i, j, v)| (j, i, v)).collect();
    for triangle in [lower, upper] {
        for by_column in [false, true] {
            let mut arranged = triangle.clone();
            arranged.sort_by_key(|e| if by_column { (e.1, e.0) } else { (e.0, e.1) });
            check(&build(&arranged), Symmetry::Symmetric);
            let entry = &mut arranged[30_000];
            *entry = (entry.1, entry.0, entry.2);
            check(&build(&arranged), Symmetry::Symmetric);
        }
    }
}

#[test]
fn stored_halves() {
    let mut random = Random(11);
    for n in [1, 10, 2000, 70_000] {
        let mut t = triplets(&mut random, 400, 400, n);
        check(&t, Symmetry::Symmetric);
        let (is, js, mut values) = t.into_parts();
        values.iter_mut().zip(is.iter().zip(&js)).filter(|(_, (i, j))| i == j).for_each(|(v, _)| *v = 0.0);
        t = Triplets::from_parts(400, 400, is, js, values).unwrap();
        check(&t, Symmetry::SkewSymmetric);
        let mut z = Triplets::<Complex<f64>>::new(400, 400).unwrap();
        let (is, js, values) = t.parts();
        for ((&i, &j), &v) in is.iter().zip(js).zip(values) {
            let im = if i == j { 0.0 } else { v / 3.0 };
            z.push(i as usize, j as usize, Complex::new(v, im)).unwrap();
        }
        check(&z, Symmetry::Hermitian);
        check(&z, Symmetry::Symmetric);
        check(&z, Symmetry::General);
    }
}

#[test]
fn single_precision_and_explicit_zeros() {
    let mut t = Triplets::<f32>::new(3, 3).unwrap();
    for (i, j, v) in
        [(2, 2, 0.0), (0, 1, 1e8), (0, 1, 1.0), (0, 1, -1e8), (1, 0, -0.0), (2, 0, 3.0), (2, 0, -3.0)]
    {
        t.push(i, j, v).unwrap();
    }
    check(&t, Symmetry::General);
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
            let (b, _) = Host.analyse(&t, Symmetry::General).unwrap();
            (arrays(&a), arrays(&b))
        })
    };
    let (one, three) = (run(1), run(3));
    assert!(one == three);
    assert!(one.0 == one.1);
    assert!(one.0 == twin(&t, Symmetry::General));
}

/// The largest bucket count, many chunks, and sprs as a second opinion (sums in another order: exact values).
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

    /// Any triplets, in any order: as the twin. The order changes no structure, only the bits of sums.
    #[test]
    fn random_triplets(seed: u64, rows in 1usize..60, columns in 1usize..60, n in 0usize..3000) {
        let mut random = Random(seed);
        let t = triplets(&mut random, rows, columns, n);
        check(&t, Symmetry::General);
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
        check(&triplets(&mut Random(seed), size, size, n), Symmetry::Symmetric);
    }
}
