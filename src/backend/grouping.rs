//! Steps that divide the nodes of a graph into groups: independent sets and the aggregates around their members, and
//! pairs of nodes that prefer each other.

use super::{CsrParts, CsrPattern, Primitives};
use crate::error::Result;

/// No group: a node without an aggregate, or without a partner.
pub const NO_GROUP: u32 = u32::MAX;

/// States of a node in the construction of an independent set at distance two; a value between is undecided, and is the
/// priority.
#[derive(Debug)]
pub struct NodeState;

impl NodeState {
    /// The node has joined the set.
    pub const MEMBER: u64 = 0;
    /// The node cannot join, or is no candidate.
    pub const OUT: u64 = u64::MAX;
    /// The smallest state next to a node that is no candidate: smaller than any priority.
    pub const NOT_ASKED: u64 = 1;
}

/// The maximum number of unknowns in a block.
pub const MOST_OF_BLOCK: u32 = 12;

/// Sums of weights whose relative difference is smaller than this count as equal, because the couplings are equal apart
/// from rounding.
pub const ALIKE: f32 = 1e-5;

/// Steps from a graph to groups of its nodes. Each is one pass over nodes that reads only the state before the pass, so
/// that results depend neither on the order of work nor on the backend. Arrays have an element for each node unless
/// stated otherwise. Graphs are matrices of weights in compressed rows, whose entries (i, i) are ignored.
///
/// Every method fails if the device fails, and does not wait for it.
#[allow(clippy::missing_errors_doc)]
pub trait GroupingSteps: Primitives {
    /// `flags[i]` = 1 if node i is in no group and has a neighbour, else 0. `flags` has one more element, which is set
    /// to 0.
    fn ungrouped(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &Self::Slice<u32>,
        flags: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Starts an independent set among the nodes with flag 1: their states are priorities, those of others
    /// [`NodeState::OUT`]. Also sets the array with which [`GroupingSteps::independent_least`] begins.
    fn independent_start(
        &self,
        flags: &Self::Slice<u32>,
        state: &mut Self::Slice<u64>,
        smallest: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// `smallest[i]` = the smallest state among i and its neighbours, [`NodeState::OUT`] if a member is among them.
    /// Elements that are [`NodeState::OUT`] or [`NodeState::NOT_ASKED`] stay.
    fn independent_least(
        &self,
        graph: CsrPattern<'_, Self>,
        state: &Self::Slice<u64>,
        smallest: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// Undecided nodes whose state is the smallest within two steps become members; those with a member within two
    /// steps are out; others get a priority for the next round. `undecided[0]` = the number of nodes that are still
    /// undecided.
    fn independent_decide(
        &self,
        graph: CsrPattern<'_, Self>,
        smallest: &Self::Slice<u64>,
        round: u64,
        state: &mut Self::Slice<u64>,
        undecided: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `flags[i]` = 1 if node i is a member and at least `least` of its neighbours are in no group. `flags` has one
    /// more element, which is set to 0.
    fn group_roots(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &Self::Slice<u32>,
        state: &Self::Slice<u64>,
        least: u32,
        flags: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Roots, which have flag 1, get group `first` + `places[i]`; nodes in no group get that of their first neighbour
    /// which is a root.
    fn gather_groups(
        &self,
        graph: CsrPattern<'_, Self>,
        flags: &Self::Slice<u32>,
        places: &Self::Slice<u32>,
        first: u32,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `sizes[k]` = the sum of `weights` over group k, or its number of nodes. The last element is the sum over all
    /// groups.
    fn group_sizes(
        &self,
        group: &Self::Slice<u32>,
        weights: Option<&Self::Slice<u32>>,
        sizes: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// A node in no group joins, among the groups of its neighbours, the one with the largest sum of weights to it.
    /// Among groups with the same sum (up to [`ALIKE`]) it chooses the smallest. A group that already has twice the
    /// mean size is chosen only if there is no other. `before` is a copy of `group` before this step.
    fn join_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        before: &Self::Slice<u32>,
        sizes: &Self::Slice<u32>,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `best[i]` = the preferred neighbour of a node without a partner, among those without one: the one with the
    /// largest weight, rounded to powers of two so that chains of slowly growing weights do not wait for each other;
    /// ties are broken by pseudo-random bits of the round, the same from both ends. Both together have at most
    /// [`MOST_OF_BLOCK`] unknowns.
    fn preferred_partners(
        &self,
        graph: CsrParts<'_, f32, Self>,
        sizes: &Self::Slice<u32>,
        partner: &Self::Slice<u32>,
        round: u64,
        best: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Makes partners of nodes that prefer each other. `found[0]` grows by their number.
    fn agree(
        &self,
        best: &Self::Slice<u32>,
        partner: &mut Self::Slice<u32>,
        found: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The group of partners is the smaller of their numbers; that of others is [`NO_GROUP`].
    fn pair_groups(&self, partner: &Self::Slice<u32>, group: &mut Self::Slice<u32>) -> Result<()>;

    /// A node in no group becomes a group with its own number. `flags[i]` = 1 if node i is in the group with its own
    /// number, else 0. `flags` has one more element, which is set to 0.
    fn lead_groups(&self, group: &mut Self::Slice<u32>, flags: &mut Self::Slice<u32>) -> Result<()>;

    /// Each node in no group chooses the group of the neighbour with the largest weight, among groups with space for
    /// it, and bids for that group. `bids[i]` grows with the weight; of two nodes with equal weights the one with the
    /// smaller number bids more; a node that finds no group bids 0. `highest[k]`, which the caller has set to zero,
    /// becomes the highest bid for group k.
    #[allow(clippy::too_many_arguments)]
    fn bid_for_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        group: &Self::Slice<u32>,
        weights: &Self::Slice<u32>,
        sizes: &Self::Slice<u32>,
        bids: &mut Self::Slice<u64>,
        choice: &mut Self::Slice<u32>,
        highest: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// Nodes with the highest bid join the group that they chose, whose size grows by their weight.
    fn accept_bids(
        &self,
        bids: &Self::Slice<u64>,
        choice: &Self::Slice<u32>,
        highest: &Self::Slice<u64>,
        weights: &Self::Slice<u32>,
        group: &mut Self::Slice<u32>,
        sizes: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `flags[i]` = 1 if node i is in a group (with `grouped`) or in none (without), else 0. `flags` has one more
    /// element, which is set to 0.
    fn group_flags(
        &self,
        group: &Self::Slice<u32>,
        grouped: bool,
        flags: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// For nodes with flag 1, the group becomes `first` + `places[i]`.
    fn number_groups(
        &self,
        flags: &Self::Slice<u32>,
        places: &Self::Slice<u32>,
        first: u32,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;
}

/// A distinct priority of each node for the round: pseudo-random bits, then the node's number.
pub(crate) fn independent_priority(node: usize, round: u64) -> u64 {
    use crate::mixing::mixed;
    let random = mixed(mixed(node as u64).wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    // The node's number takes the low 32 bits; adding 1 avoids the reserved constants.
    ((random >> 33) + 1) << 32 | node as u64
}
