//! Matrices with unusual shapes, and the sequential reference product.

use crate::random::Random;
use num_complex::Complex;
use residua::matrix::Csr;
use residua::scalar::{Element, Scalar};
use residua::{Backend, Host};

/// Rows with the given number of entries, in random columns; every 17th value is an explicit zero.
pub fn with_lengths<T: Scalar>(columns: usize, lengths: &[usize], seed: u64) -> Csr<T> {
    let mut random = Random(seed);
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for &length in lengths {
        let mut line = std::collections::BTreeSet::new();
        while line.len() < length.min(columns) {
            line.insert(random.below(columns) as u32);
        }
        for column in line {
            indices.push(column);
            values.push(if values.len() % 17 == 3 { T::zero() } else { random.scalar() });
        }
        offsets.push(values.len());
    }
    Csr::from_parts(lengths.len(), columns, offsets, indices, values).unwrap()
}

/// Matrices of many shapes with their names.
pub fn ragged<T: Scalar>() -> Vec<(&'static str, Csr<T>)> {
    let mut random = Random(42);
    let mut lengths =
        |rows: usize, most: usize| (0..rows).map(|_| random.below(most + 1)).collect::<Vec<_>>();
    let tall = lengths(597, 9);
    let wide = lengths(43, 70);
    let mut holes = lengths(300, 12);
    holes.iter_mut().step_by(3).for_each(|n| *n = 0);
    holes[299] = 0;
    let mut giant = lengths(700, 3);
    giant[311] = 700;
    let mut arrow = vec![2; 90];
    arrow[0] = 90;
    // Sections of 32 rows, one of them far wider than the others, but not too wide to be stored.
    let mut long = vec![40; 700];
    long[402] = 1500;
    let mut skewed: Vec<usize> = (0..2500).map(|i| 2000 / (i + 1)).collect();
    skewed.reverse();
    vec![
        ("4 x 4 example", example()),
        ("597 x 43", with_lengths(43, &tall, 1)),
        ("43 x 597", with_lengths(597, &wide, 2)),
        ("empty rows and columns", with_lengths(1000, &holes, 3)),
        ("one row", with_lengths(800, &[300], 4)),
        ("one column", with_lengths(1, &lengths_of_ones(200), 5)),
        ("one giant row", with_lengths(700, &giant, 6)),
        ("arrow", with_lengths(90, &arrow, 7)),
        ("a long row among others", with_lengths(2000, &long, 19)),
        ("power law", with_lengths(2500, &skewed, 8)),
        ("long, for several tasks", with_lengths(9000, &vec![11; 9000], 9)),
        ("597 x 43 by diagonals", by_diagonals(597, 43, &[-590, -300, -41, -2, 0, 1, 42], 14)),
        ("43 x 597 by diagonals", by_diagonals(43, 597, &[-42, -1, 0, 7, 300, 580, 596], 15)),
        ("a grid with holes", by_diagonals(2000, 2000, &[-300, -40, -1, 0, 1, 40, 300], 16)),
        ("forty diagonals", by_diagonals(400, 400, &(-20..20).map(|d| 10 * d).collect::<Vec<_>>(), 20)),
        ("three hundred diagonals", by_diagonals(64, 364, &(0..300).collect::<Vec<_>>(), 21)),
        ("one row by diagonals", by_diagonals(1, 90, &[0, 1, 40, 89], 17)),
        ("one column by diagonals", by_diagonals(90, 1, &[-89, -40, -1, 0], 18)),
        ("no nonzeros", with_lengths(7, &[0; 5], 10)),
        ("no rows", with_lengths(7, &[], 11)),
        ("no columns", with_lengths(0, &[0; 6], 12)),
        ("nothing", with_lengths(0, &[], 13)),
    ]
}

/// Entries on some diagonals (column - row); every fifth is missing and every seventh an explicit zero.
pub fn by_diagonals<T: Scalar>(rows: usize, columns: usize, distances: &[i64], seed: u64) -> Csr<T> {
    let mut random = Random(seed);
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows as i64 {
        for column in distances.iter().map(|d| row + d).filter(|j| (0..columns as i64).contains(j)) {
            if (3 * row + column) % 5 != 4 {
                indices.push(column as u32);
                values.push(if (row + column) % 7 == 3 { T::zero() } else { random.scalar() });
            }
        }
        offsets.push(values.len());
    }
    Csr::from_parts(rows, columns, offsets, indices, values).unwrap()
}

fn lengths_of_ones(n: usize) -> Vec<usize> {
    (0..n).map(|i| usize::from(i % 4 != 1)).collect()
}

/// The matrix that is drawn in the documentation.
pub fn example<T: Scalar>() -> Csr<T> {
    let values = [1.0, 7.0, 8.0, 4.0, 3.0, 2.0, 1.0].map(T::from_f64).to_vec();
    Csr::from_parts(4, 4, vec![0, 2, 3, 5, 7], vec![0, 2, 2, 1, 2, 0, 3], values).unwrap()
}

/// (row, column, value) of every entry, in order.
pub fn entries<V: Scalar>(a: &Csr<V>) -> Vec<(usize, usize, V)> {
    let parts = a.parts();
    let offsets: Vec<usize> = match parts.offsets {
        residua::backend::OffsetsRef::Lower(o) => o.iter().map(|&o| o as usize).collect(),
        residua::backend::OffsetsRef::Wide(o) => o.iter().map(|&o| o as usize).collect(),
    };
    (0..a.rows())
        .flat_map(|i| offsets[i]..offsets[i + 1])
        .zip((0..a.rows()).flat_map(|i| std::iter::repeat_n(i, offsets[i + 1] - offsets[i])))
        .map(|(e, i)| (i, parts.indices[e] as usize, parts.values[e]))
        .collect()
}

/// The same matrix in the memory of a backend.
pub fn on<V: Scalar, B: Backend>(backend: &B, a: &Csr<V>) -> Csr<V, B> {
    a.to_backend(backend).unwrap()
}

/// The matrix of a backend on the host.
pub fn back<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Csr<V> {
    a.to_host(backend).unwrap()
}

/// A value's bits, so that NaN and -0 compare.
pub fn bits<T: Element>(values: &[T]) -> String {
    format!("{values:?}")
}

/// The expected value of a product, in double precision with compensated sums, and the error bound.
pub struct Expected {
    pub value: Complex<f64>,
    pub bound: f64,
}

pub fn to_complex<T: Scalar>(v: T) -> Complex<f64>
where
    T::Real: residua::Real,
{
    use residua::Real;
    Complex::new(v.re().to_f64(), v.im().to_f64())
}

/// alpha op(A) x + beta y, one entry at a time; `y` is `None` if beta is zero.
pub fn reference<V: Scalar, T: Scalar>(
    shape: (usize, usize),
    entries: &[(usize, usize, V)],
    (transpose, conjugate): (bool, bool),
    (alpha, x): (T, &[T]),
    (beta, y): (T, Option<&[T]>),
) -> Vec<Expected> {
    let rows = if transpose { shape.1 } else { shape.0 };
    let mut sums = vec![(Complex::new(0.0, 0.0), Complex::new(0.0, 0.0), 0.0, 2usize); rows];
    let mut add = |row: usize, term: Complex<f64>| {
        let (sum, lost, size, count) = &mut sums[row];
        let corrected = term - *lost;
        let total = *sum + corrected;
        *lost = (total - *sum) - corrected;
        *sum = total;
        *size += term.norm();
        *count += 1;
    };
    for &(i, j, v) in entries {
        let (i, j) = if transpose { (j, i) } else { (i, j) };
        let v = to_complex(v);
        add(i, to_complex(alpha) * if conjugate { v.conj() } else { v } * to_complex(x[j]));
    }
    if let Some(y) = y {
        for (i, &y) in y.iter().enumerate() {
            add(i, to_complex(beta) * to_complex(y));
        }
    }
    let unit = if size_of::<T::Real>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    // Higham, Accuracy and Stability of Numerical Algorithms, section 3.1: n roundings per term; complex products need
    // a few more.
    let bound = |size: f64, count: usize| 4.0 * (count as f64 + 2.0) * unit * size;
    sums.into_iter().map(|(value, _, size, count)| Expected { value, bound: bound(size, count) }).collect()
}

/// The host, for generic test bodies.
pub const HOST: Host = Host;
