//! The autotuner: tries constants for every line of the tuning table on the device at hand, and writes the table anew.
//!
//! ```text
//! line "sort pairs8 2^23"  ->  an input of that kind and size  ->  time of each candidate  ->  the line, with the fastest
//! ```
//!
//! A candidate that does not fit the device is passed over, and so is one whose result differs from that of the
//! constants in use. The fastest then meets the constants in use again, in turns: where it is not faster by a hundredth
//! in every round, the line stays as it is, for the difference is noise.

mod candidates;
mod work;

use super::Cuda;
use super::policy::table::{Row, nearest, rows, try_out};
use crate::backend::Backend;
use crate::error::{Error, Result};
use std::fmt::Write;
use std::time::Duration;
use work::{Step, Work};

/// What a candidate must gain over the constants in use.
const GAIN: f64 = 0.99;
const REPEATS: usize = 7;
/// Rounds in which it must.
const ROUNDS: usize = 3;

/// Times constants for the primitives' kernels on a device, a minute or two, and returns the text of the tuning file
/// for its chip (`tuning/` in the repository, read when residua is built). `only` names the one kernel whose lines are
/// tried; the others stay. `say` hears a line of progress now and then.
///
/// # Errors
/// When the device fails, or has no room for the inputs (4 GB).
pub fn tune(cuda: &Cuda, only: Option<&str>, mut say: impl FnMut(&str)) -> Result<String> {
    let capability = cuda.0.chip.capability;
    let chip = nearest(capability);
    let mut text = format!(
        "# Constants of the primitives' kernels on {}, by `residua tune`; milliseconds of what was timed behind them.\n\
         # Of a kernel's lines, the last one that fits counts: `*` or the same variant, and at least `from` elements.\n\
         # What the variants and constants mean: kernels/README.md.\nchip sm_{}{}\n\
         # kernel           variant    from  constants\n",
        cuda.0.name.split(" (").next().unwrap_or_default(),
        capability.0,
        capability.1
    );
    let lines: Vec<&'static Row> = rows().iter().filter(|row| row.chip == chip).collect();
    for row in &lines {
        let best = if only.is_none_or(|kernel| kernel == row.kernel) {
            try_row(cuda, row, size(row, &lines))
        } else {
            Ok((row.constants.clone(), String::new()))
        };
        try_out(None);
        let (best, note) = best?;
        let from = match row.from {
            0 => "0".to_string(),
            n if n.is_power_of_two() => format!("2^{}", n.ilog2()),
            n => n.to_string(),
        };
        let constants: Vec<String> = best.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let line = format!("{:<18} {:<10} {from:<5} {}", row.kernel, row.variant, constants.join(" "));
        let line = if note.is_empty() { line } else { format!("{line:<100} # {note}") };
        say(&line);
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

/// A size between where a line starts and where the next one of its kernel does.
fn size(row: &Row, lines: &[&'static Row]) -> usize {
    let next = lines.iter().filter(|other| other.kernel == row.kernel && other.from > row.from);
    match next.map(|other| other.from).min() {
        Some(next) => next / 4,
        None => (row.from * 4).clamp(1 << 26, 1 << 27),
    }
}

type Constants = Vec<(&'static str, u32)>;

/// The fastest constants for a line, and the times.
fn try_row(cuda: &Cuda, row: &Row, n: usize) -> Result<(Constants, String)> {
    let candidates = candidates::of(row);
    let work = if candidates.is_empty() { None } else { work::of(cuda, row.kernel, row.variant, n)? };
    let Some(mut work) = work else { return Ok((row.constants.clone(), String::new())) };
    try_out(Some(row.clone()));
    let (mut known, result) = measure(cuda, &mut work)?;
    let mut best = (known, row.constants.clone());
    for constants in candidates.into_iter().filter(|constants| *constants != row.constants) {
        try_out(Some(Row { constants: constants.clone(), ..row.clone() }));
        match measure(cuda, &mut work) {
            Ok((time, same)) if same == result && time < best.0 => best = (time, constants),
            Ok(_) => {}
            // It does not fit the device, which goes on; where it does not, this says so.
            Err(Error::Cuda(_) | Error::OutOfMemory { .. }) => cuda.synchronize()?,
            Err(error) => return Err(error),
        }
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let gains =
        |challenger: Duration, holder: Duration| challenger.as_secs_f64() < GAIN * holder.as_secs_f64();
    let mut gained = gains(best.0, known);
    for _ in 0..ROUNDS {
        if !gained {
            break;
        }
        try_out(Some(row.clone()));
        known = measure(cuda, &mut work)?.0;
        try_out(Some(Row { constants: best.1.clone(), ..row.clone() }));
        best.0 = measure(cuda, &mut work)?.0;
        gained = gains(best.0, known);
    }
    Ok(if gained {
        (best.1, format!("{:.4} at {n} (was {:.4})", ms(best.0), ms(known)))
    } else {
        (row.constants.clone(), format!("{:.4} at {n}", ms(known)))
    })
}

/// Median of several runs, and what tells one result from another.
fn measure(cuda: &Cuda, work: &mut Work<'_>) -> Result<(Duration, u64)> {
    work(Step::Prepare)?;
    work(Step::Run)?;
    let result = work(Step::Digest)?;
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        work(Step::Prepare)?;
        times.push(cuda.time(|| work(Step::Run).map(|_| ()))?);
    }
    times.sort();
    Ok((times[REPEATS / 2], result))
}
