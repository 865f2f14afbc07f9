//! Replays the choice on measurements: `benches/choice/*.csv` has the costs of each candidate for a collection of
//! systems, a file per machine, and [`replay`] goes through a solve without running it. A change of prices, of budgets
//! or of the order of candidates is therefore judged in seconds: `cargo test choice -- --nocapture` prints the regret,
//! which is the time of the choice divided by that of the best candidate alone.
//!
//! What was not measured is estimated: a candidate that begins with the x of another one goes on as it did from zero
//! after reaching the same residual (measured: 0.7 to 0.9 of its iterations from zero are left, seed 31, 2026-11-28),
//! and one that was stopped by its time limit goes on with the slope of the second half of its iterations.

use super::race::is_left_out;
use super::table::{CLASSICAL, GRIDS, MESH, SYMMETRIZED};
use super::*;
use crate::backend::Host;
use crate::direct::least_seconds;
use crate::krylov::{Outcome, Report};
use crate::prices::iterations::{WITH_INCOMPLETE, WITH_LEVELS};
use crate::prices::order::OrderGuess;
use crate::solver::forecast::{of_factors, of_iteration};
use crate::solver::incomplete::TRIED_LEVELS;
use crate::solver::names::{Method, PreconditionerChoice as Name};
use crate::solver::preconditioner::most_levels;
use num_complex::Complex;
use std::collections::HashMap;

/// Seconds per entry to search the graph, and per level of rows of incomplete factors on a device.
const LOOK: f64 = 2e-8;
const A_LEVEL: f64 = 1.2e-6;

/// The requested relative residual.
const GOAL: f64 = 1e-8;

/// The measurements of a candidate that runs alone.
#[derive(Debug, Clone)]
struct Run {
    outcome: String,
    total: f64,
    setup: f64,
    solve: f64,
    iterations: usize,
    /// The forecast of an iteration: seconds, and bytes.
    each: f64,
    bytes: f64,
    /// Decimal logarithms of residual norms relative to that of the start, at some iterations.
    history: Vec<(usize, f64)>,
}

/// A system, and the measurements of its candidates.
#[derive(Debug)]
struct Case {
    name: String,
    is_fitted_on: bool,
    facts: Facts,
    /// Mean width of the levels of the graph, and the multiplications that first cuts promise.
    width: f64,
    cuts: f64,
    complex: bool,
    /// Of a factorisation: seconds of its analysis, and by that its multiplications and seconds.
    analysis: f64,
    multiplications: f64,
    forecast: f64,
    runs: HashMap<String, Run>,
}

impl Run {
    fn converged(&self) -> bool {
        self.outcome == "converged"
    }

    /// Seconds of an iteration.
    fn iteration(&self) -> f64 {
        self.solve / self.iterations.max(1) as f64
    }

    /// The relative residual after an iteration; `None` beyond the last iteration of a run that ended by itself.
    fn residual(&self, iteration: usize) -> Option<f64> {
        let behind = self.history.partition_point(|&(k, _)| k < iteration);
        let log = match (behind.checked_sub(1).map(|k| self.history[k]), self.history.get(behind)) {
            (_, Some(&(k, log))) if k == iteration => log,
            (Some((before, low)), Some(&(after, high))) => {
                low + (high - low) * (iteration - before) as f64 / (after - before) as f64
            }
            (Some((last, low)), None) if self.outcome == "time_limit" && last > 0 => {
                let half = self.history[self.history.partition_point(|&(k, _)| k < last / 2)];
                low + (low - half.1).min(0.0) * (iteration - last) as f64 / (last - half.0).max(1) as f64
            }
            _ => return None,
        };
        Some(10_f64.powf(log))
    }
}

impl Case {
    /// The measurements of a candidate from a list, found by its name in the file.
    fn run(&self, plan: &Candidate) -> Option<&Run> {
        let name = match (plan.method, plan.preconditioner) {
            (Method::Direct, _) => "direct".into(),
            // It was measured with GMRES, which takes longer.
            (Method::BiCgStab, Name::Ilu) => format!("{}+{}", Method::Gmres, Name::Ilu),
            (method, Name::None) => format!("{method}+{}", Name::Jacobi),
            (method, name) => format!("{method}+{name}"),
        };
        self.runs.get(&name)
    }

    /// Seconds before anything is set up, which all candidates have.
    fn preparation(&self) -> f64 {
        let least = |run: &Run| run.total - run.setup - run.solve;
        self.runs.values().map(least).fold(f64::INFINITY, f64::min).max(0.0)
    }

    fn least(&self, method: Method) -> f64 {
        let hermitian = !matches!(method, Method::Gmres | Method::BiCgStab);
        let (rows, nonzeros) = (self.facts.rows, self.facts.nonzeros);
        if self.complex {
            least_seconds::<Complex<f64>>(rows, nonzeros, hermitian)
        } else {
            least_seconds::<f64>(rows, nonzeros, hermitian)
        }
    }

    /// Seconds to analyse a factorisation that may take at most `most` multiplications. The analysis ends early if many
    /// more would be needed.
    fn analysed(&self, most: Option<f64>) -> f64 {
        let is_soon_refused = most.is_some_and(|most| self.multiplications > 10.0 * most);
        if is_soon_refused { 0.3 * self.analysis } else { self.analysis }
    }

    fn guess(&self) -> OrderGuess {
        OrderGuess::new([self.facts.rows, self.facts.nonzeros], self.width, || {
            if self.facts.on_device { f64::INFINITY } else { self.cuts }
        })
    }

    /// Seconds to search the graph.
    fn looked(&self) -> f64 {
        LOOK * self.facts.nonzeros as f64
    }

    /// True if incomplete factors without fill are refused on a device, because too many rows wait for each other.
    fn is_refused(&self, plan: &Candidate, run: &Run) -> bool {
        let most = most_levels(self.facts.rows, self.facts.on_device).min(TRIED_LEVELS) as f64;
        self.facts.on_device && plan.preconditioner == Name::Ilu && run.iteration() > A_LEVEL * most
    }

    fn costs(&self, plan: &Candidate, run: &Run, known: Option<f64>) -> Costs {
        let beside = match plan.preconditioner {
            Name::Multigrid(_) => WITH_LEVELS,
            Name::Ilu | Name::Ilut(_) => WITH_INCOMPLETE,
            _ => (0.0, 1.0),
        };
        let size = (self.facts.rows, self.facts.nonzeros);
        let on_host = || of_iteration::<Host>(run.bytes, f64::INFINITY, beside);
        Costs {
            each: if self.facts.on_device { run.each } else { on_host() },
            least: self.least(plan.method),
            known,
            on_device: self.facts.on_device,
            size: [size.0, size.1],
            incomplete: if self.complex {
                of_factors::<Complex<f64>, Host>(size, run.bytes)
            } else {
                of_factors::<f64, Host>(size, run.bytes)
            },
        }
    }

    /// The name of the fastest candidate that runs alone, and its seconds.
    fn best(&self) -> Option<(&str, f64)> {
        let solved = self.runs.iter().filter(|(name, run)| *name != "auto" && run.converged());
        let solved = solved.map(|(name, run)| (&**name, run.total));
        solved.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Replays the choice. Returns its seconds, and the candidates that it tried.
    fn replay(&self) -> (f64, String) {
        let list = candidates(&self.facts);
        let (mut course, mut from) = (Course::new(0, None), 0);
        let (mut seconds, mut known, mut reached, mut way) = (self.preparation(), None, 1.0, Vec::new());
        let limit = self.facts.iteration_limit;
        while let Some(turn) =
            course.next(from, &list, limit, |method| is_left_out(method, self.least(method)))
        {
            from = turn.number + 1;
            let plan = &list[turn.number];
            let Some(run) = self.run(plan).filter(|run| !self.is_refused(plan, run)) else { continue };
            let limit_behind =
                list[from..].iter().find_map(|behind| behind.flops).filter(|_| self.facts.on_device);
            if limit_behind
                .is_some_and(|most| refuses_trial(plan, self.facts.nonzeros, &self.guess(), most).is_some())
            {
                continue;
            }
            let (outcome, iterations, said) = if plan.method == Method::Direct {
                let levels_next = list.get(from).is_some_and(Candidate::has_levels);
                let refused = |most| refuses_factors(&self.guess(), most, self.facts.rows).is_some();
                if known.is_none() && levels_next && plan.flops.is_some_and(refused) {
                    seconds += self.looked();
                    way.push("direct refused unseen".into());
                    continue;
                }
                let rest = (run.total - self.preparation() - self.analysis).max(0.0);
                if known.replace(self.forecast).is_none() {
                    seconds += self.analysed(plan.flops);
                }
                if plan.flops.is_some_and(|most| self.multiplications > most) {
                    way.push("direct refused".into());
                    continue;
                }
                seconds += rest;
                (if run.converged() { Outcome::Converged } else { Outcome::Stagnated }, 1, None)
            } else {
                seconds += run.setup;
                let before = known;
                let told = self.iterate(plan, (&turn, run), (&mut known, &mut reached), &list, &mut course);
                seconds += told.1 as f64 * run.iteration();
                if known.is_some() && before.is_none() {
                    seconds += self.analysed(turn.rival.and_then(|rival| list[rival].flops));
                }
                told
            };
            way.push(format!(
                "{}+{} {iterations}{}",
                plan.method,
                plan.preconditioner,
                said.unwrap_or_default()
            ));
            if !course.add(&turn, plan, Report::of_factor(outcome, iterations, reached, reached)) {
                let ending = if outcome == Outcome::Converged { "" } else { " (not solved)" };
                return (seconds, format!("{}{ending}", way.join(", ")));
            }
        }
        (f64::INFINITY, way.join(", "))
    }

    /// Returns the outcome of a candidate, its iterations, and a remark.
    fn iterate(
        &self,
        plan: &Candidate,
        (turn, run): (&Turn, &Run),
        (known, reached): (&mut Option<f64>, &mut f64),
        list: &[Candidate],
        course: &mut Course,
    ) -> (Outcome, usize, Option<String>) {
        let start = *reached;
        let is_there = |&iteration: &usize| run.residual(iteration).is_some_and(|residual| residual <= start);
        let before = (0..run.iterations).find(is_there).unwrap_or(0);
        let costs = Some(self.costs(plan, run, *known));
        let mut pace = Pace::new((plan, &list[turn.number + 1..]), turn, GOAL, costs, &mut Vec::new());
        let may_take = |most: Option<f64>| most.is_none_or(|most| self.multiplications <= most);
        for iteration in 0.. {
            let norm = match run.residual(iteration + before) {
                Some(residual) => residual,
                // The candidate has ended by itself.
                None => {
                    let outcome = match &*run.outcome {
                        "converged" => Outcome::Converged,
                        "not_positive_definite" => Outcome::NotPositiveDefinite { iteration, curvature: 0.0 },
                        "max_iterations" => Outcome::IterationLimit,
                        _ => Outcome::Stagnated,
                    };
                    return (outcome, iteration, None);
                }
            };
            let analyse = || {
                *known = Some(self.forecast);
                let rival = turn.rival.map(|rival| list[rival].flops);
                if rival.is_some_and(may_take) { Ok(self.forecast) } else { Err("refused".into()) }
            };
            let goes_on = pace.goes_on((iteration, norm), || self.guess(), analyse);
            if norm < *reached {
                *reached = norm;
            }
            let arrived = norm <= GOAL && (!run.converged() || iteration + before >= run.iterations);
            if arrived && (run.converged() || run.outcome == "time_limit") {
                return (Outcome::Converged, iteration, None);
            }
            if !goes_on {
                let (outcome, words) = pace.ended(Outcome::Interrupted);
                if turn.rival.is_some() {
                    course.handed_over = pace.handed_over();
                    course.costly = pace.is_costly();
                    course.refused = turn.rival.zip(pace.refused.take());
                }
                return (outcome, iteration, words.map(|words| format!(" ({words})")));
            }
            if iteration >= turn.most(plan) {
                return (Outcome::IterationLimit, iteration, None);
            }
        }
        unreachable!("iterations have a limit")
    }
}

/// The systems of a file.
fn read(text: &str) -> Vec<Case> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a head").split(';').collect();
    let mut cases: Vec<Case> = Vec::new();
    for line in lines {
        let fields: HashMap<&str, &str> = names.iter().copied().zip(line.split(';')).collect();
        let number = |name: &str| fields[name].parse::<f64>().unwrap_or(f64::NAN);
        let whole = |name: &str| fields[name].parse::<usize>().unwrap_or(0);
        if cases.last().is_none_or(|case| case.name != fields["system"]) {
            let rows = whole("rows");
            let why =
                [GRIDS, MESH, SYMMETRIZED, CLASSICAL].into_iter().find(|why| *why == fields["multigrid"]);
            let is_made = fields["made"] == "true";
            let facts = Facts {
                rows,
                columns: rows,
                nonzeros: whole("nonzeros"),
                hermitian: fields["hermitian"] == "true",
                on_device: fields["device"] == "gpu",
                method: Method::Auto,
                preconditioner: Name::Auto,
                has_near_null: false,
                max_iterations: None,
                right_hand_sides: 1,
                condition: false,
                memory: None,
                iteration_limit: whole("limit"),
                hierarchy: why.map(|why| Hierarchy { why, is_made }),
                polynomial: fields["polynomial"].parse().ok(),
                narrow_band: None,
                ranks: 1,
                wanted: Vec::new(),
            };
            cases.push(Case {
                name: fields["system"].into(),
                is_fitted_on: fields["half"] == "fitted",
                facts,
                width: number("width"),
                cuts: number("cuts"),
                complex: fields["complex"] == "true",
                analysis: number("analysis"),
                multiplications: number("multiplications"),
                forecast: number("forecast"),
                runs: HashMap::new(),
            });
        }
        let history = fields["history"].split(' ').filter_map(|point| {
            let (iteration, log) = point.split_once(':')?;
            Some((iteration.parse().ok()?, log.parse().unwrap_or(f64::NAN)))
        });
        let run = Run {
            outcome: fields["outcome"].into(),
            total: number("total"),
            setup: number("setup"),
            solve: number("solve"),
            iterations: whole("iterations"),
            each: number("each"),
            bytes: number("bytes_each"),
            history: history.collect(),
        };
        let case = cases.last_mut().expect("a case");
        case.runs.insert(fields["candidate"].into(), run);
    }
    cases
}

/// The median, the 90 % quantile, and the maximum.
fn summary(mut regrets: Vec<f64>) -> [f64; 3] {
    regrets.sort_by(f64::total_cmp);
    let at = |share: f64| regrets[((regrets.len() - 1) as f64 * share).round() as usize];
    [at(0.5), at(0.9), at(1.0)]
}

/// The regret on the half to which nothing is fitted: as replayed now, and as measured when the file was made.
fn regret(machine: &str, text: &str) -> [f64; 3] {
    let (mut replayed, mut measured, mut fitted) = (Vec::new(), Vec::new(), Vec::new());
    for case in read(text) {
        let (Some((name, best)), Some(auto)) = (case.best(), case.runs.get("auto")) else { continue };
        let (seconds, way) = case.replay();
        // Shorter times cannot be measured reliably.
        let best = best.max(5e-3);
        let of = |seconds: f64| (seconds / best).max(1.0);
        println!(
            "{machine} {:40} {:5.2} replayed, {:5.2} measured ({} s {}; best {name} {best:.3} s) {way}",
            case.name,
            of(seconds),
            of(auto.total),
            auto.total,
            auto.outcome,
        );
        if case.is_fitted_on {
            fitted.push(of(seconds));
            continue;
        }
        replayed.push(of(seconds));
        measured.push(of(auto.total));
    }
    let count = replayed.len();
    let (told, then) = (summary(replayed), summary(measured));
    println!("{machine}: {count} systems held out: regret {told:.2?}, measured {then:.2?}");
    println!("{machine}: {} systems fitted on: regret {:.2?}", fitted.len(), summary(fitted));
    told
}

#[test]
fn replayed_the_choice_is_near_the_best_candidate() {
    let [median, most, largest] = regret("cpu", include_str!("../../../benches/choice/cpu.csv"));
    assert!(median <= 1.2 && most <= 1.85 && largest <= 3.4, "cpu: {median} {most} {largest}");
    let [median, most, largest] = regret("gpu", include_str!("../../../benches/choice/gpu.csv"));
    assert!(median <= 1.1 && most <= 1.3 && largest <= 1.7, "gpu: {median} {most} {largest}");
}
