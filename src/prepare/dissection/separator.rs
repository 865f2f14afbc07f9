//! A vertex separator and the moves that improve it.

use super::graph::Graph;

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The side of a vertex in the separator.
pub(super) const BETWEEN: u8 = 2;

/// The cost of a separator, compared in this order: by how much the heavier side exceeds the limit, the weight of the
/// separator, and the difference of the sides.
pub(super) type Cost = (u64, u64, u64);

/// Two sides without an edge between them, and the vertices that separate them.
pub(super) struct Separator<'a> {
    graph: &'a Graph,
    /// 0, 1 or [`BETWEEN`] for each vertex.
    pub(super) sides: Vec<u8>,
    /// The weights of both sides and of the separator.
    pub(super) weights: [u64; 3],
    /// For each vertex of the separator the weight of its neighbours on each side.
    beside: Vec<[u32; 2]>,
    /// The vertices that are in the separator or were in it.
    pub(super) members: Vec<u32>,
    /// The maximum weight of a side.
    limit: u64,
    /// Vertices of the separator by their gain from a move to each side. Outdated entries are skipped.
    queues: [BinaryHeap<(i64, u32, u32)>; 2],
    /// Counts the entries of the queues, so that ties have an order.
    clock: u32,
    /// The number of the pass in which each vertex moved last; it moves once per pass.
    moved: Vec<u32>,
    pass: u32,
}

/// The maximum number of passes.
const PASSES: usize = 4;

impl<'a> Separator<'a> {
    /// Takes the separator that `sides` describes.
    pub(super) fn new(graph: &'a Graph, sides: Vec<u8>, limit: u64) -> Self {
        let mut weights = [0; 3];
        let mut members = Vec::new();
        for (vertex, (&side, &weight)) in sides.iter().zip(&graph.weights).enumerate() {
            weights[side as usize] += u64::from(weight);
            if side == BETWEEN {
                members.push(vertex as u32);
            }
        }
        let n = graph.len();
        Self {
            graph,
            sides,
            weights,
            beside: vec![[0; 2]; n],
            members,
            limit,
            queues: Default::default(),
            clock: 0,
            moved: vec![0; n],
            pass: 0,
        }
    }

    pub(super) fn cost(&self) -> Cost {
        let [a, b, between] = self.weights;
        (a.max(b).saturating_sub(self.limit), between, a.abs_diff(b))
    }

    /// Grows side 0 from a vertex until both sides weigh the same, by the moves that widen the separator least.
    pub(super) fn grow(graph: &'a Graph, start: u32, limit: u64) -> Self {
        let mut new = Self::new(graph, vec![1; graph.len()], limit);
        new.begin();
        let mut joined = Vec::new();
        let mut next = start;
        let mut untouched = 0;
        loop {
            // The first vertex, or the next one if a component is exhausted.
            let weight = u64::from(graph.weights[next as usize]);
            new.sides[next as usize] = BETWEEN;
            new.weights[1] -= weight;
            new.weights[2] += weight;
            new.members.push(next);
            new.look_around(next);
            new.queue(next, 0);
            while new.weights[0] < new.weights[1] {
                let Some((_, vertex)) = new.top(0) else { break };
                new.queues[0].pop();
                joined.clear();
                new.take(vertex, 0, &mut joined);
                joined.iter().for_each(|&vertex| new.queue(vertex, 0));
                new.members.extend(&joined);
            }
            if new.weights[0] >= new.weights[1] {
                return new;
            }
            while new.sides[untouched] != 1 {
                untouched += 1;
            }
            next = untouched as u32;
        }
    }

    /// Improves the separator by passes of Fiduccia and Mattheyses ("A linear-time heuristic for improving network
    /// partitions", DAC 1982), for vertex separators as in Hendrickson and Rothberg ("Improving the run time and
    /// quality of nested dissection ordering", SIAM J. Sci. Comput. 20, 1998): the best move is made even if it costs
    /// something, each vertex moves once, and in the end the best state is restored.
    ///
    /// A pass ends after `patience` moves without a gain.
    pub(super) fn refine(&mut self, patience: usize) {
        for _ in 0..PASSES {
            if !self.improve(patience) {
                break;
            }
        }
    }

    fn improve(&mut self, patience: usize) -> bool {
        self.begin();
        for at in 0..self.members.len() {
            let vertex = self.members[at];
            self.queue(vertex, 0);
            self.queue(vertex, 1);
        }
        let first = self.cost();
        let mut best = (first, 0, 0);
        // The vertices that moved, each with the end of its part of `joined`.
        let mut moves: Vec<(u32, usize)> = Vec::new();
        let mut joined = Vec::new();
        let mut weights = self.weights;
        while moves.len() < best.1 + patience.min(2 * self.members.len() + 10) {
            let Some((vertex, to)) = self.choose() else { break };
            self.queues[to].pop();
            self.moved[vertex as usize] = self.pass;
            let start = joined.len();
            self.take(vertex, to, &mut joined);
            for &vertex in &joined[start..] {
                // They may move on to the same side only; otherwise two moves could undo each other forever.
                if self.moved[vertex as usize] != self.pass {
                    self.queue(vertex, to);
                }
            }
            moves.push((vertex, joined.len()));
            let cost = self.cost();
            if cost < best.0 {
                best = (cost, moves.len(), joined.len());
                weights = self.weights;
            }
        }
        // Undo the moves after the best state, the last move first.
        let mut end = joined.len();
        for at in (best.1..moves.len()).rev() {
            let vertex = moves[at].0;
            let other = 1 - self.sides[vertex as usize];
            let start = if at == 0 { 0 } else { moves[at - 1].1 };
            joined[start..end].iter().for_each(|&joined| self.sides[joined as usize] = other);
            self.sides[vertex as usize] = BETWEEN;
            end = start;
        }
        self.weights = weights;
        self.members.extend(&joined[..best.2]);
        (best.0.0, best.0.1) < (first.0, first.1)
    }

    /// Updates the members and the weights beside them.
    fn begin(&mut self) {
        let mut members = std::mem::take(&mut self.members);
        members.retain(|&vertex| self.sides[vertex as usize] == BETWEEN);
        members.sort_unstable();
        members.dedup();
        members.iter().for_each(|&vertex| self.look_around(vertex));
        self.members = members;
        self.queues.iter_mut().for_each(BinaryHeap::clear);
        self.pass += 1;
    }

    fn look_around(&mut self, vertex: u32) {
        let mut beside = [0; 3];
        for &other in self.graph.row(vertex) {
            beside[self.sides[other as usize] as usize] += self.graph.weights[other as usize];
        }
        self.beside[vertex as usize] = [beside[0], beside[1]];
    }

    fn gain(&self, vertex: u32, to: usize) -> i64 {
        i64::from(self.graph.weights[vertex as usize]) - i64::from(self.beside[vertex as usize][1 - to])
    }

    fn queue(&mut self, vertex: u32, to: usize) {
        let gain = self.gain(vertex, to);
        self.clock += 1;
        self.queues[to].push((gain, self.clock, vertex));
    }

    /// Returns the best move to a side, after dropping outdated entries.
    fn top(&mut self, to: usize) -> Option<(i64, u32)> {
        loop {
            let &(gain, clock, vertex) = self.queues[to].peek()?;
            let valid = self.sides[vertex as usize] == BETWEEN && self.moved[vertex as usize] != self.pass;
            let now = self.gain(vertex, to);
            if valid && gain == now {
                return Some((gain, vertex));
            }
            match self.queues[to].peek_mut() {
                // A vertex whose gain has grown has another entry.
                Some(mut entry) if valid && now < gain => *entry = (now, clock, vertex),
                Some(entry) => drop(PeekMut::pop(entry)),
                None => return None,
            }
        }
    }

    /// Returns the best move that keeps the sides within the limit, or that makes the heavier side lighter.
    fn choose(&mut self) -> Option<(u32, usize)> {
        let lighter = usize::from(self.weights[1] < self.weights[0]);
        let tops = [self.top(0), self.top(1)];
        let fits = |to: usize| {
            tops[to].filter(|&(_, vertex)| {
                to == lighter
                    || self.weights[to] + u64::from(self.graph.weights[vertex as usize]) <= self.limit
            })
        };
        if self.weights[1 - lighter] > self.limit {
            return fits(lighter).map(|(_, vertex)| (vertex, lighter));
        }
        match (fits(lighter), fits(1 - lighter)) {
            (Some(here), Some(there)) if there.0 > here.0 => Some((there.1, 1 - lighter)),
            (Some(here), _) => Some((here.1, lighter)),
            (None, there) => there.map(|(_, vertex)| (vertex, 1 - lighter)),
        }
    }

    /// Moves a vertex from the separator to a side. Its neighbours on the other side join the separator.
    fn take(&mut self, vertex: u32, to: usize, joined: &mut Vec<u32>) {
        let graph = self.graph;
        let weight = graph.weights[vertex as usize];
        let other = 1 - to;
        self.sides[vertex as usize] = to as u8;
        self.weights[2] -= u64::from(weight);
        self.weights[to] += u64::from(weight);
        for &next in graph.row(vertex) {
            match self.sides[next as usize] {
                BETWEEN => {
                    self.beside[next as usize][to] += weight;
                }
                side if side as usize == other => {
                    self.sides[next as usize] = BETWEEN;
                    let weight = graph.weights[next as usize];
                    self.weights[other] -= u64::from(weight);
                    self.weights[2] += u64::from(weight);
                    joined.push(next);
                    self.look_around(next);
                    for &beyond in graph.row(next) {
                        if self.sides[beyond as usize] == BETWEEN {
                            self.beside[beyond as usize][other] -= weight;
                            self.requeue(beyond, to);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn requeue(&mut self, vertex: u32, to: usize) {
        if self.moved[vertex as usize] != self.pass {
            self.queue(vertex, to);
        }
    }
}
