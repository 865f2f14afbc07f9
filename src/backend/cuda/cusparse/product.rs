//! A product that is set up.

use super::CuSparse;
use super::functions::{Multiply, NOT_TRANSPOSED, Pointer, data_type, pointer};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::error::Result;
use crate::scalar::Scalar;
use std::ffi::c_int;

/// y = A x by cuSPARSE, set up.
pub struct CuSparseProduct<'a, T: Scalar> {
    pub(super) library: &'a CuSparse,
    pub(super) matrix: Pointer,
    pub(super) x: Pointer,
    pub(super) y: Pointer,
    pub(super) algorithm: c_int,
    pub(super) buffer: DeviceVec<u8>,
    /// Arrays of the format that CSR has not.
    pub(super) indices: Vec<DeviceVec<u32>>,
    pub(super) values: Option<DeviceVec<T>>,
    pub(super) bytes: usize,
    /// alpha and beta: recordings may read them when they are made.
    pub(super) factors: Box<[T; 2]>,
    /// Borrowed for as long as cuSPARSE may write it.
    pub(super) target: &'a mut Slice<T>,
}

// SAFETY: cuSPARSE's handles may be used from any thread, one at a time, which `&mut self` of `multiply` ensures.
unsafe impl<T: Scalar> Send for CuSparseProduct<'_, T> {}

impl<T: Scalar> std::fmt::Debug for CuSparseProduct<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "algorithm {} of {:?}", self.algorithm, self.library)
    }
}

impl<T: Scalar> Drop for CuSparseProduct<'_, T> {
    fn drop(&mut self) {
        let functions = &self.library.functions;
        for (handle, destroy) in [
            (self.matrix, functions.destroy_matrix),
            (self.x, functions.destroy_vector),
            (self.y, functions.destroy_vector),
        ] {
            if !handle.is_null() {
                // SAFETY: made by the creating function of its kind, destroyed once.
                let _ = unsafe { destroy(handle) };
            }
        }
    }
}

impl<T: Scalar> CuSparseProduct<'_, T> {
    /// Bytes of the matrix as cuSPARSE stores it, x once and y once.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Entries that it stores beyond the `nonzeros`.
    pub fn padding(&self, nonzeros: usize) -> usize {
        self.values.as_ref().map_or(0, |values| values.len() - nonzeros)
    }

    /// y, as the product left it.
    pub fn target(&self) -> &Slice<T> {
        self.target
    }

    /// y = A x, enqueued.
    ///
    /// # Errors
    /// When cuSPARSE or the device fails.
    pub fn multiply(&mut self) -> Result<()> {
        self.library.cuda.0.bind()?;
        self.call("cusparseSpMV", self.library.functions.multiply, pointer(self.buffer.address()))
    }

    pub(super) fn call<End>(&self, name: &'static str, function: Multiply<End>, end: End) -> Result<()> {
        let library = self.library;
        let stream = library.cuda.0.stream();
        // SAFETY: handles are valid until `drop`; the factors are of the type told; buffer and vectors live as long as
        // `self`. The stream is the device's or the one that this thread records.
        unsafe {
            library
                .check("cusparseSetStream", (library.functions.set_stream)(library.handle, stream.cast()))?;
            let status = function(
                library.handle,
                NOT_TRANSPOSED,
                (&raw const self.factors[0]).cast(),
                self.matrix,
                self.x,
                (&raw const self.factors[1]).cast(),
                self.y,
                data_type::<T>(),
                self.algorithm,
                end,
            );
            library.check(name, status)
        }
    }
}
