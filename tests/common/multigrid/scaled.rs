//! Matrices whose unknowns or equations are scaled: as many iterations as without scaling.

use super::matrices::{shuffled, times, triangles};
use super::{Able, applied, options, solved, solved_by_gmres};
use crate::random::Random;
use num_complex::Complex;
use residua::multigrid::{Multigrid, MultigridOptions};
use residua::precondition::Preconditioner;
use residua::{Csr, generate};
use std::sync::Arc;

/// Scaling factors over four decades.
fn units(n: usize) -> Vec<f64> {
    let mut random = Random(21);
    (0..n).map(|_| 10.0_f64.powf(2.0 * random.signed())).collect()
}

/// D A D with such factors D.
pub fn in_units(a: &Csr<f64>) -> Csr<f64> {
    let d = units(a.rows());
    times(a, |i| d[i], |j| d[j])
}

/// D A.
fn with_scaled_rows(a: &Csr<f64>) -> Csr<f64> {
    let d = units(a.rows());
    times(a, |i| d[i], |_| 1.0)
}

pub fn unknowns_in_other_units<B: Able>(backend: &B) {
    let elastic = generate::elasticity3d(7, 7, 7, 0.3).unwrap();
    for (what, a, unknowns, most) in [
        ("7 points in random order", shuffled(&generate::poisson3d(20, 20, 20).unwrap()), 1, 11),
        ("9 points", generate::poisson2d_9(60, 50).unwrap(), 1, 11),
        ("triangles", triangles(60), 1, 26),
        ("elasticity", elastic, 3, 21),
    ] {
        for narrow in [true, false] {
            let options = options().narrow(narrow).unknowns_a_node(unknowns);
            let of = |a: &Csr<f64>| {
                let a = a.to_backend(backend).unwrap();
                let m = Multigrid::new(backend, &a, &options).unwrap();
                (solved(backend, &a, &m), m.facts().scaled)
            };
            let (plain, was_scaled) = of(&a);
            assert!(!was_scaled, "{what}");
            let (took, was_scaled) = of(&in_units(&a));
            assert!(was_scaled && took <= most, "{what}: {took} iterations, {plain} without units");
        }
    }
    // Moduli and phases of a Hermitian matrix.
    let a = generate::poisson2d(50, 40).unwrap().map(|value| Complex::new(value, 0.0));
    let d = units(a.rows());
    let phase = |i: usize| Complex::from_polar(d[i], 0.05 * (i % 50) as f64);
    let turned = times(&a, |i| phase(i).conj(), phase).to_backend(backend).unwrap();
    let m = Multigrid::new(backend, &turned, &options()).unwrap();
    let took = solved(backend, &turned, &m);
    assert!(m.facts().scaled && took <= 12, "{took} iterations");
    // Given vectors refer to the matrix as it is.
    let a = generate::poisson2d(40, 40).unwrap();
    let (scaled, near_null) = (in_units(&a).to_backend(backend).unwrap(), units(a.rows()));
    let near_null = near_null.into_iter().map(f64::recip).collect();
    let m = Multigrid::with_near_null(backend, &scaled, 1, near_null, &options()).unwrap();
    assert!(!m.facts().scaled);
}

/// Equations divided by factors, for GMRES.
pub fn rows_in_other_units<B: Able>(backend: &B) {
    let general = || options().real_eigenvalues(false);
    let iterations = |a: &Csr<f64>, options: &MultigridOptions| {
        let a = a.to_backend(backend).unwrap();
        let m = Multigrid::new(backend, &a, options).unwrap();
        (solved_by_gmres(backend, &a, &m), m.facts().scaled)
    };
    let a = shuffled(&generate::poisson3d(20, 20, 20).unwrap());
    for scaled in [with_scaled_rows(&a), with_scaled_rows(&in_units(&a))] {
        let (took, was_scaled) = iterations(&scaled, &general().narrow(true));
        assert!(was_scaled && took <= 12, "{took} iterations");
    }
    let convection = shuffled(&generate::convection_diffusion([16, 16, 16], 1.0 / 32.0).unwrap());
    assert!(!iterations(&convection, &general()).1);
}

/// New values are scaled anew, and a shared matrix is not used in place of the scaled one.
pub fn new_values_in_other_units<B: Able>(backend: &B) {
    let on = |a: &Csr<f64>| a.to_backend(backend).unwrap();
    let a = shuffled(&generate::poisson3d(12, 12, 12).unwrap());
    let scaled = in_units(&a);
    let of = |a: &Csr<f64>| Multigrid::new(backend, &on(a), &options()).unwrap();
    let mut m = of(&scaled);
    let (before, bytes) = (applied(backend, &m), m.storage_bytes());
    m.share(Arc::new(on(&scaled))).unwrap();
    assert!(applied(backend, &m) == before && m.storage_bytes() == bytes);
    for new in [&scaled.map(|value| 3.0 * value), &scaled] {
        m.update(backend, &on(new)).unwrap();
        assert!(applied(backend, &m) == applied(backend, &of(new)));
    }
    assert!(m.update(backend, &on(&a.map(|value| value / 0.0))).is_err());
    assert!(applied(backend, &m) == before);
    m.update(backend, &on(&a)).unwrap();
    assert!(!m.facts().scaled && applied(backend, &m) == applied(backend, &of(&a)));
}
