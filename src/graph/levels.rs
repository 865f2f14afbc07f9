//! Breadth-first levels and connected components.

use super::Adjacency;
use crate::backend::{Backend, GraphSteps, Host, UNREACHED};
use crate::error::{Error, Result};

/// Distances from the sources of a breadth-first search, and the vertices ordered by distance.
#[derive(Debug)]
pub struct Levels<B: Backend = Host> {
    levels: B::Vec<u32>,
    starts: Vec<usize>,
    vertices: B::Vec<u32>,
}

/// Breadth-first search from one vertex.
///
/// # Errors
/// If `source` is not a vertex of the graph, or if memory runs out.
pub fn bfs(graph: &Adjacency<'_>, source: u32) -> Result<Levels> {
    bfs_from(graph, &[source])
}

/// Breadth-first search from several vertices together: each vertex gets its distance from the nearest of them.
///
/// # Errors
/// As [`bfs`].
pub fn bfs_from(graph: &Adjacency<'_>, sources: &[u32]) -> Result<Levels> {
    bfs_on(&Host, graph, sources)
}

/// [`bfs_from`] in the memory of any backend. A radix sort puts the vertices in the order of their levels, with 16
/// bytes of temporary memory per vertex.
///
/// # Errors
/// As [`bfs`], and if the device fails.
pub fn bfs_on<B: GraphSteps>(backend: &B, graph: &Adjacency<'_, B>, sources: &[u32]) -> Result<Levels<B>> {
    let n = graph.vertices();
    let sources = backend.upload(sources.to_vec())?;
    let mut levels = backend.buffer(n)?;
    let count = backend.bfs(graph.parts(), &sources, &mut levels)?;
    let mut keys = backend.buffer(n)?;
    backend.copy(&levels, &mut keys)?;
    let mut vertices = backend.buffer(n)?;
    backend.sequence::<u32>(&mut vertices)?;
    // Enough bits to distinguish all levels from UNREACHED.
    backend.sort_pairs(&mut keys, &mut vertices, 0..count.checked_ilog2().map_or(1, |bits| bits + 1))?;
    let (mut sizes, mut starts) = (backend.zeros(count)?, backend.buffer::<u32>(count + 1)?);
    backend.histogram(&levels, &mut sizes)?;
    backend.exclusive_scan(&sizes, &mut starts)?;
    let starts = backend.download(&*starts)?.into_iter().map(|start| start as usize).collect();
    Ok(Levels { levels, starts, vertices })
}

impl<B: Backend> Levels<B> {
    /// Distance of each vertex; [`UNREACHED`] if no path leads there.
    pub fn as_slice(&self) -> &B::Slice<u32> {
        &self.levels
    }

    /// Number of levels: one more than the largest distance.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of vertices reached.
    pub fn reached(&self) -> usize {
        self.starts[self.count()]
    }

    /// The vertices at distance `level`, ascending.
    ///
    /// # Panics
    /// If there is no such level, as indexing does.
    pub fn level(&self, level: usize) -> &B::Slice<u32> {
        B::part(&self.vertices, self.starts[level]..self.starts[level + 1])
    }

    /// The number of vertices of the largest level.
    pub fn width(&self) -> usize {
        self.starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }
}

impl<B: GraphSteps> Levels<B> {
    /// A breadth-first tree: each vertex's parent is its smallest neighbour in the previous level; a source is its own
    /// parent; [`UNREACHED`] for vertices that were not reached.
    ///
    /// # Errors
    /// If `graph` has a different number of vertices, if memory runs out, or if the device fails.
    pub fn parents_on(&self, backend: &B, graph: &Adjacency<'_, B>) -> Result<B::Vec<u32>> {
        Error::check_dimension("number of vertices", B::len(&self.levels), graph.vertices())?;
        let mut parents = backend.buffer(graph.vertices())?;
        backend.bfs_parents(graph.parts(), &self.levels, &mut parents)?;
        Ok(parents)
    }
}

impl Levels {
    /// Distance of `vertex` from the nearest source; `None` if no path leads there.
    ///
    /// # Panics
    /// If there is no such vertex, as indexing does.
    pub fn level_of(&self, vertex: usize) -> Option<u32> {
        Some(self.levels[vertex]).filter(|&level| level != UNREACHED)
    }

    /// [`Levels::parents_on`] on the host.
    ///
    /// # Errors
    /// As [`Levels::parents_on`].
    pub fn parents(&self, graph: &Adjacency<'_>) -> Result<Vec<u32>> {
        self.parents_on(&Host, graph)
    }
}

impl Clone for Levels {
    fn clone(&self) -> Self {
        let Self { levels, starts, vertices } = self;
        Self { levels: levels.clone(), starts: starts.clone(), vertices: vertices.clone() }
    }
}

impl PartialEq for Levels {
    fn eq(&self, other: &Self) -> bool {
        self.levels == other.levels
    }
}

impl Eq for Levels {}

/// The connected components of a graph.
#[derive(Debug)]
pub struct Components<B: Backend = Host> {
    labels: B::Vec<u32>,
    sizes: Vec<usize>,
}

/// The connected components, numbered in the order of their smallest vertices.
///
/// # Errors
/// If memory runs out.
pub fn connected_components(graph: &Adjacency<'_>) -> Result<Components> {
    connected_components_on(&Host, graph)
}

/// [`connected_components`] in the memory of any backend.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn connected_components_on<B: GraphSteps>(
    backend: &B,
    graph: &Adjacency<'_, B>,
) -> Result<Components<B>> {
    let n = graph.vertices();
    let mut smallest = backend.buffer(n)?;
    backend.components(graph.parts(), &mut smallest)?;
    // Numbers the distinct smallest vertices in ascending order.
    let mut sorted = backend.buffer(n)?;
    backend.copy(&smallest, &mut sorted)?;
    backend.sort::<u32>(&mut sorted, 0..u32::BITS)?;
    let mut distinct = backend.buffer(n)?;
    let count = backend.unique::<u32>(&sorted, &mut distinct)?;
    let distinct = B::part(&distinct, 0..count);
    let mut number = backend.buffer::<u32>(count)?;
    backend.sequence::<u32>(&mut number)?;
    let mut number_of = sorted;
    backend.scatter(&number, distinct, &mut number_of)?;
    let mut labels = backend.buffer(n)?;
    backend.gather::<u32, u32>(&number_of, &smallest, &mut labels)?;
    let mut sizes = backend.zeros(count)?;
    backend.histogram(&labels, &mut sizes)?;
    let sizes = backend.download(&*sizes)?.into_iter().map(|size| size as usize).collect();
    Ok(Components { labels, sizes })
}

impl<B: Backend> Components<B> {
    /// Number of components.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The component of each vertex.
    pub fn labels(&self) -> &B::Slice<u32> {
        &self.labels
    }

    /// The number of vertices of each component.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}

impl Clone for Components {
    fn clone(&self) -> Self {
        Self { labels: self.labels.clone(), sizes: self.sizes.clone() }
    }
}

impl PartialEq for Components {
    fn eq(&self, other: &Self) -> bool {
        self.labels == other.labels
    }
}

impl Eq for Components {}
