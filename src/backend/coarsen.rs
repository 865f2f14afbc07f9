//! Steps of algebraic multigrid's setup where each unknown is a node: strong couplings, the prolongation, and inverses
//! of blocks. How nodes are grouped is in `grouping`.

use super::{CsrParts, CsrPattern, Gemv, GroupingSteps, OffsetsRef, ScatteredBlocks, SparseProducts};
use crate::error::Result;
use crate::scalar::Scalar;

/// A diagonal entry that lumping would leave smaller than this part of what it was stays as it was.
pub const SMALLEST_LUMPED: f64 = 0.3;

/// Biased exponents of doubles.
pub const EXPONENTS: usize = 1 << 11;

/// Steps between a matrix and the one of the next level. Each is one pass over rows, and results do not depend on the
/// backend. Arrays have an element for each row; where another length is named, it is that.
///
/// Every method fails when the device fails, and waits for nothing.
#[allow(clippy::missing_errors_doc)]
pub trait CoarseningSteps: SparseProducts + GroupingSteps {
    /// `largest[i]` = the largest |a_ij| with j not i.
    fn largest_couplings<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        largest: &mut Self::Slice<V::Real>,
    ) -> Result<()>;

    /// `exponents[i]` = the biased exponent of `x[i]`, not negative, as a double: below [`EXPONENTS`], and 0 for zero.
    fn exponents<V: Scalar>(&self, x: &Self::Slice<V::Real>, exponents: &mut Self::Slice<u32>) -> Result<()>;

    /// `flags[i]` = 1 where `x[i]` >= `least`, else 0.
    fn flags_from(&self, x: &Self::Slice<u32>, least: u32, flags: &mut Self::Slice<u8>) -> Result<()>;

    /// `lengths[i]` = strong couplings of row i: those with |a_ij| >= `threshold` min(largest of i, largest of j), not
    /// zero; none where the largest of i is infinite. `lengths` has one element more, which becomes 0.
    fn strong_lengths<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Self::Slice<V::Real>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The strong couplings, each with its magnitude over the largest of its row.
    fn strong_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Self::Slice<V::Real>,
        offsets: OffsetsRef<'_, Self>,
        neighbours: &mut Self::Slice<u32>,
        weights: &mut Self::Slice<f32>,
    ) -> Result<()>;

    /// I - omega D^-1 F, where F is A without couplings that are not strong, which are added to the diagonal instead
    /// (unless less than [`SMALLEST_LUMPED`] of it would be left), and D the sums of magnitudes of F's rows. Row i has
    /// the strong neighbours of i and i itself, so it starts at the graph's offset plus i. Without strong neighbours it
    /// is a row of I.
    fn damped_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `lengths[i]` = groups among node i and its strong neighbours: the entries of a row of what
    /// [`CoarseningSteps::smoothed_entries`] makes. `lengths` has one element more, which becomes 0.
    fn smoothed_lengths(
        &self,
        strong: CsrPattern<'_, Self>,
        group: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The entries of (I - omega D^-1 F) P, the first factor being that of [`CoarseningSteps::damped_entries`], and P
    /// having in row j a `vector[j]` / `norms[g]` in the column of the group g of j. It has the bits of their product.
    #[allow(clippy::too_many_arguments)]
    fn smoothed_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        group: &Self::Slice<u32>,
        vector: &Self::Slice<V::Real>,
        norms: &Self::Slice<V::Real>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The entries of the matrix that takes a group's value times `vector` to its nodes; `offsets` counts nodes in
    /// groups.
    fn group_entries<V: Scalar>(
        &self,
        group: &Self::Slice<u32>,
        vector: &Self::Slice<V::Real>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `norms[i]` = the Euclidean norm of row i, summed in the order of its entries.
    fn row_norms<V: Scalar>(&self, a: CsrParts<'_, V, Self>, norms: &mut Self::Slice<V::Real>) -> Result<()>;

    /// `values[e]` = `values[e]` / `norms[indices[e]]`.
    fn divide_by_column<V: Scalar>(
        &self,
        indices: &Self::Slice<u32>,
        norms: &Self::Slice<V::Real>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// x becomes its complex conjugate.
    fn conjugate<V: Scalar>(&self, x: &mut Self::Slice<V>) -> Result<()>;

    /// `scales[i]` = 1 / sqrt(a_ii), 0 where that is not positive.
    fn diagonal_scales<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &mut Self::Slice<f64>,
    ) -> Result<()>;

    /// The same in A's own type.
    fn inverse_roots<V: Scalar>(&self, a: CsrParts<'_, V, Self>, roots: &mut Self::Slice<V>) -> Result<()>;

    /// The values of L A R with diagonal matrices: `values[e]` = a_ij (`left[i]` `right[j]`).
    fn scaled_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        left: &Self::Slice<V>,
        right: &Self::Slice<V>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `sums[i]` = `scales[i]` / sum of |a_ij| `scales[j]`, 0 where that is no number; `strong[0]` becomes the number
    /// of rows with a coupling |a_ij| / sqrt(a_ii a_jj) above `threshold`.
    fn scaled_sums<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &Self::Slice<f64>,
        threshold: f64,
        sums: &mut Self::Slice<V::Real>,
        strong: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `weights[e]` = |a_ij| / sqrt(a_ii a_jj) of each entry of A.
    fn scaled_magnitudes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &Self::Slice<f64>,
        weights: &mut Self::Slice<f32>,
    ) -> Result<()>;

    /// The inverses of A's blocks, each with the sums of the magnitudes of what is outside of it added to its diagonal
    /// (in units in which A's diagonal is one; none where scales are zero), and with this part of A's diagonal. They are
    /// computed in the precision of A and rounded to half of it, those of block k in units of `units[k]`, a power of
    /// two. Where A is `hermitian` they are exactly so: the lower triangle decides.
    fn group_inverses<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: &ScatteredBlocks<Self>,
        added: (&Self::Slice<f64>, f64),
        hermitian: bool,
        units: &mut Self::Slice<V::Real>,
        values: &mut Self::Slice<V::Narrow>,
    ) -> Result<()>;

    /// y = alpha M x + beta y with such inverses as M; [`Gemv::op`] is not looked at.
    fn group_product<V: Scalar>(
        &self,
        blocks: &ScatteredBlocks<Self>,
        units: &Self::Slice<V::Real>,
        values: &Self::Slice<V::Narrow>,
        gemv: Gemv<'_, V, Self>,
    ) -> Result<()>;
}
