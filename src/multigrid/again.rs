//! The same hierarchy for new values on the pattern of the matrix: aggregates, blocks and the patterns of all products
//! are kept, and numbers alone are computed.

use super::setup::{OMEGA, Plan, conjugate_transpose};
use super::strength::{damping, damping_again, strong_couplings};
use super::{LevelFacts, MultigridOptions};
use crate::backend::{CoarseningSteps, Conversions, CsrParts, RowShape};
use crate::error::Result;
use crate::matrix::{Csr, TripleProduct, multiply, multiply_again};
use crate::scalar::Scalar;

/// The matrices between the finest one and the coarsest, in the precision of the finest. The first new values make
/// them; from then on nothing is allocated but a few vectors.
#[derive(Debug)]
pub(super) struct Kept<T: Scalar, B: CoarseningSteps> {
    pub(super) levels: Vec<KeptLevel<T, B>>,
}

/// What leads from a level to the next.
#[derive(Debug)]
pub(super) struct KeptLevel<T: Scalar, B: CoarseningSteps> {
    /// The couplings that were strong, and what smooths the prolongation; none where it is not smoothed.
    smoothing: Option<(Csr<f32, B>, Csr<T, B>)>,
    pub(super) prolongation: Csr<T, B>,
    pub(super) restriction: Csr<T, B>,
    /// Which entry of the prolongation each of the restriction is.
    places: B::Vec<u32>,
    product: TripleProduct<T, B>,
}

impl<T: Scalar, B: CoarseningSteps> KeptLevel<T, B> {
    /// The matrix of the next level.
    pub(super) fn coarse(&self) -> &Csr<T, B> {
        self.product.product()
    }
}

impl<T: Scalar, B: CoarseningSteps + Conversions> Kept<T, B> {
    /// For the first new values: couplings are strong by these.
    pub(super) fn new(
        backend: &B,
        a: &Csr<T, B>,
        plans: &[Plan<T, B>],
        options: &MultigridOptions,
    ) -> Result<Self> {
        let mut levels: Vec<KeptLevel<T, B>> = Vec::with_capacity(plans.len());
        for plan in plans {
            let a = levels.last().map_or(a, KeptLevel::coarse);
            let (smoothing, p) = if plan.smoothed {
                let strong = strong_couplings(backend, a, &plan.nodes, options.strength)?;
                let damping = damping(backend, a, &plan.nodes, &strong, OMEGA)?;
                let p = multiply(backend, &damping, &plan.tentative)?;
                (Some((strong, damping)), p)
            } else {
                (None, plan.tentative.copied(backend)?)
            };
            let r = conjugate_transpose(backend, &p)?;
            let places = places_in_transpose(backend, &p, &r)?;
            let product = TripleProduct::new(backend, &r, a, &p)?;
            levels.push(KeptLevel { smoothing, prolongation: p, restriction: r, places, product });
        }
        Ok(Self { levels })
    }

    /// Numbers for the values of `a`, whose pattern is that of the matrix before.
    pub(super) fn update(&mut self, backend: &B, a: &Csr<T, B>, plans: &[Plan<T, B>]) -> Result<()> {
        let mut done: &[KeptLevel<T, B>] = &[];
        let mut rest = &mut self.levels[..];
        for plan in plans {
            let a = done.last().map_or(a, KeptLevel::coarse);
            let (level, behind) = rest.split_first_mut().expect("a level for each plan");
            let KeptLevel { smoothing, prolongation: p, restriction: r, places, product } = level;
            if let Some((strong, damping)) = smoothing {
                damping_again(backend, a, &plan.nodes, strong, OMEGA, damping)?;
                multiply_again(backend, damping, &plan.tentative, p)?;
                backend.gather(p.parts().values, places, r.values_mut())?;
                if T::COMPLEX {
                    backend.conjugate(r.values_mut())?;
                }
            }
            product.update(backend, r, a, p)?;
            (done, rest) = (std::slice::from_ref(level), behind);
        }
        Ok(())
    }

    /// Bytes of all of it.
    pub(super) fn storage_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| {
            let smoothing = level.smoothing.as_ref();
            smoothing.map_or(0, |(strong, damping)| strong.storage_bytes() + damping.storage_bytes())
                + level.prolongation.storage_bytes()
                + level.restriction.storage_bytes()
                + B::len(&level.places) * size_of::<u32>()
                + level.product.storage_bytes()
        });
        levels.sum()
    }

    /// Rows and entries of the levels below the finest.
    pub(super) fn facts(&self) -> impl Iterator<Item = LevelFacts> + '_ {
        let coarse = self.levels.iter().map(KeptLevel::coarse);
        coarse.map(|a| LevelFacts { rows: a.rows(), entries: a.nonzeros() })
    }
}

/// Which entry of `p` each of its transpose is.
fn places_in_transpose<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    p: &Csr<T, B>,
    transpose: &Csr<T, B>,
) -> Result<B::Vec<u32>> {
    let (mut numbers, mut places) = (backend.buffer::<u32>(p.nonzeros())?, backend.buffer(p.nonzeros())?);
    let mut rows = backend.buffer(p.nonzeros())?;
    backend.sequence::<u32>(&mut numbers)?;
    let (parts, shape) = (p.parts(), RowShape::default());
    let numbered = CsrParts {
        rows: parts.rows,
        columns: parts.columns,
        offsets: parts.offsets,
        indices: parts.indices,
        values: &*numbers,
        shape: &shape,
    };
    backend.csr_transpose(numbered, transpose.parts().offsets, &mut rows, &mut places)?;
    Ok(places)
}
