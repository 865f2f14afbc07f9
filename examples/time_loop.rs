//! A time loop: one pattern, a thousand sets of values, a thousand solves, and the memory of the first.
//!
//! Heat flows along a rod whose conductivity changes with time. Each step of the implicit Euler method solves
//! (I + dt L(t)) u' = u. The pattern never changes, so the map from triplets to nonzeros is made once; the solver keeps
//! its memory; and each solve starts from the last step's temperatures.

use residua::assemble::Assembly;
use residua::prelude::*;
use std::time::Instant;

const CELLS: usize = 1000;
const STEPS: usize = 1000;

/// The values of the triplets at a time: an entry of 1 for each cell, then four for each pair of neighbours.
fn values(time: f64, values: &mut Vec<f64>) {
    values.clear();
    values.resize(CELLS, 1.0);
    for i in 0..CELLS - 1 {
        let place = i as f64 / CELLS as f64;
        let conductivity = 5.0 * (1.2 + (6.0 * place - 3.0 * time).sin());
        values.extend([conductivity, conductivity, -conductivity, -conductivity]);
    }
}

fn main() -> Result<()> {
    // The pattern, in the order in which `values` lists them.
    let mut new_values = Vec::new();
    values(0.0, &mut new_values);
    let mut places: Vec<(usize, usize)> = (0..CELLS).map(|i| (i, i)).collect();
    for i in 0..CELLS - 1 {
        places.extend([(i, i), (i + 1, i + 1), (i, i + 1), (i + 1, i)]);
    }
    let mut triplets = Triplets::new(CELLS, CELLS)?;
    for (&(i, j), &value) in places.iter().zip(&new_values) {
        triplets.push(i, j, value)?;
    }

    // Once: assembly and solver.
    let (mut a, assembly) = Assembly::new(&Host, &triplets)?;
    let mut solver = Solver::builder().tolerance(1e-10).updates(true).build(&a)?;

    let mut temperature: Vec<f64> = (0..CELLS).map(|i| if i < CELLS / 4 { 1.0 } else { 0.0 }).collect();
    let heat: f64 = temperature.iter().sum();
    let mut old = temperature.clone();
    let mut iterations = 0;
    let start = Instant::now();
    for step in 1..=STEPS {
        values(step as f64 / STEPS as f64, &mut new_values);
        assembly.update(&Host, &new_values, &mut a)?;
        solver.update(a.parts().values)?;
        old.copy_from_slice(&temperature);
        let report = solver.solve_into(&old, &mut temperature)?;
        assert!(report.outcome.is_converged(), "step {step}: {}", report.outcome);
        iterations += report.iterations;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{STEPS} solves of {CELLS} unknowns: {:.1} us each, {:.1} iterations each",
        seconds / STEPS as f64 * 1e6,
        iterations as f64 / STEPS as f64
    );
    // No heat leaves the rod: each solve keeps the sum.
    let now: f64 = temperature.iter().sum();
    println!("heat {heat} at the start, {now:.6} at the end; hottest {:.3}", temperature[0]);
    assert!((now / heat - 1.0).abs() < 1e-6);
    Ok(())
}
