//! The backend of every machine: the CPU, through rayon's global thread pool.
//!
//! Slices are `[T]`, buffers `Vec<T>`, and a recording is a closure. Reductions split their input into chunks whose
//! size depends only on the input, never on the number of threads, so results have the same bits on every machine with
//! the same instructions.

#[cfg(all(test, feature = "cuda"))]
pub(crate) mod asked;
pub(super) mod basis;
mod batch;
mod chunks;
mod coarsen;
mod compressed;
mod convert;
mod factor;
mod graph;
mod grid;
mod grid_linear;
mod grid_stencil;
mod grouping;
mod histogram;
mod krylov;
mod linear_update;
mod map;
mod memory;
mod merge;
mod near_null;
pub(super) mod pairs;
mod parts;
pub(crate) mod pattern;
mod permute;
mod precondition;
mod primitives;
mod product;
mod radix;
mod recurrence;
mod reduce;
pub(crate) mod residual;
mod rows;
mod runs;
mod scan;
mod select;
mod several;
mod sparse;
mod staged;
mod sums;
mod triangular;
mod vector;

pub use batch::BatchRoom;
pub use memory::{HostMailbox, HostRecording};
pub use parts::Parts;
pub(crate) use permute::by_column;
pub(crate) use precondition::inverse_weight;

/// The CPU, through rayon's global thread pool (`RAYON_NUM_THREADS` sets its size).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Host;
