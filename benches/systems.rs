//! From a matrix in memory to x: analysis, factors, solves, and the residual computed anew. Reading the file is not
//! timed.
//!
//! `cargo bench --bench systems -- FILE.mtx ... [KIND ...]` uses `Solver` with no options on the CPU (`auto`), or the
//! named types of factorisation (`frontal-ldlt`, `ldlt`, ...). b = A x with a random x, as in
//! `benches/peers/systems.py` for other packages. Processor time is that of all threads (Linux); set
//! `RAYON_NUM_THREADS=1` for the time on one thread.

use num_complex::Complex;
use residua::direct::{Direct, DirectOptions, Factorable, Kind};
use residua::generate::Random;
use residua::market::{Field, read_csr};
use residua::solver::{Device, Solvable, Solver};
use residua::{Csr, Host};
use std::time::Instant;

const KINDS: [Kind; 9] = [
    Kind::Cholesky,
    Kind::Ldlt,
    Kind::FrontalLdlt,
    Kind::Lu,
    Kind::FrontalLu,
    Kind::SupernodalLu,
    Kind::ShiftedLdlt,
    Kind::Regularised,
    Kind::DenseQr,
];

/// Seconds of processor time of all current threads.
fn processor_time() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return f64::NAN };
    let spent =
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    spent.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() * 1e-9
}

fn row(name: &str, kind: &str, work: impl FnOnce() -> residua::Result<(f64, String)>) {
    let (start, spent) = (Instant::now(), processor_time());
    let done = work();
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), processor_time() - spent);
    match done {
        Ok((residual, told)) => {
            println!("{name:24} {kind:13} {seconds:8.3} s {cpu:8.3} s cpu  {residual:.1e}  {told}");
        }
        Err(error) => println!("{name:24} {kind:13} {seconds:8.3} s {cpu:8.3} s cpu  {error}"),
    }
}

fn file<T: Solvable + Factorable>(path: &str, kinds: &[String]) -> residua::Result<()> {
    let a: Csr<T> = read_csr(path)?;
    let mut random = Random::new(1);
    let solution: Vec<T> = (0..a.columns()).map(|_| T::from_f64(2.0 * random.unit() - 1.0)).collect();
    let mut b = vec![T::from_f64(0.0); a.rows()];
    a.product(&Host, T::from_f64(1.0), &solution, T::from_f64(0.0), &mut b)?;
    let name = path.rsplit('/').next().unwrap_or(path);
    for word in kinds {
        let Some(kind) = KINDS.into_iter().find(|kind| kind.to_string() == *word) else {
            row(name, word, || {
                let mut solver = Solver::builder().device(Device::Cpu).build(&a)?;
                let solution = solver.solve(&b)?;
                let report = &solution.report;
                let tried = report.trail.stages.iter().filter(|stage| stage.outcome.is_some());
                let tried = tried.map(|stage| format!("{} {:.3} s", stage.method, stage.seconds));
                let told = tried.collect::<Vec<_>>().join(", ");
                Ok((report.relative_residual, format!("{}: {told}; {:?}", report.outcome, report.seconds)))
            });
            continue;
        };
        row(name, word, || {
            let mut direct = Direct::new(&a, DirectOptions::default().kind(kind).condition(false))?;
            let mut x = vec![T::from_f64(0.0); a.columns()];
            let told = direct.solve(&b, &mut x, 1e-8)?;
            let (factor, solve) = (told.factor_seconds, told.solve_seconds);
            Ok((told.relative_residual, format!("factor {factor:.3} s, solve {solve:.3} s, {told}")))
        });
    }
    Ok(())
}

fn main() -> residua::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let (files, mut kinds): (Vec<String>, Vec<String>) = words.into_iter().partition(|w| w.contains(".mtx"));
    if kinds.is_empty() {
        kinds.push("auto".to_string());
    }
    for path in &files {
        let field = residua::market::read_header(path)?.field();
        if field == Field::Complex { file::<Complex<f64>>(path, &kinds)? } else { file::<f64>(path, &kinds)? }
    }
    Ok(())
}
