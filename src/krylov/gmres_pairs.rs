//! Two-step GMRES: the Arnoldi process with two steps at a time, for preconditioners that cost next to nothing.
//!
//! From v_0 = r / beta, and M fixed:
//!
//! ```text
//! for j = 0, 2, 4, ... below m
//!     w_1 = A M^-1 v_j,  w_2 = A M^-1 w_1
//!     t_1, t_2 = V^H w_1, V^H w_2,  and the two new columns of G = V^H V                   the basis is read once
//!     h_1, h_2 = G^-1 t_1, G^-1 t_2;   s_1, r, s_2 by Pythagoras
//!     v_(j+1) = (w_1 - V h_1) / s_1,   v_(j+2) = (w_2 - V h_2 - r v_(j+1)) / s_2           and once more
//!     rotate the new columns (h_1, s_1) and (h_2, r, s_2) of the Hessenberg matrix
//! y = R^-1 g,  x = x + M^-1 Z y,   Z = [v_0, A M^-1 v_0, v_2, A M^-1 v_2, ...]
//! ```
//!
//! Every column of the Hessenberg relation is that of a product that was computed, so no recurrence between products is
//! assumed. Z spans the same space as V, and its odd columns are known combinations of V (V h_1 + s_1 v_(j+1)), so Z
//! needs no memory. A step moves the matrix, on average (m + 2) / 2 vectors of the basis, and 4.5 others; one step at a
//! time with two passes of Gram-Schmidt moves 1.5 (m + 1) and 9.
//!
//! A long basis is stored in half the precision. This perturbs the relation A Z = V H by 6e-8 of its size, but not the
//! orthogonality, since G accounts for the loss. A cycle can therefore reduce the residual by up to 1e7, and a
//! certificate measures by how much it did. If w_2 is almost a multiple of v_j, digits are lost: `pair_factors` ends
//! the recurrence when the basis is no longer nearly orthogonal, and GMRES continues with one step at a time.

use super::method::{Room, System, lengthen};
use crate::backend::{Communicator, Inverse, PairLayout, PairScalars, Slot, Space, VectorOps};
use crate::error::Result;
use crate::scalar::Scalar;

/// The maximum number of iterations between two starts: a basis of 32 vectors.
const MOST: usize = 31;

/// A basis of more bytes than this is stored in half the precision. A smaller one stays in a cache, so that halving it
/// gains little.
const LONG: usize = 128 << 20;

/// The two-step Arnoldi process, and its memory.
#[derive(Debug)]
pub(super) struct Pairs<T: Scalar, B: VectorOps> {
    layout: PairLayout,
    /// Where the state stores the number of columns of R.
    taken: Slot,
    /// V, one vector after another, in one of two precisions.
    full: B::Vec<T>,
    narrow: B::Vec<T::Lower>,
    is_narrow: bool,
    /// M^-1 v or M^-1 w_1; empty without a preconditioner.
    z: B::Vec<T>,
    /// The last vector of the basis.
    v: B::Vec<T>,
    w: [B::Vec<T>; 2],
    products: B::Vec<T>,
    squares: B::Vec<T>,
    dense: B::Vec<T>,
    y: B::Vec<T>,
    /// y in terms of the basis.
    c: B::Vec<T>,
}

/// Evaluates `$body` with the basis in the precision in which it is stored.
macro_rules! with_basis {
    ($pairs:ident, $basis:ident => $body:expr) => {
        if $pairs.is_narrow {
            let $basis = &mut $pairs.narrow;
            $body
        } else {
            let $basis = &mut $pairs.full;
            $body
        }
    };
}

impl<T: Scalar, B: VectorOps> Pairs<T, B> {
    /// For restarts after `restart` iterations; allocates no long vectors yet.
    pub(super) fn new(backend: &B, restart: usize, taken: Slot) -> Result<Self> {
        let layout = PairLayout { columns: restart };
        let small = if restart <= MOST { layout } else { PairLayout { columns: 0 } };
        let zeros = |length: usize| backend.zeros::<T>(length);
        Ok(Self {
            layout,
            taken,
            full: zeros(0)?,
            narrow: backend.zeros(0)?,
            is_narrow: false,
            z: zeros(0)?,
            v: zeros(0)?,
            w: [zeros(0)?, zeros(0)?],
            products: zeros(small.products())?,
            squares: zeros(2)?,
            dense: zeros(small.len())?,
            y: zeros(restart)?,
            c: zeros(small.width())?,
        })
    }

    /// Returns whether two-step GMRES can be used with this preconditioner: A M^-1 has to be one fixed operator, and
    /// M^-1 must cost little compared to the basis. Inner products with the basis in lower precision need a wider type
    /// to be summed in.
    pub(super) fn takes(&self, inverse: Option<&Inverse<'_, T, B>>) -> bool {
        let wide = size_of::<T::Lower>() < size_of::<T>();
        let cheap = inverse.is_some_and(|inverse| !matches!(inverse, Inverse::General(_)));
        wide && cheap && self.layout.columns <= MOST
    }

    /// Allocates memory for vectors of `n` scalars.
    pub(super) fn fit(&mut self, backend: &B, n: usize, preconditioned: bool) -> Result<()> {
        let entries = n.saturating_mul(self.layout.width());
        self.is_narrow = entries.saturating_mul(size_of::<T>()) > LONG;
        if self.is_narrow {
            lengthen(backend, &mut self.narrow, entries)?;
        } else {
            lengthen(backend, &mut self.full, entries)?;
        }
        let z = if preconditioned { n } else { 0 };
        if B::len(&*self.z) != z {
            self.z = backend.zeros(z)?;
        }
        let [w_1, w_2] = &mut self.w;
        [&mut self.v, w_1, w_2].into_iter().try_for_each(|vector| lengthen(backend, vector, n))
    }

    /// Frees the memory when the process is no longer used.
    pub(super) fn free(&mut self, backend: &B) -> Result<()> {
        self.narrow = backend.zeros(0)?;
        for vector in self.w.iter_mut().chain([&mut self.full, &mut self.z, &mut self.v]) {
            *vector = backend.zeros(0)?;
        }
        Ok(())
    }

    /// The operands of the small dense steps.
    fn scalars<'a>(&'a mut self, state: &'a mut B::Slice<T>, lone: bool) -> PairScalars<'a, T, B> {
        PairScalars {
            layout: self.layout,
            products: &self.products,
            squares: &self.squares,
            dense: &mut self.dense,
            state,
            taken: self.taken,
            lone,
        }
    }

    /// v_0 = r / ||r||; the state gets ||r||^2.
    pub(super) fn start<C: Communicator<B>>(
        &mut self,
        space: &Space<B, C>,
        r: &B::Slice<T>,
        beta: T::Real,
    ) -> Result<()> {
        let backend = space.backend();
        let mut right = vec![T::zero(); self.layout.width()];
        right[0] = T::from_real(beta);
        backend.write(&right, B::part_mut(&mut self.dense, self.layout.right()))?;
        // Both vectors of the first pair are r / beta, without a projection; the second is overwritten later.
        let range = self.layout.factors();
        let mut factors = vec![T::zero(); range.len()];
        let behind = 2 * self.layout.width();
        (factors[behind + 1], factors[behind + 2]) = (T::from_real(beta), T::from_real(beta));
        backend.write(&factors, B::part_mut(&mut self.dense, range.clone()))?;
        let factors = B::part(&self.dense, range);
        with_basis!(self, basis => {
            space.pair_update(basis, 0, [r, r], factors, &mut self.v, &mut self.squares)
        })
    }

    /// w = A M^-1 v. After the second vector of a pair, also the new basis vectors and columns of the Hessenberg
    /// matrix.
    pub(super) fn iterate<C: Communicator<B>>(
        &mut self,
        space: &Space<B, C>,
        system: System<'_, T, B>,
        room: &mut Room<T, B>,
        state: &mut B::Slice<T>,
        step: usize,
    ) -> Result<()> {
        let (backend, odd) = (space.backend(), step % 2);
        {
            let [first, second] = &mut self.w;
            let (from, to) = if odd == 0 { (&self.v, first) } else { (&*first, second) };
            if B::len(&*self.z) > 0 {
                room.apply(backend, system.m, from, &mut self.z)?;
                system.a.apply(backend, &self.z, to)?;
            } else {
                system.a.apply(backend, from, to)?;
            }
        }
        if odd == 0 {
            return Ok(());
        }
        let column = step - 1;
        let [first, second] = &self.w;
        with_basis!(self, basis => {
            space.pair_products(basis, column + 1, [first, second], &mut self.products)?;
        });
        backend.pair_factors(column, self.scalars(state, false))?;
        let factors = B::part(&self.dense, self.layout.factors());
        let [first, second] = &self.w;
        with_basis!(self, basis => {
            space.pair_update(
                basis,
                column + 1,
                [first, second],
                factors,
                &mut self.v,
                &mut self.squares,
            )?;
        });
        backend.pair_columns(column, self.scalars(state, false))
    }

    /// x = M^-1 Z y after `done` iterations. `room_for_x` is as long as x.
    pub(super) fn finish<C: Communicator<B>>(
        &mut self,
        space: &Space<B, C>,
        system: System<'_, T, B>,
        room: &mut Room<T, B>,
        state: &mut B::Slice<T>,
        done: usize,
        [x, room_for_x]: [&mut B::Slice<T>; 2],
    ) -> Result<()> {
        let backend = space.backend();
        if done == 0 {
            return backend.fill(T::zero(), x);
        }
        if !done.is_multiple_of(2) {
            // The first half of a pair is orthogonalised by itself, unless the backend is ahead and has done the whole
            // pair.
            let column = done - 1;
            let first = &self.w[0];
            with_basis!(self, basis => {
                space.pair_products(basis, column + 1, [first, first], &mut self.products)?;
            });
            backend.pair_factors(column, self.scalars(state, true))?;
            backend.pair_columns(column, self.scalars(state, true))?;
        }
        let (layout, width) = (self.layout, self.layout.width());
        let triangle = B::part(&self.dense, layout.triangle());
        let right = B::part(&self.dense, layout.right());
        backend.triangular_solve(done, width, triangle, right, &mut self.y)?;
        let combination = B::part(&self.dense, layout.combination());
        backend.basis_combination(combination, done, &self.y, &mut self.c)?;
        let preconditioned = B::len(&*self.z) > 0;
        let c = &self.c;
        {
            let to = if preconditioned { &mut *room_for_x } else { &mut *x };
            with_basis!(self, basis => backend.basis_combination(basis, done, c, to)?);
        }
        if preconditioned {
            room.apply(backend, system.m, room_for_x, x)?;
        }
        Ok(())
    }

    /// Bytes that a step moves in addition to the matrix, on average.
    pub(super) fn bytes(&self, n: usize, inverse: usize) -> usize {
        let stored = if self.is_narrow { size_of::<T::Lower>() } else { size_of::<T>() };
        let basis = (self.layout.columns + 2) * n * stored / 2;
        let more = if B::len(&*self.z) > 0 { inverse + 2 * n * size_of::<T>() } else { 0 };
        basis + 9 * n * size_of::<T>() / 2 + more
    }
}
