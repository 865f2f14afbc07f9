//! `--dry-run`: the methods that a solve would try, with forecasts.

use super::Arguments;
use super::rhs::{Columns, RightHandSides};
use crate::direct::{Analysis, Direct, DirectOptions, in_doubles};
use crate::error::Result;
use crate::matrix::Csr;
use crate::prices::factors::seconds_on_device;
use crate::report::{Align, Table, bytes, count, seconds};
use crate::solver::{Builder, Method, Solvable, SolverBackend, StageReport, Trail, factorises, range_around};
use serde::Serialize;
use std::time::Instant;

/// What a dry run tells, as JSON.
#[derive(Serialize)]
pub(super) struct DryRun {
    status: &'static str,
    matrix: String,
    tolerance: f64,
    version: &'static str,
    threads: usize,
    rows: usize,
    columns: usize,
    nonzeros: usize,
    /// Decisions, and the candidates with their forecasts.
    trail: Trail,
    /// The size of a factorisation, in words.
    #[serde(skip)]
    factors: Option<String>,
}

/// Sets the matrix up, and forecasts each candidate: a factorisation by its order, others by half of their digits.
pub(super) fn told<T, B>(
    backend: &B,
    a: Csr<T, B>,
    rhs: &RightHandSides<T, B>,
    (builder, arguments): (&Builder, &Arguments),
) -> Result<DryRun>
where
    T: Solvable<Real = f64>,
    B: SolverBackend,
{
    let host = a.to_host(backend)?;
    let (rows, columns, nonzeros) = (host.rows(), host.columns(), host.nonzeros());
    let mut solver = builder.build_on(backend, a)?;
    let stages = &solver.trail().stages;
    let doubles = stages.iter().any(is_direct).then(|| in_doubles(host));
    let options = DirectOptions::default().flop_limit(most_work(stages));
    let start = Instant::now();
    let analysis = doubles.map(|a| Direct::analyse(&a, &options));
    let order = start.elapsed().as_secs_f64();
    let factors = match &analysis {
        Some(Ok(analysis)) => of_factors(backend, rows, analysis, order),
        _ => f64::INFINITY,
    };
    match &rhs.columns {
        Columns::Read(all, n) => {
            let b = backend.upload(all[..*n].to_vec())?;
            solver.forecast_on(backend, &b, factors)?;
        }
        Columns::Made(b) => solver.forecast_on(backend, b, factors)?,
    }
    let mut trail = solver.trail().clone();
    for stage in trail.stages.iter_mut().filter(|stage| is_direct(stage)) {
        match &analysis {
            Some(Ok(analysis)) => {
                stage.predicted_bytes = Some(analysis.bytes);
                stage.predicted_seconds = Some(factors);
                stage.predicted_range = Some(range_around(factors));
                let needed = analysis.in_blocks();
                let refused = stage.most_multiplications.filter(|most| needed > *most);
                stage.refused = refused.map(|most| {
                    format!("it takes {needed:.1e} multiplications, and may take {most:.1e} here")
                });
            }
            Some(Err(error)) => stage.refused = Some(error.to_string()),
            None => {}
        }
    }
    Ok(DryRun {
        status: "dry_run",
        matrix: arguments.matrix.display().to_string(),
        tolerance: arguments.tolerance,
        version: env!("CARGO_PKG_VERSION"),
        threads: rayon::current_num_threads(),
        rows,
        columns,
        nonzeros,
        trail,
        factors: analysis.and_then(Result::ok).map(|analysis| factorisation(backend, rows, &analysis)),
    })
}

fn is_direct(stage: &StageReport) -> bool {
    stage.method == Method::Direct
}

/// The largest limit of multiplications in the list; above it no ordering is computed.
fn most_work(stages: &[StageReport]) -> f64 {
    let direct = stages.iter().filter(|stage| is_direct(stage));
    direct.map(|stage| stage.most_multiplications.unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
}

/// Forecast seconds of a factorisation whose order took this long.
fn of_factors<B: SolverBackend>(backend: &B, rows: usize, analysis: &Analysis, order: f64) -> f64 {
    if is_on_device(backend, rows, analysis) {
        return order + seconds_on_device(analysis.flops, analysis.bytes);
    }
    analysis.seconds_after(order)
}

fn is_on_device<B: SolverBackend>(backend: &B, rows: usize, analysis: &Analysis) -> bool {
    factorises(backend) && crate::solver::is_worth_a_device(rows, || analysis.seconds())
}

/// The size of a factorisation.
fn factorisation<B: SolverBackend>(backend: &B, rows: usize, analysis: &Analysis) -> String {
    let about = if analysis.exact { "" } else { "about " };
    let order = analysis.order.map(|order| format!(", order by {order}")).unwrap_or_default();
    let by = match (is_on_device(backend, rows, analysis), backend.factor_library()) {
        (true, Ok(library)) => format!(" by {library} on the device"),
        (true, Err(_)) => " in dense fronts on the device".to_string(),
        _ => String::new(),
    };
    let size = bytes(analysis.bytes as u64);
    format!("{about}{} entries in the factors, {size}{by}{order}", count(analysis.entries as u64))
}

impl DryRun {
    /// The decisions of the setup and the candidates.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
        let [rows, columns, nonzeros] = [self.rows, self.columns, self.nonzeros].map(|n| count(n as u64));
        table.row(["A".into(), format!("{}: {rows} x {columns}, {nonzeros} nonzeros", self.matrix)]);
        for decision in &self.trail.decisions {
            let why = if decision.why.is_empty() { String::new() } else { format!(" ({})", decision.why) };
            table.row([decision.subject.to_string(), format!("{}{why}", decision.chosen)]);
        }
        let mut factors = self.factors.as_deref();
        for (number, stage) in self.trail.stages.iter().enumerate() {
            let with = match stage.preconditioner.to_string().as_str() {
                "none" => String::new(),
                name => format!(" with {name}"),
            };
            let name = if number == 0 { "first" } else { "then" };
            table.row([name.into(), format!("{}{with}: {}", stage.method, words(stage, factors))]);
            factors = factors.map(|_| "as above").filter(|_| is_direct(stage)).or(factors);
        }
        format!(
            "{table}Nothing was solved: iterations were forecast from half of their digits, a factorisation from its \
             order. A method is tried only if those before it have failed.\n"
        )
    }
}

/// A candidate's forecast, and when it is tried; `factors` is the size of a factorisation.
fn words(stage: &StageReport, factors: Option<&str>) -> String {
    let time = stage.predicted_seconds.zip(stage.predicted_range).map(|(forecast, [low, high])| {
        format!("{} ({} to {})", seconds(forecast), seconds(low), seconds(high))
    });
    let expected = match (time, stage.predicted_bytes) {
        _ if is_direct(stage) && factors == Some("as above") => Some("as above".to_string()),
        (Some(time), _) if is_direct(stage) => Some(format!("{time}, {}", factors.unwrap_or_default())),
        (Some(time), Some(all)) => {
            let number = stage.predicted_iterations;
            let each = bytes((all / number.max(1) as f64) as u64);
            Some(format!("{time}, about {} iterations of {each} each", count(number as u64)))
        }
        _ => None,
    };
    let known = expected.clone().or_else(|| stage.remark.as_ref().map(|what| format!("no forecast: {what}")));
    match (&stage.refused, known) {
        (Some(why), Some(known)) => format!("{known}; left out: {why}"),
        (Some(why), None) => format!("left out: {why}"),
        (None, known) => {
            let condition = stage.condition.map_or(String::new(), |condition| format!("; {condition}"));
            format!("{}{}{condition}", known.map_or(String::new(), |known| known + "; "), stage.why)
        }
    }
}
