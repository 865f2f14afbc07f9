//! An order of rows.

use crate::backend::Backend;

/// An order of rows: each row number once. Only this crate creates it, so kernels may write `y` through it from many
/// threads, and no row is written twice.
#[derive(Debug)]
pub struct RowOrder<B: Backend>(B::Vec<u32>);

impl<B: Backend> RowOrder<B> {
    /// Wraps a buffer that contains each of `0..n` once.
    pub(crate) fn new(rows: B::Vec<u32>) -> Self {
        Self(rows)
    }

    /// The buffer.
    pub(crate) fn into_rows(self) -> B::Vec<u32> {
        self.0
    }

    /// Borrows it.
    pub fn as_ref(&self) -> RowOrderRef<'_, B> {
        RowOrderRef(&*self.0)
    }
}

/// Borrowed [`RowOrder`].
#[derive(Debug)]
pub struct RowOrderRef<'a, B: Backend>(&'a B::Slice<u32>);

impl<'a, B: Backend> RowOrderRef<'a, B> {
    /// The row at each position.
    pub fn as_slice(&self) -> &'a B::Slice<u32> {
        self.0
    }
}

impl<B: Backend> Clone for RowOrderRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for RowOrderRef<'_, B> {}
