//! The backend for NVIDIA devices: the same traits as the [`Host`](super::Host)'s, with kernels in CUDA C++.
//!
//! Nothing of CUDA is needed to build this. When a program asks for a device, the driver's library is loaded (drivers
//! of CUDA 12 and 13 serve), and at the first use of a kernel the run-time compiler NVRTC is looked for: in a
//! toolkit, beside the driver, in Python's packages (`pip install nvidia-cuda-nvrtc`). What is missing is told by
//! [`CudaError`](crate::error::CudaError). Kernels are compiled for the chip at hand and kept on disk.
//!
//! | file | what it holds |
//! |---|---|
//! | `driver` | loading the driver, and what its codes mean |
//! | `chip` | what a device is, before it is opened |
//! | `pool` | where buffers come from, and where they go |
//! | `stream`, `allocate` | one stream of an open device, its order with others, its memory |
//! | `workspace`, `staging` | what a stream's operations use in passing; copies between host and device |
//! | `device`, `misses` | a stream with all that; indices out of range |
//! | `side_by_side` | several solvers at once |
//! | `slice` | device memory behind Rust references, and why that is sound |
//! | `foreign` | memory and streams of other code |
//! | `memory` | buffers, as the `Backend` trait has them |
//! | `capture`, `record`, `mailbox` | recorded iterations, and what they tell the host |
//! | `compile` | kernels from text to machine code, and their cache; needs no device |
//! | `find`, `cudss` | where libraries of CUDA's may lie; factorisations by the library cuDSS, where it is installed |
//! | `launch`, `modules` | kernels as typed functions, and those in use so far |
//! | `shape`, `tuning` | how a kernel is launched, and every tuning constant |
//! | `clock` | the device's own time |
//! | `linear_update`, `basis`, `pairs` | the vector operations that read their scalars from the device's memory |
//! | `primitives`, `vector`, `product`, `convert`, `krylov`, `precondition`, `graph` | the capability traits |
//! | `persistent` | many iterations of a small system in one launch |
//!
//! All work of a process on one device goes to one stream, whichever handle enqueues it, but for handles that
//! [`Cuda::side_by_side`] makes: each of those has a stream of its own.

mod allocate;
mod basis;
mod batch;
mod capture;
mod chip;
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

/// A CUDA device. Cheap to copy; every handle of one device is the same device, and of one stream but for those of
/// [`Cuda::side_by_side`].
#[derive(Clone, Copy)]
pub struct Cuda(&'static Device);

impl Cuda {
    /// The device with this number, as `nvidia-smi` and CUDA_VISIBLE_DEVICES count them. The first call opens it (a
    /// third of a second); it stays open for the life of the process.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with the reason why there is none, and what to do.
    pub fn new(ordinal: usize) -> Result<Self> {
        Device::open(ordinal, 0).map(Cuda)
    }

    /// The number with which it was opened.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// Free and total memory in bytes. What residua keeps for later allocations does not count as free.
    ///
    /// # Errors
    /// When the device fails.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.0.memory()
    }

    /// The most bytes that buffers held at one time since [`Cuda::forget_peak`] or the start: what an operation took
    /// for itself shows here.
    pub fn peak_memory(&self) -> usize {
        self.0.pool.usage().peak()
    }

    /// Counts the peak anew, from what buffers hold now.
    pub fn forget_peak(&self) {
        self.0.pool.usage().forget_peak();
    }

    /// Takes back what a buffer of this device held. A recording under way keeps it instead: its graph may use it.
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
