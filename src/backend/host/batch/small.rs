//! Gaussian elimination with partial pivoting of small dense matrices side by side: each system has pivot rows of its
//! own, and all do the same steps.

use super::judge::Solve;
use super::lanes::{Entries, LANES, Laid, Lanes, Shape};
use crate::scalar::Scalar;

/// The largest system. A row of a larger one fills the vector registers by itself, and eight of these would not fit the
/// nearest caches.
pub(super) const MOST: usize = 32;

/// The factors of the matrices: L below the diagonal and U from there on, and the inverses of pivots.
#[derive(Debug, Default)]
pub(super) struct Small<D> {
    n: usize,
    entries: Vec<Lanes<D>>,
    inverses: Vec<Lanes<D>>,
    /// The row with which each row changed places at its step. Entries of L before stayed where they were.
    swaps: Vec<Lanes<u32>>,
}

impl<D: Scalar<Real = f64>> Small<D> {
    /// Takes the entries of F A.
    #[inline(always)]
    pub(super) fn take(&mut self, shape: Shape<'_>, given: &Entries<D>) {
        let n = shape.size();
        self.n = n;
        self.inverses.resize(n, [D::default(); LANES]);
        self.swaps.resize(n, [0; LANES]);
        match shape {
            Shape::Dense(_) => given.all.clone_into(&mut self.entries),
            Shape::Compressed(offsets, columns) => {
                self.entries.clear();
                self.entries.resize(n * n, [D::default(); LANES]);
                for i in 0..n {
                    let row = offsets[i] as usize..offsets[i + 1] as usize;
                    for (&column, &value) in columns[row.clone()].iter().zip(&given.all[row]) {
                        self.entries[i * n + column as usize] = value;
                    }
                }
            }
        }
    }

    /// Computes L U. The factors of a system without a nonzero pivot are of no use.
    #[inline(always)]
    pub(super) fn eliminate(&mut self) {
        let n = self.n;
        for k in 0..n {
            let (mut best, mut at) = ([-1.0_f64; LANES], [k as u64; LANES]);
            for i in k..n {
                let own = &self.entries[i * n + k];
                for lane in 0..LANES {
                    let size = super::judge::size(own[lane]);
                    let larger = size > best[lane];
                    best[lane] = if larger { size } else { best[lane] };
                    at[lane] = if larger { i as u64 } else { at[lane] };
                }
            }
            let (above, below) = self.entries.split_at_mut((k + 1) * n);
            let pivot_row = &mut above[k * n + k..];
            for lane in 0..LANES {
                self.swaps[k][lane] = at[lane] as u32;
                if at[lane] as usize > k {
                    let from = (at[lane] as usize - k - 1) * n + k;
                    for (pivot, other) in pivot_row.iter_mut().zip(&mut below[from..from + n - k]) {
                        std::mem::swap(&mut pivot[lane], &mut other[lane]);
                    }
                }
            }
            let mut inverses = [D::default(); LANES];
            for lane in 0..LANES {
                inverses[lane] = D::one() / pivot_row[0][lane];
            }
            self.inverses[k] = inverses;
            let u = &pivot_row[1..];
            for row in below.chunks_exact_mut(n) {
                let row = &mut row[k..];
                for lane in 0..LANES {
                    row[0][lane] *= inverses[lane];
                }
                let factor = row[0];
                subtract(&factor, u, &mut row[1..]);
            }
        }
    }
}

/// rows -= factor u.
#[inline(always)]
fn subtract<D: Scalar<Real = f64>>(factor: &Lanes<D>, u: &[Lanes<D>], row: &mut [Lanes<D>]) {
    for (row, u) in row.iter_mut().zip(u) {
        for lane in 0..LANES {
            row[lane] -= factor[lane] * u[lane];
        }
    }
}

/// The systems with their factors.
pub(super) struct Eliminated<'a, D> {
    pub(super) matrix: Laid<'a, D>,
    pub(super) factors: &'a Small<D>,
}

impl<'a, D: Scalar<Real = f64>> Solve<D, LANES> for Eliminated<'a, D> {
    type Matrix = Laid<'a, D>;

    fn matrix(&self) -> &Laid<'a, D> {
        &self.matrix
    }

    #[inline(always)]
    fn solve(&mut self, b: &[Lanes<D>], x: &mut [Lanes<D>]) {
        let Small { n, entries, inverses, swaps } = self.factors;
        let n = *n;
        x.copy_from_slice(b);
        for k in 0..n {
            for lane in 0..LANES {
                let with = swaps[k][lane] as usize;
                let own = x[k][lane];
                x[k][lane] = x[with][lane];
                x[with][lane] = own;
            }
            let own = x[k];
            for i in k + 1..n {
                for lane in 0..LANES {
                    x[i][lane] -= entries[i * n + k][lane] * own[lane];
                }
            }
        }
        for k in (0..n).rev() {
            let mut own = x[k];
            for (u, x) in entries[k * n + k + 1..(k + 1) * n].iter().zip(&x[k + 1..]) {
                for lane in 0..LANES {
                    own[lane] -= u[lane] * x[lane];
                }
            }
            for lane in 0..LANES {
                x[k][lane] = own[lane] * inverses[k][lane];
            }
        }
    }
}
