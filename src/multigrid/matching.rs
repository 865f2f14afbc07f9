//! Blocks of strongly coupled unknowns by matching: pairs of strongest neighbours, then pairs of pairs.

use crate::backend::{Backend, CoarseningSteps, Conversions, NO_GROUP, Offsets, copied, offsets_up_to};
use crate::error::{Error, Result};
use crate::matrix::{Csr, multiply};
use crate::scalar::Scalar;

/// Passes of matching: each doubles the blocks, so that they have about 8 unknowns.
const PASSES: usize = 3;

/// Rounds of a pass. Nodes that remain afterwards look for a block to join.
const ROUNDS: u64 = 8;

/// Returns whether the host checks after this round if any pair was found. A check waits for the device, and most
/// graphs need all rounds, so checks are rare.
fn asked_after(round: u64) -> bool {
    round % 4 == 3 && round + 1 < ROUNDS
}

/// The number of times that remaining nodes look for a block to join.
const SWEEPS: usize = 2;

/// The block of each unknown of a matrix, numbered from 0, and the sizes of the blocks.
pub(super) struct Matched<B: Backend> {
    pub(super) block: B::Vec<u32>,
    pub(super) sizes: B::Vec<u32>,
}

/// A matrix, and the reciprocal square roots of its diagonal entries.
pub(super) type Scaled<'a, T, B> = (&'a Csr<T, B>, &'a <B as Backend>::Slice<f64>);

/// The blocks of each of several matrices. These are matched together as the diagonal blocks of one, because a device
/// would take longer to launch the many small steps than to do them on the small levels of a hierarchy.
pub(super) fn matched<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    matrices: &[Scaled<'_, T, B>],
) -> Result<Vec<Matched<B>>> {
    let (mut graph, rows) = side_by_side(backend, matrices)?;
    let n = graph.rows();
    let (mut blocks, mut sizes) = (backend.buffer(n)?, backend.buffer(n)?);
    backend.sequence::<u32>(&mut blocks)?;
    backend.fill(1_u32, &mut sizes)?;
    // The first node of each matrix, and the number of all.
    let mut starts = rows.clone();
    for pass in 0..PASSES {
        let pairs = pass_of_matching(backend, &graph, &sizes, &mut starts)?;
        let count = starts[matrices.len()];
        let mut of_pairs = backend.buffer(n)?;
        backend.gather::<u32, u32>(&pairs, &blocks, &mut of_pairs)?;
        blocks = of_pairs;
        let mut together = backend.buffer(count + 1)?;
        backend.group_sizes(&pairs, Some(&sizes), &mut together)?;
        sizes = together;
        if pass + 1 < PASSES {
            let of_nodes = membership(backend, &pairs, count)?;
            let to_nodes = of_nodes.transpose(backend)?;
            graph = multiply(backend, &to_nodes, &multiply(backend, &graph, &of_nodes)?)?;
        }
    }
    // Blocks of one matrix are numbered after those of the one before.
    let mut numbers = backend.buffer::<u32>(starts[matrices.len()])?;
    for blocks in starts.windows(2) {
        backend.sequence::<u32>(B::part_mut(&mut numbers, blocks[0]..blocks[1]))?;
    }
    let each = rows.windows(2).zip(starts.windows(2)).map(|(rows, of)| {
        let mut block = backend.buffer(rows[1] - rows[0])?;
        backend.gather::<u32, u32>(&numbers, B::part(&blocks, rows[0]..rows[1]), &mut block)?;
        Ok(Matched { block, sizes: copied(backend, B::part(&sizes, of[0]..of[1]))? })
    });
    each.collect()
}

/// |a_ij| / sqrt(a_ii a_jj) of several matrices as the diagonal blocks of one, and the first row of each.
fn side_by_side<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    matrices: &[Scaled<'_, T, B>],
) -> Result<(Csr<f32, B>, Vec<usize>)> {
    let (mut starts, mut entries) = (vec![0], 0);
    for (a, _) in matrices {
        starts.push(starts[starts.len() - 1] + a.rows());
        entries += a.nonzeros();
    }
    let n = starts[matrices.len()];
    if n > u32::MAX as usize {
        return Err(Error::Unsupported("blocks of levels that have 2^32 rows together".into()));
    }
    let (mut indices, mut weights) = (backend.buffer(entries)?, backend.buffer(entries)?);
    let mut numbers = backend.buffer::<u32>(n)?;
    backend.sequence::<u32>(&mut numbers)?;
    let (mut lengths, mut place) = (backend.zeros::<u32>(n + 1)?, 0);
    for ((a, scales), rows) in matrices.iter().zip(starts.windows(2)) {
        let (parts, here, rows) = (a.parts(), place..place + a.nonzeros(), rows[0]..rows[1]);
        backend.scaled_magnitudes(parts, scales, B::part_mut(&mut weights, here.clone()))?;
        let columns = B::part(&numbers, rows.clone());
        backend.gather::<u32, u32>(columns, parts.indices, B::part_mut(&mut indices, here.clone()))?;
        backend.row_lengths(parts.offsets, 0, u32::MAX as usize, B::part_mut(&mut lengths, rows))?;
        place = here.end;
    }
    let offsets = offsets_up_to(backend, &lengths, entries)?;
    Ok((Csr::from_parts_unchecked(n, n, offsets, indices, weights), starts))
}

/// A matrix with a one for each node, in the column of its group.
pub(super) fn membership<B: CoarseningSteps>(
    backend: &B,
    group: &B::Slice<u32>,
    count: usize,
) -> Result<Csr<f32, B>> {
    let n = B::len(group);
    let (mut offsets, mut indices) = (backend.buffer::<u32>(n + 1)?, backend.buffer(n)?);
    let mut ones = backend.buffer(n)?;
    backend.sequence::<u32>(&mut offsets)?;
    backend.copy(group, &mut indices)?;
    backend.fill(1.0_f32, &mut ones)?;
    Ok(Csr::from_parts_unchecked(n, count, Offsets::Lower(offsets), indices, ones))
}

/// Pairs nodes that prefer each other. A node without a partner joins the pair to which it is coupled most strongly,
/// unless that pair prefers another node; else it stays single. Pairs are numbered in the order of their first nodes.
/// `starts` of uncoupled ranges of nodes are replaced by those of their pairs.
fn pass_of_matching<B: CoarseningSteps>(
    backend: &B,
    graph: &Csr<f32, B>,
    sizes: &B::Slice<u32>,
    starts: &mut [usize],
) -> Result<B::Vec<u32>> {
    let (n, graph) = (graph.rows(), graph.parts());
    let (mut partner, mut best) = (backend.buffer(n)?, backend.buffer(n)?);
    backend.fill(NO_GROUP, &mut partner)?;
    let mut found = backend.zeros::<u32>(1)?;
    for round in 0..ROUNDS {
        backend.preferred_partners(graph, sizes, &partner, round, &mut best)?;
        if asked_after(round) {
            backend.fill(0, &mut found)?;
        }
        backend.agree(&best, &mut partner, &mut found)?;
        if asked_after(round) && backend.value(&found)? == 0 {
            break;
        }
    }
    // Until all nodes have a group, a pair is named by its first node.
    let mut group = best;
    backend.pair_groups(&partner, &mut group)?;
    let mut together = backend.buffer(n + 1)?;
    backend.group_sizes(&group, Some(sizes), &mut together)?;
    let mut choice = partner;
    let mut bids = backend.buffer::<u64>(n)?;
    for _ in 0..SWEEPS {
        let mut highest = backend.zeros::<u64>(n + 1)?;
        backend.bid_for_groups(graph, &group, sizes, &together, &mut bids, &mut choice, &mut highest)?;
        backend.accept_bids(&bids, &choice, &highest, sizes, &mut group, &mut together)?;
    }
    let (mut flags, mut places) = (together, backend.buffer::<u32>(n + 1)?);
    backend.lead_groups(&mut group, &mut flags)?;
    backend.exclusive_scan(&flags, &mut places)?;
    let at: Vec<_> = starts.iter().map(|&start| start..start + 1).collect();
    let mut read = vec![0; at.len()];
    backend.read_parts(&places, &at, &mut read)?;
    starts.iter_mut().zip(read).for_each(|(start, place)| *start = place as usize);
    let mut numbered = choice;
    backend.gather::<u32, u32>(&places, &group, &mut numbered)?;
    Ok(numbered)
}
