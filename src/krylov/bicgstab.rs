//! BiCGSTAB: square systems in short recurrences, where the basis of GMRES would take too much memory.
//!
//! From r = b - A x, a shadow residual r_0 = r, p = r, rho = r_0.r:
//!
//! ```text
//! repeat   p^ = M^-1 p,  v = A p^,  alpha = rho / r_0.v
//!          s = r - alpha v                                           stored in r
//!          s^ = M^-1 s,  t = A s^,  omega = t.s / t.t
//!          x = x + alpha p^ + omega s^,  r = s - omega t             stop when r.r is small
//!          beta = (r_0.r / rho) (alpha / omega),  rho = r_0.r
//!          p = r + beta (p - omega v)
//! ```
//!
//! H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric
//! linear systems, SIAM J. Sci. Stat. Comput. 13 (1992), with right preconditioning. An iteration takes two products
//! with A; it reads the matrix twice, moves 22 vectors, and applies a preconditioner M twice.

use super::SolveOptions;
use super::driver::Krylov;
use super::method::{Aim, Method, Room, System, Vectors, lengthen};
use crate::backend::{
    Alone, CgStatus, Coefficient, Communicator, InnerProduct, Inverse, LinearUpdate, ScalarLayout,
    ScalarProgram, Slot, Space, VectorOps,
};
use crate::error::Result;
use crate::scalar::Scalar;
use Coefficient::{At, Minus, One, Zero};

/// A BiCGSTAB solver for n unknowns, with the memory it needs: keep it, and solve many times.
///
/// ```
/// use residua::{Csr, Host, krylov::{BiCgStab, SolveOptions}, precondition::Identity};
/// use std::ops::ControlFlow;
/// // | 2  1 |
/// // |-1  3 | x = (3, 2)
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, -1.0, 3.0])?;
/// let mut bicgstab = BiCgStab::new(&Host, 2, SolveOptions::default())?;
/// let mut x = vec![0.0; 2];
/// let report = bicgstab.solve(&a, &Identity, &[3.0, 2.0], &mut x, |_, _| ControlFlow::Continue(()))?;
/// assert!(report.outcome.is_converged() && (x[0] - 1.0_f64).abs() < 1e-8);
/// # Ok::<(), residua::Error>(())
/// ```
pub type BiCgStab<T, B, C = Alone> = Krylov<T, B, BiConjugateGradients<T, B>, C>;

impl<T: Scalar, B: VectorOps> BiCgStab<T, B> {
    /// A solver for `n` unknowns: 6 n scalars, and 2 n more with a preconditioner that is not the identity.
    ///
    /// # Errors
    /// If the tolerance is negative, infinite or NaN, and if memory runs out.
    pub fn new(backend: &B, n: usize, options: SolveOptions) -> Result<Self> {
        Krylov::with_method(Space::new(backend.clone()), BiConjugateGradients::new(backend, n)?, options)
    }
}

/// Where each scalar of the recurrence is stored in the state.
#[derive(Debug, Clone, Copy)]
struct Slots {
    rho: Slot,
    /// r_0.v
    rv: Slot,
    /// t.s and t.t
    ts: Slot,
    tt: Slot,
    /// r_0.r and r.r
    rho_next: Slot,
    rr: Slot,
    alpha: Slot,
    omega: Slot,
    beta: Slot,
    /// -beta omega
    of_v: Slot,
}

/// The recurrence of BiCGSTAB.
#[derive(Debug)]
pub struct BiConjugateGradients<T: Scalar, B: VectorOps> {
    slots: Slots,
    layout: ScalarLayout,
    /// Programs that compute alpha, omega, and beta with the norm of the residual.
    along_p: ScalarProgram<B>,
    along_s: ScalarProgram<B>,
    turn: ScalarProgram<B>,
    x: B::Vec<T>,
    r: B::Vec<T>,
    shadow: B::Vec<T>,
    p: B::Vec<T>,
    v: B::Vec<T>,
    t: B::Vec<T>,
    /// p^ = M^-1 p and s^ = M^-1 s; empty without a preconditioner.
    p_hat: B::Vec<T>,
    s_hat: B::Vec<T>,
    room: Room<T, B>,
    state: B::Vec<T>,
}

impl<T: Scalar, B: VectorOps> BiConjugateGradients<T, B> {
    /// The recurrence for `n` unknowns.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(backend: &B, n: usize) -> Result<Self> {
        let layout = ScalarLayout::new();
        let slot = || layout.slot(0.0);
        let slots = Slots {
            rho: slot(),
            rv: slot(),
            ts: slot(),
            tt: slot(),
            rho_next: slot(),
            rr: slot(),
            alpha: slot(),
            omega: slot(),
            beta: slot(),
            of_v: slot(),
        };
        let along_p = layout.program(backend, |p| {
            p.begin();
            let rv = p.get(slots.rv);
            p.need_finite(rv);
            let alpha = p.get(slots.rho) / rv;
            p.fail(p.constant(1.0) - alpha.is_finite(), CgStatus::Breakdown);
            p.set(slots.alpha, alpha);
        })?;
        let along_s = layout.program(backend, |p| {
            let (ts, tt) = (p.get(slots.ts), p.get(slots.tt).re());
            p.need_finite(tt);
            // omega = 0 if s = 0 (t = 0 then): x is already the solution after the first half of the iteration.
            let some = p.constant(0.0).less_than(tt);
            p.set(slots.omega, (ts / tt).where_else(some, p.constant(0.0)));
        })?;
        let turn = layout.program(backend, |p| {
            let (rho, rho_next) = (p.get(slots.rho), p.get(slots.rho_next));
            let (alpha, omega) = (p.get(slots.alpha), p.get(slots.omega));
            let beta = rho_next / rho * (alpha / omega);
            p.set(slots.beta, beta);
            p.set(slots.of_v, -(beta * omega));
            p.set(slots.rho, rho_next);
            p.residual(p.get(slots.rr).re());
            p.fail(p.constant(1.0) - beta.is_finite(), CgStatus::Breakdown);
        })?;
        let vector = || backend.zeros::<T>(n);
        Ok(Self {
            slots,
            along_p,
            along_s,
            turn,
            x: vector()?,
            r: vector()?,
            shadow: vector()?,
            p: vector()?,
            v: vector()?,
            t: vector()?,
            p_hat: backend.zeros(0)?,
            s_hat: backend.zeros(0)?,
            room: Room::new(backend)?,
            state: backend.zeros(layout.len())?,
            layout,
        })
    }

    fn is_preconditioned(&self) -> bool {
        B::len(&*self.p_hat) > 0
    }
}

impl<T: Scalar, B: VectorOps, C: Communicator<B>> Method<T, B, C> for BiConjugateGradients<T, B> {
    type Word = T;

    fn name(&self) -> &'static str {
        "bicgstab"
    }

    fn shape(&self) -> (usize, usize) {
        let n = B::len(&*self.x);
        (n, n)
    }

    fn fit(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<()> {
        let n = B::len(&*self.x);
        for buffer in [&mut self.p_hat, &mut self.s_hat] {
            if matches!(system.m.fused(), Some(Inverse::Identity)) {
                *buffer = space.backend().zeros(0)?;
            } else {
                lengthen(space.backend(), buffer, n)?;
            }
        }
        self.room.fit(space.backend(), system.m)
    }

    fn vectors(&mut self) -> Vectors<'_, T, B> {
        Vectors { steps: &mut self.x, residual: &mut self.r, scratch: &mut self.t }
    }

    fn start(&mut self, space: &Space<B, C>, _system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()> {
        let (backend, rho) = (space.backend(), self.slots.rho.place());
        backend.write(&self.layout.initial::<T>(aim.square), &mut self.state)?;
        backend.fill(T::zero(), &mut self.x)?;
        backend.copy(&self.r, &mut self.shadow)?;
        backend.copy(&self.r, &mut self.p)?;
        space.dot(&self.r, &self.r, B::part_mut(&mut self.state, rho..rho + 1))
    }

    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, _step: usize) -> Result<()> {
        let (preconditioned, backend) = (self.is_preconditioned(), space.backend());
        let Self { slots, x, r, shadow, p, v, t, p_hat, s_hat, room, state, .. } = self;
        let product = |left, right, to| InnerProduct { left, right, to };
        // p^ = M^-1 p, v = A p^, alpha
        if preconditioned {
            room.apply(backend, system.m, p, p_hat)?;
        }
        let along: &B::Slice<T> = if preconditioned { p_hat } else { p };
        system.a.apply(backend, along, v)?;
        let products = &[product(0, 1, slots.rv)];
        let update = LinearUpdate { inputs: &[&**shadow, v], outputs: &mut [], coefficients: &[], products };
        space.linear_update(update, state, Some(&self.along_p))?;
        // s = r - alpha v
        let (outputs, coefficients) = (&mut [&mut **r], &[Minus(slots.alpha), One]);
        let update = LinearUpdate { inputs: &[&**v], outputs, coefficients, products: &[] };
        space.linear_update(update, state, None)?;
        // s^ = M^-1 s, t = A s^, omega
        if preconditioned {
            room.apply(backend, system.m, r, s_hat)?;
        }
        system.a.apply(backend, if preconditioned { s_hat } else { r }, t)?;
        let products = &[product(0, 1, slots.ts), product(0, 0, slots.tt)];
        let update = LinearUpdate { inputs: &[&**t, r], outputs: &mut [], coefficients: &[], products };
        space.linear_update(update, state, Some(&self.along_s))?;
        // x = x + alpha p^ + omega s^, r = s - omega t, r_0.r, r.r
        let (alpha, omega) = (At(slots.alpha), At(slots.omega));
        if preconditioned {
            space.linear_update(
                LinearUpdate {
                    inputs: &[along, s_hat, t, shadow],
                    outputs: &mut [x, r],
                    #[rustfmt::skip]
                    coefficients: &[
                        alpha, omega, Zero, Zero, One, Zero,
                        Zero, Zero, Minus(slots.omega), Zero, Zero, One,
                    ],
                    products: &[product(3, 5, slots.rho_next), product(5, 5, slots.rr)],
                },
                state,
                Some(&self.turn),
            )?;
        } else {
            space.linear_update(
                LinearUpdate {
                    inputs: &[along, t, shadow],
                    outputs: &mut [x, r],
                    #[rustfmt::skip]
                    coefficients: &[
                        alpha, Zero, Zero, One, omega,
                        Zero, Minus(slots.omega), Zero, Zero, One,
                    ],
                    products: &[product(2, 4, slots.rho_next), product(4, 4, slots.rr)],
                },
                state,
                Some(&self.turn),
            )?;
        }
        // p = r + beta p - beta omega v
        let (outputs, coefficients) = (&mut [&mut **p], &[One, At(slots.of_v), At(slots.beta)]);
        space.linear_update(
            LinearUpdate { inputs: &[r, v], outputs, coefficients, products: &[] },
            state,
            None,
        )
    }

    fn message(&self) -> &B::Slice<T> {
        &self.state
    }

    fn carries_residual(&self) -> bool {
        true
    }

    fn bytes_per_iteration(&self, System { a, m }: System<'_, T, B>) -> usize {
        let vector = B::len(&*self.x) * size_of::<T>();
        let preconditioner = if self.is_preconditioned() { 2 * m.bytes() + vector } else { 0 };
        2 * a.bytes() + 18 * vector + preconditioner
    }
}
