//! What a factorisation will cost, before anything large is allocated.

use super::factor::{LuPlan, Structures, columns_of_transpose};
use super::foreign::{symmetric_flops, symmetric_structure};
use super::options::{DirectOptions, Kind};
use super::report::Reason;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// Above so many multiplications LU works on dense blocks.
const SUPERNODAL_FROM: f64 = 2e8;

/// Order and structure of a factorisation, and its cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// The factorisation that is meant.
    pub kind: Kind,
    /// Stored entries of the factor, what blocks store of zeros included.
    pub entries: f64,
    /// Bytes of the factor's numbers.
    pub bytes: f64,
    /// Multiplications.
    pub flops: f64,
    /// Whether this is what it will be: it is for Cholesky, LDL^H and dense QR. For LU it is an estimate, that of pivots
    /// on the diagonal.
    pub exact: bool,
}

/// Kinds to try, the likeliest first.
pub(super) fn chain<T: Scalar>(
    a: &Csr<T>,
    options: &DirectOptions,
    structures: &mut Structures,
) -> Vec<Kind> {
    if options.kind != Kind::Auto {
        return vec![options.kind];
    }
    if a.rows() != a.columns() {
        return vec![Kind::DenseQr];
    }
    let mut chain = Vec::new();
    if a.is_hermitian() {
        if (0..a.rows()).all(|i| a.get(i, i).is_some_and(|d| d.re() > T::Real::default())) {
            chain.push(Kind::Cholesky);
        }
        chain.push(Kind::Ldlt);
        chain.extend([Kind::Lu, Kind::SupernodalLu]);
    } else {
        let heavy = match LuPlan::new(a, options) {
            Ok(plan) => structures.lu.insert(Arc::new(plan)).flops > SUPERNODAL_FROM,
            Err(_) => false,
        };
        chain.extend(if heavy { [Kind::SupernodalLu, Kind::Lu] } else { [Kind::Lu, Kind::SupernodalLu] });
    }
    chain.push(Kind::DenseQr);
    chain
}

/// The cost of one kind; its structure is kept.
pub(super) fn forecast<T: Scalar>(
    a: &Csr<T>,
    kind: Kind,
    options: &DirectOptions,
    structures: &mut Structures,
) -> Result<Analysis, Reason> {
    let size = size_of::<T>() as f64;
    let analysis = |entries: f64, flops, exact| Analysis { kind, entries, bytes: entries * size, flops, exact };
    match kind {
        Kind::Auto | Kind::Cholesky | Kind::Ldlt => {
            if structures.symmetric.is_none() {
                structures.symmetric = Some(Arc::new(symmetric_structure(columns_of_transpose(a)?)?));
            }
            let structure = structures.symmetric.as_ref().unwrap_or_else(|| unreachable!());
            Ok(analysis(structure.len_val() as f64, symmetric_flops(structure), true))
        }
        Kind::Lu | Kind::SupernodalLu => {
            if structures.lu.is_none() {
                structures.lu = Some(Arc::new(LuPlan::new(a, options)?));
            }
            let plan = structures.lu.as_ref().unwrap_or_else(|| unreachable!());
            Ok(analysis(2.0 * plan.entries + a.rows() as f64, plan.flops, false))
        }
        Kind::DenseQr => {
            let (m, n) = (a.rows() as f64, a.columns() as f64);
            let least = m.min(n);
            Ok(analysis(m * n, least * least * (m.max(n) - least / 3.0), true))
        }
    }
}
