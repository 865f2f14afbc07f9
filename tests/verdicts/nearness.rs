//! The distance to the nearest singular matrix, entry by entry: the smallest w for which some v has |A v|_i <= w
//! (|A||v|)_i in every row (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 7.2).

use crate::elimination::Solved;
use crate::exact::Exact;
use crate::random::Random;
use num_complex::Complex;
use residua::Scalar;

/// An upper bound of that distance from a v that was found, with A v computed without rounding; zero if A is singular.
/// The search ends when the bound is at most `enough`.
///
/// v = A^-1 u, where the sizes of u are proportional to |A||v|. Phases of u that make v large are tried: those that add
/// up in some row of the inverse, and random ones.
pub fn distance_to_singular(rows: &[Vec<Exact>], enough: f64) -> f64 {
    let n = rows.len();
    let unit = |k: usize| (0..n).map(|i| if i == k { Exact::new(1.0) } else { Exact::zero() }).collect();
    let Some(inverse) = Solved::new(rows, &(0..n).map(unit).collect::<Vec<_>>()) else {
        return 0.0;
    };
    let number = |(re, im)| Complex::new(re, im);
    let inverse: Vec<Vec<Complex<f64>>> =
        (0..n).map(|i| (0..n).map(|k| number(inverse.rounded(i, k))).collect()).collect();
    let sizes: Vec<Vec<f64>> = rows.iter().map(|row| row.iter().map(Exact::abs).collect()).collect();
    let is_real = rows.iter().flatten().all(|entry| entry.im.is_zero());
    let mut random = Random(n as u64);
    let phase = |z: Complex<f64>| if z.norm() == 0.0 { Complex::new(1.0, 0.0) } else { z.conj() / z.norm() };
    let mut starts: Vec<Vec<Complex<f64>>> =
        inverse.iter().map(|row| row.iter().map(|&z| phase(z)).collect()).collect();
    for _ in 0..40 {
        starts.push(random.vec(n, |random| {
            let z = random.scalar::<Complex<f64>>();
            if is_real { Complex::new(z.re.signum(), 0.0) } else { phase(z) }
        }));
    }
    let mut best = f64::INFINITY;
    for phases in starts {
        let mut weights: Vec<f64> = sizes.iter().map(|row| row.iter().sum()).collect();
        for _ in 0..4 {
            let u: Vec<Complex<f64>> = phases.iter().zip(&weights).map(|(&p, &w)| p * w).collect();
            let v: Vec<Complex<f64>> =
                inverse.iter().map(|row| row.iter().zip(&u).map(|(a, b)| a * b).sum()).collect();
            weights = product_of_sizes(&sizes, &v);
            // A w greater than one gains nothing; with some scales it is also outside the range of doubles.
            if weights.iter().any(|w| !w.is_normal()) {
                break;
            }
            best = best.min(shown_by(rows, &sizes, &v));
            if best <= enough {
                return best;
            }
            let largest = weights.iter().copied().fold(0.0, f64::max);
            weights.iter_mut().for_each(|w| *w /= largest);
        }
    }
    best
}

/// Returns whether a singular matrix may be as near as that, entry by entry: |det A| is then at most ((1 + w)^n - 1)
/// times the permanent of |A|. The search above does not find a v with an element that must be zero.
pub fn may_be_singular(rows: &[Vec<Exact>], w: f64) -> bool {
    let n = rows.len();
    // Sums over sets of columns that the first rows have taken, one row after the other, without rounding.
    let mut sums = vec![(Exact::zero(), 0.0); 1 << n];
    sums[0] = (Exact::new(1.0), 1.0);
    for row in rows {
        let largest = row.iter().map(Exact::abs).fold(0.0, f64::max);
        let mut next = vec![(Exact::zero(), 0.0); 1 << n];
        for (taken, (sum, permanent)) in
            sums.iter().enumerate().filter(|(_, (_, permanent))| *permanent > 0.0)
        {
            for (column, entry) in row.iter().enumerate().filter(|(column, _)| taken & 1 << column == 0) {
                let term = sum.times(entry);
                let odd = (taken >> column).count_ones() % 2 == 1;
                let place = &mut next[taken | 1 << column];
                place.0 = if odd { place.0.minus(&term) } else { place.0.plus(&term) };
                place.1 += permanent * (entry.abs() / largest);
            }
        }
        sums = next;
    }
    // The permanent is scaled by the largest entries of rows.
    let (determinant, permanent) = &sums[(1 << n) - 1];
    let units: f64 = rows.iter().map(|row| row.iter().map(Exact::abs).fold(0.0, f64::max).log2()).sum();
    let allowed = (1.0 + w).powi(n as i32) - 1.0;
    determinant.abs() == 0.0 || determinant.abs().log2() - units <= (2.0 * allowed * permanent).log2()
}

/// |A||v|.
fn product_of_sizes(sizes: &[Vec<f64>], v: &[Complex<f64>]) -> Vec<f64> {
    sizes.iter().map(|row| row.iter().zip(v).map(|(a, v)| a * v.norm()).sum()).collect()
}

/// The largest |A v|_i / (|A||v|)_i of a vector.
fn shown_by(rows: &[Vec<Exact>], sizes: &[Vec<f64>], v: &[Complex<f64>]) -> f64 {
    let exact = Exact::of_all(v);
    let term = |sum: Exact, (a, v): (&Exact, &Exact)| sum.plus(&a.times(v));
    let ratio =
        |(row, size): (&Vec<Exact>, f64)| row.iter().zip(&exact).fold(Exact::zero(), term).abs() / size;
    rows.iter().zip(product_of_sizes(sizes, v)).map(ratio).fold(0.0, f64::max)
}

#[test]
fn distances_are_those_of_entries() {
    let distance = |rows: &[[f64; 2]]| {
        distance_to_singular(&rows.iter().map(|row| Exact::of_all(row)).collect::<Vec<_>>(), 0.0)
    };
    // [[1, 1], [1 - d, 1]]: each entry moves by d / 4.
    for (d, is) in [(1e-3, 2.5e-4), (1e-12, 2.5e-13)] {
        assert!((distance(&[[1.0, 1.0], [1.0 - d, 1.0]]) / is - 1.0).abs() < 1e-2);
        // Scaling rows and columns changes nothing.
        assert!((distance(&[[1e9, 1e-4], [1e-7 * (1.0 - d), 1e-20]]) / is - 1.0).abs() < 1e-2);
    }
    assert_eq!((distance(&[[1.0, 0.0], [5.0, 1.0]]), distance(&[[1.0, 2.0], [3.0, 6.0]])), (1.0, 0.0));
}
