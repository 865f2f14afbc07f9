//! The graph of a square matrix.

use super::chunks::{row_chunks, split_rows};
use crate::backend::{Backend, GraphParts, Host, NARROW_LIMIT, Offsets, OffsetsRef, with_offsets};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};
use rayon::prelude::*;

/// The undirected graph of a square matrix: an edge between i and j where a_ij or a_ji is stored (explicit zeros
/// count), no edge for the diagonal.
///
/// Borrows the matrix's own pattern where that is symmetric, and holds the pattern of A + A^T where it is not.
#[derive(Debug)]
pub struct Adjacency<'a> {
    vertices: usize,
    pattern: Pattern<'a>,
    degrees: Vec<u32>,
}

#[derive(Debug)]
enum Pattern<'a> {
    /// May hold the diagonal.
    Borrowed {
        offsets: OffsetsRef<'a, Host>,
        indices: &'a [u32],
    },
    Owned {
        offsets: Offsets<Host>,
        indices: Vec<u32>,
    },
}

impl<'a> Adjacency<'a> {
    /// The graph of A + A^T.
    ///
    /// Whether the pattern is symmetric is decided by Freivalds' test (R. Freivalds, "Probabilistic machines can use
    /// less running time", IFIP 1977) with two fixed pseudorandom vectors over the integers modulo 2^64: one pass
    /// over the nonzeros in order of storage, and a wrong "symmetric" has a probability below 2^-57. It would cost the
    /// quality of an ordering, nothing else.
    ///
    /// # Errors
    /// On a matrix that is not square, with 2^32 - 1 or more rows, or without memory for A + A^T.
    pub fn new<V: Scalar>(a: &'a Csr<V>) -> Result<Self> {
        Self::build(a, false)
    }

    /// The graph of a matrix that is known to have a symmetric pattern, which saves the test. Where the caller errs,
    /// orderings and levels still come out as some permutation or distances, but not those of the graph of A + A^T.
    ///
    /// # Errors
    /// As [`Adjacency::new`].
    pub fn from_symmetric<V: Scalar>(a: &'a Csr<V>) -> Result<Self> {
        Self::build(a, true)
    }

    fn build<V: Scalar>(a: &'a Csr<V>, known_symmetric: bool) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if a.rows() >= u32::MAX as usize {
            return Err(Error::Unsupported(format!("a graph of {} vertices: at most 2^32 - 2", a.rows())));
        }
        let parts = a.parts();
        with_offsets!(parts.offsets, offsets => {
            let (mut degrees, symmetric) = scan(offsets, parts.indices, known_symmetric)?;
            let pattern = if symmetric {
                Pattern::Borrowed { offsets: parts.offsets, indices: parts.indices }
            } else {
                union_with_transpose(offsets, parts.indices, &mut degrees)?
            };
            Ok(Self { vertices: a.rows(), pattern, degrees })
        })
    }

    /// Number of vertices: rows of the matrix.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Number of edges.
    pub fn edges(&self) -> usize {
        self.degrees.iter().map(|&d| d as usize).sum::<usize>() / 2
    }

    /// Number of neighbours of `vertex`.
    ///
    /// # Panics
    /// Where there is no such vertex, as indexing does.
    pub fn degree(&self, vertex: usize) -> usize {
        self.degrees[vertex] as usize
    }

    /// The neighbours of `vertex`, ascending.
    ///
    /// # Panics
    /// Where there is no such vertex, as indexing does.
    pub fn neighbours(&self, vertex: usize) -> impl Iterator<Item = usize> + '_ {
        self.row(vertex).iter().map(|&w| w as usize).filter(move |&w| w != vertex)
    }

    /// Whether the matrix's own pattern serves, because it is symmetric.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.pattern, Pattern::Borrowed { .. })
    }

    /// The arrays, for a backend's [`GraphSteps`](crate::backend::GraphSteps).
    pub fn parts(&self) -> GraphParts<'_, Host> {
        let (offsets, indices) = match &self.pattern {
            Pattern::Borrowed { offsets, indices } => (*offsets, *indices),
            Pattern::Owned { offsets, indices } => (offsets.as_ref(), indices.as_slice()),
        };
        GraphParts { vertices: self.vertices, offsets, indices, degrees: &self.degrees }
    }

    /// The neighbours as they are stored, the vertex itself perhaps among them.
    fn row(&self, vertex: usize) -> &[u32] {
        let parts = self.parts();
        with_offsets!(parts.offsets, o => &parts.indices[o[vertex].to_usize()..o[vertex + 1].to_usize()])
    }
}

/// Entries of Freivalds' two random vectors at `index`.
#[inline(always)]
fn random_pair(index: u32) -> (u64, u64) {
    let mut z = (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let f = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let g = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (f ^ (f >> 31), g ^ (g >> 29))
}

/// The scan of fewer nonzeros is over before another thread has woken up.
const PARALLEL_FROM: usize = 1 << 17;

/// Up to this many vertices [`random_pair`] is looked up: its table stays in the cache.
const TABLE_UP_TO: usize = 1 << 16;

/// Degrees of the rows' patterns, and whether the pattern is symmetric.
fn scan<O: Offset>(offsets: &[O], indices: &[u32], known_symmetric: bool) -> Result<(Vec<u32>, bool)> {
    let rows = offsets.len() - 1;
    if known_symmetric {
        Ok((scan_with(offsets, indices, |_| (0, 0))?.0, true))
    } else if rows <= TABLE_UP_TO && rows < indices.len() {
        let table: Vec<(u64, u64)> = (0..rows as u32).map(random_pair).collect();
        scan_with(offsets, indices, |v| table[v as usize])
    } else {
        scan_with(offsets, indices, random_pair)
    }
}

fn scan_with<O: Offset>(
    offsets: &[O],
    indices: &[u32],
    random: impl Fn(u32) -> (u64, u64) + Sync,
) -> Result<(Vec<u32>, bool)> {
    let rows = offsets.len() - 1;
    let mut degrees: Vec<u32> = Host.zeros(rows)?;
    // f^T (P - P^T) g for the pattern P; the diagonal cancels.
    let scan_rows = |range: std::ops::Range<usize>, degrees: &mut [u32]| {
        let mut sum = 0u64;
        for (row, degree) in range.zip(degrees) {
            let line = &indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
            let (mut f_sum, mut g_sum, mut diagonal) = (0u64, 0u64, 0);
            for &w in line {
                let (f, g) = random(w);
                f_sum = f_sum.wrapping_add(f);
                g_sum = g_sum.wrapping_add(g);
                diagonal += u32::from(w as usize == row);
            }
            *degree = line.len() as u32 - diagonal;
            let (f, g) = random(row as u32);
            sum = sum.wrapping_add(f.wrapping_mul(g_sum)).wrapping_sub(g.wrapping_mul(f_sum));
        }
        sum
    };
    let sum = if indices.len() + rows < PARALLEL_FROM {
        scan_rows(0..rows, &mut degrees)
    } else {
        let chunks = row_chunks(|row| offsets[row].to_usize(), rows);
        let parts = split_rows(&chunks, |row| row, &mut degrees);
        parts.into_par_iter().map(|(range, part)| scan_rows(range, part)).reduce(|| 0, u64::wrapping_add)
    };
    Ok((degrees, sum == 0))
}

/// The pattern of A + A^T without its diagonal.
fn union_with_transpose<O: Offset>(
    offsets: &[O],
    indices: &[u32],
    degrees: &mut [u32],
) -> Result<Pattern<'static>> {
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
        for &w in row_of(row) {
            transposed[next[w as usize] as usize] = row as u32;
            next[w as usize] += 1;
        }
    }
    drop(next);
    let column_of = |row: usize| &transposed[starts[row] as usize..starts[row + 1] as usize];

    degrees.par_iter_mut().enumerate().with_min_len(1 << 10).for_each(|(row, degree)| {
        *degree = 0;
        merge(row_of(row), column_of(row), |w| *degree += u32::from(w as usize != row));
    });
    let mut merged: Vec<u64> = Host.zeros(rows + 1)?;
    for row in 0..rows {
        merged[row + 1] = merged[row] + u64::from(degrees[row]);
    }
    let nonzeros = merged[rows] as usize;
    let mut union: Vec<u32> = Host.zeros(nonzeros)?;
    let place = |row: usize| merged[row] as usize;
    split_rows(&row_chunks(place, rows), place, &mut union).into_par_iter().for_each(|(range, part)| {
        let mut place = part.iter_mut();
        for row in range {
            merge(row_of(row), column_of(row), |w| {
                if w as usize != row
                    && let Some(place) = place.next()
                {
                    *place = w;
                }
            });
        }
    });
    let offsets = if nonzeros <= NARROW_LIMIT {
        Offsets::Narrow(merged.into_iter().map(|o| o as u32).collect())
    } else {
        Offsets::Wide(merged)
    };
    Ok(Pattern::Owned { offsets, indices: union })
}

/// Calls `each` with the elements of either ascending slice, in order, once.
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
