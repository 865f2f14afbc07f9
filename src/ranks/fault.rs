//! The first failure among the ranks, as far as this process knows.

use crate::error::{Error, Result};
use crate::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The failure that has ended the work of all ranks, if there is one.
#[derive(Debug, Default)]
pub(super) struct Fault {
    happened: AtomicBool,
    what: Mutex<Option<(usize, usize, String)>>,
}

impl Fault {
    /// Records a failure; the first one is kept.
    pub(super) fn set(&self, rank: usize, ranks: usize, cause: &str) {
        lock(&self.what).get_or_insert_with(|| (rank, ranks, cause.to_string()));
        self.happened.store(true, Ordering::Release);
    }

    /// Returns the failure as an error, if there is one.
    ///
    /// # Errors
    /// [`Error::Rank`] with the rank that failed.
    pub(super) fn check(&self) -> Result<()> {
        if !self.happened.load(Ordering::Acquire) {
            return Ok(());
        }
        let (rank, ranks, cause) = lock(&self.what).clone().unwrap_or_default();
        Err(Error::Rank { rank, ranks, cause })
    }
}
