//! MKL's sparse product (inspector-executor interface), loaded from the `libmkl_rt` that `RESIDUA_MKL` names.

use libloading::{Library, Symbol};
use residua::backend::CsrParts;
use residua::{Host, Scalar};
use std::ffi::{c_int, c_void};
use std::ptr;

const OPERATION_NON_TRANSPOSE: c_int = 10;

#[repr(C)]
#[derive(Clone, Copy)]
struct Description {
    kind: c_int,
    mode: c_int,
    diagonal: c_int,
}

/// SPARSE_MATRIX_TYPE_GENERAL.
const GENERAL: Description = Description { kind: 20, mode: 0, diagonal: 0 };

type Handle = *mut c_void;
type Create<T> = unsafe extern "C" fn(
    *mut Handle,
    c_int,
    c_int,
    c_int,
    *const u32,
    *const u32,
    *const u32,
    *const T,
) -> c_int;
type Hint = unsafe extern "C" fn(Handle, c_int, Description, c_int) -> c_int;
type Optimize = unsafe extern "C" fn(Handle) -> c_int;
type Mv<T> = unsafe extern "C" fn(c_int, T, Handle, Description, *const T, T, *mut T) -> c_int;

/// A matrix passed to MKL, which reads the arrays without copying them.
pub struct Product<'a, T: Scalar> {
    library: &'static Library,
    handle: Handle,
    parts: CsrParts<'a, T, Host>,
}

impl<'a, T: Scalar> Product<'a, T> {
    /// `None` if MKL is not available.
    pub fn new(parts: CsrParts<'a, T, Host>, offsets: &'a [u32], optimized: bool) -> Option<Self> {
        let path = std::env::var_os("RESIDUA_MKL")?;
        // SAFETY: the user names MKL's library, whose initialisation has no requirements.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(path) }.expect("MKL")));
        let mut handle = ptr::null_mut();
        // SAFETY: signatures as in mkl_spblas.h with 32-bit integers; all numbers of the benchmark's matrices fit
        // those; the arrays are valid for the lengths given and outlive the handle ('a).
        unsafe {
            let name =
                if size_of::<T>() == 8 { "mkl_sparse_d_create_csr" } else { "mkl_sparse_s_create_csr" };
            let create: Symbol<'_, Create<T>> = library.get(name.as_bytes()).expect("MKL's function");
            let (rows, columns) = (parts.rows as c_int, parts.columns as c_int);
            let (starts, ends) = (offsets.as_ptr(), offsets[1..].as_ptr());
            let (indices, values) = (parts.indices.as_ptr(), parts.values.as_ptr());
            assert_eq!(create(&mut handle, 0, rows, columns, starts, ends, indices, values), 0);
            if optimized {
                let hint: Symbol<'_, Hint> = library.get(b"mkl_sparse_set_mv_hint").expect("MKL's function");
                assert_eq!(hint(handle, OPERATION_NON_TRANSPOSE, GENERAL, 1000), 0);
                let optimize: Symbol<'_, Optimize> =
                    library.get(b"mkl_sparse_optimize").expect("MKL's function");
                assert_eq!(optimize(handle), 0);
            }
        }
        Some(Self { library, handle, parts })
    }

    /// y = A x.
    pub fn apply(&mut self, x: &[T], y: &mut [T]) {
        assert!(x.len() == self.parts.columns && y.len() == self.parts.rows);
        let name = if size_of::<T>() == 8 { "mkl_sparse_d_mv" } else { "mkl_sparse_s_mv" };
        // SAFETY: as in `new`; x and y have the matrix's lengths.
        unsafe {
            let mv: Symbol<'_, Mv<T>> = self.library.get(name.as_bytes()).expect("MKL's function");
            let (x, y) = (x.as_ptr(), y.as_mut_ptr());
            assert_eq!(mv(OPERATION_NON_TRANSPOSE, T::one(), self.handle, GENERAL, x, T::zero(), y), 0);
        }
    }
}
