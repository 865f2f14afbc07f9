//! The factors of a matrix with few diagonals.

use super::super::report::Reason;
use crate::direct::Factorable;
use crate::graph::band_widths;
use crate::matrix::Csr;
use crate::parallel::{Inlined, both, vectorised_whole};
use crate::prices::factors::BAND;
use crate::prices::order::least_order_seconds;
use crate::scalar::Scalar;
use crate::work::look_at;

/// L and U of P A = L U with partial pivoting, within a band.
#[derive(Debug)]
pub(in crate::direct) struct BandFactors<T> {
    pub(super) n: usize,
    /// Diagonals below the main one of A, and above it.
    pub(super) below: usize,
    pub(super) above: usize,
    /// Column by column, each with `below` rows for fill, then those of A's band: U above the multipliers of L. U's
    /// diagonal is inverted, because a division takes as long as four products.
    pub(super) values: Vec<T>,
    /// The row that each step exchanged with its own.
    pub(super) pivots: Vec<u32>,
}

/// Entries of the factors of n rows within a band, and multiplications of the elimination.
pub(in crate::direct) fn cost(n: usize, (below, above): (usize, usize)) -> (f64, f64) {
    let (n, below, above) = (n as f64, below as f64, above as f64);
    (n * (2.0 * below + above + 1.0), n * below * (below + above + 1.0))
}

/// The factors of a narrow band have at most 1 / `NARROW` of the entries of full ones. It was not fitted: any number like
/// this keeps small full matrices with the factorisations that find their null vectors.
const NARROW: usize = 8;

/// The expected seconds of a factorisation within the band of a square A and of a solve with it, if elimination takes
/// less time than a search for an order of elimination. Triangular matrices, which substitution solves, are not meant,
/// nor are small ones that are nearly full.
pub(crate) fn seconds_in_narrow_band<T: Scalar>(a: &Csr<T>) -> Option<f64> {
    let (n, (below, above)) = (a.rows(), band_widths(a));
    let (entries, multiplications) = cost(n, (below, above));
    let price = BAND.here();
    let elimination = price.entry_of_factor * entries + price.multiplication * multiplications;
    let is_narrow =
        NARROW * (2 * below + above + 1) <= n && elimination < least_order_seconds([n, a.nonzeros()]);
    let rest = price.any + price.row * n as f64 + price.entry * a.nonzeros() as f64;
    (n == a.columns() && below > 0 && above > 0 && is_narrow).then_some(elimination + rest)
}

impl<T: Factorable> BandFactors<T> {
    pub(super) fn zeros(n: usize, (below, above): (usize, usize)) -> Self {
        Self { n, below, above, values: vec![T::default(); n * (2 * below + above + 1)], pivots: vec![0; n] }
    }

    /// The columns of the factors, each with `2 below + above + 1` rows.
    pub(super) fn columns_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        self.values.chunks_exact_mut(2 * self.below + self.above + 1)
    }

    /// Factorises a square A. A pivot of at most `least` times the largest entry of A is refused.
    ///
    /// # Errors
    /// If a pivot is that small, or not finite.
    pub(in crate::direct) fn of(a: &Csr<T>, least: f64) -> Result<Self, Reason> {
        let (n, (below, above)) = (a.rows(), band_widths(a));
        let mut factors = Self::zeros(n, (below, above));
        let tall = 2 * below + above + 1;
        let mut largest = 0.0_f64;
        for row in 0..n {
            let (columns, values) = a.row(row);
            for (&column, &value) in both(columns, values) {
                let column = column as usize;
                factors.values[column * tall + below + above + row - column] = value;
                largest = largest.max(magnitude(value));
            }
        }
        if factors.eliminate(least * largest) {
            return Ok(factors);
        }
        Err(Reason::Refused("a pivot within the band is small".into()))
    }

    pub(in crate::direct) fn bytes(&self) -> u64 {
        (self.values.len() * size_of::<T>() + self.pivots.len() * size_of::<u32>()) as u64
    }

    pub(in crate::direct) fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }

    /// Replaces the columns of A by the factors. Returns false if a pivot is at most `least`, or not finite.
    pub(super) fn eliminate(&mut self, least: f64) -> bool {
        vectorised_whole(Elimination { factors: self, least })
    }
}

/// A size for the choice of pivots.
fn magnitude<T: Factorable>(value: T) -> f64 {
    value.re().abs() + value.im().abs()
}

/// [`BandFactors::eliminate`].
struct Elimination<'a, T> {
    factors: &'a mut BandFactors<T>,
    least: f64,
}

impl<T: Factorable> Inlined for Elimination<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let BandFactors { n, below, above, values, pivots } = self.factors;
        let (n, below, diagonal) = (*n, *below, *below + *above);
        let tall = diagonal + below + 1;
        // The last column that exchanged rows have reached so far.
        let mut reach = 0;
        for j in 0..n {
            look_at(j);
            let under = below.min(n - 1 - j);
            let column = &values[j * tall + diagonal..][..under + 1];
            let (mut pivot, mut most) = (0, magnitude(column[0]));
            for (k, &value) in column.iter().enumerate().skip(1) {
                if magnitude(value) > most {
                    (pivot, most) = (k, magnitude(value));
                }
            }
            pivots[j] = (j + pivot) as u32;
            if most <= self.least || !most.is_finite() {
                return false;
            }
            reach = reach.max((j + *above + pivot).min(n - 1));
            if pivot > 0 {
                for c in j..=reach {
                    let at = c * tall + diagonal + j - c;
                    values.swap(at, at + pivot);
                }
            }
            let (left, right) = values.split_at_mut((j + 1) * tall);
            let column = &mut left[j * tall + diagonal..][..under + 1];
            let inverse = T::from_f64(1.0) / column[0];
            column[0] = inverse;
            let multipliers = &mut column[1..];
            multipliers.iter_mut().for_each(|value| *value *= inverse);
            for (c, other) in (j + 1..=reach).zip(right.chunks_exact_mut(tall)) {
                let at = diagonal + j - c;
                let factor = other[at];
                if factor != T::default() {
                    for (value, &multiplier) in other[at + 1..][..under].iter_mut().zip(&*multipliers) {
                        *value -= multiplier * factor;
                    }
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Direct, DirectOptions, Kind};
    use super::*;
    use crate::backend::Op;
    use crate::matrix::Triplets;
    use crate::random::Random;
    use num_complex::Complex;

    /// A band of random entries, some of which are missing, whose rows have to be exchanged.
    fn band<T: Factorable>(
        n: usize,
        (below, above): (usize, usize),
        number: &mut impl FnMut() -> T,
    ) -> Csr<T> {
        let (mut rows, mut columns, mut values, mut random) = (vec![], vec![], vec![], Random::new(n as u64));
        for row in 0..n {
            for column in row.saturating_sub(below)..(row + above + 1).min(n) {
                let is_corner = row == column || row == column + below || column == row + above;
                if is_corner || random.below(3) > 0 {
                    rows.push(row as u32);
                    columns.push(column as u32);
                    values.push(number());
                }
            }
        }
        Csr::from_triplets(Triplets::from_parts(n, n, rows, columns, values).unwrap()).unwrap()
    }

    fn factors_solve_with_the_matrix_and_its_transpose<T: Factorable>(mut number: impl FnMut() -> T) {
        for (n, widths) in [(1, (0, 0)), (2, (1, 1)), (40, (1, 2)), (60, (3, 1)), (300, (7, 5)), (90, (0, 4))]
        {
            let a = band(n, widths, &mut number);
            assert_eq!(band_widths(&a), widths);
            let factors = BandFactors::of(&a, 0.0).unwrap();
            assert!(factors.is_finite());
            let b: Vec<[T; 2]> = (0..n).map(|_| [number(), T::default()]).collect();
            for (op, transposed) in [(Op::None, false), (Op::Transpose, true)] {
                let mut x = b.clone();
                factors.substitute(op, &mut x);
                let (mut r, mut size) = (b.clone(), 1.0_f64);
                for (i, j, value) in a.iter() {
                    let (i, j) = if transposed { (j, i) } else { (i, j) };
                    r[i][0] -= value * x[j][0];
                    size = size.max((value * x[j][0]).abs());
                }
                let most = r.iter().fold(0.0_f64, |most, r| most.max(r[0].abs()));
                assert!(most <= 1e-12 * size, "{n} {widths:?} {op:?}: {most}");
                assert!(x.iter().all(|x| x[1] == T::default()));
            }
        }
    }

    #[test]
    fn factors_of_all_widths_solve_with_the_matrix_and_its_transpose() {
        let mut random = Random::new(3);
        factors_solve_with_the_matrix_and_its_transpose(|| random.between(-1.0, 1.0));
        let mut random = Random::new(4);
        let mut number = || random.between(-1.0, 1.0);
        factors_solve_with_the_matrix_and_its_transpose(|| Complex::new(number(), number()));
    }

    #[test]
    fn a_narrow_band_is_factorised_within_it_and_others_are_not() {
        let mut random = Random::new(5);
        let mut narrow = band(3000, (2, 3), &mut || random.between(1.0, 2.0));
        let diagonal: Vec<bool> = narrow.iter().map(|(i, j, _)| i == j).collect();
        let on_diagonal = narrow.values_mut().iter_mut().zip(diagonal).filter(|(_, is)| *is);
        on_diagonal.for_each(|(value, _)| *value += 9.0);
        assert!(seconds_in_narrow_band(&narrow).is_some());
        let mut direct = Direct::planned(&narrow, DirectOptions::default()).unwrap();
        let forecast = direct.forecast().unwrap();
        let b: Vec<f64> = (0..3000).map(|_| random.between(-1.0, 1.0)).collect();
        let mut x = vec![0.0; 3000];
        let told = direct.solve(&b, &mut x, 1e-12).unwrap();
        assert!(told.solved && direct.kind() == Some(Kind::Banded), "{told}");
        assert_eq!((forecast.kind, forecast.entries), (Kind::Banded, 3000.0 * 8.0));
        // Wide, triangular and rectangular matrices.
        let wide = crate::generate::poisson2d(100, 100).unwrap();
        let triangle = band(3000, (0, 3), &mut || 1.0);
        assert!(seconds_in_narrow_band(&wide).is_none() && seconds_in_narrow_band(&triangle).is_none());
        let tall = Triplets::from_parts(3, 2, vec![0, 1, 2], vec![0, 1, 1], vec![1.0; 3]).unwrap();
        assert!(seconds_in_narrow_band(&Csr::<f64>::from_triplets(tall).unwrap()).is_none());
    }

    #[test]
    fn with_a_small_pivot_other_kinds_follow() {
        // The second difference without boundary conditions: constants are its null space.
        let n = 2000;
        let chain = crate::generate::poisson2d(n, 1).unwrap();
        let value = |(i, j, _): (usize, usize, f64)| match i == j {
            true if i == 0 || i == n - 1 => 1.0,
            true => 2.0,
            false => -1.0,
        };
        let free = chain.with_values(chain.iter().map(value).collect());
        assert!(BandFactors::of(&free, 1e-8).is_err());
        let mut direct = Direct::planned(&free, DirectOptions::default()).unwrap();
        let mut b = vec![0.0; n];
        (b[3], b[n - 7]) = (1.0, -1.0);
        let mut x = vec![0.0; n];
        let told = direct.solve(&b, &mut x, 1e-10).unwrap();
        assert!(told.solved && direct.kind().is_some_and(|kind| kind != Kind::Banded), "{told}");
        // New values may be regular, and then the band is tried again.
        direct.update(&chain).unwrap();
        assert_eq!(direct.kind(), Some(Kind::Banded));
        direct.update(&free).unwrap();
        assert_ne!(direct.kind(), Some(Kind::Banded));
    }
}
