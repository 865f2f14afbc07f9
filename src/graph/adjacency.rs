//! The graph of a square matrix.

use crate::backend::host::pattern::scan;
use crate::backend::{
    Backend, GraphParts, GraphSteps, Host, NARROW_LIMIT, Offsets, OffsetsRef, with_offsets,
};
use crate::error::{Error, Result};
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::parallel::Cut;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Scalar};
use crate::work::look_at;

/// The undirected graph of a square matrix. There is an edge between i and j if a_ij or a_ji is stored (including
/// explicit zeros); the diagonal gives no edges.
///
/// It borrows the matrix's own pattern if that is symmetric, and else stores the pattern of A + A^T.
#[derive(Debug)]
pub struct Adjacency<'a, B: Backend = Host> {
    vertices: usize,
    pattern: Pattern<'a, B>,
    degrees: B::Vec<u32>,
}

/// The pattern may include the diagonal.
#[derive(Debug)]
enum Pattern<'a, B: Backend> {
    Borrowed { offsets: OffsetsRef<'a, B>, indices: &'a B::Slice<u32> },
    Owned { offsets: Offsets<B>, indices: B::Vec<u32> },
}

impl<'a, B: GraphSteps> Adjacency<'a, B> {
    /// The graph of A + A^T, in the memory of any backend, as [`Adjacency::new`]. If the pattern is not symmetric, its
    /// union with the transpose is found by sorting, with 16 bytes of temporary memory per nonzero.
    ///
    /// # Errors
    /// As [`Adjacency::new`], and if the device fails.
    pub fn on<V: Scalar>(backend: &B, a: &'a Csr<V, B>) -> Result<Self> {
        check(a)?;
        let parts = a.parts();
        let mut degrees = backend.zeros(a.rows())?;
        let symmetric = backend.degrees(parts.offsets, parts.indices, &mut degrees)?;
        let pattern = if symmetric {
            Pattern::Borrowed { offsets: parts.offsets, indices: parts.indices }
        } else {
            let (offsets, indices) = union_by_sorting(backend, a.rows(), parts.offsets, parts.indices)?;
            backend.degrees(offsets.as_ref(), &indices, &mut degrees)?;
            Pattern::Owned { offsets, indices }
        };
        Ok(Self { vertices: a.rows(), pattern, degrees })
    }
}

impl<B: Backend> Adjacency<'_, B> {
    /// Number of vertices: rows of the matrix.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Returns whether the matrix's own pattern is used, because it is symmetric.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.pattern, Pattern::Borrowed { .. })
    }

    /// The arrays, for a backend's [`GraphSteps`](crate::backend::GraphSteps).
    pub fn parts(&self) -> GraphParts<'_, B> {
        let (offsets, indices) = match &self.pattern {
            Pattern::Borrowed { offsets, indices } => (*offsets, *indices),
            Pattern::Owned { offsets, indices } => (offsets.as_ref(), &**indices),
        };
        GraphParts { vertices: self.vertices, offsets, indices, degrees: &self.degrees }
    }
}

impl<'a> Adjacency<'a> {
    /// The graph of A + A^T.
    ///
    /// Whether the pattern is symmetric is decided by Freivalds' test (R. Freivalds, "Probabilistic machines can use
    /// less running time", IFIP 1977) with two fixed pseudorandom vectors over the integers modulo 2^64: one pass over
    /// the nonzeros in order of storage, and the probability of wrongly reporting "symmetric" is below 2^-57. A wrong
    /// answer would only make an ordering worse.
    ///
    /// # Errors
    /// If the matrix is not square, if it has 2^32 - 1 or more rows, or if memory runs out for A + A^T.
    pub fn new<V: Scalar>(a: &'a Csr<V>) -> Result<Self> {
        Self::build(a, false)
    }

    /// The graph of a matrix whose pattern is known to be symmetric, without testing it. If it is not symmetric,
    /// orderings are still valid permutations and levels still distances, but they are not those of the graph of A +
    /// A^T.
    ///
    /// # Errors
    /// As [`Adjacency::new`].
    pub fn from_symmetric<V: Scalar>(a: &'a Csr<V>) -> Result<Self> {
        Self::build(a, true)
    }

    fn build<V: Scalar>(a: &'a Csr<V>, known_symmetric: bool) -> Result<Self> {
        check(a)?;
        let parts = a.parts();
        let mut degrees: Vec<u32> = Host.zeros(a.rows())?;
        with_offsets!(parts.offsets, offsets => {
            let symmetric = scan(offsets, parts.indices, &mut degrees, known_symmetric);
            let pattern = if symmetric {
                Pattern::Borrowed { offsets: parts.offsets, indices: parts.indices }
            } else {
                union_with_transpose(offsets, parts.indices, &mut degrees)?
            };
            Ok(Self { vertices: a.rows(), pattern, degrees })
        })
    }

    /// The same graph with its vertices renumbered.
    ///
    /// # Errors
    /// If the order has a different length, or if memory runs out.
    pub(crate) fn renumbered(&self, order: &Permutation) -> Result<Adjacency<'static>> {
        let n = self.vertices;
        Error::check_dimension("length of the order", n, order.len())?;
        let old = |new: usize| order.new_to_old()[new] as usize;
        let mut degrees: Vec<u32> = Host.zeros(n)?;
        let mut starts: Vec<u64> = Host.zeros(n + 1)?;
        for new in 0..n {
            degrees[new] = self.degrees[old(new)];
            starts[new + 1] = starts[new] + u64::from(degrees[new]);
        }
        let mut indices: Vec<u32> = Host.zeros(starts[n] as usize)?;
        let rows = Cut::new(&mut indices, &starts[..n]).expect("sums ascend");
        rows.enumerate().with_min_len(1 << 10).for_each(|(new, row)| {
            let others = self.neighbours(old(new)).map(|other| order.old_to_new()[other]);
            row.iter_mut().zip(others).for_each(|(place, other)| *place = other);
            row.sort_unstable();
        });
        Ok(Adjacency {
            vertices: n,
            pattern: Pattern::Owned { offsets: Offsets::Wide(starts), indices },
            degrees,
        })
    }

    /// Number of edges.
    pub fn edges(&self) -> usize {
        self.degrees.iter().map(|&d| d as usize).sum::<usize>() / 2
    }

    /// Number of neighbours of `vertex`.
    ///
    /// # Panics
    /// If there is no such vertex, as indexing does.
    pub fn degree(&self, vertex: usize) -> usize {
        self.degrees[vertex] as usize
    }

    /// The neighbours of `vertex`, ascending.
    ///
    /// # Panics
    /// If there is no such vertex, as indexing does.
    pub fn neighbours(&self, vertex: usize) -> impl Iterator<Item = usize> + '_ {
        self.row(vertex).iter().map(|&w| w as usize).filter(move |&w| w != vertex)
    }

    /// The neighbours as they are stored, possibly including the vertex itself.
    fn row(&self, vertex: usize) -> &[u32] {
        let parts = self.parts();
        with_offsets!(parts.offsets, o => &parts.indices[o[vertex].to_usize()..o[vertex + 1].to_usize()])
    }
}

fn check<V: Scalar, B: Backend>(a: &Csr<V, B>) -> Result<()> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    if a.rows() < u32::MAX as usize {
        return Ok(());
    }
    Err(Error::Unsupported(format!("a graph of {} vertices: at most 2^32 - 2", a.rows())))
}

/// The pattern of A + A^T.
fn union_by_sorting<B: GraphSteps>(
    backend: &B,
    n: usize,
    offsets: OffsetsRef<'_, B>,
    indices: &B::Slice<u32>,
) -> Result<(Offsets<B>, B::Vec<u32>)> {
    let m = B::len(indices);
    let mut rows = backend.zeros(m)?;
    with_offsets!(offsets, offsets => backend.expand_offsets(offsets, &mut rows)?);
    // Both directions of each edge as keys (row, column), sorted, without duplicates.
    let bits = (n.max(2) as u32 - 1).ilog2() + 1;
    let mut keys = backend.zeros(2 * m)?;
    let (forth, back) = B::split_mut(&mut keys, m);
    backend.pack(&rows, indices, bits, forth)?;
    backend.pack(indices, &rows, bits, back)?;
    drop(rows);
    backend.sort(&mut keys, 0..2 * bits)?;
    let mut distinct = backend.zeros(2 * m)?;
    let count = backend.unique(&keys, &mut distinct)?;
    drop(keys);
    let (mut rows, mut columns) = (backend.zeros(count)?, backend.zeros(count)?);
    backend.unpack(B::part(&distinct, 0..count), bits, &mut rows, &mut columns)?;
    let mut offsets = Offsets::zeros(backend, n + 1, count)?;
    match &mut offsets {
        Offsets::Lower(offsets) => backend.offsets_of_sorted(&rows, offsets)?,
        Offsets::Wide(offsets) => backend.offsets_of_sorted(&rows, offsets)?,
    }
    Ok((offsets, columns))
}

/// The pattern of A + A^T.
fn union_with_transpose<O: Offset>(
    offsets: &[O],
    indices: &[u32],
    degrees: &mut [u32],
) -> Result<Pattern<'static, Host>> {
    let rows = offsets.len() - 1;
    let row_of = |row: usize| &indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
    let mut starts: Vec<u64> = Host.zeros(rows + 1)?;
    for &w in indices {
        starts[w as usize + 1] += 1;
    }
    for row in 0..rows {
        starts[row + 1] += starts[row];
    }
    let mut transposed: Vec<u32> = Host.zeros(indices.len())?;
    let mut next = Host.download(&starts[..rows])?;
    for row in 0..rows {
        look_at(row);
        for &w in row_of(row) {
            transposed[next[w as usize] as usize] = row as u32;
            next[w as usize] += 1;
        }
    }
    drop(next);
    let column_of = |row: usize| &transposed[starts[row] as usize..starts[row + 1] as usize];

    let mut merged: Vec<u64> = Host.zeros(rows + 1)?;
    let counts = degrees.par_iter_mut().zip(&mut merged[1..]);
    counts.enumerate().with_min_len(1 << 10).for_each(|(row, (degree, length))| {
        *degree = 0;
        merge(row_of(row), column_of(row), |w| {
            *degree += u32::from(w as usize != row);
            *length += 1;
        });
    });
    for row in 0..rows {
        merged[row + 1] += merged[row];
    }
    let nonzeros = merged[rows] as usize;
    let mut union: Vec<u32> = Host.zeros(nonzeros)?;
    let place = |row: usize| merged[row] as usize;
    split_rows(&row_chunks(place, rows), place, &mut union).into_par_iter().for_each(|(range, part)| {
        let mut place = part.iter_mut();
        for row in range {
            merge(row_of(row), column_of(row), |w| {
                if let Some(place) = place.next() {
                    *place = w;
                }
            });
        }
    });
    let offsets = if nonzeros <= NARROW_LIMIT {
        Offsets::Lower(merged.into_iter().map(|o| o as u32).collect())
    } else {
        Offsets::Wide(merged)
    };
    Ok(Pattern::Owned { offsets, indices: union })
}

/// Calls `each` with the elements of the union of two ascending slices, in order.
fn merge(mut a: &[u32], mut b: &[u32], mut each: impl FnMut(u32)) {
    while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
        each(x.min(y));
        if x <= y {
            a = &a[1..];
        }
        if y <= x {
            b = &b[1..];
        }
    }
    a.iter().chain(b).for_each(|&w| each(w));
}
