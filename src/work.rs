//! Long work that can be stopped, and that reports its progress: orderings, factorisations, setups.
//!
//! Iterations have an observer. The work before them is done by functions deep in the library, some on many threads,
//! some in other libraries, and an observer would have to be passed through all of them. Instead, a caller enters
//! a [`Work`], and the functions that run on its thread check it from time to time:
//!
//! ```text
//! work.set_up(|| ...)            the thread remembers the work
//!   check()                      if a stop was requested, the stack is unwound, as by a panic, but without its message
//!   begin(stage, total)          a meter, which other threads may advance; it checks too
//!   apart(|| ...)                a call that can't be interrupted runs on its own thread, and is abandoned at a stop
//! Err(Error::Stopped)            unfinished results have been dropped
//! ```
//!
//! A solver has further stop requests: a time limit, and a handle that cancels it. Its functions check these too,
//! whether or not they run in a work (`within`). Parallel loops check once for each part, other loops by `look_at`, and
//! steps that count their progress by a meter: there are a few milliseconds between two checks.
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

/// How often a thread that waits for a call of another library checks for a stop.
const OFTEN: Duration = Duration::from_millis(20);

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// A fill-reducing ordering is computed.
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

/// The progress of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Standing {
    /// The kind of work.
    pub stage: Stage,
    /// The fraction that is done, from 0 to 1, if it can be determined.
    pub done: Option<f64>,
    /// The time since it began.
    pub elapsed: Duration,
    /// The expected total time, if there is a forecast.
    pub expected: Option<Duration>,
}

/// A piece of work that can be stopped from another thread. Cheap to clone; clones are the same work.
#[derive(Clone, Default)]
pub struct Work(Arc<State>);

/// The shared state of all clones.
#[derive(Default)]
struct State {
    stopped: AtomicBool,
    done: AtomicU64,
    stage: Mutex<Option<Begun>>,
}

/// The stage that began last.
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

/// The other reasons to stop a piece of work: a solver's time limit, and its cancellation.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopRequest {
    /// The end of the time limit.
    pub(crate) deadline: Option<Instant>,
    /// Whether the solver was cancelled; none if nothing can cancel it.
    pub(crate) cancelled: Option<Arc<AtomicBool>>,
}

impl StopRequest {
    fn is_due(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns whether a stop can be requested at all.
    fn can_come(&self) -> bool {
        self.deadline.is_some() || self.cancelled.is_some()
    }
}

/// Everything that may request a stop of the current work.
#[derive(Clone)]
pub(crate) struct Asker {
    work: Work,
    request: StopRequest,
}

impl Asker {
    /// Returns whether a stop is requested.
    pub(crate) fn is_due(&self) -> bool {
        self.work.is_stopped() || self.request.is_due()
    }

    fn check(&self) {
        if self.is_due() {
            self.unwind();
        }
    }

    /// Runs a part of this thread's loop, or of its recursion, on any thread; loops inside of it check for a stop too.
    pub(crate) fn lend<R>(&self, part: impl FnOnce() -> R) -> R {
        let current = Current { asker: self.clone(), loops: true };
        let _back = Back(CURRENT.replace(Some(current)));
        part()
    }

    /// Unwinds the stack up to the function that entered the work.
    pub(crate) fn unwind(&self) {
        // A destructor that runs during unwinding must not unwind again.
        if !std::thread::panicking() {
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// The work of a thread, and whether its loops check for a stop.
struct Current {
    asker: Asker,
    loops: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Restores the earlier work of a thread.
struct Back(Option<Current>);

impl Drop for Back {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Identifies a thread, its current work, and the flag that can cancel that work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    thread: usize,
    work: Option<[usize; 2]>,
}

/// Returns the identity of the current thread and of its current work.
pub(crate) fn home() -> Home {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    let thread = MARK.with(|mark| std::ptr::from_ref(mark).addr());
    let identity = |asker: &Asker| {
        [
            Arc::as_ptr(&asker.work.0).addr(),
            asker.request.cancelled.as_ref().map_or(0, |flag| Arc::as_ptr(flag).addr()),
        ]
    };
    Home {
        thread,
        work: CURRENT.with_borrow(|current| current.as_ref().map(|current| identity(&current.asker))),
    }
}

/// Runs a part of a loop that checks for no stop itself. `home` is the identity of the thread that started the loop,
/// taken at that time. A thread that waits in another solve may steal this part, and the stop of that solve must not
/// reach it. Even the thread that started the loop may do so: while it waits for the loop, it may steal a part of
/// another solve, and from within that part steal this one.
pub(crate) fn of_thread<R>(home: Home, part: impl FnOnce() -> R) -> R {
    if home == self::home() || CURRENT.with_borrow(Option::is_none) {
        return part();
    }
    let _back = Back(CURRENT.take());
    part()
}

/// The payload with which the stack is unwound.
struct Stopped;

impl Work {
    /// Requests a stop.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// The progress of the current stage; none if it is unknown.
    pub fn standing(&self) -> Option<Standing> {
        let Begun { stage, total, since, expected } = (*lock(&self.0.stage))?;
        let done = (total > 0).then(|| (self.0.done.load(Ordering::Relaxed) as f64 / total as f64).min(1.0));
        Some(Standing { stage, done, elapsed: since.elapsed(), expected })
    }

    /// Runs a setup, whose loops check for the stop request.
    ///
    /// # Errors
    /// Those of `setup`, and [`Error::Stopped`] if it was stopped.
    pub fn set_up<R>(&self, setup: impl FnOnce() -> Result<R>) -> Result<R> {
        // A setup without a long loop never checks.
        if self.is_stopped() {
            return Err(Error::Stopped);
        }
        self.run_looking(true, setup)
    }

    /// Runs a solve, in which factorisations and setups check for the stop request; iterations have an observer. A
    /// solver whose setup was stopped can be used again.
    ///
    /// # Errors
    /// As [`Work::set_up`].
    pub fn run<R>(&self, solve: impl FnOnce() -> Result<R>) -> Result<R> {
        self.run_looking(false, solve)
    }

    fn run_looking<R>(&self, loops: bool, body: impl FnOnce() -> Result<R>) -> Result<R> {
        let asker = Asker { work: self.clone(), request: StopRequest::default() };
        match entered(Current { asker, loops }, body) {
            Ok(Err(_)) if self.is_stopped() => Err(Error::Stopped),
            Ok(done) => done,
            Err(payload) if is_stop(&*payload) => Err(Error::Stopped),
            Err(payload) => resume_unwind(payload),
        }
    }
}

/// Runs `body` with `current` as the work of this thread.
fn entered<R>(current: Current, body: impl FnOnce() -> R) -> std::thread::Result<R> {
    let before = CURRENT.replace(Some(current));
    let done = catch_unwind(AssertUnwindSafe(body));
    CURRENT.set(before);
    done
}

/// Runs a setup whose loops check for a stop by `request` or by the surrounding work.
///
/// # Errors
/// Those of `setup`, and [`Error::Stopped`] if it was stopped, or if it failed while a stop was requested, which may
/// have caused the failure.
pub(crate) fn within<R>(request: &StopRequest, setup: impl FnOnce() -> Result<R>) -> Result<R> {
    let looking = || {
        let made = setup();
        look();
        made
    };
    asked_by(request, true, looking)
}

/// [`within`] for a solve, in which setups and factorisations check.
///
/// # Errors
/// As [`within`].
pub(crate) fn within_solve<R>(request: &StopRequest, solve: impl FnOnce() -> Result<R>) -> Result<R> {
    asked_by(request, false, solve)
}

/// Runs `body` such that it stops when `request` is due; with `loops`, long loops inside check for it.
fn asked_by<R>(request: &StopRequest, loops: bool, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let outer = current();
    if outer.is_none() && !request.can_come() {
        return body();
    }
    let work = outer.map(|asker| asker.work).unwrap_or_default();
    let asker = Asker { work, request: request.clone() };
    // Work without a long loop never checks.
    if asker.is_due() {
        return Err(Error::Stopped);
    }
    match entered(Current { asker: asker.clone(), loops }, body) {
        Ok(Err(_)) if asker.is_due() => Err(Error::Stopped),
        Ok(done) => done,
        Err(payload) if is_stop(&*payload) => Err(Error::Stopped),
        Err(payload) => resume_unwind(payload),
    }
}

/// Returns whether the stack was unwound because of a stop.
pub(crate) fn is_stop(payload: &(dyn std::any::Any + Send)) -> bool {
    payload.is::<Stopped>()
}

fn current() -> Option<Asker> {
    CURRENT.with_borrow(|current| current.as_ref().map(|current| current.asker.clone()))
}

/// Runs a setup within a solve: its loops check, if anything may request a stop.
pub(crate) fn looking<R>(setup: impl FnOnce() -> R) -> R {
    match current() {
        Some(asker) => asker.lend(setup),
        None => setup(),
    }
}

/// Returns whether a stop is requested, for steps that end by themselves with their current result.
pub(crate) fn is_asked() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|current| current.asker.is_due()))
}

/// Unwinds the stack if a stop is requested, in a loop or not.
pub(crate) fn check() {
    CURRENT.with_borrow(|current| {
        if let Some(current) = current {
            current.asker.check();
        }
    });
}

/// The stop requests that loops of a setup check, if there are any.
pub(crate) fn asker_of_loops() -> Option<Asker> {
    if std::thread::panicking() {
        return None;
    }
    CURRENT.with_borrow(|current| current.as_ref().filter(|current| current.loops).map(|c| c.asker.clone()))
}

/// Returns whether loops of this thread check for a stop.
pub(crate) fn loops_look() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|current| current.loops))
}

/// Checks for a stop; called where a loop of a setup begins, and before each of its passes.
pub(crate) fn look() {
    CURRENT.with_borrow(|current| {
        if let Some(Current { asker, loops: true }) = current {
            asker.check();
        }
    });
}

/// The number of steps between two checks in a loop of a setup; each takes at most some microseconds.
const STEPS: usize = 1 << 10;

/// [`look`] at each 1024th step of a loop.
#[inline(always)]
pub(crate) fn look_at(step: usize) {
    if step.is_multiple_of(STEPS) {
        look();
    }
}

/// Counts the progress of a stage of this thread's work; any thread may advance it. The stage ends when it is dropped.
pub(crate) struct Meter {
    asker: Option<Asker>,
    outer: Option<Begun>,
}

/// Begins a stage of `total` steps; 0 if they cannot be counted.
pub(crate) fn begin(stage: Stage, total: u64, expected: Option<Duration>) -> Meter {
    let asker = current();
    let begun = Begun { stage, total, since: Instant::now(), expected };
    let outer = asker.as_ref().and_then(|asker| {
        asker.check();
        asker.work.0.done.store(0, Ordering::Relaxed);
        lock(&asker.work.0.stage).replace(begun)
    });
    Meter { asker, outer }
}

impl Meter {
    /// Adds `steps` completed steps. If a stop was requested, the stack is unwound.
    pub(crate) fn advance(&self, steps: u64) {
        if let Some(asker) = &self.asker {
            asker.work.0.done.fetch_add(steps, Ordering::Relaxed);
            asker.check();
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(asker) = &self.asker {
            *lock(&asker.work.0.stage) = self.outer;
        }
    }
}

/// Returns whether something may request a stop of this thread's work.
pub(crate) fn is_watched() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Runs a call that cannot be interrupted. If a stop may be requested, it runs in a separate thread, which is abandoned
/// on a stop, so it must own its data.
pub(crate) fn apart<R: Send + 'static>(call: impl FnOnce() -> R + Send + 'static) -> R {
    let Some(asker) = current() else { return call() };
    let result = Arc::new(Mutex::new(None));
    let place = Arc::clone(&result);
    wait_for(&asker, Box::new(move || *lock(&place) = Some(call())));
    let result = lock(&result).take();
    result.expect("a call that has ended has left its result")
}

/// Runs a call on its own thread and waits for it, but returns early if a stop is requested.
fn wait_for(asker: &Asker, call: Box<dyn FnOnce() + Send>) {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("residua-apart".into()).spawn(move || {
        // After a stop the result is no longer received.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(call)));
    });
    if thread.is_err() {
        // The call was lost with the thread that could not be created, and the caller's error type has no variant for
        // that.
        resume_unwind(Box::new("a thread for a factorisation could not be started"));
    }
    loop {
        match receiver.recv_timeout(OFTEN) {
            Ok(Ok(())) => return,
            Ok(Err(payload)) => resume_unwind(payload),
            Err(RecvTimeoutError::Timeout) => asker.check(),
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
        // If the thread does no work of a caller, nothing is checked.
        look();
        begin(Stage::Factorising, 0, None).advance(5);
    }

    /// A thread that waits in the middle of a cancelled setup runs parts of other solves.
    #[test]
    fn the_end_of_one_solve_is_not_that_of_another_whose_part_its_thread_has_taken_on() {
        let work = Work::default();
        let (elsewhere, before) = (std::thread::spawn(home).join().unwrap(), home());
        let ended: Result<()> = work.set_up(|| {
            work.stop();
            assert!(of_thread(home(), is_asked) && !of_thread(before, is_asked));
            assert!(!of_thread(elsewhere, is_asked) && of_thread(elsewhere, || asker_of_loops().is_none()));
            assert!(is_asked());
            Ok(())
        });
        assert!(ended.is_ok());
    }

    #[test]
    fn a_time_limit_and_a_cancelled_solver_end_loops_on_all_threads() {
        use crate::parallel::prelude::*;
        let late =
            StopRequest { deadline: Some(Instant::now() + Duration::from_millis(30)), cancelled: None };
        let start = Instant::now();
        let ended = within(&late, || {
            (0..100_000_usize).into_par_iter().for_each(|_| std::thread::sleep(Duration::from_micros(20)));
            Ok(())
        });
        // Parts that were begun are completed, no others are begun.
        assert!(matches!(ended, Err(Error::Stopped)) && start.elapsed() >= Duration::from_millis(30));
        assert!(current().is_none());
        let flag = Arc::new(AtomicBool::new(false));
        let request = StopRequest { deadline: None, cancelled: Some(Arc::clone(&flag)) };
        let steps = AtomicU64::new(0);
        let ended = within(&request, || {
            for step in 0..1_000_000 {
                look_at(step);
                steps.fetch_add(1, Ordering::Relaxed);
                flag.store(step == 5000, Ordering::Relaxed);
                if step == 5000 {
                    look();
                }
            }
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Stopped)));
        assert_eq!(steps.into_inner(), 5001);
        flag.store(false, Ordering::Relaxed);
        assert_eq!(within(&request, || Ok(7)).unwrap(), 7);
        // A stop of the surrounding work has effect too, and the surrounding work keeps reporting the progress.
        let work = Work::default();
        let mut ended = Ok(());
        work.run(|| {
            ended = within(&request, || {
                let meter = begin(Stage::Ordering, 4, None);
                meter.advance(1);
                assert_eq!(work.standing().unwrap().done, Some(0.25));
                work.stop();
                meter.advance(1);
                Ok(())
            });
            Ok(())
        })
        .unwrap();
        assert!(matches!(ended, Err(Error::Stopped)));
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
