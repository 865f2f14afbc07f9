//! `--report`: a solve as one HTML page: the system, the result, the methods and the times.

use super::answer::Column;
use super::words::{self, Story};
use crate::cli::Failure;
use crate::cli::device::not_on_gpu;
use crate::cli::failure::About;
use crate::look::Look;
use crate::report::{Page, bytes, count, ratio, seconds, spy_svg};
use crate::solver::{Method, StageReport};
use crate::{Csr, Scalar};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// At most this many right-hand sides are listed.
const MOST_COLUMNS: usize = 50;

/// Facts about the matrix, collected before the solver takes it.
pub(super) struct Portrait {
    spy: String,
    sentences: Vec<String>,
}

impl Portrait {
    pub(super) fn of<T: Scalar<Real = f64>>(a: &Csr<T>, path: &Path) -> Result<Self, Failure> {
        let sentences = Look::of(a).about(path)?.words();
        Ok(Self { spy: spy_svg(a, &name(path)).about(path)?, sentences })
    }
}

/// The page.
pub(super) fn page(story: &Story<'_>, portrait: &Portrait, convergence: &str) -> String {
    let Story { arguments, answer, columns, .. } = story;
    let matrix = name(&arguments.matrix);
    let mut page = Page::new(&format!("A x = b with {matrix}"));
    let size = format!("{} x {}", count(answer.rows as u64), count(answer.columns as u64));
    page.paragraph("pale", &format!("{size}, {} nonzeros", count(answer.nonzeros as u64)));
    let solved = arguments.are_solved(answer.rows == answer.columns, columns);
    page.paragraph(if solved { "verdict good" } else { "verdict bad" }, &verdict(story, solved));
    page.section("Result", |page| page.facts(&result(story)));
    page.section("Convergence", |page| page.picture(convergence));
    page.section("Matrix", |page| {
        page.list(&[&answer.notes[..], &portrait.sentences].concat());
        page.picture(&portrait.spy);
    });
    page.section("How it was solved", |page| {
        let decisions = answer.trail.decisions.iter().map(|decision| {
            let took = decision.seconds.map_or(String::new(), seconds);
            vec![decision.subject.to_string(), decision.chosen.clone(), decision.why.clone(), took]
        });
        page.table(&["decided", "chosen", "why", ">took"], &decisions.collect::<Vec<_>>());
    });
    page.section("Methods, in the order in which they are tried", |page| {
        let rows: Vec<Vec<String>> =
            answer.trail.stages.iter().map(|stage| attempt(stage, columns)).collect();
        let headings = ["method", "reason", ">expected at least", ">took", "ended"];
        page.table(&headings, &rows);
    });
    if columns.len() > 1 {
        page.section("Right-hand sides", |page| {
            let rows: Vec<Vec<String>> = columns.iter().enumerate().take(MOST_COLUMNS).map(each).collect();
            page.table(&[">b", ">iterations", ">residual", "result"], &rows);
            if columns.len() > MOST_COLUMNS {
                page.paragraph("pale", &format!("and {} more", columns.len() - MOST_COLUMNS));
            }
        });
    }
    page.section("Time", |page| {
        let times = words::stages_of(&answer.seconds);
        let total: f64 = times.iter().map(|(_, time)| time).sum();
        let share = |time: f64| if total > 0.0 { time / total } else { 0.0 };
        let bars: Vec<_> = times.iter().map(|&(name, time)| (name, seconds(time), share(time))).collect();
        page.bars(&bars);
    });
    page.section("How to repeat it", |page| {
        page.code(&command_line());
        let threads = rayon::current_num_threads();
        let version = env!("CARGO_PKG_VERSION");
        page.paragraph("pale", &format!("residua {version}, {threads} threads, {}", today()));
    });
    page.finish()
}

fn verdict(story: &Story<'_>, solved: bool) -> String {
    let Story { arguments, answer, columns, .. } = story;
    let residual = words::residual(answer.relative_residual, arguments.tolerance);
    let ended = match columns {
        [column] => words::ending(column),
        _ => {
            let good = columns.iter().filter(|column| column.outcome.is_converged()).count();
            format!("{good} of {} right-hand sides converged", columns.len())
        }
    };
    let worst = if columns.len() > 1 { ", the worst" } else { "" };
    format!("{}: {ended}; the residual is {residual}{worst}.", if solved { "Solved" } else { "Not solved" })
}

fn result(story: &Story<'_>) -> Vec<(String, String)> {
    let Story { arguments, answer, columns, .. } = story;
    let mut facts = Vec::new();
    let mut tell = |name: &str, fact: String| facts.push((name.to_string(), fact));
    tell(
        "b",
        brief(&answer.right_hand_side.words(), &[Some(arguments.matrix.as_path()), arguments.rhs_file()]),
    );
    tell("method", words::method(story));
    tell("device", format!("{}{}", answer.device, not_on_gpu(story.no_gpu)));
    if let [Column { error: Some(error), .. }] = columns {
        tell("error", format!("{} relative to the known x", ratio(*error)));
    }
    if let Some(rate) = answer.bandwidth_gb_s {
        let of = story
            .copy
            .map_or(String::new(), |copy| format!(" of the {copy:.1} GB/s of a copy on this machine"));
        tell(
            "memory",
            format!(
                "{} read and written per iteration, {rate:.1} GB/s{of}",
                bytes(answer.bytes_per_iteration as u64)
            ),
        );
    }
    if !answer.ranks.is_empty() {
        tell("processes", answer.ranks.len().to_string());
    }
    if let Some(advice) = words::advice(story) {
        tell("advice", advice);
    }
    facts
}

/// A method, its forecast, and how it ended.
fn attempt(stage: &StageReport, columns: &[Column]) -> Vec<String> {
    let name = match stage.method {
        Method::Direct => "factorisation".to_string(),
        method => format!("{method}, {}, {}", stage.preconditioner, stage.precision),
    };
    let expected = match (stage.method, stage.predicted_seconds) {
        (Method::Direct, _) => "-".into(),
        (_, Some(predicted)) => {
            format!("{}, {}", iterations(stage.predicted_iterations), seconds(predicted))
        }
        _ => iterations(stage.predicted_iterations),
    };
    let (took, ended) = match (&stage.outcome, &stage.refused) {
        (Some(outcome), _) => {
            let residual =
                stage.relative_residual.map_or(String::new(), |r| format!(", residual {}", ratio(r)));
            let of = if columns.len() > 1 { " (of one right-hand side)" } else { "" };
            (
                format!("{}, {}", iterations(stage.iterations), seconds(stage.seconds)),
                format!("{}{residual}{of}", words::ended_as(stage, outcome)),
            )
        }
        (None, Some(refused)) => ("-".into(), refused.clone()),
        (None, None) => ("-".into(), "not reached".into()),
    };
    let ended = stage.remark.as_ref().map_or(ended.clone(), |remark| format!("{ended}; {remark}"));
    vec![name, stage.why.to_string(), expected, took, ended]
}

fn iterations(number: usize) -> String {
    format!("{} iteration{}", count(number as u64), if number == 1 { "" } else { "s" })
}

fn each((k, column): (usize, &Column)) -> Vec<String> {
    let (iterations, residual) = (column.iterations.to_string(), ratio(column.relative_residual));
    vec![(k + 1).to_string(), iterations, residual, words::ending(column)]
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| "A".into(), |name| name.to_string_lossy().into_owned())
}

/// Removes folder names, which mean nothing on other machines.
fn brief(text: &str, files: &[Option<&Path>]) -> String {
    let folders = files.iter().flatten().filter(|file| file.is_absolute()).filter_map(|file| file.parent());
    folders.fold(text.to_string(), |text, folder| text.replace(&format!("{}/", folder.display()), ""))
}

/// The words that the command was started with.
fn command_line() -> String {
    let word = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (format!("{option}="), value.to_string()),
            _ => (String::new(), word),
        };
        let path = PathBuf::from(&value);
        let value = if path.is_absolute() { name(&path) } else { value };
        let plain =
            value.chars().all(|c| c.is_alphanumeric() || "-_./:,=+@%".contains(c)) && !value.is_empty();
        if plain { option + &value } else { format!("{option}'{}'", value.replace('\'', "'\\''")) }
    };
    let words = std::env::args_os().skip(1).map(word);
    std::iter::once("residua".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The date and time in UTC.
fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(now / 86_400);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", now / 3600 % 24, now / 60 % 60)
}

/// Year, month and day of a day counted from 1970-01-01 on.
fn date(mut day: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    loop {
        let days = if leap(year) { 366 } else { 365 };
        if day < days {
            break;
        }
        (day, year) = (day - days, year + 1);
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        (day, month) = (day - days, month + 1);
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (day, wanted) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (11_322, (2000, 12, 31)),
            (20_782, (2026, 11, 25)),
        ] {
            assert_eq!(date(day), wanted, "{day}");
        }
    }

    #[test]
    fn folders_of_this_machine_are_left_out() {
        let matrix = Path::new("/data/me/a.tar.gz");
        assert_eq!(brief("/data/me/a.tar.gz:a/a_b.mtx", &[Some(matrix), None]), "a.tar.gz:a/a_b.mtx");
        assert_eq!(brief("here/b.mtx", &[Some(Path::new("here/a.mtx"))]), "here/b.mtx");
    }
}
