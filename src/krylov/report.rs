//! The report of a solver.

use std::fmt;

/// How a solve ended. x holds the last iterate. If the iteration failed ([`NotPositiveDefinite`], [`Breakdown`],
/// [`Stagnated`], [`NotFinite`]) and its last iterate is worse than the vector from which it, or its last restart,
/// started, x holds that vector instead. A failed solve therefore never returns an x with a larger residual than that
/// of the starting vector.
///
/// [`NotPositiveDefinite`]: Outcome::NotPositiveDefinite
/// [`Breakdown`]: Outcome::Breakdown
/// [`Stagnated`]: Outcome::Stagnated
/// [`NotFinite`]: Outcome::NotFinite
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Outcome {
    /// b - A x, recomputed, meets the tolerance: in norm, and in norm once each row is divided by its own norm in A.
    Converged,
    /// A^H (b - A x), recomputed from x, is small enough compared to ||A|| ||b - A x||, while b - A x does not meet the
    /// tolerance: x is a least-squares solution of a system that has no other, as far as working precision can tell.
    LeastSquares,
    /// The iteration limit is reached.
    IterationLimit,
    /// A vector p with p.Ap <= 0 was found: A is not positive definite, to working precision.
    NotPositiveDefinite {
        /// The iteration that found it, from 1; 0 if a diagonal entry shows it.
        iteration: usize,
        /// p.Ap / p.p, an upper bound of the smallest eigenvalue of A.
        curvature: f64,
    },
    /// The recurrence cannot go on: a step length overflows, p.Ap underflows, or the preconditioner is not positive
    /// definite.
    Breakdown {
        /// The iteration at which it happened, from 1.
        iteration: usize,
    },
    /// A was proved to be singular, exactly or up to rounding of its entries, and no x was found that meets the
    /// tolerance: b is apparently not in the range of A.
    Singular,
    /// x is as accurate as working precision allows, and does not meet the tolerance: its backward error is of the
    /// order of rounding, and another step of refinement with an accurate residual changes nothing. A was not found to
    /// be singular, but is ill-conditioned.
    PrecisionLimit {
        /// Decimal digits of x, in norm, that can be trusted; 0 if none can be, or if nothing is known of them.
        digits: f64,
    },
    /// The residual no longer decreases: neither within the stagnation window nor after a restart from b - A x; or it
    /// has grown more than is possible for a matrix that is not singular to working precision.
    Stagnated,
    /// b, the starting vector, A or an iterate holds infinities or NaN.
    NotFinite,
    /// The observer requested a stop.
    Interrupted,
    /// The time limit is reached ([`Builder::time_limit`](crate::solver::Builder::time_limit)).
    TimeLimit,
    /// A candidate of the solver's own choice was given up for the next one, which is expected to finish sooner. This
    /// is the outcome of a candidate ([`StageReport`](crate::solver::StageReport)), and never of a solve.
    GivenUp,
}

impl Outcome {
    /// Returns whether the tolerance is met.
    pub fn is_converged(&self) -> bool {
        matches!(self, Outcome::Converged)
    }

    /// Returns whether x can be used as the solution: the tolerance is met, or no x meets it and this one is a
    /// least-squares solution, or working precision allows no more and leaves at least one digit that can be trusted.
    pub fn is_solved(&self) -> bool {
        match self {
            Outcome::Converged | Outcome::LeastSquares => true,
            Outcome::PrecisionLimit { digits } => *digits >= 1.0,
            _ => false,
        }
    }

    /// One word for programs: `converged`, `least_squares`, `max_iterations`, `not_positive_definite`, `breakdown`,
    /// `singular`, `precision_limit`, `stagnated`, `not_finite`, `interrupted`, `time_limit`, and `given_up` (of a
    /// candidate only).
    pub fn status(&self) -> &'static str {
        match self {
            Outcome::Converged => "converged",
            Outcome::LeastSquares => "least_squares",
            Outcome::IterationLimit => "max_iterations",
            Outcome::NotPositiveDefinite { .. } => "not_positive_definite",
            Outcome::Breakdown { .. } => "breakdown",
            Outcome::Singular => "singular",
            Outcome::PrecisionLimit { .. } => "precision_limit",
            Outcome::Stagnated => "stagnated",
            Outcome::NotFinite => "not_finite",
            Outcome::Interrupted => "interrupted",
            Outcome::TimeLimit => "time_limit",
            Outcome::GivenUp => "given_up",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Converged => f.write_str("converged"),
            Outcome::LeastSquares => f.write_str("least-squares solution"),
            Outcome::IterationLimit => f.write_str("iteration limit reached"),
            Outcome::NotPositiveDefinite { iteration, curvature } => {
                write!(f, "not positive definite (curvature {curvature:.3e} at iteration {iteration})")
            }
            Outcome::Breakdown { iteration } => write!(f, "breakdown at iteration {iteration}"),
            Outcome::Singular => f.write_str("singular"),
            Outcome::PrecisionLimit { digits } if *digits < 1.0 => {
                f.write_str("at the limit of the precision; no digit of x can be trusted")
            }
            Outcome::PrecisionLimit { digits } => {
                write!(f, "at the limit of the precision, about {digits:.0} correct digits")
            }
            Outcome::Stagnated => f.write_str("stagnated"),
            Outcome::NotFinite => f.write_str("not finite"),
            Outcome::Interrupted => f.write_str("interrupted"),
            Outcome::TimeLimit => f.write_str("time limit reached"),
            Outcome::GivenUp => f.write_str("given up"),
        }
    }
}

/// The report of a solve. Norms are 2-norms.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use = "not converging is no error: check the outcome"]
#[non_exhaustive]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// Iterations that changed x.
    pub iterations: usize,
    /// ||b - A x||, recomputed from the final x; NaN if that is not finite.
    pub residual_norm: f64,
    /// [`residual_norm`](Report::residual_norm) / ||b||; 0 if both are zero.
    pub relative_residual: f64,
    /// ||x||, if it is known and not zero: it is measured together with a certificate.
    pub solution_norm: Option<f64>,
    /// The number of times that the recurrence was restarted from b - A x, because its own residual had drifted away
    /// from that.
    pub restarts: usize,
    /// Compulsory bytes of one iteration: matrix, vectors and preconditioner, each as often as it must be moved.
    pub bytes_per_iteration: usize,
}
impl Report {
    /// The report of a solve by factorisation.
    pub(crate) fn of_factor(
        outcome: Outcome,
        iterations: usize,
        residual_norm: f64,
        relative_residual: f64,
    ) -> Self {
        let (solution_norm, restarts, bytes_per_iteration) = (None, 0, 0);
        Self {
            outcome,
            iterations,
            residual_norm,
            relative_residual,
            solution_norm,
            restarts,
            bytes_per_iteration,
        }
    }
}
