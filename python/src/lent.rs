//! A vector on a GPU that is allocated here and passed to another library by DLPack: solutions for JAX, whose own
//! arrays cannot be written to.
//!
//! The protocol: <https://dmlc.github.io/dlpack/latest/python_spec.html>. A capsule holds a tensor with a function that
//! frees it. The consumer renames the capsule and frees the tensor when it is done; a capsule that was not consumed
//! frees it itself.

use crate::run::{open_gpu, raise};
use num_complex::Complex;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use residua::{Backend, Cuda, Element};
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

const NAME: &CStr = c"dltensor";
/// The protocol's numbers for a CUDA device, for floating point numbers and for complex ones.
const ON_CUDA: i32 = 2;
const FLOAT: u8 = 2;
const COMPLEX: u8 = 5;
/// CUDA's default stream.
const DEFAULT_STREAM: u64 = 1;

/// `DLTensor` of version 0.8, which all consumers accept.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`, followed by the data that it points to.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    shape: i64,
    _memory: Memory,
}

/// The vector's memory, which returns to the pool when this is dropped.
struct Memory {
    address: u64,
    _owner: Box<dyn Send + Sync>,
}

/// # Safety
/// `managed` is what [`Lent::__dlpack__`] made, and is freed once.
unsafe extern "C" fn free(managed: *mut c_void) {
    if !managed.is_null() {
        // SAFETY: the pointer came from `Box::into_raw`, and the caller frees it once.
        drop(unsafe { Box::from_raw(managed.cast::<Managed>()) });
    }
}

/// # Safety
/// Only Python may call this, as the destructor of a capsule.
unsafe extern "C" fn capsule_goes(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule. If it still has its first name, no consumer has taken it, and it points to the
    // structure that it was made with.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            free(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()));
        }
    }
}

/// A vector of zeros on a GPU; it is passed on by DLPack, once.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct Lent {
    memory: Mutex<Option<Memory>>,
    ordinal: usize,
    len: usize,
    code: u8,
    bits: u8,
}

fn zeros<T: Element>(cuda: Cuda, len: usize) -> residua::Result<Memory> {
    let owner = cuda.zeros::<T>(len)?;
    let address = owner.address();
    Ok(Memory { address, _owner: Box::new(owner) })
}

#[pymethods]
impl Lent {
    #[new]
    fn new(py: Python<'_>, ordinal: usize, len: usize, dtype: &str) -> PyResult<Self> {
        open_gpu()?;
        let (code, bits, make): (_, _, fn(Cuda, usize) -> residua::Result<Memory>) = match dtype {
            "float32" => (FLOAT, 32, zeros::<f32>),
            "float64" => (FLOAT, 64, zeros::<f64>),
            "complex64" => (COMPLEX, 64, zeros::<Complex<f32>>),
            "complex128" => (COMPLEX, 128, zeros::<Complex<f64>>),
            _ => return Err(PyTypeError::new_err(format!("values of {dtype}"))),
        };
        let memory = py.detach(|| make(Cuda::new(ordinal)?, len)).map_err(raise)?;
        Ok(Self { memory: Mutex::new(Some(memory)), ordinal, len, code, bits })
    }

    /// The vector's address; an error after it has been passed on.
    #[getter]
    fn address(&self) -> PyResult<u64> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.as_ref().map(|memory| memory.address).ok_or_else(gone)
    }

    fn __dlpack_device__(&self) -> (i32, usize) {
        (ON_CUDA, self.ordinal)
    }

    /// The capsule; work that `stream` gets from now on waits for ours.
    #[pyo3(signature = (*, stream = None, **_more))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<i64>,
        _more: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let device = i32::try_from(self.ordinal).map_err(|_| PyBufferError::new_err("no such device"))?;
        let shape = i64::try_from(self.len).map_err(|_| PyBufferError::new_err("too long"))?;
        // -1: the consumer needs no ordering.
        if stream != Some(-1) {
            let stream = stream.map_or(DEFAULT_STREAM, |stream| stream as u64);
            // SAFETY: the consumer passes one of its own streams, which is alive.
            py.detach(|| unsafe { Cuda::new(self.ordinal)?.run_before(stream) }).map_err(raise)?;
        }
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(gone)?;
        let mut made = Box::new(Managed {
            tensor: Tensor {
                data: std::ptr::without_provenance_mut(memory.address as usize),
                device: [ON_CUDA, device],
                dimensions: 1,
                code: self.code,
                bits: self.bits,
                lanes: 1,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
            context: std::ptr::null_mut(),
            deleter: Some(free),
            shape,
            _memory: memory,
        });
        made.tensor.shape = &raw mut made.shape;
        let made = Box::into_raw(made).cast();
        // SAFETY: the pointer is valid. The destructor frees what no consumer took; if no capsule was made, it is freed
        // here.
        unsafe {
            let capsule = ffi::PyCapsule_New(made, NAME.as_ptr(), Some(capsule_goes));
            if capsule.is_null() {
                free(made);
            }
            Bound::from_owned_ptr_or_err(py, capsule).map(Bound::unbind)
        }
    }
}

/// The error for a vector that was exported already.
fn gone() -> PyErr {
    PyBufferError::new_err("the vector was exported already")
}
