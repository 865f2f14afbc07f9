//! Single-rank solves: a system given to several ranks that one solves faster. The other ranks wait for its report.

use super::forecast::plain_bytes;
use super::names::{Method, Precision, PreconditionerChoice};
use super::report::SolveReport;
use super::{Solvable, Solver, SolverBackend};
use crate::backend::{Communicator, Space};
use crate::direct::{Singularity, Unmatched};
use crate::error::{Error, Result};
use crate::krylov::Outcome;
use crate::matrix::Csr;
use crate::report::count;
use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The solver, on rank 0.
pub(super) struct SingleRank<T: Solvable>(pub(super) Option<Solver<T>>);

/// Returns why one rank is expected to be faster than all, if it is: an iteration on p ranks takes 1 / p of the time on
/// one, plus the time for synchronisation and launches.
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
        return Some(format!("{} unknowns fit on the chip of one GPU", count(n as u64)));
    }
    (saved < latency).then(|| {
        let (saved, latency) = (microseconds(saved), microseconds(latency));
        format!("{parts} ranks would save {saved} per iteration, but need {latency} to communicate")
    })
}

impl<T: Solvable> SingleRank<T> {
    /// Sets up the solver if this is rank 0.
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

/// Returns why only a single rank can solve this, if there is a reason.
pub(super) fn must<T: Scalar>(wishes: &super::Builder, a: &Csr<T>, parts: usize) -> Option<String> {
    if a.rows() != a.columns() {
        return Some("the matrix is not square".into());
    }
    if a.rows() < parts {
        return Some(format!("it has {} unknowns, fewer than there are ranks", a.rows()));
    }
    (wishes.method == Method::Direct).then(|| "a factorisation uses one rank".into())
}

/// The bits of a real number, since JSON has no NaN and infinities.
type Bits = u64;

/// The report that rank 0 sends to the others.
#[derive(Serialize, Deserialize)]
enum Told {
    Failed(String),
    Solved(Box<Solved>),
}

/// The fields of a report, as they are sent to the other ranks.
#[derive(Serialize, Deserialize)]
struct Solved {
    outcome: Outcome,
    method: String,
    preconditioner: String,
    precision: String,
    iterations: usize,
    restarts: usize,
    bytes_per_iteration: usize,
    residuals: [Bits; 3],
    backward_error: Option<Bits>,
    condition: Option<Bits>,
    digits: Option<Bits>,
    normal_residual: Option<Bits>,
    outside_range: Option<Bits>,
    singularity: Option<Singularity>,
    unmatched: Option<Unmatched>,
    memory_needed: Option<u64>,
}

/// Serialises a report, or an error, for the other ranks.
pub(super) fn told(report: &Result<SolveReport>) -> Vec<u8> {
    let told = match report {
        Err(error) => Told::Failed(error.to_string()),
        Ok(report) => Told::Solved(Box::new(Solved {
            outcome: report.outcome,
            method: report.method.to_string(),
            preconditioner: report.preconditioner.to_string(),
            precision: report.precision.to_string(),
            iterations: report.iterations,
            restarts: report.restarts,
            bytes_per_iteration: report.bytes_per_iteration,
            residuals: [report.residual_norm, report.relative_residual, report.row_wise_residual]
                .map(f64::to_bits),
            backward_error: report.backward_error.map(f64::to_bits),
            condition: report.condition.map(f64::to_bits),
            digits: report.digits.map(f64::to_bits),
            normal_residual: report.normal_residual.map(f64::to_bits),
            outside_range: report.outside_range.map(f64::to_bits),
            singularity: report.singularity,
            unmatched: report.unmatched.clone(),
            memory_needed: report.memory_needed,
        })),
    };
    // The report has only numbers, strings and lists, so it can always be written as JSON.
    serde_json::to_vec(&told).unwrap_or_default()
}

/// The report of rank 0, as the others receive it.
pub(super) fn heard(told: &[u8], blank: SolveReport) -> Result<SolveReport> {
    let broken = |cause| Error::InvalidArgument(format!("invalid report from rank 0: {cause}"));
    let told = match serde_json::from_slice(told).map_err(broken)? {
        Told::Failed(cause) => {
            return Err(Error::InvalidArgument(format!("the solve failed on rank 0: {cause}")));
        }
        Told::Solved(told) => told,
    };
    let [residual_norm, relative_residual, row_wise_residual] = told.residuals.map(f64::from_bits);
    let number = |bits: Option<Bits>| bits.map(f64::from_bits);
    Ok(SolveReport {
        outcome: told.outcome,
        method: Method::from_str(&told.method)?,
        preconditioner: PreconditionerChoice::from_str(&told.preconditioner)?,
        precision: Precision::from_str(&told.precision)?,
        iterations: told.iterations,
        restarts: told.restarts,
        bytes_per_iteration: told.bytes_per_iteration,
        residual_norm,
        relative_residual,
        row_wise_residual,
        backward_error: number(told.backward_error),
        condition: number(told.condition),
        digits: number(told.digits),
        normal_residual: number(told.normal_residual),
        outside_range: number(told.outside_range),
        singularity: told.singularity,
        unmatched: told.unmatched,
        memory_needed: told.memory_needed,
        ..blank
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::report::blank;
    use std::sync::Arc;

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
            Outcome::PrecisionLimit { digits: 3.5 },
        ] {
            let report = SolveReport {
                outcome,
                method: Method::Cg,
                preconditioner: PreconditionerChoice::BlockJacobi(Some(4)),
                iterations: 12,
                restarts: 1,
                residual_norm: 1e-9,
                relative_residual: 1e-11,
                row_wise_residual: f64::INFINITY,
                backward_error: Some(1e-16),
                singularity: Some(Singularity::Structural { rank: 3 }),
                bytes_per_iteration: 1000,
                ..blank()
            };
            assert_eq!(heard(&told(&Ok(report.clone())), blank()).unwrap(), report);
        }
        let failed = told(&Err(Error::Unsupported("this".into())));
        assert!(heard(&failed, blank()).unwrap_err().to_string().contains("this"));
    }
}
