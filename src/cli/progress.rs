//! A progress bar for a person who waits.

use super::console;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

const WIDTH: usize = 30;

/// Nothing is drawn before a solve has taken this long, nor more often.
const PAUSE: Duration = Duration::from_millis(150);

/// A line on standard error that is drawn over; silent where standard error is no terminal.
pub(crate) struct Progress {
    shown: bool,
    active: bool,
    last: Instant,
    tolerance: f64,
    /// How many right-hand sides there are.
    count: usize,
}

impl Progress {
    /// A bar that is full when a relative residual of `tolerance` is reached.
    pub(crate) fn new(quiet: bool, tolerance: f64, count: usize) -> Self {
        let active = !quiet && stderr().is_terminal();
        Self { shown: false, active, last: Instant::now(), tolerance, count }
    }

    /// Draws, if it is time.
    pub(crate) fn update(&mut self, right_hand_side: usize, iteration: usize, residual: f64) {
        if !self.active || self.last.elapsed() < PAUSE {
            return;
        }
        (self.last, self.shown) = (Instant::now(), true);
        // CG's residual falls about as a power of the iteration number: progress is its logarithm's.
        let done = (residual.log10() / self.tolerance.max(1e-16).log10()).clamp(0.0, 1.0);
        let full = if done.is_finite() { (done * WIDTH as f64) as usize } else { 0 };
        let (bar, rest) = ("=".repeat(full), " ".repeat(WIDTH - full));
        let label = match self.count {
            1 => String::new(),
            count => format!("b {} of {count}  ", right_hand_side + 1),
        };
        console::tell(&format!(
            "\r{label}iteration {iteration:>7}  residual {residual:.2e}  [{bar}{rest}]\x1b[K"
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            console::tell("\r\x1b[K");
        }
    }
}
