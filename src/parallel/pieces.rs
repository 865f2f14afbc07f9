//! What loops go over: numbers, slices, chunks, owned items, and pairs of these.

use super::{IntoPieces, Pieces};
use std::iter;
use std::ops::Range;

/// [`Pieces::with_min_len`].
pub(crate) struct AtLeast<P> {
    pub(super) pieces: P,
    pub(super) least: usize,
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
pub(crate) struct Zip<A, B>(pub(super) A, pub(super) B);

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
pub(crate) struct Numbers(pub(super) Range<usize>);

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
pub(crate) struct IterMut<'a, T>(pub(super) &'a mut [T]);

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
