//! The progress of reading a file.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes read from a file, which other threads can query ([`ReadOptions::meter`]).
///
/// [`ReadOptions::meter`]: super::ReadOptions::meter
#[derive(Debug, Default)]
pub struct Meter {
    read: AtomicU64,
    total: AtomicU64,
}

impl Meter {
    /// Bytes read so far; for a compressed file, compressed bytes.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Size of the file; zero before it is opened, and for a pipe.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, total: Option<u64>) {
        self.read.store(0, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
    }
}

/// A reader whose bytes are counted.
pub(super) struct Metered<R> {
    pub(super) reader: R,
    pub(super) meter: Option<Arc<Meter>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let got = self.reader.read(to)?;
        if let Some(meter) = &self.meter {
            meter.read.fetch_add(got as u64, Ordering::Relaxed);
        }
        Ok(got)
    }
}
