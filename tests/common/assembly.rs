//! What assembly must give on every backend: the structure, the order of sums, stored halves, the kept map.

#![allow(dead_code)]

use crate::random::Random;
use num_complex::Complex;
use residua::assemble::{Assemble, Assembler, ResidentTriplets, Symmetry};
use residua::backend::OffsetsRef;
use residua::{Csr, Host, Scalar, Triplets};
use std::collections::BTreeMap;

/// The one list of cases, but for [`many_cases`], which are for a device: hands their names to a macro, behind the
/// words that are for it.
#[allow(unused_macros)] // not every program of tests lists the cases
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            ragged_cases,
            wide_cases,
            giant_cases,
            half_cases,
            arranged_cases,
            resident_cases
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// Row offsets, columns and values as bits.
pub type Arrays = (Vec<usize>, Vec<u32>, Vec<(u64, u64)>);

fn bits<T: Scalar>(value: T) -> (u64, u64) {
    use num_traits::ToPrimitive;
    let part = |x: T::Real| x.to_f64().map(f64::to_bits).unwrap_or(0);
    (part(value.re()), part(value.im()))
}

pub fn arrays<T: Scalar>(a: &Csr<T>) -> Arrays {
    let parts = a.parts();
    let offsets = match parts.offsets {
        OffsetsRef::Narrow(o) => o.iter().map(|&o| o as usize).collect(),
        OffsetsRef::Wide(o) => o.iter().map(|&o| o as usize).collect(),
    };
    (offsets, parts.indices.to_vec(), parts.values.iter().map(|&v| bits(v)).collect())
}

/// The sequential twin: a sorted map of places, each summed in order of appearance from its first value.
pub fn twin<T: Scalar>(t: &Triplets<T>, symmetry: Symmetry) -> Arrays {
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

/// Assembled in both ways, and updated, beside the twin.
pub fn check<T: Scalar, B: Assemble>(backend: &B, t: &Triplets<T>, symmetry: Symmetry) {
    let back = |a: &Csr<T, B>| arrays(&a.to_host(backend).unwrap());
    let expected = twin(t, symmetry);
    let assembler = Assembler::default().symmetry(symmetry);
    let a = assembler.to_csr(backend, t.clone()).unwrap();
    assert_eq!((a.rows(), a.columns()), (t.rows(), t.columns()));
    assert_eq!(back(&a), expected, "assembled");
    let (mut b, map) = assembler.assembly(backend, t).unwrap();
    assert_eq!(back(&b), expected, "by sorting");
    // New values on the same pattern.
    let (is, js, values) = t.parts();
    let fresh: Vec<T> =
        values.iter().enumerate().map(|(k, &v)| v * T::from_f64(1.0 + (k % 7) as f64 / 3.0)).collect();
    map.update(backend, &backend.upload(fresh.clone()).unwrap(), &mut b).unwrap();
    let t = Triplets::from_parts(t.rows(), t.columns(), is.to_vec(), js.to_vec(), fresh).unwrap();
    assert_eq!(back(&b), twin(&t, symmetry), "updated");
    assert_eq!(back(&b), back(&assembler.to_csr(backend, t).unwrap()), "updated as assembled anew");
}

/// `n` triplets of which many share a place; magnitudes differ, so that the order of a sum shows in its bits.
pub fn triplets(random: &mut Random, rows: usize, columns: usize, n: usize) -> Triplets<f64> {
    let mut t = Triplets::new(rows, columns).unwrap();
    for _ in 0..if rows * columns == 0 { 0 } else { n } {
        let exponent = random.below(60) as i32 - 30;
        let value = (random.next() as i64 as f64) * 2f64.powi(exponent - 60);
        t.push(random.below(rows), random.below(columns), value).unwrap();
    }
    t
}

/// Ragged shapes.
pub fn ragged_cases<B: Assemble>(b: &B) {
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
        check(b, &triplets(&mut random, rows, columns, n), Symmetry::General);
        if rows == columns {
            check(b, &triplets(&mut random, rows, columns, n), Symmetry::Symmetric);
        }
    }
}

/// Keys of more than 32 and of more than 48 bits, up to the largest indices.
pub fn wide_cases<B: Assemble>(b: &B) {
    let mut random = Random(5);
    for (rows, columns) in [(1 << 16, 1 << 32), (1 << 20, 1 << 30), (1, 1 << 32)] {
        for n in [100, 40_000] {
            let mut t = triplets(&mut random, rows, columns, n);
            for corner in [columns - 1, 0, columns - 1] {
                t.push(rows - 1, corner, 1.0).unwrap();
            }
            check(b, &t, Symmetry::General);
        }
    }
}

/// One row, one column and one place with nearly everything: buckets that have to be distributed again.
pub fn giant_cases<B: Assemble>(b: &B) {
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
        check(b, &t, Symmetry::General);
        check(b, &t, Symmetry::Symmetric);
    }
}

/// So many triplets that a device orders them in other ways, shuffled and by rows, beside the host's own way.
pub fn many_cases<B: Assemble>(b: &B) {
    let n = (1 << 24) + 77;
    let mut random = Random(17);
    let check = |t: Triplets<f64>, symmetry: Symmetry| {
        let assembler = Assembler::default().symmetry(symmetry);
        let expected = arrays(&assembler.to_csr(&Host, t.clone()).unwrap());
        let (mapped, _) = assembler.assembly(b, &t).unwrap();
        assert!(arrays(&mapped.to_host(b).unwrap()) == expected, "with its map");
        let a = assembler.to_csr(b, t).unwrap();
        assert!(arrays(&a.to_host(b).unwrap()) == expected, "{symmetry:?}");
    };
    let shuffled = triplets(&mut random, 1 << 20, 60, n);
    let (mut is, js, values) = shuffled.clone().into_parts();
    is.sort_unstable();
    check(Triplets::from_parts(1 << 20, 60, is, js, values).unwrap(), Symmetry::General);
    check(shuffled, Symmetry::General);
    check(triplets(&mut random, 5000, 5000, n / 2), Symmetry::Symmetric);
}

/// Stored halves.
pub fn half_cases<B: Assemble>(b: &B) {
    let mut random = Random(11);
    for n in [1, 10, 2000, 70_000] {
        let mut t = triplets(&mut random, 400, 400, n);
        check(b, &t, Symmetry::Symmetric);
        let (is, js, mut values) = t.into_parts();
        values.iter_mut().zip(is.iter().zip(&js)).filter(|(_, (i, j))| i == j).for_each(|(v, _)| *v = 0.0);
        t = Triplets::from_parts(400, 400, is, js, values).unwrap();
        check(b, &t, Symmetry::SkewSymmetric);
        let mut z = Triplets::<Complex<f64>>::new(400, 400).unwrap();
        let (is, js, values) = t.parts();
        for ((&i, &j), &v) in is.iter().zip(js).zip(values) {
            let im = if i == j { 0.0 } else { v / 3.0 };
            z.push(i as usize, j as usize, Complex::new(v, im)).unwrap();
        }
        check(b, &z, Symmetry::Hermitian);
        check(b, &z, Symmetry::Symmetric);
        check(b, &z, Symmetry::General);
    }
}

/// Arranged inputs.
pub fn arranged_cases<B: Assemble>(b: &B) {
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
    check(b, &build(&arranged), Symmetry::General);
    arranged.dedup_by_key(|e| (e.0, e.1));
    check(b, &build(&arranged), Symmetry::General);
    arranged = entries.clone();
    arranged.sort_by_key(|e| e.1);
    check(b, &build(&arranged), Symmetry::General);
    arranged.sort_by_key(|e| (e.1, e.0));
    check(b, &build(&arranged), Symmetry::General);
    // The four arrangements of one triangle, with duplicates, and with one entry of the other triangle among them.
    let lower: Vec<_> = entries.iter().map(|&(i, j, v)| (i.max(j), i.min(j), v)).collect();
    let upper: Vec<_> = lower.iter().map(|&(i, j, v)| (j, i, v)).collect();
    for triangle in [lower, upper] {
        for by_column in [false, true] {
            let mut arranged = triangle.clone();
            arranged.sort_by_key(|e| if by_column { (e.1, e.0) } else { (e.0, e.1) });
            check(b, &build(&arranged), Symmetry::Symmetric);
            let entry = &mut arranged[30_000];
            *entry = (entry.1, entry.0, entry.2);
            check(b, &build(&arranged), Symmetry::Symmetric);
        }
    }
}

/// Triplets that are on the device already, by the same results and the same refusals.
pub fn resident_cases<B: Assemble>(b: &B) {
    let t = triplets(&mut Random(77), 597, 43, 20_000);
    let up = |t: &Triplets<f64>| {
        let (is, js, values) = t.parts();
        let (is, js) = (b.upload(is.to_vec()).unwrap(), b.upload(js.to_vec()).unwrap());
        ResidentTriplets::from_parts(b, t.rows(), t.columns(), is, js, b.upload(values.to_vec()).unwrap())
    };
    let there = up(&t).unwrap();
    assert_eq!((there.rows(), there.columns(), there.len(), there.is_empty()), (597, 43, 20_000, false));
    assert_eq!(there.to_host(b).unwrap(), t);
    let (a, map) = Assembler::default().resident_assembly(b, &there).unwrap();
    assert_eq!(arrays(&a.to_host(b).unwrap()), twin(&t, Symmetry::General));
    assert_eq!(map.triplets(), 20_000);
    let a = Assembler::default().resident_to_csr(b, there).unwrap();
    assert_eq!(arrays(&a.to_host(b).unwrap()), twin(&t, Symmetry::General));
    let symmetric = Assembler::default().symmetry(Symmetry::Symmetric);
    assert!(symmetric.resident_to_csr(b, up(&t).unwrap()).is_err(), "not square");
    let (is, js, values) =
        (b.upload(vec![3]).unwrap(), b.upload(vec![4]).unwrap(), b.upload(vec![1.0]).unwrap());
    let error = ResidentTriplets::from_parts(b, 9, 4, is, js, values).unwrap_err().to_string();
    assert!(error.contains("column 4"), "{error}");
}
