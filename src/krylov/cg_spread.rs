//! Conjugate gradients on vectors that are spread over several parts.
//!
//! The recurrence of [`cg`](super::cg), with its sums taken through a space: partial sums, the sum over all parts, and
//! then the scalars. Where vectors are whole, the fused steps of a backend do the same in fewer passes.
//!
//! An iteration moves the matrix and 10 vectors: q = A p; r, q for r and r.r; x, p and r or z for x and p.

use super::driver::Krylov;
use super::method::{Aim, Method, Room, System, Vectors, lengthen};
use crate::backend::{
    CgStatus, Coefficient, Communicator, InnerProduct, Inverse, LinearUpdate, ScalarLayout, ScalarProgram,
    Slot, Space, VectorOps,
};
use crate::error::Result;
use crate::scalar::Scalar;
use Coefficient::{At, Minus, One, Zero};

/// A conjugate gradient solver on the vectors of any space.
pub type SpreadCg<T, B, C> = Krylov<T, B, SpreadConjugateGradients<T, B>, C>;

/// Places of the recurrence's scalars.
#[derive(Debug, Clone, Copy)]
struct Slots {
    pq: Slot,
    rr: Slot,
    rz: Slot,
    rho: Slot,
    alpha: Slot,
    beta: Slot,
}

/// The recurrence of conjugate gradients in linear updates.
#[derive(Debug)]
pub struct SpreadConjugateGradients<T: Scalar, B: VectorOps> {
    slots: Slots,
    layout: ScalarLayout,
    /// rho at the start; alpha; beta.
    begin: ScalarProgram<B>,
    along: ScalarProgram<B>,
    turn: ScalarProgram<B>,
    x: B::Vec<T>,
    r: B::Vec<T>,
    p: B::Vec<T>,
    q: B::Vec<T>,
    /// Empty without a preconditioner.
    z: B::Vec<T>,
    room: Room<T, B>,
    state: B::Vec<T>,
}

impl<T: Scalar, B: VectorOps> SpreadConjugateGradients<T, B> {
    /// For `n` unknowns of this part: 4 n scalars, and n more with a preconditioner that is not the identity.
    ///
    /// # Errors
    /// Without memory.
    pub fn new(backend: &B, n: usize) -> Result<Self> {
        let layout = ScalarLayout::new();
        let slot = || layout.slot(0.0);
        let slots = Slots { pq: slot(), rr: slot(), rz: slot(), rho: slot(), alpha: slot(), beta: slot() };
        let begin = layout.program(backend, |p| p.set(slots.rho, p.get(slots.rz).re()))?;
        let along = layout.program(backend, |p| {
            p.begin();
            let pq = p.get(slots.pq);
            p.need_finite(pq);
            p.set(Slot::CURVATURE, pq.re());
            let positive = p.constant(0.0).less_than(pq);
            p.fail(p.constant(1.0) - positive, CgStatus::NotPositiveDefinite);
            let alpha = p.get(slots.rho) / pq.re();
            p.fail(p.constant(1.0) - alpha.is_finite(), CgStatus::Breakdown);
            p.set(slots.alpha, alpha);
        })?;
        let turn = layout.program(backend, |p| {
            let rz = p.get(slots.rz).re();
            p.set(slots.beta, rz / p.get(slots.rho));
            p.set(slots.rho, rz);
            p.residual(p.get(slots.rr).re());
            // Zero is where r is: then x still has to take its last step.
            p.fail(rz.less_than(p.constant(0.0)), CgStatus::Breakdown);
            p.fail(p.constant(1.0) - rz.is_finite(), CgStatus::Breakdown);
        })?;
        let vector = || backend.zeros::<T>(n);
        Ok(Self {
            slots,
            begin,
            along,
            turn,
            x: vector()?,
            r: vector()?,
            p: vector()?,
            q: vector()?,
            z: backend.zeros(0)?,
            room: Room::new(backend)?,
            state: backend.zeros(layout.len())?,
            layout,
        })
    }
}

impl<T: Scalar, B: VectorOps, C: Communicator<B>> Method<T, B, C> for SpreadConjugateGradients<T, B> {
    type Word = T;

    fn name(&self) -> &'static str {
        "cg"
    }

    fn shape(&self) -> (usize, usize) {
        let n = B::len(&*self.x);
        (n, n)
    }

    fn last_iterate_counts(&self) -> bool {
        true
    }

    fn fit(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<()> {
        if matches!(system.m.fused(), Some(Inverse::Identity)) {
            self.z = space.backend().zeros(0)?;
        } else {
            lengthen(space.backend(), &mut self.z, B::len(&*self.x))?;
        }
        self.room.fit(space.backend(), system.m)
    }

    fn vectors(&mut self) -> Vectors<'_, T, B> {
        Vectors { steps: &mut self.x, residual: &mut self.r, scratch: &mut self.q }
    }

    fn start(&mut self, space: &Space<B, C>, system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()> {
        let backend = space.backend();
        backend.write(&self.layout.initial::<T>(aim.square), &mut self.state)?;
        backend.fill(T::zero(), &mut self.x)?;
        if B::len(&*self.z) > 0 {
            self.room.apply(backend, system.m, &self.r, &mut self.z)?;
        }
        let z = if B::len(&*self.z) > 0 { &self.z } else { &self.r };
        backend.copy(z, &mut self.p)?;
        let rz = self.slots.rz.place();
        space.dot(&self.r, z, B::part_mut(&mut self.state, rz..rz + 1))?;
        backend.run_program(&self.begin, &mut self.state)
    }

    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, _step: usize) -> Result<()> {
        let Self { slots, x, r, p, q, z, room, state, .. } = self;
        let place = |slot: Slot| slot.place()..slot.place() + 1;
        // q = A p, alpha
        space.apply_dot(system.a, p, q, B::part_mut(state, place(slots.pq)))?;
        space.backend().run_program(&self.along, state)?;
        // r = r - alpha q, r.r
        let product = |left, right, to| InnerProduct { left, right, to };
        let both = [product(1, 1, slots.rr), product(1, 1, slots.rz)];
        let plain = B::len(&**z) == 0;
        let products = if plain { &both[..] } else { &both[..1] };
        let (outputs, coefficients) = (&mut [&mut **r], &[Minus(slots.alpha), One]);
        let update = LinearUpdate { inputs: &[&**q], outputs, coefficients, products };
        space.linear_update(update, state, if plain { Some(&self.turn) } else { None })?;
        // z = M^-1 r, beta
        if !plain {
            room.apply(space.backend(), system.m, r, z)?;
            space.dot(r, z, B::part_mut(state, place(slots.rz)))?;
            space.backend().run_program(&self.turn, state)?;
        }
        // x = x + alpha p, p = z + beta p
        let outputs = &mut [&mut **x, &mut **p];
        let coefficients = &[Zero, One, At(slots.alpha), One, Zero, At(slots.beta)];
        let inputs = &[if plain { &**r } else { &**z }];
        let update = LinearUpdate { inputs, outputs, coefficients, products: &[] };
        space.linear_update(update, state, None)
    }

    fn message(&self) -> &B::Slice<T> {
        &self.state
    }

    fn carries_residual(&self) -> bool {
        true
    }

    fn bytes_per_iteration(&self, System { a, m }: System<'_, T, B>) -> usize {
        let vector = B::len(&*self.x) * size_of::<T>();
        a.bytes() + 8 * vector + if B::len(&*self.z) > 0 { m.bytes() + 2 * vector } else { 0 }
    }
}
