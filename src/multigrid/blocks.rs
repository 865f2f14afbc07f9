//! Small blocks of strongly coupled unknowns, and their inverses.

use super::MultigridBackend;
use crate::backend::{
    Backend, CoarseningSteps, Conversions, CsrPattern, Host, NO_GROUP, Offsets, RowFacts, VectorOps,
    offsets_of,
};
use crate::error::Result;
use crate::matrix::{Csr, add, multiply};
use crate::random::Random;
use crate::scalar::{Real, Scalar};
use num_traits::{Float, Zero};

/// Passes of matching: each doubles the blocks, so that they have about 8 unknowns.
const PASSES: usize = 3;

/// Rounds of a pass: who is left then looks for a block to join.
const ROUNDS: u64 = 8;

/// Whether the host asks after this round if it has found a pair. It waits for a device then, and most graphs take all
/// rounds.
fn asked_after(round: u64) -> bool {
    round % 4 == 3 && round + 1 < ROUNDS
}

/// How often those who are left look for one.
const SWEEPS: usize = 2;

/// |a_ij| / sqrt(a_ii a_jj) of a coupling that wants a block.
const STRONG: f64 = 0.5001;

/// Rows with such a coupling, as a part of all, from which on blocks pay: measured on meshes, grids and a power grid.
const MANY: f64 = 0.05;

/// The part of A's diagonal that is added to blocks before they are inverted: blocks of flat elements are nearly
/// singular, and have no usable inverse in single precision without it.
const ADDED: f64 = 0.02;

/// Steps of the power method for the largest eigenvalue, and what its result, which is a lower bound, is multiplied by.
const POWERS: usize = 12;
const ABOVE: f64 = 1.2;

/// Different entries of the vector that the power method starts from.
const STARTS: usize = 1 << 12;

/// What the smoothing of a matrix is scaled by, before it is known whether blocks pay.
pub(super) struct Scales<T: Scalar, B: Backend> {
    /// 1 / sqrt(a_ii), 0 where that is not positive.
    pub(super) of_diagonal: B::Vec<f64>,
    /// Reciprocals of the sums of the magnitudes of rows, in units in which A's diagonal is one: no eigenvalue of this
    /// diagonal matrix times A exceeds 1.
    pub(super) of_sums: B::Vec<T::Real>,
    /// Whether blocks pay: many unknowns are coupled to another so strongly that scaling each by itself hardly damps
    /// what is common to both.
    pub(super) blocks_pay: bool,
}

impl<T: Scalar, B: CoarseningSteps + Conversions> Scales<T, B> {
    pub(super) fn new(backend: &B, a: &Csr<T, B>) -> Result<Self> {
        let n = a.rows();
        let (mut of_diagonal, mut of_sums) = (backend.buffer(n)?, backend.buffer(n)?);
        backend.diagonal_scales(a.parts(), &mut of_diagonal)?;
        let mut strong = backend.zeros::<u32>(1)?;
        backend.scaled_sums(a.parts(), &of_diagonal, STRONG, &mut of_sums, &mut strong)?;
        let blocks_pay = f64::from(backend.value(&strong)?) > MANY * n as f64;
        Ok(Self { of_diagonal, of_sums, blocks_pay })
    }

    /// New sums for new values of A.
    pub(super) fn sums_again(backend: &B, a: &Csr<T, B>, sums: &mut B::Slice<T::Real>) -> Result<()> {
        let mut of_diagonal = backend.buffer(a.rows())?;
        backend.diagonal_scales(a.parts(), &mut of_diagonal)?;
        let mut strong = backend.zeros::<u32>(1)?;
        backend.scaled_sums(a.parts(), &of_diagonal, STRONG, sums, &mut strong)
    }

    /// Blocks of about 8 strongly coupled unknowns, whose inverses are still to come.
    pub(super) fn blocks(&self, backend: &B, a: &Csr<T, B>) -> Result<Blocks<T, B>> {
        let n = a.rows();
        let parts = a.parts();
        let (mut indices, mut weights) = (backend.buffer(a.nonzeros())?, backend.buffer(a.nonzeros())?);
        backend.copy(parts.indices, &mut indices)?;
        backend.scaled_magnitudes(parts, &self.of_diagonal, &mut weights)?;
        let offsets = parts.offsets.copied(backend)?;
        let (block, sizes) = matched(backend, Csr::from_parts_unchecked(n, n, offsets, indices, weights))?;
        let (starts, members, _) =
            membership(backend, &block, B::len(&sizes))?.transpose(backend)?.into_arrays();
        let mut lengths = backend.zeros::<u32>(n + 1)?;
        backend.gather(&sizes, &block, B::part_mut(&mut lengths, 0..n))?;
        let (offsets, entries) = offsets_of(backend, &lengths)?;
        let (indices, values) = (backend.buffer(entries)?, backend.buffer(entries)?);
        let inverses = Csr::from_parts_unchecked(n, n, offsets, indices, values);
        Ok(Blocks { inverses, starts, members })
    }

    /// The inverses of these blocks, each with the sums of the magnitudes of what is
    /// outside added to its diagonal (in units in which A's diagonal is one): so no eigenvalue of this matrix times A
    /// exceeds 1 (Baker, Falgout, Kolev and Yang, Multigrid smoothers for ultraparallel computing, SIAM Journal on
    /// Scientific Computing 33, 2011).
    pub(super) fn block_inverses(&self, backend: &B, a: &Csr<T, B>) -> Result<Blocks<T, B>> {
        let mut blocks = self.blocks(backend, a)?;
        blocks.invert(backend, a, &self.of_diagonal)?;
        Ok(blocks)
    }
}

/// A with [`ADDED`] of its diagonal added to it; none where the diagonal is not positive.
fn with_more_diagonal<T: Scalar, B: CoarseningSteps + RowFacts>(
    backend: &B,
    a: &Csr<T, B>,
) -> Result<Option<Csr<T, B>>> {
    let n = a.rows();
    let (mut reciprocals, mut rounded) = (backend.buffer::<T::Real>(n)?, backend.buffer::<f32>(0)?);
    let mut found = backend.buffer::<u32>(3)?;
    backend.csr_inverse_diagonal::<T, T>(a.parts(), &mut reciprocals, &mut rounded, &mut found)?;
    if backend.value(B::part(&found, 0..1))? != u32::MAX {
        return Ok(None);
    }
    let (mut offsets, mut indices) = (backend.buffer::<u32>(n + 1)?, backend.buffer::<u32>(n)?);
    let mut values = backend.buffer(n)?;
    backend.sequence::<u32>(&mut offsets)?;
    backend.sequence::<u32>(&mut indices)?;
    backend.fill(T::from_f64(ADDED), &mut values)?;
    backend.divide_by_column(&indices, &reciprocals, &mut values)?;
    let more = Csr::from_parts_unchecked(n, n, Offsets::Narrow(offsets), indices, values);
    add(backend, T::one(), a, T::one(), &more).map(Some)
}

/// Blocks of unknowns, and their inverses as a matrix.
#[derive(Debug)]
pub(super) struct Blocks<T: Scalar, B: Backend> {
    pub(super) inverses: Csr<T, B>,
    /// The unknowns of each block, in compressed rows.
    starts: Offsets<B>,
    members: B::Vec<u32>,
}

impl<T: Scalar, B: CoarseningSteps + Conversions> Blocks<T, B> {
    /// The inverses for values of A, of which [`Scales::block_inverses`] tells.
    pub(super) fn renew_bounded(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        let mut scales = backend.buffer(a.rows())?;
        backend.diagonal_scales(a.parts(), &mut scales)?;
        self.invert(backend, a, &scales)
    }

    fn invert(&mut self, backend: &B, a: &Csr<T, B>, scales: &B::Slice<f64>) -> Result<()> {
        let n = a.rows();
        let members = CsrPattern {
            rows: self.starts.as_ref().len() - 1,
            columns: n,
            offsets: self.starts.as_ref(),
            indices: &self.members,
        };
        let (offsets, indices, values) = self.inverses.arrays_mut();
        backend.group_inverses(a.parts(), members, scales, offsets, indices, values)
    }

    /// Bytes of all of it.
    pub(super) fn storage_bytes(&self) -> usize {
        self.inverses.storage_bytes()
            + B::len(&self.members) * size_of::<u32>()
            + self.starts.as_ref().bytes()
    }
}

impl<T: Scalar, B: MultigridBackend> Blocks<T, B> {
    /// The inverses for new values of A, and a bound of the eigenvalues of this matrix times A. Where the diagonal is
    /// positive they are those of nearly A's own blocks, and the bound an estimate, times [`ABOVE`]; else the bound is
    /// 1, as of [`Scales::block_inverses`].
    pub(super) fn renew(&mut self, backend: &B, a: &Csr<T, B>) -> Result<f64> {
        match with_more_diagonal(backend, a)? {
            Some(more) => {
                let nothing = backend.zeros(a.rows())?;
                self.invert(backend, &more, &nothing)?;
                self.largest_eigenvalue(backend, a)
            }
            None => self.renew_bounded(backend, a).map(|()| 1.0),
        }
    }

    /// The largest eigenvalue of this matrix times A by the power method, times [`ABOVE`], from a vector that looks
    /// random, the same one each time.
    fn largest_eigenvalue(&self, backend: &B, a: &Csr<T, B>) -> Result<f64> {
        let n = a.rows();
        let mut random = Random::new(n as u64);
        let start: Vec<T> = (0..STARTS.min(n)).map(|_| T::from_f64(random.between(-1.0, 1.0))).collect();
        let start = backend.upload(start)?;
        let (mut x, mut y) = (backend.buffer::<T>(n)?, backend.buffer::<T>(n)?);
        for first in (0..n).step_by(STARTS) {
            let end = n.min(first + STARTS);
            backend.copy(B::part(&start, 0..end - first), B::part_mut(&mut x, first..end))?;
        }
        // Twelve steps grow by less than a decade each, so that nothing need be scaled between them.
        let mut norms = [T::Real::zero(); 2];
        for step in 0..POWERS {
            if step + 1 == POWERS {
                norms[0] = norm(backend, &x)?;
            }
            a.product(backend, T::one(), &x, T::zero(), &mut y)?;
            self.inverses.product(backend, T::one(), &y, T::zero(), &mut x)?;
        }
        norms[1] = norm(backend, &x)?;
        let largest = ABOVE * (norms[1] / norms[0]).to_f64();
        Ok(if largest.is_finite() && largest > 0.0 { largest } else { 1.0 / ADDED })
    }
}

/// The Euclidean norm.
fn norm<T: Scalar, B: VectorOps>(backend: &B, x: &B::Slice<T>) -> Result<T::Real> {
    let mut sum = backend.zeros::<T::Real>(1)?;
    backend.norm2_squared(x, &mut sum)?;
    Ok(Float::sqrt(backend.value(&sum)?))
}

impl<T: Scalar> Blocks<T, Host> {
    /// The same in the memory of a backend.
    pub(super) fn into_backend<B: Backend>(self, backend: &B) -> Result<Blocks<T, B>> {
        let starts = match self.starts {
            Offsets::Narrow(starts) => Offsets::Narrow(backend.upload(starts)?),
            Offsets::Wide(starts) => Offsets::Wide(backend.upload(starts)?),
        };
        let members = backend.upload(self.members)?;
        Ok(Blocks { inverses: self.inverses.into_backend(backend)?, starts, members })
    }
}

/// The block of each unknown, blocks numbered from 0 on, and their sizes: pairs of strongest neighbours, then pairs of
/// pairs. `graph` has |a_ij| / sqrt(a_ii a_jj) as weights.
fn matched<B: CoarseningSteps + Conversions>(
    backend: &B,
    mut graph: Csr<f32, B>,
) -> Result<(B::Vec<u32>, B::Vec<u32>)> {
    let n = graph.rows();
    let (mut blocks, mut sizes) = (backend.buffer(n)?, backend.buffer(n)?);
    backend.sequence::<u32>(&mut blocks)?;
    backend.fill(1_u32, &mut sizes)?;
    for pass in 0..PASSES {
        let (pairs, count) = pass_of_matching(backend, &graph, &sizes)?;
        let mut of_pairs = backend.buffer(n)?;
        backend.gather::<u32, u32>(&pairs, &blocks, &mut of_pairs)?;
        blocks = of_pairs;
        let mut together = backend.buffer(count + 1)?;
        backend.group_sizes(&pairs, Some(&sizes), &mut together)?;
        sizes = backend.buffer(count)?;
        backend.copy(B::part(&together, 0..count), &mut sizes)?;
        if pass + 1 < PASSES {
            let of_nodes = membership(backend, &pairs, count)?;
            let to_nodes = of_nodes.transpose(backend)?;
            graph = multiply(backend, &to_nodes, &multiply(backend, &graph, &of_nodes)?)?;
        }
    }
    Ok((blocks, sizes))
}

/// A one for each node, in the column of its group.
fn membership<B: CoarseningSteps>(backend: &B, group: &B::Slice<u32>, count: usize) -> Result<Csr<f32, B>> {
    let n = B::len(group);
    let (mut offsets, mut indices) = (backend.buffer::<u32>(n + 1)?, backend.buffer(n)?);
    let mut ones = backend.buffer(n)?;
    backend.sequence::<u32>(&mut offsets)?;
    backend.copy(group, &mut indices)?;
    backend.fill(1.0_f32, &mut ones)?;
    Ok(Csr::from_parts_unchecked(n, count, Offsets::Narrow(offsets), indices, ones))
}

/// Pairs of nodes that prefer each other, and their number; who finds no partner joins the pair to which it is coupled
/// most strongly, where that wants no other more, or stays alone.
fn pass_of_matching<B: CoarseningSteps>(
    backend: &B,
    graph: &Csr<f32, B>,
    sizes: &B::Slice<u32>,
) -> Result<(B::Vec<u32>, usize)> {
    let (n, graph) = (graph.rows(), graph.parts());
    let (mut partner, mut best) = (backend.buffer(n)?, backend.buffer(n)?);
    backend.fill(NO_GROUP, &mut partner)?;
    let mut found = backend.zeros::<u32>(1)?;
    for round in 0..ROUNDS {
        backend.preferred_partners(graph, sizes, &partner, round, &mut best)?;
        backend.agree(&best, &mut partner, &mut found)?;
        if asked_after(round) && backend.value(&found)? == 0 {
            break;
        }
    }
    let (mut flags, mut places) = (backend.buffer(n + 1)?, backend.buffer(n + 1)?);
    backend.pair_flags(&partner, &mut flags)?;
    backend.exclusive_scan(&flags, &mut places)?;
    let count = backend.value(B::part(&places, n..n + 1))?;
    let mut group = best;
    backend.pair_groups(&partner, &places, &mut group)?;
    let mut together = backend.buffer(count as usize + 1)?;
    backend.group_sizes(&group, Some(sizes), &mut together)?;
    let mut choice = partner;
    let mut bids = backend.buffer::<u64>(n)?;
    for _ in 0..SWEEPS {
        let mut highest = backend.zeros::<u64>(count as usize + 1)?;
        backend.bid_for_groups(graph, &group, sizes, &together, &mut bids, &mut choice, &mut highest)?;
        backend.accept_bids(&bids, &choice, &highest, sizes, &mut group, &mut together)?;
    }
    backend.group_flags(&group, false, &mut flags)?;
    backend.exclusive_scan(&flags, &mut places)?;
    backend.number_groups(&flags, &places, count, &mut group)?;
    let alone = backend.value(B::part(&places, n..n + 1))?;
    Ok((group, (count + alone) as usize))
}
