//! Divides rows into chunks for threads, each with its own part of an output array.

use std::ops::Range;

/// Below this many nonzeros one thread is faster than two.
pub(crate) const PARALLEL_FROM: usize = 1 << 15;

/// Approximate number of nonzeros in a chunk.
const CHUNK: usize = 1 << 14;

/// Cuts the rows of `offsets` into ranges of about equally many nonzeros.
pub(crate) fn row_chunks(offsets: impl Fn(usize) -> usize, rows: usize) -> Vec<Range<usize>> {
    let mut chunks = Vec::with_capacity((offsets(rows) + rows) / CHUNK + 1);
    let mut start = 0;
    for row in 0..rows {
        // Empty rows cost time too.
        if offsets(row + 1) - offsets(start) + (row + 1 - start) >= CHUNK || row + 1 == rows {
            chunks.push(start..row + 1);
            start = row + 1;
        }
    }
    chunks
}

/// Each chunk with the part of `data` that belongs to its rows.
pub(crate) fn split_rows<'a, T>(
    chunks: &[Range<usize>],
    offsets: impl Fn(usize) -> usize,
    mut data: &'a mut [T],
) -> Vec<(Range<usize>, &'a mut [T])> {
    let mut parts = Vec::with_capacity(chunks.len());
    for rows in chunks {
        let (part, rest) = data.split_at_mut(offsets(rows.end) - offsets(rows.start));
        parts.push((rows.clone(), part));
        data = rest;
    }
    parts
}
