//! Unknowns that are kept on the next level: stiff ones, those of very flat elements, and hubs, the vertices of a graph
//! that have many times the neighbours of others.
//!
//! A smooth error changes slowly, and an aggregate represents it by a constant. If elements are so flat that their
//! couplings are thousands of times those of others, the small change of the error between their unknowns has as much
//! energy as all the rest: neither the coarse correction nor smoothing reduces it, and a handful of such places
//! determines the number of iterations. Therefore the unknowns with the largest couplings are not aggregated. Each is
//! an unknown of the next level too, and others interpolate from it.
//!
//! A hub is near to most of the graph, so that an aggregate around it would hold vertices that have nothing else in
//! common, and the steps of a setup would wait for its row. It has no strong couplings of its own either; vertices
//! whose only strong neighbours are hubs join the aggregate of one.

use super::MultigridBackend;
use crate::backend::{CoarseningSteps, EXPONENTS, copied};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use num_traits::Float;

/// An unknown is stiff if the exponent of its largest coupling exceeds the median by this: a factor of 64. Iterations
/// were about the same with factors from 16 to 128.
const ABOVE: usize = 6;

/// A row is that of a hub if it has at least this many entries, and at least this many times the mean of all rows. Rows
/// of meshes and of their levels have fewer.
const LONG: u32 = 256;
const OF_MEAN: usize = 4;

/// At most one unknown in this many is stiff, on the finest level and on others; if there are more candidates, those
/// with the largest couplings are. Stiff unknowns stay while others become fewer, and so are a larger fraction of
/// coarser levels. With a quarter instead of an eighth, tetrahedra took a tenth fewer iterations, but triangles between
/// 10^6 points 31 instead of 24, and the levels of a power grid had a fifth more entries.
const ONE_IN: [usize; 2] = [64, 8];

/// The stiff unknowns of a level in ascending order, or the stiff nodes if the entries of `a` are `squared` norms of
/// blocks. They are found by counts of exponents, so that all backends decide alike.
pub(super) fn stiff_unknowns<T: Scalar, B: CoarseningSteps>(
    backend: &B,
    a: &Csr<T, B>,
    finest: bool,
    squared: bool,
) -> Result<B::Vec<u32>> {
    let n = a.rows();
    let mut largest = backend.buffer(n)?;
    backend.largest_couplings(a.parts(), &mut largest)?;
    let (mut exponents, mut counts) = (backend.buffer(n)?, backend.buffer(EXPONENTS)?);
    backend.exponents::<T>(&largest, &mut exponents)?;
    backend.histogram(&exponents, &mut counts)?;
    let most = n / ONE_IN[usize::from(!finest)];
    let above = ABOVE << usize::from(squared);
    let Some((least, count)) = least_exponent(&backend.download(&counts)?, most, above) else {
        return backend.buffer(0);
    };
    let stiff = numbers_from(backend, &exponents, least)?;
    debug_assert_eq!(B::len(&stiff), count);
    Ok(stiff)
}

/// The places of the elements that are at least `least`, ascending.
fn numbers_from<B: CoarseningSteps>(backend: &B, x: &B::Slice<u32>, least: u32) -> Result<B::Vec<u32>> {
    let n = B::len(x);
    let (mut flags, mut numbers, mut all) =
        (backend.buffer(n)?, backend.buffer::<u32>(n)?, backend.buffer(n)?);
    backend.flags_from(x, least, &mut flags)?;
    backend.sequence::<u32>(&mut numbers)?;
    let count = backend.compact(&numbers, &flags, &mut all)?;
    copied(backend, B::part(&all, 0..count))
}

/// The hubs of a level in ascending order; `None` if there are none.
pub(super) fn hubs<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    longest: u32,
) -> Result<Option<B::Vec<u32>>> {
    let n = a.rows();
    let least = LONG.max((OF_MEAN * a.nonzeros() / n.max(1)) as u32);
    if longest < least {
        return Ok(None);
    }
    let mut lengths = backend.buffer::<u32>(n)?;
    backend.row_lengths(a.parts().offsets, 0, u32::MAX as usize, &mut lengths)?;
    numbers_from(backend, &lengths, least).map(Some)
}

/// The smallest exponent of stiff unknowns, and the number of these, at most `most`; `None` if there are none.
/// `counts[e]` is the number of unknowns with exponent e; stiff ones are at least `above` the median.
fn least_exponent(counts: &[u32], most: usize, above: usize) -> Option<(u32, usize)> {
    let all: usize = counts.iter().map(|&count| count as usize).sum();
    let mut below = 0;
    let median = counts.iter().position(|&count| {
        below += count as usize;
        below > all / 2
    })?;
    let mut stiff = 0;
    let mut least = None;
    for (exponent, &count) in counts.iter().enumerate().skip(median + above).rev() {
        stiff += count as usize;
        if stiff > most {
            break;
        }
        if count > 0 {
            least = Some((exponent as u32, stiff));
        }
    }
    least
}

/// Sets the largest coupling of stiff unknowns to infinity: then they have no strong couplings of their own, but are
/// still strong neighbours of others.
pub(super) fn set_apart<T: Scalar, B: CoarseningSteps>(
    backend: &B,
    stiff: &B::Slice<u32>,
    largest: &mut B::Slice<T::Real>,
) -> Result<()> {
    let mut infinite = backend.buffer::<T::Real>(B::len(stiff))?;
    backend.fill(T::Real::infinity(), &mut infinite)?;
    backend.scatter::<T::Real, u32>(&infinite, stiff, largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::generate;
    use crate::matrix::Triplets;

    #[test]
    fn the_largest_exponents_are_taken_while_there_is_room() {
        let mut counts = vec![0; 40];
        (counts[10], counts[11], counts[15], counts[16], counts[17], counts[30]) = (60, 30, 9, 3, 2, 1);
        // The median is 10, so 16 is the first exponent that counts.
        for (most, found) in [(10, Some((16, 6))), (5, Some((17, 3))), (2, Some((30, 1))), (0, None)] {
            assert_eq!(least_exponent(&counts, most, ABOVE), found, "{most}");
        }
        assert_eq!(least_exponent(&[0, 5, 5], 3, ABOVE), None);
        assert_eq!(least_exponent(&[], 3, ABOVE), None);
    }

    #[test]
    fn unknowns_with_large_couplings_are_found_and_no_more_than_allowed() {
        let (plain, n) = (generate::poisson2d(30, 30).unwrap(), 900);
        let with = |pairs: &[(usize, usize)]| {
            let mut entries = Triplets::new(n, n).unwrap();
            plain.iter().for_each(|(i, j, value)| entries.push(i, j, value).unwrap());
            for &(i, j) in pairs {
                for (row, column, value) in [(i, i, 1e4), (j, j, 1e4), (i, j, -1e4), (j, i, -1e4)] {
                    entries.push(row, column, value).unwrap();
                }
            }
            crate::assemble::to_csr(&Host, entries).unwrap()
        };
        assert_eq!(stiff_unknowns(&Host, &plain, true, false).unwrap(), Vec::<u32>::new());
        assert_eq!(
            stiff_unknowns(&Host, &with(&[(700, 701), (31, 32)]), true, false).unwrap(),
            [31, 32, 700, 701]
        );
        // Twenty are more than one in 64, and less than one in eight.
        let pairs: Vec<_> = (0..10).map(|k| (60 * k + 5, 60 * k + 6)).collect();
        assert!(stiff_unknowns(&Host, &with(&pairs), true, false).unwrap().is_empty());
        assert_eq!(stiff_unknowns(&Host, &with(&pairs), false, false).unwrap().len(), 20);
    }
}
