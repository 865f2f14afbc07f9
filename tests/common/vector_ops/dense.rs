//! The small dense steps of a Hessenberg matrix.

use super::{Wide, close, epsilon, same, sum, wide};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::{CgStatus, Hessenberg, ScalarLayout, Slot, VectorOps};
use residua::scalar::{Real, Scalar};

/// The Hessenberg matrix of an Arnoldi process, column by column: entries down to the subdiagonal.
fn hessenberg_columns<T: Scalar>(random: &mut Random, m: usize) -> Vec<Vec<T>> {
    (0..m)
        .map(|j| {
            let mut column = random.vector::<T>(j + 2);
            column[j + 1] = T::from_f64(0.5 + random.signed().abs());
            column
        })
        .collect()
}

/// The minimum of |b - H y|, by Gram-Schmidt with reorthogonalisation.
fn least_residual<T: Scalar>(columns: &[Vec<T>], beta: f64) -> f64 {
    let rows = columns.len() + 1;
    let mut basis: Vec<Vec<Wide>> = Vec::new();
    let dot = |x: &[Wide], y: &[Wide]| x.iter().zip(y).map(|(x, y)| x.conj() * y).sum::<Wide>();
    let clear = |x: &mut Vec<Wide>, basis: &[Vec<Wide>]| {
        for q in basis.iter().chain(basis) {
            let along = dot(q, x);
            x.iter_mut().zip(q).for_each(|(x, q)| *x -= along * q);
        }
    };
    for column in columns {
        let mut x: Vec<Wide> = column.iter().map(|&v| wide(v)).collect();
        x.resize(rows, Wide::default());
        clear(&mut x, &basis);
        let norm = dot(&x, &x).re.sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
        basis.push(x);
    }
    let mut right = vec![Wide::default(); rows];
    right[0] = beta.into();
    clear(&mut right, &basis);
    dot(&right, &right).re.sqrt()
}

/// The buffers of a factorisation of at most m columns.
struct Factors<T: Scalar, B: VectorOps> {
    m: usize,
    first: B::Vec<T>,
    second: B::Vec<T>,
    r: B::Vec<T>,
    rotations: B::Vec<T>,
    g: B::Vec<T>,
    state: B::Vec<T>,
    norm: Slot,
}

impl<T: Scalar, B: VectorOps> Factors<T, B> {
    fn new(b: &B, m: usize, beta: f64, threshold: f64) -> Self {
        let layout = ScalarLayout::new();
        let norm = layout.slot(0.0);
        let zeros = |n| b.zeros::<T>(n).unwrap();
        let mut g = vec![T::zero(); m + 1];
        g[0] = T::from_f64(beta);
        Factors {
            m,
            first: zeros(m + 1),
            second: zeros(m + 1),
            r: zeros(m * (m + 1)),
            rotations: zeros(2 * m),
            g: b.upload(g).unwrap(),
            state: b.upload(layout.initial(T::Real::from_f64(threshold))).unwrap(),
            norm,
        }
    }

    /// Adds a column, whose entries are passed as the sums of two passes, and returns the state.
    fn step(&mut self, b: &B, j: usize, column: &[T]) -> Vec<T> {
        let part = |share: f64| {
            let mut all = vec![T::zero(); self.m + 1];
            all.iter_mut().zip(&column[..=j]).for_each(|(to, &v)| *to = v * T::from_f64(share));
            all
        };
        b.write(&part(0.75), &mut self.first).unwrap();
        b.write(&part(0.25), &mut self.second).unwrap();
        let mut state = b.download(&self.state).unwrap();
        state[self.norm.place()] = T::from_real(column[j + 1].abs2());
        b.write(&state, &mut self.state).unwrap();
        let hessenberg = Hessenberg {
            columns: self.m,
            passes: [&*self.first, &*self.second],
            r: &mut *self.r,
            rotations: &mut *self.rotations,
            g: &mut *self.g,
            state: &mut *self.state,
            norm: self.norm,
        };
        b.hessenberg_step(j, hessenberg).unwrap();
        b.download(&self.state).unwrap()
    }
}

fn hessenberg_case<T: Scalar, B: VectorOps>(b: &B, m: usize, checked: &[usize]) {
    let mut random = Random(m as u64);
    let (columns, beta) = (hessenberg_columns::<T>(&mut random, m), 3.0);
    let mut factors = Factors::<T, B>::new(b, m, beta, -1.0);
    for j in 0..m {
        let state = factors.step(b, j, &columns[j]);
        let what = format!("{} column {j} of {m}", T::NAME);
        assert!(
            state[Slot::STATUS.place()] == T::zero() && state[Slot::ENDED.place()] == T::zero(),
            "{what}"
        );
        let inverse = state[factors.norm.place()].re().to_f64() * columns[j][j + 1].re().to_f64();
        assert!((inverse - 1.0).abs() < 8.0 * epsilon::<T>(), "{what}: {inverse}");
        if !checked.contains(&j) {
            continue;
        }
        let tolerance = 64.0 * (j + 2) as f64 * epsilon::<T>();
        let got = state[Slot::RR.place()].re().to_f64().sqrt();
        let least = least_residual(&columns[..=j], beta);
        assert!((got - least).abs() <= tolerance * beta, "{what}: {got} instead of {least}");
        // The solution of the triangular system has that residual.
        let mut y = b.zeros::<T>(m).unwrap();
        b.triangular_solve(j + 1, m + 1, &factors.r, &factors.g, &mut y).unwrap();
        let y: Vec<Wide> = b.download(&y).unwrap()[..=j].iter().map(|&y| wide(y)).collect();
        let mut residual = vec![Wide::default(); j + 2];
        residual[0] = beta.into();
        for (column, y) in columns[..=j].iter().zip(&y) {
            residual.iter_mut().zip(column).for_each(|(r, &h)| *r -= wide(h) * y);
        }
        let norm = |x: &[Wide]| x.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        let size: f64 = columns[..=j].iter().flatten().map(|&h| wide(h).norm_sqr()).sum::<f64>().sqrt();
        let room = tolerance * (beta + size * norm(&y));
        assert!((norm(&residual) - least).abs() <= room, "{what}: {} instead of {least}", norm(&residual));
    }
}

pub fn hessenberg_of<B: VectorOps>(b: &B, m: usize, checked: &[usize]) {
    hessenberg_case::<f32, B>(b, m, checked);
    hessenberg_case::<f64, B>(b, m, checked);
    hessenberg_case::<Complex<f32>, B>(b, m, checked);
    hessenberg_case::<Complex<f64>, B>(b, m, checked);
}

pub fn hessenberg_cases<B: VectorOps>(b: &B) {
    hessenberg_of(b, 1, &[0]);
    hessenberg_of(b, 9, &[0, 1, 2, 5, 8]);
    // More rotations than a device has in shared memory at a time.
    hessenberg_of(b, 140, &[31, 33, 127, 128, 129, 139]);
}

pub fn hessenberg_ends<B: VectorOps>(b: &B) {
    let column = |x: f64, y: f64, below: f64| [Complex::new(x, 0.0), Complex::new(0.0, y), below.into()];
    let told = |state: &[Wide]| {
        let [status, ended] =
            [Slot::STATUS, Slot::ENDED].map(|slot| CgStatus::from_real(state[slot.place()].re));
        (status, ended)
    };
    let start = || {
        let mut factors = Factors::<Wide, B>::new(b, 3, 2.0, 1e-20);
        factors.step(b, 0, &column(2.0, 0.0, 1.0)[..2].iter().map(|x| x + 1.0).collect::<Vec<_>>());
        factors
    };
    // The Krylov space is invariant: the residual is zero, and no vector follows.
    let mut factors = start();
    let state = factors.step(b, 1, &column(1.0, 3.0, 0.0));
    assert_eq!(told(&state), (CgStatus::Converged, CgStatus::Running));
    assert_eq!((state[Slot::RR.place()].re, state[factors.norm.place()].re), (0.0, 0.0));
    // After that nothing changes except the flag.
    let all = |f: &Factors<Wide, B>| [&f.r, &f.rotations, &f.g].map(|x| b.download(x).unwrap());
    let before = all(&factors);
    let after = factors.step(b, 2, &[Complex::new(1.0, 0.0); 4]);
    assert_eq!(told(&after), (CgStatus::Converged, CgStatus::Converged));
    assert_eq!(after[factors.norm.place()].re, 1.0);
    assert!(all(&factors) == before);
    // A column that depends on those before it.
    let mut factors = start();
    let state = factors.step(b, 1, &column(0.0, 0.0, 0.0));
    assert_eq!(told(&state), (CgStatus::Breakdown, CgStatus::Breakdown));
    let mut factors = start();
    let state = factors.step(b, 1, &column(f64::NAN, 0.0, 1.0));
    assert_eq!(told(&state), (CgStatus::NotFinite, CgStatus::NotFinite));
}

fn triangular_case<T: Scalar, B: VectorOps>(b: &B, count: usize) {
    let (stride, mut random) = (count + 3, Random(count as u64));
    // Entries below the diagonal must not be read.
    let mut r = vec![T::from_f64(f64::NAN); stride * count];
    for j in 0..count {
        (0..j).for_each(|i| r[j * stride + i] = random.scalar::<T>() * T::from_f64(1.0 / count as f64));
        r[j * stride + j] = random.scalar::<T>() + T::from_f64(2.0);
    }
    let g = random.vector::<T>(count);
    let mut y = b.upload(vec![T::from_f64(-7.0); count + 3]).unwrap();
    let (r_there, g_there) = (b.upload(r.clone()).unwrap(), b.upload(g.clone()).unwrap());
    b.triangular_solve(count, stride, &r_there, &g_there, &mut y).unwrap();
    let y = b.download(&y).unwrap();
    assert!(same(&y[count..], &[T::from_f64(-7.0); 3]));
    for i in 0..count {
        let (product, size) = sum((i..count).map(|j| wide(r[j * stride + i]) * wide(y[j])));
        close(g[i], product, size + wide(g[i]).norm(), &format!("{} row {i} of {count}", T::NAME));
    }
    if count > 0 {
        let mut short = b.zeros::<T>(count - 1).unwrap();
        assert!(b.triangular_solve(count, stride, &r_there, &g_there, &mut short).is_err());
        assert!(b.triangular_solve(count, 2 * stride + 9, &r_there, &g_there, &mut short).is_err());
    }
}

pub fn triangular_cases<B: VectorOps>(b: &B) {
    for count in [0, 1, 2, 7, 8, 9, 31, 256, 257, 600] {
        triangular_case::<f32, B>(b, count);
        triangular_case::<f64, B>(b, count);
        triangular_case::<Complex<f32>, B>(b, count);
        triangular_case::<Complex<f64>, B>(b, count);
    }
}
