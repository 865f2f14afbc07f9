//! Memory and streams of other code on a device: the caller's own kernels, CuPy, torch or JAX.
//!
//! Work on different streams is not ordered by itself. An event orders it, without a wait of the host: the event is
//! recorded after the work that one stream has so far, and the other stream waits for it.
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
    /// Returns the device whose memory contains an address.
    ///
    /// # Errors
    /// If the address is not in device memory, or if no driver is available.
    pub fn holding(address: u64) -> Result<Self> {
        driver::start()?;
        let (mut kind, mut managed, mut ordinal) = (0_u32, 0_u32, 0_i32);
        let name = "the driver";
        // SAFETY: each call writes one number of four bytes; the address is only looked up, not read.
        unsafe {
            let attribute = Pointer::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
            // For an address that CUDA does not know, the driver returns `CUDA_ERROR_INVALID_VALUE`.
            let code = sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address);
            if code != sys::CUresult::CUDA_SUCCESS && code != sys::CUresult::CUDA_ERROR_INVALID_VALUE {
                check(name, "cuPointerGetAttribute", code)?;
            }
            if kind != 0 {
                let attribute = Pointer::CU_POINTER_ATTRIBUTE_IS_MANAGED;
                call!(name, cuPointerGetAttribute((&raw mut managed).cast(), attribute, address))?;
            }
            if kind != CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 && managed == 0 {
                let what =
                    "an array must be in the memory of a GPU, but its address is on the host or invalid";
                return Err(Error::InvalidArgument(what.into()));
            }
            let attribute = Pointer::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
            call!(name, cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, address))?;
        }
        let ordinal = usize::try_from(ordinal).map_err(|_| {
            Error::InvalidArgument("the GPU of an array could not be determined from its address".into())
        })?;
        Self::new(ordinal)
    }

    /// Returns a buffer of elements that other code has allocated on this device.
    ///
    /// # Safety
    /// `address` must have `len` elements on this device, aligned to their size and valid as long as the slice is used.
    /// Work on them on other streams must have ended, or this handle must wait for it ([`Cuda::run_after`]), and
    /// nothing else may change them meanwhile.
    pub unsafe fn foreign<'a, T: Element>(&self, address: u64, len: usize) -> &'a Slice<T> {
        Slice::at(if len == 0 { NOWHERE } else { address }, len)
    }

    /// As [`Cuda::foreign`], mutable. Whoever reads the buffer must wait by [`Cuda::run_before`] or
    /// [`Backend::synchronize`](crate::Backend::synchronize).
    ///
    /// # Safety
    /// As [`Cuda::foreign`], and nothing else may read the elements meanwhile.
    pub unsafe fn foreign_mut<'a, T: Element>(&self, address: u64, len: usize) -> &'a mut Slice<T> {
        Slice::at_mut(if len == 0 { NOWHERE } else { address }, len)
    }

    /// Returns the driver's number of the stream to which this handle's work goes, in the form in which libraries
    /// exchange streams (DLPack's `stream`). If other code makes this stream wait for an event, later work of this
    /// handle waits too.
    pub fn stream_number(&self) -> u64 {
        self.0.main_stream().addr() as u64
    }

    /// Makes all later work of this handle wait for the work that a stream of other code has so far. The host does not
    /// wait. 0 and 1 are the device's default stream, 2 is that of this thread.
    ///
    /// # Errors
    /// If the device fails, and while this thread is recording.
    ///
    /// # Safety
    /// `stream` must be a valid `CUstream` or `cudaStream_t` of this device's primary context, or one of these three
    /// numbers.
    pub unsafe fn run_after(&self, stream: u64) -> Result<()> {
        let stream = std::ptr::with_exposed_provenance_mut(stream as usize);
        // SAFETY: guaranteed by the caller of this function.
        unsafe { self.ordered(stream, self.0.main_stream()) }
    }

    /// Makes all later work of other code on its stream wait for the work that was enqueued here so far. The host does
    /// not wait.
    ///
    /// # Errors
    /// As [`Cuda::run_after`].
    ///
    /// # Safety
    /// As [`Cuda::run_after`].
    pub unsafe fn run_before(&self, stream: u64) -> Result<()> {
        let stream = std::ptr::with_exposed_provenance_mut(stream as usize);
        // SAFETY: guaranteed by the caller of this function.
        unsafe { self.ordered(self.0.main_stream(), stream) }
    }

    /// Makes later work of `second` wait for the work that `first` has so far.
    ///
    /// # Safety
    /// Both must be valid streams of the device.
    unsafe fn ordered(&self, first: CUstream, second: CUstream) -> Result<()> {
        record::forbid(*self, "another library's stream")?;
        self.0.bind()?;
        let name = &self.0.name;
        let mut event = std::ptr::null_mut();
        // SAFETY: the caller guarantees that the streams are valid. Only this call uses the event, so no other thread
        // records it in between; if it is destroyed while a stream waits for it, the driver keeps it until it is
        // reached. Flag 2 turns timing off.
        unsafe {
            call!(name, cuEventCreate(&raw mut event, 2))?;
            let ordered = call!(name, cuEventRecord(event, first))
                .and_then(|()| call!(name, cuStreamWaitEvent(second, event, 0)));
            let destroyed = call!(name, cuEventDestroy_v2(event));
            ordered.and(destroyed)
        }
    }
}
