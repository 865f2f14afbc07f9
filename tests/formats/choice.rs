//! The choice of a format, on the host. `tests/gpu.rs` runs the same body on a device.

use crate::cases::{HOST, ragged};
use residua::matrix::{Basis, ChoiceOptions, ChoiceReport, choose};
use residua::{Backend, Csr, Host, generate};

/// Whatever is chosen multiplies like CSR, and what was measured decided.
#[test]
fn every_matrix_gets_a_format_that_multiplies_like_csr() {
    for (name, a) in ragged::<f64>() {
        let x: Vec<f64> = (0..a.columns()).map(|i| (i % 7) as f64 - 3.0).collect();
        let mut expected = vec![0.0; a.rows()];
        a.product(&HOST, 1.0, &x, 0.0, &mut expected).unwrap();
        let magnitude = a.map(f64::abs);
        let mut bound = vec![0.0; a.rows()];
        magnitude.product(&HOST, 1e-14, &vec![3.0; a.columns()], 0.0, &mut bound).unwrap();
        for products in [0, 1, 1 << 40] {
            let options = ChoiceOptions::default().products(products).budget(6).cache(false);
            let choice = choose::<f64, f64, _>(&HOST, a.copied(&HOST).unwrap(), &options).unwrap();
            check(name, choice.report());
            assert_eq!(choice.matrix().format(), choice.report().format);
            let mut y = vec![f64::NAN; a.rows()];
            choice.matrix().product(&HOST, 1.0, &x, 0.0, &mut y).unwrap();
            for (row, (y, e)) in y.iter().zip(&expected).enumerate() {
                assert!((y - e).abs() <= bound[row] + 1e-300, "{name}, row {row}: {y} and {e}");
            }
        }
    }
}

fn check(name: &str, report: &ChoiceReport) {
    let time = |trial: &residua::matrix::Trial| trial.product_seconds;
    match report.basis {
        Basis::Model => assert!(report.format == "csr" && report.trials.is_empty(), "{name}: {report}"),
        _ => {
            let fastest = report.trials.iter().filter_map(time).fold(f64::INFINITY, f64::min);
            let chosen = report.trials.iter().find(|t| t.format == report.format).and_then(time).unwrap();
            assert!(chosen <= fastest / 0.96, "{name}: {report}");
        }
    }
    assert!(report.to_string().len() > 20 && report.seconds >= 0.0);
}

/// Choosing takes no time where it cannot pay.
#[test]
fn a_short_solve_keeps_csr() {
    let a: Csr<f64> = generate::poisson2d(50, 50).unwrap();
    let options = ChoiceOptions::default().products(5);
    let choice = choose::<f64, f64, Host>(&Host, a, &options).unwrap();
    assert_eq!((choice.report().format, choice.report().basis), ("csr", Basis::Model));
    assert_eq!((choice.report().pays_after(), choice.report().saved()), (Some(0), 0.0));
    assert!(Host.synchronize().is_ok());
}
