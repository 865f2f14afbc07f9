//! The order of rows within windows, by length.

use crate::backend::{Backend, Host};
use crate::parallel::prelude::*;

/// The number of rows in a window, within which rows may be sorted by length.
pub(crate) const COMPRESSED_WINDOW: usize = 256;

/// An order of the rows within windows of 256: for each position, the number of a row within its window. Only this
/// crate creates it, and each row of a window occurs once, so kernels may write `y` through it from many threads, and
/// no row is written twice.
#[derive(Debug)]
pub struct WindowOrder<B: Backend>(B::Vec<u8>);

impl<B: Backend> WindowOrder<B> {
    /// Wraps a buffer in which each row of a window occurs once.
    pub(crate) fn new(rows: B::Vec<u8>) -> Self {
        Self(rows)
    }

    /// Borrows it.
    pub fn as_ref(&self) -> WindowOrderRef<'_, B> {
        WindowOrderRef(&*self.0)
    }
}

/// Borrowed [`WindowOrder`].
#[derive(Debug)]
pub struct WindowOrderRef<'a, B: Backend>(&'a B::Slice<u8>);

impl<'a, B: Backend> WindowOrderRef<'a, B> {
    /// For each position, the number of its row within the window.
    pub fn as_slice(&self) -> &'a B::Slice<u8> {
        self.0
    }
}

impl WindowOrderRef<'_, Host> {
    /// Returns the row at a position.
    pub(crate) fn row(&self, position: usize) -> usize {
        // This exchanges the lowest byte of the position. If it is written as the window's start plus that byte, rustc
        // 1.95 at optimisation level 3 miscompiles loops that collect rows: the start is lost in the last few
        // iterations.
        const { assert!(COMPRESSED_WINDOW == 1 << u8::BITS) };
        position ^ usize::from(position as u8 ^ self.0[position])
    }
}

impl<B: Backend> Clone for WindowOrderRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for WindowOrderRef<'_, B> {}

/// Sorts the rows of each window of 256 from longest to shortest; rows of equal length keep their order.
pub(crate) fn ordered_by_length(lengths: &[u32]) -> WindowOrder<Host> {
    let mut order: Vec<u8> = (0..lengths.len()).map(|row| row as u8).collect();
    let sort = |(window, order): (&[u32], &mut [u8])| {
        order.sort_by_key(|&row| std::cmp::Reverse(window[usize::from(row)]));
    };
    let windows = lengths.par_chunks(COMPRESSED_WINDOW).zip(order.par_chunks_mut(COMPRESSED_WINDOW));
    windows.with_min_len(16).for_each(sort);
    WindowOrder::new(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_is_ordered_by_its_own_lengths() {
        let lengths: Vec<u32> = (0..30_000).map(|i| i * 7919 % 23).collect();
        let order = ordered_by_length(&lengths);
        let order = order.as_ref();
        for start in (0..lengths.len()).step_by(COMPRESSED_WINDOW) {
            let end = lengths.len().min(start + COMPRESSED_WINDOW);
            let sorted: Vec<(u32, usize)> =
                (start..end).map(|position| order.row(position)).map(|row| (lengths[row], row)).collect();
            let in_order = |pair: &[(u32, usize)]| {
                pair[0].0 > pair[1].0 || pair[0].0 == pair[1].0 && pair[0].1 < pair[1].1
            };
            assert!(sorted.windows(2).all(in_order), "the window at {start}: {sorted:?}");
        }
    }
}
