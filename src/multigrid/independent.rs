//! Independent sets at distance two: no two members are neighbours or have a neighbour in common.

use crate::backend::{CsrPattern, GroupingSteps};
use crate::error::Result;

/// On a symmetric graph a few rounds decide all. One that is not symmetric may have nodes that wait for each other:
/// those that are undecided then are left out.
const ROUNDS: u64 = 64;

/// Returns whether the host asks after this round if all nodes are decided. It waits for a device then; a round too
/// many takes less time than a wait and changes nothing, and most graphs take 8 to 12 rounds.
fn asked_after(round: u64) -> bool {
    round >= 4 && round.is_multiple_of(2)
}

/// The states of nodes, of which the members are a maximal set of `candidates`, whose flags are 1, at distance two
/// within the graph of candidates (Kelley and Rajamanickam, Parallel, portable algorithms for distance-2 maximal
/// independent set and graph coarsening, IPDPS 2022). In each round a node joins whose priority is the smallest among
/// all nodes two steps away. The rounds see each other's results only, so the set does not depend on the order of work.
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
