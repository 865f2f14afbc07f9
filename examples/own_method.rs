//! A Krylov method of your own: the minimal residual iteration (Saad, Iterative Methods for Sparse Linear Systems, 2nd
//! ed., algorithm 5.3), which the driver records, certifies and starts again as it does the library's.
//!
//!     cargo run --release --example own_method

use residua::backend::{Coefficient, InnerProduct, LinearUpdate, ScalarLayout, ScalarProgram, Slot, Space};
use residua::krylov::{Aim, Krylov, Method, SolveOptions, System, Vectors};
use residua::precondition::Identity;
use residua::{Host, Result};
use std::ops::ControlFlow;

/// q = A r, alpha = q.r / q.q, x = x + alpha r, r = r - alpha q.
#[derive(Debug)]
struct Descent {
    layout: ScalarLayout,
    slots: [Slot; 4],
    programs: [ScalarProgram<Host>; 2],
    /// x, r and q.
    vectors: [Vec<f64>; 3],
    state: Vec<f64>,
}

impl Descent {
    fn new(n: usize) -> Result<Self> {
        let layout = ScalarLayout::new();
        let slots @ [qr, qq, rr, alpha] = std::array::from_fn(|_| layout.slot(0.0));
        let step = layout.program(&Host, |p| {
            p.begin(); // once the status says that it is over, nothing changes any more
            p.set(alpha, p.get(qr) / p.get(qq));
        })?;
        let norm = layout.program(&Host, |p| p.residual(p.get(rr)))?;
        let (vectors, state) = ([(); 3].map(|()| vec![0.0; n]), vec![0.0; layout.len()]);
        Ok(Self { layout, slots, programs: [step, norm], vectors, state })
    }
}

impl Method<f64, Host> for Descent {
    type Word = f64;

    fn name(&self) -> &'static str {
        "minimal residual iteration"
    }
    fn shape(&self) -> (usize, usize) {
        (self.vectors[0].len(), self.vectors[0].len())
    }
    fn vectors(&mut self) -> Vectors<'_, f64, Host> {
        let [steps, residual, scratch] = &mut self.vectors;
        Vectors { steps, residual, scratch }
    }
    fn start(&mut self, _: &Space<Host>, _: System<'_, f64, Host>, aim: Aim<f64>) -> Result<()> {
        self.vectors[0].fill(0.0);
        self.state = self.layout.initial(aim.square);
        Ok(())
    }
    fn iterate(&mut self, space: &Space<Host>, system: System<'_, f64, Host>, _step: usize) -> Result<()> {
        let Self {
            slots: [qr, qq, rr, alpha], programs: [alpha_of, norm_of], vectors: [x, r, q], state, ..
        } = self;
        system.a.apply(space.backend(), r, q)?;
        let product = |left, right, to| InnerProduct { left, right, to };
        let products = &[product(0, 1, *qr), product(0, 0, *qq)];
        let both = LinearUpdate { inputs: &[&**q, r], outputs: &mut [], coefficients: &[], products };
        space.linear_update(both, state, Some(alpha_of))?;
        use Coefficient::{At, Minus, One, Zero};
        // The factors of q, x and r in the new x, then in the new r.
        let coefficients = &[Zero, One, At(*alpha), Minus(*alpha), Zero, One];
        let products = &[product(2, 2, *rr)];
        let outputs = &mut [x.as_mut_slice(), r.as_mut_slice()];
        let step = LinearUpdate { inputs: &[&**q], outputs, coefficients, products };
        space.linear_update(step, state, Some(norm_of))
    }
    fn message(&self) -> &[f64] {
        &self.state
    }
    fn carries_residual(&self) -> bool {
        true
    }
    fn bytes_per_iteration(&self, system: System<'_, f64, Host>) -> usize {
        system.a.bytes() + 7 * 8 * self.vectors[0].len()
    }
}

fn main() -> Result<()> {
    let a = residua::generate::poisson2d(20, 20)?;
    let b = vec![1.0; a.rows()];
    let mut x = vec![0.0; a.rows()];
    let mut solver = Krylov::with_method(Space::new(Host), Descent::new(a.rows())?, SolveOptions::default())?;
    let report = solver.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    println!("{} in {} iterations, {:.1e}", report.outcome, report.iterations, report.relative_residual);
    assert!(report.outcome.is_converged());
    Ok(())
}
