//! Cases of preconditioners and iterative refinement, for any backend. Each is compared with a plain reference that
//! uses the indices of the textbook.
#![allow(clippy::needless_range_loop)]

use crate::random::Random;
use num_complex::Complex;
use residua::backend::{Host, OffsetsRef};
use residua::krylov::{Cg, Outcome, Refinement, Report, SolveOptions};
use residua::precondition::{
    BlockJacobi, Chebyshev, Fsai, Identity, Jacobi, Narrowed, Preconditioner, Workspace,
};
use residua::scalar::Promote;
use residua::solver::SolverBackend;
use residua::{Csr, Error, LinearOperator, Real, Scalar};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            row_inverse_cases,
            block_cases,
            natural_block_cases,
            fsai_cases,
            complex_fsai_cases,
            chebyshev_cases,
            long_chebyshev_cases,
            refinement_cases
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// Dense rows of a Hermitian matrix, for the reference.
pub type Dense<T> = Vec<Vec<T>>;

fn csr<T: Scalar>(a: &Dense<T>) -> Csr<T> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in a {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != T::zero()) {
            columns.push(j as u32);
            values.push(v);
        }
        offsets.push(values.len());
    }
    Csr::from_parts(a.len(), a.len(), offsets, columns, values).unwrap()
}

/// A Hermitian, strictly diagonally dominant matrix with about `width` entries per row, of different sizes.
pub fn dominant<T: Scalar>(n: usize, width: usize, imaginary: f64) -> Dense<T> {
    let mut random = Random(12345);
    let half = |random: &mut Random| 0.5 * random.signed();
    let mut a = vec![vec![T::zero(); n]; n];
    for i in 0..n {
        for _ in 0..width / 2 {
            let j = random.below(n);
            if i != j {
                let v = T::from_parts(half(&mut random), imaginary * half(&mut random)).unwrap();
                (a[i][j], a[j][i]) = (v, v.conj());
            }
        }
    }
    for i in 0..n {
        let sum: f64 = a[i].iter().map(|v| v.abs().to_f64()).sum();
        a[i][i] = T::from_f64((sum + 0.1) * (1.0 + (i % 7) as f64));
    }
    a
}

pub fn poisson(k: usize) -> Csr<f64> {
    let n = k * k;
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let (x, y) = (i % k, i / k);
        for (inside, j, v) in [
            (y > 0, i.wrapping_sub(k), -1.0),
            (x > 0, i.wrapping_sub(1), -1.0),
            (true, i, 4.0),
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
    Csr::from_parts(n, n, offsets, columns, values).unwrap()
}

pub fn vector<T: Scalar>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64(((i * 7919) % 1000) as f64 / 500.0 - 0.9)).collect()
}

pub fn close<T: Scalar>(got: &[T], expected: &[T], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    let scale = expected.iter().map(|v| v.abs().to_f64()).fold(1e-300, f64::max);
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((*g - *e).abs().to_f64() <= tolerance * scale, "{i}: {g} instead of {e}");
    }
}

fn epsilon<T: Scalar>() -> f64 {
    <T::Real as num_traits::Float>::epsilon().to_f64()
}

pub fn applied<T: Scalar, B: SolverBackend>(b: &B, m: &impl Preconditioner<T, B>, r: &[T]) -> Vec<T> {
    let on_device = b.upload(r.to_vec()).unwrap();
    let mut z = b.upload(vec![T::from_f64(f64::NAN); r.len()]).unwrap();
    m.apply(b, &on_device, &mut z).unwrap();
    // The function that also returns r.z gives the same bits.
    let (mut again, mut rz) = (b.zeros(r.len()).unwrap(), b.zeros(1).unwrap());
    let mut full = b.upload(vec![T::from_f64(f64::NAN); m.work_len()]).unwrap();
    let nan = <T::Lower as Scalar>::from_f64(f64::NAN);
    let mut narrow = b.upload(vec![nan; m.narrow_work_len()]).unwrap();
    let work = Workspace { full: &mut *full, narrow: &mut *narrow };
    m.apply_dot_in(b, work, &on_device, &mut again, &mut rz).unwrap();
    let z = b.download(&z).unwrap();
    assert_eq!(b.download(&again).unwrap(), z);
    m.apply_in(b, Workspace { full: &mut full, narrow: &mut narrow }, &on_device, &mut again).unwrap();
    assert_eq!(b.download(&again).unwrap(), z);
    let expected = r.iter().zip(&z).fold(T::zero(), |sum, (r, &z)| sum + r.conj() * z);
    close(&b.download(&rz).unwrap(), &[expected], 1e3 * epsilon::<T>());
    z
}

fn solve<B: SolverBackend>(b: &B, a: &Csr<f64, B>, m: &impl Preconditioner<f64, B>) -> Report {
    let n = a.rows();
    let right = b.upload(vector::<f64>(n)).unwrap();
    let mut x = b.zeros(n).unwrap();
    let mut cg = Cg::new(b, n, SolveOptions::default()).unwrap();
    let report = cg.solve(a, m, &right, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.outcome, Outcome::Converged);
    report
}

/// Solves A x = b for a small dense A, by elimination with pivoting.
fn eliminated<T: Scalar>(a: &Dense<T>, b: &[T]) -> Vec<T> {
    let n = b.len();
    let mut rows: Vec<Vec<T>> = a.iter().zip(b).map(|(row, &b)| [&row[..], &[b]].concat()).collect();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| rows[i][k].abs().to_f64().total_cmp(&rows[j][k].abs().to_f64()));
        rows.swap(k, pivot.unwrap());
        for i in k + 1..n {
            let factor = rows[i][k] / rows[k][k];
            for j in k..=n {
                let change = factor * rows[k][j];
                rows[i][j] -= change;
            }
        }
    }
    let mut x = vec![T::zero(); n];
    for k in (0..n).rev() {
        let known = (k + 1..n).fold(rows[k][n], |sum, j| sum - rows[k][j] * x[j]);
        x[k] = known / rows[k][k];
    }
    x
}

pub fn block_case<T: Scalar, B: SolverBackend>(b: &B, a: &Dense<T>, sizes: &[usize]) {
    let device = csr(a).to_backend(b).unwrap();
    let m = BlockJacobi::with_blocks(b, &device, sizes).unwrap();
    assert_eq!(m.blocks(), sizes.len());
    let r = vector::<T>(a.len());
    let mut expected = Vec::new();
    for &size in sizes {
        let rows = expected.len()..expected.len() + size;
        let block: Dense<T> = a[rows.clone()].iter().map(|row| row[rows.clone()].to_vec()).collect();
        expected.extend(eliminated(&block, &r[rows]));
    }
    close(&applied(b, &m, &r), &expected, 1e3 * epsilon::<T>());
}

fn row_inverse_case<V: Scalar + Promote<T>, T: Scalar, B: SolverBackend>(b: &B, a: &Dense<V>) {
    let device = csr(a).to_backend(b).unwrap();
    for positive in [false, true] {
        let mut d = b.zeros::<T::Real>(a.len()).unwrap();
        b.row_inverses::<V, T>(device.parts(), positive, &mut d).unwrap();
        for (i, d) in b.download(&d).unwrap().into_iter().enumerate() {
            let norm = a[i].iter().map(|v| v.abs().to_f64().powi(2)).sum::<f64>().sqrt();
            let entry = a[i][i].re().to_f64();
            let weight = match entry {
                small if small.abs() <= 1e-3 * norm => norm,
                entry if positive => entry.abs(),
                entry => entry,
            };
            let expected = if weight == 0.0 { 1.0 } else { 1.0 / weight };
            let error = (d.to_f64() - expected).abs();
            assert!(error <= 4.0 * epsilon::<T>() * expected.abs(), "row {i}: {d} instead of {expected}");
        }
    }
}

/// Diagonals of either sign, small ones, missing ones, rows of zeros, long rows.
pub fn row_inverse_cases<B: SolverBackend>(b: &B) {
    let mut a = dominant::<f64>(75, 60, 0.0);
    (a[3][3], a[4][4], a[5][5]) = (-2.0, 0.0, 1e-9);
    a[9] = vec![0.0; 75];
    row_inverse_case::<f64, f64, B>(b, &a);
    let single: Dense<f32> = a.iter().map(|row| row.iter().map(|&v| v as f32).collect()).collect();
    row_inverse_case::<f32, f64, B>(b, &single);
    row_inverse_case::<f32, f32, B>(b, &single);
    row_inverse_case::<Complex<f64>, Complex<f64>, B>(b, &dominant(33, 12, 1.0));
    row_inverse_case::<f64, f64, B>(b, &vec![]);
}

/// Blocks of 1, of 32, of the remaining size, and of all sizes mixed.
pub fn block_cases<B: SolverBackend>(b: &B) {
    let a = dominant::<f64>(97, 60, 0.0);
    for size in [1, 2, 3, 7, 31, 32] {
        let device = csr(&a).to_backend(b).unwrap();
        let even = applied(b, &BlockJacobi::<f64, B>::new(b, &device, size).unwrap(), &vector(97));
        let mut sizes = vec![size; 97 / size];
        sizes.extend((!97_usize.is_multiple_of(size)).then_some(97 % size));
        let given = BlockJacobi::with_blocks(b, &device, &sizes).unwrap();
        assert_eq!(applied(b, &given, &vector(97)), even);
        block_case(b, &a, &sizes);
    }
    block_case(b, &a, &[1, 32, 5, 2, 2, 30, 25]);
    block_case(b, &dominant::<f32>(40, 20, 0.0), &[8; 5]);
    block_case(b, &dominant::<Complex<f64>>(40, 20, 1.0), &[32, 8]);
    block_case(b, &dominant::<Complex<f32>>(40, 20, 1.0), &[20, 20]);
    block_case::<f64, B>(b, &vec![], &[]);
    block_case(b, &vec![vec![4.0]], &[1]);

    let device = csr(&a).to_backend(b).unwrap();
    assert!(matches!(BlockJacobi::<f64, B>::new(b, &device, 33), Err(Error::InvalidArgument(_))));
    assert!(matches!(
        BlockJacobi::<f64, B>::with_blocks(b, &device, &[32, 32]),
        Err(Error::Dimension { .. })
    ));
    // Rows 4 and 5: | 1 2 | 2 1 | is indefinite, as its second pivot shows.
    let mut bad = dominant::<f64>(9, 0, 0.0);
    (bad[4][4], bad[5][5], bad[4][5], bad[5][4]) = (1.0, 1.0, 2.0, 2.0);
    let device = csr(&bad).to_backend(b).unwrap();
    assert!(matches!(
        BlockJacobi::<f64, B>::with_blocks(b, &device, &[4, 2, 3]),
        Err(Error::Block { row: 5 })
    ));
    assert!(BlockJacobi::<f64, B>::with_blocks(b, &device, &[4, 1, 4]).is_ok());
}

/// Three unknowns per point: their blocks are found, and new values are used.
pub fn natural_block_cases<B: SolverBackend>(b: &B) {
    let points = poisson(8);
    let mut a = vec![vec![0.0; 3 * 64]; 3 * 64];
    let OffsetsRef::Lower(offsets) = points.parts().offsets else { unreachable!("a small matrix") };
    for i in 0..64 {
        for k in offsets[i] as usize..offsets[i + 1] as usize {
            let (j, v) = (points.parts().indices[k] as usize, points.parts().values[k]);
            for p in 0..3 {
                for q in 0..3 {
                    a[3 * i + p][3 * j + q] = match (p == q, i == j) {
                        (true, true) => 8.0,
                        (true, false) => 0.5 * v,
                        (false, true) => 3.5,
                        (false, false) => 0.1 * v,
                    };
                }
            }
        }
    }
    let mut device = csr(&a).to_backend(b).unwrap();
    let sizes = BlockJacobi::<f64, B>::natural_blocks(b, &device, 32).unwrap();
    assert_eq!(sizes, [3; 64]);
    assert_eq!(BlockJacobi::<f64, B>::natural_blocks(b, &device, 2).unwrap(), [2, 1].repeat(64));
    // Rows of different lengths, with the same columns, empty ones, and no rows at all.
    let mut apart = dominant::<f64>(6, 0, 0.0);
    (apart[1][0], apart[2][0], apart[2][1], apart[2][2]) = (1.0, 1.0, 1.0, 0.0);
    (apart[4][4], apart[5][5]) = (0.0, 0.0);
    for (a, expected) in [(apart, vec![1, 2, 1, 2]), (vec![], vec![])] {
        let a = csr(&a).to_backend(b).unwrap();
        assert_eq!(BlockJacobi::<f64, B>::natural_blocks(b, &a, 32).unwrap(), expected);
    }
    let mut blocks = BlockJacobi::with_blocks(b, &device, &sizes).unwrap();
    let (plain, jacobi) =
        (solve(b, &device, &Identity), solve(b, &device, &Jacobi::new(b, &device).unwrap()));
    let block = solve(b, &device, &blocks);
    assert!(block.iterations < plain.iterations.min(jacobi.iterations), "{block:?} {plain:?} {jacobi:?}");

    let before = applied(b, &blocks, &vector(192));
    let doubled: Vec<f64> = b.download(&*device.values_mut()).unwrap().iter().map(|v| 2.0 * v).collect();
    b.write(&doubled, device.values_mut()).unwrap();
    blocks.update(b, &device).unwrap();
    let halved: Vec<f64> = before.iter().map(|z| 0.5 * z).collect();
    assert_eq!(applied(b, &blocks, &vector(192)), halved);
}

pub fn fsai_case<T: Scalar, B: SolverBackend>(b: &B, a: &Dense<T>) {
    let n = a.len();
    let m = Fsai::new(b, &csr(a).to_backend(b).unwrap()).unwrap();
    let factor = m.factor().to_host(b).unwrap();
    let parts = factor.parts();
    let offsets: Vec<usize> = match parts.offsets {
        OffsetsRef::Lower(o) => o.iter().map(|&o| o as usize).collect(),
        OffsetsRef::Wide(o) => o.iter().map(|&o| o as usize).collect(),
    };
    let mut g = vec![vec![T::zero(); n]; n];
    for i in 0..n {
        let columns = &parts.indices[offsets[i]..offsets[i + 1]];
        let lower: Vec<u32> = (0..=i).filter(|&j| a[i][j] != T::zero()).map(|j| j as u32).collect();
        assert_eq!(columns, &lower[lower.len().saturating_sub(32)..]);
        for (&j, &v) in columns.iter().zip(&parts.values[offsets[i]..]) {
            g[i][j as usize] = v;
        }
        // (G A)(i, j) is 0 on the row's pattern except on the diagonal, and (G A G^H)(i, i) is 1.
        let ga: Vec<T> = (0..n).map(|j| (0..n).fold(T::zero(), |sum, k| sum + g[i][k] * a[k][j])).collect();
        let tolerance = 1e3 * epsilon::<T>() * a[i][i].abs().to_f64() * g[i][i].abs().to_f64();
        for &j in columns.iter().filter(|&&j| j as usize != i) {
            assert!(ga[j as usize].abs().to_f64() < tolerance, "row {i}, column {j}: {}", ga[j as usize]);
        }
        let one = (0..n).fold(T::zero(), |sum, k| sum + ga[k] * g[i][k].conj());
        assert!((one - T::one()).abs().to_f64() < 1e3 * epsilon::<T>(), "row {i}: {one}");
    }
    let r = vector::<T>(n);
    let t: Vec<T> =
        g.iter().map(|row| row.iter().zip(&r).fold(T::zero(), |sum, (&g, &r)| sum + g * r)).collect();
    let z: Vec<T> = (0..n).map(|j| (0..n).fold(T::zero(), |sum, i| sum + g[i][j].conj() * t[i])).collect();
    close(&applied(b, &m, &r), &z, 1e3 * epsilon::<T>());
}

/// The equations that define the factor hold on its pattern; rows of more than 32 entries keep the last ones.
pub fn fsai_cases<B: SolverBackend>(b: &B) {
    fsai_case(b, &dominant::<f64>(60, 8, 0.0));
    fsai_case(b, &dominant::<f64>(80, 120, 0.0));
    fsai_case(b, &dominant::<f32>(40, 10, 0.0));
    fsai_case(b, &vec![vec![4.0_f64]]);
    fsai_case::<f64, B>(b, &vec![]);
    let a = poisson(20).to_backend(b).unwrap();
    let (jacobi, fsai) =
        (solve(b, &a, &Jacobi::new(b, &a).unwrap()), solve(b, &a, &Fsai::new(b, &a).unwrap()));
    assert!(fsai.iterations * 10 <= jacobi.iterations * 7, "{fsai:?} {jacobi:?}");
    let mut bad = dominant::<f64>(9, 0, 0.0);
    (bad[4][4], bad[5][5], bad[4][5], bad[5][4]) = (1.0, 1.0, 2.0, 2.0);
    let device = csr(&bad).to_backend(b).unwrap();
    assert!(matches!(Fsai::<f64, B>::new(b, &device), Err(Error::Block { row: 5 })));
    bad[7][7] = 0.0;
    (bad[4][5], bad[5][4]) = (0.0, 0.0);
    let device = csr(&bad).to_backend(b).unwrap();
    assert!(matches!(Fsai::<f64, B>::new(b, &device), Err(Error::Block { row: 7 })));
}

/// Complex factors, which the backend multiplies with conjugated values.
pub fn complex_fsai_cases<B: SolverBackend>(b: &B) {
    fsai_case(b, &dominant::<Complex<f64>>(50, 8, 1.0));
}

/// The result of the textbook's iteration from zero, with residuals computed anew; `d` is the inverse of the diagonal.
fn chebyshev_of(a: &Csr<f64>, d: &[f64], r: &[f64], (low, high): (f64, f64), steps: usize) -> Vec<f64> {
    let n = r.len();
    let (theta, delta) = (0.5 * (high + low), 0.5 * (high - low));
    let mut rho = delta / theta;
    let mut direction: Vec<f64> = (0..n).map(|i| d[i] * r[i] / theta).collect();
    let mut z = direction.clone();
    for _ in 1..steps {
        let mut az = vec![0.0; n];
        a.product(&Host, 1.0, &z, 0.0, &mut az).unwrap();
        let next = 1.0 / (2.0 * theta / delta - rho);
        for i in 0..n {
            direction[i] = next * rho * direction[i] + 2.0 * next / delta * (r[i] - az[i]) * d[i];
            z[i] += direction[i];
        }
        rho = next;
    }
    z
}

/// The bounds include the largest eigenvalue, and the polynomial is that of Chebyshev's iteration, in every format,
/// with a constant diagonal and with another, and in half the precision.
pub fn chebyshev_cases<B: SolverBackend>(b: &B) {
    for uneven in [false, true] {
        let mut a = poisson(20);
        let places: Vec<usize> =
            (0..).zip(a.iter()).filter(|(_, (i, j, _))| i == j).map(|(k, _)| k).collect();
        if uneven {
            places.iter().enumerate().for_each(|(i, &k)| a.values_mut()[k] += (i % 3) as f64);
        }
        let d: Vec<f64> = places.iter().map(|&k| 1.0 / a.values_mut()[k]).collect();
        let device = Arc::new(a.to_backend(b).unwrap());
        let low = Arc::new(device.to_rounded(b).unwrap());
        let exact = 1.0 + (std::f64::consts::PI / 21.0).cos();
        let diagonal = Arc::new(Jacobi::new(b, &device).unwrap());
        let low_diagonal = Arc::new(Jacobi::new(b, &low).unwrap());
        let jacobi = solve(b, &device, &diagonal);
        let r = vector::<f64>(400);
        for steps in [1, 2, 3, 5, 8] {
            let m = Chebyshev::new(b, device.clone(), diagonal.clone(), steps).unwrap();
            let bounds = m.bounds();
            assert!(uneven || (bounds.1 > exact && bounds.1 < 1.2 * exact), "{bounds:?} {exact}");
            let z = chebyshev_of(&a, &d, &r, bounds, steps);
            close(&applied(b, &m, &r), &z, 1e-12);
            let report = solve(b, &device, &m);
            // If Jacobi leaves little to do, several products per iteration do not pay.
            let fewer = report.iterations <= jacobi.iterations + 1;
            let products = uneven || report.iterations * steps <= 2 * jacobi.iterations;
            assert!(fewer && products, "{steps}: {report:?} {jacobi:?}");

            let half = Chebyshev::with_bounds(b, low.clone(), low_diagonal.clone(), steps, bounds).unwrap();
            let half = Narrowed::new::<f64, B>(half).unwrap();
            close(&applied(b, &half, &r), &z, 1e-5);
            let narrowed = solve(b, &device, &half);
            assert!(narrowed.iterations <= report.iterations + 1, "{steps}: {narrowed:?} {report:?}");
            assert!(narrowed.bytes_per_iteration <= report.bytes_per_iteration || steps < 3);
        }
        // The formats whose products include the step, and those for which it is separate.
        let bounds = (0.1, 2.2);
        let z = chebyshev_of(&a, &d, &r, bounds, 4);
        for format in residua::matrix::formats::<f64, B, f64>() {
            let Ok(stored) = format.build(b, &device) else { continue };
            let stored: Arc<dyn LinearOperator<f64, B>> = Arc::new(stored);
            let m = Chebyshev::with_bounds(b, stored.clone(), diagonal.clone(), 4, bounds).unwrap();
            close(&applied(b, &m, &r), &z, 1e-12);
        }
    }
    // The matrix is a stencil with a constant diagonal; the preconditioner has the diagonal of another matrix.
    let a = poisson(20);
    let d: Vec<f64> = (0..400).map(|i| 1.0 / (4.0 + (i % 3) as f64)).collect();
    let mut other = vec![vec![0.0; 400]; 400];
    (0..400).for_each(|i| other[i][i] = d[i].recip());
    let device = Arc::new(a.to_backend(b).unwrap());
    let diagonal = Arc::new(Jacobi::new(b, &csr(&other).to_backend(b).unwrap()).unwrap());
    let stored = residua::matrix::build::<f64, B, f64>(b, "compressed", &device).unwrap();
    let stored: Arc<dyn LinearOperator<f64, B>> = Arc::new(stored);
    let m = Chebyshev::with_bounds(b, stored.clone(), diagonal.clone(), 4, (0.1, 2.2)).unwrap();
    let r = vector::<f64>(400);
    close(&applied(b, &m, &r), &chebyshev_of(&a, &d, &r, (0.1, 2.2), 4), 1e-12);

    // An arrow has few eigenvalues: after that many steps the estimate continues with underflowing numbers.
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut arrow = vec![vec![0.0; 13]; 13];
        for i in 1..13 {
            let beside = random.signed().abs() as f32;
            (arrow[0][i], arrow[i][0], arrow[i][i]) = (-beside, -beside, 1.01 * beside + 0.01);
            arrow[0][0] += 1.01 * beside + 0.001;
        }
        let low = Arc::new(csr(&arrow).to_backend(b).unwrap());
        let low_diagonal = Arc::new(Jacobi::new(b, &low).unwrap());
        let bounds = Chebyshev::<f32, B>::new(b, low.clone(), low_diagonal.clone(), 8).unwrap().bounds();
        assert!(bounds.1 > 1.9 && bounds.1 < 2.3, "{bounds:?}, {seed}");
    }

    let diagonal = Arc::new(Jacobi::new(b, &device).unwrap());
    assert!(matches!(Chebyshev::new(b, device.clone(), diagonal.clone(), 0), Err(Error::InvalidArgument(_))));
    for bounds in [(0.0, 1.0), (2.0, 1.0), (1.0, f64::INFINITY), (f64::NAN, 1.0)] {
        let refused = Chebyshev::with_bounds(b, device.clone(), diagonal.clone(), 3, bounds);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{bounds:?}");
    }
    assert!(matches!(Narrowed::new::<f64, B>(Identity), Err(Error::InvalidArgument(_))));
    let mut indefinite = dominant::<f64>(9, 0, 0.0);
    (indefinite[4][4], indefinite[5][5], indefinite[4][5], indefinite[5][4]) = (1.0, 1.0, 2.0, 2.0);
    let device = Arc::new(csr(&indefinite).to_backend(b).unwrap());
    let diagonal = Arc::new(Jacobi::<f64, B>::new(b, &device).unwrap());
    assert!(matches!(Chebyshev::new(b, device.clone(), diagonal.clone(), 3), Err(Error::InvalidMatrix(_))));
}

/// A long vector has the same bounds as a short one of the same kind: the starting vector of the estimate is periodic.
pub fn long_chebyshev_cases<B: SolverBackend>(b: &B) {
    let a = Arc::new(poisson(280).to_backend(b).unwrap());
    let diagonal = Arc::new(Jacobi::new(b, &a).unwrap());
    let m = Chebyshev::new(b, a.clone(), diagonal.clone(), 6).unwrap();
    assert!(m.bounds().1 > 1.99 && m.bounds().1 < 2.3, "{m:?}");
}

/// Refinement meets tolerances that half the precision alone can't, and says if it does not.
pub fn refinement_cases<B: SolverBackend>(b: &B) {
    let a = poisson(30);
    let n = a.rows();
    let exact = vector::<f64>(n);
    let mut right = vec![0.0; n];
    a.product(&Host, 1.0, &exact, 0.0, &mut right).unwrap();
    let device = Arc::new(a.to_backend(b).unwrap());
    let low = Arc::new(device.to_rounded(b).unwrap());
    let m = Jacobi::new(b, &low).unwrap();
    let mut solver = Refinement::new(b, n, SolveOptions::default().tolerance(1e-12)).unwrap();
    for scale in [1.0, 1e-150, 1e150] {
        let scaled: Vec<f64> = right.iter().map(|v| v * scale).collect();
        let on_device = b.upload(scaled.clone()).unwrap();
        let mut x = b.zeros(n).unwrap();
        let mut seen = 0;
        let go_on = |iteration, _| {
            assert_eq!(iteration, seen);
            seen += 1;
            ControlFlow::Continue(())
        };
        let report = solver.solve(&device, &low, &m, &on_device, &mut x, go_on).unwrap();
        assert_eq!(report.outcome, Outcome::Converged, "{report:?}");
        assert_eq!(solver.history().len(), report.iterations + 1);
        let x: Vec<f64> = b.download(&x).unwrap().iter().map(|v| v / scale).collect();
        close(&x, &exact, 1e-10);
    }
    let on_device = b.upload(right.clone()).unwrap();
    let stop = |iteration, _| if iteration == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let report = solver.solve(&device, &low, &m, &on_device, &mut b.zeros(n).unwrap(), stop).unwrap();
    assert_eq!((report.outcome, report.iterations >= 7), (Outcome::Interrupted, true));
    let go_on = |_, _| ControlFlow::Continue(());
    let mut few = Refinement::new(b, n, SolveOptions::default().max_iterations(11)).unwrap();
    let report = few.solve(&device, &low, &m, &on_device, &mut b.zeros(n).unwrap(), go_on).unwrap();
    assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, 11));
    let zero = b.zeros(n).unwrap();
    let mut x = b.upload(vec![3.0; n]).unwrap();
    assert_eq!(solver.solve(&device, &low, &m, &zero, &mut x, go_on).unwrap().outcome, Outcome::Converged);
    assert_eq!(b.download(&x).unwrap(), vec![0.0; n]);
    let bad = b.upload(vec![f64::NAN; n]).unwrap();
    assert_eq!(solver.solve(&device, &low, &m, &bad, &mut x, go_on).unwrap().outcome, Outcome::NotFinite);

    // The Hilbert matrix with 12 rows has a condition number of 1e16: in single precision it is not positive definite.
    let hilbert: Dense<f64> = (0..12).map(|i| (0..12).map(|j| 1.0 / (i + j + 1) as f64).collect()).collect();
    let device = csr(&hilbert).to_backend(b).unwrap();
    let low = Arc::new(device.to_rounded(b).unwrap());
    let right = b.upload(vec![1.0; 12]).unwrap();
    let mut x = b.zeros(12).unwrap();
    let mut solver = Refinement::new(b, 12, SolveOptions::default().tolerance(1e-14)).unwrap();
    let report = solver.solve(&device, &low, &Identity, &right, &mut x, go_on).unwrap();
    assert_eq!(report.outcome, Outcome::Stagnated, "{report:?}");
    assert!(report.relative_residual <= 1.0);
}
