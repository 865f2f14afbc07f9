//! The driver: whether it is available, and its error codes. Contains the only calls that are made before a device is
//! open.

use crate::error::{CudaError, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::CStr;
use std::sync::OnceLock;

/// The oldest driver interface that has all required functions.
const NEEDED: (i32, &str) = (12000, "12.0 (driver 525)");

/// Loads and starts the driver. Returns the version that it supports, as 1000 major + 10 minor.
///
/// # Errors
/// The reason why it can't be started, see [`CudaError`].
pub(super) fn start() -> Result<i32> {
    static STARTED: OnceLock<Result<i32, CudaError>> = OnceLock::new();
    Ok(STARTED.get_or_init(try_start).clone()?)
}

fn try_start() -> Result<i32, CudaError> {
    // SAFETY: this loads a library by the driver's well-known names and runs its initialisers, as every CUDA program
    // does. All later calls rely on it: the bindings panic if the library is missing.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the call writes one integer, and is allowed before cuInit.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    if code != CUresult::CUDA_SUCCESS {
        return Err(CudaError::BrokenDriver { cause: words(code) });
    }
    if version < NEEDED.0 {
        return Err(CudaError::DriverTooOld { found: version_text(version), needed: NEEDED.1 });
    }
    // SAFETY: the call initialises the driver and takes no pointers.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        CUresult::CUDA_ERROR_NO_DEVICE => Err(CudaError::NoDevice),
        code => Err(CudaError::BrokenDriver { cause: words(code) }),
    }
}

/// Returns the version as text: `12.8` for 12080.
pub(super) fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Returns the driver's name and description of a code.
pub(super) fn words(code: CUresult) -> String {
    let mut texts = [std::ptr::null(), std::ptr::null()];
    // SAFETY: both calls write a pointer to a static string of the driver, or null for an unknown code.
    unsafe {
        let _ = sys::cuGetErrorName(code, &raw mut texts[0]);
        let _ = sys::cuGetErrorString(code, &raw mut texts[1]);
    }
    let [name, text] = texts.map(|text| {
        // SAFETY: the pointer is not null, so it is one of the driver's static, terminated strings.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    });
    match (name, text) {
        (Some(name), Some(text)) => format!("{name}: {text}"),
        _ => format!("code {}", code as u32),
    }
}

/// Returns an error if the code of `call` is one.
pub(super) fn check(device: &str, call: &'static str, code: CUresult) -> Result<()> {
    use CUresult as C;
    if code == C::CUDA_SUCCESS {
        return Ok(());
    }
    let (device, cause) = (device.to_string(), words(code));
    Err(Error::Cuda(match code {
        C::CUDA_ERROR_DEVICE_UNAVAILABLE | C::CUDA_ERROR_NOT_PERMITTED => CudaError::Busy { device, cause },
        C::CUDA_ERROR_ILLEGAL_ADDRESS
        | C::CUDA_ERROR_LAUNCH_TIMEOUT
        | C::CUDA_ERROR_ASSERT
        | C::CUDA_ERROR_HARDWARE_STACK_ERROR
        | C::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | C::CUDA_ERROR_MISALIGNED_ADDRESS
        | C::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | C::CUDA_ERROR_INVALID_PC
        | C::CUDA_ERROR_LAUNCH_FAILED
        | C::CUDA_ERROR_ECC_UNCORRECTABLE => CudaError::KernelFault { device, cause },
        _ => CudaError::Call { call, device, cause },
    }))
}

/// Calls a function of the driver and converts its code into a `Result`: `call!(device_name, cuMemFree_v2(address))`.
/// Must be used inside of an `unsafe` block with a `SAFETY` comment.
macro_rules! call {
    ($device:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $crate::backend::cuda::driver::check(
            $device,
            stringify!($function),
            cudarc::driver::sys::$function($($argument),*),
        )
    };
}
pub(super) use call;

/// Returns a launch attribute. The caller sets its value.
pub(super) fn attribute(id: sys::CUlaunchAttributeID) -> sys::CUlaunchAttribute {
    // SAFETY: the struct has only integers and pointers, for which zero and null are valid.
    sys::CUlaunchAttribute { id, ..unsafe { std::mem::zeroed() } }
}

/// Returns a launch configuration: blocks, threads, bytes of shared memory, and one attribute, which has to outlive it.
pub(super) fn configuration(
    (blocks, threads, shared): (u32, u32, u32),
    stream: sys::CUstream,
    attribute: &mut sys::CUlaunchAttribute,
) -> sys::CUlaunchConfig {
    sys::CUlaunchConfig {
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared,
        hStream: stream,
        attrs: attribute,
        numAttrs: 1,
    }
}
