//! Nested dissection: a fill-reducing ordering, computed by all threads.
//!
//! A small set of vertices, the separator, cuts the graph of the matrix into two sides. If it is numbered last, there
//! is no fill between the sides; each side is then ordered in the same way (George, "Nested dissection of a regular
//! finite element mesh", SIAM J. Numer. Anal. 10, 1973). For meshes no order needs asymptotically fewer
//! multiplications, and the sides are independent work for several threads.
//!
//! ```text
//!     a - b - c - d - e        {c, h} cuts the graph:     order a f b g | d i e j | c h
//!     |   |   |   |   |                                         side 0    side 1    separator
//!     f - g - h - i - j        no entry of L couples one side with the other
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `simplify` | sets aside rows that are coupled with nearly all others, and merges vertices that are alike |
//! | `tree` | components, the recursion |
//! | `bisect` | one separator, by way of coarser graphs |
//! | `coarsen` | pairs of neighbours become one vertex |
//! | `separator` | grows a side, and moves vertices to the other side |
//! | `leaf`, `minimum_degree` | orders the parts that are too small to be cut |
//! | `regions` | a few cuts, and minimum degree between them, if a factorisation takes few multiplications |
//! | `grid` | orders a grid by its coordinates |
//! | `graph` | the graphs that all of these work on |
//!
//! Why this is not a library: of the pure Rust crates (feral-metis, feral-scotch) none uses more than one thread, and
//! METIS and Scotch need a C compiler.
//!
//! The order is the same for any number of threads, because random choices are seeded by the place in the tree of
//! separators.

mod bisect;
mod coarsen;
mod graph;
mod grid;
mod leaf;
mod minimum_degree;
mod regions;
mod separator;
mod simplify;
#[cfg(test)]
mod tests;
mod tree;

use crate::error::Result;
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use crate::work::{self, Stage};
pub(crate) use grid::Grid;
use minimum_degree::Quotient;
pub(crate) use minimum_degree::{Beyond, Most};

/// With fewer regions some threads would have nothing to do.
const LEAST_REGIONS: usize = 16;
/// The separators of the first cuts account for at least this fraction of a factor's multiplications.
const OF_FIRST_CUTS: f64 = 0.25;
/// All multiplications, as a multiple of those of the separators of the first cuts: the median of 27 systems that are
/// in no collection here (meshes, networks, blocks, 10^4 to 2 10^5 unknowns, 2026-11-28).
const BEYOND_FIRST_CUTS: f64 = 18.0;
/// The first separator of a graph in space has at most this many times n^(2/3) vertices.
const IN_SPACE: f64 = 3.0;

/// The result of cutting a graph into regions.
pub(crate) enum InRegions {
    /// An order by regions.
    Found(Permutation),
    /// An order by dissection down to the leaves, which is better: the graph has separators like one in space, and
    /// factors take more multiplications than were allowed for regions. It starts over from the whole graph, since
    /// dissecting these regions took 12 % more multiplications for 40^3 points.
    Dissected(Permutation),
    /// A factorisation takes at least this many multiplications, which is more than allowed.
    Takes(f64),
    /// The graph has no small separators.
    HasNone,
}

/// Computes a fill-reducing ordering for the Cholesky, L D L^H or (with pivots on the diagonal) LU factorisation of a
/// square matrix, by nested dissection of the graph of A + A^T. Row `new_to_old()[k]` is eliminated in step k, so
/// [`permute_symmetric`](crate::graph::permute_symmetric) gives the matrix to factorise.
///
/// Values and the diagonal do not matter, and neither does the number of threads. [`order_size`](super::order_size)
/// counts what a factor in this order takes.
///
/// ```
/// use residua::{generate, prepare::{nested_dissection, order_size}};
/// use residua::graph::Permutation;
///
/// let a = generate::poisson2d(60, 60)?;
/// let order = nested_dissection(&a)?;
/// let (natural, dissected) = (order_size(&a, &Permutation::identity(3600)?)?, order_size(&a, &order)?);
/// assert!(dissected.multiplications < 0.25 * natural.multiplications);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// Sources: Karypis and Kumar, SIAM J. Sci. Comput. 20 (1998); Hendrickson and Rothberg, SIAM J. Sci. Comput. 20
/// (1998); Pellegrini, Roman and Amestoy, Concurrency: Pract. Exper. 12 (2000).
///
/// # Errors
/// If the matrix is not square, if it has 2^32 - 1 or more rows, or if memory runs out for the pattern of A + A^T.
pub fn nested_dissection<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    dissection_order(&Adjacency::new(a)?)
}

/// [`nested_dissection`] of an existing graph.
///
/// # Errors
/// If memory runs out.
pub fn dissection_order(graph: &Adjacency<'_>) -> Result<Permutation> {
    let simplify::Simple { graph: simple, names } = simplify::simplify(graph)?;
    Permutation::from_new_to_old(names.expand(&tree::order(&simple, None)))
}

/// Orders a large graph that has small separators, by all threads: it is cut into a few dozen regions, each of which is
/// ordered by minimum degree. This is meant for a Cholesky factorisation of few multiplications: if the first cuts show
/// that it takes more than `few`, the result says what is better, and if it takes more than `most`, the result says
/// that.
///
/// # Errors
/// If memory runs out.
pub(crate) fn order_in_regions(graph: &Adjacency<'_>, few: f64, most: f64) -> Result<InRegions> {
    let simplify::Simple { graph: simple, names } = simplify::simplify(graph)?;
    let meter = &work::begin(Stage::Ordering, simple.len() as u64, None);
    let cuts = regions::Cuts::new(&simple, meter);
    if cuts.count() < LEAST_REGIONS {
        return Ok(InRegions::HasNone);
    }
    let separators: Vec<f64> = cuts.separators().collect();
    let multiplications = of_separators(separators.iter().copied());
    if multiplications > OF_FIRST_CUTS * few {
        let is_in_space = separators[0] <= IN_SPACE * (simple.total() as f64).powf(2.0 / 3.0);
        return Ok(match is_in_space {
            true if multiplications > most => InRegions::Takes(multiplications),
            true => {
                let order = tree::order(&simple, Some(cuts.levels()));
                InRegions::Dissected(Permutation::from_new_to_old(names.expand(&order))?)
            }
            false => InRegions::HasNone,
        });
    }
    let order = cuts.regions(meter).order(&simple, meter);
    Ok(InRegions::Found(Permutation::from_new_to_old(names.expand(&order))?))
}

/// Estimates the multiplications of a Cholesky factorisation after dissection, from cuts of a coarser graph. This takes
/// about an eighth of the time of the dissection. Infinity if there are no small separators, or so few vertices that no
/// cut is made.
///
/// Half of the estimates are within a factor of 2, of 27 systems with 10^4 to 2 10^5 unknowns and more than 10^8
/// multiplications; fronts of many unknowns at each vertex (high order, full blocks) take up to 20 times as many, and
/// networks a tenth or a twentieth.
///
/// ```
/// use residua::{generate, graph::Adjacency, prepare};
///
/// let a = generate::poisson3d(30, 30, 30)?;
/// let graph = Adjacency::new(&a)?;
/// let (expected, order) = (prepare::expected_multiplications(&graph)?, prepare::dissection_order(&graph)?);
/// let exact = prepare::graph_order_size(&graph, &order)?.multiplications;
/// assert!(expected > 0.25 * exact && expected < 4.0 * exact);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If memory runs out.
pub fn expected_multiplications(graph: &Adjacency<'_>) -> Result<f64> {
    let simplify::Simple { graph: simple, .. } = simplify::simplify(graph)?;
    let meter = &work::begin(Stage::Ordering, simple.len() as u64, None);
    let cuts = regions::Cuts::new(&simple, meter);
    if cuts.count() < LEAST_REGIONS {
        return Ok(f64::INFINITY);
    }
    Ok(BEYOND_FIRST_CUTS * of_separators(cuts.separators()))
}

/// The multiplications of a Cholesky factorisation of full matrices of these sizes.
fn of_separators(sizes: impl Iterator<Item = f64>) -> f64 {
    sizes.map(|size| size.powi(3) / 6.0).sum()
}

/// Computes a fill-reducing ordering by approximate minimum degree on the graph of A + A^T. Compared with
/// [`nested_dissection`](super::nested_dissection), it takes less time on one thread, and causes less fill if the graph
/// is not a mesh (circuits, small systems).
///
/// Source: Amestoy, Davis and Duff, SIAM J. Matrix Anal. Appl. 17 (1996).
///
/// # Errors
/// As [`nested_dissection`](super::nested_dissection).
pub fn minimum_degree<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    minimum_degree_order(&Adjacency::new(a)?)
}

/// [`minimum_degree`] of an existing graph.
///
/// # Errors
/// If memory runs out.
pub fn minimum_degree_order(graph: &Adjacency<'_>) -> Result<Permutation> {
    let order = minimum_degree_within(graph, Most::ANY)?;
    Ok(order.expect("an order, however much work it takes"))
}

/// [`minimum_degree_order`] within limits. An order that exceeds them is recognised early, because the vertices
/// eliminated last take most of the work, in the search as in the factorisation.
///
/// # Errors
/// If memory runs out.
pub(crate) fn minimum_degree_within(
    graph: &Adjacency<'_>,
    most: Most,
) -> Result<std::result::Result<Permutation, Beyond>> {
    let simplify::Simple { graph: simple, names } = simplify::simplify(graph)?;
    let mut order = Vec::with_capacity(simple.len());
    let graph::Graph { starts, neighbours, weights, .. } = simple;
    let meter = work::begin(Stage::Ordering, weights.len() as u64, None);
    let found = Quotient::new(weights.len(), starts, neighbours, weights).order(most, |vertex| {
        order.push(vertex);
        meter.advance(1);
    });
    match found {
        Ok(()) => Permutation::from_new_to_old(names.expand(&order)).map(Ok),
        Err(beyond) => Ok(Err(beyond)),
    }
}
