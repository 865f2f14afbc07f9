//! Loops on all threads, by rayon's thread pool.
//!
//! The methods are named as rayon's are, and do the same. What differs is what they cost to compile: rayon builds its
//! whole machinery (splitting, jobs, latches, panics) anew for every loop and type, which was two thirds of this
//! crate's code. Here a loop is cut in halves, and both halves go to one function that is compiled once.
//!
//! What a loop computes never depends on how it is cut: items are independent, and `reduce` is for exact operations.

/// What a loop needs in scope.
pub(crate) mod prelude {
    pub(crate) use super::pieces::Sliced as _;
    pub(crate) use super::{IntoPieces as _, Pieces as _};
}

mod pieces;
pub(crate) mod rows;

use pieces::{AtLeast, IterMut, Numbers, Zip};
use std::sync::atomic::{AtomicBool, Ordering};

/// Pieces of a loop that a thread gets at least, where there are enough: what one thread has left, others take over.
const PIECES_A_THREAD: usize = 16;

/// Runs both, at once where a thread is free.
fn both(first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) {
    rayon::join(first, second);
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
        let grain = grain(&self);
        drive(self, grain, &body);
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

/// Items that one thread takes at once.
fn grain<P: Pieces>(pieces: &P) -> usize {
    let least = pieces.least().max(1);
    if pieces.len() < least.saturating_mul(2) {
        return least;
    }
    least.max(pieces.len() / (PIECES_A_THREAD * rayon::current_num_threads()))
}

/// Whether so many items are work for one thread.
fn is_small(len: usize, grain: usize) -> bool {
    len < grain.saturating_mul(2)
}

fn drive<P: Pieces, F: Fn(P::Item) + Sync>(pieces: P, grain: usize, body: &F) {
    if is_small(pieces.len(), grain) {
        // A plain loop: `for_each` of an iterator is compiled anew, layer by layer, for every body.
        for item in pieces.each() {
            body(item);
        }
        return;
    }
    let middle = pieces.len() / 2;
    let (left, right) = pieces.split_at(middle);
    let (mut left, mut right) = (Some(left), Some(right));
    both(&mut || drive_once(&mut left, grain, body), &mut || drive_once(&mut right, grain, body));
}

fn drive_once<P: Pieces, F: Fn(P::Item) + Sync>(pieces: &mut Option<P>, grain: usize, body: &F) {
    if let Some(pieces) = pieces.take() {
        drive(pieces, grain, body);
    }
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
        if is_small(n, grain(&self.pieces)) {
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
        let grain = grain(&self.pieces);
        reduce(self.pieces, grain, &self.function, &combine).unwrap_or_else(identity)
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

fn reduce<P: Pieces, R: Send>(
    pieces: P,
    grain: usize,
    function: &(impl Fn(P::Item) -> R + Sync),
    combine: &(impl Fn(R, R) -> R + Sync),
) -> Option<R> {
    if is_small(pieces.len(), grain) {
        let mut each = pieces.each();
        let mut all = function(each.next()?);
        for item in each {
            all = combine(all, function(item));
        }
        return Some(all);
    }
    let middle = pieces.len() / 2;
    let (left, right) = pieces.split_at(middle);
    let (mut left, mut right) = (Some(left), Some(right));
    let (mut first, mut second) = (None, None);
    both(&mut || first = left.take().and_then(|left| reduce(left, grain, function, combine)), &mut || {
        second = right.take().and_then(|right| reduce(right, grain, function, combine))
    });
    match (first, second) {
        (Some(first), Some(second)) => Some(combine(first, second)),
        (first, second) => first.or(second),
    }
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
