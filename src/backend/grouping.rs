//! Steps that put the nodes of a graph into groups: independent sets and the aggregates around them, and pairs of nodes
//! that prefer each other.

use super::{CsrParts, CsrPattern, Primitives};
use crate::error::Result;

/// In no group: a node without an aggregate, or without a partner.
pub const NO_GROUP: u32 = u32::MAX;

/// States of a node of an independent set at distance two; what lies between is undecided, and tells the priority.
#[derive(Debug)]
pub struct NodeState;

impl NodeState {
    /// Has joined the set.
    pub const MEMBER: u64 = 0;
    /// Cannot join, or is no candidate.
    pub const OUT: u64 = u64::MAX;
    /// Stands for the smallest state beside a node that is no candidate: smaller than any priority.
    pub const NOT_ASKED: u64 = 1;
}

/// Unknowns of a block at most.
pub const MOST_OF_BLOCK: u32 = 12;

/// Sums of weights that differ by a smaller part are the same: couplings that are equal on paper.
pub const ALIKE: f32 = 1e-5;

/// Steps between a graph and groups of its nodes. Each is one pass over nodes, in which each node reads what others
/// were before the pass, so that results depend neither on the order of work nor on the backend. Arrays have an element
/// for each node; where another length is named, it is that. Graphs are matrices of weights in compressed rows, whose
/// entries (i, i) are passed over.
///
/// Every method fails when the device fails, and waits for nothing.
#[allow(clippy::missing_errors_doc)]
pub trait GroupingSteps: Primitives {
    /// `flags[i]` = 1 where node i is in no group and has a neighbour, else 0. `flags` has one element more, which
    /// becomes 0.
    fn ungrouped(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &Self::Slice<u32>,
        flags: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The start of an independent set among the nodes whose flag is 1: a priority as the state of each,
    /// [`NodeState::OUT`] for others; and what [`GroupingSteps::independent_least`] begins with.
    fn independent_start(
        &self,
        flags: &Self::Slice<u32>,
        state: &mut Self::Slice<u64>,
        smallest: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// `smallest[i]` = the smallest state among i and its neighbours, [`NodeState::OUT`] where a member is among them.
    /// It stays where it is [`NodeState::OUT`] or [`NodeState::NOT_ASKED`].
    fn independent_least(
        &self,
        graph: CsrPattern<'_, Self>,
        state: &Self::Slice<u64>,
        smallest: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// Undecided nodes whose state is the smallest two steps away become members; those with a member there are out;
    /// others get a priority of the round. `undecided[0]` becomes the number of nodes that are undecided after it.
    fn independent_decide(
        &self,
        graph: CsrPattern<'_, Self>,
        smallest: &Self::Slice<u64>,
        round: u64,
        state: &mut Self::Slice<u64>,
        undecided: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `flags[i]` = 1 where node i is a member and at least `least` of its neighbours are in no group. `flags` has one
    /// element more, which becomes 0.
    fn group_roots(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &Self::Slice<u32>,
        state: &Self::Slice<u64>,
        least: u32,
        flags: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Roots, whose flags are 1, get group `first` + `places[i]`; nodes in no group that of their first neighbour which
    /// is a root.
    fn gather_groups(
        &self,
        graph: CsrPattern<'_, Self>,
        flags: &Self::Slice<u32>,
        places: &Self::Slice<u32>,
        first: u32,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `sizes[k]` = the sum over group k of `weights`, or of ones. The last element, behind those of all groups,
    /// becomes the sum over all groups.
    fn group_sizes(
        &self,
        group: &Self::Slice<u32>,
        weights: Option<&Self::Slice<u32>>,
        sizes: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// A node in no group joins, among the groups of its neighbours, the one whose nodes have the largest sum of
    /// weights to it. Of groups with the same sum (up to [`ALIKE`]) it takes the smallest. A group that already has
    /// twice the mean size is taken only where no other is beside the node. `before` is a copy of `group` as it was
    /// before this step.
    fn join_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        before: &Self::Slice<u32>,
        sizes: &Self::Slice<u32>,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `best[i]` = the neighbour that a node without a partner prefers among those without: the largest weight in steps
    /// of powers of two, so that chains of slowly growing weights do not wait for their end, then bits of the round
    /// that look random, the same seen from both ends. Both together have [`MOST_OF_BLOCK`] unknowns at most.
    fn preferred_partners(
        &self,
        graph: CsrParts<'_, f32, Self>,
        sizes: &Self::Slice<u32>,
        partner: &Self::Slice<u32>,
        round: u64,
        best: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Nodes that prefer each other become partners. `found[0]` grows by their number.
    fn agree(
        &self,
        best: &Self::Slice<u32>,
        partner: &mut Self::Slice<u32>,
        found: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Partners get the smaller of their numbers as their group, others [`NO_GROUP`].
    fn pair_groups(&self, partner: &Self::Slice<u32>, group: &mut Self::Slice<u32>) -> Result<()>;

    /// A node in no group becomes a group with its own number. `flags[i]` = 1 where a group has the number of node i,
    /// which is in it, else 0. `flags` has one element more, which becomes 0.
    fn lead_groups(&self, group: &mut Self::Slice<u32>, flags: &mut Self::Slice<u32>) -> Result<()>;

    /// Each node in no group chooses the group of the neighbour with the largest weight, among groups that have room
    /// for the node, and makes a bid for that group. `bids[i]` grows with the weight; of two nodes with equal weights
    /// the one with the smaller number bids more; a node that finds no group bids 0. `highest[k]`, which the caller has
    /// set to zero, becomes the highest bid for group k.
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

    /// Nodes whose bid is the highest join the group that they chose, and its size grows by their weight.
    fn accept_bids(
        &self,
        bids: &Self::Slice<u64>,
        choice: &Self::Slice<u32>,
        highest: &Self::Slice<u64>,
        weights: &Self::Slice<u32>,
        group: &mut Self::Slice<u32>,
        sizes: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `flags[i]` = 1 where node i is in a group, or in none if not `grouped`, else 0. `flags` has one element more,
    /// which becomes 0.
    fn group_flags(
        &self,
        group: &Self::Slice<u32>,
        grouped: bool,
        flags: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Where a flag is 1, the group becomes `first` + `places[i]`.
    fn number_groups(
        &self,
        flags: &Self::Slice<u32>,
        places: &Self::Slice<u32>,
        first: u32,
        group: &mut Self::Slice<u32>,
    ) -> Result<()>;
}

/// A priority of the round for a node, no two alike: bits that look random, then the node's number.
pub(crate) fn independent_priority(node: usize, round: u64) -> u64 {
    use crate::mixing::mixed;
    let random = mixed(mixed(node as u64).wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    // 32 bits at most for the number; none of the constants.
    ((random >> 33) + 1) << 32 | node as u64
}
