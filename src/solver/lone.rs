//! A system that several parts were asked to solve and that one solves sooner: the others wait for its report.

use super::forecast::plain_bytes;
use super::names::{Method, Precision, PreconditionerChoice};
use super::report::SolveReport;
use super::{Solvable, Solver, SolverBackend};
use crate::backend::{Communicator, Space};
use crate::error::{Error, Result};
use crate::krylov::Outcome;
use crate::matrix::Csr;
use crate::report::count;
use crate::scalar::Scalar;
use std::str::FromStr;
use std::sync::Arc;

/// The solver, on part 0.
pub(super) struct Lone<T: Solvable>(pub(super) Option<Solver<T>>);

/// Why one part alone is expected to be faster than all, where it is: an iteration on several takes a share of the time
/// that it takes on one, and what their meetings and launches take.
pub(super) fn why<T: Scalar, B: SolverBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    [n, nonzeros]: [usize; 2],
    hermitian: bool,
) -> Option<String> {
    let (backend, parts) = (space.backend(), space.communicator().parts());
    let latency = space.communicator().latency();
    if parts < 2 || latency == 0.0 {
        return None;
    }
    let matrix = nonzeros * (size_of::<T>() + size_of::<u32>());
    let seconds = plain_bytes::<T>(n, matrix) / backend.ordering_price().bandwidth;
    let saved = seconds * (1.0 - 1.0 / parts as f64);
    let microseconds = |seconds: f64| format!("{:.0} us", 1e6 * seconds);
    if hermitian && backend.cg_persists::<T, T>(n, nonzeros) {
        return Some(format!("{} unknowns stay on the chip of one", count(n as u64)));
    }
    (saved < latency).then(|| {
        let (saved, latency) = (microseconds(saved), microseconds(latency));
        format!("{parts} would save {saved} an iteration, and take {latency} to meet")
    })
}

impl<T: Solvable> Lone<T> {
    /// Sets the solver up where this is part 0.
    pub(super) fn new<B: SolverBackend>(
        wishes: &super::Builder,
        backend: &B,
        part: usize,
        a: &Csr<T>,
    ) -> Result<Self> {
        let made =
            (part == 0).then(|| wishes.build_on(backend, a.copied(&crate::Host)?.into_backend(backend)?));
        made.transpose().map(Self)
    }
}

/// What part 0 tells the others of its solve.
pub(super) fn told(report: &Result<SolveReport>) -> String {
    let report = match report {
        Ok(report) => report,
        Err(error) => return format!("error\n{error}"),
    };
    let (iteration, curvature) = match report.outcome {
        Outcome::NotPositiveDefinite { iteration, curvature } => (iteration, curvature),
        Outcome::Breakdown { iteration } => (iteration, 0.0),
        _ => (0, 0.0),
    };
    let numbers = [report.iterations, report.restarts, report.bytes_per_iteration, iteration];
    let norms = [report.residual_norm, report.relative_residual, curvature];
    let words = [
        report.outcome.status().to_string(),
        report.method.to_string(),
        report.preconditioner.to_string(),
        report.precision.to_string(),
    ];
    let backward = report.backward_error.map(f64::to_bits);
    let numbers = numbers.iter().map(usize::to_string);
    let norms = norms.iter().map(|norm| norm.to_bits().to_string());
    let all = words.into_iter().chain(numbers).chain(norms);
    let all = all.chain([backward.map_or(String::new(), |bits| bits.to_string())]);
    all.collect::<Vec<_>>().join("\n")
}

/// The report of part 0, as the others have it.
pub(super) fn heard(told: &str, blank: SolveReport) -> Result<SolveReport> {
    let lines: Vec<&str> = told.split('\n').collect();
    if let Some(cause) = told.strip_prefix("error\n") {
        return Err(Error::Unsupported(format!("part 0 failed: {cause}")));
    }
    let broken = || Error::InvalidArgument("a report of part 0 that is none".into());
    let line = |k: usize| lines.get(k).copied().ok_or_else(broken);
    let number = |k: usize| line(k)?.parse::<usize>().map_err(|_| broken());
    let norm = |k: usize| line(k)?.parse().map(f64::from_bits).map_err(|_| broken());
    let outcome = match line(0)? {
        "converged" => Outcome::Converged,
        "least_squares" => Outcome::LeastSquares,
        "max_iterations" => Outcome::IterationLimit,
        "not_positive_definite" => {
            Outcome::NotPositiveDefinite { iteration: number(7)?, curvature: norm(10)? }
        }
        "breakdown" => Outcome::Breakdown { iteration: number(7)? },
        "singular" => Outcome::Singular,
        "stagnated" => Outcome::Stagnated,
        "not_finite" => Outcome::NotFinite,
        "interrupted" => Outcome::Interrupted,
        "time_limit" => Outcome::TimeLimit,
        _ => return Err(broken()),
    };
    Ok(SolveReport {
        outcome,
        method: Method::from_str(line(1)?)?,
        preconditioner: PreconditionerChoice::from_str(line(2)?)?,
        precision: Precision::from_str(line(3)?)?,
        iterations: number(4)?,
        restarts: number(5)?,
        bytes_per_iteration: number(6)?,
        residual_norm: norm(8)?,
        relative_residual: norm(9)?,
        backward_error: if line(11)?.is_empty() { None } else { Some(norm(11)?) },
        ..blank
    })
}

/// A report without a solve.
pub(super) fn blank(
    device: &Arc<str>,
    trail: &super::Trail,
    format: &'static str,
    stored: &'static str,
) -> SolveReport {
    SolveReport {
        outcome: Outcome::IterationLimit,
        method: Method::Auto,
        preconditioner: PreconditionerChoice::Auto,
        precision: Precision::Double,
        iterations: 0,
        restarts: 0,
        residual_norm: f64::NAN,
        relative_residual: f64::NAN,
        backward_error: None,
        condition: None,
        digits: None,
        normal_residual: None,
        outside_range: None,
        unmatched: None,
        memory_needed: None,
        bytes_per_iteration: 0,
        at_once: 1,
        seconds: super::Seconds::default(),
        format,
        stored,
        device: Arc::clone(device),
        trail: Arc::new(trail.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        let device: Arc<str> = "none".into();
        let blank = || blank(&device, &super::super::Trail::default(), "csr", "f64");
        for outcome in [
            Outcome::Converged,
            Outcome::NotPositiveDefinite { iteration: 3, curvature: -0.25 },
            Outcome::Breakdown { iteration: 7 },
            Outcome::TimeLimit,
            Outcome::Singular,
        ] {
            let report = SolveReport {
                outcome,
                method: Method::Cg,
                preconditioner: PreconditionerChoice::BlockJacobi(Some(4)),
                iterations: 12,
                restarts: 1,
                residual_norm: 1e-9,
                relative_residual: 1e-11,
                backward_error: Some(1e-16),
                bytes_per_iteration: 1000,
                ..blank()
            };
            assert_eq!(heard(&told(&Ok(report.clone())), blank()).unwrap(), report);
        }
        let failed = told(&Err(Error::Unsupported("this".into())));
        assert!(heard(&failed, blank()).unwrap_err().to_string().contains("this"));
    }
}
