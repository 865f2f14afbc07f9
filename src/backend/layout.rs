//! How each format lies in memory, as borrowed parts. The kernels of every backend read these, and only these.
//!
//! The running example, a 4 x 4 matrix with seven nonzeros:
//!
//! ```text
//!     | 1 . 7 . |
//! A = | . . 8 . |
//!     | . 4 3 . |
//!     | 2 . . 1 |
//! ```
//!
//! All indices count from zero. Column indices have 32 bits, row offsets 32 or 64. Values of type `V` may be narrower
//! than the type in which products are computed. Padding never touches `x`: an infinite or NaN entry of `x` reaches
//! only the rows that refer to it.

use super::Backend;
use crate::scalar::{Element, Offset};

/// Owned row offsets, one more than there are rows, from 0 to the number of nonzeros.
#[derive(Debug)]
pub enum Offsets<B: Backend> {
    /// Fewer than 2^32 nonzeros.
    Narrow(B::Vec<u32>),
    /// Any number.
    Wide(B::Vec<u64>),
}

impl<B: Backend> Offsets<B> {
    /// The same, borrowed.
    pub fn as_ref(&self) -> OffsetsRef<'_, B> {
        match self {
            Offsets::Narrow(v) => OffsetsRef::Narrow(&**v),
            Offsets::Wide(v) => OffsetsRef::Wide(&**v),
        }
    }
}

/// Borrowed [`Offsets`].
#[derive(Debug)]
pub enum OffsetsRef<'a, B: Backend> {
    /// Fewer than 2^32 nonzeros.
    Narrow(&'a B::Slice<u32>),
    /// Any number.
    Wide(&'a B::Slice<u64>),
}

impl<B: Backend> Clone for OffsetsRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for OffsetsRef<'_, B> {}

impl<B: Backend> OffsetsRef<'_, B> {
    /// Number of offsets: rows + 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            OffsetsRef::Narrow(v) => B::len::<u32>(v),
            OffsetsRef::Wide(v) => B::len::<u64>(v),
        }
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        match self {
            OffsetsRef::Narrow(v) => B::len::<u32>(v) * 4,
            OffsetsRef::Wide(v) => B::len::<u64>(v) * 8,
        }
    }
}

/// Runs the same body for either width of offsets: `with_offsets!(parts.offsets, offsets => kernel(offsets, ...))`.
macro_rules! with_offsets {
    ($offsets:expr, $name:ident => $body:expr) => {
        match $offsets {
            $crate::backend::OffsetsRef::Narrow($name) => $body,
            $crate::backend::OffsetsRef::Wide($name) => $body,
        }
    };
}
pub(crate) use with_offsets;

/// Compressed sparse rows: row `i` holds the nonzeros `offsets[i]..offsets[i + 1]`, columns ascending.
///
/// ```text
/// offsets  0   2   3   5   7
/// columns  0 2 | 2 | 1 2 | 0 3
/// values   1 7 | 8 | 4 3 | 2 1
/// ```
#[derive(Debug)]
pub struct CsrParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Where each row starts.
    pub offsets: OffsetsRef<'a, B>,
    /// Column of each nonzero.
    pub indices: &'a B::Slice<u32>,
    /// Value of each nonzero.
    pub values: &'a B::Slice<V>,
}

impl<V: Element, B: Backend> Clone for CsrParts<'_, V, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V: Element, B: Backend> Copy for CsrParts<'_, V, B> {}

/// The largest number of nonzeros that 32-bit offsets can count.
pub const NARROW_LIMIT: usize = <u32 as Offset>::MAX;
