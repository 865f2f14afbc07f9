//! Decides whether several right-hand sides are solved together: if that moves fewer bytes than solving one by one.

use super::SolverBackend;
use super::preconditioner::AnyPreconditioner;
use crate::matrix::SparseMatrix;
use crate::scalar::Scalar;

/// The maximum number of right-hand sides in a solve: with more, the vectors of an iteration outweigh the saving on the
/// matrix.
const MOST: usize = 8;

/// The minimum number of right-hand sides for which solving together is faster than one after another.
const LEAST: usize = 4;

/// A mean row length, and the minimum for matrices with longer rows: with fewer vectors, a tile would need more of the
/// matrix than fits.
const LEAST_LONG: (usize, usize) = (40, 6);

/// Solving together must move at most this fraction of the bytes for each system, because its product reaches less of
/// the bandwidth. The second value is for devices on which time depends on more than bytes.
const WORTH: [f64; 2] = [0.75, 0.6];

/// Splits the right-hand sides into groups of equal size, and returns that size.
fn even_groups(right_hand_sides: usize) -> usize {
    right_hand_sides.div_ceil(right_hand_sides.div_ceil(MOST).max(1))
}

/// Returns how many right-hand sides to solve together with the matrix in CSR; one if solving them one by one in the
/// chosen format is at least as fast.
pub(super) fn instead<V, T, B>(
    chosen: &dyn SparseMatrix<T, B, V>,
    preconditioner: &AnyPreconditioner<T, B>,
    right_hand_sides: usize,
) -> usize
where
    V: Scalar,
    T: Scalar,
    B: SolverBackend,
{
    let size = Size { rows: chosen.rows(), nonzeros: chosen.nonzeros(), value: size_of::<V>() };
    at_once::<T, B>(size, chosen.bytes(), preconditioner, right_hand_sides)
}

/// The size of a matrix, and the bytes of a value.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) nonzeros: usize,
    pub(super) value: usize,
}

/// Returns how many right-hand sides are solved together: 1 unless reading the matrix in CSR once for all of them is
/// faster than solving one by one in the chosen format, in which a product moves `product` bytes.
pub(super) fn at_once<T: Scalar, B: SolverBackend>(
    Size { rows, nonzeros, value }: Size,
    product: usize,
    preconditioner: &AnyPreconditioner<T, B>,
    right_hand_sides: usize,
) -> usize {
    let systems = even_groups(right_hand_sides);
    let (long, least_long) = LEAST_LONG;
    let least = if nonzeros > long * rows { least_long } else { LEAST };
    if systems < least
        || !matches!(preconditioner, AnyPreconditioner::Identity | AnyPreconditioner::Jacobi(_))
    {
        return 1;
    }
    let vectors = 8 * rows * size_of::<T>();
    let csr = nonzeros * (4 + value) + 4 * rows;
    let together = csr / systems + 2 * rows * size_of::<T>() + vectors;
    if together as f64 > WORTH[usize::from(!B::IS_DEVICE)] * (product + vectors) as f64 { 1 } else { systems }
}

#[cfg(test)]
mod tests {
    use super::even_groups;

    #[test]
    fn groups_are_even() {
        for (all, each) in [(1, 1), (2, 2), (8, 8), (9, 5), (12, 6), (16, 8), (17, 6), (100, 8)] {
            assert_eq!(even_groups(all), each, "{all}");
        }
    }
}
