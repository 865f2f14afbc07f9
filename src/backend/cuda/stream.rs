//! One stream of an open device with the device's context, and the ordering between streams.
//!
//! Work in one stream runs in the order of calls. The device doesn't order the work of different streams, so that is
//! done here:
//!
//! - Work that a thread enqueues on one stream waits for the work that this thread enqueued earlier on another. A
//!   thread's first work on a device waits for that of all streams.
//! - Memory is freed after the work of all streams.

use super::capture;
use super::chip::{self, Chip};
use super::compile::packed_kernels;
use super::driver::{self, call};
use super::pool::{Pool, Usage};
use crate::error::Result;
use cudarc::driver::sys::{self, CUcontext, CUdevice_attribute as Attribute, CUevent, CUresult, CUstream};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;

/// A stream. It exists for the rest of the process.
pub(super) struct Stream {
    pub(super) ordinal: usize,
    /// The number of the stream on its device: 0 is the shared one, the others are those of
    /// [`Cuda::side_by_side`](super::Cuda).
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) chip: Chip,
    pub(super) driver: i32,
    pub(super) pool: Pool,
    context: CUcontext,
    stream: CUstream,
    /// An event that is recorded after the stream's work, and for which other streams can wait.
    tail: CUevent,
}

// SAFETY: the driver's handles may be used from every thread (each call makes the context current first), and locks
// guard all state that changes.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

/// The streams of all devices.
static OPEN: RwLock<Vec<&'static Stream>> = RwLock::new(Vec::new());

/// True if a device has more than one stream. Until then, ordering costs nothing.
static SEVERAL: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The device and stream of this thread's last work.
    static LAST: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

impl Stream {
    /// Opens another stream of a device.
    pub(super) fn open(ordinal: usize, number: usize, usage: &'static Usage) -> Result<&'static Stream> {
        let stream: &_ = Box::leak(Box::new(Self::start(ordinal, number, usage)?));
        if number > 0 {
            SEVERAL.store(true, Ordering::Release);
        }
        OPEN.write().unwrap_or_else(PoisonError::into_inner).push(stream);
        Ok(stream)
    }

    fn start(ordinal: usize, number: usize, usage: &'static Usage) -> Result<Stream> {
        let driver = driver::start()?;
        let (handle, name) = chip::identify(ordinal)?;
        let name = format!("{name} (cuda:{ordinal})");
        let chip = Chip::of(&name, handle)?;
        // The archive of kernels is read while the context is created, which takes longer. If no thread can be started,
        // the first kernel waits for it.
        let read = move || drop(packed_kernels(chip.capability));
        let _ = thread::Builder::new().name("residua kernels".into()).spawn(read);
        let pools =
            chip::attribute(&name, handle, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        let (mut context, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut tail = std::ptr::null_mut();
        // SAFETY: the primary context is kept as long as the process lives. The stream does not wait for the default
        // stream, which cannot be captured. Flag 2 turns the event's timing off.
        unsafe {
            call!(&name, cuDevicePrimaryCtxRetain(&raw mut context, handle))?;
            call!(&name, cuCtxSetCurrent(context))?;
            call!(&name, cuStreamCreate(&raw mut stream, 1))?;
            call!(&name, cuEventCreate(&raw mut tail, 2))?;
        }
        let pool = Pool::new(&name, handle, pools, usage)?;
        Ok(Stream { ordinal, number, name, chip, driver, pool, context, stream, tail })
    }

    /// Returns the device's other open streams.
    pub(super) fn others(&self) -> Vec<&'static Stream> {
        let open = OPEN.read().unwrap_or_else(PoisonError::into_inner);
        let beside = |other: &&&Stream| other.ordinal == self.ordinal && other.number != self.number;
        open.iter().filter(beside).copied().collect()
    }

    /// Makes later work of this stream wait for the work that the other stream has so far.
    fn wait_for(&self, other: &Stream) -> Result<()> {
        // SAFETY: the event and the streams live as long as the process. If another thread records the event in
        // between, this stream only waits longer than necessary.
        unsafe {
            call!(&self.name, cuEventRecord(other.tail, other.stream))?;
            call!(&self.name, cuStreamWaitEvent(self.stream, other.tail, 0))
        }
    }

    /// Makes the context current on this thread, as every call of the driver requires. Also makes the work that this
    /// thread enqueues next wait for its earlier work on other streams.
    pub(super) fn bind(&self) -> Result<()> {
        self.enter()?;
        if !SEVERAL.load(Ordering::Acquire) {
            return Ok(());
        }
        let here = (self.ordinal, self.number);
        let last = LAST.replace(Some(here));
        if last == Some(here) {
            return Ok(());
        }
        let behind =
            |other: &&Stream| last.is_none_or(|last| last.0 != self.ordinal || last.1 == other.number);
        self.others().into_iter().filter(behind).try_for_each(|other| self.wait_for(other))
    }

    /// Makes the work that is enqueued next wait for the work of all of the device's streams.
    pub(super) fn join(&self) -> Result<()> {
        if !SEVERAL.load(Ordering::Acquire) {
            return Ok(());
        }
        self.others().into_iter().try_for_each(|other| self.wait_for(other))
    }

    /// Makes the context current on this thread, for calls that enqueue nothing.
    pub(super) fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as the process.
        unsafe { call!(&self.name, cuCtxSetCurrent(self.context)) }
    }

    /// Returns the stream for new work: this one, or that of this thread's recording.
    pub(super) fn stream(&self) -> CUstream {
        capture::stream(self.ordinal).unwrap_or(self.stream)
    }

    /// Returns this stream itself, even while the thread records.
    pub(super) fn main_stream(&self) -> CUstream {
        self.stream
    }

    /// Waits for all work of the stream, and returns an error if any of it failed.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the stream lives as long as the process.
        unsafe { call!(&self.name, cuStreamSynchronize(self.stream)) }
    }

    /// Returns whether the stream has finished all its work, or the error if it failed.
    pub(super) fn idle(&self) -> Result<bool> {
        self.bind()?;
        // SAFETY: as above.
        match unsafe { sys::cuStreamQuery(self.stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => driver::check(&self.name, "cuStreamQuery", code).map(|()| true),
        }
    }
}
