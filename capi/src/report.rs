//! Reports on how a solve ended.

use crate::handle::{destroy, find};
use crate::status::{Answer, Fault, guard, text};
use residua_core::krylov::{Outcome, Report};
use residua_core::solver::{Method, SolveReport};
use std::ffi::c_char;
use std::fmt::Write;

/// A report on how a solve ended.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct residua_report {
    _opaque: [u8; 0],
}

/// The content of a report, by name.
pub(crate) struct Filed {
    outcome: Outcome,
    numbers: Vec<(&'static str, f64)>,
    texts: Vec<(&'static str, String)>,
    /// The number of lines of the trail that are decisions; the other lines are attempts.
    decisions: usize,
}

impl Filed {
    pub(crate) fn of_solver(report: &SolveReport) -> Self {
        let s = &report.seconds;
        let known = |number: Option<f64>| number.unwrap_or(f64::NAN);
        let mut trail = String::new();
        for d in &report.trail.decisions {
            let _ = writeln!(trail, "{}: {} ({})", d.subject, d.chosen, d.why);
        }
        for stage in &report.trail.stages {
            let end = match (&stage.outcome, &stage.refused) {
                (Some(outcome), _) => outcome.to_string(),
                (None, Some(why)) => format!("not set up: {why}"),
                (None, None) => "not tried".into(),
            };
            let _ = writeln!(
                trail,
                "{} with {}, {}: {end}, {} iterations",
                stage.method, stage.preconditioner, stage.precision, stage.iterations
            );
        }
        Self {
            outcome: report.outcome,
            numbers: vec![
                ("iterations", report.iterations as f64),
                ("restarts", report.restarts as f64),
                ("residual_norm", report.residual_norm),
                ("relative_residual", report.relative_residual),
                ("row_wise_residual", report.row_wise_residual),
                ("backward_error", known(report.backward_error)),
                ("condition", known(report.condition)),
                ("digits", known(report.digits)),
                ("normal_residual", known(report.normal_residual)),
                ("outside_range", known(report.outside_range)),
                ("at_once", report.at_once as f64),
                ("seconds", s.solve),
                ("seconds_setup", s.look + s.reorder + s.convert + s.setup),
                ("seconds_update", s.update),
            ],
            decisions: report.trail.decisions.len(),
            texts: vec![
                ("outcome", report.outcome.to_string()),
                ("status", report.outcome.status().into()),
                ("method", report.method.to_string()),
                ("preconditioner", report.preconditioner.to_string()),
                ("precision", report.precision.to_string()),
                ("format", report.format.into()),
                ("device", report.device.to_string()),
                ("trail", trail),
            ],
        }
    }

    /// A report of one method, with the name of its preconditioner.
    pub(crate) fn of_krylov(report: &Report, (method, preconditioner): (Method, &str), seconds: f64) -> Self {
        Self {
            outcome: report.outcome,
            numbers: vec![
                ("iterations", report.iterations as f64),
                ("residual_norm", report.residual_norm),
                ("relative_residual", report.relative_residual),
                ("seconds", seconds),
            ],
            decisions: 0,
            texts: vec![
                ("outcome", report.outcome.to_string()),
                ("status", report.outcome.status().into()),
                ("method", method.to_string()),
                ("preconditioner", preconditioner.into()),
                ("device", "CPU".into()),
                ("trail", format!("{method} with functions of the caller: {}\n", report.outcome)),
            ],
        }
    }

    /// Lines for a log, each with whether it tells of a decision or of the outcome, and not of an attempt.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (bool, String)> {
        let text = |name| self.texts.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
        let number =
            |name| self.numbers.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, n)| *n);
        let end = format!(
            "{}: {} with {}, {} iterations, relative residual {:.1e}",
            self.outcome,
            text("method"),
            text("preconditioner"),
            number("iterations"),
            number("relative_residual")
        );
        let trail =
            text("trail").lines().enumerate().map(|(place, line)| (place < self.decisions, line.to_owned()));
        trail.chain(std::iter::once((true, end)))
    }
}

fn filed(report: *const residua_report) -> Answer<std::sync::Arc<Filed>> {
    find("report", report)
}

fn by_name<'a, T>(table: &'a [(&'static str, T)], name: &str) -> Answer<&'a T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| value).ok_or_else(|| {
        let all: Vec<&str> = table.iter().map(|(known, _)| *known).collect();
        Fault::argument(format!("this report has no '{name}': choose one of {}", all.join(", ")))
    })
}

/// Writes 1 if b - A x, computed anew from the final x, meets the tolerance, else 0.
///
/// # Safety
/// `converged` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_report_converged(report: *const residua_report, converged: *mut i32) -> i32 {
    guard(|| {
        let filed = filed(report)?;
        if converged.is_null() {
            return Err(Fault::null("converged"));
        }
        // SAFETY: the pointer is not null, and the caller guarantees room.
        unsafe { *converged = filed.outcome.is_converged().into() };
        Ok(())
    })
}

/// Writes a number of the report: iterations, restarts, residual_norm, relative_residual, backward_error, condition and
/// digits (with option condition), normal_residual (||A^H r|| / (||A|| ||r||) of a least-squares solution),
/// outside_range (the norm of the part of b outside A's range), at_once, seconds, seconds_setup, seconds_update. A
/// number that is not known is NaN. Matrix-free solves have iterations, residual_norm, relative_residual and seconds.
///
/// # Safety
/// `name` is null or ends in a zero byte; `number` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_report_number(
    report: *const residua_report,
    name: *const c_char,
    number: *mut f64,
) -> i32 {
    guard(|| {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text("name", name)? };
        let filed = filed(report)?;
        if number.is_null() {
            return Err(Fault::null("number"));
        }
        // SAFETY: the pointer is not null, and the caller guarantees room.
        unsafe { *number = *by_name(&filed.numbers, name)? };
        Ok(())
    })
}

/// Writes a text of the report: outcome, status (one word), method, preconditioner, precision, format, device, trail.
/// At most `capacity` bytes are written, including a final zero byte; `length` gets the number of bytes of the whole
/// text without it. With a null `buffer` and capacity 0, only `length` is written.
///
/// # Safety
/// `name` is null or ends in a zero byte; `buffer` has room for `capacity` bytes; `length` is null or can be written
/// to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_report_text(
    report: *const residua_report,
    name: *const c_char,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text("name", name)? };
        let filed = filed(report)?;
        let told = by_name(&filed.texts, name)?;
        if buffer.is_null() && capacity > 0 {
            return Err(Fault::null("buffer"));
        }
        if !length.is_null() {
            // SAFETY: the pointer is not null, and the caller guarantees room.
            unsafe { *length = told.len() };
        }
        if capacity > 0 {
            let mut end = told.len().min(capacity - 1);
            while !told.is_char_boundary(end) {
                end -= 1;
            }
            // SAFETY: end + 1 <= capacity, and the caller guarantees room for that.
            unsafe {
                std::ptr::copy_nonoverlapping(told.as_ptr(), buffer.cast(), end);
                *buffer.add(end) = 0;
            }
        }
        Ok(())
    })
}

/// Destroys a report. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn residua_report_destroy(report: *mut residua_report) -> i32 {
    guard(|| destroy::<_, Filed>("report", report))
}
