//! Small blocks of strongly coupled unknowns, and their inverses.

use super::dense;
use super::strength::{Graph, packed, start_of};
use crate::error::Result;
use crate::matrix::Csr;
use crate::mixing::mixed;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Real, Scalar};
use num_traits::{Float, Zero};

/// Passes of matching: each doubles the blocks, so that they have about 8 unknowns.
const PASSES: usize = 3;

/// Rounds of a pass: who is left then looks for a block to join.
const ROUNDS: u64 = 8;

/// Those who are left join no block that would have more unknowns.
const MOST: u32 = 12;

/// |a_ij| / sqrt(a_ii a_jj) of a coupling that wants a block.
const STRONG: f64 = 0.5001;

/// Rows with such a coupling, as a part of all, from which on blocks pay: measured on meshes, grids and a power grid.
const MANY: f64 = 0.05;

/// Nodes that are worth another thread.
const AT_LEAST: usize = 1 << 10;

/// In no block yet.
const FREE: u32 = u32::MAX;

/// The block of each unknown, blocks numbered from 0 on, and their number: pairs of strongest neighbours, then pairs of
/// pairs. `graph` has |a_ij| / sqrt(a_ii a_jj) as weights.
fn matched(mut graph: Graph) -> (Vec<u32>, usize) {
    let mut blocks: Vec<u32> = (0..graph.nodes() as u32).collect();
    let mut sizes = vec![1_u32; graph.nodes()];
    for pass in 0..PASSES {
        let (pairs, count) = pass_of_matching(&graph, &sizes);
        blocks.par_iter_mut().with_min_len(AT_LEAST).for_each(|block| *block = pairs[*block as usize]);
        let mut together = vec![0; count];
        for (&pair, size) in pairs.iter().zip(sizes) {
            together[pair as usize] += size;
        }
        sizes = together;
        if pass + 1 < PASSES {
            graph = contracted(&graph, &pairs, count);
        }
    }
    let count = sizes.len();
    (blocks, count)
}

/// How good a partner over an edge is: weights in steps of powers of two, so that chains of slowly growing weights do
/// not wait for their end, then bits that look random, the same seen from both ends.
fn preference(weight: f32, i: u32, j: u32, round: u64) -> u64 {
    let (low, high) = (u64::from(i.min(j)), u64::from(i.max(j)));
    let random = mixed((low << 32 | high) ^ mixed(round));
    // The exponent of a weight that is positive.
    u64::from(weight.to_bits() >> 23) << 48 | random >> 16
}

/// Pairs of nodes that prefer each other; who finds none joins the pair to which it is coupled most strongly, or stays
/// alone.
fn pass_of_matching(graph: &Graph, sizes: &[u32]) -> (Vec<u32>, usize) {
    let n = graph.nodes();
    let mut mate = vec![FREE; n];
    let mut best = vec![FREE; n];
    for round in 0..ROUNDS {
        best.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(i, best)| {
            *best = FREE;
            if mate[i] != FREE {
                return;
            }
            let mut most = 0;
            for (&j, &weight) in graph.of(i).iter().zip(graph.weights_of(i)) {
                let fits = sizes[i] + sizes[j as usize] <= MOST;
                let preference = preference(weight, i as u32, j, round);
                if mate[j as usize] == FREE && weight > 0.0 && fits && preference > most {
                    (most, *best) = (preference, j);
                }
            }
        });
        let found = crate::parallel::Pieces::enumerate(mate.par_chunks_mut(AT_LEAST)).map(|(chunk, mate)| {
            let mut found = false;
            for (i, mate) in (chunk * AT_LEAST..).zip(mate) {
                let other = best[i];
                if other != FREE && best[other as usize] == i as u32 {
                    *mate = other;
                    found = true;
                }
            }
            found
        });
        if !found.reduce(|| false, |a, b| a | b) {
            break;
        }
    }
    let (mut pair, mut count, mut together) = (vec![FREE; n], 0_u32, Vec::new());
    for i in 0..n {
        let other = mate[i];
        if other != FREE && i < other as usize {
            (pair[i], pair[other as usize]) = (count, count);
            together.push(sizes[i] + sizes[other as usize]);
            count += 1;
        }
    }
    let before = pair.clone();
    for i in (0..n).filter(|&i| before[i] == FREE) {
        let (mut most, mut strongest) = (0.0, FREE);
        for (&j, &weight) in graph.of(i).iter().zip(graph.weights_of(i)) {
            let to = before[j as usize];
            if to != FREE && weight > most && together[to as usize] + sizes[i] <= MOST {
                (most, strongest) = (weight, to);
            }
        }
        if strongest == FREE {
            strongest = count;
            together.push(0);
            count += 1;
        }
        together[strongest as usize] += sizes[i];
        pair[i] = strongest;
    }
    (pair, count as usize)
}

/// The graph between groups of nodes: weights between two groups are added up.
fn contracted(graph: &Graph, group: &[u32], count: usize) -> Graph {
    let (starts, members) = super::tentative::by_group(group, count);
    let chunks = row_chunks(|group| starts[group], count);
    let tasks = chunks.into_par_iter().map(|groups| {
        let (mut lengths, mut neighbours, mut weights) = (Vec::new(), Vec::new(), Vec::<f32>::new());
        let mut met: Vec<(u32, f32)> = Vec::new();
        for this in groups {
            met.clear();
            for &node in &members[starts[this]..starts[this + 1]] {
                let node = node as usize;
                let others = graph.of(node).iter().map(|&other| group[other as usize]);
                let outside = others.zip(graph.weights_of(node)).filter(|(other, _)| *other as usize != this);
                met.extend(outside.map(|(other, &weight)| (other, weight)));
            }
            // Stable: weights are added in the order of nodes.
            met.sort_by_key(|&(other, _)| other);
            let before = neighbours.len();
            for same in met.chunk_by(|a, b| a.0 == b.0) {
                neighbours.push(same[0].0);
                weights.push(same.iter().map(|&(_, weight)| weight).sum());
            }
            lengths.push(neighbours.len() - before);
        }
        (lengths, neighbours, weights)
    });
    let (mut offsets, mut neighbours, mut weights) = (vec![0], Vec::new(), Vec::new());
    for (task_lengths, task_neighbours, task_weights) in tasks.collect() {
        for length in task_lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        neighbours.extend(task_neighbours);
        weights.extend(task_weights);
    }
    Graph { offsets, neighbours, weights }
}

/// Reciprocals of the roots of the diagonal; zero where an entry is not positive.
fn scales<T: Scalar>(a: &Csr<T>) -> Vec<f64> {
    a.diagonal()
        .into_iter()
        .map(|d| if d.re() > T::Real::zero() { d.re().to_f64().sqrt().recip() } else { 0.0 })
        .collect()
}

/// |a_ij| / sqrt(a_ii a_jj) between different unknowns.
fn coupling_graph<T: Scalar>(a: &Csr<T>, scales: &[f64]) -> Graph {
    let n = a.rows();
    let start = start_of(a);
    let has_diagonal = |i: usize| a.row(i).0.binary_search(&(i as u32)).is_ok();
    let mut offsets = vec![0_usize; n + 1];
    offsets[1..].par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(i, length)| {
        *length = start(i + 1) - start(i) - usize::from(has_diagonal(i));
    });
    for i in 0..n {
        offsets[i + 1] += offsets[i];
    }
    let (mut neighbours, mut weights) = (vec![0; offsets[n]], vec![0.0; offsets[n]]);
    let chunks = row_chunks(&start, n);
    let parts = split_rows(&chunks, |row| offsets[row], &mut neighbours);
    let parts = parts.into_par_iter().zip(split_rows(&chunks, |row| offsets[row], &mut weights));
    parts.for_each(|((rows, neighbours), (_, weights))| {
        let mut place = 0;
        for i in rows {
            let (columns, values) = a.row(i);
            for (&j, value) in columns.iter().zip(values).filter(|(j, _)| **j as usize != i) {
                neighbours[place] = j;
                weights[place] = (value.abs().to_f64() * scales[i] * scales[j as usize]) as f32;
                place += 1;
            }
        }
    });
    Graph { offsets, neighbours, weights }
}

/// The inverses of blocks of about 8 strongly coupled unknowns, each with the sums of the magnitudes of what is outside
/// added to its diagonal (in units in which A's diagonal is one): so no eigenvalue of this matrix times A exceeds 1
/// (Baker, Falgout, Kolev and Yang, Multigrid smoothers for ultraparallel computing, SIAM Journal on Scientific
/// Computing 33, 2011).
pub(super) fn block_inverses<T: Scalar>(a: &Csr<T>) -> Result<Csr<T>> {
    let n = a.rows();
    let scales = scales(a);
    let (block, count) = matched(coupling_graph(a, &scales));
    let (starts, members) = super::tentative::by_group(&block, count);
    let mut offsets = vec![0_u64; n + 1];
    for i in 0..n {
        let block = block[i] as usize;
        offsets[i + 1] = offsets[i] + (starts[block + 1] - starts[block]) as u64;
    }
    let inverses = (0..count).into_par_iter().with_min_len(256).map(|this| {
        let members = &members[starts[this]..starts[this + 1]];
        let size = members.len();
        let mut dense = vec![T::zero(); size * size];
        for (row, &i) in members.iter().enumerate() {
            let (columns, values) = a.row(i as usize);
            let mut outside = 0.0;
            for (&j, &value) in columns.iter().zip(values) {
                if block[j as usize] as usize == this {
                    let column = members.partition_point(|&member| member < j);
                    dense[row * size + column] = value;
                } else {
                    outside += value.abs().to_f64() * scales[j as usize];
                }
            }
            if scales[i as usize] > 0.0 {
                dense[row * size + row] += T::from_f64(outside / scales[i as usize]);
            }
        }
        dense::inverse_of(&mut dense, size)
    });
    let inverses = inverses.collect();
    let total = offsets[n] as usize;
    let (mut indices, mut values) = (vec![0_u32; total], vec![T::zero(); total]);
    for (this, inverse) in inverses.into_iter().enumerate() {
        let inverse = inverse?;
        let members = &members[starts[this]..starts[this + 1]];
        for (&i, row) in members.iter().zip(inverse.chunks_exact(members.len())) {
            let place = offsets[i as usize] as usize..offsets[i as usize + 1] as usize;
            indices[place.clone()].copy_from_slice(members);
            values[place].copy_from_slice(row);
        }
    }
    Ok(Csr::from_parts_unchecked(n, n, packed(offsets), indices, values))
}

/// Reciprocals of the sums of the magnitudes of rows, in units in which A's diagonal is one: no eigenvalue of this
/// diagonal matrix times A exceeds 1.
pub(super) fn reciprocals_of_sums<T: Scalar>(a: &Csr<T>) -> Vec<T::Real> {
    let scales = scales(a);
    let mut reciprocals = vec![T::Real::zero(); a.rows()];
    reciprocals.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(i, reciprocal)| {
        let (columns, values) = a.row(i);
        let sum: f64 =
            columns.iter().zip(values).map(|(&j, value)| value.abs().to_f64() * scales[j as usize]).sum();
        let inverse = T::Real::from_f64(scales[i] / sum);
        *reciprocal = if Float::is_finite(inverse) { inverse } else { T::Real::zero() };
    });
    reciprocals
}

/// Whether blocks pay: many unknowns are coupled to another so strongly that scaling each by itself hardly damps what
/// is common to both.
pub(super) fn wanted<T: Scalar>(a: &Csr<T>) -> bool {
    let scales = scales(a);
    let strong = (0..a.rows()).into_par_iter().with_min_len(AT_LEAST).map(|i| {
        let (columns, values) = a.row(i);
        let mut entries = columns.iter().zip(values).filter(|(j, _)| **j as usize != i);
        usize::from(entries.any(|(&j, value)| value.abs().to_f64() * scales[i] * scales[j as usize] > STRONG))
    });
    strong.reduce(|| 0, |a, b| a + b) as f64 > MANY * a.rows() as f64
}
