//! Cases of sparse products and sums of matrices, for any backend: each is compared with a plain sequential twin.

use crate::random::Random;
use num_complex::Complex;
use residua::backend::{Conversions, SparseProducts};
use residua::matrix::{self, TripleProduct};
use residua::{Csr, Error, Scalar, generate};
use std::collections::BTreeMap;

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            product_cases,
            sum_cases,
            triple_product_cases,
            mostly_short_rows,
            few_entries_of_a,
            columns_that_meet,
            differing,
            giant_rows,
            refused_sizes
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// Rows of lengths from zero to `longest`.
fn ragged<T: Scalar>(random: &mut Random, rows: usize, columns: usize, longest: usize) -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..rows {
        let length = if random.below(5) == 0 { 0 } else { random.below(longest + 1) };
        let mut row: Vec<u32> = (0..length.min(columns)).map(|_| random.below(columns) as u32).collect();
        row.sort_unstable();
        row.dedup();
        values.extend((0..row.len()).map(|_| random.scalar::<T>()));
        indices.extend(row);
        offsets.push(indices.len());
    }
    Csr::from_parts(rows, columns, offsets, indices, values).unwrap()
}

/// The reference for A B: the terms of an entry are rounded and added in the order of A's row, so the bits are
/// determined.
fn product<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut terms: Vec<(u32, T)> = Vec::new();
    for i in 0..a.rows() {
        terms.clear();
        let (columns, factors) = a.row(i);
        for (&k, &factor) in columns.iter().zip(factors) {
            let (columns, others) = b.row(k as usize);
            terms.extend(columns.iter().zip(others).map(|(&j, &other)| (j, factor * other)));
        }
        // The sort is stable: terms of an entry are added in their order.
        terms.sort_by_key(|&(j, _)| j);
        for entry in terms.chunk_by(|one, next| one.0 == next.0) {
            indices.push(entry[0].0);
            values.push(entry.iter().fold(T::zero(), |sum, &(_, term)| sum + term));
        }
        offsets.push(indices.len());
    }
    Csr::from_parts(a.rows(), b.columns(), offsets, indices, values).unwrap()
}

fn sum<T: Scalar>(alpha: T, a: &Csr<T>, beta: T, b: &Csr<T>) -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.rows() {
        let mut row: BTreeMap<u32, T> =
            a.row(i).0.iter().zip(a.row(i).1).map(|(&j, &v)| (j, alpha * v)).collect();
        for (&j, &v) in b.row(i).0.iter().zip(b.row(i).1) {
            row.entry(j).and_modify(|sum| *sum += beta * v).or_insert(beta * v);
        }
        indices.extend(row.keys());
        values.extend(row.values());
        offsets.push(indices.len());
    }
    Csr::from_parts(a.rows(), a.columns(), offsets, indices, values).unwrap()
}

/// Checks A B, and A B with other values on the same patterns.
fn multiplied<T: Scalar, B: SparseProducts>(backend: &B, a: &Csr<T>, b: &Csr<T>) {
    let expected = product(a, b);
    let (left, right) = (a.to_backend(backend).unwrap(), b.to_backend(backend).unwrap());
    let mut c = matrix::multiply(backend, &left, &right).unwrap();
    assert!(c.to_host(backend).unwrap() == expected, "{} x {} by {}", a.rows(), a.columns(), b.columns());
    let half = T::from_f64(0.5);
    let other = a.map(|value| value * half);
    matrix::multiply_again(backend, &other.to_backend(backend).unwrap(), &right, &mut c).unwrap();
    assert!(c.to_host(backend).unwrap() == product(&other, b));
}

pub fn product_cases<B: SparseProducts>(backend: &B) {
    fn of<T: Scalar, B: SparseProducts>(backend: &B) {
        let mut random = Random(1);
        for (rows, inner, columns, longest) in [
            (0, 0, 0, 0),
            (1, 1, 1, 1),
            (3, 5, 2, 4),
            (100, 70, 90, 9),
            (700, 900, 3000, 40),
            (9000, 8000, 7000, 6),
            // With this many columns, keys of 32 bits are just large enough on a device.
            (30, 300, 9_000_000, 30),
        ] {
            let a = ragged::<T>(&mut random, rows, inner, longest);
            let b = ragged::<T>(&mut random, inner, columns, longest);
            multiplied(backend, &a, &b);
        }
        // Many products in rows of every length that a device distinguishes, and rows of B from short to long.
        for columns in [3, 14, 50, 120, 250, 900, 2500] {
            for longest in [6, 25, 80] {
                let a = ragged::<T>(&mut random, 70, 400, 130);
                let b = ragged::<T>(&mut random, 400, columns, longest);
                multiplied(backend, &a, &b);
            }
        }
    }
    of::<f64, B>(backend);
    of::<f32, B>(backend);
    of::<Complex<f64>, B>(backend);
    let mesh = generate::poisson3d(17, 13, 11).unwrap();
    multiplied(backend, &mesh, &mesh);
    let graph = generate::rmat(1 << 10, 8, generate::RmatKind::Directed, 3).unwrap();
    multiplied(backend, &graph, &graph);
    // Short rows among many columns, with products in neighbouring columns.
    let band = generate::tridiagonal(80_000).unwrap();
    multiplied(backend, &band, &band);
}

pub fn sum_cases<B: SparseProducts>(backend: &B) {
    fn of<T: Scalar, B: SparseProducts>(backend: &B) {
        let mut random = Random(2);
        for (rows, columns, longest) in [(0, 0, 0), (1, 1, 1), (50, 40, 7), (5000, 6000, 30)] {
            let a = ragged::<T>(&mut random, rows, columns, longest);
            let b = ragged::<T>(&mut random, rows, columns, longest);
            let (alpha, beta) = (random.scalar::<T>(), random.scalar::<T>());
            let (left, right) = (a.to_backend(backend).unwrap(), b.to_backend(backend).unwrap());
            let c = matrix::add(backend, alpha, &left, beta, &right).unwrap();
            assert!(c.to_host(backend).unwrap() == sum(alpha, &a, beta, &b), "{rows} x {columns}");
        }
        // One entry per row, which may be in the row already.
        let a = ragged::<T>(&mut random, 900, 40, 30);
        let each = (0..900).map(|row| (row * 7 % 40) as u32).collect();
        let values = (0..900).map(|_| random.scalar::<T>()).collect();
        let b = Csr::from_parts(900, 40, (0..=900).collect(), each, values).unwrap();
        let (alpha, beta) = (random.scalar::<T>(), random.scalar::<T>());
        let (left, right) = (a.to_backend(backend).unwrap(), b.to_backend(backend).unwrap());
        let c = matrix::add(backend, alpha, &left, beta, &right).unwrap();
        assert!(c.to_host(backend).unwrap() == sum(alpha, &a, beta, &b), "an entry a row");
    }
    of::<f64, B>(backend);
    of::<Complex<f32>, B>(backend);
}

pub fn triple_product_cases<B: SparseProducts + Conversions>(backend: &B) {
    let mut random = Random(3);
    let a = generate::poisson2d_9(40, 30).unwrap();
    let p = ragged::<f64>(&mut random, 1200, 150, 4);
    let on = |a: &Csr<f64>| a.to_backend(backend).unwrap();
    let (left, right) = (on(&a), on(&p));
    let r = right.transpose(backend).unwrap();
    let mut triple = TripleProduct::new(backend, &r, &left, &right).unwrap();
    let expected = |a: &Csr<f64>| product(&r.to_host(backend).unwrap(), &product(a, &p));
    assert!(triple.product().to_host(backend).unwrap() == expected(&a));
    let other = a.map(|value| value + 0.25);
    triple.update(backend, &r, &on(&other), &right).unwrap();
    assert!(triple.into_product().to_host(backend).unwrap() == expected(&other));
}

/// Every method of computing a row, in little time.
#[allow(dead_code)] // not every test program needs the short cases
pub fn small_cases<B: SparseProducts>(backend: &B) {
    let mut random = Random(6);
    for (rows, inner, columns, longest) in
        [(5, 7, 6, 3), (40, 30, 50, 12), (20, 60, 900, 40), (4, 300, 2000, 200), (20, 300, 9_000_000, 30)]
    {
        let a = ragged::<f64>(&mut random, rows, inner, longest);
        let b = ragged::<f64>(&mut random, inner, columns, longest);
        multiplied(backend, &a, &b);
    }
    mostly_short_rows(backend);
    few_entries_of_a(backend);
    columns_that_meet(backend);
    differing(backend);
    let (a, b) = (ragged::<Complex<f32>>(&mut random, 30, 40, 5), ragged(&mut random, 30, 40, 9));
    let (left, right) = (a.to_backend(backend).unwrap(), b.to_backend(backend).unwrap());
    let two = Complex::new(2.0, 0.0);
    let c = matrix::add(backend, two, &left, two, &right).unwrap();
    assert!(c.to_host(backend).unwrap() == sum(two, &a, two, &b));
}

/// Mostly short rows, and a few of every other kind.
pub fn mostly_short_rows<B: SparseProducts>(backend: &B) {
    let arrow = generate::arrow(6000).unwrap();
    multiplied(backend, &arrow, &arrow);
    let graph = generate::rmat(1 << 9, 2, generate::RmatKind::Directed, 5).unwrap();
    multiplied(backend, &graph, &graph);
}

/// Rows of A with few entries, which a device merges, and rows of B from empty to long.
pub fn few_entries_of_a<B: SparseProducts>(backend: &B) {
    let mut random = Random(8);
    for (longest, columns, of_b) in [(8, 5000, 120), (8, 40, 30), (1, 9000, 128), (3, 7, 2)] {
        let a = ragged::<f64>(&mut random, 150, 90, longest);
        multiplied(backend, &a, &ragged(&mut random, 90, columns, of_b));
    }
    let a = ragged::<Complex<f64>>(&mut random, 70, 90, 8);
    multiplied(backend, &a, &ragged(&mut random, 90, 3000, 60));
}

/// Columns of which two collide for each hash that a device tries for a table without collisions.
pub fn columns_that_meet<B: SparseProducts>(backend: &B) {
    let mut random = Random(9);
    let mut columns = Vec::new();
    for trial in 0..64_u32 {
        let place = |column: u32| column.wrapping_mul(0x9e37_79b1_u32.wrapping_mul(2 * trial + 1)) >> 19;
        let first = random.below(4_000_000) as u32;
        let other =
            (first + 1..9_000_000).find(|&other| place(other) == place(first) && !columns.contains(&other));
        columns.extend([first, other.expect("one of 8192 columns")]);
    }
    columns.sort_unstable();
    columns.dedup();
    assert!((65..=128).contains(&columns.len()), "{} columns", columns.len());
    let len = columns.len();
    let twice = [columns.clone(), columns].concat();
    let values = (0..2 * len).map(|_| random.scalar()).collect();
    let b = Csr::from_parts(2, 9_000_000, vec![0, len, 2 * len], twice, values).unwrap();
    let a =
        Csr::from_parts(3, 2, vec![0, 2, 3, 5], vec![0, 1, 1, 0, 1], vec![2.0, -3.0, 5.0, 0.5, 7.0]).unwrap();
    multiplied(backend, &a, &b);
}

/// Elements of two lists that differ are counted, and added to the previous count.
pub fn differing<B: SparseProducts>(backend: &B) {
    let mut random = Random(7);
    for len in [0, 1, 31, 1000, 40_000] {
        let list: Vec<u32> = (0..len).map(|_| random.below(3) as u32).collect();
        let other: Vec<u32> = (0..len).map(|_| random.below(3) as u32).collect();
        let expected = 5 + list.iter().zip(&other).filter(|(a, b)| a != b).count() as u32;
        let mut count = backend.upload(vec![5_u32]).unwrap();
        let (list, other) = (backend.upload(list).unwrap(), backend.upload(other).unwrap());
        backend.count_differing(&list, &other, &mut count).unwrap();
        assert_eq!(backend.download(&count).unwrap(), [expected], "{len} elements");
    }
}

/// One full row and one full column: more columns than any table of a block of threads holds.
pub fn giant_rows<B: SparseProducts>(backend: &B) {
    let a = generate::arrow(3000).unwrap();
    multiplied(backend, &a, &a);
    let mut random = Random(4);
    let wide = ragged::<f64>(&mut random, 3, 500, 600);
    let b = ragged::<f64>(&mut random, 500, 60_000, 400);
    multiplied(backend, &wide, &b);
}

pub fn refused_sizes<B: SparseProducts>(backend: &B) {
    let on = |rows, columns| ragged::<f64>(&mut Random(5), rows, columns, 2).to_backend(backend).unwrap();
    let is_size = |result: residua::Result<Csr<f64, B>>| matches!(result, Err(Error::Dimension { .. }));
    assert!(is_size(matrix::multiply(backend, &on(3, 4), &on(5, 3))));
    assert!(is_size(matrix::add(backend, 1.0, &on(3, 4), 1.0, &on(4, 3))));
    let mut c = on(3, 3);
    assert!(matrix::multiply_again(backend, &on(3, 4), &on(4, 5), &mut c).is_err());
}
