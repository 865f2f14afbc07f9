//! The symbolic factorisation: supernodes of the factor of A + A^T, their rows, and the assembly tree.

use super::super::report::Reason;
use super::super::steps::as_reason;
use crate::direct::Factorable;
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::prepare::{Counted, Renumbered, postorder};
use crate::work::look_at;
use std::ops::Range;

/// No parent.
pub(super) const NONE: u32 = u32::MAX;

/// A supernode is merged with its parent if both together have at most this many columns, and at most this fraction of
/// their entries would be zeros: few large blocks are faster than many small ones, but need more memory. (The rule is
/// CHOLMOD's: Chen, Davis, Hager and Rajamanickam, ACM Trans. Math. Softw. 35, 2008. Its own numbers, which always
/// merge up to four columns, make the factors of plane problems a quarter larger and a tenth slower.)
const MERGED: [(u32, f64); 4] = [(8, 0.5), (16, 0.3), (48, 0.1), (u32::MAX, 0.05)];

/// The structure of the factors.
pub(in super::super) struct Tree {
    /// Whether this is L D L^T, of which only L is stored.
    pub(super) symmetric: bool,
    /// The old index of each column; children come before parents.
    pub(super) order: Vec<u32>,
    /// Supernode s has the columns `begin[s]..begin[s + 1]`.
    pub(super) begin: Vec<u32>,
    /// The parent of each supernode, which takes its contribution.
    pub(super) parents: Vec<u32>,
    /// The rows below each supernode's own, ascending: `rows[rows_at[s]..rows_at[s + 1]]`.
    pub(super) rows_at: Vec<usize>,
    pub(super) rows: Vec<u32>,
    /// The multiplications in each supernode's subtree.
    pub(super) work: Vec<f64>,
    /// The first supernode of each subtree, which contains all those up to its root.
    pub(super) first: Vec<u32>,
}

impl Tree {
    /// The structure for the pattern of M + M^T in this order; M may be given by rows or by columns.
    pub(in super::super) fn new<T: Factorable>(m: &Csr<T>, order: &[u32]) -> Result<Self, Reason> {
        let order = Permutation::from_new_to_old(order.to_vec()).map_err(as_reason)?;
        Self::of_graph(&Adjacency::new(m).map_err(as_reason)?, &order, false)
    }

    /// The structure of L D L^T of a matrix with this graph.
    pub(in super::super) fn symmetric(graph: &Adjacency<'_>, order: &Permutation) -> Result<Self, Reason> {
        Self::of_graph(graph, order, true)
    }

    fn of_graph(graph: &Adjacency<'_>, order: &Permutation, symmetric: bool) -> Result<Self, Reason> {
        let counted = Counted::new(graph, order).map_err(as_reason)?;
        Ok(Self::of_counted(&counted, order.new_to_old(), symmetric))
    }

    /// The structure for an order whose elimination tree is known.
    pub(in super::super) fn of_counted(counted: &Counted, order: &[u32], symmetric: bool) -> Self {
        let columns = Columns::new(&counted.parents, &counted.counts);
        let (places, begin, parents) = columns.supernodes();
        let (rows_at, rows) = structure(&counted.graph.again(&places), &begin, &parents);
        let mut tree = Self {
            symmetric,
            order: places.into_iter().map(|place| order[place as usize]).collect(),
            begin,
            parents,
            rows_at,
            rows,
            work: vec![],
            first: vec![],
        };
        tree.add_up();
        tree
    }

    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// The number of a supernode's own columns, and that of the rows below them.
    pub(super) fn shape(&self, s: usize) -> (usize, usize) {
        ((self.begin[s + 1] - self.begin[s]) as usize, self.rows_at[s + 1] - self.rows_at[s])
    }

    pub(super) fn rows(&self, s: usize) -> &[u32] {
        &self.rows[self.rows_at[s]..self.rows_at[s + 1]]
    }

    /// The number of entries in a supernode's part of the factors.
    pub(super) fn entries(&self, s: usize) -> usize {
        let (w, r) = self.shape(s);
        if self.symmetric { w * (w + r) } else { w * (w + 2 * r) }
    }

    /// The number of entries in the factors, including zeros in blocks.
    pub(in super::super) fn all_entries(&self) -> usize {
        (0..self.len()).map(|s| self.entries(s)).sum()
    }

    /// The multiplications of the factorisation.
    pub(in super::super) fn all_work(&self) -> f64 {
        (0..self.len()).filter(|&s| self.parents[s] == NONE).map(|s| self.work[s]).sum()
    }

    fn add_up(&mut self) {
        let count = self.len();
        self.work = (0..count)
            .map(|s| {
                let (w, r) = self.shape(s);
                let (w, r) = (w as f64, r as f64);
                let all = w * w * w / 3.0 + w * w * r + w * r * r;
                if self.symmetric { all / 2.0 } else { all }
            })
            .collect();
        self.first = (0..count as u32).collect();
        for s in 0..count {
            let parent = self.parents[s];
            if parent != NONE {
                self.work[parent as usize] += self.work[s];
                let first = self.first[s];
                let known = &mut self.first[parent as usize];
                *known = first.min(*known);
            }
        }
    }
}

/// Columns in postorder.
struct Columns {
    /// Their places in the order of elimination.
    order: Vec<u32>,
    parents: Vec<u32>,
    counts: Vec<u32>,
}

impl Columns {
    fn new(parents: &[u32], counts: &[u32]) -> Self {
        let post = postorder(parents);
        let mut place = vec![0; post.len()];
        post.iter().enumerate().for_each(|(new, &old)| place[old as usize] = new as u32);
        let parent = |&old: &u32| match parents[old as usize] {
            NONE => NONE,
            parent => place[parent as usize],
        };
        let parents = post.iter().map(parent).collect();
        let counts = post.iter().map(|&old| counts[old as usize]).collect();
        Self { order: post, parents, counts }
    }

    /// Returns the order of columns, the first columns of supernodes and their tree, after small supernodes are merged.
    fn supernodes(&self) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let n = self.order.len();
        let mut begin = Vec::new();
        let mut of = Vec::with_capacity(n);
        for column in 0..n {
            let joins = column > 0
                && self.parents[column - 1] == column as u32
                && self.counts[column - 1] == self.counts[column] + 1;
            if !joins {
                begin.push(column as u32);
            }
            of.push(begin.len() as u32 - 1);
        }
        begin.push(n as u32);
        let count = begin.len() - 1;
        let last = |s: usize| begin[s + 1] as usize - 1;
        let parents: Vec<u32> = (0..count)
            .map(|s| match self.parents[last(s)] {
                NONE => NONE,
                parent => of[parent as usize],
            })
            .collect();
        let leaders = self.merged(&begin, &parents);
        // Numbers the remaining supernodes; parents come after their children.
        let mut number = vec![NONE; count];
        let mut kept = 0;
        for s in 0..count {
            if leaders[s] == s as u32 {
                number[s] = kept;
                kept += 1;
            }
        }
        let mut tree = vec![NONE; kept as usize];
        // The members of each: first[own]..first[own + 1].
        let mut first = vec![0_u32; kept as usize + 2];
        for s in 0..count {
            let own = number[leaders[s] as usize];
            first[own as usize + 2] += 1;
            if leaders[s] == s as u32 && parents[s] != NONE {
                tree[own as usize] = number[leaders[parents[s] as usize] as usize];
            }
        }
        for own in 0..kept as usize {
            first[own + 2] += first[own + 1];
        }
        let mut members = vec![0_u32; count];
        for s in 0..count {
            let next = &mut first[number[leaders[s] as usize] as usize + 1];
            members[*next as usize] = s as u32;
            *next += 1;
        }
        let post = postorder(&tree);
        let mut place = vec![0; post.len()];
        post.iter().enumerate().for_each(|(new, &old)| place[old as usize] = new as u32);
        let (mut order, mut columns, mut up) = (Vec::with_capacity(n), vec![0], Vec::new());
        for &old in &post {
            for &s in &members[first[old as usize] as usize..first[old as usize + 1] as usize] {
                order.extend_from_slice(
                    &self.order[begin[s as usize] as usize..begin[s as usize + 1] as usize],
                );
            }
            columns.push(order.len() as u32);
            up.push(match tree[old as usize] {
                NONE => NONE,
                parent => place[parent as usize],
            });
        }
        (order, columns, up)
    }

    /// Returns the supernode that each one is merged with, or its own number.
    fn merged(&self, begin: &[u32], parents: &[u32]) -> Vec<u32> {
        let count = parents.len();
        let mut width: Vec<u32> = begin.windows(2).map(|w| w[1] - w[0]).collect();
        let below: Vec<u32> = (0..count).map(|s| self.counts[begin[s + 1] as usize - 1] - 1).collect();
        let mut zeros = vec![0.0; count];
        let mut leaders: Vec<u32> = (0..count as u32).collect();
        let (mut child, mut next) = (vec![NONE; count], vec![NONE; count]);
        for s in 0..count {
            // All children of s have been merged with their own children.
            let mut at = child[s];
            while at != NONE {
                let c = at as usize;
                at = next[c];
                let (w, r) = (f64::from(width[c] + width[s]), f64::from(below[s]));
                let new = f64::from(width[c]) * (f64::from(width[s]) + r - f64::from(below[c]));
                let (all, empty) = (w * (w + 1.0) / 2.0 + w * r, zeros[c] + zeros[s] + new);
                let fits = |&(most, part): &(u32, f64)| width[c] + width[s] <= most && empty <= part * all;
                if new == 0.0 || MERGED.iter().any(fits) {
                    leaders[c] = s as u32;
                    width[s] += width[c];
                    zeros[s] = empty;
                }
            }
            if parents[s] != NONE {
                next[s] = std::mem::replace(&mut child[parents[s] as usize], s as u32);
            }
        }
        for s in (0..count).rev() {
            leaders[s] = leaders[leaders[s] as usize];
        }
        leaders
    }
}

/// A subtree that is a task has at most 1 / `PART` of all columns, or `LEAST` columns if that is more.
const PART: u32 = 48;
const LEAST: u32 = 1 << 11;

/// Returns the rows below each supernode: those of its columns of M + M^T, and those of its children.
fn structure(graph: &Renumbered, begin: &[u32], parents: &[u32]) -> (Vec<usize>, Vec<u32>) {
    let (count, n) = (parents.len(), graph.len());
    let most = (n as u32 / PART).max(LEAST);
    // Divides the supernodes into subtrees, which are tasks, and those above.
    let mut first: Vec<u32> = (0..count as u32).collect();
    let mut subtrees: Vec<Range<usize>> = Vec::new();
    let is_small = |s: usize, first: &[u32]| begin[s + 1] - begin[first[s] as usize] <= most;
    for s in 0..count {
        if parents[s] != NONE {
            let parent = parents[s] as usize;
            first[parent] = first[parent].min(first[s]);
        }
    }
    for s in 0..count {
        if is_small(s, &first) && (parents[s] == NONE || !is_small(parents[s] as usize, &first)) {
            subtrees.push(first[s] as usize..s + 1);
        }
    }
    let of_subtree = |range: &Range<usize>| {
        let mut part = Rows::new(graph, begin, parents, range.start);
        range.clone().for_each(|s| part.add(s));
        (part.at, part.rows)
    };
    let parts = subtrees.par_iter().map(of_subtree).collect();
    let mut all = Rows::new(graph, begin, parents, 0);
    for (range, (at, rows)) in subtrees.into_iter().zip(parts) {
        while all.at.len() - 1 < range.start {
            all.add(all.at.len() - 1);
        }
        let before = all.rows.len();
        all.rows.extend(rows);
        all.at.extend(at[1..].iter().map(|end| before + end));
        all.hang(range.end - 1);
    }
    while all.at.len() <= count {
        all.add(all.at.len() - 1);
    }
    (all.at, all.rows)
}

/// The rows of consecutive supernodes; children come before parents.
struct Rows<'a> {
    graph: &'a Renumbered,
    begin: &'a [u32],
    parents: &'a [u32],
    /// The first supernode, and its first column.
    from: usize,
    column: usize,
    at: Vec<usize>,
    rows: Vec<u32>,
    /// A linked list of each supernode's children.
    child: Vec<u32>,
    next: Vec<u32>,
    /// The last supernode that visited each row, plus one.
    met: Vec<u32>,
}

impl<'a> Rows<'a> {
    fn new(graph: &'a Renumbered, begin: &'a [u32], parents: &'a [u32], from: usize) -> Self {
        let (count, column) = (parents.len() - from, begin[from] as usize);
        // Zeroed memory costs nothing until it is used.
        let (child, next, met) = (vec![0; count], vec![0; count], vec![0; graph.len() - column]);
        Self { graph, begin, parents, from, column, at: vec![0], rows: Vec::new(), child, next, met }
    }

    fn add(&mut self, s: usize) {
        look_at(s);
        let (begin, end, start) = (self.begin[s], self.begin[s + 1], self.rows.len());
        let (met, column) = (&mut self.met, self.column);
        let mut is_new = |row: u32| {
            row >= end && std::mem::replace(&mut met[row as usize - column], s as u32 + 1) != s as u32 + 1
        };
        for own in begin..end {
            self.rows.extend(self.graph.row(own as usize).iter().copied().filter(|&row| is_new(row)));
        }
        let mut at = self.child[s - self.from] as usize;
        while at > 0 {
            for k in self.at[at - 1]..self.at[at] {
                let row = self.rows[k];
                if is_new(row) {
                    self.rows.push(row);
                }
            }
            at = self.next[at - 1] as usize;
        }
        self.rows[start..].sort_unstable();
        self.at.push(self.rows.len());
        self.hang(s);
    }

    /// Adds a supernode to its parent's list of children.
    fn hang(&mut self, s: usize) {
        let place = s - self.from;
        if self.parents[s] != NONE {
            let child = &mut self.child[self.parents[s] as usize - self.from];
            self.next[place] = std::mem::replace(child, place as u32 + 1);
        }
    }
}
