//! Finds grids whose points are numbered in any order.
//!
//! A matrix with 5 points in two dimensions or 7 in three stays the matrix of a grid when its unknowns are renumbered,
//! but their numbers no longer show it. The pattern still does: its graph has the edges of the grid; points on a face
//! have one neighbour less, those on an edge two, and the corners three. The number of vertices of each degree is
//! therefore a symmetric function of the side lengths, and the side lengths follow from these numbers without a
//! traversal. The distance of a point from a corner is the sum of its coordinates, counted from that corner:
//!
//! ```text
//!     from the corner (0, 0, 0)        x + y + z
//!     from the corner (0, Y - 1, 0)    x + (Y - 1 - y) + z
//!     from the corner (0, 0, Z - 1)    x + y + (Z - 1 - z)
//! ```
//!
//! Three breadth-first searches (two in two dimensions) therefore determine all coordinates. The two corners nearest to
//! the first are at the other ends of its two shortest sides, since no sum of sides is smaller than these. The result
//! is verified, point by point and edge by edge.
//!
//! | step | data that it reads |
//! |---|---|
//! | [`may_be_a_grid`] | a few windows of rows |
//! | [`grid_sizes`] | the number of neighbours of each row |
//! | [`grid_order_on`] | the pattern, three times in the order of the searches and once row by row |

use super::{Adjacency, Permutation};
use crate::backend::{Backend, GraphSteps, Host};
use crate::error::{Error, Result};
use crate::matrix::{Csr, windows};
use crate::scalar::Scalar;

/// The number of windows of rows in the sample, and the number of rows of each.
const WINDOWS: usize = 16;
const WINDOW: usize = 64;

/// The maximum number of neighbours of a point: two along each of three axes.
const MOST: usize = 6;

/// The maximum number of distances from the diagonal, to either side, for a grid in its own order: 13 if a point is
/// coupled to all 26 around it, 62 if to 124.
const FEW_DISTANCES: usize = 64;

/// The permutation that numbers the points of a grid row by row and plane by plane, and the grid's sizes.
#[derive(Debug)]
pub struct GridOrder<B: Backend = Host> {
    permutation: Permutation<B>,
    sizes: [usize; 3],
}

impl<B: Backend> GridOrder<B> {
    /// The renumbering: the point (x, y, z) becomes number x + X (y + Y z).
    pub fn permutation(&self) -> &Permutation<B> {
        &self.permutation
    }

    /// Takes the renumbering out.
    pub fn into_permutation(self) -> Permutation<B> {
        self.permutation
    }

    /// Points along each axis, X >= Y >= Z; Z is 1 in two dimensions.
    pub fn sizes(&self) -> [usize; 3] {
        self.sizes
    }
}

/// The order in which the unknowns of a matrix form a grid in two or three dimensions, with each point coupled to its
/// neighbours along the axes only. `None` if the graph of A + A^T is not exactly that of a grid with at least two
/// points along each axis. Values do not matter.
///
/// # Errors
/// As [`Adjacency::new`].
pub fn grid_order<V: Scalar>(a: &Csr<V>) -> Result<Option<GridOrder>> {
    let graph = Adjacency::new(a)?;
    match grid_sizes(&Host, &graph)? {
        Some(sizes) => grid_order_on(&Host, &graph, sizes),
        None => Ok(None),
    }
}

/// Returns whether a square matrix may be that of a grid in another order, from a few windows of rows: true if no row
/// has more neighbours than a point of a grid, and the entries are at more different distances from the diagonal than
/// in a grid's own order.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn may_be_a_grid<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Result<bool> {
    if a.nonzeros() > (MOST + 1) * a.rows() {
        return Ok(false);
    }
    Ok(distances(backend, a, MOST)?.is_some_and(|distances| distances > MOST / 2))
}

/// Returns whether the entries in a few windows of rows are on few diagonals, as they are for a grid in its own order.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn has_few_diagonals<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Result<bool> {
    if a.nonzeros() > 2 * FEW_DISTANCES * a.rows() {
        return Ok(false);
    }
    Ok(distances(backend, a, 2 * FEW_DISTANCES)?.is_some_and(|distances| distances <= FEW_DISTANCES))
}

/// The number of different distances from the diagonal at which a few windows of rows have entries; `None` if a row has
/// more than `most` entries off the diagonal.
fn distances<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>, most: usize) -> Result<Option<usize>> {
    let rows = a.rows();
    let windows = windows(rows, WINDOWS, WINDOW);
    let mut distances = Vec::new();
    for (first, window) in windows.iter().map(|rows| rows.start).zip(a.windows(backend, &windows)?) {
        for i in 0..window.rows() {
            let apart = window.row(i).0.iter().map(|&j| (first + i).abs_diff(j as usize));
            let before = distances.len();
            distances.extend(apart.filter(|&distance| distance > 0));
            if distances.len() - before > most {
                return Ok(None);
            }
        }
    }
    distances.sort_unstable();
    distances.dedup();
    Ok(Some(distances.len()))
}

/// The number of points along each axis of the grid that a graph may be, found from the degrees of its vertices alone:
/// X >= Y >= Z, Z = 1 in two dimensions. `None` if no grid has these numbers of vertices of each degree.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn grid_sizes<B: GraphSteps>(backend: &B, graph: &Adjacency<'_, B>) -> Result<Option<[usize; 3]>> {
    let mut counts = backend.zeros(MOST + 1)?;
    backend.histogram(graph.parts().degrees, &mut counts)?;
    let counts = backend.download(&*counts)?;
    Ok(sizes_of_counts(graph.vertices(), std::array::from_fn(|degree| counts[degree] as usize)))
}

/// The sides of the grid that has these numbers of vertices of each degree.
fn sizes_of_counts(vertices: usize, counts: [usize; MOST + 1]) -> Option<[usize; 3]> {
    if counts.iter().sum::<usize>() != vertices {
        return None;
    }
    // If the sides have p, q and r interior points: the sum of these, the sum of the products of two of them, and the
    // product of all three (which is `inside`).
    match counts {
        [0, 0, 4, border, inside, 0, 0] if border % 2 == 0 => {
            let (p, q) = of_sum_and_product(border / 2, inside)?;
            Some([q + 2, p + 2, 1])
        }
        [0, 0, 0, 8, edges, faces, inside] if edges % 4 == 0 && faces % 2 == 0 => {
            let (sum, pairs) = (edges / 4, faces / 2);
            // The smallest of three is at most the cube root of their product.
            let least = (0..=sum / 3).take_while(|&p| p * p <= inside / p.max(1));
            least.into_iter().find_map(|p| {
                let product = pairs.checked_sub(p * (sum - p))?;
                let (q, r) = of_sum_and_product(sum - p, product)?;
                (q >= p && p * product == inside).then_some([r + 2, q + 2, p + 2])
            })
        }
        _ => None,
    }
}

/// Two integers, the smaller first, from their sum and product.
fn of_sum_and_product(sum: usize, product: usize) -> Option<(usize, usize)> {
    let root = sum.checked_mul(sum)?.checked_sub(product.checked_mul(4)?)?.isqrt();
    let smaller = sum.checked_sub(root)? / 2;
    (smaller * (sum - smaller) == product).then_some((smaller, sum - smaller))
}

/// The order in which the vertices of a graph form a grid with the sizes that [`grid_sizes`] returned, in the memory of
/// any backend; the result is the same on each. A grid's graph has up to 48 such orders; the numbers of its corners
/// decide which one is returned. `None` if the graph is not that of the grid.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn grid_order_on<B: GraphSteps>(
    backend: &B,
    graph: &Adjacency<'_, B>,
    sizes: [usize; 3],
) -> Result<Option<GridOrder<B>>> {
    let (parts, n) = (graph.parts(), graph.vertices());
    Error::check_dimension("points of the grid", n, sizes.iter().product())?;
    let most = sizes.map(|size| size.saturating_sub(1));
    let corners = backend.of_degree(parts, if sizes[2] > 1 { 3 } else { 2 })?;
    let search = |vertex: u32| -> Result<(B::Vec<u32>, bool)> {
        let mut levels = backend.buffer(n)?;
        let count = backend.bfs(parts, &*backend.upload(vec![vertex])?, &mut levels)?;
        // The farthest point from a corner is the opposite corner.
        Ok((levels, count == most.iter().sum::<usize>() + 1))
    };
    let Some(&corner) = corners.first() else { return Ok(None) };
    let (first, reaches) = search(corner)?;
    if !reaches {
        return Ok(None);
    }
    let mut distances = backend.buffer(corners.len())?;
    backend.gather::<u32, u32>(&first, &*backend.upload(corners.clone())?, &mut distances)?;
    let mut near: Vec<(u32, u32)> = backend.download(&*distances)?.into_iter().zip(corners).skip(1).collect();
    near.sort_unstable();
    // The axes with the shortest sides, the shortest first; in two dimensions there is no third axis.
    let across: &[usize] = if sizes[2] > 1 { &[2, 1] } else { &[1] };
    let mut others = [None, None];
    for (&axis, (distance, vertex)) in across.iter().zip(near) {
        if distance as usize != most[axis] {
            return Ok(None);
        }
        let (levels, reaches) = search(vertex)?;
        if !reaches {
            return Ok(None);
        }
        others[axis - 1] = Some(levels);
    }
    let [y, z] = &others;
    let levels = [&*first, y.as_deref().unwrap_or(&first), z.as_deref().unwrap_or(&first)];
    let (mut new_to_old, mut old_to_new) = (backend.zeros(n)?, backend.zeros(n)?);
    let is_grid = backend.number_grid(parts, levels, sizes, &mut new_to_old, &mut old_to_new)?;
    Ok(is_grid.then(|| GridOrder { permutation: Permutation::of_both(new_to_old, old_to_new), sizes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of vertices of each degree in a grid, counted point by point.
    fn counts(sizes: [usize; 3]) -> [usize; MOST + 1] {
        let mut counts = [0; MOST + 1];
        for point in 0..sizes.iter().product() {
            let at = [point % sizes[0], point / sizes[0] % sizes[1], point / sizes[0] / sizes[1]];
            let along = |axis: usize| usize::from(at[axis] > 0) + usize::from(at[axis] + 1 < sizes[axis]);
            counts[(0..3).map(along).sum::<usize>()] += 1;
        }
        counts
    }

    #[test]
    fn counts_of_degrees_tell_the_sides() {
        for z in 1..8 {
            for y in z.max(2)..10 {
                for x in y..14 {
                    let sizes = [x, y, z];
                    assert_eq!(sizes_of_counts(x * y * z, counts(sizes)), Some(sizes));
                }
            }
        }
        for sizes in [[100, 3, 3], [4096, 4096, 1], [1000, 2, 1], [256, 256, 2], [120, 110, 100]] {
            assert_eq!(sizes_of_counts(sizes.iter().product(), counts(sizes)), Some(sizes));
        }
    }

    #[test]
    fn other_counts_are_those_of_no_grid() {
        let grid = counts([9, 7, 5]);
        assert_eq!(sizes_of_counts(9 * 7 * 5 + 1, grid), None, "a vertex of degree seven");
        // An edge between two interior points is removed, then one is added.
        for (from, to) in [(6, 5), (5, 4), (4, 5)] {
            let mut counts = grid;
            (counts[from], counts[to]) = (counts[from] - 2, counts[to] + 2);
            assert_eq!(sizes_of_counts(9 * 7 * 5, counts), None, "{from} {to}");
        }
        for counts in [[0; 7], [0, 2, 40, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 64], [0, 0, 4, 7, 9, 0, 0]] {
            assert_eq!(sizes_of_counts(counts.iter().sum(), counts), None);
        }
    }
}
