//! Loops on all threads, by rayon's thread pool.
//!
//! The methods are named as rayon's are, and do the same. What differs is what they cost to compile: rayon builds its
//! whole machinery (splitting, jobs, latches, panics) anew for every loop and type, which was two thirds of this
//! crate's code. Here a loop is cut into parts, which one function that is compiled once shares among threads: with the
//! `team` that the caller has gathered, else through rayon with whoever is free.
//!
//! Work that divides itself in two goes through `join`, which is rayon's.
//!
//! What a loop computes never depends on how it is cut: items are independent, and `reduce` is for exact operations.

/// What a loop needs in scope.
pub(crate) mod prelude {
    pub(crate) use super::pieces::Sliced as _;
    pub(crate) use super::{IntoPieces as _, Pieces as _};
}

mod pieces;
pub(crate) mod rows;
mod team;
mod vectors;

use crate::lock::lock;
pub(crate) use pieces::AtLeast;
use pieces::{IterMut, Numbers, Zip};
pub(crate) use rayon::join;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use team::gather;
pub(crate) use vectors::vectorised;

/// Parts of a loop for each thread, where there are items enough: what one thread has left, others take over.
const PARTS_A_THREAD: usize = 16;

/// Tasks of a matrix that is not small, at least.
const TASKS: usize = 32;

/// Whether the caller has a team: then loops of a few microseconds are worth sharing.
pub(crate) fn in_team() -> bool {
    team::threads() > 1
}

/// So much work that a task should take of `all`, from the `least` that a team takes at once to the `most` that suits
/// large matrices: enough tasks to share small ones evenly. A function of the matrix alone.
pub(crate) fn task_of(all: usize, least: usize, most: usize) -> usize {
    (all / TASKS).clamp(least, most)
}

/// Tasks of a few microseconds: one by one in a team, else at least so many for a thread.
pub(crate) fn worth_a_thread<P: Pieces>(tasks: P, at_once: usize) -> AtLeast<P> {
    tasks.with_min_len(if in_team() { 1 } else { at_once })
}

/// What `f` makes of `length` numbers of a range at a time, in their order.
pub(crate) fn of_stretches<R: Send>(
    range: &Range<usize>,
    length: usize,
    f: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let stretch = |k: usize| f(range.start + k * length..(range.start + (k + 1) * length).min(range.end));
    (0..range.len().div_ceil(length)).into_par_iter().map(stretch).collect()
}

/// Runs `body` on the numbers below `parts`, shared among threads.
fn shared(parts: usize, body: &(dyn Fn(usize) + Sync)) {
    crate::work::look();
    if !team::run(parts, body) {
        halves(0..parts, body);
    }
}

/// As [`shared`], through rayon.
fn halves(parts: Range<usize>, body: &(dyn Fn(usize) + Sync)) {
    if parts.len() <= 1 {
        parts.for_each(body);
        return;
    }
    let middle = parts.start + parts.len() / 2;
    rayon::join(|| halves(parts.start..middle, body), || halves(middle..parts.end, body));
}

/// Items that can be cut in two.
pub(crate) trait Pieces: Sized + Send {
    /// What the body of a loop gets.
    type Item;
    /// The items one after the other.
    type Each: Iterator<Item = Self::Item>;

    fn len(&self) -> usize;

    /// The first `middle` items, and the others.
    fn split_at(self, middle: usize) -> (Self, Self);

    fn each(self) -> Self::Each;

    /// Items that are not worth another thread.
    fn least(&self) -> usize {
        1
    }

    /// Whether the calling thread would take all items itself.
    fn is_for_one(&self) -> bool {
        parts(self) == 1
    }

    /// Pairs of items, as many as both have.
    fn zip<P: IntoPieces>(self, other: P) -> Zip<Self, P::Pieces> {
        let other = other.into_par_iter();
        let len = self.len().min(other.len());
        Zip(self.split_at(len).0, other.split_at(len).0)
    }

    /// The items with their numbers.
    fn enumerate(self) -> Zip<Numbers, Self> {
        Zip(Numbers(0..self.len()), self)
    }

    /// No thread gets fewer than `least` items, unless there are no more.
    fn with_min_len(self, least: usize) -> AtLeast<Self> {
        AtLeast { pieces: self, least }
    }

    fn map<R, F: Fn(Self::Item) -> R + Sync>(self, function: F) -> Mapped<Self, F> {
        Mapped { pieces: self, function }
    }

    fn for_each(self, body: impl Fn(Self::Item) + Sync) {
        let one_by_one = |part: Self| {
            // A plain loop: `for_each` of an iterator is compiled anew, layer by layer, for every body.
            for item in part.each() {
                body(item);
            }
        };
        match parts(&self) {
            1 => one_by_one(self),
            parts => share(self, parts, &one_by_one),
        }
    }

    /// Whether `good` holds for all items; stops early where it does not.
    fn all(self, good: impl Fn(Self::Item) -> bool + Sync) -> bool {
        let all = AtomicBool::new(true);
        self.for_each(|item| {
            if all.load(Ordering::Relaxed) && !good(item) {
                all.store(false, Ordering::Relaxed);
            }
        });
        all.into_inner()
    }
}

/// What becomes [`Pieces`].
pub(crate) trait IntoPieces {
    type Pieces: Pieces;

    fn into_par_iter(self) -> Self::Pieces;
}

/// How many parts to share; one where that is not worth it.
fn parts<P: Pieces>(pieces: &P) -> usize {
    let least = pieces.least().max(1);
    if pieces.len() / 2 < least {
        return 1;
    }
    let parts = pieces.len() / least;
    match (team::threads(), rayon::current_num_threads()) {
        (1, 1) => 1,
        (1, threads) => parts.min(PARTS_A_THREAD * threads),
        // As many for each: who takes which is settled.
        (threads, _) if parts > threads => (parts / threads).min(PARTS_A_THREAD) * threads,
        _ => parts,
    }
}

/// What `keep` makes of so many parts of about the same number of items, the last one first.
fn cut<P: Pieces, K>(mut pieces: P, parts: usize, keep: impl Fn(P) -> K) -> Vec<K> {
    let len = pieces.len();
    let mut cut = Vec::with_capacity(parts);
    for part in (1..parts).rev() {
        let (before, last) = pieces.split_at(part * len / parts);
        cut.push(keep(last));
        pieces = before;
    }
    cut.push(keep(pieces));
    cut
}

/// Runs `body` on so many parts.
fn share<P: Pieces>(pieces: P, parts: usize, body: &(dyn Fn(P) + Sync)) {
    let parts = cut(pieces, parts, |part| Mutex::new(Some(part)));
    shared(parts.len(), &|number| {
        let part = lock(&parts[parts.len() - 1 - number]).take();
        if let Some(part) = part {
            body(part);
        }
    });
}

/// What a function makes of items.
pub(crate) struct Mapped<P, F> {
    pieces: P,
    function: F,
}

impl<P: Pieces, R: Send, F: Fn(P::Item) -> R + Sync> Mapped<P, F> {
    /// All results, in order: of tasks, not of so many items that memory matters (those are written in place).
    pub(crate) fn collect(self) -> Vec<R> {
        let (n, function) = (self.pieces.len(), self.function);
        if self.pieces.is_for_one() {
            // One allocation, of what is returned: the loops of a solver's iteration come here.
            let mut results = Vec::with_capacity(n);
            for item in self.pieces.each() {
                results.push(function(item));
            }
            return results;
        }
        let mut slots = empty(n);
        self.pieces.zip(IterMut(&mut slots)).for_each(|(item, slot)| *slot = Some(function(item)));
        taken(slots)
    }

    /// All results in one. `combine` must be exactly associative: where the cuts are depends on the number of threads.
    pub(crate) fn reduce(self, identity: impl Fn() -> R, combine: impl Fn(R, R) -> R + Sync) -> R {
        let function = self.function;
        let fold = |part: P| {
            let mut each = part.each();
            let mut all = function(each.next()?);
            for item in each {
                all = combine(all, function(item));
            }
            Some(all)
        };
        let all = match parts(&self.pieces) {
            1 => fold(self.pieces),
            parts => {
                // The last part comes first.
                let folded = cut(self.pieces, parts, |part| part).into_par_iter().map(fold).collect();
                folded.into_iter().flatten().reduce(|all, before| combine(before, all))
            }
        };
        all.unwrap_or_else(identity)
    }
}

/// Places for results. Apart from the loop that fills them, so that it is compiled once for each type of results.
fn empty<R>(n: usize) -> Vec<Option<R>> {
    let mut slots = Vec::new();
    slots.resize_with(n, || None);
    slots
}

/// The results in their places.
fn taken<R>(slots: Vec<Option<R>>) -> Vec<R> {
    let mut results = Vec::with_capacity(slots.len());
    for slot in slots {
        results.push(slot.expect("the loop met every item"));
    }
    results
}

#[cfg(test)]
mod tests {
    use super::pieces::Sliced;
    use super::*;

    const SIZES: [usize; 9] = [0, 1, 2, 3, 31, 64, 65, 1000, 4099];

    #[test]
    fn every_item_is_met_once() {
        for n in SIZES {
            for (chunk, least) in [(1, 1), (7, 1), (3, 100), (5000, 1), (2, usize::MAX)] {
                let mut out = vec![0; n];
                let x: Vec<usize> = (10..10 + n).collect();
                let pieces = out.par_chunks_mut(chunk).zip(x.par_chunks(chunk)).enumerate();
                pieces.with_min_len(least).for_each(|(k, (out, x))| {
                    out.iter_mut().zip(x).for_each(|(out, x)| *out += x * 10 + k % 10);
                });
                assert!(
                    out.iter().enumerate().all(|(i, &v)| v == (10 + i) * 10 + i / chunk % 10),
                    "{n} {chunk}"
                );
            }
        }
    }

    #[test]
    fn results_keep_their_order() {
        for n in SIZES {
            let expected: Vec<usize> = (0..n).map(|i| i * i).collect();
            assert_eq!((0..n).into_par_iter().map(|i| i * i).collect(), expected);
            let items: Vec<usize> = (0..n).collect();
            assert_eq!(items.into_par_iter().map(|i| i * i).collect(), expected);
            let text = |i: usize| vec![i];
            let all = (0..n).into_par_iter().map(text).reduce(Vec::new, |a, b| [a, b].concat());
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_bad_item_is_found() {
        for n in SIZES {
            assert!((0..n).into_par_iter().all(|i| i < n));
            for bad in [0, n / 2, n.saturating_sub(1)] {
                assert_eq!((0..n).into_par_iter().all(|i| i != bad), n == 0);
            }
        }
    }

    #[test]
    fn the_shorter_of_two_decides() {
        let (long, short) = (vec![1; 100], vec![2; 7]);
        assert_eq!(long.par_iter().zip(&short).map(|(a, b)| a + b).collect(), [3; 7]);
        assert_eq!(short.into_par_iter().zip(long).map(|(a, b)| a + b).collect(), [3; 7]);
    }
}
