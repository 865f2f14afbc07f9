//! Graph traversals on the CPU, one vertex of the queue at a time.

mod grid;
mod part;
mod traversal;

use self::traversal::{Traversal, breadth_first};
use super::Host;
use super::pattern::{envelope, scan};
use super::permute::gather_rows;
use crate::backend::{
    Backend, CsrParts, Frontier, GraphParts, GraphRows, GraphSteps, OffsetsRef, OrderingPrice, Roots, Sweep,
    UNREACHED, priority, with_offsets,
};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset};
use crate::work::look_at;
use rayon::slice::ParallelSliceMut;

/// In a smaller graph (vertices plus neighbours), a traversal ends before another thread has woken up.
const PARALLEL_FROM: usize = 1 << 16;

impl GraphSteps for Host {
    /// A traversal is limited by memory latency, so two threads run two of them at the same time.
    const TRAVERSALS_AT_ONCE: usize = 2;

    fn ordering_price(&self) -> OrderingPrice {
        OrderingPrice::CPU
    }

    fn bfs(&self, graph: GraphParts<'_, Self>, sources: &[u32], levels: &mut [u32]) -> Result<usize> {
        Error::check_dimension("number of levels", graph.vertices, levels.len())?;
        self.fill(UNREACHED, levels)?;
        let mut queue = self.zeros(graph.vertices + 1)?;
        with_offsets!(graph.offsets, offsets => breadth_first(offsets, graph.indices, sources, levels, &mut queue))
    }

    fn frontier(&self, rows: GraphRows<'_, Self>) -> Result<Frontier<Self>> {
        let words = rows.rows.div_ceil(u32::BITS as usize);
        Ok(Frontier { vertices: self.zeros(words)?, queue: Vec::new(), queued: Vec::new() })
    }

    fn bfs_reach(
        &self,
        rows: GraphRows<'_, Self>,
        pull: bool,
        frontier: &mut Frontier<Self>,
        seen: &[u32],
        reached: &mut [u32],
    ) -> Result<()> {
        with_offsets!(rows.offsets, offsets => part::reach((rows, offsets), pull, frontier, seen, reached))
    }

    fn bfs_settle(
        &self,
        rows: GraphRows<'_, Self>,
        level: u32,
        reached: &mut [u32],
        seen: &mut [u32],
        levels: &mut [u32],
        frontier: &mut Frontier<Self>,
        figures: &mut [f64],
    ) -> Result<()> {
        with_offsets!(rows.offsets, offsets => {
            part::settle((rows, offsets), level, [reached, seen, levels], frontier, figures)
        })
    }

    fn bfs_parents(&self, graph: GraphParts<'_, Self>, levels: &[u32], parents: &mut [u32]) -> Result<()> {
        Error::check_dimension("number of levels", graph.vertices, levels.len())?;
        Error::check_dimension("number of parents", graph.vertices, parents.len())?;
        with_offsets!(graph.offsets, offsets => {
            parents.par_iter_mut().enumerate().with_min_len(1 << 12).for_each(|(v, parent)| {
                let line = &graph.indices[offsets[v].to_usize()..offsets[v + 1].to_usize()];
                *parent = match levels[v] {
                    UNREACHED => UNREACHED,
                    0 => v as u32,
                    level => line.iter().copied().find(|&w| levels[w as usize] == level - 1).unwrap_or(UNREACHED),
                };
            });
        });
        Ok(())
    }

    fn cuthill_mckee(
        &self,
        graph: GraphParts<'_, Self>,
        roots: Roots<'_, Self>,
        order: &mut [u32],
    ) -> Result<Vec<Sweep>> {
        with_offsets!(graph.offsets, offsets => {
            let mut traversal = Traversal::new(offsets, graph)?;
            match roots {
                Roots::LowestDegree => traversal.all(order),
                Roots::Given { roots, limits } => traversal.given(roots, limits, order),
            }
        })
    }

    fn cuthill_mckee_several(
        &self,
        graph: GraphParts<'_, Self>,
        calls: Vec<(Roots<'_, Self>, &mut [u32])>,
    ) -> Result<Vec<Vec<Sweep>>> {
        let small = graph.indices.len() + graph.vertices < PARALLEL_FROM;
        let mut results: Vec<_> = calls.into_iter().map(|call| (call, Ok(Vec::new()))).collect();
        let least = if small { results.len() } else { 1 };
        results.par_iter_mut().with_min_len(least.max(1)).for_each(|((roots, order), result)| {
            *result = self.cuthill_mckee(graph, *roots, order);
        });
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn components(&self, graph: GraphParts<'_, Self>, smallest: &mut [u32]) -> Result<()> {
        Error::check_dimension("number of vertices", graph.vertices, smallest.len())?;
        self.fill(UNREACHED, smallest)?;
        let mut queue: Vec<u32> = self.zeros(graph.vertices)?;
        with_offsets!(graph.offsets, offsets => for first in 0..graph.vertices {
            if smallest[first] == UNREACHED {
                smallest[first] = first as u32;
                queue[0] = first as u32;
                let (mut head, mut tail) = (0, 1);
                while head < tail {
                    look_at(head);
                    let v = queue[head] as usize;
                    head += 1;
                    for &w in &graph.indices[offsets[v].to_usize()..offsets[v + 1].to_usize()] {
                        if smallest[w as usize] == UNREACHED {
                            smallest[w as usize] = first as u32;
                            queue[tail] = w;
                            tail += 1;
                        }
                    }
                }
            }
        });
        Ok(())
    }

    fn degrees(&self, offsets: OffsetsRef<'_, Self>, indices: &[u32], degrees: &mut [u32]) -> Result<bool> {
        Error::check_dimension("number of degrees", offsets.len() - 1, degrees.len())?;
        Ok(with_offsets!(offsets, offsets => scan(offsets, indices, degrees, false)))
    }

    fn of_degree(&self, graph: GraphParts<'_, Self>, degree: u32) -> Result<Vec<u32>> {
        Ok((0..).zip(graph.degrees).filter(|&(_, &of)| of == degree).map(|(vertex, _)| vertex).collect())
    }

    fn number_grid(
        &self,
        graph: GraphParts<'_, Self>,
        levels: [&[u32]; 3],
        sizes: [usize; 3],
        new_to_old: &mut [u32],
        old_to_new: &mut [u32],
    ) -> Result<bool> {
        graph.check_grid(levels, sizes, new_to_old, old_to_new)?;
        Ok(grid::number(levels, sizes, new_to_old, old_to_new)
            && with_offsets!(graph.offsets, offsets => grid::joins_neighbours((graph, offsets), sizes, old_to_new)))
    }

    fn envelope(&self, graph: GraphParts<'_, Self>, numbers: Option<&[u32]>) -> Result<(usize, u64)> {
        match numbers {
            None => Ok(envelope(graph, |v| v)),
            Some(numbers) => {
                Error::check_dimension("length of the numbering", graph.vertices, numbers.len())?;
                Ok(envelope(graph, |v| numbers[v as usize]))
            }
        }
    }

    fn reverse_order(&self, order: &[u32], new_to_old: &mut [u32], old_to_new: &mut [u32]) -> Result<()> {
        Error::check_dimension("length of the numbering", order.len(), new_to_old.len())?;
        Error::check_dimension("length of the inverse numbering", order.len(), old_to_new.len())?;
        for (new, (old, &v)) in new_to_old.iter_mut().zip(order.iter().rev()).enumerate() {
            *old = v;
            old_to_new[v as usize] = new as u32;
        }
        Ok(())
    }

    fn permuted_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        new_to_old: &[u32],
        lengths: &mut [u32],
    ) -> Result<()> {
        Error::check_dimension("number of row lengths", new_to_old.len() + 1, lengths.len())?;
        with_offsets!(offsets, offsets => {
            for (length, &old) in lengths.iter_mut().zip(new_to_old) {
                *length = (offsets[old as usize + 1].to_usize() - offsets[old as usize].to_usize()) as u32;
            }
        });
        lengths[new_to_old.len()] = 0;
        Ok(())
    }

    fn permute_rows<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        new_to_old: &[u32],
        old_to_new: &[u32],
        new_offsets: OffsetsRef<'_, Self>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let numbers = (new_to_old, old_to_new);
        match (a.offsets, new_offsets) {
            (OffsetsRef::Lower(old), OffsetsRef::Lower(new)) => {
                gather_rows(a, old, numbers, new, indices, values);
            }
            (OffsetsRef::Wide(old), OffsetsRef::Wide(new)) => {
                gather_rows(a, old, numbers, new, indices, values);
            }
            _ => return Err(mixed_widths()),
        }
        Ok(())
    }

    fn colour(&self, graph: GraphParts<'_, Self>, colours: &mut [u32]) -> Result<()> {
        Error::check_dimension("number of colours", graph.vertices, colours.len())?;
        const NONE: u32 = u32::MAX;
        self.fill(NONE, colours)?;
        with_offsets!(graph.offsets, offsets => {
            // `used[c]` is the last vertex that has a neighbour of colour c.
            let mut used: Vec<u32> = Vec::new();
            for v in by_priority(graph.vertices)? {
                let at = v as usize;
                for &w in &graph.indices[offsets[at].to_usize()..offsets[at + 1].to_usize()] {
                    let taken = colours[w as usize];
                    if taken != NONE {
                        used[taken as usize] = v;
                    }
                }
                let free = used.iter().position(|&by| by != v).unwrap_or(used.len());
                if free == used.len() {
                    used.push(NONE);
                }
                colours[at] = free as u32;
            }
        });
        Ok(())
    }

    fn independent_set(&self, graph: GraphParts<'_, Self>, set: &mut [u32]) -> Result<()> {
        Error::check_dimension("length of the set", graph.vertices, set.len())?;
        self.fill(0, set)?;
        with_offsets!(graph.offsets, offsets => {
            for v in by_priority(graph.vertices)? {
                let v = v as usize;
                let line = &graph.indices[offsets[v].to_usize()..offsets[v + 1].to_usize()];
                set[v] = u32::from(line.iter().all(|&w| w as usize == v || set[w as usize] == 0));
            }
        });
        Ok(())
    }
}

/// Returns the vertices in the order of decreasing priority.
fn by_priority(vertices: usize) -> Result<Vec<u32>> {
    let mut order: Vec<u32> = Host.zeros(vertices)?;
    order.iter_mut().zip(0..).for_each(|(v, k)| *v = k);
    order.par_sort_unstable_by_key(|&v| std::cmp::Reverse(priority(v)));
    Ok(order)
}

fn mixed_widths() -> Error {
    Error::InvalidArgument("offsets of different widths".into())
}
