//! Flexible GMRES preconditioned by a factor, on the host: Saad, "Iterative Methods for Sparse Linear Systems", section
//! 9.4.1.

use crate::scalar::{Real, Scalar};

fn dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).fold(T::default(), |sum, (a, b)| sum + a.conj() * *b)
}

/// Solves A d = r until ||r - A d|| is at most `goal`, and returns d and the number of iterations; `precondition` is
/// applied from the right, in place.
pub(super) fn fgmres<T: Scalar>(
    product: &mut dyn FnMut(&[T], &mut [T]),
    precondition: &mut dyn FnMut(&mut Vec<T>),
    r: &[T],
    goal: f64,
    most: usize,
) -> (Vec<T>, usize) {
    let n = r.len();
    let beta = super::goal::norm(r);
    let mut d = vec![T::default(); n];
    if !(beta > 0.0 && beta.is_finite()) {
        return (d, 0);
    }
    let scaled = |v: &[T], factor: f64| v.iter().map(|&v| v * T::from_f64(factor)).collect::<Vec<T>>();
    let (mut basis, mut directions) = (vec![scaled(r, 1.0 / beta)], Vec::new());
    // The columns of R, the Givens rotations, and the right-hand side of the least-squares problem.
    let (mut columns, mut rotations): (Vec<Vec<T>>, Vec<(f64, T)>) = (Vec::new(), Vec::new());
    let mut rhs = vec![T::from_f64(beta)];
    while columns.len() < most && !crate::work::is_asked() {
        let k = columns.len();
        let mut z = basis[k].clone();
        precondition(&mut z);
        let mut w = vec![T::default(); n];
        product(&z, &mut w);
        let mut column = vec![T::default(); k + 1];
        for _ in 0..2 {
            for (v, h) in basis.iter().zip(&mut column) {
                let part = dot(v, &w);
                *h += part;
                w.iter_mut().zip(v).for_each(|(w, &v)| *w -= part * v);
            }
        }
        let below = super::goal::norm(&w);
        if !below.is_finite() {
            break;
        }
        for (i, &(c, s)) in rotations.iter().enumerate() {
            let (a, b) = (column[i], column[i + 1]);
            column[i] = a * T::from_f64(c) + s * b;
            column[i + 1] = b * T::from_f64(c) - s.conj() * a;
        }
        let (a, size) = (column[k], column[k].abs().to_f64());
        let length = size.hypot(below);
        if length == 0.0 {
            break;
        }
        let (c, s) = if size > 0.0 {
            (size / length, a * T::from_f64(below / (size * length)))
        } else {
            (0.0, T::from_f64(1.0))
        };
        column[k] = a * T::from_f64(c) + s * T::from_f64(below);
        let last = rhs[k];
        rhs[k] = last * T::from_f64(c);
        rhs.push(T::default() - s.conj() * last);
        rotations.push((c, s));
        columns.push(column);
        directions.push(z);
        if rhs[k + 1].abs().to_f64() <= goal || below <= f64::MIN_POSITIVE {
            break;
        }
        basis.push(scaled(&w, 1.0 / below));
    }
    let k = columns.len();
    let mut y = rhs[..k].to_vec();
    for j in (0..k).rev() {
        let value = y[j] / columns[j][j];
        y[j] = value;
        for i in 0..j {
            y[i] -= columns[j][i] * value;
        }
    }
    for (z, &y) in directions.iter().zip(&y) {
        d.iter_mut().zip(z).for_each(|(d, &z)| *d += z * y);
    }
    (d, k)
}
