//! The backend for NVIDIA devices: the same traits as for [`Host`](super::Host), with kernels in CUDA C++.
//!
//! No part of CUDA is needed to build this. When a program requests a device, the driver's library is loaded (drivers
//! of CUDA 12 and 13 are supported). At the first use of a kernel, the run-time compiler NVRTC is searched for: in a
//! toolkit, next to the driver, and in Python's packages (`pip install nvidia-cuda-nvrtc`).
//! [`CudaError`](crate::error::CudaError) reports missing software. Kernels are compiled for the present chip and
//! cached on disk.
//!
//! | file | what it holds |
//! |---|---|
//! | `driver` | loading the driver, and its error codes |
//! | `chip` | properties of a device before it is opened |
//! | `pool` | memory of buffers |
//! | `stream`, `allocate` | one stream of an open device, its order with others, its memory |
//! | `workspace`, `staging` | temporary memory of a stream's operations; copies between host and device |
//! | `device`, `misses` | a stream with all of that; indices out of range |
//! | `side_by_side` | several simultaneous solvers |
//! | `slice` | device memory as Rust references, and why that is sound |
//! | `foreign` | memory and streams of other code |
//! | `memory` | buffers of the `Backend` trait |
//! | `capture`, `record`, `mailbox` | recorded iterations, and their messages to the host |
//! | `compile` | compiling kernels, and their cache; needs no device |
//! | `find`, `cudss` | finding libraries of CUDA; factorisations by cuDSS, if it is installed |
//! | `fronts` | factorisations in dense fronts, by residua's own kernels |
//! | `launch`, `modules` | kernels as typed functions, and those loaded so far |
//! | `shape`, `tuning` | how a kernel is launched, and every tuning constant |
//! | `clock` | times that are measured on the device |
//! | `linear_update`, `basis`, `pairs` | the vector operations that read their scalars from the device's memory |
//! | `primitives`, `vector`, `product`, `convert`, `krylov`, `precondition`, `graph` | the traits of operations |
//! | `persistent` | many iterations of a small system in one launch |
//!
//! All work of a process on a device goes to one stream, whichever handle enqueues it. The handles of
//! [`Cuda::side_by_side`] are an exception: each of them has its own stream.

mod allocate;
mod basis;
mod batch;
mod capture;
mod chip;
mod classical;
mod clock;
mod coarsen;
pub mod compile;
mod compressed;
mod convert;
mod cudss;
mod device;
mod diagonals;
mod driver;
mod find;
mod foreign;
mod fronts;
mod generate;
mod graph;
mod grid;
mod grouping;
mod info;
mod inverse;
mod krylov;
mod launch;
mod linear_update;
mod mailbox;
mod memory;
mod misses;
mod modules;
#[cfg(feature = "ranks")]
mod nccl;
mod near_null;
mod pairs;
#[cfg(feature = "ranks")]
mod parts;
mod peers;
mod persistent;
mod pool;
mod precondition;
mod primitives;
mod product;
mod record;
mod rows;
mod shape;
mod side_by_side;
mod slice;
mod sparse;
mod staging;
mod stream;
mod transpose;
mod triangular;
mod tuning;
mod vector;
mod workspace;

pub use info::{DeviceInfo, Status, devices, status};
pub use mailbox::Mailbox;
#[cfg(feature = "ranks")]
#[doc(hidden)]
pub use nccl::{Nccl, unique_id};
#[cfg(feature = "ranks")]
#[doc(hidden)]
pub use peers::{Window as PeerWindow, Windows as PeerWindows};
pub use product::CsrAlgorithm;
pub use record::Recording;
pub use slice::{Slice, Vec as DeviceVec};

use crate::error::Result;
use device::Device;
use pool::Allocation;

/// A CUDA device. A handle is cheap to copy. All handles of a device share one stream, except those of
/// [`Cuda::side_by_side`].
#[derive(Clone, Copy)]
pub struct Cuda(&'static Device);

impl Cuda {
    /// Returns the device with this number, as `nvidia-smi` and CUDA_VISIBLE_DEVICES count them. The first call opens
    /// it, which takes a third of a second. It stays open as long as the process lives.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with the reason why there is no such device, and what to do.
    pub fn new(ordinal: usize) -> Result<Self> {
        Device::open(ordinal, 0).map(Cuda)
    }

    /// Returns the number with which the device was opened.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// Returns the free and the total memory in bytes. Memory that residua keeps for later allocations does not count
    /// as free.
    ///
    /// # Errors
    /// If the device fails.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.0.memory()
    }

    /// Returns the maximum number of bytes that buffers have used at one time since the start, or since
    /// [`Cuda::forget_peak`]. This includes the temporary memory of operations.
    pub fn peak_memory(&self) -> usize {
        self.0.pool.usage().peak()
    }

    /// Restarts the measurement of the peak from the current use.
    pub fn forget_peak(&self) {
        self.0.pool.usage().forget_peak();
    }

    /// Takes back the memory of a buffer of this device. While a recording is in progress, the recording keeps the
    /// memory instead, because its graph may use it.
    fn release(&self, allocation: Allocation) {
        if !capture::keep(self.0.ordinal, allocation) {
            self.0.free(allocation);
        }
    }
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cuda({})", self.0.name)
    }
}
