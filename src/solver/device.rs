//! The device on which a solver computes.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

#[cfg(feature = "cuda")]
use crate::backend::Cuda;

/// The device to compute on. It is parsed from and printed as `auto`, `cpu`, `cuda` (the first GPU) or `cuda:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Device {
    /// The first GPU if there is one and the system is large enough to pay for starting it, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The NVIDIA GPU with this number.
    Cuda(usize),
}

/// A device that is ready to compute, see [`Device::open`].
#[derive(Debug)]
pub enum Opened {
    /// The CPU, and the reason why no GPU was taken if one was looked for.
    Cpu(Option<String>),
    /// An NVIDIA GPU.
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => match text.strip_prefix("cuda:").and_then(|number| number.parse().ok()) {
                Some(number) => Ok(Device::Cuda(number)),
                None => Err(Error::InvalidArgument(format!(
                    "there is no device '{text}': choose auto, cpu, cuda or cuda:N"
                ))),
            },
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.pad("auto"),
            Device::Cpu => f.pad("cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

/// Bytes that a CPU moves in the time that a GPU takes to start: 0.3 s at 16 GB/s (docs/internals/benchmarks/cg.md).
const STARTING: f64 = 5e9;

/// Expected iterations, as a multiple of the points along the side of a two-dimensional grid: uniform grids take 2,
/// uneven meshes 8 and more.
const ITERATIONS: f64 = 3.0;

impl Device {
    /// Opens the device. [`Device::Auto`] takes the first GPU if everything that it needs is there, else the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`] with the reason if the named GPU is not available; [`Error::Unsupported`] if one is named and
    /// this build supports none.
    #[cfg(feature = "cuda")]
    pub fn open(self) -> Result<Opened> {
        match self {
            Device::Cuda(ordinal) => Ok(Opened::Cuda(Cuda::new(ordinal)?)),
            Device::Auto => Ok(match first_cuda() {
                Ok(device) => Opened::Cuda(device),
                Err(reason) => Opened::Cpu(Some(reason)),
            }),
            Device::Cpu => Ok(Opened::Cpu(None)),
        }
    }

    /// Opens the device. This build supports only the CPU.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a GPU is named.
    #[cfg(not(feature = "cuda"))]
    pub fn open(self) -> Result<Opened> {
        match self {
            Device::Cuda(_) => Err(Error::Unsupported(format!(
                "device {self} is not available: this build has no CUDA (feature `cuda`)"
            ))),
            _ => Ok(Opened::Cpu(None)),
        }
    }

    /// The reason why [`Device::Auto`] leaves a system of this size to the CPU without looking for a GPU, if it does:
    /// the CPU has probably solved it before a GPU has started. An iteration moves 12 bytes per entry.
    pub fn too_small(rows: usize, entries: usize, right_hand_sides: usize) -> Option<String> {
        let bytes =
            12.0 * entries as f64 * ITERATIONS * (rows as f64).sqrt() * right_hand_sides.max(1) as f64;
        (bytes < STARTING).then(|| {
            "the system is too small for a GPU to pay, the CPU is done before one has started (device cuda uses it \
             anyway)"
                .into()
        })
    }
}

/// The first CUDA device, or the reason why there is none.
#[cfg(feature = "cuda")]
fn first_cuda() -> Result<Cuda, String> {
    let told = |reason: String| reason.trim_start_matches("cuda: ").to_string();
    let device = Cuda::new(0).map_err(|error| told(error.to_string()))?;
    match device.lacks_kernels() {
        Some(reason) => Err(told(reason)),
        None => Ok(device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_print() {
        for name in ["auto", "cpu", "cuda:0", "cuda:7"] {
            assert_eq!(name.parse::<Device>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse::<Device>().unwrap(), Device::Cuda(0));
        for wrong in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "CPU"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_takes_the_cpu_long_is_worth_starting_a_gpu() {
        assert!(Device::too_small(10_000, 50_000, 1).is_some());
        assert!(Device::too_small(10_000, 50_000, 100).is_none());
        assert!(Device::too_small(1_000_000, 5_000_000, 1).is_none());
    }
}
