//! The verdict on one x of one small system, as in `verdict`, with the caller's b - A x.
//!
//! Elimination solves F A y = s F b, where F and s are powers of two with which the largest entry of each row, and that
//! of the right-hand side, is near one. So x = y / s, and
//!
//! ```text
//! r = s F (b - A x)     once plainly; where the bound of its rounding does not tell, once more in twice the precision
//! ```
//!
//! Both norms of the verdict are computed from r, each scaled such that the right-hand side has entries near one, so
//! that nothing relevant overflows or underflows.

use super::dense::{SUMS, size};
use crate::backend::batch::{BESIDE, BatchGoal, NORM_UNITS, POWERS, REFINEMENTS};
use crate::backend::host::residual::Compensated;
use crate::scalar::{Real, Scalar};

/// An upper bound of what underflow in products can contribute, and of entries that are this much smaller than the
/// largest of their row.
const VANISHED: f64 = 1e-140;
/// The largest y: contributions below [`VANISHED`] stay negligible when multiplied by it.
const LARGEST: f64 = 1e140;

/// Factors of a matrix.
pub(super) trait Solve<D> {
    /// Rows.
    fn size(&self) -> usize;
    /// x = A^-1 b.
    fn solve(&self, b: &[D], x: &mut [D]);
}

/// The entries of a row: all of them, or those in some columns.
#[derive(Clone, Copy)]
pub(super) enum Row<'a, T> {
    Dense(&'a [T]),
    Sparse(&'a [u32], &'a [T]),
}

/// The rows of one system.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a, T> {
    Dense(&'a [T]),
    Compressed { offsets: &'a [u64], columns: &'a [u32], values: &'a [T] },
}

impl<'a, T> Rows<'a, T> {
    #[inline(always)]
    pub(super) fn row(&self, n: usize, i: usize) -> Row<'a, T> {
        match *self {
            Rows::Dense(values) => Row::Dense(&values[i * n..(i + 1) * n]),
            Rows::Compressed { offsets, columns, values } => {
                let range = offsets[i] as usize..offsets[i + 1] as usize;
                Row::Sparse(&columns[range.clone()], &values[range])
            }
        }
    }
}

/// The power of two with this exponent.
#[inline(always)]
pub(super) fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The exponent e of a positive number in [2^e, 2^(e + 1)). None beyond [`POWERS`].
#[inline(always)]
pub(super) fn exponent(value: f64) -> Option<i32> {
    let exponent = (value.to_bits() >> 52) as i32 - 1023;
    (-POWERS..=POWERS).contains(&exponent).then_some(exponent)
}

/// Vectors of one system, the exponents of F and the row norms of F A.
#[derive(Debug, Default)]
pub(super) struct Vectors<D> {
    pub(super) exponents: Vec<i32>,
    pub(super) norms: Vec<f64>,
    pub(super) b: Vec<D>,
    pub(super) y: Vec<D>,
    pub(super) r: Vec<D>,
    pub(super) step: Vec<D>,
}

/// The scaling of one right-hand side: exponents of s, and of its largest original entry.
struct Units {
    shift: i32,
    largest: i32,
}

/// Sums of squares of the residual, of its error bound, and of the right-hand side.
#[derive(Clone, Copy, Default)]
struct Squares {
    r: f64,
    error: f64,
    b: f64,
}

impl Squares {
    #[inline(always)]
    fn add(&mut self, weight: f64, r: f64, error: f64, b: f64) {
        let square = |x: f64| (weight * x) * (weight * x);
        self.r += square(r);
        self.error += square(error);
        self.b += square(b);
    }

    /// Returns whether the norm of r is at most the threshold for any rounding errors.
    #[inline(always)]
    fn is_met(&self, threshold: f64) -> bool {
        let norm = self.r.sqrt();
        norm + self.error.sqrt() + f64::from(NORM_UNITS + 1) * f64::EPSILON * (norm + threshold) <= threshold
    }
}

/// The verdict on an x.
#[derive(Clone, Copy)]
struct Judged {
    met: bool,
    relative: f64,
    /// The factor by which the tolerance is missed, for the computed r.
    excess: f64,
}

impl<D: Scalar<Real = f64>> Vectors<D> {
    #[inline(always)]
    pub(super) fn resize(&mut self, n: usize) {
        self.exponents.resize(n, 0);
        self.norms.resize(n, 0.0);
        for vector in [&mut self.b, &mut self.y, &mut self.r, &mut self.step] {
            vector.resize(n, D::default());
        }
    }

    /// Replaces b by s F b. Returns none if it is not finite or out of the range of powers of two, and `Some(None)` if
    /// it is zero.
    #[inline(always)]
    fn take_b<T: Scalar<Double = D>>(&mut self, b: &[T], stride: usize) -> Option<Option<Units>> {
        let (mut most, mut most_scaled, mut sound) = (0.0_f64, 0.0_f64, true);
        for (i, own) in self.b.iter_mut().enumerate() {
            let value = b[i * stride].to_double();
            let scaled = value * D::from_f64(power(self.exponents[i]));
            sound &= scaled.is_finite() && value.is_finite();
            (most, most_scaled) = (most.max(size(value)), most_scaled.max(size(scaled)));
            *own = scaled;
        }
        if !sound {
            return None;
        }
        if most == 0.0 {
            return Some(None);
        }
        let shift = -exponent(most_scaled)?;
        let scale = D::from_f64(power(shift));
        self.b.iter_mut().for_each(|b| *b *= scale);
        Some(Some(Units { shift, largest: exponent(most)? }))
    }

    /// Rounds y such that x has the caller's type; returns false if that overflows.
    #[inline(always)]
    fn round<T: Scalar<Double = D>>(&mut self, units: &Units) -> bool {
        let (down, up) = (D::from_f64(power(-units.shift)), D::from_f64(power(units.shift)));
        let mut sound = true;
        for y in &mut self.y {
            let x = T::from_double(*y * down);
            *y = x.to_double() * up;
            sound &= x.is_finite() && size(*y) < LARGEST;
        }
        sound
    }

    /// Judges y. r holds the residual afterwards.
    #[inline(always)]
    fn judge<T: Scalar<Double = D>>(
        &mut self,
        n: usize,
        rows: &Rows<'_, T>,
        units: &Units,
        goal: &BatchGoal,
    ) -> Judged {
        let each = if D::COMPLEX { 4.0 } else { 1.0 };
        let y_norm = self.y.iter().map(|y| y.abs2()).sum::<f64>().sqrt();
        let mut judged = Judged { met: false, relative: f64::NAN, excess: f64::INFINITY };
        for accurate in [false, true] {
            let (mut plain, mut by_rows, mut sound) = (Squares::default(), Squares::default(), true);
            for i in 0..n {
                let row = rows.row(n, i);
                let scale = power(self.exponents[i]);
                let (r, terms) = if accurate {
                    accurate_residual(row, scale, &self.y, self.b[i])
                } else {
                    residual(row, scale, &self.y, self.b[i])
                };
                self.r[i] = r;
                let unit = (terms as f64 + f64::from(BESIDE)) * each * f64::EPSILON;
                let (r, b) = (r.abs(), self.b[i].abs());
                let sizes = self.norms[i] * y_norm + b;
                let error =
                    VANISHED + if accurate { f64::EPSILON * r + unit * unit * sizes } else { unit * sizes };
                // From s F r to r, beside the caller's largest b.
                let back = -self.exponents[i] - units.shift - units.largest;
                sound &= back <= POWERS;
                plain.add(power(back.clamp(-POWERS, POWERS)), r, error, b);
                by_rows.add(1.0 / self.norms[i], r, error, b);
            }
            let unit = power((-units.largest).clamp(-POWERS, POWERS));
            let size = plain.b.sqrt();
            let threshold = (goal.relative * size).max(goal.absolute * unit);
            let part = threshold / size;
            let of_rows = part * by_rows.b.sqrt();
            let excess_of_rows = if goal.row_wise { by_rows.r.sqrt() / of_rows } else { 0.0 };
            judged.relative = plain.r.sqrt() / size;
            judged.excess = (plain.r.sqrt() / threshold).max(excess_of_rows);
            judged.met =
                sound && size > 0.0 && plain.is_met(threshold) && (!goal.row_wise || by_rows.is_met(of_rows));
            // A step of refinement needs the accurate residual too.
            if judged.met {
                break;
            }
        }
        judged
    }

    /// Solves for one right-hand side: the steps of refinement and a bound of the relative residual if x meets the
    /// tolerance.
    #[inline(always)]
    pub(super) fn solve<T: Scalar<Double = D>>(
        &mut self,
        (rows, factors): (&Rows<'_, T>, &impl Solve<D>),
        (b, x, stride): (&[T], &mut [T], usize),
        goal: &BatchGoal,
    ) -> Option<(u32, f64)> {
        let n = factors.size();
        let Some(units) = self.take_b(b, stride)? else {
            x.iter_mut().step_by(stride).take(n).for_each(|x| *x = T::default());
            return Some((0, 0.0));
        };
        factors.solve(&self.b, &mut self.y);
        let mut last = f64::INFINITY;
        for steps in 0..=REFINEMENTS {
            if !self.round::<T>(&units) {
                return None;
            }
            let judged = self.judge(n, rows, &units, goal);
            if judged.met {
                let down = D::from_f64(power(-units.shift));
                for (i, y) in self.y.iter().enumerate() {
                    x[i * stride] = T::from_double(*y * down);
                }
                return Some((steps, judged.relative));
            }
            // A step that does not halve what is missing leads nowhere.
            let falls = judged.excess < 0.5 * last;
            if !falls {
                return None;
            }
            last = judged.excess;
            factors.solve(&self.r, &mut self.step);
            for (y, step) in self.y.iter_mut().zip(&self.step) {
                *y += *step;
            }
        }
        None
    }
}

/// b - F A y for a row, and the number of its products.
#[inline(always)]
fn residual<T: Scalar<Double = D>, D: Scalar<Real = f64>>(
    row: Row<'_, T>,
    scale: f64,
    y: &[D],
    b: D,
) -> (D, usize) {
    let scale = D::from_f64(scale);
    match row {
        Row::Dense(values) => {
            let y = &y[..values.len()];
            let mut sums = [D::default(); SUMS];
            let whole = values.len() / SUMS * SUMS;
            for (a, y) in values[..whole].chunks_exact(SUMS).zip(y[..whole].chunks_exact(SUMS)) {
                for lane in 0..SUMS {
                    sums[lane] += a[lane].to_double() * scale * y[lane];
                }
            }
            let mut rest = D::default();
            for j in whole..values.len() {
                rest += values[j].to_double() * scale * y[j];
            }
            let pair = |k: usize| sums[k] + sums[k + SUMS / 2];
            (b - (((pair(0) + pair(1)) + (pair(2) + pair(3))) + rest), values.len())
        }
        Row::Sparse(columns, values) => {
            let mut sum = D::default();
            for (&column, value) in columns.iter().zip(values) {
                sum += value.to_double() * scale * y[column as usize];
            }
            (b - sum, values.len())
        }
    }
}

/// [`residual`] in twice the precision.
#[inline(always)]
fn accurate_residual<T: Scalar<Double = D>, D: Scalar<Real = f64>>(
    row: Row<'_, T>,
    scale: f64,
    y: &[D],
    b: D,
) -> (D, usize) {
    let scale = D::from_f64(scale);
    let (mut re, mut im) = (Compensated::new(b.re()), Compensated::new(b.im()));
    let mut subtract = |a: T, y: D| {
        let a = a.to_double() * scale;
        re.add_product(-a.re(), y.re());
        if D::COMPLEX {
            re.add_product(a.im(), y.im());
            im.add_product(-a.re(), y.im());
            im.add_product(-a.im(), y.re());
        }
    };
    let terms = match row {
        Row::Dense(values) => {
            for (j, &a) in values.iter().enumerate() {
                subtract(a, y[j]);
            }
            values.len()
        }
        Row::Sparse(columns, values) => {
            for (&column, &a) in columns.iter().zip(values) {
                subtract(a, y[column as usize]);
            }
            values.len()
        }
    };
    (D::from_parts(re.value().to_f64(), im.value().to_f64()).unwrap_or_default(), terms)
}
