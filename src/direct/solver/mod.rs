//! The factorisation that a caller holds.

mod kinds;
mod outcome;
mod quick;

use super::analysis::{self, Analysis};
use super::factor::Factor;
use super::goal::{Goal, Weights, norm};
use super::options::{DirectOptions, Kind};
use super::refine::{Refined, norms, refine};
use super::report::{DirectReport, Reason};
use super::steps::{FEW, caught};
use super::structures::Structures;
use crate::direct::Factorable;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::join;
use std::sync::Arc;
use std::time::Instant;

/// The residuals of two least-squares solutions are the same up to this factor.
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
    /// The number of kinds in `chain` that were tried and failed.
    at: usize,
    factor: Option<Factor<T>>,
    reasons: Vec<(Kind, Reason)>,
    seconds: f64,
    /// ||A||_1 and ||A||_inf.
    norms: (f64, f64),
    /// Whether b was found not to be in the range of A; then only kinds that give least-squares solutions are tried.
    inconsistent: bool,
    /// ||A^-1||, after it was first requested.
    inverse: Option<Option<f64>>,
    /// The smallest ratio that [`nearest_to_null`] found, after the first search.
    null: Option<f64>,
    /// The weights of residuals, after they were first needed.
    weights: Option<Arc<Weights>>,
    /// The weights for A^T.
    column_weights: Option<Arc<Weights>>,
    second: Vec<T>,
    /// The caller's deadline.
    deadline: Option<Instant>,
}

impl<T: Factorable> Direct<T> {
    /// Forecasts the cost of the kind that would be tried first. Nothing of the size of a factor is allocated.
    ///
    /// # Errors
    /// As [`Direct::planned`], and if the analysis exceeds a limit; the message says why.
    pub fn analyse(a: &Csr<T>, options: &DirectOptions) -> Result<Analysis> {
        Self::planned(a, options.clone())?.forecast()
    }

    /// Forecasts the cost as [`Direct::analyse`] does, for this matrix; the fill-reducing ordering is kept for the
    /// factorisation.
    ///
    /// # Errors
    /// If the analysis exceeds a limit; the message says why.
    pub fn forecast(&mut self) -> Result<Analysis> {
        let Self { a, options, structures, chain, .. } = self;
        let Some(&kind) = chain.first() else {
            let none = "every suitable kind of factorisation has failed before".to_string();
            let reason = self.reasons.first().map_or(none, |(_, reason)| reason.to_string());
            return Err(Error::Unsupported(reason));
        };
        let analysis = caught(|| analysis::forecast(a, kind, options, structures));
        analysis.map_err(|reason| Error::Unsupported(reason.to_string()))
    }

    /// Analyses and factorises A. If every kind of factorisation fails, this returns no error: [`Direct::solve`]
    /// reports the reasons.
    ///
    /// # Errors
    /// As [`Direct::planned`].
    pub fn new(a: &Csr<T>, options: DirectOptions) -> Result<Self> {
        let mut direct = Self::planned(a, options)?;
        direct.factorise(&mut || true);
        Ok(direct)
    }

    /// Chooses the kinds to try. The first solve factorises.
    ///
    /// # Errors
    /// If the matrix is rectangular and the kind is neither dense QR nor regularised, or if there is not enough memory
    /// for a copy of A.
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
            norms: (f64::NAN, f64::NAN),
            inconsistent: false,
            inverse: None,
            null: None,
            weights: None,
            column_weights: None,
            second: Vec::new(),
            deadline: None,
        };
        let start = Instant::now();
        let finite = a.parts().values.iter().all(|value| value.is_finite());
        let Self { options, structures, .. } = &mut direct;
        let mut chain = || if finite { analysis::chain(a, options, structures) } else { Vec::new() };
        (direct.norms, direct.chain) = match a.nonzeros() <= FEW {
            // Both take so little time that passing one to another thread does not help.
            true => (norms(a), chain()),
            false => join(|| norms(a), chain),
        };
        if !finite {
            direct.reasons.push((direct.options.kind, Reason::NotFinite));
        }
        direct.seconds = start.elapsed().as_secs_f64();
        Ok(direct)
    }

    /// Replaces the values; the pattern stays. Orderings and structures are kept, and so are scaling and row
    /// permutation, unless LU then needs perturbed pivots.
    ///
    /// # Errors
    /// If the pattern differs.
    pub fn update(&mut self, a: &Csr<T>) -> Result<()> {
        let (new, old) = (a.parts(), self.a.parts());
        let starts = |p: &crate::backend::CsrParts<'_, T, crate::Host>| p.offsets.download(&crate::Host);
        if (a.rows(), a.columns()) != (self.a.rows(), self.a.columns())
            || new.indices != old.indices
            || starts(&new)? != starts(&old)?
        {
            return Err(Error::InvalidMatrix(
                "the pattern differs from that of the factorised matrix".to_string(),
            ));
        }
        self.a.values_mut().copy_from_slice(a.parts().values);
        self.norms = norms(&self.a);
        (self.null, self.weights, self.column_weights) = (None, None, None);
        self.seconds = 0.0;
        self.reasons.clear();
        self.factor = None;
        self.at = 0;
        let start = Instant::now();
        if !a.parts().values.iter().all(|value| value.is_finite()) {
            self.chain.clear();
            self.reasons.push((self.options.kind, Reason::NotFinite));
        } else {
            // Symmetry and the signs of the diagonal may have changed; the analysis for LU is kept.
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

    /// The kind of the current factor.
    pub fn kind(&self) -> Option<Kind> {
        self.factor.as_ref().map(|factor| factor.kind)
    }

    /// Applies the factor's approximate inverse to x in place, without refinement, as a preconditioner. Sets x to zero
    /// if there is no factor.
    ///
    /// # Errors
    /// If x has the wrong length.
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

    /// The rounding error of each entry of the last solution: x plus this is the solution in about twice the working
    /// precision.
    pub fn second(&self) -> &[T] {
        &self.second
    }

    /// Solves A x = b such that ||b - A x|| <= `tolerance` ||b||, and the same with each row divided by its norm. It
    /// tries refinement, then flexible GMRES preconditioned by the factor, then the next kind of factorisation if the
    /// options allow more than one. If all fail, x has the smallest residual that was found. For a system without a
    /// solution, dense QR gives a least-squares solution, which is not reported as solved. A solve that failed does not
    /// affect later ones.
    ///
    /// # Errors
    /// If a vector has the wrong length.
    pub fn solve(&mut self, b: &[T], x: &mut [T], tolerance: f64) -> Result<DirectReport> {
        self.solve_while(b, x, tolerance, &mut || true)
    }

    /// [`Direct::solve`] that stops when `going` returns false. `going` is called between kinds of factorisations, and
    /// during LU column by column.
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

    /// `solve_while` with weighted residuals, since A may be a scaled form of the caller's matrix.
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
            // A solve that failed must not affect this one.
            self.reasons.clear();
        }
        if self.factor.is_none() && size.is_finite() && size > 0.0 {
            self.factorise(going);
        }
        let mut best = Refined::zero(x.len(), b, &goal);
        if !size.is_finite() {
            // For an infinite b, no residual and no tolerance is defined.
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
                // Substitution has overflowed. There is only one order of elimination, so other kinds overflow too.
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
                    let nothing_nearer = self.is_nearest(&refined, b, &goal, tolerance);
                    let least = nothing_nearer && self.may_have_no_solution();
                    let Some(factor) = &self.factor else { break };
                    self.inconsistent |= least;
                    // Least-squares solutions have the same residual up to rounding, so it does not show which one to
                    // take. A kind that gives the shortest one, and proves that its residual is the smallest, replaces
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
                        // No other kind could give a better solution.
                        break;
                    }
                }
                Err(reason) => self.reasons.push((name, reason)),
            }
            if best.residual > goal.norm {
                if !self.has_more() {
                    break;
                }
                self.factorise(going);
            }
        }
        let solve_seconds = start.elapsed().as_secs_f64() - (self.seconds - spent);
        let report = self.report(best, kind, b, x, (&goal, tolerance), solve_seconds);
        let served = report.solved || report.normal_residual.is_some();
        if !served {
            // The next solve repeats the search for a null vector with its own factors.
            self.null = None;
            if self.at > 1 {
                // Other kinds than the first were tried and failed, so the next solve starts from the first one again.
                self.factor = None;
            }
        }
        Ok(report)
    }
}

/// Returns whether substitution overflows.
fn overflows<T: Factorable>(factor: &Factor<T>, b: &[T]) -> bool {
    let mut x = b.to_vec();
    factor.apply(false, &mut x);
    x.iter().any(|x| !x.is_finite())
}
