//! One factor of any kind: how it is made, and how A^-1 and A^-T are applied with it.

use super::Kind;
use super::analysis::DENSE_COPIES;
use super::blocks::{BlockLu, BlockPlan};
use super::elimination::{Elimination, minimum_degree};
use super::foreign::{self, Columns, DenseQr, Supernodal};
use super::frontal::{Frontal, Tree};
use super::lu::{Lu, NO_PIVOT, PREFER_DIAGONAL, PREFER_LARGE};
use super::options::{DirectOptions, Prepared};
use super::regular::Regular;
use super::report::{Reason, Unmatched};
use super::symmetric::SymmetricPlan;
use crate::backend::{Host, Offsets, OffsetsRef};
use crate::direct::Factorable;
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::prepare::{
    OrderKind, Scaling, better_dissection, equilibrate_symmetric, maximum_product_matching,
};
use crate::scalar::{Real, Scalar};
use crate::work::is_stop;
use faer::sparse::linalg::cholesky::SymbolicCholesky;
use num_traits::Float;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Pivots of LDL^H below this part of the largest entry are replaced ...
const LDL_EPSILON: f64 = 1e-11;
/// ... by this part of it.
const LDL_DELTA: f64 = 1e-8;

/// Units of rounding below which a second LU takes a pivot for zero beside the largest entry of its column: what
/// elimination leaves of a dependent row.
const ROUGH: f64 = 1e5;

/// Diagonal entries that are pivots as they are: beside the largest entry of their row and column, and of all.
const STRONG: f64 = 0.5;
const ALIKE: f64 = 1e-3;

/// Rows and columns without a partner that are named, at most.
const NAMED: usize = 100;

/// What holds for every set of values on a pattern, as far as it was needed.
#[derive(Default)]
pub(super) struct Structures {
    pub(super) symmetric: Option<(Arc<SymbolicCholesky<u32>>, OrderKind)>,
    /// What brings large entries to the diagonal, for LU of any kind.
    pub(super) matched: Option<Arc<MatchedRows>>,
    /// Diagonal blocks; of what cannot be split none.
    blocks: Option<Option<Arc<BlockPlan>>>,
    lu: Option<Arc<LuPlan>>,
    pub(super) fronts: Option<Arc<SymmetricPlan>>,
    /// Why no order of elimination serves, so that none is sought for one kind after the other.
    refused: Option<Reason>,
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
        let (structure, kind) = self.sought(|_| symmetric_structure(a, options))?;
        let structure = Arc::new(structure);
        Ok(self.symmetric.insert((structure, kind)).clone())
    }

    /// What depends on values: another set of them may need other pivots.
    pub(super) fn forget_pivots(&mut self) {
        (self.matched, self.blocks, self.lu, self.fronts) = (None, None, None, None);
        self.refused = None;
    }

    fn matched<T: Factorable>(
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
        let plan = Arc::new(self.sought(|_| SymmetricPlan::new(a, options))?);
        Ok(self.fronts.insert(plan).clone())
    }

    /// A search for an order of elimination, unless one has shown that there is too much to do in any.
    fn sought<R>(&mut self, search: impl FnOnce(&mut Self) -> Result<R, Reason>) -> Result<R, Reason> {
        if let Some(reason) = &self.refused {
            return Err(reason.clone());
        }
        let found = search(self);
        self.refused =
            found.as_ref().err().filter(|reason| matches!(reason, Reason::TooLong { .. })).cloned();
        found
    }
}

/// The structure of a factor of a symmetric matrix in the better order of elimination, and how that was found.
pub(super) fn symmetric_structure<T: Factorable>(
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

enum Numbers<T: Factorable> {
    Symmetric {
        structure: Arc<SymbolicCholesky<u32>>,
        order: OrderKind,
        values: Vec<T>,
        ldl: bool,
        scale: Option<Vec<f64>>,
    },
    Lu {
        plan: Arc<LuPlan>,
        lu: Lu<T>,
    },
    Frontal {
        plan: Arc<LuPlan>,
        lu: Frontal<T>,
    },
    Blocks {
        rows: Arc<MatchedRows>,
        order: OrderKind,
        lu: BlockLu<T>,
    },
    FrontalSymmetric {
        plan: Arc<SymmetricPlan>,
        ldl: Frontal<T>,
    },
    Supernodal {
        plan: Arc<LuPlan>,
        lu: Supernodal<T>,
    },
    Regular(Regular<T>),
    Dense(DenseQr<T>),
}

/// A factor of A.
pub(super) struct Factor<T: Factorable> {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    numbers: Numbers<T>,
}

/// Runs what a library does, its panics caught.
pub(super) fn caught<R>(work: impl FnOnce() -> Result<R, Reason>) -> Result<R, Reason> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        if is_stop(&*payload) {
            return Err(Reason::Stopped);
        }
        Err(Reason::Refused("the factorisation stopped with a panic".to_string()))
    })
}

/// The rows of A as columns of A^T.
pub(super) fn columns_of_transpose<T: Scalar>(a: &Csr<T>) -> Result<Columns<'_>, Reason> {
    let parts = a.parts();
    let OffsetsRef::Narrow(starts) = parts.offsets else {
        return Err(Reason::Refused("more than 2^32 entries".to_string()));
    };
    Ok(Columns { rows: a.columns(), columns: a.rows(), starts, indices: parts.indices })
}

fn largest<T: Factorable>(values: &[T]) -> f64 {
    values.iter().map(|value| value.abs().to_f64()).fold(0.0, f64::max)
}

pub(super) fn times<T: Scalar>(value: T, factor: f64) -> T {
    value * T::from_f64(factor)
}

pub(super) fn as_reason(error: crate::Error) -> Reason {
    Reason::Refused(error.to_string())
}

/// Scaling and order of rows of a maximum product matching, how many rows it matches, and what it leaves alone.
pub(super) fn prepared<T: Scalar>(a: &Csr<T>) -> Result<(Prepared, usize, Unmatched), Reason> {
    let (matching, scaling) = maximum_product_matching(a).map_err(as_reason)?.into_parts();
    let rows = matching.row_permutation().map_err(as_reason)?;
    let few = |mut numbers: Vec<u32>| {
        numbers.truncate(NAMED);
        numbers
    };
    let unmatched =
        Unmatched { rows: few(matching.unmatched_rows()), columns: few(matching.unmatched_columns()) };
    Ok((Prepared { scaling: scaling.to_powers_of_two(), rows }, matching.pairs(), unmatched))
}

/// Whether a matching and its scaling have nothing to do: diagonal entries are no less than half of the largest in their
/// row and column, and of the same size up to a factor.
fn is_prepared<T: Scalar>(a: &Csr<T>) -> bool {
    let (mut diagonal, mut beside) = (vec![0.0_f64; a.rows()], vec![0.0_f64; a.rows()]);
    for row in 0..a.rows() {
        let (indices, values) = a.row(row);
        for (&column, value) in indices.iter().zip(values) {
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
fn matched_columns<T: Factorable>(a: &Csr<T>, prepared: &Prepared) -> Result<Csr<T>, Reason> {
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
        for k in rows.starts[old as usize] as usize..rows.starts[old as usize + 1] as usize {
            let place = &mut next[parts.indices[k] as usize];
            (indices[*place as usize], values[*place as usize]) = (new as u32, parts.values[k]);
            *place += 1;
        }
    }
    let offsets = Offsets::Narrow(starts);
    Ok(Csr::from_parts_unchecked(a.columns(), a.rows(), offsets, indices, values))
}

impl<T: Factorable> Factor<T> {
    /// Factorises A; `rough` takes smaller pivots of LU for zeros. `going` tells whether to go on.
    pub(super) fn new(
        a: &Csr<T>,
        kind: Kind,
        rough: bool,
        options: &DirectOptions,
        structures: &mut Structures,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let factor = caught(|| match kind {
            Kind::Auto | Kind::Cholesky => Self::symmetric(a, false, options, structures),
            Kind::Ldlt => Self::symmetric(a, true, options, structures),
            Kind::Lu => {
                let pivots = if rough { (ROUGH, PREFER_LARGE) } else { (NO_PIVOT, PREFER_DIAGONAL) };
                Self::lu(a, pivots, options, structures, going)
            }
            Kind::BlockLu => Self::in_blocks(a, options, structures, going),
            Kind::FrontalLdlt => Self::frontal_symmetric(a, options, structures, going),
            Kind::FrontalLu => Self::frontal(a, options, structures, going),
            Kind::SupernodalLu => Self::supernodal(a, options, structures),
            Kind::ShiftedLdlt => Ok(Self::regular(kind, Regular::shifted(a, options)?)),
            Kind::Regularised => {
                // A second one is for least squares, which rows must not be scaled for.
                let rows_too = !rough && a.rows() == a.columns();
                Ok(Self::regular(kind, Regular::around(a, rows_too, options)?))
            }
            Kind::DenseQr => Self::dense(a, options),
        })?;
        if factor.is_finite() { Ok(factor) } else { Err(Reason::NotFinite) }
    }

    fn symmetric(
        a: &Csr<T>,
        ldl: bool,
        options: &DirectOptions,
        structures: &mut Structures,
    ) -> Result<Self, Reason> {
        let columns = columns_of_transpose(a)?;
        let (structure, order) = structures.symmetric(a, options)?;
        let bytes = (structure.len_val() * size_of::<T>()) as u64;
        within(bytes, foreign::symmetric_flops(&structure), options)?;
        let mut values = Vec::new();
        let scale = if ldl {
            let scaling = equilibrate_symmetric(a).map_err(as_reason)?;
            let scaled = scaling.apply(a).map_err(as_reason)?;
            let largest = largest(scaled.parts().values);
            // What is small beside the largest entry is so only as far as the type can tell.
            let unit = <T::Real as Float>::epsilon().to_f64();
            let epsilon = LDL_EPSILON.max(unit) * largest;
            let delta = LDL_DELTA.max(unit.sqrt()) * largest;
            let entries = (columns, scaled.parts().values);
            T::symmetric_factor(&structure, entries, Some((epsilon, delta)), &mut values)?;
            Some(scaling.into_parts().0)
        } else {
            T::symmetric_factor(&structure, (columns, a.parts().values), None, &mut values)?;
            None
        };
        let kind = if ldl { Kind::Ldlt } else { Kind::Cholesky };
        Ok(Self { kind, bytes, numbers: Numbers::Symmetric { structure, order, values, ldl, scale } })
    }

    fn lu(
        a: &Csr<T>,
        pivots: (f64, f64),
        options: &DirectOptions,
        structures: &mut Structures,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let plan = structures.lu(a, options)?;
        let columns = matched_columns(a, &plan.rows.prepared)?;
        let (entries, values) = (columns_of_transpose(&columns)?, columns.parts().values);
        let lu = plan.elimination.by_columns(entries, values, pivots, options, going)?;
        Ok(Self { kind: Kind::Lu, bytes: lu.bytes(), numbers: Numbers::Lu { plan, lu } })
    }

    fn frontal(
        a: &Csr<T>,
        options: &DirectOptions,
        structures: &mut Structures,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let plan = structures.lu(a, options)?;
        let columns = matched_columns(a, &plan.rows.prepared)?;
        let lu = plan.elimination.in_fronts(&columns, options, going)?;
        Ok(Self { kind: Kind::FrontalLu, bytes: lu.bytes(), numbers: Numbers::Frontal { plan, lu } })
    }

    fn in_blocks(
        a: &Csr<T>,
        options: &DirectOptions,
        structures: &mut Structures,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let Some(plan) = structures.blocks(a, options)? else {
            return Err(Reason::Refused("no block triangular form with several blocks of some size".into()));
        };
        within((plan.entries * 2.0) as u64 * size_of::<T>() as u64, plan.flops, options)?;
        let rows = structures.matched(a, options)?;
        let lu = BlockLu::new(&matched_columns(a, &rows.prepared)?, &plan, options, going)?;
        let (order, bytes) = (plan.kind, lu.bytes());
        Ok(Self { kind: Kind::BlockLu, bytes, numbers: Numbers::Blocks { rows, order, lu } })
    }

    fn frontal_symmetric(
        a: &Csr<T>,
        options: &DirectOptions,
        structures: &mut Structures,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        if options.kind == Kind::FrontalLdlt && !a.is_symmetric() {
            return Err(Reason::Refused("the matrix is not symmetric".to_string()));
        }
        let plan = structures.fronts(a, options)?;
        let tree = &plan.tree;
        within((tree.all_entries() * size_of::<T>()) as u64, tree.all_work(), options)?;
        let scaled = plan.scaled(a)?;
        let ldl = Frontal::new(columns_of_transpose(&scaled)?, scaled.parts().values, tree, going)?;
        let (kind, bytes) = (Kind::FrontalLdlt, ldl.bytes());
        Ok(Self { kind, bytes, numbers: Numbers::FrontalSymmetric { plan, ldl } })
    }

    fn supernodal(a: &Csr<T>, options: &DirectOptions, structures: &mut Structures) -> Result<Self, Reason> {
        let plan = structures.lu(a, options)?;
        let bytes = (plan.elimination.entries * 2.0) as u64 * size_of::<T>() as u64;
        within(bytes, plan.elimination.flops, options)?;
        let columns = matched_columns(a, &plan.rows.prepared)?;
        let lu = T::lu_factor((columns_of_transpose(&columns)?, columns.parts().values))?;
        Ok(Self { kind: Kind::SupernodalLu, bytes, numbers: Numbers::Supernodal { plan, lu } })
    }

    fn regular(kind: Kind, regular: Regular<T>) -> Self {
        Self { kind, bytes: regular.bytes(), numbers: Numbers::Regular(regular) }
    }

    fn dense(a: &Csr<T>, options: &DirectOptions) -> Result<Self, Reason> {
        let (m, n) = (a.rows(), a.columns());
        let least = m.min(n) as f64;
        let flops = least * least * (m.max(n) as f64 - least / 3.0);
        let bytes =
            (m as u64).saturating_mul(n as u64).saturating_mul(DENSE_COPIES as u64 * size_of::<T>() as u64);
        if flops > options.dense_flop_limit {
            return Err(Reason::TooLong { flops, limit: options.dense_flop_limit });
        }
        within(bytes, 0.0, options)?;
        let mut dense = vec![T::default(); m * n];
        let columns = columns_of_transpose(a)?;
        let values = a.parts().values;
        for row in 0..m {
            for k in columns.starts[row] as usize..columns.starts[row + 1] as usize {
                dense[row + columns.indices[k] as usize * m] = values[k];
            }
        }
        let qr = T::qr_factor(m, n, &dense, true);
        Ok(Self { kind: Kind::DenseQr, bytes, numbers: Numbers::Dense(qr) })
    }

    /// Whether a vector of ones goes through both solves as numbers, and for the kinds whose entries can be seen,
    /// whether all are.
    fn is_finite(&self) -> bool {
        match &self.numbers {
            Numbers::Symmetric { values, .. } => values.iter().all(|value| value.is_finite()),
            Numbers::Lu { lu, .. } => lu.is_finite(),
            Numbers::Frontal { lu, .. } | Numbers::FrontalSymmetric { ldl: lu, .. } => lu.is_finite(),
            Numbers::Blocks { lu, .. } => lu.is_finite(),
            Numbers::Supernodal { plan, .. } => {
                let mut ones = vec![T::from_f64(1.0); plan.elimination.order.len()];
                let solved = caught(|| {
                    self.apply(false, &mut ones);
                    Ok(())
                });
                solved.is_ok() && ones.iter().all(|value| value.is_finite())
            }
            Numbers::Regular(regular) => regular.is_finite(),
            Numbers::Dense(_) => true,
        }
    }

    /// Pivots that were made up.
    pub(super) fn made_up(&self) -> usize {
        match &self.numbers {
            Numbers::Lu { lu, .. } => lu.made_up,
            Numbers::Frontal { lu, .. } | Numbers::FrontalSymmetric { ldl: lu, .. } => lu.made_up,
            Numbers::Blocks { lu, .. } => lu.made_up,
            _ => 0,
        }
    }

    /// How the order of elimination was found, where it is this crate's.
    pub(super) fn order(&self) -> Option<OrderKind> {
        match &self.numbers {
            Numbers::Symmetric { order, .. } => Some(*order),
            Numbers::FrontalSymmetric { plan, .. } => Some(plan.order),
            Numbers::Lu { plan, .. } | Numbers::Frontal { plan, .. } => Some(plan.elimination.kind),
            Numbers::Blocks { order, .. } => Some(*order),
            Numbers::Supernodal { .. } | Numbers::Regular(_) | Numbers::Dense(_) => None,
        }
    }

    /// Numerical rank, where it is known.
    pub(super) fn rank(&self) -> Option<usize> {
        match &self.numbers {
            Numbers::Dense(qr) => Some(qr.rank),
            _ => None,
        }
    }

    /// Whether solutions have minimum norm.
    pub(super) fn is_minimum_norm(&self) -> bool {
        matches!(&self.numbers, Numbers::Dense(qr) if qr.is_minimum_norm())
    }

    /// x becomes A^-1 x, of A^T where `transposed` (dense QR and what is regularised have none and leave x as it is).
    pub(super) fn apply(&self, transposed: bool, x: &mut Vec<T>) {
        match &self.numbers {
            Numbers::Symmetric { structure, values, ldl, scale, .. } => {
                let scaled = |x: &mut [T]| {
                    for (x, &factor) in x.iter_mut().zip(scale.iter().flatten()) {
                        *x = times(*x, factor);
                    }
                };
                scaled(x);
                T::symmetric_solve(structure, values, *ldl, transposed, x);
                scaled(x);
            }
            Numbers::Lu { plan, lu } => {
                let mut work = vec![T::default(); x.len()];
                plan.rows.prepared.around(transposed, x, |x| lu.solve(transposed, x, &mut work));
            }
            Numbers::Frontal { plan, lu } => {
                let mut work = vec![T::default(); x.len()];
                plan.rows.prepared.around(transposed, x, |x| lu.solve(transposed, x, &mut work));
            }
            Numbers::Blocks { rows, lu, .. } => {
                let mut work = vec![T::default(); x.len()];
                rows.prepared.around(transposed, x, |x| lu.solve(transposed, x, &mut work));
            }
            Numbers::FrontalSymmetric { plan, ldl } => {
                let mut work = vec![T::default(); x.len()];
                plan.scale(x);
                ldl.solve(transposed, x, &mut work);
                plan.scale(x);
            }
            Numbers::Supernodal { plan, lu } => {
                plan.rows.prepared.around(transposed, x, |x| T::lu_solve(lu, transposed, x));
            }
            Numbers::Regular(regular) if !transposed => regular.apply(x),
            Numbers::Dense(qr) if !transposed => *x = T::qr_solve(qr, x),
            Numbers::Regular(_) | Numbers::Dense(_) => {}
        }
    }

    /// Whether [`Factor::apply_normal`] can be used.
    pub(super) fn has_normal(&self) -> bool {
        matches!(&self.numbers, Numbers::Regular(regular) if regular.has_normal())
    }

    /// A^H r becomes (A^H A + s^2)^-1 A^H r, up to the scaling of columns.
    pub(super) fn apply_normal(&self, x: &mut Vec<T>) {
        if let Numbers::Regular(regular) = &self.numbers {
            regular.apply_normal(x);
        }
    }

    /// Whether solves give least-squares solutions, or lead to them, where b is not in the range of A.
    pub(super) fn is_least_squares(&self) -> bool {
        matches!(self.kind, Kind::Regularised | Kind::DenseQr)
    }

    /// Whether A^-T can be applied.
    pub(super) fn has_transpose(&self) -> bool {
        !matches!(self.numbers, Numbers::Regular(_) | Numbers::Dense(_))
    }
}

impl Prepared {
    /// A^-1 = C M^-1 P R, and A^-T = R P^T M^-T C, where M = P R A C.
    pub(super) fn around<T: Scalar>(&self, transposed: bool, x: &mut Vec<T>, solve: impl FnOnce(&mut [T])) {
        let Prepared { scaling, rows } = self;
        let (first, last) = if transposed {
            (scaling.columns(), scaling.rows())
        } else {
            (scaling.rows(), scaling.columns())
        };
        let scaled = |x: &mut [T], factors: &[f64]| {
            x.iter_mut().zip(factors).for_each(|(x, &factor)| *x = times(*x, factor));
        };
        let permuted = |x: &[T], order: &[u32]| order.iter().map(|&k| x[k as usize]).collect::<Vec<T>>();
        scaled(x, first);
        if !transposed {
            *x = permuted(x, rows.new_to_old());
        }
        solve(x);
        if transposed {
            *x = permuted(x, rows.old_to_new());
        }
        scaled(x, last);
    }
}

/// Whether so many bytes and multiplications are allowed.
pub(super) fn within(bytes: u64, flops: f64, options: &DirectOptions) -> Result<(), Reason> {
    if bytes > options.memory_limit {
        return Err(Reason::TooLarge { bytes, limit: options.memory_limit });
    }
    if flops > options.flop_limit {
        return Err(Reason::TooLong { flops, limit: options.flop_limit });
    }
    Ok(())
}

impl Prepared {
    /// Nothing done: factors of one, rows as they are.
    ///
    /// # Errors
    /// Where there are 2^32 - 1 rows or more.
    pub fn none<T: Factorable>(a: &Csr<T, Host>) -> crate::Result<Self> {
        Ok(Self { scaling: Scaling::unit(a.rows(), a.columns()), rows: Permutation::identity(a.rows())? })
    }
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
