//! Starts the ranks, and what each of them does.

use crate::systems::{Kind, has_jumps, kind, made_there, matrix, planes, sizes, some_rows};
use residua::backend::{Communicator, ExchangePlan, GraphSteps, Replay, Space};
use residua::generate::{self, Random, RmatKind};
use residua::graph::{Adjacency, SpreadGraph, vertex_parts};
use residua::ranks::{Group, Peers, launch};
use residua::solver::{BuildSeconds, Method, PreconditionerChoice, SolveReport, Solver};
use residua::{Backend, Cuda};
use std::ops::Range;
use std::process::Command;
use std::time::Instant;

/// The environment variable that tells a child process its work.
const WORK: &str = "RESIDUA_BENCH_WORK";

/// The number of timed iterations.
const ITERATIONS: usize = 200;

fn right(n: usize) -> Vec<f64> {
    let mut random = Random::new(3);
    (0..n).map(|_| random.unit() - 0.5).collect()
}

fn wishes(name: &str) -> residua::solver::Builder {
    let wishes = Solver::<f64>::builder()
        .method(Method::Cg)
        .symmetry(residua::scalar::Symmetry::Symmetric)
        .reorder(residua::solver::Reorder::None);
    if let Kind::Multigrid { boxes, .. } = kind(name).0 {
        let named = if boxes { "amg" } else { "amg:boxes=no" };
        return wishes.preconditioner(named.parse().unwrap_or_default());
    }
    let jacobi: PreconditionerChoice = "jacobi".parse().unwrap_or_default();
    if kind(name).0 == Kind::Certified {
        return wishes.preconditioner(jacobi);
    }
    wishes.preconditioner(jacobi).tolerance(1e-30).max_iterations(ITERATIONS)
}

/// Prints the results of multigrid.
fn tell(name: &str, ranks: usize, report: &SolveReport, [best, setup]: [f64; 2], peak: usize) {
    let told = report.trail.decisions.iter().find(|decision| decision.subject == "preconditioner");
    println!(
        "{name:12} {ranks} GPUs {:8.2} ms, {} iterations to {:.10e}, {:?}, setup {:.0} ms, peak {:.1} GB; {}",
        1e3 * best,
        report.iterations,
        report.relative_residual,
        report.outcome,
        1e3 * setup,
        peak as f64 / 1e9,
        told.map_or("", |told| &told.why)
    );
}

/// Prints where the time of a build went, on rank 0: milliseconds.
fn tell_build(name: &str, which: &str, seconds: f64, told: BuildSeconds) {
    let BuildSeconds { rows, halo, look, format, levels, first_use, .. } = told;
    let parts = [rows, halo, look, format, levels, first_use].map(|part| format!("{:.1}", 1e3 * part));
    let [rows, halo, look, format, levels, first_use] = parts;
    println!(
        "{name:12} {which} build {:.1} ms: rows to device {rows}, halo {halo}, checks and norms {look}, format \
         {format}, levels {levels}; first use of kernels, in these, {first_use}",
        1e3 * seconds
    );
}

/// Builds of one GPU: the first of the process, and the fastest of three later ones, of which the last is kept.
fn alone(name: &str) -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    let a = match made_there(&cuda, name)? {
        Some(a) => a,
        None => matrix(name)?.into_backend(&cuda)?,
    };
    let b = cuda.upload(right(a.rows()))?;
    let mut x = cuda.zeros(a.rows())?;
    let (mut setup, mut last, mut first) = (f64::INFINITY, None, 0.0);
    for round in 0..4 {
        drop(last.take());
        let again = a.copied(&cuda)?;
        cuda.synchronize()?;
        let start = Instant::now();
        let solver = wishes(name).build_on(&cuda, again)?;
        cuda.synchronize()?;
        let seconds = start.elapsed().as_secs_f64();
        if round == 0 {
            first = seconds;
        } else {
            setup = setup.min(seconds);
        }
        last = Some(solver);
    }
    println!("{name:12} one GPU: first build {:.1} ms, later ones {:.1} ms", 1e3 * first, 1e3 * setup);
    drop(a);
    let Some(mut solver) = last else { return Ok(()) };
    let (mut best, mut residual) = (f64::INFINITY, 0.0);
    let mut solve = f64::INFINITY;
    for round in 0..3 {
        cuda.fill(0.0, &mut x)?;
        let report = solver.solve_on(&cuda, &b, &mut x)?;
        best = best.min(report.seconds.iterating / report.iterations as f64);
        solve = solve.min(report.seconds.solve);
        residual = report.relative_residual;
        if round == 2 && matches!(kind(name).0, Kind::Multigrid { .. }) {
            tell(name, 1, &report, [solve, setup], cuda.peak_memory());
            return Ok(());
        }
    }
    println!("{name:12} one GPU {:8.2} us an iteration, residual {residual:.10e}", 1e6 * best);
    Ok(())
}

/// Searches on one GPU and on all, from the same sources. Prints the harmonic mean of edges per second, counted as
/// in Graph500 (each edge of the component once).
fn search(group: &Group, cuda: Cuda, size: &str) -> residua::Result<()> {
    let numbers: Vec<usize> = size.split(':').filter_map(|number| number.parse().ok()).collect();
    let [n, factor] = numbers[..] else {
        return Err(residua::Error::InvalidArgument(format!("bfs:{size}: bfs:VERTICES:FACTOR")));
    };
    let whole = generate::rmat(n, factor, RmatKind::Symmetric, 1)?;
    let own = vertex_parts(&whole, group.ranks())?[group.rank()].clone();
    let degree = |v: usize| whole.row(v).0.len();
    let mut random = Random::new(5);
    let vertices = std::iter::repeat_with(|| random.below(n as u64) as usize).filter(|&v| degree(v) > 0);
    let sources: Vec<u32> = vertices.take(16).map(|v| v as u32).collect();
    let a = whole.to_backend(&cuda)?;
    let graph = Adjacency::on(&cuda, &a)?;
    let spread = SpreadGraph::new(Space::spread(cuda, Peers::new(cuda, group)?), &a, own.clone())?;
    let (mut alone, mut together, mut levels, mut edges) = (0.0, 0.0, 0, 0);
    for &source in &sources {
        let (at, mut expected) = (cuda.upload(vec![source])?, cuda.buffer(n)?);
        let mut best = [f64::INFINITY; 2];
        for _ in 0..3 {
            cuda.synchronize()?;
            let start = Instant::now();
            cuda.bfs(graph.parts(), &at, &mut expected)?;
            best[0] = best[0].min(start.elapsed().as_secs_f64());
            group.all_gather(&[])?;
            let start = Instant::now();
            let part = spread.bfs(&[source])?;
            best[1] = best[1].min(start.elapsed().as_secs_f64());
            levels = levels.max(part.count);
            let whole = cuda.download(&*expected)?;
            assert!(cuda.download(&*part.levels)? == whole[own.clone()], "levels from {source}");
            edges = (0..n).filter(|&v| whole[v] != u32::MAX).map(degree).sum::<usize>() / 2;
        }
        alone += best[0] / edges as f64;
        together += best[1] / edges as f64;
    }
    if group.rank() == 0 {
        let rate = |seconds: f64| sources.len() as f64 / seconds / 1e9;
        println!(
            "bfs:{size} {} neighbours, {levels} levels at most: one GPU {:.1} G edges/s, {} GPUs {:.1}: {:.2} times; \
             rank 0 has {} of {n} vertices",
            whole.nonzeros(),
            rate(alone),
            group.ranks(),
            rate(together),
            alone / together,
            own.len()
        );
    }
    Ok(())
}

fn rank(group: &Group, name: &str) -> residua::Result<()> {
    let count = residua::backend::cuda::devices().map_or(1, |all| all.len().max(1));
    let cuda = Cuda::new(group.rank() % count)?;
    if let Some(size) = name.strip_prefix("bfs:") {
        return search(group, cuda, size);
    }
    let peers = Peers::new(cuda, group)?;
    let first = group.rank() == 0;
    let (kind_of, grid) = kind(name);
    let own = |parts: &[Range<usize>]| parts[group.rank()].clone();
    let parts = if kind_of == Kind::Whole { Vec::new() } else { planes(sizes(grid)?, group.ranks()) };
    // On the host as a whole, or this rank's rows; none if they are made on the GPU.
    let there = name.starts_with("there-");
    let a = match kind_of {
        Kind::Whole => Some(matrix(name)?),
        _ if there => None,
        _ => Some(some_rows(sizes(grid)?, has_jumps(kind_of), own(&parts))?),
    };
    let (mut last, mut build) = (None, f64::INFINITY);
    let mut told = BuildSeconds::default();
    for round in 0..if kind_of == Kind::Certified { 1 } else { 4 } {
        drop(last.take());
        let rows = match there {
            true => {
                let ([nx, ny, nz], rows) = (sizes(grid)?, own(&parts));
                let plane = nx * ny;
                Some(cuda.poisson3d_planes::<f64>([nx, ny, nz], rows.start / plane..rows.end / plane)?)
            }
            false => None,
        };
        cuda.synchronize()?;
        group.all_gather(&[])?;
        let start = Instant::now();
        let wishes = wishes(name).all_parts(true);
        let solver = match (rows, &a) {
            (Some(rows), _) => wishes.build_spread_rows_on(&cuda, peers.clone(), rows, &parts)?,
            (None, Some(a)) if kind_of == Kind::Whole => wishes.build_spread(&cuda, peers.clone(), a)?,
            (None, Some(a)) => wishes.build_spread_rows(&cuda, peers.clone(), a, &parts)?,
            (None, None) => unreachable!("rows are on the host or on the device"),
        };
        cuda.synchronize()?;
        let seconds = start.elapsed().as_secs_f64();
        if first && round == 0 {
            tell_build(name, "first", seconds, solver.build_seconds());
        }
        if round == 0 || seconds < build || round == 1 {
            (build, told) = (seconds, solver.build_seconds());
        }
        last = Some(solver);
    }
    if first {
        tell_build(name, "later", build, told);
    }
    let Some(mut solver) = last else { return Ok(()) };
    let b = cuda.upload(solver.own_part(&right(solver.columns())))?;
    // The solver's default, which may use fewer ranks.
    let mut by_itself = None;
    let small = a.as_ref().filter(|a| kind_of == Kind::Whole && a.rows() < 3_000_000);
    if let Some(a) = small.filter(|_| group.ranks() > 1) {
        let mut solver = wishes(name).build_spread(&cuda, peers.clone(), a)?;
        let b = cuda.upload(solver.own_part(&right(a.rows())))?;
        let mut x = cuda.zeros(b.len())?;
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            cuda.fill(0.0, &mut x)?;
            let report = solver.solve_into(&b, &mut x)?;
            best = best.min(report.seconds.iterating / report.iterations as f64);
            by_itself = report.trail.decisions.iter().find(|d| d.subject == "ranks").cloned();
        }
        if first && let Some(decision) = &by_itself {
            println!("{name:12} by itself {} ranks {:8.2} us: {}", decision.chosen, 1e6 * best, decision.why);
        }
    }
    drop(a);
    let mut x = cuda.zeros(b.len())?;
    let (mut best, mut bits, mut residual) = (f64::INFINITY, None, 0.0);
    let (mut solve, mut format) = (f64::INFINITY, String::new());
    for round in 0..4 {
        cuda.fill(0.0, &mut x)?;
        let report = solver.solve_into(&b, &mut x)?;
        best = best.min(report.seconds.iterating / report.iterations as f64);
        solve = solve.min(report.seconds.solve);
        let chosen = report.trail.decisions.iter().find(|decision| decision.subject == "format");
        format = chosen.map_or(String::new(), |told| format!("{}: {}", told.chosen, told.why));
        if first && round == 3 && matches!(kind(name).0, Kind::Multigrid { .. }) {
            tell(name, group.ranks(), &report, [solve, build], cuda.peak_memory());
        }
        if kind(name).0 == Kind::Certified {
            if first {
                let n = solver.columns();
                let bytes = (cuda.peak_memory() * group.ranks()) as f64 / n as f64;
                println!(
                    "{name:12} {} GPUs {n} unknowns, {:?} in {:.2} s, {} iterations to {:.3e}, build {build:.1} s, \
                     {bytes:.0} bytes a row, {format}",
                    group.ranks(),
                    report.outcome,
                    report.seconds.solve,
                    report.iterations,
                    report.relative_residual,
                );
            }
            return Ok(());
        }
        let now = report.residual_norm.to_bits();
        assert_eq!(*bits.get_or_insert(now), now, "the same bits each time");
        residual = report.relative_residual;
    }
    if kind(name).0 != Kind::Whole {
        if first && kind(name).0 == Kind::Own {
            let (us, rows, bytes) = (1e6 * best, solver.columns(), cuda.peak_memory());
            println!(
                "{name:12} {} GPUs {us:8.2} us an iteration, residual {residual:.10e}, build {build:.2} s, {:.0} bytes a row, \
                 {format}",
                group.ranks(),
                (bytes * group.ranks()) as f64 / rows as f64
            );
        }
        return Ok(());
    }
    // The communication of an iteration without the work in between: two sums, and the halo with neighbouring
    // ranks.
    let halo = 256 * 256;
    let beside = |other: usize| if other.abs_diff(group.rank()) == 1 { halo } else { 0 };
    let entries: Vec<usize> = (0..group.ranks()).map(beside).collect();
    let plan = ExchangePlan { send: entries.clone(), receive: entries };
    peers.prepare_exchange::<f64>(&cuda, &plan)?;
    let (mut sums, length) = (cuda.zeros::<f64>(2)?, plan.send.iter().sum());
    let (send, mut receive) = (cuda.zeros::<f64>(length)?, cuda.zeros::<f64>(length)?);
    let mut round = f64::INFINITY;
    let mut rounds = cuda.record(|| {
        peers.begin_exchange(&cuda, &plan, &send)?;
        peers.exchange(&cuda, &plan, &send, &mut receive)?;
        peers.all_sum(&cuda, &mut sums)?;
        peers.all_sum(&cuda, &mut sums)
    })?;
    for _ in 0..3 {
        cuda.synchronize()?;
        group.all_gather(&[])?;
        let start = Instant::now();
        (0..ITERATIONS).try_for_each(|_| rounds.replay())?;
        cuda.synchronize()?;
        round = round.min(start.elapsed().as_secs_f64() / ITERATIONS as f64);
    }
    drop(rounds);
    if first {
        let share = solver.shares()[0];
        println!(
            "{name:12} {} GPUs {:7.2} us an iteration, residual {residual:.10e}, halo {}, build {build:.2} s; two sums \
             and a halo of 256^2 {:.2} us",
            group.ranks(),
            1e6 * best,
            share.halo,
            1e6 * round
        );
    }
    Ok(())
}

pub fn main() -> residua::Result<()> {
    let work = std::env::var(WORK).unwrap_or_default();
    if let Some(name) = work.strip_prefix("alone:") {
        return alone(name);
    }
    if let Some(group) = Group::from_environment()? {
        match rank(&group, &work) {
            Ok(()) => group.leave(0),
            Err(error) => group.fail(&error),
        }
        return Ok(());
    }
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let ranks = named.first().and_then(|word| word.parse().ok()).unwrap_or(2);
    let cases = match named.get(1..) {
        Some(cases) if !cases.is_empty() => cases.to_vec(),
        _ => ["512x512", "64x64x64", "128x128x128", "256x256x256"].map(String::from).to_vec(),
    };
    let own = std::env::current_exe().map_err(|error| residua::Error::InvalidArgument(error.to_string()))?;
    for name in cases {
        let (ranks, name) = match name.strip_prefix("1:") {
            Some(name) => (1, name.to_string()),
            None => (ranks, name),
        };
        let (beside, name) = match name.strip_prefix("several-") {
            Some(name) => (false, name.to_string()),
            None => (ranks > 1, name),
        };
        if beside && !["bfs:", "certified:"].iter().any(|word| name.starts_with(word)) {
            let _ = Command::new(&own).env(WORK, format!("alone:{name}")).status();
        }
        let command = |_| {
            let mut command = Command::new(&own);
            command.env(WORK, &name);
            command
        };
        launch(ranks, command, || false)?;
    }
    Ok(())
}
