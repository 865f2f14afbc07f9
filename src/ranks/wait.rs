//! How a rank waits for others: it looks often for a short while, then sleeps between looks.

use crate::error::Result;
use std::thread;
use std::time::Duration;

/// How often a rank looks before it sleeps: the others can't go on meanwhile where there are fewer processors than
/// ranks.
const SPINS: u32 = 2000;
const SPINS_CROWDED: u32 = 20;

/// After how many naps it asks whether all of them are still there.
const PATIENCE: u32 = 32;

/// How long a rank sleeps between looks, where the system's own delay of about 50 microseconds comes on top. A rank
/// that only yields loses its processor for a whole slice of time whenever another program computes, since the
/// scheduler prefers those who have slept: the tests of ranks took 134 s in place of 12 s beside two busy programs, and
/// 3.3 s in place of 5.8 s with nothing beside them.
const NAP: Duration = Duration::from_micros(1);

/// How a rank of some waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    spins: u32,
}

impl Waiting {
    /// For ranks of which so many share so many processors.
    pub(super) fn among(ranks: usize, processors: usize) -> Self {
        Self { spins: if ranks <= processors { SPINS } else { SPINS_CROWDED } }
    }

    /// Waits until `ready` says so, and asks now and then whether there is still something to wait for.
    ///
    /// # Errors
    /// The first one of `ready` or of `check`.
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

/// Processors that this process may use.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
