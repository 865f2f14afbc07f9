//! Forecasts of the cost of a factorisation, made before anything large is allocated.

use super::banded;
use super::elimination::{Elimination, FRONTAL_FROM};
use super::factor::DENSE_COPIES;
use super::faer_wrapper::symmetric_flops;
use super::frontal::Tree;
use super::options::{DirectOptions, Kind};
use super::regular::Regular;
use super::report::Reason;
use super::structures::{FRONTS_FROM, Structures};
use super::symmetric::{has_positive_diagonal, is_symmetric_up_to_rounding};
use crate::direct::Factorable;
use crate::graph::band_widths;
use crate::matrix::Csr;
use crate::prepare::{OrderKind, triangular_order};
use crate::prices::factors::{
    BAND, BY_BLOCKS, BY_COLUMNS, CHOLESKY, COLUMN_BY_COLUMN, COMPLEX, DEFINITE_FRONTS, DENSE,
    DIAGONAL_BLOCKS, Price, SYMMETRIC, SYMMETRIC_FRONTS,
};
use crate::scalar::Scalar;

/// Multiplications above which LU with unrestricted row pivoting, the fallback if fronts fail, tries supernodes first.
const SUPERNODAL_FROM: f64 = 2e8;

/// A row is dense if it has more entries than this times the root of n, and more than `LEAST_DENSE_ROW`.
const DENSE_ROW: f64 = 10.0;
const LEAST_DENSE_ROW: usize = 200;

/// Up to this many rows, a dense factorisation takes little time.
const SMALL_DENSE: usize = 500;

/// The ordering, structure and cost of a factorisation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// The kind of factorisation that is forecast.
    pub kind: Kind,
    /// Stored entries of the factor, including explicit zeros in dense blocks.
    pub entries: f64,
    /// Memory for the factor's values, in bytes.
    pub bytes: f64,
    /// Multiplications of the numeric factorisation.
    pub flops: f64,
    /// Estimated seconds of everything else: ordering, symbolic analysis, scaling, copies and solves.
    pub overhead: f64,
    /// The method that found the fill-reducing ordering. `None` for dense QR, which has no ordering, and for supernodal
    /// LU, which always uses a column minimum degree ordering.
    pub order: Option<OrderKind>,
    /// True if the forecast is exact, as for Cholesky, LDL^H, LU in fronts and dense QR. For other kinds of LU it is an
    /// estimate that assumes pivots on the diagonal.
    pub exact: bool,
}

/// A lower bound, in seconds, on the time to factorise and solve a square matrix, including its ordering and copies. It
/// assumes factors with no more entries than A, and so needs no ordering.
pub(crate) fn least_seconds<T: Scalar>(rows: usize, nonzeros: usize, is_hermitian: bool) -> f64 {
    let (price, share) = if is_hermitian { (SYMMETRIC.here(), 0.5) } else { (BY_COLUMNS.here(), 1.0) };
    let (rows, nonzeros) = (rows as f64, nonzeros as f64);
    let numbers = if T::COMPLEX { COMPLEX.sqrt() } else { 1.0 };
    price.any + price.row * rows + (price.entry + numbers * share * price.entry_of_factor) * nonzeros
}

impl Kind {
    fn price(self) -> &'static Price {
        match self {
            Kind::Auto | Kind::Cholesky => &CHOLESKY,
            Kind::Ldlt | Kind::ShiftedLdlt | Kind::Regularised => &SYMMETRIC,
            Kind::Lu => &BY_COLUMNS,
            Kind::BlockLu => &DIAGONAL_BLOCKS,
            Kind::FrontalLdlt => &SYMMETRIC_FRONTS,
            Kind::DenseQr => &DENSE,
            Kind::Banded => &BAND,
            _ => &BY_BLOCKS,
        }
    }
}

impl Analysis {
    /// The number of multiplications in dense blocks that would take as long as this factorisation.
    pub fn in_blocks(&self) -> f64 {
        if self.kind == Kind::Lu { self.flops / COLUMN_BY_COLUMN } else { self.flops }
    }

    /// Estimated seconds for the factorisation and one solve, if its analysis was measured to take this long: the mean
    /// of both, since the analysis takes a fifth to a half of a factorisation, and prices are for one thread. Within a
    /// factor of two for 61 of 62 factorisations on two cores of the half of `benches/choice` that prices are not
    /// fitted to, seeds 31 and 47; the estimate alone for 52 (2026-11-28).
    #[cfg(feature = "cli")]
    pub(crate) fn seconds_after(&self, analysis: f64) -> f64 {
        0.5 * (analysis + self.seconds())
    }

    /// Estimated seconds for the factorisation and one solve, on a processor like the ones that were measured.
    pub fn seconds(&self) -> f64 {
        self.overhead + self.flops * self.kind.price().here().multiplication
    }
}

/// The kinds of factorisation to try, the most likely one first.
pub(super) fn chain<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
    structures: &mut Structures,
) -> Vec<Kind> {
    match options.kind {
        Kind::Auto => {}
        // The second attempt is for systems without a solution.
        Kind::Regularised if a.rows() == a.columns() => return vec![Kind::Regularised; 2],
        named => return vec![named],
    }
    if !options.without.contains(&Kind::Banded) && banded::seconds_in_narrow_band(a).is_some() {
        // The other kinds are listed only if it fails, since their list takes longer.
        return vec![Kind::Banded];
    }
    behind_band(a, options, structures)
}

/// The kinds to try if there is no narrow band, or if the factorisation in it has failed.
pub(super) fn behind_band<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
    structures: &mut Structures,
) -> Vec<Kind> {
    let mut chain = every_kind(a, options, structures);
    chain.retain(|kind| !options.without.contains(kind));
    chain
}

/// The kinds of factorisation to try if the caller has named none.
fn every_kind<T: Factorable>(a: &Csr<T>, options: &DirectOptions, structures: &mut Structures) -> Vec<Kind> {
    if a.rows() != a.columns() {
        // With fewer rows than columns, only a factorisation that does not scale columns gives the solution of least
        // norm.
        let small = a.rows().min(a.columns()) <= SMALL_DENSE;
        return match (a.rows() < a.columns(), small) {
            (true, _) => vec![Kind::DenseQr],
            (false, true) => vec![Kind::DenseQr, Kind::Regularised],
            (false, false) => vec![Kind::Regularised, Kind::DenseQr],
        };
    }
    let mut chain = Vec::new();
    let is_hermitian = is_symmetric_up_to_rounding(a, true);
    let positive = is_hermitian && has_positive_diagonal(a);
    // Two coupled rows that both have a diagonal entry cannot be permuted to triangular form.
    let is_coupled = positive && a.nonzeros() > a.rows();
    if !is_coupled && triangular_order(a).is_ok_and(|order| order.is_some()) {
        chain.push(Kind::Triangular);
    }
    if is_hermitian {
        // Dense fronts are factorised by all threads, so heavy problems prefer them.
        let heavy = |structures: &mut Structures| {
            if let Some(suits) = structures.suits_fronts(a, options) {
                return suits;
            }
            let structure = structures.symmetric(a, options);
            structure.is_ok_and(|(structure, _)| symmetric_flops(&structure) > FRONTS_FROM * a.rows() as f64)
        };
        let in_fronts = positive && !T::COMPLEX && heavy(structures);
        if in_fronts {
            chain.push(Kind::FrontalLdlt);
        }
        if positive {
            chain.push(Kind::Cholesky);
        }
        chain.extend([Kind::Ldlt, Kind::ShiftedLdlt]);
        if !T::COMPLEX && !in_fronts {
            chain.push(Kind::FrontalLdlt);
        }
        chain.extend([Kind::Lu, Kind::SupernodalLu]);
    } else {
        // L D L^T takes half the work of LU. The ordering for LU is computed only if L D L^T has failed.
        let symmetric = T::COMPLEX && is_symmetric_up_to_rounding(a, false);
        let blocks = if symmetric { None } else { structures.blocks(a, options).ok().flatten() };
        let flops = match &blocks {
            Some(blocks) => blocks.flops,
            None if symmetric => structures.fronts(a, options).map_or(0.0, |plan| 2.0 * plan.tree.all_work()),
            None => structures.lu(a, options).map_or(0.0, |plan| plan.elimination.flops),
        };
        if symmetric {
            chain.push(Kind::FrontalLdlt);
        }
        if blocks.is_some() {
            chain.push(Kind::BlockLu);
        }
        if flops > FRONTAL_FROM {
            chain.push(Kind::FrontalLu);
        }
        let heavy = flops > SUPERNODAL_FROM;
        chain.extend(match (has_dense_rows(a), heavy) {
            (true, _) => &[Kind::Lu][..],
            (false, true) => &[Kind::SupernodalLu, Kind::Lu],
            (false, false) => &[Kind::Lu, Kind::SupernodalLu],
        });
    }
    // The second LU treats larger pivots as zero than the first.
    chain.push(Kind::Lu);
    // For a small matrix, dense QR gives the solution of least norm directly.
    let small = a.rows() <= SMALL_DENSE;
    if small {
        chain.push(Kind::DenseQr);
    }
    // The second attempt is for least squares.
    chain.extend([Kind::Regularised, Kind::Regularised]);
    if !small {
        chain.push(Kind::DenseQr);
    }
    chain
}

/// Returns whether some row has more than ten times the root of n entries, and more than a dense block. The structure
/// of supernodal LU allows for any choice of pivots, so every entry of such a row couples all columns in which the row
/// has entries.
fn has_dense_rows<T: Factorable>(a: &Csr<T>) -> bool {
    let most = (DENSE_ROW * (a.rows() as f64).sqrt()) as usize;
    (0..a.rows()).any(|row| a.row(row).0.len() > most.max(LEAST_DENSE_ROW))
}

/// Forecasts the cost of one kind, and keeps the structure that was computed for it.
pub(super) fn forecast<T: Factorable>(
    a: &Csr<T>,
    kind: Kind,
    options: &DirectOptions,
    structures: &mut Structures,
) -> Result<Analysis, Reason> {
    let size = size_of::<T>() as f64;
    let each = if T::COMPLEX { COMPLEX } else { 1.0 };
    let analysis_by = |price: &Price, order, entries: f64, flops: f64, exact| {
        let Price { any, row, entry, entry_of_factor, multiplication } = price.here();
        let of_a = any + row * a.rows() as f64 + entry * a.nonzeros() as f64;
        // The count of multiplications treats complex ones like real ones, but they cost more.
        let overhead = of_a + each.sqrt() * entry_of_factor * entries + (each - 1.0) * multiplication * flops;
        Analysis { kind, entries, bytes: entries * size, flops, overhead, order, exact }
    };
    let analysis = |order, entries, flops, exact| analysis_by(kind.price(), order, entries, flops, exact);
    let of_fronts = |price: &Price, order, tree: &Tree| {
        analysis_by(price, order, tree.all_entries() as f64, tree.all_work(), true)
    };
    match kind {
        Kind::Auto | Kind::Cholesky | Kind::Ldlt | Kind::ShiftedLdlt => {
            if kind == Kind::Ldlt
                && let Some((tree, order)) = structures.in_order(a, options)?
            {
                return Ok(of_fronts(&DEFINITE_FRONTS, Some(order), &tree));
            }
            let (structure, order) = structures.symmetric(a, options)?;
            Ok(analysis(Some(order), structure.len_val() as f64, symmetric_flops(&structure), true))
        }
        Kind::BlockLu => {
            let none =
                || Reason::Refused("the matrix has no block triangular form with several blocks".to_string());
            let plan = structures.blocks(a, options)?.ok_or_else(none)?;
            let below = a.nonzeros() as f64;
            let forecast = analysis(Some(plan.kind), 2.0 * plan.entries + below, plan.flops, false);
            // Blocks too small for fronts are factorised column by column, which stores an index with each value.
            let by_columns = plan.flops < FRONTAL_FROM / COLUMN_BY_COLUMN;
            let indices = if by_columns { 4.0 * forecast.entries + 24.0 * a.rows() as f64 } else { 0.0 };
            Ok(Analysis { bytes: forecast.bytes + indices, ..forecast })
        }
        Kind::FrontalLu => {
            let plan = structures.lu(a, options)?;
            let tree = plan.tree(a)?;
            Ok(analysis(Some(plan.elimination.kind), tree.all_entries() as f64, tree.all_work(), true))
        }
        Kind::FrontalLdlt => {
            let plan = structures.fronts(a, options)?;
            let price = if plan.may_be_definite { &DEFINITE_FRONTS } else { kind.price() };
            Ok(of_fronts(price, Some(plan.order), &plan.tree))
        }
        Kind::Lu | Kind::SupernodalLu => {
            let plan = structures.lu(a, options)?;
            let Elimination { entries, flops, .. } = plan.elimination;
            let order = Some(plan.elimination.kind).filter(|_| kind != Kind::SupernodalLu);
            let forecast = analysis(order, 2.0 * entries + a.rows() as f64, flops, false);
            // LU column by column stores an index with each value, and the pivot rows.
            let indices =
                if kind == Kind::Lu { 4.0 * forecast.entries + 24.0 * a.rows() as f64 } else { 0.0 };
            Ok(Analysis { bytes: forecast.bytes + indices, ..forecast })
        }
        Kind::Regularised => {
            let size = Regular::size(a, options)?;
            Ok(analysis(None, size.0, size.1, true))
        }
        Kind::Triangular => {
            let entries = a.nonzeros() as f64;
            Ok(analysis(None, entries, entries, true))
        }
        Kind::Banded => {
            let (entries, flops) = banded::cost(a.rows(), band_widths(a));
            Ok(analysis(None, entries, flops, true))
        }
        Kind::DenseQr => {
            let (m, n) = (a.rows() as f64, a.columns() as f64);
            let least = m.min(n);
            let forecast = analysis(None, m * n, least * least * (m.max(n) - least / 3.0), true);
            Ok(Analysis { bytes: DENSE_COPIES * forecast.bytes, ..forecast })
        }
    }
}
