//! Cases of classical coarsening for any backend.

use super::matrices::shuffled;
use super::{Able, applied, at_most, iterations, options, solved, solved_by_gmres};
use crate::random::Random;
use residua::generate;
use residua::multigrid::{Coarsening, Multigrid, MultigridOptions, Prolongation, Smoothing};
use residua::precondition::Preconditioner;
use residua::{Csr, Error};

fn classical() -> MultigridOptions {
    options().coarsening(Coarsening::Classical)
}

/// Iterations on M-matrices, the entries of all levels, and a check that levels are not grids.
pub fn classical_coarsening<B: Able>(backend: &B) {
    let m_matrices = [
        (generate::poisson3d(30, 31, 32).unwrap(), 11, 2.8, "7 points"),
        (shuffled(&generate::poisson2d(150, 140).unwrap()), 10, 2.6, "5 points in random order"),
        (generate::anisotropic2d(150, 150, 1e-3).unwrap(), 10, 2.8, "anisotropic"),
        (generate::jumping([30, 30, 30], 1e6, 6, 2).unwrap(), 14, 3.0, "jumps"),
        (generate::jumping([30, 30, 30], 32.0, 1, 2).unwrap(), 12, 3.0, "rough"),
    ];
    for (a, most, entries, what) in m_matrices {
        let on_backend = a.to_backend(backend).unwrap();
        let m = Multigrid::new(backend, &on_backend, &classical()).unwrap();
        let took = solved(backend, &on_backend, &m);
        assert!(took <= most, "{what}: {took} iterations, at most {most} are expected");
        assert!(m.facts().operator_complexity() < entries && !m.facts().grid, "{what}: {}", m.facts());
        at_most(backend, most + 1, &a, &classical().narrow(true), what);
    }
    // More weights, no more iterations.
    let a = generate::poisson2d(100, 100).unwrap();
    let [few, many] = [2, 12].map(|weights| iterations(backend, &a, &classical().weights(weights)));
    assert!(many < few, "{many} and {few} iterations");
    // A level that would have too many entries is built with fewer weights per unknown.
    let few = classical().most_entries(1.2);
    let m = Multigrid::new(backend, &a.to_backend(backend).unwrap(), &few).unwrap();
    let facts = m.facts();
    assert!(facts.levels.windows(2).all(|pair| pair[1].entries < pair[0].entries), "{facts}");
    assert!(facts.operator_complexity() < classical_complexity(backend, &a), "{facts}");
    at_most(backend, 60, &a, &few, "few entries");
}

fn classical_complexity<B: Able>(backend: &B, a: &Csr<f64>) -> f64 {
    let m = Multigrid::new(backend, &a.to_backend(backend).unwrap(), &classical()).unwrap();
    m.facts().operator_complexity()
}

/// Convection along and across the grid, by GMRES.
pub fn classical_convection<B: Able>(backend: &B) {
    for (diffusion, most) in [(1.0 / 24.0, 20), (1.0 / 480.0, 30)] {
        let a = generate::convection_diffusion([24, 24, 24], diffusion).unwrap().to_backend(backend).unwrap();
        let m = Multigrid::new(backend, &a, &classical().real_eigenvalues(false)).unwrap();
        // It is chosen automatically for such a matrix.
        let auto = options().boxes(false).real_eigenvalues(false);
        assert_eq!(Multigrid::new(backend, &a, &auto).unwrap().facts(), m.facts());
        let took = solved_by_gmres(backend, &a, &m);
        assert!(took <= most, "{took} iterations, at most {most} are expected");
    }
}

/// New values give the same as a new hierarchy; a matrix without a hierarchy is refused, and small and unusual matrices
/// are accepted.
pub fn classical_edges<B: Able>(backend: &B) {
    let a = generate::poisson2d(60, 70).unwrap();
    let n = a.rows();
    let of = |a: &Csr<f64>| Multigrid::new(backend, &a.to_backend(backend).unwrap(), &classical()).unwrap();
    let mut random = Random(11);
    let scales: Vec<f64> = (0..n).map(|_| 2.0 + random.signed()).collect();
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        columns.extend_from_slice(a.row(i).0);
        let scaled = |(&j, &value): (&u32, &f64)| value * scales[i] * scales[j as usize];
        values.extend(a.row(i).0.iter().zip(a.row(i).1).map(scaled));
        offsets.push(columns.len());
    }
    let scaled = Csr::from_parts(n, n, offsets, columns, values).unwrap();
    let mut m = of(&a);
    m.update(backend, &scaled.to_backend(backend).unwrap()).unwrap();
    assert_eq!(applied(backend, &m), applied(backend, &of(&scaled)));
    assert_ne!(applied(backend, &m), applied(backend, &of(&a)));
    // If the choice is left open, it smooths by the diagonal, so that half the precision is enough.
    let strong = generate::anisotropic2d(60, 70, 1e-3).unwrap().to_backend(backend).unwrap();
    let by =
        |smoothing| Multigrid::new(backend, &strong, &classical().narrow(true).smoothing(smoothing)).unwrap();
    let decided = by(Smoothing::Auto);
    assert_eq!(applied(backend, &decided), applied(backend, &by(Smoothing::Diagonal)));
    assert!(decided.narrow_work_len() > 0);
    let there = a.to_backend(backend).unwrap();
    for refused in [classical().unknowns_a_node(2), classical().prolongation(Prolongation::LeastEnergy)] {
        assert!(matches!(Multigrid::new(backend, &there, &refused), Err(Error::Unsupported(_))));
    }
    let given = Multigrid::with_near_null(backend, &there, 1, vec![1.0; n], &classical());
    assert!(matches!(given, Err(Error::Unsupported(_))));
    assert!(matches!(
        Multigrid::new(backend, &there, &classical().weights(0)),
        Err(Error::InvalidArgument(_))
    ));
    // Unknowns that can't be interpolated: a diagonal matrix, couplings with the sign of the diagonal, a single row.
    let few = classical().coarsest_rows(1);
    for a in [
        generate::diagonal(300).unwrap(),
        generate::tridiagonal(500).unwrap().map(f64::abs),
        generate::tridiagonal(1).unwrap(),
    ] {
        let m = Multigrid::new(backend, &a.to_backend(backend).unwrap(), &few).unwrap();
        assert_eq!(m.facts().levels.len(), 1, "{}", m.facts());
    }
    at_most(backend, 12, &generate::tridiagonal(2000).unwrap(), &few, "one dimension");
}
