//! The results of symbolic analysis that are computed when they are first needed and then kept: matchings, orderings
//! and structures of factors.

use super::blocks::BlockPlan;
use super::elimination::{Elimination, large_order, minimum_degree};
use super::faer_wrapper;
use super::frontal::Tree;
use super::options::{DirectOptions, Prepared};
use super::report::{Reason, Unmatched};
use super::steps::{as_reason, columns_of_transpose};
use super::symmetric::{KnownOrder, SymmetricPlan};
use crate::backend::Offsets;
use crate::direct::Factorable;
use crate::graph::{Adjacency, Permutation};
use crate::lock::lock;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::prepare::{Counted, OrderKind, OrderSize, better_dissection, product_matching_within_reason};
use crate::scalar::{Real, Scalar};
use crate::work::look_at;
use faer::sparse::linalg::cholesky::SymbolicCholesky;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Diagonal entries can be pivots without a matching if they are at least `STRONG` times the largest entry of their row
/// and column, and `ALIKE` times the largest of the matrix.
const STRONG: f64 = 0.5;
const ALIKE: f64 = 1e-3;

/// Multiplications per row above which a large matrix that may be positive definite and has small separators is
/// factorised in dense fronts, by all threads, instead of by the library on one thread. For a mesh of 3 10^5 points in
/// the plane (3000 per row) both take the same time on one thread.
const LARGE_FRONTS_FROM: f64 = 1e3;

/// Multiplications per row above which a Hermitian matrix is factorised in dense fronts, by all threads, instead of by
/// the library on one thread. For Cholesky factors both take the same time on one thread at three times this number.
/// With two threads, fronts take 1.1 times as long for a mesh in two dimensions (3000 multiplications per row) and 0.76
/// times as long for a mesh in three (2 10^5 per row); measured on the Xeon of an H200 machine, 2026-11-28. Large
/// matrices with small separators have their own rule: [`Structures::suits_fronts`].
pub(super) const FRONTS_FROM: f64 = 1e4;

/// Rows that a thread takes at a time.
const ROWS: usize = 1 << 10;

/// The maximum number of unmatched rows and columns that are reported.
const NAMED: usize = 100;

/// The analysis of a pattern, as far as it was needed so far.
#[derive(Default)]
pub(super) struct Structures {
    pub(super) symmetric: Option<(Arc<SymbolicCholesky<u32>>, OrderKind)>,
    /// The ordering of a large matrix with small separators, and the size of its factor; the inner `None` stands for
    /// other matrices.
    large: Option<Option<Arc<LargeOrder>>>,
    /// The matching that moves large entries to the diagonal, for all kinds of LU.
    pub(super) matched: Option<Arc<MatchedRows>>,
    /// The diagonal blocks; the inner `None` means that the matrix has one block.
    blocks: Option<Option<Arc<BlockPlan>>>,
    lu: Option<Arc<LuPlan>>,
    pub(super) fronts: Option<Arc<SymmetricPlan>>,
    /// The structure of fronts whose pivots are the diagonal entries in order; the inner `None` means that the library
    /// factorises.
    in_order: Option<Option<(Arc<Tree>, OrderKind)>>,
    /// Why no ordering is cheap enough; this saves other kinds the same search.
    refused: Option<Reason>,
}

/// A fill-reducing ordering, and the size of its factor.
struct LargeOrder {
    order: Permutation,
    size: OrderSize,
    /// The elimination tree and column counts; the first user takes them.
    counted: Mutex<Option<Counted>>,
}

/// Scaling, and the row permutation that moves large entries to the diagonal.
pub(super) struct MatchedRows {
    pub(super) prepared: Prepared,
    /// The number of rows that could be matched with columns.
    pub(super) matched: usize,
    /// The unmatched rows and columns.
    pub(super) unmatched: Unmatched,
}

/// The ordering of the columns in which M = P R A C is factorised.
pub(super) struct LuPlan {
    pub(super) rows: Arc<MatchedRows>,
    pub(super) elimination: Elimination,
}

impl Structures {
    /// The structure of a Cholesky or LDL^H factor, and the method that found its ordering.
    pub(super) fn symmetric<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<(Arc<SymbolicCholesky<u32>>, OrderKind), Reason> {
        if let Some(structure) = &self.symmetric {
            return Ok(structure.clone());
        }
        let (structure, kind) = match self.large(a, options)? {
            Some(large) => {
                // The library computes its own column counts.
                lock(&large.counted).take();
                structure_in_order(a, &large.order)?
            }
            None => self.sought(|_| structure_by_degree(a, options))?,
        };
        let structure = Arc::new(structure);
        Ok(self.symmetric.insert((structure, kind)).clone())
    }

    fn large<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Option<Arc<LargeOrder>>, Reason> {
        if let Some(large) = &self.large {
            return Ok(large.clone());
        }
        let large = self.sought(|_| large_order(a, options))?.map(|(order, counted)| {
            Arc::new(LargeOrder { order, size: counted.size(), counted: Mutex::new(Some(counted)) })
        });
        Ok(self.large.insert(large).clone())
    }

    /// Returns whether a large matrix that may be positive definite should be factorised in dense fronts; `None` if it
    /// is small or has no small separators.
    pub(super) fn suits_fronts<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Option<bool> {
        let large = if T::COMPLEX { None } else { self.large(a, options).ok().flatten() };
        large.map(|large| large.size.multiplications > LARGE_FRONTS_FROM * a.rows() as f64)
    }

    /// Drops what depends on values: new values may need other pivots.
    pub(super) fn forget_pivots(&mut self) {
        (self.matched, self.blocks, self.lu, self.fronts) = (None, None, None, None);
        self.refused = None;
    }

    pub(super) fn matched<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Arc<MatchedRows>, Reason> {
        if let Some(rows) = &self.matched {
            return Ok(rows.clone());
        }
        let (prepared, matched, unmatched) = match &options.prepared {
            Some(prepared) => (prepared.clone(), a.rows(), Unmatched::default()),
            None if is_prepared(a) => (Prepared::none(a).map_err(as_reason)?, a.rows(), Unmatched::default()),
            None => prepared(a)?,
        };
        Ok(self.matched.insert(Arc::new(MatchedRows { prepared, matched, unmatched })).clone())
    }

    /// The diagonal blocks of a block triangular form; `None` if it has only one large block.
    pub(super) fn blocks<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Option<Arc<BlockPlan>>, Reason> {
        if let Some(plan) = &self.blocks {
            return Ok(plan.clone());
        }
        let plan = self.sought(|all| {
            let rows = all.matched(a, options)?;
            let columns = matched_columns(a, &rows.prepared)?;
            let plan = BlockPlan::new(&columns, options)?.map(Arc::new);
            if plan.is_none() && all.lu.is_none() {
                // Otherwise LU of the whole matrix comes next, which needs the same columns.
                all.lu = Some(Arc::new(LuPlan { rows, elimination: Elimination::new(&columns, options)? }));
            }
            Ok(plan)
        })?;
        Ok(self.blocks.insert(plan).clone())
    }

    /// Ordering and scaling for LU.
    pub(super) fn lu<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Arc<LuPlan>, Reason> {
        if let Some(plan) = &self.lu {
            return Ok(plan.clone());
        }
        let plan = self.sought(|all| {
            let rows = all.matched(a, options)?;
            let elimination = Elimination::new(&matched_columns(a, &rows.prepared)?, options)?;
            Ok(Arc::new(LuPlan { rows, elimination }))
        })?;
        Ok(self.lu.insert(plan).clone())
    }

    /// Ordering, scaling and structure of L D L^T in fronts.
    pub(super) fn fronts<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Arc<SymmetricPlan>, Reason> {
        if let Some(plan) = &self.fronts {
            return Ok(plan.clone());
        }
        // The ordering of a Cholesky factor can be used here too.
        let known = match (&self.large, &self.symmetric) {
            (Some(Some(large)), _) => Some(KnownOrder {
                order: large.order.new_to_old().to_vec(),
                kind: OrderKind::NestedDissection,
                counted: lock(&large.counted).take(),
            }),
            (_, Some((structure, kind))) => faer_wrapper::order_of(structure).map(|order| KnownOrder {
                order,
                kind: *kind,
                counted: None,
            }),
            _ => None,
        };
        let plan = Arc::new(self.sought(|_| SymmetricPlan::new(a, known, options))?);
        Ok(self.fronts.insert(plan).clone())
    }

    /// The structure of L D L^T in fronts for a real symmetric matrix whose pivots are the diagonal entries, and the
    /// method that found its ordering. `None` if the matrix is small or has no small separators, or if there is little
    /// work; then the library's L D L^H, on one thread, is used.
    pub(super) fn in_order<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Option<(Arc<Tree>, OrderKind)>, Reason> {
        if T::COMPLEX {
            return Ok(None);
        }
        if let Some(fronts) = &self.in_order {
            return Ok(fronts.clone());
        }
        let suits =
            |large: &Arc<LargeOrder>| large.size.multiplications > LARGE_FRONTS_FROM * a.rows() as f64;
        let tree = self.large(a, options)?.filter(suits).map(|large| {
            let counted = lock(&large.counted).take();
            match counted {
                Some(counted) => Ok(Tree::of_counted(&counted, large.order.new_to_old(), true)),
                None => Tree::symmetric(&Adjacency::new(a).map_err(as_reason)?, &large.order),
            }
        });
        let fronts = tree.transpose()?.map(|tree| (Arc::new(tree), OrderKind::NestedDissection));
        Ok(self.in_order.insert(fronts).clone())
    }

    /// Runs a search for an ordering, unless an earlier one has shown that every ordering is too expensive.
    fn sought<R>(&mut self, search: impl FnOnce(&mut Self) -> Result<R, Reason>) -> Result<R, Reason> {
        if let Some(reason) = &self.refused {
            return Err(reason.clone());
        }
        let found = search(self);
        let is_long =
            |reason: &&Reason| matches!(reason, Reason::TooLong { .. } | Reason::OrderTooLong { .. });
        self.refused = found.as_ref().err().filter(is_long).cloned();
        found
    }
}

/// The structure of a Cholesky or LDL^H factor in the better of two orderings, and the method that found it.
pub(super) fn symmetric_structure<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
) -> Result<(SymbolicCholesky<u32>, OrderKind), Reason> {
    match large_order(a, options)? {
        Some((order, _)) => structure_in_order(a, &order),
        None => structure_by_degree(a, options),
    }
}

fn structure_in_order<T: Factorable>(
    a: &Csr<T>,
    order: &Permutation,
) -> Result<(SymbolicCholesky<u32>, OrderKind), Reason> {
    let structure = faer_wrapper::symmetric_structure(columns_of_transpose(a)?, Some(order))?;
    Ok((structure, OrderKind::NestedDissection))
}

/// The structure and ordering if a minimum degree ordering is computed first.
fn structure_by_degree<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
) -> Result<(SymbolicCholesky<u32>, OrderKind), Reason> {
    let columns = columns_of_transpose(a)?;
    let degree = minimum_degree(a, options)?;
    let structure = faer_wrapper::symmetric_structure(columns, degree.as_ref())?;
    let work = faer_wrapper::symmetric_flops(&structure);
    match better_dissection(a, work, options.flop_limit).map_err(as_reason)? {
        Some((order, _)) => {
            Ok((faer_wrapper::symmetric_structure(columns, Some(&order))?, OrderKind::NestedDissection))
        }
        None => Ok((structure, OrderKind::MinimumDegree)),
    }
}

/// The scaling and row permutation of a maximum product transversal, the number of matched rows, and the unmatched
/// ones.
pub(super) fn prepared<T: Scalar>(a: &Csr<T>) -> Result<(Prepared, usize, Unmatched), Reason> {
    let (matching, scaling) = product_matching_within_reason(a).map_err(as_reason)?.into_parts();
    let rows = matching.row_permutation().map_err(as_reason)?;
    let few = |mut numbers: Vec<u32>| {
        numbers.truncate(NAMED);
        numbers
    };
    let unmatched =
        Unmatched { rows: few(matching.unmatched_rows()), columns: few(matching.unmatched_columns()) };
    Ok((Prepared { scaling: scaling.to_powers_of_two(), rows }, matching.pairs(), unmatched))
}

/// Returns whether a matching and its scaling are not needed: each diagonal entry is at least half of the largest in
/// its row and column, and all diagonal entries have a similar size.
pub(super) fn is_prepared<T: Scalar>(a: &Csr<T>) -> bool {
    // Bits of numbers that are not negative compare as the numbers do.
    let mut beside: Vec<AtomicU64> = Vec::new();
    beside.resize_with(a.rows(), AtomicU64::default);
    let mut diagonal = vec![0.0_f64; a.rows()];
    diagonal.par_iter_mut().enumerate().with_min_len(ROWS).for_each(|(row, diagonal)| {
        let (indices, values) = a.row(row);
        let mut most = 0.0_f64;
        for (&column, value) in both(indices, values) {
            let size = value.abs2().to_f64();
            if column as usize == row {
                *diagonal = size;
            } else if size > 0.0 {
                most = most.max(size);
                let known = &beside[column as usize];
                if size.to_bits() > known.load(Relaxed) {
                    known.fetch_max(size.to_bits(), Relaxed);
                }
            }
        }
        beside[row].fetch_max(most.to_bits(), Relaxed);
    });
    let beside: Vec<f64> = beside.into_iter().map(|bits| f64::from_bits(bits.into_inner())).collect();
    let largest = diagonal.iter().chain(&beside).copied().fold(0.0, f64::max);
    // Comparisons with NaN are false, and a matching handles squares that overflow.
    largest.is_finite()
        && diagonal.iter().zip(&beside).all(|(&diagonal, &beside)| {
            diagonal >= STRONG * STRONG * beside && diagonal > ALIKE * ALIKE * largest
        })
}

impl LuPlan {
    /// The structure of fronts, computed once.
    pub(super) fn tree<T: Factorable>(&self, a: &Csr<T>) -> Result<Arc<Tree>, Reason> {
        self.elimination.tree(&matched_columns(a, &self.rows.prepared)?)
    }
}

/// The columns of P R A C, stored as the rows of a matrix.
pub(super) fn matched_columns<T: Factorable>(a: &Csr<T>, prepared: &Prepared) -> Result<Csr<T>, Reason> {
    let scaled = prepared.scaling.apply(a).map_err(as_reason)?;
    let parts = scaled.parts();
    let rows = columns_of_transpose(&scaled)?;
    let mut next = vec![0_u32; a.columns() + 1];
    parts.indices.iter().for_each(|&column| next[column as usize + 1] += 1);
    for column in 0..a.columns() {
        next[column + 1] += next[column];
    }
    let starts = next.clone();
    let (mut indices, mut values) = (vec![0; parts.indices.len()], vec![T::default(); parts.indices.len()]);
    for (new, &old) in prepared.rows.new_to_old().iter().enumerate() {
        look_at(new);
        for k in rows.starts[old as usize] as usize..rows.starts[old as usize + 1] as usize {
            let place = &mut next[parts.indices[k] as usize];
            (indices[*place as usize], values[*place as usize]) = (new as u32, parts.values[k]);
            *place += 1;
        }
    }
    let offsets = Offsets::Lower(starts);
    Ok(Csr::from_parts_unchecked(a.columns(), a.rows(), offsets, indices, values))
}

#[cfg(test)]
mod tests {
    use super::is_prepared;
    use crate::generate;
    use crate::matrix::Csr;

    #[test]
    fn strong_diagonals_need_no_matching() {
        let matrix = |values: [f64; 4]| {
            Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap()
        };
        assert!(is_prepared(&generate::convection_diffusion([8, 7, 1], 0.1).unwrap()));
        assert!(is_prepared(&matrix([2.0, 1.0, -3.0, 4.0])));
        // The third row is weak in its row, weak in its column, of another magnitude, missing, or NaN.
        for weak in [
            [2.0, 5.0, 1.0, 9.0],
            [2.0, 1.0, 5.0, 9.0],
            [1e-4, 0.0, 0.0, 1.0],
            [0.0, 0.0, 0.0, 1.0],
            [f64::NAN, 0.0, 0.0, 1.0],
            [1e200, 0.0, 0.0, 1e200],
        ] {
            assert!(!is_prepared(&matrix(weak)), "{weak:?}");
        }
    }
}
