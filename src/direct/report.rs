//! What a direct solve tells.

use super::Kind;
use crate::backend::FactorEstimate;
use crate::prepare::OrderKind;
use crate::report;
use std::fmt;

/// Rows and columns that a largest matching leaves alone, from 0; not more than a hundred of each.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Unmatched {
    /// Rows.
    pub rows: Vec<u32>,
    /// Columns.
    pub columns: Vec<u32>,
}

/// The proof that a matrix is singular.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Singularity {
    /// Exactly: only so many rows can be matched with columns, so that no values make a matrix of this pattern regular.
    Structural {
        /// Rows that can be matched.
        rank: usize,
    },
    /// Up to rounding: a vector v was found with |A v|_i <= ratio eps (|A| |v|)_i in every row i, computed in twice the
    /// working precision. A matrix whose entries differ from those of A by rounding alone is exactly singular.
    NullVector {
        /// The largest |A v|_i / (eps (|A| |v|)_i).
        ratio: f64,
    },
}

/// Why a factorisation or a solve came to nothing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// No choice of values makes a matrix with this pattern regular.
    StructurallySingular {
        /// As many rows can be matched with columns.
        rank: usize,
        /// Rows and columns that found no partner, from 0.
        unmatched: Unmatched,
    },
    /// Pivots vanished, and b is not in the range of A as far as this precision can tell.
    NumericallySingular,
    /// Infinities or NaN in A, b or a factor.
    NotFinite,
    /// The factor needs more memory than is allowed.
    TooLarge {
        /// Bytes that are needed, at least.
        bytes: u64,
        /// Bytes that are allowed; 0 where the system refused them.
        limit: u64,
    },
    /// The factorisation takes more multiplications than are allowed.
    TooLong {
        /// Multiplications that are needed, about.
        flops: f64,
        /// Multiplications that are allowed.
        limit: f64,
    },
    /// The search for a fill-reducing order takes as long as the factorisation may.
    OrderTooLong {
        /// Entries of the elimination graph after which it was ended.
        entries: f64,
    },
    /// The factorisation is expected to take longer than there is time.
    TooLate {
        /// Seconds that it is expected to take.
        seconds: f64,
        /// Seconds that are left.
        left: f64,
    },
    /// The caller wished to stop.
    Stopped,
    /// The method does not apply, or stopped, in its own words.
    Refused(String),
    /// No x solves the system, and none makes b - A x smaller than this one.
    Inconsistent,
    /// Neither refinement nor iterations around the factor reach the tolerance.
    Stagnated,
    /// Rounding x to working precision leaves a larger residual than the tolerance allows.
    PrecisionLimit,
}

impl Reason {
    /// Whether a kind of factorisation that failed for this reason would fail for it with more memory and time, too.
    pub(crate) fn is_final(&self, kind: Kind) -> bool {
        match self {
            Reason::TooLarge { .. }
            | Reason::TooLong { .. }
            | Reason::OrderTooLong { .. }
            | Reason::TooLate { .. }
            | Reason::Stopped => false,
            // LU column by column tells in words where it took more than it was allowed.
            Reason::Refused(_) => kind != Kind::Lu,
            _ => true,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::StructurallySingular { rank, .. } => {
                write!(f, "structurally singular: only {rank} rows can be matched with columns")
            }
            Reason::NumericallySingular => {
                f.write_str("singular to working precision, and b is not in its range")
            }
            Reason::NotFinite => f.write_str("infinities or NaN in the matrix, b or the factor"),
            Reason::TooLarge { bytes, limit } => {
                write!(f, "too large for memory: needs at least {}, ", report::bytes(*bytes))?;
                match limit {
                    0 => f.write_str("which the system refused"),
                    limit => write!(f, "{} are allowed", report::bytes(*limit)),
                }
            }
            Reason::TooLong { flops, limit } => {
                write!(f, "{flops:.1e} multiplications, {limit:.1e} are allowed")
            }
            Reason::OrderTooLong { entries } => {
                write!(f, "no fill-reducing order was found in {entries:.0e} steps, as many as it may take")
            }
            Reason::TooLate { seconds, left } => {
                write!(
                    f,
                    "about {} are needed, {} are left",
                    report::seconds(*seconds),
                    report::seconds(*left)
                )
            }
            Reason::Stopped => f.write_str("stopped by the caller"),
            Reason::Refused(why) => f.write_str(why),
            Reason::Inconsistent => f.write_str("b is not in its range, and x a least-squares solution"),
            Reason::Stagnated => f.write_str("the residual no longer falls"),
            Reason::PrecisionLimit => {
                f.write_str("rounding x leaves a larger residual than the tolerance allows")
            }
        }
    }
}

/// What became of a solve.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DirectReport {
    /// Whether ||b - A x||, computed anew from the x that the caller has, meets the tolerance, and the norm of its rows
    /// likewise, each in units of the norm of that row of A.
    pub solved: bool,
    /// Whether x is as near as working precision allows where it does not meet the tolerance: A is regular, and another
    /// step of refinement with an accurate residual changes nothing.
    pub precision_limited: bool,
    /// The proof that A is singular, where it was asked for and found.
    pub singularity: Option<Singularity>,
    /// The factorisation that x comes from.
    pub kind: Kind,
    /// ||b - A x|| in the 2-norm, computed anew with products and sums in twice the working precision.
    pub residual_norm: f64,
    /// The same over ||b||.
    pub relative_residual: f64,
    /// The same over ||b|| with x as a sum of two numbers of working precision, whose second parts
    /// [`Direct::second`](super::Direct::second) gives. Less than [`DirectReport::relative_residual`] where rounding x
    /// once is what keeps it from being smaller.
    pub two_part_residual: f64,
    /// ||b - A x|| / (||A|| ||x|| + ||b||) in the maximum norm: Rigal and Gaches, J. ACM 14 (1967). By how much A and b
    /// must change for x to be exact.
    pub backward_error: f64,
    /// Steps of iterative refinement.
    pub refinements: usize,
    /// Iterations of flexible GMRES around the factor.
    pub iterations: usize,
    /// Estimate of the condition number ||A||_1 ||A^-1||_1 (a lower bound, mostly within a factor of 3); of a matrix
    /// nearby where pivots were made up.
    pub condition: Option<f64>,
    /// Decimal digits of x (in norm) that can be trusted where the entries of A and b are right up to rounding: from
    /// condition and backward error, or from a componentwise bound of the error where that promises more.
    pub digits: Option<f64>,
    /// How the order of elimination was found, where it is this crate's.
    pub order: Option<OrderKind>,
    /// Numerical rank, where it was found.
    pub rank: Option<usize>,
    /// Pivots that were made up in place of zeros. LDL^H does not count its own.
    pub perturbed: usize,
    /// ||A^H (b - A x)|| / (||A|| ||b - A x||), where x is a least-squares solution by that measure and b not in the
    /// range of A.
    pub normal_residual: Option<f64>,
    /// Whether x is the solution of least norm, where there are several.
    pub minimum_norm: bool,
    /// Seconds of analysis and factorisation, of all kinds that were tried so far.
    pub factor_seconds: f64,
    /// Seconds of this solve without factorisations.
    pub solve_seconds: f64,
    /// Bytes of the factor.
    pub factor_bytes: u64,
    /// Why x does not meet the tolerance; for each kind that failed before, why.
    pub reasons: Vec<(Kind, Reason)>,
}

impl fmt::Display for DirectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.solved { "solved" } else { "not solved" };
        write!(f, "{word} by {}, relative residual {:.2e}", self.kind, self.relative_residual)?;
        if let (false, Some((kind, reason))) = (self.solved, self.reasons.last()) {
            write!(f, "; {kind}: {reason}")?;
        }
        Ok(())
    }
}

/// Seconds of a factorisation in the memory of a backend.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct DeviceSeconds {
    /// Matching and order of elimination, on the host.
    pub order: f64,
    /// The library's analysis; its own order where it finds one.
    pub analysis: f64,
    /// The factors, of all kinds that were tried.
    pub factor: f64,
    /// The last solve without factorisations.
    pub solve: f64,
}

/// What became of a solve with factors in the memory of a backend.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeviceReport {
    /// Whether ||b - A x||, computed anew, meets the tolerance.
    pub solved: bool,
    /// The factorisation that x comes from.
    pub kind: Kind,
    /// ||b - A x|| in the 2-norm, computed anew with products and sums in twice the working precision.
    pub residual_norm: f64,
    /// The same over ||b||.
    pub relative_residual: f64,
    /// Steps of iterative refinement.
    pub refinements: usize,
    /// Iterations of flexible GMRES around the factors.
    pub iterations: usize,
    /// What the factors take.
    pub estimate: FactorEstimate,
    /// Seconds since the matrix, or its values, came.
    pub seconds: DeviceSeconds,
    /// Name and release of the library; none if the backend factorised itself.
    pub library: Option<String>,
    /// Whether the order of elimination is ours.
    pub dissected: bool,
    /// Whether the same input gives the same bits, as far as the library can.
    pub same_bits: bool,
    /// For each kind that failed, why.
    pub reasons: Vec<(Kind, Reason)>,
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.solved { "solved" } else { "not solved" };
        let Self { kind, library, relative_residual, .. } = self;
        let whose = library.as_ref().map_or("on the device".to_string(), |library| format!("of {library}"));
        write!(f, "{word} by {kind} {whose}, relative residual {relative_residual:.2e}")
    }
}
