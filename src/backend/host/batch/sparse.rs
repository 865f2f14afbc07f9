//! Elimination of several matrices of one sparse pattern at once, without pivoting: corresponding entries of all are
//! interleaved, so that vector registers process them together. The matrices do not affect each other's bits.

use super::judge::{Solve, Vectors, exponent, power};
use crate::backend::batch::BatchElimination;
use crate::backend::host::Host;
use crate::scalar::Scalar;

/// Systems that are interleaved.
pub(super) const LANES: usize = 8;

type Lanes<D> = [D; LANES];

/// The factors of [`LANES`] matrices.
#[derive(Debug, Default)]
pub(super) struct Sparse<D> {
    entries: Vec<Lanes<D>>,
    inverses: Vec<Lanes<D>>,
    row: Vec<Lanes<D>>,
    /// Columns in the old numbering.
    old: Vec<u32>,
}

impl<D: Scalar<Real = f64>> Sparse<D> {
    /// Allocates zero factors with this pattern.
    pub(super) fn clear(&mut self, pattern: &BatchElimination<'_, Host>) {
        let zero = [D::default(); LANES];
        self.entries.clear();
        self.entries.resize(pattern.columns.len(), zero);
        self.inverses.resize(pattern.order.len(), zero);
        self.row.resize(pattern.order.len(), zero);
        self.old.clear();
        self.old.extend(pattern.columns.iter().map(|&column| pattern.order[column as usize]));
    }

    /// Loads one matrix with its rows scaled by powers of two, with their exponents and norms; returns false unless all
    /// entries are finite and every row has a nonzero one.
    #[inline(always)]
    pub(super) fn load<T: Scalar<Double = D>>(
        &mut self,
        lane: usize,
        (offsets, values): (&[u64], &[T]),
        places: &[u32],
        vectors: &mut Vectors<D>,
    ) -> bool {
        let n = offsets.len() - 1;
        vectors.resize(n);
        let mut sound = true;
        for i in 0..n {
            let own = offsets[i] as usize..offsets[i + 1] as usize;
            let mut most = 0.0_f64;
            for value in &values[own.clone()] {
                sound &= value.is_finite();
                most = most.max(super::dense::size(value.to_double()));
            }
            let found = exponent(most);
            sound &= found.is_some();
            let raised = -found.unwrap_or(0);
            let (scale, mut square) = (D::from_f64(power(raised)), 0.0);
            for (value, &place) in values[own.clone()].iter().zip(&places[own]) {
                let value = value.to_double() * scale;
                self.entries[place as usize][lane] = value;
                square += value.abs2();
            }
            vectors.exponents[i] = raised;
            vectors.norms[i] = square.sqrt();
        }
        sound
    }

    /// Computes L U, row by row.
    #[inline(always)]
    pub(super) fn eliminate(&mut self, pattern: &BatchElimination<'_, Host>) {
        for (i, &diagonal) in pattern.diagonals.iter().enumerate() {
            let (start, end) = (pattern.offsets[i] as usize, pattern.offsets[i + 1] as usize);
            let diagonal = diagonal as usize;
            for at in start..end {
                self.row[pattern.columns[at] as usize] = self.entries[at];
            }
            for at in start..diagonal {
                let k = pattern.columns[at] as usize;
                let mut factor = self.row[k];
                for (factor, &inverse) in factor.iter_mut().zip(&self.inverses[k]) {
                    *factor *= inverse;
                }
                self.entries[at] = factor;
                let after = pattern.diagonals[k] as usize + 1..pattern.offsets[k + 1] as usize;
                for (&column, u) in pattern.columns[after.clone()].iter().zip(&self.entries[after]) {
                    let own = &mut self.row[column as usize];
                    for lane in 0..LANES {
                        own[lane] -= factor[lane] * u[lane];
                    }
                }
            }
            for at in diagonal..end {
                self.entries[at] = self.row[pattern.columns[at] as usize];
            }
            for (inverse, &pivot) in self.inverses[i].iter_mut().zip(&self.entries[diagonal]) {
                *inverse = D::one() / pivot;
            }
        }
    }
}

/// The factors of one of the matrices.
pub(super) struct OfLane<'a, D> {
    pub(super) factors: &'a Sparse<D>,
    pub(super) pattern: &'a BatchElimination<'a, Host>,
    pub(super) lane: usize,
}

impl<D: Scalar<Real = f64>> Solve<D> for OfLane<'_, D> {
    fn size(&self) -> usize {
        self.pattern.order.len()
    }

    #[inline(always)]
    fn solve(&mut self, b: &[D], x: &mut [D]) {
        let Self { factors, pattern, lane } = *self;
        let sum = |from: usize, to: usize, x: &[D]| {
            let mut sum = D::default();
            for (&column, entry) in factors.old[from..to].iter().zip(&factors.entries[from..to]) {
                sum += entry[lane] * x[column as usize];
            }
            sum
        };
        for (i, &old) in pattern.order.iter().enumerate() {
            let before = sum(pattern.offsets[i] as usize, pattern.diagonals[i] as usize, x);
            x[old as usize] = b[old as usize] - before;
        }
        for (i, &old) in pattern.order.iter().enumerate().rev() {
            let after = sum(pattern.diagonals[i] as usize + 1, pattern.offsets[i + 1] as usize, x);
            x[old as usize] = (x[old as usize] - after) * factors.inverses[i][lane];
        }
    }
}
