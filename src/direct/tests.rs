//! Parts of the factorisations, tested on small matrices.

use super::analysis::Analysis;
use super::faer_wrapper::Columns;
use super::lu::{Limits, Lu};
use super::*;
use crate::matrix::Csr;

/// Limits the number of entries only.
macro_rules! limits {
    ($entries:literal) => {
        Limits { entries: $entries, flops: f64::INFINITY, going: &mut || true }
    };
}

/// [0 2; 3 4] by columns.
const COLUMNS: Columns<'static> = Columns { rows: 2, columns: 2, starts: &[0, 1, 3], indices: &[1, 0, 1] };

#[test]
fn lu_solves_with_the_matrix_and_its_transpose() {
    let lu = Lu::new(COLUMNS, &[3.0, 2.0, 4.0], &[0, 1], limits!(100), (4.0, 0.1)).unwrap();
    assert_eq!(lu.made_up, 0);
    // One vector, and three side by side, of which one is zero.
    let (mut x, mut work) = ([[2.0], [7.0]], [[0.0]; 2]);
    lu.solve(false, &mut x, &mut work);
    assert_eq!(x, [[1.0]; 2]);
    let (mut x, mut work) = ([[3.0, 0.0, 6.0], [6.0, 0.0, 12.0]], [[0.0; 3]; 2]);
    lu.solve(true, &mut x, &mut work);
    assert_eq!(x, [[1.0, 0.0, 2.0]; 2]);
    let mut x = [[2.0, 0.0, 4.0], [7.0, 0.0, 14.0]];
    lu.solve(false, &mut x, &mut work);
    assert_eq!(x, [[1.0, 0.0, 2.0]; 2]);
}

#[test]
fn lu_ends_where_it_is_told_to() {
    let flops = Limits { entries: 100, flops: -1.0, going: &mut || true };
    assert!(matches!(
        Lu::new(COLUMNS, &[3.0, 2.0, 4.0], &[0, 1], flops, (4.0, 0.1)),
        Err(Reason::Refused(_))
    ));
    let stopped = Limits { entries: 100, flops: f64::INFINITY, going: &mut || false };
    assert!(matches!(Lu::new(COLUMNS, &[3.0, 2.0, 4.0], &[0, 1], stopped, (4.0, 0.1)), Err(Reason::Stopped)));
}

#[test]
fn lu_of_a_singular_matrix_has_a_pivot_made_up() {
    let lu = Lu::new(COLUMNS, &[3.0, 0.0, 4.0], &[0, 1], limits!(100), (4.0, 0.1)).unwrap();
    assert!(lu.made_up == 1 && lu.is_finite());
    assert!(matches!(
        Lu::new(COLUMNS, &[3.0, 2.0, 4.0], &[0, 1], limits!(0), (4.0, 0.1)),
        Err(Reason::TooLarge { .. })
    ));
}

#[test]
fn forecast_of_cholesky_is_exact() {
    // 2 on the diagonal and -1 next to it: n diagonal entries and n - 1 below; a column with c entries counts c (c + 1)
    // / 2.
    let n = 40;
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in i.max(1) - 1..(i + 2).min(n) {
            indices.push(j as u32);
            values.push(if i == j { 2.0 } else { -1.0 });
        }
        offsets.push(indices.len());
    }
    let a = Csr::from_parts(n, n, offsets, indices, values).unwrap();
    let without = DirectOptions { without: vec![Kind::Banded], ..DirectOptions::default() };
    let Analysis { kind, entries, flops, exact, .. } = Direct::analyse(&a, &without).unwrap();
    assert_eq!((kind, entries, flops, exact), (Kind::Cholesky, 79.0, 39.0 * 3.0 + 1.0, true));
}

#[test]
fn condition_of_a_diagonal_matrix() {
    let a = Csr::from_parts(3, 3, vec![0, 1, 2, 3], vec![0, 1, 2], vec![4.0, -1e-3, 2.0]).unwrap();
    let mut x = [0.0; 3];
    let report = Direct::new(&a, DirectOptions::default()).unwrap().solve(&[1.0; 3], &mut x, 1e-14).unwrap();
    assert!(report.condition.is_some_and(|c| (c / 4e3 - 1.0).abs() < 1e-8), "{report:?}");
    assert!(report.digits.is_some_and(|d| (11.0..13.0).contains(&d)), "{report:?}");
}

#[test]
fn a_large_definite_matrix_is_factorised_in_fronts_and_need_be_symmetric_up_to_rounding_alone() {
    let mut a = crate::generate::poisson3d(30, 30, 30).unwrap();
    let n = a.rows();
    // Changes the last bit of each entry above the diagonal, as if it had been summed in another order.
    let above: Vec<bool> = (0..n).flat_map(|i| a.row(i).0.iter().map(move |&j| j as usize > i)).collect();
    let moved = |(value, above): (&mut f64, bool)| *value *= if above { 1.0 + f64::EPSILON } else { 1.0 };
    a.values_mut().iter_mut().zip(above).for_each(moved);
    assert!(!a.is_symmetric());
    let mut direct = Direct::new(&a, DirectOptions::default()).unwrap();
    let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
    let mut x = vec![0.0; n];
    let report = direct.solve(&b, &mut x, 1e-12).unwrap();
    assert!(report.solved && report.kind == Kind::FrontalLdlt && report.perturbed == 0, "{report:?}");
    assert!(report.order == Direct::analyse(&a, &DirectOptions::default()).unwrap().order, "{report:?}");
}

#[test]
fn of_a_singular_matrix_whose_pivot_was_replaced_no_condition_is_told() {
    let values = (1..=9).map(f64::from).collect();
    let a = Csr::from_parts(3, 3, vec![0, 3, 6, 9], vec![0, 1, 2, 0, 1, 2, 0, 1, 2], values).unwrap();
    let mut x = [0.0; 3];
    let report =
        Direct::new(&a, DirectOptions::default()).unwrap().solve(&[6.0, 15.0, 24.0], &mut x, 1e-8).unwrap();
    assert!(report.solved && report.condition.is_none() && report.digits.is_none(), "{report:?}");
}

#[test]
fn large_systems_take_fronts_with_the_same_bits_on_any_number_of_threads() {
    let plane = crate::generate::poisson2d(230, 230).unwrap();
    let flow = crate::generate::stokes([135, 135, 1], 1.0, true).unwrap();
    for (a, kind) in [(plane, Kind::FrontalLdlt), (flow, Kind::Ldlt)] {
        let known: Vec<f64> = (0..a.rows()).map(|k| (k % 13) as f64 - 6.0).collect();
        let mut b = vec![0.0; a.rows()];
        a.iter().for_each(|(i, j, value)| b[i] += value * known[j]);
        let solved = [1, 2, 3, 8, 16].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut direct = Direct::new(&a, DirectOptions::default()).unwrap();
                let mut x = vec![0.0; a.rows()];
                let report = direct.solve(&b, &mut x, 1e-9).unwrap();
                assert!(report.solved && direct.kind() == Some(kind), "{report}");
                x
            })
        });
        assert!(solved.iter().all(|x| *x == solved[0]), "{kind}");
    }
}

#[test]
fn a_null_vector_is_found_if_it_is_orthogonal_to_that_of_the_adjoint() {
    // (1, 0, -1), and (1, 0, 1): the eigenvalue 0 has only one eigenvector.
    let (indices, values) = (vec![0, 2, 1, 0, 2], vec![-1.0, -1.0, 1.0, 1.0, 1.0]);
    let a = Csr::from_parts(3, 3, vec![0, 2, 3, 5], indices, values).unwrap();
    let mut direct = Direct::new(&a, DirectOptions::default()).unwrap();
    let mut x = [0.0; 3];
    let report = direct.solve(&[0.4120917, 2.10414015, 0.17289704], &mut x, 1e-8).unwrap();
    assert!(report.singularity.is_some() && report.normal_residual.is_some() && !report.solved, "{report:?}");
    assert!(!report.precision_limited, "{report:?}");
}
