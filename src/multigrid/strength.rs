//! Which couplings are strong, and the matrix without the others.

use crate::backend::{Host, NARROW_LIMIT, Offsets, OffsetsRef, with_offsets};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Real, Scalar};
use num_traits::{One, Zero};

/// A diagonal entry that lumping would leave smaller than this part of what it was stays as it was.
const SMALLEST_LUMPED: f64 = 0.3;

/// Unknowns of the nodes of a mesh: node k has those from `starts[k]` on. Without starts each unknown is a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes(pub(super) Option<Vec<u32>>);

impl Nodes {
    /// Nodes of `size` unknowns each; the last takes what is left.
    pub(super) fn of_size(unknowns: usize, size: usize) -> Self {
        if size <= 1 {
            return Self(None);
        }
        Self(Some((0..unknowns).step_by(size).chain([unknowns]).map(|start| start as u32).collect()))
    }

    /// How many there are among so many unknowns.
    pub(super) fn count(&self, unknowns: usize) -> usize {
        self.0.as_ref().map_or(unknowns, |starts| starts.len() - 1)
    }

    /// The first unknown of a node, or behind the last one.
    fn start(&self, node: usize) -> usize {
        self.0.as_ref().map_or(node, |starts| starts[node] as usize)
    }

    /// The unknowns of a node.
    pub(super) fn unknowns(&self, node: usize) -> std::ops::Range<usize> {
        self.start(node)..self.start(node + 1)
    }

    /// The node of each unknown; none where they are the same.
    fn of_each(&self) -> Option<Vec<u32>> {
        let starts = self.0.as_ref()?;
        let sizes = starts.windows(2).map(|w| (w[1] - w[0]) as usize).enumerate();
        Some(sizes.flat_map(|(node, size)| std::iter::repeat_n(node as u32, size)).collect())
    }
}

/// Strong couplings between nodes, each with its magnitude relative to the largest of its row; no node is its own
/// neighbour.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) offsets: Vec<usize>,
    pub(super) neighbours: Vec<u32>,
    pub(super) weights: Vec<f32>,
}

impl Graph {
    pub(super) fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn of(&self, node: usize) -> &[u32] {
        &self.neighbours[self.offsets[node]..self.offsets[node + 1]]
    }

    pub(super) fn weights_of(&self, node: usize) -> &[f32] {
        &self.weights[self.offsets[node]..self.offsets[node + 1]]
    }
}

/// Where a row of a host matrix starts.
pub(super) fn start_of<V: Scalar>(a: &Csr<V>) -> impl Fn(usize) -> usize + Sync + '_ {
    let offsets: OffsetsRef<'_, Host> = a.parts().offsets;
    move |row| with_offsets!(offsets, offsets => offsets[row].to_usize())
}

/// Row offsets of 32 bits where these count as far.
pub(super) fn packed(offsets: Vec<u64>) -> Offsets<Host> {
    if offsets.last().is_none_or(|&last| last <= NARROW_LIMIT as u64) {
        Offsets::Narrow(offsets.into_iter().map(|offset| offset as u32).collect())
    } else {
        Offsets::Wide(offsets)
    }
}

/// Frobenius norms of the blocks of A between nodes, the diagonal ones too.
fn magnitudes<T: Scalar>(a: &Csr<T>, nodes: &Nodes, node_of: &[u32]) -> Csr<T::Real> {
    let count = nodes.count(a.rows());
    let tasks = row_chunks(|node| start_of(a)(nodes.start(node)), count);
    let rows = tasks.into_par_iter().map(|task| {
        let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut met: Vec<(u32, T::Real)> = Vec::new();
        for node in task {
            met.clear();
            for unknown in nodes.unknowns(node) {
                let (indices, entries) = a.row(unknown);
                met.extend(indices.iter().zip(entries).map(|(&j, v)| (node_of[j as usize], v.abs2())));
            }
            // Stable: squares of a block are added in the order of rows.
            met.sort_by_key(|&(node, _)| node);
            let before = columns.len();
            for block in met.chunk_by(|a, b| a.0 == b.0) {
                columns.push(block[0].0);
                let sum = block.iter().fold(T::Real::zero(), |sum, &(_, square)| sum + square);
                values.push(num_traits::Float::sqrt(sum));
            }
            lengths.push(columns.len() - before);
        }
        (lengths, columns, values)
    });
    let (mut offsets, mut columns, mut values) = (vec![0_usize], Vec::new(), Vec::new());
    for (lengths, task_columns, task_values) in rows.collect() {
        for length in lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        columns.extend(task_columns);
        values.extend(task_values);
    }
    let offsets = offsets.into_iter().map(|offset| offset as u64).collect();
    Csr::from_parts_unchecked(count, count, packed(offsets), columns, values)
}

/// The strong couplings between nodes: their magnitudes are those of entries, or the Frobenius norms of blocks.
pub(super) fn strong_couplings<T: Scalar>(a: &Csr<T>, nodes: &Nodes, threshold: f64) -> Graph {
    match nodes.of_each() {
        None => strong_among(a, threshold),
        Some(node_of) => strong_among(&magnitudes(a, nodes, &node_of), threshold),
    }
}

/// The couplings with |a_ij| >= `threshold` min(largest of row i, largest of row j), diagonal entries apart: a coupling
/// is strong where it is to one of both, so that the graph is symmetric where the magnitudes are.
fn strong_among<V: Scalar>(magnitudes: &Csr<V>, threshold: f64) -> Graph {
    let n = magnitudes.rows();
    let mut largest = vec![V::Real::zero(); n];
    largest.par_iter_mut().enumerate().with_min_len(1 << 10).for_each(|(i, largest)| {
        let (columns, values) = magnitudes.row(i);
        for (&j, &value) in columns.iter().zip(values) {
            let value = value.abs();
            if j as usize != i && value > *largest {
                *largest = value;
            }
        }
    });
    let threshold = V::Real::from_f64(threshold);
    let is_strong = |i: usize, j: u32, value: V| {
        let value = value.abs();
        let other = largest[j as usize];
        let smaller = if other < largest[i] { other } else { largest[i] };
        j as usize != i && value > V::Real::zero() && value >= threshold * smaller
    };
    let chunks = row_chunks(start_of(magnitudes), n);
    let mut lengths = vec![0_usize; n];
    split_rows(&chunks, |row| row, &mut lengths).into_par_iter().for_each(|(rows, lengths)| {
        for (i, length) in rows.zip(lengths) {
            let (columns, values) = magnitudes.row(i);
            *length = columns.iter().zip(values).filter(|&(&j, &value)| is_strong(i, j, value)).count();
        }
    });
    let mut offsets = Vec::with_capacity(n + 1);
    let mut sum = 0;
    offsets.push(0);
    for length in lengths {
        sum += length;
        offsets.push(sum);
    }
    let (mut neighbours, mut weights) = (vec![0; sum], vec![0.0; sum]);
    let parts = split_rows(&chunks, |row| offsets[row], &mut neighbours);
    let parts = parts.into_par_iter().zip(split_rows(&chunks, |row| offsets[row], &mut weights));
    parts.for_each(|((rows, neighbours), (_, weights))| {
        let mut place = 0;
        for i in rows {
            let (columns, values) = magnitudes.row(i);
            for (&j, &value) in columns.iter().zip(values).filter(|&(&j, &value)| is_strong(i, j, value)) {
                neighbours[place] = j;
                weights[place] = (value.abs() / largest[i]).to_f64() as f32;
                place += 1;
            }
        }
    });
    Graph { offsets, neighbours, weights }
}

/// I - omega D^-1 F, where F is A without weak couplings and D the sums of magnitudes of its rows (so that no
/// eigenvalue of D^-1 F exceeds 1). Where each unknown is a node, what is left out is added to the diagonal, so that
/// constants stay what F takes to the same vector as A.
pub(super) fn damping<T: Scalar>(a: &Csr<T>, nodes: &Nodes, strong: &Graph, omega: f64) -> Csr<T> {
    let n = a.rows();
    let node_of = nodes.of_each();
    let node = |unknown: usize| node_of.as_ref().map_or(unknown as u32, |of| of[unknown]);
    // The diagonal entry is among them, stored or not.
    let length = |i: usize| match &node_of {
        None => strong.of(i).len() + 1,
        Some(of) => {
            let (this, columns) = (of[i], a.row(i).0);
            let kept = |j: u32| {
                let other = of[j as usize];
                j as usize != i && (other == this || strong.of(this as usize).binary_search(&other).is_ok())
            };
            columns.iter().filter(|&&j| kept(j)).count() + 1
        }
    };
    let mut offsets = vec![0_u64; n + 1];
    offsets[1..].par_iter_mut().enumerate().with_min_len(1 << 10).for_each(|(i, o)| *o = length(i) as u64);
    for i in 0..n {
        offsets[i + 1] += offsets[i];
    }
    let total = offsets[n] as usize;
    let (mut indices, mut values) = (vec![0; total], vec![T::zero(); total]);
    let chunks = row_chunks(start_of(a), n);
    let start = |row: usize| offsets[row] as usize;
    let parts = split_rows(&chunks, start, &mut indices);
    let parts = parts.into_par_iter().zip(split_rows(&chunks, start, &mut values));
    let omega = T::Real::from_f64(omega);
    parts.for_each(|((rows, mut indices), (_, mut values))| {
        for i in rows {
            let (columns, entries) = a.row(i);
            let (this, length) = (node(i), start(i + 1) - start(i));
            let neighbours = strong.of(this as usize);
            let (row_columns, rest) = std::mem::take(&mut indices).split_at_mut(length);
            indices = rest;
            let (row_values, rest) = std::mem::take(&mut values).split_at_mut(length);
            values = rest;
            let (mut place, mut diagonal_place, mut next) = (0, None, 0);
            let (mut diagonal, mut lumped) = (T::zero(), T::zero());
            for (&j, &value) in columns.iter().zip(entries) {
                if diagonal_place.is_none() && j as usize >= i {
                    diagonal_place = Some(place);
                    row_columns[place] = i as u32;
                    place += 1;
                }
                if j as usize == i {
                    diagonal = value;
                    continue;
                }
                let other = node(j as usize);
                while next < neighbours.len() && neighbours[next] < other {
                    next += 1;
                }
                if other == this || neighbours.get(next) == Some(&other) {
                    (row_columns[place], row_values[place]) = (j, value);
                    place += 1;
                } else {
                    lumped += value;
                }
            }
            let diagonal_place = diagonal_place.unwrap_or_else(|| {
                row_columns[place] = i as u32;
                place
            });
            if node_of.is_none() {
                let whole = diagonal + lumped;
                if whole.re() >= T::Real::from_f64(SMALLEST_LUMPED) * diagonal.re() {
                    diagonal = whole;
                }
            }
            row_values[diagonal_place] = diagonal;
            let sum = row_values.iter().fold(T::Real::zero(), |sum, value| sum + value.abs());
            let scale = if sum > T::Real::zero() { -omega / sum } else { T::Real::zero() };
            for value in row_values.iter_mut() {
                *value *= T::from_real(scale);
            }
            row_values[diagonal_place] += T::from_real(T::Real::one());
        }
    });
    Csr::from_parts_unchecked(n, n, packed(offsets), indices, values)
}
