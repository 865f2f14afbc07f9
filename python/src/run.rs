//! Calls the library for Python: releases the interpreter's lock, responds to Ctrl-C, and uses a thread pool that is
//! still valid after `fork`.
//!
//! A process made by `fork` has the memory of its parent's thread pool, but none of its threads: a loop given to the
//! pool would never end. Therefore the process that first computes is remembered, and any other one gets a pool of its
//! own. CUDA's context does not survive `fork` at all; using it is an error.

use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use residua::Error;
use residua::work::Work;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

pyo3::create_exception!(
    residua,
    Unsupported,
    PyValueError,
    "The named method or preconditioner does not support this matrix."
);

/// With at least this number of entries a setup may take long, so a separate thread listens for Ctrl-C.
pub(crate) const LONG: usize = 20_000;

/// The longest time until a Ctrl-C is noticed.
const ATTENTION: Duration = Duration::from_millis(50);

/// The process that first computed, and the one that first opened a GPU; 0 if there is none yet.
static COMPUTED: AtomicU32 = AtomicU32::new(0);
static OPENED: AtomicU32 = AtomicU32::new(0);

/// The pool of a forked process. It is never freed, except by the end of the process.
struct Pool {
    process: u32,
    threads: rayon::ThreadPool,
}
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

/// Returns whether this process is the first one that asks `place`.
fn is_first(place: &AtomicU32) -> bool {
    let own = std::process::id();
    match place.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(first) => first == own,
    }
}

/// Returns whether a parent of this process has opened a GPU.
pub(crate) fn gpu_is_of_a_parent() -> bool {
    let first = OPENED.load(Ordering::Acquire);
    first != 0 && first != std::process::id()
}

/// Returns an error for a GPU that a parent of this process has opened; otherwise records that this process has opened
/// it.
pub(crate) fn open_gpu() -> PyResult<()> {
    if is_first(&OPENED) { Ok(()) } else { Err(forked()) }
}

pub(crate) fn forked() -> PyErr {
    PyRuntimeError::new_err(
        "this process was forked off one that uses a GPU, and CUDA does not survive fork: start it by \
         multiprocessing's 'spawn' or 'forkserver', or compute with device=\"cpu\"",
    )
}

/// The pool of this process, if it was forked from one that computed.
fn own_pool() -> PyResult<Option<&'static rayon::ThreadPool>> {
    if is_first(&COMPUTED) {
        return Ok(None);
    }
    let process = std::process::id();
    loop {
        let now = POOL.load(Ordering::Acquire);
        // SAFETY: POOL points to memory that `Box::into_raw` leaked below, so it lives as long as the process; nothing
        // writes to it.
        if let Some(pool) = unsafe { now.as_ref() }.filter(|pool| pool.process == process) {
            return Ok(Some(&pool.threads));
        }
        let threads = rayon::ThreadPoolBuilder::new().build().map_err(|error| {
            PyRuntimeError::new_err(format!("threads could not be started in a forked process: {error}"))
        })?;
        let made = Box::into_raw(Box::new(Pool { process, threads }));
        if POOL.compare_exchange(now, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: `made` came from `Box::into_raw` just now, and nothing else has seen it.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

/// Runs `body` without the interpreter's lock, on threads of this process.
///
/// # Errors
/// As for [`listening`].
pub(crate) fn detached<R: Send>(py: Python<'_>, work: &Work, body: impl FnOnce() -> R + Send) -> PyResult<R> {
    listening(py, work, false, body)
}

/// Runs `body` in the same way. Python runs signal handlers only on its first thread; if `body` may take `long`, or has
/// to run on another thread, this one waits for signals, and requests a stop of `work`.
///
/// # Errors
/// The exception of a signal handler, such as `KeyboardInterrupt`.
pub(crate) fn listening<R: Send>(
    py: Python<'_>,
    work: &Work,
    long: bool,
    body: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    let pool = own_pool()?;
    if pool.is_none() && !long {
        return Ok(py.detach(body));
    }
    py.detach(|| {
        let (sender, receiver) = sync_channel(1);
        // The receiver waits until this is sent, so that sending cannot fail.
        let body = move || drop(sender.send(body()));
        match pool {
            Some(pool) => pool.in_place_scope(|scope| {
                scope.spawn(move |_| body());
                heard(&receiver, work)
            }),
            None => std::thread::scope(|scope| {
                std::thread::Builder::new().name("residua".into()).spawn_scoped(scope, body)?;
                heard(&receiver, work)
            }),
        }
    })
}

/// Receives the result of another thread, and handles signals meanwhile.
fn heard<R>(receiver: &Receiver<R>, work: &Work) -> PyResult<R> {
    let mut raised = None;
    loop {
        match receiver.recv_timeout(ATTENTION) {
            Ok(result) => return raised.map_or(Ok(result), Err),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("a thread of residua has ended without a result"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    raised = Some(error);
                    work.stop();
                }
            }
        }
    }
}

/// Runs a setup, or a function that reads or makes a matrix, which Ctrl-C ends if it may take `long`.
///
/// # Errors
/// Those of `setup`, and the exception of a signal handler.
pub(crate) fn set_up<R: Send>(
    py: Python<'_>,
    long: bool,
    setup: impl FnOnce() -> residua::Result<R> + Send,
) -> PyResult<R> {
    let work = Work::default();
    listening(py, &work, long, || work.set_up(setup))?.map_err(raise)
}

/// The two ways to end a solve: Ctrl-C, and the caller's function.
pub(crate) struct Ear<'a> {
    observer: Option<&'a Py<PyAny>>,
    work: &'a Work,
    looked: Instant,
    raised: Option<PyErr>,
}

impl<'a> Ear<'a> {
    pub(crate) fn new(observer: Option<&'a Py<PyAny>>, work: &'a Work) -> Self {
        Self { observer, work, looked: Instant::now(), raised: None }
    }

    /// Called for an iteration; `observer(right-hand side, iteration, residual norm)` ends the solve by returning True.
    pub(crate) fn hear(&mut self, right_hand_side: usize, iteration: usize, norm: f64) -> ControlFlow<()> {
        if self.work.is_stopped() {
            return ControlFlow::Break(());
        }
        let due = self.looked.elapsed() >= ATTENTION;
        if !due && self.observer.is_none() {
            return ControlFlow::Continue(());
        }
        let told = Python::attach(|py| -> PyResult<bool> {
            if due {
                py.check_signals()?;
            }
            match self.observer {
                Some(observer) => observer.call1(py, (right_hand_side, iteration, norm))?.is_truthy(py),
                None => Ok(false),
            }
        });
        if due {
            self.looked = Instant::now();
        }
        match told {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Raises an exception that occurred meanwhile.
    pub(crate) fn check(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}

/// Converts an error of the library to Python's: `ValueError` for sizes and arguments, `OSError` for files,
/// `MemoryError` for memory, `RuntimeError` for CUDA, MPI or another process.
pub(crate) fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io { path, source } => match source.raw_os_error() {
            Some(code) => PyOSError::new_err((code, source.to_string(), path.display().to_string())),
            None => PyOSError::new_err(text),
        },
        Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        Error::Cuda(_) | Error::Mpi(_) | Error::Rank { .. } => PyRuntimeError::new_err(text),
        Error::Unsupported(_) | Error::Diagonal { .. } | Error::Block { .. } => Unsupported::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
