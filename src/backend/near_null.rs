//! Steps of multigrid for nodes of several unknowns, and for several near-null vectors.

use super::{CoarseningSteps, Conversions, CsrPattern, OffsetsRef};
use crate::error::Result;
use crate::scalar::Scalar;

/// A vector is dependent if at most this fraction of it is left after orthogonalisation against the others.
pub const DEPENDENT: f64 = 1e-8;

/// A part of a vector is corrected only if at least this fraction of the vector is orthogonal to the vectors before it
/// on its group: dividing by less would enlarge what the correction adds. Iterations were the same with 1e-4 to 0.3.
pub const LEAST_OWN: f64 = 0.05;

/// The steps by which near-null vectors become the columns of a prolongation. `group[i]` is the group of unknown i, or
/// [`NO_GROUP`](super::NO_GROUP). There are `count` vectors; entry j of unknown i is at i * `count` + j. Group g has a
/// basis of `first[g + 1]` - `first[g]` vectors, and a part of `count`^2 numbers in `r`: row j says by how much each
/// near-null vector has the direction of vector j of the basis. Sums are in the order of unknowns, so that every
/// backend gets the same bits.
///
/// Every method fails if the device fails, and none waits for it.
#[allow(clippy::missing_errors_doc)]
pub trait NearNullSteps: CoarseningSteps + Conversions {
    /// Computes an orthonormal basis of the vectors on each group by the modified Gram-Schmidt method, each vector
    /// twice (Golub and Van Loan, 5.2.8). Vectors that depend on those before are left out. Row i of `q` gets the basis
    /// at unknown i, and `ranks[g]` the number of its vectors. Group g has the unknowns `members` from `starts[g]` on.
    #[allow(clippy::too_many_arguments)]
    fn group_bases<T: Scalar>(
        &self,
        count: usize,
        starts: OffsetsRef<'_, Self>,
        members: &Self::Slice<u32>,
        vectors: &Self::Slice<T>,
        q: &mut Self::Slice<T>,
        r: &mut Self::Slice<T>,
        ranks: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[i]` = the number of vectors in the basis of unknown i's group, 0 without a group. `lengths` has one
    /// more element, which is set to 0.
    fn basis_lengths(
        &self,
        group: &Self::Slice<u32>,
        first: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Writes the prolongation of these bases, whose row offsets are known: vector j of group g is column `first[g]` +
    /// j.
    #[allow(clippy::too_many_arguments)]
    fn basis_entries<T: Scalar>(
        &self,
        count: usize,
        group: &Self::Slice<u32>,
        first: &Self::Slice<u32>,
        q: &Self::Slice<T>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Writes the near-null vectors of the next level, and the group of each of its unknowns.
    fn basis_rows<T: Scalar>(
        &self,
        count: usize,
        first: &Self::Slice<u32>,
        r: &Self::Slice<T>,
        rows: &mut Self::Slice<T>,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Adds C to the values of the prolongation, such that C times the vectors of the next level is `scale` times
    /// `missing`, whose rows are as those of the vectors. C has entries in the columns of each unknown's group, and
    /// represents what those can; see [`LEAST_OWN`]. `missing` is overwritten.
    #[allow(clippy::too_many_arguments)]
    fn basis_corrections<T: Scalar>(
        &self,
        count: usize,
        group: &Self::Slice<u32>,
        first: &Self::Slice<u32>,
        r: &Self::Slice<T>,
        scale: &Self::Slice<T>,
        missing: &mut Self::Slice<T>,
        offsets: OffsetsRef<'_, Self>,
        values: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `kept[e]` = 1 if entry e of A is between unknowns of one node or of strongly connected nodes, else 0, and
    /// `lengths[i]` = the number of such entries in row i. `node[i]` is the node of unknown i, ascending. `lengths` has
    /// one more element, which is set to 0.
    fn strong_blocks(
        &self,
        a: CsrPattern<'_, Self>,
        node: &Self::Slice<u32>,
        strong: CsrPattern<'_, Self>,
        kept: &mut Self::Slice<u8>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;
}
