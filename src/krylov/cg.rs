//! Conjugate gradients.
//!
//! For A Hermitian positive definite and a preconditioner M, Hermitian positive definite too, from r = b - A x, z =
//! M^-1 r, p = z, rho = r.z:
//!
//! ```text
//! repeat   q = A p
//!          alpha = rho / p.q
//!          r = r - alpha q                stop when r.r is small
//!          z = M^-1 r
//!          x = x + alpha p
//!          beta = r.z / rho,  rho = r.z
//!          p = z + beta p
//! ```
//!
//! M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49 (1952); Y.
//! Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithms 6.18 and 9.1. The update of x is delayed to
//! that of p, so that one pass reads p for both.
//!
//! | step | vectors in | out | with Jacobi, also |
//! |---|---|---|---|
//! | q = A p, p.q | p, the matrix | q | |
//! | r, r.r, r.z | q, r | r | diagonal |
//! | x, p | r, p, x | p, x | diagonal |
//!
//! An iteration therefore moves the matrix and 10 vectors of n scalars. Jacobi adds twice the diagonal (n reals, or n
//! in single precision: see [`Jacobi`](crate::precondition::Jacobi)). A preconditioner that can't be fused reads r,
//! stores z, and moves its own data; r and z are then read once more for r.z.

use super::calls::Calls;
use super::driver::Krylov;
use super::method::{Aim, Method, Room, System, Vectors, lengthen};
use super::units::Units;
use super::{Outcome, SolveOptions};
use crate::backend::{
    CgSlot, CgStatus, Communicator, Inverse, KrylovSteps, PartDirection, PartResidual, Persistent,
    PersistentIterations, Slot, Space,
};
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::precondition::Preconditioner;
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// A conjugate gradient solver for n unknowns, with the memory it needs: keep it, and solve many times.
///
/// ```
/// use residua::{Host, krylov::{Cg, SolveOptions}, operator::FunctionOperator, precondition::Identity};
/// use std::ops::ControlFlow;
/// let a = FunctionOperator::<f64, Host, _>::new(2, 2, |_, x, y| {
///     (y[0], y[1]) = (2.0 * x[0] + x[1], x[0] + 3.0 * x[1]);
///     Ok(())
/// });
/// let mut cg = Cg::new(&Host, 2, SolveOptions::default())?;
/// let mut x = vec![0.0; 2]; // where the iteration starts, then the solution
/// let report = cg.solve(&a, &Identity, &[3.0, 4.0], &mut x, |iteration, residual| {
///     println!("{iteration}: {residual:e}");
///     ControlFlow::Continue(())
/// })?;
/// assert!(report.outcome.is_converged() && report.iterations == 2);
/// # Ok::<(), residua::Error>(())
/// ```
pub type Cg<T, B> = Krylov<T, B, ConjugateGradients<T, B>>;

impl<T: Scalar, B: KrylovSteps> Cg<T, B> {
    /// A solver for `n` unknowns: 4 n scalars, and n more once a preconditioner needs z.
    ///
    /// # Errors
    /// If the tolerance is negative, infinite or NaN, and if memory runs out.
    pub fn new(backend: &B, n: usize, options: SolveOptions) -> Result<Self> {
        Krylov::with_method(Space::new(backend.clone()), ConjugateGradients::new(backend, n)?, options)
    }
}

/// The recurrence of conjugate gradients in fused steps of the backend. Vectors may be distributed over several ranks.
#[derive(Debug)]
pub struct ConjugateGradients<T: Scalar, B: KrylovSteps> {
    pub(super) work: Work<T, B>,
    calls: Option<Calls<T::Real, B>>,
}

/// The vectors and scalars of the recurrence. Scalars stay in the backend's memory. There may be several systems side
/// by side ([`KrylovSteps`]), each with its own scalars.
#[derive(Debug)]
pub(super) struct Work<T: Scalar, B: KrylovSteps> {
    /// The sum of the steps since the start or the last restart, in scaled units ([`Units`]). The driver adds it to the
    /// caller's x.
    pub(super) x: B::Vec<T>,
    pub(super) r: B::Vec<T>,
    pub(super) p: B::Vec<T>,
    pub(super) q: B::Vec<T>,
    /// M^-1 r; empty until a preconditioner needs it.
    z: B::Vec<T>,
    /// The workspace of the preconditioner; empty until one needs it.
    room: Room<T, B>,
    pub(super) pq: B::Vec<T>,
    rz: B::Vec<T>,
    /// r.r and r.z; only used if vectors are distributed.
    sums: B::Vec<T>,
    pub(super) state: B::Vec<T::Real>,
    square: B::Vec<T::Real>,
}

impl<T: Scalar, B: KrylovSteps> ConjugateGradients<T, B> {
    /// The recurrence for `n` unknowns: 4 n scalars, and n more once a preconditioner needs z.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(backend: &B, n: usize) -> Result<Self> {
        Ok(Self { work: Work::new(backend, n, 1)?, calls: Calls::new(backend)? })
    }

    /// Computes p.Ap / p.p if one of the two is close to overflow or underflow: p is first scaled to about unit norm.
    /// Returns `None` if p.Ap turns out to be positive. Overwrites r and q.
    fn curvature_of_unit<C: Communicator<B>>(
        &mut self,
        space: &Space<B, C>,
        a: &dyn LinearOperator<T, B>,
    ) -> Result<Option<f64>> {
        let (backend, work) = (space.backend(), &mut self.work);
        let units = Units::of(space, &work.p, &mut work.q, &mut work.square)?;
        backend.axpby(T::from_real(units.scale()), &work.p, T::zero(), &mut work.r)?;
        space.apply_dot(a, &work.r, &mut work.q, &mut work.pq)?;
        space.norm2_squared(&work.r, &mut work.square)?;
        let curvature = backend.value(&work.pq)?.re().to_f64() / backend.value(&work.square)?.to_f64();
        let length = Units::of(space, &work.q, &mut work.r, &mut work.square)?.b_norm;
        let rounding = T::Real::epsilon().to_f64() * length;
        Ok((curvature <= rounding).then_some(curvature))
    }
}

impl<T: Scalar, B: KrylovSteps, C: Communicator<B>> Method<T, B, C> for ConjugateGradients<T, B> {
    type Word = T::Real;

    fn name(&self) -> &'static str {
        "cg"
    }

    fn shape(&self) -> (usize, usize) {
        let n = B::len(&*self.work.r);
        (n, n)
    }

    fn last_iterate_counts(&self) -> bool {
        true
    }

    fn fit(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<()> {
        let n = B::len(&*self.work.r);
        let z = if system.m.fused().is_none() { n } else { 0 };
        lengthen(space.backend(), &mut self.work.z, z)?;
        self.work.room.fit(space.backend(), system.m)
    }

    fn vectors(&mut self) -> Vectors<'_, T, B> {
        let Work { x, r, q, .. } = &mut self.work;
        Vectors { steps: x, residual: r, scratch: q }
    }

    fn start(&mut self, space: &Space<B, C>, system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()> {
        space.backend().fill(T::zero(), &mut self.work.x)?;
        let state = CgSlot::to_start(aim.square);
        if C::ALONE {
            return self.work.start(space.backend(), system.m, &state);
        }
        if let Some(parts) = system.a.fused_parts() {
            parts.drop_exchange(space.backend())?;
        }
        self.work.prepare(space.backend(), &state)?;
        self.work.advance_part(space, system, true)
    }

    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, _step: usize) -> Result<()> {
        if C::ALONE {
            return self.work.iterate(space.backend(), system.a, system.m);
        }
        let Work { p, q, pq, .. } = &mut self.work;
        match system.a.fused_parts() {
            Some(parts) => parts.product(space.backend(), p, q, pq)?,
            None => space.apply_dot(system.a, p, q, pq)?,
        }
        self.work.advance_part(space, system, false)
    }

    fn message(&self) -> &B::Slice<T::Real> {
        &self.work.state
    }

    fn resume(&mut self, space: &Space<B, C>, aim: Aim<T::Real>) -> Result<bool> {
        let (backend, state) = (space.backend(), &mut self.work.state);
        let status = [CgStatus::Running.to_real()];
        backend.fill(T::zero(), &mut self.work.x)?;
        backend.write(&status, B::part_mut(state, CgSlot::STATUS..CgSlot::STATUS + 1))?;
        backend.write(&[aim.square], B::part_mut(state, CgSlot::THRESHOLD..CgSlot::THRESHOLD + 1))?;
        Ok(true)
    }

    fn carries_residual(&self) -> bool {
        true
    }

    /// Uses persistent iterations if both the operator and the preconditioner have them.
    fn at_once(
        &mut self,
        space: &Space<B, C>,
        system: System<'_, T, B>,
        left: usize,
        take: &mut dyn FnMut(&[T::Real]) -> bool,
    ) -> Result<bool> {
        let (Some(calls), Some(inverse)) = (&mut self.calls, system.m.fused()) else { return Ok(false) };
        let Some(a) = system.a.persistent().filter(|_| C::ALONE) else { return Ok(false) };
        let (backend, work) = (space.backend(), &mut self.work);
        let enqueue = |count: usize, messages: &mut B::Slice<T::Real>| {
            let (r, p, x, q) = (&mut *work.r, &mut *work.p, &mut *work.x, &mut *work.q);
            let state = &mut *work.state;
            let work = PersistentIterations { inverse, count, r, p, x, q, state, messages };
            a.persistent_iterations(backend, Persistent::Cg(work))
        };
        calls.run(backend, left, enqueue, take)
    }

    /// Adds p.Ap / p.p: p in the state is still the vector for which p.Ap <= 0 was found.
    fn explain(&mut self, space: &Space<B, C>, system: System<'_, T, B>, fault: Outcome) -> Result<Outcome> {
        let Outcome::NotPositiveDefinite { iteration, curvature } = fault else { return Ok(fault) };
        let backend = space.backend();
        space.norm2_squared(&self.work.p, &mut self.work.square)?;
        let pp = backend.value(&self.work.square)?;
        let safe = Units::<T::Real>::safe_square();
        let plain = curvature.abs() >= safe.to_f64() && Float::is_finite(pp) && pp >= safe;
        let curvature =
            if plain { Some(curvature / pp.to_f64()) } else { self.curvature_of_unit(space, system.a)? };
        Ok(match curvature {
            Some(curvature) => Outcome::NotPositiveDefinite { iteration, curvature },
            None => Outcome::Breakdown { iteration },
        })
    }

    fn bytes_per_iteration(&self, System { a, m }: System<'_, T, B>) -> usize {
        let n = B::len(&*self.work.r);
        let vector = n * size_of::<T>();
        let preconditioner = m.fused().map_or(m.bytes() + 2 * vector, |inverse| inverse_bytes(inverse, n));
        a.bytes() + 8 * vector + preconditioner
    }

    fn bytes_behind(&self, system: System<'_, T, B>) -> usize {
        if system.m.fused().is_some() { 0 } else { Method::<T, B, C>::bytes_per_iteration(self, system) }
    }
}

/// The bytes that an iteration reads of a fused preconditioner.
pub(super) fn inverse_bytes<T: Scalar, B: KrylovSteps>(inverse: Inverse<'_, T, B>, n: usize) -> usize {
    match inverse {
        Inverse::Identity => 0,
        Inverse::Rounded(_) => 2 * n * size_of::<f32>(),
        Inverse::Diagonal(_) | Inverse::General(_) => 2 * n * size_of::<T::Real>(),
    }
}

impl<T: Scalar, B: KrylovSteps> Work<T, B> {
    /// Workspace for `systems` systems of n unknowns side by side.
    pub(super) fn new(backend: &B, n: usize, systems: usize) -> Result<Self> {
        let all = n.saturating_mul(systems);
        Ok(Self {
            x: backend.zeros(all)?,
            r: backend.zeros(all)?,
            p: backend.zeros(all)?,
            q: backend.zeros(all)?,
            z: backend.zeros(0)?,
            room: Room::new(backend)?,
            pq: backend.zeros(systems)?,
            rz: backend.zeros(systems)?,
            sums: backend.zeros(2)?,
            state: backend.zeros(systems * CgSlot::COUNT)?,
            square: backend.zeros(1)?,
        })
    }

    /// One iteration, as it is recorded and replayed.
    pub(super) fn iterate<A, M>(&mut self, backend: &B, a: &A, m: &M) -> Result<()>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        a.apply_dot(backend, &self.p, &mut self.q, &mut self.pq)?; // q = A p, p.q
        self.advance(backend, m)
    }

    /// The rest of an iteration, once q and p.q are known.
    fn advance<M>(&mut self, backend: &B, m: &M) -> Result<()>
    where
        M: Preconditioner<T, B> + ?Sized,
    {
        let Self { x, r, p, q, z, room, pq, rz, state, .. } = self;
        let fused = m.fused();
        let inverse = fused.unwrap_or(Inverse::General(&**z));
        backend.cg_residual(inverse, pq, q, r, rz, state)?; // alpha = rho / p.q, r -= alpha q, r.r, r.z
        if fused.is_none() {
            m.apply_dot_in(backend, room.workspace(), r, z, rz)?; // z = M^-1 r, r.z
        }
        let inverse = fused.unwrap_or(Inverse::General(&**z));
        backend.cg_direction(inverse, r, rz, p, x, state) // x += alpha p, beta = r.z / rho, p = z + beta p
    }

    /// Starts the recurrence from r. `state` is [`CgSlot::to_start`], once for each system.
    pub(super) fn start<M>(&mut self, backend: &B, m: &M, state: &[T::Real]) -> Result<()>
    where
        M: Preconditioner<T, B> + ?Sized,
    {
        self.prepare(backend, state)?;
        self.advance(backend, m)
    }

    /// Sets the state such that the next half iteration (`advance`) computes p = M^-1 r and rho.
    fn prepare(&mut self, backend: &B, state: &[T::Real]) -> Result<()> {
        backend.write(state, &mut self.state)?;
        backend.fill(T::zero(), &mut self.p)?;
        backend.fill(T::zero(), &mut self.q)?;
        backend.fill(T::one(), &mut self.pq)
    }

    /// [`Work::advance`] on one of several ranks. At the start p.q is one on all ranks.
    fn advance_part<C: Communicator<B>>(
        &mut self,
        space: &Space<B, C>,
        System { a, m }: System<'_, T, B>,
        start: bool,
    ) -> Result<()> {
        let backend = space.backend();
        let Self { x, r, p, q, z, room, pq, sums, state, .. } = self;
        let (parts, fused) = (a.fused_parts(), m.fused());
        let inverse = fused.unwrap_or(Inverse::General(&**z));
        let given = (start || parts.is_none()).then_some(&**pq);
        let step = PartResidual { inverse, pq: given, q, r, sums, state };
        match parts {
            Some(parts) => parts.residual(backend, step)?,
            None => backend.cg_part_residual(step)?,
        }
        if fused.is_none() {
            m.apply_dot_in(backend, room.workspace(), r, z, B::part_mut(sums, 1..2))?;
        }
        let together = parts.is_none() || fused.is_none();
        if together {
            space.communicator().all_sum(backend, sums)?;
        }
        let inverse = fused.unwrap_or(Inverse::General(&**z));
        let step = PartDirection { inverse, r, sums: together.then_some(&**sums), p, x, state };
        match parts {
            Some(parts) => parts.direction(backend, step),
            None => backend.cg_part_direction(step),
        }
    }
}

// The first three scalars of both states are the message, so the driver reads it without knowing the method.
const _: () = assert!(CgSlot::MESSAGE == Slot::MESSAGE);
