//! Pseudo-peripheral vertices, from which orderings start.
//!
//! Sources: A. George and J. W. H. Liu, "An implementation of a pseudoperipheral node finder", ACM TOMS 5 (1979); J.
//! Hou and H. Liu, "RCM++: a reverse Cuthill-McKee ordering with bi-criteria node finder" (2024), for the width.

use super::Adjacency;
use crate::backend::{GraphSteps, Host, Roots, Sweep};
use crate::error::Result;

/// A vertex whose eccentricity is nearly the largest in its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PseudoPeripheral {
    vertex: u32,
    other_end: u32,
    eccentricity: usize,
    width: usize,
}

impl PseudoPeripheral {
    /// The vertex.
    pub fn vertex(&self) -> u32 {
        self.vertex
    }

    /// A vertex of lowest degree among those at the largest distance from [`PseudoPeripheral::vertex`].
    pub fn other_end(&self) -> u32 {
        self.other_end
    }

    /// The largest distance of any vertex from [`PseudoPeripheral::vertex`].
    pub fn eccentricity(&self) -> usize {
        self.eccentricity
    }

    /// The largest number of vertices at the same distance from [`PseudoPeripheral::vertex`].
    pub fn width(&self) -> usize {
        self.width
    }
}

/// The criterion by which the search moves on to the far end of a level structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// The far end's level structure is taller (George and Liu).
    Height,
    /// The far end's level structure is taller, or equally tall and narrower.
    HeightAndWidth,
}

impl Criterion {
    fn prefers(self, next: &Sweep, to: &Sweep) -> bool {
        next.height > to.height
            || self == Self::HeightAndWidth && next.height == to.height && next.width < to.width
    }
}

/// George and Liu's search from `start`: it moves to the vertex of lowest degree among the farthest ones, as long as
/// the level structure becomes taller.
///
/// # Errors
/// If `start` is not a vertex of the graph, or if memory runs out.
pub fn pseudo_peripheral(graph: &Adjacency<'_>, start: u32) -> Result<PseudoPeripheral> {
    pseudo_peripheral_on(&Host, graph, start, Criterion::Height)
}

/// [`pseudo_peripheral`] in the memory of any backend, by either criterion; the result is the same on each.
///
/// # Errors
/// As [`pseudo_peripheral`], and if the device fails.
pub fn pseudo_peripheral_on<B: GraphSteps>(
    backend: &B,
    graph: &Adjacency<'_, B>,
    start: u32,
    criterion: Criterion,
) -> Result<PseudoPeripheral> {
    let mut order = backend.buffer(graph.vertices())?;
    let mut sweep_from = |root: u32| -> Result<Sweep> {
        let roots = backend.upload(vec![root])?;
        let roots = Roots::Given { roots: &*roots, limits: &[usize::MAX] };
        Ok(backend.cuthill_mckee(graph.parts(), roots, &mut order)?[0])
    };
    let mut best = sweep_from(start)?;
    loop {
        let next = sweep_from(best.end)?;
        if !criterion.prefers(&next, &best) {
            break;
        }
        best = next;
    }
    Ok(PseudoPeripheral {
        vertex: best.root,
        other_end: best.end,
        eccentricity: best.height,
        width: best.width,
    })
}
