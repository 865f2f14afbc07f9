//! Detects the exact symmetry of a matrix.

use crate::backend::OffsetsRef;
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar, Symmetry};

/// The symmetry under which one triangle determines the matrix, pattern and every bit of the values (so -0 and +0
/// differ, and NaN equals itself). A diagonal matrix is symmetric; a matrix with a stored diagonal entry is not
/// skew-symmetric.
///
/// Time: one pass over the nonzeros, which ends at the first entry without a partner. Memory: 8 bytes per row.
pub fn symmetry_of<T: Scalar>(matrix: &Csr<T>) -> Symmetry {
    match matrix.parts().offsets {
        OffsetsRef::Lower(offsets) => walk(matrix, |i| offsets[i] as usize),
        OffsetsRef::Wide(offsets) => walk(matrix, |i| offsets[i] as usize),
    }
}

fn walk<T: Scalar>(matrix: &Csr<T>, offset: impl Fn(usize) -> usize) -> Symmetry {
    let (n, parts) = (matrix.rows(), matrix.parts());
    let (columns, values) = (parts.indices, parts.values);
    if matrix.columns() != n {
        return Symmetry::General;
    }
    // For each row, its next entry above the diagonal that has no partner yet. As i increases, the partners of row j
    // are looked up in the order of its columns.
    let mut next = Vec::with_capacity(n);
    let mut left = 0;
    for i in 0..n {
        let row = &columns[offset(i)..offset(i + 1)];
        let above = row.partition_point(|&j| j as usize <= i);
        left += row.len() - above;
        next.push(offset(i) + above);
    }
    let mut candidates =
        [(Symmetry::Symmetric, true), (Symmetry::Hermitian, T::COMPLEX), (Symmetry::SkewSymmetric, true)];
    for i in 0..n {
        for k in offset(i)..offset(i + 1) {
            let j = columns[k] as usize;
            if j > i {
                break;
            }
            let mut partner = k;
            if j < i {
                partner = next[j];
                if partner == offset(j + 1) || columns[partner] as usize != i {
                    return Symmetry::General;
                }
                next[j] += 1;
                left -= 1;
            }
            for (symmetry, holds) in &mut candidates {
                *holds &= match symmetry {
                    Symmetry::SkewSymmetric if j == i => false,
                    // The diagonal is stored, so only the values that a reader accepts there matter.
                    Symmetry::Hermitian if j == i => bits(values[k].im()) << 1 == 0,
                    symmetry => same_bits(values[partner], symmetry.mirror(values[k])),
                };
            }
            if candidates.iter().all(|c| !c.1) {
                return Symmetry::General;
            }
        }
    }
    let found = candidates.into_iter().find(|c| c.1).filter(|_| left == 0);
    found.map_or(Symmetry::General, |c| c.0)
}

fn bits<R: Real>(value: R) -> u64 {
    value.to_f64().to_bits()
}

fn same_bits<T: Scalar>(a: T, b: T) -> bool {
    bits(a.re()) == bits(b.re()) && bits(a.im()) == bits(b.im())
}
