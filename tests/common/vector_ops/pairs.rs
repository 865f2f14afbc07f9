//! Pairs of Arnoldi steps: products and updates of a basis in either precision, and the process as a whole.

use super::{Wide, close, epsilon, same, sum, wide};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::{CgStatus, PairLayout, PairScalars, ScalarLayout, Slot, VectorOps};
use residua::scalar::{Promote, Real, Scalar};

/// A value rounded to the type of the basis.
fn stored<S: Scalar, T: Scalar>(x: T) -> S {
    S::from_parts(x.re().to_f64(), x.im().to_f64()).unwrap()
}

fn vectors_case<S: Scalar + Promote<T>, T: Scalar, B: VectorOps>(b: &B, count: usize, n: usize) {
    let mut random = Random((77 * count + n) as u64);
    let what = format!("{} in {}, {count} vectors of {n}", T::NAME, S::NAME);
    // Room for two more vectors, and an element before and after the basis that must not be changed.
    let mut basis: Vec<S> = random.vector::<T>(1 + (count + 2) * n + 1).into_iter().map(stored).collect();
    basis[1 + count * n..].fill(S::from_f64(f64::NAN));
    let v = |j: usize| basis[1 + j * n..1 + (j + 1) * n].to_vec();
    let vectors: Vec<Vec<S>> = (0..count).map(v).collect();
    let (w_1, w_2) = (random.vector::<T>(n), random.vector::<T>(n));
    let mut there = b.upload(basis.clone()).unwrap();
    let (first, second) = (b.upload(w_1.clone()).unwrap(), b.upload(w_2.clone()).unwrap());
    let range = 1..1 + (count + 2) * n;
    if count > 0 {
        let mut out = b.upload(vec![T::from_f64(-5.0); 4 * count + 4]).unwrap();
        let mut products = || {
            let part = B::part::<S>(&there, range.clone());
            b.pair_products(part, count, [&first, &second], &mut out).unwrap();
            b.download(&out).unwrap()
        };
        let got = products();
        assert!(same(&got, &products()), "{what}: other bits");
        assert!(got[4 * count + 3] == T::from_f64(-5.0), "{what}: one place too many");
        let widened = |v: Vec<S>| v.into_iter().map(wide).collect::<Vec<Wide>>();
        let right = [
            w_1.iter().map(|&w| wide(w)).collect(),
            w_2.iter().map(|&w| wide(w)).collect(),
            widened(v(count.saturating_sub(2))),
            widened(v(count - 1)),
        ];
        let inner = |x: &[Wide], y: &[Wide]| sum(x.iter().zip(y).map(|(x, y)| x.conj() * y));
        for (k, right) in right.iter().enumerate() {
            for (i, v) in vectors.iter().enumerate() {
                let (exact, size) = inner(&widened(v.clone()), right);
                close(got[k * count + i], exact, size, &format!("{what}: product {i} with {k}"));
            }
        }
        for (place, (x, y)) in [(0, 0), (0, 1), (1, 1)].into_iter().enumerate() {
            let (exact, size) = inner(&right[x], &right[y]);
            close(got[4 * count + place], exact, size, &format!("{what}: square {place}"));
        }
    }
    let width = count + 2;
    let mut factors = random.vector::<T>(2 * width + 5);
    (factors[2 * width + 1], factors[2 * width + 2]) = (T::from_f64(0.75), T::from_f64(1.5));
    let there_factors = b.upload(factors.clone()).unwrap();
    let (mut newest, mut squares) = (b.zeros::<T>(n).unwrap(), b.zeros::<T>(2).unwrap());
    let part = B::part_mut::<S>(&mut there, range.clone());
    b.pair_update(part, count, [&first, &second], &there_factors, &mut newest, &mut squares).unwrap();
    let after = b.download(&there).unwrap();
    assert!(same(&after[..1 + count * n], &basis[..1 + count * n]), "{what}: the basis changed");
    assert!(same(&after[range.end..], &basis[range.end..]), "{what}: behind the basis");
    let (newest, squares) = (b.download(&newest).unwrap(), b.download(&squares).unwrap());
    let fresh = |k: usize| &after[1 + (count + k) * n..1 + (count + k + 1) * n];
    for i in 0..n {
        let terms = |row: usize, w: T| {
            let v = vectors.iter().zip(&factors[row * width..]).map(|(v, &h)| -wide(h) * wide(v[i]));
            v.chain([wide(w)]).collect::<Vec<_>>()
        };
        let (exact, size) = sum(terms(0, w_1[i]).into_iter());
        let told = format!("{what}: entry {i}");
        close::<S>(fresh(0)[i], exact / 0.75, size / 0.75, &told);
        let on_first = -wide(factors[2 * width]) * wide(fresh(0)[i]);
        let (exact, size) = sum(terms(1, w_2[i]).into_iter().chain([on_first]));
        close::<S>(fresh(1)[i], exact / 1.5, size / 1.5, &told);
        assert!(newest[i] == <S as Promote<T>>::widen(fresh(1)[i]), "{told} of the wide copy");
    }
    for (k, &square) in squares.iter().enumerate() {
        let (exact, size) = sum(fresh(k).iter().map(|&x| wide(x).norm_sqr().into()));
        close(square, exact, size, &format!("{what}: square {k}"));
    }
    let c = b.upload(factors).unwrap();
    let mut x = b.upload(vec![T::from_f64(f64::NAN); n]).unwrap();
    b.basis_combination(B::part::<S>(&there, range), count, &c, &mut x).unwrap();
    let x = b.download(&x).unwrap();
    let c = b.download(&c).unwrap();
    for (i, &x) in x.iter().enumerate() {
        let (exact, size) = sum(vectors.iter().zip(&c).map(|(v, &c)| wide(c) * wide(v[i])));
        close(x, exact, size, &format!("{what}: combination at {i}"));
    }
}

/// GMRES by pairs on a small dense matrix: the residual according to the recurrence is that of b - A x.
fn process_case<S: Scalar + Promote<T>, T: Scalar, B: VectorOps>(b: &B, columns: usize) {
    let (n, mut random) = (48, Random(columns as u64));
    let what = format!("{} in {}, {columns} columns", T::NAME, S::NAME);
    let mut a: Vec<T> = random.vector::<T>(n * n).into_iter().map(|x| x * T::from_f64(0.2)).collect();
    (0..n).for_each(|i| a[i * n + i] += T::from_f64(1.0));
    let apply = |x: &[T]| -> Vec<T> {
        a.chunks(n).map(|row| row.iter().zip(x).map(|(&a, &x)| a * x).sum()).collect()
    };
    let r = random.vector::<T>(n);
    let beta = r.iter().map(|&r| wide(r).norm_sqr()).sum::<f64>().sqrt();
    let layout = PairLayout { columns };
    let width = layout.width();
    let scalars = ScalarLayout::new();
    let taken = scalars.slot(0.0);
    let state: Vec<T> = scalars.initial(T::Real::from_f64(0.0));
    let mut state = b.upload(state).unwrap();
    let mut dense = vec![T::zero(); layout.len()];
    dense[layout.right().start] = T::from_f64(beta);
    let behind = layout.factors().start + 2 * width;
    (dense[behind + 1], dense[behind + 2]) = (T::from_f64(beta), T::from_f64(beta));
    let mut dense = b.upload(dense).unwrap();
    let mut basis = b.zeros::<S>(n * (width + 1)).unwrap();
    let (mut v, mut squares) = (b.zeros::<T>(n).unwrap(), b.zeros::<T>(2).unwrap());
    let mut products = b.zeros::<T>(layout.products()).unwrap();
    let start = b.upload(r.clone()).unwrap();
    let factors = b.download(&dense).unwrap()[layout.factors()].to_vec();
    let factors = b.upload(factors).unwrap();
    b.pair_update(&mut basis, 0, [&start, &start], &factors, &mut v, &mut squares).unwrap();
    let precision = epsilon::<S>().max(epsilon::<T>());
    for column in (0..columns).step_by(2) {
        let lone = column + 1 == columns;
        let w_1 = apply(&b.download(&v).unwrap());
        let w_2 = if lone { w_1.clone() } else { apply(&w_1) };
        let (w_1, w_2) = (b.upload(w_1).unwrap(), b.upload(w_2).unwrap());
        b.pair_products(&basis, column + 1, [&w_1, &w_2], &mut products).unwrap();
        macro_rules! scalars {
            () => {{
                let (products, squares) = (&*products, &*squares);
                PairScalars { layout, products, squares, dense: &mut *dense, state: &mut *state, taken, lone }
            }};
        }
        b.pair_factors(column, scalars!()).unwrap();
        if !lone {
            let factors = b.download(&dense).unwrap()[layout.factors()].to_vec();
            let factors = b.upload(factors).unwrap();
            b.pair_update(&mut basis, column + 1, [&w_1, &w_2], &factors, &mut v, &mut squares).unwrap();
        }
        b.pair_columns(column, scalars!()).unwrap();
        let now = b.download(&state).unwrap();
        assert_eq!(CgStatus::from_real(now[Slot::STATUS.place()].re()), CgStatus::Running, "{what}");
        let done = column + 1 + usize::from(!lone);
        assert!(now[taken.place()] == T::from_f64(done as f64), "{what}: {done}");
        let part = |range: std::ops::Range<usize>| B::part::<T>(&dense, range);
        let (mut y, mut c) = (b.zeros::<T>(columns).unwrap(), b.zeros::<T>(width).unwrap());
        b.triangular_solve(done, width, part(layout.triangle()), part(layout.right()), &mut y).unwrap();
        b.basis_combination(part(layout.combination()), done, &y, &mut c).unwrap();
        let mut x = b.zeros::<T>(n).unwrap();
        b.basis_combination(&basis, done, &c, &mut x).unwrap();
        let image = apply(&b.download(&x).unwrap());
        let left = image.iter().zip(&r).map(|(&y, &r)| (wide(r) - wide(y)).norm_sqr()).sum::<f64>().sqrt();
        let told = now[Slot::RR.place()].re().to_f64().sqrt();
        let room = 256.0 * (done as f64) * precision * beta;
        assert!((left - told).abs() <= room, "{what}: {told:e} after {done}, and is {left:e}");
        assert!(told < beta, "{what}: {told} of {beta}");
        // All vectors so far are orthogonal, within their precision.
        let stored: Vec<Wide> = b.download(&basis).unwrap().into_iter().map(wide).collect();
        let vectors = if lone { done } else { done + 1 };
        let inner = |i: usize, j: usize| {
            let v = |k: usize| &stored[k * n..(k + 1) * n];
            v(i).iter().zip(v(j)).map(|(x, y)| x.conj() * y).sum::<Wide>().norm()
        };
        for j in 0..vectors {
            assert!((inner(j, j) - 1.0).abs() < 1000.0 * precision, "{what}: length of {j}");
            (0..j).for_each(|i| assert!(inner(i, j) < 1000.0 * precision, "{what}: {i} and {j}"));
        }
    }
}

/// Conditions that end a process: a basis that is far from orthogonal, and NaN.
pub fn pair_ends<B: VectorOps>(b: &B) {
    let layout = PairLayout { columns: 4 };
    let scalars = ScalarLayout::new();
    let taken = scalars.slot(2.0);
    // Three vectors, and columns 2 and 3 to come: products with w_1, w_2, v_1 and v_2.
    let end = |between: f64, product: f64| {
        let mut products = vec![0.0; layout.products()];
        products[..6].copy_from_slice(&[1.0, 0.5, product, 0.25, 1.0, 1.0]);
        products[6..12].copy_from_slice(&[0.0, 1.0, between, 0.0, between, 1.0]);
        products[12..15].copy_from_slice(&[4.0, 1.0, 9.0]);
        let mut dense = vec![0.0; layout.len()];
        (dense[0], dense[6]) = (1.0, 1.0);
        let mut state = b.upload::<f64>(scalars.initial(0.0)).unwrap();
        let (products, mut dense) = (b.upload(products).unwrap(), b.upload(dense).unwrap());
        let squares = b.upload(vec![1.0; 2]).unwrap();
        for factors in [true, false] {
            let (dense, state) = (&mut *dense, &mut *state);
            let pair = PairScalars {
                layout,
                products: &*products,
                squares: &*squares,
                dense,
                state,
                taken,
                lone: false,
            };
            if factors { b.pair_factors(2, pair) } else { b.pair_columns(2, pair) }.unwrap();
        }
        let (state, dense) = (b.download(&state).unwrap(), b.download(&dense).unwrap());
        let triangle = &dense[layout.triangle()][10..15];
        (CgStatus::from_real(state[Slot::STATUS.place()]), state[taken.place()], triangle.to_vec())
    };
    let nothing = vec![0.0, 0.0, 1.0, 0.0, 0.0];
    assert_eq!(end(0.5, 0.25), (CgStatus::Breakdown, 2.0, nothing.clone()));
    assert_eq!(end(0.0, f64::NAN), (CgStatus::NotFinite, 2.0, nothing));
    let (status, taken, _) = end(1e-6, 0.25);
    // The right-hand side is zero here, so that the residual is.
    assert_eq!((status, taken), (CgStatus::Converged, 4.0));
}

pub fn pairs_of<B: VectorOps>(b: &B, counts: &[usize], lengths: &[usize]) {
    for &n in lengths {
        for &count in counts {
            vectors_case::<f64, f64, B>(b, count, n);
            vectors_case::<f32, f64, B>(b, count, n);
            vectors_case::<f32, f32, B>(b, count, n);
            vectors_case::<Complex<f32>, Complex<f64>, B>(b, count, n);
            vectors_case::<Complex<f64>, Complex<f64>, B>(b, count, n);
        }
    }
}

pub fn pair_cases<B: VectorOps>(b: &B) {
    pairs_of(b, &[0, 1, 2, 5, 9, 17, 30], &[0, 1, 3, 127, 1001]);
    pairs_of(b, &[3], &[10_001]);
}

pub fn pair_processes<B: VectorOps>(b: &B) {
    for columns in [1, 2, 7, 16] {
        process_case::<f64, f64, B>(b, columns);
        process_case::<f32, f64, B>(b, columns);
        process_case::<Complex<f32>, Complex<f64>, B>(b, columns);
        process_case::<Complex<f64>, Complex<f64>, B>(b, columns);
    }
}
