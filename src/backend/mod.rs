//! The seam: where data lives and where kernels run.
//!
//! [`Backend`] owns memory and order of execution. What a backend can compute is told by capability traits, each of
//! them one room: [`Primitives`] (reduce, scan, sort, merge), [`RunSums`] (the same sums with new values),
//! [`VectorOps`] (dot, fused updates: all that a Krylov method asks for), [`KrylovSteps`] (the fused steps of conjugate
//! gradients), [`Products`] (one per storage layout), [`Conversions`] (between layouts), [`RowFacts`] (symmetry,
//! diagonals), [`PreconditionSteps`] (dense blocks, polynomials, half the precision), [`GraphSteps`] (traversals,
//! components, orders, colours), [`CompressedSteps`] (compressing what repeats), [`BatchSteps`] (many
//! small systems). Everything above the seam (assembly,
//! conversions, orderings, solvers) is written once, against these traits, and runs wherever they are implemented.
//!
//! | file | what it holds |
//! |---|---|
//! | `layout` | the storage of each matrix format as borrowed parts: the contract between `matrix` and the kernels |
//! | `primitives`, `runs`, `vector`, `product`, `convert`, `rows`, `krylov`, `precondition`, `graph` | the traits |
//! | `compressed` | the compressed format: its storage, and the steps of compressing |
//! | `factor` | factorisations by a library that was found when the program ran |
//! | `scalars` | arithmetic on the scalars of a recurrence, in the backend's memory |
//! | `persistent` | many iterations in one call, and what is worked out once for a pattern |
//! | `host` | the implementation on rayon |
//! | `cuda` | the implementation for NVIDIA devices |
//!
//! Slices are plain Rust references, `&B::Slice<T>` and `&mut B::Slice<T>`: on the host they are `&[T]`, on a device
//! an address and a length that only the device follows. So the borrow checker guards device memory as it guards host
//! memory, and a caller passes its own buffers in and out.

mod batch;
mod coarsen;
mod communicator;
mod compressed;
mod convert;
#[cfg(feature = "cuda")]
pub mod cuda;
mod factor;
mod graph;
mod grid;
mod grid_stencil;
mod grouping;
pub mod host;
mod krylov;
mod layout;
mod model;
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
mod triangular;
mod vector;

#[cfg(feature = "cuda")]
pub(crate) use batch::{BESIDE, NORM_UNITS, POWERS, REFINEMENTS};
pub use batch::{BatchElimination, BatchEntries, BatchGoal, BatchParts, BatchSteps, BatchVectors, UNCERTAIN};
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
pub use factor::{Elimination, FactorEstimate, FactorKind, FactorOptions, FactorSteps, Factors};
pub use graph::{
    FirstSweeps, Frontier, GraphParts, GraphRows, GraphSteps, OrderingPrice, PEERS_ONE_IN, Roots, Sweep,
    UNREACHED, priority,
};
pub(crate) use grid::{BoxSums, LEAST_LEFT, bits_of, check_weights, interpolated, weight_number};
pub use grid::{Grid, GridMatrix, GridSteps, NEIGHBOURS, Neighbours, RowsOnGrid, grid_values, grid_weights};
pub use grid_stencil::GridStencil;
pub(crate) use grouping::independent_priority;
pub use grouping::{ALIKE, GroupingSteps, MOST_OF_BLOCK, NO_GROUP, NodeState};
pub use host::{Host, Parts};
pub use krylov::{CgSlot, CgStatus, Inverse, KrylovSteps};
pub use layout::*;
pub use model::{CompressionRule, ProductModel};
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
pub use triangular::{Pivots, Side, TriangleParts, TriangularSteps};
pub use vector::{Coefficient, Hessenberg, InnerProduct, LinearUpdate, VectorOps};

use crate::error::{Error, Result};
use crate::scalar::Element;
use std::fmt::Debug;
use std::ops::{DerefMut, Range};

/// Where data lives and in which order work on it happens.
///
/// A value is a cheap handle (clone it freely). All operations of one handle happen in the order in which they are
/// called, as if each had finished before the next; a device may run behind the caller, and [`Backend::download`],
/// [`Backend::read`] and [`Backend::synchronize`] wait for it.
pub trait Backend: Clone + Debug + Send + Sync + 'static {
    /// An owned buffer.
    type Vec<T: Element>: DerefMut<Target = Self::Slice<T>> + Debug + Send + Sync + 'static;
    /// A borrowed buffer, always behind a reference.
    type Slice<T: Element>: ?Sized + Debug + Send + Sync;
    /// Work that was recorded once and can be replayed cheaply; it borrows what it touches.
    type Recording<'a>: Replay;
    /// Values on their way from the backend to the caller, see [`Mailbox`].
    type Mailbox<T: Element>: Mailbox<T, Backend = Self> + 'static;
    /// How many recorded iterations a solver should keep queued before it waits for the value that the oldest of
    /// them posted: 1 where execution is immediate.
    const QUEUE_DEPTH: usize;

    /// One line for reports: `cpu (2 threads)`, `NVIDIA H200 (cuda:0)`.
    fn description(&self) -> String;

    /// Seconds that this process has waited so far for kernels to be compiled and loaded, which each is at its first
    /// use.
    fn first_use_seconds(&self) -> f64 {
        0.0
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] with the size; nothing is lost and the caller can go on.
    fn zeros<T: Element>(&self, len: usize) -> Result<Self::Vec<T>>;

    /// A buffer of `len` elements for a caller that writes all of them before anything reads them: zeros where those
    /// are had for nothing, as on the host, else whatever lies there, which is a valid value of every element type.
    ///
    /// # Errors
    /// As [`Backend::zeros`].
    fn buffer<T: Element>(&self, len: usize) -> Result<Self::Vec<T>> {
        self.zeros(len)
    }

    /// Takes host data over (a move on the host, a copy elsewhere).
    ///
    /// # Errors
    /// As [`Backend::zeros`].
    fn upload<T: Element>(&self, data: Vec<T>) -> Result<Self::Vec<T>>;

    /// The content as host data, once all work before it is done.
    ///
    /// # Errors
    /// When earlier work or the copy fails.
    fn download<T: Element>(&self, data: &Self::Slice<T>) -> Result<Vec<T>>;

    /// Copies into host memory of the same length, once all work before it is done.
    ///
    /// # Errors
    /// On different lengths, and as [`Backend::download`].
    fn read<T: Element>(&self, from: &Self::Slice<T>, to: &mut [T]) -> Result<()>;

    /// The same of parts of a slice, which come one behind the other. Small ones are waited for together: a wait costs
    /// a device more than a few copies.
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

    /// The element of a slice of one, as kernels leave what they found: counts, sums, what is wrong. Waits for all work
    /// before it.
    ///
    /// # Errors
    /// On another number of elements, and as [`Backend::download`].
    fn value<T: Element>(&self, cell: &Self::Slice<T>) -> Result<T> {
        let mut value = [T::default()];
        self.read(cell, &mut value)?;
        Ok(value[0])
    }

    /// Copies from host memory of the same length.
    ///
    /// # Errors
    /// On different lengths.
    fn write<T: Element>(&self, from: &[T], to: &mut Self::Slice<T>) -> Result<()>;

    /// Number of elements.
    fn len<T: Element>(slice: &Self::Slice<T>) -> usize;

    /// The elements of `range`.
    ///
    /// # Panics
    /// Where `range` exceeds the slice, as indexing does.
    fn part<T: Element>(slice: &Self::Slice<T>, range: Range<usize>) -> &Self::Slice<T>;

    /// The elements of `range`, mutably.
    ///
    /// # Panics
    /// As [`Backend::part`].
    fn part_mut<T: Element>(slice: &mut Self::Slice<T>, range: Range<usize>) -> &mut Self::Slice<T>;

    /// Two disjoint halves, the first `middle` elements and the rest.
    ///
    /// # Panics
    /// Where `middle` exceeds the length.
    fn split_mut<T: Element>(
        slice: &mut Self::Slice<T>,
        middle: usize,
    ) -> (&mut Self::Slice<T>, &mut Self::Slice<T>);

    /// `to = from`, same lengths.
    ///
    /// # Errors
    /// On different lengths.
    fn copy<T: Element>(&self, from: &Self::Slice<T>, to: &mut Self::Slice<T>) -> Result<()>;

    /// Every element becomes `value`.
    ///
    /// # Errors
    /// When the device fails.
    fn fill<T: Element>(&self, value: T, to: &mut Self::Slice<T>) -> Result<()>;

    /// Keeps `body` for replay without running it. The host calls it again and again; a CUDA device runs it once
    /// under capture and replays the graph, so the body must enqueue the same work each time and must not wait for
    /// the device. It borrows its buffers for as long as the recording lives.
    ///
    /// # Errors
    /// When the work can't be recorded.
    fn record<'a>(&self, body: impl FnMut() -> Result<()> + Send + 'a) -> Result<Self::Recording<'a>>;

    /// A mailbox for messages of `len` elements.
    ///
    /// # Errors
    /// As [`Backend::zeros`].
    fn mailbox<T: Element>(&self, len: usize) -> Result<Self::Mailbox<T>>;

    /// Waits until all work is done, and reports what failed in it.
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
    /// Those of the recorded operations.
    fn replay(&mut self) -> Result<()>;
}

/// A ring through which recorded work tells the caller values (a residual norm, say) without stopping the device.
/// Messages arrive in the order of posting; at most [`Backend::QUEUE_DEPTH`] + 1 may be under way. Posting takes
/// `&self`, so that the recording and its reader can share the mailbox.
pub trait Mailbox<T: Element>: Debug + Send + Sync {
    /// The backend that fills it.
    type Backend: Backend;
    /// Enqueues the posting of `value`, of the mailbox's message length.
    ///
    /// # Errors
    /// When the device fails.
    fn post(&self, backend: &Self::Backend, value: &<Self::Backend as Backend>::Slice<T>) -> Result<()>;
    /// Copies the next message, of the mailbox's message length: waits for it where `wait`, else returns `false` if it
    /// has not arrived.
    ///
    /// # Errors
    /// When work before the message failed, or where it waits for a message that was never posted.
    fn next(&self, backend: &Self::Backend, wait: bool, message: &mut [T]) -> Result<bool>;
}
