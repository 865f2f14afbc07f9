//! What is called of the library: its functions by type and name, and the numbers that they take.

use crate::scalar::Scalar;
use libloading::Library;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

pub(super) type Pointer = *mut c_void;
pub(super) type Status = c_int;

// The values of cuSPARSE's enumerations, as its manual lists them.
pub(super) const INDEX_32: c_int = 2;
pub(super) const INDEX_64: c_int = 3;
pub(super) const BASE_ZERO: c_int = 0;
pub(super) const NOT_TRANSPOSED: c_int = 0;

/// `cudaDataType` of a scalar.
pub(super) fn data_type<T: Scalar>() -> c_int {
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
pub(super) type Multiply<End> = unsafe extern "C" fn(
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

pub(super) struct Functions {
    pub(super) create: unsafe extern "C" fn(*mut Pointer) -> Status,
    pub(super) version: unsafe extern "C" fn(Pointer, *mut c_int) -> Status,
    pub(super) destroy: unsafe extern "C" fn(Pointer) -> Status,
    pub(super) set_stream: unsafe extern "C" fn(Pointer, Pointer) -> Status,
    pub(super) words: unsafe extern "C" fn(Status) -> *const c_char,
    pub(super) create_csr: CreateCsr,
    pub(super) create_coo: CreateCoo,
    /// Since 12.1.
    pub(super) create_sell: Option<CreateSell>,
    pub(super) destroy_matrix: unsafe extern "C" fn(Pointer) -> Status,
    pub(super) create_vector: unsafe extern "C" fn(*mut Pointer, i64, Pointer, c_int) -> Status,
    pub(super) destroy_vector: unsafe extern "C" fn(Pointer) -> Status,
    pub(super) size: Multiply<*mut usize>,
    /// Since 12.4.
    pub(super) preprocess: Option<Multiply<Pointer>>,
    pub(super) multiply: Multiply<Pointer>,
}

impl Functions {
    /// The functions of the library; none where it lacks one that every release since CUDA 12 has.
    pub(super) fn of(library: &Library) -> Option<Self> {
        // SAFETY: each type is that of the function in cuSPARSE's manual, unchanged since CUDA 12.
        unsafe {
            Some(Functions {
                create: *library.get(b"cusparseCreate\0").ok()?,
                version: *library.get(b"cusparseGetVersion\0").ok()?,
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
            })
        }
    }
}

/// The linker that newer releases load, from where packages put it beside cuSPARSE; the system finds it elsewhere.
pub(super) fn linker(path: &Path) -> Vec<Library> {
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

pub(super) fn pointer(address: u64) -> Pointer {
    std::ptr::without_provenance_mut(address as usize)
}
