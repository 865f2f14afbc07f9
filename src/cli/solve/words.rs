//! The report of a solve as text.

use super::Arguments;
use super::answer::{Answer, Column, Rank, Seconds};
use crate::cli::device::not_on_gpu;
use crate::krylov::Outcome;
use crate::matrix::{Basis, ChoiceReport};
use crate::multigrid::operator_complexity;
use crate::report::{Align, Table, bytes, count, ratio, seconds};
use crate::solver::{Method, Precision, Reorder, Singularity, StageReport};

/// The report lists at most this many right-hand sides one by one.
const MOST_COLUMNS: usize = 20;

/// A larger error than this is mentioned, however small the residual.
const DOUBTFUL: f64 = 1e-3;

/// The facts for the report.
pub(super) struct Story<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) answer: &'a Answer,
    pub(super) columns: &'a [Column],
    pub(super) no_gpu: Option<&'a str>,
    pub(super) choice: Option<&'a ChoiceReport>,
    pub(super) copy: Option<f64>,
    /// How many right-hand sides were solved at a time.
    pub(super) at_once: usize,
}

impl Story<'_> {
    /// Whether all right-hand sides were solved, as was asked for.
    fn is_solved(&self) -> bool {
        self.arguments.are_solved(self.answer.rows == self.answer.columns, self.columns)
    }
}

/// The report.
pub(super) fn story(story: &Story<'_>) -> String {
    let Story { arguments, answer, columns, .. } = story;
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    let mut tell = |what: &str, text: String| table.row([what.to_string(), text]);
    let kind = answer.trail.decisions.iter().find(|decision| decision.subject == "symmetry");
    let kind = kind.map_or("", |decision| &decision.chosen);
    let size = format!("{} x {}", count(answer.rows as u64), count(answer.columns as u64));
    let nonzeros = count(answer.nonzeros as u64);
    // A solve that was stopped at once has not looked at the matrix.
    let kind = if kind.is_empty() { String::new() } else { format!(", {kind}") };
    tell("A", format!("{}: {size}, {nonzeros} nonzeros{kind}", arguments.matrix.display()));
    answer.notes.iter().for_each(|note| tell("", note.clone()));
    tell("b", answer.right_hand_side.words());
    tell("method", method(story));
    let levels = answer.trail.levels();
    if let [finest, .., coarsest] = levels {
        let (number, times) = (levels.len(), operator_complexity(levels));
        let rows = [finest, coarsest].map(|level| count(level.rows as u64));
        tell(
            "levels",
            format!(
                "{number}, with {} to {} rows and {times:.2} times the entries of A in all",
                rows[0], rows[1]
            ),
        );
    }
    // Keeping CSR is only mentioned after a trial.
    let is_mentioned = |choice: &&ChoiceReport| choice.basis != Basis::Model || choice.format != "csr";
    if let Some(choice) = story.choice.filter(is_mentioned) {
        tell("format", choice.to_string());
    }
    tell("device", format!("{}{}", answer.device, not_on_gpu(story.no_gpu)));
    if !answer.ranks.is_empty() {
        let of = |what: fn(&Rank) -> usize| {
            let numbers = answer.ranks.iter().map(what);
            let (least, most) = (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0));
            let (least, most) = (count(least as u64), count(most as u64));
            if least == most { most } else { format!("{least} to {most}") }
        };
        let (rows, nonzeros, halo) = (of(|rank| rank.rows), of(|rank| rank.nonzeros), of(|rank| rank.halo));
        tell(
            "ranks",
            format!(
                "{}, each with {rows} rows, {nonzeros} nonzeros and {halo} entries of x from other ranks",
                answer.ranks.len()
            ),
        );
    }
    // Keeping the order is mentioned only if reordering was requested.
    let order = answer.trail.decisions.iter().find(|decision| decision.subject == "order");
    if let Some(order) = order.filter(|order| match arguments.reorder {
        Some(Reorder::None) => false,
        Some(_) => true,
        None => order.chosen != "no",
    }) {
        let why = if order.why.is_empty() { String::new() } else { format!("; {}", order.why) };
        tell("reordered", format!("{}{why}", order.chosen));
    }
    let tried: Vec<&StageReport> = answer
        .trail
        .stages
        .iter()
        .filter(|stage| stage.outcome.is_some() || stage.refused.is_some())
        .collect();
    if tried.len() > 1 {
        for stage in &tried {
            tell("tried", attempt(stage));
        }
    }
    if columns.len() == 1 {
        let of = match columns[0].outcome {
            Outcome::Converged if tried.len() > 1 => " of all methods together",
            _ => "",
        };
        tell("result", format!("{}{of}", ending(&columns[0])));
        tell("residual", residual(columns[0].relative_residual, arguments.tolerance));
        for (what, text) in certainty(answer) {
            tell(what, text);
        }
        if let Some(error) = columns[0].error {
            tell("error", format!("{} relative to the known x", ratio(error)));
        }
    } else {
        let converged = columns.iter().filter(|column| column.outcome.is_converged()).count();
        tell("result", format!("{converged} of {} right-hand sides converged", columns.len()));
        tell("residual", format!("{} (the worst)", residual(answer.relative_residual, arguments.tolerance)));
    }
    tell("time", times(answer));
    if let Some(rate) = answer.bandwidth_gb_s {
        let share = story.copy.map_or(String::new(), |copy| {
            format!(
                ", {rate:.1} GB/s: {:.0} % of this machine's copy bandwidth ({copy:.1} GB/s)",
                100.0 * rate / copy
            )
        });
        tell(
            "memory",
            format!("{} read and written per iteration{share}", bytes(answer.bytes_per_iteration as u64)),
        );
    }
    for (what, file) in [("x", &arguments.output), ("report", &arguments.report)] {
        if let Some(file) = file {
            tell(what, format!("written to {}", file.display()));
        }
    }
    let mut text = table.to_string();
    if columns.len() > 1 {
        text.push('\n');
        text += &each(columns);
    }
    if let Some(advice) = advice(story) {
        text += &format!("\n{advice}\n");
    }
    text
}

fn each(columns: &[Column]) -> String {
    let headings = [
        ("b", Align::Right),
        ("iterations", Align::Right),
        ("residual", Align::Right),
        ("result", Align::Left),
    ];
    let mut table = Table::new(headings);
    for (k, column) in columns.iter().enumerate().take(MOST_COLUMNS) {
        let (iterations, residual) = (column.iterations.to_string(), ratio(column.relative_residual));
        let ended = if lacks_memory(column) { NO_MEMORY.to_string() } else { plainly(&column.outcome) };
        table.row([(k + 1).to_string(), iterations, residual, ended]);
    }
    let mut text = table.to_string();
    if columns.len() > MOST_COLUMNS {
        text += &format!("and {} more\n", columns.len() - MOST_COLUMNS);
    }
    text
}

/// The method that solved, with its preconditioner and precision.
pub(super) fn method(story: &Story<'_>) -> String {
    let answer = story.answer;
    if answer.trail.stages.is_empty() && answer.format == "none" {
        return "none yet: it was stopped during the setup".into();
    }
    let preconditioner = match answer.preconditioner.as_str() {
        "none" => "no preconditioner".to_string(),
        name => format!("{name} preconditioner"),
    };
    let stored = match answer.stored {
        _ if story.arguments.is_mixed() => ", iterating in single precision, refined in double".to_string(),
        "f32" | "c32" => ", values stored in single precision (exact)".to_string(),
        _ => String::new(),
    };
    let together = match story.at_once {
        1 => String::new(),
        count => format!(", {count} right-hand sides at once"),
    };
    format!("{}, {preconditioner}, format {}{stored}{together}", answer.method, answer.format)
}

/// A method, and how it ended.
fn attempt(stage: &StageReport) -> String {
    let half = if stage.precision == Precision::Mixed { " in single precision" } else { "" };
    let name = match stage.method {
        Method::Direct => "a factorisation".to_string(),
        method => format!("{method} with {}{half}", stage.preconditioner),
    };
    match (&stage.outcome, &stage.refused) {
        (Some(ended), _) => {
            let residual =
                stage.relative_residual.map_or(String::new(), |r| format!(", residual {}", ratio(r)));
            // Only iterations that were given up for another method have such a remark.
            let given_up =
                stage.remark.as_deref().and_then(|remark| remark.find("given up").map(|at| &remark[at..]));
            let how = match given_up {
                Some(why) if *ended == Outcome::GivenUp => {
                    format!("{} iterations, {why}", stage.iterations)
                }
                None if *ended == Outcome::GivenUp => {
                    format!("not solved within its budget of {} iterations", stage.iterations)
                }
                _ => ended_as(stage, ended),
            };
            format!("{name}: {how}{residual}, {}", seconds(stage.seconds))
        }
        (None, Some(refused)) => {
            format!("{name}: not used: {}", refused.strip_prefix("not supported: ").unwrap_or(refused))
        }
        (None, None) => name,
    }
}

/// A factorisation that had too little memory ends so.
const NO_MEMORY: &str = "a factorisation needs more memory than is free or allowed";

fn lacks_memory(column: &Column) -> bool {
    column.verdict.memory_needed.is_some() && !column.outcome.is_solved()
}

/// How the solve for a right-hand side ended.
pub(super) fn ending(column: &Column) -> String {
    if lacks_memory(column) {
        return format!("not solved: {NO_MEMORY}");
    }
    outcome(&column.outcome, column.iterations)
}

/// How a method ended.
pub(super) fn ended_as(stage: &StageReport, ended: &Outcome) -> String {
    let lacks = stage.remark.as_deref().is_some_and(|remark| remark.contains("too large for memory"));
    if lacks && stage.method == Method::Direct && *ended == Outcome::Stagnated {
        return "not solved: it needs more memory than is free or allowed".into();
    }
    outcome(ended, stage.iterations)
}

fn outcome(outcome: &Outcome, iterations: usize) -> String {
    let s = if iterations == 1 { "" } else { "s" };
    match outcome {
        Outcome::Converged => format!("converged in {iterations} iteration{s}"),
        Outcome::LeastSquares => format!("a least-squares solution after {iterations} iteration{s}"),
        Outcome::PrecisionLimit { digits } if outcome.is_solved() => format!(
            "solved as far as the precision allows, after {iterations} iteration{s}: about {digits:.0} correct digits"
        ),
        other => format!("not solved after {iterations} iteration{s}: {}", plainly(other)),
    }
}

fn plainly(outcome: &Outcome) -> String {
    match outcome {
        Outcome::IterationLimit => "iteration limit reached".into(),
        Outcome::NotPositiveDefinite { iteration: 0, curvature } => {
            format!("A is not positive definite: a diagonal entry is {}", signed(*curvature))
        }
        Outcome::NotPositiveDefinite { curvature, .. } => {
            format!("A is not positive definite: a vector p has p.Ap / p.p = {}", signed(*curvature))
        }
        Outcome::Stagnated => "the residual no longer falls".into(),
        Outcome::NotFinite => "an infinity or NaN occurred".into(),
        other => other.to_string(),
    }
}

fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", ratio(-value)) } else { ratio(value) }
}

pub(super) fn residual(relative: f64, tolerance: f64) -> String {
    format!("{} relative to b, recomputed from x (tolerance {tolerance:e})", ratio(relative))
}

/// Further facts about x: always the backward error; others if there is a factorisation or a null space.
fn certainty(answer: &Answer) -> Vec<(&'static str, String)> {
    let mut told = Vec::new();
    if let Some(error) = answer.backward_error {
        let outside = answer.outside_range.is_some_and(|outside| outside > 0.0);
        let of = if outside { " for the part of b in the range of A" } else { "" };
        told.push(("", format!("backward error {}{of}", ratio(error))));
    }
    if let Some(outside) = answer.outside_range.filter(|&outside| outside > 0.0) {
        let what = "no A x can match it, so the system was solved for the rest of b";
        told.push(("", format!("the part of b in the null space has the norm {}: {what}", ratio(outside))));
    }
    if let Some(normal) = answer.normal_residual {
        told.push(("", format!("least-squares test ||A^H r|| / (||A|| ||r||) = {}", ratio(normal))));
    }
    if let Some(condition) = answer.condition {
        let digits = match answer.digits {
            Some(digits) if digits >= 1.0 => format!(": about {digits:.0} digits of x can be trusted"),
            Some(_) => ": no digit of x can be trusted".into(),
            None => String::new(),
        };
        told.push(("condition", format!("about {condition:.1e}{digits}")));
    } else if answer.singularity.is_some() && answer.status == "converged" {
        told.push(("condition", "none: the matrix is singular, and x is one of many solutions".into()));
    }
    told
}

/// The names of steps, with their seconds.
pub(super) fn stages_of(times: &Seconds) -> [(&'static str, f64); 7] {
    [
        ("read", times.read),
        ("assemble", times.assemble),
        ("reorder", times.reorder),
        ("set up", times.setup),
        ("convert", times.convert),
        ("solve", times.solve),
        ("other", times.other),
    ]
}

fn times(answer: &Answer) -> String {
    let stages = stages_of(&answer.seconds);
    // Steps that took almost no time are left out.
    let total: f64 = stages.iter().map(|stage| stage.1).sum();
    let told = stages.iter().filter(|(name, time)| match *name {
        "read" | "solve" => true,
        "other" => *time > 0.05 * total,
        _ => *time > 0.005 * total,
    });
    told.map(|(name, time)| format!("{name} {}", seconds(*time))).collect::<Vec<_>>().join(", ")
}

/// A matrix with a smaller condition number is not called ill-conditioned.
const WELL: f64 = 1e8;

/// Advice for a solve that did not converge.
pub(super) fn advice(story: &Story<'_>) -> Option<String> {
    let Some(bad) = story.columns.iter().find(|column| !column.outcome.is_converged()) else {
        let error = story.columns.iter().find_map(|column| column.error).filter(|error| *error > DOUBTFUL)?;
        if story.answer.rows < story.answer.columns {
            return Some(format!(
                "There are fewer equations than unknowns, so that many x solve the system: this is not the x of which b \
                 was made (error {}).",
                ratio(error)
            ));
        }
        // A residual of rounding errors cannot get smaller.
        if story.answer.backward_error.is_some_and(|error| error <= f64::EPSILON) {
            return Some(
                "The residual is as small as double precision allows, the error is not: the matrix is ill-conditioned, \
                 or singular, so that many x solve the system. A smaller --tolerance does not help."
                    .into(),
            );
        }
        return Some(
            "The residual is small, the error is not: the matrix is ill-conditioned, or singular. A smaller \
             --tolerance may help."
                .into(),
        );
    };
    if let Some(unmatched) = &story.answer.unmatched {
        return Some(format!(
            "The matrix is structurally singular: whatever its values, {} without a partner among the columns, and {} \
             without one among the rows. Only some b have a solution. Look for equations that are missing or twice \
             there.",
            named("row", &unmatched.rows),
            named("column", &unmatched.columns)
        ));
    }
    if let Some(needed) = story.answer.memory_needed {
        return Some(format!(
            "A factorisation needs at least {} of memory, which is more than is free, or than --memory-limit allows. \
             Try: --method gmres --preconditioner ilut, or a machine with more memory.",
            bytes(needed)
        ));
    }
    Some(match bad.outcome {
        Outcome::IterationLimit => {
            "Try: more iterations (--max-iterations), or a looser --tolerance. --plot shows whether the residual \
             still falls."
                .into()
        }
        Outcome::NotPositiveDefinite { iteration: 0, .. } => {
            "A positive definite matrix has only positive numbers on its diagonal; this one has not, and conjugate \
             gradients need positive definite. Try: --method minres or direct, or no --method; -A, if it is negative \
             definite; or check the matrix's signs."
                .into()
        }
        Outcome::NotPositiveDefinite { .. } => {
            "Conjugate gradients need a positive definite matrix, and this one is not (or is singular to working \
             precision). Check its signs and its boundary conditions. If it is as intended: --method minres or direct, \
             or no --method."
                .into()
        }
        Outcome::Stagnated => format!(
            "The residual stopped falling: the matrix may be singular, or {:e} is below what double precision can \
             reach for it. Try: a looser --tolerance.",
            story.arguments.tolerance
        ),
        Outcome::Breakdown { .. } if matches!(story.answer.method.as_str(), "gmres" | "bicgstab") => {
            "The iteration cannot go on from here: the matrix may be singular, or numbers are beyond the range of the \
             type. Try: no --method, or scaling A and b."
                .into()
        }
        Outcome::Breakdown { .. } => {
            "The iteration cannot go on from here: the preconditioner is not positive definite, the matrix is singular, \
             or numbers are beyond the range of the type. Try: no --method, --preconditioner none, or scaling A and \
             b."
                .into()
        }
        Outcome::Singular => {
            let proof = match story.answer.singularity {
                Some(Singularity::NullVector { ratio }) => format!(
                    "The matrix is singular up to rounding of its entries: a vector v has |A v| of {ratio:.1} units of \
                     rounding of |A| |v| or less in every row."
                ),
                _ => "The matrix is singular.".into(),
            };
            format!(
                "{proof} No x was found that solves the system. --method lsmr gives a least-squares solution; look for \
                 equations that follow from others."
            )
        }
        Outcome::PrecisionLimit { .. } if story.answer.condition.is_some_and(|known| known < WELL) => "The tolerance is \
             beyond double precision: the backward error of x is at the rounding level. Try: a looser --tolerance."
            .into(),
        Outcome::PrecisionLimit { .. } => "The matrix is ill-conditioned, or singular: the backward error of x is at the \
             rounding level, and double precision allows no more. Check the units of the unknowns and the boundary \
             conditions, or try a looser --tolerance."
            .into(),
        // It is what was asked for.
        Outcome::LeastSquares if story.is_solved() => {
            "No x solves the system; this one makes b - A x as small as it gets.".into()
        }
        Outcome::LeastSquares => {
            "No x solves the system: the matrix is singular, and b is not in its range. This x makes b - A x as small \
             as it gets. Look for equations that contradict each other, or a missing boundary condition; name a null \
             space that is meant to be there (--null-space), or --method lsmr to accept such an x."
                .into()
        }
        Outcome::TimeLimit => "Try: more time (--time-limit), or a looser --tolerance.".into(),
        Outcome::NotFinite => "Numbers overflowed, or b is not finite. Try: scaling A and b.".into(),
        _ => return None,
    })
}

/// Some rows or columns by number.
fn named(what: &str, numbers: &[u32]) -> String {
    const MOST: usize = 8;
    let mut text: Vec<String> = numbers.iter().take(MOST).map(u32::to_string).collect();
    if numbers.len() > MOST {
        text.push("more".into());
    }
    let (s, is) = if numbers.len() == 1 { ("", "is") } else { ("s", "are") };
    match text.pop() {
        Some(last) if text.is_empty() => format!("{what} {last} {is}"),
        Some(last) => format!("{what}{s} {} and {last} {is}", text.join(", ")),
        None => format!("no {what} is"),
    }
}

/// The subtitle of the plot.
pub(super) fn subtitle(answer: &Answer, columns: &[Column]) -> String {
    let method =
        format!("{}, {}, {} unknowns", answer.method, answer.preconditioner, count(answer.rows as u64));
    match columns {
        [column] => format!("{method}: {}", ending(column)),
        _ => format!("{method}, {} right-hand sides", columns.len()),
    }
}
