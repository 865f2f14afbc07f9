//! Writes to y through a row order from many threads.

use super::prefetch;
use crate::backend::{Host, RowOrderRef};
use std::marker::PhantomData;

/// A vector that many threads write. Each element is written by one thread: the one that processes the position at
/// which the row order has this row.
pub(super) struct SharedRows<'a, T> {
    data: *mut T,
    order: &'a [u32],
    marker: PhantomData<&'a mut [T]>,
}

// SAFETY: threads access elements only through `update`, whose contract keeps them apart.
unsafe impl<T: Send> Sync for SharedRows<'_, T> {}

impl<'a, T: Copy> SharedRows<'a, T> {
    pub(super) fn new(y: &'a mut [T], order: RowOrderRef<'a, Host>) -> Self {
        let order = order.as_slice();
        assert_eq!(y.len(), order.len(), "an order of rows has the length of y");
        Self { data: y.as_mut_ptr(), order, marker: PhantomData }
    }

    /// Prefetches the element of the row at `position`, if there is one.
    #[inline(always)]
    pub(super) fn prefetch(&self, position: usize) {
        if let Some(&row) = self.order.get(position) {
            prefetch::address(self.data.wrapping_add(row as usize));
        }
    }

    /// Replaces the element of the row at `position` by `f(row, element)`.
    ///
    /// # Safety
    /// No two threads may call this with the same position at the same time.
    #[inline(always)]
    pub(super) unsafe fn update(&self, position: usize, f: impl FnOnce(usize, T) -> T) {
        let row = self.order[position] as usize;
        // SAFETY: a `RowOrder` holds each number below its length once. So `row` is inside of y, which has that length,
        // and no other position leads to it; by this function's contract no other thread accesses the element.
        unsafe {
            let element = self.data.add(row);
            *element = f(row, *element);
        }
    }
}
