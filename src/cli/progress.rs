//! Progress of the current work: a line on standard error that is overwritten.

use super::console;
use crate::market::Meter;
use crate::report::{bytes, seconds};
use crate::work::{Standing, Work};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const WIDTH: usize = 30;

/// Nothing is drawn before work has taken this long, nor more often than this.
const PAUSE: Duration = Duration::from_millis(150);

/// Below this fraction no estimate of the remaining time is shown.
const SOME: f64 = 0.03;

/// A line that is drawn by its own thread; nothing is drawn if standard error is no terminal.
pub(crate) struct Progress {
    drawn: Option<Drawn>,
}

/// The thread that draws the line, and the state that it draws.
struct Drawn {
    state: Arc<Mutex<State>>,
    /// Dropped at the end, which stops the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The state that is drawn.
struct State {
    what: String,
    since: Instant,
    meter: Option<Arc<Meter>>,
    /// The progress of orderings and factorisations.
    work: Option<Work>,
    iterating: Option<Iterating>,
}

/// The progress of an iteration.
#[derive(Clone, Copy)]
struct Iterating {
    right_hand_side: usize,
    count: usize,
    iteration: usize,
    residual: f64,
    tolerance: f64,
    /// Start of this right-hand side.
    since: Instant,
}

impl Progress {
    /// A line that shows `what`, unless `quiet`.
    pub(crate) fn new(quiet: bool, what: &str) -> Self {
        if quiet || !stderr().is_terminal() {
            return Self { drawn: None };
        }
        let state = State::new(what, None);
        let state = Arc::new(Mutex::new(state));
        let (stop, stopped) = channel::<()>();
        let seen = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let mut shown = false;
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let line = seen.lock().map(|state| state.line()).unwrap_or_default();
                console::tell(&format!("\r{line}\x1b[K"));
                shown = true;
            }
            if shown {
                console::tell("\r\x1b[K");
            }
        });
        Self { drawn: Some(Drawn { state, stop: Some(stop), thread: Some(thread) }) }
    }

    /// Shows the reading of a file. Returns a meter for its reader if the line is drawn.
    pub(crate) fn reading(quiet: bool, path: &std::path::Path) -> (Self, Option<Arc<Meter>>) {
        let progress = Self::new(quiet, &format!("reading {}", path.display()));
        let meter = progress.drawn.is_some().then(|| Arc::new(Meter::default()));
        progress.change(|state| state.meter.clone_from(&meter));
        (progress, meter)
    }

    /// Switches to other work.
    pub(crate) fn now(&self, what: &str) {
        self.change(|state| {
            *state = State::new(what, state.work.take());
        });
    }

    /// Shows the progress of this work from now on.
    pub(crate) fn follow(&self, work: &Work) {
        self.change(|state| state.work = Some(work.clone()));
    }

    /// Shows an iteration for one of `count` right-hand sides.
    pub(crate) fn iteration(
        &self,
        (right_hand_side, count): (usize, usize),
        iteration: usize,
        (residual, tolerance): (f64, f64),
    ) {
        self.change(|state| {
            let before = state
                .iterating
                .filter(|before| before.right_hand_side == right_hand_side && before.iteration <= iteration);
            let since = before.map_or_else(Instant::now, |before| before.since);
            state.iterating =
                Some(Iterating { right_hand_side, count, iteration, residual, tolerance, since });
        });
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        if let Some(drawn) = &self.drawn
            && let Ok(mut state) = drawn.state.lock()
        {
            how(&mut state);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            drop(drawn.stop.take());
            // A panic of the thread only leaves a line behind.
            let _ = drawn.thread.take().map(JoinHandle::join);
        }
    }
}

impl State {
    fn new(what: &str, work: Option<Work>) -> Self {
        Self { what: what.to_string(), since: Instant::now(), meter: None, work, iterating: None }
    }

    fn line(&self) -> String {
        if let Some(iterating) = &self.iterating {
            return iterating.line(iterating.since.elapsed());
        }
        if let Some(standing) = self.work.as_ref().and_then(Work::standing) {
            return stage(&standing);
        }
        let took = self.since.elapsed();
        match &self.meter {
            Some(meter) if meter.read() > 0 => self.reading(meter.read(), meter.total(), took),
            _ => format!("{}, {}", self.what, seconds(took.as_secs_f64())),
        }
    }

    fn reading(&self, read: u64, total: u64, took: Duration) -> String {
        let rate = bytes((read as f64 / took.as_secs_f64().max(1e-3)) as u64);
        if total == 0 {
            return format!("{}  {}  {rate}/s", self.what, bytes(read));
        }
        let done = read as f64 / total as f64;
        format!("{}  {:3.0} %  {rate}/s{}  {}", self.what, 100.0 * done, left(done, took), bar(done))
    }
}

impl Iterating {
    fn line(&self, took: Duration) -> String {
        // CG's residual decreases roughly as a power of the iteration number, so progress is measured on its logarithm.
        let done = self.residual.log10() / self.tolerance.max(1e-16).log10();
        let done = if done.is_finite() { done.clamp(0.0, 1.0) } else { 0.0 };
        let label = match self.count {
            1 => String::new(),
            count => format!("b {} of {count}  ", self.right_hand_side + 1),
        };
        let rate = self.iteration as f64 / took.as_secs_f64().max(1e-3);
        let rate = if rate >= 10.0 { format!("{rate:.0}") } else { format!("{rate:.1}") };
        format!(
            "{label}iteration {:>7}  {rate}/s  residual {:.2e}{}  {}",
            self.iteration,
            self.residual,
            left(done, took),
            bar(done)
        )
    }
}

/// A stage of a setup: how much of it is done and how fast, or how long it is expected to take.
fn stage(standing: &Standing) -> String {
    let (name, took) = (standing.stage, standing.elapsed);
    if let Some(done) = standing.done {
        let rate = 100.0 * done / took.as_secs_f64().max(1e-3);
        return format!("{name}  {:3.0} %  {rate:.1} %/s{}  {}", 100.0 * done, left(done, took), bar(done));
    }
    let so_far = format!("{name}, {}", seconds(took.as_secs_f64()));
    match standing.expected {
        // If the expected time is over, there is no base for an estimate.
        Some(all) if all > took => {
            let done = took.as_secs_f64() / all.as_secs_f64();
            format!("{so_far}{}  {}", left(done, took), bar(done))
        }
        _ => so_far,
    }
}

/// The estimated remaining time, if there is a base for it.
fn left(done: f64, took: Duration) -> String {
    if !(SOME..1.0).contains(&done) {
        return String::new();
    }
    let rest = (took.as_secs_f64() * (1.0 - done) / done).ceil();
    format!("  about {} left", if rest < 60.0 { format!("{rest} s") } else { seconds(rest) })
}

fn bar(done: f64) -> String {
    let full = (done.clamp(0.0, 1.0) * WIDTH as f64) as usize;
    format!("[{}{}]", "=".repeat(full), " ".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Stage;

    #[test]
    fn lines_tell_rate_and_end() {
        let now = Instant::now();
        let state = State::new("reading a.mtx", None);
        let line = state.reading(25_000_000, 100_000_000, Duration::from_secs(2));
        assert!(line.starts_with("reading a.mtx   25 %  12.5 MB/s  about 6 s left  [======="), "{line}");
        assert_eq!(state.reading(25_000_000, 0, Duration::from_secs(2)), "reading a.mtx  25.0 MB  12.5 MB/s");
        let iterating = Iterating {
            right_hand_side: 1,
            count: 3,
            iteration: 200,
            residual: 1e-4,
            tolerance: 1e-8,
            since: now,
        };
        let line = iterating.line(Duration::from_secs(10));
        assert!(
            line.starts_with("b 2 of 3  iteration     200  20/s  residual 1.00e-4  about 10 s left"),
            "{line}"
        );
        assert!(line.ends_with(&format!("[{}{}]", "=".repeat(15), " ".repeat(15))), "{line}");
        let standing = |done, expected| Standing {
            stage: Stage::Ordering,
            done,
            elapsed: Duration::from_secs(5),
            expected,
        };
        let line = stage(&standing(Some(0.5), None));
        assert!(line.starts_with("ordering   50 %  10.0 %/s  about 5 s left  [====="), "{line}");
        let line = stage(&standing(None, Some(Duration::from_secs(20))));
        assert!(line.contains("about 15 s left  [=======   "), "{line}");
        assert!(!stage(&standing(None, Some(Duration::from_secs(1)))).contains("left"));
        let odd = Iterating { residual: f64::NAN, count: 1, ..iterating };
        assert!(odd.line(Duration::ZERO).ends_with(&format!("[{}]", " ".repeat(30))));
    }
}
