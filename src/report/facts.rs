//! What can be told of a matrix by looking at its entries once.

use crate::backend::{KrylovSteps, with_offsets};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Real, Scalar};

/// Entries that differ from their mirror image by less than this share of the largest entry count as equal: files
/// round their values.
const ROUNDING: f64 = 1e-10;

/// Rows that one task looks at.
const CHUNK: usize = 1 << 12;

/// Symmetry, diagonal and dominance of a matrix; magnitudes as `f64`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// Whether a_ji is stored wherever a_ij is. Rectangular matrices are not symmetric in any way.
    pub pattern_symmetric: bool,
    /// Largest |a_ij - a_ji| over largest |a_ij|.
    pub asymmetry: f64,
    /// The same for the conjugate of a_ji; equal to `asymmetry` for real matrices.
    pub hermitian_defect: f64,
    /// The same for -a_ji.
    pub skew_defect: f64,
    /// Row and column (from 0) of the entry that is farthest from the conjugate of its mirror image.
    pub worst_pair: Option<(usize, usize)>,
    /// Stored entries that are zero.
    pub explicit_zeros: usize,
    /// Largest |a_ij|.
    pub largest: f64,
    /// Diagonal entries (of min(rows, columns)) whose real part is above zero.
    pub diagonal_positive: usize,
    /// Diagonal entries whose real part is below zero.
    pub diagonal_negative: usize,
    /// Diagonal entries that are not stored, or zero.
    pub diagonal_zero: usize,
    /// Rows with |a_ii| > sum of the other |a_ij|.
    pub strictly_dominant_rows: usize,
    /// Rows with |a_ii| >= sum of the other |a_ij|.
    pub dominant_rows: usize,
    /// Rows without a stored entry.
    pub empty_rows: usize,
    /// Columns without a stored entry.
    pub empty_columns: usize,
}

impl Facts {
    /// Looks at every entry, and for its mirror image by bisection: O(nonzeros log row length), several threads.
    pub fn of<V: Scalar>(a: &Csr<V>) -> Self {
        let parts = a.parts();
        let square = parts.rows == parts.columns;
        let (indices, values) = (parts.indices, parts.values);
        let tally = with_offsets!(parts.offsets, offsets => {
            let row = |i: usize| offsets[i].to_usize()..offsets[i + 1].to_usize();
            let mirror = |i: usize, j: usize| -> Option<V> {
                let line = row(j);
                indices[line.clone()].binary_search(&(i as u32)).ok().map(|k| values[line.start + k])
            };
            let chunk = |chunk: usize| {
                let mut tally = Tally::default();
                for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(parts.rows) {
                    let entries = indices[row(i)].iter().zip(&values[row(i)]);
                    tally.row(i, entries.map(|(&j, &v)| (j as usize, v)), parts.columns);
                    if square {
                        for (&j, &value) in indices[row(i)].iter().zip(&values[row(i)]) {
                            tally.pair(i, j as usize, value, mirror(i, j as usize));
                        }
                    }
                }
                tally
            };
            let chunks = (0..parts.rows.div_ceil(CHUNK)).into_par_iter().map(chunk);
            chunks.collect().into_iter().fold(Tally::default(), Tally::merge)
        });
        let mut seen = vec![false; parts.columns];
        indices.iter().for_each(|&j| seen[j as usize] = true);
        let relative = |defect: f64| match (square, tally.largest > 0.0) {
            (false, _) => f64::INFINITY,
            (true, false) => 0.0,
            (true, true) => defect / tally.largest,
        };
        Self {
            pattern_symmetric: square && !tally.unmatched,
            asymmetry: relative(tally.plain),
            hermitian_defect: relative(tally.hermitian),
            skew_defect: relative(tally.skew),
            worst_pair: tally.worst.filter(|_| tally.hermitian > 0.0),
            explicit_zeros: tally.zeros,
            largest: tally.largest,
            diagonal_positive: tally.positive,
            diagonal_negative: tally.negative,
            diagonal_zero: parts.rows.min(parts.columns) - tally.positive - tally.negative,
            strictly_dominant_rows: tally.strictly_dominant,
            dominant_rows: tally.dominant,
            empty_rows: tally.empty,
            empty_columns: seen.into_iter().filter(|seen| !seen).count(),
        }
    }

    /// Whether A equals its transpose, up to the rounding of a file.
    pub fn is_symmetric(&self) -> bool {
        self.asymmetry <= ROUNDING
    }

    /// Whether A equals its conjugate transpose, up to the rounding of a file: what conjugate gradients need.
    pub fn is_hermitian(&self) -> bool {
        self.hermitian_defect <= ROUNDING
    }

    /// Whether A equals its negative transpose, up to the rounding of a file, and is not zero.
    pub fn is_skew_symmetric(&self) -> bool {
        self.skew_defect <= ROUNDING && self.largest > 0.0
    }
}

/// How near a square matrix is to its transpose and to its conjugate transpose, each as in [`Facts`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Transposed {
    /// Largest |a_ij - a_ji| over largest |a_ij|.
    pub asymmetry: f64,
    /// The same for the conjugate of a_ji.
    pub hermitian_defect: f64,
}

impl Transposed {
    /// Looks at every entry and for its mirror image, in the memory of any backend: what [`Facts::of`] tells of a
    /// matrix on the host, and nothing more.
    ///
    /// # Errors
    /// Unless the matrix is square; on too little memory, or when the device fails.
    pub fn of<V: Scalar, B: KrylovSteps>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let mut found = backend.zeros(3)?;
        backend.csr_symmetry::<V, V>(a.parts(), &mut found)?;
        let mut most = [V::Real::default(); 3];
        backend.read(&found, &mut most)?;
        let [largest, plain, hermitian] = most.map(Real::to_f64);
        let relative = |defect: f64| if largest > 0.0 { defect / largest } else { 0.0 };
        Ok(Self { asymmetry: relative(plain), hermitian_defect: relative(hermitian) })
    }

    /// As [`Facts::is_symmetric`].
    pub fn is_symmetric(&self) -> bool {
        self.asymmetry <= ROUNDING
    }

    /// As [`Facts::is_hermitian`].
    pub fn is_hermitian(&self) -> bool {
        self.hermitian_defect <= ROUNDING
    }
}

/// Counts over some rows.
#[derive(Default)]
struct Tally {
    unmatched: bool,
    plain: f64,
    hermitian: f64,
    skew: f64,
    worst: Option<(usize, usize)>,
    largest: f64,
    zeros: usize,
    positive: usize,
    negative: usize,
    strictly_dominant: usize,
    dominant: usize,
    empty: usize,
}

impl Tally {
    fn row<V: Scalar>(&mut self, i: usize, entries: impl Iterator<Item = (usize, V)>, columns: usize) {
        let (mut diagonal, mut others, mut any) = (V::default(), 0.0, false);
        for (j, value) in entries {
            any = true;
            let magnitude = value.abs().to_f64();
            self.largest = self.largest.max(magnitude);
            self.zeros += usize::from(magnitude == 0.0);
            if i == j {
                diagonal = value;
            } else {
                others += magnitude;
            }
        }
        self.empty += usize::from(!any);
        if i < columns {
            let (centre, sign) = (diagonal.abs().to_f64(), diagonal.re().to_f64());
            self.positive += usize::from(sign > 0.0);
            self.negative += usize::from(sign < 0.0);
            self.strictly_dominant += usize::from(centre > others);
            self.dominant += usize::from(centre >= others);
        }
    }

    fn pair<V: Scalar>(&mut self, i: usize, j: usize, value: V, mirror: Option<V>) {
        self.unmatched |= mirror.is_none();
        let mirror = mirror.unwrap_or_default();
        self.plain = self.plain.max((value - mirror).abs().to_f64());
        self.skew = self.skew.max((value + mirror).abs().to_f64());
        let hermitian = (value - mirror.conj()).abs().to_f64();
        if hermitian > self.hermitian {
            (self.hermitian, self.worst) = (hermitian, Some((i, j)));
        }
    }

    fn merge(self, next: Self) -> Self {
        Self {
            unmatched: self.unmatched || next.unmatched,
            plain: self.plain.max(next.plain),
            worst: if next.hermitian > self.hermitian { next.worst } else { self.worst },
            hermitian: self.hermitian.max(next.hermitian),
            skew: self.skew.max(next.skew),
            largest: self.largest.max(next.largest),
            zeros: self.zeros + next.zeros,
            positive: self.positive + next.positive,
            negative: self.negative + next.negative,
            strictly_dominant: self.strictly_dominant + next.strictly_dominant,
            dominant: self.dominant + next.dominant,
            empty: self.empty + next.empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use num_complex::Complex;

    fn small(values: [f64; 4]) -> Csr<f64> {
        Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap()
    }

    #[test]
    fn symmetry_is_told_from_its_neighbours() {
        let symmetric = Facts::of(&small([2.0, -1.0, -1.0, 2.0]));
        assert!(symmetric.is_symmetric() && symmetric.is_hermitian() && !symmetric.is_skew_symmetric());
        assert_eq!((symmetric.worst_pair, symmetric.strictly_dominant_rows), (None, 2));
        let rounded = Facts::of(&small([2.0, -1.0, -1.0 - 1e-13, 2.0]));
        assert!(rounded.is_symmetric() && rounded.asymmetry > 0.0);
        let skew = Facts::of(&small([0.0, 3.0, -3.0, 0.0]));
        assert!(skew.is_skew_symmetric() && !skew.is_symmetric() && skew.pattern_symmetric);
        assert_eq!((skew.explicit_zeros, skew.diagonal_zero), (2, 2));
        let general = Facts::of(&small([2.0, 1.0, -5.0, -2.0]));
        assert_eq!((general.asymmetry, general.worst_pair), (6.0 / 5.0, Some((0, 1))));
        assert_eq!((general.diagonal_positive, general.diagonal_negative, general.dominant_rows), (1, 1, 1));
        let i = Complex::new(0.0, 1.0);
        let one = Complex::new(2.0, 0.0);
        let hermitian = Facts::of(
            &Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![one, i, -i, one]).unwrap(),
        );
        assert!(hermitian.is_hermitian() && !hermitian.is_symmetric());
    }

    #[test]
    fn models_are_what_they_are() {
        let a = generate::poisson3d(20, 20, 20).unwrap();
        let facts = Facts::of(&a);
        assert!(facts.is_symmetric() && facts.pattern_symmetric);
        assert_eq!((facts.dominant_rows, facts.strictly_dominant_rows), (8000, 8000 - 18 * 18 * 18));
        assert_eq!((facts.diagonal_positive, facts.largest), (8000, 6.0));
        let flow = Facts::of(&generate::convection_diffusion([30, 30, 1], 1e-2).unwrap());
        assert!(flow.pattern_symmetric && !flow.is_symmetric());
        let wide = Facts::of(&generate::random(30, 500, generate::RowLengths::Constant(2), 1).unwrap());
        assert!(!wide.pattern_symmetric && !wide.is_symmetric());
        assert!(wide.empty_columns >= 440 && wide.diagonal_zero > 0);
    }
}
