//! Steps that divide the nodes of a graph into groups, on the CPU.

use super::Host;
use super::coarsen::{AT_LEAST, Entries, each};
use super::sparse::Rows;
use crate::backend::{
    ALIKE, CsrParts, CsrPattern, GroupingSteps, MOST_OF_BLOCK, NO_GROUP, NodeState, independent_priority,
};
use crate::error::Result;
use crate::mixing::mixed;
use crate::parallel::prelude::*;

/// Sets the flag of each node. The last element belongs to no node and becomes 0.
fn flag(flags: &mut [u32], set: impl Fn(usize) -> bool + Sync) {
    let n = flags.len() - 1;
    each(&mut flags[..n], |i, flag| *flag = u32::from(set(i)));
    flags[n] = 0;
}

/// Counts the nodes for which `counts` is true, in parallel.
fn count(n: usize, counts: impl Fn(usize) -> bool + Sync) -> u32 {
    let tasks = (0..n).into_par_iter().with_min_len(AT_LEAST).map(|i| u32::from(counts(i)));
    tasks.reduce(|| 0, |a, b| a + b)
}

impl GroupingSteps for Host {
    fn ungrouped(&self, graph: CsrPattern<'_, Self>, group: &[u32], flags: &mut [u32]) -> Result<()> {
        let graph = Rows::of(graph);
        flag(flags, |i| group[i] == NO_GROUP && !graph.columns(i).is_empty());
        Ok(())
    }

    fn independent_start(&self, flags: &[u32], state: &mut [u64], smallest: &mut [u64]) -> Result<()> {
        each(state, |i, state| {
            *state = if flags[i] == 1 { independent_priority(i, 0) } else { NodeState::OUT };
        });
        each(smallest, |i, smallest| {
            *smallest = if flags[i] == 1 { NodeState::MEMBER } else { NodeState::NOT_ASKED };
        });
        Ok(())
    }

    fn independent_least(
        &self,
        graph: CsrPattern<'_, Self>,
        state: &[u64],
        smallest: &mut [u64],
    ) -> Result<()> {
        let graph = Rows::of(graph);
        each(smallest, |i, smallest| {
            if *smallest == NodeState::OUT || *smallest == NodeState::NOT_ASKED {
                return;
            }
            // Nodes that are not candidates have the state OUT, which is larger than all others.
            let beside = graph.columns(i).iter().map(|&other| state[other as usize]);
            let least = beside.fold(state[i], u64::min);
            *smallest = if least == NodeState::MEMBER { NodeState::OUT } else { least };
        });
        Ok(())
    }

    fn independent_decide(
        &self,
        graph: CsrPattern<'_, Self>,
        smallest: &[u64],
        round: u64,
        state: &mut [u64],
        undecided: &mut [u32],
    ) -> Result<()> {
        let graph = Rows::of(graph);
        let decided = |own: u64| own == NodeState::MEMBER || own == NodeState::OUT;
        each(state, |i, state| {
            let own = *state;
            if decided(own) {
                return;
            }
            // Only candidates are compared with their neighbours.
            let (mut out, mut least) = (smallest[i] == NodeState::OUT, smallest[i] == own);
            for &other in graph.columns(i) {
                let smallest = smallest[other as usize];
                out |= smallest == NodeState::OUT;
                least &= smallest == own || smallest == NodeState::NOT_ASKED;
            }
            *state = match (out, least) {
                (true, _) => NodeState::OUT,
                (false, true) => NodeState::MEMBER,
                (false, false) => independent_priority(i, round),
            };
        });
        undecided[0] = count(state.len(), |i| !decided(state[i]));
        Ok(())
    }

    fn group_roots(
        &self,
        graph: CsrPattern<'_, Self>,
        group: &[u32],
        state: &[u64],
        least: u32,
        flags: &mut [u32],
    ) -> Result<()> {
        let graph = Rows::of(graph);
        flag(flags, |i| {
            let free = || graph.columns(i).iter().filter(|&&other| group[other as usize] == NO_GROUP).count();
            state[i] == NodeState::MEMBER && free() >= least as usize
        });
        Ok(())
    }

    fn gather_groups(
        &self,
        graph: CsrPattern<'_, Self>,
        flags: &[u32],
        places: &[u32],
        first: u32,
        group: &mut [u32],
    ) -> Result<()> {
        let graph = Rows::of(graph);
        each(group, |i, group| {
            if flags[i] == 1 {
                *group = first + places[i];
            } else if *group == NO_GROUP {
                let root = graph.columns(i).iter().find(|&&other| flags[other as usize] == 1);
                *group = root.map_or(NO_GROUP, |&root| first + places[root as usize]);
            }
        });
        Ok(())
    }

    fn group_sizes(&self, group: &[u32], weights: Option<&[u32]>, sizes: &mut [u32]) -> Result<()> {
        sizes.fill(0);
        let groups = sizes.len() - 1;
        for (i, &group) in group.iter().enumerate().filter(|(_, group)| **group != NO_GROUP) {
            let weight = weights.map_or(1, |weights| weights[i]);
            sizes[group as usize] += weight;
            sizes[groups] += weight;
        }
        Ok(())
    }

    fn join_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        before: &[u32],
        sizes: &[u32],
        group: &mut [u32],
    ) -> Result<()> {
        let graph = Entries::of(graph);
        let (&members, sizes) = sizes.split_last().expect("the sum lies behind the sizes");
        let most = (2 * u64::from(members)).div_ceil(sizes.len().max(1) as u64) as u32;
        each(group, |i, group| {
            if *group != NO_GROUP {
                return;
            }
            let grouped = graph.others(i).map(|(j, weight)| (before[j], weight));
            let mut grouped = grouped.filter(|(group, _)| *group != NO_GROUP).enumerate();
            let all = grouped.clone();
            let (mut best, mut best_weight, mut best_full) = (NO_GROUP, 0.0_f32, true);
            let mut consider = |(place, (candidate, _)): (usize, (u32, f32))| {
                if all.clone().take(place).any(|(_, (other, _))| other == candidate) {
                    return;
                }
                let own = all.clone().filter(|(_, (other, _))| *other == candidate);
                let weight: f32 = own.map(|(_, (_, weight))| weight).sum();
                let size = sizes[candidate as usize];
                let full = size >= most;
                let better = best == NO_GROUP
                    || (best_full && !full)
                    || (best_full == full
                        && (weight > best_weight * (1.0 + ALIKE)
                            || (weight >= best_weight * (1.0 - ALIKE) && size < sizes[best as usize])));
                if better {
                    (best, best_weight, best_full) = (candidate, weight, full);
                }
            };
            grouped.by_ref().for_each(&mut consider);
            *group = best;
        });
        Ok(())
    }

    fn preferred_partners(
        &self,
        graph: CsrParts<'_, f32, Self>,
        sizes: &[u32],
        partner: &[u32],
        round: u64,
        best: &mut [u32],
    ) -> Result<()> {
        let graph = Entries::of(graph);
        let of_round = mixed(round);
        each(best, |i, best| {
            *best = NO_GROUP;
            if partner[i] != NO_GROUP {
                return;
            }
            let mut most = 0;
            for (j, weight) in graph.others(i) {
                let fits = sizes[i] + sizes[j] <= MOST_OF_BLOCK;
                if partner[j] != NO_GROUP || weight <= 0.0 || !fits {
                    continue;
                }
                // The exponent of a positive weight. Random bits decide between weights with the same exponent.
                let exponent = u64::from(weight.to_bits() >> 23);
                if exponent < most >> 48 {
                    continue;
                }
                let (low, high) = (i.min(j) as u64, i.max(j) as u64);
                let random = mixed((low << 32 | high) ^ of_round);
                let preference = exponent << 48 | random >> 16;
                if preference > most {
                    (most, *best) = (preference, j as u32);
                }
            }
        });
        Ok(())
    }

    fn agree(&self, best: &[u32], partner: &mut [u32], found: &mut [u32]) -> Result<()> {
        let agrees = |i: usize| best[i] != NO_GROUP && best[best[i] as usize] == i as u32;
        each(partner, |i, partner| {
            if agrees(i) {
                *partner = best[i];
            }
        });
        found[0] += count(best.len(), agrees);
        Ok(())
    }

    fn pair_groups(&self, partner: &[u32], group: &mut [u32]) -> Result<()> {
        each(group, |i, group| {
            *group = if partner[i] == NO_GROUP { NO_GROUP } else { partner[i].min(i as u32) };
        });
        Ok(())
    }

    fn lead_groups(&self, group: &mut [u32], flags: &mut [u32]) -> Result<()> {
        each(group, |i, group| {
            if *group == NO_GROUP {
                *group = i as u32;
            }
        });
        flag(flags, |i| group[i] as usize == i);
        Ok(())
    }

    fn bid_for_groups(
        &self,
        graph: CsrParts<'_, f32, Self>,
        group: &[u32],
        weights: &[u32],
        sizes: &[u32],
        bids: &mut [u64],
        choice: &mut [u32],
        highest: &mut [u64],
    ) -> Result<()> {
        let graph = Entries::of(graph);
        let chosen = |i: usize| {
            let (mut best, mut most) = (NO_GROUP, 0.0_f32);
            for (j, weight) in graph.others(i) {
                let to = group[j];
                if to != NO_GROUP && weight > most && sizes[to as usize] + weights[i] <= MOST_OF_BLOCK {
                    (best, most) = (to, weight);
                }
            }
            (best, most)
        };
        bids.par_iter_mut().zip(choice.par_iter_mut()).enumerate().with_min_len(AT_LEAST).for_each(
            |(i, (bid, choice))| {
                let (best, most) = if group[i] == NO_GROUP { chosen(i) } else { (NO_GROUP, 0.0) };
                *choice = best;
                let number = u64::from(u32::MAX - i as u32);
                *bid = if best == NO_GROUP { 0 } else { u64::from(most.to_bits()) << 32 | number };
            },
        );
        for (&bid, &choice) in bids.iter().zip(&*choice).filter(|(_, choice)| **choice != NO_GROUP) {
            let highest = &mut highest[choice as usize];
            *highest = (*highest).max(bid);
        }
        Ok(())
    }

    fn accept_bids(
        &self,
        bids: &[u64],
        choice: &[u32],
        highest: &[u64],
        weights: &[u32],
        group: &mut [u32],
        sizes: &mut [u32],
    ) -> Result<()> {
        for (i, &choice) in choice.iter().enumerate().filter(|(_, choice)| **choice != NO_GROUP) {
            if highest[choice as usize] == bids[i] {
                group[i] = choice;
                sizes[choice as usize] += weights[i];
            }
        }
        Ok(())
    }

    fn group_flags(&self, group: &[u32], grouped: bool, flags: &mut [u32]) -> Result<()> {
        flag(flags, |i| (group[i] != NO_GROUP) == grouped);
        Ok(())
    }

    fn number_groups(&self, flags: &[u32], places: &[u32], first: u32, group: &mut [u32]) -> Result<()> {
        each(group, |i, group| {
            if flags[i] == 1 {
                *group = first + places[i];
            }
        });
        Ok(())
    }
}
