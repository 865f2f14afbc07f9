//! The factorisation that a caller holds.

use super::analysis::{self, Analysis};
use super::condition::{forward_error, inverse_norm, scaled_condition};
use super::factor::{Factor, caught};
use super::goal::{Goal, Weights, norm};
use super::null::{NULL_UNITS, nearest_to_null};
use super::options::{DirectOptions, Kind};
use super::refine::{AT_ROUNDING, LEAST, Refined, largest, norms, refine, residual};
use super::report::{DirectReport, Reason, Singularity};
use super::structures::Structures;
use crate::direct::Factorable;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;
use crate::scalar::Real;
use crate::work;
use num_traits::Float;
use std::sync::Arc;
use std::time::Instant;

/// Rows of a singular matrix up to which a dense factorisation is made sooner than one more LU and 360 iterations
/// around it.
const SOONER_DENSE: usize = 300;

/// A residual of so many times the tolerance is not what a least-squares solution leaves.
const ALMOST: f64 = 1e3;

/// Residuals of least-squares solutions that two kinds of factorisation lead to are alike up to this factor.
const ALIKE: f64 = 1.0 + 1e-3;

/// A matrix with a factor. It owns a copy of A, for residuals.
///
/// ```
/// use residua::{Csr, direct::{Direct, DirectOptions}};
///
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![0.0, 2.0, 3.0, 4.0])?;
/// let mut direct = Direct::new(&a, DirectOptions::default())?;
/// let mut x = [0.0; 2];
/// let report = direct.solve(&[2.0, 7.0], &mut x, 1e-12)?;
/// assert!(report.solved && (x[0] - 1.0_f64).abs() < 1e-14, "{report}");
/// # Ok::<(), residua::Error>(())
/// ```
pub struct Direct<T: Factorable> {
    a: Csr<T>,
    options: DirectOptions,
    structures: Structures,
    chain: Vec<Kind>,
    /// Kinds of the chain that were tried and left.
    at: usize,
    factor: Option<Factor<T>>,
    reasons: Vec<(Kind, Reason)>,
    seconds: f64,
    /// Norms of A by columns and rows.
    norms: (f64, f64),
    /// Whether b was found not to be in the range of A: only what leads to least-squares solutions is tried then.
    inconsistent: bool,
    /// ||A^-1||, once it was asked for.
    inverse: Option<Option<f64>>,
    /// How near a vector comes to the null space of A, once one was looked for: [`nearest_to_null`].
    null: Option<f64>,
    /// What residuals are measured by, once that was needed.
    weights: Option<Arc<Weights>>,
    second: Vec<T>,
    /// When the caller's time is over.
    deadline: Option<Instant>,
}

impl<T: Factorable> Direct<T> {
    /// What the factorisation of A will cost, by the kind that would be tried first. Nothing of the size of a factor is
    /// allocated.
    ///
    /// # Errors
    /// As [`Direct::planned`], and where the analysis itself is refused; the message says why.
    pub fn analyse(a: &Csr<T>, options: &DirectOptions) -> Result<Analysis> {
        Self::planned(a, options.clone())?.forecast()
    }

    /// The same; the order that was found for it is kept.
    ///
    /// # Errors
    /// Where the analysis is refused; the message says why.
    pub fn forecast(&mut self) -> Result<Analysis> {
        let Self { a, options, structures, chain, .. } = self;
        let Some(&kind) = chain.first() else {
            let none = "each kind of factorisation that may serve has failed before".to_string();
            let reason = self.reasons.first().map_or(none, |(_, reason)| reason.to_string());
            return Err(Error::Unsupported(reason));
        };
        let analysis = caught(|| analysis::forecast(a, kind, options, structures));
        analysis.map_err(|reason| Error::Unsupported(reason.to_string()))
    }

    /// Analyses and factorises A. Where no kind of factorisation succeeds this is no error: [`Direct::solve`] gives the
    /// reasons.
    ///
    /// # Errors
    /// As [`Direct::planned`].
    pub fn new(a: &Csr<T>, options: DirectOptions) -> Result<Self> {
        let mut direct = Self::planned(a, options)?;
        direct.factorise(&mut || true);
        Ok(direct)
    }

    /// Chooses what is tried, and factorises in the first solve.
    ///
    /// # Errors
    /// On a rectangular matrix with a kind other than dense QR and what is regularised, and without memory for a copy
    /// of A.
    pub fn planned(a: &Csr<T>, options: DirectOptions) -> Result<Self> {
        if !matches!(options.kind, Kind::Auto | Kind::Regularised | Kind::DenseQr) {
            Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        }
        if let Some(prepared) = &options.prepared {
            Error::check_dimension("length of the order of rows", a.rows(), prepared.rows.len())?;
            Error::check_dimension("rows of the scaling", a.rows(), prepared.scaling.rows().len())?;
            Error::check_dimension("columns of the scaling", a.columns(), prepared.scaling.columns().len())?;
        }
        let mut direct = Self {
            a: a.clone(),
            options,
            structures: Structures::default(),
            chain: Vec::new(),
            at: 0,
            factor: None,
            reasons: Vec::new(),
            seconds: 0.0,
            norms: norms(a),
            inconsistent: false,
            inverse: None,
            null: None,
            weights: None,
            second: Vec::new(),
            deadline: None,
        };
        let start = Instant::now();
        if a.parts().values.iter().all(|value| value.is_finite()) {
            direct.chain = analysis::chain(a, &direct.options, &mut direct.structures);
        } else {
            direct.reasons.push((direct.options.kind, Reason::NotFinite));
        }
        direct.seconds = start.elapsed().as_secs_f64();
        Ok(direct)
    }

    /// New values on the same pattern: orders and structures are kept, and so are scaling and the order of rows, unless
    /// LU no longer does without made-up pivots.
    ///
    /// # Errors
    /// On another pattern.
    pub fn update(&mut self, a: &Csr<T>) -> Result<()> {
        let (new, old) = (a.parts(), self.a.parts());
        let starts = |p: &crate::backend::CsrParts<'_, T, crate::Host>| p.offsets.download(&crate::Host);
        if (a.rows(), a.columns()) != (self.a.rows(), self.a.columns())
            || new.indices != old.indices
            || starts(&new)? != starts(&old)?
        {
            return Err(Error::InvalidMatrix("the pattern is not that of the factorisation".to_string()));
        }
        self.a.values_mut().copy_from_slice(a.parts().values);
        self.norms = norms(&self.a);
        (self.null, self.weights) = (None, None);
        self.seconds = 0.0;
        self.reasons.clear();
        self.factor = None;
        self.at = 0;
        let start = Instant::now();
        if !a.parts().values.iter().all(|value| value.is_finite()) {
            self.chain.clear();
            self.reasons.push((self.options.kind, Reason::NotFinite));
        } else {
            // Symmetry and signs of the diagonal may have changed; what LU has is kept.
            self.chain = analysis::chain(&self.a, &self.options, &mut self.structures);
        }
        self.seconds = start.elapsed().as_secs_f64();
        self.factorise(&mut || true);
        let planned = self.structures.matched.is_some() || self.structures.fronts.is_some();
        if self.factor.as_ref().is_none_or(|factor| factor.made_up() > 0) && planned {
            self.structures.forget_pivots();
            self.at = 0;
            self.reasons.clear();
            self.factorise(&mut || true);
        }
        Ok(())
    }

    /// Kinds that are expected to take longer than until then are not begun. (A library that has begun can't be asked
    /// to stop.)
    pub(crate) fn until(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// A factorisation, and a dense one, may take so many multiplications, and no more than it might before.
    pub(crate) fn allow(&mut self, flops: f64, dense: f64) {
        self.options.flop_limit = self.options.flop_limit.min(flops);
        self.options.dense_flop_limit = self.options.dense_flop_limit.min(dense);
    }

    /// Kinds that failed, and would with more memory and time.
    pub(crate) fn failed(&self) -> Vec<Kind> {
        let failed = self.reasons.iter().filter(|(kind, reason)| reason.is_final(*kind));
        let others = |kind: Kind| self.reasons.iter().all(|(k, reason)| *k != kind || reason.is_final(kind));
        failed.map(|(kind, _)| *kind).filter(|&kind| others(kind)).collect()
    }

    /// Why there is no time for a kind, where there is none.
    fn too_late(&mut self, kind: Kind) -> Option<Reason> {
        let left = self.deadline?.saturating_duration_since(Instant::now()).as_secs_f64();
        let Self { a, options, structures, .. } = self;
        // What has no forecast is refused in its own words.
        let seconds = caught(|| analysis::forecast(a, kind, options, structures)).ok()?.seconds();
        (seconds > left).then_some(Reason::TooLate { seconds, left })
    }

    /// Whether a dense factorisation comes behind this kind of LU which is made sooner than another LU of a small
    /// singular matrix and the iterations around it that lead nowhere.
    fn is_for_dense(&self, kind: Kind) -> bool {
        let is_lu = matches!(kind, Kind::FrontalLu | Kind::Lu | Kind::SupernodalLu);
        let is_singular = |reason: &Reason| {
            matches!(reason, Reason::NumericallySingular | Reason::StructurallySingular { .. })
        };
        is_lu
            && self.a.rows() <= SOONER_DENSE
            && self.chain[self.at..].contains(&Kind::DenseQr)
            && self.reasons.iter().any(|(_, reason)| is_singular(reason))
    }

    /// The next kind that gives a factor, as long as `going` says so.
    fn factorise(&mut self, going: &mut dyn FnMut() -> bool) {
        let start = Instant::now();
        self.inverse = None;
        self.factor = None;
        while self.factor.is_none() && self.at < self.chain.len() {
            let kind = self.chain[self.at];
            let again = self.chain[..self.at].contains(&kind);
            if !going() {
                self.reasons.push((kind, Reason::Stopped));
                self.at = self.chain.len();
                break;
            }
            self.at += 1;
            if self.inconsistent && !matches!(kind, Kind::Regularised | Kind::DenseQr) {
                continue;
            }
            if self.is_for_dense(kind) {
                continue;
            }
            if (kind == Kind::SupernodalLu || (kind == Kind::Lu && again)) && self.is_structurally_singular()
            {
                // Where rows have no column, no other choice of pivots gives them one.
                continue;
            }
            if let Some(reason) = work::looking(|| self.too_late(kind)) {
                self.reasons.push((kind, reason));
                continue;
            }
            let factor = work::looking(|| {
                Factor::new(&self.a, kind, again, &self.options, &mut self.structures, going)
            });
            match factor {
                Ok(factor) => self.factor = Some(factor),
                Err(reason) => {
                    if reason == Reason::Stopped {
                        self.at = self.chain.len();
                    }
                    self.reasons.push((kind, reason));
                }
            }
        }
        self.seconds += start.elapsed().as_secs_f64();
    }

    /// An estimate of the condition number ||A||_1 ||A^-1||_1 of the caller's matrix, where there is a factor that
    /// tells it; the matrix at hand may be scaled.
    pub(crate) fn condition_of(&mut self, weights: &Weights) -> Option<f64> {
        if !self.is_of_a() {
            return None;
        }
        if weights.plain.is_none() {
            return self.condition();
        }
        let factor = self.factor.as_ref()?;
        caught(|| Ok(scaled_condition((&self.a, factor), weights))).unwrap_or_default()
    }

    /// Whether what is known of the factor's matrix is known of A: where pivots were replaced, it may not be.
    fn is_of_a(&self) -> bool {
        let Some(factor) = &self.factor else { return true };
        let in_units =
            || column_units(&self.a).into_iter().map(|unit| T::from_f64(unit.max(f64::MIN_POSITIVE).recip()));
        factor.made_up() == 0
            || caught(|| Ok(is_inverse(&self.a, factor, &in_units().collect::<Vec<T>>()))).unwrap_or_default()
    }

    /// The same of the matrix at hand.
    fn condition(&mut self) -> Option<f64> {
        if self.inverse.is_none() {
            let n = self.a.columns();
            self.inverse =
                self.factor.as_ref().map(|factor| caught(|| Ok(inverse_norm(factor, n))).unwrap_or_default());
        }
        self.inverse.flatten().map(|inverse| inverse * self.norms.0)
    }

    /// The kind of the factor at hand.
    pub fn kind(&self) -> Option<Kind> {
        self.factor.as_ref().map(|factor| factor.kind)
    }

    /// A's approximate inverse, in place, without refinement: for an iteration around it. Zeros where there is no
    /// factor.
    ///
    /// # Errors
    /// On a vector of the wrong length.
    pub fn apply(&self, x: &mut Vec<T>) -> Result<()> {
        Error::check_dimension("length of x", self.a.rows(), x.len())?;
        let applied = self.factor.as_ref().map(|factor| {
            caught(|| {
                factor.apply(false, x);
                Ok(())
            })
        });
        if !matches!(applied, Some(Ok(()))) {
            x.clear();
            x.resize(self.a.columns(), T::default());
        }
        Ok(())
    }

    /// What rounding to one number each took from the last solution: x plus this is the solution in about twice the
    /// working precision.
    pub fn second(&self) -> &[T] {
        &self.second
    }

    /// Solves A x = b until ||b - A x|| <= `tolerance` ||b||, and the same holds for rows in units of their own norms:
    /// with refinement, then with iterations around the factor, then with the next kind of factorisation where the
    /// options allow any. x is what came nearest. Dense QR of a system that has no solution gives a least-squares one,
    /// which is not called solved. What a solve has not reached changes nothing for the next one.
    ///
    /// # Errors
    /// On vectors of the wrong length.
    pub fn solve(&mut self, b: &[T], x: &mut [T], tolerance: f64) -> Result<DirectReport> {
        self.solve_while(b, x, tolerance, &mut || true)
    }

    /// The same as long as `going` says so: it is asked between kinds of factorisations, and during LU column by
    /// column.
    ///
    /// # Errors
    /// As [`Direct::solve`].
    pub fn solve_while(
        &mut self,
        b: &[T],
        x: &mut [T],
        tolerance: f64,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<DirectReport> {
        let weights = self.weights.get_or_insert_with(|| Arc::new(Weights::of(&self.a))).clone();
        self.solve_towards(b, x, (tolerance, &weights), going)
    }

    /// The same with residuals measured otherwise: A may be another matrix than the caller's, scaled.
    pub(crate) fn solve_towards(
        &mut self,
        b: &[T],
        x: &mut [T],
        (tolerance, weights): (f64, &Weights),
        going: &mut dyn FnMut() -> bool,
    ) -> Result<DirectReport> {
        Error::check_dimension("length of b", self.a.rows(), b.len())?;
        Error::check_dimension("length of x", self.a.columns(), x.len())?;
        let start = Instant::now();
        let (spent, size) = (self.seconds, norm(b));
        let goal = Goal::new(weights, b, tolerance);
        self.inconsistent = false;
        if self.factor.is_none() && !self.chain.is_empty() {
            self.at = 0;
        }
        if self.at <= 1 && !self.chain.is_empty() {
            // A solve that reached nothing leaves no trace.
            self.reasons.clear();
        }
        if self.factor.is_none() && size.is_finite() && size > 0.0 {
            self.factorise(going);
        }
        let mut best = Refined::zero(x.len(), b, &goal);
        if !size.is_finite() {
            // An infinite b is far from any A x, and from its own norm times a tolerance.
            (best.residual, best.two_part, best.norm) = (f64::NAN, f64::NAN, f64::NAN);
        }
        let mut kind = self.kind().unwrap_or(self.options.kind);
        if !size.is_finite() {
            self.reasons.push((kind, Reason::NotFinite));
        }
        while size.is_finite() && best.residual > goal.norm {
            let Some(factor) = &self.factor else { break };
            let name = factor.kind;
            if name == Kind::Triangular && overflows(factor, b) {
                // The unknowns come one after the other, in the only order there is.
                self.reasons.push((name, Reason::NotFinite));
                break;
            }
            let mut refined = caught(|| Ok(refine(&self.a, factor, b, &goal, false)));
            if refined.as_ref().is_ok_and(|refined| refined.limited) {
                if self.is_singular() {
                    let Some(factor) = &self.factor else { break };
                    refined = caught(|| Ok(refine(&self.a, factor, b, &goal, true)));
                } else if let Ok(refined) = refined {
                    (best, kind) = (refined, name);
                    self.reasons.push((name, Reason::PrecisionLimit));
                    break;
                }
            }
            match refined {
                Ok(refined) => {
                    let solved = refined.residual <= goal.norm;
                    let nothing_nearer = self.is_nearest(&refined, &goal, tolerance);
                    let least = nothing_nearer && self.may_have_no_solution();
                    let Some(factor) = &self.factor else { break };
                    self.inconsistent |= least;
                    // Least-squares solutions have the same residual up to rounding, so residuals do not tell which one
                    // to take. A kind that leads to the shortest of them, and shows that nothing is nearer, replaces
                    // one that does not.
                    let of_factor = least
                        && factor.is_least_squares()
                        && (best.normal.is_some() || refined.norm <= ALIKE * best.norm);
                    if refined.residual < best.residual || of_factor {
                        (best, kind) = (refined, name);
                    }
                    let leads_there = least && factor.is_least_squares();
                    if !solved {
                        let reason = match () {
                            () if least => Reason::Inconsistent,
                            () if self.is_singular() => self.singular(),
                            () => Reason::Stagnated,
                        };
                        self.reasons.push((name, reason));
                    }
                    if leads_there {
                        // Another kind could give the same solution at best.
                        break;
                    }
                }
                Err(reason) => self.reasons.push((name, reason)),
            }
            if best.residual > goal.norm {
                if self.at == self.chain.len() {
                    break;
                }
                self.factorise(going);
            }
        }
        let solve_seconds = start.elapsed().as_secs_f64() - (self.seconds - spent);
        let report = self.report(best, kind, b, x, (&goal, tolerance), solve_seconds);
        let served = report.solved || report.normal_residual.is_some();
        if !served {
            // The next solve looks for the proof that A is singular with the factors that it has itself.
            self.null = None;
            if self.at > 1 {
                // Other kinds than the first have come and failed: the next solve begins where this one began.
                self.factor = None;
            }
        }
        Ok(report)
    }

    /// Whether A^H r says that nothing is nearer than x. A residual that is almost small enough may be due to rounding,
    /// and something else reach the tolerance.
    fn is_nearest(&self, refined: &Refined<T>, goal: &Goal<'_>, tolerance: f64) -> bool {
        refined.normal_of_x.is_some_and(|normal| normal <= LEAST * tolerance)
            && refined.residual > ALMOST * goal.norm
    }

    /// Whether there are b without a solution: A is not square, or was shown to be singular.
    fn may_have_no_solution(&mut self) -> bool {
        self.a.rows() != self.a.columns() || self.is_singular()
    }

    /// Whether A is singular, by its structure or up to rounding.
    fn is_singular(&mut self) -> bool {
        self.singularity().is_some()
    }

    /// The proof that a square A is singular. A vector is looked for with the factor at hand, unless a factor has found
    /// one before.
    fn singularity(&mut self) -> Option<Singularity> {
        if self.a.rows() != self.a.columns() {
            return None;
        }
        if let Some(rows) = self.structures.matched.as_ref().filter(|rows| rows.matched < self.a.rows()) {
            return Some(Singularity::Structural { rank: rows.matched });
        }
        if let Some(factor) = &self.factor
            && self.null.is_none_or(|ratio| ratio > NULL_UNITS)
        {
            let ratio = caught(|| Ok(nearest_to_null(&self.a, factor))).unwrap_or(f64::INFINITY);
            self.null = Some(self.null.unwrap_or(f64::INFINITY).min(ratio));
        }
        self.null.filter(|ratio| *ratio <= NULL_UNITS).map(|ratio| Singularity::NullVector { ratio })
    }

    fn is_structurally_singular(&self) -> bool {
        self.structures.matched.as_ref().is_some_and(|rows| rows.matched < self.a.rows())
    }

    fn singular(&self) -> Reason {
        match &self.structures.matched {
            Some(rows) if rows.matched < self.a.rows() => {
                Reason::StructurallySingular { rank: rows.matched, unmatched: rows.unmatched.clone() }
            }
            _ => Reason::NumericallySingular,
        }
    }

    fn report(
        &mut self,
        best: Refined<T>,
        kind: Kind,
        b: &[T],
        x: &mut [T],
        (goal, tolerance): (&Goal<'_>, f64),
        solve_seconds: f64,
    ) -> DirectReport {
        x.copy_from_slice(&best.x);
        let size = goal.norm_of(b);
        let relative = |r: f64| if size > 0.0 { r / size } else { r };
        let solved = best.residual <= goal.norm;
        let weight = self.norms.1 * largest(x) + largest(b);
        let backward_error = if weight > 0.0 { best.largest / weight } else { 0.0 };
        let unit = <T::Real as Float>::epsilon().to_f64();
        let normal_residual = best.normal_of_x.filter(|_| {
            self.is_nearest(&best, goal, tolerance)
                && (self.a.rows() != self.a.columns() || self.is_singular())
        });
        let told = |told: &Reason| self.reasons.iter().any(|(_, reason)| reason == told);
        let (overflowed, stopped) =
            (told(&Reason::NotFinite) && kind == Kind::Triangular, told(&Reason::Stopped));
        let given_up = solved || normal_residual.is_some() || overflowed || stopped;
        let singularity = if solved || overflowed || stopped { None } else { self.singularity() };
        // What no kind could bring nearer, though its backward error is one of rounding, has met the same limit.
        let at_rounding = best.limited || backward_error <= AT_ROUNDING * unit;
        let has_x = best.residual.is_finite() && best.x.iter().any(|x| *x != T::default());
        let precision_limited = !given_up && singularity.is_none() && at_rounding && has_x;
        let wished = self.options.condition || precision_limited;
        let condition = if wished && !work::is_asked() { self.condition_of(goal.weights) } else { None };
        let mut digits = condition.map(|c| (-(c * backward_error.max(unit)).log10()).max(0.0));
        if let Some(factor) = self.factor.as_ref().filter(|_| precision_limited) {
            let mut r = vec![T::default(); b.len()];
            residual(&self.a, b, x, None, &mut r);
            let error = caught(|| Ok(forward_error((&self.a, factor), b, x, &r))).unwrap_or_default();
            let by_components = error.map(|error| (-error.max(unit).log10()).max(0.0));
            digits = digits.into_iter().chain(by_components).reduce(f64::max);
            if !caught(|| Ok(is_inverse(&self.a, factor, x))).unwrap_or_default() {
                // Of pivots that were not replaced, but are rounding errors, the same holds.
                digits = Some(0.0);
            }
        }
        let factor = self.factor.as_ref();
        self.second = best.second;
        DirectReport {
            solved,
            precision_limited,
            singularity,
            kind,
            residual_norm: best.norm,
            relative_residual: relative(best.norm),
            two_part_residual: relative(best.two_part),
            backward_error,
            refinements: best.steps,
            iterations: best.iterations,
            condition,
            digits,
            order: factor.and_then(Factor::order),
            rank: factor.and_then(Factor::rank),
            perturbed: factor.map_or(0, Factor::made_up),
            normal_residual,
            minimum_norm: factor.is_some_and(Factor::is_minimum_norm),
            factor_seconds: self.seconds,
            solve_seconds,
            factor_bytes: factor.map_or(0, |factor| factor.bytes),
            reasons: self.reasons.clone(),
        }
    }
}

/// Part of a vector up to which M^-1 A v may miss v if M, the factored matrix, is A up to rounding.
const MISSED: f64 = 0.1;

/// Steps of the power iteration that looks for a vector which is missed. A null vector of A is missed wholly, and others
/// by the root of a unit of rounding where a pivot was replaced by that, so that few steps bring it forth.
const STEPS: usize = 8;

/// Whether a factor inverts A, on a vector whose entries are as large as those of x and on what is missed of it: on
/// v, G v, G G v, ... with G = I - M^-1 A.
///
/// Where a pivot was replaced, M^-1 is much smaller than A^-1, and x may be far more in doubt than any solve with M
/// tells. The vector that shows it may be small beside x, since units of columns differ: all steps but the first are
/// measured in these.
fn is_inverse<T: Factorable>(a: &Csr<T>, factor: &Factor<T>, x: &[T]) -> bool {
    let mut random = Random::new(0x696e_7665);
    let mut part = || random.between(0.5, 1.0) * if random.below(2) == 0 { 1.0 } else { -1.0 };
    let mut v: Vec<T> = x.iter().map(|&x| x * T::from_f64(part())).collect();
    let zero = vec![T::default(); a.rows()];
    let units = column_units(a);
    let size = |v: &[T]| v.iter().zip(&units).map(|(v, unit)| v.abs().to_f64() * unit).fold(0.0, f64::max);
    for step in 0..STEPS {
        let mut missed = zero.clone();
        residual(a, &zero, &v, None, &mut missed);
        factor.apply(false, &mut missed);
        missed.iter_mut().zip(&v).for_each(|(missed, &v)| *missed += v);
        let (part, whole) =
            if step == 0 { (largest(&missed), largest(&v)) } else { (size(&missed), size(&v)) };
        if missed.iter().any(|missed| !missed.is_finite()) || part > MISSED * whole {
            return false;
        }
        let length = size(&missed);
        if length == 0.0 {
            break;
        }
        // A power of two, so that no number leaves the range of the type.
        let scale = T::from_f64(length.log2().round().exp2().recip());
        v = missed;
        v.iter_mut().for_each(|v| *v *= scale);
    }
    true
}

/// The largest entry of each column, rows divided by their largest.
fn column_units<T: Factorable>(a: &Csr<T>) -> Vec<f64> {
    let mut units = vec![0.0_f64; a.columns()];
    for row in 0..a.rows() {
        let (indices, values) = a.row(row);
        let most = largest(values);
        for (&column, value) in indices.iter().zip(values).filter(|_| most > 0.0) {
            let unit = &mut units[column as usize];
            *unit = unit.max(value.abs().to_f64() / most);
        }
    }
    units
}

/// Whether substitution leads to numbers that are none.
fn overflows<T: Factorable>(factor: &Factor<T>, b: &[T]) -> bool {
    let mut x = b.to_vec();
    factor.apply(false, &mut x);
    x.iter().any(|x| !x.is_finite())
}
