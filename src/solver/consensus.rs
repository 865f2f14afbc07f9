//! Checks on which all ranks of a distributed solve must agree. Before they solve, they refuse unsupported settings,
//! and compute sizes, norms and the order of the unknowns together.

use super::SolverBackend;
use super::builder::Builder;
use super::choice::AS_ASKED;
use super::diagonal::column_norms;
use super::names::{AUTO, Method, Precision, PreconditionerChoice as Name, Reorder};
use super::report::Decision;
use crate::backend::{Communicator, Space};
use crate::error::{Error, Result};
use crate::graph::{self, Permutation};
use crate::matrix::Csr;
use crate::report::count;
use crate::scalar::Scalar;
use crate::spread::{Edge, balanced_parts, halo_sizes};
use std::ops::Range;

/// The caller's order is kept if the halos have at most this fraction of the unknowns: finding another order takes as
/// long as many products, and the kernels are fast in the order of a grid.
pub(super) const SMALL_HALO: f64 = 0.1;

/// Refuses settings that distributed solves do not support.
pub(super) fn refuse(wishes: &Builder) -> Result<()> {
    let without = |what: String| Err(Error::Unsupported(format!("{what} on several ranks")));
    if wishes.precision != Precision::Double {
        return without(format!("precision {}", wishes.precision));
    }
    if wishes.method == Method::Direct {
        return without("a factorisation of a distributed matrix".into());
    }
    if wishes.format != AUTO && wishes.format != Csr::<f64>::NAME {
        return without(format!("format {}", wishes.format));
    }
    if wishes.near_null.is_some() {
        return without("multigrid with near-null vectors".into());
    }
    match wishes.preconditioner {
        name @ Name::ChebyshevSingle(_) => without(format!("preconditioner {name}")),
        _ => Ok(()),
    }
}

/// The size of the part that one rank has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share {
    /// Unknowns that the rank owns.
    pub rows: usize,
    /// Stored entries of its rows.
    pub nonzeros: usize,
    /// Entries of x that it needs from other ranks in each product.
    pub halo: usize,
}

/// Gathers the number of rows, nonzeros and halo entries of each rank. This rank has a block and the entries beside it.
pub(super) fn shares<T: Scalar, B: SolverBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    (own, edge): (&Csr<T, B>, &Edge<T>),
    ranges: &[Range<usize>],
) -> Result<Vec<Share>> {
    let words = [(own.nonzeros() + edge.a.nonzeros()) as u64, edge.halo().len() as u64];
    let all = space.communicator().gather(words.iter().flat_map(|word| word.to_le_bytes()).collect())?;
    let share = |(rows, bytes): (&Range<usize>, Vec<u8>)| {
        let word = |k: usize| bytes.as_chunks().0.get(k).map_or(0, |word| u64::from_le_bytes(*word) as usize);
        Share { rows: rows.len(), nonzeros: word(0), halo: word(1) }
    };
    Ok(ranges.iter().zip(all).map(share).collect())
}

/// Returns the first diagonal entry on any rank that is not positive; `None` if all are positive.
pub(super) fn of_all<B: SolverBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    curvature: Option<f64>,
) -> Result<Option<f64>> {
    let own = curvature.unwrap_or(f64::INFINITY);
    let all = space.communicator().gather(own.to_le_bytes().to_vec())?;
    let numbers =
        all.iter().filter_map(|bytes| bytes.as_chunks().0.first().map(|word| f64::from_le_bytes(*word)));
    Ok(numbers.into_iter().find(|&value| value <= 0.0))
}

/// Returns the norms of the columns that belong to this rank, computed over the rows of all ranks. `a` has this rank's
/// rows.
pub(super) fn weights<T: Scalar, B: SolverBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    (a, ranges): (&Csr<T>, &[Range<usize>]),
) -> Result<Vec<f64>> {
    let own = &ranges[space.communicator().part()];
    let here = column_norms(a);
    let of_owner =
        |rows: &Range<usize>| here[rows.clone()].iter().flat_map(|norm| norm.to_le_bytes()).collect();
    let all = space.communicator().deliver(ranges.iter().map(of_owner).collect())?;
    let mut norms = vec![0.0_f64; own.len()];
    for bytes in all {
        norms
            .iter_mut()
            .zip(bytes.as_chunks().0)
            .for_each(|(norm, word)| *norm = norm.hypot(f64::from_le_bytes(*word)));
    }
    Ok(norms)
}

/// Waits until all ranks have finished a step, and returns this rank's result. If one rank failed, all return an error.
pub(super) fn together<T, B: SolverBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    made: Result<T>,
) -> Result<T> {
    let failed = space.count(made.is_err())?;
    match made {
        Ok(_) if failed > 0 => {
            Err(Error::Unsupported(format!("a method whose setup failed on {failed} other ranks")))
        }
        made => made,
    }
}

/// The reordered matrix, its permutation, and the reason for it. The first two are `None` if the caller's order is
/// kept.
pub(super) type Ordered<T> = (Option<Csr<T>>, Option<Permutation>, Decision);

pub(super) fn ordered<T: Scalar>(a: &Csr<T>, how: Reorder, parts: usize) -> Result<Ordered<T>> {
    let halo = |a: &Csr<T>| halo_sizes(a, &balanced_parts(a, parts)).into_iter().sum::<usize>();
    if how == Reorder::None {
        return Ok((None, None, Decision::new("order", "no", AS_ASKED)));
    }
    let before = halo(a);
    let told = |size: usize| count(size as u64);
    if how == Reorder::Auto && (before as f64) <= SMALL_HALO * a.rows() as f64 {
        let why =
            format!("the halos have only {} entries in all, for {} unknowns", told(before), told(a.rows()));
        return Ok((None, None, Decision::new("order", "no", why)));
    }
    let ordering = graph::ordering(a)?;
    if ordering.keeps_natural_order() {
        let why = "reverse Cuthill-McKee does not reduce the bandwidth";
        return Ok((None, None, Decision::new("order", "no", why)));
    }
    let permuted = graph::permute_symmetric(a, ordering.permutation())?;
    let after = halo(&permuted);
    if how == Reorder::Auto && after >= before {
        let why = format!(
            "reverse Cuthill-McKee gives halos of {} entries, and the caller's order gives {}",
            told(after),
            told(before)
        );
        return Ok((None, None, Decision::new("order", "no", why)));
    }
    let why = format!("halos of {} entries instead of {}", told(after), told(before));
    let decision = Decision::new("order", "by reverse Cuthill-McKee", why);
    Ok((Some(permuted), Some(ordering.into_permutation()), decision))
}
