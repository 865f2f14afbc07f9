//! Memory of a stream's buffers. Freed memory is kept for later buffers.
//!
//! The driver's pool takes one to two microseconds to allocate a buffer, and as long to free it. A conversion of a
//! small matrix allocates a dozen temporary buffers, and the host waits each time. Therefore freed buffers are first
//! kept here, sorted by size:
//!
//! ```text
//! freed     512 512 4096 81920                 asked for 3000: takes 4096
//! ```
//!
//! A buffer is reused on the stream on which it was freed, after all work that was enqueued before, so another stream
//! never uses freed memory. The amount of kept memory is limited. It is returned to the pool when the limit is reached,
//! or when memory runs out.
//!
//! For a tool that checks accesses, kept memory looks like one permanent allocation. With `RESIDUA_KEEP_BUFFERS=0`
//! nothing is kept.

use super::driver::call;
use crate::error::Result;
use crate::lock::lock;
use cudarc::driver::sys::{self, CUdevice, CUmemoryPool, CUresult, CUstream};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Sizes are multiples of this unit, which is that of the driver's pool.
const UNIT: usize = 512;
/// A kept buffer is reused if it exceeds the requested size by at most one part in this many, plus a unit.
const LARGER: usize = 16;
/// The size of the largest buffer that is kept. For larger ones the driver's microseconds do not matter.
const LARGEST: usize = 16 << 20;
/// A stream keeps at most this many bytes, and this many buffers.
const MOST: usize = 64 << 20;
const MOST_BUFFERS: usize = 256;

/// A piece of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allocation {
    pub(super) address: u64,
    bytes: usize,
}

impl Allocation {
    /// The allocation of an empty buffer.
    pub(super) const fn none(address: u64) -> Self {
        Allocation { address, bytes: 0 }
    }
}

/// The number of bytes that buffers of all streams of a device use, and the maximum so far.
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

    /// Restarts the measurement of the peak from the current use.
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
    /// Returns the smallest kept buffer with at least `bytes`, unless it is much too large.
    fn take(&mut self, bytes: usize) -> Option<Allocation> {
        let &(size, address) = self.blocks.range((bytes, 0)..).next()?;
        if size - bytes > bytes / LARGER + UNIT {
            return None;
        }
        self.blocks.remove(&(size, address));
        self.bytes -= size;
        Some(Allocation { address, bytes: size })
    }

    /// Keeps a buffer. Returns the buffers to be freed. Usually there are none; if the limit is exceeded, these are all
    /// buffers that were kept before, so that sizes that are no longer needed do not stay forever.
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

    /// Removes and returns all buffers.
    fn take_all(&mut self) -> Vec<Allocation> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks)
            .into_iter()
            .map(|(bytes, address)| Allocation { address, bytes })
            .collect()
    }
}

/// Provides the memory of a stream's buffers.
pub(super) struct Pool {
    /// The device's pool; `None` if it has no pools.
    driver: Option<CUmemoryPool>,
    kept: Option<Mutex<Kept>>,
    usage: &'static Usage,
}

impl Pool {
    /// Uses the driver's pool, which is configured to keep memory: to request it from the system takes a hundred times
    /// longer.
    pub(super) fn new(name: &str, device: CUdevice, pools: bool, usage: &'static Usage) -> Result<Self> {
        let kept = std::env::var_os("RESIDUA_KEEP_BUFFERS").is_none_or(|asked| asked != "0");
        let driver = if pools { Some(keeping_pool(name, device)?) } else { None };
        Ok(Pool { driver, kept: kept.then(Mutex::default), usage })
    }

    /// Returns the freed buffers that are kept for reuse; `None` if freed memory is not kept.
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        self.kept.as_ref().map(lock)
    }

    /// Returns the counters of the device's memory use.
    pub(super) fn usage(&self) -> &'static Usage {
        self.usage
    }

    /// Returns kept memory for `bytes`, if there is any.
    pub(super) fn take(&self, bytes: usize) -> Option<Allocation> {
        let taken = self.kept()?.take(whole(bytes))?;
        self.usage.add(taken.bytes);
        Some(taken)
    }

    /// Allocates memory for `bytes`, not initialised.
    pub(super) fn allocate(&self, bytes: usize, stream: CUstream) -> Result<Allocation, CUresult> {
        let bytes = whole(bytes);
        let mut address = 0;
        // SAFETY: the call writes one address. The pool allocates in stream order.
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

    /// Takes memory back. No stream may use it any more once `stream` has reached this point.
    pub(super) fn put(&self, allocation: Allocation, stream: CUstream) {
        match self.kept() {
            Some(mut kept) => self.give_back(kept.put(allocation), stream),
            None => self.give_back([allocation], stream),
        }
    }

    /// Subtracts an allocation from the counted use.
    pub(super) fn uncount(&self, allocation: Allocation) {
        self.usage.now.fetch_sub(allocation.bytes, Ordering::Relaxed);
    }

    /// Frees all kept memory.
    pub(super) fn empty(&self, stream: CUstream) {
        let kept = self.kept().map(|mut kept| kept.take_all());
        self.give_back(kept.unwrap_or_default(), stream);
    }

    /// Returns the unused memory of the driver's pool to the system.
    pub(super) fn trim(&self, name: &str) -> Result<()> {
        match self.driver {
            // SAFETY: this is the device's pool, and memory that is in use stays allocated.
            Some(pool) => unsafe { call!(name, cuMemPoolTrimTo(pool, 0)) },
            None => Ok(()),
        }
    }

    /// Returns memory to the driver, after the stream's work.
    fn give_back(&self, allocations: impl IntoIterator<Item = Allocation>, stream: CUstream) {
        for block in allocations {
            // SAFETY: each address came from `allocate` and is no longer in use; without a pool, this waits for the
            // stream. A destructor can't report errors; if the device is lost, its next operation reports it.
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

/// Rounds up to a multiple of [`UNIT`].
fn whole(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(UNIT).unwrap_or(bytes)
}

fn keeping_pool(name: &str, device: CUdevice) -> Result<CUmemoryPool> {
    let mut pool = std::ptr::null_mut();
    let mut threshold = u64::MAX;
    // SAFETY: the call writes one handle, and the attribute is a 64-bit integer.
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
