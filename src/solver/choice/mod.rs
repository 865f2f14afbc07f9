//! The choice: which methods are tried for a system, in which order, and how far each of them goes.
//!
//! [`Facts`] are what is known about a system before anything is tried. From them alone [`candidates`] makes the list
//! of methods that may solve it, the one that is likely to be fastest first. It is a pure function of numbers, so its
//! tests need no matrix. A [`Candidate`] has a budget: iterations, or the multiplications of a factorisation. Budgets
//! come from [`crate::prices`], which has the costs of steps on a CPU and on a GPU: a trial that fails costs a fraction
//! of the next candidate.
//!
//! [`table`] has the candidates of one machine, [`distributed`] those of several ranks, and [`wanted`] those that a
//! caller has listed. [`course`] decides which of them is next. While a candidate iterates, [`pace`] decides whether it
//! goes on: [`race`] compares it with the factorisation that follows, by the slope of the residual, and [`trial`]
//! judges multigrid and incomplete factors. Costs are counted in iterations, bytes and multiplications, and no clock is
//! read, so the same input is always solved in the same way.

mod candidate;
mod course;
mod distributed;
mod facts;
mod listed;
mod pace;
mod race;
#[cfg(test)]
mod replay;
mod table;
#[cfg(test)]
mod tests;
mod trial;
mod unseen;
mod wanted;

pub(super) use candidate::{Candidate, Source, When};
pub(super) use course::{Course, Turn, is_fault};
pub use facts::SystemFacts;
pub(super) use facts::{Facts, Hierarchy};
pub(super) use listed::candidates;
pub(super) use pace::{Costs, Pace};
pub(super) use race::{is_left_out, iterations_left, take};
pub(super) use table::{AS_ASKED, CLASSICAL, GRIDS, MESH, SYMMETRIZED, in_half};
pub(super) use unseen::{refuses_factors, refuses_trial};
