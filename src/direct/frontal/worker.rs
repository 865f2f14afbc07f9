//! Assembles fronts from entries of the matrix and contributions of children, and eliminates them.

use super::dense::{Front, Pivots};
use super::source::Source;
use super::symmetric::SymmetricFront;
use super::tree::{NONE, Tree};
use crate::direct::Factorable;
use crate::lock::lock;
use crate::parallel::prelude::*;
use crate::parallel::{Cut, both, vectorised};
use crate::work::Meter;
use std::ops::Range;
use std::sync::Mutex;

/// Smaller contributions are allocated separately.
const LARGE: usize = 1 << 12;

/// If a contribution has at least `MANY` columns, threads add this many at a time.
const COLUMNS: usize = 32;
const MANY: usize = 256;

/// Numbers that a thread checks or clears at a time.
const NUMBERS: usize = 1 << 16;

/// Memory that is used again for later supernodes. New pages have to be cleared by the system first; with new ones for
/// each contribution a factorisation of 40^3 points spent a sixth of its time on that.
pub(super) struct Memory<T> {
    spaces: Mutex<Vec<Space<T>>>,
    buffers: Mutex<Vec<Vec<T>>>,
}

/// The memory of one worker.
struct Space<T> {
    /// The place of each row in the current front.
    place: Vec<u32>,
    /// Contributions that wait for their parents; the last one is on top.
    stack: Vec<T>,
    /// Memory for the elimination within a front.
    columns: Vec<T>,
}

impl<T: Factorable> Memory<T> {
    pub(super) fn new() -> Self {
        Self { spaces: Mutex::default(), buffers: Mutex::default() }
    }

    fn space(&self, rows: usize) -> Space<T> {
        let known = lock(&self.spaces).pop();
        known.unwrap_or_else(|| Space { place: vec![0; rows], stack: Vec::new(), columns: Vec::new() })
    }

    /// Takes the smallest free vector of at least this length. If there is none, the largest one is freed to make room
    /// for a new one.
    fn buffer(&self, length: usize) -> Option<Vec<T>> {
        if length < LARGE {
            return None;
        }
        let mut buffers = lock(&self.buffers);
        let fits = (0..buffers.len()).filter(|&k| buffers[k].len() >= length);
        if let Some(k) = fits.min_by_key(|&k| buffers[k].len()) {
            return Some(buffers.swap_remove(k));
        }
        if let Some(k) = (0..buffers.len()).max_by_key(|&k| buffers[k].len()) {
            buffers.swap_remove(k);
        }
        None
    }

    /// A vector of zeros.
    fn zeros(&self, length: usize) -> Vec<T> {
        let Some(mut zeros) = self.buffer(length) else { return vec![T::default(); length] };
        zeros.truncate(length);
        zeros.par_chunks_mut(NUMBERS).for_each(|part| part.fill(T::default()));
        zeros
    }

    fn copy(&self, values: &[T]) -> Vec<T> {
        let Some(mut copy) = self.buffer(values.len()) else { return values.to_vec() };
        copy.truncate(values.len());
        copy.copy_from_slice(values);
        copy
    }

    fn free(&self, buffer: Vec<T>) {
        if buffer.len() >= LARGE {
            lock(&self.buffers).push(buffer);
        }
    }
}

/// Consecutive supernodes that are one task: a whole subtree, or a single supernode near the root.
pub(super) struct Piece<'a, T> {
    pub(super) supernodes: Range<usize>,
    /// Memory for this piece's part of the factors. For a subtree it is reserved but not written, since clearing it
    /// long before its use would move all of it through the caches twice. For a single supernode it is zero; the system
    /// clears its pages when threads first touch them.
    pub(super) values: Vec<T>,
    pub(super) swaps: &'a mut [u32],
}

/// Eliminates fronts one after the other.
pub(super) struct Worker<'a, T> {
    tree: &'a Tree,
    entries: &'a Source<'a, T>,
    pivots: Pivots,
    meter: &'a Meter,
    memory: &'a Memory<T>,
    space: Space<T>,
    pub(super) made_up: usize,
    /// Whether all entries of the factors so far are finite.
    pub(super) finite: bool,
}

/// A contribution, and the supernode that it comes from.
pub(super) struct Contribution<T> {
    pub(super) of: usize,
    values: Vec<T>,
}

/// For each supernode of a piece the number of rows after all columns of the piece, and their places among the rows of
/// its root.
#[derive(Clone, Default)]
pub(super) struct Beyond {
    pub(super) counts: Vec<usize>,
    pub(super) rows: Vec<u32>,
}

impl<'a, T: Factorable> Worker<'a, T> {
    pub(super) fn new(
        tree: &'a Tree,
        entries: &'a Source<'a, T>,
        (pivots, meter): (Pivots, &'a Meter),
        memory: &'a Memory<T>,
    ) -> Self {
        let space = memory.space(tree.order.len());
        Self { tree, entries, pivots, meter, memory, space, made_up: 0, finite: true }
    }

    /// Gives the memory back, for the next worker.
    pub(super) fn end(self) {
        lock(&self.memory.spaces).push(self.space);
    }

    /// Eliminates a subtree, and returns its part of the factors and its contribution.
    pub(super) fn subtree(&mut self, piece: Piece<'_, T>) -> (Vec<T>, Contribution<T>) {
        let (mut values, mut swaps) = (piece.values, piece.swaps);
        let root = piece.supernodes.end - 1;
        let mut stack = std::mem::take(&mut self.space.stack);
        // The supernodes whose contributions are on the stack, and where each begins.
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        for s in piece.supernodes {
            let own = zeros(&mut values, self.tree.entries(s));
            let (own_swaps, rest_swaps) = std::mem::take(&mut swaps).split_at_mut(self.tree.shape(s).0);
            swaps = rest_swaps;
            let r = self.tree.shape(s).1;
            let top = stack.len();
            stack.resize(top + r * r, T::default());
            let (below, contribution) = stack.split_at_mut(top);
            let mut first = top;
            let mut children = Vec::new();
            while let Some(&(child, at)) = waiting.last() {
                if self.tree.parents[child] != s as u32 {
                    break;
                }
                children.push((child, at));
                first = at;
                waiting.pop();
            }
            let given = children.iter().rev().map(|&(child, at)| {
                let r = self.tree.shape(child).1;
                (child, &below[at..at + r * r])
            });
            self.front(s, (own, contribution, own_swaps), given);
            // The contribution replaces those of the children.
            stack.copy_within(top.., first);
            stack.truncate(first + r * r);
            if self.tree.parents[s] != NONE {
                waiting.push((s, first));
            }
        }
        let contribution = self.memory.copy(&stack);
        stack.clear();
        self.space.stack = stack;
        (values, Contribution { of: root, values: contribution })
    }

    /// Eliminates a single supernode, given the contributions of its children; returns the same as `subtree`.
    pub(super) fn alone(
        &mut self,
        piece: Piece<'_, T>,
        mut children: Vec<Contribution<T>>,
    ) -> (Vec<T>, Contribution<T>) {
        let (s, mut values) = (piece.supernodes.start, piece.values);
        children.sort_unstable_by_key(|child| child.of);
        let r = self.tree.shape(s).1;
        let mut contribution = self.memory.zeros(r * r);
        let given = children.iter().map(|child| (child.of, &child.values[..]));
        self.front(s, (&mut values, &mut contribution, piece.swaps), given);
        children.into_iter().for_each(|child| self.memory.free(child.values));
        (values, Contribution { of: s, values: contribution })
    }

    /// Returns the rows beyond a piece whose root is the current front.
    pub(super) fn beyond(&self, supernodes: Range<usize>) -> Beyond {
        let root = supernodes.end - 1;
        let (end, width) = (self.tree.begin[root + 1], self.tree.shape(root).0 as u32);
        let mut beyond = Beyond::default();
        for s in supernodes {
            let rows = self.tree.rows(s);
            let rows = &rows[rows.partition_point(|&row| row < end)..];
            beyond.counts.push(rows.len());
            beyond.rows.extend(rows.iter().map(|&row| self.space.place[row as usize] - width));
        }
        beyond
    }

    /// Assembles a front and eliminates it.
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
            self.space.place[begin as usize + k] = k as u32;
        }
        for (k, &row) in tree.rows(s).iter().enumerate() {
            self.space.place[row as usize] = (w + k) as u32;
        }
        self.entries.each(tree, s, |i, j, value| {
            let (i, j) = (self.space.place[i as usize] as usize, self.space.place[j as usize] as usize);
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
            places.extend(rows.iter().map(|&row| self.space.place[row as usize]));
            add_child((w, r, tree.symmetric), (&mut *panel, &mut *upper, &mut *contribution), &places, given);
        }
        self.made_up += if tree.symmetric {
            let mut front = SymmetricFront { width: w, height: m, panel, contribution, swaps };
            front.eliminate(self.pivots, &mut self.space.columns, self.meter)
        } else {
            let mut front = Front { width: w, height: m, panel, upper, contribution, swaps };
            front.eliminate(self.pivots, &mut self.space.columns, self.meter)
        };
        let are_finite = |part: &[T]| vectorised(|| part.iter().all(|value| value.is_finite()));
        self.finite &= values.par_chunks(NUMBERS).all(are_finite);
        self.meter.advance(tree.entries(s) as u64);
    }
}

/// Appends zeros, and returns them.
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

/// Adds a child's contribution (its lower triangle if the matrix is symmetric) to a front with `w` columns of its own
/// and `r` others: to its panel, its upper rows, and its contribution.
fn add_child<T: Factorable>(
    (w, r, symmetric): (usize, usize, bool),
    (panel, upper, contribution): (&mut [T], &mut [T], &mut [T]),
    places: &[u32],
    given: &[T],
) {
    let (m, count) = (w + r, places.len());
    // Rows ascend, so those of the front's own columns come first.
    let own = places.partition_point(|&place| (place as usize) < w);
    let from = |k: usize| if symmetric { k } else { 0 };
    // The slices begin with column `first` of the front.
    let add_own = |columns: Range<usize>, first: usize, panel: &mut [T]| {
        for k in columns {
            let column = &mut panel[(places[k] as usize - first) * m..][..m];
            add(column, &places[from(k)..], &given[k * count + from(k)..(k + 1) * count]);
        }
    };
    let add_others = |columns: Range<usize>, first: usize, upper: &mut [T], contribution: &mut [T]| {
        for k in columns {
            let (j, given) = (places[k] as usize - first, &given[k * count..(k + 1) * count]);
            if !symmetric {
                add(&mut upper[j * w..(j + 1) * w], &places[..own], &given[..own]);
            }
            let below = &mut contribution[j * r..(j + 1) * r];
            let from = from(k).max(own);
            for (&i, &value) in both(&places[from..], &given[from..]) {
                below[i as usize - w] += value;
            }
        }
    };
    if count < MANY {
        add_own(0..own, 0, panel);
        add_others(own..count, w, upper, contribution);
        return;
    }
    let groups = |columns: Range<usize>| columns.step_by(COLUMNS).collect::<Vec<usize>>();
    let starts = |groups: &[usize], first: usize, stride: usize| {
        groups.iter().map(|&k| ((places[k] as usize - first) * stride) as u64).collect::<Vec<u64>>()
    };
    let cut = "columns ascend";
    let of_own = groups(0..own);
    let at = starts(&of_own, 0, m);
    Cut::new(panel, &at).expect(cut).enumerate().for_each(|(number, panel)| {
        let k = of_own[number];
        add_own(k..own.min(k + COLUMNS), places[k] as usize, panel);
    });
    let of_others = groups(own..count);
    let (upper_at, at) = (starts(&of_others, w, if symmetric { 0 } else { w }), starts(&of_others, w, r));
    let targets = Cut::new(upper, &upper_at).expect(cut).zip(Cut::new(contribution, &at).expect(cut));
    targets.enumerate().for_each(|(number, (upper, contribution))| {
        let k = of_others[number];
        add_others(k..count.min(k + COLUMNS), places[k] as usize, upper, contribution);
    });
}
