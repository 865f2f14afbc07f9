//! Persistent iterations compared with the same iterations step by step, on unusual patterns. A backend without
//! persistent iterations runs the same way twice.

#[macro_use]
#[path = "common/systems.rs"]
mod systems;

use num_complex::Complex;
use residua::backend::KrylovSteps;
use residua::generate::Random;
use residua::krylov::{Cg, FixedPatternCg, Minres, Outcome, SolveOptions};
use residua::matrix::Sell;
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::scalar::Promote;
use residua::{Csr, Error, Host, LinearOperator, Real, Result, Scalar, Triplets};
use std::ops::ControlFlow;
use systems::*;

/// A Hermitian, diagonally dominant matrix with about `nonzeros` pairs at random places, some rows empty except for the
/// diagonal, and row `giant` full if it is given.
fn random_system<T: Scalar>(n: usize, nonzeros: usize, giant: Option<usize>, seed: u64) -> Csr<T> {
    let mut random = Random::new(seed);
    let mut rows = vec![std::collections::BTreeMap::new(); n];
    let mut pair = |i: usize, j: usize, random: &mut Random| {
        let (re, im) = (random.between(-1.0, 1.0), random.between(-1.0, 1.0));
        if i != j {
            rows[i].insert(j, (re, im));
            rows[j].insert(i, (re, -im));
        }
    };
    let place = |random: &mut Random| (random.between(0.0, n as f64) as usize).min(n - 1);
    for _ in 0..nonzeros {
        let (i, j) = (place(&mut random), place(&mut random));
        if i % 7 != 3 && j % 7 != 3 {
            pair(i, j, &mut random);
        }
    }
    if let Some(giant) = giant {
        (0..n).for_each(|j| pair(giant, j, &mut random));
    }
    let mut triplets = Triplets::new(n, n).unwrap();
    for (i, row) in rows.iter().enumerate() {
        let mut sum = 0.1;
        for (&j, &(re, im)) in row {
            let im = if T::COMPLEX { im } else { 0.0 };
            sum += re.hypot(im);
            triplets.push(i, j, T::from_parts(re, im).unwrap()).unwrap();
        }
        triplets.push(i, i, T::from_f64(sum)).unwrap();
    }
    Csr::from_triplets(triplets).unwrap()
}

/// Solves in both ways, with stored values of type `V`, and compares.
fn both_ways<V: Scalar + Promote<T>, T: Scalar, B: Device>(
    backend: &B,
    host: &Csr<V>,
    jacobi: bool,
    options: &SolveOptions,
    what: &str,
) -> Result<()> {
    fn one<T: Scalar, B: Device>(
        backend: &B,
        a: &dyn LinearOperator<T, B>,
        m: &dyn Preconditioner<T, B>,
        options: &SolveOptions,
        minres: bool,
    ) -> Result<Solved<T>> {
        let n = a.rows();
        let b: Vec<T> = (0..n).map(|i| T::from_f64(((i * 7919) % 1009) as f64 / 500.0 - 1.0)).collect();
        let (b, mut x) = (backend.upload(b)?, backend.zeros(n)?);
        let watch = |_: usize, _: f64| ControlFlow::Continue(());
        let (report, history) = if minres {
            let mut minres = Minres::new(backend, n, options.clone())?;
            (minres.solve(a, m, &b, &mut x, watch)?, minres.into_history())
        } else {
            let mut cg = Cg::new(backend, n, options.clone())?;
            (cg.solve(a, m, &b, &mut x, watch)?, cg.into_history())
        };
        Ok(Solved { x: backend.download(&x)?, report, history })
    }
    let a = backend.place(csr_copy(host));
    if !jacobi && host.rows() <= 20_000 {
        let steps = one::<T, B>(backend, &Stepwise(&a), &Identity, options, true)?;
        let persistent = one::<T, B>(backend, &a, &Identity, options, true)?;
        let again = one::<T, B>(backend, &a, &Identity, options, true)?;
        compare(&steps, &persistent, &again, &format!("{what}, minres"));
    }
    let one = |backend: &B, a: &dyn LinearOperator<T, B>, m: &dyn Preconditioner<T, B>, options: &_| {
        one(backend, a, m, options, false)
    };
    let preconditioner = Jacobi::new(backend, &a)?;
    let m: &dyn Preconditioner<T, B> = if jacobi { &preconditioner } else { &Identity };
    let steps = one(backend, &Stepwise(&a), m, options)?;
    let persistent = one(backend, &a, m, options)?;
    let again = one(backend, &a, m, options)?;
    compare(&steps, &persistent, &again, what);
    // The same with a streamed matrix, if SELL can store this one in spite of padding.
    match Sell::with_chunks(backend, &a, 32, 1) {
        Ok(sell) => {
            let persistent = one(backend, &sell, m, options)?;
            let again = one(backend, &sell, m, options)?;
            compare(&steps, &persistent, &again, &format!("{what}, streamed"));
        }
        Err(Error::Refused { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn compare<T: Scalar>(steps: &Solved<T>, persistent: &Solved<T>, again: &Solved<T>, what: &str) {
    assert!(
        persistent.x == again.x && persistent.history == again.history,
        "{what}: other bits at the second time"
    );
    assert_eq!(persistent.report.outcome, steps.report.outcome, "{what}");
    let (many, few) = (persistent.report.iterations, steps.report.iterations);
    assert!(many.abs_diff(few) <= 1 + few / 50, "{what}: {many} iterations, not {few}");
    assert_eq!(persistent.history.len(), many + 1, "{what}");
    let apart: Vec<T> = persistent.x.iter().zip(&steps.x).map(|(&a, &b)| a - b).collect();
    let epsilon = <T::Real as num_traits::Float>::epsilon().to_f64();
    let tolerance = 1e3 * epsilon.sqrt() * norm(&steps.x);
    assert!(norm(&apart) <= tolerance, "{what}: {:e} apart", norm(&apart));
}

fn awkward_patterns<B: Device>(backend: &B) -> Result<()> {
    let options = SolveOptions::default();
    for (n, nonzeros, giant) in [
        (1, 0, None),
        (2, 1, None),
        (31, 40, None),
        (33, 500, Some(0)),
        (597, 3000, None),
        (597, 300, Some(596)),
        (2_049, 9_000, None),
        (9_001, 30_000, None),
        (20_000, 30_000, Some(7)),
        (70_001, 150_000, None),
        (300_000, 900_000, None),
    ] {
        for jacobi in [false, true] {
            let what = format!("{n} rows, {nonzeros} pairs, giant {giant:?}, jacobi {jacobi}");
            let a = random_system::<f64>(n, nonzeros, giant, n as u64);
            both_ways::<f64, f64, B>(backend, &a, jacobi, &options, &what)?;
        }
    }
    Ok(())
}

fn every_type<B: Device>(backend: &B) -> Result<()> {
    let options = SolveOptions::default();
    for n in [300, 5_000, 40_000] {
        for jacobi in [false, true] {
            let what = |name| format!("{name}, {n} rows, jacobi {jacobi}");
            let real = random_system::<f32>(n, 2 * n, None, 3);
            both_ways::<f32, f32, B>(backend, &real, jacobi, &options, &what("f32"))?;
            both_ways::<f32, f64, B>(backend, &real, jacobi, &options, &what("f32 in f64"))?;
            let complex = random_system::<Complex<f64>>(n, 2 * n, None, 4);
            both_ways::<_, Complex<f64>, B>(backend, &complex, jacobi, &options, &what("c64"))?;
            let complex = random_system::<Complex<f32>>(n, 2 * n, None, 5);
            both_ways::<_, Complex<f32>, B>(backend, &complex, jacobi, &options, &what("c32"))?;
        }
    }
    Ok(())
}

/// An iteration limit is exact, wherever a launch of persistent iterations ends.
fn limits_are_exact<B: Device>(backend: &B) -> Result<()> {
    let a = poisson2d(130);
    let b = times_ones(&a);
    let count = B::PERSISTENT_ITERATIONS.max(4);
    let mut longest = Vec::new();
    for limit in [2 * count + 1, 1, count - 1, count, count + 1] {
        let options = defaults().max_iterations(limit).tolerance(1e-14);
        let solved = run(backend, &a, false, &b, vec![0.0; b.len()], options)?;
        assert_eq!((solved.report.outcome, solved.report.iterations), (Outcome::IterationLimit, limit));
        if longest.is_empty() {
            longest.clone_from(&solved.history);
        }
        // The iterations are the same, whatever the limit.
        assert_eq!(solved.history[..], longest[..=limit]);
    }
    Ok(())
}

/// New values in the same matrix are used at once: nothing of the old ones is kept.
fn new_values_on_the_same_pattern<B: Device>(backend: &B) -> Result<()> {
    let mut a = backend.place(poisson2d(40));
    let b = backend.upload(vec![1.0; 1600])?;
    let mut cg = Cg::new(backend, 1600, defaults())?;
    let mut sizes = Vec::new();
    for scale in [1.0, 4.0] {
        let values: Vec<f64> = poisson2d(40).parts().values.iter().map(|v| v * scale).collect();
        backend.write(&values, a.values_mut())?;
        let mut x = backend.zeros(1600)?;
        let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
        assert!(report.outcome.is_converged());
        sizes.push(norm(&backend.download(&x)?));
    }
    assert_eq!(sizes[0], 4.0 * sizes[1]);
    Ok(())
}

/// The warm solver: new values, several right-hand sides, arguments that do not match.
fn fixed_pattern<B: Device>(backend: &B) -> Result<()> {
    let host = poisson2d(20);
    let (n, values) = (host.rows(), host.parts().values.to_vec());
    let expected = times_ones(&host);
    let mut solver = FixedPatternCg::setup(backend, backend.place(host), defaults())?;
    for scale in [1.0, 0.25, 8.0] {
        solver.update(&*backend.upload(values.iter().map(|v| v * scale).collect())?)?;
        let b: Vec<f64> =
            [1.0, -2.0, 0.0].iter().flat_map(|k| expected.iter().map(move |b| k * scale * b)).collect();
        let (b, mut x) = (backend.upload(b)?, backend.zeros(3 * n)?);
        let mut outcomes = Vec::new();
        solver.solve_each(&b, &mut x, |k, report| {
            outcomes.push((k, report.outcome));
            ControlFlow::Continue(())
        })?;
        assert_eq!(outcomes, [0, 1, 2].map(|k| (k, Outcome::Converged)));
        let x = backend.download(&x)?;
        for (part, k) in x.chunks(n).zip([1.0, -2.0, 0.0]) {
            assert!(part.iter().all(|x| (x - k).abs() < 1e-6));
        }
        // Stopped after the first.
        let mut x = backend.zeros(3 * n)?;
        solver.solve_each(&b, &mut x, |_, _| ControlFlow::Break(()))?;
        assert!(backend.download(&x)?[n..].iter().all(|&x| x == 0.0));
    }
    // A matrix that is not positive definite is an error that names the entry, and the next values are solved.
    let bad = backend.upload(values.iter().map(|v| -v).collect())?;
    assert!(matches!(solver.update(&bad), Err(Error::Diagonal { row: 0, value: -4.0 })));
    solver.update(&*backend.upload(values.clone())?)?;
    let mut x = backend.zeros(n)?;
    assert!(solver.solve(&*backend.upload(expected)?, &mut x)?.outcome.is_converged());
    assert!(solver.history().len() > 1 && solver.matrix().rows() == n);
    let short = backend.zeros(5)?;
    assert!(matches!(solver.update(&short), Err(Error::Dimension { .. })));
    assert!(solver.solve(&short, &mut x).is_err());
    assert!(
        solver
            .solve_each(
                &*backend.zeros(n + 1)?,
                &mut *backend.zeros(n + 1)?,
                |_, _| ControlFlow::Continue(())
            )
            .is_err()
    );
    Ok(())
}

on_every_backend!(
    awkward_patterns,
    every_type,
    limits_are_exact,
    new_values_on_the_same_pattern,
    fixed_pattern
);

#[test]
fn the_host_has_no_persistent_iterations() {
    assert_eq!(Host::PERSISTENT_ITERATIONS, 0);
}
