//! Copies between host and device. The driver copies pageable memory slowly, through a small buffer of its own; large
//! copies go through a ring of pinned buffers here: while one is filled (or emptied), others travel.

use super::device::Device;
use super::driver::call;
use crate::error::Result;
use crate::parallel::prelude::*;
use cudarc::driver::sys::CUevent;
use std::sync::PoisonError;

/// Up to here the driver's own path to the device is as fast and returns at once.
const DIRECT: usize = 64 << 10;
/// Bytes of one pinned buffer, and how many there are.
const CHUNK: usize = 4 << 20;
const BUFFERS: usize = 4;
/// Bytes that one task moves between pageable and pinned memory.
const PIECE: usize = 128 << 10;

/// Pinned buffers, each with an event that tells when its copy has ended.
pub(super) struct Staging {
    buffers: [(*mut u8, CUevent); BUFFERS],
    /// The buffer that was used longest ago.
    next: usize,
}

// SAFETY: pinned memory and events belong to the process, not to a thread; a lock guards their use.
unsafe impl Send for Staging {}

impl Staging {
    fn new(device: &Device) -> Result<Self> {
        let mut buffers = [(std::ptr::null_mut(), std::ptr::null_mut()); BUFFERS];
        for (buffer, event) in &mut buffers {
            let mut memory = std::ptr::null_mut();
            // SAFETY: each call writes one handle. Flag 2 of an event: no timing. They live as long as the process.
            unsafe {
                call!(&device.name, cuMemHostAlloc(&raw mut memory, CHUNK, 0))?;
                call!(&device.name, cuEventCreate(event, 2))?;
            }
            *buffer = memory.cast();
        }
        Ok(Staging { buffers, next: 0 })
    }

    /// The next buffer in turn, also over several copies: a file's reading makes many, each of one buffer.
    fn take(&mut self) -> (*mut u8, CUevent) {
        let taken = self.buffers[self.next];
        self.next = (self.next + 1) % BUFFERS;
        taken
    }
}

fn with_staging<R>(device: &Device, body: impl FnOnce(&mut Staging) -> Result<R>) -> Result<R> {
    let mut staging = device.staging.lock().unwrap_or_else(PoisonError::into_inner);
    let staging = match &mut *staging {
        Some(staging) => staging,
        none => none.insert(Staging::new(device)?),
    };
    body(staging)
}

/// Copies within host memory; by all threads where `shared`.
///
/// # Safety
/// `from` is readable and `to` writable for `bytes`, and they do not overlap.
unsafe fn copy_on_host(from: *const u8, to: *mut u8, bytes: usize, shared: bool) {
    // SAFETY: by the caller.
    let (from, to) =
        unsafe { (std::slice::from_raw_parts(from, bytes), std::slice::from_raw_parts_mut(to, bytes)) };
    if !shared {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| to.copy_from_slice(from));
}

/// Host to device. On return the host memory may be reused; the copy itself takes its turn in the stream.
///
/// # Safety
/// `from` is readable for `bytes`, and `to` is a device allocation with as many.
pub(super) unsafe fn to_device(device: &Device, from: *const u8, to: u64, bytes: usize) -> Result<()> {
    device.bind()?;
    let (name, stream) = (&device.name, device.main_stream());
    if bytes <= DIRECT {
        // SAFETY: by the caller; the driver has read pageable memory when it returns.
        return unsafe { call!(name, cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, stream)) };
    }
    // Threads that parse a file have better to do than to take part in the copy of what they parsed.
    let shared = bytes > CHUNK;
    with_staging(device, |staging| {
        for start in (0..bytes).step_by(CHUNK) {
            let (buffer, event) = staging.take();
            let length = CHUNK.min(bytes - start);
            // SAFETY: the buffer's last copy has ended when its event has; offsets stay below `bytes`.
            unsafe {
                call!(name, cuEventSynchronize(event))?;
                copy_on_host(from.add(start), buffer, length, shared);
                call!(name, cuMemcpyHtoDAsync_v2(to + start as u64, buffer.cast(), length, stream))?;
                call!(name, cuEventRecord(event, stream))?;
            }
        }
        Ok(())
    })
}

/// Waits for a chunk on its way to the host (buffer, event, place and length) and copies it to its place.
///
/// # Safety
/// `to` is writable for the chunk's end.
unsafe fn arrive(
    name: &str,
    (buffer, event, start, length): (*mut u8, CUevent, usize, usize),
    to: *mut u8,
) -> Result<()> {
    // SAFETY: the copy into the buffer has ended when its event has.
    unsafe {
        call!(name, cuEventSynchronize(event))?;
        copy_on_host(buffer, to.add(start), length, length == CHUNK);
    }
    Ok(())
}

/// Device to host; returns when the bytes are there.
///
/// # Safety
/// `to` is writable for `bytes`, and `from` is a device allocation with as many.
pub(super) unsafe fn to_host(device: &Device, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
    device.bind()?;
    let (name, stream) = (&device.name, device.main_stream());
    with_staging(device, |staging| {
        if bytes <= DIRECT {
            // A scalar that a solver waits for comes sooner by way of pinned memory.
            let buffer = staging.buffers[0].0;
            // SAFETY: by the caller; the buffer has room, copies into and out of it are in the order of the one stream,
            // and this one is over before it is read.
            unsafe {
                call!(name, cuMemcpyDtoHAsync_v2(buffer.cast(), from, bytes, stream))?;
                device.synchronize()?;
                std::ptr::copy_nonoverlapping(buffer, to, bytes);
            }
            return Ok(());
        }
        let mut on_the_way = None;
        for start in (0..bytes).step_by(CHUNK) {
            let (buffer, event) = staging.take();
            let length = CHUNK.min(bytes - start);
            // SAFETY: the buffer was emptied two rounds ago, or its last copy to the device precedes this one in the stream.
            unsafe {
                call!(name, cuMemcpyDtoHAsync_v2(buffer.cast(), from + start as u64, length, stream))?;
                call!(name, cuEventRecord(event, stream))?;
            }
            if let Some(arriving) = on_the_way.replace((buffer, event, start, length)) {
                // SAFETY: by the caller, `to` has room for all chunks.
                unsafe { arrive(name, arriving, to)? };
            }
        }
        // SAFETY: as above.
        on_the_way.map_or(Ok(()), |arriving| unsafe { arrive(name, arriving, to) })
    })
}

/// Gigabytes a second of a copy within the device's memory, reading and writing counted: the speed against which
/// kernels are judged. Takes two buffers of `bytes`.
pub(super) fn copy_bandwidth(device: &Device, bytes: usize) -> Result<f64> {
    const REPEATS: u32 = 20;
    let (from, to) = (device.allocate(bytes)?, device.allocate(bytes));
    let measured = to.and_then(|to| {
        let copy = || -> Result<()> {
            // SAFETY: two allocations of `bytes`.
            unsafe { call!(&device.name, cuMemcpyDtoDAsync_v2(to, from, bytes, device.main_stream())) }
        };
        let result = (|| {
            // SAFETY: an allocation of `bytes`.
            unsafe { call!(&device.name, cuMemsetD8Async(from, 0x5a, bytes, device.main_stream())) }?;
            copy()?;
            device.synchronize()?;
            let start = std::time::Instant::now();
            (0..REPEATS).try_for_each(|_| copy())?;
            device.synchronize()?;
            Ok(2.0 * bytes as f64 * f64::from(REPEATS) / start.elapsed().as_secs_f64() / 1e9)
        })();
        device.free(to);
        result
    });
    device.free(from);
    measured
}
