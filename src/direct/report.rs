//! The report of a direct solve.

use super::Kind;
use crate::backend::FactorEstimate;
use crate::prepare::OrderKind;
use crate::report;
use std::fmt;

/// Rows and columns that a maximum matching leaves unmatched, numbered from 0; at most a hundred of each.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Unmatched {
    /// Unmatched rows.
    pub rows: Vec<u32>,
    /// Unmatched columns.
    pub columns: Vec<u32>,
}

/// The proof that a matrix is singular.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Singularity {
    /// Exactly singular for any values: at most `rank` rows can be matched with columns.
    Structural {
        /// The number of rows that can be matched with columns.
        rank: usize,
    },
    /// Singular up to rounding: a vector v has |A v|_i <= ratio eps (|A| |v|)_i in every row i, computed in twice the
    /// working precision. Some matrix whose entries differ from those of A only by rounding is exactly singular.
    NullVector {
        /// The largest |A v|_i / (eps (|A| |v|)_i).
        ratio: f64,
    },
}

/// The reason why a factorisation or a solve failed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// A matrix with this pattern is singular for all values.
    StructurallySingular {
        /// The number of rows that can be matched with columns.
        rank: usize,
        /// Rows and columns without a partner, numbered from 0.
        unmatched: Unmatched,
    },
    /// Pivots vanished, and b is not in the range of A as far as this precision can show.
    NumericallySingular,
    /// A, b or a factor contains an infinity or NaN.
    NotFinite,
    /// The factor needs more memory than is allowed.
    TooLarge {
        /// Bytes that are needed, at least.
        bytes: u64,
        /// Bytes that are allowed; 0 if the system refused to allocate the memory.
        limit: u64,
    },
    /// The factorisation takes more multiplications than are allowed.
    TooLong {
        /// Multiplications that are needed, approximately.
        flops: f64,
        /// Multiplications that are allowed.
        limit: f64,
    },
    /// The search for a fill-reducing ordering takes as long as the factorisation may.
    OrderTooLong {
        /// Entries of the elimination graph when the search was ended.
        entries: f64,
    },
    /// The factorisation is expected to take longer than the time that is left.
    TooLate {
        /// Seconds that it is expected to take.
        seconds: f64,
        /// Seconds that are left.
        left: f64,
    },
    /// The caller has requested a stop.
    Stopped,
    /// The method does not apply or has failed; the text says why.
    Refused(String),
    /// No x solves the system, and this x has the smallest possible residual.
    Inconsistent,
    /// Neither refinement nor GMRES with the factor reaches the tolerance.
    Stagnated,
    /// Rounding x to working precision leaves a residual above the tolerance.
    PrecisionLimit,
}

impl Reason {
    /// Returns whether a factorisation of this kind would fail even with more memory and time.
    pub(crate) fn is_final(&self, kind: Kind) -> bool {
        match self {
            Reason::TooLarge { .. }
            | Reason::TooLong { .. }
            | Reason::OrderTooLong { .. }
            | Reason::TooLate { .. }
            | Reason::Stopped => false,
            // LU column by column reports by text that it has exceeded a limit.
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
                f.write_str("singular to working precision, and b is not in the range of the matrix")
            }
            Reason::NotFinite => f.write_str("there are infinities or NaN in the matrix, b or the factor"),
            Reason::TooLarge { bytes, limit } => {
                write!(f, "too large for memory: it needs at least {}, ", report::bytes(*bytes))?;
                match limit {
                    0 => f.write_str("which the system refused"),
                    limit => write!(f, "but only {} are allowed", report::bytes(*limit)),
                }
            }
            Reason::TooLong { flops, limit } => {
                write!(f, "{flops:.1e} multiplications are needed, but only {limit:.1e} are allowed")
            }
            Reason::OrderTooLong { entries } => {
                write!(f, "no fill-reducing ordering was found within its budget of {entries:.0e} steps")
            }
            Reason::TooLate { seconds, left } => {
                write!(
                    f,
                    "about {} are needed, but only {} are left",
                    report::seconds(*seconds),
                    report::seconds(*left)
                )
            }
            Reason::Stopped => f.write_str("stopped by the caller"),
            Reason::Refused(why) => f.write_str(why),
            Reason::Inconsistent => {
                f.write_str("b is not in the range of the matrix, and x is a least-squares solution")
            }
            Reason::Stagnated => f.write_str("the residual no longer falls"),
            Reason::PrecisionLimit => {
                f.write_str("rounding x leaves a larger residual than the tolerance allows")
            }
        }
    }
}

/// The result of a solve.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DirectReport {
    /// Whether the returned x meets the tolerance in two norms of the recomputed b - A x: the 2-norm, and the 2-norm
    /// with each row divided by the norm of that row of A.
    pub solved: bool,
    /// Whether x is as accurate as working precision allows, although it misses the tolerance: A is nonsingular, and
    /// another refinement step with an accurate residual changes nothing.
    pub precision_limited: bool,
    /// The proof that A is singular, if one was found. It is searched for if x misses the tolerance, and if the condition
    /// number was requested and the factor is not one of A; then A x = b may be solved nevertheless.
    pub singularity: Option<Singularity>,
    /// The kind of factorisation that gave x.
    pub kind: Kind,
    /// ||b - A x|| in the 2-norm, recomputed with products and sums in twice the working precision.
    pub residual_norm: f64,
    /// ||b - A x|| / ||b||.
    pub relative_residual: f64,
    /// ||b - A x|| / ||b|| with x as a sum of two numbers in working precision;
    /// [`Direct::second`](super::Direct::second) gives the second parts. It is less than
    /// [`DirectReport::relative_residual`] if the rounding of x limits that one.
    pub two_part_residual: f64,
    /// ||b - A x|| / (||A|| ||x|| + ||b||) in the maximum norm: the relative change of A and b for which x would be
    /// exact. Rigal and Gaches, J. ACM 14 (1967).
    pub backward_error: f64,
    /// Steps of iterative refinement.
    pub refinements: usize,
    /// Iterations of flexible GMRES with the factor as a preconditioner.
    pub iterations: usize,
    /// An estimate of the condition number ||A||_1 ||A^-1||_1: a lower bound, usually within a factor of 3. `None` if
    /// perturbed pivots made the factor one of another matrix.
    pub condition: Option<f64>,
    /// Decimal digits of x (in norm) that are correct if the entries of A and b are correct up to rounding: from the
    /// condition number and the backward error, or from a componentwise error bound if that is better.
    pub digits: Option<f64>,
    /// The method that found the fill-reducing ordering, if this crate computed it.
    pub order: Option<OrderKind>,
    /// The numerical rank, if it was determined.
    pub rank: Option<usize>,
    /// The number of perturbed pivots; for LDL^H an upper bound.
    pub perturbed: usize,
    /// ||A^H (b - A x)|| / (||A|| ||b - A x||), if it shows that x is a least-squares solution and b is not in the
    /// range of A.
    pub normal_residual: Option<f64>,
    /// Whether x is the solution of least norm, if there are several.
    pub minimum_norm: bool,
    /// Seconds of analysis and factorisation, for all kinds that were tried so far.
    pub factor_seconds: f64,
    /// Seconds of this solve without factorisations.
    pub solve_seconds: f64,
    /// Memory of the factor, in bytes.
    pub factor_bytes: u64,
    /// The kinds that failed, each with its reason; also why x does not meet the tolerance.
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

/// The times of a factorisation in the memory of a backend, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct DeviceSeconds {
    /// Matching and fill-reducing ordering, on the host.
    pub order: f64,
    /// The library's analysis, including its own ordering if it computes one.
    pub analysis: f64,
    /// The numeric factorisations of all kinds that were tried.
    pub factor: f64,
    /// The last solve, without factorisations.
    pub solve: f64,
}

/// The result of a solve with factors in the memory of a backend.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeviceReport {
    /// Whether ||b - A x||, recomputed from x, meets the tolerance.
    pub solved: bool,
    /// The kind of factorisation that gave x.
    pub kind: Kind,
    /// ||b - A x|| in the 2-norm, recomputed with products and sums in twice the working precision.
    pub residual_norm: f64,
    /// ||b - A x|| / ||b||.
    pub relative_residual: f64,
    /// Steps of iterative refinement.
    pub refinements: usize,
    /// Iterations of flexible GMRES with the factors as a preconditioner.
    pub iterations: usize,
    /// The number of perturbed pivots; `None` if the library does not tell it, or if there are no factors.
    pub perturbed: Option<usize>,
    /// The size and cost of the factors.
    pub estimate: FactorEstimate,
    /// Times since the matrix or its current values were set.
    pub seconds: DeviceSeconds,
    /// Name and release of the library; `None` if the backend factorised with its own code.
    pub library: Option<String>,
    /// Whether this crate computed the fill-reducing ordering.
    pub dissected: bool,
    /// Whether the same input gives the same bits, as far as the library guarantees it.
    pub same_bits: bool,
    /// The kinds that failed, each with its reason.
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
