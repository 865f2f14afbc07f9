//! The ways to call a solver, each tested with one system after another.

use crate::cases::{System, Want};
use crate::judge::{Judged, epsilon, judge};
use residua::krylov::Outcome;
use residua::solver::{Builder, Solvable, SolveReport};
use residua::{Real, Scalar};
use residua::{prelude::*, solver::Solution};

/// The tolerance if none is given.
pub fn default_tolerance<T: Scalar>() -> f64 {
    if epsilon::<T>() < 1e-10 { 1e-8 } else { 1e-5 }
}

/// A way to call a solver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    /// With no options.
    Auto,
    /// By a factorisation.
    Direct,
    /// Several right-hand sides: b times powers of two.
    Several(usize),
    /// A second time, which must change nothing.
    Again,
    /// A second time by a factorisation.
    DirectAgain,
}

impl Way {
    pub const ALL: [Way; 6] =
        [Way::Auto, Way::Direct, Way::Several(2), Way::Several(3), Way::Again, Way::DirectAgain];

    fn builder(self) -> Builder {
        match self {
            Way::Direct | Way::DirectAgain => Solver::builder().method(Method::Direct),
            Way::Several(count) => Solver::builder().right_hand_sides(count),
            Way::Auto | Way::Again => Solver::builder(),
        }
    }
}

/// Returns the faults of a system's solution in a given way, in words.
pub fn faults<T: Solvable>(system: &System<T>, way: Way) -> Vec<String> {
    let told = match solutions(system, way) {
        Ok(told) => told,
        // A factorisation is for square matrices.
        Err(Error::Unsupported(_)) if system.a.rows() != system.a.columns() => return vec![],
        Err(error) => vec![Err(format!("error: {error}"))],
    };
    let found = told.into_iter().flat_map(|told| match told {
        Ok((x, report)) => faults_of(system, &x, &report),
        Err(fault) => vec![fault],
    });
    found.map(|fault| format!("{} by {way:?}: {fault}", system.name)).collect()
}

/// An x with its report, or an error before these can be checked.
type Told<T> = std::result::Result<(Vec<T>, SolveReport), String>;

fn solutions<T: Solvable>(system: &System<T>, way: Way) -> Result<Vec<Told<T>>> {
    let (a, b) = (&system.a, &system.b);
    let mut solver = way.builder().build(a)?;
    match way {
        Way::Auto | Way::Direct => {
            let Solution { x, report, .. } = solver.solve(b)?;
            Ok(vec![Ok((x, report))])
        }
        Way::Again | Way::DirectAgain => {
            let first = solver.solve(b)?;
            let second = solver.solve(b)?;
            let same = bits(&first.x) == bits(&second.x);
            let status = |report: &SolveReport| report.outcome.status();
            let mut told = vec![Ok((second.x, second.report.clone()))];
            if status(&first.report) != status(&second.report) {
                told.push(Err(format!("first {}, then {}", status(&first.report), status(&second.report))));
            }
            // If the first solve succeeded, the second may begin with the method that succeeded.
            let shortened = first.report.outcome.is_solved() && first.report.method == second.report.method;
            if !(same || shortened && way == Way::Again) {
                told.push(Err("x has other bits the second time".into()));
            }
            Ok(told)
        }
        Way::Several(count) => {
            let factor = |k: usize| T::from_f64(f64::from(1 << k));
            let all: Vec<T> = (0..count).flat_map(|k| b.iter().map(move |&b| b * factor(k))).collect();
            let mut x = vec![T::zero(); a.columns() * count];
            let reports = solver.solve_many(&all, &mut x)?;
            let each = x.chunks(a.columns()).zip(reports).enumerate();
            Ok(each
                .map(|(k, (x, report))| {
                    // Powers of two are taken out again without rounding.
                    let x = x.iter().map(|&x| x / factor(k)).collect();
                    Ok((x, report))
                })
                .collect())
        }
    }
}

pub fn bits<T: Scalar>(x: &[T]) -> Vec<[u64; 2]> {
    x.iter().map(|x| x.bits()).collect()
}

fn faults_of<T: Solvable>(system: &System<T>, x: &[T], report: &SolveReport) -> Vec<String> {
    let Judged { status, measures, mut faults } =
        judge(&system.a, &system.b, x, report, default_tolerance::<T>());
    if !system.allowed.is_empty() {
        if !system.allowed.contains(&status) {
            faults.push(format!("{status}, not one of {:?}", system.allowed));
        }
        let regular = !system.allowed.contains(&"singular");
        if regular && !report.outcome.is_solved() {
            faults.push(format!("{}: not solved", report.outcome));
        }
    }
    let mut at_most = |what: &str, is: f64, limit: f64| {
        if is.is_nan() || is > limit {
            faults.push(format!("{status}: {what} is {is:.3e}, at most {limit:.1e} is right"));
        }
    };
    let sizes = |x: &[T]| x.iter().map(|x| x.abs().to_f64()).collect::<Vec<_>>();
    let errors = |y: &[T]| x.iter().zip(y).map(|(&x, &y)| (x - y).abs().to_f64()).collect::<Vec<_>>();
    let largest =
        |numbers: Vec<f64>| numbers.into_iter().fold(0.0, |a: f64, b| if b.is_nan() { b } else { a.max(b) });
    match &system.want {
        Want::Truth => {}
        Want::Mean(weights, mean, within) => {
            let sum: T = weights.iter().zip(x).map(|(&w, &x)| w.conj() * x).sum();
            let is = sum / T::from_f64(x.len() as f64);
            at_most("the error of the mean", (is / T::from_f64(*mean) - T::one()).abs().to_f64(), *within);
        }
        Want::Within(right, error) => at_most("the largest error", largest(errors(right)), *error),
        Want::Digits(right, error) => {
            let relative = errors(right).into_iter().zip(sizes(right)).map(|(error, size)| error / size);
            at_most("the largest relative error", largest(relative.collect()), *error);
        }
        Want::Componentwise(error) => {
            at_most("the componentwise backward error", measures.componentwise, *error);
        }
        Want::AtOnce(error) => {
            at_most("the backward error", measures.backward, *error);
            faults.extend(behind_a_factorisation(report));
        }
    }
    faults
}

/// The first method that was tried after a factorisation.
fn behind_a_factorisation(report: &SolveReport) -> Option<String> {
    let mut tried = report.trail.stages.iter().filter(|stage| stage.outcome.is_some());
    tried.find(|stage| stage.method == Method::Direct)?;
    let behind: Vec<String> = tried.map(|stage| stage.method.to_string()).collect();
    (!behind.is_empty() && report.outcome != Outcome::Converged)
        .then(|| format!("{}: behind a factorisation {} came", report.outcome, behind.join(", ")))
}
