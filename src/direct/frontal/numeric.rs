//! Fronts are put together from the matrix and from what their children contribute, and eliminated.

use super::super::foreign::Columns;
use super::super::report::Reason;
use super::dense::{Front, Pivots};
use super::symmetric::SymmetricFront;
use super::tree::{NONE, Tree};
use crate::direct::Factorable;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::parallel::vectorised;
use crate::scalar::Real;
use crate::work::{self, Meter, Stage};
use std::ops::Range;
use std::sync::Arc;

/// A diagonal entry is the pivot where it has this part of the largest magnitude in its block.
const PREFERENCE: f64 = 0.1;

/// Subtrees that are tasks have at most this part of all the work: several for each thread of a workstation, so that
/// none waits long for the last one.
const PART: f64 = 1.0 / 64.0;

/// P M Q = L U, or P M P^T = L D L^T, in fronts.
pub(in super::super) struct Frontal<T> {
    pub(super) tree: Arc<Tree>,
    /// Each supernode's part of the factors: in which of `values` it is, and where it begins. Its columns of L and U11
    /// come first, then its rows of U. Of L D L^T its columns of L, with D on the diagonal.
    pub(super) at: Vec<(u32, usize)>,
    pub(super) values: Vec<Vec<T>>,
    /// What solves go through, in the order of supernodes.
    pub(super) pieces: Vec<Stretch>,
    /// Of supernodes in a subtree the rows that are behind all columns of it, by where each is among the rows of its
    /// root: `beyond[beyond_at[s]..beyond_at[s + 1]]`.
    pub(super) beyond_at: Vec<usize>,
    pub(super) beyond: Vec<u32>,
    /// For each column the row that was swapped with its own, among those of the supernode. Of L D L^T the first of a
    /// pivot of two rows is marked.
    pub(super) swaps: Vec<u32>,
    /// Pivots that were made up.
    pub(in super::super) made_up: usize,
    finite: bool,
}

/// Consecutive supernodes that one thread takes in a solve: a subtree, which needs no other, or one near the root.
#[derive(Clone)]
pub(super) struct Stretch {
    pub(super) supernodes: Range<usize>,
    pub(super) is_subtree: bool,
}

/// Of each supernode in a subtree how many rows are behind all columns of it, and where they are among the rows of its
/// root.
#[derive(Clone, Default)]
struct Beyond {
    counts: Vec<usize>,
    rows: Vec<u32>,
}

/// Where a front has its entries of M from.
enum Source<'a, T> {
    Sorted(Entries<T>),
    /// Of a symmetric M its columns, and the new index of each old one.
    Columns {
        m: Columns<'a>,
        values: &'a [T],
        place: Vec<u32>,
    },
}

impl<'a, T: Factorable> Source<'a, T> {
    fn new(m: Columns<'a>, values: &'a [T], tree: &Tree) -> Self {
        if !tree.symmetric {
            return Self::Sorted(Entries::new(m, values, tree));
        }
        let mut place = vec![0_u32; m.columns];
        tree.order.iter().zip(0..).for_each(|(&old, new)| place[old as usize] = new);
        Self::Columns { m, values, place }
    }

    /// Gives the entries of a supernode's front with their rows and columns.
    fn each(&self, tree: &Tree, s: usize, mut each: impl FnMut(u32, u32, T)) {
        match self {
            Self::Sorted(entries) => {
                let range = entries.starts[s]..entries.starts[s + 1];
                for (&(i, j), &value) in both(&entries.places[range.clone()], &entries.values[range]) {
                    each(i, j, value);
                }
            }
            Self::Columns { m, values, place } => {
                for j in tree.begin[s]..tree.begin[s + 1] {
                    let old = tree.order[j as usize] as usize;
                    let range = m.starts[old] as usize..m.starts[old + 1] as usize;
                    for (&row, &value) in both(&m.indices[range.clone()], &values[range]) {
                        let i = place[row as usize];
                        if i >= j {
                            each(i, j, value);
                        }
                    }
                }
            }
        }
    }
}

/// Entries of M by supernodes: those with a row or a column in it that no earlier one has.
struct Entries<T> {
    starts: Vec<usize>,
    places: Vec<(u32, u32)>,
    values: Vec<T>,
}

impl<T: Factorable> Entries<T> {
    fn new(m: Columns<'_>, values: &[T], tree: &Tree) -> Self {
        let n = m.columns;
        let (mut place, mut of) = (vec![0_u32; n], vec![0_u32; n]);
        tree.order.iter().enumerate().for_each(|(new, &old)| place[old as usize] = new as u32);
        for s in 0..tree.len() {
            of[tree.begin[s] as usize..tree.begin[s + 1] as usize].fill(s as u32);
        }
        let owner = |i: u32, j: u32| of[i.min(j) as usize] as usize;
        let rows = |column: usize| m.starts[column] as usize..m.starts[column + 1] as usize;
        let mut starts = vec![0; tree.len() + 2];
        for column in 0..n {
            for &row in &m.indices[rows(column)] {
                let (i, j) = (place[row as usize], place[column]);
                starts[owner(i, j) + 2] += 1;
            }
        }
        for s in 0..tree.len() {
            starts[s + 2] += starts[s + 1];
        }
        let kept = starts[tree.len() + 1];
        let (mut places, mut sorted) = (vec![(0, 0); kept], vec![T::default(); kept]);
        for column in 0..n {
            for k in rows(column) {
                let (i, j) = (place[m.indices[k] as usize], place[column]);
                let at = &mut starts[owner(i, j) + 1];
                (places[*at], sorted[*at]) = ((i, j), values[k]);
                *at += 1;
            }
        }
        Self { starts, places, values: sorted }
    }
}

/// Consecutive supernodes that one thread takes: a subtree, or a single one near the root.
struct Piece<'a, T> {
    number: usize,
    supernodes: Range<usize>,
    /// Memory for its part of the factors, not yet written: writing zeros at once, and numbers later, would take pages
    /// through the caches twice.
    values: Vec<T>,
    swaps: &'a mut [u32],
}

/// What eliminates fronts one behind the other.
struct Worker<'a, T> {
    tree: &'a Tree,
    entries: &'a Source<'a, T>,
    pivots: Pivots,
    meter: &'a Meter,
    /// Where rows stand in the front at hand.
    place: Vec<u32>,
    /// Contributions that wait for their parents, the last one on top; where each begins.
    stack: Vec<T>,
    waiting: Vec<(usize, usize)>,
    /// Columns of a front of a symmetric matrix.
    columns: Vec<T>,
    made_up: usize,
    /// Whether all entries of the factors are numbers.
    finite: bool,
}

/// A contribution, and whose it is.
struct Contribution<T> {
    of: usize,
    values: Vec<T>,
}

impl<'a, T: Factorable> Worker<'a, T> {
    fn new(tree: &'a Tree, entries: &'a Source<'a, T>, pivots: Pivots, meter: &'a Meter) -> Self {
        let place = vec![0; tree.order.len()];
        let (stack, waiting, columns) = (Vec::new(), Vec::new(), Vec::new());
        Self { tree, entries, pivots, meter, place, stack, waiting, columns, made_up: 0, finite: true }
    }

    /// Eliminates a subtree and gives its part of the factors; its contribution is left on the stack.
    fn subtree(&mut self, piece: Piece<'_, T>) -> Vec<T> {
        let (mut values, mut swaps) = (piece.values, piece.swaps);
        for s in piece.supernodes {
            let own = zeros(&mut values, self.tree.entries(s));
            let (own_swaps, rest_swaps) = std::mem::take(&mut swaps).split_at_mut(self.tree.shape(s).0);
            swaps = rest_swaps;
            let r = self.tree.shape(s).1;
            let top = self.stack.len();
            let mut stack = std::mem::take(&mut self.stack);
            stack.resize(top + r * r, T::default());
            let (below, contribution) = stack.split_at_mut(top);
            let mut first = top;
            let mut children = Vec::new();
            while let Some(&(child, at)) = self.waiting.last() {
                if self.tree.parents[child] != s as u32 {
                    break;
                }
                children.push((child, at));
                first = at;
                self.waiting.pop();
            }
            let given = children.iter().rev().map(|&(child, at)| {
                let r = self.tree.shape(child).1;
                (child, &below[at..at + r * r])
            });
            self.front(s, (own, contribution, own_swaps), given);
            // The contribution takes the place of the children's.
            stack.copy_within(top.., first);
            stack.truncate(first + r * r);
            self.stack = stack;
            if self.tree.parents[s] != NONE {
                self.waiting.push((s, first));
            }
        }
        values
    }

    /// Eliminates a single supernode, with what its children contribute, and gives its part of the factors; its
    /// contribution is left on the stack.
    fn alone(&mut self, piece: Piece<'_, T>, mut children: Vec<Contribution<T>>) -> Vec<T> {
        let (s, mut values) = (piece.supernodes.start, piece.values);
        children.sort_unstable_by_key(|child| child.of);
        let r = self.tree.shape(s).1;
        let mut contribution = vec![T::default(); r * r];
        let given = children.iter().map(|child| (child.of, &child.values[..]));
        let own = zeros(&mut values, self.tree.entries(s));
        self.front(s, (own, &mut contribution, piece.swaps), given);
        self.stack = contribution;
        values
    }

    /// What is behind a subtree whose root is the front at hand.
    fn beyond(&self, supernodes: Range<usize>) -> Beyond {
        let root = supernodes.end - 1;
        let (end, width) = (self.tree.begin[root + 1], self.tree.shape(root).0 as u32);
        let mut beyond = Beyond::default();
        for s in supernodes {
            let rows = self.tree.rows(s);
            let rows = &rows[rows.partition_point(|&row| row < end)..];
            beyond.counts.push(rows.len());
            beyond.rows.extend(rows.iter().map(|&row| self.place[row as usize] - width));
        }
        beyond
    }

    /// Puts a front together and eliminates it.
    fn front<'b>(
        &mut self,
        s: usize,
        (values, contribution, swaps): (&mut [T], &mut [T], &mut [u32]),
        children: impl Iterator<Item = (usize, &'b [T])>,
    ) where
        T: 'b,
    {
        let tree = self.tree;
        let (w, r) = tree.shape(s);
        let (m, begin) = (w + r, tree.begin[s]);
        let (panel, upper) = values.split_at_mut(m * w);
        for k in 0..w {
            self.place[begin as usize + k] = k as u32;
        }
        for (k, &row) in tree.rows(s).iter().enumerate() {
            self.place[row as usize] = (w + k) as u32;
        }
        self.entries.each(tree, s, |i, j, value| {
            let (i, j) = (self.place[i as usize] as usize, self.place[j as usize] as usize);
            if j < w {
                panel[j * m + i] += value;
            } else {
                upper[(j - w) * w + i] += value;
            }
        });
        let mut places = Vec::new();
        for (child, given) in children {
            let rows = tree.rows(child);
            places.clear();
            places.extend(rows.iter().map(|&row| self.place[row as usize]));
            // Rows are in ascending order, so those of the front's own columns come first.
            let own = places.partition_point(|&place| (place as usize) < w);
            if tree.symmetric {
                add_lower((w, r), panel, contribution, &places, given);
                continue;
            }
            for (&j, given) in places.iter().zip(given.chunks_exact(rows.len().max(1))) {
                let j = j as usize;
                if j < w {
                    let column = &mut panel[j * m..(j + 1) * m];
                    add(column, &places, given);
                } else {
                    add(&mut upper[(j - w) * w..(j - w + 1) * w], &places[..own], &given[..own]);
                    let below = &mut contribution[(j - w) * r..(j - w + 1) * r];
                    for (&i, &value) in both(&places[own..], &given[own..]) {
                        below[i as usize - w] += value;
                    }
                }
            }
        }
        self.made_up += if tree.symmetric {
            let mut front = SymmetricFront { width: w, height: m, panel, contribution, swaps };
            front.eliminate(self.pivots.least, &mut self.columns, self.meter)
        } else {
            let mut front = Front { width: w, height: m, panel, upper, contribution, swaps };
            front.eliminate(self.pivots, self.meter)
        };
        self.finite &= vectorised(|| values.iter().all(|value| value.is_finite()));
        self.meter.advance(tree.entries(s) as u64);
    }
}

/// So many zeros more, behind what there is.
fn zeros<T: Factorable>(values: &mut Vec<T>, more: usize) -> &mut [T] {
    let before = values.len();
    values.resize(before + more, T::default());
    &mut values[before..]
}

fn add<T: Factorable>(column: &mut [T], places: &[u32], values: &[T]) {
    for (&i, &value) in both(places, values) {
        column[i as usize] += value;
    }
}

/// Adds the lower triangle of a child's contribution to that of a front, `w` columns of its own and `r` others.
fn add_lower<T: Factorable>(
    (w, r): (usize, usize),
    panel: &mut [T],
    contribution: &mut [T],
    places: &[u32],
    given: &[T],
) {
    for (k, (&j, given)) in places.iter().zip(given.chunks_exact(places.len().max(1))).enumerate() {
        let (j, places, given) = (j as usize, &places[k..], &given[k..]);
        if j < w {
            add(&mut panel[j * (w + r)..(j + 1) * (w + r)], places, given);
        } else {
            let column = &mut contribution[(j - w) * r..(j - w + 1) * r];
            for (&i, &value) in both(places, given) {
                column[i as usize - w] += value;
            }
        }
    }
}

impl<T: Factorable> Frontal<T> {
    /// Factorises M, given by columns, whose largest entries are about 1. Pivots below `least` times the largest entry
    /// are replaced by that. `going` tells whether to go on.
    pub(in super::super) fn new(
        m: Columns<'_>,
        values: &[T],
        (tree, least): (&Arc<Tree>, f64),
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let entries = &Source::new(m, values, tree);
        let largest = values.iter().map(|value| value.abs2().to_f64()).fold(0.0, f64::max).sqrt();
        let pivots = Pivots { preference: PREFERENCE, least: least * largest };
        let mut swaps = vec![0; m.columns];
        let meter = &work::begin(Stage::Factorising, tree.all_entries() as u64, None);
        let levels = pieces(tree, &mut swaps)?;
        let count = levels.iter().map(Vec::len).sum();
        let mut factor = Self {
            tree: tree.clone(),
            at: vec![(0, 0); tree.len()],
            values: vec![Vec::new(); count],
            pieces: vec![Stretch { supernodes: 0..0, is_subtree: false }; count],
            beyond_at: Vec::with_capacity(tree.len() + 1),
            beyond: Vec::new(),
            swaps: vec![],
            made_up: 0,
            finite: true,
        };
        let mut beyond = vec![Beyond::default(); count];
        let mut contributions: Vec<Vec<Contribution<T>>> = Vec::new();
        contributions.resize_with(tree.len(), Vec::new);
        for (level, pieces) in levels.into_iter().enumerate() {
            if level > 0 && !going() {
                return Err(Reason::Stopped);
            }
            let pieces: Vec<_> = pieces
                .into_iter()
                .map(|piece| {
                    let children = std::mem::take(&mut contributions[piece.supernodes.end - 1]);
                    (piece, children)
                })
                .collect();
            let done = pieces
                .into_par_iter()
                .map(|(piece, children)| {
                    let mut worker = Worker::new(tree, entries, pivots, meter);
                    let (number, supernodes) = (piece.number, piece.supernodes.clone());
                    let (values, beyond) = if level == 0 {
                        (worker.subtree(piece), worker.beyond(supernodes.clone()))
                    } else {
                        (worker.alone(piece, children), Beyond { counts: vec![0], rows: Vec::new() })
                    };
                    let stretch = Stretch { supernodes, is_subtree: level == 0 };
                    let found = (worker.made_up, worker.finite);
                    (number, (values, stretch, beyond), worker.stack, found)
                })
                .collect();
            for (number, (values, stretch, behind), contribution, (made_up, finite)) in done {
                let root = stretch.supernodes.end - 1;
                if tree.parents[root] != NONE {
                    let contribution = Contribution { of: root, values: contribution };
                    contributions[tree.parents[root] as usize].push(contribution);
                }
                let mut begin = 0;
                for s in stretch.supernodes.clone() {
                    factor.at[s] = (number as u32, begin);
                    begin += tree.entries(s);
                }
                (factor.values[number], factor.pieces[number], beyond[number]) = (values, stretch, behind);
                factor.made_up += made_up;
                factor.finite &= finite;
            }
        }
        factor.swaps = swaps;
        let mut at = 0;
        factor.beyond_at.push(0);
        for Beyond { counts, rows } in beyond {
            factor.beyond_at.extend(counts.iter().map(|count| {
                at += count;
                at
            }));
            factor.beyond.extend(rows);
        }
        Ok(factor)
    }

    /// Bytes of the factors.
    pub(in super::super) fn bytes(&self) -> u64 {
        (self.tree.all_entries() * size_of::<T>() + self.swaps.len() * 4) as u64
    }

    /// Whether all entries are numbers.
    pub(in super::super) fn is_finite(&self) -> bool {
        self.finite
    }
}

/// Subtrees with at most a part of the work, and the supernodes above them, one by one: what needs no other, what needs
/// those alone, and so on.
fn pieces<'a, T>(tree: &Tree, mut swaps: &'a mut [u32]) -> Result<Vec<Vec<Piece<'a, T>>>, Reason> {
    let most = PART * tree.all_work();
    let small = |s: usize| tree.work[s] <= most;
    let mut levels: Vec<Vec<Piece<'a, T>>> = vec![Vec::new()];
    let mut heights = vec![0; tree.len()];
    let (mut from, mut number) = (0, 0);
    for s in 0..tree.len() {
        let alone = !small(s);
        let ends = small(s) && (tree.parents[s] == NONE || !small(tree.parents[s] as usize));
        if !alone && !ends {
            continue;
        }
        let entries: usize = (from..=s).map(|s| tree.entries(s)).sum();
        let columns = (tree.begin[s + 1] - tree.begin[from]) as usize;
        let (own_swaps, rest_swaps) = swaps.split_at_mut(columns);
        swaps = rest_swaps;
        let mut values = Vec::new();
        let bytes = (entries * size_of::<T>()) as u64;
        values.try_reserve_exact(entries).map_err(|_| Reason::TooLarge { bytes, limit: 0 })?;
        let height = if alone { heights[s].max(1) } else { 0 };
        if tree.parents[s] != NONE {
            let above = &mut heights[tree.parents[s] as usize];
            *above = (height + 1).max(*above);
        }
        if levels.len() <= height {
            levels.resize_with(height + 1, Vec::new);
        }
        levels[height].push(Piece { number, supernodes: from..s + 1, values, swaps: own_swaps });
        (from, number) = (s + 1, number + 1);
    }
    Ok(levels)
}
