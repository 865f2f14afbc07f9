//! Factorisations in dense fronts on a device. Skips with a message if there is none.

use crate::device::device;
use crate::fronts::{by_fronts, check, check_joined, check_several, dense, determinants, residual};
use crate::random::Random;
use crate::{Class, matrix, product};
use num_complex::Complex;
use residua::direct::{DeviceOptions, OnDevice, Reason};
use residua::generate;
use residua::{Backend, Csr, Cuda, Scalar};

fn of_type<T: Scalar>(cuda: &Cuda, tolerance: f64, classes: &[Class]) {
    let mut random = Random(3);
    for n in [1, 2, 7, 40, 130, 300] {
        for &class in classes {
            let a = matrix::<T>(&mut random, n, class);
            check(cuda, &format!("{n} {class:?}"), &a, tolerance);
        }
    }
}

#[test]
fn matrices_of_all_types_and_classes_are_solved_in_fronts() {
    use Class::*;
    let Some(cuda) = device() else { return };
    let classes = [Unsymmetric, Definite, Hermitian, Scaled, Symmetric];
    of_type::<f64>(&cuda, 1e-10, &classes);
    of_type::<Complex<f64>>(&cuda, 1e-10, &classes);
    of_type::<f32>(&cuda, 1e-4, &[Unsymmetric, Definite, Hermitian, Symmetric]);
    of_type::<Complex<f32>>(&cuda, 1e-4, &[Unsymmetric, Definite, Hermitian, Symmetric]);
}

fn of_entries(n: usize, entries: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr<f64> {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut row = 0;
    for (i, j, value) in entries {
        while row < i {
            starts.push(indices.len());
            row += 1;
        }
        indices.push(j as u32);
        values.push(value);
    }
    starts.push(indices.len());
    Csr::from_parts(n, n, starts, indices, values).unwrap()
}

#[test]
fn fronts_of_every_size_and_shape_lead_to_x() {
    let Some(cuda) = device() else { return };
    // A single front: with one block of pivots, with several and a ragged end, and so large that solves process it in
    // parts.
    for n in [15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 333, 700] {
        check(&cuda, &format!("dense {n}"), &dense::<f64>(n), 1e-10);
    }
    for (own, rest) in [(200, 300), (64, 128), (150, 65)] {
        check_joined::<f64>(&cuda, own, rest, 1e-12);
        check_joined::<Complex<f64>>(&cuda, own, rest, 1e-12);
    }
    check(&cuda, "arrow", &generate::arrow(3000).unwrap(), 1e-10);
    check(&cuda, "chain", &generate::poisson2d(2000, 1).unwrap(), 1e-10);
    check(&cuda, "grid", &generate::poisson2d(150, 143).unwrap(), 1e-10);
    check(&cuda, "cube", &generate::poisson3d(19, 18, 17).unwrap(), 1e-10);
    check(&cuda, "wind", &generate::convection_diffusion([16, 17, 15], 0.01).unwrap(), 1e-10);
    let many = generate::along_the_diagonal(&generate::poisson2d(3, 3).unwrap(), 50).unwrap();
    check(&cuda, "components", &many, 1e-10);
    check(&cuda, "saddle point", &generate::stokes([12, 12, 1], 1.0, true).unwrap(), 1e-10);
    check(&cuda, "program", &generate::quadratic_program(2000, 1000, 1e3, 1).unwrap(), 1e-10);
    check(&cuda, "circuit", &generate::circuit(5000, 1e3, 1).unwrap(), 1e-10);
}

#[test]
fn new_values_need_no_other_structure_in_fronts() {
    let Some(cuda) = device() else { return };
    let n = 200;
    for class in [Class::Definite, Class::Unsymmetric, Class::Scaled] {
        let mut a = matrix::<f64>(&mut Random(5), n, class);
        let mut direct = OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), by_fronts()).unwrap();
        let solve = |direct: &mut OnDevice<f64, Cuda>, a: &Csr<f64>| {
            let (b, mut x) = (product(a, &vec![1.0; n]), cuda.zeros(n).unwrap());
            let told = direct.solve(&cuda.upload(b.clone()).unwrap(), &mut x, 1e-12).unwrap();
            let left = residual(a, &b, &cuda.download(&x).unwrap());
            assert!(told.solved && left < 2e-12, "{class:?}: {told:?}");
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
fn determinants_and_inertia_are_those_of_dense_factorisations() {
    let Some(cuda) = device() else { return };
    determinants(&cuda);
    // Constant vectors have the eigenvalue zero.
    let mut a = generate::poisson2d(9, 9).unwrap();
    let sums: Vec<f64> = (0..81).map(|row| a.row(row).1.iter().sum()).collect();
    let shifted: Vec<f64> =
        a.iter().map(|(i, j, value)| if i == j { value - sums[i] } else { value }).collect();
    a.values_mut().copy_from_slice(&shifted);
    let mut direct = OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), by_fronts()).unwrap();
    assert!(direct.inertia().is_err());
}

#[test]
fn a_solve_has_the_same_bits_whether_it_is_recorded_or_not() {
    let Some(cuda) = device() else { return };
    for a in [generate::poisson3d(19, 18, 17).unwrap(), dense::<f64>(600)] {
        let (n, device) = (a.rows(), a.to_backend(&cuda).unwrap());
        let mut direct = OnDevice::planned(&cuda, &device, by_fronts()).unwrap();
        let b = cuda.upload(Random(4).vector::<f64>(n)).unwrap();
        let solve = |direct: &mut OnDevice<f64, Cuda>| {
            let mut x = cuda.zeros(n).unwrap();
            let told = direct.solve(&b, &mut x, 1e-10).unwrap();
            assert_eq!((told.solved, told.perturbed), (true, Some(0)), "{told:?}");
            cuda.download(&x).unwrap()
        };
        // The first solve launches, the second records, the others replay, also for new factors and after another
        // number of right-hand sides.
        let first = solve(&mut direct);
        for _ in 0..3 {
            assert!(solve(&mut direct) == first);
        }
        direct.update(&device).unwrap();
        assert!(solve(&mut direct) == first);
        let several = cuda.upload(Random(4).vector::<f64>(2 * n)).unwrap();
        direct.solve_several(2, &several, &mut cuda.zeros(2 * n).unwrap()).unwrap();
        assert!(solve(&mut direct) == first);
    }
}

#[test]
fn several_right_hand_sides_go_through_fronts_together() {
    let Some(cuda) = device() else { return };
    for a in [
        matrix::<f64>(&mut Random(8), 50, Class::Scaled),
        dense::<f64>(600),
        generate::poisson2d(40, 41).unwrap(),
    ] {
        for count in [7, 19] {
            check_several(&cuda, &a.rows().to_string(), &a, count, 1e-10);
        }
    }
}

#[test]
fn what_fronts_cannot_solve_has_a_reason() {
    let Some(cuda) = device() else { return };
    let fails = |a: &Csr<f64>, options: DeviceOptions| {
        let mut direct = OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), options).unwrap();
        let (b, mut x) = (cuda.upload(Random(1).vector(a.rows())).unwrap(), cuda.zeros(a.rows()).unwrap());
        let told = direct.solve(&b, &mut x, 1e-8).unwrap();
        assert!(!told.solved, "{told:?}");
        assert!(cuda.download(&x).unwrap().iter().all(|x| x.is_finite()), "{told:?}");
        told.reasons
    };
    // A row and a column of zeros.
    for class in [Class::Definite, Class::Unsymmetric] {
        let mut a = matrix::<f64>(&mut Random(7), 50, class);
        let zeros: Vec<f64> =
            a.iter().map(|(i, j, value)| if i == 20 || j == 20 { 0.0 } else { value }).collect();
        a.values_mut().copy_from_slice(&zeros);
        assert!(!fails(&a, by_fronts()).is_empty());
        let mut direct = OnDevice::planned(&cuda, &a.to_backend(&cuda).unwrap(), by_fronts()).unwrap();
        assert!(direct.log_determinant().is_err() && direct.inertia().is_err());
    }
    // A column without entries.
    let empty = of_entries(3, [(0, 0, 1.0), (1, 0, 2.0), (1, 1, 1.0), (2, 1, 3.0)]);
    let reasons = fails(&empty, by_fronts());
    assert!(matches!(reasons[0].1, Reason::StructurallySingular { rank: 2, .. }), "{reasons:?}");
    let mut a = matrix::<f64>(&mut Random(7), 50, Class::Definite);
    let mut small = by_fronts();
    small.memory_limit = 100;
    let reasons = fails(&a, small);
    assert!(matches!(reasons[0].1, Reason::TooLarge { bytes: 101.., limit: 100 }), "{reasons:?}");
    a.values_mut()[3] = f64::NAN;
    let reasons = fails(&a, by_fronts());
    assert!(reasons.iter().all(|(_, reason)| *reason == Reason::NotFinite), "{reasons:?}");
}
