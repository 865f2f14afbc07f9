//! Independent sets at distance two: no two members are neighbours or have a neighbour in common.

use super::strength::Graph;
use crate::mixing::mixed;
use crate::parallel::prelude::*;

/// States of a node; what lies between is undecided, and tells the priority.
const MEMBER: u64 = 0;
const OUT: u64 = u64::MAX;

/// Stands for the smallest state beside a node that is no candidate: smaller than any priority.
const NOT_ASKED: u64 = 1;

/// On a symmetric graph a few rounds decide all. One that is not symmetric may have nodes that wait for each other:
/// those that are undecided then are left out.
const ROUNDS: u64 = 64;

/// Nodes that are worth another thread.
const AT_LEAST: usize = 1 << 11;

/// A priority of the round for a node, no two alike: bits that look random, then the node's number.
fn priority(node: usize, round: u64) -> u64 {
    let random = mixed(mixed(node as u64).wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    // 32 bits at most for the number; none of the constants.
    ((random >> 33) + 1) << 32 | node as u64
}

/// Marks a maximal set of `candidates` at distance two within the graph of candidates (Kelley and Rajamanickam, Parallel,
/// portable algorithms for distance-2 maximal independent set and graph coarsening, IPDPS 2022). In each round a node
/// joins whose priority is the smallest among all nodes two steps away. The rounds see each other's results only, so the
/// set does not depend on the number of threads.
pub(super) fn independent_at_distance_two(
    graph: &Graph,
    candidates: &(dyn Fn(usize) -> bool + Sync),
) -> Vec<bool> {
    let n = graph.nodes();
    let mut state = vec![OUT; n];
    state.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(node, state)| {
        if candidates(node) {
            *state = priority(node, 0);
        }
    });
    // The smallest state among a node and its neighbours; OUT where a member is among them, or nobody is undecided.
    let mut smallest = vec![MEMBER; n];
    for round in 1..=ROUNDS {
        smallest.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(node, smallest)| {
            if *smallest == OUT || *smallest == NOT_ASKED {
                return;
            }
            if !candidates(node) {
                *smallest = NOT_ASKED;
                return;
            }
            // States of those who are no candidates are OUT, the largest.
            let least = graph.of(node).iter().map(|&other| state[other as usize]).fold(state[node], u64::min);
            *smallest = if least == MEMBER { OUT } else { least };
        });
        let undecided =
            crate::parallel::Pieces::enumerate(state.par_chunks_mut(AT_LEAST)).map(|(chunk, state)| {
                let mut undecided = 0_usize;
                for (node, state) in (chunk * AT_LEAST..).zip(state) {
                    if *state == MEMBER || *state == OUT {
                        continue;
                    }
                    let (mut out, mut least) = (smallest[node] == OUT, smallest[node] == *state);
                    for &other in graph.of(node).iter().filter(|&&other| candidates(other as usize)) {
                        out |= smallest[other as usize] == OUT;
                        least &= smallest[other as usize] == *state;
                    }
                    *state = if out {
                        OUT
                    } else if least {
                        MEMBER
                    } else {
                        undecided += 1;
                        priority(node, round)
                    };
                }
                undecided
            });
        if undecided.reduce(|| 0, |a, b| a + b) == 0 {
            break;
        }
    }
    state.into_iter().map(|state| state == MEMBER).collect()
}
