//! Block Jacobi: dense blocks on the diagonal of A.

use super::Preconditioner;
use crate::backend::{BlockParts, DENSE_LIMIT, PreconditionSteps, RowFacts};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Promote, Scalar};

/// M = the diagonal blocks of A, each inverted; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 12.2.
///
/// ```text
///     | 4 1 . |            | 4 1   |
/// A = | 1 5 2 |   M, of    | 1 5   |
///     | . 2 6 |   blocks   |     6 |      blocks of 2 rows, and what is left
/// ```
///
/// Blocks have at most 32 rows. If several unknowns belong to a point (displacements in elasticity), blocks of that
/// size are the natural ones; [`BlockJacobi::natural_blocks`] finds rows that share a pattern.
///
/// An application moves one scalar for each entry of a block, 4 bytes per row, and r and z.
#[derive(Debug)]
pub struct BlockJacobi<T: Scalar, B: PreconditionSteps> {
    starts: B::Vec<u32>,
    block_of: B::Vec<u32>,
    offsets: B::Vec<u64>,
    inverses: B::Vec<T>,
    first_bad: B::Vec<u32>,
}

impl<T: Scalar, B: PreconditionSteps + RowFacts> BlockJacobi<T, B> {
    /// The maximum number of rows of a block.
    pub const LARGEST: usize = DENSE_LIMIT;

    /// Blocks of `size` rows each; the last has the rows that remain.
    ///
    /// # Errors
    /// As [`BlockJacobi::with_blocks`].
    pub fn new<V: Scalar + Promote<T>>(backend: &B, a: &Csr<V, B>, size: usize) -> Result<Self> {
        let size = size.clamp(1, a.rows().max(1));
        let mut sizes = vec![size; a.rows() / size];
        if !a.rows().is_multiple_of(size) {
            sizes.push(a.rows() % size);
        }
        Self::with_blocks(backend, a, &sizes)
    }

    /// Blocks of the given sizes, from the first row on.
    ///
    /// # Errors
    /// [`Error::Block`] with the first row at which a block is not positive definite; then A is not either. Also if A
    /// is not square, if a size is not from 1 to 32 or the sizes do not add up to the number of rows, and if memory
    /// runs out.
    pub fn with_blocks<V: Scalar + Promote<T>>(backend: &B, a: &Csr<V, B>, sizes: &[usize]) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if let Some(&size) = sizes.iter().find(|size| !(1..=DENSE_LIMIT).contains(*size)) {
            return Err(Error::InvalidArgument(format!(
                "a block must have 1 to {DENSE_LIMIT} rows, not {size}"
            )));
        }
        Error::check_dimension("rows of all blocks", a.rows(), sizes.iter().sum())?;
        let (mut starts, mut offsets) =
            (Vec::with_capacity(sizes.len() + 1), Vec::with_capacity(sizes.len() + 1));
        let mut block_of = Vec::with_capacity(a.rows());
        let (mut row, mut values) = (0, 0);
        for (k, &size) in sizes.iter().enumerate() {
            starts.push(row as u32);
            offsets.push(values as u64);
            block_of.extend(std::iter::repeat_n(k as u32, size));
            (row, values) = (row + size, values + size * size);
        }
        starts.push(row as u32);
        offsets.push(values as u64);
        let mut blocks = Self {
            starts: backend.upload(starts)?,
            block_of: backend.upload(block_of)?,
            offsets: backend.upload(offsets)?,
            inverses: backend.zeros(values)?,
            first_bad: backend.zeros(1)?,
        };
        blocks.update(backend, a)?;
        Ok(blocks)
    }

    /// Takes new values from a matrix of the same size; allocates nothing.
    ///
    /// # Errors
    /// As [`BlockJacobi::with_blocks`]. After an error the preconditioner must be updated again before it is used.
    pub fn update<V: Scalar + Promote<T>>(&mut self, backend: &B, a: &Csr<V, B>) -> Result<()> {
        Error::check_dimension("rows of the matrix", B::len(&*self.block_of), a.rows())?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let Self { starts, block_of, offsets, inverses, first_bad } = self;
        // Not `self.parts()`, which borrows all fields, because the inverses are written.
        let blocks = BlockParts { starts: &**starts, block_of: &**block_of, offsets: &**offsets };
        backend.block_inverses::<V, T>(a.parts(), blocks, inverses, first_bad)?;
        check_definite(backend, &self.first_bad)
    }

    /// Sizes of blocks of neighbouring rows that have the same columns, at most `largest` rows each. These are the
    /// unknowns of one point of a mesh, if they are numbered one after another. Copies one byte per row from a device.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn natural_blocks<V: Scalar + Promote<T>>(
        backend: &B,
        a: &Csr<V, B>,
        largest: usize,
    ) -> Result<Vec<usize>> {
        let mut same = backend.buffer(a.rows())?;
        backend.same_columns::<V, T>(a.parts(), &mut same)?;
        let largest = largest.clamp(1, DENSE_LIMIT);
        let mut sizes: Vec<usize> = Vec::new();
        for same in backend.download(&same)? {
            match sizes.last_mut() {
                Some(size) if *size < largest && same == 1 => *size += 1,
                _ => sizes.push(1),
            }
        }
        Ok(sizes)
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        B::len(&*self.starts) - 1
    }

    fn parts(&self) -> BlockParts<'_, B> {
        BlockParts { starts: &*self.starts, block_of: &*self.block_of, offsets: &*self.offsets }
    }
}

/// Returns [`Error::Block`] if one of the dense matrices is not positive definite. `first_bad` has the first row at
/// which this was found, or `u32::MAX`.
pub(super) fn check_definite<B: PreconditionSteps>(backend: &B, first_bad: &B::Slice<u32>) -> Result<()> {
    match backend.value(first_bad)? {
        u32::MAX => Ok(()),
        row => Err(Error::Block { row: row as usize }),
    }
}

impl<T: Scalar, B: PreconditionSteps + RowFacts> Preconditioner<T, B> for BlockJacobi<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(B::len(&*self.block_of))
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        backend.block_multiply(self.parts(), &self.inverses, r, z)
    }

    fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        BlockJacobi::update(self, backend, a)
    }

    fn bytes(&self) -> usize {
        let rows = B::len(&*self.block_of);
        B::len(&*self.inverses) * size_of::<T>() + rows * (4 + 2 * size_of::<T>())
    }
}
