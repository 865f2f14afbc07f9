//! Elimination of several matrices of one sparse pattern side by side, without pivoting.

use super::judge::Solve;
use super::lanes::{Entries, LANES, Laid, Lanes};
use crate::backend::batch::BatchElimination;
use crate::backend::host::Host;
use crate::scalar::Scalar;

/// Rows of U that are subtracted at once if they are alike: the row from which they are is read and written only once.
const TOGETHER: usize = 4;

/// The factors of the matrices.
#[derive(Debug, Default)]
pub(super) struct Sparse<D> {
    entries: Vec<Lanes<D>>,
    inverses: Vec<Lanes<D>>,
    /// The row that is being eliminated, spread out over all columns.
    row: Vec<Lanes<D>>,
}

impl<D: Scalar<Real = f64>> Sparse<D> {
    /// Takes the entries of F A.
    #[inline(always)]
    pub(super) fn take(&mut self, pattern: &BatchElimination<'_, Host>, given: &Entries<D>) {
        let zero = [D::default(); LANES];
        self.entries.clear();
        self.entries.resize(pattern.columns.len(), zero);
        self.inverses.resize(pattern.order.len(), zero);
        self.row.resize(pattern.order.len(), zero);
        for (&place, given) in pattern.places.iter().zip(&given.all) {
            self.entries[place as usize] = *given;
        }
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
            let mut at = start;
            while at < diagonal {
                let rows = alike(pattern, &pattern.columns[at..diagonal]);
                match rows {
                    1 => self.subtract::<1>(pattern, at),
                    2 => self.subtract::<2>(pattern, at),
                    3 => self.subtract::<3>(pattern, at),
                    _ => self.subtract::<TOGETHER>(pattern, at),
                }
                at += rows;
            }
            for at in diagonal..end {
                self.entries[at] = self.row[pattern.columns[at] as usize];
            }
            for (inverse, &pivot) in self.inverses[i].iter_mut().zip(&self.entries[diagonal]) {
                *inverse = D::one() / pivot;
            }
        }
    }

    /// Subtracts from the current row the rows of U for `R` of its entries from `at` on, which have the same columns
    /// behind these entries.
    #[inline(always)]
    fn subtract<const R: usize>(&mut self, pattern: &BatchElimination<'_, Host>, at: usize) {
        let Self { entries, inverses, row } = self;
        let mut factors = [[D::default(); LANES]; R];
        let mut starts = [0; R];
        for r in 0..R {
            let k = pattern.columns[at + r] as usize;
            let mut own = row[k];
            for before in 0..r {
                let u = &entries[starts[before] + r];
                for lane in 0..LANES {
                    own[lane] -= factors[before][lane] * u[lane];
                }
            }
            for lane in 0..LANES {
                factors[r][lane] = own[lane] * inverses[k][lane];
            }
            // Entry `starts[r] + q` of U is in the column of factor q.
            starts[r] = pattern.diagonals[k] as usize - r;
            entries[at + r] = factors[r];
        }
        let k = pattern.columns[at] as usize;
        let behind = pattern.diagonals[k] as usize + R..pattern.offsets[k + 1] as usize;
        let columns = &pattern.columns[behind];
        let u: [&[Lanes<D>]; R] = starts.map(|start| &entries[start + R..start + R + columns.len()]);
        for (j, &column) in columns.iter().enumerate() {
            let own = &mut row[column as usize];
            for r in 0..R {
                let u = &u[r][j];
                for lane in 0..LANES {
                    own[lane] -= factors[r][lane] * u[lane];
                }
            }
        }
    }
}

/// How many of these rows of U, [`TOGETHER`] at most, have the same columns behind those that are listed.
#[inline(always)]
fn alike(pattern: &BatchElimination<'_, Host>, listed: &[u32]) -> usize {
    let length = |k: usize| pattern.offsets[k + 1] - pattern.diagonals[k];
    let mut rows = 1;
    while rows < TOGETHER.min(listed.len()) {
        // A row of U without its first entry is part of the row that this entry names, and all of it if both are
        // equally long.
        let (k, next) = (listed[rows - 1] as usize, listed[rows] as usize);
        let first = pattern.columns.get(pattern.diagonals[k] as usize + 1);
        if first != Some(&(next as u32)) || length(k) != length(next) + 1 {
            break;
        }
        rows += 1;
    }
    rows
}

/// The systems with their factors.
pub(super) struct Eliminated<'a, D> {
    pub(super) matrix: Laid<'a, D>,
    pub(super) factors: &'a Sparse<D>,
    pub(super) pattern: &'a BatchElimination<'a, Host>,
    /// x in the order of elimination.
    pub(super) ordered: &'a mut Vec<Lanes<D>>,
}

impl<D: Scalar<Real = f64>> Eliminated<'_, D> {
    /// The sum of the products of some entries of the factors with those of x.
    #[inline(always)]
    fn sum(&self, from: u32, to: u32) -> Lanes<D> {
        let range = from as usize..to as usize;
        let mut sum = [D::default(); LANES];
        for (&column, entry) in self.pattern.columns[range.clone()].iter().zip(&self.factors.entries[range]) {
            let x = &self.ordered[column as usize];
            for lane in 0..LANES {
                sum[lane] += entry[lane] * x[lane];
            }
        }
        sum
    }
}

impl<'a, D: Scalar<Real = f64>> Solve<D, LANES> for Eliminated<'a, D> {
    type Matrix = Laid<'a, D>;

    fn matrix(&self) -> &Laid<'a, D> {
        &self.matrix
    }

    #[inline(always)]
    fn solve(&mut self, b: &[Lanes<D>], x: &mut [Lanes<D>]) {
        let BatchElimination { order, offsets, diagonals, .. } = *self.pattern;
        self.ordered.resize(order.len(), [D::default(); LANES]);
        for (i, &old) in order.iter().enumerate() {
            let before = self.sum(offsets[i], diagonals[i]);
            for lane in 0..LANES {
                self.ordered[i][lane] = b[old as usize][lane] - before[lane];
            }
        }
        for (i, &old) in order.iter().enumerate().rev() {
            let after = self.sum(diagonals[i] + 1, offsets[i + 1]);
            let lanes = self.ordered[i].iter_mut().zip(&after).zip(&self.factors.inverses[i]);
            for ((value, &after), &inverse) in lanes {
                *value = (*value - after) * inverse;
            }
            x[old as usize] = self.ordered[i];
        }
    }
}
