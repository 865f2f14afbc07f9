//! Flexible GMRES with restarts, for any square system.
//!
//! From v_0 = r / beta, beta = ||r||, r = b - A x:
//!
//! ```text
//! for j from 0 below m
//!     z_j = M^-1 v_j
//!     w = A z_j
//!     h = V^H w,  w = w - V h,  and both once more                    classical Gram-Schmidt, twice
//!     v_(j+1) = w / ||w||
//!     rotate the new column (h, ||w||) of the Hessenberg matrix;  |g_(j+1)| is the residual's norm
//! y = R^-1 g,  x = x + Z y
//! ```
//!
//! Y. Saad, A flexible inner-outer preconditioned GMRES algorithm, SIAM J. Sci. Comput. 14 (1993); Iterative Methods
//! for Sparse Linear Systems, 2nd ed., algorithm 9.6. The second pass of Gram-Schmidt keeps the basis orthogonal to
//! working precision (L. Giraud, J. Langou, M. Rozloznik and J. van den Eshof, Numer. Math. 101, 2005), and needs few
//! global sums, while modified Gram-Schmidt needs one for each basis vector. Every z_j is stored, so M may change from
//! step to step.
//!
//! Step j moves the matrix, M, and 3 (j + 1) + 9 vectors (the first update and the second set of inner products are one
//! pass), which is 1.5 (m + 1) + 9 vectors per iteration on average. With a diagonal preconditioner or none,
//! [`gmres_pairs`](super::gmres_pairs) takes two steps at a time and moves less than half of that, until a cycle makes
//! no progress.

use super::SolveOptions;
use super::driver::Krylov;
use super::gmres_pairs::Pairs;
use super::method::{Aim, Method, Room, System, Vectors, lengthen};
use crate::backend::{
    Alone, CgStatus, Coefficient, Communicator, Hessenberg, Inverse, LinearUpdate, ScalarLayout, Slot, Space,
    VectorOps,
};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use num_traits::{Float, Zero};

/// A flexible GMRES solver for n unknowns, with the memory it needs: keep it, and solve many times.
///
/// ```
/// use residua::{Csr, Host, krylov::{Gmres, SolveOptions}, precondition::Identity};
/// use std::ops::ControlFlow;
/// // | 1  2 |
/// // |-3  1 | x = (3, -2)
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, -3.0, 1.0])?;
/// let mut gmres = Gmres::new(&Host, 2, 30, SolveOptions::default())?;
/// let mut x = vec![0.0; 2];
/// let report = gmres.solve(&a, &Identity, &[3.0, -2.0], &mut x, |_, _| ControlFlow::Continue(()))?;
/// assert!(report.outcome.is_converged() && (x[0] - 1.0_f64).abs() < 1e-8);
/// # Ok::<(), residua::Error>(())
/// ```
pub type Gmres<T, B, C = Alone> = Krylov<T, B, FlexibleMinimalResidual<T, B>, C>;

impl<T: Scalar, B: VectorOps> Gmres<T, B> {
    /// A solver for `n` unknowns with a restart after `restart` iterations. Its first solve takes memory for
    /// (restart + 4) n scalars, and restart n more with a preconditioner that is not a diagonal. Without such a
    /// preconditioner, a basis of more than 128 MiB in double precision takes half of that.
    ///
    /// # Errors
    /// If `restart` is zero, the tolerance is negative, infinite or NaN, or memory runs out.
    pub fn new(backend: &B, n: usize, restart: usize, options: SolveOptions) -> Result<Self> {
        let method = FlexibleMinimalResidual::new(backend, n, restart)?;
        Krylov::with_method(Space::new(backend.clone()), method, options)
    }
}

/// The Arnoldi process of flexible GMRES, and the QR factorisation of its Hessenberg matrix.
#[derive(Debug)]
pub struct FlexibleMinimalResidual<T: Scalar, B: VectorOps> {
    restart: usize,
    /// Two-step GMRES, and whether the next start uses it.
    pairs: Pairs<T, B>,
    in_pairs: bool,
    /// True if two-step GMRES has failed.
    one_by_one: bool,
    /// ||w||^2, then 1 / ||w||.
    norm: Slot,
    layout: ScalarLayout,
    x: B::Vec<T>,
    r: B::Vec<T>,
    scratch: B::Vec<T>,
    /// V and Z, one vector after another; Z is empty without a preconditioner.
    v: B::Vec<T>,
    z: B::Vec<T>,
    room: Room<T, B>,
    passes: [B::Vec<T>; 2],
    triangle: B::Vec<T>,
    rotations: B::Vec<T>,
    g: B::Vec<T>,
    y: B::Vec<T>,
    state: B::Vec<T>,
}

impl<T: Scalar, B: VectorOps> FlexibleMinimalResidual<T, B> {
    /// The process for `n` unknowns, with a restart after `restart` iterations.
    ///
    /// # Errors
    /// If `restart` is zero, and if memory runs out.
    pub fn new(backend: &B, n: usize, restart: usize) -> Result<Self> {
        if restart == 0 {
            return Err(Error::InvalidArgument("GMRES needs a restart length of at least 1".into()));
        }
        let m = restart;
        let layout = ScalarLayout::new();
        let norm = layout.slot(0.0);
        let taken = layout.slot(0.0);
        let zeros = |length: usize| backend.zeros::<T>(length);
        Ok(Self {
            restart: m,
            pairs: Pairs::new(backend, m, taken)?,
            in_pairs: false,
            one_by_one: false,
            norm,
            x: zeros(n)?,
            r: zeros(n)?,
            scratch: zeros(n)?,
            v: zeros(0)?,
            z: zeros(0)?,
            room: Room::new(backend)?,
            passes: [zeros(m + 1)?, zeros(m + 1)?],
            triangle: zeros(m * (m + 1))?,
            rotations: zeros(2 * m)?,
            g: zeros(m + 1)?,
            y: zeros(m)?,
            state: zeros(layout.len())?,
            layout,
        })
    }
}

impl<T: Scalar, B: VectorOps, C: Communicator<B>> Method<T, B, C> for FlexibleMinimalResidual<T, B> {
    type Word = T;

    fn name(&self) -> &'static str {
        "gmres"
    }

    fn shape(&self) -> (usize, usize) {
        let n = B::len(&*self.x);
        (n, n)
    }

    fn period(&self) -> usize {
        self.restart
    }

    fn cycle(&self) -> Option<usize> {
        Some(self.restart)
    }

    fn fit(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<()> {
        // A failure of two-step GMRES in the last solve says nothing about this one.
        self.one_by_one = false;
        self.fit_form(space, system)
    }

    fn fall_back(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<bool> {
        if !self.in_pairs {
            return Ok(false);
        }
        self.one_by_one = true;
        self.pairs.free(space.backend())?;
        self.fit_form(space, system)?;
        Ok(true)
    }

    fn vectors(&mut self) -> Vectors<'_, T, B> {
        Vectors { steps: &mut self.x, residual: &mut self.r, scratch: &mut self.scratch }
    }

    fn start(&mut self, space: &Space<B, C>, _system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()> {
        let (backend, n) = (space.backend(), B::len(&*self.x));
        let mut state = self.layout.initial::<T>(aim.square);
        backend.write(&state, &mut self.state)?;
        let place = self.norm.place();
        space.dot(&self.r, &self.r, B::part_mut(&mut self.state, place..place + 1))?;
        let square = backend.value(B::part(&self.state, place..place + 1))?.re();
        let beta = Float::sqrt(square);
        if !(beta > T::Real::zero() && Float::is_finite(beta)) {
            let fault = if beta.is_zero() { CgStatus::Breakdown } else { CgStatus::NotFinite };
            state[Slot::STATUS.place()] = T::from_real(fault.to_real());
            return backend.write(&state, &mut self.state);
        }
        state[Slot::RR.place()] = T::from_real(square);
        backend.write(&state, &mut self.state)?;
        if self.in_pairs {
            return self.pairs.start(space, &self.r, beta);
        }
        let mut g = vec![T::zero(); self.restart + 1];
        g[0] = T::from_real(beta);
        backend.write(&g, &mut self.g)?;
        backend.axpby(T::from_real(beta.recip()), &self.r, T::zero(), B::part_mut(&mut self.v, 0..n))
    }

    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, step: usize) -> Result<()> {
        let (backend, n, j) = (space.backend(), B::len(&*self.x), step % self.restart);
        if self.in_pairs {
            return self.pairs.iterate(space, system, &mut self.room, &mut self.state, j);
        }
        let (basis, rest) = B::split_mut(&mut self.v, (j + 1) * n);
        let w = B::part_mut(rest, 0..n);
        let v = B::part(basis, j * n..(j + 1) * n);
        if B::len(&*self.z) > 0 {
            let z = B::part_mut(&mut self.z, j * n..(j + 1) * n);
            self.room.apply(backend, system.m, v, z)?;
            system.a.apply(backend, z, w)?;
        } else {
            system.a.apply(backend, v, w)?;
        }
        let [first, second] = &mut self.passes;
        let (place, count) = (self.norm.place(), j + 1);
        space.basis_products(basis, count, w, first)?;
        space.basis_project(basis, count, first, w, second)?;
        let square = B::part_mut(&mut self.state, place..place + 1);
        space.basis_update(-T::one(), basis, count, second, w, Some(square))?;
        backend.hessenberg_step(
            j,
            Hessenberg {
                columns: self.restart,
                passes: [&**first, &**second],
                r: &mut self.triangle,
                rotations: &mut self.rotations,
                g: &mut self.g,
                state: &mut self.state,
                norm: self.norm,
            },
        )?;
        let coefficients = &[Coefficient::At(self.norm)];
        let update = LinearUpdate { inputs: &[], outputs: &mut [w], coefficients, products: &[] };
        space.linear_update(update, &mut self.state, None)
    }

    fn message(&self) -> &B::Slice<T> {
        &self.state
    }

    fn finish(&mut self, space: &Space<B, C>, system: System<'_, T, B>, done: usize) -> Result<()> {
        let backend = space.backend();
        if self.in_pairs {
            let Self { pairs, room, state, x, scratch, .. } = self;
            return pairs.finish(space, system, room, state, done, [x, scratch]);
        }
        backend.fill(T::zero(), &mut self.x)?;
        if done == 0 {
            return Ok(());
        }
        backend.triangular_solve(done, self.restart + 1, &self.triangle, &self.g, &mut self.y)?;
        let basis = if B::len(&*self.z) > 0 { &self.z } else { &self.v };
        backend.basis_update(T::one(), basis, done, &self.y, &mut self.x, None)
    }

    fn bytes_per_iteration(&self, System { a, m }: System<'_, T, B>) -> usize {
        let vector = B::len(&*self.x) * size_of::<T>();
        if self.in_pairs {
            return a.bytes() + self.pairs.bytes(B::len(&*self.x), m.bytes());
        }
        let preconditioner = if B::len(&*self.z) > 0 { m.bytes() } else { 0 };
        a.bytes() + preconditioner + (3 * (self.restart + 1) / 2 + 7) * vector
    }
}

impl<T: Scalar, B: VectorOps> FlexibleMinimalResidual<T, B> {
    /// Allocates memory for the form of the recurrence that is used: two steps at a time, or one.
    fn fit_form<C: Communicator<B>>(&mut self, space: &Space<B, C>, system: System<'_, T, B>) -> Result<()> {
        let (backend, n) = (space.backend(), B::len(&*self.x));
        let inverse = system.m.fused();
        let identity = matches!(inverse, Some(Inverse::Identity));
        self.in_pairs = !self.one_by_one && self.pairs.takes(inverse.as_ref());
        if self.in_pairs {
            self.pairs.fit(backend, n, !identity)?;
        } else {
            lengthen(backend, &mut self.v, n.saturating_mul(self.restart + 1))?;
        }
        if identity || self.in_pairs {
            self.z = backend.zeros(0)?;
        } else {
            lengthen(backend, &mut self.z, n.saturating_mul(self.restart))?;
        }
        self.room.fit(backend, system.m)
    }
}
