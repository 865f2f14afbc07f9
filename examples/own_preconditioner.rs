//! A preconditioner of your own: a forward and a backward sweep of Gauss and Seidel (Saad, Iterative Methods for Sparse
//! Linear Systems, 2nd ed., 10.2), M = (D + L) D^-1 (D + U), with any method of the library.
//!
//!     cargo run --release --example own_preconditioner

use residua::krylov::{Cg, SolveOptions};
use residua::precondition::{Identity, Preconditioner};
use residua::{Csr, Host, Result};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The matrix, which the solver shares, and its diagonal.
struct GaussSeidel {
    a: Arc<Csr<f64>>,
    diagonal: Vec<f64>,
}

impl GaussSeidel {
    fn new(a: Arc<Csr<f64>>) -> Self {
        let diagonal =
            (0..a.rows()).map(|i| a.row(i).1[a.row(i).0.binary_search(&(i as u32)).unwrap()]).collect();
        Self { a, diagonal }
    }

    /// The sum of a_ij z_j over the columns j for which `side(j)` holds.
    fn beside(&self, i: usize, z: &[f64], side: impl Fn(usize) -> bool) -> f64 {
        let (columns, values) = self.a.row(i);
        let pairs = columns.iter().map(|&j| j as usize).zip(values);
        pairs.filter(|(j, _)| side(*j)).map(|(j, value)| value * z[j]).sum()
    }
}

impl Preconditioner<f64, Host> for GaussSeidel {
    fn rows(&self) -> Option<usize> {
        Some(self.a.rows())
    }
    fn apply(&self, _: &Host, r: &[f64], z: &mut [f64]) -> Result<()> {
        let n = r.len();
        for i in 0..n {
            z[i] = (r[i] - self.beside(i, z, |j| j < i)) / self.diagonal[i];
        }
        for i in (0..n).rev() {
            z[i] -= self.beside(i, z, |j| j > i) / self.diagonal[i];
        }
        Ok(())
    }
    fn bytes(&self) -> usize {
        2 * self.a.storage_bytes() + 3 * 8 * self.a.rows()
    }
}

fn main() -> Result<()> {
    let a = Arc::new(residua::generate::poisson2d(60, 60)?);
    let b = vec![1.0; a.rows()];
    let mut cg = Cg::new(&Host, a.rows(), SolveOptions::default())?;
    let mut solve = |m: &dyn Preconditioner<f64, Host>| {
        let mut x = vec![0.0; b.len()];
        cg.solve(&a, m, &b, &mut x, |_, _| ControlFlow::Continue(()))
    };
    let (plain, swept) = (solve(&Identity)?, solve(&GaussSeidel::new(a.clone()))?);
    println!("{} iterations without, {} with: {}", plain.iterations, swept.iterations, swept.outcome);
    assert!(swept.outcome.is_converged() && 2 * swept.iterations < plain.iterations + 10);
    Ok(())
}
