//! A rank's connection to the process that started it.

use super::fault::Fault;
use super::launch::VERSION;
use super::message::Message;
use crate::error::{Error, Result};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How long a rank whose starting process has died may take to notice by itself, before it is ended.
const GRACE: Duration = Duration::from_secs(2);

/// The socket, and whether the user has asked to stop.
#[derive(Debug)]
pub(super) struct Member {
    stream: UnixStream,
    interrupted: Arc<AtomicBool>,
}

impl Member {
    /// Tells the starting process that this rank runs, and waits for the name of the window's file.
    ///
    /// # Errors
    /// If the starting process has died, or a rank has failed.
    pub(super) fn begin(socket: &Path, rank: usize, ranks: usize) -> Result<(UnixStream, String)> {
        let told = |source| Error::Io { path: socket.to_path_buf(), source };
        let stream = UnixStream::connect(socket).map_err(told)?;
        Message::Hello(rank, VERSION.into()).send(&stream).map_err(told)?;
        match Message::receive(&stream).map_err(told)? {
            Message::Welcome(path) => Ok((stream, path)),
            Message::Fault(rank, cause) => Err(Error::Rank { rank, ranks, cause }),
            other => Err(Error::InvalidArgument(format!(
                "{}: the first message must be a welcome, but was {other:?}",
                socket.display()
            ))),
        }
    }

    /// Starts to receive messages of the starting process.
    ///
    /// # Errors
    /// If the starting process has died.
    pub(super) fn listen(stream: UnixStream, ranks: usize, fault: &Arc<Fault>) -> Result<Self> {
        let told = |source| Error::Io { path: "socket of the ranks".into(), source };
        Message::Ready.send(&stream).map_err(told)?;
        let ear = stream.try_clone().map_err(told)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let (flag, fault) = (Arc::clone(&interrupted), Arc::clone(fault));
        let listen = move || loop {
            match Message::receive(&ear) {
                Ok(Message::Interrupt) => flag.store(true, Ordering::Relaxed),
                Ok(Message::Fault(rank, cause)) => fault.set(rank, ranks, &cause),
                Ok(_) => {}
                Err(_) => {
                    fault.set(0, ranks, "the process that started the ranks has ended");
                    thread::sleep(GRACE);
                    std::process::exit(3);
                }
            }
        };
        thread::Builder::new().name("residua ranks".into()).spawn(listen).map_err(told)?;
        Ok(Self { stream, interrupted })
    }

    /// Returns whether the user has asked to stop.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Sends a message to the starting process, if it is still there.
    pub(super) fn tell(&self, message: &Message) {
        let _ = message.send(&self.stream);
    }
}
