//! Factorisations in dense fronts of a device, compared with residuals that are computed here.

use crate::random::Random;
use num_complex::Complex;
use residua::direct::{DeviceOptions, DeviceReport, Kind, OnDevice};
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

/// A full matrix, which is a single front.
pub fn dense<T: Scalar>(n: usize) -> Csr<T> {
    let values = Random(7).vector::<T>(n * n);
    let entry = |k: usize| if k / n == k % n { T::from_f64(2.0) } else { values[k] };
    let (starts, indices) =
        ((0..=n).map(|row| row * n).collect(), (0..n * n).map(|k| (k % n) as u32).collect());
    Csr::from_parts(n, n, starts, indices, (0..n * n).map(entry).collect()).unwrap()
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
    check(cuda, "arrow", &generate::arrow(100).unwrap(), 1e-10);
    check(cuda, "grid", &generate::poisson2d(20, 17).unwrap(), 1e-10);
    check(cuda, "saddle point", &generate::stokes([7, 6, 1], 1.0, true).unwrap(), 1e-10);
    check(cuda, "waves", &generate::helmholtz_absorbing([14, 15, 1], 10.0).unwrap(), 1e-10);
}
