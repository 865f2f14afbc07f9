//! Cases of incomplete factorisations and triangular solves, for any backend, compared with the textbook's loops over
//! dense rows.
#![allow(clippy::needless_range_loop)]

use crate::random::Random;
use num_complex::Complex;
use num_traits::Float;
use residua::backend::{Products, Side, TriangularSteps};
use residua::krylov::{Cg, Gmres, Outcome, SolveOptions};
use residua::precondition::{Identity, Ilu, Ilut, IlutOptions, Jacobi, Narrowed, Preconditioner};
use residua::solver::SolverBackend;
use residua::{Csr, Error, Real, Scalar};
use std::ops::ControlFlow;

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            level_cases,
            factor_cases,
            complex_factor_cases,
            failing_pivot_cases,
            exact_factor_cases,
            chain_cases,
            iteration_cases
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// Dense rows; entries that are not stored are `None`.
type Dense<T> = Vec<Vec<Option<T>>>;

fn csr<T: Scalar>(a: &Dense<T>) -> Csr<T> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in a {
        for (j, v) in row.iter().enumerate() {
            if let Some(v) = v {
                columns.push(j as u32);
                values.push(*v);
            }
        }
        offsets.push(values.len());
    }
    Csr::from_parts(a.len(), a.len(), offsets, columns, values).unwrap()
}

/// A matrix with about `width` entries per row and a diagonal that is larger than their sum.
fn dominant<T: Scalar>(n: usize, width: usize, seed: u64) -> Dense<T> {
    let mut random = Random(seed);
    let mut a: Dense<T> = vec![vec![None; n]; n];
    for i in 0..n {
        for _ in 0..random.below(2 * width + 1) {
            a[i][random.below(n)] = Some(random.scalar());
        }
        let sum: f64 = a[i].iter().flatten().map(|v| v.abs().to_f64()).sum();
        a[i][i] = Some(T::from_f64((sum + 0.5) * if i % 3 == 0 { -1.0 } else { 1.0 }));
    }
    a
}

/// The first and the last row and column are full.
fn arrow(n: usize) -> Dense<f64> {
    let mut a = dominant::<f64>(n, 2, 5);
    for i in 1..n {
        (a[0][i], a[i][0]) = (Some(0.5), Some(0.25));
        (a[n - 1][i], a[i][n - 1]) = (Some(0.125), Some(0.0625));
    }
    for i in 0..n {
        a[i][i] = Some(n as f64);
    }
    a
}

/// ILU(0) as in the textbook: L below the diagonal, U on and above it.
fn incomplete<T: Scalar>(a: &Dense<T>) -> Dense<T> {
    let (n, mut f) = (a.len(), a.clone());
    for i in 0..n {
        for k in 0..i {
            let Some(value) = f[i][k] else { continue };
            let factor = value / f[k][k].unwrap();
            f[i][k] = Some(factor);
            for j in k + 1..n {
                if let (Some(to), Some(from)) = (f[i][j], f[k][j]) {
                    f[i][j] = Some(to - factor * from);
                }
            }
        }
    }
    f
}

/// Solves L U z = r.
fn substituted<T: Scalar>(f: &Dense<T>, r: &[T]) -> Vec<T> {
    let n = r.len();
    let mut z = r.to_vec();
    for i in 0..n {
        z[i] = (0..i).fold(z[i], |sum, j| f[i][j].map_or(sum, |l| sum - l * z[j]));
    }
    for i in (0..n).rev() {
        let sum = (i + 1..n).fold(z[i], |sum, j| f[i][j].map_or(sum, |u| sum - u * z[j]));
        z[i] = sum / f[i][i].unwrap();
    }
    z
}

fn applied<T: Scalar, B: TriangularSteps>(b: &B, m: &dyn Preconditioner<T, B>, r: &[T]) -> Vec<T> {
    let r = b.upload(r.to_vec()).unwrap();
    let mut z = b.upload(vec![T::from_f64(f64::NAN); B::len(&r)]).unwrap();
    m.apply(b, &r, &mut z).unwrap();
    let first = b.download(&z).unwrap();
    for _ in 0..3 {
        m.apply(b, &r, &mut z).unwrap();
        assert_eq!(b.download(&z).unwrap(), first, "the same bits each time");
    }
    first
}

fn close<T: Scalar>(got: &[T], expected: &[T], tolerance: f64) {
    let tolerance = tolerance * <T::Real as Float>::epsilon().to_f64();
    let scale = expected.iter().map(|v| v.abs().to_f64()).fold(1e-300, f64::max);
    assert_eq!(got.len(), expected.len());
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((*g - *e).abs().to_f64() <= tolerance * scale, "{i}: {g} instead of {e}");
    }
}

/// The level of a row is the length of the longest chain of dependencies that leads to it.
pub fn level_cases<B: TriangularSteps>(b: &B) {
    for (n, width) in [(0, 0), (1, 0), (1, 3), (7, 0), (33, 1), (200, 2), (150, 40), (1000, 3)] {
        let a = csr(&dominant::<f64>(n, width, n as u64 + 3)).to_backend(b).unwrap();
        let host = a.to_host(b).unwrap();
        let (parts, starts) = (host.parts(), host.parts().offsets.download(&residua::Host).unwrap());
        for side in [Side::Lower, Side::Upper] {
            let mut expected = vec![0u32; n];
            let rows: Vec<usize> =
                if side == Side::Lower { (0..n).collect() } else { (0..n).rev().collect() };
            for i in rows {
                for &j in &parts.indices[starts[i]..starts[i + 1]] {
                    let needed = if side == Side::Lower { (j as usize) < i } else { j as usize > i };
                    if needed {
                        expected[i] = expected[i].max(expected[j as usize] + 1);
                    }
                }
            }
            let mut levels = b.zeros::<u32>(n + 1).unwrap();
            b.row_levels(a.parts().pattern(), side, &mut levels).unwrap();
            assert_eq!(b.download(&levels).unwrap()[..n], expected, "{side:?} of {n} rows");
        }
    }
}

fn factor_case<T: Scalar, B: TriangularSteps>(b: &B, a: &Dense<T>) {
    let mut device = csr(a).to_backend(b).unwrap();
    let mut m = Ilu::new(b, &device).unwrap();
    assert_eq!(m.repairs(), (1.0, 0));
    let r = Random(9).vector::<T>(a.len());
    let expected = substituted(&incomplete(a), &r);
    let got = applied(b, &m, &r);
    close(&got, &expected, 1e3);
    // New values: those of 2 A give half of z, to the bit.
    let doubled: Vec<T> = b.download(&*device.values_mut()).unwrap().iter().map(|&v| v + v).collect();
    b.write(&doubled, device.values_mut()).unwrap();
    m.update(b, &device).unwrap();
    let half: Vec<T> = got.iter().map(|&z| z * T::from_f64(0.5)).collect();
    assert_eq!(applied(b, &m, &r), half);
}

/// Ragged rows, one row, none, full rows and columns, no entries off the diagonal.
pub fn factor_cases<B: TriangularSteps>(b: &B) {
    for (n, width) in [(0, 0), (1, 0), (5, 0), (31, 2), (32, 3), (33, 5), (257, 4), (300, 30), (90, 200)] {
        factor_case(b, &dominant::<f64>(n, width, n as u64));
    }
    factor_case(b, &dominant::<f32>(120, 6, 1));
    factor_case(b, &arrow(200));
    factor_case(b, &arrow(2));
}

/// The incomplete factorisations of complex matrices.
pub fn complex_factor_cases<B: TriangularSteps>(b: &B) {
    factor_case(b, &dominant::<Complex<f64>>(130, 6, 2));
    factor_case(b, &dominant::<Complex<f32>>(70, 9, 4));
}

/// Zero pivots, missing ones, indefinite matrices: M stays finite, and the report says what was done.
pub fn failing_pivot_cases<B: TriangularSteps>(b: &B) {
    let mut a = dominant::<f64>(60, 3, 8);
    (a[7][7], a[20][20], a[33][33]) = (None, Some(0.0), Some(f64::MIN_POSITIVE));
    for j in 0..60 {
        (a[41][j], a[j][41]) = (None, None);
    }
    let device = csr(&a).to_backend(b).unwrap();
    let r = Random(3).vector::<f64>(60);
    let m = Ilu::new(b, &device).unwrap();
    assert!((1..=4).contains(&m.repairs().1), "{:?}", m.repairs());
    assert!(applied(b, &m, &r).iter().all(|z| z.is_finite()));
    let m = Ilu::positive(b, &device).unwrap();
    assert!(m.repairs().1 >= 20, "negative diagonal entries: {:?}", m.repairs());
    assert!(applied(b, &m, &r).iter().all(|z| z.is_finite()));
    // A positive definite matrix whose incomplete factorisation breaks down (Kershaw 1978), which a shift prevents.
    let kershaw =
        [[3.0, -2.0, 0.0, 2.0], [-2.0, 3.0, -2.0, 0.0], [0.0, -2.0, 3.0, -2.0], [2.0, 0.0, -2.0, 3.0]];
    let a: Dense<f64> =
        kershaw.iter().map(|row| row.iter().map(|&v| (v != 0.0).then_some(v)).collect()).collect();
    let m = Ilu::positive(b, &csr(&a).to_backend(b).unwrap()).unwrap();
    assert!(m.repairs().0 > 1.0 && m.repairs().1 == 0, "{:?}", m.repairs());
}

/// If nothing is dropped, ILUT is exact, also with zeros on the diagonal, rows in any order, and scales over 12
/// decades.
pub fn exact_factor_cases<B: TriangularSteps + Products>(b: &B) {
    for seed in 1..6 {
        let n = 40 + 7 * seed as usize;
        let (a, mut random) = (dominant::<f64>(n, 4, seed), Random(seed + 70));
        let scales = random.vec(2 * n, |random| 10f64.powf(6.0 * random.signed()));
        let mut order: Vec<usize> = (0..n).collect();
        (0..n).for_each(|i| order.swap(i, i + random.below(n - i)));
        let a: Dense<f64> = (0..n)
            .map(|i| (0..n).map(|j| a[order[i]][j].map(|v| v * scales[i] * scales[n + j])).collect())
            .collect();
        let device = csr(&a).to_backend(b).unwrap();
        let m = Ilut::new(b, &device, &IlutOptions::default().drop(0.0).fill(1e3)).unwrap();
        assert_eq!(m.replaced(), 0);
        let mut x = random.vector::<f64>(n);
        x.iter_mut().zip(&scales[n..]).for_each(|(x, scale)| *x /= scale);
        let product: Vec<f64> =
            a.iter().map(|row| row.iter().zip(&x).map(|(a, x)| a.map_or(0.0, |a| a * x)).sum()).collect();
        let got = applied(b, &m, &product);
        for ((got, x), scale) in got.iter().zip(&x).zip(&scales[n..]) {
            assert!((got - x).abs() * scale < 1e-10, "{got} instead of {x}");
        }
    }
    let many = csr(&dominant::<f64>(600, 3, 3)).to_backend(b).unwrap();
    let bounded = |work: f64| Ilut::new(b, &many, &IlutOptions::default().work(work));
    assert!(matches!(bounded(1e-3), Err(Error::Unsupported(why)) if why.contains("multiplications")));
    assert!(bounded(1e3).is_ok());
    let mut singular = dominant::<f64>(9, 2, 3);
    singular[4] = vec![None; 9];
    let device = csr(&singular).to_backend(b).unwrap();
    let made = Ilut::new(b, &device, &IlutOptions::default());
    assert!(matches!(made, Err(Error::Unsupported(why)) if why.contains("structurally singular")));
}

/// A chain of dependencies as long as the matrix, so that each row waits for the one before it.
pub fn chain_cases<B: TriangularSteps>(b: &B) {
    let n = 3000_usize;
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for (inside, j, v) in [(i > 0, i.wrapping_sub(1), -1.0), (true, i, 2.0), (i + 1 < n, i + 1, -1.0)] {
            if inside {
                columns.push(j as u32);
                values.push(v);
            }
        }
        offsets.push(values.len());
    }
    let a = Csr::from_parts(n, n, offsets, columns, values).unwrap().to_backend(b).unwrap();
    let m = Ilu::positive(b, &a).unwrap();
    assert_eq!(m.depth(), (n, n));
    // Factors of a tridiagonal matrix have no fill: M = A, and A x with x = i (n + 1 - i) / 2 is 1 throughout.
    let expected: Vec<f64> = (1..=n).map(|i| (i * (n + 1 - i)) as f64 / 2.0).collect();
    close(&applied(b, &m, &vec![1.0; n]), &expected, 1e6);
}

/// Conjugate gradients and GMRES take fewer iterations than with the diagonal, in half the precision, too.
pub fn iteration_cases<B: SolverBackend>(b: &B) {
    let k = 24_usize;
    let grid = |wind: f64| {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..k * k {
            let (x, y) = (i % k, i / k);
            for (inside, j, v) in [
                (y > 0, i.wrapping_sub(k), -1.0 - wind),
                (x > 0, i.wrapping_sub(1), -1.0 - wind),
                (true, i, 4.0 + 2.0 * wind),
                (x + 1 < k, i + 1, -1.0),
                (y + 1 < k, i + k, -1.0),
            ] {
                if inside {
                    columns.push(j as u32);
                    values.push(v);
                }
            }
            offsets.push(values.len());
        }
        Csr::from_parts(k * k, k * k, offsets, columns, values).unwrap().to_backend(b).unwrap()
    };
    let right = b.upload(Random(4).vector::<f64>(k * k)).unwrap();
    let ignore = |_, _| ControlFlow::Continue(());
    let symmetric = grid(0.0);
    let with = |m: &dyn Preconditioner<f64, B>| {
        let mut x = b.zeros(k * k).unwrap();
        let mut cg = Cg::new(b, k * k, SolveOptions::default()).unwrap();
        let report = cg.solve(&symmetric, m, &right, &mut x, ignore).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        report.iterations
    };
    let (plain, full) = (with(&Identity), with(&Ilu::positive(b, &symmetric).unwrap()));
    assert!(2 * full < plain, "{full} instead of {plain}");
    let single = Ilu::positive(b, &symmetric.to_rounded(b).unwrap()).unwrap();
    let half = with(&Narrowed::new::<f64, B>(single).unwrap());
    assert!(half <= full + 2, "{half} instead of {full}");

    let windy = grid(3.0);
    let with = |m: &dyn Preconditioner<f64, B>| {
        let mut x = b.zeros(k * k).unwrap();
        let mut gmres = Gmres::new(b, k * k, 30, SolveOptions::default()).unwrap();
        let report = gmres.solve(&windy, m, &right, &mut x, ignore).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        report.iterations
    };
    let diagonal = with(&Jacobi::new(b, &windy).unwrap());
    let zero = with(&Ilu::new(b, &windy).unwrap());
    let fill = with(&Ilut::new(b, &windy, &IlutOptions::default()).unwrap());
    assert!(2 * zero < diagonal && 2 * fill < zero, "{fill}, {zero}, {diagonal}");
}
