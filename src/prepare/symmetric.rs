//! The matching of largest product for symmetric and Hermitian matrices.

use super::matching::{Matching, UNMATCHED};
use super::pattern::Pattern;
use super::product::product_matching_within_reason;
use super::scaling::{Scaling, logarithms};
use crate::backend::with_offsets;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Real, Scalar};
use crate::work::look_at;
use num_complex::Complex;

/// Pivots of size 1 and 2 for a factorisation L D L^T, and a symmetric scaling D A D.
#[derive(Debug, Clone)]
pub struct SymmetricMatching {
    partner: Vec<u32>,
    scaling: Scaling,
    unmatched: Vec<u32>,
}

impl SymmetricMatching {
    /// The row with which each row forms a 2 x 2 pivot, or its own number if it is a pivot by itself.
    /// `partner[partner[i]] == i`.
    pub fn partner(&self) -> &[u32] {
        &self.partner
    }

    /// The scaling, with equal factors for row i and column i.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// The rows that a maximum matching leaves out; their number is the structural rank deficiency. They are pivots by
    /// themselves.
    pub fn unmatched(&self) -> &[u32] {
        &self.unmatched
    }

    /// Takes partners, scaling and unmatched rows out.
    pub fn into_parts(self) -> (Vec<u32>, Scaling, Vec<u32>) {
        (self.partner, self.scaling, self.unmatched)
    }
}

/// Scales a symmetric, Hermitian or skew-symmetric matrix by sqrt(r_i c_i), where r and c are the scaling of
/// [`maximum_product_matching`](super::maximum_product_matching), so that all entries have at most magnitude 1. The
/// cycles of its matching are then split into pairs i, j for which a_ij has magnitude 1. Of the two ways to split an
/// even cycle, the one is chosen whose smallest pivot a_ii a_jj - a_ij a_ji is larger; in an odd cycle the row with the
/// largest diagonal entry remains by itself. Duff and Pralet, "Strategies for scaling and pivoting for sparse symmetric
/// indefinite problems", SIAM J. Matrix Anal. Appl. 27 (2005).
///
/// If A is structurally singular, the submatrix of the matched rows and the same columns is not, and is matched again.
/// The largest entry of each other row becomes 1.
///
/// ```
/// use residua::{Csr, prepare::symmetric_matching};
///
/// // A constraint (last row) without a diagonal entry makes a pivot with the row of its largest entry.
/// let a = Csr::from_parts(3, 3, vec![0, 1, 3, 5], vec![0, 1, 2, 1, 2], vec![4.0, 1.0, 100.0, 100.0, 0.0])?;
/// assert_eq!(symmetric_matching(&a)?.partner(), [0, 2, 1]);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If A is not square, if an entry is infinite or not a number, if there are 2^32 - 1 rows or more, or if memory runs
/// out.
pub fn symmetric_matching<T: Scalar>(a: &Csr<T>) -> Result<SymmetricMatching> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    if let Some(diagonal) = of_diagonal(a) {
        return Ok(diagonal);
    }
    let (matching, scaling) = product_matching_within_reason(a)?.into_parts();
    let unmatched = matching.unmatched_rows();
    if unmatched.is_empty() {
        let root = half(&scaling);
        return Ok(paired(a, &matching, &root, unmatched));
    }
    let kept: Vec<u32> = (0..)
        .zip(matching.column_of())
        .filter(|(_, column)| **column != UNMATCHED)
        .map(|(row, _)| row)
        .collect();
    let (inner, inner_scaling) = product_matching_within_reason(&principal(a, &kept)?)?.into_parts();
    let mut whole = Matching::none(a.rows(), a.rows());
    let mut root = vec![f64::NEG_INFINITY; a.rows()];
    for (place, (&column, inner_root)) in inner.column_of().iter().zip(half(&inner_scaling)).enumerate() {
        root[kept[place] as usize] = inner_root;
        if column != UNMATCHED {
            whole.pair(kept[place] as usize, kept[column as usize] as usize);
        }
    }
    scale_others(a, &unmatched, &mut root)?;
    let unmatched = whole.unmatched_rows();
    Ok(paired(a, &whole, &root, unmatched))
}

/// Fewer rows are not worth another thread.
const FEW: usize = 1 << 10;

/// Returns the diagonal as the matching if |a_ij|^2 <= |a_ii| |a_jj| for all entries, as in every positive definite
/// matrix. No product of entries is larger then, and 1 / sqrt |a_ii| is the scaling.
fn of_diagonal<T: Scalar>(a: &Csr<T>) -> Option<SymmetricMatching> {
    let size = |i: usize| a.get(i, i).map_or(0.0, |value| value.abs().to_f64());
    let mut root = vec![0.0; a.rows()];
    root.par_iter_mut().enumerate().with_min_len(FEW).for_each(|(i, root)| *root = -0.5 * size(i).log2());
    if !root.iter().all(|root: &f64| root.is_finite()) {
        return None;
    }
    let factors: Vec<f64> = root.iter().map(|root| root.exp2()).collect();
    // Allows for rounding in logarithms.
    let most = 1e-12;
    let is_small = |i: usize| {
        let (indices, values) = a.row(i);
        both(indices, values).all(|(&j, value)| {
            let size = value.abs().to_f64();
            // Logarithms take most of the time, so they are used only if a product may overflow.
            size * factors[i] * factors[j as usize] < 0.99
                || j as usize == i
                || size == 0.0
                || size.log2() + root[i] + root[j as usize] <= most
        })
    };
    (0..a.rows()).into_par_iter().with_min_len(FEW).all(is_small).then(|| SymmetricMatching {
        partner: (0..a.rows() as u32).collect(),
        scaling: Scaling::from_logarithms(&root, &root),
        unmatched: Vec::new(),
    })
}

/// Returns the binary logarithms of sqrt(r_i c_i).
fn half(scaling: &Scaling) -> Vec<f64> {
    scaling.rows().iter().zip(scaling.columns()).map(|(r, c)| (r.log2() + c.log2()) / 2.0).collect()
}

/// Returns the submatrix of these rows and the same columns.
fn principal<T: Scalar>(a: &Csr<T>, kept: &[u32]) -> Result<Csr<T>> {
    let pattern = Pattern::stored(a)?;
    let values = a.parts().values;
    let mut place = vec![UNMATCHED; a.rows()];
    (0..).zip(kept).for_each(|(new, &old)| place[old as usize] = new);
    let (mut offsets, mut indices, mut inner) = (vec![0], Vec::new(), Vec::new());
    for &row in kept {
        let start = pattern.starts()[row as usize];
        for (&column, &value) in both(pattern.row(row as usize), &values[start..]) {
            if place[column as usize] != UNMATCHED {
                indices.push(place[column as usize]);
                inner.push(value);
            }
        }
        offsets.push(indices.len());
    }
    Csr::from_parts(kept.len(), kept.len(), offsets, indices, inner)
}

/// Sets the factors of unmatched rows. Their entries in unmatched columns are zero, since the matching would be larger
/// otherwise.
fn scale_others<T: Scalar>(a: &Csr<T>, others: &[u32], root: &mut [f64]) -> Result<()> {
    let pattern = Pattern::stored(a)?;
    let sizes = logarithms(a, pattern.starts())?;
    for row in others.iter().map(|&row| row as usize) {
        let entries = pattern.row(row).iter().zip(&sizes[pattern.starts()[row]..]);
        let largest =
            entries.map(|(&column, size)| size + root[column as usize]).fold(f64::NEG_INFINITY, f64::max);
        root[row] = if largest.is_finite() { -largest } else { 0.0 };
    }
    Ok(())
}

/// Splits the cycles i, m(i), m(m(i)) ... of a matching.
fn paired<T: Scalar>(
    a: &Csr<T>,
    matching: &Matching,
    root: &[f64],
    unmatched: Vec<u32>,
) -> SymmetricMatching {
    let mut partner: Vec<u32> = (0..a.rows() as u32).collect();
    let mut seen = vec![false; a.rows()];
    let scaled = Scaled { a, root };
    let mut cycle = Vec::new();
    for first in 0..a.rows() as u32 {
        look_at(first as usize);
        cycle.clear();
        let mut row = first;
        while row != UNMATCHED && !std::mem::replace(&mut seen[row as usize], true) {
            cycle.push(row);
            row = matching.column_of()[row as usize];
        }
        if cycle.len() < 2 {
            continue;
        }
        if row == first {
            let start = scaled.best_start(&cycle);
            cycle.rotate_left(start);
        }
        // If the cycle is odd, its first row remains by itself.
        for pair in cycle[cycle.len() % 2..].chunks_exact(2) {
            (partner[pair[0] as usize], partner[pair[1] as usize]) = (pair[1], pair[0]);
        }
    }
    SymmetricMatching { partner, scaling: Scaling::from_logarithms(root, root), unmatched }
}

/// The entries of D A D by their places.
struct Scaled<'a, T: Scalar> {
    a: &'a Csr<T>,
    root: &'a [f64],
}

impl<T: Scalar> Scaled<'_, T> {
    fn entry(&self, row: u32, column: u32) -> Complex<f64> {
        let parts = self.a.parts();
        let places = with_offsets!(parts.offsets, offsets => {
            offsets[row as usize].to_usize()..offsets[row as usize + 1].to_usize()
        });
        let start = places.start;
        let factor = (self.root[row as usize] + self.root[column as usize]).exp2();
        let Ok(place) = parts.indices[places].binary_search(&column) else { return Complex::default() };
        let value = parts.values[start + place];
        Complex::new(value.re().to_f64(), value.im().to_f64()) * factor
    }

    fn pivot(&self, i: u32, j: u32) -> f64 {
        (self.entry(i, i) * self.entry(j, j) - self.entry(i, j) * self.entry(j, i)).norm()
    }

    /// Returns the place of the cycle at which pairing begins, after the row that remains if the cycle is odd.
    fn best_start(&self, cycle: &[u32]) -> usize {
        if cycle.len() % 2 == 1 {
            let sizes = cycle.iter().map(|&row| self.entry(row, row).norm());
            return sizes
                .enumerate()
                .fold((0, -1.0), |best, next| if next.1 > best.1 { next } else { best })
                .0;
        }
        let smallest = |start: usize| {
            let pairs = (start..cycle.len()).step_by(2);
            let pivots = pairs.map(|k| self.pivot(cycle[k], cycle[(k + 1) % cycle.len()]));
            pivots.fold(f64::INFINITY, f64::min)
        };
        usize::from(cycle.len() > 2 && smallest(1) > smallest(0))
    }
}
