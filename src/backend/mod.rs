//! Backends: where data is stored and where kernels run.
//!
//! [`Backend`] owns memory and the order of execution. Traits define the operations of a backend: [`Primitives`]
//! (reduce, scan, sort, merge), [`RunSums`] (the same sums with new values), [`VectorOps`] (dot products and fused
//! updates for Krylov methods), [`KrylovSteps`] (the fused steps of conjugate gradients), [`Products`] (one per storage
//! layout), [`Conversions`] (between layouts), [`RowFacts`] (symmetry, diagonals), [`PreconditionSteps`] (dense blocks,
//! polynomials, half the precision), [`GraphSteps`] (traversals, components, orders, colours), [`CompressedSteps`]
//! (compressing what repeats), [`BatchSteps`] (many small systems). Everything else (assembly, conversions, orderings,
//! solvers) is written once with these traits, and runs on every backend that implements them.
//!
//! | file | what it holds |
//! |---|---|
//! | `layout` | the storage of each matrix format as borrowed parts: the interface between `matrix` and the kernels |
//! | `primitives`, `runs`, `vector`, `product`, `convert`, `rows`, `krylov`, `precondition`, `graph` | the traits |
//! | `compressed` | the compressed format: its storage, and the steps of compression |
//! | `factor`, `fronts` | factorisations by a library that is found at run time, or in dense fronts |
//! | `inverse`, `status` | the preconditioner of a fused step, the status of an iteration |
//! | `grid_points` | the points of a grid and their neighbours |
//! | `scalars` | arithmetic on the scalars of a recurrence, in the backend's memory |
//! | `persistent` | many iterations in one call, and data derived from a pattern |
//! | `host` | the implementation on rayon |
//! | `cuda` | the implementation for NVIDIA devices |
//!
//! Slices are plain Rust references, `&B::Slice<T>` and `&mut B::Slice<T>`. On the host they are `&[T]`; on a device
//! they are an address and a length that only the device accesses, so the borrow checker protects device memory as it
//! protects host memory, and callers can pass their own buffers.

mod batch;
mod classical;
mod coarsen;
mod communicator;
mod compressed;
mod convert;
#[cfg(feature = "cuda")]
pub mod cuda;
mod factor;
mod fronts;
mod graph;
mod grid;
mod grid_points;
mod grid_stencil;
mod grouping;
pub mod host;
mod inverse;
mod krylov;
mod layout;
mod model;
mod near_null;
pub(crate) mod pairs;
mod parts;
mod persistent;
mod precondition;
mod primitives;
mod product;
mod rows;
pub(crate) mod runs;
pub(crate) mod scalars;
mod sparse;
mod status;
mod triangular;
mod vector;

pub(crate) use batch::REFINEMENTS;
#[cfg(feature = "cuda")]
pub(crate) use batch::{BESIDE, ITERATIONS, NORM_UNITS, POWERS, UNSCALED};
pub use batch::{
    BatchElimination, BatchEntries, BatchGoal, BatchIteration, BatchParts, BatchReduction, BatchSteps,
    BatchVectors, LIMITED, UNCERTAIN,
};
pub use classical::ClassicalSteps;
pub use coarsen::{CoarseningSteps, EXPONENTS, SMALLEST_LUMPED};
#[cfg(all(unix, feature = "cuda", feature = "ranks"))]
pub(crate) use communicator::or_by_way_of_hosts;
pub use communicator::{Alone, Communicator, DotWith, ExchangePlan, HaloProduct, Space};
pub(crate) use compressed::{
    BALANCED_TILE, BASES, COMPRESSED_WINDOW, NO_ENTRY, RANGE, SECTION, STENCIL_PLACES, WIDE_COLUMNS,
    balanced_bytes, balanced_places, base_of, code_of, ordered_by_length, wants_order,
};
pub use compressed::{
    CompressedBody, CompressedColumns, CompressedParts, CompressedPlan, CompressedSteps, CompressedValues,
    FoundKinds, GridHoles, GridMarks, GridRows, Keys, KindParts, Kinds, LongParts, LongRows, Lookup,
    MOST_KEYS, SectionParts, SectionSizes, StencilParts, Survey, ValuesMut, WholeKinds, WindowOrder,
    WindowOrderRef,
};
pub use convert::{Conversions, DiaFill, Diagonals};
#[cfg(feature = "cuda")]
pub use cuda::Cuda;
pub use factor::{Determinant, Elimination, FactorEstimate, FactorKind, FactorOptions, FactorSteps, Factors};
pub use fronts::{FrontPlan, NO_FRONT};
pub use graph::{
    FirstSweeps, Frontier, GraphParts, GraphRows, GraphSteps, OrderingPrice, PEERS_ONE_IN, Roots, Sweep,
    UNREACHED, priority,
};
pub use grid::{GridMatrix, GridSteps, RowsOnGrid};
pub(crate) use grid_points::{BoxSums, LEAST_LEFT, bits_of, check_weights, interpolated, weight_number};
pub use grid_points::{Grid, NEIGHBOURS, Neighbours, grid_values, grid_weights};
pub use grid_stencil::GridStencil;
pub(crate) use grouping::independent_priority;
pub use grouping::{ALIKE, GroupingSteps, MOST_OF_BLOCK, NO_GROUP, NodeState};
pub use host::{Host, Parts};
pub use inverse::Inverse;
pub use krylov::{CgSlot, KrylovSteps};
pub use layout::*;
pub use model::{CompressionRule, ProductModel};
pub use near_null::{DEPENDENT, LEAST_OWN, NearNullSteps};
pub use pairs::{PairLayout, PairScalars};
pub use parts::{PartDirection, PartResidual, Sends};
pub use persistent::{Derived, Persistent, PersistentIterations, PersistentMinres};
pub use precondition::{
    BlockParts, ChebyshevStep, DENSE_LIMIT, PreconditionSteps, SMALL_DIAGONAL, WithProduct,
};
pub use primitives::{Order, Primitives, Scan};
pub use product::{Gemv, Op, Products, Transposable};
pub use rows::RowFacts;
pub use runs::{RUN_TILE, RunSums, StagedRuns};
pub(crate) use runs::{run_mark, sources_at};
pub use scalars::{ScalarLayout, ScalarProgram, Slot, Value, Writer};
pub use sparse::{CsrArrays, CsrPattern, SparseProducts};
pub(crate) use sparse::{offsets_of, offsets_up_to};
pub use status::CgStatus;
pub use triangular::{Pivots, Side, TriangleParts, TriangularSteps};
pub use vector::{Coefficient, Hessenberg, InnerProduct, LinearUpdate, VectorOps};

use crate::error::{Error, Result};
use crate::scalar::Element;
use std::fmt::Debug;
use std::ops::{DerefMut, Range};

/// A device: its memory and the order of its work.
///
/// A value is a handle that is cheap to clone. All operations of a handle take effect in the order of the calls, as if
/// each had finished before the next began. A device may still be working when a call returns; [`Backend::download`],
/// [`Backend::read`] and [`Backend::synchronize`] wait for it.
pub trait Backend: Clone + Debug + Send + Sync + 'static {
    /// An owned buffer.
    type Vec<T: Element>: DerefMut<Target = Self::Slice<T>> + Debug + Send + Sync + 'static;
    /// A borrowed buffer, always used by reference.
    type Slice<T: Element>: ?Sized + Debug + Send + Sync;
    /// Recorded work that can be replayed at low cost; it borrows the buffers that it uses.
    type Recording<'a>: Replay;
    /// A channel for values from the backend to the host, see [`Mailbox`].
    type Mailbox<T: Element>: Mailbox<T, Backend = Self> + 'static;
    /// The number of recorded iterations that a solver should keep in the queue before it waits for the message of the
    /// oldest; 1 if a replay runs immediately.
    const QUEUE_DEPTH: usize;

    /// A description in one line for reports, such as `cpu (2 threads)` or `NVIDIA H200 (cuda:0)`.
    fn description(&self) -> String;

    /// The seconds that this process has spent on compiling and loading kernels, which happens at their first use.
    fn first_use_seconds(&self) -> f64 {
        0.0
    }

    /// Allocates `len` zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] with the size. Nothing is lost, and the caller can continue.
    fn zeros<T: Element>(&self, len: usize) -> Result<Self::Vec<T>>;

    /// Allocates `len` elements for a caller that writes all of them before they are read: zeros if these cost nothing,
    /// as on the host, else undefined bits. Any bits are valid for every element type.
    ///
    /// # Errors
    /// As [`Backend::zeros`].
    fn buffer<T: Element>(&self, len: usize) -> Result<Self::Vec<T>> {
        self.zeros(len)
    }

    /// Moves host data to the backend (a move on the host, a copy elsewhere).
    ///
    /// # Errors
    /// As [`Backend::zeros`].
    fn upload<T: Element>(&self, data: Vec<T>) -> Result<Self::Vec<T>>;

    /// Copies the content to the host, after all earlier work.
    ///
    /// # Errors
    /// If earlier work or the copy fails.
    fn download<T: Element>(&self, data: &Self::Slice<T>) -> Result<Vec<T>>;

    /// Copies into host memory of the same length, after all earlier work.
    ///
    /// # Errors
    /// If lengths differ, and as [`Backend::download`].
    fn read<T: Element>(&self, from: &Self::Slice<T>, to: &mut [T]) -> Result<()>;

    /// [`Backend::read`] for several parts of a slice; `to` gets them one after another. A device waits once for
    /// several small parts, because a wait takes longer than a few copies.
    ///
    /// # Errors
    /// As [`Backend::read`].
    fn read_parts<T: Element>(
        &self,
        from: &Self::Slice<T>,
        parts: &[Range<usize>],
        to: &mut [T],
    ) -> Result<()> {
        let all = parts.iter().map(Range::len).sum();
        Error::check_dimension("length of the copies' target", all, to.len())?;
        let mut rest = to;
        for part in parts {
            let (here, behind) = rest.split_at_mut(part.len());
            self.read(Self::part(from, part.clone()), here)?;
            rest = behind;
        }
        Ok(())
    }

    /// Returns the element of a slice of length one, such as a count, a sum or an error flag that a kernel has
    /// computed. Waits for all earlier work.
    ///
    /// # Errors
    /// If the length is not one, and as [`Backend::download`].
    fn value<T: Element>(&self, cell: &Self::Slice<T>) -> Result<T> {
        let mut value = [T::default()];
        self.read(cell, &mut value)?;
        Ok(value[0])
    }

    /// Copies from host memory of the same length.
    ///
    /// # Errors
    /// If lengths differ.
    fn write<T: Element>(&self, from: &[T], to: &mut Self::Slice<T>) -> Result<()>;

    /// Number of elements.
    fn len<T: Element>(slice: &Self::Slice<T>) -> usize;

    /// The elements of `range`.
    ///
    /// # Panics
    /// If `range` exceeds the slice, as indexing does.
    fn part<T: Element>(slice: &Self::Slice<T>, range: Range<usize>) -> &Self::Slice<T>;

    /// The elements of `range`, mutably.
    ///
    /// # Panics
    /// As [`Backend::part`].
    fn part_mut<T: Element>(slice: &mut Self::Slice<T>, range: Range<usize>) -> &mut Self::Slice<T>;

    /// Returns the first `middle` elements, and the rest.
    ///
    /// # Panics
    /// If `middle` exceeds the length.
    fn split_mut<T: Element>(
        slice: &mut Self::Slice<T>,
        middle: usize,
    ) -> (&mut Self::Slice<T>, &mut Self::Slice<T>);

    /// `to = from`, same lengths.
    ///
    /// # Errors
    /// If lengths differ.
    fn copy<T: Element>(&self, from: &Self::Slice<T>, to: &mut Self::Slice<T>) -> Result<()>;

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// If the device fails.
    fn fill<T: Element>(&self, value: T, to: &mut Self::Slice<T>) -> Result<()>;

    /// Records `body` for replay. The host stores it and calls it at each replay. A CUDA device runs it once under
    /// capture, and replays the graph, so the body must enqueue the same work each time, and must not wait for the
    /// device. Its buffers stay borrowed as long as the recording exists.
    ///
    /// # Errors
    /// If the work can't be recorded.
    fn record<'a>(&self, body: impl FnMut() -> Result<()> + Send + 'a) -> Result<Self::Recording<'a>>;

    /// A mailbox for messages of `len` elements.
    ///
    /// # Errors
    /// As [`Backend::zeros`].
    fn mailbox<T: Element>(&self, len: usize) -> Result<Self::Mailbox<T>>;

    /// Waits until all work is done, and reports its errors.
    ///
    /// # Errors
    /// The first failure since the last call.
    fn synchronize(&self) -> Result<()>;
}

/// Recorded work, see [`Backend::record`].
pub trait Replay {
    /// Runs (or enqueues) the work once.
    ///
    /// # Errors
    /// The errors of the recorded operations.
    fn replay(&mut self) -> Result<()>;
}

/// A ring buffer through which recorded work sends values (such as a residual norm) to the host while the device keeps
/// running. Messages arrive in the order of posting; at most [`Backend::QUEUE_DEPTH`] + 1 may be in transit. Posting
/// takes `&self`, so that the recording and the reader can share the mailbox.
pub trait Mailbox<T: Element>: Debug + Send + Sync {
    /// The backend that fills it.
    type Backend: Backend;
    /// Enqueues a message with `value`, whose length must be that of the mailbox.
    ///
    /// # Errors
    /// If the device fails.
    fn post(&self, backend: &Self::Backend, value: &<Self::Backend as Backend>::Slice<T>) -> Result<()>;
    /// Copies the next message to `message`, whose length must be that of the mailbox. If no message has arrived, waits
    /// for it if `wait` is true, else returns `false`.
    ///
    /// # Errors
    /// If work before the message has failed, or if the caller waits for a message that was never posted.
    fn next(&self, backend: &Self::Backend, wait: bool, message: &mut [T]) -> Result<bool>;
}
