//! The verdict on the x of W small systems at once, in the sense of `verdict`, with the caller's b - A x.
//!
//! Elimination works on F A y = s F b. F and s are powers of two that bring the largest entry of each row, and that of
//! the right-hand side, near one. So x = y / s, and
//!
//! ```text
//! r = s F (b - A x)     once plainly, and if the bound of its rounding errors does not decide, in twice the precision
//! ```
//!
//! Both norms of the verdict are those of r, each in a unit in which the right-hand side has entries near one, so that
//! nothing that counts overflows or vanishes. Numbers of W systems lie side by side: the loops over them are the
//! innermost ones, and vector registers hold several systems.

use crate::backend::batch::{BESIDE, BatchGoal, LIMITED, NORM_UNITS, POWERS, REFINEMENTS};
use crate::scalar::Scalar;

/// The size by which pivots are compared: |re| + |im|.
#[inline(always)]
pub(super) fn size<D: Scalar<Real = f64>>(value: D) -> f64 {
    if D::COMPLEX { value.re().abs() + value.im().abs() } else { value.re().abs() }
}

/// More than what underflow takes from products, and from entries that are so much smaller than the largest of their
/// row.
const VANISHED: f64 = 1e-140;
/// y is smaller, so that [`VANISHED`] times y is still nothing.
const LARGEST: f64 = 1e140;
/// The rounding error of single precision.
const SINGLE: f64 = 0.5 * f32::EPSILON as f64;

/// W matrices of one size.
pub(super) trait Matrix<D, const W: usize> {
    /// b minus row `i` of F A y, if `accurate` in twice the precision, and the number of products. F has these
    /// exponents.
    fn residual(
        &self,
        i: usize,
        exponents: &[i32; W],
        y: &[[D; W]],
        b: &[D; W],
        accurate: bool,
    ) -> ([D; W], usize);
}

/// The same with their factors, or with another way to solve.
pub(super) trait Solve<D, const W: usize> {
    type Matrix: Matrix<D, W>;
    fn matrix(&self) -> &Self::Matrix;
    /// x = A^-1 b.
    fn solve(&mut self, b: &[[D; W]], x: &mut [[D; W]]);
}

/// The power of two with this exponent.
#[inline(always)]
pub(super) fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The exponent e of a positive number in [2^e, 2^(e + 1)); none beyond [`POWERS`].
#[inline(always)]
pub(super) fn exponent(value: f64) -> Option<i32> {
    let exponent = (value.to_bits() >> 52) as i32 - 1023;
    (-POWERS..=POWERS).contains(&exponent).then_some(exponent)
}

/// Vectors of W systems, the exponents of F, and the norms of the rows of F A.
#[derive(Debug, Default)]
pub(super) struct Vectors<D, const W: usize> {
    pub(super) exponents: Vec<[i32; W]>,
    pub(super) norms: Vec<[f64; W]>,
    b: Vec<[D; W]>,
    y: Vec<[D; W]>,
    r: Vec<[D; W]>,
    step: Vec<[D; W]>,
}

/// Units of right-hand sides: the exponents of s, and those of the largest entries as the caller has them.
struct Units<const W: usize> {
    shift: [i32; W],
    largest: [i32; W],
}

/// Sums of squares of residuals, of their errors, and of right-hand sides.
#[derive(Clone, Copy)]
struct Squares<const W: usize> {
    r: [f64; W],
    error: [f64; W],
    b: [f64; W],
}

impl<const W: usize> Squares<W> {
    const ZERO: Self = Self { r: [0.0; W], error: [0.0; W], b: [0.0; W] };

    #[inline(always)]
    fn add(&mut self, weights: &[f64; W], [r, error, b]: [&[f64; W]; 3]) {
        for (sums, values) in [(&mut self.r, r), (&mut self.error, error), (&mut self.b, b)] {
            for lane in 0..W {
                sums[lane] += (weights[lane] * values[lane]) * (weights[lane] * values[lane]);
            }
        }
    }

    /// Whether the exact norm of r is at most the threshold, whatever the rounding errors.
    #[inline(always)]
    fn is_met(&self, lane: usize, threshold: f64) -> bool {
        let norm = self.r[lane].sqrt();
        let of_norm = f64::from(NORM_UNITS + 1) * f64::EPSILON * (norm + threshold);
        norm + self.error[lane].sqrt() + of_norm <= threshold
    }
}

/// What is known of an x.
#[derive(Clone, Copy)]
struct Judged {
    met: bool,
    relative: f64,
    /// The residual as a multiple of what is allowed.
    excess: f64,
}

/// The steps that x took, or [`LIMITED`] and tenths of its right digits, and its relative residual.
pub(super) type Found = Option<(u32, f64)>;

impl<D: Scalar<Real = f64>, const W: usize> Vectors<D, W> {
    #[inline(always)]
    pub(super) fn resize(&mut self, n: usize) {
        self.exponents.resize(n, [0; W]);
        self.norms.resize(n, [0.0; W]);
        for vector in [&mut self.b, &mut self.y, &mut self.r, &mut self.step] {
            vector.resize(n, [D::default(); W]);
        }
    }

    /// Stores F b of one system in `self.b`, and returns the exponents of s, which brings the largest entry of F b near
    /// one, and of the largest entry of b: `None` if b is not finite or an exponent is out of range, `Some(None)` if b
    /// is zero.
    #[inline(always)]
    fn take_b<T: Scalar<Double = D>>(
        &mut self,
        lane: usize,
        b: &[T],
        stride: usize,
    ) -> Option<Option<[i32; 2]>> {
        let (mut most, mut most_scaled, mut sound) = (0.0_f64, 0.0_f64, true);
        for (i, (own, exponents)) in self.b.iter_mut().zip(&self.exponents).enumerate() {
            let value = b[i * stride].to_double();
            let scaled = value * D::from_f64(power(exponents[lane]));
            sound &= scaled.is_finite() && value.is_finite();
            (most, most_scaled) = (most.max(size(value)), most_scaled.max(size(scaled)));
            own[lane] = scaled;
        }
        if !sound {
            return None;
        }
        if most == 0.0 {
            return Some(None);
        }
        Some(Some([-exponent(most_scaled)?, exponent(most)?]))
    }

    /// Rounds y to the caller's type, and returns which systems that leaves finite and small enough.
    #[inline(always)]
    fn round<T: Scalar<Double = D>>(&mut self, units: &Units<W>) -> [bool; W] {
        let down = units.shift.map(|shift| D::from_f64(power(-shift)));
        let up = units.shift.map(|shift| D::from_f64(power(shift)));
        let mut most = [0.0_f64; W];
        let mut nothing = [D::default(); W];
        for y in &mut self.y {
            for lane in 0..W {
                let x = T::from_double(y[lane] * down[lane]).to_double();
                y[lane] = x * up[lane];
                // Neither infinities nor NaN times zero are zero.
                nothing[lane] += x * D::default();
                let size = size(y[lane]);
                most[lane] = if size > most[lane] { size } else { most[lane] };
            }
        }
        std::array::from_fn(|lane| nothing[lane] == D::default() && most[lane] < LARGEST)
    }

    /// Judges y of the systems that are `asked` for by residuals of growing accuracy, which leaves r as the residual.
    #[inline(always)]
    fn judge(
        &mut self,
        system: &impl Matrix<D, W>,
        units: &Units<W>,
        goal: &BatchGoal,
        (asked, accuracies): (&[bool; W], &[bool]),
    ) -> [Judged; W] {
        let each = if D::COMPLEX { 4.0 } else { 1.0 };
        let mut squares = [0.0; W];
        for y in &self.y {
            for lane in 0..W {
                squares[lane] += y[lane].abs2();
            }
        }
        let y_norms = squares.map(f64::sqrt);
        let of_units: [i32; W] = std::array::from_fn(|lane| -units.shift[lane] - units.largest[lane]);
        let mut judged = [Judged { met: false, relative: f64::NAN, excess: f64::INFINITY }; W];
        for &accurate in accuracies {
            let (mut plain, mut by_rows, mut furthest) = (Squares::ZERO, Squares::ZERO, [i32::MIN; W]);
            for i in 0..self.y.len() {
                let (exponents, norms) = (&self.exponents[i], &self.norms[i]);
                let (residual, terms) = system.residual(i, exponents, &self.y, &self.b[i], accurate);
                self.r[i] = residual;
                let unit = (terms as f64 + f64::from(BESIDE)) * each * f64::EPSILON;
                let (r, b) = (absolutes(&residual), absolutes(&self.b[i]));
                let (of_r, of_sizes) = if accurate { (f64::EPSILON, unit * unit) } else { (0.0, unit) };
                let (mut errors, mut weights, mut inverses) = ([0.0; W], [0.0; W], [0.0; W]);
                for lane in 0..W {
                    let sizes = norms[lane] * y_norms[lane] + b[lane];
                    errors[lane] = VANISHED + of_r * r[lane] + of_sizes * sizes;
                }
                for lane in 0..W {
                    // From s F r to r, beside the caller's largest b.
                    let back = of_units[lane] - exponents[lane];
                    furthest[lane] = furthest[lane].max(back);
                    weights[lane] = power(back.clamp(-POWERS, POWERS));
                }
                for lane in 0..W {
                    inverses[lane] = 1.0 / norms[lane];
                }
                plain.add(&weights, [&r, &errors, &b]);
                by_rows.add(&inverses, [&r, &errors, &b]);
            }
            let mut done = true;
            for lane in (0..W).filter(|&lane| asked[lane]) {
                let judged = &mut judged[lane];
                if judged.met {
                    continue;
                }
                let unit = power((-units.largest[lane]).clamp(-POWERS, POWERS));
                let (size, of_r) = (plain.b[lane].sqrt(), plain.r[lane].sqrt());
                let threshold = (goal.relative * size).max(goal.absolute * unit);
                let part = threshold / size;
                let of_rows = part * by_rows.b[lane].sqrt();
                let excess_of_rows = if goal.row_wise { by_rows.r[lane].sqrt() / of_rows } else { 0.0 };
                judged.relative = of_r / size;
                judged.excess = (of_r / threshold).max(excess_of_rows);
                judged.met = furthest[lane] <= POWERS
                    && size > 0.0
                    && plain.is_met(lane, threshold)
                    && (!goal.row_wise || by_rows.is_met(lane, of_rows));
                done &= judged.met;
            }
            // A step of refinement needs the accurate residual too.
            if done {
                break;
            }
        }
        judged
    }

    /// y += A^-1 r for the systems that are `asked` for: the norms of these steps relative to those of y.
    #[inline(always)]
    fn correct(&mut self, system: &mut impl Solve<D, W>, asked: &[bool; W]) -> [f64; W] {
        system.solve(&self.r, &mut self.step);
        let (mut of_y, mut of_step) = ([0.0; W], [0.0; W]);
        for (y, step) in self.y.iter_mut().zip(&self.step) {
            for lane in 0..W {
                of_y[lane] += y[lane].abs2();
                of_step[lane] += step[lane].abs2();
                y[lane] = if asked[lane] { y[lane] + step[lane] } else { y[lane] };
            }
        }
        std::array::from_fn(|lane| (of_step[lane] / of_y[lane]).sqrt())
    }

    /// Writes x of one system.
    #[inline(always)]
    fn give<T: Scalar<Double = D>>(&self, lane: usize, units: &Units<W>, x: &mut [T], stride: usize) {
        let down = D::from_f64(power(-units.shift[lane]));
        for (i, y) in self.y.iter().enumerate() {
            x[i * stride] = T::from_double(y[lane] * down);
        }
    }

    /// Solves the systems that are `open` for one right-hand side each, of which b and x begin `apart` numbers apart.
    #[inline(always)]
    pub(super) fn solve<T: Scalar<Double = D>>(
        &mut self,
        system: &mut impl Solve<D, W>,
        (b, x, stride, apart): (&[T], &mut [T], usize, usize),
        goal: &BatchGoal,
        mut open: [bool; W],
    ) -> [Found; W] {
        let mut found = [None; W];
        let mut units = Units { shift: [0; W], largest: [0; W] };
        for lane in 0..W {
            if open[lane] {
                match self.take_b(lane, &b[lane * apart..], stride) {
                    Some(Some([shift, largest])) => {
                        (units.shift[lane], units.largest[lane]) = (shift, largest);
                        continue;
                    }
                    Some(None) => {
                        let x = x[lane * apart..].iter_mut().step_by(stride);
                        x.take(self.y.len()).for_each(|x| *x = T::default());
                        found[lane] = Some((0, 0.0));
                    }
                    None => (),
                }
                open[lane] = false;
            }
            self.b.iter_mut().for_each(|b| b[lane] = D::default());
        }
        if !open.contains(&true) {
            return found;
        }
        let scale = units.shift.map(|shift| D::from_f64(power(shift)));
        for b in &mut self.b {
            for lane in 0..W {
                b[lane] *= scale[lane];
            }
        }
        system.solve(&self.b, &mut self.y);
        let (mut last, mut missed) = ([f64::INFINITY; W], [false; W]);
        for steps in 0..=REFINEMENTS {
            let sound = self.round::<T>(&units);
            let judged = self.judge(system.matrix(), &units, goal, (&open, &[false, true]));
            for lane in 0..W {
                if !open[lane] {
                    continue;
                }
                let Judged { met, relative, excess } = judged[lane];
                // A step that does not halve what is missing leads nowhere.
                let falls = excess < 0.5 * last[lane];
                last[lane] = excess;
                open[lane] = sound[lane] && !met && falls;
                missed[lane] = sound[lane] && !met && !falls;
                if sound[lane] && met {
                    found[lane] = Some((steps, relative));
                    self.give(lane, &units, &mut x[lane * apart..], stride);
                }
            }
            if !open.contains(&true) {
                break;
            }
            self.correct(system, &open);
        }
        if size_of::<T::Real>() < size_of::<f64>() && missed.contains(&true) {
            self.limit(system, (x, stride, apart), (&units, goal), missed, &mut found);
        }
        found
    }

    /// The x of systems in single precision of which refinement led nowhere. If the x that was not rounded meets the
    /// goal, rounding alone prevents a better one, and how far another step moves it tells how many digits are right.
    #[inline(always)]
    fn limit<T: Scalar<Double = D>>(
        &mut self,
        system: &mut impl Solve<D, W>,
        (x, stride, apart): (&mut [T], usize, usize),
        (units, goal): (&Units<W>, &BatchGoal),
        mut missed: [bool; W],
        found: &mut [Found; W],
    ) {
        // Residuals are accurate in any case, so that bits do not depend on what other systems need.
        let accurate: &[bool] = &[true];
        self.judge(system.matrix(), units, goal, (&missed, accurate));
        self.correct(system, &missed);
        let unrounded = self.judge(system.matrix(), units, goal, (&missed, accurate));
        (0..W).for_each(|lane| missed[lane] &= unrounded[lane].met);
        let moved = self.correct(system, &missed);
        let sound = self.round::<T>(units);
        let judged = self.judge(system.matrix(), units, goal, (&missed, accurate));
        for lane in (0..W).filter(|&lane| missed[lane]) {
            let error = moved[lane].max(SINGLE);
            if sound[lane] && error <= 0.1 {
                let tenths = (-10.0 * error.log10()) as u32;
                let steps = if judged[lane].met { REFINEMENTS } else { LIMITED | tenths };
                found[lane] = Some((steps, judged[lane].relative));
                self.give(lane, units, &mut x[lane * apart..], stride);
            }
        }
    }
}

/// Absolute values. Numbers whose squares vanish count as [`VANISHED`] does.
#[inline(always)]
fn absolutes<D: Scalar<Real = f64>, const W: usize>(values: &[D; W]) -> [f64; W] {
    let mut absolutes = [0.0; W];
    for lane in 0..W {
        absolutes[lane] = if D::COMPLEX { values[lane].abs2().sqrt() } else { values[lane].re().abs() };
    }
    absolutes
}
