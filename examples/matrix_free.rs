//! Conjugate gradients without a stored matrix: an operator is anything that computes y = A x.
//!
//! -u'' - u'' = f on a grid of 300 x 300 points, the five-point stencil applied on the fly, rows shared among threads.

use rayon::prelude::*;
use residua::krylov::{Cg, SolveOptions};
use residua::operator::FunctionOperator;
use residua::precondition::Identity;
use residua::{Host, LinearOperator};
use std::ops::ControlFlow;

const K: usize = 300;

/// y on one line of the grid: four times x, minus its neighbours left, right, below and above.
fn line(row: usize, x: &[f64], y: &mut [f64]) {
    let here = &x[row * K..(row + 1) * K];
    for i in 0..K {
        let left = if i > 0 { here[i - 1] } else { 0.0 };
        let right = if i + 1 < K { here[i + 1] } else { 0.0 };
        let below = if row > 0 { x[(row - 1) * K + i] } else { 0.0 };
        let above = if row + 1 < K { x[(row + 1) * K + i] } else { 0.0 };
        y[i] = 4.0 * here[i] - left - right - below - above;
    }
}

fn main() -> residua::Result<()> {
    let a = FunctionOperator::<f64, Host, _>::new(K * K, K * K, |_, x: &[f64], y: &mut [f64]| {
        y.par_chunks_mut(K).enumerate().for_each(|(row, y)| line(row, x, y));
        Ok(())
    });
    // A known solution, and its right-hand side.
    let wave = |i: usize| (std::f64::consts::PI * (i + 1) as f64 / (K + 1) as f64 * 2.0).sin();
    let known: Vec<f64> = (0..K * K).map(|i| wave(i % K) * (1.0 + wave(i / K))).collect();
    let mut b = vec![0.0; K * K];
    a.apply(&Host, &known, &mut b)?;

    let mut cg = Cg::new(&Host, K * K, SolveOptions::default())?;
    let mut x = vec![0.0; K * K];
    let report = cg.solve(&a, &Identity, &b, &mut x, |iteration, residual| {
        if iteration % 100 == 0 {
            println!("iteration {iteration:4}  residual {residual:.3e}");
        }
        ControlFlow::Continue(())
    })?;
    let error = x.iter().zip(&known).map(|(x, k)| (x - k).abs()).fold(0.0, f64::max);
    println!("{} after {} iterations, largest error {error:.1e}", report.outcome, report.iterations);
    assert!(report.outcome.is_converged() && error < 1e-4);
    Ok(())
}
