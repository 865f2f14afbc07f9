//! Nested dissection: an order of elimination for factors with little fill, found on all cores.
//!
//! A small set of vertices, the separator, cuts the graph of the matrix in two. Numbered last, it is all that the two
//! sides fill together; each side is ordered in the same way (George, "Nested dissection of a regular finite element
//! mesh", SIAM J. Numer. Anal. 10, 1973). On meshes no order needs asymptotically fewer multiplications, and the sides
//! are independent work for several threads.
//!
//! ```text
//!     a - b - c - d - e        {c, h} cuts the graph:     order a f b g | d i e j | c h
//!     |   |   |   |   |                                         side 0    side 1    separator
//!     f - g - h - i - j        no entry of L couples a side with the other
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `simplify` | rows that are coupled with nearly all, set aside; vertices that are alike, made one |
//! | `tree` | components, the recursion |
//! | `bisect` | one separator, by way of coarser graphs |
//! | `coarsen` | pairs of neighbours become one vertex |
//! | `separator` | growing a side, moving vertices over |
//! | `leaf`, `minimum_degree` | what is too small to be cut |
//! | `regions` | a few cuts, and minimum degree between them: the order where there is little to do |
//! | `graph` | the graphs of all these |
//!
//! Why own code: of the pure Rust crates of this kind (feral-metis, feral-scotch) none uses more than one thread, and
//! METIS and Scotch need a C compiler.
//!
//! The order is the same for any number of threads: random choices are seeded by the place in the tree of separators.

mod bisect;
mod coarsen;
mod graph;
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
use minimum_degree::Quotient;
pub(crate) use minimum_degree::{Beyond, Most};

/// Fewer regions do not keep all threads busy.
const LEAST_REGIONS: usize = 16;
/// The first cuts have at least this part of the multiplications of a factor.
const OF_FIRST_CUTS: f64 = 0.25;
/// A graph in space has separators of n^(2/3) vertices, times a factor up to this one.
const IN_SPACE: f64 = 3.0;

/// What cutting a graph in regions comes to.
pub(crate) enum InRegions {
    /// An order.
    Found(Permutation),
    /// Nested dissection is the order: separators are those of a graph in space, and factors take more multiplications
    /// than were allowed for regions.
    Dissect,
    /// A factorisation takes so many multiplications at least.
    Takes(f64),
    /// There are none with small separators.
    HasNone,
}

/// An order of elimination for the Cholesky, LDL^H or (pivots on the diagonal) LU factorisation of a square matrix, by
/// nested dissection of the graph of A + A^T. `new_to_old()[k]` is the row that is eliminated as number k, so that
/// [`permute_symmetric`](crate::graph::permute_symmetric) gives the matrix to factorise.
///
/// Values and the diagonal do not matter, and neither does the number of threads. See [`order_size`](super::order_size)
/// for what a factor in this order takes.
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
/// On a matrix that is not square, with 2^32 - 1 or more rows, or without memory for the pattern of A + A^T.
pub fn nested_dissection<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    dissection_order(&Adjacency::new(a)?)
}

/// The same for a graph that is there already.
///
/// # Errors
/// Without memory.
pub fn dissection_order(graph: &Adjacency<'_>) -> Result<Permutation> {
    let simplify::Simple { graph: simple, names } = simplify::simplify(graph)?;
    Permutation::from_new_to_old(names.expand(&tree::order(&simple)))
}

/// An order of a large graph whose separators are small, found on all threads: a few dozen regions, each ordered by
/// minimum degree. It is sought where a Cholesky factorisation may take few multiplications: where the first cuts show
/// that there are more than `few`, the answer is what is better, and where there are more than `most`, that.
///
/// # Errors
/// Without memory.
pub(crate) fn order_in_regions(graph: &Adjacency<'_>, few: f64, most: f64) -> Result<InRegions> {
    let simplify::Simple { graph: simple, names } = simplify::simplify(graph)?;
    let meter = &work::begin(Stage::Ordering, simple.len() as u64, None);
    let cuts = regions::Cuts::new(&simple, meter);
    if cuts.count() < LEAST_REGIONS {
        return Ok(InRegions::HasNone);
    }
    let separators: Vec<f64> = cuts.separators().collect();
    let multiplications: f64 = separators.iter().map(|size| size.powi(3) / 6.0).sum();
    if multiplications > OF_FIRST_CUTS * few {
        let is_in_space = separators[0] <= IN_SPACE * (simple.total() as f64).powf(2.0 / 3.0);
        return Ok(match is_in_space {
            true if multiplications > most => InRegions::Takes(multiplications),
            true => InRegions::Dissect,
            false => InRegions::HasNone,
        });
    }
    let order = cuts.regions(meter).order(&simple, meter);
    Ok(InRegions::Found(Permutation::from_new_to_old(names.expand(&order))?))
}

/// An order of elimination by approximate minimum degree, of the graph of A + A^T: as
/// [`nested_dissection`](super::nested_dissection), sooner found by one thread, and with less fill where the graph is
/// no mesh (circuits, small systems).
///
/// Source: Amestoy, Davis and Duff, SIAM J. Matrix Anal. Appl. 17 (1996).
///
/// # Errors
/// As [`nested_dissection`](super::nested_dissection).
pub fn minimum_degree<T: Scalar>(a: &Csr<T>) -> Result<Permutation> {
    minimum_degree_order(&Adjacency::new(a)?)
}

/// The same for a graph that is there already.
///
/// # Errors
/// Without memory.
pub fn minimum_degree_order(graph: &Adjacency<'_>) -> Result<Permutation> {
    let order = minimum_degree_within(graph, Most::ANY)?;
    Ok(order.expect("an order, however much work it takes"))
}

/// The same within limits. That it takes more is found before much of the order is: what is eliminated last takes most
/// of the work, of the search, too.
///
/// # Errors
/// Without memory.
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
