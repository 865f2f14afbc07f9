//! Sorts the rows of a CSR matrix into bins by their lengths, in the form that `csr_binned.cu` takes. This is done once
//! for each matrix, on the host, because such matrices are small. The order is that of a counting sort.

use crate::backend::cuda::tuning::BinnedShape;

/// A row, or a part of a long row: a group of lanes or a block sums the nonzeros `begin..end` of `row`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    begin: u32,
    end: u32,
    row: u32,
    /// For a part that a whole block sums: the first part of its row. [`LAST`] is set in the last part of the row.
    since: u32,
}

/// Marks the last part of a row. It is larger than any number of parts.
const LAST: u32 = 1 << 31;
/// Padding, so that each bin has whole warps.
const NOTHING: Part = Part { begin: 0, end: 0, row: u32::MAX, since: 0 };
/// The number of bins, with 1, 2, 4 ... 32 lanes per row.
const BINS: usize = 6;

/// The parts, in the order in which the launch processes them.
#[derive(Debug)]
pub(super) struct Bins {
    parts: Vec<Part>,
    /// The end of each bin. The first element is the end of the parts that take a whole block each.
    pub(super) ends: [u32; 1 + BINS],
}

impl Bins {
    /// Creates the bins for rows with these starts, each ending where the next one starts; there must be fewer than
    /// 2^31.
    pub(super) fn new(offsets: &[usize], shape: BinnedShape) -> Self {
        let mut parts = Vec::new();
        let mut bins = [const { Vec::new() }; BINS];
        for (row, ends) in offsets.windows(2).enumerate() {
            let (begin, length) = (ends[0], ends[1] - ends[0]);
            let part = |from: usize, to: usize, since: u32| Part {
                begin: (begin + from) as u32,
                end: (begin + to) as u32,
                row: row as u32,
                since,
            };
            let bin = length.div_ceil(shape.each).max(1).next_power_of_two().ilog2() as usize;
            if bin < BINS {
                bins[bin].push(part(0, length, 0));
                continue;
            }
            let since = parts.len() as u32;
            let size = length.div_ceil(length.div_ceil(shape.each * shape.threads));
            parts.extend((0..length).step_by(size).map(|from| part(from, length.min(from + size), since)));
            if let Some(last) = parts.last_mut() {
                last.since |= LAST;
            }
        }
        let mut ends = [parts.len() as u32; 1 + BINS];
        let mut warps = 0;
        for (i, bin) in bins.iter().enumerate() {
            let filled = bin.len().next_multiple_of(32 >> i);
            warps += filled / (32 >> i);
            ends[1 + i] = warps as u32;
            parts.extend(bin);
            parts.extend(std::iter::repeat_n(NOTHING, filled - bin.len()));
        }
        Bins { parts, ends }
    }

    /// Returns two words for each part.
    pub(super) fn words(&self) -> Vec<u64> {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        self.parts.iter().flat_map(|p| [pair(p.begin, p.end), pair(p.row, p.since)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every nonzero is in exactly one part, which is not too large for its lanes or block, and every row ends once.
    #[test]
    fn rows_of_any_length_are_balanced_once() {
        let shape = BinnedShape { each: 3, threads: 64 };
        let lengths: Vec<usize> = (0..400).chain([0, 0, 5000, 192, 193, 1]).collect();
        let offsets: Vec<usize> =
            std::iter::once(0).chain(lengths.iter().scan(0, |sum, l| Some((*sum += l, *sum).1))).collect();
        let bins = Bins::new(&offsets, shape);
        let (mut taken, mut ended) = (vec![0; offsets[lengths.len()]], vec![0; lengths.len()]);
        let (blocks, warps) = bins.parts.split_at(bins.ends[0] as usize);
        let mut since = 0;
        for (i, part) in blocks.iter().enumerate() {
            assert!((part.end - part.begin) as usize <= shape.each * shape.threads);
            assert_eq!(part.since & !LAST, since);
            if part.since & LAST != 0 {
                ended[part.row as usize] += 1;
                since = i as u32 + 1;
            }
        }
        let (mut left, mut before) = (warps, 0);
        for (i, &end) in bins.ends[1..].iter().enumerate() {
            let (of_bin, rest) = left.split_at((end - before) as usize * (32 >> i));
            (left, before) = (rest, end);
            for part in of_bin.iter().filter(|part| **part != NOTHING) {
                assert!((part.end - part.begin) as usize <= shape.each << i);
                ended[part.row as usize] += 1;
            }
        }
        assert!(left.is_empty());
        for part in bins.parts.iter().filter(|part| **part != NOTHING) {
            let row = part.row as usize;
            assert!(offsets[row] <= part.begin as usize && part.end as usize <= offsets[row + 1]);
            taken[part.begin as usize..part.end as usize].iter_mut().for_each(|times| *times += 1);
        }
        assert!(taken.iter().chain(&ended).all(|&times| times == 1));
    }
}
