//! Cases of assembly for every backend: the structure, the order of sums, stored halves, the kept map.

#![allow(dead_code)]

use crate::random::Random;
use num_complex::Complex;
use residua::assemble::{self, Assemble, Assembler, Integers, Layout, ResidentTriplets, Symmetry};
use residua::backend::{Conversions, OffsetsRef};
use residua::{Csr, Host, Scalar, Triplets};
use std::collections::BTreeMap;

/// Calls a macro with its own arguments, followed by the names of all cases. [`many_cases`] is not among them, because
/// it needs a device.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            ragged_cases,
            wide_cases,
            giant_cases,
            half_cases,
            arranged_cases,
            resident_cases,
            array_cases
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
        OffsetsRef::Lower(o) => o.iter().map(|&o| o as usize).collect(),
        OffsetsRef::Wide(o) => o.iter().map(|&o| o as usize).collect(),
    };
    (offsets, parts.indices.to_vec(), parts.values.iter().map(|&v| bits(v)).collect())
}

/// The sequential twin: a sorted map of positions, each with the sum of its values in the order in which they appear.
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

/// Assembles with and without a map, updates the values, and compares each result with the twin.
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

/// `n` triplets, many of which have the same position; their magnitudes differ, so that sums in different orders have
/// different bits.
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

/// Keys with more than 32 and more than 48 bits, up to the largest indices.
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

/// Almost all triplets in one row, in one column or at one position: their buckets have to be divided again.
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

/// Enough triplets for a device to order them differently, shuffled and by rows; compared with the host.
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

/// Triplets of one half of a symmetric matrix.
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

/// Triplets in special orders, such as sorted ones.
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

/// Triplets that are on the device already: the same results and the same errors.
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

/// Returns the two index arrays in which a caller would pass these triplets in this layout (compressed rows or columns,
/// unsorted within each, or triplets), and the index of the triplet that belongs to each value.
fn laid_out(t: &Triplets<f64>, layout: Layout) -> (Vec<u64>, Vec<u64>, Vec<usize>) {
    let (is, js, _) = t.parts();
    let (lines, across, count) = match layout {
        Layout::Rows => (is, js, t.rows()),
        Layout::Columns => (js, is, t.columns()),
        Layout::Triplets => {
            let wide = |all: &[u32]| all.iter().map(|&i| u64::from(i)).collect();
            return (wide(is), wide(js), (0..is.len()).collect());
        }
    };
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&k| lines[k]);
    let offsets = (0..=count).map(|line| order.partition_point(|&k| (lines[k] as usize) < line) as u64);
    (offsets.collect(), order.iter().map(|&k| u64::from(across[k])).collect(), order)
}

/// Matrices from a caller's arrays in every format, width and base, sorted and unsorted, and with new values.
pub fn array_cases<B: Assemble + Conversions>(b: &B) {
    let narrow = |all: &[u64], base: u64| b.upload(all.iter().map(|&i| (i + base) as u32).collect()).unwrap();
    let wide = |all: &[u64], base: u64| b.upload(all.iter().map(|&i| i + base).collect()).unwrap();
    let mut random = Random(11);
    for (rows, columns, n) in
        [(0, 0, 0), (5, 0, 0), (1, 1, 3), (1, 900, 2000), (597, 43, 9000), (43, 597, 4000)]
    {
        let ragged = triplets(&mut random, rows, columns, n);
        let sorted = {
            let a = assemble::to_csr(&Host, ragged.clone()).unwrap();
            let row_of =
                |k: usize| (0..rows).find(|&row| a.parts().offsets.download(&Host).unwrap()[row + 1] > k);
            let rows_of = (0..a.nonzeros().min(300)).map(|k| row_of(k).unwrap() as u32).collect::<Vec<_>>();
            let len = rows_of.len();
            let (js, values) = (a.parts().indices[..len].to_vec(), a.parts().values[..len].to_vec());
            Triplets::from_parts(rows, columns, rows_of, js, values).unwrap()
        };
        for t in [ragged, sorted] {
            for layout in [Layout::Rows, Layout::Columns, Layout::Triplets] {
                let (first, second, order) = laid_out(&t, layout);
                let values: Vec<f64> = order.iter().map(|&k| t.parts().2[k]).collect();
                let there = b.upload(values.clone()).unwrap();
                for base in [0, 1] {
                    let (short, long) = (narrow(&first, base), wide(&first, base));
                    let (short_2, long_2) = (narrow(&second, base), wide(&second, base));
                    let firsts = [Integers::Short(&*short), Integers::Long(&*long)];
                    let seconds = [Integers::Long(&*long_2), Integers::Short(&*short_2)];
                    for (first, second) in firsts.into_iter().zip(seconds) {
                        let shape = (rows, columns);
                        let base = base as u32;
                        let arrays_of =
                            assemble::Arrays { layout, shape, base, first, second, values: &*there };
                        let expected = twin(&t, Symmetry::General);
                        let a = arrays_of.to_csr(b).unwrap();
                        assert_eq!(arrays(&a.to_host(b).unwrap()), expected, "{layout:?}");
                        let (mut a, kept) = arrays_of.build(b, true).unwrap();
                        assert_eq!(arrays(&a.to_host(b).unwrap()), expected, "{layout:?}, kept");
                        // Twice the values, in the order in which they were given.
                        let twice = b.upload(values.iter().map(|v| 2.0 * v).collect()).unwrap();
                        match kept {
                            Some((mut copy, map)) => {
                                map.update(b, &twice, &mut copy).unwrap();
                                a = copy;
                            }
                            None => b.copy(&twice, a.values_mut()).unwrap(),
                        }
                        let (is, js, values) = t.parts();
                        let values = values.iter().map(|v| 2.0 * v).collect();
                        let doubled =
                            Triplets::from_parts(rows, columns, is.to_vec(), js.to_vec(), values).unwrap();
                        assert_eq!(arrays(&a.to_host(b).unwrap()), twin(&doubled, Symmetry::General));
                    }
                }
            }
        }
    }
    wrong_arrays(b);
}

/// Invalid arrays are refused, and the error message has the number that is wrong.
fn wrong_arrays<B: Assemble + Conversions>(b: &B) {
    let told = |layout, base, first: &[i64], second: &[i64]| {
        let bits = |all: &[i64]| b.upload(all.iter().map(|&i| i as u64).collect()).unwrap();
        let short = |all: &[i64]| b.upload(all.iter().map(|&i| i as i32 as u32).collect()).unwrap();
        let values = b.upload(vec![1.0; second.len()]).unwrap();
        let (long_1, long_2, short_1, short_2) = (bits(first), bits(second), short(first), short(second));
        let of =
            |first, second| assemble::Arrays { layout, shape: (3, 3), base, first, second, values: &*values };
        let long = of(Integers::Long(&*long_1), Integers::Long(&*long_2)).build(b, true);
        let short = of(Integers::Short(&*short_1), Integers::Short(&*short_2)).build(b, true);
        let fits = first.iter().chain(second).all(|&i| i32::try_from(i).is_ok());
        assert!(short.is_err() || !fits);
        long.map(|_| ()).unwrap_err().to_string()
    };
    let rows = |offsets: &[i64], columns: &[i64]| told(Layout::Rows, 0, offsets, columns);
    assert!(rows(&[0, 1, 2, 3], &[0, 1, 7]).contains("column 7"));
    assert!(rows(&[0, 1, 2, 3], &[0, -1, 2]).contains("column -1"));
    assert!(rows(&[0, 1, 2, 3], &[0, 1, 1 << 33]).contains("8589934592"));
    for offsets in [[0, 2, 1, 3], [1, 2, 3, 3], [0, 1, 2, 4], [0, 1, 2, 2], [0, -1, 2, 3], [-1, 0, 1, 3]] {
        assert!(rows(&offsets, &[0, 1, 2]).contains("must ascend"), "{offsets:?}");
    }
    assert!(rows(&[0, 3], &[0, 1, 2]).contains("2 offsets"));
    assert!(rows(&[0, 1, 2, i64::MIN], &[0, 1, 2]).contains("must ascend"));
    assert!(told(Layout::Columns, 0, &[0, 1, 2, 3], &[0, 3, 1]).contains("row 3"));
    assert!(told(Layout::Triplets, 1, &[1, 2, 3], &[1, 0, 3]).contains("column 0"), "from 1");
    assert!(told(Layout::Triplets, 0, &[0, 3], &[0, 1]).contains("row 3"));
    assert!(told(Layout::Triplets, 0, &[0], &[0, 1]).contains("rows of entries"));
}
