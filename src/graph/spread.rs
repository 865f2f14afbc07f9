//! Breadth-first search of a distributed graph, whose vertices are divided among several ranks.
//!
//! Each rank owns some of the vertices and has their neighbours. All ranks have a bit for every visited vertex, so each
//! level costs one exchange of n / 8 bytes between each pair of ranks; the local work is done by the backend
//! ([`GraphSteps::bfs_reach`], [`GraphSteps::bfs_settle`]). A level is found from the edges of the frontier, or by
//! searching backward from the unvisited vertices to the frontier, whichever reads less (Beamer, Asanovic and
//! Patterson, "Direction-optimizing breadth-first search", SC 2012; the distribution by rows is that of Buluc and
//! Madduri, SC 2011).

use crate::backend::{Backend, Communicator, GraphRows, GraphSteps, OffsetsRef, Space, UNREACHED, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::ops::Range;

/// The number of vertices whose bits are in one word.
const BITS: usize = u32::BITS as usize;

/// The cost of a vertex in a search, in addition to its neighbours and in units of one neighbour; and the number of
/// neighbours after which a backward search has usually found a visited one.
const OF_VERTEX: usize = 4;
const ENOUGH: usize = 32;

/// With at most this many sources, their bits are written one by one.
const FEW: usize = 16;

/// The part of an undirected graph on one rank of a communicator.
#[derive(Debug)]
pub struct SpreadGraph<'a, B: VectorOps, C> {
    space: Space<B, C>,
    rows: GraphRows<'a, B>,
    /// The number of stored neighbours over all ranks.
    neighbours: usize,
}

/// Distances of a rank's vertices from the sources of a breadth-first search.
#[derive(Debug)]
pub struct SpreadLevels<B: Backend> {
    /// The distance of each own vertex; [`UNREACHED`] if no path leads there.
    pub levels: B::Vec<u32>,
    /// Number of levels over all ranks: one more than the largest distance.
    pub count: usize,
    /// The number of vertices reached, over all ranks.
    pub reached: usize,
}

/// Contiguous ranges of vertices that take about equally long to search. The size of each, except for the last one, is
/// a multiple of 32.
///
/// # Errors
/// If the matrix is not square, or `parts` is zero.
pub fn vertex_parts<V: Scalar>(a: &Csr<V>, parts: usize) -> Result<Vec<Range<usize>>> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    if parts == 0 {
        return Err(Error::InvalidArgument("a graph for no ranks".into()));
    }
    let cost = |v: usize| OF_VERTEX + a.row(v).0.len().min(ENOUGH);
    let all: usize = (0..a.rows()).map(cost).sum();
    let (mut bounds, mut before) = (vec![0], 0);
    for first in (0..a.rows()).step_by(BITS) {
        while bounds.len() < parts && before >= all * bounds.len() / parts {
            bounds.push(first);
        }
        before += (first..(first + BITS).min(a.rows())).map(cost).sum::<usize>();
    }
    bounds.resize(parts, a.rows());
    bounds.push(a.rows());
    Ok(bounds.windows(2).map(|bound| bound[0]..bound[1]).collect())
}

impl<'a, B: GraphSteps + VectorOps, C: Communicator<B>> SpreadGraph<'a, B, C> {
    /// The graph of a square matrix with a symmetric pattern, of which this rank has the rows `own`; other rows may be
    /// empty. All ranks call this together.
    ///
    /// # Errors
    /// If the matrix is not square; if `own` does not begin at a multiple of 32, or the ranks' vertices do not follow
    /// one another from the first to the last; and if another rank has failed.
    pub fn new<V: Scalar>(space: Space<B, C>, a: &'a Csr<V, B>, own: Range<usize>) -> Result<Self> {
        let n = a.rows();
        let square = Error::check_dimension("columns of a square matrix", n, a.columns());
        let [first, end] = [own.start, own.end].map(|bound| bound.min(n));
        let good = square.is_ok() && own.end <= n && own.start <= own.end && n < u32::MAX as usize;
        let parts = a.parts();
        let ends = if good {
            parts.offsets.windows(space.backend(), &[first..first + 1, end..end + 1])
        } else {
            Ok(vec![0, 0])
        };
        let neighbours = ends.as_ref().map_or(0, |ends| ends[1] - ends[0]);
        // A rank with an error takes part in the exchange and reports it.
        let told = [u64::from(!good), n as u64, first as u64, end as u64, neighbours as u64];
        let all = told_by_all(&space, told)?;
        square?;
        ends?;
        let mut next = 0;
        for [bad, vertices, first, end, _] in &all {
            if *bad != 0
                || *vertices != n as u64
                || *first != next
                || (*first % BITS as u64 != 0 && first != end)
            {
                return Err(Error::InvalidArgument(format!(
                    "parts of a graph of {n} vertices, of which one has {first}..{end} of {vertices}: they follow one another, \
                     and begin at multiples of {BITS}"
                )));
            }
            next = *end;
        }
        Error::check_dimension("vertices of all ranks", n, next as usize)?;
        let offsets = match parts.offsets {
            OffsetsRef::Lower(offsets) => OffsetsRef::Lower(B::part(offsets, first..end + 1)),
            OffsetsRef::Wide(offsets) => OffsetsRef::Wide(B::part(offsets, first..end + 1)),
        };
        // The range of a rank without vertices may begin in the middle of a word.
        let first = if first == end { 0 } else { first };
        let rows =
            GraphRows { vertices: n, first, rows: own.len(), neighbours, offsets, indices: parts.indices };
        let neighbours = all.iter().map(|told| told[4] as usize).sum();
        Ok(Self { space, rows, neighbours })
    }

    /// Distances from the nearest of several vertices, which have global numbers; all ranks give the same ones.
    ///
    /// # Errors
    /// If a source is not a vertex, if memory runs out, or if a device or another rank fails.
    pub fn bfs(&self, sources: &[u32]) -> Result<SpreadLevels<B>> {
        let (backend, n) = (self.space.backend(), self.rows.vertices);
        if let Some(source) = sources.iter().find(|&&source| source as usize >= n) {
            return Err(Error::InvalidArgument(format!(
                "there is no vertex {source}: the graph has {n} vertices, numbered from 0"
            )));
        }
        let (mut seen, mut reached) = (backend.zeros(n.div_ceil(BITS))?, source_bits(backend, n, sources)?);
        let mut levels = backend.buffer(self.rows.rows)?;
        backend.fill(UNREACHED, &mut levels)?;
        let (mut frontier, mut figures) = (backend.frontier(self.rows)?, backend.zeros::<f64>(2)?);
        let (mut count, mut followed, mut all) = (0, 0, 0);
        loop {
            backend.bfs_settle(
                self.rows,
                count as u32,
                &mut reached,
                &mut seen,
                &mut levels,
                &mut frontier,
                &mut figures,
            )?;
            self.space.communicator().all_sum(backend, &mut figures)?;
            let mut told = [0.0; 2];
            backend.read(&figures, &mut told)?;
            let [found, edges] = told;
            if !found.is_finite() {
                return Err(Error::InvalidArgument("a part of the graph has been given up".into()));
            }
            if found == 0.0 {
                return Ok(SpreadLevels { levels, count, reached: all });
            }
            count += 1;
            all += found as usize;
            followed += edges as usize;
            let left = self.neighbours.saturating_sub(followed);
            let pull = pulls(n, self.neighbours, edges as usize, left, n - all);
            backend.bfs_reach(self.rows, pull, &mut frontier, &seen, &mut reached)?;
            self.space.communicator().all_or(backend, &mut reached)?;
        }
    }
}

/// Returns a bit for each vertex, set for the sources. If there are many sources, all words are copied from the host.
fn source_bits<B: Backend>(backend: &B, n: usize, sources: &[u32]) -> Result<B::Vec<u32>> {
    let (words, of) =
        (n.div_ceil(BITS), |source: u32| (source as usize / BITS, 1_u32 << (source as usize % BITS)));
    if sources.len() > FEW {
        let mut bits = vec![0; words];
        sources.iter().map(|&source| of(source)).for_each(|(word, bit)| bits[word] |= bit);
        return backend.upload(bits);
    }
    let mut bits = backend.zeros(words)?;
    for &source in sources {
        let (word, _) = of(source);
        let all = sources.iter().map(|&other| of(other)).filter(|other| other.0 == word);
        backend.write(&[all.fold(0, |bits, (_, bit)| bits | bit)], B::part_mut(&mut bits, word..word + 1))?;
    }
    Ok(bits)
}

/// Returns whether a backward search from the `open` unvisited vertices reads less than following the `edges` edges of
/// the frontier. The backward search reads a bit of every vertex, and the neighbours of each unvisited vertex until one
/// of them is in the frontier; all unvisited vertices together have `left` neighbours. A single GPU decides by the same
/// rule in a kernel (`pays` in `kernels/bfs.cu`).
fn pulls(vertices: usize, neighbours: usize, edges: usize, left: usize, open: usize) -> bool {
    let looks = open as f64 * neighbours as f64 / edges.max(1) as f64;
    2.0 * edges as f64 > vertices as f64 / 8.0 + looks.min(left as f64)
}

/// The numbers `own` of each rank, gathered from all ranks.
pub(super) fn told_by_all<B: VectorOps, C: Communicator<B>, const N: usize>(
    space: &Space<B, C>,
    own: [u64; N],
) -> Result<Vec<[u64; N]>> {
    if C::ALONE {
        return Ok(vec![own]);
    }
    let bytes = own.iter().flat_map(|word| word.to_le_bytes()).collect();
    let words = |bytes: Vec<u8>| {
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        words.try_into().map_err(|_| Error::InvalidArgument("ranks that report different results".into()))
    };
    space.communicator().gather(bytes)?.into_iter().map(words).collect()
}
