//! Certificates: b - A x is recomputed to decide whether x is the solution, to measure how far the recurrence has
//! drifted, and to restart from it.

use super::{Certificate, Driver, POWER_STEPS, Solve};
use crate::backend::{Communicator, Op, VectorOps};
use crate::direct::excused;
use crate::error::Result;
use crate::krylov::Outcome;
use crate::krylov::judge::{Certified, Judgement, NEARLY};
use crate::krylov::method::Vectors;
use crate::krylov::units::Units;
use crate::lock::lock;
use crate::scalar::{Real, Scalar};

impl<T: Scalar, B: VectorOps, W: Scalar<Real = T::Real>, C: Communicator<B>> Driver<'_, '_, '_, T, B, W, C> {
    /// Computes scratch = b - A x, scaled, for the x in `steps`. The least-squares criterion is checked only when a
    /// recurrence has ended (`ends`).
    pub(super) fn certify<F>(
        &mut self,
        b: &B::Slice<T>,
        solve: &mut Solve<'_, T, F>,
        ends: bool,
    ) -> Result<Certificate> {
        let mut method = lock(self.method);
        let Vectors { steps, scratch, .. } = method.vectors();
        self.asked = false;
        let (units, a) = (&solve.units, self.system.a);
        let (residual, length) = if ends {
            units.residual_and_length(self.space, a, b, steps, scratch, self.squares)?
        } else {
            (units.residual(self.space, a, b, steps, scratch, self.square)?, None)
        };
        let mut now = Certificate { residual, measure: residual, length, met: None };
        let meets = residual <= solve.threshold;
        if meets || (ends && self.judge.is_some() && residual <= NEARLY * solve.threshold) {
            let relative = if residual == 0.0 { 0.0 } else { residual / units.b_norm };
            let certified =
                Certified { x: steps, r: scratch, scale: units.scale().to_f64(), relative, meets };
            now.met = match &mut self.judge {
                None => Some(Outcome::Converged),
                Some(judge) => match judge(certified)? {
                    Judgement::Met => Some(Outcome::Converged),
                    _ if !meets => None,
                    Judgement::Missed if self.went_on => {
                        self.asked = true;
                        None
                    }
                    Judgement::Missed => Some(Outcome::Stagnated),
                    Judgement::More(relative) => {
                        solve.threshold = relative * units.b_norm;
                        self.asked = true;
                        None
                    }
                },
            };
        } else if residual.is_finite() && ends && method.is_least_squares() {
            let (backend, op) = (self.space.backend(), Op::ConjugateTranspose);
            a.product_op(backend, op, T::one(), method.vectors().scratch, T::zero(), self.gradient)?;
            now.measure = units.norm_of(self.space, self.gradient, self.square)?;
            drop(method);
            let norm_of_a = self.norm_of_a(now.measure, units)?;
            let rounding =
                excused::<T>((norm_of_a * length.unwrap_or(0.0) + units.b_norm, units.b_norm), residual);
            let small = now.measure <= solve.gradient.max(rounding) * norm_of_a * residual;
            now.met = small.then_some(Outcome::LeastSquares);
        }
        Ok(now)
    }

    /// A lower bound of ||A||, by steps of the power method on A^H A that start from A^H r. That vector is in
    /// `gradient`, which is overwritten.
    fn norm_of_a(&mut self, gradient: f64, units: &Units<T::Real>) -> Result<f64> {
        if let Some(norm) = self.norm_of_a {
            return Ok(norm);
        }
        let (backend, a) = (self.space.backend(), self.system.a);
        let (mut largest, mut length) = (0.0_f64, gradient);
        for _ in 0..POWER_STEPS {
            if !(length > 0.0 && length.is_finite()) {
                break;
            }
            // Scaled to about unit norm, so that nothing overflows.
            let scale = T::from_f64(units.unit.to_f64() / length);
            backend.scale_in_place(scale, self.gradient)?;
            let before = units.norm_of(self.space, self.gradient, self.square)?;
            a.apply(backend, self.gradient, self.image)?;
            let image = units.norm_of(self.space, self.image, self.square)?;
            largest = largest.max(image / before);
            let op = Op::ConjugateTranspose;
            a.product_op(backend, op, T::one(), self.image, T::zero(), self.gradient)?;
            length = units.norm_of(self.space, self.gradient, self.square)?;
        }
        self.norm_of_a = Some(largest);
        Ok(largest)
    }

    /// The distance of the recurrence's residual from the certified one: ||scratch - r||, or the difference of their
    /// norms if the recurrence keeps no residual vector.
    pub(super) fn drift(&mut self, certified: f64, units: &Units<T::Real>) -> Result<f64> {
        let mut method = lock(self.method);
        if !method.carries_residual() {
            return Ok((certified - self.last).abs());
        }
        let Vectors { residual, scratch, .. } = method.vectors();
        self.space.backend().axpby(-T::one(), residual, T::one(), scratch)?;
        units.norm_of(self.space, scratch, self.square)
    }

    /// Computes r = b - A x, scaled, for the recurrence to start from; in more than working precision if the operator
    /// can.
    pub(super) fn restart(&mut self, b: &B::Slice<T>, x: &B::Slice<T>, units: &Units<T::Real>) -> Result<()> {
        let mut method = lock(self.method);
        let scale = T::from_real(units.scale());
        self.system.a.accurate_residual(self.space.backend(), scale, b, x, method.vectors().residual)?;
        Ok(())
    }
}
