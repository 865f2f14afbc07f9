//! The launches of a solve, up the levels and down again, recorded and replayed as one.
//!
//! A solve has about a hundred launches of a few microseconds each, and the host takes as long to enqueue one. They
//! depend on nothing but the structure and the number of right-hand sides, so the second solve records them. The first
//! one does not: it may be the only one, and a recording takes longer than the launches.

use super::{Layout, Numbers};
use crate::backend::Replay;
use crate::backend::cuda::capture;
use crate::backend::cuda::record::{Recording, record};
use crate::backend::cuda::slice::Vec as DeviceVec;
use crate::error::Result;
use crate::lock::lock;
use crate::scalar::Scalar;
use std::sync::{Arc, Mutex, MutexGuard};

/// The vectors of a solve for `count` right-hand sides: two of unknowns, and the contributions of fronts to their
/// parents.
pub(super) struct Vectors<T: Scalar> {
    pub(super) count: usize,
    pub(super) y: DeviceVec<T>,
    pub(super) x: DeviceVec<T>,
    pub(super) u: DeviceVec<T>,
}

/// What the next solve does.
enum Next {
    /// It launches one by one, and the one after it records.
    Launch,
    Record,
    Replay(Recording<'static>),
    /// The launches could not be recorded.
    Unrecorded,
}

/// The solve from y to x, with the memory of its vectors.
pub(super) struct Sweeps<T: Scalar> {
    layout: Arc<Layout>,
    numbers: Arc<Mutex<Numbers<T>>>,
    vectors: Arc<Mutex<Vectors<T>>>,
    count: usize,
    next: Next,
}

impl<T: Scalar> Sweeps<T> {
    pub(super) fn new(layout: &Arc<Layout>, numbers: &Arc<Mutex<Numbers<T>>>, count: usize) -> Result<Self> {
        let cuda = layout.cuda;
        let vectors = Vectors {
            count,
            y: cuda.uninitialised(layout.n * count)?,
            x: cuda.uninitialised(layout.n * count)?,
            u: cuda.uninitialised(layout.schedule.rows * count)?,
        };
        Ok(Self {
            layout: layout.clone(),
            numbers: numbers.clone(),
            vectors: Arc::new(Mutex::new(vectors)),
            count,
            next: Next::Launch,
        })
    }

    /// The number of right-hand sides.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn vectors(&self) -> MutexGuard<'_, Vectors<T>> {
        lock(&self.vectors)
    }

    /// Computes x from y, in the order of elimination.
    pub(super) fn run(&mut self) -> Result<()> {
        let Self { layout, numbers, vectors, next, .. } = self;
        let cuda = layout.cuda;
        if capture::stream(cuda.0.ordinal).is_some() {
            // The caller records, and these launches become a part of its graph.
            return layout.sweep(&lock(numbers), &mut lock(vectors));
        }
        if matches!(next, Next::Record) {
            let (layout, numbers, vectors) = (layout.clone(), numbers.clone(), vectors.clone());
            let body = move || layout.sweep(&lock(&numbers), &mut lock(&vectors));
            *next = record(cuda, body).map_or(Next::Unrecorded, Next::Replay);
        }
        if let Next::Replay(recording) = next {
            return recording.replay();
        }
        if matches!(next, Next::Launch) {
            *next = Next::Record;
        }
        layout.sweep(&lock(numbers), &mut lock(vectors))
    }
}

impl Layout {
    /// Launches everything between y and x.
    fn sweep<T: Scalar>(&self, numbers: &Numbers<T>, vectors: &mut Vectors<T>) -> Result<()> {
        let levels = &self.schedule.levels;
        levels.iter().try_for_each(|level| self.up(level, &numbers.factors, vectors))?;
        levels.iter().rev().try_for_each(|level| self.down(level, &numbers.factors, vectors))
    }
}
