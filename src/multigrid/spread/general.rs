//! Levels of distributed matrices by smoothed aggregation. Aggregates are within ranks, prolongations extend beyond
//! them.
//!
//! Levels are set up on the host, except that a device computes products of matrices.

use super::rows::{Halo, leading, moved_columns, numbers, ranges, sent_home, stacked};
use crate::backend::{Communicator, Host, Space, VectorOps};
use crate::error::Result;
use crate::matrix::{Csr, multiply};
use crate::multigrid::MultigridBackend;
use crate::multigrid::aggregate::Aggregates;
use crate::multigrid::galerkin::conjugate_transpose;
use crate::multigrid::options::{LevelFacts, MultigridOptions};
use crate::multigrid::setup::{MOST_LEVELS, MOST_PRODUCTS, OMEGA, STAGNATION, products_of};
use crate::multigrid::strength::{Nodes, damping, strong_couplings};
use crate::multigrid::tentative::{NearNull, Tentative, tentative};
use crate::scalar::{Real, Scalar};
use num_traits::{Float, Zero};
use std::ops::Range;

/// This rank's rows of a level, with global column indices.
pub(super) struct Rows<T: Scalar> {
    pub(super) a: Csr<T>,
    /// The unknowns of each rank.
    pub(super) parts: Vec<Range<usize>>,
}

/// A level, and its transfer to the next.
pub(super) struct Spreadable<T: Scalar> {
    pub(super) fine: Rows<T>,
    /// This rank's rows of P.
    pub(super) prolongation: Csr<T>,
    /// This rank's rows of P^H, which are unknowns of the next level.
    pub(super) restriction: Csr<T>,
}

/// All distributed levels, the next one, and the near-null vector there.
pub(super) struct Levels<T: Scalar> {
    pub(super) levels: Vec<Spreadable<T>>,
    pub(super) coarsest: Rows<T>,
    pub(super) near_null: Vec<T::Real>,
    /// Rows and entries of all these levels, over all ranks.
    pub(super) facts: Vec<LevelFacts>,
    /// True if another level would hardly be smaller.
    pub(super) stagnates: bool,
}

/// The product of two matrices, computed by the backend of the vectors.
fn product<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T>, b: &Csr<T>) -> Result<Csr<T>> {
    if !B::IS_DEVICE {
        return multiply(&Host, a, b);
    }
    multiply(backend, &a.to_backend(backend)?, &b.to_backend(backend)?)?.to_host(backend)
}

/// Builds the levels from the finest matrix down to `gathered` rows.
pub(super) fn levels<T: Scalar, B: MultigridBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    finest: Rows<T>,
    options: &MultigridOptions,
    gathered: usize,
) -> Result<Levels<T>> {
    let (backend, communicator) = (space.backend(), space.communicator());
    let over_all = |own: usize| -> Result<usize> { Ok(numbers(communicator, own)?.into_iter().sum()) };
    let rows = |rows: &Rows<T>| rows.parts.last().map_or(0, |rows| rows.end);
    let near_null = vec![T::Real::from_f64(1.0); finest.a.rows()];
    let first = over_all(finest.a.nonzeros())?;
    let facts = vec![LevelFacts { rows: rows(&finest), entries: first }];
    let mut all = Levels { levels: Vec::new(), coarsest: finest, near_null, facts, stagnates: false };
    while rows(&all.coarsest) > gathered {
        let Rows { a, parts } = &all.coarsest;
        let (n, own) = (a.rows(), &parts[communicator.part()]);
        let halo = Halo::of(communicator, a, parts)?;
        let matrix = comparable(communicator, a, &halo)?;
        let strong = strong_couplings(&Host, &matrix, None, options.strength, None)?;
        // This rank may have no rows while others have some.
        let aggregates = match n {
            0 => Aggregates { of: Vec::new(), count: 0, alone: 0 },
            _ => {
                let couplings = leading(&matrix, n)?.nonzeros().saturating_sub(n);
                Aggregates::new(&Host, &leading(&strong, n)?, Some(couplings), None, None)?
            }
        };
        let coarse_parts = ranges(&numbers(communicator, aggregates.count)?);
        let coarse = coarse_parts.last().map_or(0, |rows| rows.end);
        if coarse == 0
            || coarse as f64 > STAGNATION * rows(&all.coarsest) as f64
            || all.levels.len() >= MOST_LEVELS
        {
            all.stagnates = true;
            break;
        }
        let (p, coarse_null) = if aggregates.count == 0 {
            (Csr::from_parts(n, 0, vec![0; n + 1], Vec::new(), Vec::new())?, Vec::new())
        } else {
            let near_null = NearNull::One(std::mem::take(&mut all.near_null));
            let Tentative { p, near_null, .. } =
                tentative(&Host, &Nodes::default(), &aggregates, &near_null)?;
            match near_null {
                NearNull::One(norms) => (p, norms),
                NearNull::Several(_) => (p, Vec::new()),
            }
        };
        let p = moved_columns(p, coarse_parts[communicator.part()].start, coarse);
        let damping = damping(&Host, &matrix, strong.parts().pattern(), OMEGA)?.window(&Host, 0..n)?;
        let all_rows = |p: &Csr<T>| stacked(coarse, &[p.copied(&Host)?, halo.rows(communicator, p)?]);
        let local = matrix.window(&Host, 0..n)?;
        let galerkin = |p: &Csr<T>| -> Result<(Csr<T>, Csr<T>)> {
            let r = conjugate_transpose(&Host, p)?;
            let product = product(backend, &r, &product(backend, &local, &all_rows(p)?)?)?;
            let r = moved_columns(r, own.start, rows(&all.coarsest));
            let coarse_matrix = sent_home(communicator, &product, &coarse_parts)?;
            Ok((sent_home(communicator, &r, &coarse_parts)?, coarse_matrix))
        };
        let before: usize = all.facts.iter().map(|level| level.entries).sum();
        let mut prolongation = product(backend, &damping, &all_rows(&p)?)?;
        let products = products_of(&Host, &prolongation, &local, &all_rows(&prolongation)?)?;
        let mut made = None;
        if over_all(products as usize)? as f64 <= MOST_PRODUCTS * first as f64 {
            let (restriction, next) = galerkin(&prolongation)?;
            let entries = over_all(next.nonzeros())?;
            let fits = (before + entries) as f64 <= options.most_entries * first as f64;
            made = fits.then_some((restriction, next, entries));
        }
        let (restriction, next, entries) = match made {
            Some(made) => made,
            None => {
                prolongation = p;
                let (restriction, next) = galerkin(&prolongation)?;
                let entries = over_all(next.nonzeros())?;
                (restriction, next, entries)
            }
        };
        all.facts.push(LevelFacts { rows: coarse, entries });
        let fine = std::mem::replace(&mut all.coarsest, Rows { a: next, parts: coarse_parts });
        all.levels.push(Spreadable { fine, prolongation, restriction });
        all.near_null = coarse_null;
    }
    Ok(all)
}

/// This rank's rows, with its own columns and those of the halo, and for each unknown of the halo a row with its
/// largest coupling, so that couplings between ranks count as strong if they would within one.
fn comparable<T: Scalar, B: VectorOps, C: Communicator<B>>(
    communicator: &C,
    a: &Csr<T>,
    halo: &Halo,
) -> Result<Csr<T>> {
    let largest = (0..a.rows()).map(|row| {
        let (columns, values) = a.row(row);
        let others =
            columns.iter().zip(values).filter(|&(&column, _)| column as usize != halo.own.start + row);
        others.fold(T::Real::zero(), |most, (_, value)| Float::max(most, value.abs())).to_f64()
    });
    let largest = halo.values(communicator, &largest.collect::<Vec<f64>>())?;
    halo.extended(a, |place| {
        vec![(0, T::from_real(T::Real::from_f64(largest[place]))), ((a.rows() + place) as u32, T::one())]
    })
}
