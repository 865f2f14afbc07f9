//! cuSPARSE's products, to be measured beside ours in the same process, on the same arrays and the same stream. The
//! library is loaded where it is installed; nothing else of residua needs it.
//!
//! Its index types are signed: matrices of 2^31 nonzeros and more are left to CSR with 64-bit offsets.

mod functions;
mod matrix;
mod product;

pub use product::CuSparseProduct;

use self::functions::{Functions, Pointer, Status, data_type, linker, pointer};
use super::Cuda;
use super::compile::{Searched, library_places};
use super::slice::Slice;
use crate::backend::Backend;
use crate::error::{CudaError, Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use libloading::Library;
use std::ffi::{CStr, c_int};
use std::path::{Path, PathBuf};

/// What cuSPARSE is asked to multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CuSparseFormat {
    /// CSR, first algorithm.
    Csr1,
    /// CSR, second algorithm: the same bits on each run, balanced.
    Csr2,
    /// Coordinates.
    Coo,
    /// Sliced ELL, slices of 32 rows in the matrix's order.
    Sell,
}

impl CuSparseFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Csr1, Self::Csr2, Self::Coo, Self::Sell];

    /// A name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csr1 => "cusparse-csr-1",
            Self::Csr2 => "cusparse-csr-2",
            Self::Coo => "cusparse-coo",
            Self::Sell => "cusparse-sell",
        }
    }

    /// `cusparseSpMVAlg_t`.
    fn algorithm(self) -> c_int {
        match self {
            Self::Coo => 1,
            Self::Csr1 => 2,
            Self::Csr2 => 3,
            Self::Sell => 5,
        }
    }
}

/// The library, with a handle for one device.
pub struct CuSparse {
    functions: Functions,
    handle: Pointer,
    version: i32,
    path: PathBuf,
    cuda: Cuda,
    /// cuSPARSE and what it needs: kept loaded for as long as its functions may be called.
    _libraries: Vec<Library>,
}

impl std::fmt::Debug for CuSparse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cuSPARSE {} ({})", self.version_text(), self.path.display())
    }
}

impl Drop for CuSparse {
    fn drop(&mut self) {
        // SAFETY: the handle was made by `cusparseCreate` and is destroyed once; all products borrow `self`.
        let _ = unsafe { (self.functions.destroy)(self.handle) };
    }
}

impl CuSparse {
    /// Looks for the library where the compiler of kernels is looked for as well, and in the packages of Python.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the places that were searched, or when the device fails.
    pub fn load(cuda: Cuda) -> Result<Self> {
        cuda.0.bind()?;
        let (candidates, searched): (Vec<PathBuf>, Searched) =
            library_places("libcusparse", "RESIDUA_CUSPARSE", &["12", "13", "11"]);
        candidates.iter().find_map(|path| Self::open(path, cuda)).ok_or_else(|| {
            Error::Unsupported(format!(
                "cuSPARSE was not found in {searched}; `pip install nvidia-cusparse` brings it"
            ))
        })
    }

    fn open(path: &Path, cuda: Cuda) -> Option<Self> {
        let mut libraries = linker(path);
        // SAFETY: the file bears cuSPARSE's name; its initialisers are those of any program that links it.
        let library = unsafe { Library::new(path) }.ok()?;
        let functions = Functions::of(&library)?;
        libraries.push(library);
        let (mut handle, mut number) = (std::ptr::null_mut(), 0);
        // SAFETY: the device's context is current (`load`); each call writes what its pointer has room for.
        unsafe {
            if (functions.create)(&raw mut handle) != 0 {
                return None;
            }
            let _ = (functions.version)(handle, &raw mut number);
        }
        Some(Self { functions, handle, version: number, path: path.into(), cuda, _libraries: libraries })
    }

    /// Release, as `12.6.3`.
    pub fn version_text(&self) -> String {
        format!("{}.{}.{}", self.version / 1000, self.version % 1000 / 100, self.version % 100)
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets up y = A x. The arrays of CSR are used where they lie; those of the other formats are made anew, with the
    /// help of the host.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where cuSPARSE has not this format or no room for so many entries; on vectors of the
    /// wrong length, too little memory, or when the device fails.
    pub fn product<'a, T: Scalar>(
        &'a self,
        format: CuSparseFormat,
        a: &'a Csr<T, Cuda>,
        x: &'a Slice<T>,
        y: &'a mut Slice<T>,
    ) -> Result<CuSparseProduct<'a, T>> {
        Error::check_dimension("length of x", a.columns(), x.len())?;
        Error::check_dimension("length of y", a.rows(), y.len())?;
        let mut product = CuSparseProduct {
            library: self,
            matrix: std::ptr::null_mut(),
            x: std::ptr::null_mut(),
            y: std::ptr::null_mut(),
            algorithm: format.algorithm(),
            buffer: self.cuda.uninitialised(0)?,
            indices: Vec::new(),
            values: None,
            bytes: 0,
            factors: Box::new([T::one(), T::zero()]),
            target: y,
        };
        self.cuda.0.bind()?;
        self.enter(&mut product, format, a)?;
        let vector = |vector: &mut Pointer, len: usize, address: u64| {
            // SAFETY: writes one handle; the vector outlives the product, which borrows it.
            let status = unsafe {
                (self.functions.create_vector)(
                    &raw mut *vector,
                    len as i64,
                    pointer(address),
                    data_type::<T>(),
                )
            };
            self.check("cusparseCreateDnVec", status)
        };
        vector(&mut product.x, x.len(), x.address())?;
        let (len, address) = (product.target.len(), product.target.address());
        vector(&mut product.y, len, address)?;
        let mut size = 0_usize;
        product.call("cusparseSpMV_bufferSize", self.functions.size, &raw mut size)?;
        product.buffer = self.cuda.uninitialised(size.max(1))?;
        product.bytes += (x.len() + len) * size_of::<T>();
        if let Some(preprocess) = self.functions.preprocess {
            // A hint: where it is refused, the product works without.
            let _ = product.call("cusparseSpMV_preprocess", preprocess, pointer(product.buffer.address()));
        }
        Ok(product)
    }

    fn check(&self, call: &'static str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: gives a static, terminated string for every status.
        let words = unsafe { CStr::from_ptr((self.functions.words)(status)) };
        let (device, cause) = (self.cuda.description(), words.to_string_lossy().into_owned());
        Err(match status {
            // CUSPARSE_STATUS_ALLOC_FAILED, _INVALID_VALUE, _ARCH_MISMATCH, _NOT_SUPPORTED, _INSUFFICIENT_RESOURCES
            2 | 3 | 4 | 10 | 11 => Error::Unsupported(format!("{call}: {cause}")),
            _ => CudaError::Call { call, device, cause }.into(),
        })
    }
}
