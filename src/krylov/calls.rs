//! Persistent iterations: a launch does many iterations, and launches are queued before the messages of earlier ones
//! have arrived.

use crate::backend::{KrylovSteps, Mailbox, Slot};
use crate::error::Result;
use crate::scalar::Scalar;

/// Launches that are queued at the same time.
const AHEAD: usize = 2;

/// The messages of a launch: in the backend's memory, in transit, and on the host.
#[derive(Debug)]
pub(super) struct Calls<W: Scalar, B: KrylovSteps> {
    device: B::Vec<W>,
    mailbox: B::Mailbox<W>,
    host: Vec<W>,
}

impl<W: Scalar, B: KrylovSteps> Calls<W, B> {
    /// `None` if the backend has no persistent iterations.
    pub(super) fn new(backend: &B) -> Result<Option<Self>> {
        let len = B::PERSISTENT_ITERATIONS * Slot::MESSAGE;
        if len == 0 {
            return Ok(None);
        }
        let host = vec![W::zero(); len];
        Ok(Some(Self { device: backend.zeros(len)?, mailbox: backend.mailbox(len)?, host }))
    }

    /// Launches iterations, at most `left` in all. `enqueue` enqueues a given number of them, with memory for their
    /// messages, and returns false if the operator can't; `take` receives each message and returns false to stop.
    /// Returns false if the first launch could not be enqueued.
    pub(super) fn run(
        &mut self,
        backend: &B,
        left: usize,
        mut enqueue: impl FnMut(usize, &mut B::Slice<W>) -> Result<bool>,
        take: &mut dyn FnMut(&[W]) -> bool,
    ) -> Result<bool> {
        let (mut queued, mut counts) = (0, [0; AHEAD]);
        let (mut done, mut goes_on) = (0, true);
        loop {
            while goes_on && queued < AHEAD {
                let ahead: usize = counts[..queued].iter().sum();
                let count = B::PERSISTENT_ITERATIONS.min(left.saturating_sub(done + ahead));
                if count == 0 {
                    break;
                }
                if !enqueue(count, &mut self.device)? {
                    return Ok(false);
                }
                self.mailbox.post(backend, &self.device)?;
                counts[queued] = count;
                queued += 1;
            }
            if queued == 0 {
                return Ok(true);
            }
            self.mailbox.next(backend, true, &mut self.host)?;
            let count = counts[0];
            counts.rotate_left(1);
            queued -= 1;
            for message in self.host.chunks_exact(Slot::MESSAGE).take(count) {
                done += 1;
                goes_on &= take(message);
            }
        }
    }
}
