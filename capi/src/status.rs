//! Status codes, the last error of a thread, and the guard that stops panics.

use residua_core::Error;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Success. Whether a solve converged is said by its report, not by a status.
pub const RESIDUA_OK: i32 = 0;
/// An argument is outside of its domain.
pub const RESIDUA_INVALID_ARGUMENT: i32 = 1;
/// A pointer is null that must not be null.
pub const RESIDUA_NULL_POINTER: i32 = 2;
/// A handle is invalid, of another kind, or was destroyed.
pub const RESIDUA_INVALID_HANDLE: i32 = 3;
/// No matrix of the given shape has these arrays.
pub const RESIDUA_INVALID_MATRIX: i32 = 4;
/// Two sizes that must agree do not.
pub const RESIDUA_DIMENSION: i32 = 5;
/// Memory could not be allocated.
pub const RESIDUA_OUT_OF_MEMORY: i32 = 6;
/// The GPU is absent, unsuitable or broken.
pub const RESIDUA_DEVICE: i32 = 7;
/// Something that is not supported, or that this matrix does not allow.
pub const RESIDUA_UNSUPPORTED: i32 = 8;
/// The solver is in use: in another thread, or in the callback that made this call.
pub const RESIDUA_BUSY: i32 = 9;
/// A callback of the caller returned another number than 0.
pub const RESIDUA_CALLBACK: i32 = 10;
/// A fault inside residua. The objects of the call must be destroyed.
pub const RESIDUA_INTERNAL: i32 = 11;
/// MPI failed, or another process of a distributed solver did.
pub const RESIDUA_PROCESS: i32 = 12;

/// A status other than ok, with its text.
pub(crate) struct Fault {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(RESIDUA_INVALID_ARGUMENT, text)
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(RESIDUA_NULL_POINTER, format!("{what} is a null pointer"))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Dimension { .. } => RESIDUA_DIMENSION,
            Error::InvalidMatrix(_) => RESIDUA_INVALID_MATRIX,
            Error::OutOfMemory { .. } => RESIDUA_OUT_OF_MEMORY,
            Error::Cuda(_) => RESIDUA_DEVICE,
            Error::Mpi(_) | Error::Rank { .. } => RESIDUA_PROCESS,
            Error::Unsupported(_) | Error::Refused { .. } | Error::Diagonal { .. } | Error::Block { .. } => {
                RESIDUA_UNSUPPORTED
            }
            _ => RESIDUA_INVALID_ARGUMENT,
        };
        Self::new(code, error.to_string())
    }
}

pub(crate) type Answer<T = ()> = Result<T, Fault>;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

fn keep(text: String) {
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
}

/// Runs the body of a C function. An error or a panic in it becomes a status and the thread's last error.
pub(crate) fn guard(body: impl FnOnce() -> Answer) -> i32 {
    let fault = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return RESIDUA_OK,
        Ok(Err(fault)) => fault,
        Err(_) => Fault::new(RESIDUA_INTERNAL, "an internal error of residua occurred; please report it"),
    };
    let code = fault.code;
    keep(fault.text);
    code
}

/// A string of the caller.
///
/// # Safety
/// `text` is null or ends in a zero byte.
pub(crate) unsafe fn text<'a>(what: &str, text: *const c_char) -> Answer<&'a str> {
    if text.is_null() {
        return Err(Fault::null(what));
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| Fault::argument(format!("{what} is not UTF-8")))
}

/// The reason why the last failed call of this thread failed. Empty if none has failed; valid until the next call
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn residua_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// The version of the library, as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn residua_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
