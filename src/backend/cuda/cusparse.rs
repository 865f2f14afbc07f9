//! cuSPARSE's products, to be measured beside ours in the same process, on the same arrays and the same stream. The
//! library is loaded where it is installed; nothing else of residua needs it.
//!
//! Its index types are signed: matrices of 2^31 nonzeros and more are left to CSR with 64-bit offsets.

use super::Cuda;
use super::compile::{Searched, library_places};
use super::slice::{Slice, Vec as DeviceVec};
use crate::backend::{Backend, OffsetsRef};
use crate::error::{CudaError, Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

type Pointer = *mut c_void;
type Status = c_int;

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

/// Rows of a slice of [`CuSparseFormat::Sell`].
const SLICE: usize = 32;

/// Sliced ELL is not built where it would hold more than this many entries a nonzero.
const MOST_FILL: usize = 4;

// The values of cuSPARSE's enumerations, as its manual lists them.
const INDEX_32: c_int = 2;
const INDEX_64: c_int = 3;
const BASE_ZERO: c_int = 0;
const NOT_TRANSPOSED: c_int = 0;

/// `cudaDataType` of a scalar.
fn data_type<T: Scalar>() -> c_int {
    match (T::COMPLEX, size_of::<T>()) {
        (false, 4) => 0,
        (false, _) => 1,
        (true, 8) => 4,
        (true, _) => 5,
    }
}

type CreateCsr = unsafe extern "C" fn(
    *mut Pointer,
    i64,
    i64,
    i64,
    Pointer,
    Pointer,
    Pointer,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Status;
type CreateCoo = unsafe extern "C" fn(
    *mut Pointer,
    i64,
    i64,
    i64,
    Pointer,
    Pointer,
    Pointer,
    c_int,
    c_int,
    c_int,
) -> Status;
type CreateSell = unsafe extern "C" fn(
    *mut Pointer,
    i64,
    i64,
    i64,
    i64,
    i64,
    Pointer,
    Pointer,
    Pointer,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Status;
/// `cusparseSpMV` and `cusparseSpMV_preprocess` end in a buffer, `cusparseSpMV_bufferSize` in the place for its size.
type Multiply<End> = unsafe extern "C" fn(
    Pointer,
    c_int,
    *const c_void,
    Pointer,
    Pointer,
    *const c_void,
    Pointer,
    c_int,
    c_int,
    End,
) -> Status;

struct Functions {
    destroy: unsafe extern "C" fn(Pointer) -> Status,
    set_stream: unsafe extern "C" fn(Pointer, Pointer) -> Status,
    words: unsafe extern "C" fn(Status) -> *const c_char,
    create_csr: CreateCsr,
    create_coo: CreateCoo,
    /// Since 12.1.
    create_sell: Option<CreateSell>,
    destroy_matrix: unsafe extern "C" fn(Pointer) -> Status,
    create_vector: unsafe extern "C" fn(*mut Pointer, i64, Pointer, c_int) -> Status,
    destroy_vector: unsafe extern "C" fn(Pointer) -> Status,
    size: Multiply<*mut usize>,
    /// Since 12.4.
    preprocess: Option<Multiply<Pointer>>,
    multiply: Multiply<Pointer>,
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
        // SAFETY: each type is that of the function in cuSPARSE's manual, unchanged since CUDA 12.
        let (create, version, functions) = unsafe {
            let create: unsafe extern "C" fn(*mut Pointer) -> Status =
                *library.get(b"cusparseCreate\0").ok()?;
            let version: unsafe extern "C" fn(Pointer, *mut c_int) -> Status =
                *library.get(b"cusparseGetVersion\0").ok()?;
            let functions = Functions {
                destroy: *library.get(b"cusparseDestroy\0").ok()?,
                set_stream: *library.get(b"cusparseSetStream\0").ok()?,
                words: *library.get(b"cusparseGetErrorString\0").ok()?,
                create_csr: *library.get(b"cusparseCreateCsr\0").ok()?,
                create_coo: *library.get(b"cusparseCreateCoo\0").ok()?,
                create_sell: library.get(b"cusparseCreateSlicedEll\0").ok().map(|f| *f),
                destroy_matrix: *library.get(b"cusparseDestroySpMat\0").ok()?,
                create_vector: *library.get(b"cusparseCreateDnVec\0").ok()?,
                destroy_vector: *library.get(b"cusparseDestroyDnVec\0").ok()?,
                size: *library.get(b"cusparseSpMV_bufferSize\0").ok()?,
                preprocess: library.get(b"cusparseSpMV_preprocess\0").ok().map(|f| *f),
                multiply: *library.get(b"cusparseSpMV\0").ok()?,
            };
            (create, version, functions)
        };
        libraries.push(library);
        let (mut handle, mut number) = (std::ptr::null_mut(), 0);
        // SAFETY: the device's context is current (`load`); each call writes what its pointer has room for.
        unsafe {
            if create(&raw mut handle) != 0 {
                return None;
            }
            let _ = version(handle, &raw mut number);
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

    /// Describes the matrix to cuSPARSE.
    fn enter<T: Scalar>(
        &self,
        product: &mut CuSparseProduct<'_, T>,
        format: CuSparseFormat,
        a: &Csr<T, Cuda>,
    ) -> Result<()> {
        let parts = a.parts();
        let (rows, columns, entries) = (a.rows() as i64, a.columns() as i64, a.nonzeros() as i64);
        let wide = matches!(parts.offsets, OffsetsRef::Wide(_));
        if a.nonzeros() > i32::MAX as usize && !wide || a.columns() > i32::MAX as usize {
            return Err(Error::Unsupported("cuSPARSE counts with signed 32-bit numbers".into()));
        }
        let kind = data_type::<T>();
        let at = |address: u64| pointer(address);
        let matrix = &raw mut product.matrix;
        match format {
            CuSparseFormat::Csr1 | CuSparseFormat::Csr2 => {
                let (offsets, width) = match parts.offsets {
                    OffsetsRef::Narrow(o) => (o.address(), INDEX_32),
                    OffsetsRef::Wide(o) => (o.address(), INDEX_64),
                };
                product.bytes = a.storage_bytes();
                let (indices, values) = (at(parts.indices.address()), at(parts.values.address()));
                // SAFETY: the arrays are as long as told, and live as long as the product, which borrows `a`.
                let status = unsafe {
                    (self.functions.create_csr)(
                        matrix,
                        rows,
                        columns,
                        entries,
                        at(offsets),
                        indices,
                        values,
                        width,
                        INDEX_32,
                        BASE_ZERO,
                        kind,
                    )
                };
                self.check("cusparseCreateCsr", status)
            }
            CuSparseFormat::Coo if wide => {
                Err(Error::Unsupported("too many entries for cuSPARSE's COO".into()))
            }
            CuSparseFormat::Coo => {
                let offsets = self.offsets(a)?;
                let mut list = Vec::with_capacity(a.nonzeros());
                for (row, pair) in offsets.windows(2).enumerate() {
                    list.resize(list.len() + pair[1] - pair[0], row as u32);
                }
                let list = self.cuda.upload(list)?;
                product.bytes = a.nonzeros() * (8 + size_of::<T>());
                let (indices, values) = (at(parts.indices.address()), at(parts.values.address()));
                // SAFETY: as above; the row indices are kept by the product.
                let status = unsafe {
                    (self.functions.create_coo)(
                        matrix,
                        rows,
                        columns,
                        entries,
                        at(list.address()),
                        indices,
                        values,
                        INDEX_32,
                        BASE_ZERO,
                        kind,
                    )
                };
                product.indices.push(list);
                self.check("cusparseCreateCoo", status)
            }
            CuSparseFormat::Sell => {
                let create = self.functions.create_sell;
                let create =
                    create.ok_or_else(|| Error::Unsupported("this cuSPARSE has no sliced ELL".into()))?;
                let (offsets, indices, values) = self.sliced(a)?;
                let stored = values.len();
                product.bytes = offsets.bytes() + indices.bytes() + values.bytes();
                let (starts, places, numbers) = (offsets.address(), indices.address(), values.address());
                // SAFETY: as above; the arrays are kept by the product.
                let status = unsafe {
                    create(
                        matrix,
                        rows,
                        columns,
                        entries,
                        stored as i64,
                        SLICE as i64,
                        at(starts),
                        at(places),
                        at(numbers),
                        INDEX_32,
                        INDEX_32,
                        BASE_ZERO,
                        kind,
                    )
                };
                product.indices.extend([offsets, indices]);
                product.values = Some(values);
                self.check("cusparseCreateSlicedEll", status)
            }
        }
    }

    fn offsets<T: Scalar>(&self, a: &Csr<T, Cuda>) -> Result<Vec<usize>> {
        Ok(match a.parts().offsets {
            OffsetsRef::Narrow(o) => self.cuda.download(o)?.into_iter().map(Offset::to_usize).collect(),
            OffsetsRef::Wide(o) => self.cuda.download(o)?.into_iter().map(Offset::to_usize).collect(),
        })
    }

    /// Slices of 32 rows, each padded to its longest and stored column by column; padding has column -1.
    fn sliced<T: Scalar>(&self, a: &Csr<T, Cuda>) -> Result<(DeviceVec<u32>, DeviceVec<u32>, DeviceVec<T>)> {
        let offsets = self.offsets(a)?;
        let mut starts = vec![0_u32];
        let mut total = 0;
        for slice in (0..a.rows()).step_by(SLICE) {
            let end = (slice + SLICE).min(a.rows());
            let width = (slice..end).map(|row| offsets[row + 1] - offsets[row]).max().unwrap_or(0);
            total += width * SLICE;
            if total > i32::MAX as usize || total > MOST_FILL * a.nonzeros().max(SLICE) {
                return Err(Error::Unsupported(format!("more than {MOST_FILL} entries a nonzero, or 2^31")));
            }
            starts.push(total as u32);
        }
        let columns = self.cuda.download(a.parts().indices)?;
        let numbers = self.cuda.download(a.parts().values)?;
        let (mut indices, mut values) = (vec![u32::MAX; total], vec![T::zero(); total]);
        for row in 0..a.rows() {
            let first = starts[row / SLICE] as usize + row % SLICE;
            for (k, entry) in (offsets[row]..offsets[row + 1]).enumerate() {
                indices[first + k * SLICE] = columns[entry];
                values[first + k * SLICE] = numbers[entry];
            }
        }
        Ok((self.cuda.upload(starts)?, self.cuda.upload(indices)?, self.cuda.upload(values)?))
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

/// The linker that newer releases load, from where packages put it beside cuSPARSE; the system finds it elsewhere.
fn linker(path: &Path) -> Vec<Library> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Vec::new();
    };
    let folders = [folder.to_path_buf(), folder.join("../../nvjitlink/lib")];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    files
        .filter(|file| file.file_name().to_string_lossy().starts_with("libnvJitLink.so."))
        // SAFETY: cuSPARSE itself would load the same file.
        .filter_map(|file| unsafe { Library::new(file.path()) }.ok())
        .collect()
}

fn pointer(address: u64) -> Pointer {
    std::ptr::without_provenance_mut(address as usize)
}

/// y = A x by cuSPARSE, set up.
pub struct CuSparseProduct<'a, T: Scalar> {
    library: &'a CuSparse,
    matrix: Pointer,
    x: Pointer,
    y: Pointer,
    algorithm: c_int,
    buffer: DeviceVec<u8>,
    /// Arrays of the format that CSR has not.
    indices: Vec<DeviceVec<u32>>,
    values: Option<DeviceVec<T>>,
    bytes: usize,
    /// alpha and beta: recordings may read them when they are made.
    factors: Box<[T; 2]>,
    /// Borrowed for as long as cuSPARSE may write it.
    target: &'a mut Slice<T>,
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

    fn call<End>(&self, name: &'static str, function: Multiply<End>, end: End) -> Result<()> {
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
