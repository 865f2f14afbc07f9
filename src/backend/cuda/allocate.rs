//! Memory of buffers, which is allocated and freed in the order of a stream.

use super::driver::{self, call};
use super::pool::Allocation;
use super::stream::Stream;
use crate::error::{Error, Result};
use cudarc::driver::sys::CUresult;

impl Stream {
    /// Allocates memory without initialising it.
    pub(super) fn allocate(&self, bytes: usize) -> Result<Allocation> {
        if let Some(kept) = self.pool.take(bytes) {
            return Ok(kept);
        }
        self.bind()?;
        let mut result = self.pool.allocate(bytes, self.main_stream());
        if result == Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) {
            self.give_all_back()?;
            result = self.pool.allocate(bytes, self.main_stream());
        }
        match result {
            Ok(allocation) => Ok(allocation),
            Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                let (free, total) = self.memory()?;
                let device = format!("{} ({free} of its {total} bytes are free)", self.name);
                Err(Error::OutOfMemory { device, bytes: bytes as u64 })
            }
            Err(code) => driver::check(&self.name, "cuMemAllocAsync", code).map(|()| Allocation::none(0)),
        }
    }

    /// Returns all unused memory to the system: kept memory, freed memory that is waiting for work, and the free parts
    /// of the pool.
    fn give_all_back(&self) -> Result<()> {
        for stream in self.others().into_iter().chain([self]) {
            stream.pool.empty(stream.main_stream());
            stream.synchronize()?;
        }
        self.pool.trim(&self.name)
    }

    /// Takes memory back. It is reused after the work enqueued so far on all streams of the device.
    pub(super) fn free(&self, allocation: Allocation) {
        self.pool.uncount(allocation);
        if self.bind().and_then(|()| self.join()).is_ok() {
            self.pool.put(allocation, self.main_stream());
        }
    }

    /// Returns the free and the total memory in bytes.
    pub(super) fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        self.bind()?;
        // SAFETY: the call writes two sizes to local variables.
        unsafe { call!(&self.name, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok((free, total))
    }
}
