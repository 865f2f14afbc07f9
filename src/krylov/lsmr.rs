//! LSMR, for least-squares problems, rectangular and singular systems.
//!
//! MINRES on A^H A x = A^H b, from the bidiagonalisation of Golub and Kahan, beta u = b, alpha v = A^H u:
//!
//! ```text
//! repeat   beta u = A v - alpha u
//!          alpha v = A^H u - beta v
//!          two rotations, for the QR factorisations of the bidiagonal matrix and of its R^T
//!          hbar = h - (thetabar rho / (rho_before rhobar_before)) hbar
//!          x = x + (zeta / (rho rhobar)) hbar
//!          h = v - (theta / rho) h
//! ```
//!
//! D. C.-L. Fong and M. Saunders, LSMR: an iterative algorithm for sparse least-squares problems, SIAM J. Sci. Comput.
//! 33 (2011), whose names the scalars below have. ||r|| and ||A^H r|| fall monotonically; from x = 0, LSMR finds the
//! solution of least norm if there are many. The preconditioner is M^-1 = D, applied on the right: LSMR solves min
//! ||b - A D y||, x = D y, so D must be Hermitian; a diagonal D scales the columns.
//!
//! u and v are stored as beta u and alpha v. An iteration moves the matrix twice, 5 vectors as long as b, and 11 as
//! long as x.

use super::SolveOptions;
use super::driver::Krylov;
use super::method::{Aim, Method, Room, System, Vectors, lengthen};
use crate::backend::{
    Alone, CgStatus, Coefficient, Communicator, InnerProduct, Inverse, LinearUpdate, Op, ScalarLayout,
    ScalarProgram, Slot, Space, Value, VectorOps, Writer,
};
use crate::error::Result;
use crate::scalar::Scalar;
use Coefficient::{At, One, Zero};

/// An LSMR solver for operators of a given shape, with the memory it needs: keep it, and solve many times.
///
/// ```
/// use residua::{Csr, Host, krylov::{Lsmr, Outcome, SolveOptions}, precondition::Identity};
/// use std::ops::ControlFlow;
/// // | 1 . |
/// // | . 1 | x = (1, 2, 4): no x meets all three, the nearest is (1, 3)
/// // | . 1 |
/// let a = Csr::from_parts(3, 2, vec![0, 1, 2, 3], vec![0, 1, 1], vec![1.0; 3])?;
/// let mut lsmr = Lsmr::new(&Host, 3, 2, SolveOptions::default())?;
/// let mut x = vec![0.0; 2];
/// let report = lsmr.solve(&a, &Identity, &[1.0, 2.0, 4.0], &mut x, |_, _| ControlFlow::Continue(()))?;
/// assert_eq!(report.outcome, Outcome::LeastSquares);
/// assert!((x[1] - 3.0_f64).abs() < 1e-8);
/// # Ok::<(), residua::Error>(())
/// ```
pub type Lsmr<T, B, C = Alone> = Krylov<T, B, LeastSquaresResidual<T, B>, C>;

impl<T: Scalar, B: VectorOps> Lsmr<T, B> {
    /// A solver for operators of `rows` and `columns`: 3 vectors as long as b, 5 as long as x, and one more with a
    /// preconditioner that is not the identity.
    ///
    /// # Errors
    /// If the tolerance is negative, infinite or NaN, and if memory runs out.
    pub fn new(backend: &B, rows: usize, columns: usize, options: SolveOptions) -> Result<Self> {
        let method = LeastSquaresResidual::new(backend, rows, columns)?;
        Krylov::with_method(Space::new(backend.clone()), method, options)
    }
}

/// Where each scalar of LSMR is stored, with the names of the paper.
#[derive(Debug, Clone, Copy)]
struct Slots {
    /// ||beta u||^2 and ||alpha v||^2.
    uu: Slot,
    vv: Slot,
    alpha: Slot,
    beta: Slot,
    alphabar: Slot,
    zeta: Slot,
    zetabar: Slot,
    rho: Slot,
    rhobar: Slot,
    cbar: Slot,
    sbar: Slot,
    /// The quantities from here on are for the estimate of ||r||.
    betadd: Slot,
    betad: Slot,
    rhod: Slot,
    tautilde: Slot,
    thetatilde: Slot,
    /// The bound on ||A^H r|| / (||A|| ||r||).
    gradient: Slot,
    /// 1 / alpha and -alpha / beta, the factors of A v and u.
    inverse_alpha: Slot,
    of_u: Slot,
    /// 1 / beta and -beta / alpha, the factors of A^H u and v.
    inverse_beta: Slot,
    of_v: Slot,
    /// The factors of hbar in hbar, of h and hbar in x, of v and h in h.
    of_hbar: Slot,
    h_in_x: Slot,
    hbar_in_x: Slot,
    v_in_h: Slot,
    of_h: Slot,
}

/// The recurrence of LSMR.
#[derive(Debug)]
pub struct LeastSquaresResidual<T: Scalar, B: VectorOps> {
    slots: Slots,
    layout: ScalarLayout,
    /// The programs for the first beta and the first alpha.
    first_u: ScalarProgram<B>,
    first_v: ScalarProgram<B>,
    /// The programs for the factors of u'; for beta and the factors of v'; for alpha and everything else.
    before_u: ScalarProgram<B>,
    after_u: ScalarProgram<B>,
    after_v: ScalarProgram<B>,
    preconditioned: bool,
    x: B::Vec<T>,
    r: B::Vec<T>,
    /// A v; also the scratch vector of certificates.
    av: B::Vec<T>,
    u: B::Vec<T>,
    v: B::Vec<T>,
    /// A^H u.
    ahu: B::Vec<T>,
    h: B::Vec<T>,
    hbar: B::Vec<T>,
    /// D v or D A^H u, empty without a preconditioner.
    scaled: B::Vec<T>,
    room: Room<T, B>,
    state: B::Vec<T>,
}

/// 1 / `value`, or 0 if it is 0.
fn inverse<'w>(p: &'w Writer<'_>, value: Value<'w>) -> Value<'w> {
    let some = p.constant(0.0).less_than(value);
    (p.constant(1.0) / value).where_else(some, p.constant(0.0))
}

impl<T: Scalar, B: VectorOps> LeastSquaresResidual<T, B> {
    /// The recurrence for operators of `rows` rows and `columns` columns.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(backend: &B, rows: usize, columns: usize) -> Result<Self> {
        let layout = ScalarLayout::new();
        let (zero, one) = (|| layout.slot(0.0), || layout.slot(1.0));
        let slots = Slots {
            uu: zero(),
            vv: zero(),
            alpha: zero(),
            beta: zero(),
            alphabar: zero(),
            zeta: zero(),
            zetabar: zero(),
            rho: one(),
            rhobar: one(),
            cbar: one(),
            sbar: zero(),
            betadd: zero(),
            betad: zero(),
            rhod: one(),
            tautilde: zero(),
            thetatilde: zero(),
            gradient: zero(),
            inverse_alpha: zero(),
            of_u: zero(),
            inverse_beta: zero(),
            of_v: zero(),
            of_hbar: zero(),
            h_in_x: zero(),
            hbar_in_x: zero(),
            v_in_h: zero(),
            of_h: zero(),
        };
        let first_u = layout.program(backend, |p| {
            let beta = p.get(slots.uu).re().sqrt();
            p.need_finite(beta);
            p.set(slots.beta, beta);
            p.set(slots.betadd, beta);
            p.set(slots.inverse_beta, inverse(p, beta));
        })?;
        let first_v = layout.program(backend, |p| {
            let alpha = p.get(slots.vv).re().sqrt();
            p.need_finite(alpha);
            p.set(slots.alpha, alpha);
            p.set(slots.alphabar, alpha);
            p.set(slots.zetabar, alpha * p.get(slots.beta));
            p.set(slots.v_in_h, inverse(p, alpha));
            p.set(Slot::CURVATURE, alpha);
            // A^H r = 0: no step can make r smaller.
            p.finish(p.constant(1.0) - p.constant(0.0).less_than(alpha), CgStatus::LeastSquares);
        })?;
        let before_u = layout.program(backend, |p| {
            p.begin();
            let alpha = p.get(slots.alpha);
            p.set(slots.inverse_alpha, inverse(p, alpha));
            p.set(slots.of_u, -(alpha * inverse(p, p.get(slots.beta))));
        })?;
        let after_u = layout.program(backend, |p| {
            let beta = p.get(slots.uu).re().sqrt();
            p.need_finite(beta);
            p.set(slots.beta, beta);
            p.set(slots.inverse_beta, inverse(p, beta));
            p.set(slots.of_v, -(beta * inverse(p, p.get(slots.alpha))));
        })?;
        let after_v = layout.program(backend, |p| after_v(p, &slots))?;
        let vector = |length: usize| backend.zeros::<T>(length);
        Ok(Self {
            slots,
            first_u,
            first_v,
            before_u,
            after_u,
            after_v,
            preconditioned: false,
            x: vector(columns)?,
            r: vector(rows)?,
            av: vector(rows)?,
            u: vector(rows)?,
            v: vector(columns)?,
            ahu: vector(columns)?,
            h: vector(columns)?,
            hbar: vector(columns)?,
            scaled: vector(0)?,
            room: Room::new(backend)?,
            state: vector(layout.len())?,
            layout,
        })
    }

    /// `ahu` = D A^H u.
    fn back(&mut self, backend: &B, System { a, m }: System<'_, T, B>) -> Result<()> {
        let Self { u, ahu, scaled, room, .. } = self;
        let target: &mut B::Slice<T> = if self.preconditioned { scaled } else { ahu };
        a.product_op(backend, Op::ConjugateTranspose, T::one(), u, T::zero(), target)?;
        if self.preconditioned { room.apply(backend, m, scaled, ahu) } else { Ok(()) }
    }
}

/// Both rotations, the estimates of ||r|| and ||A^H r||, and the factors of hbar, x and h.
fn after_v(p: &Writer<'_>, slots: &Slots) {
    let zero = p.constant(0.0);
    let alpha = p.get(slots.vv).re().sqrt();
    p.need_finite(alpha);
    let beta = p.get(slots.beta);
    let norm = p.get(Slot::CURVATURE).max(alpha).max(beta);
    let (rho_before, rhobar_before) = (p.get(slots.rho), p.get(slots.rhobar));
    let alphabar = p.get(slots.alphabar);
    let rho = alphabar.hypot(beta);
    p.fail(p.constant(1.0) - zero.less_than(rho), CgStatus::Breakdown);
    let (c, s) = (alphabar / rho, beta / rho);
    let theta = s * alpha;
    let thetabar = p.get(slots.sbar) * rho;
    let scaled = p.get(slots.cbar) * rho;
    let rhobar = scaled.hypot(theta);
    p.fail(p.constant(1.0) - zero.less_than(rhobar), CgStatus::Breakdown);
    let (cbar, sbar) = (scaled / rhobar, theta / rhobar);
    let (zeta_before, zetabar_before) = (p.get(slots.zeta), p.get(slots.zetabar));
    let (zeta, zetabar) = (cbar * zetabar_before, -(sbar * zetabar_before));
    let of_hbar = -(thetabar * rho / (rho_before * rhobar_before));
    let step = zeta / (rho * rhobar);
    // ||r||, by section 5.2 of the paper without damping.
    let betadd = p.get(slots.betadd);
    let betahat = c * betadd;
    let (rhod, thetatilde_before) = (p.get(slots.rhod), p.get(slots.thetatilde));
    let rhotilde = rhod.hypot(thetabar);
    let (ctilde, stilde) = (rhod / rhotilde, thetabar / rhotilde);
    let thetatilde = stilde * rhobar;
    let rhod_next = ctilde * rhobar;
    let betad = ctilde * betahat - stilde * p.get(slots.betad);
    let tautilde = (zeta_before - thetatilde_before * p.get(slots.tautilde)) / rhotilde;
    let taud = (zeta - thetatilde * tautilde) / rhod_next;
    let betadd_next = -(s * betadd);
    let residual = (betad - taud).hypot(betadd_next);
    for (slot, value) in [
        (slots.alpha, alpha),
        (slots.alphabar, c * alpha),
        (slots.zeta, zeta),
        (slots.zetabar, zetabar),
        (slots.rho, rho),
        (slots.rhobar, rhobar),
        (slots.cbar, cbar),
        (slots.sbar, sbar),
        (slots.betadd, betadd_next),
        (slots.betad, betad),
        (slots.rhod, rhod_next),
        (slots.tautilde, tautilde),
        (slots.thetatilde, thetatilde),
        (slots.of_hbar, of_hbar),
        (slots.h_in_x, step),
        (slots.hbar_in_x, step * of_hbar),
        (slots.v_in_h, inverse(p, alpha)),
        (slots.of_h, -(theta / rho)),
        (Slot::CURVATURE, norm),
    ] {
        p.set(slot, value);
    }
    p.residual(residual.abs2());
    let small = p.get(slots.gradient) * norm * residual;
    p.finish(p.constant(1.0) - small.less_than(zetabar.abs()), CgStatus::LeastSquares);
}

impl<T: Scalar, B: VectorOps, C: Communicator<B>> Method<T, B, C> for LeastSquaresResidual<T, B> {
    type Word = T;

    fn name(&self) -> &'static str {
        "lsmr"
    }

    fn shape(&self) -> (usize, usize) {
        (B::len(&*self.r), B::len(&*self.x))
    }

    fn is_least_squares(&self) -> bool {
        true
    }

    fn fit(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<()> {
        self.preconditioned = !matches!(system.m.fused(), Some(Inverse::Identity));
        let length = if self.preconditioned { B::len(&*self.x) } else { 0 };
        lengthen(space.backend(), &mut self.scaled, length)?;
        self.room.fit(space.backend(), system.m)
    }

    fn vectors(&mut self) -> Vectors<'_, T, B> {
        Vectors { steps: &mut self.x, residual: &mut self.r, scratch: &mut self.av }
    }

    fn start(&mut self, space: &Space<B, C>, system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()> {
        let backend = space.backend();
        let mut state = self.layout.initial::<T>(aim.square);
        state[self.slots.gradient.place()] = T::from_f64(aim.gradient);
        backend.write(&state, &mut self.state)?;
        for vector in [&mut self.x, &mut self.hbar, &mut self.h] {
            backend.fill(T::zero(), vector)?;
        }
        backend.copy(&self.r, &mut self.u)?;
        let uu = self.slots.uu.place();
        space.dot(&self.u, &self.u, B::part_mut(&mut self.state, uu..uu + 1))?;
        backend.run_program(&self.first_u, &mut self.state)?;
        self.back(backend, system)?;
        let Self { slots, v, ahu, h, state, .. } = self;
        let products = &[InnerProduct { left: 1, right: 1, to: slots.vv }];
        let (outputs, coefficients) = (&mut [&mut **v], &[At(slots.inverse_beta), Zero]);
        let update = LinearUpdate { inputs: &[&**ahu], outputs, coefficients, products };
        space.linear_update(update, state, Some(&self.first_v))?;
        let (outputs, coefficients) = (&mut [&mut **h], &[At(slots.v_in_h), Zero]);
        let update = LinearUpdate { inputs: &[&**v], outputs, coefficients, products: &[] };
        space.linear_update(update, state, None)
    }

    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, _step: usize) -> Result<()> {
        let backend = space.backend();
        let Self { slots, av, u, v, scaled, room, state, .. } = self;
        // beta u = A v - alpha u
        if self.preconditioned {
            room.apply(backend, system.m, v, scaled)?;
        }
        system.a.apply(backend, if self.preconditioned { scaled } else { v }, av)?;
        backend.run_program(&self.before_u, state)?;
        let products = &[InnerProduct { left: 1, right: 1, to: slots.uu }];
        let (outputs, coefficients) = (&mut [&mut **u], &[At(slots.inverse_alpha), At(slots.of_u)]);
        let update = LinearUpdate { inputs: &[&**av], outputs, coefficients, products };
        space.linear_update(update, state, Some(&self.after_u))?;
        // alpha v = A^H u - beta v
        self.back(backend, system)?;
        let Self { slots, x, v, ahu, h, hbar, state, .. } = self;
        let products = &[InnerProduct { left: 1, right: 1, to: slots.vv }];
        let (outputs, coefficients) = (&mut [&mut **v], &[At(slots.inverse_beta), At(slots.of_v)]);
        let update = LinearUpdate { inputs: &[&**ahu], outputs, coefficients, products };
        space.linear_update(update, state, Some(&self.after_v))?;
        // hbar, x and h, all from the old h and hbar
        space.linear_update(
            LinearUpdate {
                inputs: &[&**v],
                outputs: &mut [hbar, x, h],
                #[rustfmt::skip]
                coefficients: &[
                    Zero, At(slots.of_hbar), Zero, One,
                    Zero, At(slots.hbar_in_x), One, At(slots.h_in_x),
                    At(slots.v_in_h), Zero, Zero, At(slots.of_h),
                ],
                products: &[],
            },
            state,
            None,
        )
    }

    fn message(&self) -> &B::Slice<T> {
        &self.state
    }

    fn finish(&mut self, space: &Space<B, C>, system: System<'_, T, B>, _done: usize) -> Result<()> {
        if !self.preconditioned {
            return Ok(());
        }
        let backend = space.backend();
        self.room.apply(backend, system.m, &self.x, &mut self.scaled)?;
        backend.copy(&self.scaled, &mut self.x)
    }

    fn bytes_per_iteration(&self, System { a, m }: System<'_, T, B>) -> usize {
        let (b, x) = (B::len(&*self.r) * size_of::<T>(), B::len(&*self.x) * size_of::<T>());
        2 * a.bytes() + 3 * b + 9 * x + if self.preconditioned { 2 * m.bytes() } else { 0 }
    }
}
