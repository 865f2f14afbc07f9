//! Unknowns of very flat elements, which the next level has as they are.
//!
//! What smoothing leaves of an error changes slowly, and an aggregate takes it for constant. Where elements are so flat
//! that their couplings are thousands of times those of others, what little it changes between their unknowns costs as
//! much energy as the rest of the error: neither a correction from aggregates nor smoothing brings it down, and a
//! handful of such places decides how many iterations there are. So the unknowns with the largest couplings are no part
//! of aggregates. Each is an unknown of the next level too, and others interpolate from it.

use crate::backend::{CoarseningSteps, EXPONENTS};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use num_traits::Float;

/// An unknown is stiff where the exponent of its largest coupling is so much above the median: 64 times that.
/// Iterations were about the same from 16 to 128 times.
const ABOVE: usize = 6;

/// One unknown in so many is stiff at most, on the finest level and on others; else fewer are, those with the largest
/// couplings. Stiff ones stay while others become fewer, and so are a larger part of coarser levels. With a quarter in
/// the place of an eighth tetrahedra took a tenth fewer iterations, triangles between 10^6 points 31 and not 24, and the
/// levels of a power grid had a fifth more entries.
const ONE_IN: [usize; 2] = [64, 8];

/// The stiff unknowns of a level in ascending order. Counts of exponents decide, so that all backends decide alike.
pub(super) fn stiff_unknowns<T: Scalar, B: CoarseningSteps>(
    backend: &B,
    a: &Csr<T, B>,
    finest: bool,
) -> Result<B::Vec<u32>> {
    let n = a.rows();
    let mut largest = backend.buffer(n)?;
    backend.largest_couplings(a.parts(), &mut largest)?;
    let (mut exponents, mut counts) = (backend.buffer(n)?, backend.buffer(EXPONENTS)?);
    backend.exponents::<T>(&largest, &mut exponents)?;
    backend.histogram(&exponents, &mut counts)?;
    let most = n / ONE_IN[usize::from(!finest)];
    let Some((least, count)) = least_exponent(&backend.download(&counts)?, most) else {
        return backend.buffer(0);
    };
    let (mut flags, mut numbers, mut all) =
        (backend.buffer(n)?, backend.buffer::<u32>(n)?, backend.buffer(n)?);
    backend.flags_from(&exponents, least, &mut flags)?;
    backend.sequence::<u32>(&mut numbers)?;
    backend.compact(&numbers, &flags, &mut all)?;
    let mut stiff = backend.buffer(count)?;
    backend.copy(B::part(&all, 0..count), &mut stiff)?;
    Ok(stiff)
}

/// The exponent from which on unknowns are stiff, and how many there are, `most` at most; none where there is none.
/// `counts` says how many unknowns have each exponent.
fn least_exponent(counts: &[u32], most: usize) -> Option<(u32, usize)> {
    let all: usize = counts.iter().map(|&count| count as usize).sum();
    let mut below = 0;
    let median = counts.iter().position(|&count| {
        below += count as usize;
        below > all / 2
    })?;
    let mut stiff = 0;
    let mut least = None;
    for (exponent, &count) in counts.iter().enumerate().skip(median + ABOVE).rev() {
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

/// Marks the largest couplings of stiff unknowns as infinite: then these have no strong couplings, while they are still
/// strong neighbours of others.
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
        // The median is 10, and 16 is the first exponent that counts.
        for (most, found) in [(10, Some((16, 6))), (5, Some((17, 3))), (2, Some((30, 1))), (0, None)] {
            assert_eq!(least_exponent(&counts, most), found, "{most}");
        }
        assert_eq!(least_exponent(&[0, 5, 5], 3), None);
        assert_eq!(least_exponent(&[], 3), None);
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
        assert_eq!(stiff_unknowns(&Host, &plain, true).unwrap(), Vec::<u32>::new());
        assert_eq!(stiff_unknowns(&Host, &with(&[(700, 701), (31, 32)]), true).unwrap(), [31, 32, 700, 701]);
        // Twenty are more than one in 64, and less than one in eight.
        let pairs: Vec<_> = (0..10).map(|k| (60 * k + 5, 60 * k + 6)).collect();
        assert!(stiff_unknowns(&Host, &with(&pairs), true).unwrap().is_empty());
        assert_eq!(stiff_unknowns(&Host, &with(&pairs), false).unwrap().len(), 20);
    }
}
