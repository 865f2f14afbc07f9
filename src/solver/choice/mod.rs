//! The choice: which methods are tried for a system, in which order, and how far each of them goes.
//!
//! [`Facts`] are what is known of a system before anything is tried. From them alone [`candidates`] lists what may
//! solve it, the likeliest to be first at its end in front; it is a pure function of numbers, so that its tests need no
//! matrix. A [`Candidate`] has a budget: iterations, or the multiplications of a factorisation. Budgets come from
//! [`crate::prices`], what steps cost on a CPU and on a GPU, so that what is tried in vain takes a part of what comes next.
//!
//! [`table`] has the candidates of one machine, [`distributed`] those of several ranks, and [`wanted`] those that a
//! caller has listed. [`course`] tells which of them is next, from what came before. While a candidate iterates, [`pace`]
//! tells whether it goes on: [`race`] compares it with the factorisation behind it by the slope of the residual, and
//! [`trial`] tells whether multigrid and incomplete factors keep their promise. All of it is counted in iterations,
//! bytes and multiplications, and nothing is read from a clock: the same input takes the same way.

mod candidate;
mod course;
mod distributed;
mod facts;
mod pace;
mod race;
#[cfg(test)]
mod replay;
mod table;
#[cfg(test)]
mod tests;
mod trial;
mod wanted;

pub(super) use candidate::{Candidate, Source, When};
pub(super) use course::{Course, Turn};
pub use facts::SystemFacts;
pub(super) use facts::{Facts, Hierarchy};
pub(super) use pace::{Costs, Pace};
pub(super) use race::is_left_out;
pub(super) use table::{AS_ASKED, CLASSICAL, GRIDS, MESH, SYMMETRIZED, candidates, in_half};
