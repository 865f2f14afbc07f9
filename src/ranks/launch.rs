//! Starts the ranks of this machine, and monitors them: if one fails or dies, the others are ended, with one message.

use super::message::Message;
use super::window::Window;
use crate::error::{Error, Result};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The version, which all ranks must share.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The variable with a rank's number, the number of ranks, and the socket.
pub(super) const ENVIRONMENT: &str = "RESIDUA_RANK";

/// The time in which all ranks must begin.
const TO_BEGIN: Duration = Duration::from_secs(60);

/// The time in which ranks must end after one has failed, or after closing their socket.
const TO_END: Duration = Duration::from_secs(2);

/// How long a process may stay stopped (SIGSTOP) after a stop request of the user.
const TO_GO_ON: Duration = Duration::from_millis(500);

/// The interval at which the starting process checks its ranks.
const TICK: Duration = Duration::from_millis(20);

/// Starts `ranks` processes with the command that `command` returns for each rank, and waits until all have ended.
/// Returns the exit status of each ([`Group::leave`](super::Group::leave)). `interrupted` is called repeatedly; once it
/// returns true, the ranks are informed ([`Group::interrupted`](super::Group::interrupted)).
///
/// Each process joins the group with [`Group::from_environment`](super::Group::from_environment). Unless
/// `RAYON_NUM_THREADS` is set, the processors are divided among them.
///
/// # Errors
/// [`Error::Rank`] with the rank that failed first, died or did not begin; all others have then ended.
pub fn launch(
    ranks: usize,
    command: impl FnMut(usize) -> Command,
    interrupted: impl Fn() -> bool,
) -> Result<Vec<u8>> {
    let place = Place::new()?;
    let listener = UnixListener::bind(place.socket()).map_err(|source| place.io(source))?;
    listener.set_nonblocking(true).map_err(|source| place.io(source))?;
    let mut started = Started { ranks, children: Vec::new(), streams: Vec::new(), window: None };
    let ended = started.run(&place, &listener, command, &interrupted);
    if let Err(Error::Rank { rank, cause, .. }) = &ended {
        started.tell_all(&Message::Fault(*rank, cause.clone()));
    }
    let left = started.end(ended.is_err(), &interrupted);
    ended.and_then(|statuses| left.map(|()| statuses))
}

/// A folder that only this user can access, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("residua-ranks-{}-{number}", std::process::id()));
        let place = Self(path);
        let _ = std::fs::remove_dir_all(&place.0);
        std::fs::create_dir(&place.0).map_err(|source| place.io(source))?;
        let only_us = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&place.0, only_us).map_err(|source| place.io(source))?;
        Ok(place)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.0.clone(), source }
    }
}

impl Place {
    fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A message of a rank, or none if it has closed its socket.
type Said = (usize, Option<Message>);

/// The processes that were started as ranks, and the connections to them.
struct Started {
    ranks: usize,
    children: Vec<Child>,
    /// The sockets by rank, once all have begun.
    streams: Vec<Option<UnixStream>>,
    window: Option<PathBuf>,
}

impl Started {
    fn run(
        &mut self,
        place: &Place,
        listener: &UnixListener,
        mut command: impl FnMut(usize) -> Command,
        interrupted: &impl Fn() -> bool,
    ) -> Result<Vec<u8>> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = (processors / self.ranks).max(1).to_string();
        for rank in 0..self.ranks {
            let mut command = command(rank);
            command.env(ENVIRONMENT, format!("{rank}/{}/{}", self.ranks, place.socket().display()));
            if std::env::var_os("RAYON_NUM_THREADS").is_none() {
                command.env("RAYON_NUM_THREADS", &threads);
            }
            let child = command.spawn();
            self.children
                .push(child.map_err(|error| self.error(rank, format!("could not be started: {error}")))?);
        }
        self.greet(listener, interrupted)?;
        // Removed before the ranks work, so that nothing remains however this process ends.
        place.remove();
        let window = self.window.insert(Window::create(self.ranks)?).display().to_string();
        self.tell_all(&Message::Welcome(window));
        let (voices, said) = channel();
        self.listen(&voices)?;
        drop(voices);
        self.watch(&said, interrupted)
    }

    /// Waits until all ranks have connected and given their number.
    fn greet(&mut self, listener: &UnixListener, interrupted: &impl Fn() -> bool) -> Result<()> {
        let start = Instant::now();
        self.streams = (0..self.ranks).map(|_| None).collect();
        while let Some(missing) = self.streams.iter().position(Option::is_none) {
            if let Ok((stream, _)) = listener.accept() {
                let ready =
                    stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(TO_END)));
                let hello = ready.and_then(|()| Message::receive(&stream));
                // A connection that says anything else is not one of the ranks.
                let Ok(Message::Hello(rank, version)) = hello else { continue };
                if version != VERSION {
                    return Err(self.error(
                        rank,
                        format!("runs residua {version}, but was started by residua {VERSION}"),
                    ));
                }
                if stream.set_read_timeout(None).is_ok() && rank < self.ranks {
                    self.streams[rank] = Some(stream);
                }
                continue;
            }
            for (rank, child) in self.children.iter_mut().enumerate() {
                if let Ok(Some(status)) = child.try_wait() {
                    return Err(self.error(rank, how(status)));
                }
            }
            if interrupted() {
                return Err(Error::Stopped);
            }
            if start.elapsed() > TO_BEGIN {
                let waited = TO_BEGIN.as_secs();
                return Err(self.error(missing, format!("has not started within {waited} s")));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Starts a thread for each rank that receives its messages.
    fn listen(&self, voices: &Sender<Said>) -> Result<()> {
        for (rank, stream) in self.streams.iter().enumerate() {
            let Some(stream) = stream else { continue };
            let told = |source: std::io::Error| self.error(rank, source.to_string());
            let (stream, voices) = (stream.try_clone().map_err(told)?, voices.clone());
            let listen = move || loop {
                let message = Message::receive(&stream).ok();
                let over = message.is_none();
                if voices.send((rank, message)).is_err() || over {
                    return;
                }
            };
            thread::Builder::new().spawn(listen).map_err(told)?;
        }
        Ok(())
    }

    /// Handles messages until all ranks have left, or one has failed.
    fn watch(&mut self, said: &Receiver<Said>, interrupted: &impl Fn() -> bool) -> Result<Vec<u8>> {
        let (mut statuses, mut ready) = (vec![None; self.ranks], 0);
        let mut told: Option<Instant> = None;
        while statuses.iter().any(Option::is_none) {
            match told {
                None if interrupted() => {
                    told = Some(Instant::now());
                    self.tell_all(&Message::Interrupt);
                }
                Some(since) if since.elapsed() > TO_GO_ON => self.check_running()?,
                _ => {}
            }
            match said.recv_timeout(TICK) {
                Ok((_, Some(Message::Ready))) => {
                    ready += 1;
                    if ready == self.ranks {
                        self.forget_window();
                    }
                }
                Ok((rank, Some(Message::Bye(status)))) => statuses[rank] = Some(status),
                Ok((_, Some(Message::Fault(rank, cause)))) => return Err(self.error(rank, cause)),
                Ok((rank, None)) if statuses[rank].is_none() => {
                    let status = self.last(rank);
                    return Err(self.error(rank, status));
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(statuses.into_iter().map(|status| status.unwrap_or(3)).collect())
    }

    /// Returns an error for a stopped process, which would never end.
    fn check_running(&self) -> Result<()> {
        match self.children.iter().position(|child| is_stopped(child.id())) {
            Some(rank) => {
                Err(self.error(rank, "is suspended, so it cannot react to the user's request to end".into()))
            }
            None => Ok(()),
        }
    }

    /// Returns how a rank that has closed its socket ended.
    fn last(&mut self, rank: usize) -> String {
        let start = Instant::now();
        while start.elapsed() < TO_END {
            if let Ok(Some(status)) = self.children[rank].try_wait() {
                return how(status);
            }
            thread::sleep(Duration::from_millis(1));
        }
        "has closed its socket".into()
    }

    /// Sends a message to all ranks that are still connected.
    fn tell_all(&self, message: &Message) {
        for stream in self.streams.iter().flatten() {
            let _ = message.send(stream);
        }
    }

    /// Waits for the processes to end; not for long after a failure, and not for a stopped one after a stop request.
    fn end(&mut self, failed: bool, interrupted: &impl Fn() -> bool) -> Result<()> {
        let start = Instant::now();
        self.forget_window();
        let mut left = Ok(());
        for (rank, child) in self.children.iter_mut().enumerate() {
            while matches!(child.try_wait(), Ok(None)) {
                let late = failed && start.elapsed() >= TO_END;
                let stopped =
                    start.elapsed() >= TO_GO_ON && (failed || interrupted()) && is_stopped(child.id());
                if late || stopped {
                    let _ = child.kill();
                    let _ = child.wait();
                    let cause = "was suspended, and was killed".to_string();
                    left = Err(Error::Rank { rank, ranks: self.ranks, cause });
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
        left
    }

    /// Removes the name of the window: the ranks have it open, and nothing remains however they end.
    fn forget_window(&mut self) {
        if let Some(path) = self.window.take() {
            let _ = std::fs::remove_file::<&Path>(&path);
        }
    }

    fn error(&self, rank: usize, cause: String) -> Error {
        Error::Rank { rank, ranks: self.ranks, cause }
    }
}

/// Returns whether a process is stopped, if the system reports that in a file.
fn is_stopped(process: u32) -> bool {
    let told = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The file has the process number, the name in parentheses and the state. The name may itself have parentheses.
    told.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// A description of how a process has ended.
fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) => format!("ended with status {code} before its work was done"),
        (None, None) => "ended before its work was done".into(),
    }
}
