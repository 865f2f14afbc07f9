//! Compiles and loads units that will be needed soon, on separate threads. A first solve needs twenty units, one after
//! another, and each takes a fifth of a second if it is not in the cache.

use super::Unit;
use crate::lock::lock;
use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};

/// The units that are waiting to be compiled, the next one last, and those that are being compiled.
#[derive(Default)]
struct Stages {
    waiting: Vec<Unit>,
    running: HashSet<Unit>,
}

/// Synchronises the threads that compile ahead with the threads that need a unit.
#[derive(Default)]
pub(in crate::backend::cuda) struct Ahead {
    stages: Mutex<Stages>,
    changed: Condvar,
}

impl Ahead {
    fn stages(&self) -> MutexGuard<'_, Stages> {
        lock(&self.stages)
    }

    fn wait<'a>(&self, stages: MutexGuard<'a, Stages>) -> MutexGuard<'a, Stages> {
        self.changed.wait(stages).unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `make` for the units on other threads, in this order.
    pub(in crate::backend::cuda) fn start(
        &'static self,
        units: Vec<Unit>,
        make: impl Fn(&Unit) + Copy + Send + 'static,
    ) -> CompilingAhead {
        let threads = units.len().min(available_parallelism().map_or(1, usize::from));
        self.stages().waiting.extend(units.into_iter().rev());
        for _ in 0..threads {
            // If no thread can be started, a unit is compiled by the thread that needs it.
            let work = move || self.work(make);
            let _ = thread::Builder::new().name("residua kernels".into()).spawn(work);
        }
        CompilingAhead(self)
    }

    fn work(&self, make: impl Fn(&Unit)) {
        let next = || {
            let stages = &mut *self.stages();
            // Skips units that another thread is compiling.
            while let Some(unit) = stages.waiting.pop() {
                if stages.running.insert(unit) {
                    return Some(unit);
                }
            }
            None
        };
        while let Some(unit) = next() {
            // Dropped even if `make` panics, so that threads waiting for the unit go on.
            let _running = Running(self, unit);
            make(&unit);
        }
    }

    /// Waits until no other thread is compiling this unit, and reserves it for the caller until the result is dropped.
    /// If another thread has compiled it, it is available now; otherwise the caller has to compile it.
    pub(in crate::backend::cuda) fn take(&self, unit: &Unit) -> Running<'_> {
        let mut stages = self.stages();
        stages.waiting.retain(|waiting| waiting != unit);
        while !stages.running.insert(*unit) {
            stages = self.wait(stages);
        }
        Running(self, *unit)
    }
}

/// A unit that a thread is compiling. Dropping this ends the reservation.
pub(in crate::backend::cuda) struct Running<'a>(&'a Ahead, Unit);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.stages().running.remove(&self.1);
        self.0.changed.notify_all();
    }
}

/// Kernels that are being compiled and loaded on other threads ([`Cuda::compile_ahead`](crate::Cuda::compile_ahead)).
/// If this is dropped, no further compilation begins, and it waits for those in progress, because a process must not
/// end while its compiler is running.
#[must_use = "dropped, it waits for the compiler"]
pub struct CompilingAhead(&'static Ahead);

impl std::fmt::Debug for CompilingAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stages = self.0.stages();
        write!(f, "{} units to be made ready, {} at work", stages.waiting.len(), stages.running.len())
    }
}

impl Drop for CompilingAhead {
    fn drop(&mut self) {
        let mut stages = self.0.stages();
        stages.waiting.clear();
        while !stages.running.is_empty() {
            stages = self.0.wait(stages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    /// If units are needed while other threads compile them, each is compiled once, and is either available or left to
    /// the thread that needs it.
    #[test]
    fn what_is_asked_for_is_made_once_or_left_to_who_asks() {
        static AHEAD: LazyLock<Ahead> = LazyLock::new(Ahead::default);
        static MADE: Mutex<Vec<Unit>> = Mutex::new(Vec::new());
        let units: Vec<Unit> = (0..40).map(|class| Unit::new("memory.cu").class(class)).collect();
        let guard = AHEAD.start(units.clone(), |unit| {
            thread::yield_now();
            MADE.lock().unwrap().push(*unit);
        });
        let mut left = 0;
        for unit in units.iter().rev() {
            let _ours = AHEAD.take(unit);
            let made = MADE.lock().unwrap().iter().filter(|made| *made == unit).count();
            assert!(made <= 1, "{}", unit.describe());
            left += 1 - made;
        }
        drop(guard);
        assert_eq!(MADE.lock().unwrap().len() + left, units.len());
        assert!(AHEAD.stages().running.is_empty() && AHEAD.stages().waiting.is_empty());
    }

    /// Only one thread at a time compiles a unit, and different units are compiled in parallel.
    #[test]
    fn who_asks_is_alone_at_work_on_a_unit() {
        static AHEAD: LazyLock<Ahead> = LazyLock::new(Ahead::default);
        static MADE: Mutex<Vec<Unit>> = Mutex::new(Vec::new());
        let units: Vec<Unit> = (0..20).map(|class| Unit::new("memory.cu").class(class)).collect();
        let _another = AHEAD.take(&Unit::new("keys.cu"));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for unit in &units {
                        let _ours = AHEAD.take(unit);
                        let made = MADE.lock().unwrap().contains(unit);
                        thread::yield_now();
                        if !made {
                            MADE.lock().unwrap().push(*unit);
                        }
                    }
                });
            }
        });
        assert_eq!(MADE.lock().unwrap().len(), units.len());
        assert_eq!(AHEAD.stages().running.len(), 1);
    }

    #[test]
    fn dropped_it_lets_none_begin() {
        static AHEAD: LazyLock<Ahead> = LazyLock::new(Ahead::default);
        static MADE: Mutex<usize> = Mutex::new(0);
        let units: Vec<Unit> = (0..5000).map(|class| Unit::new("memory.cu").class(class)).collect();
        drop(AHEAD.start(units, |_| *MADE.lock().unwrap() += 1));
        let made = *MADE.lock().unwrap();
        thread::yield_now();
        assert!(AHEAD.stages().running.is_empty() && AHEAD.stages().waiting.is_empty());
        assert_eq!(*MADE.lock().unwrap(), made);
    }
}
