//! What there is: for `residua devices`, and for the reason why a program goes on with the CPU.

use super::chip;
use super::compile::Compiler;
use super::device::Device;
use super::driver::{self, call};
use super::stream::Stream;
use crate::error::Result;

/// A device, as the driver shows it.
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

impl DeviceInfo {
    /// Gigabytes (10^9 bytes) a second of a copy within the device's memory, bytes read and bytes written counted
    /// together: the ceiling of what streams. Opens the device and takes two buffers of up to a gigabyte for a few
    /// milliseconds.
    ///
    /// # Errors
    /// Where the device cannot be opened, or has no room for the buffers.
    pub fn copy_bandwidth(&self) -> Result<f64> {
        let device = Device::open(self.ordinal, 0)?;
        let (free, _) = device.memory()?;
        copy_bandwidth(device, (free / 4).min(1 << 30) & !4095)
    }
}

/// The software that a device needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Release of CUDA that the driver serves, `13.0`; or why there is no driver.
    pub driver: Result<String, String>,
    /// Release and place of the run-time compiler; or why there is none.
    pub compiler: Result<(String, String), String>,
}

/// Driver and compiler, each with the reason where it is missing. Opens no device.
pub fn status() -> Status {
    Status {
        driver: driver::start().map(driver::version_text).map_err(|error| error.to_string()),
        compiler: match Compiler::get() {
            Ok(compiler) => Ok((compiler.version_text(), compiler.path().display().to_string())),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// The devices that the driver shows. Opens none of them.
///
/// # Errors
/// [`Error::Cuda`](crate::Error::Cuda) with the reason why there is none.
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

/// Gigabytes a second of a copy within the device's memory, reading and writing counted: the speed against which
/// kernels are judged. Takes two buffers of `bytes`.
fn copy_bandwidth(stream: &Stream, bytes: usize) -> Result<f64> {
    const REPEATS: u32 = 20;
    let (from, to) = (stream.allocate(bytes)?, stream.allocate(bytes));
    let measured = to.and_then(|to| {
        let copy = || -> Result<()> {
            // SAFETY: two allocations of `bytes`.
            unsafe {
                call!(
                    &stream.name,
                    cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, stream.main_stream())
                )
            }
        };
        let result = (|| {
            // SAFETY: an allocation of `bytes`.
            unsafe { call!(&stream.name, cuMemsetD8Async(from.address, 0x5a, bytes, stream.main_stream())) }?;
            copy()?;
            stream.synchronize()?;
            let start = std::time::Instant::now();
            (0..REPEATS).try_for_each(|_| copy())?;
            stream.synchronize()?;
            Ok(2.0 * bytes as f64 * f64::from(REPEATS) / start.elapsed().as_secs_f64() / 1e9)
        })();
        stream.free(to);
        result
    });
    stream.free(from);
    measured
}
