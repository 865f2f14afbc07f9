//! Compiling what will be asked for soon on threads of its own: where nothing is in the cache yet, a first solve asks for twenty
//! units one after the other, a fifth of a second each.

use super::{Compiler, Image, SOURCES, Unit};
use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};

/// What `residua solve` loads for real matrices in double precision, a line each, as `RESIDUA_UNITS` has written them.
const SOLVE: &str = include_str!("../../../../tuning/solve.txt");

/// The units that a solve of a real system in double precision is likely to need on the GPUs that residua was tuned for. One too
/// few or too many costs time only.
pub fn units_of_a_solve() -> Vec<Unit> {
    SOLVE.lines().filter_map(parsed).collect()
}

/// The inverse of [`Unit::describe`]; none where the kernel file is not known.
fn parsed(line: &'static str) -> Option<Unit> {
    let (types, class) = line.split_once(" class ").unwrap_or((line, "0"));
    let mut words = types.split(' ');
    let source = words.next().filter(|source| SOURCES.iter().any(|(name, _)| name == source))?;
    let unit = words.try_fold(Unit::new(source), |unit, word| {
        let (name, element) = word.split_once('=')?;
        Some(unit.with(name, element))
    })?;
    Some(unit.class(class.parse().ok()?))
}

/// The units to be compiled, in order; those at work; and the images that wait to be asked for.
#[derive(Default)]
struct Stages {
    waiting: Vec<Unit>,
    running: HashSet<Unit>,
    done: HashMap<Unit, Image>,
}

/// Where those who compile ahead meet those who ask.
#[derive(Default)]
pub(in crate::backend::cuda) struct Ahead {
    stages: Mutex<Stages>,
    changed: Condvar,
}

impl Ahead {
    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, stages: MutexGuard<'a, Stages>) -> MutexGuard<'a, Stages> {
        self.changed.wait(stages).unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the units compiled for a chip, the first ones first, while the caller goes on.
    pub(in crate::backend::cuda) fn start(
        &'static self,
        units: Vec<Unit>,
        chip: (u32, u32),
    ) -> CompilingAhead {
        let threads = units.len().min(available_parallelism().map_or(1, usize::from));
        self.stages().waiting.extend(units.into_iter().rev());
        for _ in 0..threads {
            // Without another thread whoever asks for a unit compiles it.
            let _ = thread::Builder::new().name("residua kernels".into()).spawn(move || self.work(chip));
        }
        CompilingAhead(self)
    }

    fn work(&self, chip: (u32, u32)) {
        let next = || {
            let mut stages = self.stages();
            let unit = stages.waiting.pop()?;
            stages.running.insert(unit);
            Some(unit)
        };
        while let Some(unit) = next() {
            // Dropped when the unit is done with, whatever happened to it: somebody may be waiting.
            let _running = Running(self, unit);
            if let Ok(image) = Compiler::get().and_then(|compiler| compiler.image(&unit, chip)) {
                self.stages().done.insert(unit, image);
            }
        }
    }

    /// The image of a unit that was compiled ahead, or is just being compiled. Without one the caller compiles it, and gets to
    /// know what is wrong.
    pub(in crate::backend::cuda) fn take(&self, unit: &Unit) -> Option<Image> {
        let mut stages = self.stages();
        stages.waiting.retain(|waiting| waiting != unit);
        while stages.running.contains(unit) {
            stages = self.wait(stages);
        }
        stages.done.remove(unit)
    }
}

struct Running<'a>(&'a Ahead, Unit);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.stages().running.remove(&self.1);
        self.0.changed.notify_all();
    }
}

/// Kernels that are being compiled on other threads ([`Cuda::compile_ahead`](crate::Cuda::compile_ahead)). Dropped, it lets none
/// begin any more and waits for those that have begun: a process must not end while its compiler is at work.
#[must_use = "dropped, it waits for the compiler"]
pub struct CompilingAhead(&'static Ahead);

impl std::fmt::Debug for CompilingAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stages = self.0.stages();
        write!(f, "{} units to be compiled, {} at work", stages.waiting.len(), stages.running.len())
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

    #[test]
    fn every_line_of_the_list_is_a_unit() {
        let units = units_of_a_solve();
        let lines: Vec<&str> = SOLVE.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(!lines.is_empty());
        assert_eq!(units.iter().map(Unit::describe).collect::<Vec<_>>(), lines);
        assert!(parsed("gone.cu SCALAR=f64").is_none() && parsed("krylov.cu SCALAR").is_none());
    }

    /// With no compiler at hand nothing comes of it, and nobody waits for ever.
    #[test]
    fn what_is_asked_for_is_compiled_once_or_left_to_who_asks() {
        let ahead: &'static Ahead = Box::leak(Box::default());
        let units: Vec<Unit> = ["memory.cu", "pack.cu"].map(Unit::new).into();
        let guard = ahead.start(units.clone(), (9, 0));
        let compiler = Compiler::get();
        for unit in &units {
            if let (Ok(compiler), Some(image)) = (&compiler, ahead.take(unit)) {
                assert_eq!(image.code, compiler.image(unit, (9, 0)).unwrap().code, "{}", unit.describe());
            }
            assert!(ahead.take(unit).is_none(), "an image is given away once");
        }
        drop(guard);
        assert!(ahead.stages().running.is_empty() && ahead.stages().waiting.is_empty());
    }
}
