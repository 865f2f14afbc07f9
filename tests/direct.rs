//! Direct solves: random ragged matrices of all kinds, and the square matrices of the collection.

#[path = "common/collection.rs"]
mod collection;
#[path = "common/random.rs"]
mod random;

use num_complex::Complex;
use random::Random;
use residua::direct::{Direct, DirectOptions, DirectReport, Kind, Reason};
use residua::market::read_csr;
use residua::{Csr, Host, Real, Scalar};
use std::time::Instant;

fn norm<T: Scalar>(x: &[T]) -> f64 {
    let largest = x.iter().map(|x| x.abs().to_f64()).fold(f64::MIN_POSITIVE, f64::max);
    x.iter().map(|x| (x.abs().to_f64() / largest).powi(2)).sum::<f64>().sqrt() * largest
}

fn product<T: Scalar>(a: &Csr<T>, x: &[T]) -> Vec<T> {
    let mut y = vec![T::zero(); a.rows()];
    a.product(&Host, T::one(), x, T::zero(), &mut y).unwrap();
    y
}

fn relative<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> f64 {
    let r: Vec<T> = b.iter().zip(product(a, x)).map(|(&b, y)| b - y).collect();
    norm(&r) / norm(b)
}

/// Solves A x = b with b = A times a random vector; the report, and the relative residual in working precision.
fn solved<T: Scalar>(a: &Csr<T>, options: DirectOptions, tolerance: f64, seed: u64) -> (DirectReport, f64) {
    let b = product(a, &Random(seed).vector(a.columns()));
    let mut x = vec![T::zero(); a.columns()];
    let mut direct = Direct::new(a, options).unwrap();
    let report = direct.solve(&b, &mut x, tolerance).unwrap();
    let residual = relative(a, &b, &x);
    (report, residual)
}

/// Seconds and what became of one file.
fn file<T: Scalar>(path: &std::path::Path) -> Option<(f64, DirectReport, f64)> {
    let a = read_csr::<T>(path).unwrap();
    let (a_rows, a_columns) = (a.rows(), a.columns());
    (a_rows == a_columns).then(|| {
        let start = Instant::now();
        let (report, residual) = solved(&a, DirectOptions::default().condition(false), 1e-8, 1);
        (start.elapsed().as_secs_f64(), report, residual)
    })
}

#[test]
fn collection() {
    let Some(folder) = collection::folder() else { return };
    let (mut all, mut good, mut total, mut false_success) = (0, 0, 0.0, 0);
    let only = std::env::var("RESIDUA_ONLY").ok();
    for row in collection::table(&folder.join("index.csv")) {
        let name = &row["file"];
        if row["rows"] != row["cols"] || only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            continue;
        }
        let path = folder.join(name);
        let result =
            if row["field"] == "complex" { file::<Complex<f64>>(&path) } else { file::<f64>(&path) };
        let Some((seconds, report, residual)) = result else { continue };
        all += 1;
        total += seconds;
        good += usize::from(residual <= 1e-8);
        // Sums in another order and in working precision may tell a little more.
        false_success += usize::from(report.solved && residual > 1.1e-8);
        let mark = if report.solved { "" } else { "FAILED" };
        println!(
            "{name:40} {:>13} {residual:8.1e} {seconds:7.3} s, {} + {} steps {mark} {:?}",
            report.kind.to_string(), report.refinements, report.iterations, report.reasons
        );
    }
    println!("{good} of {all} to 1e-8 in {total:.2} s, {false_success} claimed and missed");
}
