//! Every method on a matrix whose rows are distributed over 1, 2, 3 and 7 ranks, each on a thread of its own: the same
//! answer as on one, and the same bits on every rank and in every run.

use num_complex::Complex;
use residua::backend::{Communicator, ExchangePlan, Parts, Space};
use residua::generate::{self, Random};
use residua::krylov::{
    BiConjugateGradients, ConjugateGradients, FlexibleMinimalResidual, Krylov, LeastSquaresResidual, Method,
    MinimalResidual, Outcome, Report, SolveOptions,
};
use residua::multigrid::{Multigrid, MultigridOptions};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::scalar::Real;
use residua::solver::{self, PreconditionerChoice, SolveReport, Solver};
use residua::spread::{Spread, even_parts};
use residua::{Csr, Host, Result, Scalar, Triplets, assemble};
use std::ops::ControlFlow;

const N: usize = 90;

/// A periodic second difference in one dimension, with `left` and `right` next to the diagonal.
fn ring(left: f64, right: f64) -> Csr<f64> {
    let mut triplets = Triplets::new(N, N).unwrap();
    for i in 0..N {
        triplets.push(i, i, 2.5 + 0.01 * i as f64).unwrap();
        triplets.push(i, (i + 1) % N, right).unwrap();
        triplets.push((i + 1) % N, i, left).unwrap();
        triplets.push(i, (i + 37) % N, 0.1 * right).unwrap();
        triplets.push((i + 37) % N, i, 0.1 * left).unwrap();
    }
    assemble::to_csr(&Host, triplets).unwrap()
}

fn random(seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..N).map(|_| random.unit() - 0.5).collect()
}

/// x and the reports of all ranks.
fn solve<M: Method<f64, Host, Parts>>(
    a: &Csr<f64>,
    b: &[f64],
    parts: usize,
    jacobi: bool,
    method: impl Fn(usize) -> Result<M> + Sync,
) -> (Vec<f64>, Vec<Report>) {
    let rows = even_parts(N, parts);
    let solved: Vec<(Vec<f64>, Report)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(parts)
            .into_iter()
            .map(|part| {
                let (rows, method) = (rows.clone(), &method);
                scope.spawn(move || {
                    let own = rows[Communicator::<Host>::part(&part)].clone();
                    let spread = Spread::new(&Host, part.clone(), a, &rows)?;
                    let space = Space::spread(Host, part);
                    let mut solver = Krylov::with_method(space, method(own.len())?, SolveOptions::default())?;
                    // Jacobi for the rows of this rank, made from a matrix that has only their diagonal.
                    let diagonal =
                        own.clone().map(|i| a.row(i).1[a.row(i).0.binary_search(&(i as u32)).unwrap()]);
                    let n = own.len();
                    let part = Csr::from_parts(
                        n,
                        n,
                        (0..=n).collect(),
                        (0..n as u32).collect(),
                        diagonal.collect(),
                    )?;
                    let scaled = Jacobi::new(&Host, &part)?;
                    let m: &dyn Preconditioner<f64, Host> = if jacobi { &scaled } else { &Identity };
                    let mut x = vec![0.0; n];
                    let report =
                        solver.solve(&spread, m, &b[own], &mut x, |_, _| ControlFlow::Continue(()))?;
                    Ok((x, report))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
    });
    let reports = solved.iter().map(|(_, report)| *report).collect();
    (solved.into_iter().flat_map(|(x, _)| x).collect(), reports)
}

fn same_on_all_parts<M: Method<f64, Host, Parts>>(
    name: &str,
    a: &Csr<f64>,
    method: impl Fn(usize) -> Result<M> + Sync,
) {
    let solution = random(3);
    let mut b = vec![0.0; N];
    a.product(&Host, 1.0, &solution, 0.0, &mut b).unwrap();
    for jacobi in [false, true] {
        let mut iterations = None;
        for parts in [1, 2, 3, 7] {
            let (x, reports) = solve(a, &b, parts, jacobi, &method);
            let told = |r: &Report| (r.outcome, r.iterations, r.residual_norm.to_bits());
            assert!(
                reports.iter().all(|r| told(r) == told(&reports[0])),
                "{name}, {parts} parts: {reports:?}"
            );
            assert_eq!(reports[0].outcome, Outcome::Converged, "{name}, {parts} parts: {:?}", reports[0]);
            let wrong = x.iter().zip(&solution).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(wrong < 1e-7, "{name}, {parts} parts: {wrong:e}");
            let first = *iterations.get_or_insert(reports[0].iterations);
            assert!(reports[0].iterations.abs_diff(first) <= 2, "{name}: {first} {:?}", reports[0]);
            assert_eq!(solve(a, &b, parts, jacobi, &method).0, x, "{name}, {parts} parts: other bits");
        }
    }
}

#[test]
fn conjugate_gradients() {
    same_on_all_parts("cg", &ring(-1.0, -1.0), |n| ConjugateGradients::new(&Host, n));
}

#[test]
fn minres() {
    same_on_all_parts("minres", &ring(-1.1, -1.1), |n| MinimalResidual::new(&Host, n));
}

#[test]
fn gmres() {
    // Every rank restarts after the same number of iterations.
    same_on_all_parts("gmres", &ring(-0.4, -1.1), |n| FlexibleMinimalResidual::new(&Host, n, 10));
}

#[test]
fn bicgstab() {
    same_on_all_parts("bicgstab", &ring(-0.4, -1.1), |n| BiConjugateGradients::new(&Host, n));
}

#[test]
fn lsmr() {
    same_on_all_parts("lsmr", &ring(-0.4, -1.1), |n| LeastSquaresResidual::new(&Host, n, n));
}

/// Earlier, a rank whose diagonal entries are all equal used M = I, and computed other sums than the ranks that scaled.
#[test]
fn a_diagonal_that_is_even_on_one_part_alone() {
    let mut triplets = Triplets::new(N, N).unwrap();
    for i in 0..N {
        triplets.push(i, i, if i < N / 3 { 4.0 } else { 3.0 + i as f64 }).unwrap();
        if i > 0 {
            triplets.push(i, i - 1, -1.0).unwrap();
            triplets.push(i - 1, i, -1.0).unwrap();
        }
    }
    let a = assemble::to_csr(&Host, triplets).unwrap();
    let (solution, mut b) = (random(5), vec![0.0; N]);
    a.product(&Host, 1.0, &solution, 0.0, &mut b).unwrap();
    let wishes =
        || Solver::<f64>::builder().method(solver::Method::Cg).preconditioner(PreconditionerChoice::Jacobi);
    let alone = wishes().device(solver::Device::Cpu).build(a.clone()).unwrap().solve(&b).unwrap();
    let solved: Vec<(Vec<f64>, usize)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(3)
            .into_iter()
            .map(|part| {
                let (a, b, wishes) = (&a, &b, wishes());
                scope.spawn(move || {
                    let mut solver = wishes.reorder(solver::Reorder::None).build_spread(&Host, part, a)?;
                    let mut x = vec![0.0; solver.numbers().len()];
                    let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                    Ok((x, report.iterations))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
    });
    assert!(solved.iter().all(|(_, iterations)| iterations.abs_diff(alone.report.iterations) <= 2));
    let x = solved.into_iter().flat_map(|(x, _)| x);
    assert!(x.zip(&solution).all(|(x, y)| (x - y).abs() < 1e-6));
}

/// Ranks that report slow communication.
#[derive(Debug, Clone)]
struct Slow(Parts);

impl Communicator<Host> for Slow {
    const ALONE: bool = false;

    fn part(&self) -> usize {
        Communicator::<Host>::part(&self.0)
    }

    fn parts(&self) -> usize {
        Communicator::<Host>::parts(&self.0)
    }

    fn all_sum<T: Scalar>(&self, backend: &Host, sums: &mut [T]) -> Result<()> {
        self.0.all_sum(backend, sums)
    }

    fn exchange<T: Scalar>(
        &self,
        backend: &Host,
        plan: &ExchangePlan,
        send: &[T],
        halo: &mut [T],
    ) -> Result<()> {
        self.0.exchange(backend, plan, send, halo)
    }

    fn agree(&self, stop: bool) -> Result<bool> {
        Communicator::<Host>::agree(&self.0, stop)
    }

    fn waits(&self) -> bool {
        true
    }

    fn latency(&self) -> f64 {
        1.0
    }

    fn deliver(&self, to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Communicator::<Host>::deliver(&self.0, to_each)
    }
}

#[test]
fn a_small_system_is_left_to_one_part_where_meetings_are_slow() {
    let (a, solution, mut b) = (ring(-1.0, -1.0), random(5), vec![0.0; N]);
    a.product(&Host, 1.0, &solution, 0.0, &mut b).unwrap();
    let (a, b) = (&a, &b);
    for all in [false, true] {
        let solved: Vec<(Option<Vec<f64>>, usize, Told)> = std::thread::scope(|scope| {
            let threads: Vec<_> = Parts::new(3)
                .into_iter()
                .map(|part| {
                    scope.spawn(move || {
                        let wishes = Solver::<f64>::builder().all_parts(all);
                        let mut solver = wishes.build_spread(&Host, Slow(part), a)?;
                        let mut x = vec![0.0; solver.numbers().len()];
                        let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                        let decision = report.trail.decisions.iter().find(|d| d.subject == "ranks").unwrap();
                        let told = (report.outcome, report.iterations, decision.chosen.clone());
                        Ok((solver.whole(&x)?, x.len(), told))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
        });
        assert!(solved.iter().all(|(_, _, told)| *told == solved[0].2), "{solved:?}");
        assert_eq!(
            (solved[0].2.0, &*solved[0].2.2),
            (Outcome::Converged, if all { "3" } else { "one of 3 ranks" })
        );
        let rows: Vec<usize> = solved.iter().map(|(_, rows, _)| *rows).collect();
        assert_eq!(rows == [N, 0, 0], !all, "{rows:?}");
        let x = solved[0].0.as_ref().unwrap();
        assert!(x.iter().zip(&solution).all(|(x, y)| (x - y).abs() < 1e-6));
        assert!(solved[1].0.is_none());
    }
}

/// Outcome, iterations, and the number of ranks that took part.
type Told = (Outcome, usize, String);

/// No rank waits for one that has ended.
#[test]
fn a_part_that_ends_early_ends_the_others() {
    let mut parts = Parts::new(2);
    let (second, first) = (parts.pop().unwrap(), parts.pop().unwrap());
    drop(second);
    let error = first.all_sum(&Host, &mut [1.0_f64]).unwrap_err();
    assert!(error.to_string().contains("part 1 of 2 has ended"), "{error}");
}

/// Solves a system on `parts` ranks.
fn on_parts(a: &Csr<f64>, b: &[f64], parts: usize, wishes: &solver::Builder) -> (Vec<f64>, SolveReport) {
    let solved: Vec<(Vec<u32>, Vec<f64>, SolveReport)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(parts)
            .into_iter()
            .map(|part| {
                scope.spawn(move || {
                    let mut solver = wishes.build_spread(&Host, part, a)?;
                    let mut x = vec![0.0; solver.numbers().len()];
                    let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                    Ok((solver.numbers().to_vec(), x, report))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
    });
    let mut x = vec![0.0; a.rows()];
    for (numbers, own, report) in &solved {
        assert!(report.outcome.is_converged(), "{parts} parts: {report:?}");
        assert_eq!(report.residual_norm.to_bits(), solved[0].2.residual_norm.to_bits());
        numbers.iter().zip(own).for_each(|(&number, &value)| x[number as usize] = value);
    }
    let (_, _, report) = solved.into_iter().next().unwrap();
    (x, report)
}

#[test]
fn negative_definite() {
    let a = ring(-1.0, -1.0).map(|value| -value);
    let b = random(4);
    let wishes = Solver::builder().method(solver::Method::Cg).all_parts(true).tolerance(1e-10);
    for parts in [1, 2, 3] {
        let (x, report) = on_parts(&a, &b, parts, &wishes);
        assert_eq!(report.method, solver::Method::Cg);
        assert!(format!("{:?}", report.trail.decisions).contains("the diagonal is negative"));
        let residual: f64 = (&a * &x).iter().zip(&b).map(|(ax, b)| (ax - b).powi(2)).sum::<f64>().sqrt();
        assert!(
            residual <= 1e-9 * b.iter().map(|b| b * b).sum::<f64>().sqrt(),
            "{parts} parts: {residual:e}"
        );
    }
}

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

/// Products with a large stencil use another format than CSR, with the same bits in each run, and close to those of
/// CSR.
#[test]
fn the_format_that_the_model_takes_gives_the_same_bits_in_each_run() {
    let a = generate::poisson2d(220, 200).unwrap();
    let mut random = Random::new(7);
    let b: Vec<f64> = (0..a.rows()).map(|_| random.unit() - 0.5).collect();
    let wishes = Solver::<f64>::builder()
        .method(solver::Method::Cg)
        .preconditioner(PreconditionerChoice::Jacobi)
        .reorder(solver::Reorder::None)
        .tolerance(1e-11);
    let (x, report) = on_parts(&a, &b, 2, &wishes);
    let format = report.trail.decisions.iter().find(|decision| decision.subject == "format").unwrap();
    assert!(format.chosen != "csr", "{}", format.why);
    let (again, _) = on_parts(&a, &b, 2, &wishes);
    assert!(x.iter().zip(&again).all(|(x, y)| x.to_bits() == y.to_bits()));
    let (plain, report) = on_parts(&a, &b, 2, &wishes.clone().format("csr"));
    assert!(report.trail.decisions.iter().any(|d| d.subject == "format" && d.chosen == "csr"));
    let largest = plain.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    assert!(x.iter().zip(&plain).all(|(x, y)| (x - y).abs() < 1e-8 * largest));
}

/// Some rows of a matrix, with the columns of the whole.
fn rows_of<T: Scalar>(a: &Csr<T>, rows: std::ops::Range<usize>) -> Csr<T> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows.clone() {
        columns.extend_from_slice(a.row(row).0);
        values.extend_from_slice(a.row(row).1);
        offsets.push(values.len());
    }
    Csr::from_parts(rows.len(), a.columns(), offsets, columns, values).unwrap()
}

/// How a rank gets its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Whole,
    Rows,
    Own,
}

/// x and the report of rank 0, for rows that are given in one of three ways.
fn given<T: solver::Solvable>(
    a: &Csr<T>,
    b: &[T],
    rows: &[std::ops::Range<usize>],
    wishes: &solver::Builder,
    way: Way,
) -> Result<(Vec<T>, SolveReport)> {
    let solved: Vec<(Vec<T>, SolveReport)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(rows.len())
            .into_iter()
            .map(|part| {
                scope.spawn(move || {
                    let here = rows[Communicator::<Host>::part(&part)].clone();
                    let mut solver = match way {
                        Way::Whole => wishes.build_spread(&Host, part, a)?,
                        Way::Rows => wishes.build_spread_rows(&Host, part, a, rows)?,
                        Way::Own => wishes.build_spread_rows_on(&Host, part, rows_of(a, here), rows)?,
                    };
                    let mut x = vec![T::zero(); solver.numbers().len()];
                    let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                    Ok((x, report))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>()
    })?;
    let report = solved[0].1.clone();
    Ok((solved.into_iter().flat_map(|(x, _)| x).collect(), report))
}

/// A rank that has its rows alone, on the host among empty ones or in its backend's memory, solves with the bits of one
/// that was given the whole matrix.
#[test]
fn rows_given_in_any_way_solve_with_the_same_bits() {
    let symmetric = ring(-1.0, -1.0);
    let negative = symmetric.map(|value| -value);
    let plane = generate::poisson2d(60, 64).unwrap();
    let cases: [(&str, &Csr<f64>, solver::Method, &str); 9] = [
        ("cg", &symmetric, solver::Method::Cg, "jacobi"),
        ("negative", &negative, solver::Method::Cg, "jacobi"),
        ("minres", &negative, solver::Method::Minres, "none"),
        ("gmres", &ring(-0.4, -1.1), solver::Method::Gmres, "jacobi"),
        ("lsmr", &ring(-0.4, -1.1), solver::Method::Lsmr, "jacobi"),
        ("polynomial", &plane, solver::Method::Cg, "chebyshev"),
        ("grid", &plane, solver::Method::Cg, "amg"),
        ("aggregates", &plane, solver::Method::Cg, "amg:boxes=no"),
        ("auto", &plane, solver::Method::Auto, "auto"),
    ];
    for (name, a, method, preconditioner) in cases {
        let mut random = Random::new(9);
        let b: Vec<f64> = (0..a.rows()).map(|_| random.unit() - 0.5).collect();
        let mut wishes =
            Solver::<f64>::builder().method(method).all_parts(true).reorder(solver::Reorder::None);
        if preconditioner != "auto" {
            wishes = wishes.preconditioner(preconditioner.parse().unwrap());
        }
        for parts in [1, 2, 4] {
            // Whole lines of the grid, as `build_spread` divides it; it divides other matrices by their entries.
            let rows = if a.rows() == N {
                residua::spread::balanced_parts(a, parts)
            } else {
                even_parts(8, parts).iter().map(|lines| lines.start * 480..lines.end * 480).collect()
            };
            let (x, report) = given(a, &b, &rows, &wishes, Way::Own).unwrap();
            assert!(report.outcome.is_converged(), "{name}, {parts} parts: {report:?}");
            let (also, of_rows) = given(a, &b, &rows, &wishes, Way::Rows).unwrap();
            assert_eq!((&x, report.iterations), (&also, of_rows.iterations), "{name}, {parts} parts");
            let (whole, _) = given(a, &b, &rows, &wishes, Way::Whole).unwrap();
            assert_eq!(x, whole, "{name}, {parts} parts");
        }
    }
}

/// The symmetry of entries across ranks is seen by the rank that has the mirror image.
#[test]
fn an_entry_across_ranks_without_its_mirror_image_is_found() {
    let rows = even_parts(N, 3);
    let unlike = |change: f64| {
        let mut a = ring(-1.0, -1.0);
        // Row 29 is the last of rank 0, and its entry right of the diagonal belongs to rank 1.
        let place = a.parts().indices[..].iter().enumerate();
        let row = (0..29).map(|row| a.row(row).0.len()).sum::<usize>();
        let at = place.skip(row).find(|&(_, &column)| column == 30).unwrap().0;
        a.values_mut()[at] *= change;
        a
    };
    let wishes = Solver::<f64>::builder().method(solver::Method::Cg).all_parts(true);
    for way in [Way::Rows, Way::Own] {
        assert!(given(&unlike(1.0), &random(1), &rows, &wishes, way).is_ok());
        // As on one process, a difference in the last bits is rounding.
        assert!(given(&unlike(1.0 + 1e-15), &random(1), &rows, &wishes, way).is_ok());
        let error = given(&unlike(1.01), &random(1), &rows, &wishes, way).unwrap_err().to_string();
        assert!(error.contains("not symmetric"), "{error}");
    }
    // Hermitian, but not symmetric; and with a complex diagonal neither.
    let turned = |diagonal: Complex<f64>| {
        let a = ring(-1.0, -1.0);
        let (mut columns, mut values, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
        for row in 0..N {
            for (&column, &value) in a.row(row).0.iter().zip(a.row(row).1) {
                let turn = match (column as usize).cmp(&row) {
                    std::cmp::Ordering::Less => Complex::new(0.8, -0.6),
                    std::cmp::Ordering::Equal => diagonal,
                    std::cmp::Ordering::Greater => Complex::new(0.8, 0.6),
                };
                columns.push(column);
                values.push(turn * value);
            }
            offsets.push(values.len());
        }
        Csr::from_parts(N, N, offsets, columns, values).unwrap()
    };
    let b: Vec<Complex<f64>> = random(2).into_iter().map(|value| Complex::new(value, -value)).collect();
    let (_, report) = given(&turned(Complex::new(1.0, 0.0)), &b, &rows, &wishes, Way::Own).unwrap();
    assert!(report.outcome.is_converged() && report.method == solver::Method::Cg, "{report:?}");
    assert!(given(&turned(Complex::new(1.0, 0.1)), &b, &rows, &wishes, Way::Own).is_err());
}

#[test]
fn an_infinite_entry_of_any_rank_is_named() {
    let (rows, wishes) = (even_parts(N, 3), Solver::<f64>::builder().all_parts(true));
    let mut a = ring(-1.0, -1.0);
    let at = (0..70).map(|row| a.row(row).0.len()).sum::<usize>();
    let column = a.parts().indices[at];
    a.values_mut()[at] = f64::NAN;
    for way in [Way::Whole, Way::Rows, Way::Own] {
        // The threads of other ranks may have ended first, with another message.
        let told: Vec<String> = std::thread::scope(|scope| {
            let (a, rows, wishes) = (&a, &rows, &wishes);
            let threads: Vec<_> = Parts::new(3)
                .into_iter()
                .map(|part| {
                    scope.spawn(move || {
                        let here = rows[Communicator::<Host>::part(&part)].clone();
                        let made = match way {
                            Way::Whole => wishes.build_spread(&Host, part, a),
                            Way::Rows => wishes.build_spread_rows(&Host, part, a, rows),
                            Way::Own => wishes.build_spread_rows_on(&Host, part, rows_of(a, here), rows),
                        };
                        made.unwrap_err().to_string()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let named = format!("row 70, column {column} ");
        assert!(told.iter().any(|told| told.contains(&named)), "{way:?}: {told:?}");
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let (a, wishes) = (ring(-1.0, -1.0), Solver::<f64>::builder());
    let part = || Parts::new(1).remove(0);
    let refused = |own: Csr<f64>, rows: &[std::ops::Range<usize>]| {
        wishes.build_spread_rows_on(&Host, part(), own, rows).unwrap_err().to_string()
    };
    assert!(refused(rows_of(&a, 0..N), std::slice::from_ref(&(1..N))).contains("first row of a rank"));
    assert!(refused(rows_of(&a, 0..N - 1), std::slice::from_ref(&(0..N))).contains("rows of this rank"));
    assert!(refused(rows_of(&a, 0..N), &[0..N, N..N]).contains("parts"));
}
