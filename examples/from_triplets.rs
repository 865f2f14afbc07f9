//! From triplets to a solution, in four calls.
//!
//! The temperature of a square plate, 50 x 50 points, with a warm spot and cold edges: each cell passes heat to its
//! four neighbours. Every pair of neighbours is visited once and adds its 2 x 2 block, as finite elements do; entries
//! at the same position add up.

use residua::assemble;
use residua::prelude::*;

fn main() -> Result<()> {
    let k = 50;
    let cell = |x: usize, y: usize| y * k + x;
    let mut triplets = Triplets::new(k * k, k * k)?;
    let mut connect = |i: usize, j: usize| -> Result<()> {
        triplets.push(i, i, 1.0)?;
        triplets.push(j, j, 1.0)?;
        triplets.push(i, j, -1.0)?;
        triplets.push(j, i, -1.0)
    };
    for y in 0..k {
        for x in 0..k {
            if x + 1 < k {
                connect(cell(x, y), cell(x + 1, y))?;
            }
            if y + 1 < k {
                connect(cell(x, y), cell(x, y + 1))?;
            }
        }
    }
    // A cell at the edge also touches the cold outside, once for each side.
    for y in 0..k {
        for x in 0..k {
            let sides = [x == 0, x + 1 == k, y == 0, y + 1 == k].iter().filter(|&&edge| edge).count();
            triplets.push(cell(x, y), cell(x, y), sides as f64)?;
        }
    }
    let count = triplets.len();

    let a = assemble::to_csr(&Host, triplets)?;
    let mut heat = vec![0.0; a.rows()];
    heat[cell(15, 30)] = 1.0;
    let solution = Solver::builder().build(&a)?.solve(&heat)?;

    println!("{count} triplets, {} nonzeros in {} rows", a.nonzeros(), a.rows());
    let report = &solution.report;
    println!(
        "{} after {} iterations, true relative residual {:.1e}",
        report.outcome, report.iterations, report.relative_residual
    );
    println!("warmest {:.4}, at the far corner {:.2e}", solution.x[cell(15, 30)], solution.x[cell(49, 0)]);
    assert!(report.outcome.is_converged());
    assert!(solution.x.iter().all(|&t| t > 0.0 && t <= solution.x[cell(15, 30)]));
    Ok(())
}
