//! Traversals on the device, each in a single launch, see `kernels/bfs.cu` and `kernels/cuthill_mckee.cu`.

mod components;
mod kernels;
mod orders;
mod part;
mod pattern;
mod search;
mod traversal;

use super::Cuda;
use super::slice::Slice;
use crate::backend::{
    Backend, CsrParts, FirstSweeps, Frontier, GraphParts, GraphRows, GraphSteps, OffsetsRef, OrderingPrice,
    Roots, Sweep,
};
use crate::error::{Error, Result};
use crate::scalar::Element;

/// The largest graph whose vertices and neighbours the kernels can count.
const VERTICES: usize = 1 << 28;
const NEIGHBOURS: usize = 1 << 35;

fn check_size(graph: GraphParts<'_, Cuda>) -> Result<()> {
    check_counts(graph.vertices, graph.indices.len())
}

fn check_counts(vertices: usize, neighbours: usize) -> Result<()> {
    if vertices < VERTICES && neighbours < NEIGHBOURS {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "a traversal of {vertices} vertices and {neighbours} neighbours on a device: at most 2^28 - 1 and 2^35 - 1; use the cpu"
    )))
}

impl GraphSteps for Cuda {
    /// A traversal with small levels occupies one cluster, so several take no more time than one.
    const TRAVERSALS_AT_ONCE: usize = 4;

    fn ordering_price(&self) -> OrderingPrice {
        traversal::price(*self)
    }

    fn bfs(
        &self,
        graph: GraphParts<'_, Self>,
        sources: &Slice<u32>,
        levels: &mut Slice<u32>,
    ) -> Result<usize> {
        search::bfs(*self, graph, sources, levels)
    }

    fn frontier(&self, rows: GraphRows<'_, Self>) -> Result<Frontier<Self>> {
        part::frontier(*self, rows)
    }

    fn bfs_reach(
        &self,
        rows: GraphRows<'_, Self>,
        pull: bool,
        frontier: &mut Frontier<Self>,
        seen: &Slice<u32>,
        reached: &mut Slice<u32>,
    ) -> Result<()> {
        part::reach(*self, rows, pull, frontier, (seen, reached))
    }

    fn bfs_settle(
        &self,
        rows: GraphRows<'_, Self>,
        level: u32,
        reached: &mut Slice<u32>,
        seen: &mut Slice<u32>,
        levels: &mut Slice<u32>,
        frontier: &mut Frontier<Self>,
        figures: &mut Slice<f64>,
    ) -> Result<()> {
        part::settle(*self, rows, level, (reached, seen, levels), frontier, figures)
    }

    fn bfs_parents(
        &self,
        graph: GraphParts<'_, Self>,
        levels: &Slice<u32>,
        parents: &mut Slice<u32>,
    ) -> Result<()> {
        search::parents(*self, graph, levels, parents)
    }

    fn cuthill_mckee(
        &self,
        graph: GraphParts<'_, Self>,
        roots: Roots<'_, Self>,
        order: &mut Slice<u32>,
    ) -> Result<Vec<Sweep>> {
        orders::cuthill_mckee(*self, graph, roots, order)
    }

    fn cuthill_mckee_several(
        &self,
        graph: GraphParts<'_, Self>,
        calls: Vec<(Roots<'_, Self>, &mut Slice<u32>)>,
    ) -> Result<Vec<Vec<Sweep>>> {
        orders::several(*self, graph, calls)
    }

    fn cuthill_mckee_first(
        &self,
        graph: GraphParts<'_, Self>,
        order: &mut Slice<u32>,
    ) -> Result<FirstSweeps<Self>> {
        orders::from_lowest_degree(*self, graph, order, Self::TRAVERSALS_AT_ONCE)
    }

    fn components(&self, graph: GraphParts<'_, Self>, smallest: &mut Slice<u32>) -> Result<()> {
        Error::check_dimension("number of vertices", graph.vertices, smallest.len())?;
        check_size(graph)?;
        components::label(*self, graph, smallest)
    }

    fn degrees(
        &self,
        offsets: OffsetsRef<'_, Self>,
        indices: &Slice<u32>,
        degrees: &mut Slice<u32>,
    ) -> Result<bool> {
        pattern::degrees(*self, offsets, indices, degrees)
    }

    fn of_degree(&self, graph: GraphParts<'_, Self>, degree: u32) -> Result<Vec<u32>> {
        let (vertices, count) = orders::of_degree(*self, graph, None, degree)?;
        self.download(vertices.part(0..count))
    }

    fn number_grid(
        &self,
        graph: GraphParts<'_, Self>,
        levels: [&Slice<u32>; 3],
        sizes: [usize; 3],
        new_to_old: &mut Slice<u32>,
        old_to_new: &mut Slice<u32>,
    ) -> Result<bool> {
        pattern::number_grid(*self, graph, levels, sizes, new_to_old, old_to_new)
    }

    fn envelope(&self, graph: GraphParts<'_, Self>, numbers: Option<&Slice<u32>>) -> Result<(usize, u64)> {
        pattern::envelope(*self, graph, numbers)
    }

    fn reverse_order(
        &self,
        order: &Slice<u32>,
        new_to_old: &mut Slice<u32>,
        old_to_new: &mut Slice<u32>,
    ) -> Result<()> {
        pattern::reverse_order(*self, order, new_to_old, old_to_new)
    }

    fn permuted_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        new_to_old: &Slice<u32>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        pattern::permuted_lengths(*self, offsets, new_to_old, lengths)
    }

    fn permute_rows<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        new_to_old: &Slice<u32>,
        old_to_new: &Slice<u32>,
        new_offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        pattern::permute_rows(*self, a, (new_to_old, old_to_new), new_offsets, indices, values)
    }

    fn colour(&self, graph: GraphParts<'_, Self>, colours: &mut Slice<u32>) -> Result<()> {
        search::colour(*self, graph, colours)
    }

    fn independent_set(&self, graph: GraphParts<'_, Self>, set: &mut Slice<u32>) -> Result<()> {
        search::independent_set(*self, graph, set)
    }
}
