//! Symmetric matrices of which the diagonal format stores one half, compared with the format that stores all entries.

use super::cases::{back, bits, on, to_complex};
use super::conversions::bits_of;
use crate::random::Random;
use num_complex::Complex;
use residua::backend::{Conversions, Op, Products, VectorOps};
use residua::matrix::{Csr, Dia};
use residua::scalar::Scalar;
use std::collections::BTreeMap;

/// A row's entries.
type Rows<T> = Vec<BTreeMap<usize, T>>;

fn csr<T: Scalar>(rows: &Rows<T>) -> Csr<T> {
    let mut offsets = vec![0];
    rows.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len()));
    let indices = rows.iter().flatten().map(|(&column, _)| column as u32).collect();
    let values = rows.iter().flatten().map(|(_, &value)| value).collect();
    Csr::from_parts(rows.len(), rows.len(), offsets, indices, values).unwrap()
}

/// Entries on these diagonals and their mirror images, four of five, including zeros of both signs.
fn symmetric<T: Scalar>(n: usize, distances: &[usize], seed: u64) -> Rows<T> {
    let (mut random, mut rows) = (Random(seed), vec![BTreeMap::new(); n]);
    for &distance in distances {
        for i in 0..n.saturating_sub(distance) {
            // The first and the last entry of a diagonal exist, so that the diagonal has its full length.
            if random.below(5) == 0 && i > 0 && i + distance + 1 < n {
                continue;
            }
            let value = match random.below(20) {
                0 => T::zero(),
                1 => -T::zero(),
                _ => random.scalar(),
            };
            rows[i].insert(i + distance, value);
            rows[i + distance].insert(i, value);
        }
    }
    rows
}

const SIZES: [usize; 9] = [1, 2, 31, 32, 33, 64, 100, 1000, 2113];

fn patterns() -> Vec<Vec<usize>> {
    let wide = (0..24).map(|k| 5 * k + k % 3).collect();
    vec![
        vec![0],
        vec![1],
        vec![0, 1],
        vec![0, 1, 10, 100],
        vec![0, 31, 32, 33, 63, 64, 65],
        vec![2, 7, 95, 999],
        vec![0, 1, 9, 10, 11, 89, 90, 91, 99, 100, 101, 109, 110, 111],
        wide,
    ]
}

/// Products with half of a matrix have the same bits as with all of it, in every form, and conversions restore it.
pub fn halves<T: Scalar, B: Products + Conversions + VectorOps>(backend: &B, sizes: &[usize]) {
    for &n in sizes {
        for (number, distances) in patterns().iter().enumerate() {
            let case = format!("{n} rows, pattern {number}");
            let host = csr(&symmetric::<T>(n, distances, (n + number) as u64));
            let a = on(backend, &host);
            let whole = match Dia::whole_from_csr(backend, &a) {
                Ok(whole) => whole,
                // Long diagonals of a small matrix.
                Err(residua::Error::Refused { .. }) => continue,
                Err(other) => panic!("{case}: {other}"),
            };
            let half = Dia::half_from_csr(backend, &a).unwrap();
            let right = distances.iter().filter(|d| (1..n).contains(*d)).count();
            assert_eq!(half.is_some(), right > 0, "{case}");
            let Some(half) = half else { continue };
            assert_eq!((half.is_half(), whole.is_half()), (true, false), "{case}");
            assert_eq!(half.diagonals(), whole.diagonals(), "{case}");
            assert_eq!(half.parts().mirrored, right, "{case}");
            assert!(bits_of(&back(backend, &half.to_csr(backend).unwrap())) == bits_of(&host), "{case}");
            same_products(backend, &case, &half, &whole);
        }
    }
}

fn same_products<T: Scalar, B: Products + Conversions + VectorOps>(
    backend: &B,
    case: &str,
    half: &Dia<T, B>,
    whole: &Dia<T, B>,
) {
    let (n, mut random) = (half.rows(), Random(3));
    let (x, old) = (random.vector::<T>(n), random.vector::<T>(n));
    // An infinite element affects only the rows that refer to it.
    let mut infinite = x.clone();
    infinite[n / 2] = T::from_f64(f64::INFINITY);
    for x in [x, infinite] {
        let there = backend.upload(x.clone()).unwrap();
        for op in [Op::None, Op::Transpose, Op::Conjugate, Op::ConjugateTranspose] {
            for (alpha, beta) in [(1.0, 0.0), (-1.5, 0.25)] {
                let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
                let y = [half, whole].map(|a| {
                    let mut y = backend.upload(old.clone()).unwrap();
                    a.product_op(backend, op, alpha, &there, beta, &mut y).unwrap();
                    backend.download(&*y).unwrap()
                });
                assert!(same(&y), "{case}, {op:?}, beta {beta}: {:?} for {:?}", y[0], y[1]);
            }
        }
        let y = [half, whole].map(|a| {
            let (mut y, mut xy) = (backend.zeros(n).unwrap(), backend.zeros(1).unwrap());
            backend.dia_dot(a.parts(), &there, &mut y, &mut xy).unwrap();
            backend.download(&*y).unwrap()
        });
        assert!(same(&y), "{case}: with x.y");
    }
}

/// Compares bits. For complex numbers the compiler chooses in each kernel which products are rounded.
fn same<T: Scalar>(y: &[Vec<T>; 2]) -> bool {
    let near = |(&a, &b): (&T, &T)| {
        let (a, b) = (to_complex(a), to_complex(b));
        (a - b).norm() <= 1e-4 || !(a.norm().is_finite() || b.norm().is_finite())
    };
    if T::COMPLEX { y[0].iter().zip(&y[1]).all(near) } else { bits(&y[0]) == bits(&y[1]) }
}

/// A matrix that lacks one mirror image, or has one with other bits, is stored completely.
pub fn nearly_symmetric<B: Products + Conversions + VectorOps>(backend: &B) {
    let distances = [0, 1, 10, 45, 100];
    for n in [130, 5003] {
        let all = symmetric::<f64>(n, &distances, 8);
        let check = |what: &str, rows: &Rows<f64>, expected: bool| {
            let (host, case) = (csr(rows), format!("{n} rows, {what}"));
            let a = on(backend, &host);
            let half = Dia::half_from_csr(backend, &a).unwrap();
            assert_eq!(half.is_some(), expected, "{case}");
            let stored = Dia::from_csr(backend, &a).unwrap();
            assert!(!stored.is_half() || expected, "{case}");
            for stored in [stored].into_iter().chain(half) {
                assert!(
                    bits_of(&back(backend, &stored.to_csr(backend).unwrap())) == bits_of(&host),
                    "{case}"
                );
            }
        };
        check("as it is", &all, true);
        let some = [n / 2 + 1, 0, 1, 37, n - 2, n - 1];
        for &row in if n > 1000 { &some[..1] } else { &some } {
            let beside: Vec<usize> = all[row].keys().copied().filter(|&column| column != row).collect();
            for column in beside {
                let entry = format!("({row}, {column})");
                let mut rows = all.clone();
                rows[row].insert(column, 3.0);
                check(&format!("another value at {entry}"), &rows, false);
                rows[row].remove(&column);
                check(&format!("none at {entry}"), &rows, false);
                for (value, image) in [(0.0, -0.0), (nan(1), nan(2))] {
                    rows[row].insert(column, value);
                    rows[column].insert(row, image);
                    check(&format!("{value} and {image} at {entry}"), &rows, false);
                    rows[column].insert(row, value);
                    check(&format!("{value} twice at {entry}"), &rows, true);
                }
            }
        }
    }
    // A complex symmetric matrix is stored by half, but a Hermitian one is not.
    let mut rows = symmetric::<Complex<f64>>(300, &[0, 1, 17], 5);
    let all = on(backend, &csr(&rows));
    assert!(Dia::half_from_csr(backend, &all).unwrap().is_some());
    (0..300).for_each(|i| rows[i].iter_mut().filter(|(j, _)| **j < i).for_each(|(_, v)| *v = v.conj()));
    assert!(Dia::half_from_csr(backend, &on(backend, &csr(&rows))).unwrap().is_none());
    // The value that stands for no entry is refused, on either side.
    for (row, column) in [(40, 50), (50, 40)] {
        let mut rows = symmetric::<f64>(130, &distances, 8);
        rows[row].insert(column, f64::from_bits(u64::MAX));
        let refused = Dia::from_csr(backend, &on(backend, &csr(&rows)));
        assert!(matches!(refused, Err(residua::Error::Refused { .. })));
    }
}

fn nan(payload: u64) -> f64 {
    f64::from_bits(f64::NAN.to_bits() | payload)
}

pub fn of_all_types<B: Products + Conversions + VectorOps>(backend: &B) {
    halves::<f64, B>(backend, &SIZES);
    halves::<f32, B>(backend, &SIZES);
    halves::<Complex<f32>, B>(backend, &SIZES[..7]);
    halves::<Complex<f64>, B>(backend, &SIZES[..7]);
    nearly_symmetric(backend);
}
