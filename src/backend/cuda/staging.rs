//! Copies between host and device. The driver copies pageable memory slowly, through a small internal buffer. Here,
//! large copies go through rings of pinned buffers: while one buffer is filled or emptied, others are being
//! transferred.

use super::driver::call;
use super::stream::Stream;
use crate::backend::{Backend, Host};
use crate::error::Result;
use crate::lock::lock;
use crate::parallel::of_stretches;
use crate::parallel::prelude::*;
use crate::scalar::Element;
use cudarc::driver::sys::{self, CUevent};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Up to this number of bytes, the driver's own copy to the device is as fast, and returns immediately.
const DIRECT: usize = 64 << 10;
/// The number of bytes of a pinned buffer for copies to the device, and for copies to the host.
const UP: usize = 4 << 20;
const DOWN: usize = 8 << 20;
/// The number of bytes that one task moves between pageable and pinned memory.
const PIECE: usize = 128 << 10;
/// Copies to the device of at least this many bytes are divided among threads that fill a buffer each. If all threads
/// fill one buffer together, they wait for each other every 4 MiB: 7 GB/s on a host of two H200 with 32 threads a GPU.
const WIDE: usize = 64 << 20;

/// A pinned buffer, and an event that is reached when its copy has ended. Both are null until the buffer is first
/// needed: to allocate pinned memory, and to free it when the process ends, costs a millisecond per 2 MiB, and many
/// solves read only scalars.
struct Pinned {
    memory: *mut u8,
    copied: CUevent,
}

// SAFETY: pinned memory and events belong to the process, not to a thread, and a lock guards their use.
unsafe impl Send for Pinned {}

impl Default for Pinned {
    fn default() -> Self {
        Pinned { memory: std::ptr::null_mut(), copied: std::ptr::null_mut() }
    }
}

impl Pinned {
    /// Allocates the buffer, unless that was done before.
    fn make(&mut self, name: &str, bytes: usize) -> Result<()> {
        if !self.memory.is_null() {
            return Ok(());
        }
        let (mut memory, mut copied) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: each call writes one handle; the handles live as long as the process. Flag 2 turns timing off.
        unsafe {
            call!(name, cuEventCreate(&raw mut copied, 2))?;
            call!(name, cuMemHostAlloc(&raw mut memory, bytes, 0))?;
        }
        *self = Pinned { memory: memory.cast(), copied };
        Ok(())
    }
}

/// The pinned buffers of a stream, and copies through them.
pub(super) struct Staging {
    stream: &'static Stream,
    /// The buffers for copies to the device, each with a lock, so that several threads can fill one each.
    up: [Mutex<Pinned>; 3],
    next: AtomicUsize,
    /// The buffers for copies of at least [`WIDE`] bytes.
    wide: [Mutex<Pinned>; 12],
    next_wide: AtomicUsize,
    /// The buffer for copies of up to [`DIRECT`] bytes to the host, such as values for which a solver waits.
    small: Mutex<Pinned>,
    /// The buffers for larger copies to the host.
    down: Mutex<[Pinned; 2]>,
}

impl Staging {
    pub(super) fn new(stream: &'static Stream) -> Self {
        Staging {
            stream,
            up: Default::default(),
            next: AtomicUsize::new(0),
            wide: Default::default(),
            next_wide: AtomicUsize::new(0),
            small: Mutex::default(),
            down: Mutex::default(),
        }
    }

    /// Returns the next buffer of the ring. The ring is not restarted for each copy, because a file that is read in
    /// pieces causes many copies that need one buffer each.
    fn next_up(&self) -> Result<MutexGuard<'_, Pinned>> {
        self.next_of(&self.up, &self.next)
    }

    fn next_of<'a>(&self, ring: &'a [Mutex<Pinned>], next: &AtomicUsize) -> Result<MutexGuard<'a, Pinned>> {
        let number = next.fetch_add(1, Ordering::Relaxed) % ring.len();
        let mut pinned = lock(&ring[number]);
        pinned.make(&self.stream.name, UP)?;
        Ok(pinned)
    }

    /// [`Staging::to_device`] by several threads.
    ///
    /// # Safety
    /// `to` must be a device allocation with at least as many bytes.
    unsafe fn wide_to_device(&self, from: &[u8], to: u64) -> Result<()> {
        let (name, stream) = (&self.stream.name, self.stream.main_stream() as usize);
        let pieces = 0..from.len().div_ceil(UP);
        let copied = of_stretches(&pieces, 1, |numbers| {
            self.stream.bind()?;
            for start in numbers.map(|number| number * UP) {
                let pinned = self.next_of(&self.wide, &self.next_wide)?;
                let length = UP.min(from.len() - start);
                // SAFETY: the event shows that the buffer's last copy has ended, and this thread has locked it; the
                // target's offsets stay below the number of bytes.
                unsafe {
                    call!(name, cuEventSynchronize(pinned.copied))?;
                    std::ptr::copy_nonoverlapping(from[start..].as_ptr(), pinned.memory, length);
                    let stream = stream as sys::CUstream;
                    call!(
                        name,
                        cuMemcpyHtoDAsync_v2(to + start as u64, pinned.memory.cast(), length, stream)
                    )?;
                    call!(name, cuEventRecord(pinned.copied, stream))?;
                }
            }
            Ok(())
        });
        copied.into_iter().collect()
    }

    fn small(&self) -> Result<MutexGuard<'_, Pinned>> {
        let mut pinned = lock(&self.small);
        pinned.make(&self.stream.name, DIRECT)?;
        Ok(pinned)
    }

    /// Copies from host to device. When this returns, the host memory may be reused; the transfer itself is ordered in
    /// the stream.
    ///
    /// # Safety
    /// `from` must be readable for `bytes`, and `to` must be a device allocation with at least as many bytes.
    pub(super) unsafe fn to_device(&self, from: *const u8, to: u64, bytes: usize) -> Result<()> {
        self.stream.bind()?;
        let (name, stream) = (&self.stream.name, self.stream.main_stream());
        if bytes <= DIRECT {
            // SAFETY: guaranteed by the caller; the driver has read pageable memory when it returns.
            return unsafe { call!(name, cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, stream)) };
        }
        if bytes >= WIDE {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.wide_to_device(std::slice::from_raw_parts(from, bytes), to) };
        }
        // Small copies are not divided among threads, so the threads are free to parse a file.
        let shared = bytes > UP;
        for start in (0..bytes).step_by(UP) {
            let pinned = self.next_up()?;
            let length = UP.min(bytes - start);
            // SAFETY: the event shows that the buffer's last copy has ended; offsets stay below `bytes`.
            unsafe {
                call!(name, cuEventSynchronize(pinned.copied))?;
                copy_on_host(from.add(start), pinned.memory, length, shared);
                call!(name, cuMemcpyHtoDAsync_v2(to + start as u64, pinned.memory.cast(), length, stream))?;
                call!(name, cuEventRecord(pinned.copied, stream))?;
            }
        }
        Ok(())
    }

    /// Returns the result of `look` on up to [`DIRECT`] bytes of the device. `look` reads a copy in pinned memory, and
    /// must not itself copy to the host.
    ///
    /// # Safety
    /// `from` must be a device allocation with at least as many bytes.
    unsafe fn small_to_host<R>(
        &self,
        from: u64,
        bytes: usize,
        look: impl FnOnce(*const u8) -> R,
    ) -> Result<R> {
        self.stream.bind()?;
        let small = self.small()?;
        let buffer = small.memory;
        // SAFETY: guaranteed by the caller. The buffer, which this thread has locked, is large enough, and the copy
        // into it ends before it is read.
        unsafe {
            call!(
                &self.stream.name,
                cuMemcpyDtoHAsync_v2(buffer.cast(), from, bytes, self.stream.main_stream())
            )
        }?;
        self.stream.synchronize()?;
        Ok(look(buffer))
    }

    /// Returns the result of `look` on any number of elements. If there are many, they are first copied to pageable
    /// memory.
    ///
    /// # Safety
    /// `from` must be a device allocation with `len` elements.
    pub(super) unsafe fn look_at<T: Element, R>(
        &self,
        from: u64,
        len: usize,
        look: impl FnOnce(&[T]) -> R,
    ) -> Result<R> {
        let bytes = len * size_of::<T>();
        if bytes > DIRECT {
            let mut copy: Vec<T> = Host.zeros(len)?;
            // SAFETY: guaranteed by the caller; the copy has the same length.
            unsafe { self.to_host(from, copy.as_mut_ptr().cast(), bytes) }?;
            return Ok(look(&copy));
        }
        // SAFETY: guaranteed by the caller. Pinned memory is page-aligned, and every bit pattern on the device was
        // written as an element.
        unsafe { self.small_to_host(from, bytes, |at| look(std::slice::from_raw_parts(at.cast(), len))) }
    }

    /// Copies from device to host, and returns when the bytes have arrived.
    ///
    /// # Safety
    /// `to` must be writable for `bytes`, and `from` must be a device allocation with at least as many bytes.
    pub(super) unsafe fn to_host(&self, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        if bytes <= DIRECT {
            // Copying a scalar through pinned memory has a lower latency, which matters to a solver that waits for it.
            // SAFETY: guaranteed by the caller.
            return unsafe {
                self.small_to_host(from, bytes, |there| std::ptr::copy_nonoverlapping(there, to, bytes))
            };
        }
        self.stream.bind()?;
        let (name, stream) = (&self.stream.name, self.stream.main_stream());
        let mut pair = lock(&self.down);
        pair.iter_mut().try_for_each(|pinned| pinned.make(name, DOWN))?;
        let chunks = bytes.div_ceil(DOWN);
        for number in 0..=chunks {
            if number < chunks {
                let Pinned { memory, copied } = &pair[number % 2];
                let start = number * DOWN;
                let length = DOWN.min(bytes - start);
                // SAFETY: the buffer was emptied two iterations ago.
                unsafe {
                    call!(name, cuMemcpyDtoHAsync_v2(memory.cast(), from + start as u64, length, stream))?;
                    call!(name, cuEventRecord(*copied, stream))?;
                }
            }
            if let Some(last) = number.checked_sub(1) {
                let Pinned { memory, copied } = &pair[last % 2];
                let start = last * DOWN;
                // SAFETY: the event shows that the copy into the buffer has ended; offsets stay below `bytes`.
                unsafe {
                    call!(name, cuEventSynchronize(*copied))?;
                    copy_on_host(*memory, to.add(start), DOWN.min(bytes - start), true);
                }
            }
        }
        Ok(())
    }

    /// Copies several pieces from device to host. It waits once for several small pieces, because a wait takes longer
    /// than a few copies.
    ///
    /// # Safety
    /// For each (from, to, bytes), the same as for [`Staging::to_host`].
    pub(super) unsafe fn several_to_host(&self, pieces: &[(u64, *mut u8, usize)]) -> Result<()> {
        let mut rest = pieces;
        while !rest.is_empty() {
            let ends = rest.iter().scan(0, |end, piece| {
                *end += piece.2;
                Some(*end)
            });
            let together = ends.take_while(|&end| end <= DIRECT).count();
            let (now, behind) = rest.split_at(together.max(1));
            match *now {
                [(_, _, 0)] => {}
                // SAFETY: guaranteed by the caller.
                [(from, to, bytes)] => unsafe { self.to_host(from, to, bytes) }?,
                // SAFETY: guaranteed by the caller, and the sizes were counted above.
                _ => unsafe { self.together_to_host(now) }?,
            }
            rest = behind;
        }
        Ok(())
    }

    /// Copies several pieces of at most [`DIRECT`] bytes in total from device to host.
    ///
    /// # Safety
    /// For each piece, the same as for [`Staging::to_host`].
    unsafe fn together_to_host(&self, pieces: &[(u64, *mut u8, usize)]) -> Result<()> {
        self.stream.bind()?;
        let small = self.small()?;
        let starts = pieces.iter().scan(0, |end, piece| Some(std::mem::replace(end, *end + piece.2)));
        for (start, &(from, _, bytes)) in starts.clone().zip(pieces).filter(|(_, piece)| piece.2 > 0) {
            // SAFETY: guaranteed by the caller; this thread has locked the buffer, and all pieces together fit.
            unsafe {
                let buffer = small.memory.add(start).cast();
                call!(
                    &self.stream.name,
                    cuMemcpyDtoHAsync_v2(buffer, from, bytes, self.stream.main_stream())
                )?;
            }
        }
        self.stream.synchronize()?;
        for (start, &(_, to, bytes)) in starts.zip(pieces) {
            // SAFETY: guaranteed by the caller; the copies into the buffer have ended.
            unsafe { std::ptr::copy_nonoverlapping(small.memory.add(start), to, bytes) };
        }
        Ok(())
    }
}

/// Copies within host memory, with all threads if `shared`.
///
/// # Safety
/// `from` must be readable and `to` writable for `bytes`, and they must not overlap.
unsafe fn copy_on_host(from: *const u8, to: *mut u8, bytes: usize, shared: bool) {
    // SAFETY: guaranteed by the caller.
    let (from, to) =
        unsafe { (std::slice::from_raw_parts(from, bytes), std::slice::from_raw_parts_mut(to, bytes)) };
    if !shared {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| to.copy_from_slice(from));
}
