//! Conjugate gradients: the recurrence.
//!
//! For A Hermitian positive definite and M near A and of the same kind, from r = b - A x, z = M^-1 r, p = z,
//! rho = r.z:
//!
//! ```text
//! repeat   q = A p
//!          alpha = rho / p.q
//!          r = r - alpha q                stop where r.r is small
//!          z = M^-1 r
//!          x = x + alpha p
//!          beta = r.z / rho,  rho = r.z
//!          p = z + beta p
//! ```
//!
//! M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49 (1952);
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithms 6.18 and 9.1. x waits for p's update,
//! which reads p too, so that p is read once for both.
//!
//! | step | vectors in | out | with Jacobi, also |
//! |---|---|---|---|
//! | q = A p, p.q | p, the matrix | q | |
//! | r, r.r, r.z | q, r | r | diagonal |
//! | x, p | r, p, x | p, x | diagonal |
//!
//! So an iteration moves the matrix and 10 vectors of n scalars, with Jacobi twice the diagonal more (n reals, or n of
//! single precision: see [`Jacobi`](crate::precondition::Jacobi)). A preconditioner that can't be fused stores z: r in,
//! z out, what it stores, and r and z once more for r.z.

use super::cycle::Bursts;
use super::{Report, SolveOptions};
use crate::backend::{CgSlot, CgStatus, Inverse, KrylovSteps};
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::precondition::{Preconditioner, Workspace};
use crate::scalar::Scalar;
use std::ops::ControlFlow;
use std::time::Duration;

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
#[derive(Debug)]
pub struct Cg<T: Scalar, B: KrylovSteps> {
    pub(super) backend: B,
    pub(super) options: SolveOptions,
    pub(super) work: Work<T, B>,
    pub(super) mailbox: B::Mailbox<T::Real>,
    pub(super) bursts: Option<Bursts<T, B>>,
    pub(super) history: Vec<f64>,
    pub(super) iterating: Duration,
}

/// The vectors of an iteration, and its scalars, which stay in the backend's memory: of one system, or of several side
/// by side ([`KrylovSteps`]), each of them with scalars of its own.
#[derive(Debug)]
pub(super) struct Work<T: Scalar, B: KrylovSteps> {
    /// The sum of the steps since the start or the last restart, in units: what is to be added to the caller's x.
    pub(super) x: B::Vec<T>,
    pub(super) r: B::Vec<T>,
    pub(super) p: B::Vec<T>,
    pub(super) q: B::Vec<T>,
    /// Empty until a preconditioner needs it.
    pub(super) z: B::Vec<T>,
    /// What the preconditioner computes in, likewise.
    pub(super) work: B::Vec<T>,
    pub(super) narrow: B::Vec<T::Narrow>,
    pub(super) pq: B::Vec<T>,
    pub(super) rz: B::Vec<T>,
    pub(super) state: B::Vec<T::Real>,
    pub(super) square: B::Vec<T::Real>,
}

impl<T: Scalar, B: KrylovSteps> Cg<T, B> {
    /// A solver for `n` unknowns: 4 n scalars, and n more once a preconditioner needs z.
    ///
    /// # Errors
    /// On a tolerance that is negative, infinite or NaN, and without memory.
    pub fn new(backend: &B, n: usize, options: SolveOptions) -> Result<Self> {
        options.check()?;
        let work = Work::new(backend, n, 1)?;
        let history = Vec::with_capacity(1 + options.iteration_limit(n).min(10_000));
        Ok(Self {
            mailbox: backend.mailbox(CgSlot::MESSAGE)?,
            bursts: Bursts::new(backend)?,
            backend: backend.clone(),
            options,
            work,
            history,
            iterating: Duration::ZERO,
        })
    }

    /// Solves A x = b, starting from x and leaving the solution there ([`Outcome`](super::Outcome) says what, else).
    /// `observer(iteration, residual norm)` sees the recurrence's residual at the start and after each iteration, and
    /// can stop the solve; the report's residual is b - A x computed anew. The observer is at most
    /// [`Backend::QUEUE_DEPTH`] times [`KrylovSteps::CG_RECORDED`] iterations late; where the backend does many
    /// iterations of a small system at once, twice [`KrylovSteps::CG_BURST`].
    ///
    /// An infinite or NaN b or starting vector leaves x as it was. b = 0 gives x = 0.
    ///
    /// # Errors
    /// On sizes that do not fit, without memory for z, or when the device fails.
    ///
    /// [`Backend::QUEUE_DEPTH`]: crate::Backend::QUEUE_DEPTH
    pub fn solve<A, M>(
        &mut self,
        a: &A,
        m: &M,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        self.drive(a, m, b, x, None, observer)
    }

    /// Residual norms of the last solve's recurrence: at the start, then after each iteration.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// Time that the last solve spent iterating: the rest of it went into b's norm, the start and the certificates.
    pub fn iterating(&self) -> Duration {
        self.iterating
    }

    /// The history, for keeping.
    pub fn into_history(self) -> Vec<f64> {
        self.history
    }
}

impl<T: Scalar, B: KrylovSteps> Work<T, B> {
    /// For so many systems of n unknowns side by side.
    pub(super) fn new(backend: &B, n: usize, systems: usize) -> Result<Self> {
        let all = n.saturating_mul(systems);
        Ok(Self {
            x: backend.zeros(all)?,
            r: backend.zeros(all)?,
            p: backend.zeros(all)?,
            q: backend.zeros(all)?,
            z: backend.zeros(0)?,
            work: backend.zeros(0)?,
            narrow: backend.zeros(0)?,
            pq: backend.zeros(systems)?,
            rz: backend.zeros(systems)?,
            state: backend.zeros(systems * CgSlot::COUNT)?,
            square: backend.zeros(1)?,
        })
    }

    /// One iteration; this is what is recorded.
    pub(super) fn iterate<A, M>(&mut self, backend: &B, a: &A, m: &M) -> Result<()>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        a.apply_dot(backend, &self.p, &mut self.q, &mut self.pq)?; // q = A p, p.q
        self.advance(backend, m)
    }

    /// The rest of an iteration, from q and p.q on.
    fn advance<M>(&mut self, backend: &B, m: &M) -> Result<()>
    where
        M: Preconditioner<T, B> + ?Sized,
    {
        let Self { x, r, p, q, z, work, narrow, pq, rz, state, .. } = self;
        let fused = m.fused();
        let inverse = fused.unwrap_or(Inverse::General(&**z));
        backend.cg_residual(inverse, pq, q, r, rz, state)?; // alpha = rho / p.q, r -= alpha q, r.r, r.z
        if fused.is_none() {
            m.apply_dot_in(backend, Workspace { full: work, narrow }, r, z, rz)?; // z = M^-1 r, r.z
        }
        let inverse = fused.unwrap_or(Inverse::General(&**z));
        backend.cg_direction(inverse, r, rz, p, x, state) // x += alpha p, beta = r.z / rho, p = z + beta p
    }

    /// Starts the recurrence from r, with [`CgSlot::to_start`] for a state, or one for each system.
    pub(super) fn start<M>(&mut self, backend: &B, m: &M, state: &[T::Real]) -> Result<()>
    where
        M: Preconditioner<T, B> + ?Sized,
    {
        backend.write(state, &mut self.state)?;
        backend.fill(T::zero(), &mut self.p)?;
        backend.fill(T::zero(), &mut self.q)?;
        backend.fill(T::one(), &mut self.pq)?;
        self.advance(backend, m)
    }

    /// Lets a recurrence that has converged go on to a smaller threshold.
    pub(super) fn resume(&mut self, backend: &B, threshold: T::Real) -> Result<()> {
        let status = [CgStatus::Running.to_real()];
        backend.write(&status, B::part_mut(&mut self.state, CgSlot::STATUS..CgSlot::STATUS + 1))?;
        backend.write(&[threshold], B::part_mut(&mut self.state, CgSlot::THRESHOLD..CgSlot::THRESHOLD + 1))
    }
}
