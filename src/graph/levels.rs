//! Breadth-first levels and connected components.

use super::Adjacency;
use crate::backend::{Backend, GraphSteps, Host, UNREACHED};
use crate::error::Result;

/// Distances from the sources of a breadth-first search, and the vertices by distance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    levels: Vec<u32>,
    starts: Vec<u32>,
    vertices: Vec<u32>,
}

/// Breadth-first search from one vertex.
///
/// # Errors
/// Where `source` is no vertex of the graph, or without memory.
pub fn bfs(graph: &Adjacency<'_>, source: u32) -> Result<Levels> {
    bfs_from(graph, &[source])
}

/// Breadth-first search from several vertices at once: distances to the nearest.
///
/// # Errors
/// As [`bfs`].
pub fn bfs_from(graph: &Adjacency<'_>, sources: &[u32]) -> Result<Levels> {
    let mut levels = Host.zeros(graph.vertices())?;
    let count = Host.bfs(graph.parts(), sources, &mut levels)?;
    let mut starts: Vec<u32> = Host.zeros(count + 1)?;
    for &level in levels.iter().filter(|&&level| level != UNREACHED) {
        starts[level as usize + 1] += 1;
    }
    for level in 0..count {
        starts[level + 1] += starts[level];
    }
    let mut next = starts.clone();
    let mut vertices = Host.zeros(starts[count] as usize)?;
    for (v, &level) in levels.iter().enumerate().filter(|&(_, &level)| level != UNREACHED) {
        vertices[next[level as usize] as usize] = v as u32;
        next[level as usize] += 1;
    }
    Ok(Levels { levels, starts, vertices })
}

impl Levels {
    /// Distance of `vertex` from the nearest source; `None` where no path leads there.
    ///
    /// # Panics
    /// Where there is no such vertex, as indexing does.
    pub fn level_of(&self, vertex: usize) -> Option<u32> {
        Some(self.levels[vertex]).filter(|&level| level != UNREACHED)
    }

    /// Distance of each vertex, [`UNREACHED`] where no path leads there.
    pub fn as_slice(&self) -> &[u32] {
        &self.levels
    }

    /// Number of levels: one more than the largest distance.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of vertices reached.
    pub fn reached(&self) -> usize {
        self.vertices.len()
    }

    /// The vertices at distance `level`, ascending.
    ///
    /// # Panics
    /// Where there is no such level, as indexing does.
    pub fn level(&self, level: usize) -> &[u32] {
        &self.vertices[self.starts[level] as usize..self.starts[level + 1] as usize]
    }

    /// Vertices of the largest level.
    pub fn width(&self) -> usize {
        self.starts.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0)
    }

    /// A breadth-first tree: the smallest neighbour of each vertex in the level before, the vertex itself for a
    /// source, [`UNREACHED`] where no path leads.
    ///
    /// # Errors
    /// Where `graph` has another number of vertices, or without memory.
    pub fn parents(&self, graph: &Adjacency<'_>) -> Result<Vec<u32>> {
        crate::Error::check_dimension("number of vertices", self.levels.len(), graph.vertices())?;
        let mut parents: Vec<u32> = Host.zeros(self.levels.len())?;
        Host.bfs_parents(graph.parts(), &self.levels, &mut parents)?;
        Ok(parents)
    }
}

/// Which vertices are connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Components {
    labels: Vec<u32>,
    sizes: Vec<usize>,
}

/// The connected components, numbered in the order of their smallest vertices.
///
/// # Errors
/// Without memory.
pub fn connected_components(graph: &Adjacency<'_>) -> Result<Components> {
    // The sweep of all components names their vertices one component behind the other.
    let n = graph.vertices();
    let mut order: Vec<u32> = Host.zeros(n)?;
    let sweeps = Host.cuthill_mckee(graph.parts(), crate::backend::Roots::LowestDegree, &mut order)?;
    let mut swept: Vec<u32> = Host.zeros(n)?;
    let mut placed = 0;
    for (k, sweep) in sweeps.iter().enumerate() {
        for &v in &order[placed..placed + sweep.vertices] {
            swept[v as usize] = k as u32;
        }
        placed += sweep.vertices;
    }
    let mut number = vec![UNREACHED; sweeps.len()];
    let mut sizes = Vec::with_capacity(sweeps.len());
    for label in &mut swept {
        let k = *label as usize;
        if number[k] == UNREACHED {
            number[k] = sizes.len() as u32;
            sizes.push(sweeps[k].vertices);
        }
        *label = number[k];
    }
    Ok(Components { labels: swept, sizes })
}

impl Components {
    /// Number of components.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The component of each vertex.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Vertices of each component.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}
