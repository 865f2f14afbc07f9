//! Steps of graph traversal. The searches and orderings in [`crate::graph`] are written once above them.
//!
//! A step runs a whole traversal, not one level of it: a device can then run many narrow levels in one launch, and
//! nothing waits for the device between two levels.

use super::{Backend, CsrParts, OffsetsRef, Primitives};
use crate::error::{Error, Result};
use crate::scalar::Element;

/// Level of a vertex that no source reaches.
pub const UNREACHED: u32 = u32::MAX;

/// See [`Sweep::peers`].
pub const PEERS_ONE_IN: usize = 64;

/// An undirected graph as borrowed parts: the neighbours of vertex `v` are `indices[offsets[v]..offsets[v + 1]]`,
/// ascending; where `w` is a neighbour of `v`, `v` is one of `w`. A vertex may list itself: traversals ignore that, and
/// degrees do not count it.
#[derive(Debug)]
pub struct GraphParts<'a, B: Backend> {
    /// Number of vertices, below 2^32 - 1.
    pub vertices: usize,
    /// Where each vertex's neighbours start.
    pub offsets: OffsetsRef<'a, B>,
    /// The neighbours.
    pub indices: &'a B::Slice<u32>,
    /// Number of neighbours of each vertex, itself not counted.
    pub degrees: &'a B::Slice<u32>,
}

impl<B: Backend> Clone for GraphParts<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for GraphParts<'_, B> {}

impl<B: Backend> GraphParts<'_, B> {
    /// Refuses what [`GraphSteps::number_grid`] can't take.
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

/// Some rows of an undirected graph, those of one of several parts: the neighbours of vertex `first + k` are
/// `indices[offsets[k]..offsets[k + 1]]`.
#[derive(Debug)]
pub struct GraphRows<'a, B: Backend> {
    /// Number of vertices of the whole graph, below 2^32 - 1.
    pub vertices: usize,
    /// The part's first vertex, a multiple of 32.
    pub first: usize,
    /// Number of vertices that the part owns: a multiple of 32 where the last vertex is not among them.
    pub rows: usize,
    /// Stored neighbours of these.
    pub neighbours: usize,
    /// Where each of them starts, one more than there are rows.
    pub offsets: OffsetsRef<'a, B>,
    /// The neighbours, perhaps with those of other rows.
    pub indices: &'a B::Slice<u32>,
}

impl<B: Backend> Clone for GraphRows<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for GraphRows<'_, B> {}

/// The vertices that a part found in the last level of a search: made by [`GraphSteps::frontier`].
#[derive(Debug)]
pub struct Frontier<B: Backend> {
    /// A bit for each of the part's vertices.
    pub vertices: B::Vec<u32>,
    /// Room for what a backend makes of them to follow their edges.
    pub queue: B::Vec<u64>,
    /// How many entries that has.
    pub queued: B::Vec<u64>,
}

/// Where a traversal of several components starts.
#[derive(Debug)]
pub enum Roots<'a, B: Backend> {
    /// Every component, each from its vertex of lowest degree (the first of them), components in the order of
    /// (degree, number) of these.
    LowestDegree,
    /// Some components, in this order.
    Given {
        /// A vertex of each, no two of them in the same component.
        roots: &'a B::Slice<u32>,
        /// The largest bandwidth of each that is of any use: a traversal that exceeds it need not be finished, see
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

/// What a traversal of one component found: the level structure rooted at `root`, in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// The vertex that it started from.
    pub root: u32,
    /// Whether the bandwidth is within the limit. Where it is not, the other figures are those of the part that was
    /// traversed, which is not the same on every backend.
    pub complete: bool,
    /// Vertices of the component.
    pub vertices: usize,
    /// Number of the last level, the root's being 0: the root's eccentricity.
    pub height: usize,
    /// Vertices of the largest level.
    pub width: usize,
    /// Bandwidth of the component under the order of the traversal (reversed or not).
    pub bandwidth: usize,
    /// The vertex of lowest degree in the last level, the smallest of several.
    pub end: u32,
    /// For [`Roots::LowestDegree`]: of the k other vertices of the root's degree, in the order of the traversal,
    /// those at k / 2, k / 4 and 3 k / 4, none twice. None where k exceeds the component's [`PEERS_ONE_IN`]th part: few
    /// vertices of lowest degree are corners of a mesh and good to start from, many say nothing.
    pub peers: [Option<u32>; 3],
}

/// What [`GraphSteps::cuthill_mckee_first`] found.
#[derive(Debug)]
pub struct FirstSweeps<B: Backend> {
    /// One a component.
    pub sweeps: Vec<Sweep>,
    /// Where the graph is connected and few vertices have its lowest degree, a backend that has room for more
    /// traversals at the same time may also sweep from the others of these, each with its order: who tries them next
    /// then need not.
    pub others: Vec<(Sweep, B::Vec<u32>)>,
}

/// What renumbering costs and gains on a device, in the device's terms.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct OrderingPrice {
    /// Bytes of a cache line (a sector on a GPU).
    pub line: usize,
    /// Time of a line of x that only one row needs, as a share of the time to stream its bytes: less than one where
    /// caches further away hold x, or other reads go on meanwhile.
    pub weight: f64,
    /// Bytes a second that a product moves, its lines of x weighted so.
    pub bandwidth: f64,
    /// Seconds that an ordering of any size takes, what this process has to load for it first among them.
    pub start: f64,
    /// Seconds of a level of a traversal, of which a mesh in two dimensions has about 2 sqrt(rows): more than others
    /// have.
    pub level: f64,
    /// Time to order and permute beside that, in products with the matrix as it came.
    pub products: f64,
}

impl OrderingPrice {
    /// Two cores of a server: products with randomly numbered meshes, whose x lies in the last cache, lose 0.2 to 0.6
    /// ns an entry, as long as 6 to 18 bytes take; where it does not, 7 ns, so that this promises too little. Reverse
    /// Cuthill-McKee costs 20 to 60 of these products, and is expected to cost more, for a mass matrix needs few
    /// iterations.
    pub const CPU: Self =
        Self { line: 64, weight: 0.25, bandwidth: 32e9, start: 0.0, level: 0.0, products: 75.0 };
    /// One H200 whose kernels are loaded, as fitted to the meshes of docs/internals/reordering.md: shuffled, they lose
    /// 39 to 78 % of a product where 58 to 66 % are predicted. Ordering and permuting them takes 0.5 to 1.1 times what
    /// is predicted, wathen 1.6 times, which takes two rounds of traversals.
    pub const GPU: Self =
        Self { line: 32, weight: 0.8, bandwidth: 4.2e12, start: 0.5e-3, level: 2.5e-6, products: 15.0 };

    /// Seconds to order and permute a matrix of so many rows, with which a product takes `product` seconds.
    #[must_use]
    pub fn seconds(&self, rows: usize, product: f64) -> f64 {
        self.start + 2.0 * (rows as f64).sqrt() * self.level + self.products * product
    }
}

/// Traversals, and what orderings ask of a pattern. All results are the same on every backend and with any number of
/// threads.
pub trait GraphSteps: Primitives {
    /// What an ordering costs here, in this process as it is now.
    fn ordering_price(&self) -> OrderingPrice;

    /// How many traversals of the same graph run best at the same time.
    const TRAVERSALS_AT_ONCE: usize;

    /// `levels[v]` = edges on a shortest path from the nearest of `sources` to `v`, [`UNREACHED`] where there is none.
    /// Returns the number of levels.
    ///
    /// # Errors
    /// On a source that is no vertex, on different lengths, without memory, or when the device fails.
    fn bfs(
        &self,
        graph: GraphParts<'_, Self>,
        sources: &Self::Slice<u32>,
        levels: &mut Self::Slice<u32>,
    ) -> Result<usize>;

    /// Room for the largest frontier of a part.
    ///
    /// # Errors
    /// Where the part is larger than this backend's traversals can count, or without memory.
    fn frontier(&self, rows: GraphRows<'_, Self>) -> Result<Frontier<Self>>;

    /// A step of a breadth-first search on one of several parts, with a bit for each vertex of the graph: `reached`,
    /// zero before, gets those of neighbours of the frontier that are not in `seen`; or, with `pull`, of this part's
    /// vertices that are not in `seen` and have a neighbour in it.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn bfs_reach(
        &self,
        rows: GraphRows<'_, Self>,
        pull: bool,
        frontier: &mut Frontier<Self>,
        seen: &Self::Slice<u32>,
        reached: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The end of a step: what was reached and is not in `seen` is seen from here on. This part's vertices among that
    /// get `level` in `levels` and become the frontier; `figures` tells how many they are, and their neighbours.
    /// `reached` is zero behind it.
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

    /// A breadth-first tree: the smallest neighbour of each vertex in the level before, the vertex itself for a source,
    /// [`UNREACHED`] where no path leads. `levels` are those of [`GraphSteps::bfs`] on the same graph.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn bfs_parents(
        &self,
        graph: GraphParts<'_, Self>,
        levels: &Self::Slice<u32>,
        parents: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The Cuthill-McKee order of each component from its root, one component behind the other in `order`:
    /// the vertices of a level stand in the order of (place of the first neighbour in the level before, degree,
    /// number). Returns one [`Sweep`] a component; `order` beyond their vertices keeps what it held.
    ///
    /// # Errors
    /// On a root that is no vertex or was reached from an earlier one, on an `order` that is too short, without memory,
    /// or when the device fails.
    fn cuthill_mckee(
        &self,
        graph: GraphParts<'_, Self>,
        roots: Roots<'_, Self>,
        order: &mut Self::Slice<u32>,
    ) -> Result<Vec<Sweep>>;

    /// Independent calls of [`GraphSteps::cuthill_mckee`], at the same time where that is faster for this graph.
    ///
    /// # Errors
    /// As [`GraphSteps::cuthill_mckee`].
    fn cuthill_mckee_several(
        &self,
        graph: GraphParts<'_, Self>,
        calls: Vec<(Roots<'_, Self>, &mut Self::Slice<u32>)>,
    ) -> Result<Vec<Vec<Sweep>>>;

    /// As [`GraphSteps::cuthill_mckee`] from [`Roots::LowestDegree`], perhaps with more: see [`FirstSweeps::others`].
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
    /// On different lengths, without memory, or when the device fails.
    fn components(&self, graph: GraphParts<'_, Self>, smallest: &mut Self::Slice<u32>) -> Result<()>;

    /// `degrees[v]` = number of neighbours of v, itself not counted. Returns whether the pattern is symmetric, by
    /// Freivalds' test; see [`Adjacency::new`](crate::graph::Adjacency::new).
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn degrees(
        &self,
        offsets: OffsetsRef<'_, Self>,
        indices: &Self::Slice<u32>,
        degrees: &mut Self::Slice<u32>,
    ) -> Result<bool>;

    /// The vertices of a degree, ascending, on the host.
    ///
    /// # Errors
    /// Without memory, or when the device fails.
    fn of_degree(&self, graph: GraphParts<'_, Self>, degree: u32) -> Result<Vec<u32>>;

    /// Numbers the points of a grid: the vertex at (x, y, z) gets x + X (y + Y z). `levels` are those of
    /// [`GraphSteps::bfs`] from three corners: from (0, 0, 0), from its neighbour across y, (0, Y - 1, 0), and from that
    /// across z; `sizes` are X, Y and Z. Returns whether each number is that of one vertex, and each edge joins points
    /// that are neighbours along an axis; where that is not so, the arrays hold nothing of use.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn number_grid(
        &self,
        graph: GraphParts<'_, Self>,
        levels: [&Self::Slice<u32>; 3],
        sizes: [usize; 3],
        new_to_old: &mut Self::Slice<u32>,
        old_to_new: &mut Self::Slice<u32>,
    ) -> Result<bool>;

    /// The bandwidth and the profile (see [`profile`](crate::graph::profile)) of the graph's pattern, where vertex v
    /// has the number `numbers[v]`, or its own.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn envelope(
        &self,
        graph: GraphParts<'_, Self>,
        numbers: Option<&Self::Slice<u32>>,
    ) -> Result<(usize, u64)>;

    /// From an order (place to vertex) to the reversed numbering: `new_to_old[k]` = `order[n - 1 - k]`, and the
    /// inverse.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn reverse_order(
        &self,
        order: &Self::Slice<u32>,
        new_to_old: &mut Self::Slice<u32>,
        old_to_new: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[k]` = entries of the row `new_to_old[k]`; one more than there are rows, the last is 0.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn permuted_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        new_to_old: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// P A P^T: row k is the row `new_to_old[k]`, its columns renumbered by `old_to_new` and ascending, written at
    /// `new_offsets`, which are as wide as those of `a`.
    ///
    /// # Errors
    /// On different lengths or widths, or when the device fails.
    fn permute_rows<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        new_to_old: &Self::Slice<u32>,
        old_to_new: &Self::Slice<u32>,
        new_offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Greedy colours: in the order of falling [`priority`], each vertex gets the smallest colour that none of its
    /// neighbours has.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn colour(&self, graph: GraphParts<'_, Self>, colours: &mut Self::Slice<u32>) -> Result<()>;

    /// A maximal independent set: in the order of falling [`priority`], each vertex joins (1) that has no neighbour in
    /// it, else not (0).
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn independent_set(&self, graph: GraphParts<'_, Self>, set: &mut Self::Slice<u32>) -> Result<()>;
}

/// The place of a vertex in the order of greedy algorithms: pseudorandom, no two alike (each step is invertible), so
/// that long chains of vertices that wait for each other are rare (G. E. Blelloch, J. T. Fineman and J. Shun, "Greedy
/// sequential maximal independent set and matching are parallel on average", SPAA 2012).
pub fn priority(vertex: u32) -> u32 {
    let v = vertex ^ vertex >> 16;
    let v = v.wrapping_mul(0x7feb_352d);
    let v = v ^ v >> 15;
    let v = v.wrapping_mul(0x846c_a68b);
    v ^ v >> 16
}
