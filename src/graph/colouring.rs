//! Greedy multicolouring and maximal independent sets.
//!
//! Vertices of the same colour have no edges between them, so their rows can be relaxed at the same time (multicolour
//! Gauss-Seidel). The vertices of a maximal independent set are the roots of aggregates in multigrid.
//!
//! Both equal the results of the sequential greedy algorithms in the order of [`priority`](crate::backend::priority),
//! on every backend and with any number of threads. Sources: M. T. Jones and P. E. Plassmann, "A parallel graph
//! coloring heuristic", SIAM J. Sci. Comput. 14 (1993); M. Luby, "A simple parallel algorithm for the maximal
//! independent set problem", SIAM J. Comput. 15 (1986).

use super::Adjacency;
use crate::backend::{Backend, GraphSteps, Host};
use crate::error::Result;
use crate::scalar::Max;

/// A colour for each vertex, such that neighbours differ.
#[derive(Debug)]
pub struct Colours<B: Backend = Host> {
    colours: B::Vec<u32>,
    count: usize,
}

/// Colours the graph with few colours: at most one more than the largest degree.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn colours<B: GraphSteps>(backend: &B, graph: &Adjacency<'_, B>) -> Result<Colours<B>> {
    let mut colours = backend.zeros(graph.vertices())?;
    backend.colour(graph.parts(), &mut colours)?;
    let mut largest = backend.zeros(1)?;
    backend.reduce(Max, &colours, &mut largest)?;
    let count = if graph.vertices() == 0 { 0 } else { backend.value(&largest)? as usize + 1 };
    Ok(Colours { colours, count })
}

/// A maximal set of vertices without edges between them: 1 for its members, 0 for the others.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn independent_set<B: GraphSteps>(backend: &B, graph: &Adjacency<'_, B>) -> Result<B::Vec<u32>> {
    let mut set = backend.zeros(graph.vertices())?;
    backend.independent_set(graph.parts(), &mut set)?;
    Ok(set)
}

impl<B: Backend> Colours<B> {
    /// The colour of each vertex, counted from zero.
    pub fn as_slice(&self) -> &B::Slice<u32> {
        &self.colours
    }

    /// The number of colours.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes the colours out.
    pub fn into_inner(self) -> B::Vec<u32> {
        self.colours
    }
}
