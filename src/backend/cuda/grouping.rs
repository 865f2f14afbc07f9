//! Steps that divide the nodes of a graph into groups, on the device.

use super::coarsen::nodes;
use super::launch::kernels;
use super::shape::Shape;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{Backend, CsrParts, CsrPattern, GroupingSteps, OffsetsRef};
use crate::error::Result;

mod kernel {
    use super::*;
    kernels! {
        "aggregate.cu", types(; offsets as OFFSET);
        fn ungrouped(n: usize, offsets: OffsetsRef<'_, Cuda>, group: &Slice<u32>, flags: &mut Slice<u32>);
    }
    kernels! {
        "aggregate.cu", types(; graph as OFFSET);
        fn independent_least(
            n: usize,
            log_lanes: u32,
            graph: CsrPattern<'_, Cuda>,
            state: &Slice<u64>,
            smallest: &mut Slice<u64>,
        );
        fn independent_decide(
            n: usize,
            log_lanes: u32,
            graph: CsrPattern<'_, Cuda>,
            smallest: &Slice<u64>,
            round: u64,
            state: &mut Slice<u64>,
            undecided: &mut Slice<u32>,
        );
        fn group_roots(
            n: usize,
            log_lanes: u32,
            graph: CsrPattern<'_, Cuda>,
            group: &Slice<u32>,
            state: &Slice<u64>,
            least: u32,
            flags: &mut Slice<u32>,
        );
        fn gather_groups(
            n: usize,
            log_lanes: u32,
            graph: CsrPattern<'_, Cuda>,
            flags: &Slice<u32>,
            places: &Slice<u32>,
            first: u32,
            group: &mut Slice<u32>,
        );
        fn join_groups(
            n: usize,
            log_lanes: u32,
            graph: CsrParts<'_, f32, Cuda>,
            before: &Slice<u32>,
            groups: usize,
            sizes: &Slice<u32>,
            group: &mut Slice<u32>,
        );
        fn preferred_partners(
            n: usize,
            graph: CsrParts<'_, f32, Cuda>,
            sizes: &Slice<u32>,
            partner: &Slice<u32>,
            round: u64,
            best: &mut Slice<u32>,
        );
        fn bid_for_groups(
            n: usize,
            graph: CsrParts<'_, f32, Cuda>,
            group: &Slice<u32>,
            own: &Slice<u32>,
            sizes: &Slice<u32>,
            bids: &mut Slice<u64>,
            choice: &mut Slice<u32>,
            highest: &mut Slice<u64>,
        );
    }
    kernels! {
        "aggregate.cu", types(; "u32" as OFFSET);
        fn independent_start(n: usize, flags: &Slice<u32>, state: &mut Slice<u64>, smallest: &mut Slice<u64>);
        fn group_sizes(
            n: usize,
            group: &Slice<u32>,
            weights: Option<&Slice<u32>>,
            groups: usize,
            sizes: &mut Slice<u32>,
        );
        fn agree(n: usize, best: &Slice<u32>, partner: &mut Slice<u32>, found: &mut Slice<u32>);
        fn pair_groups(n: usize, partner: &Slice<u32>, group: &mut Slice<u32>);
        fn lead_groups(n: usize, group: &mut Slice<u32>, flags: &mut Slice<u32>);
        fn accept_bids(
            n: usize,
            bids: &Slice<u64>,
            choice: &Slice<u32>,
            highest: &Slice<u64>,
            own: &Slice<u32>,
            group: &mut Slice<u32>,
            sizes: &mut Slice<u32>,
        );
        fn group_flags(n: usize, group: &Slice<u32>, grouped: bool, flags: &mut Slice<u32>);
        fn number_groups(
            n: usize,
            flags: &Slice<u32>,
            places: &Slice<u32>,
            first: u32,
            group: &mut Slice<u32>,
        );
    }
}

/// Returns a launch with one lane or several for each node, the number of nodes, and the logarithm of the number of
/// lanes.
fn of_nodes(cuda: Cuda, graph: CsrPattern<'_, Cuda>) -> (Shape, usize, u32) {
    let log_lanes = tuning::log_node_lanes(graph.indices.len() / graph.rows.max(1));
    (nodes(cuda, graph.rows << log_lanes), graph.rows, log_lanes)
}

impl GroupingSteps for Cuda {
    fn ungrouped(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &Slice<u32>,
        flags: &mut Slice<u32>,
    ) -> Result<()> {
        kernel::ungrouped(
            *self,
            tuning::node_lanes(self.0.chip, graph.rows),
            graph.rows,
            graph.offsets,
            group,
            flags,
        )
    }

    fn independent_start(
        &self,
        flags: &Slice<u32>,
        state: &mut Slice<u64>,
        smallest: &mut Slice<u64>,
    ) -> Result<()> {
        kernel::independent_start(*self, nodes(*self, state.len()), state.len(), flags, state, smallest)
    }

    fn independent_least(
        &self,
        graph: CsrPattern<'_, Self>,
        state: &Slice<u64>,
        smallest: &mut Slice<u64>,
    ) -> Result<()> {
        let (shape, n, log_lanes) = of_nodes(*self, graph);
        kernel::independent_least(*self, shape, n, log_lanes, graph, state, smallest)
    }

    fn independent_decide(
        &self,
        graph: CsrPattern<'_, Self>,
        smallest: &Slice<u64>,
        round: u64,
        state: &mut Slice<u64>,
        undecided: &mut Slice<u32>,
    ) -> Result<()> {
        self.fill(0, undecided)?;
        let (shape, n, log_lanes) = of_nodes(*self, graph);
        kernel::independent_decide(*self, shape, n, log_lanes, graph, smallest, round, state, undecided)
    }

    fn group_roots(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &Slice<u32>,
        state: &Slice<u64>,
        least: u32,
        flags: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, n, log_lanes) = of_nodes(*self, graph);
        kernel::group_roots(*self, shape, n, log_lanes, graph, group, state, least, flags)
    }

    fn gather_groups(
        &self,
        graph: CsrPattern<'_, Self>,
        flags: &Slice<u32>,
        places: &Slice<u32>,
        first: u32,
        group: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, n, log_lanes) = of_nodes(*self, graph);
        kernel::gather_groups(*self, shape, n, log_lanes, graph, flags, places, first, group)
    }

    fn group_sizes(
        &self,
        group: &Slice<u32>,
        weights: Option<&Slice<u32>>,
        sizes: &mut Slice<u32>,
    ) -> Result<()> {
        self.fill(0, sizes)?;
        kernel::group_sizes(
            *self,
            nodes(*self, group.len()),
            group.len(),
            group,
            weights,
            sizes.len() - 1,
            sizes,
        )
    }

    fn join_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        before: &Slice<u32>,
        sizes: &Slice<u32>,
        group: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, n, log_lanes) = of_nodes(*self, graph.pattern());
        kernel::join_groups(*self, shape, n, log_lanes, graph, before, sizes.len() - 1, sizes, group)
    }

    fn preferred_partners(
        &self,
        graph: CsrParts<'_, f32, Self>,
        sizes: &Slice<u32>,
        partner: &Slice<u32>,
        round: u64,
        best: &mut Slice<u32>,
    ) -> Result<()> {
        kernel::preferred_partners(
            *self,
            nodes(*self, graph.rows),
            graph.rows,
            graph,
            sizes,
            partner,
            round,
            best,
        )
    }

    fn agree(&self, best: &Slice<u32>, partner: &mut Slice<u32>, found: &mut Slice<u32>) -> Result<()> {
        kernel::agree(*self, nodes(*self, best.len()), best.len(), best, partner, found)
    }

    fn pair_groups(&self, partner: &Slice<u32>, group: &mut Slice<u32>) -> Result<()> {
        kernel::pair_groups(*self, nodes(*self, partner.len()), partner.len(), partner, group)
    }

    fn lead_groups(&self, group: &mut Slice<u32>, flags: &mut Slice<u32>) -> Result<()> {
        kernel::lead_groups(*self, nodes(*self, group.len()), group.len(), group, flags)
    }

    fn bid_for_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        group: &Slice<u32>,
        weights: &Slice<u32>,
        sizes: &Slice<u32>,
        bids: &mut Slice<u64>,
        choice: &mut Slice<u32>,
        highest: &mut Slice<u64>,
    ) -> Result<()> {
        kernel::bid_for_groups(
            *self,
            nodes(*self, graph.rows),
            graph.rows,
            graph,
            group,
            weights,
            sizes,
            bids,
            choice,
            highest,
        )
    }

    fn accept_bids(
        &self,
        bids: &Slice<u64>,
        choice: &Slice<u32>,
        highest: &Slice<u64>,
        weights: &Slice<u32>,
        group: &mut Slice<u32>,
        sizes: &mut Slice<u32>,
    ) -> Result<()> {
        kernel::accept_bids(
            *self,
            nodes(*self, group.len()),
            group.len(),
            bids,
            choice,
            highest,
            weights,
            group,
            sizes,
        )
    }

    fn group_flags(&self, group: &Slice<u32>, grouped: bool, flags: &mut Slice<u32>) -> Result<()> {
        kernel::group_flags(*self, nodes(*self, group.len()), group.len(), group, grouped, flags)
    }

    fn number_groups(
        &self,
        flags: &Slice<u32>,
        places: &Slice<u32>,
        first: u32,
        group: &mut Slice<u32>,
    ) -> Result<()> {
        kernel::number_groups(*self, nodes(*self, group.len()), group.len(), flags, places, first, group)
    }
}
