//! The conclusions about x and A: accuracy, condition number and singularity.

use super::super::condition::{forward_error, inverse_norm, scaled_condition};
use super::super::factor::Factor;
use super::super::goal::{Goal, Weights};
use super::super::inverse::{column_units, is_inverse};
use super::super::null::{NULL_UNITS, nearest_to_null};
use super::super::options::Kind;
use super::super::refine::{ALMOST, EVEN, LEAST, Refined, is_at_rounding, is_orthogonal, largest, residual};
use super::super::report::{DirectReport, Reason, Singularity};
use super::super::steps::caught;
use super::Direct;
use crate::direct::Factorable;
use crate::scalar::Real;
use crate::work;
use num_traits::Float;

impl<T: Factorable> Direct<T> {
    /// Estimates the condition number ||A||_1 ||A^-1||_1 of the caller's matrix, if the factor allows it; the matrix
    /// that was factorised may be scaled.
    pub(crate) fn condition_of(&mut self, weights: &Weights) -> Option<f64> {
        if !self.is_of_a() {
            return None;
        }
        if weights.plain.is_none() {
            return self.condition();
        }
        let factor = self.factor.as_ref()?;
        caught(|| Ok(scaled_condition((&self.a, factor), weights))).unwrap_or_default()
    }

    /// Returns whether the factor is one of A itself; perturbed pivots may make it one of another matrix.
    fn is_of_a(&self) -> bool {
        let Some(factor) = &self.factor else { return true };
        let in_units =
            || column_units(&self.a).into_iter().map(|unit| T::from_f64(unit.max(f64::MIN_POSITIVE).recip()));
        factor.made_up() == 0
            || caught(|| Ok(is_inverse(&self.a, factor, &in_units().collect::<Vec<T>>()))).unwrap_or_default()
    }

    /// The condition number of the matrix that was factorised.
    fn condition(&mut self) -> Option<f64> {
        if self.inverse.is_none() {
            let n = self.a.columns();
            self.inverse =
                self.factor.as_ref().map(|factor| caught(|| Ok(inverse_norm(factor, n))).unwrap_or_default());
        }
        self.inverse.flatten().map(|inverse| inverse * self.norms.0)
    }

    /// ||A|| ||x|| + ||b|| in the maximum norm: the backward error is ||r|| divided by this.
    fn scale_of_residuals(&self, x: &[T], b: &[T]) -> f64 {
        self.norms.1 * largest(x) + largest(b)
    }

    /// Returns whether ||A^H r|| shows that no x has a smaller residual, and r is larger than rounding makes it.
    pub(super) fn is_nearest(&self, refined: &Refined<T>, b: &[T], goal: &Goal<'_>, tolerance: f64) -> bool {
        let is_even = goal.weights.are_even(EVEN);
        let small = (LEAST * tolerance).max(if is_even { refined.normal_rounding } else { 0.0 });
        let least = goal.norm * if is_even { 1.0 } else { ALMOST };
        let unit = <T::Real as Float>::epsilon().to_f64();
        let weight = self.scale_of_residuals(&refined.x, b);
        refined.normal_of_x.is_some_and(|normal| normal <= small)
            && refined.norm > least
            && refined.largest > ALMOST * unit * weight
    }

    /// Returns whether some b have no solution: A is not square, or was shown to be singular.
    pub(super) fn may_have_no_solution(&mut self) -> bool {
        self.a.rows() != self.a.columns() || self.is_singular()
    }

    /// Returns whether A is singular, structurally or up to rounding.
    pub(super) fn is_singular(&mut self) -> bool {
        self.singularity().is_some()
    }

    /// The proof that a square A is singular. A null vector is searched for with the current factor, unless one was
    /// found before.
    fn singularity(&mut self) -> Option<Singularity> {
        if self.a.rows() != self.a.columns() {
            return None;
        }
        if let Some(rows) = self.structures.matched.as_ref().filter(|rows| rows.matched < self.a.rows()) {
            return Some(Singularity::Structural { rank: rows.matched });
        }
        if let Some(factor) = &self.factor
            && self.null.is_none_or(|ratio| ratio > NULL_UNITS)
        {
            let ratio = caught(|| Ok(nearest_to_null(&self.a, factor))).unwrap_or(f64::INFINITY);
            self.null = Some(self.null.unwrap_or(f64::INFINITY).min(ratio));
        }
        self.null.filter(|ratio| *ratio <= NULL_UNITS).map(|ratio| Singularity::NullVector { ratio })
    }

    pub(super) fn is_structurally_singular(&self) -> bool {
        self.structures.matched.as_ref().is_some_and(|rows| rows.matched < self.a.rows())
    }

    pub(super) fn singular(&self) -> Reason {
        match &self.structures.matched {
            Some(rows) if rows.matched < self.a.rows() => {
                Reason::StructurallySingular { rank: rows.matched, unmatched: rows.unmatched.clone() }
            }
            _ => Reason::NumericallySingular,
        }
    }

    pub(super) fn report(
        &mut self,
        best: Refined<T>,
        kind: Kind,
        b: &[T],
        x: &mut [T],
        (goal, tolerance): (&Goal<'_>, f64),
        solve_seconds: f64,
    ) -> DirectReport {
        x.copy_from_slice(&best.x);
        let size = goal.norm_of(b);
        let relative = |r: f64| if size > 0.0 { r / size } else { r };
        let solved = best.residual <= goal.norm;
        let weight = self.scale_of_residuals(x, b);
        let backward_error = if weight > 0.0 { best.largest / weight } else { 0.0 };
        let unit = <T::Real as Float>::epsilon().to_f64();
        let normal_residual = best.normal_of_x.filter(|_| {
            let part = LEAST * tolerance;
            self.is_nearest(&best, b, goal, tolerance)
                && (self.a.rows() != self.a.columns() || self.is_singular())
                && is_orthogonal((&self.a, b, x), goal.weights.plain.as_deref(), part)
        });
        let told = |told: &Reason| self.reasons.iter().any(|(_, reason)| reason == told);
        let (overflowed, stopped) =
            (told(&Reason::NotFinite) && kind == Kind::Triangular, told(&Reason::Stopped));
        let given_up = solved || normal_residual.is_some() || overflowed || stopped;
        let singularity = if solved || overflowed || stopped { None } else { self.singularity() };
        // If no kind could improve x, and its componentwise backward error is at the rounding level, it has reached the
        // limit of the precision.
        let has_x = best.residual.is_finite() && best.x.iter().any(|x| *x != T::default());
        let r = (!given_up && singularity.is_none() && has_x).then(|| {
            let mut r = vec![T::default(); b.len()];
            residual(&self.a, b, x, None, &mut r);
            r
        });
        let limited = r.filter(|r| is_at_rounding(&self.a, b, x, r));
        let precision_limited = limited.is_some();
        let wished = self.options.condition || precision_limited;
        let condition = if wished && !work::is_asked() { self.condition_of(goal.weights) } else { None };
        // A condition number that the factor cannot give may be infinite.
        let unknown = solved && wished && condition.is_none() && !work::is_asked();
        let null = self.null;
        let singularity = if unknown { self.singularity() } else { singularity };
        // What was found here must not change the next solve.
        self.null = if unknown { null } else { self.null };
        let mut digits = condition.map(|c| (-(c * backward_error.max(unit)).log10()).max(0.0));
        if let (Some(factor), Some(r)) = (&self.factor, limited) {
            let error = caught(|| Ok(forward_error((&self.a, factor), b, x, &r))).unwrap_or_default();
            let by_components = error.map(|error| (-error.max(unit).log10()).max(0.0));
            digits = digits.into_iter().chain(by_components).reduce(f64::max);
            if !caught(|| Ok(is_inverse(&self.a, factor, x))).unwrap_or_default() {
                // Unperturbed pivots may be rounding errors too, with the same effect.
                digits = Some(0.0);
            }
        }
        let factor = self.factor.as_ref();
        self.second = best.second;
        DirectReport {
            solved,
            precision_limited,
            singularity,
            kind,
            residual_norm: best.norm,
            relative_residual: relative(best.norm),
            two_part_residual: relative(best.two_part),
            backward_error,
            refinements: best.steps,
            iterations: best.iterations,
            condition,
            digits,
            order: factor.and_then(Factor::order),
            rank: factor.and_then(Factor::rank),
            perturbed: factor.map_or(0, Factor::made_up),
            normal_residual,
            minimum_norm: factor.is_some_and(Factor::is_minimum_norm),
            factor_seconds: self.seconds,
            solve_seconds,
            factor_bytes: factor.map_or(0, |factor| factor.bytes),
            reasons: self.reasons.clone(),
        }
    }
}
