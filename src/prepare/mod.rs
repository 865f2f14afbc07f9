//! Preprocessing that makes a matrix easier to factorise: scalings, matchings, fill-reducing orderings, and the block
//! triangular form.
//!
//! An unsymmetric or badly scaled A is replaced by P R A C Q, where R and C are diagonal matrices, and P and Q
//! permutations. The matching brings large entries to the diagonal, the scaling makes entries comparable, and the block
//! triangular form divides the system into parts that can be solved one after another. A x = b becomes (P R A C Q) y =
//! P R b with x = C Q y.
//!
//! ```text
//!     | 0  0  8 |   the entries 8, 2, 5 have the largest product:    | 1  0  0 |     columns 2, 0, 1 in this order,
//! A = | 2  1  0 |   rows 0, 1, 2 are matched with columns 2, 0, 1;   | 0  1  s |     each matched entry of magnitude
//!     | 4  5  0 |   scaled by powers of these                        | 0  t  1 |     1, all others at most 1
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `pattern` | the places of entries, by rows and by columns |
//! | `scaling` | two diagonal matrices, and how they are applied |
//! | `equilibrate` | Ruiz's scaling: rows and columns of largest magnitude about 1 |
//! | `matching` | maximum matching of rows with columns, structural rank |
//! | `peel` | pairs that are forced |
//! | `product`, `assignment` | the matching with the largest product of magnitudes, and its scaling |
//! | `symmetric` | the same for a matrix with a_ij and a_ji of equal magnitude: pairs for pivots of 2 x 2 |
//! | `triangular`, `strong` | Dulmage-Mendelsohn decomposition, strongly connected components |
//! | `permute` | P A Q |
//! | `dissection` | orders of elimination for factors with little fill |
//! | `elimination` | the choice between dissection and other orders |
//! | `nearby` | renumbers a graph so that neighbours are near each other in memory |
//! | `counts` | the elimination tree, and entries of the columns of a factor |
//! | `renumbered` | a graph in an order of elimination |
//! | `order_size` | size and cost of a factor in some order |
//!
//! All of it runs on the host. Only dissection is recursive, and its depth grows with the logarithm of the size, so
//! even a chain of 10^7 rows does not exhaust the stack. Results are deterministic: ties go to the smaller index, and
//! random choices have a fixed seed.

mod assignment;
mod counts;
mod dissection;
mod elimination;
mod equilibrate;
mod matching;
mod nearby;
mod order_size;
mod pattern;
mod peel;
mod permute;
mod product;
mod renumbered;
mod scaling;
mod strong;
mod symmetric;
#[cfg(test)]
mod tests;
mod triangular;

pub(crate) use counts::{elimination_tree, postorder};
pub use dissection::{
    dissection_order, expected_multiplications, minimum_degree, minimum_degree_order, nested_dissection,
};
pub(crate) use elimination::{LIMITED_FROM, Sought, expected_order, limited_minimum_degree, order_of_large};
pub use elimination::{OrderKind, better_dissection};
pub(crate) use equilibrate::equilibrate_hermitian;
pub use equilibrate::{equilibrate, equilibrate_symmetric};
pub use matching::{Matching, UNMATCHED, maximum_matching};
pub(crate) use order_size::Counted;
pub use order_size::{OrderSize, graph_order_size, order_size};
pub use pattern::Pattern;
pub(crate) use peel::triangular_order;
pub use permute::permute;
pub(crate) use product::product_matching_within_reason;
pub use product::{ProductMatching, maximum_product_matching};
pub(crate) use renumbered::Renumbered;
pub use scaling::Scaling;
pub(crate) use strong::strong_components;
pub use symmetric::{SymmetricMatching, symmetric_matching};
pub use triangular::{Block, BlockKind, BlockTriangular, block_triangular};
