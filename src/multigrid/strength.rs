//! Strong couplings, and the matrix without the weak ones.

use super::stiff::set_apart;
use crate::backend::{
    CoarseningSteps, Conversions, CsrPattern, Host, Offsets, OffsetsRef, offsets_of, with_offsets,
};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::parallel::rows::row_chunks;
use crate::scalar::{Offset, Scalar};
use num_traits::{One, Zero};

/// The unknowns of each node of a mesh: node k has those from `starts[k]` on. With `None`, each unknown is a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes(pub(super) Option<Vec<u32>>);

impl Nodes {
    /// Nodes of `size` unknowns each; the last has the remaining ones.
    pub(super) fn of_size(unknowns: usize, size: usize) -> Self {
        if size <= 1 {
            return Self(None);
        }
        Self(Some((0..unknowns).step_by(size).chain([unknowns]).map(|start| start as u32).collect()))
    }

    /// The number of nodes for this number of unknowns.
    pub(super) fn count(&self, unknowns: usize) -> usize {
        self.0.as_ref().map_or(unknowns, |starts| starts.len() - 1)
    }

    /// The first unknown of a node, or the end for the number of nodes.
    fn start(&self, node: usize) -> usize {
        self.0.as_ref().map_or(node, |starts| starts[node] as usize)
    }

    /// The unknowns of a node.
    pub(super) fn unknowns(&self, node: usize) -> std::ops::Range<usize> {
        self.start(node)..self.start(node + 1)
    }

    /// The node of each unknown; `None` if each unknown is a node.
    pub(super) fn of_each(&self) -> Option<Vec<u32>> {
        let starts = self.0.as_ref()?;
        let sizes = starts.windows(2).map(|w| (w[1] - w[0]) as usize).enumerate();
        Some(sizes.flat_map(|(node, size)| std::iter::repeat_n(node as u32, size)).collect())
    }
}

/// The start of each row of a host matrix.
pub(super) fn start_of<V: Scalar>(a: &Csr<V>) -> impl Fn(usize) -> usize + Sync + '_ {
    let offsets: OffsetsRef<'_, Host> = a.parts().offsets;
    move |row| with_offsets!(offsets, offsets => offsets[row].to_usize())
}

/// Row offsets in 32 bits if they fit.
pub(super) fn packed(offsets: Vec<u64>) -> Offsets<Host> {
    Offsets::packed(offsets)
}

/// Frobenius norms of the blocks of A between nodes, including diagonal blocks.
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
                met.extend(both(indices, entries).map(|(&j, v)| (node_of[j as usize], v.abs2())));
            }
            // A stable sort: squares of a block are added in the order of rows.
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

/// The strong couplings between nodes, each with its magnitude relative to the largest of its row. The magnitude is
/// that of an entry, or the Frobenius norm of a block. `stiff` nodes have none, but other nodes may have strong
/// couplings to them.
pub(super) fn strong_couplings<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    nodes: &Nodes,
    threshold: f64,
    stiff: Option<&B::Slice<u32>>,
) -> Result<Csr<f32, B>> {
    match nodes.of_each() {
        None => strong_among(backend, a, threshold, stiff),
        Some(node_of) => {
            let magnitudes = magnitudes(&a.to_host(backend)?, nodes, &node_of);
            strong_among(backend, &magnitudes.into_backend(backend)?, threshold, stiff)
        }
    }
}

/// The couplings with |a_ij| >= `threshold` min(largest of row i, largest of row j), off the diagonal. Because of the
/// minimum the graph is symmetric if the magnitudes are and no node is stiff.
fn strong_among<V: Scalar, B: CoarseningSteps>(
    backend: &B,
    magnitudes: &Csr<V, B>,
    threshold: f64,
    stiff: Option<&B::Slice<u32>>,
) -> Result<Csr<f32, B>> {
    let (n, threshold) = (magnitudes.rows(), V::Real::from_f64(threshold));
    let mut largest = backend.buffer(n)?;
    backend.largest_couplings(magnitudes.parts(), &mut largest)?;
    if let Some(stiff) = stiff {
        set_apart::<V, B>(backend, stiff, &mut largest)?;
    }
    let mut lengths = backend.buffer(n + 1)?;
    backend.strong_lengths(magnitudes.parts(), threshold, &largest, &mut lengths)?;
    let (offsets, entries) = offsets_of(backend, &lengths)?;
    let (mut neighbours, mut weights) = (backend.buffer(entries)?, backend.buffer(entries)?);
    let (from, to) = (magnitudes.parts(), offsets.as_ref());
    backend.strong_entries(from, threshold, &largest, to, &mut neighbours, &mut weights)?;
    Ok(Csr::from_parts_unchecked(n, n, offsets, neighbours, weights))
}

/// I - omega D^-1 F, where F is A without weak couplings and D has the row sums of its magnitudes (so that no
/// eigenvalue of D^-1 F exceeds 1). If each unknown is a node, weak couplings are added to the diagonal, so that F maps
/// constants to the same vector as A.
pub(super) fn damping<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    nodes: &Nodes,
    strong: CsrPattern<'_, B>,
    omega: f64,
) -> Result<Csr<T, B>> {
    if let Some(node_of) = nodes.of_each() {
        let strong = (strong.offsets.download(backend)?, backend.download(strong.indices)?);
        return damping_of_nodes(&a.to_host(backend)?, &node_of, &strong, omega).into_backend(backend);
    }
    let n = a.rows();
    let mut lengths = backend.zeros::<u32>(n + 1)?;
    backend.row_lengths(strong.offsets, 0, u32::MAX as usize, B::part_mut(&mut lengths, 0..n))?;
    backend.add_constant(1_u32, B::part_mut(&mut lengths, 0..n))?;
    let (offsets, entries) = offsets_of(backend, &lengths)?;
    let (mut indices, mut values) = (backend.buffer(entries)?, backend.buffer(entries)?);
    let omega = T::Real::from_f64(omega);
    backend.damped_entries(a.parts(), strong, omega, &mut indices, &mut values)?;
    Ok(Csr::from_parts_unchecked(n, n, offsets, indices, values))
}

/// `damping` for nodes of several unknowns, where `strong` has offsets and neighbours; nothing is added to the
/// diagonal.
fn damping_of_nodes<T: Scalar>(
    a: &Csr<T>,
    node_of: &[u32],
    (starts, neighbours): &(Vec<usize>, Vec<u32>),
    omega: f64,
) -> Csr<T> {
    let n = a.rows();
    let kept = |i: usize, j: u32| {
        let (this, other) = (node_of[i], node_of[j as usize]);
        let of_this = &neighbours[starts[this as usize]..starts[this as usize + 1]];
        j as usize != i && (other == this || of_this.binary_search(&other).is_ok())
    };
    let omega = T::Real::from_f64(omega);
    let rows = (0..n).into_par_iter().with_min_len(1 << 8).map(|i| {
        let (columns, entries) = a.row(i);
        let mut row: Vec<(u32, T)> = columns.iter().copied().zip(entries.iter().copied()).collect();
        let diagonal = row.iter().find(|entry| entry.0 as usize == i).map_or(T::zero(), |entry| entry.1);
        row.retain(|&(j, _)| kept(i, j));
        let place = row.partition_point(|entry| (entry.0 as usize) < i);
        row.insert(place, (i as u32, diagonal));
        let sum = row.iter().fold(T::Real::zero(), |sum, entry| sum + entry.1.abs());
        let scale = if sum > T::Real::zero() { -omega / sum } else { T::Real::zero() };
        row.iter_mut().for_each(|entry| entry.1 *= T::from_real(scale));
        row[place].1 += T::from_real(T::Real::one());
        row
    });
    let rows = rows.collect();
    let mut offsets = vec![0_u64];
    for row in &rows {
        offsets.push(offsets[offsets.len() - 1] + row.len() as u64);
    }
    let (indices, values) = rows.into_iter().flatten().unzip();
    Csr::from_parts_unchecked(n, n, packed(offsets), indices, values)
}
