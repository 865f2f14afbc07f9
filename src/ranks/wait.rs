//! How a rank waits for others: it polls for a short while, then sleeps between polls.

use crate::error::Result;
use std::thread;
use std::time::Duration;

/// How often a rank polls before it sleeps. With fewer processors than ranks, polling would keep the others from
/// running.
const SPINS: u32 = 2000;
const SPINS_CROWDED: u32 = 20;

/// The number of naps after which a rank checks whether all others are still there.
const PATIENCE: u32 = 32;

/// How long a rank sleeps between polls; the system adds about 50 microseconds. A rank that only yields loses its
/// processor for a whole time slice whenever another program computes, since the scheduler prefers processes that have
/// slept: with two busy programs the tests of ranks took 134 s instead of 12 s, and 3.3 s instead of 5.8 s without
/// them.
const NAP: Duration = Duration::from_micros(1);

/// How a rank waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    spins: u32,
}

impl Waiting {
    /// How ranks wait if `ranks` of them share `processors` processors.
    pub(super) fn among(ranks: usize, processors: usize) -> Self {
        Self { spins: if ranks <= processors { SPINS } else { SPINS_CROWDED } }
    }

    /// Polls until `ready` returns true, and calls `check` from time to time.
    ///
    /// # Errors
    /// The first error of `ready` or of `check`.
    pub(super) fn until(
        self,
        mut ready: impl FnMut() -> Result<bool>,
        mut check: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        for _ in 0..self.spins {
            if ready()? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        loop {
            for _ in 0..PATIENCE {
                if ready()? {
                    return Ok(());
                }
                thread::sleep(NAP);
            }
            check()?;
        }
    }
}

/// The number of processors that this process may use.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
