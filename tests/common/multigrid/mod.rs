//! Cases of algebraic multigrid for any backend: iterations of conjugate gradients to a residual of 1e-8, with a random
//! x.

mod classical;
mod grids;
mod hierarchy;
mod matrices;
mod meshes;
mod methods;
mod operator;
mod scaled;
mod scattered;
mod values;

// Not every test program uses all cases.
#[allow(unused_imports)]
pub use {
    classical::*, grids::*, hierarchy::*, meshes::*, methods::*, operator::*, scaled::*, scattered::*,
    values::*,
};

use crate::random::Random;
use residua::backend::{KrylovSteps, RowFacts};
use residua::krylov::{self, Cg, Gmres, Krylov, Outcome, SolveOptions};
use residua::multigrid::{Multigrid, MultigridBackend, MultigridOptions};
use residua::precondition::Preconditioner;
use residua::{Csr, Scalar};
use std::ops::ControlFlow;

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            grids,
            what_is_on_no_grid,
            strong_directions_of_points,
            iterations_do_not_grow,
            entries_of_all_levels,
            graphs_with_hubs,
            rough_coefficients,
            flat_elements,
            what_has_no_prolongation_of_least_energy,
            classical_coarsening,
            classical_convection,
            classical_edges,
            elasticity,
            real_matrices,
            half_the_precision,
            a_shared_matrix,
            complex_values,
            new_values,
            new_values_on_kept_patterns,
            unknowns_in_other_units,
            rows_in_other_units,
            new_values_in_other_units,
            methods_on_hermitian_matrices,
            meshes_in_a_wind,
            new_values_that_are_not_hermitian,
            small_and_strange,
            hermitian,
            convection,
            the_hierarchy_of_the_host,
            inverses_of_blocks
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// The traits that a preconditioner needs.
pub trait Able: KrylovSteps + RowFacts + MultigridBackend {}
impl<B: KrylovSteps + RowFacts + MultigridBackend> Able for B {}

fn options() -> MultigridOptions {
    MultigridOptions::default()
}

/// Number of iterations to 1e-8; the right-hand side belongs to a random x.
fn solved<T: Scalar, B: Able>(backend: &B, a: &Csr<T, B>, m: &Multigrid<T, B>) -> usize {
    let cg = Cg::new(backend, a.rows(), SolveOptions::default().max_iterations(400)).unwrap();
    solved_by(cg, backend, a, m)
}

/// The iterations of GMRES with this preconditioner.
fn solved_by_gmres<B: Able>(backend: &B, a: &Csr<f64, B>, m: &Multigrid<f64, B>) -> usize {
    let gmres = Gmres::new(backend, a.rows(), 30, SolveOptions::default().max_iterations(100)).unwrap();
    solved_by(gmres, backend, a, m)
}

/// The iterations of a given method with this preconditioner.
fn solved_by<T: Scalar, B: Able, M: krylov::Method<T, B>>(
    mut method: Krylov<T, B, M>,
    backend: &B,
    a: &Csr<T, B>,
    m: &Multigrid<T, B>,
) -> usize {
    let n = a.rows();
    let x = backend.upload(Random(7).vector::<T>(n)).unwrap();
    let mut b = backend.zeros::<T>(n).unwrap();
    a.product(backend, T::one(), &x, T::zero(), &mut b).unwrap();
    let mut x = backend.zeros::<T>(n).unwrap();
    let report = method.solve(a, m, &b, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
    assert!(matches!(report.outcome, Outcome::Converged), "{}: {}", report.outcome, m.facts());
    report.iterations
}

/// The iterations of conjugate gradients with a hierarchy that is built from the matrix.
fn iterations<B: Able>(backend: &B, a: &Csr<f64>, options: &MultigridOptions) -> usize {
    let a = a.to_backend(backend).unwrap();
    let m = Multigrid::new(backend, &a, options).unwrap();
    solved(backend, &a, &m)
}

fn at_most<B: Able>(backend: &B, most: usize, a: &Csr<f64>, options: &MultigridOptions, what: &str) {
    let took = iterations(backend, a, options);
    assert!(took <= most, "{what}: {took} iterations, at most {most} are expected");
}

/// The result of a cycle for a random vector.
fn applied<T: Scalar, B: Able>(backend: &B, m: &Multigrid<T, B>) -> Vec<T> {
    let n = m.facts().levels[0].rows;
    let r = backend.upload(Random(9).vector::<T>(n)).unwrap();
    let mut z = backend.zeros::<T>(n).unwrap();
    m.apply(backend, &r, &mut z).unwrap();
    backend.download(&z).unwrap()
}
