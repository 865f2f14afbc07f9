//! Memory of a stream's buffers: what was freed is kept for the next that is made.
//!
//! The driver's pool takes one to two microseconds to hand a buffer out, and as many to take it back. A conversion of a
//! small matrix makes a dozen of them, most for itself alone, and waits for the host throughout. So freed buffers stay
//! here first, by their size:
//!
//! ```text
//! freed     512 512 4096 81920                 asked for 3000: takes 4096
//! ```
//!
//! A buffer is handed out again on the stream that it was freed on, behind all work that was enqueued before: freed
//! memory is in no other stream's hands. What is kept has bounds, and goes back to the pool when they are reached or
//! memory runs out.
//!
//! A tool that watches accesses sees kept memory as one allocation for ever: `RESIDUA_KEEP_BUFFERS=0` keeps nothing.

use super::driver::call;
use crate::error::Result;
use crate::lock::lock;
use cudarc::driver::sys::{self, CUdevice, CUmemoryPool, CUresult, CUstream};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

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
pub(super) struct Allocation {
    pub(super) address: u64,
    bytes: usize,
}

impl Allocation {
    /// Of empty buffers.
    pub(super) const fn none(address: u64) -> Self {
        Allocation { address, bytes: 0 }
    }
}

/// Bytes that buffers of all streams of a device hold, and the most that they held.
#[derive(Default)]
pub(super) struct Usage {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Usage {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    pub(super) fn peak(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Counts the peak anew, from what buffers hold now.
    pub(super) fn forget_peak(&self) {
        self.most.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Freed buffers, by size and address.
#[derive(Default)]
struct Kept {
    blocks: BTreeSet<(usize, u64)>,
    bytes: usize,
}

impl Kept {
    /// The smallest with room for so many bytes, unless it is much too large.
    fn take(&mut self, bytes: usize) -> Option<Allocation> {
        let &(size, address) = self.blocks.range((bytes, 0)..).next()?;
        if size - bytes > bytes / LARGER + UNIT {
            return None;
        }
        self.blocks.remove(&(size, address));
        self.bytes -= size;
        Some(Allocation { address, bytes: size })
    }

    /// Keeps a buffer. Returns what has to go: nothing mostly, and all that was kept where that is too much, so that
    /// sizes which are asked for no more do not stay for ever.
    fn put(&mut self, block: Allocation) -> Vec<Allocation> {
        if block.bytes > LARGEST {
            return vec![block];
        }
        let full = self.bytes + block.bytes > MOST || self.blocks.len() == MOST_BUFFERS;
        let gone = if full { self.take_all() } else { Vec::new() };
        self.blocks.insert((block.bytes, block.address));
        self.bytes += block.bytes;
        gone
    }

    fn take_all(&mut self) -> Vec<Allocation> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks)
            .into_iter()
            .map(|(bytes, address)| Allocation { address, bytes })
            .collect()
    }
}

/// Where a stream's buffers come from.
pub(super) struct Pool {
    /// The device's; `None` where it has no pools.
    driver: Option<CUmemoryPool>,
    kept: Option<Mutex<Kept>>,
    usage: &'static Usage,
}

impl Pool {
    /// Over the driver's pool, told to keep memory from the system: asking for it costs a hundred times more.
    pub(super) fn new(name: &str, device: CUdevice, pools: bool, usage: &'static Usage) -> Result<Self> {
        let kept = std::env::var_os("RESIDUA_KEEP_BUFFERS").is_none_or(|asked| asked != "0");
        let driver = if pools { Some(keeping_pool(name, device)?) } else { None };
        Ok(Pool { driver, kept: kept.then(Mutex::default), usage })
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        self.kept.as_ref().map(lock)
    }

    /// What the stream's buffers count into.
    pub(super) fn usage(&self) -> &'static Usage {
        self.usage
    }

    /// Kept memory for `bytes`, if there is some.
    pub(super) fn take(&self, bytes: usize) -> Option<Allocation> {
        let taken = self.kept()?.take(whole(bytes))?;
        self.usage.add(taken.bytes);
        Some(taken)
    }

    /// New memory for `bytes`, that is not initialised.
    pub(super) fn allocate(&self, bytes: usize, stream: CUstream) -> Result<Allocation, CUresult> {
        let bytes = whole(bytes);
        let mut address = 0;
        // SAFETY: writes one address. The pool hands memory out in the order of the stream.
        let code = unsafe {
            match self.driver {
                Some(_) => sys::cuMemAllocAsync(&raw mut address, bytes, stream),
                None => sys::cuMemAlloc_v2(&raw mut address, bytes),
            }
        };
        if code != CUresult::CUDA_SUCCESS {
            return Err(code);
        }
        self.usage.add(bytes);
        Ok(Allocation { address, bytes })
    }

    /// Takes memory back, which no stream's work uses any more once `stream` has come here.
    pub(super) fn put(&self, allocation: Allocation, stream: CUstream) {
        match self.kept() {
            Some(mut kept) => self.give_back(kept.put(allocation), stream),
            None => self.give_back([allocation], stream),
        }
    }

    /// Counts an allocation no longer.
    pub(super) fn uncount(&self, allocation: Allocation) {
        self.usage.now.fetch_sub(allocation.bytes, Ordering::Relaxed);
    }

    /// Keeps nothing any longer.
    pub(super) fn empty(&self, stream: CUstream) {
        let kept = self.kept().map(|mut kept| kept.take_all());
        self.give_back(kept.unwrap_or_default(), stream);
    }

    /// Gives the system what the driver's pool holds for nobody.
    pub(super) fn trim(&self, name: &str) -> Result<()> {
        match self.driver {
            // SAFETY: the device's pool; what is allocated stays.
            Some(pool) => unsafe { call!(name, cuMemPoolTrimTo(pool, 0)) },
            None => Ok(()),
        }
    }

    /// Gives memory back to the driver, behind the stream's work.
    fn give_back(&self, allocations: impl IntoIterator<Item = Allocation>, stream: CUstream) {
        for block in allocations {
            // SAFETY: each came from `allocate` and nobody has it any more; without a pool the stream is waited for.
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

/// In whole units.
fn whole(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(UNIT).unwrap_or(bytes)
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

    fn block(address: u64, bytes: usize) -> Allocation {
        Allocation { address, bytes }
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
