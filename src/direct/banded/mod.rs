//! LU with partial pivoting inside a band, for matrices of few diagonals. It needs no ordering and no symbolic
//! analysis.
//!
//! Golub and Van Loan, "Matrix Computations" (4th edition), section 4.3.5; the layout is that of LAPACK's `gbtrf`. For
//! a matrix with two diagonals below the main one and one above, a column of the factors holds (`*`: space for the fill
//! of row exchanges)
//!
//! ```text
//! * * 1 0 -1 -2          <- row minus column, from -(below + above) to below
//! ```
//!
//! An x is returned only if its backward error is that of a stable method and A is certainly nonsingular, or if its
//! residual is small in all rows, whatever the condition number is. Otherwise the caller has to use [`super::Direct`].

mod factors;
mod substitute;

use super::condition;
use super::goal::norm;
use super::sides::{LANES, RightHandSides, store};
use crate::assemble::Integers;
use crate::backend::{Host, Op};
use crate::direct::Factorable;
use crate::error::{Error, Result};
use crate::parallel::{Inlined, both, vectorised_whole};
pub(crate) use factors::seconds_in_narrow_band;
pub(super) use factors::{BandFactors, cost};
use std::sync::OnceLock;

/// The largest backward error of an x that is returned, relative to ||A||_F ||x|| + ||b||: partial pivoting gives 1e-15
/// unless factors grow.
const BACKWARD: f64 = 1e-13;
/// With at least this reciprocal condition number, A is certainly nonsingular.
const REGULAR: f64 = 1e-10;
/// The relative residual that suffices whatever the condition number is.
const ASKED: f64 = 1e-10;
/// A norm in this range is the root of a sum of squares that has neither underflowed nor overflowed.
const SAFE: std::ops::Range<f64> = 1e-140..1e140;

/// A square matrix of few diagonals, and its factors.
#[derive(Debug)]
pub struct Banded<T> {
    /// A, column by column, each from the uppermost diagonal to the lowest.
    a: Vec<T>,
    factors: BandFactors<T>,
    /// ||A||_F.
    norm: f64,
    /// Whether A is certainly nonsingular; unset as long as that is unknown.
    regular: OnceLock<bool>,
}

/// Indices of 32 or 64 bits.
trait Index: Copy {
    fn place(self) -> usize;
}

impl Index for u32 {
    fn place(self) -> usize {
        self as usize
    }
}

impl Index for u64 {
    fn place(self) -> usize {
        usize::try_from(self).unwrap_or(usize::MAX)
    }
}

impl<T: Factorable> Banded<T> {
    /// Factorises a matrix of `n` rows and columns, given in CSR, or in CSC if `by_columns`. Duplicate entries are
    /// added up. Returns `None` if it has `widest` diagonals or more, or an entry that is not finite.
    ///
    /// # Errors
    /// If the arrays do not describe a matrix, or if memory runs out.
    pub fn new(
        n: usize,
        by_columns: bool,
        (starts, across, values): (Integers<'_, Host>, Integers<'_, Host>, &[T]),
        widest: usize,
    ) -> Result<Option<Self>> {
        match (starts, across) {
            (Integers::Short(starts), Integers::Short(across)) => {
                Self::of(n, by_columns, (starts, across, values), widest)
            }
            (Integers::Short(starts), Integers::Long(across)) => {
                Self::of(n, by_columns, (starts, across, values), widest)
            }
            (Integers::Long(starts), Integers::Short(across)) => {
                Self::of(n, by_columns, (starts, across, values), widest)
            }
            (Integers::Long(starts), Integers::Long(across)) => {
                Self::of(n, by_columns, (starts, across, values), widest)
            }
        }
    }

    fn of<S: Index, I: Index>(
        n: usize,
        by_columns: bool,
        (starts, across, values): (&[S], &[I], &[T]),
        widest: usize,
    ) -> Result<Option<Self>> {
        let ends = |line: usize| (starts[line].place(), starts[line + 1].place());
        let fits = |(start, end): (usize, usize)| start <= end && end <= across.len().min(values.len());
        if starts.len() != n + 1 || u32::try_from(n).is_err() || !(0..n).all(|line| fits(ends(line))) {
            return Err(Error::InvalidMatrix("offsets that are not those of the entries".into()));
        }
        // The largest distances of entries after and before the diagonal in their line.
        let (mut after, mut before) = (0, 0);
        for line in 0..n {
            let (start, end) = ends(line);
            for index in &across[start..end] {
                let place = index.place();
                if place >= n {
                    return Err(Error::InvalidMatrix(format!("index {place} in a matrix of {n} rows")));
                }
                after = after.max(place.saturating_sub(line));
                before = before.max(line.saturating_sub(place));
            }
            if after + before >= widest {
                return Ok(None);
            }
        }
        let (below, above) = if by_columns { (after, before) } else { (before, after) };
        let height = below + above + 1;
        let mut a = vec![T::default(); n * height];
        let mut square = 0.0;
        for line in 0..n {
            let (start, end) = ends(line);
            for (index, &value) in both(&across[start..end], &values[start..end]) {
                let (row, column) = if by_columns { (index.place(), line) } else { (line, index.place()) };
                a[column * height + above + row - column] += value;
            }
        }
        for value in &a {
            square += value.abs2();
        }
        if !square.is_finite() {
            return Ok(None);
        }
        let mut factors = BandFactors::zeros(n, (below, above));
        for (from, to) in a.chunks_exact(height).zip(factors.columns_mut()) {
            to[below..].copy_from_slice(from);
        }
        let is_factorised = factors.eliminate(0.0);
        let banded = Self { a, factors, norm: square.sqrt(), regular: OnceLock::new() };
        if !is_factorised {
            // A zero pivot does not prove that A is singular; that is left to other methods.
            let _ = banded.regular.set(false);
        }
        Ok(Some(banded))
    }

    /// Number of rows and columns.
    pub fn rows(&self) -> usize {
        self.factors.n
    }

    /// The numbers of diagonals below and above the main one.
    pub fn widths(&self) -> (usize, usize) {
        (self.factors.below, self.factors.above)
    }

    /// A, column by column, each from the uppermost diagonal to the lowest; entries outside of A are zero.
    pub fn diagonals(&self) -> &[T] {
        &self.a
    }

    /// True if A is certainly nonsingular, as shown by a solution or by an estimate of the condition number.
    pub fn is_regular(&self) -> bool {
        *self.regular.get_or_init(|| SAFE.contains(&self.norm) && self.looks_regular())
    }

    /// Solves op(A) x = b with the factors. Returns true if A is certainly nonsingular and the backward error of x is
    /// that of a stable method; otherwise x is unchanged.
    pub fn solve(&self, op: Op, b: &[T], x: &mut [T]) -> bool {
        self.solve_if(op, b, x, |_| false)
    }

    /// Solves A x = b like `solve`, for a single solve: a residual that is small in all rows suffices, and saves the
    /// estimate of the condition number.
    pub fn solve_once(&self, b: &[T], x: &mut [T]) -> bool {
        self.solve_if(Op::None, b, x, |told| self.is_small_in_all_rows(told))
    }

    /// As [`Banded::solve`], for several right-hand sides, one solution after another. A right-hand side of zeros has
    /// the solution of zeros.
    pub fn solve_many(&self, op: Op, b: RightHandSides<'_, T>, x: &mut [T]) -> bool {
        let n = self.rows();
        if n == 0 || b.len() != x.len() || !x.len().is_multiple_of(n) || !self.is_regular() {
            return false;
        }
        let (mut given, mut first) = (Vec::<[T; LANES]>::new(), 0);
        for x in x.chunks_mut(LANES * n) {
            let count = x.len() / n;
            b.load((n, first, count), &mut given, |b| b);
            first += count;
            let (found, residuals) = vectorised_whole(Candidate { banded: self, op, b: &given });
            let (residuals, solutions, sizes) = (norms(&residuals), norms(&found), norms(&given));
            let is_good = |v: usize| {
                let (size, scale) = (sizes[v], self.norm * solutions[v] + sizes[v]);
                // Squares that have underflowed are not those of zeros.
                let is_zero =
                    || both(&given, &found).all(|(b, x)| b[v] == T::default() && x[v] == T::default());
                let stable = residuals[v] <= BACKWARD * scale && scale.is_finite();
                if size == 0.0 { is_zero() } else { SAFE.contains(&size) && stable }
            };
            if !(0..count).all(is_good) {
                return false;
            }
            store(&found, x, |x| x);
        }
        true
    }

    fn solve_if(&self, op: Op, b: &[T], x: &mut [T], enough: impl FnOnce(&Told) -> bool) -> bool {
        let size = norm(b);
        if b.len() != self.rows()
            || x.len() != self.rows()
            || self.regular.get() == Some(&false)
            || !SAFE.contains(&size)
            || !SAFE.contains(&self.norm)
        {
            return false;
        }
        let (found, told) = self.candidate(op, b, size);
        let stable = told.residual <= BACKWARD * told.scale;
        let good = enough(&told) || (stable && self.is_regular());
        if good {
            x.copy_from_slice(&found);
        }
        good
    }

    /// Computes x with the factors, and its residual.
    fn candidate(&self, op: Op, b: &[T], size: f64) -> (Vec<T>, Told) {
        let (x, r) = vectorised_whole(Candidate { banded: self, op, b: b.as_chunks::<1>().0 });
        let (x, r) = (x.into_flattened(), r.into_flattened());
        let scale = self.norm * norm(&x) + size;
        (x, Told { residual: norm(&r), scale, size })
    }

    /// The sum of the magnitudes in each row, and in each column.
    fn sums(&self) -> (Vec<f64>, Vec<f64>) {
        let (n, (below, above)) = (self.rows(), self.widths());
        let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; n]);
        for (j, column) in self.a.chunks_exact(below + above + 1).enumerate() {
            let (first, end) = (j.saturating_sub(above), (j + below + 1).min(n));
            for (sum, value) in rows[first..end].iter_mut().zip(&column[above + first - j..][..end - first]) {
                let size = value.abs();
                *sum += size;
                columns[j] += size;
            }
        }
        (rows, columns)
    }

    /// True if the residual, including its rounding errors, is small relative to b for any scaling of rows. The norm of
    /// a row is taken to be the sum of its magnitudes, which exceeds the 2-norm by at most the root of the number of
    /// entries.
    fn is_small_in_all_rows(&self, told: &Told) -> bool {
        let (below, above) = self.widths();
        let terms = (below + above + 1) as f64;
        let error = (told.residual + (terms + 2.0) * f64::EPSILON * told.scale) * terms.sqrt();
        if error > ASKED * told.size {
            return false;
        }
        let (rows, _) = self.sums();
        let (least, most) = rows
            .iter()
            .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), &sum| (least.min(sum), most.max(sum)));
        error <= ASKED * told.size * (least / most)
    }

    /// True if A is certainly nonsingular. This is shown by a small residual for a right-hand side with components in
    /// all directions, or else by LAPACK's estimate of the condition number.
    fn looks_regular(&self) -> bool {
        let b: Vec<T> = (1..=self.rows()).map(|k| T::from_f64((k as f64).cos())).collect();
        if self.is_small_in_all_rows(&self.candidate(Op::None, &b, norm(&b)).1) {
            return true;
        }
        let forward = |x: &mut Vec<T>, other: Option<&mut Vec<T>>| {
            self.factors.substitute_plain(x.as_chunks_mut::<1>().0);
            if let Some(other) = other {
                self.factors.substitute_plain(other.as_chunks_mut::<1>().0);
            }
        };
        let transposed = |x: &mut Vec<T>| self.factors.substitute_transposed(x.as_chunks_mut::<1>().0);
        let inverse = condition::estimate(self.rows(), &forward, &transposed);
        let one_norm = self.sums().1.into_iter().fold(0.0, f64::max);
        inverse.is_some_and(|inverse| inverse * one_norm * REGULAR < 1.0)
    }
}

/// The norm of a candidate's residual, ||A||_F ||x|| + ||b||, and ||b||.
struct Told {
    residual: f64,
    scale: f64,
    size: f64,
}

/// Right-hand sides in lanes: their solutions by the factors, and the residuals.
struct Candidate<'a, T, const N: usize> {
    banded: &'a Banded<T>,
    op: Op,
    b: &'a [[T; N]],
}

impl<T: Factorable, const N: usize> Inlined for Candidate<'_, T, N> {
    type Output = (Vec<[T; N]>, Vec<[T; N]>);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { banded, op, b } = self;
        let mut x = b.to_vec();
        banded.factors.substitute(op, &mut x);
        let mut r = b.to_vec();
        banded.take_product(op, &x, &mut r);
        (x, r)
    }
}

/// The 2-norm of each lane.
fn norms<T: Factorable, const N: usize>(rows: &[[T; N]]) -> [f64; N] {
    let mut squares = [0.0; N];
    for row in rows {
        for v in 0..N {
            squares[v] += row[v].abs2();
        }
    }
    squares.map(f64::sqrt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    fn short(list: &[u32]) -> Integers<'_, Host> {
        Integers::Short(list)
    }

    /// A band matrix by rows, whose rows have to be exchanged.
    fn band(n: usize, below: usize, above: usize) -> (Vec<u32>, Vec<u32>, Vec<Complex<f64>>) {
        let (mut starts, mut across, mut values, mut state) = (vec![0], Vec::new(), Vec::new(), 7_u64);
        let mut number = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1 << 24) as f64 - 0.5
        };
        for row in 0..n {
            for column in row.saturating_sub(below)..(row + above + 1).min(n) {
                across.push(column as u32);
                // Without diagonals below the main one, its entries are the pivots.
                let (small, shift) = match (row == column, below) {
                    (true, 0) => (1.0, 3.0),
                    (true, _) => (1e-3, 0.0),
                    _ => (1.0, 0.0),
                };
                values.push(Complex::new(small * number() + shift, small * number()));
            }
            starts.push(across.len() as u32);
        }
        (starts, across, values)
    }

    #[test]
    fn solutions_of_all_forms_leave_small_residuals() {
        for (n, below, above) in [(1, 0, 0), (2, 1, 0), (40, 1, 1), (60, 3, 1), (60, 0, 2), (50, 2, 4)] {
            let (starts, across, values) = band(n, below, above);
            let b: Vec<_> = (0..n).map(|k| Complex::new((k as f64).sin(), 1.0)).collect();
            for by_columns in [false, true] {
                let arrays = (short(&starts), short(&across), &values[..]);
                let banded = Banded::new(n, by_columns, arrays, 24).unwrap().unwrap();
                for op in [Op::None, Op::Transpose, Op::Conjugate, Op::ConjugateTranspose] {
                    let mut x = vec![Complex::default(); n];
                    assert!(banded.solve(op, &b, &mut x), "{n} {below} {above} {op:?}");
                    let mut r = b.clone();
                    for row in 0..n {
                        for k in starts[row] as usize..starts[row + 1] as usize {
                            let (i, j) = (row, across[k] as usize);
                            let (i, j) = if by_columns != op.transposes() { (j, i) } else { (i, j) };
                            let value = if op.conjugates() { values[k].conj() } else { values[k] };
                            r[i] -= value * x[j];
                        }
                    }
                    assert!(
                        norm(&r) <= 1e-12 * (banded.norm * norm(&x) + norm(&b)),
                        "{n} {op:?}: {}",
                        norm(&r)
                    );
                    // In company each has the bits that it has alone, and zeros have zeros.
                    let count = 11;
                    let mut rows = vec![Complex::default(); n * count];
                    (0..n).for_each(|k| (rows[k * count + 1], rows[k * count + 9]) = (b[k], b[k]));
                    let mut many = vec![Complex::new(7.0, 0.0); n * count];
                    assert!(banded.solve_many(op, RightHandSides::Rows(&rows), &mut many));
                    for (number, column) in many.chunks(n).enumerate() {
                        let expected =
                            if matches!(number, 1 | 9) { x.clone() } else { vec![Complex::default(); n] };
                        assert!(*column == expected, "{n} {op:?} {number}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_singular_or_too_wide_or_damaged_is_left_to_others() {
        let starts = [0, 2, 4];
        let singular = Banded::new(2, false, (short(&starts), short(&[0, 1, 0, 1]), &[1.0; 4]), 24);
        let singular = singular.unwrap().unwrap();
        let mut x = [5.0; 2];
        assert!(!singular.is_regular() && !singular.solve(Op::None, &[1.0, 2.0], &mut x) && x == [5.0; 2]);
        assert!(!singular.solve_once(&[1.0, 2.0], &mut x));
        assert!(!singular.solve_many(Op::None, (&[1.0, 2.0]).into(), &mut x));
        let near = [1.0, 1.0, 1.0, 1.0 + 1e-13];
        let near = Banded::new(2, false, (short(&starts), short(&[0, 1, 0, 1]), &near), 24);
        assert!(!near.unwrap().unwrap().solve(Op::None, &[1.0, 2.0], &mut x));
        let wide = (short(&starts), short(&[0, 1, 0, 1]), &[1.0; 4][..]);
        assert!(Banded::new(2, false, wide, 2).unwrap().is_none());
        for (starts, across) in
            [([0, 3, 2], [0, 1, 0, 1]), ([0, 2, 4], [0, 1, 0, 2]), ([0, 2, 9], [0, 1, 0, 1])]
        {
            let arrays = (short(&starts), short(&across), &[1.0; 4][..]);
            assert!(Banded::new(2, false, arrays, 24).is_err());
        }
    }
}
