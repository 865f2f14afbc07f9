//! Small dense systems solved without rounding, by elimination without fractions (E. H. Bareiss, Sylvester's Identity
//! and Multistep Integer-Preserving Gaussian Elimination, 1968), over integers or Gaussian integers.

use crate::exact::{Dyadic, Exact};
use num_bigint::BigInt;
use residua::{Csr, Scalar};

/// re + i im.
#[derive(Debug, Clone)]
struct Gaussian {
    re: BigInt,
    im: BigInt,
}

impl Gaussian {
    fn new(re: BigInt, im: BigInt) -> Self {
        Self { re, im }
    }

    fn is_zero(&self) -> bool {
        self.re == BigInt::ZERO && self.im == BigInt::ZERO
    }

    fn times(&self, other: &Self) -> Self {
        if self.im == BigInt::ZERO && other.im == BigInt::ZERO {
            return Self::new(&self.re * &other.re, BigInt::ZERO);
        }
        Self::new(&self.re * &other.re - &self.im * &other.im, &self.re * &other.im + &self.im * &other.re)
    }

    /// The quotient, which is known to have no remainder.
    fn over(&self, other: &Self) -> Self {
        if other.im == BigInt::ZERO {
            return Self::new(&self.re / &other.re, &self.im / &other.re);
        }
        let above = self.times(&Self::new(other.re.clone(), -&other.im));
        let below = &other.re * &other.re + &other.im * &other.im;
        Self::new(above.re / &below, above.im / below)
    }

    fn minus(&self, other: &Self) -> Self {
        Self::new(&self.re - &other.re, &self.im - &other.im)
    }
}

/// The entries of a matrix, zeros too.
pub fn dense<T: Scalar>(a: &Csr<T>) -> Vec<Vec<Exact>> {
    let row = |i: usize| {
        let mut line = vec![Exact::zero(); a.columns()];
        let (columns, values) = a.row(i);
        columns.iter().zip(values).for_each(|(&j, &value)| line[j as usize] = Exact::new(value));
        line
    };
    (0..a.rows()).map(row).collect()
}

/// The result of elimination on [A B]: a diagonal of `rank` equal pivots next to the transformed B, with rows and
/// columns in the order of pivots.
struct Eliminated {
    rows: Vec<Vec<Gaussian>>,
    /// Which unknown each of the first columns belongs to.
    unknowns: Vec<usize>,
    rank: usize,
    /// Unknown j is scaled by two to the power of this.
    units: Vec<i64>,
}

/// The finest exponent among numbers that are not zero.
fn finest<'a>(numbers: impl Iterator<Item = &'a Exact>) -> i64 {
    let parts = numbers.flat_map(|z| [&z.re, &z.im]).filter(|part| !part.is_zero());
    parts.map(Dyadic::exponent).min().unwrap_or(0)
}

/// Gauss-Jordan elimination; pivots are taken anywhere in the first `columns` columns.
fn eliminate(mut rows: Vec<Vec<Exact>>, columns: usize) -> Eliminated {
    // Scaling of columns and rows keeps integers short. The scaling of columns is that of unknowns.
    let units: Vec<i64> = (0..columns).map(|j| finest(rows.iter().map(|row| &row[j]))).collect();
    for row in &mut rows {
        for (entry, unit) in row.iter_mut().zip(&units) {
            let (re, im) = (entry.re.clone().shifted(-unit), entry.im.clone().shifted(-unit));
            *entry = Exact { re, im };
        }
    }
    let mut rows: Vec<Vec<Gaussian>> = rows
        .iter()
        .map(|row| {
            let unit = finest(row.iter());
            row.iter().map(|z| Gaussian::new(z.re.in_units_of(unit), z.im.in_units_of(unit))).collect()
        })
        .collect();
    let mut unknowns: Vec<usize> = (0..columns).collect();
    let mut last = Gaussian::new(1.into(), BigInt::ZERO);
    let mut rank = 0;
    while let Some((i, j)) = (rank..rows.len())
        .flat_map(|i| (rank..columns).map(move |j| (i, j)))
        .find(|&(i, j)| !rows[i][j].is_zero())
    {
        rows.swap(rank, i);
        rows.iter_mut().for_each(|row| row.swap(rank, j));
        unknowns.swap(rank, j);
        let pivots = rows[rank].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != rank) {
            let factor = row[rank].clone();
            for (entry, above) in row.iter_mut().zip(&pivots) {
                *entry = pivots[rank].times(entry).minus(&factor.times(above)).over(&last);
            }
        }
        last = pivots[rank].clone();
        rank += 1;
    }
    Eliminated { rows, unknowns, rank, units }
}

/// The rank of a matrix.
pub fn rank(rows: &[Vec<Exact>]) -> usize {
    eliminate(rows.to_vec(), rows.first().map_or(0, Vec::len)).rank
}

/// Returns whether some x solves A x = b.
pub fn is_consistent(rows: &[Vec<Exact>], b: &[Exact]) -> bool {
    rank(rows) == rank(&beside(rows, &[b.to_vec()]))
}

/// [A B] of A and the columns of B.
fn beside(rows: &[Vec<Exact>], columns: &[Vec<Exact>]) -> Vec<Vec<Exact>> {
    let line = |(i, row): (usize, &Vec<Exact>)| {
        row.iter().cloned().chain(columns.iter().map(|column| column[i].clone())).collect()
    };
    rows.iter().enumerate().map(line).collect()
}

/// The solutions X of A X = B: numerators, column by column, over one denominator. None if A is singular.
pub struct Solved {
    pub numerators: Vec<Vec<Exact>>,
    pub denominator: Exact,
}

impl Solved {
    pub fn new(rows: &[Vec<Exact>], columns: &[Vec<Exact>]) -> Option<Self> {
        let n = rows.len();
        let done = eliminate(beside(rows, columns), n);
        if done.rank < n {
            return None;
        }
        let number = |z: &Gaussian, exponent: i64| Exact {
            re: Dyadic::of_integer(z.re.clone(), exponent),
            im: Dyadic::of_integer(z.im.clone(), exponent),
        };
        let mut numerators = vec![vec![Exact::zero(); n]; columns.len()];
        for (row, &unknown) in done.rows.iter().zip(&done.unknowns) {
            for (column, entry) in numerators.iter_mut().zip(&row[n..]) {
                column[unknown] = number(entry, -done.units[unknown]);
            }
        }
        Some(Self { numerators, denominator: number(&done.rows[0][0], 0) })
    }

    /// ||x - x*|| / ||x*||, where x* is the first column of the exact solution; zero if both are zero.
    pub fn error<T: Scalar>(&self, x: &[T]) -> f64 {
        let (mut above, mut below) = (Dyadic::zero(), Dyadic::zero());
        for (x, numerator) in x.iter().zip(&self.numerators[0]) {
            let difference = Exact::new(*x).times(&self.denominator).minus(numerator);
            above = &above + &difference.square();
            below = &below + &numerator.square();
        }
        above.over(&below).sqrt()
    }

    /// Entry i of column k, rounded: real and imaginary part.
    pub fn rounded(&self, i: usize, k: usize) -> (f64, f64) {
        let quotient = self.numerators[k][i].times(&self.denominator.conj());
        let below = self.denominator.square();
        (quotient.re.over(&below), quotient.im.over(&below))
    }
}

fn of_numbers<const N: usize>(rows: [[f64; N]; N]) -> Vec<Vec<Exact>> {
    rows.iter().map(|row| Exact::of_all(row)).collect()
}

#[test]
fn ranks_and_solutions_are_exact() {
    // A matrix that is regular only because of the last digit of an entry, and a singular one.
    let digit = 1.0 + f64::EPSILON;
    let (regular, singular) = (of_numbers([[1.0, 3.0], [digit, 3.0]]), of_numbers([[1.0, 3.0], [7.0, 21.0]]));
    assert_eq!((rank(&regular), rank(&singular)), (2, 1));
    let b = Exact::of_all(&[1.0, 1.0]);
    assert!(is_consistent(&regular, &b) && !is_consistent(&singular, &b));
    assert!(is_consistent(&singular, &Exact::of_all(&[2.0, 14.0])));
    // x = (0, 1/3), in which 1/3 is as near as a double can be.
    let solved = Solved::new(&regular, &[b]).unwrap();
    assert_eq!((solved.rounded(0, 0).0, solved.rounded(1, 0).0), (0.0, 1.0 / 3.0));
    assert!(solved.error(&[0.0, 1.0 / 3.0]) < f64::EPSILON && solved.error(&[0.25, 1.0 / 3.0]) == 0.75);
    // With very different scales, and a pivot that is not on the diagonal.
    let scaled = of_numbers([[0.0, 1e200, 0.0], [1e-200, 0.0, 1.0], [0.0, 1e200, 1e-100]]);
    let solved = Solved::new(&scaled, &[Exact::of_all(&[1e200, 3.0, 1e200])]).unwrap();
    assert!(solved.error(&[3e200, 1.0, 0.0]) < 1e-15);
    // (1 + i) x = 2 has x = 1 - i.
    let one = vec![vec![Exact::new(num_complex::Complex::new(1.0, 1.0))]];
    assert_eq!(Solved::new(&one, &[vec![Exact::new(2.0)]]).unwrap().rounded(0, 0), (1.0, -1.0));
}
