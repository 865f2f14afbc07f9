//! Reads a file into the memory of a backend while other work goes on: while a block of text is parsed, the entries of
//! the one before are copied.

use super::header::{Format, Header};
use super::parallel::{Open, Part};
use super::read::{MatrixFile, ReadOptions, read_triplets};
use super::source::Source;
use crate::assemble::ResidentTriplets;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::scalar::{Scalar, Symmetry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// At most this many emptied parts are kept for reuse. Others, which a slow backend leaves over, are freed while the
/// rest is parsed; if they were freed later, an allocation of the backend might have to wait for that.
const SPARE: usize = 8;

/// A matrix that is being read by another thread.
///
/// ```
/// use residua::{Host, assemble::Assembler, market::{ReadOptions, Reading}};
/// let path = std::env::temp_dir().join(format!("residua-reading-{}.mtx", std::process::id()));
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 -1\n2 2 4\n").unwrap();
/// let reading = Reading::<f64>::start(&path, ReadOptions::default());
/// // ... open a device meanwhile
/// let (header, triplets) = reading.into_resident(&Host)?;
/// let a = Assembler::default().symmetry(header.symmetry()).resident_to_csr(&Host, triplets)?;
/// assert_eq!((a.rows(), a.nonzeros()), (2, 4));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug)]
pub struct Reading<T: Scalar> {
    path: PathBuf,
    messages: Receiver<Result<Message<T>>>,
    empty: SyncSender<Part<T>>,
}

/// A message of the reading thread.
enum Message<T> {
    /// The header; parts follow, then the end.
    Start(Header),
    Part(Part<T>),
    End,
    /// The whole matrix. If parts were sent before, they are discarded.
    Whole(Box<MatrixFile<T>>),
}

impl<T: Scalar> Reading<T> {
    /// Starts to read, with the result of [`read_triplets`].
    ///
    /// Until [`Reading::into_resident`] takes them, entries stay in memory: up to 8 bytes and a value each.
    pub fn start(path: impl Into<PathBuf>, options: ReadOptions) -> Self {
        let path = path.into();
        let file = path.clone();
        let (give, messages) = channel();
        let (empty, room) = sync_channel(SPARE);
        // Not joined: if the receiver is dropped, the thread ends at its next block.
        std::thread::spawn(move || {
            if let Err(error) = read(&file, &options, &give, &room) {
                let _ = give.send(Err(error));
            }
        });
        Self { path, messages, empty }
    }

    /// Waits for the header and the stored entries. They are in the backend's memory when this returns, or will be
    /// before work that is enqueued later.
    ///
    /// # Errors
    /// As [`read_triplets`]; if memory runs out, or if the device fails.
    pub fn into_resident<B: Backend>(self, backend: &B) -> Result<(Header, ResidentTriplets<T, B>)> {
        let header = match next(&self.path, &self.messages)? {
            Message::Start(header) => header,
            Message::Whole(file) => return whole(backend, *file),
            Message::Part(_) | Message::End => return Err(gone(&self.path)),
        };
        // At most what the file's size allows.
        let entries = header.entries as usize;
        let (mut rows, mut columns) = (backend.buffer::<u32>(entries)?, backend.buffer::<u32>(entries)?);
        let mut values = backend.buffer::<T>(entries)?;
        if let Message::Whole(file) = self.copy_parts(backend, &mut rows, &mut columns, &mut values)? {
            return whole(backend, *file);
        }
        let size = (header.rows(), header.columns());
        let triplets = ResidentTriplets::from_parsed(size, header.symmetry(), rows, columns, values)?;
        Ok((header, triplets))
    }

    /// Copies parts as they arrive, indices and values each by its own thread, until the last message.
    fn copy_parts<B: Backend>(
        self,
        backend: &B,
        rows: &mut B::Slice<u32>,
        columns: &mut B::Slice<u32>,
        values: &mut B::Slice<T>,
    ) -> Result<Message<T>> {
        let (give, indexed) = channel::<(usize, Part<T>)>();
        let (empty, messages) = (self.empty, self.messages);
        std::thread::scope(|scope| {
            let copier = scope.spawn(move || -> Result<()> {
                indexed.iter().try_for_each(|(at, part)| {
                    let place = at..at + part.entries;
                    backend.write(&part.values[..part.entries], B::part_mut(values, place))?;
                    // If enough are kept, or the reading thread has ended, this frees it.
                    let _ = empty.try_send(part);
                    Ok(())
                })
            });
            let mut at = 0;
            let end = loop {
                match next(&self.path, &messages)? {
                    Message::Part(part) => {
                        let place = at..at + part.entries;
                        backend.write(&part.rows[..part.entries], B::part_mut(rows, place.clone()))?;
                        backend.write(&part.columns[..part.entries], B::part_mut(columns, place.clone()))?;
                        // If the copying thread has ended, it returns the reason.
                        if give.send((at, part)).is_err() {
                            break Message::End;
                        }
                        at = place.end;
                    }
                    Message::Start(_) => return Err(gone(&self.path)),
                    end => break end,
                }
            };
            drop(give);
            copier.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(end)
        })
    }
}

fn next<T>(path: &Path, messages: &Receiver<Result<Message<T>>>) -> Result<Message<T>> {
    messages.recv().unwrap_or_else(|_| Err(gone(path)))
}

/// The error if the reading thread has ended without a result.
fn gone(path: &Path) -> Error {
    Error::Io { path: path.to_owned(), source: io::Error::other("the reading thread ended") }
}

impl<T> std::fmt::Debug for Message<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Message")
    }
}

fn whole<T: Scalar, B: Backend>(
    backend: &B,
    file: MatrixFile<T>,
) -> Result<(Header, ResidentTriplets<T, B>)> {
    let (header, triplets, _) = file.into_parts();
    Ok((header, ResidentTriplets::upload(backend, triplets)?))
}

/// The body of the reading thread.
fn read<T: Scalar>(
    path: &Path,
    options: &ReadOptions,
    give: &Sender<Result<Message<T>>>,
    room: &Receiver<Part<T>>,
) -> Result<()> {
    // If the receiver was dropped, nothing needs to be sent.
    let tell = |message| give.send(Ok(message)).is_ok();
    // A pipe can be read only once, and a compressed file does not show its size.
    if path.is_file() {
        let open = Open::<T>::new(Source::open(path, options.metered())?, |header, line| {
            options.check(path, header, line)
        })?;
        let header = open.header.clone();
        let parts = header.format == Format::Coordinate
            && !header.vector
            && open.bound.is_some_and(|bound| header.entries <= bound);
        if parts {
            if !tell(Message::Start(header.clone())) {
                return Ok(());
            }
            let summary =
                open.in_parts(|part| tell(Message::Part(part)).then(|| room.try_recv().unwrap_or_default()))?;
            // Entries in both triangles must be compared with each other.
            if header.symmetry == Symmetry::General || !(summary.above && summary.below) {
                tell(Message::End);
                return Ok(());
            }
        }
    }
    tell(Message::Whole(Box::new(read_triplets(path, options)?)));
    Ok(())
}
