//! Blocks of unknowns that need not be consecutive.

use super::{Offsets, OffsetsRef, RowOrder, RowOrderRef};
use crate::backend::{Backend, CsrPattern, Host, MOST_OF_BLOCK};
use crate::error::{Error, Result};

/// Unknowns in disjoint blocks, with the position of a small dense matrix for each block. For block k with s unknowns,
/// entry (i, j), counted within the block, is at `places[k] + j s + i`.
///
/// ```text
///     | 4 . 1 |      starts  0 2 3      members  0 2 | 1
///     | . 2 . |      places  0 4 5
///     | 1 . 5 |      values  4 1 1 5 | 2
/// ```
///
/// No unknown is in two blocks, so kernels may write a vector block by block from many threads.
#[derive(Debug)]
pub struct ScatteredBlocks<B: Backend> {
    starts: Offsets<B>,
    members: RowOrder<B>,
    places: Offsets<B>,
    entries: usize,
}

impl ScatteredBlocks<Host> {
    /// Creates the blocks from the members of each.
    ///
    /// # Errors
    /// If some number below the total is not in exactly one block, if members do not ascend, or if a block has no
    /// member or more than [`MOST_OF_BLOCK`].
    pub fn new(blocks: &[Vec<u32>]) -> Result<Self> {
        let unknowns = blocks.iter().map(Vec::len).sum();
        let mut seen = vec![false; unknowns];
        for (k, block) in blocks.iter().enumerate() {
            let refused = |why: &str| Err(Error::InvalidArgument(format!("block {k} {why}")));
            if block.is_empty() || block.len() > MOST_OF_BLOCK as usize {
                return refused(&format!(
                    "has {} unknowns, but only 1 to {MOST_OF_BLOCK} are possible",
                    block.len()
                ));
            }
            if !block.is_sorted() {
                return refused("has members that do not ascend");
            }
            for &member in block {
                match seen.get_mut(member as usize) {
                    Some(seen) if !*seen => *seen = true,
                    _ => {
                        return refused(&format!(
                            "has unknown {member}, which another block has too or which does not exist"
                        ));
                    }
                }
            }
        }
        let sums = |of: fn(usize) -> usize| {
            let mut sum = 0;
            let behind = blocks.iter().map(|block| {
                sum += of(block.len());
                sum as u64
            });
            [0].into_iter().chain(behind).collect::<Vec<u64>>()
        };
        let (starts, places) = (sums(|size| size), sums(|size| size * size));
        let entries = places[blocks.len()] as usize;
        Ok(Self {
            starts: Offsets::packed(starts),
            members: RowOrder::new(blocks.concat()),
            places: Offsets::packed(places),
            entries,
        })
    }

    /// Moves it to the memory of a backend.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn into_backend<B: Backend>(self, backend: &B) -> Result<ScatteredBlocks<B>> {
        let uploaded = |offsets: Offsets<Host>| -> Result<Offsets<B>> {
            Ok(match offsets {
                Offsets::Lower(offsets) => Offsets::Lower(backend.upload(offsets)?),
                Offsets::Wide(offsets) => Offsets::Wide(backend.upload(offsets)?),
            })
        };
        Ok(ScatteredBlocks {
            starts: uploaded(self.starts)?,
            members: RowOrder::new(backend.upload(self.members.into_rows())?),
            places: uploaded(self.places)?,
            entries: self.entries,
        })
    }
}

impl<B: Backend> ScatteredBlocks<B> {
    /// From arrays in the layout of the type. The caller guarantees that each unknown is in one block.
    pub(crate) fn from_arrays_unchecked(
        starts: Offsets<B>,
        members: B::Vec<u32>,
        places: Offsets<B>,
        entries: usize,
    ) -> Self {
        Self { starts, members: RowOrder::new(members), places, entries }
    }

    /// Number of blocks.
    pub fn count(&self) -> usize {
        self.starts.as_ref().len() - 1
    }

    /// Number of unknowns.
    pub fn unknowns(&self) -> usize {
        B::len(self.order().as_slice())
    }

    /// The number of entries in the small matrices of all blocks.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The members of each block, as the columns of a row.
    pub fn members(&self) -> CsrPattern<'_, B> {
        CsrPattern {
            rows: self.count(),
            columns: self.unknowns(),
            offsets: self.starts.as_ref(),
            indices: self.order().as_slice(),
        }
    }

    /// The members, block by block.
    pub fn order(&self) -> RowOrderRef<'_, B> {
        self.members.as_ref()
    }

    /// The start of each block's small matrix, and the end.
    pub fn places(&self) -> OffsetsRef<'_, B> {
        self.places.as_ref()
    }

    /// The number of bytes in the three arrays.
    pub fn storage_bytes(&self) -> usize {
        self.starts.as_ref().bytes() + self.unknowns() * size_of::<u32>() + self.places.as_ref().bytes()
    }
}
