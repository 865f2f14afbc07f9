//! What a caller may ask of a factorisation.

use crate::graph::Permutation;
use crate::prepare::Scaling;
use std::fmt;

/// Kinds of factorisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Kind {
    /// The first that suits of the others, then the next one.
    #[default]
    Auto,
    /// L L^H: A is Hermitian and positive definite.
    Cholesky,
    /// L D L^H with small pivots replaced: A is Hermitian.
    Ldlt,
    /// L U of the diagonal blocks of a block triangular form: A is square, and some unknowns do not depend on others.
    BlockLu,
    /// L D L^T in dense fronts: A is real or complex and A^T = A, without conjugation. Pivots of one and two rows are
    /// found within blocks on the diagonal that a symmetric matching filled, and small ones replaced.
    FrontalLdlt,
    /// P R A C Q = L U, column by column; for factors with few entries a row.
    Lu,
    /// The same in dense fronts whose structure is known before: pivots are found within blocks on the diagonal that
    /// the matching filled, and small ones replaced; for factors with many entries a row.
    FrontalLu,
    /// The same in dense blocks (supernodes) with any choice of pivots.
    SupernodalLu,
    /// L D L^H of A + s I with a small s, around which an iteration solves: A is Hermitian, and singular or almost.
    ShiftedLdlt,
    /// L D L^H of the quasi-definite matrix of min ||b - A x||^2 + s^2 ||x||^2 with a small s, around which an
    /// iteration solves: A is singular or almost. Where b is not in the range of A, x is a least-squares solution.
    Regularised,
    /// A dense A P = Q R with column pivoting, for least squares and what is singular.
    DenseQr,
    /// Substitution: A is triangular in some order of its rows and columns, without a zero on its diagonal.
    Triangular,
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
        })
    }
}

/// What was found out about A before: scaling, and the order of rows that brings large entries to the diagonal. LU uses
/// it in place of its own.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// R and C of R A C.
    pub scaling: Scaling,
    /// P of P R A C: row i of it is the old row `rows.new_to_old()[i]`.
    pub rows: Permutation,
}

/// How to factorise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DirectOptions {
    /// Which factorisation.
    pub kind: Kind,
    /// Bytes that a factor may have.
    pub memory_limit: u64,
    /// Multiplications that a factorisation may take: as far as they are known before, and LU column by column counts
    /// them.
    pub flop_limit: f64,
    /// Multiplications that a dense factorisation may take.
    pub dense_flop_limit: f64,
    /// Whether the report has a condition number: about ten solves, once for each factor.
    pub condition: bool,
    /// Scaling and order of rows for LU.
    pub prepared: Option<Prepared>,
    /// Kinds that [`Kind::Auto`] leaves out.
    pub without: Vec<Kind>,
}

impl Default for DirectOptions {
    /// Any kind, the memory that is free, no limit of time but 2e10 multiplications in a dense factorisation, with the
    /// condition.
    fn default() -> Self {
        Self {
            kind: Kind::Auto,
            memory_limit: super::memory::available(),
            flop_limit: f64::INFINITY,
            dense_flop_limit: 2e10,
            condition: true,
            prepared: None,
            without: Vec::new(),
        }
    }
}

impl DirectOptions {
    /// Which factorisation.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Bytes that a factor may have.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Multiplications that a factorisation may take, as far as they are known before.
    #[must_use]
    pub fn flop_limit(mut self, flops: f64) -> Self {
        self.flop_limit = flops;
        self
    }

    /// Whether the report has a condition number.
    #[must_use]
    pub fn condition(mut self, yes: bool) -> Self {
        self.condition = yes;
        self
    }

    /// Scaling and order of rows for LU.
    #[must_use]
    pub fn prepared(mut self, prepared: Prepared) -> Self {
        self.prepared = Some(prepared);
        self
    }
}

/// How to factorise in the memory of a backend.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// Whether a library factorises where the backend has found one; else the backend does itself, where it can.
    pub library: bool,
    /// Whether the order of elimination is found here, on all threads of the host; else the library finds one.
    pub dissect: bool,
    /// Whether the same input gives the same bits, where the library can and there is memory for it: up to ten times
    /// that of factors whose last bits differ.
    pub deterministic: bool,
    /// Bytes that factorising may take, at most what is free.
    pub memory_limit: u64,
    /// Operations that factorising may take, where the library tells them before.
    pub flop_limit: f64,
}

impl Default for DeviceOptions {
    /// A library where there is one, an order of ours, the same bits, all memory, no limit of time.
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
