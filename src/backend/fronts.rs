//! The data for a factorisation in dense fronts: the structure of the fronts, and the place of each entry of A.

use crate::scalar::{Scalar, Symmetry};

/// Marks a front without a parent.
pub const NO_FRONT: u32 = u32::MAX;

/// The structure of the factors of M = P R A C in dense fronts, with rows and columns in the order of elimination.
///
/// ```text
///               own columns   rows below
/// own columns |      D             E     |    D^-1 and V = F D^-1 take the places of D and F in the factors
/// rows below  |      F             C     |    C - V E is what the front contributes to its parent's
/// ```
///
/// The factors of a front are stored as its own columns, each with all rows, followed by E, column by column. Own
/// columns are eliminated in blocks, and pivots are chosen within a block.
#[derive(Debug, Clone)]
pub struct FrontPlan {
    /// The first column of each front, and the number of columns at the end. Children come before their parents.
    pub begin: Vec<u32>,
    /// The parent of each front, to which the contribution is added, or [`NO_FRONT`].
    pub parents: Vec<u32>,
    /// The start of each front's rows below its own in `rows`, and the end.
    pub rows_at: Vec<usize>,
    /// The rows below the own rows of all fronts, ascending in each front.
    pub rows: Vec<u32>,
    /// The position of each of these rows in the parent's front.
    pub places: Vec<u32>,
    /// The start of each front's blocks in `blocks`, and the end.
    pub blocks_at: Vec<usize>,
    /// The first own column of each block; after the last block of a front, the number of its own columns.
    pub blocks: Vec<u32>,
    /// The start of each front's factors, and the number of all their entries at the end.
    pub factors_at: Vec<u64>,
    /// The position in the factors of each entry of A, in the order of A's entries.
    pub targets: Vec<u64>,
    /// The scaling factor of each entry of A; `None` if all are one.
    pub scales: Option<Vec<f64>>,
    /// The row of A for each row of M, in the order of elimination.
    pub from: Vec<u32>,
    /// The column of A for each column of M, in the order of elimination.
    pub to: Vec<u32>,
    /// The diagonals of R and C, by the rows and columns of M; `None` if all entries are one.
    pub scaling: Option<(Vec<f64>, Vec<f64>)>,
    /// A diagonal entry is taken as the pivot if it is at least this fraction of the largest magnitude in its column of
    /// the block.
    pub preference: f64,
    /// A pivot below this fraction of the largest entry of M is replaced by that fraction of it.
    pub least: f64,
    /// The symmetry of M. If it is symmetric or Hermitian, E is the transpose of F or its conjugate, and C has the same
    /// symmetry: half of each front determines the other.
    pub symmetry: Symmetry,
    /// The number of multiplications of the factorisation.
    pub multiplications: f64,
}

impl FrontPlan {
    /// The maximum number of own columns in a block: the inverse of a block must fit the shared memory of a
    /// multiprocessor.
    pub const fn block_of<T: Scalar>() -> u32 {
        if size_of::<T>() > 8 { 32 } else { 64 }
    }

    /// Number of fronts.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns whether there are no fronts.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Returns the number of own columns of a front, and the number of rows below them.
    pub fn shape(&self, front: usize) -> (usize, usize) {
        let width = self.begin[front + 1] - self.begin[front];
        (width as usize, self.rows_at[front + 1] - self.rows_at[front])
    }

    /// Returns the number of entries in the factors.
    pub fn entries(&self) -> u64 {
        self.factors_at[self.len()]
    }
}
