//! Direct solves: random ragged matrices of all kinds, and the square matrices of the collection.

#[path = "direct/blocks.rs"]
mod blocks;
#[path = "common/collection.rs"]
mod collection;
#[cfg(feature = "cuda")]
#[path = "common/device.rs"]
mod device;
#[cfg(feature = "cuda")]
#[path = "common/fronts.rs"]
mod fronts;
#[cfg(feature = "cuda")]
#[path = "direct/fronts_on_device.rs"]
mod fronts_on_device;
#[cfg(feature = "cuda")]
#[path = "direct/on_device.rs"]
mod on_device;
#[path = "common/random.rs"]
mod random;
#[cfg(feature = "cli")]
#[path = "direct/reasons.rs"]
mod reasons;
#[cfg(feature = "cli")]
#[path = "cli/support.rs"]
#[allow(dead_code)]
mod support;

use num_complex::Complex;
use random::Random;
use residua::direct::{
    DeviceOptions, Direct, DirectOptions, DirectReport, Factorable, Kind, OnDevice, Reason,
};
use residua::market::read_csr;
use residua::solver::{Device, Method, Solver};
use residua::{Csr, Host, Real, Scalar};
use std::time::Instant;

fn norm<T: Scalar>(x: &[T]) -> f64 {
    let largest = x.iter().map(|x| x.abs().to_f64()).fold(f64::MIN_POSITIVE, f64::max);
    x.iter().map(|x| (x.abs().to_f64() / largest).powi(2)).sum::<f64>().sqrt() * largest
}

fn product<T: Scalar>(a: &Csr<T>, x: &[T]) -> Vec<T> {
    let mut y = vec![T::zero(); a.rows()];
    a.product(&Host, T::one(), x, T::zero(), &mut y).unwrap();
    y
}

fn relative<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> f64 {
    let r: Vec<T> = b.iter().zip(product(a, x)).map(|(&b, y)| b - y).collect();
    norm(&r) / norm(b)
}

/// Solves A x = b with b = A times a random vector. Returns the report, and the relative residual in working precision.
fn solved<T: Factorable>(
    a: &Csr<T>,
    options: DirectOptions,
    tolerance: f64,
    seed: u64,
) -> (DirectReport, f64) {
    let b = product(a, &Random(seed).vector(a.columns()));
    let mut x = vec![T::zero(); a.columns()];
    let mut direct = Direct::new(a, options).unwrap();
    let report = direct.solve(&b, &mut x, tolerance).unwrap();
    let residual = relative(a, &b, &x);
    (report, residual)
}

/// Returns the seconds for one file, the report, and the relative residual; `None` if the matrix is not square.
fn file<T: Factorable>(path: &std::path::Path) -> Option<(f64, DirectReport, f64)> {
    let a = read_csr::<T>(path).unwrap_or_else(|error| panic!("{error}"));
    let (a_rows, a_columns) = (a.rows(), a.columns());
    (a_rows == a_columns).then(|| {
        let start = Instant::now();
        let (report, residual) = solved(&a, DirectOptions::default().condition(false), 1e-8, 1);
        (start.elapsed().as_secs_f64(), report, residual)
    })
}

/// Classes of random matrices.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Class {
    Unsymmetric,
    Definite,
    Hermitian,
    /// Rows and columns scaled over twelve decades, rows permuted.
    Scaled,
    /// A^T = A without conjugation.
    Symmetric,
    /// The last row is the sum of the two before it.
    Singular,
}

/// Random matrices with 1 to 6 entries per row around the diagonal.
#[allow(clippy::needless_range_loop)] // entries are set in pairs
fn matrix<T: Scalar>(random: &mut Random, n: usize, class: Class) -> Csr<T> {
    let mut dense = vec![vec![T::zero(); n]; n];
    for i in 0..n {
        for _ in 0..random.below(6) {
            let (j, value) = (random.below(n), random.scalar::<T>());
            dense[i][j] = value;
            match class {
                Class::Definite | Class::Hermitian => dense[j][i] = value.conj(),
                Class::Symmetric => dense[j][i] = value,
                _ => {}
            }
        }
        dense[i][i] = match class {
            Class::Definite => T::from_f64(13.0),
            Class::Hermitian => T::from_f64(if i % 2 == 0 { 2.0 } else { -2.0 }),
            _ => T::from_f64(1.5) + random.scalar::<T>(),
        };
    }
    if class == Class::Singular && n > 2 {
        dense[n - 1] = (0..n).map(|j| dense[n - 2][j] + dense[n - 3][j]).collect();
    }
    if class == Class::Scaled {
        let decades = |random: &mut Random| T::from_f64(10_f64.powf(6.0 * random.signed()));
        let columns: Vec<T> = random.vec(n, decades);
        for row in &mut dense {
            let factor = decades(random);
            row.iter_mut().zip(&columns).for_each(|(value, &column)| *value *= factor * column);
        }
        for i in (1..n).rev() {
            dense.swap(i, random.below(i + 1));
        }
    }
    sparse(dense)
}

/// The entries of a square matrix that are not zero.
fn sparse<T: Scalar>(dense: Vec<Vec<T>>) -> Csr<T> {
    let n = dense.len();
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in dense {
        for (j, value) in row.into_iter().enumerate().filter(|(_, value)| *value != T::zero()) {
            indices.push(j as u32);
            values.push(value);
        }
        offsets.push(indices.len());
    }
    Csr::from_parts(n, n, offsets, indices, values).unwrap()
}

fn random_matrices<T: Factorable>(tolerance: f64, classes: &[Class]) {
    let mut random = Random(3);
    for n in [1, 2, 7, 40, 130] {
        for &class in classes {
            let a = matrix::<T>(&mut random, n, class);
            let (report, residual) = solved(&a, DirectOptions::default(), tolerance, 5);
            assert!(report.solved && residual <= 1.1 * tolerance, "{} {n} {class:?}: {report:?}", T::NAME);
            if class == Class::Definite && n > 1 {
                assert_eq!(report.kind, Kind::Cholesky, "{report:?}");
                assert!(report.condition.is_some_and(|c| (1.0..1e3).contains(&c)), "{report:?}");
            }
        }
    }
}

#[test]
fn random_matrices_of_all_types_and_classes() {
    use Class::*;
    let classes = [Unsymmetric, Definite, Hermitian, Scaled, Symmetric, Singular];
    random_matrices::<f64>(1e-10, &classes);
    random_matrices::<Complex<f64>>(1e-10, &classes);
}

/// Earlier, a residual in the direction of a column of size 1e-300 was accepted as that of a least-squares solution.
#[test]
fn a_column_that_is_small_counts_in_the_certificate_of_a_least_squares_solution() {
    let a = Csr::from_parts(4, 4, vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3], vec![1e300, 1e-300, 1.0, 1e150])
        .unwrap();
    for kind in [Kind::Auto, Kind::Regularised, Kind::DenseQr] {
        let mut x = vec![0.0; 4];
        let mut direct = Direct::new(&a, DirectOptions::default().kind(kind)).unwrap();
        let report = direct.solve(&[1.0, 0.78, 1.0, 1.0], &mut x, 1e-8).unwrap();
        assert!(report.solved || report.normal_residual.is_none(), "{kind}: {x:?} {report:?}");
    }
}

/// Matrices in single precision are factorised in double precision, so that matrices with a condition number of 1e10
/// are solved too.
#[test]
fn systems_in_single_precision_are_factorised_in_doubles() {
    fn all<T: residua::solver::Solvable>() {
        let mut random = Random(6);
        for class in [Class::Unsymmetric, Class::Definite, Class::Hermitian, Class::Symmetric, Class::Scaled]
        {
            for n in [1, 7, 130] {
                let a = matrix::<T>(&mut random, n, class);
                let b = product(&a, &random.vector(n));
                let mut solver =
                    Solver::builder().method(Method::Direct).device(Device::Cpu).build(a.clone()).unwrap();
                let solution = solver.solve(&b).unwrap();
                let (report, residual) = (&solution.report, relative(&a, &b, &solution.x));
                assert!(
                    report.outcome.is_converged() && residual < 2e-5,
                    "{} {n} {class:?}: {residual:e} {report:?}",
                    T::NAME
                );
            }
        }
    }
    all::<f32>();
    all::<Complex<f32>>();
}

#[test]
fn every_kind_that_suits_solves_alone() {
    let a = matrix::<Complex<f64>>(&mut Random(4), 60, Class::Definite);
    for kind in [Kind::Cholesky, Kind::Ldlt, Kind::Lu, Kind::SupernodalLu, Kind::DenseQr] {
        let (report, residual) = solved(&a, DirectOptions::default().kind(kind), 1e-12, 1);
        assert!(report.solved && residual < 2e-12 && report.kind == kind, "{report:?}");
    }
}

/// A saddle point: blocks of zeros on the diagonal, whose rows need pivots outside the diagonal. If `scaled`, rows and
/// columns have factors over twelve decades.
#[allow(clippy::needless_range_loop)] // entries are set in pairs
fn saddle<T: Factorable>(n: usize, constraints: usize, scaled: bool, seed: u64) -> Csr<T> {
    let mut random = Random(seed);
    let all = n + constraints;
    let mut dense = vec![vec![T::zero(); all]; all];
    for i in 0..n {
        let j = random.below(n);
        let value = random.scalar::<T>();
        (dense[i][j], dense[j][i]) = (value, value);
        dense[i][i] = if i % 3 == 0 { T::zero() } else { random.scalar::<T>() };
    }
    for k in 0..constraints {
        for j in [k, random.below(n), random.below(n)] {
            let value = T::from_f64(1.0) + random.scalar::<T>();
            (dense[n + k][j], dense[j][n + k]) = (value, value);
        }
    }
    if scaled {
        let factors: Vec<T> = random.vec(all, |random| T::from_f64(10_f64.powf(6.0 * random.signed())));
        for i in 0..all {
            // Factors are applied one after another in the same order for both places, so that they stay equal.
            for j in 0..i + 1 {
                let value = dense[i][j] * (factors[i] * factors[j]);
                (dense[i][j], dense[j][i]) = (value, value);
            }
        }
    }
    sparse(dense)
}

#[test]
fn symmetric_indefinite_systems_are_solved_in_fronts() {
    fn all<T: Factorable>() {
        for (n, constraints) in [(1, 1), (5, 3), (40, 17), (120, 60)] {
            for seed in 1..6 {
                for scaled in [false, true] {
                    let a = saddle::<T>(n, constraints, scaled, seed);
                    let (fronts, residual) =
                        solved(&a, DirectOptions::default().kind(Kind::FrontalLdlt), 1e-9, seed);
                    // Random matrices may be singular; then other kinds must say so, too.
                    let (qr, _) = solved(&a, DirectOptions::default().kind(Kind::SupernodalLu), 1e-9, seed);
                    assert!(
                        !qr.solved || fronts.solved && residual <= 1.1e-9,
                        "{} {n} {constraints} {seed} {scaled}: {fronts:?} {qr:?}",
                        T::NAME
                    );
                }
            }
        }
    }
    all::<f64>();
    all::<Complex<f64>>();
    let a = matrix::<f64>(&mut Random(4), 60, Class::Unsymmetric);
    let (report, _) = solved(&a, DirectOptions::default().kind(Kind::FrontalLdlt), 1e-9, 1);
    assert!(!report.solved && matches!(report.reasons[0].1, Reason::Refused(_)), "{report:?}");
}

#[test]
fn complex_symmetric_matrices_get_fronts_of_half_the_size_and_new_values_keep_them() {
    let mut a = residua::generate::helmholtz_absorbing([30, 28, 1], 10.0).unwrap();
    let (report, residual) = solved(&a, DirectOptions::default(), 1e-10, 2);
    assert!(report.kind == Kind::FrontalLdlt && report.solved && residual < 1e-10, "{report:?}");
    let (lu, _) = solved(&a, DirectOptions::default().kind(Kind::FrontalLu), 1e-10, 2);
    assert!(3 * report.factor_bytes < 2 * lu.factor_bytes, "{} {}", report.factor_bytes, lu.factor_bytes);
    let mut direct = Direct::new(&a, DirectOptions::default()).unwrap();
    let rotated = Complex::new(0.6, 0.8);
    a.values_mut().iter_mut().for_each(|value| *value *= rotated);
    direct.update(&a).unwrap();
    let b = product(&a, &Random(9).vector(a.columns()));
    let mut x = vec![Complex::default(); a.columns()];
    let report = direct.solve(&b, &mut x, 1e-10).unwrap();
    assert!(report.solved && report.kind == Kind::FrontalLdlt && relative(&a, &b, &x) < 2e-10, "{report:?}");
    // One entry without a mirror image: L D L^T does not apply.
    let upper = (0..a.rows()).scan(0, |at, row| {
        let start = *at;
        *at += a.row(row).0.len();
        Some((start, a.row(row).0.iter().position(|&column| column as usize > row)))
    });
    let place = upper.filter_map(|(start, place)| place.map(|place| start + place)).next().unwrap();
    a.values_mut()[place] *= Complex::new(1.5, 0.0);
    direct.update(&a).unwrap();
    let b = product(&a, &Random(10).vector(a.columns()));
    let report = direct.solve(&b, &mut x, 1e-10).unwrap();
    assert!(report.solved && report.kind != Kind::FrontalLdlt && relative(&a, &b, &x) < 2e-10, "{report:?}");
}

#[test]
fn new_values_on_the_pattern() {
    let mut a = matrix::<f64>(&mut Random(5), 80, Class::Unsymmetric);
    let mut direct = Direct::new(&a, DirectOptions::default()).unwrap();
    a.values_mut().iter_mut().enumerate().for_each(|(k, value)| *value *= 1.0 + (k % 3) as f64 / 4.0);
    direct.update(&a).unwrap();
    let b = product(&a, &vec![1.0; 80]);
    let mut x = vec![0.0; 80];
    assert!(direct.solve(&b, &mut x, 1e-12).unwrap().solved && relative(&a, &b, &x) < 2e-12);
    let other = matrix::<f64>(&mut Random(6), 80, Class::Unsymmetric);
    assert!(direct.update(&other).is_err());
}

#[test]
fn what_cannot_be_solved_has_a_reason() {
    let solve = |a: &Csr<f64>, b: &[f64], options| {
        let mut x = vec![0.0; a.columns()];
        let report = Direct::new(a, options).unwrap().solve(b, &mut x, 1e-8).unwrap();
        (report, x)
    };
    // Two equal rows, and a right-hand side with which they contradict each other: a least-squares solution is
    // returned, and not called solved.
    let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0; 4]).unwrap();
    let (report, _) = solve(&a, &[1.0, 0.0], DirectOptions::default());
    assert!(!report.solved && report.reasons.iter().any(|(_, r)| *r == Reason::Inconsistent), "{report:?}");
    assert!(report.normal_residual.is_some_and(|normal| normal <= 1e-10), "{report:?}");
    let (report, x) = solve(&a, &[1.0, 1.0], DirectOptions::default().kind(Kind::DenseQr));
    assert!(report.solved && report.rank == Some(1) && report.minimum_norm, "{report:?}");
    assert!(x.iter().all(|x| (x - 0.5).abs() < 1e-14), "{x:?}");
    let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, f64::NAN, 1.0, 1.0]).unwrap();
    let (report, _) = solve(&a, &[1.0, 0.0], DirectOptions::default());
    assert!(!report.solved && report.reasons[0].1 == Reason::NotFinite, "{report:?}");
    let a = matrix::<f64>(&mut Random(7), 50, Class::Definite);
    let (report, _) = solve(&a, &[1.0; 50], DirectOptions::default().kind(Kind::Cholesky).memory_limit(100));
    assert!(matches!(report.reasons[0].1, Reason::TooLarge { bytes: 101.., limit: 100 }), "{report:?}");
}

/// A grid of points with three unknowns each, all entries 1, as in the pattern files of the Harwell-Boeing collection:
/// two thirds of the rows are copies of others, and L D L^H with small pivots replaced is useless (bcsstk33 took 27 000
/// iterations of MINRES). If `skewed`, rows and columns have different factors.
fn of_ones<T: Scalar>(side: usize, skewed: bool) -> Csr<T> {
    let (points, mut starts, mut indices) = (side * side, vec![0], Vec::new());
    for row in 0..3 * points {
        let (x, y) = (row / 3 % side, row / 3 / side);
        for (near_y, near_x) in (y.max(1) - 1..(y + 2).min(side))
            .flat_map(|v| (x.max(1) - 1..(x + 2).min(side)).map(move |u| (v, u)))
        {
            indices.extend((0..3).map(|k| (3 * (near_y * side + near_x) + k) as u32));
        }
        starts.push(indices.len());
    }
    let factor = |k: usize| if skewed { 1.0 + (k % 7) as f64 } else { 1.0 };
    let rows = starts.windows(2).enumerate().flat_map(|(row, w)| (w[0]..w[1]).map(move |k| (row, k)));
    let values = rows.map(|(row, k)| T::from_f64(factor(row) / factor(indices[k] as usize + 3))).collect();
    Csr::from_parts(3 * points, 3 * points, starts, indices, values).unwrap()
}

#[test]
fn consistent_systems_of_a_matrix_with_a_large_null_space_are_solved_around_a_regular_factor() {
    fn all<T: Factorable>(tolerance: f64) {
        for (skewed, kind) in
            [(false, Kind::ShiftedLdlt), (false, Kind::Regularised), (true, Kind::Regularised)]
        {
            let a = of_ones::<T>(14, skewed);
            let (report, residual) = solved(&a, DirectOptions::default().kind(kind), tolerance, 3);
            assert!(report.solved && residual <= 1.1 * tolerance, "{skewed} {kind}: {residual:e} {report:?}");
            assert!(report.condition.is_none() && report.normal_residual.is_none());
        }
    }
    all::<f64>(1e-8);
    all::<Complex<f64>>(1e-8);
}

#[test]
fn systems_without_a_solution_end_as_least_squares_ones_with_a_certificate() {
    for skewed in [false, true] {
        let a = of_ones::<f64>(14, skewed);
        let b = Random(8).vector::<f64>(a.rows());
        let mut x = vec![0.0; a.columns()];
        let report = Direct::new(&a, DirectOptions::default()).unwrap().solve(&b, &mut x, 1e-8).unwrap();
        assert!(
            !report.solved && report.reasons.iter().any(|(_, r)| *r == Reason::Inconsistent),
            "{report:?}"
        );
        // The certificate, computed anew: A^T (b - A x).
        let r: Vec<f64> = b.iter().zip(product(&a, &x)).map(|(b, y)| b - y).collect();
        let mut normal = vec![0.0; a.columns()];
        for (row, r) in r.iter().enumerate() {
            let (indices, values) = a.row(row);
            indices.iter().zip(values).for_each(|(&j, a)| normal[j as usize] += a * r);
        }
        let size = norm(a.parts().values) * norm(&r);
        assert!(norm(&normal) <= 1e-9 * size, "{:e} {report:?}", norm(&normal) / size);
        assert!(report.normal_residual.is_some_and(|normal| normal <= 1e-10), "{report:?}");
        // x is not one of the solutions that are a million times as long.
        assert!(norm(&x) < 1e4 * norm(&b), "{:e}", norm(&x));
    }
}

/// Convection and diffusion with no flow through any wall: rows add up to zero and differ in size. With scaled rows the
/// least-squares solution would be another one, so an earlier version used a dense QR (seconds for 2500 unknowns).
#[test]
fn unsymmetric_systems_without_a_solution_need_no_dense_factorisation() {
    let side = 28_usize;
    let n = side * side;
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..n {
        let (x, y) = (row % side, row / side);
        let mut entries = Vec::new();
        let mut couple = |there: bool, column: usize, weight: f64| {
            if there {
                entries.push((column, -weight));
            }
        };
        couple(y > 0, row.wrapping_sub(side), 0.95);
        couple(x > 0, row.wrapping_sub(1), 0.9);
        couple(x + 1 < side, row + 1, 1.1);
        couple(y + 1 < side, row + side, 1.05);
        entries.push((row, -entries.iter().map(|(_, value)| value).sum::<f64>()));
        entries.sort_unstable_by_key(|&(column, _)| column);
        let size = 1.0 + (row % 5) as f64;
        indices.extend(entries.iter().map(|&(column, _)| column as u32));
        values.extend(entries.iter().map(|&(_, value)| size * value));
        starts.push(indices.len());
    }
    let a = Csr::from_parts(n, n, starts, indices, values).unwrap();
    let b = Random(4).vector::<f64>(n);
    let mut x = vec![0.0; n];
    let report = Direct::new(&a, DirectOptions::default()).unwrap().solve(&b, &mut x, 1e-8).unwrap();
    assert!(!report.solved && report.kind == Kind::Regularised, "{report:?}");
    assert!(report.normal_residual.is_some_and(|normal| normal <= 1e-10), "{report:?}");
    let r: Vec<f64> = b.iter().zip(product(&a, &x)).map(|(b, y)| b - y).collect();
    let mut normal = vec![0.0; n];
    for (row, r) in r.iter().enumerate() {
        let (indices, values) = a.row(row);
        indices.iter().zip(values).for_each(|(&j, a)| normal[j as usize] += a * r);
    }
    assert!(norm(&normal) <= 1e-9 * norm(a.parts().values) * norm(&r), "{:e}", norm(&normal));
}

#[test]
fn least_squares_of_a_tall_matrix() {
    let a = Csr::from_parts(3, 1, vec![0, 1, 2, 3], vec![0; 3], vec![1.0; 3]).unwrap();
    let mut x = [0.0];
    let report = Direct::new(&a, DirectOptions::default()).unwrap().solve(&[1.0, 2.0, 6.0], &mut x, 1e-8);
    assert!((x[0] - 3.0_f64).abs() < 1e-14 && !report.unwrap().solved);
}

/// Every square file of the collection up to a given size, or those whose names start with `RESIDUA_ONLY`, of any size.
#[test]
fn collection() {
    let Some(folder) = collection::folder() else { return };
    let (mut all, mut good, mut total, mut false_success) = (0, 0, 0.0, 0);
    let only = std::env::var("RESIDUA_ONLY").ok();
    for row in collection::table(&folder.join("index.csv")) {
        let name = &row["file"];
        let small = row["rows"].parse::<usize>().is_ok_and(|rows| rows <= 1000);
        if row["rows"] != row["cols"] || !only.as_ref().map_or(small, |only| name.starts_with(only.as_str()))
        {
            continue;
        }
        let path = folder.join(name);
        let result = if row["field"] == "complex" { file::<Complex<f64>>(&path) } else { file::<f64>(&path) };
        let Some((seconds, report, residual)) = result else { continue };
        all += 1;
        total += seconds;
        good += usize::from(residual <= 1e-8);
        // Sums in another order and in working precision may be slightly larger.
        false_success += usize::from(report.solved && residual > 1.1e-8);
        let mark = if report.solved { "" } else { "FAILED" };
        println!(
            "{name:40} {:>13} {residual:8.1e} {seconds:7.3} s, {} + {} steps {mark} {:?}",
            report.kind.to_string(),
            report.refinements,
            report.iterations,
            report.reasons
        );
    }
    println!("{good} of {all} to 1e-8 in {total:.2} s, {false_success} claimed and missed");
    assert_eq!(false_success, 0);
    assert!(only.is_some() || 20 * good >= 19 * all, "{good} of {all}");
}

/// With pivots of at least a tenth of the largest candidate, pivots left the diagonal of such matrices, and a circuit
/// with 10^5 nodes took minutes instead of one second.
#[test]
fn circuits_keep_to_the_fill_that_was_forecast() {
    let a = residua::generate::circuit(8000, 1e3, 2).unwrap();
    let forecast = Direct::analyse(&a, &DirectOptions::default()).unwrap();
    let x: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 1009) as f64 / 500.0 - 1.0).collect();
    let mut b = vec![0.0; a.rows()];
    a.product(&residua::Host, 1.0, &x[..], 0.0, &mut b[..]).unwrap();
    let mut direct = Direct::planned(&a, DirectOptions::default()).unwrap();
    let mut found = vec![0.0; a.rows()];
    let stopped = direct.solve_while(&b, &mut found, 1e-10, &mut || false).unwrap();
    assert!(
        !stopped.solved && stopped.reasons.iter().any(|(_, reason)| *reason == Reason::Stopped),
        "{stopped}"
    );
    let report = direct.solve(&b, &mut found, 1e-10).unwrap();
    assert!(report.solved, "{report}");
    // An entry of the factor is stored with its row, and buffers grow by half their size.
    let most = 2.0 * 1.5 * forecast.bytes + 1e5;
    assert!(
        (report.factor_bytes as f64) < most,
        "{} bytes, {} were forecast",
        report.factor_bytes,
        forecast.bytes
    );
}

#[test]
fn the_host_has_no_library_and_says_so() {
    let a = matrix::<f64>(&mut Random(5), 10, Class::Definite);
    let error = OnDevice::planned(&Host, &a, DeviceOptions::default()).err().unwrap().to_string();
    assert!(error.contains("factorisations by a library"), "{error}");
}
