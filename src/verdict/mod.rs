//! The verdict on x, computed only from A, b and the x that is returned.
//!
//! ```text
//! r = b - A x     in working precision, with a bound of its rounding errors
//!                 -> in twice the working precision if that bound does not decide whether r meets the tolerance
//! converged       ||r|| <= tolerance ||b||  and  ||D r|| <= tolerance ||D b||,  D = 1 / the norm of each row of A
//! ```
//!
//! One norm is not enough if rows have different units: with a penalty of 1e12 in a few rows, all others may be wrong.
//! Therefore each row is also measured relative to its own norm. Both norms are compared with bounds of their rounding
//! errors, so that a claim holds in exact arithmetic.
//!
//! | file | what it holds |
//! |---|---|
//! | `rows` | the row norms of a matrix, and weights for residuals |
//! | `exact` | the verdict on the host, if bounds by norms do not decide |
//! | `normal` | the residual of the normal equations |
//! | `equilibrate` | scaling of a matrix whose rows differ in scale |

mod equilibrate;
mod exact;
mod normal;
mod rows;

pub(crate) use equilibrate::{CallersUnits, Equilibrated, equilibrated};
pub(crate) use exact::decided;
pub(crate) use normal::normal_residual;
pub(crate) use rows::RowNorms;

use crate::backend::{Backend, Communicator, Space, VectorOps};
use crate::error::Result;
use crate::krylov::SolveOptions;
use crate::krylov::units::Units;
use crate::operator::{LinearOperator, plain_residual};
use crate::scalar::{Real, Scalar};
use num_traits::{Float, One};

/// Norms of a residual, and the decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Verdict {
    /// ||b - A x||, and ||b||.
    pub(crate) residual: f64,
    pub(crate) b: f64,
    /// ||D (b - A x)|| and ||D b||; the plain norms if rows are not weighted.
    pub(crate) rows: f64,
    pub(crate) b_rows: f64,
    /// ||x||.
    pub(crate) x: f64,
    /// True if the tolerance is met, in exact arithmetic.
    pub(crate) met: bool,
    /// True if error bounds by norms of A do not decide whether it is met.
    pub(crate) undecided: bool,
}

impl Verdict {
    /// ||b - A x|| / ||b||; 0 if both are zero.
    pub(crate) fn relative(&self) -> f64 {
        ratio(self.residual, self.b)
    }

    /// ||D (b - A x)|| / ||D b||; 0 if both are zero.
    pub(crate) fn row_wise(&self) -> f64 {
        ratio(self.rows, self.b_rows)
    }

    /// The larger of the two ratios, as a multiple of the allowed value.
    pub(crate) fn excess<T: Scalar>(&self, options: &SolveOptions) -> f64 {
        let part = options.threshold::<T>(self.b) / self.b;
        (self.relative() / part).max(self.row_wise() / part)
    }

    /// Normwise backward error with a norm of A: ||b - A x|| / (||A|| ||x|| + ||b||); none if that is not finite.
    pub(crate) fn backward_error(&self, norm_of_a: f64) -> Option<f64> {
        if self.residual == 0.0 {
            return Some(0.0);
        }
        let error = self.residual / (norm_of_a * self.x + self.b);
        Some(error).filter(|error| error.is_finite() && norm_of_a > 0.0)
    }
}

/// If x misses the tolerance by some factor (the excess), its method is asked for a residual smaller by the excess and
/// by ASK_FOR. This is repeated as long as each round reduces the excess to at most FALLS of the one before. If rows of
/// few large entries dominate, the excess decreases less than the residual of the method: for three-dimensional
/// elements by less than half, to 1.006.
const ASK_FOR: f64 = 2.0;
const FALLS: f64 = 0.9;

/// The residual to ask a method for next, relative to its right-hand side. Its x misses the tolerance by the factor
/// `excess` (`worst` before), with the residual `own`. None if the last round has not helped.
pub(crate) fn more(own: f64, excess: f64, worst: f64) -> Option<f64> {
    let next = own / (ASK_FOR * excess.max(1.0));
    (excess < FALLS * worst && next > 0.0).then_some(next)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / whole }
}

/// A computed norm, with a bound of its distance from that of the exact vector.
#[derive(Clone, Copy)]
struct Bounded {
    norm: f64,
    error: f64,
}

impl Bounded {
    /// Whether the exact norm is at most the threshold; none if the error bound does not decide.
    fn is_at_most(self, threshold: f64) -> Option<bool> {
        if self.norm + self.error <= threshold {
            Some(true)
        } else if self.norm - self.error > threshold || self.norm.is_nan() {
            Some(false)
        } else {
            None
        }
    }
}

/// The relative error of a computed norm in units of rounding. It is this small because sums are computed in blocks.
const NORM_UNITS: f64 = 64.0;

/// Rounding errors of a row in addition to those of its products and sums.
const BESIDE: f64 = 4.0;

/// Norms between this and its reciprocal can be squared in any type without loss, so b needs no scaling.
const ORDINARY: f64 = 1e-12;

/// The tolerance may be reported as missed only if the error of a norm is at most this fraction of it.
const TOLD: f64 = 0.05;

/// b - A x for the x that is judged, computed by a product in working precision and scaled by a power of two, and that
/// power.
pub(crate) type Known<'a, T, B> = (&'a <B as Backend>::Slice<T>, f64);

/// Judges x. Every solve calls this before it reports convergence.
///
/// # Errors
/// If memory runs out, or if the device or another rank fails.
pub(crate) fn verdict<T: Scalar, B: VectorOps, C: Communicator<B>>(
    space: &Space<B, C>,
    (a, norms): (&(impl LinearOperator<T, B> + ?Sized), &mut RowNorms<T, B>),
    (b, x): (&B::Slice<T>, &B::Slice<T>),
    options: &SolveOptions,
    known: Option<Known<'_, T, B>>,
) -> Result<Verdict> {
    let (mut room, mut squares) = norms.take_room(space.backend(), a.rows())?;
    let judged = judged(space, (a, norms), (b, x), (options, known), (&mut room, &mut squares));
    norms.give_back(room, squares);
    judged
}

/// [`verdict`] with memory for a residual and for two numbers.
fn judged<T: Scalar, B: VectorOps, C: Communicator<B>>(
    space: &Space<B, C>,
    (a, norms): (&(impl LinearOperator<T, B> + ?Sized), &RowNorms<T, B>),
    (b, x): (&B::Slice<T>, &B::Slice<T>),
    (options, known): (&SolveOptions, Option<Known<'_, T, B>>),
    (r, squares): (&mut B::Slice<T>, &mut B::Slice<T::Real>),
) -> Result<Verdict> {
    let backend = space.backend();
    let mut scale = T::Real::one();
    let (mut b_norm, mut b_rows) = norms.of_residual(space, b, squares)?;
    if !(ORDINARY..ORDINARY.recip()).contains(&b_norm) {
        // The square of b may have underflowed or overflowed.
        let units = Units::of(space, b, r, B::part_mut(squares, 0..1))?;
        scale = units.scale();
        backend.axpby(T::from_real(scale), b, T::zero(), r)?;
        (b_norm, b_rows) = norms.of_residual(space, r, squares)?;
    }
    let unit = scale.to_f64().recip();
    (b_norm, b_rows) = (unit * b_norm, unit * b_rows);
    let x_norm = norms.of_x(space, x, squares)?;
    let epsilon = <T::Real as Float>::epsilon().to_f64();
    // A complex product has four rounding errors, a real one has one.
    let roundings = (norms.longest() as f64 + BESIDE) * if T::COMPLEX { 4.0 } else { 1.0 };
    let threshold = options.threshold::<T>(b_norm);
    let part = if b_norm > 0.0 { threshold / b_norm } else { 0.0 };
    let mut told = Verdict {
        residual: f64::NAN,
        b: b_norm,
        rows: f64::NAN,
        b_rows,
        x: x_norm,
        met: false,
        undecided: true,
    };
    for accurate in [false, true] {
        let (of, unit) = match known.filter(|_| !accurate) {
            Some((known, scale)) => (known, scale.recip()),
            None if !accurate => {
                plain_residual(backend, a, T::from_real(scale), b, x, r)?;
                (&*r, unit)
            }
            None if a.accurate_residual(backend, T::from_real(scale), b, x, r)? => (&*r, unit),
            // A doubtful result is not reported as met.
            None => break,
        };
        let (norm, rows) = norms.of_residual(space, of, squares)?;
        (told.residual, told.rows) = (unit * norm, unit * rows);
        // Rounding errors in the sums of r, in r itself, and in its norm.
        let of_sums = if accurate { (roundings * epsilon).powi(2) } else { roundings * epsilon };
        let of_norm = (NORM_UNITS + 1.0) * epsilon;
        let bounded = |norm: f64, of_a: f64, b: f64| Bounded {
            norm,
            error: of_sums * (of_a * x_norm + b) + of_norm * (norm + part * b),
        };
        let plain = bounded(told.residual, norms.norm(), b_norm);
        let rows = bounded(told.rows, norms.norm_of_weighted(), b_rows);
        let is_zero = b_norm == 0.0 && told.residual == 0.0;
        let by_norm = if is_zero { Some(true) } else { plain.is_at_most(threshold) };
        let by_rows = if b_norm > 0.0 { rows.is_at_most(part * b_rows) } else { Some(true) };
        match (by_norm, by_rows) {
            (Some(true), Some(true)) => {
                (told.met, told.undecided) = (true, false);
                break;
            }
            (Some(false), _) | (_, Some(false)) => {
                told.undecided = false;
                let figures = [(plain.error, plain.norm), (rows.error, rows.norm)];
                if told.residual.is_nan() || figures.iter().all(|(error, norm)| *error <= TOLD * norm) {
                    break;
                }
            }
            _ => told.undecided = true,
        }
    }
    Ok(told)
}
