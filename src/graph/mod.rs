//! The graph of a matrix: breadth-first levels, components, reverse Cuthill-McKee, and the effect of an ordering.
//!
//! Row i is a vertex, and a nonzero a_ij off the diagonal is an edge between i and j. If neighbours have close numbers,
//! the nonzeros are near the diagonal, and the entries of x that a row needs are still in the cache when the next row
//! needs them.
//!
//! ```text
//!     | 1 . . 2 . |                                                        | 4 1 . . . |
//!     | . 3 . . . |   vertex 1 alone, and the path 0 - 3 - 2 - 4:          | 1 5 2 . . |
//! A = | . . 5 2 1 |   Cuthill-McKee 1, 0 3 2 4; reversed, the new order    | . 2 6 2 . | = P A P^T
//!     | 2 . 2 6 . |   has the old rows 4 2 3 0 1                           | . . 2 1 . |
//!     | . . 1 . 4 |                                                        | . . . . 3 |
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `adjacency` | the graph of a matrix: its own pattern if that is symmetric, else that of A + A^T |
//! | `levels` | breadth-first levels and parents, connected components |
//! | `spread` | breadth-first levels of a graph that is distributed over several ranks |
//! | `spread_order` | reverse Cuthill-McKee of a distributed graph |
//! | `peripheral` | pseudo-peripheral vertices |
//! | `width` | the mean width of breadth-first levels, which differs between two and three dimensions |
//! | `cuthill_mckee` | reverse Cuthill-McKee |
//! | `grid_order` | the order in which a graph forms a grid, if there is one |
//! | `benefit` | predicts whether renumbering saves time |
//! | `permutation`, `permute` | checked permutations, of vectors and (P A P^T) of matrices |
//! | `colouring` | greedy colours and maximal independent sets |
//! | `envelope` | bandwidth and profile, also for a permutation that is not applied |
//!
//! Everything works in the memory of any backend: functions whose names end in `_on`, or that take a backend, work
//! there, and the others on the host. The traversals are operations of the backend ([`crate::backend::GraphSteps`]).

mod adjacency;
mod benefit;
mod colouring;
mod cuthill_mckee;
mod envelope;
mod grid_order;
mod levels;
mod peripheral;
mod permutation;
mod permute;
mod spread;
mod spread_order;
mod width;

pub use adjacency::Adjacency;
pub use benefit::{Benefit, predicted_benefit, predicted_benefit_on};
pub use colouring::{Colours, colours, independent_set};
pub use cuthill_mckee::{
    Ordering, cuthill_mckee_order, ordering, ordering_on, reverse_cuthill_mckee, reverse_cuthill_mckee_on,
};
pub(crate) use envelope::band_widths;
pub use envelope::{bandwidth, bandwidth_permuted, profile, profile_permuted};
pub use grid_order::{GridOrder, grid_order, grid_order_on, grid_sizes, has_few_diagonals, may_be_a_grid};
pub use levels::{Components, Levels, bfs, bfs_from, bfs_on, connected_components, connected_components_on};
pub use peripheral::{Criterion, PseudoPeripheral, pseudo_peripheral, pseudo_peripheral_on};
pub use permutation::Permutation;
pub use permute::{permute_symmetric, permute_symmetric_on};
pub use spread::{SpreadGraph, SpreadLevels, vertex_parts};
pub use spread_order::spread_reverse_cuthill_mckee;
pub(crate) use width::HUB;
pub use width::level_width;
