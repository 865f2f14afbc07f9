//! The available software and devices, for `residua devices` and for the reason why a program uses the CPU.

use super::chip;
use super::compile::Compiler;
use super::{cudss, driver};
use crate::error::Result;

/// A device as the driver reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The number that [`Cuda::new`](super::Cuda::new) takes.
    pub ordinal: usize,
    /// The product's name.
    pub name: String,
    /// Memory in bytes.
    pub memory: u64,
    /// Compute capability: (9, 0) is sm_90.
    pub capability: (u32, u32),
}

/// The software that a device needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The release of CUDA that the driver supports, such as `13.0`, or the reason why there is no driver.
    pub driver: Result<String, String>,
    /// The release and path of the run-time compiler, or the reason why there is none.
    pub compiler: Result<(String, String), String>,
    /// The release and path of cuDSS, or the reason why there is none. It is only needed for factorisations by cuDSS.
    pub direct_solver: Result<(String, String), String>,
}

/// Returns the driver, the compiler and cuDSS, each with the reason if it is missing. Opens no device.
pub fn status() -> Status {
    Status {
        driver: driver::start().map(driver::version_text).map_err(|error| error.to_string()),
        compiler: match Compiler::get() {
            Ok(compiler) => Ok((compiler.version_text(), compiler.path().display().to_string())),
            Err(error) => Err(error.to_string()),
        },
        direct_solver: cudss::found().map_err(|error| error.to_string()),
    }
}

/// Returns the devices that the driver reports. Opens none of them.
///
/// # Errors
/// [`Error::Cuda`](crate::Error::Cuda) with the reason if there is none.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let count = chip::count()?;
    if count == 0 {
        return Err(crate::error::CudaError::NoDevice.into());
    }
    (0..count)
        .map(|ordinal| {
            let (name, memory, capability) = chip::describe(ordinal)?;
            Ok(DeviceInfo { ordinal, name, memory, capability })
        })
        .collect()
}
