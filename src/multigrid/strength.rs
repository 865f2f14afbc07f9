//! Strong couplings, and the matrix without the weak ones.

use super::diagonal::ones;
use super::matching::membership;
use super::stiff::set_apart;
use crate::backend::{
    Backend, CoarseningSteps, Conversions, CsrPattern, Host, Offsets, VectorOps, copied, offsets_of,
};
use crate::error::Result;
use crate::matrix::{Csr, multiply};
use crate::scalar::Scalar;

/// The nodes of a mesh, if they have several unknowns each; with `None`, each unknown is a node.
#[derive(Debug)]
pub(super) struct Nodes<B: Backend>(pub(super) Option<NodeList<B>>);

/// Nodes of several unknowns.
#[derive(Debug)]
pub(super) struct NodeList<B: Backend> {
    /// The node of each unknown, ascending.
    pub(super) of: B::Vec<u32>,
    pub(super) count: usize,
}

impl<B: Backend> Default for Nodes<B> {
    fn default() -> Self {
        Self(None)
    }
}

impl<B: Backend> Nodes<B> {
    /// Nodes of `size` unknowns each; the last has the remaining ones.
    pub(super) fn of_size(backend: &B, unknowns: usize, size: usize) -> Result<Self> {
        if size <= 1 {
            return Ok(Self(None));
        }
        let of = backend.upload((0..unknowns).map(|unknown| (unknown / size) as u32).collect())?;
        Ok(Self(Some(NodeList { of, count: unknowns.div_ceil(size) })))
    }

    /// The number of nodes for this number of unknowns.
    pub(super) fn count(&self, unknowns: usize) -> usize {
        self.0.as_ref().map_or(unknowns, |nodes| nodes.count)
    }

    /// Bytes of its arrays.
    pub(super) fn storage_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |nodes| B::len(&nodes.of) * size_of::<u32>())
    }
}

/// Row offsets in 32 bits if they fit.
pub(super) fn packed(offsets: Vec<u64>) -> Offsets<Host> {
    Offsets::packed(offsets)
}

/// Squares of the Frobenius norms of the blocks of A between nodes, including diagonal blocks.
pub(super) fn squared_norms<T: Scalar, B: CoarseningSteps + Conversions + VectorOps>(
    backend: &B,
    a: &Csr<T, B>,
    nodes: &NodeList<B>,
) -> Result<Csr<T, B>> {
    let (mut conjugate, mut squares) =
        (copied(backend, a.parts().values)?, backend.buffer::<T>(a.nonzeros())?);
    if T::COMPLEX {
        backend.conjugate(&mut conjugate)?;
    }
    backend.multiply(a.parts().values, &conjugate, &mut squares)?;
    drop(conjugate);
    let members = membership(backend, &nodes.of, nodes.count)?.with_values(ones(backend, a.rows())?);
    let of_rows = multiply(backend, &a.with_values(squares), &members)?;
    multiply(backend, &members.transpose(backend)?, &of_rows)
}

/// The strong couplings between nodes, each with its magnitude relative to the largest of its row. The magnitude is
/// that of an entry, or the squared Frobenius norm of a block: `squares`, if nodes have several unknowns. `stiff` nodes
/// have none, but other nodes may have strong couplings to them.
pub(super) fn strong_couplings<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    squares: Option<&Csr<T, B>>,
    threshold: f64,
    stiff: Option<&B::Slice<u32>>,
) -> Result<Csr<f32, B>> {
    match squares {
        None => strong_among(backend, a, threshold, stiff),
        Some(squares) => strong_among(backend, squares, threshold * threshold, stiff),
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

/// I - omega D^-1 F for nodes of one unknown, where F is A without weak couplings and D has the row sums of its
/// magnitudes (so that no eigenvalue of D^-1 F exceeds 1). Weak couplings are added to the diagonal, so that F maps
/// constants to the same vector as A.
pub(super) fn damping<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    strong: CsrPattern<'_, B>,
    omega: f64,
) -> Result<Csr<T, B>> {
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
