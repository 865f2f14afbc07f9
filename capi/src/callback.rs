//! A function of the caller that applies an operator or a preconditioner.

use residua_core::Error;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};

/// Writes y = A x, or z = M^-1 r for a preconditioner, for the `n` elements of both, of the solver's type, and returns
/// 0 on success. It must not throw, jump out or unwind.
#[allow(non_camel_case_types, reason = "its name in C")]
pub type residua_apply =
    Option<unsafe extern "C" fn(user: *mut c_void, n: i64, x: *const c_void, y: *mut c_void) -> i32>;

/// A callback with its user data.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) apply: unsafe extern "C" fn(*mut c_void, i64, *const c_void, *mut c_void) -> i32,
    pub(crate) user: *mut c_void,
}

// SAFETY: the header requires a callback that the solving thread may call, whichever thread that is; calls are one at a
// time, since a solver is used by one call at a time.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    /// Computes y from x. A code other than 0 is stored in `failed`.
    pub(crate) fn call<T>(&self, x: &[T], y: &mut [T], failed: &AtomicI32) -> residua_core::Result<()> {
        // SAFETY: x and y have the lengths that are passed; the caller vouches for the rest.
        let code =
            unsafe { (self.apply)(self.user, x.len() as i64, x.as_ptr().cast(), y.as_mut_ptr().cast()) };
        if code == 0 {
            return Ok(());
        }
        failed.store(code, Ordering::Relaxed);
        Err(Error::InvalidArgument("the callback failed".into()))
    }
}
