//! Independent sets at distance two: no two members are neighbours or have a neighbour in common.

use crate::backend::{CsrPattern, GroupingSteps};
use crate::error::Result;

/// On a symmetric graph a few rounds decide all nodes. If a graph is not symmetric, nodes may wait for each other
/// forever: those still undecided after this many rounds are left out.
const ROUNDS: u64 = 64;

/// Returns whether the host checks after this round if all nodes are decided. It must then wait for the device. A
/// superfluous round takes less time than a wait and changes nothing, and most graphs take 8 to 12 rounds.
fn asked_after(round: u64) -> bool {
    round >= 4 && round.is_multiple_of(2)
}

/// The states of nodes: members are a maximal independent set at distance two in the graph of `candidates` (those with
/// flag 1) (Kelley and Rajamanickam, Parallel, portable algorithms for distance-2 maximal independent set and graph
/// coarsening, IPDPS 2022). In each round a node joins if its priority is the smallest of all nodes at most two steps
/// away. A round uses only the result of the one before, so the set does not depend on the order of work.
pub(super) fn independent_at_distance_two<B: GroupingSteps>(
    backend: &B,
    graph: CsrPattern<'_, B>,
    candidates: &B::Slice<u32>,
) -> Result<B::Vec<u64>> {
    let (mut state, mut smallest) = (backend.buffer(graph.rows)?, backend.buffer(graph.rows)?);
    backend.independent_start(candidates, &mut state, &mut smallest)?;
    let mut undecided = backend.zeros::<u32>(1)?;
    for round in 1..=ROUNDS {
        backend.independent_least(graph, &state, &mut smallest)?;
        backend.independent_decide(graph, &smallest, round, &mut state, &mut undecided)?;
        if asked_after(round) && backend.value(&undecided)? == 0 {
            break;
        }
    }
    Ok(state)
}
