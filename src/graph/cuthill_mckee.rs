//! Pseudo-peripheral vertices and reverse Cuthill-McKee.
//!
//! Sources: E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM 1969; A. George and
//! J. W. H. Liu, "An implementation of a pseudoperipheral node finder", ACM TOMS 5 (1979); the same, "Computer Solution
//! of Large Sparse Positive Definite Systems" (1981), chapter 4.

use super::envelope::profile_by;
use super::{Adjacency, Permutation, bandwidth, bandwidth_permuted};
use crate::backend::{GraphParts, GraphSteps, Host, Roots, Sweep};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// A vertex that lies nearly as far from another as any two do in its component.
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

    /// A vertex of lowest degree at the largest distance from it.
    pub fn other_end(&self) -> u32 {
        self.other_end
    }

    /// The largest distance from it.
    pub fn eccentricity(&self) -> usize {
        self.eccentricity
    }

    /// The most vertices that have the same distance from it.
    pub fn width(&self) -> usize {
        self.width
    }
}

/// George and Liu's search from `start`: the vertex of lowest degree among those farthest away takes over as long as
/// that makes the level structure taller.
///
/// # Errors
/// Where `start` is no vertex of the graph, or without memory.
pub fn pseudo_peripheral(graph: &Adjacency<'_>, start: u32) -> Result<PseudoPeripheral> {
    let (_, components) = search(&Host, graph.parts(), Roots::Given(&[start][..]))?;
    let tallest = components[0].tallest;
    Ok(PseudoPeripheral {
        vertex: tallest.root,
        other_end: tallest.end,
        eccentricity: tallest.height,
        width: tallest.width,
    })
}

/// The reverse Cuthill-McKee ordering of A + A^T.
///
/// Each component is ordered from its vertex of lowest degree and from every vertex that George and Liu's search
/// visits, and the order of lowest bandwidth is kept. That is about three traversals, each of which reads the pattern
/// (4 bytes a nonzero) once. The result depends on the pattern alone.
///
/// On a matrix that is already numbered well (a grid row by row) this can raise the bandwidth: [`ordering`] compares.
///
/// # Errors
/// As [`Adjacency::new`].
pub fn reverse_cuthill_mckee<V: Scalar>(a: &Csr<V>) -> Result<Permutation> {
    reversed(&Adjacency::new(a)?)
}

fn reversed(graph: &Adjacency<'_>) -> Result<Permutation> {
    let mut order = cuthill_mckee_order(&Host, graph.parts())?;
    order.reverse();
    Permutation::from_new_to_old(order)
}

/// The Cuthill-McKee order (not reversed) of all components, in the memory of any backend: place to vertex.
///
/// # Errors
/// Without memory, or when the device fails.
pub fn cuthill_mckee_order<B: GraphSteps>(backend: &B, graph: GraphParts<'_, B>) -> Result<B::Vec<u32>> {
    Ok(search(backend, graph, Roots::LowestDegree)?.0)
}

/// A component during the search.
struct Component {
    /// Place of its first vertex in the order.
    start: usize,
    /// The sweep of lowest bandwidth: its order is the one that is kept.
    best: Sweep,
    /// The sweep of most levels: the search goes on from its end.
    tallest: Sweep,
}

/// Sweeps every component from its root, then from the end of the tallest level structure while these grow, all
/// components that still do at once. Returns the best orders and what was found.
fn search<B: GraphSteps>(
    backend: &B,
    graph: GraphParts<'_, B>,
    roots: Roots<'_, B>,
) -> Result<(B::Vec<u32>, Vec<Component>)> {
    let mut order = backend.zeros(graph.vertices)?;
    let mut start = 0;
    let mut components = Vec::new();
    for sweep in backend.cuthill_mckee(graph, roots, &mut order)? {
        components.push(Component { start, best: sweep, tallest: sweep });
        start += sweep.vertices;
    }
    // A root that sees its whole component has the lowest degree of a clique, or was given: nothing to look for.
    let mut growing: Vec<usize> = (0..components.len()).filter(|&c| components[c].best.height > 1).collect();
    let mut again = backend.zeros(growing.iter().map(|&c| components[c].best.vertices).sum())?;
    while !growing.is_empty() {
        let ends = backend.upload(growing.iter().map(|&c| components[c].tallest.end).collect())?;
        let sweeps = backend.cuthill_mckee(graph, Roots::Given(&*ends), &mut again)?;
        let mut from = 0;
        let mut grown = Vec::new();
        for (&c, sweep) in growing.iter().zip(sweeps) {
            let component = &mut components[c];
            if sweep.bandwidth < component.best.bandwidth {
                let to = component.start..component.start + sweep.vertices;
                backend.copy(B::part(&again, from..from + sweep.vertices), B::part_mut(&mut order, to))?;
                component.best = sweep;
            }
            if sweep.height > component.tallest.height {
                component.tallest = sweep;
                grown.push(c);
            }
            from += sweep.vertices;
        }
        growing = grown;
    }
    Ok((order, components))
}

/// A decision between the order that a matrix came in and reverse Cuthill-McKee, with the figures behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordering {
    permutation: Permutation,
    natural: bool,
    bandwidth: [usize; 2],
    profile: [u64; 2],
}

/// Reverse Cuthill-McKee where it lowers the bandwidth (or, at the same bandwidth, the profile), else the order in
/// which the matrix came.
///
/// # Errors
/// As [`reverse_cuthill_mckee`].
pub fn ordering<V: Scalar>(a: &Csr<V>) -> Result<Ordering> {
    let graph = Adjacency::new(a)?;
    let permutation = reversed(&graph)?;
    let new = permutation.old_to_new();
    let bandwidth = [bandwidth(a), bandwidth_permuted(a, &permutation)?];
    let profile = [profile_by(&graph, |v| v), profile_by(&graph, |v| new[v as usize])];
    let natural = (bandwidth[1], profile[1]) >= (bandwidth[0], profile[0]);
    let permutation = if natural { Permutation::identity(a.rows())? } else { permutation };
    Ok(Ordering { permutation, natural, bandwidth, profile })
}

impl Ordering {
    /// The chosen permutation: the identity where the natural order was kept.
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// Takes the chosen permutation out.
    pub fn into_permutation(self) -> Permutation {
        self.permutation
    }

    /// Whether the order in which the matrix came was kept, because reverse Cuthill-McKee is no better.
    pub fn keeps_natural_order(&self) -> bool {
        self.natural
    }

    /// Bandwidth in the order in which the matrix came.
    pub fn bandwidth_before(&self) -> usize {
        self.bandwidth[0]
    }

    /// Bandwidth under the chosen permutation.
    pub fn bandwidth_after(&self) -> usize {
        self.bandwidth[usize::from(!self.natural)]
    }

    /// Bandwidth under reverse Cuthill-McKee, chosen or not.
    pub fn bandwidth_rcm(&self) -> usize {
        self.bandwidth[1]
    }

    /// Profile in the order in which the matrix came.
    pub fn profile_before(&self) -> u64 {
        self.profile[0]
    }

    /// Profile under the chosen permutation.
    pub fn profile_after(&self) -> u64 {
        self.profile[usize::from(!self.natural)]
    }

    /// Profile under reverse Cuthill-McKee, chosen or not.
    pub fn profile_rcm(&self) -> u64 {
        self.profile[1]
    }
}
