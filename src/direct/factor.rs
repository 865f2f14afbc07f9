//! One factorisation of any kind: how it is computed, and how A^-1 and A^-T are applied.

use super::Kind;
use super::banded;
use super::banded::BandFactors;
use super::blocks::BlockLu;
use super::faer_wrapper::{self, DenseQr, Supernodal};
use super::frontal::{Frontal, InOrder, Tree};
use super::goal::largest_of;
use super::lu::{Lu, NO_PIVOT, PREFER_DIAGONAL, PREFER_LARGE};
use super::options::{DirectOptions, Prepared};
use super::regular::Regular;
use super::report::Reason;
use super::steps::{as_reason, caught, columns_of_transpose, times, within};
use super::structures::{LuPlan, MatchedRows, Structures, matched_columns};
use super::symmetric::{SymmetricPlan, is_symmetric_up_to_rounding};
use super::triangular::Substitution;
use crate::backend::{Host, Op};
use crate::direct::Factorable;
use crate::graph::{Permutation, band_widths};
use crate::matrix::Csr;
use crate::parallel::both;
use crate::prepare::{OrderKind, Scaling, equilibrate_hermitian};
use crate::scalar::{Real, Scalar};
use crate::work::{self, Stage};
use faer::sparse::linalg::cholesky::SymbolicCholesky;
use num_traits::Float;
use std::sync::Arc;

/// Memory of a dense factorisation, in copies of A: the reflectors and R take two, and the solution of least norm takes
/// two more.
pub(super) const DENSE_COPIES: f64 = 4.0;

/// LDL^H replaces pivots below this fraction of the largest entry.
const LDL_EPSILON: f64 = 1e-11;
/// The replacement pivot of LDL^H, as a fraction of the largest entry.
const LDL_DELTA: f64 = 1e-8;

/// The second LU treats a pivot as zero below this many rounding units of the largest entry in its column: elimination
/// leaves numbers of that size in a linearly dependent row.
const ROUGH: f64 = 1e5;

/// The values of a factorisation, with the structure that they belong to.
enum Numbers<T: Factorable> {
    Symmetric {
        structure: Arc<SymbolicCholesky<u32>>,
        order: OrderKind,
        values: Vec<T>,
        ldl: bool,
        scale: Option<Vec<f64>>,
        replaced: usize,
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
    Triangular(Substitution<T>),
    Banded(BandFactors<T>),
}

/// A factorisation of A.
pub(super) struct Factor<T: Factorable> {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    numbers: Numbers<T>,
}

/// The rule for pivots of L D L^H, for the values of a scaled matrix. They can't be below the type's rounding unit.
fn pivots_in_order<T: Factorable>(scaled: &[T]) -> InOrder {
    let largest = largest_of(scaled, |_, value| value.abs().to_f64());
    let unit = <T::Real as Float>::epsilon().to_f64();
    InOrder { epsilon: LDL_EPSILON.max(unit) * largest, delta: LDL_DELTA.max(unit.sqrt()) * largest }
}

/// An upper bound on the number of pivots of the library's L D L^H that were replaced by `delta`, which it does not
/// count: they are among the values as they were set. Another value that happens to be the same number costs one more
/// check of the factor.
fn replaced_pivots<T: Factorable>(values: &[T], delta: f64) -> usize {
    values.iter().filter(|value| value.abs().to_f64() == delta).count()
}

impl<T: Factorable> Factor<T> {
    /// Factorises A. With `rough`, LU treats larger pivots as zero. `going` returns whether to go on.
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
            Kind::Ldlt => match structures.in_order(a, options)? {
                Some(fronts) => Self::in_order(a, fronts, options, going),
                None => Self::symmetric(a, true, options, structures),
            },
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
                // A second attempt solves a least-squares problem, for which rows must not be scaled.
                let rows_too = !rough && a.rows() == a.columns();
                Ok(Self::regular(kind, Regular::around(a, rows_too, options)?))
            }
            Kind::DenseQr => Self::dense(a, options),
            Kind::Triangular => Self::triangular(a),
            Kind::Banded => Self::banded(a, options),
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
        within(bytes, faer_wrapper::symmetric_flops(&structure), options)?;
        let mut values = Vec::new();
        let (scale, replaced) = if ldl {
            let scaling = equilibrate_hermitian(a).map_err(as_reason)?;
            let scaled = scaling.values(a).map_err(as_reason)?;
            let InOrder { epsilon, delta } = pivots_in_order(&scaled);
            T::symmetric_factor(&structure, (columns, &scaled), Some((epsilon, delta)), &mut values)?;
            (Some(scaling.into_parts().0), replaced_pivots(&values, delta))
        } else {
            T::symmetric_factor(&structure, (columns, a.parts().values), None, &mut values)?;
            (None, 0)
        };
        let kind = if ldl { Kind::Ldlt } else { Kind::Cholesky };
        Ok(Self {
            kind,
            bytes,
            numbers: Numbers::Symmetric { structure, order, values, ldl, scale, replaced },
        })
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
            return Err(Reason::Refused(
                "the matrix has no block triangular form with several large blocks".into(),
            ));
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
        if options.kind == Kind::FrontalLdlt && !is_symmetric_up_to_rounding(a, false) {
            return Err(Reason::Refused("the matrix is not symmetric".to_string()));
        }
        Self::in_fronts_of(Kind::FrontalLdlt, a, structures.fronts(a, options)?, options, going)
    }

    fn in_fronts_of(
        kind: Kind,
        a: &Csr<T>,
        plan: Arc<SymmetricPlan>,
        options: &DirectOptions,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let tree = &plan.tree;
        within((tree.all_entries() * size_of::<T>()) as u64, tree.all_work(), options)?;
        let scaled = plan.scaled(a)?;
        // If the matrix may be positive definite, small pivots are genuine and are kept.
        let unit = <T::Real as Float>::epsilon().to_f64();
        let least = if plan.may_be_definite { unit } else { unit.sqrt() };
        let ldl = Frontal::new(columns_of_transpose(a)?, &scaled, (tree, least), going)?;
        Ok(Self { kind, bytes: ldl.bytes(), numbers: Numbers::FrontalSymmetric { plan, ldl } })
    }

    /// L D L^T in fronts, by all threads, with the pivots of the library's.
    fn in_order(
        a: &Csr<T>,
        (tree, order): (Arc<Tree>, OrderKind),
        options: &DirectOptions,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        within((tree.all_entries() * size_of::<T>()) as u64, tree.all_work(), options)?;
        let scaling = equilibrate_hermitian(a).map_err(as_reason)?;
        let plan = SymmetricPlan { scaling, order, tree, may_be_definite: false, partners: Vec::new() };
        let scaled = plan.scaled(a)?;
        let entries = (columns_of_transpose(a)?, &scaled[..]);
        let ldl = Frontal::in_order(entries, &plan.tree, pivots_in_order(&scaled), going)?;
        let (bytes, plan) = (ldl.bytes(), Arc::new(plan));
        Ok(Self { kind: Kind::Ldlt, bytes, numbers: Numbers::FrontalSymmetric { plan, ldl } })
    }

    fn supernodal(a: &Csr<T>, options: &DirectOptions, structures: &mut Structures) -> Result<Self, Reason> {
        let plan = structures.lu(a, options)?;
        let bytes = (plan.elimination.entries * 2.0) as u64 * size_of::<T>() as u64;
        within(bytes, plan.elimination.flops, options)?;
        let columns = matched_columns(a, &plan.rows.prepared)?;
        let lu = T::lu_factor((columns_of_transpose(&columns)?, columns.parts().values))?;
        Ok(Self { kind: Kind::SupernodalLu, bytes, numbers: Numbers::Supernodal { plan, lu } })
    }

    fn triangular(a: &Csr<T>) -> Result<Self, Reason> {
        let none = || Reason::Refused("no order of rows and columns makes the matrix triangular".into());
        let substitution = Substitution::of(a)?.ok_or_else(none)?;
        let (kind, bytes) = (Kind::Triangular, substitution.bytes());
        Ok(Self { kind, bytes, numbers: Numbers::Triangular(substitution) })
    }

    fn banded(a: &Csr<T>, options: &DirectOptions) -> Result<Self, Reason> {
        let (entries, flops) = banded::cost(a.rows(), band_widths(a));
        within(entries as u64 * size_of::<T>() as u64, flops, options)?;
        // A smaller pivot may belong to a nearly singular matrix, whose null vectors other kinds find.
        let lu = BandFactors::of(a, <T::Real as Float>::epsilon().to_f64().sqrt())?;
        Ok(Self { kind: Kind::Banded, bytes: lu.bytes(), numbers: Numbers::Banded(lu) })
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
        let qr = if flops < faer_wrapper::LONG_FLOPS || !work::is_watched() {
            T::qr_factor(m, n, &dense, true)
        } else {
            let _meter = work::begin(Stage::Factorising, 0, None);
            work::apart(move || T::qr_factor(m, n, &dense, true))
        };
        Ok(Self { kind: Kind::DenseQr, bytes, numbers: Numbers::Dense(qr) })
    }

    /// Returns whether the factors are finite. A vector of ones must stay finite in both solves; for kinds whose
    /// entries are accessible, these are checked too.
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
            Numbers::Banded(lu) => lu.is_finite(),
            Numbers::Regular(regular) => regular.is_finite(),
            Numbers::Dense(_) | Numbers::Triangular(_) => true,
        }
    }

    /// The number of perturbed pivots.
    pub(super) fn made_up(&self) -> usize {
        match &self.numbers {
            Numbers::Lu { lu, .. } => lu.made_up,
            Numbers::Frontal { lu, .. } | Numbers::FrontalSymmetric { ldl: lu, .. } => lu.made_up,
            Numbers::Blocks { lu, .. } => lu.made_up,
            Numbers::Symmetric { replaced, .. } => *replaced,
            _ => 0,
        }
    }

    /// The method that found the fill-reducing ordering, if this crate computed it.
    pub(super) fn order(&self) -> Option<OrderKind> {
        match &self.numbers {
            Numbers::Symmetric { order, .. } => Some(*order),
            Numbers::FrontalSymmetric { plan, .. } => Some(plan.order),
            Numbers::Lu { plan, .. } | Numbers::Frontal { plan, .. } => Some(plan.elimination.kind),
            Numbers::Blocks { order, .. } => Some(*order),
            _ => None,
        }
    }

    /// The numerical rank, if it is known.
    pub(super) fn rank(&self) -> Option<usize> {
        match &self.numbers {
            Numbers::Dense(qr) => Some(qr.rank),
            _ => None,
        }
    }

    /// Returns whether solutions have minimum norm.
    pub(super) fn is_minimum_norm(&self) -> bool {
        matches!(&self.numbers, Numbers::Dense(qr) if qr.is_minimum_norm())
    }

    /// Replaces x by A^-1 x, or by A^-T x if `transposed`. Dense QR and regularised factors have no transposed solve,
    /// and leave x unchanged.
    pub(super) fn apply(&self, transposed: bool, x: &mut Vec<T>) {
        match &self.numbers {
            Numbers::Supernodal { plan, lu } => {
                let solve = |x: &mut [[T; 1]], _: &mut [[T; 1]]| {
                    T::lu_solve(lu, transposed, x.as_flattened_mut());
                };
                let work = &mut vec![[T::default()]; x.len()];
                plan.rows.prepared.around(transposed, x.as_chunks_mut().0, work, solve);
            }
            Numbers::Triangular(substitution) => substitution.apply(transposed, x),
            Numbers::Regular(regular) if !transposed => regular.apply(x),
            Numbers::Dense(qr) if !transposed => *x = T::qr_solve(qr, x),
            Numbers::Regular(_) | Numbers::Dense(_) => {}
            _ => self.apply_lanes(transposed, x.as_chunks_mut::<1>().0, &mut Vec::new()),
        }
    }

    /// [`Factor::apply`] for two vectors, which reads the factor once.
    pub(super) fn apply_both(&self, transposed: bool, x: &mut [T], y: &mut [T]) {
        let mut lanes: Vec<[T; 2]> = both(x, y).map(|(&x, &y)| [x, y]).collect();
        self.apply_lanes(transposed, &mut lanes, &mut Vec::new());
        for (k, [of_x, of_y]) in lanes.into_iter().enumerate() {
            (x[k], y[k]) = (of_x, of_y);
        }
    }

    /// The same for `N` vectors, whose entries of a row are side by side, with memory to work in. The library's factors
    /// of unsymmetric matrices, and triangular matrices, are read once for each of them.
    pub(super) fn apply_lanes<const N: usize>(
        &self,
        transposed: bool,
        x: &mut [[T; N]],
        work: &mut Vec<[T; N]>,
    ) {
        work.resize(x.len(), [T::default(); N]);
        let put = |v: usize, column: &[T], x: &mut [[T; N]]| {
            x.iter_mut().zip(column).for_each(|(x, &found)| x[v] = found);
        };
        match &self.numbers {
            Numbers::Symmetric { structure, values, ldl, scale, .. } => {
                let scale = scale.as_deref().unwrap_or_default();
                scaled(x, scale);
                if N == 1 {
                    T::symmetric_solve(structure, values, *ldl, transposed, x.as_flattened_mut());
                } else {
                    let columns = work.as_flattened_mut();
                    for (v, column) in columns.chunks_exact_mut(x.len()).enumerate() {
                        column.iter_mut().zip(&*x).for_each(|(to, x)| *to = x[v]);
                    }
                    T::symmetric_solve(structure, values, *ldl, transposed, columns);
                    columns.chunks_exact(x.len()).enumerate().for_each(|(v, column)| put(v, column, x));
                }
                scaled(x, scale);
            }
            Numbers::Lu { plan, lu } => {
                plan.rows.prepared.around(transposed, x, work, |x, work| lu.solve(transposed, x, work));
            }
            Numbers::Frontal { plan, lu } => {
                plan.rows.prepared.around(transposed, x, work, |x, work| lu.solve(transposed, x, work));
            }
            Numbers::Blocks { rows, lu, .. } => {
                rows.prepared.around(transposed, x, work, |x, work| lu.solve(transposed, x, work));
            }
            Numbers::Banded(lu) => lu.substitute(if transposed { Op::Transpose } else { Op::None }, x),
            Numbers::FrontalSymmetric { plan, ldl } => {
                plan.scale(x);
                ldl.solve(transposed, x, work);
                plan.scale(x);
            }
            _ => {
                for v in 0..N {
                    let mut column = x.iter().map(|x| x[v]).collect();
                    self.apply(transposed, &mut column);
                    put(v, &column, x);
                }
            }
        }
    }

    /// Whether [`Factor::apply_normal`] can be used.
    pub(super) fn has_normal(&self) -> bool {
        matches!(&self.numbers, Numbers::Regular(regular) if regular.has_normal())
    }

    /// Replaces A^H r by (A^H A + s^2)^-1 A^H r, up to column scaling.
    pub(super) fn apply_normal(&self, x: &mut Vec<T>) {
        if let Numbers::Regular(regular) = &self.numbers {
            regular.apply_normal(x);
        }
    }

    /// Returns whether solves approximate a least-squares solution if b is not in the range of A.
    pub(super) fn is_least_squares(&self) -> bool {
        matches!(self.kind, Kind::Regularised | Kind::DenseQr)
    }

    /// Returns whether A^-T can be applied.
    pub(super) fn has_transpose(&self) -> bool {
        !matches!(self.numbers, Numbers::Regular(_) | Numbers::Dense(_))
    }
}

impl Prepared {
    /// A^-1 = C M^-1 P R and A^-T = R P^T M^-T C, with M = P R A C, for `N` vectors. `solve` gets memory to work in
    /// beside what it replaces.
    pub(super) fn around<T: Scalar, const N: usize>(
        &self,
        transposed: bool,
        x: &mut [[T; N]],
        work: &mut [[T; N]],
        solve: impl FnOnce(&mut [[T; N]], &mut [[T; N]]),
    ) {
        let (scaling, rows) = (&self.scaling, &self.rows);
        if transposed {
            scaled(x, scaling.columns());
            solve(x, work);
            for ((work, &place), &factor) in work.iter_mut().zip(rows.old_to_new()).zip(scaling.rows()) {
                *work = x[place as usize].map(|x| times(x, factor));
            }
            return x.copy_from_slice(work);
        }
        for (work, &row) in work.iter_mut().zip(rows.new_to_old()) {
            let factor = scaling.rows()[row as usize];
            *work = x[row as usize].map(|x| times(x, factor));
        }
        solve(work, x);
        for ((x, work), &factor) in x.iter_mut().zip(work).zip(scaling.columns()) {
            *x = work.map(|work| times(work, factor));
        }
    }
}

fn scaled<T: Scalar, const N: usize>(x: &mut [[T; N]], factors: &[f64]) {
    x.iter_mut().zip(factors).for_each(|(x, &factor)| *x = x.map(|x| times(x, factor)));
}

impl Prepared {
    /// The identity: scaling factors of one, and rows in their order.
    ///
    /// # Errors
    /// If there are 2^32 - 1 rows or more.
    pub fn none<T: Factorable>(a: &Csr<T, Host>) -> crate::Result<Self> {
        Ok(Self { scaling: Scaling::unit(a.rows(), a.columns()), rows: Permutation::identity(a.rows())? })
    }
}
