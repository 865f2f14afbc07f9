//! The method that solves a system, named or chosen by the solver.

use crate::systems::*;
use crate::{noise, quick, shuffled, solves, uneven};
use residua::backend::PreconditionSteps;
use residua::krylov::Outcome;
use residua::prelude::*;
use residua::solver::{PreconditionerChoice, Reorder, SolveReport, SolverBackend};

/// A matrix with a wind: not symmetric.
fn convection(k: usize) -> Csr<f64> {
    let mut a = poisson2d(k);
    let wind: Vec<f64> = a.iter().map(|(i, j, v)| if j > i { v * 0.6 } else { v * 1.1 }).collect();
    a.values_mut().copy_from_slice(&wind);
    a
}

/// Symmetric, with eigenvalues on both sides of zero.
fn indefinite(k: usize) -> Csr<f64> {
    let mut a = poisson2d(k);
    let diagonal: Vec<usize> =
        a.iter().enumerate().filter(|(_, (i, j, _))| i == j).map(|(at, _)| at).collect();
    diagonal.into_iter().for_each(|at| a.values_mut()[at] -= 1.03);
    a
}

/// Three equations for each pair of unknowns whose numbers differ by one.
fn tall(n: usize) -> Csr<f64> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..3 * n {
        let (first, second) = (i % n, (i + 1 + i / n) % n);
        columns.extend([first.min(second) as u32, first.max(second) as u32]);
        values.extend([2.0 + (i % 3) as f64, -1.0]);
        offsets.push(values.len());
    }
    Csr::from_parts(3 * n, n, offsets, columns, values).unwrap()
}

fn every_method_solves_what_it_is_for<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let definite = uneven(12);
    let b = noise(144, 10);
    for (method, matrices) in [
        (Method::Cg, vec![csr_copy(&definite)]),
        (Method::Minres, vec![csr_copy(&definite), indefinite(12)]),
        (Method::Gmres, vec![csr_copy(&definite), convection(12)]),
        (Method::BiCgStab, vec![csr_copy(&definite), convection(12)]),
        (Method::Lsmr, vec![csr_copy(&definite), convection(12), indefinite(12)]),
        (Method::Direct, vec![csr_copy(&definite), convection(12), indefinite(12)]),
    ] {
        for (a, name) in matrices.iter().flat_map(|a| ["auto", "none", "jacobi"].map(|name| (a, name))) {
            let builder = Solver::builder().method(method).preconditioner(name.parse()?);
            let mut solver = builder.build_on(backend, backend.place(csr_copy(a)))?;
            let solution = solver.solve(&b)?;
            assert!(solution.report.outcome.is_converged(), "{method} {name}: {:?}", solution.report);
            assert!(solves(a, &b, &solution.x, 1e-8), "{method}");
            assert_eq!((solution.report.method, solution.report.trail.stages.len()), (method, 1));
            // With new values.
            let values: Vec<f64> = a.parts().values.iter().map(|value| 2.0 * value).collect();
            solver.update(&values)?;
            let twice = solver.solve(&b)?;
            assert!(twice.report.outcome.is_converged(), "{method} {name}, updated: {:?}", twice.report);
            let apart: Vec<f64> = twice.x.iter().zip(&solution.x).map(|(half, x)| 2.0 * half - x).collect();
            assert!(norm(&apart) < 1e-4 * norm(&solution.x), "{method} {name}: {:e}", norm(&apart));
        }
    }
    Ok(())
}

/// GMRES with the diagonal soon gives way to a factorisation, but not if the diagonal was named. The matrix is large,
/// takes more iterations with its diagonal than the first stage may use, and has couplings of a sign for which
/// multigrid is not used. A device continues to iterate, since the fill-reducing ordering is computed on the host.
fn a_preconditioner_that_was_named_keeps_its_turn<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let n = 200_100;
    let a = csr(n, |i| if i == 0 { vec![(0, 1.0)] } else { vec![(i - 1, 0.9), (i, 1.0)] });
    let b = noise(n, 7);
    let solved = |name: &str| {
        let builder = Solver::builder().preconditioner(name.parse()?);
        builder.build_on(backend, backend.place(csr_copy(&a)))?.solve(&b)
    };
    let report = solved("jacobi")?.report;
    assert!(report.outcome.is_converged(), "{report:?}");
    assert!(report.trail.stages[0].iterations > 60 && report.iterations == report.trail.stages[0].iterations);
    let report = solved("auto")?.report;
    assert!(report.outcome.is_converged(), "{report:?}");
    if <B as PreconditionSteps>::IS_DEVICE {
        assert!(report.trail.stages[0].iterations > 60, "{report:?}");
        return Ok(());
    }
    assert_eq!(
        (report.method, report.preconditioner),
        (Method::Direct, PreconditionerChoice::None),
        "{report:?}"
    );
    assert!(report.trail.stages[0].iterations <= 60, "{report:?}");
    Ok(())
}

fn what_suits_is_found<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    for (a, method) in
        [(convection(15), Method::Direct), (indefinite(15), Method::Direct), (uneven(15), Method::Cg)]
    {
        for reorder in [Reorder::None, Reorder::Rcm] {
            let b = noise(225, 11);
            let builder = Solver::builder().reorder(reorder);
            let mut solver = builder.build_on(backend, backend.place(shuffled(&a)))?;
            let solution = solver.solve(&b)?;
            assert!(solution.report.outcome.is_converged(), "{method}: {:?}", solution.report);
            assert!(solves(&shuffled(&a), &b, &solution.x, 1e-8), "{method}");
            // On a device, iterations solve systems that are factorised on a CPU.
            let is_device = <B as PreconditionSteps>::IS_DEVICE;
            assert!(is_device || solution.report.method == method, "{:?}", solution.report.trail);
            assert_eq!(solution.history.len(), solution.report.iterations + 1);
        }
    }
    Ok(())
}

/// On a CPU, incomplete factors take over from the diagonal during a solve. A device does all iterations with the
/// diagonal, since triangular solves take longer there.
fn incomplete_factors_take_over<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = residua::generate::convection_diffusion([20, 20, 20], 0.05)?;
    let b = noise(8000, 5);
    let mut solver = Solver::builder().build_on(backend, backend.place(csr_copy(&a)))?;
    let solution = solver.solve(&b)?;
    assert!(solves(&a, &b, &solution.x, 1e-8));
    let ran = |report: &SolveReport| -> Vec<_> {
        let ran = report.trail.stages.iter().filter(|stage| stage.outcome.is_some());
        ran.map(|stage| (stage.method, stage.preconditioner)).collect()
    };
    if <B as PreconditionSteps>::IS_DEVICE {
        assert!(!ran(&solution.report).contains(&(Method::Gmres, PreconditionerChoice::Ilu)));
        return Ok(());
    }
    let both = [(Method::Gmres, PreconditionerChoice::Jacobi), (Method::BiCgStab, PreconditionerChoice::Ilu)];
    assert_eq!(ran(&solution.report), both, "{:?}", solution.report.trail);
    let told = solution.report.trail.stages[0].remark.clone().unwrap_or_default();
    assert!(told.contains("incomplete factors are forecast to take fewer iterations"), "{told}");
    // Another right-hand side begins with incomplete factors.
    let again = solver.solve(&noise(8000, 6))?;
    assert!(solves(&a, &noise(8000, 6), &again.x, 1e-8));
    assert_eq!(ran(&again.report), both[1..]);
    Ok(())
}

/// Multigrid is chosen on a grid, can be named with its options, takes new values, and is given up if it does not
/// contract.
fn multigrid_in_its_place<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let grid = residua::generate::poisson2d(120, 120)?;
    let b = noise(14_400, 3);
    for name in ["amg", "amg:steps=1,boxes=no", "amg:smoothing=blocks,precision=double"] {
        let builder = Solver::builder().method(Method::Cg).preconditioner(name.parse()?);
        let mut solver = builder.build_on(backend, grid.to_backend(backend)?)?;
        let solution = solver.solve(&b)?;
        let report = &solution.report;
        assert!(report.outcome.is_converged() && report.iterations < 25, "{name}: {report:?}");
        let told = report.trail.stages[0].remark.clone().unwrap_or_default();
        assert!(told.contains("14400 rows") || told.contains("14400, "), "{told}");
        let doubled: Vec<f64> = grid.parts().values.iter().map(|value| 2.0 * value).collect();
        solver.update(&doubled)?;
        let half = solver.solve(&b)?;
        assert!(half.report.outcome.is_converged());
        let apart: Vec<f64> = half.x.iter().zip(&solution.x).map(|(half, x)| 2.0 * half - x).collect();
        assert!(norm(&apart) < 1e-4 * norm(&solution.x), "{name}: {:e}", norm(&apart));
    }
    // A graph for which no hierarchy contracts is solved by another stage.
    let mut solver = quick().build_on(
        backend,
        shuffled(&residua::generate::anisotropic2d(110, 110, 1e-4)?).to_backend(backend)?,
    )?;
    let report = solver.solve(&noise(12_100, 5))?.report;
    assert!(report.outcome.is_converged(), "{report:?}");
    Ok(())
}

/// Displacements: rigid body modes from coordinates, the same given as vectors, and unknowns of a node recognised by
/// equal rows.
fn nodes_of_several_unknowns<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let elements = 10;
    let a = residua::generate::elasticity3d(elements, elements, elements, 0.3)?;
    let (n, side) = (a.rows(), elements + 1);
    let point = |i: usize| [i % elements + 1, i / elements % side, i / elements / side].map(|at| at as f64);
    let points: Vec<f64> = (0..n / 3).flat_map(point).collect();
    let modes = residua::multigrid::rigid_body_modes(3, &points)?;
    let b = noise(n, 4);
    let solved = |builder: residua::solver::Builder| {
        let mut solver = builder.build_on(backend, a.to_backend(backend)?)?;
        let solution = solver.solve(&b)?;
        let report = solution.report;
        assert!(report.outcome.is_converged() && solves(&a, &b, &solution.x, 1e-8), "{report:?}");
        let stage = &report.trail.stages[0];
        let told = stage.remark.clone().unwrap_or_default();
        assert!(stage.preconditioner.to_string().starts_with("amg"), "{report:?}");
        assert!(told.contains("3 unknowns per node"), "{told}");
        // New values.
        let doubled: Vec<f64> = a.parts().values.iter().map(|value| 2.0 * value).collect();
        solver.update(&doubled)?;
        let again = solver.solve(&b)?.report;
        assert!(again.outcome.is_converged() && again.iterations <= report.iterations + 2, "{again:?}");
        Ok::<_, Error>(report.iterations)
    };
    let amg = |name: &str| Ok::<_, Error>(Solver::builder().preconditioner(name.parse()?));
    let from_points = solved(Solver::builder().coordinates(3, points.clone()))?;
    assert!(from_points <= 18, "{from_points} iterations from coordinates");
    let given = solved(amg("amg:unknowns=3")?.near_null_space(6, modes.clone()))?;
    assert!(given.abs_diff(from_points) <= 1, "{given} iterations, {from_points} from coordinates");
    let found = solved(amg("amg")?)?;
    assert!(found <= 30, "{found} iterations, nodes found");
    // Arguments that do not match are errors.
    let refused = |builder: residua::solver::Builder, why: &str| {
        let message =
            builder.build_on(backend, a.to_backend(backend).unwrap()).err().map(|error| error.to_string());
        assert!(message.as_ref().is_some_and(|message| message.contains(why)), "{why}: {message:?}");
    };
    refused(Solver::builder().coordinates(3, points[3..].to_vec()), "equally many");
    refused(Solver::builder().coordinates(4, points.clone()), "4 dimensions");
    refused(Solver::builder().near_null_space(6, modes[6..].to_vec()), "near-null");
    refused(Solver::builder().near_null_space(0, Vec::new()), "0 near-null vectors");
    let mut hole = points.clone();
    hole[7] = f64::NAN;
    refused(Solver::builder().coordinates(3, hole), "point 3");
    refused(Solver::builder().coordinates(3, points).reorder(Reorder::Rcm), "order");
    Ok(())
}

/// A long mesh, for which conjugate gradients would take thousands of iterations: multigrid is the first stage.
fn multigrid_at_once_on_a_long_mesh<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = residua::generate::anisotropic2d(100, 2500, 1e-2)?;
    let solver = Solver::builder().build_on(backend, a.to_backend(backend)?)?;
    let first = &solver.trail().stages[0];
    let told = format!("{first:?}");
    assert!(first.preconditioner.to_string() == "amg" && told.contains("large mesh"), "{told}");
    // For a smaller one, the diagonal is tried first.
    let a = residua::generate::anisotropic2d(100, 500, 1e-2)?;
    let solver = Solver::builder().build_on(backend, a.to_backend(backend)?)?;
    assert_eq!(solver.trail().stages[0].preconditioner.to_string(), "jacobi");
    Ok(())
}

/// A large matrix that is neither Hermitian nor on a grid, whose couplings have one sign: classical multigrid is tried
/// early.
fn classical_multigrid_in_its_place<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    // A small-world graph: neighbours on a circle, and one far away.
    let n = 200_100;
    let far = |i: usize| (i * 7919 + 13) % n;
    let with = |sign: f64| {
        csr(n, |i| {
            let others = [((i + 1) % n, 1.0 + (i % 3) as f64), ((i + n - 1) % n, 1.0), (far(i), 0.5)];
            let mut row: Vec<_> = others.into_iter().filter(|&(j, _)| j != i).collect();
            row.sort_by_key(|&(j, _)| j);
            row.dedup_by_key(|&mut (j, _)| j);
            let sum: f64 = row.iter().map(|&(_, size)| size).sum();
            row.iter_mut().for_each(|(_, size)| *size *= sign);
            row.insert(row.partition_point(|&(j, _)| j < i), (i, sum + 0.01));
            row
        })
    };
    for (sign, expected) in [(-1.0, true), (1.0, false)] {
        let solver = Solver::builder().build_on(backend, backend.place(with(sign)))?;
        let stages = &solver.trail().stages;
        assert_eq!(stages[0].preconditioner, PreconditionerChoice::Jacobi, "{stages:?}");
        let is_listed =
            stages.iter().any(|stage| matches!(stage.preconditioner, PreconditionerChoice::Multigrid(_)));
        assert_eq!(is_listed, expected, "{sign}: {stages:?}");
    }
    Ok(())
}

/// A Laplacian with a negative diagonal: one right-hand side from a start, several at once, new values of either sign,
/// and a grid.
fn negative_definite<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let negative = |a: &Csr<f64>| a.map(|value| -value);
    for a in [uneven(20), shuffled(&uneven(20))] {
        let (n, b) = (a.rows(), noise(400, 3));
        for builder in
            [quick(), quick().method(Method::Cg), quick().right_hand_sides(4), quick().updates(true)]
        {
            let mut solver = builder.build_on(backend, negative(&a).to_backend(backend)?)?;
            assert!(format!("{:?}", solver.trail().decisions).contains("the diagonal is negative"));
            let solution = solver.solve(&b)?;
            assert!(solves(&negative(&a), &b, &solution.x, 1e-10), "{:?}", solution.report);
            // Starting from the solution.
            let mut x = solution.x.clone();
            let again = solver.solve_into(&b, &mut x)?;
            assert!(again.outcome.is_converged() && again.iterations <= 2, "{again:?}");
            let several: Vec<f64> = (0..4).flat_map(|seed| noise(n, seed)).collect();
            let mut x = vec![0.0; 4 * n];
            solver.solve_many(&several, &mut x)?;
            for (b, x) in several.chunks(n).zip(x.chunks(n)) {
                assert!(solves(&negative(&a), b, x, 1e-10));
            }
            for new in [negative(&a).map(|value| 2.0 * value), a.map(|value| 3.0 * value)] {
                solver.update(new.parts().values)?;
                let solution = solver.solve(&b)?;
                assert!(solves(&new, &b, &solution.x, 1e-10), "{:?}", solution.report);
            }
        }
    }
    let grid = negative(&residua::generate::poisson2d(120, 120)?);
    let mut solver =
        Solver::builder().preconditioner("amg".parse()?).build_on(backend, grid.to_backend(backend)?)?;
    let report = solver.solve(&noise(14_400, 3))?.report;
    assert!(report.method == Method::Cg && report.iterations <= 12, "{report:?}");
    // With one entry of another sign, the matrix is indefinite.
    let mut mixed = negative(&uneven(20));
    let place = mixed.iter().position(|(i, j, _)| i == 399 && j == 399).expect("a diagonal entry");
    mixed.values_mut()[place] = 1.0;
    let mut solver = quick().build_on(backend, mixed.to_backend(backend)?)?;
    assert!(!format!("{:?}", solver.trail().decisions).contains("the diagonal is negative"));
    assert!(solves(&mixed, &noise(400, 3), &solver.solve(&noise(400, 3))?.x, 1e-10));
    Ok(())
}

/// Multigrid solves systems whose equations are divided by volumes, or whose unknowns are scaled, after few other
/// iterations.
fn multigrid_where_rows_were_scaled<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = shuffled(&residua::generate::anisotropic2d(150, 130, 0.3)?);
    let n = a.rows();
    let units: Vec<f64> = noise(n, 8).into_iter().map(|noise| 10.0_f64.powf(noise)).collect();
    let times = |left: &dyn Fn(usize) -> f64, right: &dyn Fn(usize) -> f64| {
        let mut triplets = Triplets::new(n, n)?;
        for (i, j, value) in a.iter() {
            triplets.push(i, j, value * (left(i) * right(j)))?;
        }
        Csr::from_triplets(triplets)
    };
    let (own, one) = (|i: usize| units[i], |_: usize| 1.0);
    for (what, scaled, method) in
        [("rows", times(&own, &one)?, Method::Gmres), ("columns", times(&one, &own)?, Method::Gmres)]
    {
        let b = noise(n, 9);
        // Factors would be cheaper for so few unknowns.
        let builder = Solver::builder().memory_limit(1000);
        let mut solver = builder.build_on(backend, scaled.to_backend(backend)?)?;
        let solution = solver.solve(&b)?;
        assert!(solves(&scaled, &b, &solution.x, 1e-8), "{what}");
        let stages = &solution.report.trail.stages;
        let last = stages.iter().rfind(|stage| stage.outcome.is_some()).expect("a stage that solved");
        assert!(last.preconditioner.to_string() == "amg", "{what}: {stages:?}");
        assert!(last.method == method && last.iterations <= 20, "{what}: {last:?}");
    }
    Ok(())
}

/// More unknowns than equations, with rows scaled over `decades` decades: x = A^T y is the solution of least norm, for
/// any y.
fn of_many_solutions_that_of_least_norm<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    for (decades, methods) in [(0.0, &[Method::Lsmr][..]), (8.0, &[Method::Lsmr, Method::Direct])] {
        let (rows, columns) = (60, 140);
        let mut triplets = Triplets::new(rows, columns)?;
        for i in 0..rows {
            let scale = 10.0_f64.powf(decades * i as f64 / rows as f64);
            for (k, value) in noise(5, i).into_iter().enumerate() {
                triplets.push(i, (2 * i + 17 * k) % columns, scale * (value + 2.0))?;
            }
        }
        let a = Csr::from_triplets(triplets)?;
        let y: Vec<f64> = noise(rows, 7);
        // Rows with large entries get small y, so that all of them contribute to x.
        let weighted =
            y.iter().enumerate().map(|(i, y)| y * 10.0_f64.powf(-decades * i as f64 / rows as f64));
        let x_least = &a.transpose(&Host)? * &weighted.collect::<Vec<_>>();
        let b = &a * &x_least;
        let mut solver = Solver::builder().tolerance(1e-12).build_on(backend, a.to_backend(backend)?)?;
        let solution = solver.solve(&b)?;
        let report = &solution.report;
        assert!(report.outcome.is_solved() && methods.contains(&report.method), "{report:?}");
        let error = x_least.iter().zip(&solution.x).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let norm = x_least.iter().map(|x| x * x).sum::<f64>().sqrt();
        let bound = if decades > 0.0 { 1e-3 } else { 1e-9 };
        assert!(error <= bound * norm, "{decades}: {error:e} of {norm:e} by {}", report.method);
    }
    Ok(())
}

fn least_squares_are_called_so<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = tall(40);
    let mut solver = quick().build_on(backend, backend.place(csr_copy(&a)))?;
    assert_eq!((solver.rows(), solver.columns()), (120, 40));
    // If there is a solution, it is found.
    let known = noise(40, 12);
    let mut b = vec![0.0; 120];
    a.product(&Host, 1.0, &known, 0.0, &mut b)?;
    let solution = solver.solve(&b)?;
    assert!(solution.report.outcome.is_converged() && solution.report.method == Method::Lsmr);
    assert!(solution.x.iter().zip(&known).all(|(x, known)| (x - known).abs() < 1e-6));
    // If there is none, the nearest x is found: A^T r = 0.
    let b = noise(120, 13);
    let solution = solver.solve(&b)?;
    assert_eq!(solution.report.outcome, Outcome::LeastSquares);
    let mut r = b.clone();
    a.product(&Host, -1.0, &solution.x, 1.0, &mut r)?;
    let mut gradient = vec![0.0; 40];
    a.product_op(&Host, residua::backend::Op::Transpose, 1.0, &r, 0.0, &mut gradient)?;
    assert!(norm(&gradient) < 1e-8 * norm(&r), "{:e}", norm(&gradient));
    // Several, one after the other.
    let (b, mut x) = ([b.clone(), b].concat(), vec![0.0; 80]);
    assert_eq!(solver.solve_many(&b, &mut x)?.len(), 2);
    assert!(x[..40] == solution.x && x[40..] == solution.x);
    Ok(())
}

on_every_backend!(
    every_method_solves_what_it_is_for,
    what_suits_is_found,
    incomplete_factors_take_over,
    a_preconditioner_that_was_named_keeps_its_turn,
    multigrid_in_its_place,
    multigrid_at_once_on_a_long_mesh,
    classical_multigrid_in_its_place,
    multigrid_where_rows_were_scaled,
    negative_definite,
    nodes_of_several_unknowns,
    least_squares_are_called_so,
    of_many_solutions_that_of_least_norm,
);
