//! Grids whose unknowns are in any order are solved as grids, and meshes are reordered for multigrid.

use super::*;
use residua::backend::GraphSteps;
use residua::graph::bandwidth;
use residua::solver::SolveReport;

fn chosen_order(report: &SolveReport) -> &str {
    &report.trail.decisions.iter().find(|decision| decision.subject == "order").unwrap().chosen
}

/// Solves in the caller's order and in random order, and returns both reports.
fn both_ways(a: &Csr<f64>) -> [SolveReport; 2] {
    let b = noise(a.rows(), 3);
    [csr_copy(a), shuffled(a)].map(|a| {
        let mut solver = Solver::builder().build_on(&Host, csr_copy(&a)).unwrap();
        let solution = solver.solve(&b).unwrap();
        assert!(solves(&a, &b, &solution.x, 1e-8), "{:?}", solution.report);
        solution.report
    })
}

#[test]
fn multigrid_of_a_grid_in_random_order() {
    let grids = [
        (generate::poisson3d(40, 40, 40).unwrap(), "as a grid of 40 x 40 x 40 points"),
        (generate::poisson3d(56, 60, 50).unwrap(), "as a grid of 60 x 56 x 50 points"),
        (generate::poisson2d(300, 420).unwrap(), "as a grid of 420 x 300 points"),
        (generate::jumping([56, 56, 56], 1e4, 8, 1).unwrap(), "as a grid of 56 x 56 x 56 points"),
    ];
    for (a, words) in grids {
        let [natural, found] = both_ways(&a);
        assert!(chosen_order(&natural).starts_with("no"), "{natural:?}");
        assert!(chosen_order(&found).starts_with(words), "{found:?}");
        for report in [&natural, &found] {
            assert_eq!(report.preconditioner.to_string(), "amg", "{report:?}");
            assert_eq!(report.trail.stages[0].outcome, Some(Outcome::Converged), "{report:?}");
        }
        // Axes may have been exchanged, which affects rounding and levels.
        assert!(found.iterations.abs_diff(natural.iterations) <= 1, "{words}: {natural:?} {found:?}");
    }
}

/// The matrix without one coupling between two inner points, so that it is no grid.
fn with_a_coupling_less(grid: &Csr<f64>) -> Csr<f64> {
    let most = (0..grid.rows()).map(|i| grid.row(i).0.len()).max().unwrap();
    let inside = |i: usize| grid.row(i).0.len() == most;
    let (i, j, _) = grid.iter().find(|&(i, j, _)| i != j && inside(i) && inside(j)).unwrap();
    let mut triplets = Triplets::new(grid.rows(), grid.rows()).unwrap();
    for (row, column, value) in grid.iter() {
        if (row, column) != (i, j) && (row, column) != (j, i) {
            triplets.push(row, column, value).unwrap();
        }
    }
    residua::assemble::to_csr(&Host, triplets).unwrap()
}

/// Solves with a known x whose entries are all different, and compares with it.
fn solves_in_the_callers_order(builder: &Builder, a: &Csr<f64>) -> SolveReport {
    let expected: Vec<f64> = (0..a.rows()).map(|i| (i as f64 / 7.0).sin() + i as f64 * 1e-6).collect();
    let b = a * &expected;
    let mut solver = builder.clone().tolerance(1e-12).build_on(&Host, csr_copy(a)).unwrap();
    let solution = solver.solve(&b).unwrap();
    assert!(solves(a, &b, &solution.x, 1e-12), "{:?}", solution.report);
    let error = solution.x.iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(error < 1e-5, "{error:e}, {:?}", solution.report);
    assert_eq!(solution.report.preconditioner.to_string(), "amg", "{:?}", solution.report);
    solution.report
}

#[test]
fn a_mesh_in_random_order_is_brought_into_a_good_one_for_multigrid() {
    let rcm = "by reverse Cuthill-McKee";
    // Multigrid is tried first for a large mesh of this size, which is recognised in any order.
    let large = shuffled(&with_a_coupling_less(&generate::poisson2d(420, 490).unwrap()));
    let report = solves_in_the_callers_order(&Solver::builder(), &large);
    assert!(chosen_order(&report).starts_with(rcm), "{report:?}");
    assert_eq!(report.trail.stages[0].outcome, Some(Outcome::Converged), "{report:?}");
    // If multigrid was named, any mesh is reordered.
    let mesh = with_a_coupling_less(&generate::poisson2d(110, 120).unwrap());
    let named = Solver::builder().preconditioner("amg".parse().unwrap());
    let report = solves_in_the_callers_order(&named, &shuffled(&mesh));
    assert!(chosen_order(&report).starts_with(rcm), "{report:?}");
    // Also with new values.
    let mut solver = named.clone().updates(true).build_on(&Host, shuffled(&mesh)).unwrap();
    let doubled = shuffled(&mesh).map(|value| 2.0 * value);
    solver.update(doubled.parts().values).unwrap();
    let b = noise(mesh.rows(), 4);
    let solution = solver.solve(&b).unwrap();
    assert!(solves(&doubled, &b, &solution.x, 1e-8), "{:?}", solution.report);
    assert!(chosen_order(&solution.report).starts_with(rcm));
    // The order stays if it is good already, if the caller wants another one, or for methods without multigrid.
    let chosen = |builder: &Builder, a: Csr<f64>| {
        let solver = builder.clone().build_on(&Host, a).unwrap();
        let decisions = &solver.trail().decisions;
        decisions.iter().find(|decision| decision.subject == "order").unwrap().chosen.clone()
    };
    assert_eq!(chosen(&named, csr_copy(&mesh)), "no");
    assert_eq!(chosen(&named.clone().reorder(Reorder::None), shuffled(&mesh)), "no");
    assert_eq!(chosen(&Solver::builder().preconditioner("jacobi".parse().unwrap()), shuffled(&mesh)), "no");
    assert_eq!(chosen(&Solver::builder(), shuffled(&mesh)), "no");
    // Nodes with several unknowns are not torn apart either.
    let beam = generate::elasticity3d(8, 8, 24, 0.3).unwrap();
    assert!(chosen(&named, beam).starts_with("no"));
}

#[test]
fn what_is_nearly_a_grid_is_ordered_as_before() {
    let less = with_a_coupling_less(&shuffled(&generate::poisson3d(60, 60, 60).unwrap()));
    let solver = Solver::builder().build_on(&Host, less).unwrap();
    let order = solver.trail().decisions.iter().find(|decision| decision.subject == "order").unwrap();
    assert!(!order.chosen.contains("grid"), "{order:?}");
}

#[test]
fn a_grid_that_was_renumbered_well_is_found_too() {
    // Reverse Cuthill-McKee saves the most products, but hides the grid from multigrid.
    let a = generate::poisson3d(64, 64, 64).unwrap();
    let renumbered = in_order_of_rcm(&a);
    assert!(bandwidth(&renumbered) < 3 * bandwidth(&a));
    let solver = Solver::builder().build_on(&Host, renumbered).unwrap();
    let order = solver.trail().decisions.iter().find(|decision| decision.subject == "order").unwrap();
    assert!(order.chosen.starts_with("as a grid of 64 x 64 x 64 points"), "{order:?}");
    assert_eq!(solver.trail().stages[0].preconditioner.to_string(), "amg");
}

/// The matrix in the order of reverse Cuthill-McKee.
fn in_order_of_rcm(a: &Csr<f64>) -> Csr<f64> {
    let order = residua::graph::reverse_cuthill_mckee(a).unwrap();
    residua::graph::permute_symmetric(a, &order).unwrap()
}

/// With this many right-hand sides reordering would pay, because rows would share cache lines of x. But a grid in its
/// natural order is solved as a grid, and keeps that order.
#[test]
fn a_grid_in_its_own_order_stays_in_it() {
    let a = generate::poisson3d(64, 60, 62).unwrap();
    let builder = Solver::builder().right_hand_sides(100_000);
    let benefit = residua::graph::predicted_benefit(&a, Host.ordering_price(), 100_000 * 100).unwrap();
    assert!(benefit.pays(), "{benefit:?}");
    let b = noise(a.rows(), 3);
    let mut solver = builder.build_on(&Host, csr_copy(&a)).unwrap();
    let solution = solver.solve(&b).unwrap();
    assert!(solves(&a, &b, &solution.x, 1e-8), "{:?}", solution.report);
    assert_eq!(chosen_order(&solution.report), "no", "{:?}", solution.report);
    assert_eq!(solution.report.preconditioner.to_string(), "amg", "{:?}", solution.report);
}

#[test]
fn with_new_values_to_come_multigrid_on_a_grid_is_chosen_as_without() {
    let a = poisson2d(300);
    let b = noise(a.rows(), 8);
    let mut told = Vec::new();
    for updates in [false, true] {
        let mut solver = quick().device(Where::Cpu).updates(updates).build(&a).unwrap();
        let first = solver.solve(&b).unwrap().report;
        assert_eq!(first.preconditioner.to_string(), "amg", "{updates}");
        // Another diagonal, so that the old levels would be those of another matrix.
        let diagonal: Vec<bool> = a.iter().map(|(i, j, _)| i == j).collect();
        let new = a.parts().values.iter().zip(diagonal);
        let new: Vec<f64> = new.map(|(value, diagonal)| if diagonal { 6.02 } else { 1.5 * value }).collect();
        for _ in 0..2 {
            solver.update(&new).unwrap();
            let solution = solver.solve(&b).unwrap();
            let report = &solution.report;
            assert!(report.outcome.is_converged() && report.preconditioner.to_string() == "amg", "{updates}");
            let mut r = b.clone();
            let mut matrix = csr_copy(&a);
            matrix.values_mut().copy_from_slice(&new);
            matrix.iter().for_each(|(i, j, value)| r[i] -= value * solution.x[j]);
            let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            assert!(norm(&r) <= 1.1e-10 * norm(&b));
            told.push(report.iterations);
        }
    }
    assert!(told.iter().all(|&iterations| iterations == told[0] && iterations < 30), "{told:?}");
}
