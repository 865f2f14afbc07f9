//! Approximate minimum degree for a part of a graph whose neighbours are eliminated later.
//!
//! The quotient graph of Amestoy, Davis and Duff ("An approximate minimum degree ordering algorithm", SIAM J. Matrix
//! Anal. Appl. 17, 1996), with two things that a library's does not offer: vertices that stand for several, and a halo,
//! vertices that count in degrees and are not eliminated (Pellegrini, Roman and Amestoy, "Hybridizing nested dissection
//! and halo approximate minimum degree for efficient sparse matrix ordering", Concurrency: Pract. Exper. 12, 2000).
//! Without a halo the rim of a part looks easy to eliminate, and is what fills most.

use crate::work::look;

const NONE: u32 = u32::MAX;

/// What an order may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Multiplications of a Cholesky factorisation in it.
    pub(crate) multiplications: f64,
    /// Entries of lists that the search for it reads.
    pub(crate) steps: f64,
}

/// What an order has taken more of than it may.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beyond {
    Multiplications(f64),
    Steps(f64),
}

impl Most {
    pub(super) const ANY: Most = Most { multiplications: f64::INFINITY, steps: f64::INFINITY };
}

/// A vertex is a variable until it is eliminated, then an element: the clique of those that it was coupled with.
pub(super) struct Quotient {
    /// Vertices that are to be ordered; those behind them are the halo.
    inner: usize,
    /// Where the list of each vertex starts: for a variable its elements, then its variables; for an element its
    /// variables.
    starts: Vec<usize>,
    lengths: Vec<u32>,
    /// How many of a variable's list are elements.
    elements: Vec<u32>,
    lists: Vec<u32>,
    /// How many vertices a variable stands for; none where it was merged or eliminated.
    weights: Vec<u32>,
    /// Weight of what a variable is coupled with, approximately; for an element exactly.
    degrees: Vec<u32>,
    /// Greater than zero, and changing, for elements; zero for those that another one has taken over.
    marks: Vec<u64>,
    mark: u64,
    /// Variables of each degree, doubly linked.
    heads: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    least: usize,
    /// Vertices that are eliminated together with each one.
    follower: Vec<u32>,
    last_follower: Vec<u32>,
}

impl Quotient {
    /// The graph with these lists; the first `inner` vertices are to be ordered. What the lists of the others say of
    /// each other is not needed.
    pub(super) fn new(inner: usize, starts: Vec<usize>, lists: Vec<u32>, weights: Vec<u32>) -> Self {
        let n = weights.len();
        let lengths: Vec<u32> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect();
        let total = weights.iter().map(|&weight| weight as usize).sum::<usize>();
        let mut degrees = vec![0; n];
        for vertex in 0..n {
            let row = &lists[starts[vertex]..starts[vertex + 1]];
            degrees[vertex] = row.iter().map(|&other| weights[other as usize]).sum();
        }
        let mut new = Self {
            inner,
            starts,
            lengths,
            elements: vec![0; n],
            lists,
            weights,
            degrees,
            marks: vec![1; n],
            mark: 2,
            heads: vec![NONE; total + 1],
            next: vec![NONE; n],
            previous: vec![NONE; n],
            least: 0,
            follower: vec![NONE; n],
            last_follower: (0..n as u32).collect(),
        };
        (0..inner as u32).rev().for_each(|vertex| new.insert(vertex));
        new
    }

    /// Gives each inner vertex in the order of elimination, as far as that takes no more than `most`.
    pub(super) fn order(mut self, most: Most, mut each: impl FnMut(u32)) -> Result<(), Beyond> {
        let (mut multiplications, mut steps) = (0.0, 0.0);
        let mut left: u64 = self.weights.iter().map(|&weight| u64::from(weight)).sum();
        let mut clique = Vec::new();
        let mut hashes = Vec::new();
        let room = 4 * self.lists.len() + 1000;
        while let Some(pivot) = self.pop() {
            look();
            if self.lists.len() > room {
                self.tidy();
            }
            let weight = self.weights[pivot as usize];
            self.gather(pivot, &mut clique);
            steps += self.measure(&clique) as f64;
            let taken = self.update(pivot, &mut clique, &mut hashes);
            left -= u64::from(weight + taken);
            self.merge_alike(&clique, &mut hashes);
            self.finish(pivot, &mut clique, left);
            let (columns, below) = (f64::from(weight + taken), f64::from(self.degrees[pivot as usize]));
            multiplications += columns * below * (below + columns) / 2.0 + columns.powi(3) / 6.0;
            if multiplications > most.multiplications {
                return Err(Beyond::Multiplications(multiplications));
            }
            if steps > most.steps {
                return Err(Beyond::Steps(steps));
            }
            let mut member = pivot;
            while member != NONE {
                each(member);
                member = self.follower[member as usize];
            }
        }
        Ok(())
    }

    fn insert(&mut self, vertex: u32) {
        let degree = self.degrees[vertex as usize] as usize;
        let head = std::mem::replace(&mut self.heads[degree], vertex);
        self.next[vertex as usize] = head;
        self.previous[vertex as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = vertex;
        }
        self.least = self.least.min(degree);
    }

    fn remove(&mut self, vertex: u32) {
        let (previous, next) = (self.previous[vertex as usize], self.next[vertex as usize]);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous == NONE {
            self.heads[self.degrees[vertex as usize] as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
    }

    /// A variable of least degree.
    fn pop(&mut self) -> Option<u32> {
        while *self.heads.get(self.least)? == NONE {
            self.least += 1;
        }
        let vertex = self.heads[self.least];
        self.remove(vertex);
        Some(vertex)
    }

    fn list(&self, vertex: u32) -> std::ops::Range<usize> {
        let start = self.starts[vertex as usize];
        start..start + self.lengths[vertex as usize] as usize
    }

    /// The variables that the pivot is coupled with, by itself or through its elements, which it takes over. They are
    /// out of the lists of degrees, and marked by `previous` being the vertex itself.
    fn gather(&mut self, pivot: u32, clique: &mut Vec<u32>) {
        clique.clear();
        self.weights[pivot as usize] = 0;
        let range = self.list(pivot);
        let elements = self.elements[pivot as usize] as usize;
        for at in range.clone().take(elements) {
            let element = self.lists[at];
            for inner in self.list(element) {
                self.join(self.lists[inner], clique);
            }
            self.marks[element as usize] = 0;
        }
        for at in range.skip(elements) {
            self.join(self.lists[at], clique);
        }
    }

    fn join(&mut self, variable: u32, clique: &mut Vec<u32>) {
        if self.weights[variable as usize] == 0 || self.is_joined(variable) {
            return;
        }
        if (variable as usize) < self.inner {
            self.remove(variable);
        }
        self.previous[variable as usize] = variable;
        clique.push(variable);
    }

    fn is_joined(&self, variable: u32) -> bool {
        self.previous[variable as usize] == variable
    }

    /// For each element near the clique, `marks` becomes `mark` and the weight of those of its variables that are not
    /// in the clique. Gives how many entries of lists it has read, which is what a step of the search takes.
    fn measure(&mut self, clique: &[u32]) -> usize {
        let mut read = 0;
        for &variable in clique {
            let weight = u64::from(self.weights[variable as usize]);
            let start = self.starts[variable as usize];
            read += self.lengths[variable as usize] as usize;
            for at in start..start + self.elements[variable as usize] as usize {
                let element = self.lists[at] as usize;
                let seen = self.marks[element];
                if seen >= self.mark {
                    self.marks[element] = seen - weight;
                } else if seen != 0 {
                    self.marks[element] = self.mark + u64::from(self.degrees[element]) - weight;
                }
            }
        }
        read
    }

    /// New lists and degrees for the variables of the clique; those that are coupled with nothing else go with the
    /// pivot, and their weight is returned.
    fn update(&mut self, pivot: u32, clique: &mut Vec<u32>, hashes: &mut Vec<(u32, u32)>) -> u32 {
        hashes.clear();
        let mut taken = 0;
        for &variable in clique.iter() {
            let is_inner = (variable as usize) < self.inner;
            let range = self.list(variable);
            let elements = range.start + self.elements[variable as usize] as usize;
            let mut kept = range.start;
            let (mut degree, mut hash) = (0_u32, pivot);
            for at in range.start..elements {
                let element = self.lists[at];
                let seen = self.marks[element as usize];
                if seen == 0 {
                    continue;
                }
                let beyond = (seen - self.mark) as u32;
                if beyond == 0 {
                    // All that it couples the new clique couples too.
                    self.marks[element as usize] = 0;
                    continue;
                }
                degree += beyond;
                hash = hash.wrapping_add(element);
                self.lists[kept] = element;
                kept += 1;
            }
            let kept_elements = kept;
            for at in elements..range.end {
                let other = self.lists[at];
                let weight = self.weights[other as usize];
                if weight == 0 || self.is_joined(other) {
                    continue;
                }
                degree += weight;
                hash = hash.wrapping_add(other);
                self.lists[kept] = other;
                kept += 1;
            }
            if is_inner && degree == 0 {
                taken += self.weights[variable as usize];
                self.absorb(pivot, variable);
                continue;
            }
            // The pivot, now an element, goes before the other elements: one entry was dropped, the one that led here.
            self.lists[kept] = self.lists[kept_elements];
            self.lists[kept_elements] = self.lists[range.start];
            self.lists[range.start] = pivot;
            self.elements[variable as usize] = (kept_elements - range.start + 1) as u32;
            self.lengths[variable as usize] = (kept - range.start + 1) as u32;
            self.degrees[variable as usize] = self.degrees[variable as usize].min(degree);
            hashes.push((hash, variable));
        }
        clique.retain(|&variable| self.weights[variable as usize] != 0);
        taken
    }

    /// A variable goes wherever `leader` goes.
    fn absorb(&mut self, leader: u32, variable: u32) {
        self.weights[variable as usize] = 0;
        self.lengths[variable as usize] = 0;
        let last = self.last_follower[leader as usize];
        self.last_follower[leader as usize] = self.last_follower[variable as usize];
        self.follower[last as usize] = variable;
    }

    /// Variables with the same list become one.
    fn merge_alike(&mut self, clique: &[u32], hashes: &mut [(u32, u32)]) {
        // Marks of elements that were seen lie up to the total weight above `mark`.
        self.mark += self.heads.len() as u64;
        if clique.len() < 2 {
            return;
        }
        hashes.sort_unstable();
        for first in 0..hashes.len() {
            let (hash, leader) = hashes[first];
            if self.weights[leader as usize] == 0 || hashes.get(first + 1).is_none_or(|next| next.0 != hash) {
                continue;
            }
            // Vertices of the list, the elements among them, are marked in a field that variables do not use.
            self.mark += 1;
            for at in self.list(leader) {
                let entry = self.lists[at] as usize;
                self.marks[entry] = self.mark;
            }
            for &(_, other) in hashes[first + 1..].iter().take_while(|next| next.0 == hash) {
                let alike = self.weights[other as usize] != 0
                    && self.lengths[other as usize] == self.lengths[leader as usize]
                    && self.elements[other as usize] == self.elements[leader as usize]
                    && ((other as usize) < self.inner) == ((leader as usize) < self.inner)
                    && self.list(other).all(|at| self.marks[self.lists[at] as usize] == self.mark);
                if alike {
                    self.weights[leader as usize] += self.weights[other as usize];
                    self.degrees[leader as usize] =
                        self.degrees[leader as usize].min(self.degrees[other as usize]);
                    self.absorb(leader, other);
                }
            }
        }
        self.mark += 1;
    }

    /// The clique becomes the list of the pivot, and its variables go back to the lists of degrees.
    fn finish(&mut self, pivot: u32, clique: &mut Vec<u32>, left: u64) {
        clique.retain(|&variable| self.weights[variable as usize] != 0);
        let all: u32 = clique.iter().map(|&variable| self.weights[variable as usize]).sum();
        self.starts[pivot as usize] = self.lists.len();
        self.lengths[pivot as usize] = clique.len() as u32;
        self.degrees[pivot as usize] = all;
        self.marks[pivot as usize] = 1;
        self.lists.extend_from_slice(clique);
        for &variable in clique.iter() {
            let weight = self.weights[variable as usize];
            self.previous[variable as usize] = NONE;
            let degree = u64::from(self.degrees[variable as usize]) + u64::from(all - weight);
            self.degrees[variable as usize] = degree.min(left - u64::from(weight)) as u32;
            if (variable as usize) < self.inner {
                self.insert(variable);
            }
        }
    }

    /// Drops lists that nobody reads any more.
    fn tidy(&mut self) {
        let mut lists = Vec::with_capacity(self.lists.len() / 2);
        for vertex in 0..self.weights.len() as u32 {
            let is_variable = self.weights[vertex as usize] != 0;
            let is_element = !is_variable && self.marks[vertex as usize] != 0;
            if is_variable || is_element {
                let range = self.list(vertex);
                self.starts[vertex as usize] = lists.len();
                lists.extend_from_slice(&self.lists[range]);
            }
        }
        self.lists = lists;
    }
}
