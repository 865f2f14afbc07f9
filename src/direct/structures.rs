//! What is known of a matrix before it is factorised: matched rows, orders of elimination and structures of factors,
//! each found when it is first needed.

use super::blocks::BlockPlan;
use super::elimination::{Elimination, large_order, minimum_degree};
use super::factor::{as_reason, columns_of_transpose};
use super::foreign;
use super::frontal::Tree;
use super::options::{DirectOptions, Prepared};
use super::report::{Reason, Unmatched};
use super::symmetric::{KnownOrder, SymmetricPlan};
use crate::backend::Offsets;
use crate::direct::Factorable;
use crate::graph::{Adjacency, Permutation};
use crate::lock::lock;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::prepare::{Counted, OrderKind, OrderSize, better_dissection, product_matching_within_reason};
use crate::scalar::{Real, Scalar};
use crate::work::look_at;
use faer::sparse::linalg::cholesky::SymbolicCholesky;
use std::sync::{Arc, Mutex};

/// Diagonal entries that are pivots as they are: beside the largest entry of their row and column, and of all.
const STRONG: f64 = 0.5;
const ALIKE: f64 = 1e-3;

/// Above so many multiplications a row a large matrix that may be positive definite, and whose graph has small
/// separators, is factorised in dense fronts, by all threads, and not by the library, which takes one. A mesh of 3 10^5
/// points in the plane (3000 a row) takes as long in both on one thread.
const LARGE_FRONTS_FROM: f64 = 1e3;

/// Above so many multiplications a row a Hermitian matrix is factorised in dense fronts, by all threads, and not by the
/// library, which takes one. For Cholesky factors both take as long on one thread at three times as many, and on two
/// threads the fronts of a mesh in the plane (3000 a row) 1.1 times as long, of one in space (2 10^5) 0.76 times (Xeon
/// beside an H200, 2026-11-28). For large matrices with small separators see [`Structures::suits_fronts`].
pub(super) const FRONTS_FROM: f64 = 1e4;

/// Rows and columns without a partner that are named, at most.
const NAMED: usize = 100;

/// What holds for every set of values on a pattern, as far as it was needed.
#[derive(Default)]
pub(super) struct Structures {
    pub(super) symmetric: Option<(Arc<SymbolicCholesky<u32>>, OrderKind)>,
    /// The order of a large matrix whose graph has small separators, and what a factor in it takes; of others none.
    large: Option<Option<Arc<LargeOrder>>>,
    /// What brings large entries to the diagonal, for LU of any kind.
    pub(super) matched: Option<Arc<MatchedRows>>,
    /// Diagonal blocks; of what cannot be split none.
    blocks: Option<Option<Arc<BlockPlan>>>,
    lu: Option<Arc<LuPlan>>,
    pub(super) fronts: Option<Arc<SymmetricPlan>>,
    /// The structure of fronts for pivots of rows as they are, without a matching; none if a library factorises.
    unmatched_fronts: Option<Option<(Arc<Tree>, OrderKind)>>,
    /// Why no order of elimination serves, so that none is sought for one kind after the other.
    refused: Option<Reason>,
}

/// An order of elimination, and what a factor in it takes.
struct LargeOrder {
    order: Permutation,
    size: OrderSize,
    /// The elimination tree and counts of columns, until they are needed.
    counted: Mutex<Option<Counted>>,
}

/// Scaling, and the order of rows that brings large entries to the diagonal.
pub(super) struct MatchedRows {
    pub(super) prepared: Prepared,
    /// Rows that could be matched with columns.
    pub(super) matched: usize,
    /// Those that could not.
    pub(super) unmatched: Unmatched,
}

/// M = P R A C is factorised in this order of columns.
pub(super) struct LuPlan {
    pub(super) rows: Arc<MatchedRows>,
    pub(super) elimination: Elimination,
}

impl Structures {
    /// The structure of a factor of a symmetric matrix, and how its order of elimination was found.
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
                // The library counts for itself.
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

    /// Whether a large matrix that may be positive definite is to be factorised in dense fronts; nothing is known of a
    /// small one, and of one whose graph has no small separators.
    pub(super) fn suits_fronts<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Option<bool> {
        let large = if T::COMPLEX { None } else { self.large(a, options).ok().flatten() };
        large.map(|large| large.size.multiplications > LARGE_FRONTS_FROM * a.rows() as f64)
    }

    /// What depends on values: another set of them may need other pivots.
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

    /// The diagonal blocks of a block triangular form, where there are several of some size.
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
                // LU of the whole comes next, and starts from the same columns.
                all.lu = Some(Arc::new(LuPlan { rows, elimination: Elimination::new(&columns, options)? }));
            }
            Ok(plan)
        })?;
        Ok(self.blocks.insert(plan).clone())
    }

    /// Order and scaling for LU.
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

    /// Order, scaling and structure of L D L^T in fronts.
    pub(super) fn fronts<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Arc<SymmetricPlan>, Reason> {
        if let Some(plan) = &self.fronts {
            return Ok(plan.clone());
        }
        // The order of a factor L L^T serves these too.
        let known = match (&self.large, &self.symmetric) {
            (Some(Some(large)), _) => Some(KnownOrder {
                order: large.order.new_to_old().to_vec(),
                kind: OrderKind::NestedDissection,
                counted: lock(&large.counted).take(),
            }),
            (_, Some((structure, kind))) => {
                foreign::order_of(structure).map(|order| KnownOrder { order, kind: *kind, counted: None })
            }
            _ => None,
        };
        let plan = Arc::new(self.sought(|_| SymmetricPlan::new(a, known, options))?);
        Ok(self.fronts.insert(plan).clone())
    }

    /// The structure of L D L^T of a real symmetric matrix in fronts, without a matching, and how its order was found.
    /// There is none if there is little to do: fronts are factorised by all threads, and the library's L D L^H by one.
    pub(super) fn unmatched_fronts<T: Factorable>(
        &mut self,
        a: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Option<(Arc<Tree>, OrderKind)>, Reason> {
        if T::COMPLEX {
            return Ok(None);
        }
        if let Some(fronts) = &self.unmatched_fronts {
            return Ok(fronts.clone());
        }
        let fronts = match self.large(a, options)? {
            Some(large) => {
                let counted = lock(&large.counted).take();
                let tree = match counted {
                    Some(counted) => Tree::of_counted(&counted, large.order.new_to_old(), true),
                    None => Tree::symmetric(&Adjacency::new(a).map_err(as_reason)?, &large.order)?,
                };
                Some((Arc::new(tree), OrderKind::NestedDissection))
            }
            None => {
                let (structure, kind) = self.symmetric(a, options)?;
                let is_heavy = foreign::symmetric_flops(&structure) > FRONTS_FROM * a.rows() as f64;
                let order = foreign::order_of(&structure).filter(|_| is_heavy);
                let tree = order.map(|order| {
                    let order = Permutation::from_new_to_old(order).map_err(as_reason)?;
                    Tree::symmetric(&Adjacency::new(a).map_err(as_reason)?, &order)
                });
                tree.transpose()?.map(|tree| (Arc::new(tree), kind))
            }
        };
        Ok(self.unmatched_fronts.insert(fronts).clone())
    }

    /// A search for an order of elimination, unless one has shown that there is too much to do in any.
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

/// The structure of a factor of a symmetric matrix in the better order of elimination, and how that was found.
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
    let structure = foreign::symmetric_structure(columns_of_transpose(a)?, Some(order))?;
    Ok((structure, OrderKind::NestedDissection))
}

/// The same where minimum degree comes first.
fn structure_by_degree<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
) -> Result<(SymbolicCholesky<u32>, OrderKind), Reason> {
    let columns = columns_of_transpose(a)?;
    let degree = minimum_degree(a, options)?;
    let structure = foreign::symmetric_structure(columns, degree.as_ref())?;
    let work = foreign::symmetric_flops(&structure);
    match better_dissection(a, work, options.flop_limit).map_err(as_reason)? {
        Some((order, _)) => {
            Ok((foreign::symmetric_structure(columns, Some(&order))?, OrderKind::NestedDissection))
        }
        None => Ok((structure, OrderKind::MinimumDegree)),
    }
}

/// Scaling and order of rows of a maximum product matching, how many rows it matches, and what it leaves alone.
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

/// Whether a matching and its scaling have nothing to do: diagonal entries are no less than half of the largest in
/// their row and column, and of the same size up to a factor.
fn is_prepared<T: Scalar>(a: &Csr<T>) -> bool {
    let (mut diagonal, mut beside) = (vec![0.0_f64; a.rows()], vec![0.0_f64; a.rows()]);
    for row in 0..a.rows() {
        look_at(row);
        let (indices, values) = a.row(row);
        for (&column, value) in both(indices, values) {
            let size = value.abs2().to_f64();
            if column as usize == row {
                diagonal[row] = size;
            } else {
                beside[row] = beside[row].max(size);
                beside[column as usize] = beside[column as usize].max(size);
            }
        }
    }
    let largest = diagonal.iter().chain(&beside).copied().fold(0.0, f64::max);
    // A comparison with what is no number is false, and squares that overflow are for the matching.
    largest.is_finite()
        && diagonal.iter().zip(&beside).all(|(&diagonal, &beside)| {
            diagonal >= STRONG * STRONG * beside && diagonal > ALIKE * ALIKE * largest
        })
}

impl LuPlan {
    /// The structure of fronts, which is found once.
    pub(super) fn tree<T: Factorable>(&self, a: &Csr<T>) -> Result<Arc<Tree>, Reason> {
        self.elimination.tree(&matched_columns(a, &self.rows.prepared)?)
    }
}

/// The columns of P R A C, as the rows of a matrix.
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
    let offsets = Offsets::Narrow(starts);
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
        // Weak in its row, weak in its column, far from the others, none, no number.
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
