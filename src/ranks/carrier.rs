//! The transport of sums and bytes between ranks: shared memory, or messages of MPI.

use super::mpi::Wire;
use super::wait::Waiting;
use super::window::Window;
use crate::error::Result;
use std::sync::Arc;

/// One of the two transports.
pub(super) enum Carrier {
    /// Memory shared by all ranks of a machine.
    Window(Window),
    /// Messages between machines.
    Messages(Messages),
}

/// Sums and bytes by messages of MPI.
pub(super) struct Messages {
    wire: Arc<dyn Wire>,
    waiting: Waiting,
    /// The words of all ranks for a sum.
    brought: Vec<u8>,
}

impl Messages {
    /// Messages between these ranks; `waiting` says how to wait.
    pub(super) fn new(wire: Arc<dyn Wire>, waiting: Waiting) -> Self {
        Self { wire, waiting, brought: Vec::new() }
    }

    /// As [`Window::sums`]: every rank gets the words of all and adds them itself in the order of ranks, so that the
    /// bits are the same on all ranks and with both transports.
    fn sums(&mut self, words: &[u64], stop: bool, mut add: impl FnMut(usize, usize, &[u64])) -> Result<bool> {
        let own: Vec<u8> =
            [u64::from(stop)].iter().chain(words).flat_map(|word| word.to_le_bytes()).collect();
        self.brought.resize(own.len() * self.wire.ranks(), 0);
        self.wire.all_gather(self.waiting, &own, &mut self.brought)?;
        let mut wish = false;
        let mut read = vec![0; words.len() + 1];
        for (rank, bytes) in self.brought.chunks_exact(own.len()).enumerate() {
            for (word, bytes) in read.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            wish |= read[0] != 0;
            add(rank, 0, &read[1..]);
        }
        Ok(wish)
    }
}

impl Carrier {
    /// As [`Window::sums`].
    pub(super) fn sums(
        &mut self,
        words: &[u64],
        stop: bool,
        add: impl FnMut(usize, usize, &[u64]),
    ) -> Result<bool> {
        match self {
            Carrier::Window(window) => window.sums(words, stop, add),
            Carrier::Messages(messages) => messages.sums(words, stop, add),
        }
    }

    /// As [`Window::begin`]. Messages begin only when they are waited for.
    pub(super) fn begin(&mut self, send: &[&[u8]]) {
        if let Carrier::Window(window) = self {
            window.begin(send);
        }
    }

    /// As [`Window::exchange`].
    pub(super) fn exchange(&mut self, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<()> {
        match self {
            Carrier::Window(window) => window.exchange(send, receive),
            Carrier::Messages(messages) => messages.wire.exchange(messages.waiting, send, receive),
        }
    }
}
