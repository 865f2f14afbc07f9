//! Grids whose unknowns come in any order are solved as grids.

use super::*;
use residua::graph::bandwidth;
use residua::solver::SolveReport;

fn chosen_order(report: &SolveReport) -> &str {
    &report.trail.decisions.iter().find(|decision| decision.subject == "order").unwrap().chosen
}

/// Solves in the caller's order and in a disorder, and returns both reports.
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
        // Axes may have changed places, which rounding and levels notice.
        assert!(found.iterations.abs_diff(natural.iterations) <= 1, "{words}: {natural:?} {found:?}");
    }
}

#[test]
fn what_is_nearly_a_grid_is_ordered_as_before() {
    let grid = shuffled(&generate::poisson3d(60, 60, 60).unwrap());
    // A coupling less between two points inside.
    let inside = |i: usize| grid.row(i).0.len() == 7;
    let (i, j, _) = grid.iter().find(|&(i, j, _)| i != j && inside(i) && inside(j)).unwrap();
    let mut triplets = Triplets::new(grid.rows(), grid.rows()).unwrap();
    for (row, column, value) in grid.iter() {
        if (row, column) != (i, j) && (row, column) != (j, i) {
            triplets.push(row, column, value).unwrap();
        }
    }
    let less = residua::assemble::to_csr(&Host, triplets).unwrap();
    let solver = Solver::builder().build_on(&Host, less).unwrap();
    let order = solver.trail().decisions.iter().find(|decision| decision.subject == "order").unwrap();
    assert!(!order.chosen.contains("grid"), "{order:?}");
}

#[test]
fn a_grid_that_was_renumbered_well_is_found_too() {
    // Reverse Cuthill-McKee saves the products most that can be saved, but hides the grid from multigrid.
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
