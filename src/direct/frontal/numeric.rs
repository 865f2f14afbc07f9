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

/// Subtrees that are tasks have at most this part of all the work.
const PART: f64 = 1.0 / 16.0;

/// P M Q = L U, or P M P^T = L D L^T, in fronts.
pub(in super::super) struct Frontal<T> {
    pub(super) tree: Arc<Tree>,
    /// Each supernode's part of the factors: in which of `values` it is, and where it begins. Its columns of L and U11
    /// come first, then its rows of U. Of L D L^T its columns of L, with D on the diagonal.
    pub(super) at: Vec<(u32, usize)>,
    pub(super) values: Vec<Vec<T>>,
    /// For each column the row that was swapped with its own, among those of the supernode. Of L D L^T the first of a
    /// pivot of two rows is marked.
    pub(super) swaps: Vec<u32>,
    /// Pivots that were made up.
    pub(in super::super) made_up: usize,
    finite: bool,
}

/// Entries of M by supernodes: those with a row or a column in it that no earlier one has. Of a symmetric M the lower
/// triangle.
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
        let counts = |i: u32, j: u32| i >= j || !tree.symmetric;
        for column in 0..n {
            for &row in &m.indices[rows(column)] {
                let (i, j) = (place[row as usize], place[column]);
                starts[owner(i, j) + 2] += usize::from(counts(i, j));
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
                if !counts(i, j) {
                    continue;
                }
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
    entries: &'a Entries<T>,
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
    fn new(tree: &'a Tree, entries: &'a Entries<T>, pivots: Pivots, meter: &'a Meter) -> Self {
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
        let range = self.entries.starts[s]..self.entries.starts[s + 1];
        for (&(i, j), &value) in both(&self.entries.places[range.clone()], &self.entries.values[range]) {
            let (i, j) = (self.place[i as usize] as usize, self.place[j as usize] as usize);
            if j < w {
                panel[j * m + i] += value;
            } else {
                upper[(j - w) * w + i] += value;
            }
        }
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
        let entries = Entries::new(m, values, tree);
        let largest = values.iter().map(|value| value.abs2().to_f64()).fold(0.0, f64::max).sqrt();
        let pivots = Pivots { preference: PREFERENCE, least: least * largest };
        let mut swaps = vec![0; m.columns];
        let meter = work::begin(Stage::Factorising, tree.all_entries() as u64, None);
        let (tasks, top) = pieces(tree, &mut swaps)?;
        let mut all = vec![Vec::new(); tasks.len() + top.len()];
        let mut at = vec![(0, 0); tree.len()];
        for piece in tasks.iter().chain(&top) {
            let mut begin = 0;
            for s in piece.supernodes.clone() {
                at[s] = (piece.number as u32, begin);
                begin += tree.entries(s);
            }
        }
        let done = tasks
            .into_par_iter()
            .map(|piece| {
                let (number, root) = (piece.number, piece.supernodes.end - 1);
                let mut worker = Worker::new(tree, &entries, pivots, &meter);
                let values = worker.subtree(piece);
                let contribution = Contribution { of: root, values: worker.stack };
                (number, values, contribution, worker.made_up, worker.finite)
            })
            .collect();
        let (mut made_up, mut finite) = (0, true);
        let mut contributions: Vec<Vec<Contribution<T>>> = Vec::new();
        contributions.resize_with(tree.len(), Vec::new);
        let give = |contribution: Contribution<T>, to: &mut Vec<Vec<Contribution<T>>>| {
            if tree.parents[contribution.of] != NONE {
                to[tree.parents[contribution.of] as usize].push(contribution);
            }
        };
        for (number, values, contribution, count, numbers) in done {
            all[number] = values;
            made_up += count;
            finite &= numbers;
            give(contribution, &mut contributions);
        }
        let mut worker = Worker::new(tree, &entries, pivots, &meter);
        for mut piece in top {
            if !going() {
                return Err(Reason::Stopped);
            }
            let s = piece.supernodes.start;
            let mut children = std::mem::take(&mut contributions[s]);
            children.sort_unstable_by_key(|child| child.of);
            let r = tree.shape(s).1;
            let mut contribution = vec![T::default(); r * r];
            let given = children.iter().map(|child| (child.of, &child.values[..]));
            let own = zeros(&mut piece.values, tree.entries(s));
            worker.front(s, (own, &mut contribution, piece.swaps), given);
            all[piece.number] = piece.values;
            give(Contribution { of: s, values: contribution }, &mut contributions);
        }
        made_up += worker.made_up;
        finite &= worker.finite;
        Ok(Self { tree: tree.clone(), at, values: all, swaps, made_up, finite })
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

/// Pieces that are tasks, and those behind them.
type Pieces<'a, T> = (Vec<Piece<'a, T>>, Vec<Piece<'a, T>>);

/// Subtrees with at most a part of the work, and the supernodes above them, one by one, children first.
fn pieces<'a, T>(tree: &Tree, mut swaps: &'a mut [u32]) -> Result<Pieces<'a, T>, Reason> {
    let most = PART * tree.all_work();
    let small = |s: usize| tree.work[s] <= most;
    let (mut tasks, mut top) = (Vec::new(), Vec::new());
    let mut from = 0;
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
        let number = tasks.len() + top.len();
        let piece = Piece { number, supernodes: from..s + 1, values, swaps: own_swaps };
        if alone {
            top.push(piece)
        } else {
            tasks.push(piece)
        }
        from = s + 1;
    }
    Ok((tasks, top))
}
