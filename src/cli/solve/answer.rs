//! The result of a solve as JSON.

use super::Arguments;
use super::rhs::Origin;
use crate::cli::load::twice;
use crate::error::Error;
use crate::krylov::Outcome;
use crate::market::{Field, Header};
use crate::solver::{self, Singularity, SolveReport, Trail};
use serde::Serialize;
use std::sync::Arc;

/// All solutions.
pub(super) struct Solved<T> {
    pub(super) columns: Vec<Column>,
    /// The solutions, one column after another, in the order of the file.
    pub(super) x: Vec<T>,
    pub(super) bytes_per_iteration: usize,
    /// Seconds of all iterations together.
    pub(super) iterating: f64,
    /// The report of the last right-hand side.
    pub(super) last: SolveReport,
}

impl<T> Solved<T> {
    /// Collects the solutions and reports of all right-hand sides.
    pub(super) fn new(columns: Vec<Column>, x: Vec<T>, mut reports: Vec<SolveReport>) -> crate::Result<Self> {
        let bytes_per_iteration = reports.iter().map(|report| report.bytes_per_iteration).max().unwrap_or(0);
        let iterating = reports.iter().map(|report| report.seconds.iterating).sum();
        let last = reports.pop().ok_or_else(|| Error::InvalidArgument("no right-hand side".into()))?;
        Ok(Self { columns, x, bytes_per_iteration, iterating, last })
    }
}

/// The JSON of `residua solve`. With several right-hand sides, the fields of a single one (status, iterations,
/// residual, error, history) are those of the worst at the top, and those of each in `right_hand_sides`.
#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    /// The request: the file of A and the relative tolerance; and the version and the number of CPU threads.
    pub(super) matrix: String,
    pub(super) tolerance: f64,
    pub(super) version: &'static str,
    pub(super) threads: usize,
    pub(super) iterations: usize,
    pub(super) relative_residual: f64,
    /// The relative residual with each row divided by its norm in A.
    pub(super) row_wise_residual: f64,
    /// ||b - A x|| / (||A|| ||x|| + ||b||).
    pub(super) backward_error: Option<f64>,
    /// Estimate of the condition number, and digits of x that can be trusted, if there is a factorisation.
    pub(super) condition: Option<f64>,
    pub(super) digits: Option<f64>,
    /// ||A^H r|| / (||A|| ||r||) of a least-squares solution that a factorisation found.
    pub(super) normal_residual: Option<f64>,
    /// The proof that A is singular, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) singularity: Option<Singularity>,
    /// The norm of the part of b in a known null space.
    pub(super) outside_range: Option<f64>,
    /// Rows and columns without a partner, from 1, if A is structurally singular and was not solved for that reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unmatched: Option<Unmatched>,
    /// Bytes that a factorisation needs, if there was not enough memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_needed: Option<u64>,
    pub(super) error: Option<f64>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) nonzeros: usize,
    pub(super) symmetric: bool,
    pub(super) format: String,
    /// Type in which values are stored; products and vectors are in double precision.
    #[serde(skip)]
    pub(super) stored: &'static str,
    pub(super) device: String,
    pub(super) method: String,
    pub(super) preconditioner: String,
    pub(super) right_hand_side: Origin,
    /// Notes on how the file was interpreted, if it could be ambiguous.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    pub(super) seconds: Seconds,
    pub(super) bytes_per_iteration: usize,
    pub(super) bandwidth_gb_s: Option<f64>,
    pub(super) history: Vec<f64>,
    pub(super) trail: Trail,
    /// The part of the system that each process has, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ranks: Vec<Rank>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) right_hand_sides: Vec<Column>,
}

impl Answer {
    /// An answer for a matrix of this size, from a file with this header.
    pub(super) fn new<T>(
        [rows, columns, nonzeros]: [usize; 3],
        symmetric: bool,
        (header, rhs): (&Header, &Origin),
        (arguments, solved): (&Arguments, &Solved<T>),
    ) -> Self {
        let last = &solved.last;
        let decisive = worst(&solved.columns).expect("there is at least one right-hand side");
        Self {
            status: decisive.status,
            matrix: arguments.matrix.display().to_string(),
            tolerance: arguments.tolerance,
            version: env!("CARGO_PKG_VERSION"),
            threads: rayon::current_num_threads(),
            iterations: decisive.iterations,
            relative_residual: decisive.relative_residual,
            row_wise_residual: decisive.verdict.row_wise_residual,
            backward_error: decisive.verdict.backward_error,
            condition: decisive.verdict.condition,
            digits: decisive.verdict.digits,
            normal_residual: decisive.verdict.normal_residual,
            singularity: decisive.verdict.singularity,
            outside_range: decisive.verdict.outside_range,
            unmatched: decisive.verdict.unmatched.clone(),
            memory_needed: decisive.verdict.memory_needed,
            error: decisive.error,
            rows,
            columns,
            nonzeros,
            symmetric,
            format: last.format.to_string(),
            stored: last.stored,
            device: last.device.to_string(),
            method: last.method.to_string(),
            preconditioner: last.preconditioner.to_string(),
            right_hand_side: rhs.clone(),
            notes: notes(header),
            seconds: Seconds::default(),
            bytes_per_iteration: solved.bytes_per_iteration,
            bandwidth_gb_s: None,
            history: decisive.history.clone(),
            trail: decisive.trail.as_ref().clone(),
            ranks: Vec::new(),
            right_hand_sides: if solved.columns.len() > 1 { solved.columns.clone() } else { Vec::new() },
        }
    }
}

/// Notes on how the file was interpreted.
fn notes(header: &Header) -> Vec<String> {
    let pattern = (header.field() == Field::Pattern)
        .then(|| "the file holds no values: every entry is taken as 1".to_string());
    pattern.into_iter().chain(twice(header)).collect()
}

/// One of several processes.
#[derive(Serialize, Clone, Copy)]
pub(super) struct Rank {
    pub(super) rows: usize,
    pub(super) nonzeros: usize,
    /// Entries of x that it needs from other processes in each product.
    pub(super) halo: usize,
}

/// Wall-clock seconds of each stage.
#[derive(Serialize, Default, Clone, Copy)]
pub(super) struct Seconds {
    pub(super) read: f64,
    pub(super) assemble: f64,
    pub(super) reorder: f64,
    pub(super) convert: f64,
    pub(super) setup: f64,
    pub(super) solve: f64,
    /// The seconds that the command took for everything else, such as opening a device and writing results.
    pub(super) other: f64,
}

impl Seconds {
    /// Sets `other` to the rest of `all` seconds.
    pub(super) fn complete(&mut self, all: f64) {
        let Self { read, assemble, reorder, convert, setup, solve, .. } = *self;
        self.other = (all - (read + assemble + reorder + convert + setup + solve)).max(0.0);
    }

    /// Adds the setup times of a solver.
    pub(super) fn add(&mut self, solver: &solver::Seconds) {
        self.assemble += solver.look;
        (self.reorder, self.convert) = (solver.reorder, solver.convert);
        self.setup += solver.setup;
    }
}

/// Rows and columns, from 1.
#[derive(Serialize, Clone)]
pub(super) struct Unmatched {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
}

/// Facts about a solution in addition to its residual.
#[derive(Clone)]
pub(super) struct Verdict {
    pub(super) row_wise_residual: f64,
    pub(super) singularity: Option<Singularity>,
    pub(super) backward_error: Option<f64>,
    pub(super) condition: Option<f64>,
    pub(super) digits: Option<f64>,
    pub(super) normal_residual: Option<f64>,
    pub(super) outside_range: Option<f64>,
    pub(super) unmatched: Option<Unmatched>,
    pub(super) memory_needed: Option<u64>,
}

impl Verdict {
    fn new(report: &SolveReport) -> Self {
        let from_one = |numbers: &[u32]| numbers.iter().map(|&number| number + 1).collect();
        Self {
            row_wise_residual: report.row_wise_residual,
            singularity: report.singularity,
            backward_error: report.backward_error,
            condition: report.condition,
            digits: report.digits,
            normal_residual: report.normal_residual,
            outside_range: report.outside_range,
            memory_needed: report.memory_needed,
            unmatched: report
                .unmatched
                .as_ref()
                .map(|found| Unmatched { rows: from_one(&found.rows), columns: from_one(&found.columns) }),
        }
    }
}

/// One right-hand side.
#[derive(Serialize, Clone)]
pub(super) struct Column {
    pub(super) status: &'static str,
    pub(super) iterations: usize,
    pub(super) relative_residual: f64,
    pub(super) error: Option<f64>,
    pub(super) history: Vec<f64>,
    #[serde(skip)]
    pub(super) verdict: Verdict,
    #[serde(skip)]
    pub(super) outcome: Outcome,
    #[serde(skip)]
    pub(super) trail: Arc<Trail>,
}

impl Column {
    /// Makes a column from the report and the residual norms; the first of these is ||b||, since x starts at zero.
    pub(super) fn new(report: &SolveReport, norms: &[f64], error: Option<f64>) -> Self {
        let scale = norms.first().copied().filter(|&norm| norm > 0.0).unwrap_or(1.0);
        Self {
            status: report.outcome.status(),
            iterations: report.iterations,
            relative_residual: report.relative_residual,
            error,
            history: norms.iter().map(|norm| norm / scale).collect(),
            verdict: Verdict::new(report),
            outcome: report.outcome,
            trail: Arc::clone(&report.trail),
        }
    }
}

/// The column that determines the status: one that was not solved before one that was, one that did not converge before
/// one that did, then the larger residual.
fn worst(columns: &[Column]) -> Option<&Column> {
    let badness = |column: &&Column| {
        let residual =
            if column.relative_residual.is_nan() { f64::INFINITY } else { column.relative_residual };
        let rank = match column.outcome {
            Outcome::Converged => 0,
            solved if solved.is_solved() => 1,
            _ => 2,
        };
        (rank, residual)
    };
    columns.iter().reduce(|worst, next| {
        let (a, b) = (badness(&worst), badness(&next));
        if b.0 > a.0 || (b.0 == a.0 && b.1 > a.1) { next } else { worst }
    })
}

/// The residuals of all iterations, as CSV.
pub(super) fn history_csv(columns: &[Column]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    if let [column] = columns {
        text.push_str("iteration,relative_residual\n");
        for (iteration, residual) in column.history.iter().enumerate() {
            let _ = writeln!(text, "{iteration},{residual:e}");
        }
    } else {
        text.push_str("right_hand_side,iteration,relative_residual\n");
        for (k, column) in columns.iter().enumerate() {
            for (iteration, residual) in column.history.iter().enumerate() {
                let _ = writeln!(text, "{},{iteration},{residual:e}", k + 1);
            }
        }
    }
    text
}
