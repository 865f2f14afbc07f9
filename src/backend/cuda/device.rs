//! One stream of an open device: the stream, what all of its operations share, and the device's context, memory pool
//! and kernels.

use super::driver::{self, call};
use super::launch::Kernels;
use super::staging::Staging;
use super::{policy, record, streams};
use crate::error::{CudaError, Error, Result};
use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute as Attribute, CUevent, CUmemoryPool, CUresult, CUstream,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// What a chip has, as far as launches and policies need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chip {
    /// Compute capability: (9, 0) is sm_90.
    pub(super) capability: (u32, u32),
    /// The most blocks that a cluster may have; 1 where there are no clusters.
    pub(super) cluster: u32,
    pub(super) multiprocessors: u32,
    pub(super) threads_per_multiprocessor: u32,
    /// Bytes of shared memory that a block can have, where it asks for more than 48 KiB.
    pub(super) shared_a_block: u32,
}

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
    /// Freed memory stays here for the next allocation; `None` where the device has no pools.
    pool: Option<CUmemoryPool>,
    /// Those of all streams.
    pub(super) kernels: &'static Kernels,
    pub(super) staging: Mutex<Option<&'static Staging>>,
    /// For scans by look-back: compact, reduce by key and the like.
    lookback: Mutex<Workspace>,
    /// For radix sort.
    sort: Mutex<Workspace>,
    /// What products leave for a second launch.
    pieces: Mutex<Workspace>,
    /// What blocks of a product post for one another.
    posts: Mutex<Workspace>,
    /// Where blocks meet that are all resident, and the number of the next meeting.
    meetings: Mutex<Workspace>,
    next_meeting: AtomicU32,
    /// Zeroed once; see [`Device::reduction`].
    reduction: u64,
    /// Bit by bit, whether the threads of a place enqueued work that counts indices out of range, since the last
    /// synchronisation of one of them.
    checks_indices: AtomicU32,
}

// SAFETY: the driver's handles may be used from every thread (each call makes the context current first), and what
// changes is behind locks.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// Room for the partial results of reductions: blocks at most, and bytes of each.
pub(super) const PARTIALS: usize = 4096;
const PARTIAL_BYTES: usize = 16;
/// Counters of finished blocks, behind the partial results.
const TICKET_BYTES: usize = 256;

/// Memory that kernels leave ready for the next launch: zeroed when it is made, never when it is used. A larger one
/// takes its place when needed; the old one stays, because a recording may refer to it.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) address: u64,
    words: usize,
}

static DEVICES: Mutex<BTreeMap<(usize, usize), &'static Device>> = Mutex::new(BTreeMap::new());
/// The same, to look at while one more is opened.
static OPEN: RwLock<Vec<&'static Device>> = RwLock::new(Vec::new());

/// Number of devices that the driver shows.
pub(super) fn count() -> Result<usize> {
    driver::start()?;
    let mut count = 0;
    // SAFETY: the driver is started; writes one integer.
    unsafe { call!("cuda", cuDeviceGetCount(&raw mut count)) }?;
    Ok(usize::try_from(count).unwrap_or(0))
}

impl Device {
    /// The device of this number with one of its streams, opened at its first use.
    pub(super) fn open(ordinal: usize, number: usize) -> Result<&'static Device> {
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = devices.get(&(ordinal, number)) {
            return Ok(device);
        }
        let count = count()?;
        if count == 0 {
            return Err(CudaError::NoDevice.into());
        }
        if ordinal >= count {
            return Err(CudaError::NoSuchDevice { ordinal, count }.into());
        }
        let kernels = match devices.get(&(ordinal, 0)) {
            Some(first) => first.kernels,
            None => Box::leak(Box::default()),
        };
        let device = Box::leak(Box::new(Device::start(ordinal, number, kernels)?));
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

    fn start(ordinal: usize, number: usize, kernels: &'static Kernels) -> Result<Device> {
        let driver = driver::start()?;
        let place = format!("cuda:{ordinal}");
        let mut handle: CUdevice = 0;
        let (mut context, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut tail = std::ptr::null_mut();
        let mut text = [0_u8; 256];
        // SAFETY: the driver is started and the ordinal exists; each call writes what its pointer has room for.
        unsafe {
            call!(&place, cuDeviceGet(&raw mut handle, ordinal as i32))?;
            call!(&place, cuDeviceGetName(text.as_mut_ptr().cast(), 255, handle))?;
        }
        let text = String::from_utf8_lossy(&text);
        let name = format!("{} ({place})", text.trim_end_matches('\0'));
        let attribute = |which| attribute(&name, handle, which);
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let chip = Chip {
            capability,
            cluster: if capability >= (9, 0) { policy::most_in_a_cluster() } else { 1 },
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            threads_per_multiprocessor: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )?,
            shared_a_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        };
        let pools = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        // SAFETY: the primary context is kept for the life of the process. The stream does not wait for the default
        // stream, which cannot be captured. Flag 2 of an event: no timing.
        unsafe {
            call!(&name, cuDevicePrimaryCtxRetain(&raw mut context, handle))?;
            call!(&name, cuCtxSetCurrent(context))?;
            call!(&name, cuStreamCreate(&raw mut stream, 1))?;
            call!(&name, cuEventCreate(&raw mut tail, 2))?;
        }
        let pool = if pools { Some(keeping_pool(&name, handle)?) } else { None };
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
            lookback: Mutex::default(),
            sort: Mutex::default(),
            pieces: Mutex::default(),
            posts: Mutex::default(),
            meetings: Mutex::default(),
            // Slots are zero, and no meeting may have their number.
            next_meeting: AtomicU32::new(1),
            reduction: 0,
            checks_indices: AtomicU32::new(0),
        };
        let bytes = 2 * PARTIALS * PARTIAL_BYTES + 2 * TICKET_BYTES;
        device.reduction = device.allocate(bytes)?;
        // SAFETY: the allocation just made, of this size.
        unsafe { call!(&device.name, cuMemsetD8Async(device.reduction, 0, bytes, device.stream)) }?;
        Ok(device)
    }

    /// Makes the context current on this thread, as every call of the driver needs it, and what this thread enqueues next
    /// wait for what it enqueued on other streams.
    pub(super) fn bind(&self) -> Result<()> {
        // SAFETY: the context lives as long as the process.
        unsafe { call!(&self.name, cuCtxSetCurrent(self.context)) }?;
        streams::follow(self)
    }

    /// Where work goes: the device's stream, or the one that this thread records.
    pub(super) fn stream(&self) -> CUstream {
        record::current(self.ordinal).unwrap_or(self.stream)
    }

    /// The device's own stream, also while this thread records.
    pub(super) fn main_stream(&self) -> CUstream {
        self.stream
    }

    /// Memory that is not initialised.
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64> {
        self.bind()?;
        let mut result = self.try_allocate(bytes);
        if result == Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) {
            // What was freed may still wait behind work, or lie in the pool in pieces.
            self.synchronize()?;
            if let Some(pool) = self.pool {
                // SAFETY: the device's pool; what is allocated stays.
                unsafe { call!(&self.name, cuMemPoolTrimTo(pool, 0)) }?;
            }
            result = self.try_allocate(bytes);
        }
        match result {
            Ok(address) => Ok(address),
            Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                let (free, total) = self.memory()?;
                let device = format!("{} ({free} of its {total} bytes are free)", self.name);
                Err(Error::OutOfMemory { device, bytes: bytes as u64 })
            }
            Err(code) => driver::check(&self.name, "cuMemAllocAsync", code).map(|()| 0),
        }
    }

    fn try_allocate(&self, bytes: usize) -> Result<u64, CUresult> {
        let mut address = 0;
        // SAFETY: writes one address. The pool hands memory out in the order of the stream.
        let code = unsafe {
            match self.pool {
                Some(_) => sys::cuMemAllocAsync(&raw mut address, bytes, self.stream),
                None => sys::cuMemAlloc_v2(&raw mut address, bytes),
            }
        };
        if code == CUresult::CUDA_SUCCESS { Ok(address) } else { Err(code) }
    }

    /// Gives memory back, behind the work enqueued so far.
    pub(super) fn free(&self, address: u64) {
        // Errors cannot be told from here; a device that is lost tells them at its next operation.
        if self.bind().and_then(|()| streams::join(self)).is_err() {
            return;
        }
        // SAFETY: `address` came from `allocate` and its owner is being dropped. Freeing happens behind all work of the
        // device's streams, and without a pool this stream is waited for.
        unsafe {
            let _ = match self.pool {
                Some(_) => sys::cuMemFreeAsync(address, self.stream),
                None => {
                    let _ = sys::cuStreamSynchronize(self.stream);
                    sys::cuMemFree_v2(address)
                }
            };
        }
    }

    /// Free and total memory in bytes.
    pub(super) fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        self.bind()?;
        // SAFETY: writes two sizes.
        unsafe { call!(&self.name, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok((free, total))
    }

    /// The most bytes that the pool had handed out at one time.
    pub(super) fn peak(&self) -> Result<Option<usize>> {
        let Some(pool) = self.pool else { return Ok(None) };
        let mut bytes = 0_u64;
        self.bind()?;
        let which = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
        // SAFETY: the device's pool; the attribute is a 64-bit integer.
        unsafe { call!(&self.name, cuMemPoolGetAttribute(pool, which, (&raw mut bytes).cast())) }?;
        Ok(Some(bytes as usize))
    }

    pub(super) fn forget_peak(&self) -> Result<()> {
        let Some(pool) = self.pool else { return Ok(()) };
        let mut zero = 0_u64;
        self.synchronize()?;
        let which = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
        // SAFETY: as above; zero is the only value that may be set.
        unsafe { call!(&self.name, cuMemPoolSetAttribute(pool, which, (&raw mut zero).cast())) }
    }

    /// Partial results ([`PARTIALS`] of 16 bytes) and, behind them, counters that every kernel leaves at zero. All
    /// reductions share them: they follow one another on the one stream.
    pub(super) fn reduction(&self) -> (u64, u64) {
        (self.reduction, self.reduction + (PARTIALS * PARTIAL_BYTES) as u64)
    }

    /// The workspace of `kernels/reduce.cu`: as many partial results, behind a header that it leaves at zero.
    pub(super) fn reduce_workspace(&self) -> u64 {
        self.reduction + (PARTIALS * PARTIAL_BYTES + TICKET_BYTES) as u64
    }

    /// The look-back workspace, for `words` words behind its header (`kernels/README.md`).
    pub(super) fn lookback(&self, words: usize) -> Result<MutexGuard<'_, Workspace>> {
        const HEADER: usize = 4;
        let mut workspace = self.lookback.lock().unwrap_or_else(PoisonError::into_inner);
        if self.grow(&mut workspace, HEADER + words)? {
            let count = (workspace.words - HEADER) as u64;
            // SAFETY: the fourth word of the header lies inside; eight bytes of pageable memory are read at once.
            unsafe {
                let from = (&raw const count).cast();
                call!(&self.name, cuMemcpyHtoDAsync_v2(workspace.address + 24, from, 8, self.stream))
            }?;
        }
        Ok(workspace)
    }

    /// The workspace of radix sort, of `words` words.
    pub(super) fn sort_workspace(&self, words: usize) -> Result<MutexGuard<'_, Workspace>> {
        let mut workspace = self.sort.lock().unwrap_or_else(PoisonError::into_inner);
        self.grow(&mut workspace, words)?;
        Ok(workspace)
    }

    /// Room for `count` sums of up to 16 bytes each, for products that leave pieces of rows or parts of sums for a second
    /// launch behind them: the guard and the address.
    pub(super) fn pieces(&self, count: usize) -> Result<(MutexGuard<'_, Workspace>, u64)> {
        let mut workspace = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        self.grow(&mut workspace, 2 * count)?;
        let address = workspace.address;
        Ok((workspace, address))
    }

    /// `words` words that are zero and that each launch leaves at zero: the guard and the address.
    pub(super) fn posts(&self, words: usize) -> Result<(MutexGuard<'_, Workspace>, u64)> {
        let mut workspace = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
        self.grow(&mut workspace, words)?;
        let address = workspace.address;
        Ok((workspace, address))
    }

    /// The address of `words` words that were zero once and belong to meetings of blocks, and the number of the first of
    /// `count` meetings: no two of this stream have the same, of 2^32 in a row.
    pub(super) fn meetings(&self, words: usize, count: u32) -> Result<(u64, u32)> {
        let mut workspace = self.meetings.lock().unwrap_or_else(PoisonError::into_inner);
        self.grow(&mut workspace, words)?;
        Ok((workspace.address, self.next_meeting.fetch_add(count, Ordering::Relaxed)))
    }

    /// Whether a new one had to be made.
    fn grow(&self, workspace: &mut Workspace, words: usize) -> Result<bool> {
        if workspace.words >= words {
            return Ok(false);
        }
        let words = words.max(2 * workspace.words).max(1 << 14);
        let address = self.allocate(words * 8)?;
        // SAFETY: the allocation just made, over its whole length.
        unsafe { call!(&self.name, cuMemsetD8Async(address, 0, words * 8, self.stream)) }?;
        *workspace = Workspace { address, words };
        Ok(true)
    }

    /// Where kernels count indices out of range, to be told by this thread's next synchronisation.
    pub(super) fn misses(&self) -> u64 {
        let place = place_of_thread();
        self.checks_indices.fetch_or(1 << place, Ordering::Relaxed);
        self.misses_of(place)
    }

    fn misses_of(&self, place: u32) -> u64 {
        self.reduction + (PARTIALS * PARTIAL_BYTES + TICKET_BYTES / 2) as u64 + 4 * u64::from(place)
    }

    /// As [`Device::synchronize`], and an error where an index of this thread's lay out of range since the last time.
    pub(super) fn synchronize_and_check(&self) -> Result<()> {
        self.synchronize()?;
        let place = place_of_thread();
        if self.checks_indices.fetch_and(!(1 << place), Ordering::Relaxed) & 1 << place == 0 {
            return Ok(());
        }
        let (mut count, address) = (0_u32, self.misses_of(place));
        // SAFETY: four bytes of the shared buffer, read and cleared behind all work.
        unsafe {
            call!(&self.name, cuMemcpyDtoHAsync_v2((&raw mut count).cast(), address, 4, self.stream))?;
            call!(&self.name, cuMemsetD8Async(address, 0, 4, self.stream))?;
        }
        self.synchronize()?;
        match count {
            0 => Ok(()),
            count => Err(Error::InvalidArgument(format!(
                "{count} indices of a gather or scatter lie out of range"
            ))),
        }
    }

    /// Recorded work may check indices at every replay.
    pub(super) fn note_replay(&self) {
        self.checks_indices.fetch_or(1 << place_of_thread(), Ordering::Relaxed);
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

/// One of 32 places for this thread's counts, so that threads hear of their own errors.
fn place_of_thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static PLACE: u32 = NEXT.fetch_add(1, Ordering::Relaxed) % 32);
    PLACE.with(|place| *place)
}

fn attribute(name: &str, device: CUdevice, which: Attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: writes one integer.
    unsafe { call!(name, cuDeviceGetAttribute(&raw mut value, which, device)) }?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// The device's pool, told to keep freed memory for the next allocation: asking the system costs a hundred times more.
fn keeping_pool(name: &str, device: CUdevice) -> Result<CUmemoryPool> {
    let mut pool = std::ptr::null_mut();
    let mut threshold = u64::MAX;
    // SAFETY: writes one handle; the attribute is a 64-bit integer.
    unsafe {
        call!(name, cuDeviceGetDefaultMemPool(&raw mut pool, device))?;
        call!(
            name,
            cuMemPoolSetAttribute(
                pool,
                sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut threshold).cast()
            )
        )?;
    }
    Ok(pool)
}

/// Name and total memory of a device, without opening it.
pub(super) fn describe(ordinal: usize) -> Result<(String, u64, (u32, u32))> {
    let mut handle: CUdevice = 0;
    let mut text = [0_u8; 256];
    let mut bytes = 0;
    let place = format!("cuda:{ordinal}");
    // SAFETY: each call writes what its pointer has room for.
    unsafe {
        call!(&place, cuDeviceGet(&raw mut handle, ordinal as i32))?;
        call!(&place, cuDeviceGetName(text.as_mut_ptr().cast(), 255, handle))?;
        call!(&place, cuDeviceTotalMem_v2(&raw mut bytes, handle))?;
    }
    let capability = (
        attribute(&place, handle, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(&place, handle, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    Ok((String::from_utf8_lossy(&text).trim_end_matches('\0').to_string(), bytes as u64, capability))
}
