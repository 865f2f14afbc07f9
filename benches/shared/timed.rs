//! Times several functions on the host and prints a line for each.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A function is called until this time has passed, after one call to warm up.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// The minimum and maximum number of calls.
const CALLS: (usize, usize) = (10, 10_000);

/// Times functions that process an amount of something per call: bytes or elements.
pub struct Timed {
    amount: f64,
    unit: &'static str,
    /// Only functions whose names contain one of these words are run; all if there is none.
    only: Vec<String>,
}

impl Timed {
    /// Words on the command line select functions.
    pub fn new(amount: usize, unit: &'static str) -> Self {
        let only = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
        Timed { amount: amount as f64, unit, only }
    }

    /// Prints the median, smallest and largest time of a call, and the amount of work per second.
    pub fn time<R>(&self, name: &str, mut work: impl FnMut() -> R) {
        self.time_of(name, || (), |()| work());
    }

    /// Like [`time`](Self::time), for a function that consumes its input. Making the input and dropping the result are
    /// not timed.
    pub fn time_of<P, R>(&self, name: &str, mut input: impl FnMut() -> P, mut work: impl FnMut(P) -> R) {
        if !self.only.is_empty() && !self.only.iter().any(|word| name.contains(&**word)) {
            return;
        }
        let mut seconds = Vec::new();
        let mut once = || {
            let given = black_box(input());
            let start = Instant::now();
            let result = black_box(work(given));
            let time = start.elapsed().as_secs_f64();
            drop(result);
            time
        };
        once();
        let start = Instant::now();
        while seconds.len() < CALLS.0 || (start.elapsed() < LONG_ENOUGH && seconds.len() < CALLS.1) {
            seconds.push(once());
        }
        seconds.sort_by(f64::total_cmp);
        let (median, last) = (seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
        println!(
            "{name:44} {:10.3} ms ({:.3} to {:.3}, {} calls) {:9.1} million {} a second",
            1e3 * median,
            1e3 * seconds[0],
            1e3 * last,
            seconds.len(),
            1e-6 * self.amount / median,
            self.unit
        );
    }
}
