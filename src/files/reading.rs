//! Reads a file into the memory of a backend while other work goes on: a device takes a fifth of a second to start, in
//! which a large part of a big file can be read.

use super::{Kind, Resident, Stored, kind, read_stored};
use crate::backend::Backend;
use crate::error::Result;
use crate::market::{self, ReadOptions};
use crate::scalar::Scalar;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// A matrix that is being read by another thread, in any format.
///
/// ```
/// use residua::{Host, files, market::ReadOptions};
/// let path = std::env::temp_dir().join(format!("residua-files-reading-{}.mtx", std::process::id()));
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 -1\n2 2 4\n").unwrap();
/// let reading = files::Reading::<f64>::start(&path, ReadOptions::default());
/// // ... open a device meanwhile
/// let resident = reading.into_resident(&Host)?;
/// assert_eq!(resident.header().entries(), 3);
/// assert_eq!(resident.into_csr(&Host)?.nonzeros(), 4);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug)]
pub struct Reading<T: Scalar>(Source<T>);

/// The background work that reads a file.
#[derive(Debug)]
enum Source<T: Scalar> {
    /// Text, whose blocks are copied to the backend as they arrive.
    Text(market::Reading<T>),
    Whole(JoinHandle<Result<Stored<T>>>),
}

impl<T: Scalar> Reading<T> {
    /// Starts to read, with the result of [`read_stored`].
    pub fn start(path: impl Into<PathBuf>, options: ReadOptions) -> Self {
        let path = path.into();
        Self(match kind(&path) {
            Ok(Kind::Market) => Source::Text(market::Reading::start(path, options)),
            _ => Source::Whole(std::thread::spawn(move || read_stored(&path, &options))),
        })
    }

    /// Waits for the entries. They are in the backend's memory when this returns, or will be before work that is
    /// enqueued later.
    ///
    /// # Errors
    /// As [`read_stored`]; if memory runs out, or if the device fails.
    pub fn into_resident<B: Backend>(self, backend: &B) -> Result<Resident<T, B>> {
        match self.0 {
            Source::Text(text) => {
                text.into_resident(backend).map(|(header, triplets)| Resident::Triplets(header, triplets))
            }
            Source::Whole(thread) => {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?.into_resident(backend)
            }
        }
    }
}
