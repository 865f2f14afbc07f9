//! MINRES, for Hermitian systems, definite or not.
//!
//! For A Hermitian and M near A, Hermitian positive definite, from v_1 = b - A x, z_1 = M^-1 v_1, gamma_1 =
//! (z_1.v_1)^(1/2), eta = gamma_1, c = 1, s = 0:
//!
//! ```text
//! repeat   q = A z,  delta = z.q / gamma^2                                   the Lanczos process, z not normalised
//!          v' = q / gamma - (delta / gamma) v - (gamma / gamma_before) v_before
//!          z' = M^-1 v',  gamma' = (z'.v')^(1/2)
//!          rotate the new column of the tridiagonal matrix: alpha_1 on its diagonal, alpha_2 and alpha_3 above
//!          w' = (z / gamma - alpha_3 w_before - alpha_2 w) / alpha_1
//!          x = x + c' eta w',  eta = -s' eta                               |eta| is the residual's norm in M^-1
//! ```
//!
//! C. C. Paige and M. A. Saunders, Solution of sparse indefinite systems of linear equations, SIAM J. Numer. Anal. 12
//! (1975); H. C. Elman, D. J. Silvester and A. J. Wathen, Finite Elements and Fast Iterative Solvers, 2nd ed.,
//! algorithm 4.1. Singular systems that are consistent are solved as well.
//!
//! | pass | vectors in | out |
//! |---|---|---|
//! | q = A z, z.q | z, the matrix | q |
//! | v', v'.v' | q, v, v_before | v' |
//! | w', x | z, w, w_before, x | w', x |
//!
//! An iteration therefore moves the matrix and 12 vectors. A preconditioner adds z' = M^-1 v' and z'.v'. It also adds
//! the residual vector, because |eta| is then no longer its 2-norm: r' = s'^2 r + c' eta' v' / gamma' needs 3 vectors
//! more.

use super::SolveOptions;
use super::calls::Calls;
use super::driver::Krylov;
use super::method::{Aim, Method, Room, System, Vectors, lengthen};
use crate::backend::{
    Alone, CgStatus, Coefficient, Communicator, InnerProduct, Inverse, KrylovSteps, LinearUpdate, Persistent,
    PersistentMinres, ScalarLayout, ScalarProgram, Slot, Space, Writer,
};
use crate::error::Result;
use crate::scalar::Scalar;
use Coefficient::{At, One, Zero};

/// A MINRES solver for n unknowns, with the memory it needs: keep it, and solve many times.
///
/// ```
/// use residua::{Csr, Host, krylov::{Minres, SolveOptions}, precondition::Identity};
/// use std::ops::ControlFlow;
/// // | 1  2 |
/// // | 2 -1 | x = (3, 1): Hermitian and indefinite
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 2.0, -1.0])?;
/// let mut minres = Minres::new(&Host, 2, SolveOptions::default())?;
/// let mut x = vec![0.0; 2];
/// let report = minres.solve(&a, &Identity, &[3.0, 1.0], &mut x, |_, _| ControlFlow::Continue(()))?;
/// assert!(report.outcome.is_converged() && (x[0] - 1.0_f64).abs() < 1e-8);
/// # Ok::<(), residua::Error>(())
/// ```
pub type Minres<T, B, C = Alone> = Krylov<T, B, MinimalResidual<T, B>, C>;

impl<T: Scalar, B: KrylovSteps> Minres<T, B> {
    /// A solver for `n` unknowns: 7 n scalars, and 2 n more with a preconditioner that is not the identity.
    ///
    /// # Errors
    /// If the tolerance is negative, infinite or NaN, and if memory runs out.
    pub fn new(backend: &B, n: usize, options: SolveOptions) -> Result<Self> {
        Krylov::with_method(Space::new(backend.clone()), MinimalResidual::new(backend, n)?, options)
    }
}

/// Where each scalar of MINRES is stored.
#[derive(Debug, Clone, Copy)]
struct Slots {
    /// z.q, and z'.v' or v'.v'.
    zq: Slot,
    zv: Slot,
    /// r.r, with a preconditioner.
    rr: Slot,
    /// These seven follow each other, as [`PersistentMinres`] requires.
    gamma: Slot,
    gamma_before: Slot,
    eta: Slot,
    cosine: Slot,
    cosine_before: Slot,
    sine: Slot,
    sine_before: Slot,
    /// The factors of q, v and v_before in v'.
    of_q: Slot,
    of_v: Slot,
    of_v_before: Slot,
    /// The factors of z, w and w_before in w', and times c' eta in x.
    of_z: Slot,
    of_w: Slot,
    of_w_before: Slot,
    z_in_x: Slot,
    w_in_x: Slot,
    w_before_in_x: Slot,
    /// The factors of r and v' in r'.
    of_r: Slot,
    v_in_r: Slot,
}

/// The recurrence of MINRES. The scalars of the Lanczos process are real, since A is Hermitian.
#[derive(Debug)]
pub struct MinimalResidual<T: Scalar, B: KrylovSteps> {
    slots: Slots,
    layout: ScalarLayout,
    /// The program for gamma and eta at the start.
    begin: ScalarProgram<B>,
    /// The program for delta and the factors of v'.
    lanczos: ScalarProgram<B>,
    /// The programs for the rotation and the factors of w', x and r'.
    rotate: ScalarProgram<B>,
    rotate_preconditioned: ScalarProgram<B>,
    /// The program for r.r, with a preconditioner.
    norm: ScalarProgram<B>,
    /// True if M is not a multiple of the identity.
    preconditioned: bool,
    x: B::Vec<T>,
    r: B::Vec<T>,
    q: B::Vec<T>,
    /// v and v_before, w and w_before; they swap places in every iteration.
    v: [B::Vec<T>; 2],
    w: [B::Vec<T>; 2],
    /// z and the z before it; empty without a preconditioner.
    z: [B::Vec<T>; 2],
    room: Room<T, B>,
    state: B::Vec<T>,
    calls: Option<Calls<T, B>>,
}

impl<T: Scalar, B: KrylovSteps> MinimalResidual<T, B> {
    /// The recurrence for `n` unknowns: 7 n scalars, and 2 n more with a preconditioner that is not the identity.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(backend: &B, n: usize) -> Result<Self> {
        let layout = ScalarLayout::new();
        let slot = || layout.slot(0.0);
        let slots = Slots {
            zq: slot(),
            zv: slot(),
            rr: slot(),
            gamma: layout.slot(1.0),
            gamma_before: layout.slot(1.0),
            eta: slot(),
            cosine: layout.slot(1.0),
            cosine_before: layout.slot(1.0),
            sine: slot(),
            sine_before: slot(),
            of_q: slot(),
            of_v: slot(),
            of_v_before: slot(),
            of_z: slot(),
            of_w: slot(),
            of_w_before: slot(),
            z_in_x: slot(),
            w_in_x: slot(),
            w_before_in_x: slot(),
            of_r: slot(),
            v_in_r: slot(),
        };
        let lanczos = layout.program(backend, |p| {
            p.begin();
            let gamma = p.get(slots.gamma);
            let zq = p.get(slots.zq);
            p.need_finite(zq);
            p.set(slots.of_q, p.constant(1.0) / gamma);
            p.set(slots.of_v, -(zq.re() / (gamma * gamma * gamma)));
            p.set(slots.of_v_before, -(gamma / p.get(slots.gamma_before)));
        })?;
        let begin = layout.program(backend, |p| {
            let gamma = p.get(slots.zv).re();
            p.need_finite(gamma);
            p.fail(p.constant(1.0) - p.constant(0.0).less_than(gamma), CgStatus::Breakdown);
            p.set(slots.gamma, gamma.sqrt());
            p.set(slots.eta, gamma.sqrt());
        })?;
        let vector = || backend.zeros::<T>(n);
        Ok(Self {
            slots,
            begin,
            lanczos,
            rotate: layout.program(backend, |p| rotate(p, &slots, false))?,
            rotate_preconditioned: layout.program(backend, |p| rotate(p, &slots, true))?,
            norm: layout.program(backend, |p| p.residual(p.get(slots.rr).re()))?,
            preconditioned: false,
            x: vector()?,
            r: vector()?,
            q: vector()?,
            v: [vector()?, vector()?],
            w: [vector()?, vector()?],
            z: [backend.zeros(0)?, backend.zeros(0)?],
            room: Room::new(backend)?,
            state: backend.zeros(layout.len())?,
            calls: Calls::new(backend)?,
            layout,
        })
    }
}

/// The rotation that eliminates the subdiagonal entry of the new column, and the factors of w', x and r'.
fn rotate(p: &Writer<'_>, slots: &Slots, preconditioned: bool) {
    let zv = p.get(slots.zv).re();
    p.need_finite(zv);
    p.fail(zv.less_than(p.constant(0.0)), CgStatus::Breakdown);
    let (gamma, next) = (p.get(slots.gamma), zv.sqrt());
    let delta = p.get(slots.zq).re() / (gamma * gamma);
    let (c, c_before) = (p.get(slots.cosine), p.get(slots.cosine_before));
    let (s, s_before) = (p.get(slots.sine), p.get(slots.sine_before));
    let alpha_0 = c * delta - c_before * s * gamma;
    let alpha_1 = alpha_0.hypot(next);
    let alpha_2 = s * delta + c_before * c * gamma;
    let alpha_3 = s_before * gamma;
    // alpha_1 is zero only if the Krylov space is exhausted and A is singular on it.
    p.fail(p.constant(1.0) - p.constant(0.0).less_than(alpha_1), CgStatus::Breakdown);
    let (c_next, s_next) = (alpha_0 / alpha_1, next / alpha_1);
    let eta = p.get(slots.eta);
    let eta_next = -(s_next * eta);
    let step = c_next * eta;
    let of_z = p.constant(1.0) / (gamma * alpha_1);
    let (of_w, of_w_before) = (-(alpha_2 / alpha_1), -(alpha_3 / alpha_1));
    p.set(slots.of_z, of_z);
    p.set(slots.of_w, of_w);
    p.set(slots.of_w_before, of_w_before);
    p.set(slots.z_in_x, step * of_z);
    p.set(slots.w_in_x, step * of_w);
    p.set(slots.w_before_in_x, step * of_w_before);
    // If gamma' is zero, so is eta', and any divisor is right.
    let some = p.constant(0.0).less_than(next);
    p.set(slots.of_r, s_next * s_next);
    p.set(slots.v_in_r, c_next * eta_next / next.where_else(some, p.constant(1.0)));
    for (slot, value) in [
        (slots.eta, eta_next),
        (slots.cosine_before, c),
        (slots.cosine, c_next),
        (slots.sine_before, s),
        (slots.sine, s_next),
        (slots.gamma_before, gamma),
        (slots.gamma, next),
    ] {
        p.set(slot, value);
    }
    if !preconditioned {
        p.residual(eta_next.abs2());
    }
}

impl<T: Scalar, B: KrylovSteps, C: Communicator<B>> Method<T, B, C> for MinimalResidual<T, B> {
    type Word = T;

    fn name(&self) -> &'static str {
        "minres"
    }

    fn shape(&self) -> (usize, usize) {
        let n = B::len(&*self.x);
        (n, n)
    }

    fn period(&self) -> usize {
        2
    }

    fn fit(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<()> {
        self.preconditioned = !matches!(system.m.fused(), Some(Inverse::Identity));
        let length = if self.preconditioned { B::len(&*self.x) } else { 0 };
        for z in &mut self.z {
            lengthen(space.backend(), z, length)?;
        }
        self.room.fit(space.backend(), system.m)
    }

    fn vectors(&mut self) -> Vectors<'_, T, B> {
        Vectors { steps: &mut self.x, residual: &mut self.r, scratch: &mut self.q }
    }

    fn start(&mut self, space: &Space<B, C>, system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()> {
        let backend = space.backend();
        backend.write(&self.layout.initial::<T>(aim.square), &mut self.state)?;
        let Self { x, r, v, w, z, slots, state, .. } = self;
        for vector in w.iter_mut().chain([x, &mut v[1]]) {
            backend.fill(T::zero(), vector)?;
        }
        backend.copy(r, &mut v[0])?;
        if self.preconditioned {
            self.room.apply(backend, system.m, &v[0], &mut z[0])?;
        }
        let z = if self.preconditioned { &*z[0] } else { &*v[0] };
        space.dot(z, &v[0], B::part_mut(state, slots.zv.place()..slots.zv.place() + 1))?;
        backend.run_program(&self.begin, state)
    }

    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, step: usize) -> Result<()> {
        let Self { slots, x, r, q, v, w, z, room, state, .. } = self;
        let [first, second] = v;
        let (v, v_next) = if step.is_multiple_of(2) { (first, second) } else { (second, first) };
        let [first, second] = w;
        let (w, w_next) = if step.is_multiple_of(2) { (first, second) } else { (second, first) };
        let [first, second] = z;
        let (z, z_next) = if step.is_multiple_of(2) { (first, second) } else { (second, first) };
        let z = if self.preconditioned { &**z } else { &**v };
        let place = |slot: Slot| slot.place()..slot.place() + 1;
        // q = A z, delta
        space.apply_dot(system.a, z, q, B::part_mut(state, place(slots.zq)))?;
        space.backend().run_program(&self.lanczos, state)?;
        // v' = q / gamma - (delta / gamma) v - (gamma / gamma_before) v_before
        let squared = [InnerProduct { left: 2, right: 2, to: slots.zv }];
        space.linear_update(
            LinearUpdate {
                inputs: &[q, v],
                outputs: &mut [&mut *v_next],
                coefficients: &[At(slots.of_q), At(slots.of_v), At(slots.of_v_before)],
                products: if self.preconditioned { &[] } else { &squared },
            },
            state,
            if self.preconditioned { None } else { Some(&self.rotate) },
        )?;
        let [a, b, c, d] = [At(slots.of_z), At(slots.of_w), At(slots.of_w_before), Zero];
        let [e, f, g, h] = [At(slots.z_in_x), At(slots.w_in_x), At(slots.w_before_in_x), One];
        if !self.preconditioned {
            let coefficients = &[a, b, c, d, e, f, g, h];
            let (inputs, outputs) = (&[z, &**w], &mut [&mut **w_next, &mut **x]);
            let update = LinearUpdate { inputs, outputs, coefficients, products: &[] };
            return space.linear_update(update, state, None);
        }
        // z' = M^-1 v' and gamma', then r' together with w' and x
        if C::ALONE {
            let zv = B::part_mut(state, place(slots.zv));
            system.m.apply_dot_in(space.backend(), room.workspace(), v_next, z_next, zv)?;
        } else {
            room.apply(space.backend(), system.m, v_next, z_next)?;
            space.dot(z_next, v_next, B::part_mut(state, place(slots.zv)))?;
        }
        space.backend().run_program(&self.rotate_preconditioned, state)?;
        space.linear_update(
            LinearUpdate {
                inputs: &[z, w, v_next],
                outputs: &mut [&mut *w_next, x, r],
                #[rustfmt::skip]
                coefficients: &[
                    a, b, Zero, c, d, Zero,
                    e, f, Zero, g, h, Zero,
                    Zero, Zero, At(slots.v_in_r), Zero, Zero, At(slots.of_r),
                ],
                products: &[InnerProduct { left: 5, right: 5, to: slots.rr }],
            },
            state,
            Some(&self.norm),
        )
    }

    /// Uses persistent iterations, without a preconditioner and if the operator has them.
    fn at_once(
        &mut self,
        space: &Space<B, C>,
        system: System<'_, T, B>,
        left: usize,
        take: &mut dyn FnMut(&[T]) -> bool,
    ) -> Result<bool> {
        let (Some(calls), Some(a)) = (&mut self.calls, system.a.persistent()) else { return Ok(false) };
        if !C::ALONE || self.preconditioned {
            return Ok(false);
        }
        let (backend, scalars) = (space.backend(), self.slots.gamma);
        let Self { x, q, v: [v, v_before], w: [w, w_before], state, .. } = self;
        let enqueue = |count: usize, messages: &mut B::Slice<T>| {
            let (x, q, state) = (&mut **x, &mut **q, &mut **state);
            let (v, w) = ([&mut **v, &mut **v_before], [&mut **w, &mut **w_before]);
            let work = PersistentMinres { count, x, v, w, q, state, scalars, messages };
            a.persistent_iterations(backend, Persistent::Minres(work))
        };
        calls.run(backend, left, enqueue, take)
    }

    fn message(&self) -> &B::Slice<T> {
        &self.state
    }

    fn carries_residual(&self) -> bool {
        self.preconditioned
    }

    fn bytes_per_iteration(&self, System { a, m }: System<'_, T, B>) -> usize {
        let vector = B::len(&*self.x) * size_of::<T>();
        let more = if self.preconditioned { m.bytes() + 5 * vector } else { 0 };
        a.bytes() + 10 * vector + more
    }
}
