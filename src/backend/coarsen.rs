//! Setup steps of algebraic multigrid if each unknown is a node: strong couplings, the prolongation, and inverses of
//! blocks. `grouping` has the grouping of nodes.

use super::{CsrParts, CsrPattern, Gemv, GroupingSteps, OffsetsRef, ScatteredBlocks, SparseProducts};
use crate::error::Result;
use crate::scalar::Scalar;

/// Weak couplings are not added to a diagonal entry if less than this fraction of it would be left.
pub const SMALLEST_LUMPED: f64 = 0.3;

/// The number of biased exponents of doubles.
pub const EXPONENTS: usize = 1 << 11;

/// Steps from a matrix to that of the next level. Each is one pass over rows, with results that do not depend on the
/// backend. Arrays have an element for each row unless stated otherwise.
///
/// Every method fails if the device fails, and does not wait for it.
#[allow(clippy::missing_errors_doc)]
pub trait CoarseningSteps: SparseProducts + GroupingSteps {
    /// `largest[i]` = the largest |a_ij| with j not i.
    fn largest_couplings<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        largest: &mut Self::Slice<V::Real>,
    ) -> Result<()>;

    /// `exponents[i]` = the biased exponent of `x[i]` (not negative) as a double: below [`EXPONENTS`], and 0 for zero.
    fn exponents<V: Scalar>(&self, x: &Self::Slice<V::Real>, exponents: &mut Self::Slice<u32>) -> Result<()>;

    /// `flags[i]` = 1 where `x[i]` >= `least`, else 0.
    fn flags_from(&self, x: &Self::Slice<u32>, least: u32, flags: &mut Self::Slice<u8>) -> Result<()>;

    /// `lengths[i]` = strong couplings of row i: those with |a_ij| >= `threshold` min(largest of i, largest of j), not
    /// zero; none if the largest of i is infinite. `lengths` has one more element, which is set to 0.
    fn strong_lengths<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Self::Slice<V::Real>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The strong couplings, each with its magnitude divided by the largest of its row.
    fn strong_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Self::Slice<V::Real>,
        offsets: OffsetsRef<'_, Self>,
        neighbours: &mut Self::Slice<u32>,
        weights: &mut Self::Slice<f32>,
    ) -> Result<()>;

    /// I - omega D^-1 F, where D has the row sums of magnitudes of F. F is A with weak couplings removed and added to
    /// the diagonal (unless less than [`SMALLEST_LUMPED`] of it would be left). Row i has the strong neighbours of i
    /// and i itself, so it starts at the graph's offset plus i. Without strong neighbours it is a row of I.
    fn damped_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `lengths[i]` = the number of groups of node i and its strong neighbours: the row lengths of the result of
    /// [`CoarseningSteps::smoothed_entries`]. `lengths` has one more element, which is set to 0.
    fn smoothed_lengths(
        &self,
        strong: CsrPattern<'_, Self>,
        group: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The entries of (I - omega D^-1 F) P, where the first factor is that of [`CoarseningSteps::damped_entries`], and
    /// row j of P has `vector[j]` / `norms[g]` in the column of j's group g. The bits are those of the product.
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

    /// The entries of the matrix that multiplies a group's value by `vector` for each of its nodes; `offsets` counts
    /// nodes in groups.
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

    /// `scales[i]` = 1 / sqrt(a_ii), or 0 if a_ii is not positive.
    fn diagonal_scales<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &mut Self::Slice<f64>,
    ) -> Result<()>;

    /// As [`CoarseningSteps::diagonal_scales`], in A's own type.
    fn inverse_roots<V: Scalar>(&self, a: CsrParts<'_, V, Self>, roots: &mut Self::Slice<V>) -> Result<()>;

    /// The values of L A R for diagonal matrices L and R: `values[e]` = a_ij (`left[i]` `right[j]`).
    fn scaled_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        left: &Self::Slice<V>,
        right: &Self::Slice<V>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `sums[i]` = `scales[i]` / sum of |a_ij| `scales[j]`, or 0 if that is not finite; `strong[0]` = the number of
    /// rows with a coupling |a_ij| / sqrt(a_ii a_jj) above `threshold`.
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

    /// The inverses of A's blocks. Before, the row sums of magnitudes outside of each block are added to its diagonal
    /// (with A scaled to a unit diagonal; none if scales are zero), and the fraction `added` of A's diagonal. They are
    /// computed in the precision of A and rounded to half of it; those of block k are divided by `units[k]`, a power of
    /// two. If A is `hermitian`, they are exactly Hermitian: only the lower triangle is used.
    fn group_inverses<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: &ScatteredBlocks<Self>,
        added: (&Self::Slice<f64>, f64),
        hermitian: bool,
        units: &mut Self::Slice<V::Real>,
        values: &mut Self::Slice<V::Narrow>,
    ) -> Result<()>;

    /// y = alpha M x + beta y, where M has these inverses; [`Gemv::op`] is ignored.
    fn group_product<V: Scalar>(
        &self,
        blocks: &ScatteredBlocks<Self>,
        units: &Self::Slice<V::Real>,
        values: &Self::Slice<V::Narrow>,
        gemv: Gemv<'_, V, Self>,
    ) -> Result<()>;
}
