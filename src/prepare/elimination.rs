//! Which order of elimination a factorisation gets.

use super::dissection::{Beyond, InRegions, Most, dissection_order, minimum_degree_within, order_in_regions};
use super::nearby::nearby;
use super::order_size::{Counted, OrderSize};
use crate::error::Result;
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::fmt;

/// Below so many multiplications a factorisation is over before dissection is.
const DISSECTED_FROM: f64 = 1e9;
/// Multiplications in the time that dissection takes for a vertex, and what it must save: it mostly halves the work.
/// Measured on one core: 3 to 6 us for a vertex, and 3e9 multiplications a second.
const FOR_A_VERTEX: f64 = 2e4;
/// What dissection has been seen to divide the work by, at most.
const AT_BEST: f64 = 10.0;
/// Rows from which on minimum degree is this crate's own where the work is limited: it ends where a library's goes on
/// for a minute until it has an order that nobody can use.
const LIMITED_FROM: usize = 50_000;
/// Entries that the search for an order may read for each multiplication that the factorisation may take. An entry was
/// seen to take 10 to 20 ns, as long as 50 multiplications, and half of the time is for the search; it ends searches that
/// would take minutes, so a factor of two is of no concern.
const SEARCHED: f64 = 0.01;
/// Rows from which on a graph is cut in regions, whose orders all threads find. On one thread what comes before the
/// numbers takes 1.5 times as long with regions for a mesh in the plane of 10^4 points, as long for 2.5 10^4, and 0.6
/// times as long for 5 10^4 (an EPYC, 2026-11-28).
const REGIONS_FROM: usize = 50_000;

/// Ways to find an order of elimination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OrderKind {
    /// Approximate minimum degree.
    #[default]
    MinimumDegree,
    /// Nested dissection.
    NestedDissection,
}

impl fmt::Display for OrderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OrderKind::MinimumDegree => "minimum degree",
            OrderKind::NestedDissection => "nested dissection",
        })
    }
}

/// An order by nested dissection, and what a factor in it takes, where that is less than the given multiplications of
/// another order. Dissection is tried where there is so much to do that the time for it can be gained back, and where
/// it may bring the work below `most` multiplications; give infinity where any work is done.
///
/// # Errors
/// As [`nested_dissection`](super::nested_dissection).
pub fn better_dissection<T: Scalar>(
    a: &Csr<T>,
    multiplications: f64,
    most: f64,
) -> Result<Option<(Permutation, OrderSize)>> {
    if multiplications < dissected_from(a.rows()) || multiplications > AT_BEST * most {
        return Ok(None);
    }
    let graph = Adjacency::new(a)?;
    let (order, counted) = dissected(&graph)?;
    let size = counted.size();
    Ok(Some((order, size)).filter(|(_, size)| size.multiplications < multiplications))
}

/// Multiplications from which on dissection is tried for so many rows.
fn dissected_from(rows: usize) -> f64 {
    DISSECTED_FROM.max(FOR_A_VERTEX * rows as f64)
}

/// Dissection to its end, and what a factor in that order takes.
fn dissected(graph: &Adjacency<'_>) -> Result<(Permutation, Counted)> {
    let order = dissection_order(graph)?;
    let counted = Counted::new(graph, &order)?;
    Ok((order, counted))
}

/// What a search for the order of a large matrix comes to.
pub(crate) enum Sought<F> {
    /// What was found.
    Found(F),
    /// A Cholesky factorisation takes so many multiplications at least, too many even for what dissection saves.
    TooLong(f64),
    /// The search was ended after so many entries: it takes as long as a factorisation may.
    Ended(f64),
    /// Nothing was sought, or nothing is there that this search could find.
    Nothing,
}

/// An order of a large matrix whose graph has small separators, by dissection into regions or down to its end, found on
/// all threads, and what a factor in it takes; a factorisation may take `most` multiplications. Nothing is found where
/// there are few rows or large separators, so that minimum degree comes first.
///
/// # Errors
/// As [`nested_dissection`](super::nested_dissection).
pub(crate) fn order_of_large<T: Scalar>(a: &Csr<T>, most: f64) -> Result<Sought<(Permutation, Counted)>> {
    if a.rows() < REGIONS_FROM {
        return Ok(Sought::Nothing);
    }
    let graph = Adjacency::new(a)?;
    match nearby(&graph)? {
        None => order_of_graph(&graph, most),
        Some((near, first)) => Ok(match order_of_graph(&near, most)? {
            Sought::Found((order, counted)) => Sought::Found((first.then(&order)?, counted)),
            other => other,
        }),
    }
}

fn order_of_graph(graph: &Adjacency<'_>, most: f64) -> Result<Sought<(Permutation, Counted)>> {
    let from = dissected_from(graph.vertices());
    Ok(match order_in_regions(graph, from, AT_BEST * most)? {
        InRegions::HasNone => Sought::Nothing,
        InRegions::Takes(multiplications) => Sought::TooLong(multiplications),
        InRegions::Dissect => Sought::Found(dissected(graph)?),
        InRegions::Found(order) => {
            let counted = Counted::new(graph, &order)?;
            let multiplications = counted.size().multiplications;
            let mut best = (order, counted);
            if multiplications >= from && multiplications <= AT_BEST * most {
                let other = dissected(graph)?;
                if other.1.size().multiplications < multiplications {
                    best = other;
                }
            }
            Sought::Found(best)
        }
    })
}

/// An order by minimum degree for a large matrix whose factorisation may take `most` multiplications; nothing is sought
/// where there are few rows, or any work is done.
///
/// # Errors
/// As [`nested_dissection`](super::nested_dissection).
pub(crate) fn limited_minimum_degree<T: Scalar>(a: &Csr<T>, most: f64) -> Result<Sought<Permutation>> {
    if a.rows() < LIMITED_FROM || most.is_infinite() {
        return Ok(Sought::Nothing);
    }
    let limits = Most { multiplications: AT_BEST * most, steps: SEARCHED * most };
    let order = minimum_degree_within(&Adjacency::new(a)?, limits)?;
    Ok(match order {
        Ok(order) => Sought::Found(order),
        Err(Beyond::Multiplications(least)) => Sought::TooLong(least),
        Err(Beyond::Steps(entries)) => Sought::Ended(entries),
    })
}
