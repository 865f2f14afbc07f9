//! Memory and streams of other code on a device: of a caller's own kernels, of CuPy, torch or JAX.
//!
//! Work of different streams has no order of its own. Nobody has to wait on the host for it: an event is recorded
//! behind what one stream has so far, and the other one waits for it.
//!
//! ```text
//! the caller's stream   ... writes b  |event|                           waits |  reads x ...
//! ours                               waits   |  solves, reads b, writes x  |event|
//! ```

use super::Cuda;
use super::driver::{self, call, check};
use super::record;
use super::slice::{NOWHERE, Slice};
use crate::error::{Error, Result};
use crate::scalar::Element;
use cudarc::driver::sys::{self, CUmemorytype, CUpointer_attribute as Pointer, CUstream};

impl Cuda {
    /// The device on whose memory an address lies.
    ///
    /// # Errors
    /// Where it is none of a device, or no driver is to be had.
    pub fn holding(address: u64) -> Result<Self> {
        driver::start()?;
        let (mut kind, mut managed, mut ordinal) = (0_u32, 0_u32, 0_i32);
        let name = "the driver";
        // SAFETY: each call writes one number of four bytes; the address is looked up, not followed.
        unsafe {
            let attribute = Pointer::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
            // An address that CUDA has never heard of is an invalid value.
            let code = sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address);
            if code != sys::CUresult::CUDA_SUCCESS && code != sys::CUresult::CUDA_ERROR_INVALID_VALUE {
                check(name, "cuPointerGetAttribute", code)?;
            }
            if kind != 0 {
                let attribute = Pointer::CU_POINTER_ATTRIBUTE_IS_MANAGED;
                call!(name, cuPointerGetAttribute((&raw mut managed).cast(), attribute, address))?;
            }
            if kind != CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 && managed == 0 {
                let what = "an array that should lie on a GPU lies on the host, or nowhere";
                return Err(Error::InvalidArgument(what.into()));
            }
            let attribute = Pointer::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
            call!(name, cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, address))?;
        }
        let ordinal = usize::try_from(ordinal)
            .map_err(|_| Error::InvalidArgument("an array that lies on no GPU of its own".into()))?;
        Self::new(ordinal)
    }

    /// Elements that other code placed on this device, as a buffer to compute with.
    ///
    /// # Safety
    /// `address` is of `len` elements on this device, aligned to their size and valid for as long as the slice is used;
    /// work on them of other streams has ended, or is waited for ([`Cuda::run_after`]), and nothing else changes them
    /// meanwhile.
    pub unsafe fn foreign<'a, T: Element>(&self, address: u64, len: usize) -> &'a Slice<T> {
        Slice::at(if len == 0 { NOWHERE } else { address }, len)
    }

    /// As [`Cuda::foreign`], to write to. The reader of the buffer hears of the end by [`Cuda::run_before`] or
    /// [`Backend::synchronize`](crate::Backend::synchronize).
    ///
    /// # Safety
    /// As [`Cuda::foreign`], and nothing else reads them meanwhile.
    pub unsafe fn foreign_mut<'a, T: Element>(&self, address: u64, len: usize) -> &'a mut Slice<T> {
        Slice::at_mut(if len == 0 { NOWHERE } else { address }, len)
    }

    /// The driver's number of the stream that this handle's work goes to, as protocols between libraries hand streams
    /// on (DLPack's `stream`): whoever makes it wait for an event has this handle's later work wait.
    pub fn stream_number(&self) -> u64 {
        self.0.main_stream().addr() as u64
    }

    /// Lets what is enqueued here from now on begin when the work that a stream of other code has so far has ended. The
    /// host does not wait. 0 and 1 are the device's default stream, 2 is this thread's.
    ///
    /// # Errors
    /// When the device fails, and while this thread records.
    ///
    /// # Safety
    /// `stream` is a `CUstream` or `cudaStream_t` of this device's primary context that lives, or one of these three.
    pub unsafe fn run_after(&self, stream: u64) -> Result<()> {
        let stream = std::ptr::with_exposed_provenance_mut(stream as usize);
        // SAFETY: this function's own promise.
        unsafe { self.ordered(stream, self.0.main_stream()) }
    }

    /// Lets what other code enqueues on its stream from now on begin when the work that was enqueued here so far has
    /// ended. The host does not wait.
    ///
    /// # Errors
    /// As [`Cuda::run_after`].
    ///
    /// # Safety
    /// As [`Cuda::run_after`].
    pub unsafe fn run_before(&self, stream: u64) -> Result<()> {
        let stream = std::ptr::with_exposed_provenance_mut(stream as usize);
        // SAFETY: this function's own promise.
        unsafe { self.ordered(self.0.main_stream(), stream) }
    }

    /// Lets later work of `second` wait for what `first` has so far.
    ///
    /// # Safety
    /// Both are streams of the device that live.
    unsafe fn ordered(&self, first: CUstream, second: CUstream) -> Result<()> {
        record::forbid(*self, "another library's stream")?;
        self.0.bind()?;
        let name = &self.0.name;
        let mut event = std::ptr::null_mut();
        // SAFETY: the streams are the caller's promise. The event is of this call alone, so no other thread records it
        // in between; destroyed while a stream waits for it, it goes when it has been reached. Flag 2: no timing.
        unsafe {
            call!(name, cuEventCreate(&raw mut event, 2))?;
            let ordered = call!(name, cuEventRecord(event, first))
                .and_then(|()| call!(name, cuStreamWaitEvent(second, event, 0)));
            let destroyed = call!(name, cuEventDestroy_v2(event));
            ordered.and(destroyed)
        }
    }
}
