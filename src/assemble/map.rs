//! The map from triplets to nonzeros, for new values.

use crate::backend::{RunSums, StagedRuns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Scalar, Symmetry};

/// The map from the values of triplets to those of the matrix. It is built once for a pattern and used for every new
/// set of values, as in a time loop.
///
/// ```
/// use residua::{Host, Triplets, assemble::Assembly};
/// let t = Triplets::from_parts(2, 2, vec![1, 0, 1], vec![1, 0, 1], vec![2.0, 1.0, 0.5])?;
/// let (mut a, assembly) = Assembly::new(&Host, &t)?;
/// assembly.update(&Host, &[4.0, 3.0, 1.0], &mut a)?;
/// assert_eq!(a.parts().values, [3.0, 5.0]);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// ```text
/// triplets     0: (1, 1)   1: (0, 0)   2: (1, 1)
/// sources      1 | 0 2      the triplets that are summed for each nonzero, in order of appearance
/// ```
///
/// The highest bit of a source marks the first source of a nonzero; a second array counts the nonzeros that start
/// before each tile of [`RUN_TILE`](crate::backend::RUN_TILE) sources. An update moves 4 bytes of `sources` (8 with
/// more than 2^31 triplets) and one value per triplet, and one value per nonzero. If only one triangle is stored, a
/// source is twice the triplet's number, plus one for its mirror image.
///
/// On a device, if every entry is stored and the triplets of neighbouring nonzeros are near each other, as in finite
/// elements that are assembled one after the other, `sources` are compressed to codes of a byte and a half
/// ([`StagedRuns`]), and values are loaded by whole cache lines.
///
/// Both forms give the same bits.
#[derive(Debug)]
pub struct Assembly<B: RunSums> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) triplets: usize,
    pub(super) symmetry: Symmetry,
    pub(super) nonzeros: usize,
    pub(super) runs: Runs<B>,
}

/// The source triplet of each summand, in sorted order, with the highest bit set where a new nonzero begins; and the
/// number of nonzeros that begin before each tile ([`RunSums::mark_runs`]).
#[derive(Debug)]
pub(super) enum Runs<B: RunSums> {
    Lower(B::Vec<u32>, B::Vec<u32>),
    Wide(B::Vec<u64>, B::Vec<u64>),
    /// Compressed to codes, if that makes updates faster.
    Staged(StagedRuns<B>),
}

impl<B: super::Assemble> Assembly<B> {
    /// Builds the matrix and its map from triplets of a matrix stored in full, not as one triangle. For other
    /// symmetries see [`Assembler::assembly`](super::Assembler::assembly).
    ///
    /// # Errors
    /// If memory is insufficient, or the device fails.
    pub fn new<T: Scalar>(backend: &B, triplets: &super::Triplets<T>) -> Result<(Csr<T, B>, Self)> {
        super::Assembler::default().assembly(backend, triplets)
    }
}

impl<B: RunSums> Assembly<B> {
    /// The number of triplets in the pattern.
    pub fn triplets(&self) -> usize {
        self.triplets
    }

    /// The number of nonzeros of the matrix.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// Replaces the values of `matrix` by sums of new triplet values, given in the order of the triplets. `matrix` must
    /// be the one that was built with this map, or have the same pattern. The result has the same bits as a new
    /// assembly. Allocates no memory. The diagonal of a skew-symmetric or Hermitian matrix is not checked again.
    ///
    /// # Errors
    /// If the number of values differs from the number of triplets, or `matrix` has another shape or number of
    /// nonzeros.
    pub fn update<T: Scalar>(&self, backend: &B, values: &B::Slice<T>, matrix: &mut Csr<T, B>) -> Result<()> {
        Error::check_dimension("rows of the assembled matrix", self.rows, matrix.rows())?;
        Error::check_dimension("columns of the assembled matrix", self.columns, matrix.columns())?;
        Error::check_dimension("nonzeros of the assembled matrix", self.nonzeros(), matrix.nonzeros())?;
        Error::check_dimension("number of values", self.triplets, B::len(values))?;
        self.sum(backend, values, matrix.values_mut())
    }

    /// Computes the values of the nonzeros.
    pub(super) fn sum<T: Scalar>(
        &self,
        backend: &B,
        values: &B::Slice<T>,
        out: &mut B::Slice<T>,
    ) -> Result<()> {
        match &self.runs {
            Runs::Lower(sources, before) => backend.gather_sum(self.symmetry, values, sources, before, out),
            Runs::Wide(sources, before) => backend.gather_sum(self.symmetry, values, sources, before, out),
            Runs::Staged(runs) => backend.sum_staged(values, runs, out),
        }
    }
}
