//! Approximate minimum degree for a part of a graph whose other neighbours are eliminated later.
//!
//! This is the quotient graph of Amestoy, Davis and Duff ("An approximate minimum degree ordering algorithm", SIAM J.
//! Matrix Anal. Appl. 17, 1996), with two additions: vertices may stand for several, and there may be a halo of
//! vertices that count in degrees but are not eliminated (Pellegrini, Roman and Amestoy, "Hybridizing nested dissection
//! and halo approximate minimum degree for efficient sparse matrix ordering", Concurrency: Pract. Exper. 12, 2000).
//! Without a halo vertices at the boundary of a part would look easy to eliminate, although they cause the most fill.

use crate::work::look;

const NONE: u32 = u32::MAX;

/// Limits of a search for an order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// The maximum number of multiplications of a Cholesky factorisation in this order.
    pub(crate) multiplications: f64,
    /// The maximum number of list entries that the search reads.
    pub(crate) steps: f64,
}

/// The limit that was exceeded, and the count at that point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beyond {
    Multiplications(f64),
    Steps(f64),
}

impl Most {
    pub(super) const ANY: Most = Most { multiplications: f64::INFINITY, steps: f64::INFINITY };
}

/// The state of the elimination. A vertex is a variable until it is eliminated, and then an element, which stands for
/// the clique of its former neighbours.
pub(super) struct Quotient {
    /// The number of vertices to order; those after them are the halo.
    inner: usize,
    /// Where the list of each vertex starts. A variable's list has its elements and then its variables; an element's
    /// list has its variables.
    starts: Vec<usize>,
    lengths: Vec<u32>,
    /// The number of elements in each variable's list.
    elements: Vec<u32>,
    lists: Vec<u32>,
    /// The number of vertices that each variable stands for; zero once it is merged or eliminated.
    weights: Vec<u32>,
    /// The weight of a variable's neighbours, approximately; the exact weight for an element.
    degrees: Vec<u32>,
    /// Zero for elements that were absorbed by another one, positive for other elements; the values are those that
    /// `measure` and `merge_alike` need.
    marks: Vec<u64>,
    mark: u64,
    /// Doubly linked lists of the variables of each degree.
    heads: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    least: usize,
    /// Chains of the vertices that are eliminated together with each vertex.
    follower: Vec<u32>,
    last_follower: Vec<u32>,
}

impl Quotient {
    /// Takes a graph as lists; the first `inner` vertices are to be ordered. Edges between the other vertices can be
    /// left out.
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

    /// Reports each inner vertex in the order of elimination, until this takes more than `most`.
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

    /// Returns a variable of minimum degree.
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

    /// Collects the variables that the pivot is coupled with, either directly or through its elements, which it
    /// absorbs. They are taken out of the lists of degrees, and marked by a `previous` that is the vertex itself.
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

    /// For each element near the clique, sets `marks` to `mark` plus the weight of its variables outside of the clique.
    /// Returns the number of list entries read, which are the steps of the search.
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

    /// Updates the lists and degrees of the clique's variables. Variables without other neighbours are eliminated
    /// together with the pivot; returns their weight.
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
                    // All that this element couples is coupled by the new clique as well.
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
            // The pivot is an element now and goes before the other elements. There is room because the entry that led
            // here was dropped.
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

    /// From now on a variable is eliminated together with `leader`.
    fn absorb(&mut self, leader: u32, variable: u32) {
        self.weights[variable as usize] = 0;
        self.lengths[variable as usize] = 0;
        let last = self.last_follower[leader as usize];
        self.last_follower[leader as usize] = self.last_follower[variable as usize];
        self.follower[last as usize] = variable;
    }

    /// Merges variables with the same list.
    fn merge_alike(&mut self, clique: &[u32], hashes: &mut [(u32, u32)]) {
        // Marks of elements seen so far exceed `mark` by at most the total weight.
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
            // The vertices and elements of the list are marked in a field that variables do not use.
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

    /// The clique becomes the list of the pivot, and its variables return to the lists of degrees.
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

    /// Drops lists that are not used any more.
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
