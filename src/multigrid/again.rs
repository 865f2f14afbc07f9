//! Updates a hierarchy with new values on the same pattern: aggregates, blocks and the patterns of all matrices are
//! kept, and only numbers are computed.
//!
//! The workspace of an update is freed afterwards: A P and the matrix that smooths the prolongation would take several
//! times the memory of A. Only the row starts of A P are kept, a twentieth of that memory on grids; to find the lengths
//! of its rows again would take a sixth of the time of an update.

use super::cycle::{Coarsest, Cycle, Stored, Transfer};
use super::galerkin::conjugate_transpose;
use super::nodes;
use super::setup::{OMEGA, Plan};
use super::strength::{squared_norms, strong_couplings};
use super::tentative::Groups;
use super::{LevelFacts, MultigridBackend};
use crate::backend::{Backend, CoarseningSteps, Conversions, CsrParts, CsrPattern, Offsets, RowShape};
use crate::error::Result;
use crate::matrix::{Csr, multiply, multiply_again, multiply_at};
use crate::scalar::Scalar;

/// The data that updates need in addition to the cycle and the plans. It is computed at the first update.
#[derive(Debug)]
pub(super) struct Kept<B: Backend> {
    levels: Vec<KeptLevel<B>>,
}

/// The data of one level for computing the next one.
#[derive(Debug)]
struct KeptLevel<B: Backend> {
    /// The strong couplings; `None` if the prolongation is not smoothed.
    strong: Option<Strong<B>>,
    /// For each entry of the restriction, its position in the prolongation.
    places: B::Vec<u32>,
    /// The row starts of A P, and its number of entries.
    half: (Offsets<B>, usize),
}

/// The strong couplings between nodes, with their own pattern.
#[derive(Debug)]
struct Strong<B: Backend> {
    nodes: usize,
    offsets: Offsets<B>,
    neighbours: B::Vec<u32>,
}

impl<B: Backend> Strong<B> {
    fn of(backend: &B, graph: Csr<f32, B>) -> Result<Self> {
        let nodes = graph.rows();
        let (offsets, neighbours, _) = graph.into_arrays(backend)?;
        Ok(Self { nodes, offsets, neighbours })
    }

    fn pattern(&self) -> CsrPattern<'_, B> {
        let (offsets, indices) = (self.offsets.as_ref(), &*self.neighbours);
        CsrPattern { rows: self.nodes, columns: self.nodes, offsets, indices }
    }
}

/// The new prolongation of a level, and the next coarser matrix, in the precision of the finest.
#[derive(Debug)]
pub(super) struct NewLevel<T: Scalar, B: Backend> {
    pub(super) prolongation: Csr<T, B>,
    pub(super) restriction: Csr<T, B>,
    pub(super) coarse: Csr<T, B>,
}

impl<B: Backend> Kept<B> {
    /// Returns the bytes of all arrays.
    pub(super) fn storage_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| {
            let strong = level.strong.as_ref();
            let strong = strong.map_or(0, |strong| {
                strong.offsets.as_ref().bytes() + B::len(&strong.neighbours) * size_of::<u32>()
            });
            strong + B::len(&level.places) * size_of::<u32>() + level.half.0.as_ref().bytes()
        });
        levels.sum()
    }
}

impl<B: MultigridBackend> Kept<B> {
    /// Computes the data for the first new values, whose strong couplings are used from then on.
    pub(super) fn new<T: Scalar>(
        backend: &B,
        a: &Csr<T, B>,
        plans: &[Plan<T, B>],
    ) -> Result<(Self, Vec<NewLevel<T, B>>)> {
        let (mut kept, mut new) = (Vec::with_capacity(plans.len()), Vec::<NewLevel<T, B>>::new());
        let mut before = None;
        for plan in plans {
            let before = before.replace(&plan.groups);
            let a = new.last().map_or(a, |level| &level.coarse);
            let (strong, prolongation) = if plan.smoothed {
                let squares =
                    plan.nodes.0.as_ref().map(|nodes| squared_norms(backend, a, nodes)).transpose()?;
                let stiff = plan.stiff.as_deref();
                let strong = strong_couplings(backend, a, squares.as_ref(), plan.strength, stiff)?;
                let p = smoothed(backend, a, plan, before, strong.parts().pattern(), None)?;
                (Some(Strong::of(backend, strong)?), p)
            } else {
                (None, plan.groups.tentative(backend, before)?)
            };
            let restriction = conjugate_transpose(backend, &prolongation)?;
            let places = places_in_transpose(backend, &prolongation, &restriction)?;
            let half = multiply(backend, a, &prolongation)?;
            let coarse = multiply(backend, &restriction, &half)?;
            let entries = half.nonzeros();
            kept.push(KeptLevel { strong, places, half: (half.into_arrays(backend)?.0, entries) });
            new.push(NewLevel { prolongation, restriction, coarse });
        }
        Ok((Self { levels: kept }, new))
    }

    /// Computes all levels for the values of `a`, which has the pattern of the matrix before, on the patterns of the
    /// cycle.
    pub(super) fn again<T: Scalar, S: Scalar>(
        &self,
        backend: &B,
        a: &Csr<T, B>,
        plans: &[Plan<T, B>],
        cycle: &Cycle<S, B>,
    ) -> Result<Vec<NewLevel<T, B>>> {
        let mut new = Vec::<NewLevel<T, B>>::with_capacity(plans.len());
        let mut before = None;
        for (number, (plan, kept)) in plans.iter().zip(&self.levels).enumerate() {
            let a = new.last().map_or(a, |level| &level.coarse);
            let before = before.replace(&plan.groups);
            let patterns = patterns(cycle, number).expect("the cycle has matrices in compressed rows");
            let prolongation = match &kept.strong {
                Some(strong) => {
                    let known = Some(patterns.prolongation.parts().pattern());
                    smoothed(backend, a, plan, before, strong.pattern(), known)?
                }
                None => plan.groups.tentative(backend, before)?,
            };
            let mut restriction = on_pattern::<T, _, B>(backend, patterns.restriction)?;
            backend.gather(prolongation.parts().values, &kept.places, restriction.values_mut())?;
            if T::COMPLEX {
                backend.conjugate(restriction.values_mut())?;
            }
            let (starts, entries) = &kept.half;
            let half = multiply_at(backend, a, &prolongation, (starts.as_ref(), *entries))?;
            let coarse = match patterns.coarse {
                Some(pattern) => {
                    let mut coarse = on_pattern(backend, pattern)?;
                    multiply_again(backend, &restriction, &half, &mut coarse)?;
                    coarse
                }
                None => multiply(backend, &restriction, &half)?,
            };
            new.push(NewLevel { prolongation, restriction, coarse });
        }
        Ok(new)
    }
}

/// The smoothed prolongation of a level; `before` are the groups of the level before, and `known` is the pattern, if it
/// has been computed.
fn smoothed<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    plan: &Plan<T, B>,
    before: Option<&Groups<T, B>>,
    strong: CsrPattern<'_, B>,
    known: Option<CsrPattern<'_, B>>,
) -> Result<Csr<T, B>> {
    if let Groups::Several { p, bases, vectors } = &plan.groups {
        return nodes::smoothed(backend, a, &plan.nodes, strong, (p, bases, vectors));
    }
    let smoothed =
        plan.groups.with_parts(backend, before, |parts| parts.smoothed(backend, a, strong, OMEGA, known))?;
    Ok(smoothed.expect("one vector has its parts"))
}

/// Rows and entries of the coarser levels.
pub(super) fn facts<T: Scalar, B: CoarseningSteps>(
    new: &[NewLevel<T, B>],
) -> impl Iterator<Item = LevelFacts> + '_ {
    new.iter().map(|level| LevelFacts { rows: level.coarse.rows(), entries: level.coarse.nonzeros() })
}

/// Returns whether two matrices have entries in the same places.
pub(super) fn same_pattern<B: MultigridBackend>(
    backend: &B,
    a: CsrPattern<'_, B>,
    b: CsrPattern<'_, B>,
) -> Result<bool> {
    if (a.rows, a.columns, B::len(a.indices)) != (b.rows, b.columns, B::len(b.indices)) {
        return Ok(false);
    }
    let mut differ = backend.zeros::<u32>(1)?;
    let (mut lengths, mut others) = (backend.buffer::<u32>(a.rows)?, backend.buffer(a.rows)?);
    backend.row_lengths(a.offsets, 0, u32::MAX as usize, &mut lengths)?;
    backend.row_lengths(b.offsets, 0, u32::MAX as usize, &mut others)?;
    backend.count_differing(&lengths, &others, &mut differ)?;
    backend.count_differing(a.indices, b.indices, &mut differ)?;
    Ok(backend.value(&differ)? == 0)
}

/// Patterns of a level of a cycle, and of the next coarser matrix, which is `None` for the coarsest level if only its
/// inverse is stored.
struct Patterns<'a, S: Scalar, B: Backend> {
    prolongation: &'a Csr<S::Lower, B>,
    restriction: &'a Csr<S::Lower, B>,
    coarse: Option<&'a Csr<S, B>>,
}

fn patterns<S: Scalar, B: MultigridBackend>(
    cycle: &Cycle<S, B>,
    number: usize,
) -> Option<Patterns<'_, S, B>> {
    let Transfer::Matrices { prolongation, restriction } = &cycle.levels[number].transfer else {
        return None;
    };
    let next = match (cycle.levels.get(number + 1), &cycle.coarsest) {
        (Some(level), _) => Some(&level.a),
        (None, Coarsest::Smoothed(a, _)) => Some(a),
        (None, _) => None,
    };
    let coarse = next.and_then(|a| match a {
        Stored::Rows(a) => Some(a),
        _ => None,
    });
    Some(Patterns { prolongation, restriction, coarse })
}

/// A matrix with the pattern of another, and values to be set later.
fn on_pattern<T: Scalar, S: Scalar, B: Backend>(backend: &B, like: &Csr<S, B>) -> Result<Csr<T, B>> {
    Ok(like.with_values(backend.buffer(like.nonzeros())?))
}

/// For each entry of the transpose of `p`, its position in `p`.
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
