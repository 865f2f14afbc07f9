//! The items of loops: numbers, slices, chunks, owned items, and pairs of these.

use super::{IntoPieces, Pieces};
use crate::scalar::Offset;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Range;

/// [`Pieces::with_min_len`].
pub(crate) struct AtLeast<P> {
    pub(super) pieces: P,
    pub(super) least: usize,
}

// SAFETY: the items are those of the inner pieces.
unsafe impl<P: Pieces> Pieces for AtLeast<P> {
    type Item = P::Item;

    fn len(&self) -> usize {
        self.pieces.len()
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> P::Item {
        // SAFETY: guaranteed by the caller.
        unsafe { self.pieces.item(number) }
    }

    fn least(&self) -> usize {
        self.least.max(self.pieces.least())
    }
}

/// [`Pieces::zip`]: pairs of items, up to the length of the shorter one.
pub(crate) struct Zip<A, B>(pub(super) A, pub(super) B);

// SAFETY: items with different numbers consist of items with different numbers.
unsafe impl<A: Pieces, B: Pieces> Pieces for Zip<A, B> {
    type Item = (A::Item, B::Item);

    fn len(&self) -> usize {
        self.0.len().min(self.1.len())
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> Self::Item {
        // SAFETY: guaranteed by the caller; each of the two has at least as many items as this.
        unsafe { (self.0.item(number), self.1.item(number)) }
    }

    fn least(&self) -> usize {
        self.0.least().max(self.1.least())
    }
}

/// Consecutive numbers.
pub(crate) struct Numbers(pub(super) Range<usize>);

// SAFETY: a number refers to no memory.
unsafe impl Pieces for Numbers {
    type Item = usize;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> usize {
        self.0.start + number
    }
}

/// Items by value; taking one leaves its place empty.
pub(crate) struct Owned<T>(Vec<UnsafeCell<Option<T>>>);

// SAFETY: elements are accessed through `Pieces::item` alone, each by one thread.
unsafe impl<T: Send> Sync for Owned<T> {}

// SAFETY: each item is moved out of its own element.
unsafe impl<T: Send> Pieces for Owned<T> {
    type Item = T;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> T {
        // SAFETY: the caller guarantees that no other thread requests this item.
        unsafe { (*self.0[number].get()).take() }.expect("each item is taken once")
    }
}

/// The elements of a slice.
pub(crate) struct Iter<'a, T>(&'a [T]);

// SAFETY: the items are shared references.
unsafe impl<'a, T: Sync> Pieces for Iter<'a, T> {
    type Item = &'a T;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> &'a T {
        // SAFETY: the caller guarantees that the element exists.
        unsafe { self.0.get_unchecked(number) }
    }
}

/// A slice that threads write to in different places.
struct Places<'a, T> {
    first: *mut T,
    len: usize,
    lent: PhantomData<&'a mut [T]>,
}

// SAFETY: a shared reference gives access to elements through `Places::part` alone, each by one thread.
unsafe impl<T: Send> Sync for Places<'_, T> {}

impl<'a, T> Places<'a, T> {
    fn new(slice: &'a mut [T]) -> Self {
        Self { first: slice.as_mut_ptr(), len: slice.len(), lent: PhantomData }
    }

    /// `length` elements from `start` on.
    ///
    /// # Safety
    /// The elements exist, and none of them is requested twice.
    #[inline]
    unsafe fn part(&self, start: usize, length: usize) -> &'a mut [T] {
        // SAFETY: guaranteed by the caller; the slice is borrowed for 'a by this value alone.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(start), length) }
    }
}

/// The elements of a slice, mutable.
pub(crate) struct IterMut<'a, T>(Places<'a, T>);

// SAFETY: items with different numbers are different elements.
unsafe impl<'a, T: Send> Pieces for IterMut<'a, T> {
    type Item = &'a mut T;

    fn len(&self) -> usize {
        self.0.len
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> &'a mut T {
        // SAFETY: the caller guarantees that the element exists and is requested once.
        unsafe { &mut *self.0.first.add(number) }
    }
}

/// Chunks of a slice; the last may be shorter.
pub(crate) struct Chunks<'a, T> {
    slice: &'a [T],
    size: usize,
}

// SAFETY: the items are shared references.
unsafe impl<'a, T: Sync> Pieces for Chunks<'a, T> {
    type Item = &'a [T];

    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> &'a [T] {
        let rest = &self.slice[number * self.size..];
        &rest[..self.size.min(rest.len())]
    }
}

/// Chunks of a slice, mutable; the last may be shorter.
pub(crate) struct ChunksMut<'a, T> {
    places: Places<'a, T>,
    size: usize,
}

// SAFETY: chunks with different numbers have no element in common.
unsafe impl<'a, T: Send> Pieces for ChunksMut<'a, T> {
    type Item = &'a mut [T];

    fn len(&self) -> usize {
        self.places.len.div_ceil(self.size)
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> &'a mut [T] {
        let start = number * self.size;
        // SAFETY: the caller guarantees that the chunk starts inside of the slice and is requested once.
        unsafe { self.places.part(start, self.size.min(self.places.len - start)) }
    }
}

/// A slice that is cut at given positions, mutable.
pub(crate) struct Cut<'a, T, S> {
    places: Places<'a, T>,
    starts: &'a [S],
}

impl<'a, T, S: Offset> Cut<'a, T, S> {
    /// Parts that begin at `starts`; each ends where the next one begins, and the last one at the end. None unless the
    /// starts ascend and are within the slice.
    pub(crate) fn new(slice: &'a mut [T], starts: &'a [S]) -> Option<Self> {
        let inside = starts.last().is_none_or(|start| start.to_usize() <= slice.len());
        (inside && starts.is_sorted()).then(|| Self { places: Places::new(slice), starts })
    }
}

// SAFETY: starts ascend, so parts with different numbers have no element in common.
unsafe impl<'a, T: Send, S: Offset> Pieces for Cut<'a, T, S> {
    type Item = &'a mut [T];

    fn len(&self) -> usize {
        self.starts.len()
    }

    #[inline]
    unsafe fn item(&self, number: usize) -> &'a mut [T] {
        let start = self.starts[number].to_usize();
        let end = self.starts.get(number + 1).map_or(self.places.len, |end| end.to_usize());
        // SAFETY: `Cut::new` has checked that the parts are inside of the slice, and the caller guarantees that this
        // one is requested once.
        unsafe { self.places.part(start, end - start) }
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
        let mut items = Vec::with_capacity(self.len());
        for item in self {
            items.push(UnsafeCell::new(Some(item)));
        }
        Owned(items)
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
        IterMut(Places::new(self))
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
    /// Chunks of `size` elements, which must not be zero.
    fn par_chunks<'a>(&'a self, size: usize) -> Chunks<'a, T>
    where
        T: 'a;
    /// Chunks of `size` elements, which must not be zero.
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
        IterMut(Places::new(self))
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
        ChunksMut { places: Places::new(self), size }
    }
}
