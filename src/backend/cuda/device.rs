//! One stream of an open device: the stream, what all of its operations share, and the device's context and kernels.

use super::chip::{self, Chip};
use super::driver::{self, call};
use super::loaded::Kernels;
use super::pool::{Pool, Usage};
use super::staging::Staging;
use super::workspace::Workspaces;
use super::{record, streams};
use crate::error::{CudaError, Result};
use cudarc::driver::sys::{self, CUcontext, CUdevice_attribute as Attribute, CUevent, CUresult, CUstream};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, PoisonError, RwLock};

/// An open device with one of its streams. There is one a process, device and stream, for the life of the process: every
/// handle of it shares its stream, so that whatever buffers meet in an operation, the order of calls is the order of
/// execution.
pub(super) struct Device {
    pub(super) ordinal: usize,
    /// Which of the device's streams: 0 is everybody's, the others are those of [`Cuda::side_by_side`](super::Cuda).
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) chip: Chip,
    pub(super) driver: i32,
    context: CUcontext,
    stream: CUstream,
    /// Recorded behind the stream's work for other streams to wait for.
    tail: CUevent,
    pub(super) pool: Pool,
    /// Those of all streams.
    pub(super) kernels: &'static Kernels,
    pub(super) staging: Mutex<Option<&'static Staging>>,
    pub(super) workspaces: Workspaces,
    /// Bit by bit, whether the threads of a place enqueued work that counts indices out of range, since the last
    /// synchronisation of one of them.
    pub(super) checks_indices: AtomicU32,
}

// SAFETY: the driver's handles may be used from every thread (each call makes the context current first), and what
// changes is behind locks.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

static DEVICES: Mutex<BTreeMap<(usize, usize), &'static Device>> = Mutex::new(BTreeMap::new());
/// The same, to look at while one more is opened.
static OPEN: RwLock<Vec<&'static Device>> = RwLock::new(Vec::new());

impl Device {
    /// The device of this number with one of its streams, opened at its first use.
    pub(super) fn open(ordinal: usize, number: usize) -> Result<&'static Device> {
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = devices.get(&(ordinal, number)) {
            return Ok(device);
        }
        let count = chip::count()?;
        if count == 0 {
            return Err(CudaError::NoDevice.into());
        }
        if ordinal >= count {
            return Err(CudaError::NoSuchDevice { ordinal, count }.into());
        }
        let shared: (&Kernels, &Usage) = match devices.get(&(ordinal, 0)) {
            Some(first) => (first.kernels, first.pool.usage),
            None => (Box::leak(Box::default()), Box::leak(Box::default())),
        };
        let device = Box::leak(Box::new(Device::start(ordinal, number, shared)?));
        devices.insert((ordinal, number), device);
        OPEN.write().unwrap_or_else(PoisonError::into_inner).push(device);
        Ok(device)
    }

    /// The device's other streams that are open.
    pub(super) fn others(&self) -> Vec<&'static Device> {
        let open = OPEN.read().unwrap_or_else(PoisonError::into_inner);
        let beside = |other: &&&Device| other.ordinal == self.ordinal && other.number != self.number;
        open.iter().filter(beside).copied().collect()
    }

    /// Lets later work of this stream begin when the other's work up to now has ended.
    pub(super) fn wait_for(&self, other: &Device) -> Result<()> {
        // SAFETY: event and streams live as long as the process. Where another thread records the event in between, this
        // stream waits for more than it has to.
        unsafe {
            call!(&self.name, cuEventRecord(other.tail, other.stream))?;
            call!(&self.name, cuStreamWaitEvent(self.stream, other.tail, 0))
        }
    }

    fn start(
        ordinal: usize,
        number: usize,
        (kernels, usage): (&'static Kernels, &'static Usage),
    ) -> Result<Device> {
        let driver = driver::start()?;
        let (handle, name) = chip::identify(ordinal)?;
        let name = format!("{name} (cuda:{ordinal})");
        let chip = Chip::of(&name, handle)?;
        let pools =
            chip::attribute(&name, handle, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        let (mut context, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut tail = std::ptr::null_mut();
        // SAFETY: the primary context is kept for the life of the process. The stream does not wait for the default
        // stream, which cannot be captured. Flag 2 of an event: no timing.
        unsafe {
            call!(&name, cuDevicePrimaryCtxRetain(&raw mut context, handle))?;
            call!(&name, cuCtxSetCurrent(context))?;
            call!(&name, cuStreamCreate(&raw mut stream, 1))?;
            call!(&name, cuEventCreate(&raw mut tail, 2))?;
        }
        let pool = Pool::new(&name, handle, pools, usage)?;
        let mut device = Device {
            ordinal,
            number,
            name,
            chip,
            driver,
            context,
            stream,
            tail,
            pool,
            kernels,
            staging: Mutex::default(),
            workspaces: Workspaces::default(),
            checks_indices: AtomicU32::new(0),
        };
        device.prepare_reductions()?;
        Ok(device)
    }

    /// Makes the context current on this thread, as every call of the driver needs it, and what this thread enqueues next
    /// wait for what it enqueued on other streams.
    pub(super) fn bind(&self) -> Result<()> {
        self.enter()?;
        streams::follow(self)
    }

    /// Makes the context current on this thread, for calls that enqueue nothing.
    pub(super) fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as the process.
        unsafe { call!(&self.name, cuCtxSetCurrent(self.context)) }
    }

    /// Where work goes: the device's stream, or the one that this thread records.
    pub(super) fn stream(&self) -> CUstream {
        record::current(self.ordinal).unwrap_or(self.stream)
    }

    /// The device's own stream, also while this thread records.
    pub(super) fn main_stream(&self) -> CUstream {
        self.stream
    }

    /// Waits for all work of the stream and tells what failed in it.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the stream lives as long as the device.
        unsafe { call!(&self.name, cuStreamSynchronize(self.stream)) }
    }

    /// Whether the stream has nothing left to do; an error where it failed.
    pub(super) fn idle(&self) -> Result<bool> {
        self.bind()?;
        // SAFETY: as above.
        match unsafe { sys::cuStreamQuery(self.stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => driver::check(&self.name, "cuStreamQuery", code).map(|()| true),
        }
    }
}
