//! The scaling of smoothers: inverses of small blocks of strongly coupled unknowns, or of a diagonal.

use super::MultigridBackend;
use super::matching::{Matched, matched, membership};
use crate::backend::{
    Backend, CoarseningSteps, Conversions, CsrParts, Gemv, Host, Offsets, Op, ScatteredBlocks, offsets_of,
    with_offsets,
};
use crate::error::Result;
use crate::matrix::Csr;
use crate::random::Random;
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// A coupling is strong enough to need a block if |a_ij| / sqrt(a_ii a_jj) exceeds this.
pub(super) const STRONG: f64 = 0.5001;

/// Blocks save time if at least this fraction of the rows has such a coupling: measured on meshes, grids and a power
/// grid.
pub(super) const MANY: f64 = 0.05;

/// The fraction of A's diagonal that is added to blocks before they are inverted: blocks of flat elements are nearly
/// singular, and have no usable inverse in single precision without it.
const ADDED: f64 = 0.02;

/// Steps of the Chebyshev iteration that amplifies components of eigenvalues above the bound `BELOW`, and the factor
/// for its result, which is a lower bound on the largest eigenvalue. A step amplifies the component of an eigenvalue of
/// 1.9 by 3.6 relative to those below the bound; a step of the power method amplifies it by 1.46 relative to those at
/// the bound.
const ENLARGING: usize = 5;
const BELOW: f64 = 1.3;
const ABOVE: f64 = 1.2;

/// The starting vector has this many different entries.
const STARTS: usize = 1 << 12;

/// The possible scalings of a smoother for a matrix.
pub(super) struct Scales<T: Scalar, B: Backend> {
    /// 1 / sqrt(a_ii), or 0 if a_ii is not positive.
    pub(super) of_diagonal: B::Vec<f64>,
    /// Reciprocals of the row sums of magnitudes, with A scaled to a unit diagonal: no eigenvalue of this diagonal
    /// matrix times A exceeds 1.
    pub(super) of_sums: B::Vec<T::Real>,
    /// The number of unknowns with a coupling above [`STRONG`].
    strong: B::Vec<u32>,
}

impl<T: Scalar, B: CoarseningSteps + Conversions> Scales<T, B> {
    pub(super) fn new(backend: &B, a: &Csr<T, B>) -> Result<Self> {
        let n = a.rows();
        let (mut of_diagonal, mut of_sums) = (backend.buffer(n)?, backend.buffer(n)?);
        backend.diagonal_scales(a.parts(), &mut of_diagonal)?;
        let mut strong = backend.zeros::<u32>(1)?;
        backend.scaled_sums(a.parts(), &of_diagonal, STRONG, &mut of_sums, &mut strong)?;
        Ok(Self { of_diagonal, of_sums, strong })
    }

    /// Returns whether blocks save time, because many unknowns are coupled to another so strongly that scaling each by
    /// itself hardly damps the error that they have in common. The host waits for the backend.
    pub(super) fn blocks_pay(&self, backend: &B) -> Result<bool> {
        Ok(f64::from(backend.value(&self.strong)?) > MANY * B::len(&self.of_sums) as f64)
    }

    /// Returns whether some unknown has a coupling above [`STRONG`]. The host waits for the backend.
    pub(super) fn some_are_strong(&self, backend: &B) -> Result<bool> {
        Ok(backend.value(&self.strong)? > 0)
    }

    /// Only the reciprocals of the row sums.
    pub(super) fn sums(backend: &B, a: CsrParts<'_, T, B>) -> Result<B::Vec<T::Real>> {
        let (mut of_diagonal, mut of_sums) = (backend.buffer(a.rows)?, backend.buffer(a.rows)?);
        backend.diagonal_scales(a, &mut of_diagonal)?;
        let mut strong = backend.zeros::<u32>(1)?;
        backend.scaled_sums(a, &of_diagonal, STRONG, &mut of_sums, &mut strong)?;
        Ok(of_sums)
    }

    /// Blocks of about 8 strongly coupled unknowns for each of several matrices; their inverses are computed later.
    /// `hermitian` says whether all matrices are.
    pub(super) fn blocks(
        backend: &B,
        all: &[(&Csr<T, B>, &Self)],
        hermitian: bool,
    ) -> Result<Vec<Blocks<T, B>>> {
        let matrices: Vec<_> = all.iter().map(|(a, scales)| (*a, &*scales.of_diagonal)).collect();
        matched(backend, &matrices)?
            .into_iter()
            .map(|blocks| Blocks::of(backend, blocks, hermitian))
            .collect()
    }

    /// The inverses of such blocks of one matrix. The row sums of magnitudes outside of a block are added to its
    /// diagonal (with A scaled to a unit diagonal), so that no eigenvalue of this matrix times A exceeds 1 (Baker,
    /// Falgout, Kolev and Yang, Multigrid smoothers for ultraparallel computing, SIAM Journal on Scientific Computing
    /// 33, 2011).
    pub(super) fn block_inverses(&self, backend: &B, a: &Csr<T, B>, hermitian: bool) -> Result<Blocks<T, B>> {
        let mut blocks = Self::blocks(backend, &[(a, self)], hermitian)?.remove(0);
        blocks.invert(backend, a, (&self.of_diagonal, 0.0))?;
        Ok(blocks)
    }
}

/// Blocks of unknowns, and their inverses in half the precision. They are the largest part of what smoothing reads, and
/// with [`ADDED`] of the diagonal added to a block, rounding changes the effect of the inverse by a millionth.
#[derive(Debug)]
pub(super) struct Blocks<T: Scalar, B: Backend> {
    blocks: ScatteredBlocks<B>,
    /// The inverse of each block is stored in units of this power of two.
    units: B::Vec<T::Real>,
    values: B::Vec<T::Lower>,
    hermitian: bool,
}

impl<T: Scalar, B: CoarseningSteps + Conversions> Blocks<T, B> {
    /// Builds the blocks of a matching; the inverses are computed later.
    fn of(backend: &B, Matched { block, sizes }: Matched<B>, hermitian: bool) -> Result<Self> {
        let n = B::len(&block);
        let (starts, members, _) =
            membership(backend, &block, B::len(&sizes))?.transpose(backend)?.into_arrays(backend)?;
        // Each member of a block has one column of its inverse.
        let mut of_members = backend.buffer::<u32>(n)?;
        backend.gather(&block, &members, &mut of_members)?;
        let mut lengths = backend.zeros::<u32>(n + 1)?;
        backend.gather(&sizes, &of_members, B::part_mut(&mut lengths, 0..n))?;
        let (columns, entries) = offsets_of(backend, &lengths)?;
        let places = with_offsets!(starts.as_ref(), starts => {
            let count = B::len(starts);
            match &columns {
                Offsets::Lower(columns) => {
                    let mut places = backend.buffer::<u32>(count)?;
                    backend.gather::<u32, _>(columns, starts, &mut places)?;
                    Offsets::Lower(places)
                }
                Offsets::Wide(columns) => {
                    let mut places = backend.buffer::<u64>(count)?;
                    backend.gather::<u64, _>(columns, starts, &mut places)?;
                    Offsets::Wide(places)
                }
            }
        });
        let blocks = ScatteredBlocks::from_arrays_unchecked(starts, members, places, entries);
        let (units, values) = (backend.buffer(blocks.count())?, backend.buffer(entries)?);
        Ok(Self { blocks, units, values, hermitian })
    }

    /// Updates the inverses for new values of A, as [`Scales::block_inverses`] defines them.
    pub(super) fn renew_bounded(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        let mut scales = backend.buffer(a.rows())?;
        backend.diagonal_scales(a.parts(), &mut scales)?;
        self.invert(backend, a, (&scales, 0.0))
    }

    fn invert(&mut self, backend: &B, a: &Csr<T, B>, added: (&B::Slice<f64>, f64)) -> Result<()> {
        let Self { blocks, units, values, hermitian } = self;
        backend.group_inverses(a.parts(), blocks, added, *hermitian, units, values)
    }

    /// y = alpha M x + beta y, where M is the block diagonal matrix of the inverses.
    pub(super) fn product(
        &self,
        backend: &B,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()> {
        let gemv = Gemv { op: Op::None, alpha, x, beta, y };
        backend.group_product(&self.blocks, &self.units, &self.values, gemv)
    }

    /// Returns the bytes of all arrays.
    pub(super) fn storage_bytes(&self) -> usize {
        self.blocks.storage_bytes()
            + B::len(&self.units) * size_of::<T::Real>()
            + B::len(&self.values) * size_of::<T::Lower>()
    }
}

impl<T: Scalar, B: MultigridBackend> Blocks<T, B> {
    /// Computes the inverses for (new) values of each matrix A, and bounds of the eigenvalues of the inverses times A.
    /// If A's diagonal is positive, they are inverses of nearly A's own blocks, and the bound is an estimate times
    /// [`ABOVE`]; else the bound is 1, as in [`Scales::block_inverses`]. The host waits twice, for all of them
    /// together.
    pub(super) fn renew<'a>(backend: &B, all: &mut [(&'a Csr<T, B>, &'a mut Self)]) -> Result<Vec<f64>> {
        const FACTS: usize = 3;
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = backend.buffer::<u32>(FACTS * all.len())?;
        for (k, (a, _)) in all.iter().enumerate() {
            let (mut inverse, mut rounded) =
                (backend.buffer::<T::Real>(a.rows())?, backend.buffer::<f32>(0)?);
            let facts = B::part_mut(&mut found, FACTS * k..FACTS * (k + 1));
            backend.csr_inverse_diagonal::<T, T>(a.parts(), &mut inverse, &mut rounded, facts)?;
        }
        let positive: Vec<bool> =
            backend.download(&found)?.chunks(FACTS).map(|facts| facts[0] == u32::MAX).collect();
        let mut norms = backend.zeros::<T::Real>(2 * all.len())?;
        for (k, (a, blocks)) in all.iter_mut().enumerate() {
            if positive[k] {
                let nothing = backend.zeros(a.rows())?;
                blocks.invert(backend, a, (&nothing, ADDED))?;
                blocks.enlarge(backend, a, B::part_mut(&mut norms, 2 * k..2 * (k + 1)))?;
            } else {
                blocks.renew_bounded(backend, a)?;
            }
        }
        let norms = backend.download(&norms)?;
        let bound = |(norms, positive): (&[T::Real], bool)| {
            let largest = ABOVE * Float::sqrt(norms[1] / norms[0]).to_f64();
            match (positive, largest.is_finite() && largest > 0.0) {
                (true, true) => largest.max(BELOW),
                (true, false) => 1.0 / ADDED,
                (false, _) => 1.0,
            }
        };
        Ok(norms.chunks(2).zip(positive).map(bound).collect())
    }

    /// Computes the squared norms of a vector x and of M A x. x is the result of a polynomial in M A applied to a
    /// pseudo-random vector, the same one each time. The polynomial is Chebyshev's, which stays below one from 0 to
    /// [`BELOW`] and grows fastest beyond (Saad, Numerical Methods for Large Eigenvalue Problems, 4.4).
    fn enlarge(&self, backend: &B, a: &Csr<T, B>, norms: &mut B::Slice<T::Real>) -> Result<()> {
        let n = a.rows();
        let (mut before, mut x) = (start_vector::<T, B>(backend, n)?, backend.buffer::<T>(n)?);
        // First x = (2 / BELOW) M A x - x, then twice that minus the vector before. Six steps grow by about a decade
        // each, so that nothing needs scaling between them.
        let (two, scale) = (T::from_f64(2.0), 2.0 / BELOW);
        let mut y = backend.buffer::<T>(n)?;
        a.product(backend, T::one(), &before, T::zero(), &mut y)?;
        backend.copy(&before, &mut x)?;
        self.product(backend, T::from_f64(scale), &y, -T::one(), &mut x)?;
        for _ in 1..ENLARGING {
            a.product(backend, T::one(), &x, T::zero(), &mut y)?;
            backend.axpby(-two, &x, -T::one(), &mut before)?;
            self.product(backend, T::from_f64(2.0 * scale), &y, T::one(), &mut before)?;
            std::mem::swap(&mut before, &mut x);
        }
        backend.norm2_squared(&x, B::part_mut(norms, 0..1))?;
        a.product(backend, T::one(), &x, T::zero(), &mut y)?;
        self.product(backend, T::one(), &y, T::zero(), &mut x)?;
        backend.norm2_squared(&x, B::part_mut(norms, 1..2))
    }
}

/// A pseudo-random vector, the same one each time: its first [`STARTS`] entries again and again.
pub(super) fn start_vector<T: Scalar, B: Backend>(backend: &B, n: usize) -> Result<B::Vec<T>> {
    let mut random = Random::new(n as u64);
    let start: Vec<T> = (0..STARTS.min(n)).map(|_| T::from_f64(random.between(-1.0, 1.0))).collect();
    let start = backend.upload(start)?;
    let mut x = backend.buffer::<T>(n)?;
    backend.copy(&start, B::part_mut(&mut x, 0..STARTS.min(n)))?;
    let mut filled = STARTS;
    while filled < n {
        let (there, behind) = B::split_mut(&mut x, filled);
        let more = filled.min(n - filled);
        backend.copy(B::part(there, 0..more), B::part_mut(behind, 0..more))?;
        filled += more;
    }
    Ok(x)
}

impl<T: Scalar> Blocks<T, Host> {
    /// Copies the blocks to the memory of a backend.
    pub(super) fn into_backend<B: Backend>(self, backend: &B) -> Result<Blocks<T, B>> {
        let Self { blocks, units, values, hermitian } = self;
        let (units, values) = (backend.upload(units)?, backend.upload(values)?);
        Ok(Blocks { blocks: blocks.into_backend(backend)?, units, values, hermitian })
    }
}
