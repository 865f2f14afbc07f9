//! Reverse Cuthill-McKee.
//!
//! Sources: E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM 1969; A. George and J.
//! W. H. Liu, "An implementation of a pseudoperipheral node finder", ACM TOMS 5 (1979); the same authors, "Computer
//! Solution of Large Sparse Positive Definite Systems" (1981), chapter 4.

use super::{Adjacency, Permutation};
use crate::backend::{Backend, FirstSweeps, GraphParts, GraphSteps, Host, Roots, Sweep};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::collections::VecDeque;
use std::iter;

/// The reverse Cuthill-McKee ordering of A + A^T.
///
/// Each component is ordered starting from its vertex of lowest degree, and from the far ends that George and Liu's
/// search visits. If rows are short and vertices of lowest degree rare, one to three more of them are tried. The order
/// of lowest bandwidth is kept. This takes two to seven traversals, two at a time; each reads the pattern (4 bytes per
/// nonzero) at most once, and stops when its bandwidth exceeds that of an earlier one. The result depends only on the
/// pattern.
///
/// For a matrix that is already in a good order (a grid row by row) this can raise the bandwidth: [`ordering`] compares
/// both.
///
/// # Errors
/// As [`Adjacency::new`].
pub fn reverse_cuthill_mckee<V: Scalar>(a: &Csr<V>) -> Result<Permutation> {
    reverse_cuthill_mckee_on(&Host, &Adjacency::new(a)?)
}

/// The reverse Cuthill-McKee ordering of a graph in the memory of any backend; the result is the same on each.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn reverse_cuthill_mckee_on<B: GraphSteps>(
    backend: &B,
    graph: &Adjacency<'_, B>,
) -> Result<Permutation<B>> {
    let order = cuthill_mckee_order(backend, graph.parts())?;
    Permutation::reversed(backend, &order)
}

/// If vertices have at most this many stored neighbours on average, other vertices of lowest degree are tried too. With
/// more neighbours a traversal costs more, and orders from different vertices differ less.
const SHORT_ROWS: usize = 16;

/// With at least this many vertices, three of them are tried instead of one.
const MANY_VERTICES: usize = 1 << 13;

/// A vertex from which a component is traversed again.
#[derive(Clone, Copy)]
struct Candidate {
    root: u32,
    /// True for the far end of the tallest level structure so far: if the bandwidth from there is no larger than the
    /// best, the search goes on to the next far end. Any other vertex must give a lower bandwidth.
    is_end: bool,
}

impl Candidate {
    /// A traversal from this candidate is of no use if its bandwidth is larger than this.
    fn limit(self, best: &Sweep) -> usize {
        if self.is_end { best.bandwidth } else { best.bandwidth - 1 }
    }
}

/// A component during the search.
struct Component {
    /// The position of its first vertex in the order.
    start: usize,
    /// The traversal with the lowest bandwidth, whose order is kept.
    best: Sweep,
    /// The traversal with the most levels.
    tallest: Sweep,
    /// The vertices that are still to be tried, in this order.
    candidates: VecDeque<Candidate>,
    /// The vertices that have been tried, so that none is tried twice.
    tried: Vec<u32>,
}

impl Component {
    fn next(&mut self) -> Option<Candidate> {
        while let Some(candidate) = self.candidates.pop_front() {
            if !self.tried.contains(&candidate.root) {
                self.tried.push(candidate.root);
                return Some(candidate);
            }
        }
        None
    }

    /// Takes the result of a traversal into account. Returns whether its order is now the best. Traversals that ran at
    /// the same time are judged as if each had known the results of the earlier ones, so that their number does not
    /// change the result.
    fn judge(&mut self, candidate: Candidate, sweep: Sweep) -> bool {
        if !sweep.complete || sweep.bandwidth > candidate.limit(&self.best) {
            return false;
        }
        if sweep.height > self.tallest.height {
            self.tallest = sweep;
            self.candidates.push_back(Candidate { root: sweep.end, is_end: true });
        }
        let better = sweep.bandwidth < self.best.bandwidth;
        if better {
            self.best = sweep;
        }
        better
    }
}

/// Traverses the components of a graph, as [`GraphSteps::cuthill_mckee`] does.
pub(super) trait Sweeps<B: Backend> {
    /// The number of calls of [`Sweeps::several`] worth making at the same time.
    const AT_ONCE: usize;

    fn vertices(&self) -> usize;

    /// The number of stored neighbours, summed over all vertices.
    fn neighbours(&self) -> usize;

    /// Traverses every component, as [`GraphSteps::cuthill_mckee_first`].
    fn first(&self, order: &mut B::Slice<u32>) -> Result<FirstSweeps<B>>;

    /// Runs [`GraphSteps::cuthill_mckee_several`] on this graph.
    fn several(&self, calls: Vec<(Roots<'_, B>, &mut B::Slice<u32>)>) -> Result<Vec<Vec<Sweep>>>;
}

/// A graph that is in the memory of one backend as a whole, not distributed.
struct InWhole<'a, B: GraphSteps> {
    backend: &'a B,
    graph: GraphParts<'a, B>,
}

impl<B: GraphSteps> Sweeps<B> for InWhole<'_, B> {
    const AT_ONCE: usize = B::TRAVERSALS_AT_ONCE;

    fn vertices(&self) -> usize {
        self.graph.vertices
    }

    fn neighbours(&self) -> usize {
        B::len(self.graph.indices)
    }

    fn first(&self, order: &mut B::Slice<u32>) -> Result<FirstSweeps<B>> {
        self.backend.cuthill_mckee_first(self.graph, order)
    }

    fn several(&self, calls: Vec<(Roots<'_, B>, &mut B::Slice<u32>)>) -> Result<Vec<Vec<Sweep>>> {
        self.backend.cuthill_mckee_several(self.graph, calls)
    }
}

/// The Cuthill-McKee order (not reversed) of all components, in the memory of any backend: the vertex at each position.
///
/// Every round traverses all components that still have a vertex to try. Several rounds run at the same time if the
/// backend prefers that.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn cuthill_mckee_order<B: GraphSteps>(backend: &B, graph: GraphParts<'_, B>) -> Result<B::Vec<u32>> {
    order_by(backend, &InWhole { backend, graph })
}

/// The order of a graph that `sweeps` traverses, in the backend's memory.
pub(super) fn order_by<B: Backend, S: Sweeps<B>>(backend: &B, sweeps: &S) -> Result<B::Vec<u32>> {
    let mut order = backend.zeros(sweeps.vertices())?;
    let short_rows = sweeps.neighbours() / SHORT_ROWS <= sweeps.vertices();
    let mut start = 0;
    let mut components = Vec::new();
    let FirstSweeps { sweeps: first, others: known } = sweeps.first(&mut order)?;
    for sweep in first {
        // If all vertices are neighbours of a root of lowest degree, the component is a clique, and all orders are
        // equivalent.
        if sweep.height > 1 {
            let count = if sweep.vertices < MANY_VERTICES { 1 } else { 3 };
            let peers = sweep.peers.into_iter().flatten().take(if short_rows { count } else { 0 });
            let end = Candidate { root: sweep.end, is_end: true };
            let peers = peers.map(|root| Candidate { root, is_end: false });
            let candidates = iter::once(end).chain(peers).collect();
            components.push(Component {
                start,
                best: sweep,
                tallest: sweep,
                candidates,
                tried: vec![sweep.root],
            });
        }
        start += sweep.vertices;
    }
    let room = components.iter().map(|c| c.best.vertices).sum();
    let mut orders = Vec::new();
    loop {
        let mut rounds = Vec::new();
        for _ in 0..S::AT_ONCE {
            let round: Vec<_> = components.iter_mut().map(Component::next).collect();
            if round.iter().any(Option::is_some) {
                rounds.push(round);
            }
        }
        if rounds.is_empty() {
            return Ok(order);
        }
        // If the first traversal has already found the next candidates, the graph is connected, and a round has only
        // one candidate.
        let known_of = |round: &[Option<Candidate>]| {
            let root = round[0].map(|candidate| candidate.root);
            known.iter().find(|(sweep, _)| Some(sweep.root) == root)
        };
        let again = rounds.iter().filter(|round| known_of(round).is_none());
        let again = again.map(|round| Again::new(backend, &components, round)).collect::<Result<Vec<_>>>()?;
        while orders.len() < again.len() {
            orders.push(backend.zeros(room)?);
        }
        let calls = again.iter().map(Again::roots).zip(orders.iter_mut().map(|order| &mut **order));
        let mut swept = sweeps.several(calls.collect())?.into_iter().zip(&orders);
        for round in rounds {
            let (sweeps, swept_order) = match known_of(&round) {
                Some((sweep, order)) => (vec![*sweep], order),
                None => swept.next().expect("a result for each call"),
            };
            let mut from = 0;
            let candidates = components.iter_mut().zip(round).filter_map(|(c, of)| Some((c, of?)));
            for ((component, candidate), sweep) in candidates.zip(sweeps) {
                let there = from..from + sweep.vertices;
                from = there.end;
                if component.judge(candidate, sweep) {
                    let to = component.start..component.start + sweep.vertices;
                    backend.copy(B::part(swept_order, there), B::part_mut(&mut order, to))?;
                }
            }
        }
    }
}

/// Components that are traversed again, each with a root and a limit for the bandwidth.
struct Again<B: Backend> {
    roots: B::Vec<u32>,
    limits: Vec<usize>,
}

impl<B: Backend> Again<B> {
    fn new(backend: &B, components: &[Component], round: &[Option<Candidate>]) -> Result<Self> {
        let of = components.iter().zip(round).filter_map(|(c, of)| Some((c, (*of)?)));
        let (roots, limits) = of.map(|(c, of)| (of.root, of.limit(&c.best))).unzip();
        Ok(Self { roots: backend.upload(roots)?, limits })
    }

    fn roots(&self) -> Roots<'_, B> {
        Roots::Given { roots: &*self.roots, limits: &self.limits }
    }
}

/// The choice between the original order and reverse Cuthill-McKee, with the numbers it is based on.
#[derive(Debug)]
pub struct Ordering<B: Backend = Host> {
    permutation: Permutation<B>,
    natural: bool,
    bandwidth: [usize; 2],
    profile: [u64; 2],
}

/// Reverse Cuthill-McKee if it lowers the bandwidth (or the profile at the same bandwidth), else the original order.
///
/// # Errors
/// As [`reverse_cuthill_mckee`].
pub fn ordering<V: Scalar>(a: &Csr<V>) -> Result<Ordering> {
    order(&Host, &Adjacency::new(a)?)
}

/// [`ordering`] in the memory of any backend.
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
    /// The chosen permutation: the identity if the original order was kept.
    pub fn permutation(&self) -> &Permutation<B> {
        &self.permutation
    }

    /// Takes the chosen permutation out.
    pub fn into_permutation(self) -> Permutation<B> {
        self.permutation
    }

    /// Returns whether the original order was kept, because reverse Cuthill-McKee is no better.
    pub fn keeps_natural_order(&self) -> bool {
        self.natural
    }

    /// Bandwidth in the original order.
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

    /// Profile in the original order.
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
