//! One hierarchy over all ranks.

use crate::on_parts;
use num_complex::Complex;
use residua::backend::{Communicator, Parts, Space};
use residua::generate::{self, Random};
use residua::multigrid::{Multigrid, MultigridOptions};
use residua::precondition::Preconditioner;
use residua::scalar::Real;
use residua::solver::{self, PreconditionerChoice, Solver};
use residua::{Csr, Host, Result, Scalar, Triplets, assemble};

/// Checks the numbers of iterations, and returns the description of the preconditioner on four ranks.
fn multigrid_takes_the_iterations_of_one_part(
    name: &str,
    a: &Csr<f64>,
    how: &str,
    method: solver::Method,
) -> String {
    let mut last = String::new();
    let mut random = Random::new(7);
    let b: Vec<f64> = (0..a.rows()).map(|_| random.unit() - 0.5).collect();
    let wishes = Solver::<f64>::builder().method(method).preconditioner(how.parse().unwrap());
    let alone = wishes.clone().device(solver::Device::Cpu).build(a.clone()).unwrap().solve(&b).unwrap();
    let mut one = alone.report.iterations;
    for parts in [1, 2, 3, 4] {
        let (x, report) = on_parts(a, &b, parts, &wishes);
        let decision = report.trail.decisions.iter().find(|decision| decision.subject == "preconditioner");
        let (iterations, told) = (report.iterations, decision.unwrap().why.clone());
        assert!(told.contains("of all ranks together"), "{name}, {parts} parts: {told}");
        println!("{name} {how}, {parts} parts: {iterations} iterations, {one} alone; {told}");
        if parts == 1 {
            // Boxes of points, which ranks use on grids, take more iterations than the interpolation of a single
            // solver.
            assert!(iterations <= 2 * one, "{name}, one part: {iterations} iterations, {one} alone; {told}");
            one = one.max(iterations);
        }
        let most = one + (one / 5).max(1);
        assert!(iterations <= most, "{name}, {parts} parts: {iterations} iterations, {one} alone; {told}");
        let mut r = b.clone();
        a.product(&Host, -1.0, &x, 1.0, &mut r).unwrap();
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!(norm(&r) <= 1.01e-8 * norm(&b), "{name}, {parts} parts: {:e}", norm(&r) / norm(&b));
        if parts == 3 {
            assert_eq!(on_parts(a, &b, parts, &wishes).0, x, "{name}, {parts} parts: other bits");
        }
        last = told;
    }
    last
}

#[test]
fn multigrid_of_grids() {
    let cases = [
        ("plane", generate::poisson2d(150, 131).unwrap(), solver::Method::Cg),
        ("jumps", generate::jumping([16, 15, 128], 1e2, 5, 3).unwrap(), solver::Method::Cg),
        ("27 points", generate::poisson3d_27(25, 21, 30).unwrap(), solver::Method::Cg),
        ("convection", generate::convection_diffusion([24, 22, 26], 1e-1).unwrap(), solver::Method::Gmres),
    ];
    for (name, a, method) in cases {
        let told = multigrid_takes_the_iterations_of_one_part(name, &a, "amg", method);
        assert!(told.contains("levels on grids"), "{name}: {told}");
    }
}

/// The distance between the results of a cycle on several ranks, which divide the grid of this matrix by planes, and on
/// one rank.
fn cycles_apart<T: Scalar>(a: &Csr<T>, plane: usize, bounds: &[usize]) -> f64 {
    let options = MultigridOptions::default().narrow(false);
    let mut random = Random::new(11);
    let b: Vec<T> = (0..a.rows()).map(|_| T::from_f64(random.unit() - 0.5)).collect();
    let applied = |bounds: &[usize]| -> Vec<T> {
        let rows: Vec<_> = bounds.windows(2).map(|at| at[0] * plane..at[1] * plane).collect();
        let of_parts: Vec<Vec<T>> = std::thread::scope(|scope| {
            let part_of = |part: Parts| {
                let (rows, options, b) = (&rows, &options, &b);
                scope.spawn(move || {
                    let own = rows[Communicator::<Host>::part(&part)].clone();
                    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
                    for row in own.clone() {
                        columns.extend_from_slice(a.row(row).0);
                        values.extend_from_slice(a.row(row).1);
                        offsets.push(values.len());
                    }
                    let ours = Csr::from_parts(own.len(), a.columns(), offsets, columns, values)?;
                    let m = Multigrid::spread(&Space::spread(Host, part), &ours, rows, options)?;
                    assert!(m.facts().grid, "{}", m.facts());
                    let mut x = vec![T::zero(); own.len()];
                    m.apply(&Host, &b[own], &mut x[..])?;
                    Ok(x)
                })
            };
            let threads: Vec<_> = Parts::new(rows.len()).into_iter().map(part_of).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
        });
        of_parts.concat()
    };
    let (one, several) = (applied(&[bounds[0], bounds[bounds.len() - 1]]), applied(bounds));
    let norm = |x: &[T]| x.iter().map(|x| x.abs().to_f64().powi(2)).sum::<f64>().sqrt();
    let apart: Vec<T> = one.iter().zip(&several).map(|(&one, &several)| one - several).collect();
    norm(&apart) / norm(&one)
}

/// Points between those of the next level, whose weights and couplings cross the boundaries of ranks.
#[test]
fn a_cycle_of_several_parts_is_that_of_one() {
    // Rows must differ, or a CPU uses boxes.
    let varied = |mut a: Csr<f64>| {
        let mut random = Random::new(5);
        let d: Vec<f64> = (0..a.rows()).map(|_| 0.9 + 0.2 * random.unit()).collect();
        let scaled = |row: usize| {
            let (columns, values) = a.row(row);
            columns.iter().zip(values).map(|(&j, value)| value * d[row] * d[j as usize]).collect::<Vec<_>>()
        };
        let scaled: Vec<f64> = (0..a.rows()).flat_map(scaled).collect();
        a.values_mut().copy_from_slice(&scaled);
        a
    };
    let seven = varied(generate::poisson3d(16, 15, 48).unwrap());
    let jumps = generate::jumping([15, 16, 99], 1e3, 5, 3).unwrap();
    let all = varied(generate::poisson3d_27(15, 17, 41).unwrap());
    let flat = varied(generate::poisson2d(90, 170).unwrap());
    for (name, a, plane, bounds) in [
        ("7 points", &seven, 240, vec![0, 16, 24, 48]),
        ("7 points, unlike parts", &seven, 240, vec![0, 4, 40, 44, 48]),
        ("jumps", &jumps, 240, vec![0, 32, 64, 99]),
        ("jumps, the last with three planes, two and one", &jumps, 240, vec![0, 48, 96, 99]),
        ("27 points", &all, 255, vec![0, 20, 41]),
        ("plane", &flat, 90, vec![0, 40, 48, 120, 170]),
    ] {
        let apart = cycles_apart(a, plane, &bounds);
        assert!(apart < 1e-12, "{name}: {apart:e}");
    }
    // The same with couplings to the right multiplied by i and couplings to the left by -i.
    let turned = |a: &Csr<f64>| {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        let mut offsets = vec![0];
        for row in 0..a.rows() {
            for (&column, &value) in a.row(row).0.iter().zip(a.row(row).1) {
                let turn = match (column as usize).cmp(&row) {
                    std::cmp::Ordering::Less => Complex::new(0.8, -0.6),
                    std::cmp::Ordering::Equal => Complex::new(1.0, 0.0),
                    std::cmp::Ordering::Greater => Complex::new(0.8, 0.6),
                };
                columns.push(column);
                values.push(turn * value);
            }
            offsets.push(values.len());
        }
        Csr::from_parts(a.rows(), a.columns(), offsets, columns, values).unwrap()
    };
    let apart = cycles_apart(&turned(&jumps), 240, &[0, 32, 64, 99]);
    assert!(apart < 1e-12, "complex: {apart:e}");
    // Ranks that do not begin with a plane of the next level use boxes, which are within a rank.
    assert!(cycles_apart(&seven, 240, &[0, 15, 48]) > 1e-3);
}

#[test]
fn multigrid_of_aggregates() {
    let cases = [
        ("grid", generate::poisson2d(150, 130).unwrap()),
        ("jumps", generate::jumping([26, 25, 24], 1e3, 5, 3).unwrap()),
        ("elements", generate::wathen(60, 50, 2).unwrap()),
    ];
    for (name, a) in cases {
        multigrid_takes_the_iterations_of_one_part(name, &a, "amg:boxes=no", solver::Method::Cg);
    }
    let a = generate::convection_diffusion([24, 22, 20], 1e-1).unwrap();
    multigrid_takes_the_iterations_of_one_part("convection", &a, "amg:boxes=no", solver::Method::Gmres);
}

#[test]
fn multigrid_behind_conjugate_gradients_that_do_not_come_far() {
    // Coefficients over four decades between blocks in random order: many iterations, and no recognisable grid.
    let a = generate::jumping([24, 24, 24], 1e4, 3, 5).unwrap();
    let mut random = Random::new(11);
    let mut order: Vec<usize> = (0..a.rows()).collect();
    (1..a.rows()).for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
    let mut triplets = Triplets::new(a.rows(), a.rows()).unwrap();
    for (i, j, value) in a.iter() {
        triplets.push(order[i], order[j], value).unwrap();
    }
    let a = assemble::to_csr(&Host, triplets).unwrap();
    let mut random = Random::new(8);
    let b: Vec<f64> = (0..a.rows()).map(|_| random.unit() - 0.5).collect();
    let (x, report) = on_parts(&a, &b, 2, &Solver::<f64>::builder());
    let mut r = b.clone();
    a.product(&Host, -1.0, &x, 1.0, &mut r).unwrap();
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    assert!(norm(&r) <= 1.01e-8 * norm(&b), "{:e}", norm(&r) / norm(&b));
    assert!(matches!(report.preconditioner, PreconditionerChoice::Multigrid(_)), "{report:?}");
    assert!((30..150).contains(&report.iterations), "{report:?}");
}
