//! Checks whether a verdict, as it is worded, is true for the x that is returned.

use crate::elimination::dense;
use crate::measure::Measures;
use crate::nearness::{distance_to_singular, may_be_singular};
use residua::krylov::Outcome;
use residua::solver::{Singularity, SolveReport};
use residua::{Csr, Real, Scalar};

/// A least-squares solution has ||A^H r|| of at most this times the tolerance times ||A||_F ||r||.
const LEAST: f64 = 0.01;

/// Rounding units of || |A| |x| + |b| || that rounding may leave in A^H r, relative to ||A||.
const EXCUSED_UNITS: f64 = 64.0;

/// A null vector v may have |A v| of at most this times eps |A||v| in every row.
const ROUNDING: f64 = 100.0;

/// The largest normwise backward error, in units of eps, at which x cannot be improved.
const AT_ROUNDING: f64 = 64.0;

/// Systems with up to this many unknowns are solved by exact elimination.
const SMALL: usize = 12;

/// The outcome of a solve, and the claims that are false.
pub struct Judged {
    pub status: &'static str,
    pub measures: Measures,
    /// The false claims, in words.
    pub faults: Vec<String>,
}

/// Checks all claims about x. `tolerance` is the requested one, relative to ||b||.
pub fn judge<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], report: &SolveReport, tolerance: f64) -> Judged {
    let status = report.outcome.status();
    let mut judged =
        Judged { status, measures: Measures::new(a, b, &vec![T::zero(); x.len()]), faults: vec![] };
    if x.iter().all(|x| x.is_finite()) {
        judged.measures = Measures::new(a, b, x);
        let said =
            [figures::<T>(a, report, &judged.measures), outcome(a, report, &judged.measures, tolerance)];
        judged.faults = said.into_iter().flatten().map(|fault| format!("{status}: {fault}")).collect();
    } else if report.outcome.is_solved() {
        judged.faults.push(format!("{status}: x is not finite"));
    }
    judged
}

/// The distance from one to the next number of the type.
pub fn epsilon<T: Scalar>() -> f64 {
    <T::Real as num_traits::Float>::epsilon().to_f64()
}

/// Checks that the reported measures of b - A x are those of this x, up to rounding.
fn figures<T: Scalar>(a: &Csr<T>, report: &SolveReport, true_of: &Measures) -> Vec<String> {
    let mut faults = Vec::new();
    let rounding = (4.0 + a.columns() as f64).min(50.0) * epsilon::<T>();
    let mut compare = |what: &str, told: f64, is: f64, slack: f64| {
        // A figure that is not finite claims nothing.
        if told.is_finite() && (told - is).abs() > 0.01 * is + slack {
            faults.push(format!("{what} is told to be {told:.3e}, and is {is:.3e}"));
        }
    };
    compare("||b - A x|| / ||b||", report.relative_residual, true_of.relative(), rounding * true_of.terms);
    if let Some(told) = report.backward_error {
        compare("the backward error", told, true_of.backward, rounding);
    }
    if let Some(told) = report.normal_residual {
        // The rounding of r limits how accurately A^H r is known, relative to ||A|| ||r||.
        let slack = rounding * (1.0 + true_of.terms / true_of.relative());
        compare("||A^H r|| / (||A|| ||r||)", told, true_of.normal_residual(), slack);
    }
    faults
}

/// The claims that each outcome makes.
fn outcome<T: Scalar>(a: &Csr<T>, report: &SolveReport, true_of: &Measures, tolerance: f64) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, fault: &str| {
        if !holds {
            faults.push(fault.to_string());
        }
    };
    let (relative, row_wise) = (true_of.relative(), true_of.row_wise);
    match report.outcome {
        Outcome::Converged => {
            must(
                true_of.meets(tolerance),
                &format!(
                    "||r|| / ||b|| is {relative:.3e}, ||D r|| / ||D b|| {row_wise:.3e}, {tolerance:e} was asked for"
                ),
            );
        }
        Outcome::LeastSquares => {
            let normal = true_of.normal_residual();
            // Rounding x and b alone may be larger; not more than 1e-6 is excused by that.
            let rounding = EXCUSED_UNITS * epsilon::<T>() * true_of.terms / relative;
            let allowed = (LEAST * tolerance).max(rounding.min(epsilon::<T>().powf(0.375)));
            must(true_of.is_least(allowed), &format!("||A^H r|| / (||A|| ||r||) is {normal:.3e}"));
            must(report.normal_residual.is_some(), "no figure of A^H r is told");
            if a.rows() == a.columns() {
                singularity(a, report, &mut must);
            }
        }
        Outcome::Singular => singularity(a, report, &mut must),
        Outcome::PrecisionLimit { digits } => {
            let backward = true_of.backward;
            must(
                backward <= AT_ROUNDING * epsilon::<T>(),
                &format!("the backward error is {backward:.3e}, which is not rounding"),
            );
            must(
                !true_of.meets(0.5 * tolerance),
                &format!(
                    "the tolerance is met: ||r|| / ||b|| is {relative:.3e}, ||D r|| / ||D b|| {row_wise:.3e}"
                ),
            );
            must(digits.is_finite() && digits >= 0.0, &format!("{digits} digits"));
        }
        _ => {}
    }
    faults
}

/// Checks that a report of singularity has a proof, and that the proof is true.
fn singularity<T: Scalar>(a: &Csr<T>, report: &SolveReport, must: &mut impl FnMut(bool, &str)) {
    let small = a.rows() <= SMALL;
    match report.singularity {
        None => must(false, "nothing shows that A is singular"),
        Some(Singularity::Structural { rank }) => {
            let matched = matched(a);
            must(
                rank == matched && matched < a.rows(),
                &format!("structural rank {rank}, and it is {matched}"),
            );
        }
        Some(Singularity::NullVector { ratio, .. }) => {
            must(ratio <= ROUNDING, &format!("|A v| is {ratio:.1e} times rounding: no null vector"));
            if small {
                // The search for v here may miss the best one by a small factor.
                let told = 4.0 * (ratio + 4.0) * epsilon::<T>();
                let distance = distance_to_singular(&dense(a), told);
                must(
                    distance <= told || may_be_singular(&dense(a), told),
                    &format!("the nearest singular matrix that was found is {distance:.1e} away"),
                );
            }
        }
        Some(_) => must(false, "an unknown kind of singularity"),
    }
}

/// Rows that can be matched with columns of their own: the structural rank (augmenting paths, one row after the other).
pub fn matched<T: Scalar>(a: &Csr<T>) -> usize {
    fn augment<T: Scalar>(a: &Csr<T>, row: usize, seen: &mut [bool], partner: &mut [Option<usize>]) -> bool {
        let (columns, values) = a.row(row);
        for (&j, value) in columns.iter().zip(values) {
            let j = j as usize;
            if *value == T::zero() || std::mem::replace(&mut seen[j], true) {
                continue;
            }
            if partner[j].is_none_or(|other| augment(a, other, seen, partner)) {
                partner[j] = Some(row);
                return true;
            }
        }
        false
    }
    let mut partner = vec![None; a.columns()];
    (0..a.rows()).filter(|&row| augment(a, row, &mut vec![false; a.columns()], &mut partner)).count()
}
