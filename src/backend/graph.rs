//! Steps of graph traversal, on which the searches and orderings in [`crate::graph`] are built.
//!
//! A step does a whole traversal, not a single level: a device can then do many narrow levels in one launch, without
//! synchronisation with the host between levels.

use super::{Backend, CsrParts, OffsetsRef, Primitives};
use crate::error::{Error, Result};
use crate::scalar::Element;

/// Level of a vertex that cannot be reached from a source.
pub const UNREACHED: u32 = u32::MAX;

/// See [`Sweep::peers`].
pub const PEERS_ONE_IN: usize = 64;

/// An undirected graph as borrowed parts: the neighbours of vertex `v` are `indices[offsets[v]..offsets[v + 1]]`,
/// ascending; if `w` is a neighbour of `v`, `v` is one of `w`. A vertex may be listed as its own neighbour: traversals
/// ignore that, and degrees do not count it.
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
    /// Returns an error for input that [`GraphSteps::number_grid`] can't take.
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

/// The rows of an undirected graph that one of several ranks has: the neighbours of vertex `first + k` are
/// `indices[offsets[k]..offsets[k + 1]]`.
#[derive(Debug)]
pub struct GraphRows<'a, B: Backend> {
    /// Number of vertices of the whole graph, below 2^32 - 1.
    pub vertices: usize,
    /// The rank's first vertex, a multiple of 32.
    pub first: usize,
    /// Number of vertices that the rank owns: a multiple of 32 unless it has the last vertex.
    pub rows: usize,
    /// Stored neighbours of these vertices.
    pub neighbours: usize,
    /// The start of each row, and the end.
    pub offsets: OffsetsRef<'a, B>,
    /// The neighbours; other rows may be stored too.
    pub indices: &'a B::Slice<u32>,
}

impl<B: Backend> Clone for GraphRows<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for GraphRows<'_, B> {}

/// The vertices that a rank found in the last level of a search, made by [`GraphSteps::frontier`].
#[derive(Debug)]
pub struct Frontier<B: Backend> {
    /// A bit for each of the rank's vertices.
    pub vertices: B::Vec<u32>,
    /// A work list that a backend makes from them to follow their edges.
    pub queue: B::Vec<u64>,
    /// The number of entries in `queue`.
    pub queued: B::Vec<u64>,
}

/// The start of a traversal of several components.
#[derive(Debug)]
pub enum Roots<'a, B: Backend> {
    /// Every component, each from its first vertex of lowest degree, with components sorted by the (degree, number) of
    /// these.
    LowestDegree,
    /// These components, in this order.
    Given {
        /// The root of each component: one of its vertices.
        roots: &'a B::Slice<u32>,
        /// The largest useful bandwidth of each component: a traversal that exceeds it need not be completed, see
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

/// The result of the traversal of one component: properties of the level structure rooted at `root`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// The start vertex.
    pub root: u32,
    /// True if the bandwidth is within the limit. If not, the other fields describe the part that was traversed, which
    /// is not the same on every backend.
    pub complete: bool,
    /// Vertices of the component.
    pub vertices: usize,
    /// Number of the last level (the root has level 0): the root's eccentricity.
    pub height: usize,
    /// Vertices of the largest level.
    pub width: usize,
    /// Bandwidth of the component in the order of the traversal (reversed or not).
    pub bandwidth: usize,
    /// The vertex of lowest degree in the last level; the smallest if there are several.
    pub end: u32,
    /// For [`Roots::LowestDegree`]: of the k other vertices with the root's degree, in the order of the traversal,
    /// those at k / 2, k / 4 and 3 k / 4, without repetition. None if k exceeds the component's [`PEERS_ONE_IN`]th
    /// part: if vertices of lowest degree are rare, they are corners of a mesh and good starts; if there are many, they
    /// are not.
    pub peers: [Option<u32>; 3],
}

/// The result of [`GraphSteps::cuthill_mckee_first`].
#[derive(Debug)]
pub struct FirstSweeps<B: Backend> {
    /// The result for each component.
    pub sweeps: Vec<Sweep>,
    /// If the graph is connected and has few vertices of lowest degree, a backend with room for more simultaneous
    /// traversals may also start from the others, each with its order, so that these need not be tried later.
    pub others: Vec<(Sweep, B::Vec<u32>)>,
}

/// The cost and the gain of renumbering on a device.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct OrderingPrice {
    /// Bytes of a cache line (a sector on a GPU).
    pub line: usize,
    /// Time of a cache line of x that only one row needs, relative to the time to stream its bytes: less than one if
    /// farther caches hold x, or other reads overlap.
    pub weight: f64,
    /// Bytes a second that a product moves, with cache lines of x weighted by `weight`.
    pub bandwidth: f64,
    /// Seconds that an ordering of any size takes, mostly what this process still has to load for it.
    pub start: f64,
    /// Seconds of a level of a traversal; a mesh in two dimensions has about 2 sqrt(rows) of them, more than other
    /// graphs.
    pub level: f64,
    /// The rest of the time to order and permute, in products with the matrix in its original order.
    pub products: f64,
}

impl OrderingPrice {
    /// Two cores of a server: products with randomly numbered meshes, whose x is in the last-level cache, lose 0.2 to
    /// 0.6 ns an entry, as long as 6 to 18 bytes take; if x is not in the cache, 7 ns, so that this predicts too small
    /// a gain. Reverse Cuthill-McKee takes as long as 20 to 60 of these products, and is assumed to take more, because
    /// a mass matrix needs few iterations.
    pub const CPU: Self =
        Self { line: 64, weight: 0.25, bandwidth: 32e9, start: 0.0, level: 0.0, products: 75.0 };
    /// One H200 whose kernels are loaded, fitted to the meshes of docs/internals/reordering.md: shuffled, they lose 39
    /// to 78 % of a product, while 58 to 66 % are predicted. Ordering and permuting them takes 0.5 to 1.1 times the
    /// prediction; wathen takes 1.6 times, because it needs two rounds of traversals.
    pub const GPU: Self =
        Self { line: 32, weight: 0.8, bandwidth: 4.2e12, start: 0.5e-3, level: 2.5e-6, products: 15.0 };

    /// Seconds to order and permute a matrix of this many rows, for which a product takes `product` seconds.
    #[must_use]
    pub fn seconds(&self, rows: usize, product: f64) -> f64 {
        self.start + 2.0 * (rows as f64).sqrt() * self.level + self.products * product
    }
}

/// Traversals, and the steps of orderings on patterns. All results are the same on every backend and with any number of
/// threads.
pub trait GraphSteps: Primitives {
    /// The price of an ordering on this backend, in the current state of the process.
    fn ordering_price(&self) -> OrderingPrice;

    /// How many traversals of the same graph run best at the same time.
    const TRAVERSALS_AT_ONCE: usize;

    /// `levels[v]` = edges on a shortest path from the nearest of `sources` to `v`, or [`UNREACHED`] if there is none.
    /// Returns the number of levels.
    ///
    /// # Errors
    /// If a source is not a vertex, if lengths differ, if memory runs out, or if the device fails.
    fn bfs(
        &self,
        graph: GraphParts<'_, Self>,
        sources: &Self::Slice<u32>,
        levels: &mut Self::Slice<u32>,
    ) -> Result<usize>;

    /// Memory for the largest frontier of a rank.
    ///
    /// # Errors
    /// If the rank's part is too large for this backend's traversals, or if memory runs out.
    fn frontier(&self, rows: GraphRows<'_, Self>) -> Result<Frontier<Self>>;

    /// A step of a distributed breadth-first search, with a bit for each vertex of the graph. Sets in `reached`, which
    /// is zero before, the neighbours of the frontier that are not in `seen`; or, with `pull`, those of this rank's
    /// vertices that are not in `seen` and have a neighbour in it.
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

    /// The end of a step: adds the vertices in `reached` to `seen`. This rank's new vertices get `level` in `levels`
    /// and become the frontier; `figures` gets their number and that of their neighbours. Clears `reached`.
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

    /// A breadth-first tree: for each vertex its smallest neighbour in the level before, for a source the vertex
    /// itself; [`UNREACHED`] if no path leads there. `levels` are those of [`GraphSteps::bfs`] on the same graph.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn bfs_parents(
        &self,
        graph: GraphParts<'_, Self>,
        levels: &Self::Slice<u32>,
        parents: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The Cuthill-McKee order of each component from its root, one component after another in `order`: the vertices of
    /// a level are sorted by (position of the first neighbour in the level before, degree, number). Returns one
    /// [`Sweep`] for each component; `order` beyond their vertices is unchanged.
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

    /// Independent calls of [`GraphSteps::cuthill_mckee`], run at the same time if that is faster for this graph.
    ///
    /// # Errors
    /// As [`GraphSteps::cuthill_mckee`].
    fn cuthill_mckee_several(
        &self,
        graph: GraphParts<'_, Self>,
        calls: Vec<(Roots<'_, Self>, &mut Self::Slice<u32>)>,
    ) -> Result<Vec<Vec<Sweep>>>;

    /// As [`GraphSteps::cuthill_mckee`] from [`Roots::LowestDegree`], possibly with more traversals: see
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

    /// `smallest[v]` = the smallest vertex of v's connected component.
    ///
    /// # Errors
    /// If lengths differ, if memory runs out, or if the device fails.
    fn components(&self, graph: GraphParts<'_, Self>, smallest: &mut Self::Slice<u32>) -> Result<()>;

    /// `degrees[v]` = number of neighbours of v, without itself. Returns whether the pattern is symmetric, by
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

    /// The vertices of this degree, ascending, on the host.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    fn of_degree(&self, graph: GraphParts<'_, Self>, degree: u32) -> Result<Vec<u32>>;

    /// Numbers the points of a grid: the vertex at (x, y, z) gets x + X (y + Y z). `levels` are those of
    /// [`GraphSteps::bfs`] from three corners: from (0, 0, 0), from the corner (0, Y - 1, 0), and from the corner
    /// opposite in z; `sizes` are X, Y and Z. Returns whether each number belongs to one vertex, and each edge joins
    /// neighbours along an axis; if not, the arrays are undefined.
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

    /// The bandwidth and the profile (see [`profile`](crate::graph::profile)) of the graph's pattern, if vertex v has
    /// the number `numbers[v]`, or its own without `numbers`.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn envelope(
        &self,
        graph: GraphParts<'_, Self>,
        numbers: Option<&Self::Slice<u32>>,
    ) -> Result<(usize, u64)>;

    /// The reverse of an order (vertex at each position), as a permutation: `new_to_old[k]` = `order[n - 1 - k]`, and
    /// its inverse.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn reverse_order(
        &self,
        order: &Self::Slice<u32>,
        new_to_old: &mut Self::Slice<u32>,
        old_to_new: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[k]` = entries of the row `new_to_old[k]`; one more element than rows, the last is 0.
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
    /// `new_offsets`, which are as wide as those of `a`.
    ///
    /// # Errors
    /// If lengths differ or widths, or if the device fails.
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

    /// A maximal independent set: in the order of decreasing [`priority`], a vertex joins (1) if it has no neighbour in
    /// the set, else not (0).
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn independent_set(&self, graph: GraphParts<'_, Self>, set: &mut Self::Slice<u32>) -> Result<()>;
}

/// The position of a vertex in the order of greedy algorithms: pseudo-random and distinct for each vertex (each step is
/// invertible), so that long chains of vertices that wait for each other are rare (G. E. Blelloch, J. T. Fineman and J.
/// Shun, "Greedy sequential maximal independent set and matching are parallel on average", SPAA 2012).
pub fn priority(vertex: u32) -> u32 {
    let v = vertex ^ vertex >> 16;
    let v = v.wrapping_mul(0x7feb_352d);
    let v = v ^ v >> 15;
    let v = v.wrapping_mul(0x846c_a68b);
    v ^ v >> 16
}
