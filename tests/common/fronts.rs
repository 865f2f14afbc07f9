//! Factorisations in dense fronts of a device, compared with residuals that are computed here.

use crate::random::Random;
use nalgebra::DMatrix;
use num_complex::Complex;
use residua::direct::{DeviceOptions, DeviceReport, Kind, OnDevice};
use residua::scalar::Symmetry;
use residua::{Backend, Csr, Cuda, Host, Real, Scalar, generate};

/// Options to factorise in this crate's own fronts, even if there is a library.
pub fn by_fronts() -> DeviceOptions {
    let mut options = DeviceOptions::default();
    options.library = false;
    options
}

fn norm<T: Scalar>(x: &[T]) -> f64 {
    x.iter().map(|x| x.abs2().to_f64()).sum::<f64>().sqrt()
}

/// b = A x for a random x.
pub fn right_hand_side<T: Scalar>(a: &Csr<T>, seed: u64) -> Vec<T> {
    let mut b = vec![T::zero(); a.rows()];
    a.product(&Host, T::one(), &Random(seed).vector(a.columns()), T::zero(), &mut b).unwrap();
    b
}

/// ||b - A x|| / ||b||.
pub fn residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> f64 {
    let mut r = b.to_vec();
    a.product(&Host, -T::one(), x, T::one(), &mut r).unwrap();
    norm(&r) / norm(b)
}

fn solved<T: Scalar>(cuda: &Cuda, a: &Csr<T>, tolerance: f64) -> (DeviceReport, Vec<T>, f64) {
    let b = right_hand_side(a, 5);
    let mut direct = OnDevice::planned(cuda, &a.to_backend(cuda).unwrap(), by_fronts()).unwrap();
    let mut x = cuda.zeros(a.columns()).unwrap();
    let report = direct.solve(&cuda.upload(b.clone()).unwrap(), &mut x, tolerance).unwrap();
    let x = cuda.download(&x).unwrap();
    let left = residual(a, &b, &x);
    (report, x, left)
}

/// A solve meets the tolerance, and a second one gives the same bits.
pub fn check<T: Scalar>(cuda: &Cuda, name: &str, a: &Csr<T>, tolerance: f64) {
    let (report, x, left) = solved(cuda, a, tolerance);
    assert!(report.solved && left <= 1.1 * tolerance, "{name} {}: {left:e}, {report:?}", T::NAME);
    assert_eq!((report.kind, report.library.as_deref()), (Kind::FrontalLu, None), "{name}");
    let (_, again, _) = solved(cuda, a, tolerance);
    let same = x.iter().zip(&again).all(|(a, b)| a.bits() == b.bits());
    assert!(same, "{name} {}: other bits in another run", T::NAME);
}

/// Solves for several right-hand sides together.
pub fn check_several<T: Scalar>(cuda: &Cuda, name: &str, a: &Csr<T>, count: usize, tolerance: f64) {
    let n = a.rows();
    let b: Vec<T> = (0..count).flat_map(|seed| right_hand_side(a, seed as u64)).collect();
    let mut direct = OnDevice::planned(cuda, &a.to_backend(cuda).unwrap(), by_fronts()).unwrap();
    let mut x = cuda.zeros(count * n).unwrap();
    let told = direct.solve_several(count, &cuda.upload(b.clone()).unwrap(), &mut x).unwrap();
    let x = cuda.download(&x).unwrap();
    for (number, told) in told.into_iter().enumerate() {
        let part = n * number..n * (number + 1);
        let left = residual(a, &b[part.clone()], &x[part]);
        assert!(left < tolerance && told < tolerance, "{name} {} {number}: {left:e} {told:e}", T::NAME);
    }
}

/// A full matrix, which is a single front.
pub fn dense<T: Scalar>(n: usize) -> Csr<T> {
    let values = Random(7).vector::<T>(n * n);
    let entry = |k: usize| if k / n == k % n { T::from_f64(2.0) } else { values[k] };
    let (starts, indices) =
        ((0..=n).map(|row| row * n).collect(), (0..n * n).map(|k| (k % n) as u32).collect());
    Csr::from_parts(n, n, starts, indices, (0..n * n).map(entry).collect()).unwrap()
}

/// Two blocks of `own` rows each, which are coupled only with a third one of `rest` rows: three fronts, of which two
/// have rows below their own. Mirror images above the diagonal follow from `symmetry`.
pub fn joined<T: Scalar>(own: usize, rest: usize, symmetry: Symmetry) -> Csr<T> {
    let n = 2 * own + rest;
    let values = Random(9).vector::<T>(n * n);
    let block = |k: usize| (k / own).min(2);
    let entry = |i: usize, j: usize| match symmetry {
        _ if i == j => T::from_f64(2.0 * (n as f64).sqrt()),
        Symmetry::General => values[i * n + j],
        _ if i > j => values[i * n + j],
        _ => symmetry.mirror(values[j * n + i]),
    };
    let (mut starts, mut indices, mut entries) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in (0..n).filter(|&j| block(i) == block(j) || block(i).max(block(j)) == 2) {
            indices.push(j as u32);
            entries.push(entry(i, j));
        }
        starts.push(indices.len());
    }
    Csr::from_parts(n, n, starts, indices, entries).unwrap()
}

/// The factors of [`joined`] matrices are right by themselves: a solve needs hardly any refinement.
pub fn check_joined<T: Scalar>(cuda: &Cuda, own: usize, rest: usize, tolerance: f64) {
    for symmetry in [Symmetry::General, Symmetry::Symmetric, Symmetry::Hermitian] {
        let name = format!("{} {own} + {rest}", symmetry.name());
        let a = joined::<T>(own, rest, symmetry);
        check(cuda, &name, &a, tolerance);
        let (report, ..) = solved(cuda, &a, tolerance);
        assert!(report.refinements <= 2 && report.iterations == 0, "{name} {}: {report:?}", T::NAME);
    }
}

/// Determinant and inertia agree with those of dense factorisations.
pub fn check_determinant<T: Scalar>(cuda: &Cuda, name: &str, a: &Csr<T>, tolerance: f64) {
    let n = a.rows();
    let mut dense = DMatrix::<Complex<f64>>::zeros(n, n);
    a.iter().for_each(|(i, j, value)| dense[(i, j)] = Complex::new(value.re().to_f64(), value.im().to_f64()));
    let lu = dense.clone().lu();
    let (mut sign, mut logarithm) = (Complex::from(lu.p().determinant::<f64>()), 0.0);
    for pivot in lu.u().diagonal().iter() {
        sign *= pivot / pivot.norm();
        logarithm += pivot.norm().ln();
    }
    let mut direct = OnDevice::planned(cuda, &a.to_backend(cuda).unwrap(), by_fronts()).unwrap();
    let (found_sign, found) = direct.log_determinant().unwrap();
    let found_sign = Complex::new(found_sign.re().to_f64(), found_sign.im().to_f64());
    assert!((found_sign - sign).norm() < tolerance, "{name} {}: {found_sign} for {sign}", T::NAME);
    let error = (found - logarithm).abs() / logarithm.abs().max(1.0);
    assert!(error < tolerance, "{name} {}: {found} for {logarithm}", T::NAME);
    let inertia = direct.inertia();
    if dense == dense.adjoint() {
        let values = dense.symmetric_eigenvalues();
        let positive = values.iter().filter(|&&value| value > 0.0).count();
        assert_eq!(inertia.unwrap(), (positive, n - positive), "{name} {}", T::NAME);
    } else {
        assert!(inertia.is_err(), "{name} {}", T::NAME);
    }
}

/// A Hermitian matrix with the eigenvalues of a real symmetric one: D A D^H with numbers of magnitude 1.
fn turned(a: &Csr<f64>) -> Csr<Complex<f64>> {
    // Angles of a triple 3, 4, 5, so that every entry and its mirror image are conjugate to the last bit.
    let turn = |k: usize| if k.is_multiple_of(3) { Complex::new(0.6, 0.8) } else { Complex::from(1.0) };
    let entries = a.iter().map(|(i, j, value)| match i.cmp(&j) {
        std::cmp::Ordering::Less => (turn(j) * turn(i).conj() * value).conj(),
        std::cmp::Ordering::Equal => value.into(),
        std::cmp::Ordering::Greater => turn(i) * turn(j).conj() * value,
    });
    let starts = (0..=a.rows()).scan(0, |at, row| {
        let start = *at;
        *at += if row < a.rows() { a.row(row).0.len() } else { 0 };
        Some(start)
    });
    let indices = a.iter().map(|(_, j, _)| j as u32).collect();
    Csr::from_parts(a.rows(), a.columns(), starts.collect(), indices, entries.collect()).unwrap()
}

/// Determinants of matrices of all kinds, with fronts of all classes.
pub fn determinants(cuda: &Cuda) {
    let waves = generate::helmholtz([17, 18, 1], 10.0).unwrap();
    check_determinant(cuda, "waves", &waves, 1e-9);
    check_determinant(cuda, "turned waves", &turned(&waves), 1e-9);
    let saddle = generate::stokes([7, 6, 1], 1.0, true).unwrap();
    check_determinant(cuda, "saddle point", &saddle, 1e-9);
    check_determinant(cuda, "program", &generate::quadratic_program(60, 30, 10.0, 1).unwrap(), 1e-8);
    check_determinant(cuda, "circuit", &generate::circuit(150, 1e3, 1).unwrap(), 1e-8);
    check_determinant(cuda, "wind", &generate::convection_diffusion([7, 6, 5], 0.01).unwrap(), 1e-9);
    check_determinant(cuda, "absorbed", &generate::helmholtz_absorbing([14, 15, 1], 10.0).unwrap(), 1e-9);
    check_determinant(cuda, "dense", &dense::<f64>(130), 1e-9);
    check_determinant(cuda, "dense", &dense::<Complex<f64>>(70), 1e-9);
    check_determinant(cuda, "dense", &dense::<f32>(70), 1e-3);
    check_determinant(cuda, "dense", &dense::<Complex<f32>>(70), 1e-3);
    for symmetry in [Symmetry::Symmetric, Symmetry::Hermitian] {
        check_determinant(cuda, symmetry.name(), &joined::<Complex<f64>>(40, 50, symmetry), 1e-9);
        check_determinant(cuda, symmetry.name(), &joined::<f64>(70, 90, symmetry), 1e-9);
    }
}

/// Fronts of every class of sizes, and blocks of pivots with ragged ends.
#[allow(dead_code)]
pub fn small_cases(cuda: &Cuda) {
    for n in [1, 15, 33, 65, 130, 520] {
        check(cuda, &format!("dense {n}"), &dense::<f64>(n), 1e-10);
    }
    check(cuda, "dense", &dense::<Complex<f64>>(70), 1e-10);
    check(cuda, "dense", &dense::<f32>(70), 1e-3);
    check(cuda, "dense", &dense::<Complex<f32>>(70), 1e-3);
    check_joined::<f64>(cuda, 70, 90, 1e-12);
    check_joined::<Complex<f64>>(cuda, 40, 50, 1e-12);
    check_joined::<f32>(cuda, 70, 90, 1e-4);
    check_joined::<Complex<f32>>(cuda, 70, 90, 1e-4);
    check_several(cuda, "dense 130", &dense::<f64>(130), 9, 1e-10);
    check_several(cuda, "dense 140", &dense::<Complex<f64>>(140), 3, 1e-10);
    check_several(cuda, "grid", &generate::poisson2d(20, 17).unwrap(), 2, 1e-10);
    check(cuda, "arrow", &generate::arrow(100).unwrap(), 1e-10);
    check(cuda, "grid", &generate::poisson2d(20, 17).unwrap(), 1e-10);
    check(cuda, "saddle point", &generate::stokes([7, 6, 1], 1.0, true).unwrap(), 1e-10);
    check(cuda, "waves", &generate::helmholtz_absorbing([14, 15, 1], 10.0).unwrap(), 1e-10);
}
