//! What is said of one x of one small system: as `verdict` says it, with the caller's b - A x.
//!
//! Elimination works on F A y = s F b, F and s being powers of two that bring the largest entry of each row, and that
//! of the right-hand side, near one. So x = y / s, and
//!
//! ```text
//! r = s F (b - A x)     once plainly; where the bound of its rounding does not tell, once more in twice the precision
//! ```
//!
//! Both norms of the verdict are taken of r, each in a unit in which the right-hand side has entries near one: nothing
//! that counts overflows or vanishes.

use super::dense::{SUMS, size};
use crate::backend::batch::{BESIDE, BatchGoal, NORM_UNITS, POWERS, REFINEMENTS};
use crate::backend::host::residual::Compensated;
use crate::scalar::{Real, Scalar};

/// More than what vanishes of products, and of entries that are this much smaller than the largest of their row.
const VANISHED: f64 = 1e-140;
/// y is no larger: what is below [`VANISHED`] stays there times y.
const LARGEST: f64 = 1e140;

/// Factors of a matrix.
pub(super) trait Solve<D> {
    /// Rows.
    fn size(&self) -> usize;
    /// x = A^-1 b.
    fn solve(&mut self, b: &[D], x: &mut [D]);
}

/// The entries of a row: all of them, or those of some columns.
#[derive(Clone, Copy)]
pub(super) enum Row<'a, T> {
    Dense(&'a [T]),
    Sparse(&'a [u32], &'a [T]),
}

impl<T: Copy> Row<'_, T> {
    /// Each entry with its column.
    #[inline(always)]
    pub(super) fn for_each(self, mut f: impl FnMut(usize, T)) {
        match self {
            Row::Dense(values) => values.iter().enumerate().for_each(|(column, &value)| f(column, value)),
            Row::Sparse(columns, values) => {
                columns.iter().zip(values).for_each(|(&column, &value)| f(column as usize, value));
            }
        }
    }
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

/// The exponent of a positive number: it is in [2^e, 2^(e + 1)). None beyond [`POWERS`].
#[inline(always)]
pub(super) fn exponent(value: f64) -> Option<i32> {
    let exponent = (value.to_bits() >> 52) as i32 - 1023;
    (-POWERS..=POWERS).contains(&exponent).then_some(exponent)
}

/// Vectors of one system, and of its rows: the exponents of F and the norms of rows of F A.
#[derive(Debug, Default)]
pub(super) struct Vectors<D> {
    pub(super) exponents: Vec<i32>,
    pub(super) norms: Vec<f64>,
    pub(super) b: Vec<D>,
    pub(super) y: Vec<D>,
    pub(super) r: Vec<D>,
    pub(super) step: Vec<D>,
}

/// Units of one right-hand side: exponents of s, and of its largest entry as the caller has it.
struct Units {
    shift: i32,
    largest: i32,
}

/// A sum of squares of residuals, of their errors, and of the right-hand side.
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

    /// Whether the norm of r is at most the threshold, whatever rounding has done.
    #[inline(always)]
    fn is_met(&self, threshold: f64) -> bool {
        let norm = self.r.sqrt();
        norm + self.error.sqrt() + f64::from(NORM_UNITS + 1) * f64::EPSILON * (norm + threshold) <= threshold
    }
}

/// What is known of an x.
#[derive(Clone, Copy)]
struct Judged {
    met: bool,
    relative: f64,
    /// By how much the goal is missed, as r is.
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

    /// b becomes s F b; none where it is not finite or out of the range of powers of two, and `Some(None)` where it is
    /// zero.
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

    /// y becomes what x is, once rounded to the caller's type; false where that overflows.
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

    /// Judges y. r is left as the residual.
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
                    let (product, terms) = products(row, scale, &self.y);
                    (self.b[i] - product, terms)
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

    /// Solves with one right-hand side: the steps of refinement and a bound of the relative residual, where x meets the
    /// goal.
    #[inline(always)]
    pub(super) fn solve<T: Scalar<Double = D>>(
        &mut self,
        (rows, factors): (&Rows<'_, T>, &mut impl Solve<D>),
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

/// What the products of a row's entries with those of a vector go into.
trait Sum<T, D> {
    fn add(&mut self, a: T, y: D);

    /// The same of [`SUMS`] of them.
    #[inline(always)]
    fn add_together(&mut self, a: &[T], y: &[D])
    where
        T: Copy,
        D: Copy,
    {
        for lane in 0..SUMS {
            self.add(a[lane], y[lane]);
        }
    }
}

/// Adds the products of a row's entries with those of y, and tells how many there are.
#[inline(always)]
fn add_products<T: Copy, D: Copy>(row: Row<'_, T>, y: &[D], sum: &mut impl Sum<T, D>) -> usize {
    match row {
        Row::Dense(values) => {
            let y = &y[..values.len()];
            let whole = values.len() / SUMS * SUMS;
            for (a, y) in values[..whole].chunks_exact(SUMS).zip(y[..whole].chunks_exact(SUMS)) {
                sum.add_together(a, y);
            }
            for j in whole..values.len() {
                sum.add(values[j], y[j]);
            }
            values.len()
        }
        Row::Sparse(columns, values) => {
            for (&column, &a) in columns.iter().zip(values) {
                sum.add(a, y[column as usize]);
            }
            values.len()
        }
    }
}

/// In working precision, with as many sums as fill wide registers.
struct Plain<D> {
    scale: D,
    sums: [D; SUMS],
    rest: D,
}

impl<T: Scalar<Double = D>, D: Scalar<Real = f64>> Sum<T, D> for Plain<D> {
    #[inline(always)]
    fn add(&mut self, a: T, y: D) {
        self.rest += a.to_double() * self.scale * y;
    }

    #[inline(always)]
    fn add_together(&mut self, a: &[T], y: &[D]) {
        for lane in 0..SUMS {
            self.sums[lane] += a[lane].to_double() * self.scale * y[lane];
        }
    }
}

/// In twice the precision, with the products taken away.
struct Accurate<D: Scalar<Real = f64>> {
    scale: D,
    re: Compensated<f64>,
    im: Compensated<f64>,
}

impl<T: Scalar<Double = D>, D: Scalar<Real = f64>> Sum<T, D> for Accurate<D> {
    #[inline(always)]
    fn add(&mut self, a: T, y: D) {
        let a = a.to_double() * self.scale;
        self.re.add_product(-a.re(), y.re());
        if D::COMPLEX {
            self.re.add_product(a.im(), y.im());
            self.im.add_product(-a.re(), y.im());
            self.im.add_product(-a.im(), y.re());
        }
    }
}

/// A row of F A times y, and how many products it has.
#[inline(always)]
pub(super) fn products<T: Scalar<Double = D>, D: Scalar<Real = f64>>(
    row: Row<'_, T>,
    scale: f64,
    y: &[D],
) -> (D, usize) {
    let mut sum = Plain { scale: D::from_f64(scale), sums: [D::default(); SUMS], rest: D::default() };
    let terms = add_products(row, y, &mut sum);
    let pair = |k: usize| sum.sums[k] + sum.sums[k + SUMS / 2];
    (((pair(0) + pair(1)) + (pair(2) + pair(3))) + sum.rest, terms)
}

/// b minus a row of F A times y in twice the precision, and how many products it has.
#[inline(always)]
fn accurate_residual<T: Scalar<Double = D>, D: Scalar<Real = f64>>(
    row: Row<'_, T>,
    scale: f64,
    y: &[D],
    b: D,
) -> (D, usize) {
    let (re, im) = (Compensated::new(b.re()), Compensated::new(b.im()));
    let mut sum = Accurate { scale: D::from_f64(scale), re, im };
    let terms = add_products(row, y, &mut sum);
    (D::from_parts(sum.re.value().to_f64(), sum.im.value().to_f64()).unwrap_or_default(), terms)
}
