//! Device memory as Rust references.
//!
//! A [`Slice`] is a dynamically sized type whose elements have no size, so a reference to it is a pair (address,
//! length) that refers to no host memory. The address is that of the device, and the length counts elements:
//!
//! ```text
//! &Slice<f64>  =  (0x7f30_0000_1000, 4)        host: 0 bytes there        device: 32 bytes there
//! ```
//!
//! The compiler then protects device memory as it protects host memory (`&mut` excludes `&`, nothing outlives its
//! owner), and parts of a slice are computed by pointer arithmetic.
//!
//! # Safety
//! Rust requires that a reference is not null, aligned, and valid for the bytes of its referent. The referent has
//! alignment one and no bytes, so every nonzero address is valid, whatever is stored there; no host instruction ever
//! dereferences it. Each `SAFETY` below refers to this paragraph. The address of an allocation is at least 256-byte
//! aligned; an empty slice without an allocation has the address [`NOWHERE`].

use super::Cuda;
use super::pool::Allocation;
use crate::scalar::Element;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

/// The address of empty buffers: aligned for every type, and never dereferenced.
pub(super) const NOWHERE: u64 = 256;

/// Elements on the device, always used through a reference; see the module's documentation.
pub struct Slice<T> {
    element: PhantomData<T>,
    length: [()],
}

impl<T> Slice<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.length.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes on the device. The product can't overflow, because it was checked when the memory
    /// was allocated.
    pub fn bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }

    /// Returns the address of the elements on the device, for other kernels. It is not valid on the host.
    pub fn address(&self) -> u64 {
        (&raw const *self).cast::<()>().addr() as u64
    }

    /// Returns the range of addresses.
    pub(super) fn addresses(&self) -> Range<u64> {
        self.address()..self.address() + self.bytes() as u64
    }

    pub(super) fn at<'a>(address: u64, len: usize) -> &'a Slice<T> {
        debug_assert!(address != 0);
        let pointer =
            std::ptr::slice_from_raw_parts(std::ptr::without_provenance::<()>(address as usize), len);
        // SAFETY: the pointer is not null, the alignment is one, and the referent has no bytes (see the module). The
        // cast keeps the length. The caller chooses the lifetime, which is that of the owner of the device memory.
        unsafe { &*(pointer as *const Slice<T>) }
    }

    pub(super) fn at_mut<'a>(address: u64, len: usize) -> &'a mut Slice<T> {
        debug_assert!(address != 0);
        let pointer =
            std::ptr::slice_from_raw_parts_mut(std::ptr::without_provenance_mut::<()>(address as usize), len);
        // SAFETY: as in `at`. A referent without bytes overlaps nothing, so `&mut` is exclusive on the host; on the
        // device, the caller splits disjoint ranges.
        unsafe { &mut *(pointer as *mut Slice<T>) }
    }

    fn checked(&self, range: &Range<usize>) -> u64 {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "range {range:?} of a slice of {} elements",
            self.len()
        );
        self.address() + (range.start * size_of::<T>()) as u64
    }

    pub(super) fn part(&self, range: Range<usize>) -> &Slice<T> {
        Self::at(self.checked(&range), range.len())
    }

    pub(super) fn part_mut(&mut self, range: Range<usize>) -> &mut Slice<T> {
        Self::at_mut(self.checked(&range), range.len())
    }

    pub(super) fn split_mut(&mut self, middle: usize) -> (&mut Slice<T>, &mut Slice<T>) {
        let (start, rest) = (self.checked(&(0..middle)), self.checked(&(middle..self.len())));
        (Self::at_mut(start, middle), Self::at_mut(rest, self.len() - middle))
    }
}

impl<T: Element> fmt::Debug for Slice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}] at {:#x}", T::NAME, self.len(), self.address())
    }
}

/// An allocation on the device. When dropped, it is returned to the device's pool after the work that still uses it.
pub struct Vec<T: Element> {
    allocation: Allocation,
    len: usize,
    owner: Cuda,
    element: PhantomData<T>,
}

impl<T: Element> Vec<T> {
    /// Takes ownership of an allocation of `owner` with space for `len` elements.
    pub(super) fn new(owner: Cuda, allocation: Allocation, len: usize) -> Self {
        Vec { allocation, len, owner, element: PhantomData }
    }
}

impl<T: Element> Drop for Vec<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.owner.release(self.allocation);
        }
    }
}

impl<T: Element> Deref for Vec<T> {
    type Target = Slice<T>;
    fn deref(&self) -> &Slice<T> {
        Slice::at(self.allocation.address, self.len)
    }
}

impl<T: Element> DerefMut for Vec<T> {
    fn deref_mut(&mut self) -> &mut Slice<T> {
        Slice::at_mut(self.allocation.address, self.len)
    }
}

impl<T: Element> fmt::Debug for Vec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_an_address_and_a_length() {
        let slice = Slice::<f64>::at_mut(0x7000, 10);
        assert_eq!((slice.address(), slice.len(), slice.bytes(), size_of_val(slice)), (0x7000, 10, 80, 0));
        assert_eq!(size_of::<&Slice<f64>>(), 16);
        let part = slice.part(3..10);
        assert_eq!((part.address(), part.len()), (0x7018, 7));
        assert!(slice.part(10..10).is_empty());
        let (low, high) = slice.split_mut(4);
        assert_eq!((low.address(), low.len(), high.address(), high.len()), (0x7000, 4, 0x7020, 6));
    }

    #[test]
    #[should_panic(expected = "range 3..11 of a slice of 10 elements")]
    fn parts_stay_inside() {
        let _ = Slice::<u8>::at(NOWHERE, 10).part(3..11);
    }
}
