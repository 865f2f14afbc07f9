//! Runs every candidate of the choice on a collection of systems, to compare the actual choice with the best possible
//! one.
//!
//! `cargo bench --bench choice -- [--cuda] [--seed N] [--part I/N] [--widths] [--only LIST] [WORD ...]` takes the systems whose names
//! contain one of the words. It prints a line for each candidate of each system: what the choice knew, the cost of the
//! candidate, and the residual norms of some of its iterations. To standard error it prints which candidates the choice
//! ran. A candidate is stopped after five times the seconds of the best one so far. With `--widths` it only prints the
//! mean width of the levels of each graph and the multiplications that first cuts promise; with `--only`, the candidates of a list like `direct,cg+ilu` are run beside
//! the automatic choice. `benches/choice/*.csv` contain the lines for candidates; `cargo test choice`
//! replays the choice on them.

mod systems;

use residua::direct::{Direct, DirectOptions, Factorable};
use residua::graph::{Adjacency, level_width};
use residua::prepare::expected_multiplications;
use residua::solver::{
    Device, IlutChoice, Method, PreconditionerChoice as Name, Solvable, Solver, StageReport,
};
use residua::{Csr, Result};
use std::time::{Duration, Instant};
use systems::{Made, System, all, is_fitted_on, right_hand_side};

const HEAD: &str = "system;half;rows;nonzeros;width;cuts;hermitian;complex;device;limit;multigrid;made;polynomial;\
                    analysis;multiplications;bytes;forecast;candidate;outcome;total;setup;solve;iterations;each;bytes_each;history";

/// Maximum seconds of a solve, on a CPU and on a GPU; and the maximum as a multiple of the best time so far.
const MOST: [f64; 2] = [20.0, 8.0];
const TIMES: f64 = 5.0;

/// On a CPU, candidates that take less are run twice. On a GPU all are, because the first run compiles kernels.
const SHORT: f64 = 0.2;

/// If an elimination has more multiplications than this, its ordering is useless for any candidate.
const ANY: f64 = 1e12;

/// The number of points of a residual history that are kept.
const POINTS: usize = 40;

struct Wishes {
    cuda: bool,
    widths: bool,
    seed: u64,
    part: (usize, usize),
    only: Option<String>,
    words: Vec<String>,
}

fn wishes() -> Wishes {
    let (part, only) = ((0, 1), None);
    let mut wishes = Wishes { cuda: false, widths: false, seed: 7, part, only, words: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("a value behind the option");
        match word.as_str() {
            "--cuda" => wishes.cuda = true,
            "--widths" => wishes.widths = true,
            "--seed" => wishes.seed = next().parse().expect("a number"),
            "--only" => wishes.only = Some(next()),
            "--part" => {
                let part = next();
                let (number, of) = part.split_once('/').expect("I/N");
                wishes.part = (number.parse().expect("a number"), of.parse().expect("a number"));
            }
            "--bench" => {}
            word => wishes.words.push(word.into()),
        }
    }
    wishes
}

fn main() {
    let wishes = wishes();
    println!("{}", if wishes.widths { "system;width;cuts" } else { HEAD });
    for (number, system) in all(wishes.seed).iter().enumerate() {
        let named = wishes.words.is_empty() || wishes.words.iter().any(|word| system.name.contains(word));
        if !named || number % wishes.part.1 != wishes.part.0 {
            continue;
        }
        let done = match system.make() {
            Ok(Made::Real(a)) => every_candidate(system, &a, &wishes),
            Ok(Made::Complex(a)) => every_candidate(system, &a, &wishes),
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            eprintln!("{}: {error}", system.name);
        }
    }
}

/// The mean width of the levels of a matrix's graph, and the multiplications that first cuts promise.
fn width_of<T: Solvable>(a: &Csr<T>) -> String {
    let told = |graph: Adjacency<'_>| {
        format!(
            "{:.1};{:.2e}",
            level_width(&graph),
            expected_multiplications(&graph).unwrap_or(f64::INFINITY)
        )
    };
    Adjacency::new(a).map_or("nan;inf".into(), told)
}

fn every_candidate<T: Solvable + Factorable>(system: &System, a: &Csr<T>, wishes: &Wishes) -> Result<()> {
    if wishes.widths {
        println!("{};{}", system.name, width_of(a));
        return Ok(());
    }
    let b = right_hand_side(a, wishes.seed)?;
    let start = Instant::now();
    let (analysis, forecast) = match Direct::analyse(a, &DirectOptions::default().flop_limit(ANY)) {
        Ok(told) => (
            start.elapsed().as_secs_f64(),
            format!("{:.4e};{:.4e};{:.4e}", told.in_blocks(), told.bytes, told.seconds()),
        ),
        Err(_) => (start.elapsed().as_secs_f64(), "inf;inf;inf".into()),
    };
    let half = if is_fitted_on(system.kind.name) { "fitted" } else { "held-out" };
    let (mut best, mut facts) = (MOST[usize::from(wishes.cuda)], String::new());
    // The first solve of a system finds memory that was never touched, and would make its candidate a fifth slower.
    let _ = run(a, &b, (Method::Auto, Name::Auto), best, wishes.cuda);
    for (method, name) in candidates(a) {
        let word = match (method, name) {
            (Method::Auto, _) => "auto".into(),
            (Method::Direct, _) => "direct".into(),
            (method, name) => format!("{method}+{name}"),
        };
        let is_listed = |list: &str| list.split(',').any(|listed| listed == word);
        if method != Method::Auto && !wishes.only.as_deref().is_none_or(is_listed) {
            continue;
        }
        let Some(run) = run(a, &b, (method, name), best, wishes.cuda) else { continue };
        if method == Method::Auto {
            facts.clone_from(&run.facts);
            eprintln!("{}: {}", system.name, run.way);
        }
        println!("{};{half};{facts};{analysis:.4};{forecast};{word};{}", system.name, run.line);
        if run.solved {
            best = best.min(TIMES * run.total.max(0.01));
        }
    }
    Ok(())
}

/// The automatic choice, and the candidates for a matrix of this symmetry.
fn candidates<T: Solvable>(a: &Csr<T>) -> Vec<(Method, Name)> {
    let (amg, ilut) = (Name::Multigrid(Default::default()), Name::Ilut(IlutChoice::default()));
    let hermitian = a.is_hermitian();
    let mut list = vec![(Method::Auto, Name::Auto), (Method::Direct, Name::Auto)];
    if hermitian {
        list.extend([(Method::Cg, Name::Jacobi), (Method::Cg, amg), (Method::Minres, Name::Jacobi)]);
        list.extend([(Method::Cg, Name::Ilu), (Method::Gmres, ilut)]);
    } else {
        list.extend([Name::Jacobi, amg, Name::Ilu, ilut].map(|name| (Method::Gmres, name)));
        list.extend([Name::Jacobi, Name::Ilu].map(|name| (Method::BiCgStab, name)));
    }
    list.push((Method::Lsmr, Name::Jacobi));
    list
}

struct Run {
    facts: String,
    /// The candidates that the choice ran, with their iterations and seconds.
    way: String,
    line: String,
    solved: bool,
    total: f64,
}

fn run<T: Solvable>(
    a: &Csr<T>,
    b: &[T],
    (method, name): (Method, Name),
    most: f64,
    cuda: bool,
) -> Option<Run> {
    let once = || -> Result<Run> {
        let device = if cuda { Device::Cuda(0) } else { Device::Cpu };
        let start = Instant::now();
        let mut solver = Solver::builder()
            .device(device)
            .method(method)
            .preconditioner(name)
            .time_limit(Duration::from_secs_f64(most))
            .build(a)?;
        let solution = solver.solve(b)?;
        let total = start.elapsed().as_secs_f64();
        let report = &solution.report;
        let facts = report.trail.facts.map_or(String::new(), |facts| {
            format!(
                "{};{};{};{};{};{};{};{};{};{}",
                facts.rows,
                facts.nonzeros,
                width_of(a),
                facts.hermitian,
                facts.complex,
                if facts.on_device { "gpu" } else { "cpu" },
                facts.iteration_limit,
                facts.multigrid.unwrap_or(""),
                facts.multigrid_is_made,
                facts.polynomial.map_or(String::new(), |steps| steps.to_string()),
            )
        });
        let tried = report.trail.stages.iter().filter(|stage| stage.outcome.is_some());
        let told = |stage: &StageReport| {
            let (method, name) = (stage.method, &stage.preconditioner);
            format!("{method}+{name} {} in {:.4} s", stage.iterations, stage.seconds)
        };
        let way = tried.map(told).collect::<Vec<_>>().join(", ");
        let stage = report.trail.stages.iter().rfind(|stage| stage.outcome.is_some());
        let each = |all: fn(&StageReport) -> Option<f64>| {
            stage
                .and_then(|stage| Some(all(stage)? / stage.predicted_iterations.max(1) as f64))
                .unwrap_or(f64::NAN)
        };
        let (seconds, bytes) = (each(|stage| stage.predicted_seconds), each(|stage| stage.predicted_bytes));
        let (setup, solve) = (report.seconds.setup, report.seconds.solve);
        let length = solution.history.first().copied().unwrap_or(1.0);
        let line = format!(
            "{};{total:.4};{setup:.4};{solve:.4};{};{seconds:.3e};{bytes:.4e};{}",
            report.outcome.status(),
            report.iterations,
            thinned(&solution.history, length),
        );
        Ok(Run { facts, way, line, solved: report.outcome.is_converged(), total })
    };
    let first = once();
    let run = match first {
        Ok(run) if cuda || run.total < SHORT => {
            once().map(|again| if again.total < run.total { again } else { run })
        }
        other => other,
    };
    run.map_err(|error| eprintln!("{method} with {name}: {error}")).ok()
}

/// Decimal logarithms of residual norms at some iterations, relative to the norm at the start.
fn thinned(history: &[f64], length: f64) -> String {
    let last = history.len().saturating_sub(1);
    let mut points: Vec<usize> = (0..POINTS).map(|k| k * last / (POINTS - 1)).collect();
    points.extend((0..=last.min(10)).chain([20, 30]).filter(|&k| k <= last));
    points.sort_unstable();
    points.dedup();
    let text = points
        .iter()
        .filter(|&&k| k < history.len())
        .map(|&k| format!("{k}:{:.2}", (history[k] / length).log10()));
    text.collect::<Vec<_>>().join(" ")
}
