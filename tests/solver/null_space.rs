//! Null spaces: constants that are found, on one component or several, and given vectors.

use super::*;
use residua::Triplets;
use residua::assemble::Assembler;
use residua::direct::Singularity;

/// The Laplacian of `count` rings of different lengths with chords.
fn rings(count: usize) -> (Csr<f64>, Vec<usize>) {
    let (mut first, mut part) = (0, Vec::new());
    let lengths: Vec<usize> = (0..count).map(|k| 5 + 3 * k).collect();
    let n = lengths.iter().sum();
    let mut triplets = Triplets::new(n, n).unwrap();
    for (number, length) in lengths.into_iter().enumerate() {
        for i in 0..length {
            for step in [1, 2] {
                let (a, b) = (first + i, first + (i + step) % length);
                let weight = 0.3 + ((a * 7 + b) % 11) as f64;
                triplets.push(a, a, weight).unwrap();
                triplets.push(b, b, weight).unwrap();
                triplets.push(a, b, -weight).unwrap();
                triplets.push(b, a, -weight).unwrap();
            }
            part.push(number);
        }
        first += length;
    }
    (Assembler::default().to_csr(&Host, triplets).unwrap(), part)
}

/// The mean of x on each component.
fn means(x: &[f64], part: &[usize]) -> Vec<f64> {
    let parts = part.iter().max().unwrap() + 1;
    let (mut sums, mut sizes) = (vec![0.0; parts], vec![0.0; parts]);
    for (x, &part) in x.iter().zip(part) {
        sums[part] += x;
        sizes[part] += 1.0;
    }
    sums.iter().zip(sizes).map(|(sum, size)| sum / size).collect()
}

fn constants_are_taken_out_of_b_and_x<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    // One component, a few, and more than are stored as vectors.
    for count in [1, 3, 20] {
        let (a, part) = rings(count);
        let n = a.rows();
        let b = noise(n, count);
        let of_b = means(&b, &part);
        let consistent: Vec<f64> = b.iter().zip(&part).map(|(b, &part)| b - of_b[part]).collect();
        let outside = norm(&b.iter().zip(&consistent).map(|(b, c)| b - c).collect::<Vec<_>>());
        for builder in [quick().null_space_constants(), quick().null_space_constants().reorder(Reorder::Rcm)]
        {
            let mut solver = builder.build_on(backend, a.to_backend(backend)?)?;
            let solution = solver.solve(&b)?;
            let report = &solution.report;
            assert_eq!(report.outcome, Outcome::LeastSquares, "{count}: {report:?}");
            assert!((report.outside_range.unwrap() - outside).abs() < 1e-10 * norm(&b), "{report:?}");
            assert!(solves(&a, &consistent, &solution.x, 1e-10));
            // The shortest of all solutions has no constant part.
            assert!(means(&solution.x, &part).iter().all(|mean| mean.abs() < 1e-12 * norm(&solution.x)));
            let true_norm = norm(&true_residual(&a, &b, &solution.x));
            assert!((report.residual_norm / true_norm - 1.0).abs() < 1e-8, "{report:?}");
            // If b has no such part, the same x is a solution.
            let solution = solver.solve(&consistent)?;
            assert_eq!(solution.report.outcome, Outcome::Converged);
            assert!(solves(&a, &consistent, &solution.x, 1e-10));
            // Nothing is left of b: x = 0 is the nearest.
            let constants: Vec<f64> = part.iter().map(|&part| 1.0 + part as f64).collect();
            let solution = solver.solve(&constants)?;
            assert_eq!(solution.report.outcome, Outcome::LeastSquares);
            assert!(norm(&solution.x) < 1e-9, "{}", norm(&solution.x));
        }
    }
    Ok(())
}

fn vectors_that_are_given_are_checked<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let (a, _) = rings(1);
    let n = a.rows();
    // With scaled rows the matrix is not symmetric, but it maps constants to zero all the same.
    let mut rows = a.clone();
    let scale: Vec<usize> = rows.iter().map(|(i, _, _)| i).collect();
    rows.values_mut().iter_mut().zip(scale).for_each(|(value, row)| *value *= 1.0 + row as f64);
    let x = noise(n, 3);
    let mut b = vec![0.0; n];
    rows.product(&Host, 1.0, &x, 0.0, &mut b)?;
    // Linearly dependent vectors are accepted too.
    let vectors = [vec![2.0; n], vec![-1.0; n]];
    let mut solver = quick().null_space(&vectors).build_on(backend, rows.to_backend(backend)?)?;
    let solution = solver.solve(&b)?;
    assert!(solution.report.outcome.is_converged() && solution.report.outside_range.is_none());
    let mean = solution.x.iter().sum::<f64>() / n as f64;
    assert!(solves(&rows, &b, &solution.x, 1e-10) && mean.abs() < 1e-12);
    let refused = |vectors: &[Vec<f64>]| {
        quick().null_space(vectors).build_on::<f64, B>(backend, a.to_backend(backend).unwrap()).is_err()
    };
    assert!(refused(&[noise(n, 1)]) && refused(&[vec![1.0; n - 1]]) && refused(&[vec![f64::NAN; n]]));
    assert!(
        quick().null_space_constants().build_on::<f64, B>(backend, uneven(5).to_backend(backend)?).is_err()
    );
    Ok(())
}

on_every_backend! {
    constants_are_taken_out_of_b_and_x,
    vectors_that_are_given_are_checked,
}

#[test]
fn constants_are_found_on_the_cpu_until_the_values_change() -> Result<()> {
    let (a, _) = rings(3);
    let b = noise(a.rows(), 4);
    let mut solver = quick().updates(true).build(&a)?;
    assert!(
        solver
            .trail()
            .decisions
            .iter()
            .any(|d| d.subject == "null space" && d.chosen.contains("3 components"))
    );
    assert_eq!(solver.solve(&b)?.report.outcome, Outcome::LeastSquares);
    let mut regular = a.clone();
    let diagonal: Vec<bool> = a.iter().map(|(i, j, _)| i == j).collect();
    regular.values_mut().iter_mut().zip(diagonal).for_each(|(v, on)| *v += f64::from(u8::from(on)));
    solver.update(regular.parts().values)?;
    let solution = solver.solve(&b)?;
    assert!(solution.report.outcome.is_converged() && solution.report.outside_range.is_none());
    assert!(solves(&regular, &b, &solution.x, 1e-10));
    // A method that was named takes b unchanged.
    let report = quick().method(Method::Lsmr).build(&a)?.solve(&b)?.report;
    assert!(report.outside_range.is_none());
    Ok(())
}

#[test]
fn a_structurally_singular_matrix_names_rows_and_columns_in_the_callers_order() -> Result<()> {
    // Rows 1, 4 and 6 have entries in column 2 alone, so that two of these rows and two columns cannot be matched.
    let mut triplets = Triplets::new(8, 8)?;
    for i in 0..8 {
        if [1, 4, 6].contains(&i) {
            triplets.push(i, 2, 1.0 + i as f64)?;
        } else {
            (0..8)
                .filter(|j| (i + j) % 3 != 0)
                .try_for_each(|j| triplets.push(i, j, 1.0 + (i * j % 5) as f64))?;
        }
    }
    let a = Assembler::default().to_csr(&Host, triplets)?;
    for reorder in [Reorder::None, Reorder::Rcm] {
        let mut solver = Solver::builder().reorder(reorder).build(&a)?;
        let report = solver.solve(&noise(8, 1))?.report;
        assert_eq!(report.outcome, Outcome::LeastSquares, "{report:?}");
        let found = report.unmatched.expect("it is structurally singular");
        assert!(found.rows.len() == 2 && found.rows.iter().all(|row| [1, 4, 6].contains(row)), "{found:?}");
        assert_eq!(found.columns.len(), 2);
    }
    Ok(())
}

#[test]
fn condition_and_digits_are_told_where_there_is_a_factor() -> Result<()> {
    let a = Csr::from_parts(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 1.0, 1e-6])?;
    let mut solver = Solver::builder().condition(true).build(&a)?;
    let report = solver.solve(&[1.0, 2.0])?.report;
    // ||A||_1 = 1 + 1e-6, ||A^-1||_1 = 2e6.
    assert!((report.condition.unwrap() / 2e6 - 1.0).abs() < 1e-3, "{report:?}");
    assert!((8.0..11.0).contains(&report.digits.unwrap()), "{report:?}");
    assert!(Solver::builder().build(&a)?.solve(&[1.0, 2.0])?.report.condition.is_none());
    Ok(())
}

/// LSMR by itself proves that a square matrix is singular: its residual is a null vector of the transpose.
#[test]
fn lsmr_gives_a_least_squares_solution_of_a_singular_square_system() -> Result<()> {
    let entries = [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 4.0), (2, 2, 1.0)];
    let mut triplets = Triplets::new(3, 3)?;
    for (i, j, value) in entries {
        triplets.push(i, j, value)?;
    }
    let a = Assembler::default().to_csr(&Host, triplets)?;
    let solution = Solver::builder().method(Method::Lsmr).build(&a)?.solve(&[1.0, 1.0, 1.0])?;
    let (report, x) = (&solution.report, &solution.x);
    assert_eq!(report.outcome, Outcome::LeastSquares);
    assert!(matches!(report.singularity, Some(Singularity::NullVector { ratio }) if ratio <= 16.0));
    assert!((x[2] - 1.0).abs() < 1e-8 && (x[0] + 2.0 * x[1] - 0.6).abs() < 1e-8, "{x:?}");
    Ok(())
}
