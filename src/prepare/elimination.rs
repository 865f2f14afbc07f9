//! Chooses the order of elimination for a factorisation.

use super::dissection::{
    Beyond, Grid, InRegions, Most, dissection_order, expected_multiplications, minimum_degree_within,
    order_in_regions,
};
use super::nearby::nearby;
use super::order_size::{Counted, OrderSize};
use crate::backend::Host;
use crate::error::Result;
use crate::graph::{Adjacency, Permutation, grid_sizes, level_width};
use crate::matrix::Csr;
use crate::prices::order::OrderGuess;
use crate::scalar::Scalar;
use std::fmt;

/// A factorisation with fewer multiplications takes less time than dissection.
const DISSECTED_FROM: f64 = 1e9;
/// Dissection has to save this many multiplications per vertex, which take as long as dissection itself; it halves the
/// work in most cases. It takes 3 to 6 us per vertex on one core, which does 3e9 multiplications per second.
const FOR_A_VERTEX: f64 = 2e4;
/// Dissection was never seen to reduce the work by a larger factor.
const AT_BEST: f64 = 10.0;
/// If work is limited, this crate's own minimum degree is used from this number of rows on, because it can stop early.
/// A library would search for a minute to find an order that is of no use.
pub(crate) const LIMITED_FROM: usize = 50_000;
/// The search for an order may read this many list entries for each multiplication that the factorisation may take. An
/// entry takes 10 to 20 ns, as long as 50 multiplications, and half of the time is for the search. The limit is for
/// searches that would take minutes, so a factor of two does not matter.
const SEARCHED: f64 = 0.01;
/// A graph with at least this many rows is cut into regions, which all threads order. With regions, on one thread,
/// everything before the numerical factorisation takes 1.5 times as long for a mesh in the plane of 10^4 points,
/// equally long for 2.5 10^4, and 0.6 times as long for 5 10^4 (an EPYC, 2026-11-28).
const REGIONS_FROM: usize = 50_000;

/// The kinds of fill-reducing orderings.
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

/// Returns an order by nested dissection and the size of a factor in it, if that takes fewer multiplications than
/// another order, whose number is given. Dissection is tried only if it may save more time than it takes, and if it may
/// bring the work below `most` multiplications; `most` is infinite if any amount of work is done.
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

/// The expected cost of an ordering of A and of its factorisation. First cuts are made only if vectors are on the host:
/// they take as long as hundreds of iterations on a device.
///
/// # Errors
/// If A is not square, or if memory runs out.
pub(crate) fn expected_order<T: Scalar>(a: &Csr<T>, on_device: bool) -> Result<OrderGuess> {
    let (graph, size) = (Adjacency::new(a)?, [a.rows(), a.nonzeros()]);
    if on_device
        && a.rows() >= REGIONS_FROM
        && let Some(sizes) = grid_sizes(&Host, &graph)?
    {
        return Ok(OrderGuess::of_grid(size, sizes));
    }
    let cuts = || expected_multiplications(&graph).unwrap_or(f64::INFINITY);
    let by_cuts = || if on_device { f64::INFINITY } else { cuts() };
    Ok(OrderGuess::new(size, level_width(&graph), by_cuts))
}

/// The number of multiplications from which on dissection is tried for a matrix of this many rows.
fn dissected_from(rows: usize) -> f64 {
    DISSECTED_FROM.max(FOR_A_VERTEX * rows as f64)
}

/// Dissects the whole graph, and counts the entries of the columns of a factor in that order.
fn dissected(graph: &Adjacency<'_>) -> Result<(Permutation, Counted)> {
    let order = dissection_order(graph)?;
    let counted = Counted::new(graph, &order)?;
    Ok((order, counted))
}

/// The result of a search for the order of a large matrix.
pub(crate) enum Sought<F> {
    /// An order was found.
    Found(F),
    /// A Cholesky factorisation takes at least this many multiplications, too many even after dissection.
    TooLong(f64),
    /// The search was ended after reading this many entries, because it takes as long as a factorisation is allowed to.
    Ended(f64),
    /// Nothing was searched for, or there is nothing that this search could find.
    Nothing,
}

/// Orders a large matrix whose graph has small separators, by dissection into regions or down to its leaves, with all
/// threads, and counts the entries of the columns of a factor in that order; a factorisation may take `most`
/// multiplications. Nothing is found if there are few rows or if separators are large; minimum degree is tried first
/// then. With `by_coordinates`, a grid is dissected by its coordinates, without a search.
///
/// # Errors
/// As [`nested_dissection`](super::nested_dissection).
pub(crate) fn order_of_large<T: Scalar>(
    a: &Csr<T>,
    most: f64,
    by_coordinates: bool,
) -> Result<Sought<(Permutation, Counted)>> {
    if a.rows() < REGIONS_FROM {
        return Ok(Sought::Nothing);
    }
    let graph = Adjacency::new(a)?;
    let grid = if by_coordinates { Grid::of(&graph)? } else { None };
    if let Some(grid) = grid {
        return Ok(match grid.order(most)? {
            Ok(order) => {
                let counted = Counted::new(&graph, &order)?;
                Sought::Found((order, counted))
            }
            Err(multiplications) => Sought::TooLong(multiplications),
        });
    }
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
        InRegions::Dissected(order) => {
            let counted = Counted::new(graph, &order)?;
            Sought::Found((order, counted))
        }
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

/// Orders a large matrix by minimum degree if its factorisation is limited to `most` multiplications. Nothing is
/// searched for if there are few rows or no limit.
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
