//! `--dry-run`: the methods that a solve would try, with forecasts.

use super::Arguments;
use crate::direct::{Analysis, Direct, DirectOptions, in_doubles};
use crate::error::Result;
use crate::matrix::Csr;
use crate::report::{Align, Table, bytes, count, seconds};
use crate::solver::{Builder, Method, Solvable, SolverBackend, StageReport, Trail, is_worth_a_device};

/// The decisions of the setup and the stages, as text. The matrix is set up, including measured formats, but there are
/// no iterations or factorisations. The fill-reducing ordering of a factorisation is computed, and so its size.
pub(super) fn told<T, B>(
    backend: &B,
    a: Csr<T, B>,
    builder: &Builder,
    arguments: &Arguments,
) -> Result<String>
where
    T: Solvable<Real = f64>,
    B: SolverBackend,
{
    let host = a.to_host(backend)?;
    let (rows, columns, nonzeros) = (host.rows(), host.columns(), host.nonzeros());
    let solver = builder.build_on(backend, a)?;
    let trail = solver.trail();
    let is_direct = |stage: &StageReport| stage.method == Method::Direct;
    // The stage itself says if a matrix has no factorisation.
    let analysis =
        trail.stages.iter().any(is_direct).then(|| {
            Direct::analyse(&in_doubles(host), &DirectOptions::default().flop_limit(most_work(trail)))
        });
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    let size =
        format!("{} x {}, {} nonzeros", count(rows as u64), count(columns as u64), count(nonzeros as u64));
    table.row(["A".into(), format!("{}: {size}", arguments.matrix.display())]);
    for decision in &trail.decisions {
        let why = if decision.why.is_empty() { String::new() } else { format!(" ({})", decision.why) };
        table.row([decision.subject.to_string(), format!("{}{why}", decision.chosen)]);
    }
    for (number, stage) in trail.stages.iter().enumerate() {
        let expected = match &analysis {
            Some(Ok(analysis)) if is_direct(stage) => {
                let most = stage.most_multiplications.filter(|most| analysis.in_blocks() > *most);
                let refused = most.map_or("", |_| "too expensive at this point: ");
                format!("{refused}{}", factorisation(backend, rows, analysis))
            }
            Some(Err(error)) if is_direct(stage) => error.to_string(),
            _ => iterations(stage),
        };
        let with = match stage.preconditioner.to_string().as_str() {
            "none" => String::new(),
            name => format!(" with {name}"),
        };
        let name = if number == 0 { "first" } else { "then" };
        let condition = stage.condition.map_or(String::new(), |condition| format!("; {condition}"));
        table.row([name.into(), format!("{}{with}: {expected}; {}{condition}", stage.method, stage.why)]);
    }
    Ok(format!("{table}Nothing was solved. A method is tried only if those before it have failed.\n"))
}

/// The largest limit of multiplications in the list; above it no ordering is computed.
fn most_work(trail: &Trail) -> f64 {
    let direct = trail.stages.iter().filter(|stage| stage.method == Method::Direct);
    direct.map(|stage| stage.most_multiplications.unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
}

fn factorisation<B: SolverBackend>(backend: &B, rows: usize, analysis: &Analysis) -> String {
    let about = if analysis.exact { "" } else { "about " };
    let order = analysis.order.map(|order| format!(", order by {order}")).unwrap_or_default();
    let on_device = is_worth_a_device(rows, || analysis.seconds());
    let by = match (on_device, backend.factor_library(), backend.has_fronts()) {
        (true, Ok(library), _) => format!("by {library} on the device; on the CPU: "),
        (true, Err(_), true) => "in dense fronts on the device; on the CPU: ".to_string(),
        _ => String::new(),
    };
    format!(
        "{by}{about}{} entries in the factors, {}, {about}{}{order}",
        count(analysis.entries as u64),
        bytes(analysis.bytes as u64),
        seconds(analysis.seconds())
    )
}

/// Describes the forecast of a method that is already set up: its iterations, their time, and the bytes of one.
fn iterations(stage: &StageReport) -> String {
    let least = stage.predicted_iterations;
    let Some((all, time)) = stage.predicted_bytes.zip(stage.predicted_seconds) else {
        return "no forecast before its setup".into();
    };
    let each = bytes((all / least.max(1) as f64) as u64);
    format!("at least {} iterations, which take {} and move {each} each", count(least as u64), seconds(time))
}
