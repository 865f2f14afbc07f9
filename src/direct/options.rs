//! Options of a factorisation.

use crate::graph::Permutation;
use crate::prepare::Scaling;
use crate::settings::settings;
use std::fmt;

/// Kinds of factorisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Kind {
    /// The first suitable kind; if it fails, the next one.
    #[default]
    Auto,
    /// L L^H, for a Hermitian positive definite A.
    Cholesky,
    /// L D L^H that replaces small pivots, for a Hermitian A.
    Ldlt,
    /// L U of the diagonal blocks of a block triangular form, for a square A that has one.
    BlockLu,
    /// L D L^T in dense fronts, for a real or complex A with A^T = A (no conjugation). Pivots of one and two rows are
    /// chosen inside of diagonal blocks, to which a symmetric matching has moved large entries; small pivots are
    /// replaced.
    FrontalLdlt,
    /// P R A C Q = L U, column by column, for factors with few entries per row.
    Lu,
    /// LU in dense fronts, whose structure is computed beforehand: pivots are chosen inside of diagonal blocks, to
    /// which a matching has moved large entries, and small pivots are replaced. For factors with many entries per row.
    FrontalLu,
    /// LU in dense blocks (supernodes), with unrestricted row pivoting.
    SupernodalLu,
    /// L D L^H of A + s I with a small s, as a preconditioner, for a Hermitian A that is singular or nearly so.
    ShiftedLdlt,
    /// L D L^H of the quasi-definite matrix of min ||b - A x||^2 + s^2 ||x||^2 with a small s, as a preconditioner, for
    /// an A that is singular or nearly so. If b is not in the range of A, x is a least-squares solution.
    Regularised,
    /// Dense A P = Q R with column pivoting, for least squares and singular matrices.
    DenseQr,
    /// Substitution, for an A that can be permuted to triangular form without a zero on its diagonal.
    Triangular,
    /// L U with partial pivoting within a band, for a square A with few diagonals and no small pivot.
    Banded,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Auto => "auto",
            Kind::Cholesky => "cholesky",
            Kind::Ldlt => "ldlt",
            Kind::BlockLu => "block-lu",
            Kind::FrontalLdlt => "frontal-ldlt",
            Kind::Lu => "lu",
            Kind::FrontalLu => "frontal-lu",
            Kind::SupernodalLu => "supernodal-lu",
            Kind::ShiftedLdlt => "shifted-ldlt",
            Kind::Regularised => "regularised",
            Kind::DenseQr => "dense-qr",
            Kind::Triangular => "triangular",
            Kind::Banded => "banded-lu",
        })
    }
}

/// Preparation of A that the caller has computed already: scaling, and a row permutation that moves large entries to
/// the diagonal. LU uses it instead of computing its own.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// R and C of R A C.
    pub scaling: Scaling,
    /// P of P R A C: its row i is row `rows.new_to_old()[i]` of R A C.
    pub rows: Permutation,
}

/// Options of a factorisation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DirectOptions {
    /// The kind of factorisation.
    pub kind: Kind,
    /// The maximum memory of a factor, in bytes.
    pub memory_limit: u64,
    /// The maximum number of multiplications of a factorisation. It is compared with the forecast if that is exact; LU
    /// column by column counts while it runs.
    pub flop_limit: f64,
    /// The maximum number of multiplications of a dense factorisation.
    pub dense_flop_limit: f64,
    /// Whether to estimate the condition number for the report, which takes about ten solves for each factor.
    pub condition: bool,
    /// Scaling and row permutation for LU.
    pub prepared: Option<Prepared>,
    /// Kinds that [`Kind::Auto`] skips.
    pub without: Vec<Kind>,
    /// Whether a grid of 50 000 rows or more is dissected by its coordinates instead of by a search. So far only fronts
    /// on a device do so.
    pub(crate) by_coordinates: bool,
}

impl Default for DirectOptions {
    /// Any kind, all memory that is free, and a condition estimate. Multiplications are not limited, except to 2e10 for
    /// a dense factorisation.
    fn default() -> Self {
        Self {
            kind: Kind::Auto,
            memory_limit: super::memory::available(),
            flop_limit: f64::INFINITY,
            dense_flop_limit: 2e10,
            condition: true,
            prepared: None,
            without: Vec::new(),
            by_coordinates: false,
        }
    }
}

settings! { DirectOptions;
    /// Sets the kind of factorisation.
    pub fn kind(kind: Kind) => kind = kind;

    /// Sets the maximum memory of a factor, in bytes.
    pub fn memory_limit(bytes: u64) => memory_limit = bytes;

    /// Sets the maximum number of multiplications of a factorisation, as far as a forecast is exact.
    pub fn flop_limit(flops: f64) => flop_limit = flops;

    /// Sets whether the report has a condition number.
    pub fn condition(yes: bool) => condition = yes;

    /// Sets scaling and row permutation for LU.
    pub fn prepared(prepared: Prepared) => prepared = Some(prepared);
}

/// Options of a factorisation in the memory of a backend.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// Whether to factorise with a library if the backend has found one; otherwise the backend factorises with its own
    /// code, if it can.
    pub library: bool,
    /// Whether the fill-reducing ordering is computed here, on all threads of the host; otherwise the library computes
    /// one.
    pub dissect: bool,
    /// Whether the same input must give the same bits, if the library supports it and there is memory for it.
    /// Reproducible factors take up to ten times the memory.
    pub deterministic: bool,
    /// The maximum memory of the factorisation in bytes, at most the free memory.
    pub memory_limit: u64,
    /// The maximum number of floating-point operations, if the library predicts them.
    pub flop_limit: f64,
}

impl Default for DeviceOptions {
    /// A nested dissection ordering, reproducible bits, and no limits.
    fn default() -> Self {
        Self {
            library: true,
            dissect: true,
            deterministic: true,
            memory_limit: u64::MAX,
            flop_limit: f64::INFINITY,
        }
    }
}
