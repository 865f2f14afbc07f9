//! What a factorisation will cost, before anything large is allocated.

use super::elimination::Elimination;
use super::foreign::symmetric_flops;
use super::frontal::Tree;
use super::options::{DirectOptions, Kind};
use super::regular::Regular;
use super::report::Reason;
use super::structures::{FRONTS_FROM, Structures};
use super::symmetric::{has_positive_diagonal, is_symmetric_up_to_rounding};
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::prepare::{OrderKind, triangular_order};
use crate::prices::factors::{
    BY_BLOCKS, BY_COLUMNS, CHOLESKY, COLUMN_BY_COLUMN, COMPLEX, DEFINITE_FRONTS, DENSE, DIAGONAL_BLOCKS,
    Price, SYMMETRIC, SYMMETRIC_FRONTS,
};
use crate::scalar::Scalar;

/// Above so many multiplications LU works in dense fronts: up to ten times as many they take half to two thirds of the
/// time that columns one by one take (docs/internals/benchmarks/python.md).
pub(super) const FRONTAL_FROM: f64 = 1e6;

/// Above so many LU with a choice among all rows, which is for what fronts leave, works on dense blocks first.
const SUPERNODAL_FROM: f64 = 2e8;

/// Entries of a row that is dense, in units of the root of n, and at least.
const DENSE_ROW: f64 = 10.0;
const LEAST_DENSE_ROW: usize = 200;

/// Rows of a matrix up to which a dense factorisation is soon made.
const SMALL_DENSE: usize = 500;

/// Numbers of a dense factorisation for each of A: its reflectors and R, and the same again for the solution of least
/// norm.
pub(super) const DENSE_COPIES: f64 = 4.0;

/// Order and structure of a factorisation, and its cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// The factorisation that is meant.
    pub kind: Kind,
    /// Stored entries of the factor, what blocks store of zeros included.
    pub entries: f64,
    /// Bytes of the factor's numbers.
    pub bytes: f64,
    /// Multiplications.
    pub flops: f64,
    /// Seconds that it takes beside them, about: the order of elimination, its structure, scaling, copies, solves.
    pub overhead: f64,
    /// How the order of elimination was found; dense QR has none, and LU in dense blocks has one of its own, with
    /// columns of low degree first.
    pub order: Option<OrderKind>,
    /// Whether this is what it will be: it is for Cholesky, LDL^H, LU in fronts and dense QR. For other LU it is an
    /// estimate, that of pivots on the diagonal.
    pub exact: bool,
}

/// Seconds that a factorisation of a square matrix takes at least, its order, copies and solves included: one whose
/// factors have no more entries than A. It is known before the order is.
pub(crate) fn least_seconds<T: Scalar>(rows: usize, nonzeros: usize, is_hermitian: bool) -> f64 {
    let (price, share) = if is_hermitian { (&SYMMETRIC, 0.5) } else { (&BY_COLUMNS, 1.0) };
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
            _ => &BY_BLOCKS,
        }
    }
}

impl Analysis {
    /// Multiplications in dense blocks that take as long.
    pub fn in_blocks(&self) -> f64 {
        if self.kind == Kind::Lu { self.flops / COLUMN_BY_COLUMN } else { self.flops }
    }

    /// Seconds that the factorisation and a solve take on a processor like those that were measured.
    pub fn seconds(&self) -> f64 {
        self.overhead + self.flops * self.kind.price().multiplication
    }
}

/// Kinds to try, the likeliest first.
pub(super) fn chain<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
    structures: &mut Structures,
) -> Vec<Kind> {
    match options.kind {
        Kind::Auto => {}
        // The second one is for what has no solution.
        Kind::Regularised if a.rows() == a.columns() => return vec![Kind::Regularised; 2],
        named => return vec![named],
    }
    let mut chain = every_kind(a, options, structures);
    chain.retain(|kind| !options.without.contains(kind));
    chain
}

/// Kinds to try for this matrix.
fn every_kind<T: Factorable>(a: &Csr<T>, options: &DirectOptions, structures: &mut Structures) -> Vec<Kind> {
    if a.rows() != a.columns() {
        // Fewer rows than columns: only what leaves columns unscaled has the solution of least norm.
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
    // Two rows that are coupled and have a diagonal are triangular in no order.
    let is_coupled = positive && a.nonzeros() > a.rows();
    if !is_coupled && triangular_order(a).is_ok_and(|order| order.is_some()) {
        chain.push(Kind::Triangular);
    }
    if is_hermitian {
        // Dense fronts are factorised by all threads.
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
        // The work of L D L^T is half of that of LU, whose order is sought where it has failed alone.
        let symmetric = is_symmetric_up_to_rounding(a, false);
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
    // The second LU takes larger pivots for zeros than the first.
    chain.push(Kind::Lu);
    // Small enough, a dense factorisation gives the solution of least norm at once.
    let small = a.rows() <= SMALL_DENSE;
    if small {
        chain.push(Kind::DenseQr);
    }
    // The second is for least squares.
    chain.extend([Kind::Regularised, Kind::Regularised]);
    if !small {
        chain.push(Kind::DenseQr);
    }
    chain
}

/// Whether rows have more than ten times the root of n entries, and more than a block: the library's blocks are laid
/// out for any choice of pivots, so that each entry of such a row couples all columns that have one in it.
fn has_dense_rows<T: Factorable>(a: &Csr<T>) -> bool {
    let most = (DENSE_ROW * (a.rows() as f64).sqrt()) as usize;
    (0..a.rows()).any(|row| a.row(row).0.len() > most.max(LEAST_DENSE_ROW))
}

/// The cost of one kind; its structure is kept.
pub(super) fn forecast<T: Factorable>(
    a: &Csr<T>,
    kind: Kind,
    options: &DirectOptions,
    structures: &mut Structures,
) -> Result<Analysis, Reason> {
    let size = size_of::<T>() as f64;
    let each = if T::COMPLEX { COMPLEX } else { 1.0 };
    let analysis_by = |price: &Price, order, entries: f64, flops: f64, exact| {
        let Price { any, row, entry, entry_of_factor, multiplication } = *price;
        let of_a = any + row * a.rows() as f64 + entry * a.nonzeros() as f64;
        // Multiplications of complex numbers cost more than what the sum of all counts.
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
                && let Some((tree, order)) = structures.unmatched_fronts(a, options)?
            {
                return Ok(of_fronts(&DEFINITE_FRONTS, Some(order), &tree));
            }
            let (structure, order) = structures.symmetric(a, options)?;
            Ok(analysis(Some(order), structure.len_val() as f64, symmetric_flops(&structure), true))
        }
        Kind::BlockLu => {
            let none = || Reason::Refused("no block triangular form with several blocks".to_string());
            let plan = structures.blocks(a, options)?.ok_or_else(none)?;
            let below = a.nonzeros() as f64;
            let forecast = analysis(Some(plan.kind), 2.0 * plan.entries + below, plan.flops, false);
            // Blocks too small for fronts are factorised column by column, with an index beside each number.
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
            // Column by column an index stands beside each number, and the rows of pivots beside them.
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
        Kind::DenseQr => {
            let (m, n) = (a.rows() as f64, a.columns() as f64);
            let least = m.min(n);
            let forecast = analysis(None, m * n, least * least * (m.max(n) - least / 3.0), true);
            Ok(Analysis { bytes: DENSE_COPIES * forecast.bytes, ..forecast })
        }
    }
}
