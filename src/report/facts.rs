//! Facts about a matrix from one pass over its entries.

use crate::backend::with_offsets;
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Real, Scalar};

/// Entries that differ from their mirror image by less than this fraction of the largest entry count as equal, since
/// files round their values.
pub(crate) const ROUNDING: f64 = 1e-10;

/// A row sum below this fraction of the sum of magnitudes counts as zero.
const ZERO_SUM: f64 = 1e-11;

/// Returns whether a sum (real and imaginary part) is zero compared to that of the magnitudes, up to rounding.
fn is_zero_sum(sum: [f64; 2], magnitudes: f64) -> bool {
    sum[0].hypot(sum[1]) <= ZERO_SUM * magnitudes
}

/// The number of rows in a task.
const CHUNK: usize = 1 << 12;

/// Symmetry, diagonal and dominance of a matrix; magnitudes as `f64`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Facts {
    /// True if a_ji is stored wherever a_ij is. Rectangular matrices are not symmetric in any way.
    pub pattern_symmetric: bool,
    /// Largest |a_ij - a_ji| divided by the largest |a_ij|.
    pub asymmetry: f64,
    /// The same for the conjugate of a_ji; equal to `asymmetry` for real matrices.
    pub hermitian_defect: f64,
    /// The largest |a_ij + a_ji|, relative to the largest entry.
    pub skew_defect: f64,
    /// The three defects again (plain, conjugate, negative), but each difference relative to the smaller of the largest
    /// magnitudes of the two rows, which detects the symmetry of badly scaled matrices.
    pub local_defects: [f64; 3],
    /// Row and column (from 0) of the entry that is farthest from the conjugate of its mirror image.
    pub worst_pair: Option<(usize, usize)>,
    /// Stored entries that are zero.
    pub explicit_zeros: usize,
    /// Stored entries that are infinite or NaN; no other count includes them.
    pub non_finite: usize,
    /// Row and column (from 0) of the first of them.
    pub first_non_finite: Option<(usize, usize)>,
    /// Largest |a_ij|.
    pub largest: f64,
    /// Smallest nonzero |a_ij|, infinity if all are zero.
    pub smallest: f64,
    /// The smallest over all rows of the largest |a_ij|, without rows of zeros; infinity if all entries are zero.
    pub smallest_row: f64,
    /// Entries left of the diagonal that are not zero.
    pub below_diagonal: usize,
    /// Entries right of the diagonal that are not zero.
    pub above_diagonal: usize,
    /// Entries off the diagonal with a positive real part, or a nonzero imaginary part, which no M-matrix has.
    pub not_negative: usize,
    /// Rows whose entries sum to zero (up to rounding), including empty ones: if all do, A maps constants to zero.
    pub zero_sum_rows: usize,
    /// Real part of the sum of all entries, 1^T A 1. If it is negative, a Hermitian matrix has a negative eigenvalue.
    pub entry_sum: f64,
    /// The sum of all magnitudes.
    pub magnitude_sum: f64,
    /// Diagonal entries that are not stored.
    pub diagonal_missing: usize,
    /// Diagonal entries with an imaginary part.
    pub diagonal_complex: usize,
    /// Pairs i < j with |a_ij|^2 > a_ii a_jj. A Hermitian matrix with such a pair is indefinite if its diagonal is not
    /// negative; for a diagonal that is not positive, the same holds for -A.
    pub negative_minors: usize,
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
    /// Examines every entry and, by binary search, its mirror image: O(nonzeros log row length), in several threads.
    pub fn of<V: Scalar>(a: &Csr<V>) -> Self {
        let parts = a.parts();
        let square = parts.rows == parts.columns;
        let (indices, values) = (parts.indices, parts.values);
        let mut lines = vec![Line::default(); parts.rows];
        let tally = with_offsets!(parts.offsets, offsets => {
            let row = |i: usize| offsets[i].to_usize()..offsets[i + 1].to_usize();
            let mirror = |i: usize, j: usize| -> Option<V> {
                let line = row(j);
                indices[line.clone()].binary_search(&(i as u32)).ok().map(|k| values[line.start + k])
            };
            let chunk = |(chunk, lines): (usize, &mut [Line])| {
                let mut tally = Tally::default();
                for (i, line) in (chunk * CHUNK..).zip(lines) {
                    let entries = indices[row(i)].iter().zip(&values[row(i)]);
                    *line = tally.row(i, entries.map(|(&j, &v)| (j as usize, v)), parts.columns);
                }
                tally
            };
            let chunks = lines.par_chunks_mut(CHUNK).enumerate().map(chunk);
            let tally = chunks.collect().into_iter().fold(Tally::default(), Tally::merge);
            let lines = &lines;
            let chunk = |chunk: usize| {
                let mut tally = Tally::default();
                for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(parts.rows) {
                    for (&j, &value) in indices[row(i)].iter().zip(&values[row(i)]) {
                        let j = j as usize;
                        tally.pair((i, j), [&lines[i], &lines[j]], value, mirror(i, j));
                    }
                }
                tally
            };
            let chunks = if square { parts.rows.div_ceil(CHUNK) } else { 0 };
            (0..chunks).into_par_iter().map(chunk).collect().into_iter().fold(tally, Tally::merge)
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
            local_defects: if square { tally.local } else { [f64::INFINITY; 3] },
            worst_pair: tally.worst.filter(|_| tally.hermitian > 0.0),
            explicit_zeros: tally.zeros,
            non_finite: tally.non_finite,
            first_non_finite: tally.first_non_finite,
            largest: tally.largest,
            smallest: tally.smallest,
            smallest_row: tally.smallest_row,
            below_diagonal: tally.below,
            above_diagonal: tally.above,
            not_negative: tally.not_negative,
            zero_sum_rows: tally.zero_sums,
            entry_sum: tally.entry_sum,
            magnitude_sum: tally.magnitude_sum,
            diagonal_missing: tally.missing,
            diagonal_complex: tally.complex,
            negative_minors: tally.minors,
            diagonal_positive: tally.positive,
            diagonal_negative: tally.negative,
            diagonal_zero: parts.rows.min(parts.columns) - tally.positive - tally.negative,
            strictly_dominant_rows: tally.strictly_dominant,
            dominant_rows: tally.dominant,
            empty_rows: tally.empty,
            empty_columns: seen.into_iter().filter(|seen| !seen).count(),
        }
    }

    /// Returns whether A equals its transpose, up to the rounding of a file (1e-10 of the largest entry of a row).
    pub fn is_symmetric(&self) -> bool {
        self.local_defects[0] <= ROUNDING
    }

    /// Returns whether A equals its conjugate transpose, up to the rounding of a file, as conjugate gradients require.
    pub fn is_hermitian(&self) -> bool {
        self.local_defects[1] <= ROUNDING
    }

    /// Returns whether A equals its negative transpose, up to the rounding of a file, and is not zero.
    pub fn is_skew_symmetric(&self) -> bool {
        self.local_defects[2] <= ROUNDING && self.largest > 0.0
    }
}

/// Properties of a row that the comparison of pairs needs.
#[derive(Clone, Copy, Default)]
struct Line {
    largest: f64,
    diagonal: f64,
}

/// Counters over some rows.
struct Tally {
    unmatched: bool,
    plain: f64,
    hermitian: f64,
    skew: f64,
    local: [f64; 3],
    worst: Option<(usize, usize)>,
    non_finite: usize,
    first_non_finite: Option<(usize, usize)>,
    largest: f64,
    smallest: f64,
    smallest_row: f64,
    zeros: usize,
    below: usize,
    above: usize,
    not_negative: usize,
    zero_sums: usize,
    entry_sum: f64,
    magnitude_sum: f64,
    missing: usize,
    complex: usize,
    minors: usize,
    positive: usize,
    negative: usize,
    strictly_dominant: usize,
    dominant: usize,
    empty: usize,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            unmatched: false,
            plain: 0.0,
            hermitian: 0.0,
            skew: 0.0,
            local: [0.0; 3],
            worst: None,
            non_finite: 0,
            first_non_finite: None,
            largest: 0.0,
            smallest: f64::INFINITY,
            smallest_row: f64::INFINITY,
            zeros: 0,
            below: 0,
            above: 0,
            not_negative: 0,
            zero_sums: 0,
            entry_sum: 0.0,
            magnitude_sum: 0.0,
            missing: 0,
            complex: 0,
            minors: 0,
            positive: 0,
            negative: 0,
            strictly_dominant: 0,
            dominant: 0,
            empty: 0,
        }
    }
}

impl Tally {
    fn row<V: Scalar>(
        &mut self,
        i: usize,
        entries: impl Iterator<Item = (usize, V)>,
        columns: usize,
    ) -> Line {
        let (mut diagonal, mut others, mut any) = (None, 0.0, false);
        let (mut largest, mut sum) = (0.0_f64, [0.0, 0.0]);
        for (j, value) in entries {
            any = true;
            let (re, im) = (value.re().to_f64(), value.im().to_f64());
            let magnitude = value.abs().to_f64();
            if !magnitude.is_finite() {
                self.non_finite += 1;
                self.first_non_finite = self.first_non_finite.or(Some((i, j)));
                continue;
            }
            largest = largest.max(magnitude);
            sum = [sum[0] + re, sum[1] + im];
            if i == j {
                diagonal = Some(value);
            } else {
                others += magnitude;
            }
            if magnitude == 0.0 {
                self.zeros += 1;
                continue;
            }
            self.smallest = self.smallest.min(magnitude);
            self.below += usize::from(j < i);
            self.above += usize::from(j > i);
            self.not_negative += usize::from(i != j && (re > 0.0 || im != 0.0));
        }
        self.empty += usize::from(!any);
        self.largest = self.largest.max(largest);
        if largest > 0.0 {
            self.smallest_row = self.smallest_row.min(largest);
        }
        let centre = diagonal.unwrap_or_default();
        let magnitude = centre.abs().to_f64();
        self.entry_sum += sum[0];
        self.magnitude_sum += magnitude + others;
        self.zero_sums += usize::from(is_zero_sum(sum, magnitude + others));
        if i < columns {
            let sign = centre.re().to_f64();
            self.missing += usize::from(diagonal.is_none());
            self.complex += usize::from(centre.im().to_f64() != 0.0);
            self.positive += usize::from(sign > 0.0);
            self.negative += usize::from(sign < 0.0);
            self.strictly_dominant += usize::from(magnitude > others);
            self.dominant += usize::from(magnitude >= others);
        }
        Line { largest, diagonal: centre.re().to_f64() }
    }

    fn pair<V: Scalar>(&mut self, (i, j): (usize, usize), lines: [&Line; 2], value: V, mirror: Option<V>) {
        self.unmatched |= mirror.is_none();
        let mirror = mirror.unwrap_or_default();
        let plain = (value - mirror).abs().to_f64();
        let hermitian = (value - mirror.conj()).abs().to_f64();
        let skew = (value + mirror).abs().to_f64();
        self.plain = self.plain.max(plain);
        self.skew = self.skew.max(skew);
        let scale = lines[0].largest.min(lines[1].largest);
        for (most, defect) in self.local.iter_mut().zip([plain, hermitian, skew]) {
            // If the mirror image's row is zero, or a difference is NaN, the defect counts as infinite.
            let relative = if defect == 0.0 { 0.0 } else { defect / scale };
            *most = if relative.is_nan() { f64::INFINITY } else { most.max(relative) };
        }
        if hermitian > self.hermitian {
            (self.hermitian, self.worst) = (hermitian, Some((i, j)));
        }
        if i < j {
            let (one, two) = (lines[0].diagonal, lines[1].diagonal);
            let most = if one * two.signum() > 0.0 { one.abs().sqrt() * two.abs().sqrt() } else { 0.0 };
            self.minors += usize::from(value.abs().to_f64() > most * (1.0 + ROUNDING));
        }
    }

    fn merge(self, next: Self) -> Self {
        Self {
            unmatched: self.unmatched || next.unmatched,
            plain: self.plain.max(next.plain),
            worst: if next.hermitian > self.hermitian { next.worst } else { self.worst },
            hermitian: self.hermitian.max(next.hermitian),
            skew: self.skew.max(next.skew),
            local: std::array::from_fn(|k| self.local[k].max(next.local[k])),
            non_finite: self.non_finite + next.non_finite,
            first_non_finite: self.first_non_finite.or(next.first_non_finite),
            largest: self.largest.max(next.largest),
            smallest: self.smallest.min(next.smallest),
            smallest_row: self.smallest_row.min(next.smallest_row),
            zeros: self.zeros + next.zeros,
            below: self.below + next.below,
            above: self.above + next.above,
            not_negative: self.not_negative + next.not_negative,
            zero_sums: self.zero_sums + next.zero_sums,
            entry_sum: self.entry_sum + next.entry_sum,
            magnitude_sum: self.magnitude_sum + next.magnitude_sum,
            missing: self.missing + next.missing,
            complex: self.complex + next.complex,
            minors: self.minors + next.minors,
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
