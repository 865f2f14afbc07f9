//! What a backend needs to factorise in dense fronts: their structure, and the place of each entry of A.

use crate::scalar::Scalar;

/// No parent.
pub const NO_FRONT: u32 = u32::MAX;

/// The structure of the factors of M = P R A C in an order of elimination, in dense fronts.
///
/// ```text
///               own columns   rows below
/// own columns |      D             E     |    D^-1 and V = F D^-1 take the places of D and F in the factors
/// rows below  |      F             C     |    C - V E is what the front contributes to its parent's
/// ```
///
/// A front's part of the factors is its own columns, each with all rows, and behind them E, column after column. Own
/// columns are eliminated in blocks, within which pivots are chosen.
#[derive(Debug, Clone)]
pub struct FrontPlan {
    /// The first column of each front, and the number of columns; children come before their parents.
    pub begin: Vec<u32>,
    /// The front that takes the contribution, or [`NO_FRONT`].
    pub parents: Vec<u32>,
    /// Where each front's rows below its own begin.
    pub rows_at: Vec<usize>,
    /// These rows, ascending.
    pub rows: Vec<u32>,
    /// Where each of them stands in the front of the parent.
    pub places: Vec<u32>,
    /// Where each front's blocks begin in `blocks`.
    pub blocks_at: Vec<usize>,
    /// The first own column of each block, and behind the last one the number of own columns.
    pub blocks: Vec<u32>,
    /// Where each front's part of the factors begins, and the number of their entries.
    pub factors_at: Vec<u64>,
    /// The place in the factors of each entry of A, in the order of its rows.
    pub targets: Vec<u64>,
    /// The factor of each entry of A; none if all are one.
    pub scales: Option<Vec<f64>>,
    /// For each row of M, in the order of elimination, that of A.
    pub from: Vec<u32>,
    /// For each column of M, in the order of elimination, that of A.
    pub to: Vec<u32>,
    /// R by rows and C by columns of M, in the order of elimination; none if all are one.
    pub scaling: Option<(Vec<f64>, Vec<f64>)>,
    /// A diagonal entry is a pivot if it has this part of the largest magnitude in its column of the block.
    pub preference: f64,
    /// Pivots below this part of the largest entry of M are replaced by it.
    pub least: f64,
    /// Multiplications.
    pub multiplications: f64,
}

impl FrontPlan {
    /// Own columns that are eliminated together at most: what an inverse takes of the memory of a multiprocessor.
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

    /// Own columns of a front, and rows below them.
    pub fn shape(&self, front: usize) -> (usize, usize) {
        let width = self.begin[front + 1] - self.begin[front];
        (width as usize, self.rows_at[front + 1] - self.rows_at[front])
    }

    /// Entries of the factors.
    pub fn entries(&self) -> u64 {
        self.factors_at[self.len()]
    }
}
