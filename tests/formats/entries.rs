//! Reading matrices by entry, symmetry, row lengths, advice; sprs and nalgebra as oracles; real matrices.

use crate::cases::{HOST, entries, example, ragged, with_lengths};
use crate::collection;
use crate::random::Random;
use num_complex::Complex;
use residua::matrix::{self, Csr, Triplets};
use residua::{Error, market};
use std::path::PathBuf;

fn sprs_of(a: &Csr<f64>) -> sprs::CsMat<f64> {
    let mut triplets = sprs::TriMat::new((a.rows(), a.columns()));
    a.iter().for_each(|(i, j, v)| triplets.add_triplet(i, j, v));
    triplets.to_csr()
}

#[test]
fn entries_are_where_they_were_put() {
    let a = example::<f64>();
    assert_eq!(
        (a.get(0, 2), a.get(0, 1), a.get(3, 3), a.get(3, 1 << 40)),
        (Some(7.0), None, Some(1.0), None)
    );
    assert_eq!(a.row(2), (&[1, 2][..], &[4.0, 3.0][..]));
    assert_eq!(a.diagonal(), [1.0, 0.0, 3.0, 1.0]);
    for (name, a) in ragged::<f64>() {
        assert_eq!(a.iter().collect::<Vec<_>>(), entries(&a), "{name}");
        assert_eq!(a.diagonal().len(), a.rows().min(a.columns()), "{name}");
    }
    let mut triplets = Triplets::new(4, 4).unwrap();
    for (i, j, v) in entries(&a).into_iter().rev() {
        triplets.push(i, j, v).unwrap();
    }
    assert_eq!(Csr::from_triplets(triplets).unwrap(), a);
    assert_eq!(a.map(|v| v as f32).map(f64::from), a);
    assert_eq!(Csr::<f64>::identity(3).unwrap(), Csr::from_diagonal(vec![1.0; 3]).unwrap());
    assert_eq!(format!("{a:?}"), "csr f64 4 x 4, 7 nonzeros");
    let ell = matrix::build::<f64, _, f64>(&HOST, "ell", &a).unwrap();
    assert_eq!(format!("{ell:?}"), "ell f64 4 x 4, 7 nonzeros, 1 padded");
}

#[test]
fn symmetry_is_exact() {
    let square = |values: [Complex<f64>; 4]| {
        Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap()
    };
    let [one, i, off] = [Complex::new(1.0, 0.0), Complex::new(0.0, 1.0), Complex::new(1.0 + 1e-15, 0.0)];
    let check = |values, symmetric, hermitian| {
        let a = square(values);
        assert_eq!((a.is_symmetric(), a.is_hermitian()), (symmetric, hermitian), "{values:?}");
        assert!(a.is_structurally_symmetric());
    };
    check([one, i, i, one], true, false);
    check([one, i, -i, one], false, true);
    check([one, one, one, one], true, true);
    check([one, one, off, one], false, false);
    assert!(!example::<f64>().is_structurally_symmetric());
    assert!(!with_lengths::<f64>(3, &[1, 1], 1).is_symmetric(), "not square");
    // An explicit zero whose mirror image is not stored: equal values, another pattern.
    let a = Csr::from_parts(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 0.0, 1.0]).unwrap();
    assert!(a.is_symmetric() && !a.is_structurally_symmetric());
}

#[test]
fn row_statistics_are_those_of_the_definition() {
    let a = with_lengths::<f64>(40, &[0, 1, 2, 3, 4, 20], 1);
    let rows = a.row_lengths(&HOST).unwrap().statistics();
    assert_eq!((rows.min, rows.max, rows.mean, rows.empty), (0, 20, 5.0, 1));
    // Deviations -5 -4 -3 -2 -1 15: variance 280 / 6.
    assert!((rows.cv - (280.0f64 / 6.0).sqrt() / 5.0).abs() < 1e-15);
    assert_eq!(rows.histogram, [1, 1, 2, 1, 0, 1]);
    let none = with_lengths::<f64>(4, &[], 1).row_lengths(&HOST).unwrap().statistics();
    assert_eq!((none.min, none.max, none.mean, none.cv, none.empty), (0, 0, 0.0, 0.0, 0));
}

#[test]
fn advice_is_a_format_that_takes_the_matrix() {
    for (name, a) in ragged::<f64>() {
        let advice = matrix::advise::<f64, _>(&HOST, &a.row_lengths(&HOST).unwrap());
        assert!(matrix::build::<f64, _, f64>(&HOST, advice.format, &a).is_ok(), "{name}: {advice:?}");
        assert!(advice.reason.len() > 20, "{name}: {advice:?}");
    }
}

#[test]
fn products_agree_with_sprs_and_nalgebra() {
    for (name, a) in ragged::<f64>().into_iter().filter(|(_, a)| a.rows() > 0 && a.columns() > 0) {
        let oracle = sprs_of(&a);
        let x: Vec<f64> = Random(5).vector(a.columns());
        let expected: Vec<f64> =
            oracle.outer_iterator().map(|row| row.iter().map(|(j, v)| v * x[j]).sum()).collect();
        let dense = oracle.to_dense();
        let dense = nalgebra::DMatrix::from_fn(a.rows(), a.columns(), |i, j| dense[[i, j]]);
        let by_dense = dense * nalgebra::DVector::from_vec(x.clone());
        for format in matrix::formats::<f64, _, f64>() {
            let Ok(stored) = format.build(&HOST, &a) else { continue };
            let mut y = vec![0.0; a.rows()];
            stored.product(&HOST, 1.0, &x, 0.0, &mut y).unwrap();
            for i in 0..a.rows() {
                let bound = 1e-14 * (1.0 + a.row(i).1.len() as f64);
                assert!((y[i] - expected[i]).abs() <= bound, "{} of {name}, row {i}", format.name());
                assert!((y[i] - by_dense[i]).abs() <= bound, "{} of {name}, row {i}", format.name());
            }
        }
        let transpose = sprs_of(&a.transpose(&HOST).unwrap());
        assert_eq!(transpose, oracle.transpose_into().to_csr(), "{name}");
    }
}

/// A row of several pieces, which threads sum together.
#[test]
fn a_row_longer_than_a_task_is_summed_in_pieces() {
    let n = 200_001;
    let a = Csr::from_parts(2, n, vec![0, n, n + 1], (0..n as u32).chain([7]).collect(), vec![0.5; n + 1])
        .unwrap();
    let x: Vec<f64> = (0..n).map(|j| (j % 8) as f64).collect();
    let mut y = [f64::NAN; 2];
    a.product(&HOST, 2.0, &x, 0.0, &mut y).unwrap();
    // Small integers and halves: every partial sum is exact.
    assert_eq!(y, [x.iter().sum::<f64>(), 7.0]);
}

/// Real matrices: all formats, both directions, against CSR's own entries in order.
#[test]
fn real_matrices_keep_their_entries_and_products() {
    let Some(folder) = collection::folder() else { return };
    let files = std::fs::read_dir(&folder).unwrap();
    let small = |path: &PathBuf| {
        let limit = if path.extension().is_some_and(|e| e == "gz") { 30_000 } else { 150_000 };
        path.to_string_lossy().contains(".mtx") && path.metadata().is_ok_and(|m| m.len() < limit)
    };
    let mut paths: Vec<PathBuf> = files.flatten().map(|f| f.path()).filter(small).collect();
    paths.sort();
    let mut checked = 0;
    for path in paths {
        let a = match market::read_csr::<f64>(&path) {
            Ok(a) => a,
            Err(Error::Unsupported(_) | Error::Parse { .. }) => continue,
            Err(other) => panic!("{}: {other}", path.display()),
        };
        checked += 1;
        let (x, z): (Vec<f64>, Vec<f64>) = (Random(1).vector(a.columns()), Random(2).vector(a.rows()));
        let (mut ax, mut size) = (vec![0.0; a.rows()], vec![0.0; a.rows()]);
        let (mut atz, mut size_t) = (vec![0.0; a.columns()], vec![0.0; a.columns()]);
        for (i, j, v) in a.iter() {
            ax[i] += v * x[j];
            size[i] += (v * x[j]).abs();
            atz[j] += v * z[i];
            size_t[j] += (v * z[i]).abs();
        }
        let close = |y: &[f64], expected: &[f64], size: &[f64]| {
            let n = a.nonzeros() as f64;
            (0..y.len()).all(|i| (y[i] - expected[i]).abs() <= n * f64::EPSILON * size[i])
        };
        for format in matrix::formats::<f64, _, f64>() {
            let case = format!("{} of {}", format.name(), path.display());
            let stored = match format.build(&HOST, &a) {
                Ok(stored) => stored,
                Err(Error::Refused { .. }) => continue,
                Err(other) => panic!("{case}: {other}"),
            };
            assert!(stored.to_csr(&HOST).unwrap() == a, "{case}: not the same matrix after the round trip");
            let (mut y, mut w) = (vec![f64::NAN; a.rows()], vec![f64::NAN; a.columns()]);
            stored.product(&HOST, 1.0, &x, 0.0, &mut y).unwrap();
            assert!(close(&y, &ax, &size), "{case}: product");
            stored.transposed_product(&HOST, 1.0, &z, 0.0, &mut w).unwrap();
            assert!(close(&w, &atz, &size_t), "{case}: transposed product");
        }
    }
    assert!(checked > 0, "no readable matrix in {}", folder.display());
    println!("{checked} matrices");
}
