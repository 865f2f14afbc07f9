//! The numerical factorisation: pieces of the tree are eliminated by all threads.

use super::super::faer_wrapper::Columns;
use super::super::report::Reason;
use super::dense::{InOrder, Pivots};
use super::source::Source;
use super::tree::{NONE, Tree};
use super::worker::{Beyond, Contribution, Memory, Piece, Worker};
use crate::backend::{Backend, Host};
use crate::direct::Factorable;
use crate::lock::lock;
use crate::parallel::prelude::*;
use crate::scalar::Real;
use crate::work::{self, Stage};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A diagonal entry is the pivot if it has at least this fraction of the largest magnitude in its column of the block.
pub(super) const PREFERENCE: f64 = 0.1;

/// A subtree that is a task has at most this fraction of the total work. This gives several tasks to each thread of a
/// workstation, so that the last one does not keep the others waiting for long. On one thread all parts from 1/16 to
/// 1/128 take equally long (40^3 points, a mesh of 3 10^5; two cores of an EPYC, 2026-11-28).
const PART: f64 = 1.0 / 64.0;

/// P M Q = L U, or P M P^T = L D L^T, by fronts.
pub(in super::super) struct Frontal<T> {
    pub(super) tree: Arc<Tree>,
    /// The new index of each old one.
    pub(super) place: Vec<u32>,
    /// The part of the factors that belongs to each supernode: its vector in `values`, and where it begins there. The
    /// columns of L and U11 come first, then the rows of U. For L D L^T there are only the columns of L, with D on the
    /// diagonal.
    pub(super) at: Vec<(u32, usize)>,
    pub(super) values: Vec<Vec<T>>,
    /// The pieces of the tree, in the order of their supernodes.
    pub(super) pieces: Vec<Stretch>,
    /// The numbers of pieces without children, then of those whose children are among these, and so on.
    pub(super) levels: Vec<Vec<u32>>,
    /// For each supernode the rows after all columns of its piece, as places among the rows of the piece's root:
    /// `beyond[beyond_at[s]..beyond_at[s + 1]]`.
    pub(super) beyond_at: Vec<usize>,
    pub(super) beyond: Vec<u32>,
    /// The row that was exchanged with each column's row, numbered within the supernode. For L D L^T the first row of a
    /// 2 x 2 pivot is marked.
    pub(super) swaps: Vec<u32>,
    /// The number of perturbed pivots.
    pub(in super::super) made_up: usize,
    finite: bool,
}

/// Consecutive supernodes that are one task: a whole subtree, or a single supernode near the root.
pub(super) struct Stretch {
    pub(super) supernodes: Range<usize>,
    pub(super) is_subtree: bool,
    /// The piece that takes the contribution, and the places of this piece's last rows in that front.
    pub(super) parent: Option<usize>,
    pub(super) place: Vec<u32>,
    pub(super) children: Vec<usize>,
}

/// A piece before its elimination, and the results.
struct Slot<'a, T> {
    piece: Mutex<Option<Piece<'a, T>>>,
    /// The number of children that are not eliminated yet, and the contributions of the others.
    missing: AtomicUsize,
    contributions: Mutex<Vec<Contribution<T>>>,
    done: Mutex<Option<Done<T>>>,
}

struct Done<T> {
    values: Vec<T>,
    beyond: Beyond,
    made_up: usize,
    finite: bool,
}

impl<'a, T> Slot<'a, T> {
    fn new(piece: Piece<'a, T>) -> Self {
        Self {
            piece: Mutex::new(Some(piece)),
            missing: AtomicUsize::new(0),
            contributions: Mutex::default(),
            done: Mutex::default(),
        }
    }
}

impl<T: Factorable> Frontal<T> {
    /// Factorises M, given by columns, whose largest entries are about 1. Pivots below `least` times the largest entry
    /// are replaced by that number. `going` returns whether to go on.
    pub(in super::super) fn new(
        m: Columns<'_>,
        values: &[T],
        (tree, least): (&Arc<Tree>, f64),
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let largest = values.iter().map(|value| value.abs2().to_f64()).fold(0.0, f64::max).sqrt();
        let pivots = Pivots { in_order: None, preference: PREFERENCE, least: least * largest };
        Self::with(pivots, (m, values), tree, going)
    }

    /// Factorises a symmetric M = L D L^T whose pivots are the diagonal entries, in their order.
    pub(in super::super) fn in_order(
        entries: (Columns<'_>, &[T]),
        tree: &Arc<Tree>,
        rule: InOrder,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let pivots = Pivots { in_order: Some(rule), preference: PREFERENCE, least: rule.epsilon };
        Self::with(pivots, entries, tree, going)
    }

    fn with(
        pivots: Pivots,
        (m, values): (Columns<'_>, &[T]),
        tree: &Arc<Tree>,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let entries = &Source::new(m, values, tree);
        let mut swaps = vec![0; m.columns];
        let meter = &work::begin(Stage::Factorising, tree.all_entries() as u64, None);
        let (pieces, stretches) = pieces(tree, &mut swaps)?;
        if !going() {
            return Err(Reason::Stopped);
        }
        let memory = Memory::new();
        let mut slots: Vec<Slot<'_, T>> = pieces.into_iter().map(Slot::new).collect();
        slots.iter_mut().zip(&stretches).for_each(|(slot, s)| *slot.missing.get_mut() = s.children.len());
        let levels = levels(&stretches);
        // The thread that completes the last child goes on with the parent, so no thread waits for another.
        levels.first().map_or(&[][..], Vec::as_slice).par_iter().for_each(|&leaf| {
            let mut next = Some(leaf as usize);
            while let Some(number) = next {
                let slot = &slots[number];
                let piece = lock(&slot.piece).take().expect("each piece is eliminated once");
                let mut worker = Worker::new(tree, entries, (pivots, meter), &memory);
                let (values, contribution) = if stretches[number].is_subtree {
                    worker.subtree(piece)
                } else {
                    let children = std::mem::take(&mut *lock(&slot.contributions));
                    worker.alone(piece, children)
                };
                let beyond = worker.beyond(stretches[number].supernodes.clone());
                let (made_up, finite) = (worker.made_up, worker.finite);
                worker.end();
                *lock(&slot.done) = Some(Done { values, beyond, made_up, finite });
                next = stretches[number].parent.filter(|&parent| {
                    lock(&slots[parent].contributions).push(contribution);
                    slots[parent].missing.fetch_sub(1, Ordering::AcqRel) == 1
                });
            }
        });
        let mut place = vec![0; m.columns];
        tree.order.iter().zip(0..).for_each(|(&old, new)| place[old as usize] = new);
        let mut factor = Self {
            tree: tree.clone(),
            place,
            at: Vec::with_capacity(tree.len()),
            values: Vec::with_capacity(slots.len()),
            pieces: Vec::new(),
            levels,
            beyond_at: vec![0],
            beyond: Vec::new(),
            swaps: Vec::new(),
            made_up: 0,
            finite: true,
        };
        for (number, (slot, stretch)) in slots.into_iter().zip(&stretches).enumerate() {
            let done = lock(&slot.done).take().expect("all pieces are eliminated");
            let mut begin = 0;
            for s in stretch.supernodes.clone() {
                factor.at.push((number as u32, begin));
                begin += tree.entries(s);
            }
            for count in done.beyond.counts {
                factor.beyond_at.push(factor.beyond_at[factor.beyond_at.len() - 1] + count);
            }
            factor.beyond.extend(done.beyond.rows);
            factor.values.push(done.values);
            factor.made_up += done.made_up;
            factor.finite &= done.finite;
        }
        (factor.swaps, factor.pieces) = (swaps, stretches);
        Ok(factor)
    }

    /// The size of the factors in bytes.
    pub(in super::super) fn bytes(&self) -> u64 {
        (self.tree.all_entries() * size_of::<T>() + self.swaps.len() * 4) as u64
    }

    /// Returns whether all entries are finite.
    pub(in super::super) fn is_finite(&self) -> bool {
        self.finite
    }
}

/// Divides the tree into subtrees of limited work, and single supernodes above them; children come before parents.
fn pieces<'a, T: Factorable>(
    tree: &Tree,
    mut swaps: &'a mut [u32],
) -> Result<(Vec<Piece<'a, T>>, Vec<Stretch>), Reason> {
    let most = PART * tree.all_work();
    let small = |s: usize| tree.work[s] <= most;
    let (mut pieces, mut stretches) = (Vec::new(), Vec::new());
    // The piece of each supernode near the root.
    let mut numbers = vec![0; tree.len()];
    let mut from = 0;
    for (s, number) in numbers.iter_mut().enumerate() {
        let alone = !small(s);
        let ends = small(s) && (tree.parents[s] == NONE || !small(tree.parents[s] as usize));
        if !alone && !ends {
            continue;
        }
        let entries: usize = (from..=s).map(|s| tree.entries(s)).sum();
        let columns = (tree.begin[s + 1] - tree.begin[from]) as usize;
        let (own_swaps, rest_swaps) = swaps.split_at_mut(columns);
        swaps = rest_swaps;
        let bytes = (entries * size_of::<T>()) as u64;
        let too_large = || Reason::TooLarge { bytes, limit: 0 };
        let values = if alone {
            Host.zeros(entries).map_err(|_| too_large())?
        } else {
            let mut values = Vec::new();
            values.try_reserve_exact(entries).map_err(|_| too_large())?;
            values
        };
        *number = pieces.len();
        pieces.push(Piece { supernodes: from..s + 1, values, swaps: own_swaps });
        let (parent, place, children) = (None, Vec::new(), Vec::new());
        stretches.push(Stretch { supernodes: from..s + 1, is_subtree: !alone, parent, place, children });
        from = s + 1;
    }
    for number in 0..stretches.len() {
        let root = stretches[number].supernodes.end - 1;
        if tree.parents[root] != NONE {
            let parent = numbers[tree.parents[root] as usize];
            (stretches[number].parent, stretches[number].place) = (Some(parent), in_parent(tree, root));
            stretches[parent].children.push(number);
        }
    }
    Ok((pieces, stretches))
}

/// Returns the pieces without children, then those whose children are among these, and so on.
fn levels(pieces: &[Stretch]) -> Vec<Vec<u32>> {
    let mut heights = vec![0_usize; pieces.len()];
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let height = heights[number];
        if let Some(parent) = piece.parent {
            heights[parent] = heights[parent].max(height + 1);
        }
        if levels.len() <= height {
            levels.resize_with(height + 1, Vec::new);
        }
        levels[height].push(number as u32);
    }
    levels
}

/// The places of a supernode's rows in the front of its parent, whose own columns come first.
pub(super) fn in_parent(tree: &Tree, s: usize) -> Vec<u32> {
    let parent = tree.parents[s] as usize;
    let (begin, end) = (tree.begin[parent], tree.begin[parent + 1]);
    let (mut rows, mut at) = (tree.rows(parent), end - begin);
    let place = |&row: &u32| {
        if row < end {
            return row - begin;
        }
        let before = rows.partition_point(|&other| other < row);
        (rows, at) = (&rows[before..], at + before as u32);
        at
    };
    tree.rows(s).iter().map(place).collect()
}
