//! Factorisations by the library that is installed for a GPU. Skips with a message if there is no device, or no library
//! for it; `RESIDUA_NEED_CUDSS=1` makes the latter a failure.

use crate::device::device;
use crate::random::Random;
use crate::{Class, matrix, product, relative};
use num_complex::Complex;
use residua::backend::{Elimination, FactorKind, FactorOptions, FactorSteps};
use residua::direct::{DeviceOptions, DeviceReport, Kind, OnDevice, Reason};
use residua::generate;
use residua::prelude::*;
use residua::{Backend, Csr, Cuda, Scalar};

/// The device, if it has a library.
fn equipped() -> Option<Cuda> {
    let device = device()?;
    match device.factor_library() {
        Ok(_) => Some(device),
        Err(error) => {
            let needed = std::env::var_os("RESIDUA_NEED_CUDSS").is_some_and(|value| value == "1");
            assert!(!needed, "RESIDUA_NEED_CUDSS is set: {error}");
            eprintln!("SKIPPED, nothing was factorised on a device: {error}");
            None
        }
    }
}

/// Solves with b = A x, x random, and returns the report and the relative residual, computed here.
fn solved<T: Scalar>(cuda: &Cuda, a: &Csr<T>, options: DeviceOptions, tolerance: f64) -> (DeviceReport, f64) {
    let b = product(a, &Random(5).vector(a.columns()));
    let mut direct = OnDevice::planned(cuda, &a.to_backend(cuda).unwrap(), options).unwrap();
    let mut x = cuda.zeros(a.columns()).unwrap();
    let report = direct.solve(&cuda.upload(b.clone()).unwrap(), &mut x, tolerance).unwrap();
    let x = cuda.download(&x).unwrap();
    let residual = relative(a, &b, &x);
    (report, residual)
}

fn of_type<T: Scalar>(cuda: &Cuda, tolerance: f64, classes: &[Class]) {
    let mut random = Random(3);
    for n in [1, 2, 7, 40, 130] {
        for &class in classes {
            let a = matrix::<T>(&mut random, n, class);
            let (report, residual) = solved(cuda, &a, DeviceOptions::default(), tolerance);
            assert!(report.solved && residual <= 1.1 * tolerance, "{} {n} {class:?}: {report:?}", T::NAME);
            if class == Class::Definite {
                assert_eq!(report.kind, Kind::Cholesky, "{report:?}");
            }
        }
    }
}

#[test]
fn matrices_of_all_types_and_classes_are_solved_on_the_device() {
    use Class::*;
    let Some(cuda) = equipped() else { return };
    let classes = [Unsymmetric, Definite, Hermitian, Scaled, Symmetric];
    of_type::<f64>(&cuda, 1e-10, &classes);
    of_type::<Complex<f64>>(&cuda, 1e-10, &classes);
    of_type::<f32>(&cuda, 1e-4, &[Unsymmetric, Definite, Hermitian, Symmetric]);
    of_type::<Complex<f32>>(&cuda, 1e-4, &[Unsymmetric, Definite, Hermitian, Symmetric]);
}

/// A grid divided into four by a row and two half columns, with the leaves first and the last separator last.
fn cut_in_four(k: usize) -> Elimination {
    let middle = k / 2;
    let part = |x: usize, y: usize| match (x.cmp(&middle), y.cmp(&middle)) {
        (std::cmp::Ordering::Equal, _) => 6,
        (side, std::cmp::Ordering::Equal) => 4 + usize::from(side.is_gt()),
        (side, other) => 2 * usize::from(side.is_gt()) + usize::from(other.is_gt()),
    };
    let mut found = Elimination { order: Vec::new(), parts: vec![0; 7] };
    for number in 0..7 {
        for unknown in (0..k * k).filter(|at| part(at / k, at % k) == number) {
            found.order.push(unknown as u32);
            found.parts[number] += 1;
        }
    }
    found
}

#[test]
fn a_given_order_gives_the_factors_that_it_is_for() {
    let Some(cuda) = equipped() else { return };
    let k = 41;
    let a = generate::poisson2d(k, k).unwrap().to_backend(&cuda).unwrap();
    let whole = cut_in_four(k);
    let backwards = Elimination { order: (0..(k * k) as u32).rev().collect(), parts: Vec::new() };
    let x: Vec<f64> = Random(1).vector(k * k);
    let mut b = cuda.zeros(k * k).unwrap();
    a.product(&cuda, 1.0, &cuda.upload(x.clone()).unwrap(), 0.0, &mut b).unwrap();
    let mut entries = Vec::new();
    for order in
        [None, Some(&backwards), Some(&Elimination { parts: Vec::new(), ..whole.clone() }), Some(&whole)]
    {
        let options =
            FactorOptions { kind: FactorKind::Positive, order, blocks_of_two: false, deterministic: true };
        let matrix = a.to_host(&cuda).unwrap();
        let parts = matrix.parts();
        let offsets: Vec<u32> =
            parts.offsets.download(&residua::Host).unwrap().iter().map(|&o| o as u32).collect();
        let arrays = (
            residua::backend::Offsets::Lower(cuda.upload(offsets).unwrap()),
            cuda.upload(parts.indices.to_vec()).unwrap(),
            cuda.upload(parts.values.to_vec()).unwrap(),
        );
        let mut factors = cuda.factors(k * k, arrays, options).unwrap();
        assert_eq!(factors.factorise(a.parts().values).unwrap(), None);
        let mut y = cuda.zeros(k * k).unwrap();
        factors.solve(1, &b, &mut y).unwrap();
        let y = cuda.download(&y).unwrap();
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-10), "{order:?}");
        entries.push(factors.estimate().entries);
    }
    // Rows in natural order fill the band, 41 wide; the divided grid has fewer entries, whether its parts are known or
    // not.
    let band = (k * k * k) as f64;
    assert!(entries[1] > 0.8 * band && entries[3] < entries[1], "{entries:?}");
    assert!(entries[0] < 0.5 * band, "{entries:?}");
    let wrong = Elimination { order: vec![0; k * k], parts: Vec::new() };
    let options = FactorOptions {
        kind: FactorKind::Positive,
        order: Some(&wrong),
        blocks_of_two: false,
        deterministic: true,
    };
    let arrays = (
        residua::backend::Offsets::Lower(cuda.zeros(k * k + 1).unwrap()),
        cuda.zeros(0).unwrap(),
        cuda.zeros::<f64>(0).unwrap(),
    );
    assert!(cuda.factors(k * k, arrays, options).is_err());
}

#[test]
fn new_values_are_factorised_without_another_analysis() {
    let Some(cuda) = equipped() else { return };
    for class in [Class::Definite, Class::Unsymmetric, Class::Scaled] {
        let mut a = matrix::<f64>(&mut Random(5), 80, class);
        let mut direct =
            OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), DeviceOptions::default()).unwrap();
        let solve = |direct: &mut OnDevice<f64, Cuda>, a: &Csr<f64>| {
            let (b, mut x) = (product(a, &[1.0; 80]), cuda.zeros(80).unwrap());
            let told = direct.solve(&cuda.upload(b.clone()).unwrap(), &mut x, 1e-12).unwrap();
            assert!(
                told.solved && relative(a, &b, &cuda.download(&x).unwrap()) < 2e-12,
                "{class:?}: {told:?}"
            );
            told
        };
        let first = solve(&mut direct, &a);
        a.values_mut().iter_mut().for_each(|value| *value *= 1.5);
        direct.update(&a.to_backend(&cuda).unwrap()).unwrap();
        let again = solve(&mut direct, &a);
        assert_eq!((again.kind, again.seconds.order, again.seconds.analysis), (first.kind, 0.0, 0.0));
        assert!(again.seconds.factor > 0.0 && first.seconds.analysis > 0.0);
    }
}

#[test]
fn values_that_are_no_longer_definite_get_another_factorisation() {
    let Some(cuda) = equipped() else { return };
    let mut a = matrix::<f64>(&mut Random(5), 60, Class::Definite);
    let mut direct =
        OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), DeviceOptions::default()).unwrap();
    let (b, mut x) = (cuda.upload(vec![1.0; 60]).unwrap(), cuda.zeros(60).unwrap());
    assert_eq!(direct.solve(&b, &mut x, 1e-10).unwrap().kind, Kind::Cholesky);
    a.values_mut().iter_mut().for_each(|value| *value = -*value);
    direct.update(&a.to_backend(&cuda).unwrap()).unwrap();
    let told = direct.solve(&b, &mut x, 1e-10).unwrap();
    assert!(told.solved && told.kind == Kind::Ldlt, "{told:?}");
}

#[test]
fn several_right_hand_sides_are_solved_at_once() {
    let Some(cuda) = equipped() else { return };
    for class in [Class::Definite, Class::Scaled] {
        let a = matrix::<f64>(&mut Random(8), 50, class);
        let b: Vec<f64> = (0..7).flat_map(|seed| product(&a, &Random(seed).vector(50))).collect();
        let mut direct =
            OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), DeviceOptions::default()).unwrap();
        let mut x = cuda.zeros(350).unwrap();
        let told = direct.solve_several(7, &cuda.upload(b.clone()).unwrap(), &mut x).unwrap();
        let x = cuda.download(&x).unwrap();
        for number in 0..7 {
            let part = 50 * number..50 * (number + 1);
            let residual = relative(&a, &b[part.clone()], &x[part]);
            assert!(residual < 1e-10 && told[number] < 1e-10, "{class:?} {number}: {residual:e} {told:?}");
        }
    }
}

#[test]
fn what_the_device_cannot_solve_has_a_reason() {
    let Some(cuda) = equipped() else { return };
    let fails = |a: &Csr<f64>, options: DeviceOptions| {
        let mut direct = OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), options).unwrap();
        let (b, mut x) = (cuda.upload(Random(1).vector(a.rows())).unwrap(), cuda.zeros(a.rows()).unwrap());
        let told = direct.solve(&b, &mut x, 1e-8).unwrap();
        assert!(!told.solved, "{told:?}");
        assert!(cuda.download(&x).unwrap().iter().all(|x| x.is_finite()), "{told:?}");
        told.reasons
    };
    // A row of zeros, in a symmetric and in a general matrix: the library reports success, but the residual shows the
    // failure.
    for class in [Class::Definite, Class::Unsymmetric] {
        let mut a = matrix::<f64>(&mut Random(7), 50, class);
        let zeros: Vec<f64> =
            a.iter().map(|(i, j, value)| if i == 20 || j == 20 { 0.0 } else { value }).collect();
        a.values_mut().copy_from_slice(&zeros);
        let reasons = fails(&a, DeviceOptions::default());
        assert!(
            reasons.iter().any(|(_, r)| matches!(r, Reason::StructurallySingular { rank: 49, .. })),
            "{reasons:?}"
        );
    }
    let mut a = matrix::<f64>(&mut Random(7), 50, Class::Definite);
    let mut small = DeviceOptions::default();
    small.memory_limit = 100;
    let reasons = fails(&a, small);
    assert!(matches!(reasons[0].1, Reason::TooLarge { bytes: 101.., limit: 100 }), "{reasons:?}");
    a.values_mut()[3] = f64::NAN;
    let reasons = fails(&a, DeviceOptions::default());
    assert!(reasons.iter().all(|(_, reason)| *reason == Reason::NotFinite), "{reasons:?}");
    let tall =
        Csr::from_parts(2, 1, vec![0, 1, 2], vec![0, 0], vec![1.0; 2]).unwrap().to_backend(&cuda).unwrap();
    assert!(OnDevice::planned(&cuda, &tall, DeviceOptions::default()).is_err());
}

#[test]
fn the_same_system_gives_the_same_bits() {
    let Some(cuda) = equipped() else { return };
    let a = generate::poisson2d(150, 150).unwrap();
    let b = cuda.upload(product(&a, &Random(2).vector(a.rows()))).unwrap();
    let solve = || {
        let mut direct =
            OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), DeviceOptions::default()).unwrap();
        let mut x = cuda.zeros(a.rows()).unwrap();
        direct.solve(&b, &mut x, 1e-10).unwrap();
        cuda.download(&x).unwrap()
    };
    assert_eq!(solve(), solve());
}

/// A solver uses the device's factors for a large system and says so, and the host's for a small one.
#[test]
fn a_solver_factorises_where_it_pays() {
    let Some(cuda) = equipped() else { return };
    for (k, on_device) in [(330, true), (30, false)] {
        let mut a = generate::poisson2d(k, k).unwrap();
        let b = product(&a, &Random(2).vector(a.rows()));
        let mut solver = Solver::builder()
            .method(Method::Direct)
            .updates(true)
            .build_on(&cuda, a.to_backend(&cuda).unwrap())
            .unwrap();
        for _ in 0..2 {
            let solution = solver.solve(&b).unwrap();
            assert!(solution.report.outcome.is_converged() && relative(&a, &b, &solution.x) <= 1e-8);
            let remark = solution.report.trail.stages[0].remark.clone().unwrap();
            assert_eq!(remark.contains("cuDSS"), on_device, "{remark}");
            a.values_mut().iter_mut().for_each(|value| *value *= 1.0);
            solver.update(a.parts().values).unwrap();
        }
    }
}
