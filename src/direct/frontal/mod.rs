//! LU, and L D L^T of symmetric matrices, with static pivoting, by dense fronts (multifrontal factorisation).
//!
//! The order of elimination and the pattern of A + A^T determine where L and U have entries before any arithmetic.
//! Columns with the same pattern below the diagonal form a supernode. Its front is a dense matrix of the rows and
//! columns that it changes:
//!
//! ```text
//! | F11  F12 |   F11 = L11 U11, U12 = L11^-1 F12, L21 = F21 U11^-1: stored in the factor
//! | F21   C  |   C - L21 U12: the contribution, which is added to the front of the parent in the elimination tree
//! ```
//!
//! (Duff and Reid, "The multifrontal solution of unsymmetric sets of linear equations", SIAM J. Sci. Stat. Comput. 5,
//! 1984.) All the work is in products of dense blocks. Pivots are chosen within F11 alone, so the structure does not
//! change; a pivot that is too small is replaced by the root of the rounding unit (Li and Demmel, SuperLU_DIST, ACM
//! Trans. Math. Softw. 29, 2003; Schenk and Gaertner, "On fast factorization pivoting methods for sparse symmetric
//! indefinite systems", ETNA 23, 2006). Before that, a matching brings large entries to the diagonal if it is needed,
//! and afterwards refinement corrects x.
//!
//! For a symmetric matrix, real or complex, only the lower triangles of fronts are used, which halves work and memory.
//! Pivots have one row or two; rows that a symmetric matching pairs are eliminated together. Or the pivots are the
//! diagonal entries in their order, without a matching.
//!
//! Independent subtrees are tasks for all threads; near the root all threads work on the rows and columns of one front.
//! Results do not depend on the number of threads.
//!
//! | file | what it holds |
//! |---|---|
//! | `tree` | supernodes, their rows, and the tree: the symbolic factorisation |
//! | `numeric` | all fronts on all threads: the factors |
//! | `worker`, `source` | assembly and elimination of one front after another; the matrix entries for each front |
//! | `dense`, `symmetric`, `in_order`, `wide` | elimination within one front |
//! | `solve` | A^-1 x and A^-T x |
//! | `plan` | the same structure for a backend that has fronts in its own memory |

mod dense;
mod in_order;
mod numeric;
mod plan;
mod solve;
mod source;
mod symmetric;
#[cfg(test)]
mod tests;
mod tree;
mod wide;
mod worker;

pub(super) use dense::InOrder;
pub(super) use numeric::Frontal;
pub(super) use plan::{Preparation, plan};
pub(super) use tree::Tree;
