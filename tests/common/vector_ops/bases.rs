//! A basis of vectors: products, updates, both in one pass.

use super::{GUARD, close, same, sum, wide};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::VectorOps;
use residua::scalar::Scalar;

fn basis_case<T: Scalar, B: VectorOps>(b: &B, count: usize, n: usize) {
    let mut random = Random((1000 * count + n) as u64);
    let what = format!("{} {count} vectors of {n}", T::NAME);
    let shift = count % 2;
    // One more vector than requested, which must not be read.
    let mut basis = random.vector::<T>(shift + (count + 1) * n);
    basis[shift + count * n..].fill(T::from_f64(f64::NAN));
    let w = random.vector::<T>(n + 2 * GUARD);
    let h = random.vector::<T>(count + 1);
    let (v, inner) = (&basis[shift..], &w[GUARD..GUARD + n]);
    let (there, mut w_there) = (b.upload(basis.clone()).unwrap(), b.upload(w.clone()).unwrap());
    let basis_there = B::part::<T>(&there, shift..shift + (count + 1) * n);
    let mut out = b.upload(h.clone()).unwrap();
    let mut products = || {
        b.basis_products(basis_there, count, B::part::<T>(&w_there, GUARD..GUARD + n), &mut out).unwrap();
        b.download(&out).unwrap()
    };
    let first = products();
    assert!(same(&first, &products()), "{what}: other bits");
    assert!(same(&first[count..], &h[count..]), "{what}");
    for (j, &got) in first[..count].iter().enumerate() {
        let terms = v[j * n..(j + 1) * n].iter().zip(inner).map(|(&v, &w)| wide(v.conj()) * wide(w));
        let (exact, size) = sum(terms);
        close(got, exact, size, &format!("{what}: product {j}"));
    }
    let h_there = b.upload(h.clone()).unwrap();
    let alpha = random.scalar::<T>();
    let mut square = b.upload(vec![T::from_f64(-1.0); 1]).unwrap();
    for (alpha, asks) in [(T::from_f64(-1.0), true), (alpha, false)] {
        b.write(&w, &mut w_there).unwrap();
        let part = B::part_mut::<T>(&mut w_there, GUARD..GUARD + n);
        let to = asks.then_some(&mut *square);
        b.basis_update(alpha, basis_there, count, &h_there, part, to).unwrap();
        let got = b.download(&w_there).unwrap();
        assert!(same(&got[..GUARD], &w[..GUARD]) && same(&got[GUARD + n..], &w[GUARD + n..]), "{what}");
        for i in 0..n {
            let terms = (0..count).map(|j| wide(alpha) * wide(h[j]) * wide(v[j * n + i]));
            let (exact, size) = sum(terms.chain([wide(inner[i])]));
            close(got[GUARD + i], exact, size, &format!("{what}: update at {i}"));
        }
        if asks {
            let (exact, size) = sum(got[GUARD..GUARD + n].iter().map(|&w| wide(w).norm_sqr().into()));
            close(b.download(&square).unwrap()[0], exact, size, &format!("{what}: norm"));
        }
    }
    // The update and the products with its result, in one step.
    let mut project = || {
        b.write(&w, &mut w_there).unwrap();
        let part = B::part_mut::<T>(&mut w_there, GUARD..GUARD + n);
        b.basis_project(basis_there, count, &h_there, part, &mut out).unwrap();
        (b.download(&w_there).unwrap(), b.download(&out).unwrap())
    };
    let (left, found) = project();
    let again = project();
    assert!(same(&left, &again.0) && same(&found, &again.1), "{what}: other bits");
    assert!(same(&left[..GUARD], &w[..GUARD]) && same(&left[GUARD + n..], &w[GUARD + n..]), "{what}");
    assert!(same(&found[count..], &h[count..]), "{what}");
    for i in 0..n {
        let terms = (0..count).map(|j| -wide(h[j]) * wide(v[j * n + i]));
        let (exact, size) = sum(terms.chain([wide(inner[i])]));
        close(left[GUARD + i], exact, size, &format!("{what}: projection at {i}"));
    }
    for (j, &got) in found[..count].iter().enumerate() {
        let rows = v[j * n..(j + 1) * n].iter().zip(&left[GUARD..]);
        let (exact, size) = sum(rows.map(|(&v, &w)| wide(v.conj()) * wide(w)));
        close(got, exact, size, &format!("{what}: product {j} after the update"));
    }
    let too_short = B::part::<T>(&there, 0..(count * n).saturating_sub(1));
    if n > 0 {
        let w = B::part::<T>(&w_there, GUARD..GUARD + n);
        assert!(b.basis_products(too_short, count, w, &mut out).is_err());
    }
    let w = B::part::<T>(&w_there, GUARD..GUARD + n);
    assert!(b.basis_products(basis_there, count, w, B::part_mut::<T>(&mut out, 0..count - 1)).is_err());
}

pub fn basis_of<B: VectorOps>(b: &B, counts: &[usize], lengths: &[usize]) {
    for &count in counts {
        for &n in lengths {
            basis_case::<f32, B>(b, count, n);
            basis_case::<f64, B>(b, count, n);
            basis_case::<Complex<f32>, B>(b, count, n);
            basis_case::<Complex<f64>, B>(b, count, n);
        }
    }
}

pub fn basis_cases<B: VectorOps>(b: &B) {
    basis_of(b, &[1, 2, 7, 8, 9, 31], &[0, 1, 3, 127, 1001, 10_001]);
    basis_of(b, &[2, 9], &[65537]);
    // More vectors than a device's block multiplies, and more coefficients than it keeps.
    basis_case::<f64, B>(b, 65, 1001);
    basis_case::<Complex<f32>, B>(b, 300, 131);
    basis_case::<f64, B>(b, 2100, 3);
}

/// Vectors so long that a device uses tiles of several elements per thread.
pub fn long_basis<B: VectorOps>(b: &B) {
    basis_of(b, &[3], &[1_000_003]);
}
