//! Setup steps of algebraic multigrid in which each unknown is a node: strong connections, the prolongation, and the
//! inverses of diagonal blocks. The module `grouping` has the steps that group nodes into aggregates.

use super::{CsrParts, CsrPattern, Gemv, GroupingSteps, OffsetsRef, ScatteredBlocks, SparseProducts};
use crate::error::Result;
use crate::scalar::Scalar;

/// Weak entries of a row are not added to its diagonal entry if this would leave less than this fraction of it.
pub const SMALLEST_LUMPED: f64 = 0.3;

/// The number of biased exponents of doubles.
pub const EXPONENTS: usize = 1 << 11;

/// The steps that compute the matrix of the next level. Each is one pass over the rows, and gives the same result on
/// every backend. Arrays have an element for each row unless stated otherwise.
///
/// Every method fails if the device fails, and none waits for it.
#[allow(clippy::missing_errors_doc)]
pub trait CoarseningSteps: SparseProducts + GroupingSteps {
    /// `largest[i]` = the largest |a_ij| with j not i.
    fn largest_couplings<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        largest: &mut Self::Slice<V::Real>,
    ) -> Result<()>;

    /// `exponents[i]` = the biased exponent of `x[i]` as a double: below [`EXPONENTS`], and 0 for zero. No element of x
    /// is negative.
    fn exponents<V: Scalar>(&self, x: &Self::Slice<V::Real>, exponents: &mut Self::Slice<u32>) -> Result<()>;

    /// `flags[i]` = 1 if `x[i]` >= `least`, else 0.
    fn flags_from(&self, x: &Self::Slice<u32>, least: u32, flags: &mut Self::Slice<u8>) -> Result<()>;

    /// `lengths[i]` = the number of strong connections of row i. An entry a_ij off the diagonal is one if it is not
    /// zero and |a_ij| >= `threshold` min(`largest[i]`, `largest[j]`). A row whose `largest[i]` is infinite has none.
    /// `lengths` has one more element, which is set to 0.
    fn strong_lengths<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Self::Slice<V::Real>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Writes the strong connections: the columns, and the magnitudes divided by the largest of their row.
    fn strong_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Self::Slice<V::Real>,
        offsets: OffsetsRef<'_, Self>,
        neighbours: &mut Self::Slice<u32>,
        weights: &mut Self::Slice<f32>,
    ) -> Result<()>;

    /// Writes I - omega D^-1 F. F is A without its weak entries, which are added to the diagonal entry of their row
    /// unless less than [`SMALLEST_LUMPED`] of it would be left. D is diagonal, with the row sums of magnitudes of F.
    /// Row i of the result has the strong neighbours of i and i itself, so it starts at the graph's offset plus i. If i
    /// has no strong neighbours, it is row i of I.
    fn damped_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `lengths[i]` = the number of different groups among node i and its strong neighbours, which is the length of row
    /// i in the result of [`CoarseningSteps::smoothed_entries`]. `lengths` has one more element, which is set to 0.
    fn smoothed_lengths(
        &self,
        strong: CsrPattern<'_, Self>,
        group: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Writes (I - omega D^-1 F) P with the first factor of [`CoarseningSteps::damped_entries`]. Row j of P has one
    /// entry, `vector[j]` / `norms[g]`, in the column of its group g. The result has the same bits as the product of
    /// the two matrices.
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

    /// Writes the matrix P without smoothing: row i has the entry `vector[i]` in the column of its group, and is empty
    /// if node i is in no group. `offsets` are its row offsets.
    fn group_entries<V: Scalar>(
        &self,
        group: &Self::Slice<u32>,
        vector: &Self::Slice<V::Real>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `norms[i]` = the Euclidean norm of row i, with the squares added in the order of its entries.
    fn row_norms<V: Scalar>(&self, a: CsrParts<'_, V, Self>, norms: &mut Self::Slice<V::Real>) -> Result<()>;

    /// `values[e]` = `values[e]` / `norms[indices[e]]`.
    fn divide_by_column<V: Scalar>(
        &self,
        indices: &Self::Slice<u32>,
        norms: &Self::Slice<V::Real>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Replaces x by its complex conjugate.
    fn conjugate<V: Scalar>(&self, x: &mut Self::Slice<V>) -> Result<()>;

    /// `scales[i]` = 1 / sqrt(a_ii), or 0 if a_ii is not positive.
    fn diagonal_scales<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &mut Self::Slice<f64>,
    ) -> Result<()>;

    /// As [`CoarseningSteps::diagonal_scales`], in the type of A's values.
    fn inverse_roots<V: Scalar>(&self, a: CsrParts<'_, V, Self>, roots: &mut Self::Slice<V>) -> Result<()>;

    /// Computes the values of L A R for diagonal matrices L and R: `values[e]` = a_ij (`left[i]` `right[j]`).
    fn scaled_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        left: &Self::Slice<V>,
        right: &Self::Slice<V>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// `sums[i]` = `scales[i]` divided by the sum over j of |a_ij| `scales[j]`, or 0 if that is not finite. `strong[0]`
    /// = the number of rows with an off-diagonal entry for which |a_ij| / sqrt(a_ii a_jj) is above `threshold`.
    fn scaled_sums<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &Self::Slice<f64>,
        threshold: f64,
        sums: &mut Self::Slice<V::Real>,
        strong: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `weights[e]` = |a_ij| / sqrt(a_ii a_jj) for each entry of A.
    fn scaled_magnitudes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &Self::Slice<f64>,
        weights: &mut Self::Slice<f32>,
    ) -> Result<()>;

    /// Inverts A's blocks. Before that, it adds to each diagonal entry the magnitudes of its row's entries outside of
    /// the block (for A scaled to a unit diagonal; nothing if the scales, `added.0`, are zero) and the fraction
    /// `added.1` of the entry itself. The inverses are computed in the precision of A and rounded to half of it. Those
    /// of block k are divided by `units[k]`, a power of two. If A is `hermitian`, the inverses are exactly Hermitian,
    /// because only their lower triangles are used.
    fn group_inverses<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: &ScatteredBlocks<Self>,
        added: (&Self::Slice<f64>, f64),
        hermitian: bool,
        units: &mut Self::Slice<V::Real>,
        values: &mut Self::Slice<V::Lower>,
    ) -> Result<()>;

    /// y = alpha M x + beta y, where M is the block-diagonal matrix of these inverses. [`Gemv::op`] is ignored.
    fn group_product<V: Scalar>(
        &self,
        blocks: &ScatteredBlocks<Self>,
        units: &Self::Slice<V::Real>,
        values: &Self::Slice<V::Lower>,
        gemv: Gemv<'_, V, Self>,
    ) -> Result<()>;
}
