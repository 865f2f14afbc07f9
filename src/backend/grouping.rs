//! Steps that divide the nodes of a graph into groups: either aggregates around the members of an independent set, or
//! pairs of nodes that prefer each other.

use super::{CsrParts, CsrPattern, Primitives};
use crate::error::Result;

/// Marks a node without a group, or without a partner.
pub const NO_GROUP: u32 = u32::MAX;

/// The states of a node while an independent set at distance two is computed. Any other value is the priority of a node
/// that is still undecided.
#[derive(Debug)]
pub struct NodeState;

impl NodeState {
    /// The node has joined the set.
    pub const MEMBER: u64 = 0;
    /// The node can't join, or is not a candidate.
    pub const OUT: u64 = u64::MAX;
    /// In the array of smallest states, marks a node that is not a candidate. It is smaller than any priority.
    pub const NOT_ASKED: u64 = 1;
}

/// The maximum number of unknowns in a block.
pub const MOST_OF_BLOCK: u32 = 12;

/// Two sums of weights count as equal if their relative difference is smaller than this: then only rounding separates
/// them.
pub const ALIKE: f32 = 1e-5;

/// Steps that group the nodes of a graph. Each is one pass over the nodes that reads only the state before the pass, so
/// the results depend neither on the order of work nor on the backend. Arrays have an element for each node unless
/// stated otherwise. Graphs are matrices of weights in CSR; their diagonal entries are ignored.
///
/// Every method fails if the device fails, and none waits for it.
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

    /// Starts an independent set among the nodes with flag 1: their states are priorities, and the states of the others
    /// are [`NodeState::OUT`]. Also initialises `smallest` for [`GroupingSteps::independent_least`].
    fn independent_start(
        &self,
        flags: &Self::Slice<u32>,
        state: &mut Self::Slice<u64>,
        smallest: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// `smallest[i]` = the smallest state among i and its neighbours, or [`NodeState::OUT`] if one of them is a member.
    /// Elements that are [`NodeState::OUT`] or [`NodeState::NOT_ASKED`] do not change.
    fn independent_least(
        &self,
        graph: CsrPattern<'_, Self>,
        state: &Self::Slice<u64>,
        smallest: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// Decides nodes: one with the smallest state within two steps becomes a member, one with a member within two steps
    /// is out, and each of the others gets a new priority for the next round. `undecided[0]` = the number of nodes that
    /// are still undecided.
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

    /// Root nodes, which have flag 1, get group `first` + `places[i]`. A node in no group gets the group of its first
    /// neighbour that is a root.
    fn gather_groups(
        &self,
        graph: CsrPattern<'_, Self>,
        flags: &Self::Slice<u32>,
        places: &Self::Slice<u32>,
        first: u32,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `sizes[k]` = the sum of `weights` over group k or, without weights, its number of nodes. The last element is the
    /// sum over all groups.
    fn group_sizes(
        &self,
        group: &Self::Slice<u32>,
        weights: Option<&Self::Slice<u32>>,
        sizes: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Each node in no group joins a neighbouring group: the one for which the weights of its edges to the group have
    /// the largest sum, or the smallest group if sums are equal (up to [`ALIKE`]). A group with twice the mean size is
    /// chosen only if there is no other. `before` is a copy of `group` before this step.
    fn join_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        before: &Self::Slice<u32>,
        sizes: &Self::Slice<u32>,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `best[i]` = the preferred neighbour of a node without a partner, among neighbours without one with which it has
    /// at most [`MOST_OF_BLOCK`] unknowns together. It is the one with the largest weight, rounded to powers of two so
    /// that chains of slowly growing weights do not wait for each other. Pseudo-random bits of the round, the same from
    /// both ends, break ties.
    fn preferred_partners(
        &self,
        graph: CsrParts<'_, f32, Self>,
        sizes: &Self::Slice<u32>,
        partner: &Self::Slice<u32>,
        round: u64,
        best: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Two nodes that prefer each other become partners. `found[0]` grows by the number of new partners.
    fn agree(
        &self,
        best: &Self::Slice<u32>,
        partner: &mut Self::Slice<u32>,
        found: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The group of two partners is the smaller of their numbers; the group of other nodes is [`NO_GROUP`].
    fn pair_groups(&self, partner: &Self::Slice<u32>, group: &mut Self::Slice<u32>) -> Result<()>;

    /// Each node in no group becomes a group with the node's number. `flags[i]` = 1 if node i is in the group with its
    /// own number, else 0. `flags` has one more element, which is set to 0.
    fn lead_groups(&self, group: &mut Self::Slice<u32>, flags: &mut Self::Slice<u32>) -> Result<()>;

    /// Each node in no group chooses the group of the neighbour with the largest weight, among groups with enough space
    /// for the node, and bids for it. `bids[i]` grows with the weight, and of two nodes with equal weights the one with
    /// the smaller number bids more. A node that finds no group bids 0. `highest[k]`, which the caller has set to zero,
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

    /// A node with the highest bid for a group joins it, and the group's size grows by the node's weight.
    fn accept_bids(
        &self,
        bids: &Self::Slice<u64>,
        choice: &Self::Slice<u32>,
        highest: &Self::Slice<u64>,
        weights: &Self::Slice<u32>,
        group: &mut Self::Slice<u32>,
        sizes: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `flags[i]` = 1 if node i is in a group (or, without `grouped`, if it is in none), else 0. `flags` has one more
    /// element, which is set to 0.
    fn group_flags(
        &self,
        group: &Self::Slice<u32>,
        grouped: bool,
        flags: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Sets the group of nodes with flag 1 to `first` + `places[i]`.
    fn number_groups(
        &self,
        flags: &Self::Slice<u32>,
        places: &Self::Slice<u32>,
        first: u32,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;
}

/// Returns the priority of a node in this round: pseudo-random bits above the node's number, so that it is unique.
pub(crate) fn independent_priority(node: usize, round: u64) -> u64 {
    use crate::mixing::mixed;
    let random = mixed(mixed(node as u64).wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    // The node's number takes the low 32 bits; adding 1 avoids the reserved constants.
    ((random >> 33) + 1) << 32 | node as u64
}
