//! Steps of graph traversal, from which [`crate::graph`] builds searches and orderings.
//!
//! A step does a whole traversal, not a single level, so a device can process many small levels in one launch, without
//! synchronising with the host after each.

use super::{Backend, CsrParts, OffsetsRef, Primitives};
use crate::error::{Error, Result};
use crate::scalar::Element;

/// The level of a vertex that cannot be reached from a source.
pub const UNREACHED: u32 = u32::MAX;

/// The fraction (one in this many) that [`Sweep::peers`] uses.
pub const PEERS_ONE_IN: usize = 64;

/// An undirected graph as borrowed parts. The neighbours of vertex `v` are `indices[offsets[v]..offsets[v + 1]]`, in
/// ascending order. If `w` is a neighbour of `v`, `v` must be one of `w`. A vertex may be listed as its own neighbour;
/// traversals and degrees ignore that.
#[derive(Debug)]
pub struct GraphParts<'a, B: Backend> {
    /// Number of vertices, below 2^32 - 1.
    pub vertices: usize,
    /// The start of each vertex's neighbours.
    pub offsets: OffsetsRef<'a, B>,
    /// The neighbours.
    pub indices: &'a B::Slice<u32>,
    /// Number of neighbours of each vertex, without itself.
    pub degrees: &'a B::Slice<u32>,
}

impl<B: Backend> Clone for GraphParts<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for GraphParts<'_, B> {}

impl<B: Backend> GraphParts<'_, B> {
    /// Returns an error for arguments that [`GraphSteps::number_grid`] can't take.
    pub(crate) fn check_grid(
        &self,
        levels: [&B::Slice<u32>; 3],
        sizes: [usize; 3],
        new_to_old: &B::Slice<u32>,
        old_to_new: &B::Slice<u32>,
    ) -> Result<()> {
        let points =
            sizes.iter().try_fold(1_usize, |points, &size| points.checked_mul(size)).unwrap_or(usize::MAX);
        Error::check_dimension("points of the grid", self.vertices, points)?;
        for levels in levels {
            Error::check_dimension("number of levels", self.vertices, B::len(levels))?;
        }
        Error::check_dimension("length of the numbering", self.vertices, B::len(new_to_old))?;
        Error::check_dimension("length of the inverse numbering", self.vertices, B::len(old_to_new))
    }
}

/// The rows of an undirected graph that one of several ranks owns: the neighbours of vertex `first + k` are
/// `indices[offsets[k]..offsets[k + 1]]`.
#[derive(Debug)]
pub struct GraphRows<'a, B: Backend> {
    /// Number of vertices of the whole graph, below 2^32 - 1.
    pub vertices: usize,
    /// The rank's first vertex, a multiple of 32.
    pub first: usize,
    /// Number of vertices that the rank owns: a multiple of 32 unless it has the last vertex.
    pub rows: usize,
    /// The number of neighbours stored for these vertices.
    pub neighbours: usize,
    /// The start of each row, and the end.
    pub offsets: OffsetsRef<'a, B>,
    /// The neighbours. The array may also contain other rows.
    pub indices: &'a B::Slice<u32>,
}

impl<B: Backend> Clone for GraphRows<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for GraphRows<'_, B> {}

/// The vertices that a rank found in the last level of a search. [`GraphSteps::frontier`] creates it.
#[derive(Debug)]
pub struct Frontier<B: Backend> {
    /// A bit mask of the rank's vertices: set if the vertex is in the frontier.
    pub vertices: B::Vec<u32>,
    /// A work list that a backend builds from the mask, to follow the edges of the frontier.
    pub queue: B::Vec<u64>,
    /// The number of entries in `queue`.
    pub queued: B::Vec<u64>,
}

/// Where the traversals of several components start.
#[derive(Debug)]
pub enum Roots<'a, B: Backend> {
    /// Traverses every component from its first vertex of lowest degree. Components are sorted by the (degree, number)
    /// of these vertices.
    LowestDegree,
    /// Traverses these components, in this order.
    Given {
        /// One vertex of each component, from which its traversal starts.
        roots: &'a B::Slice<u32>,
        /// The largest useful bandwidth of each component. A traversal that exceeds it may stop early, see
        /// [`Sweep::complete`].
        limits: &'a [usize],
    },
}

impl<B: Backend> Clone for Roots<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for Roots<'_, B> {}

/// The result of traversing one component: properties of the level structure rooted at `root`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// The start vertex.
    pub root: u32,
    /// True if the bandwidth is within the limit. If not, the other fields describe the part that was traversed, which
    /// is not the same on every backend.
    pub complete: bool,
    /// Vertices of the component.
    pub vertices: usize,
    /// The number of the last level (the root has level 0), which is the root's eccentricity.
    pub height: usize,
    /// The number of vertices in the largest level.
    pub width: usize,
    /// Bandwidth of the component in the order of the traversal (reversed or not).
    pub bandwidth: usize,
    /// The vertex of lowest degree in the last level; if there are several, the one with the smallest number.
    pub end: u32,
    /// For [`Roots::LowestDegree`]: other start vertices with the root's degree. Of the k such vertices, in the order
    /// of the traversal, these are the ones at k / 2, k / 4 and 3 k / 4, without repetition. `None` if k exceeds the
    /// component's size divided by [`PEERS_ONE_IN`]: vertices of lowest degree are good starts if they are rare,
    /// because then they are corners of a mesh.
    pub peers: [Option<u32>; 3],
}

/// The result of [`GraphSteps::cuthill_mckee_first`].
#[derive(Debug)]
pub struct FirstSweeps<B: Backend> {
    /// The result of each component.
    pub sweeps: Vec<Sweep>,
    /// If the graph is connected and has few vertices of lowest degree, a backend that can run more traversals at the
    /// same time may also start from the others. Each comes with its order, so that they need not be tried later.
    pub others: Vec<(Sweep, B::Vec<u32>)>,
}

/// The parameters for the cost and the gain of renumbering.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct OrderingPrice {
    /// The number of bytes in a cache line (a sector on a GPU).
    pub line: usize,
    /// The time to load a cache line of x that only one row needs, relative to the time to stream its bytes. It is less
    /// than one if outer caches hold x, or if other reads overlap.
    pub weight: f64,
    /// The number of bytes that a product moves per second, with cache lines of x weighted by `weight`.
    pub bandwidth: f64,
    /// The seconds that an ordering of any size takes, mostly for kernels that this process still has to load.
    pub start: f64,
    /// The seconds for a level of a traversal. A mesh in two dimensions has about 2 sqrt(rows) levels, more than other
    /// graphs.
    pub level: f64,
    /// The remaining time to order and permute, as a number of products with the matrix in its original order.
    pub products: f64,
}

impl OrderingPrice {
    /// For two cores of a server. Products with randomly numbered meshes lose 0.2 to 0.6 ns per entry if x is in the
    /// last-level cache, the time of 6 to 18 bytes. If x is not in the cache they lose 7 ns, so that the predicted gain
    /// is too small. Reverse Cuthill-McKee takes as long as 20 to 60 of these products; the model assumes more, because
    /// a mass matrix needs few iterations.
    pub const CPU: Self =
        Self { line: 64, weight: 0.25, bandwidth: 32e9, start: 0.0, level: 0.0, products: 75.0 };
    /// For one H200 with loaded kernels, fitted to the meshes of docs/internals/reordering.md. Shuffled meshes lose 39
    /// to 78 % of a product, and 58 to 66 % are predicted. Ordering and permuting them takes 0.5 to 1.1 times the
    /// predicted time; wathen takes 1.6 times, because it needs two rounds of traversals.
    pub const GPU: Self =
        Self { line: 32, weight: 0.8, bandwidth: 4.2e12, start: 0.5e-3, level: 2.5e-6, products: 15.0 };

    /// Returns the seconds to order and permute a matrix of this many rows; a product takes `product` seconds.
    #[must_use]
    pub fn seconds(&self, rows: usize, product: f64) -> f64 {
        self.start + 2.0 * (rows as f64).sqrt() * self.level + self.products * product
    }
}

/// Traversals, and the steps of orderings. All results are the same on every backend and for any number of threads.
pub trait GraphSteps: Primitives {
    /// Returns the cost of an ordering on this backend, given which kernels the process has already loaded.
    fn ordering_price(&self) -> OrderingPrice;

    /// The number of traversals of the same graph that should run at the same time.
    const TRAVERSALS_AT_ONCE: usize;

    /// `levels[v]` = the number of edges on a shortest path from the nearest of `sources` to `v`, or [`UNREACHED`] if
    /// there is none. Returns the number of levels.
    ///
    /// # Errors
    /// If a source is not a vertex, if lengths differ, if memory runs out, or if the device fails.
    fn bfs(
        &self,
        graph: GraphParts<'_, Self>,
        sources: &Self::Slice<u32>,
        levels: &mut Self::Slice<u32>,
    ) -> Result<usize>;

    /// Allocates memory for the largest frontier of a rank.
    ///
    /// # Errors
    /// If the rank's part of the graph is too large for this backend's traversals, or if memory runs out.
    fn frontier(&self, rows: GraphRows<'_, Self>) -> Result<Frontier<Self>>;

    /// A step of a distributed breadth-first search. All arrays have a bit for each vertex of the graph. Sets bits in
    /// `reached`, which is zero before: without `pull`, for the neighbours of the frontier that are not in `seen`; with
    /// `pull`, for this rank's vertices that are not in `seen` and have a neighbour in it.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn bfs_reach(
        &self,
        rows: GraphRows<'_, Self>,
        pull: bool,
        frontier: &mut Frontier<Self>,
        seen: &Self::Slice<u32>,
        reached: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Ends a step: adds the vertices in `reached` to `seen`, and clears `reached`. This rank's new vertices get
    /// `level` in `levels` and become the frontier. `figures` gets their number and the number of their neighbours.
    ///
    /// # Errors
    /// As [`GraphSteps::bfs_reach`].
    #[allow(clippy::too_many_arguments)]
    fn bfs_settle(
        &self,
        rows: GraphRows<'_, Self>,
        level: u32,
        reached: &mut Self::Slice<u32>,
        seen: &mut Self::Slice<u32>,
        levels: &mut Self::Slice<u32>,
        frontier: &mut Frontier<Self>,
        figures: &mut Self::Slice<f64>,
    ) -> Result<()>;

    /// Computes a breadth-first tree: the parent of a vertex is its smallest neighbour in the previous level, that of a
    /// source is the source itself, and that of a vertex without a path is [`UNREACHED`]. `levels` must come from
    /// [`GraphSteps::bfs`] on the same graph.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn bfs_parents(
        &self,
        graph: GraphParts<'_, Self>,
        levels: &Self::Slice<u32>,
        parents: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Writes the Cuthill-McKee order of each component from its root, one component after another, to `order`. The
    /// vertices of a level are sorted by (position of the first neighbour in the previous level, degree, number).
    /// Returns one [`Sweep`] for each component. Elements of `order` after all components are unchanged.
    ///
    /// # Errors
    /// If a root is not a vertex or was reached from an earlier one, if `order` is too short, if memory runs out, or if
    /// the device fails.
    fn cuthill_mckee(
        &self,
        graph: GraphParts<'_, Self>,
        roots: Roots<'_, Self>,
        order: &mut Self::Slice<u32>,
    ) -> Result<Vec<Sweep>>;

    /// Several independent calls of [`GraphSteps::cuthill_mckee`], run at the same time if that is faster for this
    /// graph.
    ///
    /// # Errors
    /// As [`GraphSteps::cuthill_mckee`].
    fn cuthill_mckee_several(
        &self,
        graph: GraphParts<'_, Self>,
        calls: Vec<(Roots<'_, Self>, &mut Self::Slice<u32>)>,
    ) -> Result<Vec<Vec<Sweep>>>;

    /// [`GraphSteps::cuthill_mckee`] from [`Roots::LowestDegree`], possibly with more traversals: see
    /// [`FirstSweeps::others`].
    ///
    /// # Errors
    /// As [`GraphSteps::cuthill_mckee`].
    fn cuthill_mckee_first(
        &self,
        graph: GraphParts<'_, Self>,
        order: &mut Self::Slice<u32>,
    ) -> Result<FirstSweeps<Self>> {
        let sweeps = self.cuthill_mckee(graph, Roots::LowestDegree, order)?;
        Ok(FirstSweeps { sweeps, others: Vec::new() })
    }

    /// `smallest[v]` = the smallest number of a vertex in v's connected component.
    ///
    /// # Errors
    /// If lengths differ, if memory runs out, or if the device fails.
    fn components(&self, graph: GraphParts<'_, Self>, smallest: &mut Self::Slice<u32>) -> Result<()>;

    /// `degrees[v]` = the number of neighbours of v, without itself. Returns whether the pattern is symmetric, by
    /// Freivalds' test; see [`Adjacency::new`](crate::graph::Adjacency::new).
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn degrees(
        &self,
        offsets: OffsetsRef<'_, Self>,
        indices: &Self::Slice<u32>,
        degrees: &mut Self::Slice<u32>,
    ) -> Result<bool>;

    /// Returns the vertices of this degree, ascending, on the host.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    fn of_degree(&self, graph: GraphParts<'_, Self>, degree: u32) -> Result<Vec<u32>>;

    /// Numbers the points of a grid of `sizes` = X, Y and Z: the vertex at (x, y, z) gets x + X (y + Y z). `levels` are
    /// those of [`GraphSteps::bfs`] from three corners: (0, 0, 0), (0, Y - 1, 0), and the corner opposite in z. Returns
    /// whether each number belongs to one vertex and each edge joins neighbours along an axis; if not, the arrays are
    /// undefined.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn number_grid(
        &self,
        graph: GraphParts<'_, Self>,
        levels: [&Self::Slice<u32>; 3],
        sizes: [usize; 3],
        new_to_old: &mut Self::Slice<u32>,
        old_to_new: &mut Self::Slice<u32>,
    ) -> Result<bool>;

    /// Returns the bandwidth and the profile (see [`profile`](crate::graph::profile)) of the graph if vertex v is
    /// renumbered to `numbers[v]`, or without renumbering.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn envelope(
        &self,
        graph: GraphParts<'_, Self>,
        numbers: Option<&Self::Slice<u32>>,
    ) -> Result<(usize, u64)>;

    /// Reverses an order (a vertex for each position): `new_to_old[k]` = `order[n - 1 - k]`, and `old_to_new` is the
    /// inverse permutation.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn reverse_order(
        &self,
        order: &Self::Slice<u32>,
        new_to_old: &mut Self::Slice<u32>,
        old_to_new: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[k]` = the number of entries in row `new_to_old[k]`. There is one more element than rows, which is set
    /// to 0.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn permuted_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        new_to_old: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// P A P^T: row k is the row `new_to_old[k]`, with columns renumbered by `old_to_new` and sorted, written at
    /// `new_offsets`. These have the same width (32 or 64 bits) as the offsets of `a`.
    ///
    /// # Errors
    /// If lengths or the widths of offsets differ, or if the device fails.
    fn permute_rows<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        new_to_old: &Self::Slice<u32>,
        old_to_new: &Self::Slice<u32>,
        new_offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Greedy colouring: in the order of decreasing [`priority`], each vertex gets the smallest colour that none of its
    /// neighbours has.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn colour(&self, graph: GraphParts<'_, Self>, colours: &mut Self::Slice<u32>) -> Result<()>;

    /// A maximal independent set: in the order of decreasing [`priority`], a vertex joins the set (1) if no neighbour
    /// is in it, else not (0).
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn independent_set(&self, graph: GraphParts<'_, Self>, set: &mut Self::Slice<u32>) -> Result<()>;
}

/// The priority of a vertex in greedy algorithms. Priorities are pseudo-random, so that long chains of vertices that
/// wait for each other are rare, and distinct, because each step is invertible (G. E. Blelloch, J. T. Fineman and J.
/// Shun, "Greedy sequential maximal independent set and matching are parallel on average", SPAA 2012).
pub fn priority(vertex: u32) -> u32 {
    let v = vertex ^ vertex >> 16;
    let v = v.wrapping_mul(0x7feb_352d);
    let v = v ^ v >> 15;
    let v = v.wrapping_mul(0x846c_a68b);
    v ^ v >> 16
}
