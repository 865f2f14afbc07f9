//! Cases of the choice of a format, for any backend.

use super::cases::ragged;
use residua::backend::{Conversions, Products};
use residua::matrix::{Basis, ChoiceOptions, ChoiceReport, choose};
use residua::{Csr, Host, generate};

/// The chosen format gives the products of CSR, and the choice agrees with the measurements.
pub fn choice_cases<B: Products + Conversions>(b: &B) {
    for (name, a) in ragged::<f64>() {
        let x: Vec<f64> = (0..a.columns()).map(|i| (i % 7) as f64 - 3.0).collect();
        let mut expected = vec![0.0; a.rows()];
        a.product(&Host, 1.0, &x, 0.0, &mut expected).unwrap();
        let mut bound = vec![0.0; a.rows()];
        a.map(f64::abs).product(&Host, 1e-14, &vec![3.0; a.columns()], 0.0, &mut bound).unwrap();
        let x = b.upload(x).unwrap();
        for products in [0, 1, 1 << 40] {
            let options = ChoiceOptions::default().products(products).budget(6).cache(false);
            let choice = choose::<f64, f64, B>(b, a.to_backend(b).unwrap(), &options).unwrap();
            check(name, choice.report());
            assert_eq!(choice.matrix().format(), choice.report().format);
            let mut y = b.upload(vec![f64::NAN; a.rows()]).unwrap();
            choice.matrix().product(b, 1.0, &x, 0.0, &mut y).unwrap();
            for (row, (y, e)) in b.download(&*y).unwrap().iter().zip(&expected).enumerate() {
                assert!((y - e).abs() <= bound[row] + 1e-300, "{name}, row {row}: {y} and {e}");
            }
        }
    }
    short_solves_keep_csr(b);
}

fn check(name: &str, report: &ChoiceReport) {
    match report.basis {
        Basis::Model => assert!(report.format == "csr" && report.trials.is_empty(), "{name}: {report}"),
        _ => {
            let times = || report.trials.iter().filter_map(|t| Some((t.format, t.product_seconds?)));
            let fastest = times().map(|(_, time)| time).fold(f64::INFINITY, f64::min);
            let chosen = times().find(|(format, _)| *format == report.format).unwrap().1;
            assert!(chosen <= fastest / 0.96, "{name}: {report}");
        }
    }
    assert!(report.to_string().len() > 20 && report.seconds >= 0.0);
}

/// Choosing takes no time if it cannot pay.
fn short_solves_keep_csr<B: Products + Conversions>(b: &B) {
    let a: Csr<f64, B> = generate::poisson2d(50, 50).unwrap().into_backend(b).unwrap();
    let choice = choose::<f64, f64, B>(b, a, &ChoiceOptions::default().products(5)).unwrap();
    assert_eq!((choice.report().format, choice.report().basis), ("csr", Basis::Model));
    assert_eq!((choice.report().pays_after(), choice.report().saved()), (Some(0), 0.0));
}
