//! How many right-hand sides are solved at once: several where that moves fewer bytes than one after the other.

use super::preconditioner::Setup;
use residua::Scalar;
use residua::backend::{PreconditionSteps, Products};
use residua::matrix::SparseMatrix;
use residua::scalar::Widen;

/// The most right-hand sides at once: with more, an iteration's vectors outweigh what is saved of the matrix.
const MOST: usize = 8;

/// The fewest.
const LEAST: usize = 4;

/// The fewest where rows have more entries than this on average: a tile of so few vectors then holds more of the matrix
/// than fits.
const LEAST_LONG: (usize, usize) = (40, 6);

/// Together they must move so much less a system: their product reaches a smaller share of the bandwidth. The second
/// where bytes are not all that counts.
const WORTH: [f64; 2] = [0.75, 0.6];

/// How many of so many right-hand sides are solved at once: as many each time.
fn at_once(right_hand_sides: usize) -> usize {
    right_hand_sides.div_ceil(right_hand_sides.div_ceil(MOST).max(1))
}

/// How many right-hand sides are to be solved at once with the matrix in CSR: one where it is no better than with what
/// was chosen for it, one after the other.
pub(super) fn instead<V, T, B>(
    chosen: &dyn SparseMatrix<T, B, V>,
    preconditioner: &Setup<T, B>,
    right_hand_sides: usize,
) -> usize
where
    V: Scalar + Widen<T>,
    T: Scalar,
    B: PreconditionSteps + Products,
{
    let systems = at_once(right_hand_sides);
    let (long, least_long) = LEAST_LONG;
    let least = if chosen.nonzeros() > long * chosen.rows() { least_long } else { LEAST };
    if systems < least || !matches!(preconditioner, Setup::Identity | Setup::Jacobi(_)) {
        return 1;
    }
    let n = chosen.rows();
    let vectors = 8 * n * size_of::<T>();
    let csr = chosen.nonzeros() * (4 + size_of::<V>()) + 4 * n;
    let together = csr / systems + 2 * n * size_of::<T>() + vectors;
    if together as f64 > WORTH[usize::from(!B::BYTES_TELL)] * (chosen.bytes() + vectors) as f64 {
        1
    } else {
        systems
    }
}

#[cfg(test)]
mod tests {
    use super::at_once;

    #[test]
    fn groups_are_even() {
        for (all, each) in [(1, 1), (2, 2), (8, 8), (9, 5), (12, 6), (16, 8), (17, 6), (100, 8)] {
            assert_eq!(at_once(all), each, "{all}");
        }
    }
}
