//! Memory of a stream's buffers: what was freed is kept for the next that is made.
//!
//! The driver's pool takes one to two microseconds to hand a buffer out, and as many to take it back. A conversion of a small matrix makes a
//! dozen of them, most for itself alone, and waits for the host throughout. So freed buffers stay here first, by their size:
//!
//! ```text
//! freed     512 512 4096 81920                 asked for 3000: takes 4096
//! ```
//!
//! A buffer is handed out again on the stream that it was freed on, behind all work that was enqueued before: freed memory is in no
//! other stream's hands. What is kept has bounds, and goes back to the pool when they are reached or memory runs out.
//!
//! A tool that watches accesses sees kept memory as one allocation for ever: `RESIDUA_KEEP_BUFFERS=0` keeps nothing.

use super::device::Device;
use super::driver::{self, call};
use super::streams;
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUdevice, CUmemoryPool, CUresult, CUstream};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes are multiples of this, the pool's own unit.
const UNIT: usize = 512;
/// A kept buffer serves where it is larger by at most this part of what is asked for (and a unit).
const LARGER: usize = 16;
/// Bytes of a buffer that is kept at most: to larger ones the driver's microseconds are nothing.
const LARGEST: usize = 16 << 20;
/// Bytes and buffers that a stream keeps at most.
const MOST: usize = 64 << 20;
const MOST_BUFFERS: usize = 256;

/// A piece of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) address: u64,
    bytes: usize,
}

impl Block {
    /// Of empty buffers.
    pub(super) const fn none(address: u64) -> Self {
        Block { address, bytes: 0 }
    }
}

/// Bytes that buffers of all streams of a device hold, and the most that they held.
#[derive(Default)]
pub(super) struct Usage {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Freed buffers, by size and address.
#[derive(Default)]
struct Kept {
    blocks: BTreeSet<(usize, u64)>,
    bytes: usize,
}

impl Kept {
    /// The smallest with room for so many bytes, unless it is much too large.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let &(size, address) = self.blocks.range((bytes, 0)..).next()?;
        if size - bytes > bytes / LARGER + UNIT {
            return None;
        }
        self.blocks.remove(&(size, address));
        self.bytes -= size;
        Some(Block { address, bytes: size })
    }

    /// Keeps a buffer. Returns what has to go: nothing mostly, and all that was kept where that is too much, so that sizes which are asked
    /// for no more do not stay for ever.
    fn put(&mut self, block: Block) -> Vec<Block> {
        if block.bytes > LARGEST {
            return vec![block];
        }
        let full = self.bytes + block.bytes > MOST || self.blocks.len() == MOST_BUFFERS;
        let gone = if full { self.take_all() } else { Vec::new() };
        self.blocks.insert((block.bytes, block.address));
        self.bytes += block.bytes;
        gone
    }

    fn take_all(&mut self) -> Vec<Block> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks)
            .into_iter()
            .map(|(bytes, address)| Block { address, bytes })
            .collect()
    }
}

/// Where a stream's buffers come from.
pub(super) struct Pool {
    /// The device's; `None` where it has no pools.
    driver: Option<CUmemoryPool>,
    kept: Option<Mutex<Kept>>,
    pub(super) usage: &'static Usage,
}

impl Pool {
    /// Over the driver's pool, told to keep memory from the system: asking for it costs a hundred times more.
    pub(super) fn new(name: &str, device: CUdevice, pools: bool, usage: &'static Usage) -> Result<Self> {
        let kept = std::env::var_os("RESIDUA_KEEP_BUFFERS").is_none_or(|asked| asked != "0");
        let driver = if pools { Some(keeping_pool(name, device)?) } else { None };
        Ok(Pool { driver, kept: kept.then(Mutex::default), usage })
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        self.kept.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn try_allocate(&self, bytes: usize, stream: CUstream) -> Result<Block, CUresult> {
        let mut address = 0;
        // SAFETY: writes one address. The pool hands memory out in the order of the stream.
        let code = unsafe {
            match self.driver {
                Some(_) => sys::cuMemAllocAsync(&raw mut address, bytes, stream),
                None => sys::cuMemAlloc_v2(&raw mut address, bytes),
            }
        };
        if code == CUresult::CUDA_SUCCESS { Ok(Block { address, bytes }) } else { Err(code) }
    }

    /// Gives memory back to the driver, behind the stream's work.
    fn give_back(&self, blocks: impl IntoIterator<Item = Block>, stream: CUstream) {
        for block in blocks {
            // SAFETY: the block came from `try_allocate` and nobody has it any more; without a pool the stream is waited for.
            // Errors cannot be told from here; a device that is lost tells them at its next operation.
            unsafe {
                let _ = match self.driver {
                    Some(_) => sys::cuMemFreeAsync(block.address, stream),
                    None => {
                        let _ = sys::cuStreamSynchronize(stream);
                        sys::cuMemFree_v2(block.address)
                    }
                };
            }
        }
    }
}

impl Device {
    /// Memory that is not initialised.
    pub(super) fn allocate(&self, bytes: usize) -> Result<Block> {
        let pool = &self.pool;
        let bytes = bytes.checked_next_multiple_of(UNIT).unwrap_or(bytes);
        let block = match pool.kept().and_then(|mut kept| kept.take(bytes)) {
            Some(block) => block,
            None => self.allocate_anew(bytes)?,
        };
        let now = pool.usage.now.fetch_add(block.bytes, Ordering::Relaxed) + block.bytes;
        pool.usage.most.fetch_max(now, Ordering::Relaxed);
        Ok(block)
    }

    fn allocate_anew(&self, bytes: usize) -> Result<Block> {
        self.bind()?;
        let mut result = self.pool.try_allocate(bytes, self.main_stream());
        if result == Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) {
            self.give_all_back()?;
            result = self.pool.try_allocate(bytes, self.main_stream());
        }
        match result {
            Ok(block) => Ok(block),
            Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                let (free, total) = self.memory()?;
                let device = format!("{} ({free} of its {total} bytes are free)", self.name);
                Err(Error::OutOfMemory { device, bytes: bytes as u64 })
            }
            Err(code) => driver::check(&self.name, "cuMemAllocAsync", code).map(|()| Block::none(0)),
        }
    }

    /// Gives the system what buffers of no stream hold: what is kept here, what was freed and still waits behind work, and what lies in the
    /// pool in pieces.
    fn give_all_back(&self) -> Result<()> {
        for stream in self.others().into_iter().chain([self]) {
            let blocks = stream.pool.kept().map(|mut kept| kept.take_all());
            stream.pool.give_back(blocks.unwrap_or_default(), stream.main_stream());
            stream.synchronize()?;
        }
        match self.pool.driver {
            // SAFETY: the device's pool; what is allocated stays.
            Some(pool) => unsafe { call!(&self.name, cuMemPoolTrimTo(pool, 0)) },
            None => Ok(()),
        }
    }

    /// Takes memory back, behind the work enqueued so far on all streams of the device.
    pub(super) fn free(&self, block: Block) {
        let pool = &self.pool;
        pool.usage.now.fetch_sub(block.bytes, Ordering::Relaxed);
        if self.bind().and_then(|()| streams::join(self)).is_err() {
            return;
        }
        match pool.kept() {
            Some(mut kept) => pool.give_back(kept.put(block), self.main_stream()),
            None => pool.give_back([block], self.main_stream()),
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

    /// The most bytes that buffers had at one time.
    pub(super) fn peak(&self) -> usize {
        self.pool.usage.most.load(Ordering::Relaxed)
    }

    pub(super) fn forget_peak(&self) {
        self.pool.usage.most.store(self.pool.usage.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64, bytes: usize) -> Block {
        Block { address, bytes }
    }

    #[test]
    fn a_kept_buffer_serves_what_is_a_little_smaller() {
        let mut kept = Kept::default();
        for (address, bytes) in [(1, 1 << 20), (2, 512), (3, 8192), (4, 512)] {
            assert!(kept.put(block(address, bytes)).is_empty());
        }
        assert_eq!(kept.take(4096), None, "twice as large");
        assert_eq!(kept.take(7680), Some(block(3, 8192)));
        assert_eq!(kept.take(7680), None, "it has gone");
        assert_eq!(
            (kept.take(512), kept.take(512), kept.take(512)),
            (Some(block(2, 512)), Some(block(4, 512)), None)
        );
        assert_eq!((kept.bytes, kept.take_all(), kept.bytes), (1 << 20, vec![block(1, 1 << 20)], 0));
    }

    #[test]
    fn what_is_kept_has_bounds() {
        let mut kept = Kept::default();
        assert_eq!(kept.put(block(1, LARGEST + UNIT)), [block(1, LARGEST + UNIT)]);
        for address in 2..2 + MOST / LARGEST {
            assert!(kept.put(block(address as u64, LARGEST)).is_empty());
        }
        assert_eq!(kept.put(block(100, UNIT)).len(), MOST / LARGEST);
        for address in 101..100 + MOST_BUFFERS {
            assert!(kept.put(block(address as u64, UNIT)).is_empty());
        }
        assert_eq!(kept.put(block(1000, UNIT)).len(), MOST_BUFFERS);
        assert_eq!(kept.take_all(), [block(1000, UNIT)]);
    }
}
