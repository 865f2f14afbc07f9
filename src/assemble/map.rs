//! The kept map from triplets to nonzeros.

use crate::backend::{RunSums, StagedRuns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Scalar, Symmetry};

/// Where each triplet's value goes: made once for a pattern, used for every new set of values. A time loop's case.
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
/// sources      1 | 0 2      which triplets make up each nonzero, in order of appearance
/// ```
///
/// The highest bit of a source says that a nonzero starts there, and how many nonzeros start before each tile of
/// [`RUN_TILE`](crate::backend::RUN_TILE) sources is counted. An update moves 4 bytes of `sources` (8 beyond 2^31
/// triplets) and one value a triplet, and one value a nonzero. Where a half is stored, a source is twice the triplet's
/// number, plus one for its mirror image.
///
/// On a device, where every entry is stored and the triplets of neighbouring nonzeros lie in few places, as those of
/// finite elements one after another do, `sources` become codes of a byte and a half ([`StagedRuns`]), and values are
/// fetched by whole lines.
///
/// The sums have the same bits either way.
#[derive(Debug)]
pub struct Assembly<B: RunSums> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) triplets: usize,
    pub(super) symmetry: Symmetry,
    pub(super) nonzeros: usize,
    pub(super) runs: Runs<B>,
}

/// Marked sources, and the nonzeros before each tile of them ([`RunSums::mark_runs`]).
#[derive(Debug)]
pub(super) enum Runs<B: RunSums> {
    Narrow(B::Vec<u32>, B::Vec<u32>),
    Wide(B::Vec<u64>, B::Vec<u64>),
    /// In codes, where a kept map gains by them.
    Staged(StagedRuns<B>),
}

impl<B: super::Assemble> Assembly<B> {
    /// The matrix of triplets where every entry is stored, and its map ([`Assembler::assembly`](super::Assembler)
    /// has options).
    ///
    /// # Errors
    /// Without memory, or when the device fails.
    pub fn new<T: Scalar>(backend: &B, triplets: &super::Triplets<T>) -> Result<(Csr<T, B>, Self)> {
        super::Assembler::default().assembly(backend, triplets)
    }
}

impl<B: RunSums> Assembly<B> {
    /// Number of triplets in the pattern.
    pub fn triplets(&self) -> usize {
        self.triplets
    }

    /// Number of nonzeros that they make.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// Writes the values of `matrix`, which this map was made with (or a clone of its structure), from new values of
    /// the triplets, in the triplets' order: the same bits as assembling anew. Allocates nothing. The
    /// diagonal of a skew-symmetric or hermitian matrix is not checked again.
    ///
    /// # Errors
    /// On a number of values that differs from the pattern's, or a matrix of another shape or number of nonzeros.
    pub fn update<T: Scalar>(&self, backend: &B, values: &B::Slice<T>, matrix: &mut Csr<T, B>) -> Result<()> {
        Error::check_dimension("rows of the assembled matrix", self.rows, matrix.rows())?;
        Error::check_dimension("columns of the assembled matrix", self.columns, matrix.columns())?;
        Error::check_dimension("nonzeros of the assembled matrix", self.nonzeros(), matrix.nonzeros())?;
        Error::check_dimension("number of values", self.triplets, B::len(values))?;
        self.sum(backend, values, matrix.values_mut())
    }

    /// The nonzeros' values.
    pub(super) fn sum<T: Scalar>(
        &self,
        backend: &B,
        values: &B::Slice<T>,
        out: &mut B::Slice<T>,
    ) -> Result<()> {
        match &self.runs {
            Runs::Narrow(sources, before) => backend.gather_sum(self.symmetry, values, sources, before, out),
            Runs::Wide(sources, before) => backend.gather_sum(self.symmetry, values, sources, before, out),
            Runs::Staged(runs) => backend.sum_staged(values, runs, out),
        }
    }
}
