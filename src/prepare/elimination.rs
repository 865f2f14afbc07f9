//! Which order of elimination a factorisation gets.

use super::dissection::{Beyond, Most, dissection_order, minimum_degree_within};
use super::order_size::{OrderSize, graph_order_size};
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
/// Entries that the search for an order may read for each multiplication that the factorisation may take: an entry takes
/// 10 to 20 ns, as long as 50 multiplications, and half of the time is for the search.
const SEARCHED: f64 = 0.01;

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
    let least = DISSECTED_FROM.max(FOR_A_VERTEX * a.rows() as f64);
    if multiplications < least || multiplications > AT_BEST * most {
        return Ok(None);
    }
    let graph = Adjacency::new(a)?;
    let order = dissection_order(&graph)?;
    let size = graph_order_size(&graph, &order)?;
    Ok(Some((order, size)).filter(|(_, size)| size.multiplications < multiplications))
}

/// What a search for an order of minimum degree with little work comes to.
pub(crate) enum Limited {
    /// The order.
    Found(Permutation),
    /// A Cholesky factorisation in it takes so many multiplications at least, too many even for what dissection saves.
    TooLong(f64),
    /// The search was ended after so many entries: it takes as long as a factorisation may.
    Ended(f64),
    /// Nothing was sought: there are few rows, or any work is done.
    NotSought,
}

/// An order by minimum degree for a large matrix whose factorisation may take `most` multiplications.
///
/// # Errors
/// As [`nested_dissection`](super::nested_dissection).
pub(crate) fn limited_minimum_degree<T: Scalar>(a: &Csr<T>, most: f64) -> Result<Limited> {
    if a.rows() < LIMITED_FROM || most.is_infinite() {
        return Ok(Limited::NotSought);
    }
    let limits = Most { multiplications: AT_BEST * most, steps: SEARCHED * most };
    let order = minimum_degree_within(&Adjacency::new(a)?, limits)?;
    Ok(match order {
        Ok(order) => Limited::Found(order),
        Err(Beyond::Multiplications(least)) => Limited::TooLong(least),
        Err(Beyond::Steps(entries)) => Limited::Ended(entries),
    })
}
