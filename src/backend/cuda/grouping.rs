//! Steps that divide the nodes of a graph into groups, on the device.

use super::coarsen::nodes;
use super::launch::kernels;
use super::shape::Shape;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{Backend, CsrParts, CsrPattern, GroupingSteps, with_offsets};
use crate::error::Result;
use crate::scalar::Offset;

mod kernel {
    use super::*;
    kernels! {
        "aggregate.cu", types(I: Offset as OFFSET);
        fn ungrouped(n: u64, offsets: &Slice<I>, group: &Slice<u32>, flags: &mut Slice<u32>);
        fn independent_start(n: u64, flags: &Slice<u32>, state: &mut Slice<u64>, smallest: &mut Slice<u64>);
        fn independent_least(
            n: u64,
            log_lanes: u32,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            state: &Slice<u64>,
            smallest: &mut Slice<u64>,
        );
        fn independent_decide(
            n: u64,
            log_lanes: u32,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            smallest: &Slice<u64>,
            round: u64,
            state: &mut Slice<u64>,
            undecided: &mut Slice<u32>,
        );
        fn group_roots(
            n: u64,
            log_lanes: u32,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            group: &Slice<u32>,
            state: &Slice<u64>,
            least: u32,
            flags: &mut Slice<u32>,
        );
        fn gather_groups(
            n: u64,
            log_lanes: u32,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            flags: &Slice<u32>,
            places: &Slice<u32>,
            first: u32,
            group: &mut Slice<u32>,
        );
        fn group_sizes(
            n: u64,
            group: &Slice<u32>,
            weights: Option<&Slice<u32>>,
            groups: u64,
            sizes: &mut Slice<u32>,
        );
        fn join_groups(
            n: u64,
            log_lanes: u32,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            weights: &Slice<f32>,
            before: &Slice<u32>,
            groups: u64,
            sizes: &Slice<u32>,
            group: &mut Slice<u32>,
        );
        fn preferred_partners(
            n: u64,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            weights: &Slice<f32>,
            sizes: &Slice<u32>,
            partner: &Slice<u32>,
            round: u64,
            best: &mut Slice<u32>,
        );
        fn agree(n: u64, best: &Slice<u32>, partner: &mut Slice<u32>, found: &mut Slice<u32>);
        fn pair_groups(n: u64, partner: &Slice<u32>, group: &mut Slice<u32>);
        fn lead_groups(n: u64, group: &mut Slice<u32>, flags: &mut Slice<u32>);
        fn bid_for_groups(
            n: u64,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            weights: &Slice<f32>,
            group: &Slice<u32>,
            own: &Slice<u32>,
            sizes: &Slice<u32>,
            bids: &mut Slice<u64>,
            choice: &mut Slice<u32>,
            highest: &mut Slice<u64>,
        );
        fn accept_bids(
            n: u64,
            bids: &Slice<u64>,
            choice: &Slice<u32>,
            highest: &Slice<u64>,
            own: &Slice<u32>,
            group: &mut Slice<u32>,
            sizes: &mut Slice<u32>,
        );
        fn group_flags(n: u64, group: &Slice<u32>, grouped: u32, flags: &mut Slice<u32>);
        fn number_groups(
            n: u64,
            flags: &Slice<u32>,
            places: &Slice<u32>,
            first: u32,
            group: &mut Slice<u32>,
        );
    }
}

/// Returns a launch with one lane or several for each node, the number of nodes, and the logarithm of the number of
/// lanes.
fn of_nodes(cuda: Cuda, graph: CsrPattern<'_, Cuda>) -> (Shape, u64, u32) {
    let log_lanes = tuning::log_node_lanes(graph.indices.len() / graph.rows.max(1));
    (nodes(cuda, graph.rows << log_lanes), graph.rows as u64, log_lanes)
}

impl GroupingSteps for Cuda {
    fn ungrouped(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &Slice<u32>,
        flags: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, n) = (tuning::node_lanes(self.0.chip, graph.rows), graph.rows as u64);
        with_offsets!(graph.offsets, offsets => kernel::ungrouped(*self, shape, n, offsets, group, flags))
    }

    fn independent_start(
        &self,
        flags: &Slice<u32>,
        state: &mut Slice<u64>,
        smallest: &mut Slice<u64>,
    ) -> Result<()> {
        let (shape, n) = (nodes(*self, state.len()), state.len() as u64);
        kernel::independent_start::<u32>(*self, shape, n, flags, state, smallest)
    }

    fn independent_least(
        &self,
        graph: CsrPattern<'_, Self>,
        state: &Slice<u64>,
        smallest: &mut Slice<u64>,
    ) -> Result<()> {
        let (shape, n, log_lanes) = of_nodes(*self, graph);
        with_offsets!(graph.offsets, offsets => {
            kernel::independent_least(*self, shape, n, log_lanes, offsets, graph.indices, state, smallest)
        })
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
        with_offsets!(graph.offsets, offsets => {
            kernel::independent_decide(
                *self, shape, n, log_lanes, offsets, graph.indices, smallest, round, state, undecided,
            )
        })
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
        with_offsets!(graph.offsets, offsets => {
            kernel::group_roots(*self, shape, n, log_lanes, offsets, graph.indices, group, state, least, flags)
        })
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
        with_offsets!(graph.offsets, offsets => {
            kernel::gather_groups(*self, shape, n, log_lanes, offsets, graph.indices, flags, places, first, group)
        })
    }

    fn group_sizes(
        &self,
        group: &Slice<u32>,
        weights: Option<&Slice<u32>>,
        sizes: &mut Slice<u32>,
    ) -> Result<()> {
        self.fill(0, sizes)?;
        let (shape, n, groups) = (nodes(*self, group.len()), group.len() as u64, sizes.len() as u64 - 1);
        kernel::group_sizes::<u32>(*self, shape, n, group, weights, groups, sizes)
    }

    fn join_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        before: &Slice<u32>,
        sizes: &Slice<u32>,
        group: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, n, log_lanes) = of_nodes(*self, graph.pattern());
        let groups = sizes.len() as u64 - 1;
        with_offsets!(graph.offsets, offsets => {
            kernel::join_groups(
                *self, shape, n, log_lanes, offsets, graph.indices, graph.values, before, groups, sizes, group,
            )
        })
    }

    fn preferred_partners(
        &self,
        graph: CsrParts<'_, f32, Self>,
        sizes: &Slice<u32>,
        partner: &Slice<u32>,
        round: u64,
        best: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, n) = (nodes(*self, graph.rows), graph.rows as u64);
        with_offsets!(graph.offsets, offsets => {
            kernel::preferred_partners(
                *self, shape, n, offsets, graph.indices, graph.values, sizes, partner, round, best,
            )
        })
    }

    fn agree(&self, best: &Slice<u32>, partner: &mut Slice<u32>, found: &mut Slice<u32>) -> Result<()> {
        let (shape, n) = (nodes(*self, best.len()), best.len() as u64);
        kernel::agree::<u32>(*self, shape, n, best, partner, found)
    }

    fn pair_groups(&self, partner: &Slice<u32>, group: &mut Slice<u32>) -> Result<()> {
        let (shape, n) = (nodes(*self, partner.len()), partner.len() as u64);
        kernel::pair_groups::<u32>(*self, shape, n, partner, group)
    }

    fn lead_groups(&self, group: &mut Slice<u32>, flags: &mut Slice<u32>) -> Result<()> {
        let (shape, n) = (nodes(*self, group.len()), group.len() as u64);
        kernel::lead_groups::<u32>(*self, shape, n, group, flags)
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
        let (shape, n) = (nodes(*self, graph.rows), graph.rows as u64);
        with_offsets!(graph.offsets, offsets => {
            kernel::bid_for_groups(
                *self, shape, n, offsets, graph.indices, graph.values, group, weights, sizes, bids, choice,
                highest,
            )
        })
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
        let (shape, n) = (nodes(*self, group.len()), group.len() as u64);
        kernel::accept_bids::<u32>(*self, shape, n, bids, choice, highest, weights, group, sizes)
    }

    fn group_flags(&self, group: &Slice<u32>, grouped: bool, flags: &mut Slice<u32>) -> Result<()> {
        let (shape, n) = (nodes(*self, group.len()), group.len() as u64);
        kernel::group_flags::<u32>(*self, shape, n, group, u32::from(grouped), flags)
    }

    fn number_groups(
        &self,
        flags: &Slice<u32>,
        places: &Slice<u32>,
        first: u32,
        group: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, n) = (nodes(*self, group.len()), group.len() as u64);
        kernel::number_groups::<u32>(*self, shape, n, flags, places, first, group)
    }
}
