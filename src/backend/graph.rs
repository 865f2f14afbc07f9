//! Steps of graph traversal. The searches and orderings in [`crate::graph`] are written once above them.
//!
//! A step runs a whole traversal, not one level of it: a device can then run many narrow levels in one launch, and
//! nothing waits for the device between two levels.

use super::{Backend, OffsetsRef};
use crate::error::Result;

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
    /// traversed.
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

/// Breadth-first traversals. All results are the same on every backend and with any number of threads.
pub trait GraphSteps: Backend {
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

    /// Two independent traversals, at the same time where that is faster for this graph.
    fn both<R: Send, S: Send>(
        &self,
        graph: GraphParts<'_, Self>,
        first: impl FnOnce() -> R + Send,
        second: impl FnOnce() -> S + Send,
    ) -> (R, S) {
        let _ = graph;
        (first(), second())
    }
}
