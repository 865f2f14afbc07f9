//! Long work that can be told to stop, and that tells how far it is: orders of elimination, factorisations, setups.
//!
//! Iterations have an observer. What comes before them is done by functions deep in the library, some on many threads,
//! some in other libraries; to hand an observer down to each would be most of their arguments. So a caller enters a
//! [`Work`], and what is done on its thread meanwhile asks it now and then:
//!
//! ```text
//! work.set_up(|| ...)            the thread remembers the work
//!   check()                      told to stop?  then the stack is unwound, as by a panic, but without its message
//!   begin(stage, total)          a meter, which other threads may advance; it asks the same
//!   apart(|| ...)                a call that nobody can interrupt goes on in a thread of its own, and is left alone
//! Err(Error::Stopped)            what was half made has been dropped on the way
//! ```
//!
//! ```
//! use residua::{Error, Solver, generate, work::Work};
//!
//! let (a, work) = (generate::poisson2d(30, 30)?, Work::default());
//! let solver = work.set_up(|| Solver::builder().build(&a))?;
//! work.stop(); // as another thread would
//! assert!(matches!(work.set_up(|| Solver::builder().build(&a)), Err(Error::Stopped)));
//! # drop(solver);
//! # Ok::<(), Error>(())
//! ```

use crate::error::{Error, Result};
use crate::lock::lock;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a thread that waits for a call of another library looks whether it is to stop.
const OFTEN: Duration = Duration::from_millis(20);

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// An order of elimination is sought.
    Ordering,
    /// A matrix is factorised.
    Factorising,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Ordering => "ordering",
            Stage::Factorising => "factorising",
        })
    }
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Standing {
    /// What is under way.
    pub stage: Stage,
    /// The part of it that is done, from 0 to 1, where that can be told.
    pub done: Option<f64>,
    /// For how long it has been under way.
    pub elapsed: Duration,
    /// How long all of it was expected to take, where that is known.
    pub expected: Option<Duration>,
}

/// A piece of work that can be told to stop from another thread. Cheap to clone; clones are the same work.
#[derive(Clone, Default)]
pub struct Work(Arc<State>);

#[derive(Default)]
struct State {
    stopped: AtomicBool,
    done: AtomicU64,
    stage: Mutex<Option<Begun>>,
}

/// A stage that began.
#[derive(Clone, Copy)]
struct Begun {
    stage: Stage,
    total: u64,
    since: Instant,
    expected: Option<Duration>,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Work({:?}, stopped: {})", self.standing(), self.is_stopped())
    }
}

/// What a thread works for, and whether its loops look too.
struct Current {
    work: Work,
    loops: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// What the stack is unwound with.
struct Stopped;

impl Work {
    /// Asks for an end.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether an end was asked for.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// How far the stage under way is; none where none is known to be.
    pub fn standing(&self) -> Option<Standing> {
        let Begun { stage, total, since, expected } = (*lock(&self.0.stage))?;
        let done = (total > 0).then(|| (self.0.done.load(Ordering::Relaxed) as f64 / total as f64).min(1.0));
        Some(Standing { stage, done, elapsed: since.elapsed(), expected })
    }

    /// Runs a setup, which looks for the end that is asked for in each of its loops.
    ///
    /// # Errors
    /// Those of `setup`, and [`Error::Stopped`] where it was ended on the way.
    pub fn set_up<R>(&self, setup: impl FnOnce() -> Result<R>) -> Result<R> {
        // A setup without a long loop never looks.
        if self.is_stopped() {
            return Err(Error::Stopped);
        }
        self.run_looking(true, setup)
    }

    /// Runs a solve, in which factorisations and setups look for the end that is asked for; iterations have an
    /// observer. A solver whose setup was ended on the way can be used again.
    ///
    /// # Errors
    /// As [`Work::set_up`].
    pub fn run<R>(&self, solve: impl FnOnce() -> Result<R>) -> Result<R> {
        self.run_looking(false, solve)
    }

    fn run_looking<R>(&self, loops: bool, body: impl FnOnce() -> Result<R>) -> Result<R> {
        let before = CURRENT.replace(Some(Current { work: self.clone(), loops }));
        let done = catch_unwind(AssertUnwindSafe(body));
        CURRENT.set(before);
        match done {
            Ok(Err(_)) if self.is_stopped() => Err(Error::Stopped),
            Ok(done) => done,
            Err(payload) if is_stop(&*payload) => Err(Error::Stopped),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn check(&self) {
        // What is dropped while the stack is unwound already must not unwind it again.
        if self.is_stopped() && !std::thread::panicking() {
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// Whether the stack was unwound because an end was asked for.
pub(crate) fn is_stop(payload: &(dyn std::any::Any + Send)) -> bool {
    payload.is::<Stopped>()
}

fn current() -> Option<Work> {
    CURRENT.with_borrow(|current| current.as_ref().map(|current| current.work.clone()))
}

/// Where a loop of a setup begins.
pub(crate) fn look() {
    CURRENT.with_borrow(|current| {
        if let Some(Current { work, loops: true }) = current {
            work.check();
        }
    });
}

/// Counts a stage of this thread's work; any thread may advance it. The stage ends when it is dropped.
pub(crate) struct Meter {
    work: Option<Work>,
    outer: Option<Begun>,
}

/// A stage of `total` steps begins; 0 where they cannot be counted.
pub(crate) fn begin(stage: Stage, total: u64, expected: Option<Duration>) -> Meter {
    let work = current();
    let begun = Begun { stage, total, since: Instant::now(), expected };
    let outer = work.as_ref().and_then(|work| {
        work.check();
        work.0.done.store(0, Ordering::Relaxed);
        lock(&work.0.stage).replace(begun)
    });
    Meter { work, outer }
}

impl Meter {
    /// So many steps more are done. Where an end was asked for, the stack is unwound.
    pub(crate) fn advance(&self, steps: u64) {
        if let Some(work) = &self.work {
            work.0.done.fetch_add(steps, Ordering::Relaxed);
            work.check();
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(work) = &self.work {
            *lock(&work.0.stage) = self.outer;
        }
    }
}

/// Whether this thread works for somebody who may ask for an end.
pub(crate) fn is_watched() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// What a call comes to that cannot be interrupted. In watched work it runs in a thread of its own, which is left to
/// itself where an end is asked for, so it owns what it needs.
pub(crate) fn apart<R: Send + 'static>(call: impl FnOnce() -> R + Send + 'static) -> R {
    let Some(work) = current() else { return call() };
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("residua-apart".into()).spawn(move || {
        // Nobody listens any more where an end was asked for.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(call)));
    });
    if thread.is_err() {
        // The call went with the thread that could not be made; the caller's errors have no room for that.
        resume_unwind(Box::new("no thread for a factorisation"));
    }
    loop {
        match receiver.recv_timeout(OFTEN) {
            Ok(Ok(result)) => return result,
            Ok(Err(payload)) => resume_unwind(payload),
            Err(RecvTimeoutError::Timeout) => work.check(),
            Err(RecvTimeoutError::Disconnected) => {
                resume_unwind(Box::new("a factorisation's thread is gone"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_asked_for_unwinds_and_is_an_error() {
        let work = Work::default();
        let stopper = work.clone();
        let counted = AtomicU64::new(0);
        let ended: Result<()> = work.run(|| {
            let meter = begin(Stage::Ordering, 10, None);
            for step in 0..10 {
                if step == 4 {
                    assert_eq!(stopper.standing().unwrap().done, Some(0.4));
                    stopper.stop();
                }
                counted.fetch_add(1, Ordering::Relaxed);
                meter.advance(1);
            }
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Stopped)));
        assert_eq!(counted.load(Ordering::Relaxed), 5);
        assert!(work.standing().is_none() && current().is_none());
    }

    #[test]
    fn only_setups_look_in_their_loops_and_panics_stay_what_they_are() {
        let work = Work::default();
        work.stop();
        assert!(
            work.run(|| {
                look();
                Ok(1)
            })
            .is_ok()
        );
        assert!(matches!(
            work.set_up(|| {
                look();
                Ok(1)
            }),
            Err(Error::Stopped)
        ));
        let panic = catch_unwind(AssertUnwindSafe(|| work.run::<()>(|| resume_unwind(Box::new("mine")))));
        assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "mine");
        // Without a work nothing is asked.
        look();
        begin(Stage::Factorising, 0, None).advance(5);
    }

    #[test]
    fn a_call_that_cannot_be_interrupted_is_left_to_itself() {
        let work = Work::default();
        assert_eq!(work.run(|| Ok(apart(|| 7))).unwrap(), 7);
        let stopper = work.clone();
        let start = Instant::now();
        let ended = work.run(|| {
            apart(move || {
                stopper.stop();
                std::thread::sleep(Duration::from_secs(3));
            });
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Stopped)) && start.elapsed() < Duration::from_secs(2));
    }
}
