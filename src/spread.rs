//! Distributed matrices, whose rows are divided among several ranks.

mod halo;
mod split;

#[cfg(all(unix, feature = "ranks", feature = "cli"))]
pub(crate) use halo::balanced;
#[cfg(all(unix, feature = "ranks", feature = "cli"))]
pub(crate) use halo::halo_of;
pub(crate) use halo::{asked_for, halo_beyond};
pub use halo::{balanced_parts, even_parts, halo_sizes};
pub(crate) use split::{Edge, among_all, joined_rows, own_columns, rows_on, split};

use crate::backend::{
    Backend, ChebyshevStep, Communicator, Conversions, DotWith, ExchangePlan, HaloProduct, Host, KrylovSteps,
    Op, PartDirection, PartResidual, PreconditionSteps, Primitives, Products, Sends, VectorOps, copied,
};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::matrix::Csr;
use crate::operator::{ChebyshevProduct, FusedParts, LinearOperator, plain_residual};
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The rows of one rank of a square matrix, as an operator on that rank's entries of x and y.
///
/// ```text
///     | 4 1 . 2 |  part 0 owns rows 0 and 1: its own columns are | 4 1 |, its halo is x_3:  | 2 |
/// A = | 1 4 1 . |  and x_2, in the order of their numbers        | 1 4 |                   . | and so on
///     | . 1 4 1 |
///     | 2 . 1 4 |  y = (own columns) x + (halo columns) (halo of x)
/// ```
///
/// An application sends the entries of x that other ranks need, receives the halo, and does two products. It moves the
/// rank's rows once, x and y once, and the halo four times.
pub struct Spread<T: Scalar, B: Backend, C> {
    /// The block of this rank's own columns, in any format.
    own: Box<dyn LinearOperator<T, B>>,
    /// The rows with entries in other columns (numbered by their position in the halo), and the indices of these rows.
    others: Csr<T, B>,
    boundary: B::Vec<u32>,
    communicator: C,
    plan: ExchangePlan,
    /// The entries of x that others need, in the order of ranks.
    asked: B::Vec<u32>,
    /// The same entries, grouped by the pieces in which p is computed, if the communicator has fused steps.
    sends: Option<Sends<B>>,
    /// For products with A^T.
    back: Back<T, B>,
    /// The exchange in the opposite direction.
    reversed: ExchangePlan,
    buffers: Mutex<Buffers<T, B>>,
    /// Whether the own columns have declined to fuse a product with a step of Chebyshev's iteration.
    declines: AtomicBool,
}

/// The vectors that a product with a distributed matrix needs.
struct Buffers<T: Scalar, B: Backend> {
    send: B::Vec<T>,
    halo: B::Vec<T>,
    /// The entries at the rows of the boundary.
    boundary: B::Vec<T>,
    /// At the same rows, the contribution of the halo, the entries of x, and their inner product.
    added: B::Vec<T>,
    x: B::Vec<T>,
    share: B::Vec<T>,
}

impl<T: Scalar, B: Backend, C> fmt::Debug for Spread<T, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spread: {} rows and a halo of {}", self.own.rows(), self.others.columns())
    }
}

impl<T: Scalar, B: Products + Conversions + Primitives, C: Communicator<B>> Spread<T, B, C> {
    /// This rank's rows of `a`, which every rank has as a whole; `rows` are the rows of each rank. Rows of other ranks
    /// may be empty.
    ///
    /// # Errors
    /// Unless A is square and the rows of all ranks follow one another and are all of A's; if memory runs out, and if
    /// the device or another rank fails.
    pub fn new(backend: &B, communicator: C, a: &Csr<T, Host>, rows: &[Range<usize>]) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        check_parts(a.rows(), rows, communicator.parts())?;
        let own = &rows[communicator.part()];
        Self::of_rows(backend, communicator, (a, own), rows)
    }

    /// The operator of some rows of a matrix whose columns are distributed as in `columns`. `local` has only these
    /// rows, with global column indices.
    ///
    /// # Errors
    /// As [`Spread::new`].
    pub(crate) fn local(
        backend: &B,
        communicator: C,
        local: &Csr<T, Host>,
        columns: &[Range<usize>],
    ) -> Result<Self> {
        Self::of_rows(backend, communicator, (local, &(0..local.rows())), columns)
    }

    fn of_rows(
        backend: &B,
        communicator: C,
        (a, rows): (&Csr<T, Host>, &Range<usize>),
        columns: &[Range<usize>],
    ) -> Result<Self> {
        let (own, edge) = split(&Host, a, rows, &columns[communicator.part()])?;
        Self::joined(backend, communicator, Box::new(own.into_backend(backend)?), &edge, columns)
    }

    /// The operator of the own columns and of the entries beside them. `columns` are the columns of each rank.
    ///
    /// # Errors
    /// As [`Spread::new`].
    pub(crate) fn joined(
        backend: &B,
        communicator: C,
        own: Box<dyn LinearOperator<T, B>>,
        edge: &Edge<T>,
        columns: &[Range<usize>],
    ) -> Result<Self> {
        Error::check_dimension("parts", communicator.parts(), columns.len())?;
        let (mine, halo) = (&columns[communicator.part()], edge.halo());
        let place = |column: usize| halo.partition_point(|&other| (other as usize) < column);
        // The columns ascend, so they are in the order of ranks.
        let receive = columns.iter().map(|columns| place(columns.end) - place(columns.start)).collect();
        let mut plan = ExchangePlan { send: vec![0; columns.len()], receive };
        let mut asked = Vec::new();
        for (other, theirs) in asked_for(&communicator, &halo, columns)?.into_iter().enumerate() {
            if other != communicator.part() {
                plan.send[other] = theirs.len();
                asked.extend(theirs.into_iter().map(|column| column - mine.start as u32));
            }
        }
        let inner = communicator.waits() && !communicator.is_fused();
        let buffers = Buffers {
            send: backend.zeros(asked.len())?,
            halo: backend.zeros(halo.len())?,
            boundary: backend.zeros(edge.rows.len())?,
            added: backend.zeros(if inner { edge.rows.len() } else { 0 })?,
            x: backend.zeros(if inner { edge.rows.len() } else { 0 })?,
            share: backend.zeros(1)?,
        };
        let reversed = ExchangePlan { send: plan.receive.clone(), receive: plan.send.clone() };
        communicator.prepare_exchange::<T>(backend, &plan)?;
        communicator.prepare_exchange::<T>(backend, &reversed)?;
        let sends = communicator.prepare_sends::<T>(backend, &asked, mine.len())?;
        Ok(Self {
            own,
            others: numbered(&edge.a, &halo)?.into_backend(backend)?,
            boundary: backend.upload(edge.rows.clone())?,
            back: Back::new(backend, &asked)?,
            communicator,
            plan,
            reversed,
            sends,
            asked: backend.upload(asked)?,
            buffers: Mutex::new(buffers),
            declines: AtomicBool::new(false),
        })
    }
}

/// What adds the values that other ranks send back to the entries that they asked for, in products with A^T.
struct Back<T: Scalar, B: Backend> {
    /// The entries that others ask for, ascending, and for each of them a row with a one for each who asks.
    rows: B::Vec<u32>,
    ones: Csr<T, B>,
    /// The entries of y at these rows.
    y: Mutex<B::Vec<T>>,
}

impl<T: Scalar, B: Products + Primitives> Back<T, B> {
    fn new(backend: &B, asked: &[u32]) -> Result<Self> {
        let mut places: Vec<u32> = (0..asked.len() as u32).collect();
        places.sort_by_key(|&place| asked[place as usize]);
        let (mut rows, mut starts): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
        for (number, &place) in places.iter().enumerate() {
            let row = asked[place as usize];
            if rows.last() != Some(&row) {
                rows.push(row);
                starts.push(number);
            }
        }
        starts.push(asked.len());
        let ones = vec![T::one(); asked.len()];
        let ones = Csr::from_parts(rows.len(), asked.len(), starts, places, ones)?.into_backend(backend)?;
        let y = Mutex::new(backend.zeros(rows.len())?);
        Ok(Self { rows: backend.upload(rows)?, ones, y })
    }

    fn add(&self, backend: &B, sent: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
        let mut here = lock(&self.y);
        backend.gather::<T, u32>(y, &self.rows, &mut here)?;
        self.ones.product_op(backend, Op::None, T::one(), sent, T::one(), &mut here)?;
        backend.scatter::<T, u32>(&here, &self.rows, y)
    }
}

/// Refuses ranges of rows that do not follow one another or are not all of `n` rows.
pub(crate) fn check_parts(n: usize, rows: &[Range<usize>], parts: usize) -> Result<()> {
    Error::check_dimension("parts", parts, rows.len())?;
    let mut end = 0;
    for rows in rows {
        Error::check_dimension("first row of a rank", end, rows.start)?;
        end = rows.end.max(rows.start);
    }
    Error::check_dimension("rows of all ranks", n, end)
}

impl<T: Scalar, B: Backend + VectorOps, C> Spread<T, B, C> {
    /// The contribution of the halo to y.
    fn halo_product<'a>(
        &'a self,
        alpha: T,
        y: &'a mut B::Slice<T>,
        dot: Option<DotWith<'a, T, B>>,
    ) -> HaloProduct<'a, T, B> {
        HaloProduct {
            rows: &self.boundary,
            matrix: self.others.parts(),
            alpha,
            d: None,
            y,
            dot,
            publish: false,
        }
    }
}

/// The same entries with columns numbered by their places in the halo.
fn numbered<T: Scalar>(a: &Csr<T, Host>, halo: &[u32]) -> Result<Csr<T, Host>> {
    let parts = a.parts();
    let place = |column: &u32| halo.partition_point(|other| other < column) as u32;
    let indices = parts.indices.par_iter().with_min_len(1 << 12).map(place).collect();
    Ok(Csr::from_parts_unchecked(
        a.rows(),
        halo.len(),
        parts.offsets.copied(&Host)?,
        indices,
        parts.values.to_vec(),
    ))
}

impl<T: Scalar, B: Products + Conversions + Primitives, C: Communicator<B>> Spread<T, B, C> {
    /// Receives the halo of x while `work`, which does not need it, goes on.
    fn with_halo(
        &self,
        backend: &B,
        x: &B::Slice<T>,
        (send, halo): (&mut B::Vec<T>, &mut B::Vec<T>),
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        backend.gather::<T, u32>(x, &self.asked, send)?;
        self.communicator.begin_exchange(backend, &self.plan, send)?;
        work()?;
        self.communicator.exchange(backend, &self.plan, send, halo)
    }

    /// y = A x and this rank's part of x.y in one pass over both: the product with the own columns computes its part,
    /// and the contribution of the halo adds its inner product with x at the boundary.
    fn apply_dot_of_boundary(
        &self,
        backend: &B,
        x: &B::Slice<T>,
        y: &mut B::Slice<T>,
        xy: &mut B::Slice<T>,
    ) -> Result<()> {
        let mut buffers = lock(&self.buffers);
        let Buffers { send, halo, boundary, added, x: near, share } = &mut *buffers;
        self.with_halo(backend, x, (send, halo), || {
            self.own.apply_dot(backend, x, y, xy)?;
            backend.gather::<T, u32>(x, &self.boundary, near)?;
            backend.gather::<T, u32>(y, &self.boundary, boundary)
        })?;
        self.others.product_op(backend, Op::None, T::one(), halo, T::zero(), added)?;
        backend.axpby(T::one(), added, T::one(), boundary)?;
        backend.scatter::<T, u32>(boundary, &self.boundary, y)?;
        backend.dot(near, added, share)?;
        backend.axpby(T::one(), share, T::one(), B::part_mut(xy, 0..1))
    }
}

impl<T: Scalar, B: Products + Conversions + Primitives, C: Communicator<B>> LinearOperator<T, B>
    for Spread<T, B, C>
{
    fn rows(&self) -> usize {
        self.own.rows()
    }

    fn columns(&self) -> usize {
        self.own.columns()
    }

    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
        self.product_op(backend, Op::None, T::one(), x, T::zero(), y)
    }

    /// With A^T, contributions of a rank's rows to entries of other ranks are sent in the opposite direction.
    fn product_op(
        &self,
        backend: &B,
        op: Op,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()> {
        let mut buffers = lock(&self.buffers);
        let Buffers { send, halo, boundary, .. } = &mut *buffers;
        if op.transposes() {
            backend.gather::<T, u32>(x, &self.boundary, boundary)?;
            self.others.product_op(backend, op, alpha, boundary, T::zero(), halo)?;
            self.communicator.begin_exchange(backend, &self.reversed, halo)?;
            self.own.product_op(backend, op, alpha, x, beta, y)?;
            self.communicator.exchange(backend, &self.reversed, halo, send)?;
            return self.back.add(backend, send, y);
        }
        if self.communicator.is_fused() {
            self.communicator.begin_exchange_of(backend, &self.plan, x, &self.asked)?;
            self.own.product_op(backend, op, alpha, x, beta, y)?;
            let halo = self.halo_product(alpha, y, None);
            return self.communicator.end_exchange_with(backend, &self.plan, halo);
        }
        self.with_halo(backend, x, (send, halo), || {
            self.own.product_op(backend, op, alpha, x, beta, y)?;
            backend.gather::<T, u32>(y, &self.boundary, boundary)
        })?;
        self.others.product_op(backend, op, alpha, halo, T::one(), boundary)?;
        backend.scatter::<T, u32>(boundary, &self.boundary, y)
    }

    /// The contribution of the halo is a sum of two numbers, high + low, and is subtracted from b before that of the
    /// own columns. None of it is therefore lost to cancellation in b - A x.
    fn accurate_residual(
        &self,
        backend: &B,
        scale: T,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        r: &mut B::Slice<T>,
    ) -> Result<bool> {
        if self.communicator.is_fused() {
            plain_residual(backend, self, scale, b, x, r)?;
            return Ok(false);
        }
        let mut buffers = lock(&self.buffers);
        let Buffers { send, halo, .. } = &mut *buffers;
        self.with_halo(backend, x, (send, halo), || Ok(()))?;
        let (one, n) = (T::one(), B::len(&*self.boundary));
        let (mut high, mut low, mut part) = (backend.zeros(n)?, backend.zeros(n)?, backend.zeros(n)?);
        // part is zero here: high = -H x, rounded, and low is the rounding error.
        let mut accurate = self.others.accurate_residual(backend, one, &part, halo, &mut high)?;
        backend.axpby(-one, &high, T::zero(), &mut part)?;
        accurate &= self.others.accurate_residual(backend, one, &part, halo, &mut low)?;
        // b + high without error: sum, whose rounding error is added to low.
        backend.gather::<T, u32>(b, &self.boundary, &mut part)?;
        let mut sum = copied(backend, &part)?;
        backend.axpby(one, &high, one, &mut sum)?;
        let mut moved = copied(backend, &sum)?;
        backend.axpby(-one, &part, one, &mut moved)?;
        backend.axpby(-one, &moved, one, &mut high)?;
        backend.axpby(-one, &sum, one, &mut part)?;
        backend.axpby(one, &moved, one, &mut part)?;
        backend.axpby(one, &part, one, &mut high)?;
        backend.axpby(one, &high, one, &mut low)?;
        let mut left = copied(backend, b)?;
        backend.scatter::<T, u32>(&sum, &self.boundary, &mut left)?;
        accurate &= self.own.accurate_residual(backend, scale, &left, x, r)?;
        backend.gather::<T, u32>(r, &self.boundary, &mut part)?;
        backend.axpby(scale, &low, one, &mut part)?;
        backend.scatter::<T, u32>(&part, &self.boundary, r)?;
        Ok(accurate)
    }

    /// Multiplies, and returns this rank's part of x.y.
    fn apply_dot(
        &self,
        backend: &B,
        x: &B::Slice<T>,
        y: &mut B::Slice<T>,
        xy: &mut B::Slice<T>,
    ) -> Result<()> {
        if !self.communicator.is_fused() {
            if self.communicator.waits() {
                return self.apply_dot_of_boundary(backend, x, y, xy);
            }
            self.apply(backend, x, y)?;
            return backend.dot(x, y, xy);
        }
        // Two products must not run at the same time, since rounds are counted.
        let _buffers = lock(&self.buffers);
        self.communicator.begin_exchange_of(backend, &self.plan, x, &self.asked)?;
        self.own.apply_dot(backend, x, y, xy)?;
        let halo = self.halo_product(T::one(), y, Some((x, xy)));
        self.communicator.end_exchange_with(backend, &self.plan, halo)
    }

    fn fused_parts(&self) -> Option<&dyn FusedParts<T, B>>
    where
        B: KrylovSteps,
    {
        self.sends.as_ref().map(|_| self as &dyn FusedParts<T, B>)
    }

    fn chebyshev_product(&self) -> Option<&dyn ChebyshevProduct<T, B>>
    where
        B: PreconditionSteps,
    {
        let there = self.communicator.is_fused() && !self.declines.load(Ordering::Relaxed);
        self.own.chebyshev_product().filter(|_| there).map(|_| self as &dyn ChebyshevProduct<T, B>)
    }

    fn waits(&self) -> bool {
        self.communicator.waits()
    }

    fn bytes(&self) -> usize {
        let halo = self.others.storage_bytes() + 4 * self.others.columns() * size_of::<T>();
        self.own.bytes() + halo + 3 * self.others.rows() * size_of::<T>()
    }
}

impl<T, B, C> ChebyshevProduct<T, B> for Spread<T, B, C>
where
    T: Scalar,
    B: Products + Conversions + Primitives + PreconditionSteps,
    C: Communicator<B>,
{
    /// The step of the own columns, from which the scaled product with the halo is then subtracted.
    fn chebyshev_step(&self, backend: &B, step: ChebyshevStep<'_, T, B>, z: &B::Slice<T>) -> Result<bool> {
        let Some(own) = self.own.chebyshev_product() else { return Ok(false) };
        let _buffers = lock(&self.buffers);
        self.communicator.begin_exchange_of(backend, &self.plan, z, &self.asked)?;
        let ChebyshevStep { step: length, d, last, .. } = step;
        let does = own.chebyshev_step(backend, ChebyshevStep { last: &mut *last, ..step }, z)?;
        // The halo that was sent must be received in any case.
        let alpha = if does { -T::from_real(length) } else { T::zero() };
        let halo = HaloProduct { d, ..self.halo_product(alpha, last, None) };
        self.communicator.end_exchange_with(backend, &self.plan, halo)?;
        self.declines.fetch_or(!does, Ordering::Relaxed);
        Ok(does)
    }
}

impl<T: Scalar, B: Products + Conversions + Primitives + KrylovSteps, C: Communicator<B>> FusedParts<T, B>
    for Spread<T, B, C>
{
    fn drop_exchange(&self, backend: &B) -> Result<()> {
        self.communicator.drop_exchange::<T>(backend)
    }

    fn product(&self, backend: &B, p: &B::Slice<T>, q: &mut B::Slice<T>, pq: &mut B::Slice<T>) -> Result<()> {
        let _buffers = lock(&self.buffers);
        self.own.apply_dot(backend, p, q, pq)?;
        let halo = HaloProduct { publish: true, ..self.halo_product(T::one(), q, Some((p, pq))) };
        self.communicator.end_exchange_with(backend, &self.plan, halo)
    }

    fn residual(&self, backend: &B, step: PartResidual<'_, T, B>) -> Result<()> {
        self.communicator.cg_residual(backend, step)
    }

    fn direction(&self, backend: &B, step: PartDirection<'_, T, B>) -> Result<()> {
        let sends = self.sends.as_ref().ok_or_else(|| Error::Unsupported("fused steps".into()))?;
        self.communicator.cg_direction(backend, &self.plan, sends, step)
    }
}
