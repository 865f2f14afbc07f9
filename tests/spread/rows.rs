//! Ranks that have their own rows alone.

use crate::{N, random, ring};
use num_complex::Complex;
use residua::backend::{Communicator, Parts};
use residua::generate::{self, Random};
use residua::solver::{self, SolveReport, Solver};
use residua::spread::even_parts;
use residua::{Csr, Host, Result, Scalar};

/// Some rows of a matrix, with the columns of the whole.
fn rows_of<T: Scalar>(a: &Csr<T>, rows: std::ops::Range<usize>) -> Csr<T> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows.clone() {
        columns.extend_from_slice(a.row(row).0);
        values.extend_from_slice(a.row(row).1);
        offsets.push(values.len());
    }
    Csr::from_parts(rows.len(), a.columns(), offsets, columns, values).unwrap()
}

/// How a rank gets its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Whole,
    Rows,
    Own,
}

/// x and the report of rank 0, for rows that are given in one of three ways.
fn given<T: solver::Solvable>(
    a: &Csr<T>,
    b: &[T],
    rows: &[std::ops::Range<usize>],
    wishes: &solver::Builder,
    way: Way,
) -> Result<(Vec<T>, SolveReport)> {
    let solved: Vec<(Vec<T>, SolveReport)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(rows.len())
            .into_iter()
            .map(|part| {
                scope.spawn(move || {
                    let here = rows[Communicator::<Host>::part(&part)].clone();
                    let mut solver = match way {
                        Way::Whole => wishes.build_spread(&Host, part, a)?,
                        Way::Rows => wishes.build_spread_rows(&Host, part, a, rows)?,
                        Way::Own => wishes.build_spread_rows_on(&Host, part, rows_of(a, here), rows)?,
                    };
                    let mut x = vec![T::zero(); solver.numbers().len()];
                    let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                    Ok((x, report))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>()
    })?;
    let report = solved[0].1.clone();
    Ok((solved.into_iter().flat_map(|(x, _)| x).collect(), report))
}

/// A rank that has its rows alone, on the host among empty ones or in its backend's memory, solves with the bits of one
/// that was given the whole matrix.
#[test]
fn rows_given_in_any_way_solve_with_the_same_bits() {
    let symmetric = ring(-1.0, -1.0);
    let negative = symmetric.map(|value| -value);
    let plane = generate::poisson2d(60, 64).unwrap();
    let cases: [(&str, &Csr<f64>, solver::Method, &str); 9] = [
        ("cg", &symmetric, solver::Method::Cg, "jacobi"),
        ("negative", &negative, solver::Method::Cg, "jacobi"),
        ("minres", &negative, solver::Method::Minres, "none"),
        ("gmres", &ring(-0.4, -1.1), solver::Method::Gmres, "jacobi"),
        ("lsmr", &ring(-0.4, -1.1), solver::Method::Lsmr, "jacobi"),
        ("polynomial", &plane, solver::Method::Cg, "chebyshev"),
        ("grid", &plane, solver::Method::Cg, "amg"),
        ("aggregates", &plane, solver::Method::Cg, "amg:boxes=no"),
        ("auto", &plane, solver::Method::Auto, "auto"),
    ];
    for (name, a, method, preconditioner) in cases {
        let mut random = Random::new(9);
        let b: Vec<f64> = (0..a.rows()).map(|_| random.unit() - 0.5).collect();
        let mut wishes =
            Solver::<f64>::builder().method(method).all_parts(true).reorder(solver::Reorder::None);
        if preconditioner != "auto" {
            wishes = wishes.preconditioner(preconditioner.parse().unwrap());
        }
        for parts in [1, 2, 4] {
            // Whole lines of the grid, as `build_spread` divides it; it divides other matrices by their entries.
            let rows = if a.rows() == N {
                residua::spread::balanced_parts(a, parts)
            } else {
                even_parts(8, parts).iter().map(|lines| lines.start * 480..lines.end * 480).collect()
            };
            let (x, report) = given(a, &b, &rows, &wishes, Way::Own).unwrap();
            assert!(report.outcome.is_converged(), "{name}, {parts} parts: {report:?}");
            let (also, of_rows) = given(a, &b, &rows, &wishes, Way::Rows).unwrap();
            assert_eq!((&x, report.iterations), (&also, of_rows.iterations), "{name}, {parts} parts");
            let (whole, _) = given(a, &b, &rows, &wishes, Way::Whole).unwrap();
            assert_eq!(x, whole, "{name}, {parts} parts");
        }
    }
}

/// The symmetry of entries across ranks is seen by the rank that has the mirror image.
#[test]
fn an_entry_across_ranks_without_its_mirror_image_is_found() {
    let rows = even_parts(N, 3);
    let unlike = |change: f64| {
        let mut a = ring(-1.0, -1.0);
        // Row 29 is the last of rank 0, and its entry right of the diagonal belongs to rank 1.
        let place = a.parts().indices[..].iter().enumerate();
        let row = (0..29).map(|row| a.row(row).0.len()).sum::<usize>();
        let at = place.skip(row).find(|&(_, &column)| column == 30).unwrap().0;
        a.values_mut()[at] *= change;
        a
    };
    let wishes = Solver::<f64>::builder().method(solver::Method::Cg).all_parts(true);
    for way in [Way::Rows, Way::Own] {
        assert!(given(&unlike(1.0), &random(1), &rows, &wishes, way).is_ok());
        // As on one process, a difference in the last bits is rounding.
        assert!(given(&unlike(1.0 + 1e-15), &random(1), &rows, &wishes, way).is_ok());
        let error = given(&unlike(1.01), &random(1), &rows, &wishes, way).unwrap_err().to_string();
        assert!(error.contains("not symmetric"), "{error}");
    }
    // Hermitian, but not symmetric; and with a complex diagonal neither.
    let turned = |diagonal: Complex<f64>| {
        let a = ring(-1.0, -1.0);
        let (mut columns, mut values, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
        for row in 0..N {
            for (&column, &value) in a.row(row).0.iter().zip(a.row(row).1) {
                let turn = match (column as usize).cmp(&row) {
                    std::cmp::Ordering::Less => Complex::new(0.8, -0.6),
                    std::cmp::Ordering::Equal => diagonal,
                    std::cmp::Ordering::Greater => Complex::new(0.8, 0.6),
                };
                columns.push(column);
                values.push(turn * value);
            }
            offsets.push(values.len());
        }
        Csr::from_parts(N, N, offsets, columns, values).unwrap()
    };
    let b: Vec<Complex<f64>> = random(2).into_iter().map(|value| Complex::new(value, -value)).collect();
    let (_, report) = given(&turned(Complex::new(1.0, 0.0)), &b, &rows, &wishes, Way::Own).unwrap();
    assert!(report.outcome.is_converged() && report.method == solver::Method::Cg, "{report:?}");
    assert!(given(&turned(Complex::new(1.0, 0.1)), &b, &rows, &wishes, Way::Own).is_err());
}

#[test]
fn an_infinite_entry_of_any_rank_is_named() {
    let (rows, wishes) = (even_parts(N, 3), Solver::<f64>::builder().all_parts(true));
    let mut a = ring(-1.0, -1.0);
    let at = (0..70).map(|row| a.row(row).0.len()).sum::<usize>();
    let column = a.parts().indices[at];
    a.values_mut()[at] = f64::NAN;
    for way in [Way::Whole, Way::Rows, Way::Own] {
        // The threads of other ranks may have ended first, with another message.
        let told: Vec<String> = std::thread::scope(|scope| {
            let (a, rows, wishes) = (&a, &rows, &wishes);
            let threads: Vec<_> = Parts::new(3)
                .into_iter()
                .map(|part| {
                    scope.spawn(move || {
                        let here = rows[Communicator::<Host>::part(&part)].clone();
                        let made = match way {
                            Way::Whole => wishes.build_spread(&Host, part, a),
                            Way::Rows => wishes.build_spread_rows(&Host, part, a, rows),
                            Way::Own => wishes.build_spread_rows_on(&Host, part, rows_of(a, here), rows),
                        };
                        made.unwrap_err().to_string()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let named = format!("row 70, column {column} ");
        assert!(told.iter().any(|told| told.contains(&named)), "{way:?}: {told:?}");
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let (a, wishes) = (ring(-1.0, -1.0), Solver::<f64>::builder());
    let part = || Parts::new(1).remove(0);
    let refused = |own: Csr<f64>, rows: &[std::ops::Range<usize>]| {
        wishes.build_spread_rows_on(&Host, part(), own, rows).unwrap_err().to_string()
    };
    assert!(refused(rows_of(&a, 0..N), std::slice::from_ref(&(1..N))).contains("first row of a rank"));
    assert!(refused(rows_of(&a, 0..N - 1), std::slice::from_ref(&(0..N))).contains("rows of this rank"));
    assert!(refused(rows_of(&a, 0..N), &[0..N, N..N]).contains("parts"));
}
