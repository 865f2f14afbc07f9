//! Row offsets of 32 or 64 bits.

use crate::backend::{Backend, Host};
use crate::error::Result;
use crate::scalar::{Element, Offset};
use std::ops::Range;

/// The largest number of nonzeros for 32-bit offsets.
pub const NARROW_LIMIT: usize = <u32 as Offset>::MAX;

/// Owned row offsets: one more than rows, from 0 to the number of nonzeros.
#[derive(Debug)]
pub enum Offsets<B: Backend> {
    /// 32-bit offsets, for fewer than 2^32 nonzeros.
    Lower(B::Vec<u32>),
    /// 64-bit offsets, for any number of nonzeros.
    Wide(B::Vec<u64>),
}

impl Offsets<Host> {
    /// Stores offsets in the width that the last one needs.
    pub(crate) fn packed(offsets: Vec<u64>) -> Self {
        if offsets.last().is_none_or(|&last| last <= NARROW_LIMIT as u64) {
            Offsets::Lower(offsets.into_iter().map(|offset| offset as u32).collect())
        } else {
            Offsets::Wide(offsets)
        }
    }
}

impl<B: Backend> Offsets<B> {
    /// Allocates `len` zeros in the width for offsets up to `total`.
    pub(crate) fn zeros(backend: &B, len: usize, total: usize) -> Result<Self> {
        Ok(if total <= NARROW_LIMIT {
            Offsets::Lower(backend.zeros(len)?)
        } else {
            Offsets::Wide(backend.zeros(len)?)
        })
    }

    /// Borrows them.
    pub fn as_ref(&self) -> OffsetsRef<'_, B> {
        match self {
            Offsets::Lower(v) => OffsetsRef::Lower(&**v),
            Offsets::Wide(v) => OffsetsRef::Wide(&**v),
        }
    }

    /// Copies the offsets to the host.
    ///
    /// # Errors
    /// If the device fails.
    pub fn download(&self, backend: &B) -> Result<Vec<usize>> {
        self.as_ref().download(backend)
    }
}

impl<B: Backend> OffsetsRef<'_, B> {
    /// Copies these ranges of the offsets to the host, one after another.
    pub(crate) fn windows(&self, backend: &B, places: &[Range<usize>]) -> Result<Vec<usize>> {
        crate::backend::with_offsets!(*self, offsets => {
            let mut read = vec![Default::default(); places.iter().map(Range::len).sum()];
            backend.read_parts(offsets, places, &mut read)?;
            Ok(read.into_iter().map(Offset::to_usize).collect())
        })
    }
}

/// Returns a copy of a buffer.
pub(crate) fn copied<T: Element, B: Backend>(backend: &B, from: &B::Slice<T>) -> Result<B::Vec<T>> {
    let mut to = backend.buffer(B::len(from))?;
    backend.copy(from, &mut to)?;
    Ok(to)
}

/// Borrowed [`Offsets`].
#[derive(Debug)]
pub enum OffsetsRef<'a, B: Backend> {
    /// 32-bit offsets, for fewer than 2^32 nonzeros.
    Lower(&'a B::Slice<u32>),
    /// 64-bit offsets, for any number of nonzeros.
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
            OffsetsRef::Lower(v) => B::len::<u32>(v),
            OffsetsRef::Wide(v) => B::len::<u64>(v),
        }
    }

    /// Copies the offsets to the host.
    ///
    /// # Errors
    /// If the device fails.
    pub fn download(&self, backend: &B) -> Result<Vec<usize>> {
        Ok(match self {
            OffsetsRef::Lower(v) => backend.download(v)?.into_iter().map(Offset::to_usize).collect(),
            OffsetsRef::Wide(v) => backend.download(v)?.into_iter().map(Offset::to_usize).collect(),
        })
    }

    /// Returns owned offsets with the same values.
    pub(crate) fn copied(&self, backend: &B) -> Result<Offsets<B>> {
        Ok(match self {
            OffsetsRef::Lower(v) => Offsets::Lower(copied(backend, v)?),
            OffsetsRef::Wide(v) => Offsets::Wide(copied(backend, v)?),
        })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            OffsetsRef::Lower(v) => B::len::<u32>(v) * 4,
            OffsetsRef::Wide(v) => B::len::<u64>(v) * 8,
        }
    }
}

/// Compiles the same body for either width of offsets: `with_offsets!(parts.offsets, offsets => kernel(offsets, ...))`.
macro_rules! with_offsets {
    ($offsets:expr, $name:ident => $body:expr) => {
        match $offsets {
            $crate::backend::OffsetsRef::Lower($name) => $body,
            $crate::backend::OffsetsRef::Wide($name) => $body,
        }
    };
}
pub(crate) use with_offsets;
