//! Loops on all threads, by rayon's thread pool.
//!
//! The methods are named as rayon's are, and do the same. What differs is what they cost to compile: rayon builds its
//! whole machinery (splitting, jobs, latches, panics) anew for every loop and type, which was two thirds of this crate's
//! code. Here a loop is cut in halves, and both halves go to one function that is compiled once.
//!
//! What a loop computes never depends on how it is cut: items are independent, and `reduce` is for exact operations.

/// What a loop needs in scope.
pub(crate) mod prelude {
    pub(crate) use super::{IntoPieces as _, Pieces as _, Sliced as _};
}

use std::iter;
use std::ops::Range;
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
        return pieces.each().for_each(body);
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
        let n = self.pieces.len();
        if is_small(n, grain(&self.pieces)) {
            return self.pieces.each().map(self.function).collect();
        }
        // Plain loops: iterators' adapters would be compiled for every R.
        let mut slots: Vec<Option<R>> = Vec::new();
        slots.resize_with(n, || None);
        let function = self.function;
        self.pieces.zip(IterMut(&mut slots)).for_each(|(item, slot)| *slot = Some(function(item)));
        let mut results = Vec::with_capacity(n);
        for slot in slots {
            results.push(slot.expect("the loop met every item"));
        }
        results
    }

    /// All results in one. `combine` must be exactly associative: where the cuts are depends on the number of threads.
    pub(crate) fn reduce(self, identity: impl Fn() -> R, combine: impl Fn(R, R) -> R + Sync) -> R {
        let grain = grain(&self.pieces);
        reduce(self.pieces, grain, &self.function, &combine).unwrap_or_else(identity)
    }
}

fn reduce<P: Pieces, R: Send>(
    pieces: P,
    grain: usize,
    function: &(impl Fn(P::Item) -> R + Sync),
    combine: &(impl Fn(R, R) -> R + Sync),
) -> Option<R> {
    if is_small(pieces.len(), grain) {
        return pieces.each().map(function).reduce(combine);
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

/// [`Pieces::with_min_len`].
pub(crate) struct AtLeast<P> {
    pieces: P,
    least: usize,
}

impl<P: Pieces> Pieces for AtLeast<P> {
    type Item = P::Item;
    type Each = P::Each;

    fn len(&self) -> usize {
        self.pieces.len()
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let (left, right) = self.pieces.split_at(middle);
        (left.with_min_len(self.least), right.with_min_len(self.least))
    }

    fn each(self) -> Self::Each {
        self.pieces.each()
    }

    fn least(&self) -> usize {
        self.least.max(self.pieces.least())
    }
}

/// [`Pieces::zip`]: both have the same number of items.
pub(crate) struct Zip<A, B>(A, B);

impl<A: Pieces, B: Pieces> Pieces for Zip<A, B> {
    type Item = (A::Item, B::Item);
    type Each = iter::Zip<A::Each, B::Each>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let (a, b) = (self.0.split_at(middle), self.1.split_at(middle));
        (Zip(a.0, b.0), Zip(a.1, b.1))
    }

    fn each(self) -> Self::Each {
        self.0.each().zip(self.1.each())
    }

    fn least(&self) -> usize {
        self.0.least().max(self.1.least())
    }
}

/// Consecutive numbers.
pub(crate) struct Numbers(Range<usize>);

impl Pieces for Numbers {
    type Item = usize;
    type Each = Range<usize>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let middle = self.0.start + middle;
        (Numbers(self.0.start..middle), Numbers(middle..self.0.end))
    }

    fn each(self) -> Range<usize> {
        self.0
    }
}

/// Items by value.
pub(crate) struct Owned<T>(Vec<T>);

impl<T: Send> Pieces for Owned<T> {
    type Item = T;
    type Each = std::vec::IntoIter<T>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn split_at(mut self, middle: usize) -> (Self, Self) {
        let right = self.0.split_off(middle);
        (self, Owned(right))
    }

    fn each(self) -> Self::Each {
        self.0.into_iter()
    }
}

/// Elements of a slice.
pub(crate) struct Iter<'a, T>(&'a [T]);

impl<'a, T: Sync> Pieces for Iter<'a, T> {
    type Item = &'a T;
    type Each = std::slice::Iter<'a, T>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let (left, right) = self.0.split_at(middle);
        (Iter(left), Iter(right))
    }

    fn each(self) -> Self::Each {
        self.0.iter()
    }
}

/// Elements of a slice, to be written.
pub(crate) struct IterMut<'a, T>(&'a mut [T]);

impl<'a, T: Send> Pieces for IterMut<'a, T> {
    type Item = &'a mut T;
    type Each = std::slice::IterMut<'a, T>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let (left, right) = self.0.split_at_mut(middle);
        (IterMut(left), IterMut(right))
    }

    fn each(self) -> Self::Each {
        self.0.iter_mut()
    }
}

/// Chunks of a slice; the last may be shorter.
pub(crate) struct Chunks<'a, T> {
    slice: &'a [T],
    size: usize,
}

impl<'a, T: Sync> Pieces for Chunks<'a, T> {
    type Item = &'a [T];
    type Each = std::slice::Chunks<'a, T>;

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let (left, right) = self.slice.split_at(self.slice.len().min(middle * self.size));
        (left.par_chunks(self.size), right.par_chunks(self.size))
    }

    fn each(self) -> Self::Each {
        self.slice.chunks(self.size)
    }
}

/// Chunks of a slice, to be written; the last may be shorter.
pub(crate) struct ChunksMut<'a, T> {
    slice: &'a mut [T],
    size: usize,
}

impl<'a, T: Send> Pieces for ChunksMut<'a, T> {
    type Item = &'a mut [T];
    type Each = std::slice::ChunksMut<'a, T>;

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let middle = self.slice.len().min(middle * self.size);
        let (left, right) = self.slice.split_at_mut(middle);
        (left.par_chunks_mut(self.size), right.par_chunks_mut(self.size))
    }

    fn each(self) -> Self::Each {
        self.slice.chunks_mut(self.size)
    }
}

/// What becomes [`Pieces`].
pub(crate) trait IntoPieces {
    type Pieces: Pieces;

    fn into_par_iter(self) -> Self::Pieces;
}

impl<P: Pieces> IntoPieces for P {
    type Pieces = P;

    fn into_par_iter(self) -> P {
        self
    }
}

impl IntoPieces for Range<usize> {
    type Pieces = Numbers;

    fn into_par_iter(self) -> Numbers {
        Numbers(self)
    }
}

impl<T: Send> IntoPieces for Vec<T> {
    type Pieces = Owned<T>;

    fn into_par_iter(self) -> Owned<T> {
        Owned(self)
    }
}

impl<'a, T: Sync> IntoPieces for &'a [T] {
    type Pieces = Iter<'a, T>;

    fn into_par_iter(self) -> Iter<'a, T> {
        Iter(self)
    }
}

impl<'a, T: Sync> IntoPieces for &'a Vec<T> {
    type Pieces = Iter<'a, T>;

    fn into_par_iter(self) -> Iter<'a, T> {
        Iter(self)
    }
}

impl<'a, T: Send> IntoPieces for &'a mut [T] {
    type Pieces = IterMut<'a, T>;

    fn into_par_iter(self) -> IterMut<'a, T> {
        IterMut(self)
    }
}

/// Slices as [`Pieces`].
pub(crate) trait Sliced<T> {
    fn par_iter<'a>(&'a self) -> Iter<'a, T>
    where
        T: 'a;
    fn par_iter_mut<'a>(&'a mut self) -> IterMut<'a, T>
    where
        T: 'a;
    /// Chunks of `size` elements, which is not zero.
    fn par_chunks<'a>(&'a self, size: usize) -> Chunks<'a, T>
    where
        T: 'a;
    /// Chunks of `size` elements, which is not zero.
    fn par_chunks_mut<'a>(&'a mut self, size: usize) -> ChunksMut<'a, T>
    where
        T: 'a;
}

impl<T> Sliced<T> for [T] {
    fn par_iter<'a>(&'a self) -> Iter<'a, T>
    where
        T: 'a,
    {
        Iter(self)
    }

    fn par_iter_mut<'a>(&'a mut self) -> IterMut<'a, T>
    where
        T: 'a,
    {
        IterMut(self)
    }

    fn par_chunks<'a>(&'a self, size: usize) -> Chunks<'a, T>
    where
        T: 'a,
    {
        assert!(size > 0, "a chunk has elements");
        Chunks { slice: self, size }
    }

    fn par_chunks_mut<'a>(&'a mut self, size: usize) -> ChunksMut<'a, T>
    where
        T: 'a,
    {
        assert!(size > 0, "a chunk has elements");
        ChunksMut { slice: self, size }
    }
}

#[cfg(test)]
mod tests {
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
