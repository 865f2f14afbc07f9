//! Pseudo-peripheral vertices and reverse Cuthill-McKee.
//!
//! Sources: E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM 1969; A. George and
//! J. W. H. Liu, "An implementation of a pseudoperipheral node finder", ACM TOMS 5 (1979); the same, "Computer Solution
//! of Large Sparse Positive Definite Systems" (1981), chapter 4.

use super::{Adjacency, Permutation};
use crate::backend::{Backend, GraphParts, GraphSteps, Host, Roots, Sweep};
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
    let mut order = Host.zeros(graph.vertices())?;
    let mut sweep_from = |root: u32| -> Result<Sweep> {
        let roots = Roots::Given { roots: &[root][..], limits: &[usize::MAX] };
        Ok(Host.cuthill_mckee(graph.parts(), roots, &mut order)?[0])
    };
    let mut tallest = sweep_from(start)?;
    loop {
        let next = sweep_from(tallest.end)?;
        if next.height <= tallest.height {
            break;
        }
        tallest = next;
    }
    Ok(PseudoPeripheral {
        vertex: tallest.root,
        other_end: tallest.end,
        eccentricity: tallest.height,
        width: tallest.width,
    })
}

/// The reverse Cuthill-McKee ordering of A + A^T.
///
/// Each component is ordered from its vertex of lowest degree, then from the far ends that George and Liu's search
/// visits and, where rows are short and vertices of lowest degree rare, from one to three more of these; the order of
/// lowest bandwidth is kept. That is two to seven traversals, two of them at a time, each of which reads the pattern
/// (4 bytes a nonzero) at most once and stops where its bandwidth exceeds that of an earlier one. The result depends on
/// the pattern alone.
///
/// On a matrix that is already numbered well (a grid row by row) this can raise the bandwidth: [`ordering`] compares.
///
/// # Errors
/// As [`Adjacency::new`].
pub fn reverse_cuthill_mckee<V: Scalar>(a: &Csr<V>) -> Result<Permutation> {
    reverse_cuthill_mckee_on(&Host, &Adjacency::new(a)?)
}

/// The reverse Cuthill-McKee ordering of a graph in the memory of any backend: the same on each.
///
/// # Errors
/// Without memory, or when the device fails.
pub fn reverse_cuthill_mckee_on<B: GraphSteps>(
    backend: &B,
    graph: &Adjacency<'_, B>,
) -> Result<Permutation<B>> {
    let order = cuthill_mckee_order(backend, graph.parts())?;
    Permutation::reversed(backend, &order)
}

/// Up to this many stored neighbours a vertex, other vertices of lowest degree are tried too. With more of them a
/// traversal costs more, and orders from different vertices differ less.
const SHORT_ROWS: usize = 16;

/// From this many vertices on, three of them are tried instead of one.
const MANY_VERTICES: usize = 1 << 13;

/// A component during the search.
struct Component {
    /// Place of its first vertex in the order.
    start: usize,
    /// The sweep of lowest bandwidth: its order is the one that is kept.
    best: Sweep,
    /// The sweep of most levels.
    tallest: Sweep,
    /// The end of the tallest, while that is new.
    end: Option<u32>,
    /// More vertices of lowest degree to try, the last one first.
    peers: Vec<u32>,
}

/// The Cuthill-McKee order (not reversed) of all components, in the memory of any backend: place to vertex.
///
/// Every round sweeps all components that still have a vertex to try from two of them: the end of the tallest level
/// structure found so far and a peer of the first root, or two peers.
///
/// # Errors
/// Without memory, or when the device fails.
pub fn cuthill_mckee_order<B: GraphSteps>(backend: &B, graph: GraphParts<'_, B>) -> Result<B::Vec<u32>> {
    let mut order = backend.zeros(graph.vertices)?;
    let short_rows = B::len(graph.indices) / SHORT_ROWS <= graph.vertices;
    let mut start = 0;
    let mut components = Vec::new();
    for sweep in backend.cuthill_mckee(graph, Roots::LowestDegree, &mut order)? {
        // A root of lowest degree that sees its whole component sees a clique: all orders are alike.
        if sweep.height > 1 {
            let count = if sweep.vertices < MANY_VERTICES { 1 } else { 3 };
            let peers = sweep.peers.into_iter().flatten().take(if short_rows { count } else { 0 }).collect();
            components.push(Component { start, best: sweep, tallest: sweep, end: Some(sweep.end), peers });
        }
        start += sweep.vertices;
    }
    let room = components.iter().map(|c| c.best.vertices).sum();
    let (mut first_order, mut second_order) = (backend.zeros(room)?, backend.zeros(room)?);
    loop {
        let first = components.iter_mut().map(|c| c.end().or_else(|| c.peer())).collect::<Vec<_>>();
        let second = components.iter_mut().map(Component::peer).collect::<Vec<_>>();
        if first.iter().chain(&second).all(Option::is_none) {
            return Ok(order);
        }
        let (first, second) = (Again::new(backend, &first)?, Again::new(backend, &second)?);
        let (first_sweeps, second_sweeps) = backend.cuthill_mckee_pair(
            graph,
            (first.roots(), &mut first_order),
            (second.roots(), &mut second_order),
        )?;
        let first = (first.components.iter().zip(first_sweeps), &first_order);
        let second = (second.components.iter().zip(second_sweeps), &second_order);
        for (sweeps, again) in [first, second] {
            let mut from = 0;
            for (&c, sweep) in sweeps {
                let swept = from..from + sweep.vertices;
                from = swept.end;
                let component = &mut components[c];
                if sweep.complete && sweep.bandwidth < component.best.bandwidth {
                    let to = component.start..component.start + sweep.vertices;
                    backend.copy(B::part(again, swept), B::part_mut(&mut order, to))?;
                    component.best = sweep;
                }
                if sweep.complete && sweep.height > component.tallest.height {
                    component.tallest = sweep;
                    component.end = Some(sweep.end);
                }
            }
        }
    }
}

impl Component {
    /// The end of the tallest level structure, once. As low a bandwidth again is good enough to go on from.
    fn end(&mut self) -> Option<(u32, usize)> {
        self.end.take().map(|root| (root, self.best.bandwidth))
    }

    /// Another vertex of lowest degree, which must do better.
    fn peer(&mut self) -> Option<(u32, usize)> {
        self.peers.pop().map(|root| (root, self.best.bandwidth - 1))
    }
}

/// Components that are swept once more, from a root each and with a limit for the bandwidth.
struct Again<B: Backend> {
    components: Vec<usize>,
    roots: B::Vec<u32>,
    limits: Vec<usize>,
}

impl<B: Backend> Again<B> {
    fn new(backend: &B, roots: &[Option<(u32, usize)>]) -> Result<Self> {
        let components = (0..roots.len()).filter(|&c| roots[c].is_some()).collect();
        let (roots, limits) = roots.iter().copied().flatten().unzip();
        Ok(Self { components, roots: backend.upload(roots)?, limits })
    }

    fn roots(&self) -> Roots<'_, B> {
        Roots::Given { roots: &*self.roots, limits: &self.limits }
    }
}

/// A decision between the order that a matrix came in and reverse Cuthill-McKee, with the figures behind it.
#[derive(Debug)]
pub struct Ordering<B: Backend = Host> {
    permutation: Permutation<B>,
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
    order(&Host, &Adjacency::new(a)?)
}

/// As [`ordering`], in the memory of any backend.
///
/// # Errors
/// As [`Adjacency::on`].
pub fn ordering_on<V: Scalar, B: GraphSteps>(backend: &B, a: &Csr<V, B>) -> Result<Ordering<B>> {
    order(backend, &Adjacency::on(backend, a)?)
}

fn order<B: GraphSteps>(backend: &B, graph: &Adjacency<'_, B>) -> Result<Ordering<B>> {
    let permutation = reverse_cuthill_mckee_on(backend, graph)?;
    let before = backend.envelope(graph.parts(), None)?;
    let after = backend.envelope(graph.parts(), Some(permutation.old_to_new()))?;
    let natural = after >= before;
    let permutation = if natural { Permutation::unchanged(backend, graph.vertices())? } else { permutation };
    Ok(Ordering { permutation, natural, bandwidth: [before.0, after.0], profile: [before.1, after.1] })
}

impl<B: Backend> Ordering<B> {
    /// The chosen permutation: the identity where the natural order was kept.
    pub fn permutation(&self) -> &Permutation<B> {
        &self.permutation
    }

    /// Takes the chosen permutation out.
    pub fn into_permutation(self) -> Permutation<B> {
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
