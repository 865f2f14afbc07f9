//! Distributed vectors, and the communication between the ranks that own their parts.
//!
//! A rank owns some of the unknowns, and stores only their elements of each vector. Elementwise operations need no
//! communication. Sums do: each rank adds its own terms, and a [`Communicator`] adds the results in the order of ranks,
//! so that every rank gets the same bits. Products also need the elements of x that other ranks own, the *halo*.
//!
//! Solvers compute sums through a [`Space`], a backend with a communicator. For vectors on a single rank the
//! communicator is [`Alone`]: it does nothing, and its calls are optimised away.

use super::{
    Backend, CsrParts, KrylovSteps, LinearUpdate, PartDirection, PartResidual, ScalarProgram, Sends, Slot,
    VectorOps,
};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Real, Scalar};
use std::fmt::Debug;

/// The number of entries that a rank sends to each rank, and receives from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangePlan {
    /// The number of entries to send to each rank, in the order of ranks.
    pub send: Vec<usize>,
    /// The number of entries to receive from each rank, in the order of ranks.
    pub receive: Vec<usize>,
}

impl ExchangePlan {
    /// Returns an error if the plan is for another number of ranks, or if its totals are not `send` and `halo`.
    pub(crate) fn check(&self, parts: usize, send: usize, halo: usize) -> Result<()> {
        Error::check_dimension("parts to send to", parts, self.send.len())?;
        Error::check_dimension("parts to receive from", parts, self.receive.len())?;
        Error::check_dimension("entries to send", self.send.iter().sum(), send)?;
        Error::check_dimension("entries to receive", self.receive.iter().sum(), halo)
    }
}

/// A vector v, and a scalar: the inner product of v (conjugated) with the result is added to the scalar.
pub type DotWith<'a, T, B> = (&'a <B as Backend>::Slice<T>, &'a mut <B as Backend>::Slice<T>);

/// The product with the halo, which is added to y = A x once the halo has arrived: for row i = `rows[k]`,
/// `y[i] += alpha d[i] (row k of the matrix) halo`.
pub struct HaloProduct<'a, T: Scalar, B: Backend> {
    /// The rows of y to which something is added.
    pub rows: &'a B::Slice<u32>,
    /// A matrix with a row for each of `rows` and a column for each entry of the halo.
    pub matrix: CsrParts<'a, T, B>,
    /// The factor of the product.
    pub alpha: T,
    /// A factor for each row of y; `None` means ones.
    pub d: Option<&'a B::Slice<T::Real>>,
    /// The vector to which the product is added.
    pub y: &'a mut B::Slice<T>,
    /// x, and the scalar to which the contribution of this product to x.y is added; `None` if x.y is not requested.
    pub dot: Option<DotWith<'a, T, B>>,
    /// True if x.y is sent to all ranks afterwards ([`Communicator::cg_residual`] receives it).
    pub publish: bool,
}

impl<T: Scalar, B: Backend> Debug for HaloProduct<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HaloProduct of {} rows", B::len(self.rows))
    }
}

/// The collective operations of the ranks that share vectors. All ranks must call the same functions in the same order.
pub trait Communicator<B: VectorOps>: Clone + Debug + Send + Sync + 'static {
    /// True if there is only one rank. Then sums need no communication, and fused steps may compute complete sums.
    const ALONE: bool;

    /// The number of this rank.
    fn part(&self) -> usize;

    /// The number of ranks.
    fn parts(&self) -> usize;

    /// Returns whether the communicator supports [`Communicator::begin_exchange_of`] and
    /// [`Communicator::end_exchange_with`], an exchange that reads directly from x and adds directly to y.
    fn is_fused(&self) -> bool {
        false
    }

    /// Replaces every scalar by its sum over all ranks, added in the order of ranks. The work is enqueued after all
    /// earlier work of the backend.
    ///
    /// # Errors
    /// If another rank or the device fails.
    fn all_sum<T: Scalar>(&self, backend: &B, sums: &mut B::Slice<T>) -> Result<()>;

    /// Combines words of all ranks by bitwise or. All ranks must have the same number of words.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`]; if ranks have different numbers of words, or if the communicator can't send bytes
    /// ([`Communicator::deliver`]).
    fn all_or(&self, backend: &B, words: &mut B::Slice<u32>) -> Result<()> {
        or_by_way_of_hosts(self, backend, words)
    }

    /// Allocates memory for exchanges of values of type `T` by a plan. Must not be called while the backend records.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`], and if memory runs out.
    fn prepare_exchange<T: Scalar>(&self, _backend: &B, _plan: &ExchangePlan) -> Result<()> {
        Ok(())
    }

    /// Begins an exchange. [`Communicator::exchange`] ends it, and must get the same plan and entries. Other work can
    /// be done between the two.
    ///
    /// # Errors
    /// As [`Communicator::exchange`].
    fn begin_exchange<T: Scalar>(
        &self,
        _backend: &B,
        _plan: &ExchangePlan,
        _send: &B::Slice<T>,
    ) -> Result<()> {
        Ok(())
    }

    /// Exchanges entries with the other ranks by a plan, or ends the exchange that [`Communicator::begin_exchange`] has
    /// begun.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`], and if the length of a buffer is not that of the plan.
    fn exchange<T: Scalar>(
        &self,
        backend: &B,
        plan: &ExchangePlan,
        send: &B::Slice<T>,
        halo: &mut B::Slice<T>,
    ) -> Result<()>;

    /// As [`Communicator::begin_exchange`], for the entries of x whose indices are in `asked`.
    ///
    /// # Errors
    /// As [`Communicator::exchange`].
    fn begin_exchange_of<T: Scalar>(
        &self,
        _backend: &B,
        _plan: &ExchangePlan,
        _x: &B::Slice<T>,
        _asked: &B::Slice<u32>,
    ) -> Result<()> {
        Err(Error::Unsupported("a fused exchange".into()))
    }

    /// Ends an exchange, and adds the product with the halo that has arrived.
    ///
    /// # Errors
    /// As [`Communicator::exchange`].
    fn end_exchange_with<T: Scalar>(
        &self,
        _backend: &B,
        _plan: &ExchangePlan,
        _halo: HaloProduct<'_, T, B>,
    ) -> Result<()> {
        Err(Error::Unsupported("a fused exchange".into()))
    }

    /// Prepares to send some entries of vectors of `n` scalars of type `T` as soon as they are computed: those with the
    /// indices `asked`. Returns `None` if the communicator does not support the fused steps below.
    ///
    /// # Errors
    /// As [`Communicator::prepare_exchange`].
    fn prepare_sends<T: Scalar>(&self, _backend: &B, _asked: &[u32], _n: usize) -> Result<Option<Sends<B>>> {
        Ok(None)
    }

    /// Discards messages of [`Communicator::cg_direction`] that no rank has received yet.
    ///
    /// # Errors
    /// As [`Communicator::exchange`].
    fn drop_exchange<T: Scalar>(&self, _backend: &B) -> Result<()> {
        Ok(())
    }

    /// [`KrylovSteps::cg_part_residual`]; if no sum is given, with the one that [`Communicator::end_exchange_with`] has
    /// sent. Then sends this rank's sums to all ranks, except with a general preconditioner.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    fn cg_residual<T: Scalar>(&self, _backend: &B, _step: PartResidual<'_, T, B>) -> Result<()>
    where
        B: KrylovSteps,
    {
        Err(Error::Unsupported("fused steps on several parts".into()))
    }

    /// [`KrylovSteps::cg_part_direction`]; if no sums are given, with those that [`Communicator::cg_residual`] has
    /// sent. Also begins the exchange of p, which [`Communicator::end_exchange_with`] ends.
    ///
    /// # Errors
    /// As [`Communicator::exchange`].
    fn cg_direction<T: Scalar>(
        &self,
        _backend: &B,
        _plan: &ExchangePlan,
        _sends: &Sends<B>,
        _step: PartDirection<'_, T, B>,
    ) -> Result<()>
    where
        B: KrylovSteps,
    {
        Err(Error::Unsupported("fused steps on several parts".into()))
    }

    /// Returns whether any rank requests a stop. All ranks must call this at the same point of the computation, and get
    /// the same answer. A request may be sent together with the next sum; then only a later call returns it.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    fn agree(&self, stop: bool) -> Result<bool>;

    /// Returns whether its operations wait for the backend. Such operations can't be recorded.
    fn waits(&self) -> bool;

    /// The seconds that an iteration on several ranks takes in addition to the divided work: more launches, and
    /// synchronisation. If this is not zero, small systems are solved on a single rank.
    fn latency(&self) -> f64 {
        0.0
    }

    /// Sends bytes to each rank and receives bytes from each, through the hosts. There is no timeout.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`], and if the communicator does not support it.
    fn deliver(&self, _to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Err(Error::Unsupported("bytes between these parts".into()))
    }

    /// Returns the bytes of all ranks, on all ranks.
    ///
    /// # Errors
    /// As [`Communicator::deliver`].
    fn gather(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.deliver(vec![own; self.parts()])
    }
}

/// Implements [`Communicator::all_or`] by means of [`Communicator::gather`].
pub(crate) fn or_by_way_of_hosts<B: VectorOps, C: Communicator<B>>(
    communicator: &C,
    backend: &B,
    words: &mut B::Slice<u32>,
) -> Result<()> {
    let mut own = backend.download(words)?;
    let bytes = own.iter().flat_map(|word| word.to_le_bytes()).collect();
    for of_part in communicator.gather(bytes)? {
        let (theirs, rest) = of_part.as_chunks::<4>();
        Error::check_dimension("words of another part", own.len(), theirs.len() + rest.len())?;
        own.iter_mut().zip(theirs).for_each(|(word, bytes)| *word |= u32::from_le_bytes(*bytes));
    }
    backend.write(&own, words)
}

/// The communicator of vectors on a single rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alone;

impl<B: VectorOps> Communicator<B> for Alone {
    const ALONE: bool = true;

    fn part(&self) -> usize {
        0
    }

    fn parts(&self) -> usize {
        1
    }

    fn all_sum<T: Scalar>(&self, _backend: &B, _sums: &mut B::Slice<T>) -> Result<()> {
        Ok(())
    }

    fn all_or(&self, _backend: &B, _words: &mut B::Slice<u32>) -> Result<()> {
        Ok(())
    }

    fn exchange<T: Scalar>(
        &self,
        _backend: &B,
        _plan: &ExchangePlan,
        send: &B::Slice<T>,
        halo: &mut B::Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("entries to send to nobody", 0, B::len(send))?;
        Error::check_dimension("entries to receive from nobody", 0, B::len(halo))
    }

    fn agree(&self, stop: bool) -> Result<bool> {
        Ok(stop)
    }

    fn waits(&self) -> bool {
        false
    }
}

/// The space of a solver's vectors: a backend, and a communicator if the vectors are distributed.
#[derive(Debug, Clone)]
pub struct Space<B, C = Alone> {
    backend: B,
    communicator: C,
}

impl<B> Space<B> {
    /// The space of vectors that are not distributed.
    pub fn new(backend: B) -> Self {
        Self { backend, communicator: Alone }
    }
}

impl<B: VectorOps, C: Communicator<B>> Space<B, C> {
    /// The space of vectors that are distributed over the ranks of a communicator.
    pub fn spread(backend: B, communicator: C) -> Self {
        Self { backend, communicator }
    }

    /// The backend of this rank.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The communicator of the ranks.
    pub fn communicator(&self) -> &C {
        &self.communicator
    }

    /// Returns the length of a distributed vector, of which this rank owns `own` elements. `scratch` has one element.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    pub fn len_over_all<R: Real>(&self, own: usize, scratch: &mut B::Slice<R>) -> Result<usize> {
        if C::ALONE {
            return Ok(own);
        }
        self.backend.write(&[R::from_f64(own as f64)], scratch)?;
        self.communicator.all_sum(&self.backend, scratch)?;
        Ok(self.backend.value(scratch)?.to_f64() as usize)
    }

    /// Returns the number of ranks on which `yes` is true, the same on all ranks.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    pub fn count(&self, yes: bool) -> Result<usize> {
        let mut scratch = self.backend.zeros::<f64>(1)?;
        if C::ALONE { Ok(usize::from(yes)) } else { self.len_over_all(usize::from(yes), &mut scratch) }
    }

    /// `out[0]` = x.y (conjugating x), summed over all ranks.
    ///
    /// # Errors
    /// As [`VectorOps::dot`] and [`Communicator::all_sum`].
    pub fn dot<T: Scalar>(&self, x: &B::Slice<T>, y: &B::Slice<T>, out: &mut B::Slice<T>) -> Result<()> {
        self.backend.dot(x, y, out)?;
        self.communicator.all_sum(&self.backend, out)
    }

    /// `out[0]` = ||x||^2, summed over all ranks.
    ///
    /// # Errors
    /// As [`Space::dot`].
    pub fn norm2_squared<T: Scalar>(&self, x: &B::Slice<T>, out: &mut B::Slice<T::Real>) -> Result<()> {
        self.backend.norm2_squared(x, out)?;
        self.communicator.all_sum(&self.backend, out)
    }

    /// [`VectorOps::linear_update`] with inner products summed over all ranks. Their slots must be consecutive.
    ///
    /// # Errors
    /// As [`VectorOps::linear_update`] and [`Space::dot`].
    pub fn linear_update<T: Scalar>(
        &self,
        update: LinearUpdate<'_, '_, T, B>,
        state: &mut B::Slice<T>,
        then: Option<&ScalarProgram<B>>,
    ) -> Result<()> {
        let products = update.products;
        if C::ALONE || products.is_empty() {
            return self.backend.linear_update(update, state, then);
        }
        let first = products[0].to.place();
        if products.iter().enumerate().any(|(k, product)| product.to != Slot((first + k) as u32)) {
            return Err(Error::InvalidArgument("inner products of spread vectors at places apart".into()));
        }
        let count = products.len();
        self.backend.linear_update(update, state, None)?;
        self.communicator.all_sum(&self.backend, B::part_mut(state, first..first + count))?;
        then.map_or(Ok(()), |program| self.backend.run_program(program, state))
    }

    /// [`VectorOps::basis_products`], summed over all ranks.
    ///
    /// # Errors
    /// As [`VectorOps::basis_products`] and [`Space::dot`].
    pub fn basis_products<T: Scalar>(
        &self,
        basis: &B::Slice<T>,
        count: usize,
        w: &B::Slice<T>,
        out: &mut B::Slice<T>,
    ) -> Result<()> {
        self.backend.basis_products(basis, count, w, out)?;
        self.communicator.all_sum(&self.backend, B::part_mut(out, 0..count))
    }

    /// [`VectorOps::basis_project`] with products summed over all ranks.
    ///
    /// # Errors
    /// As [`VectorOps::basis_project`] and [`Space::dot`].
    pub fn basis_project<T: Scalar>(
        &self,
        basis: &B::Slice<T>,
        count: usize,
        h: &B::Slice<T>,
        w: &mut B::Slice<T>,
        out: &mut B::Slice<T>,
    ) -> Result<()> {
        self.backend.basis_project(basis, count, h, w, out)?;
        self.communicator.all_sum(&self.backend, B::part_mut(out, 0..count))
    }

    /// [`VectorOps::basis_update`] with the norm over all ranks.
    ///
    /// # Errors
    /// As [`VectorOps::basis_update`] and [`Space::dot`].
    pub fn basis_update<T: Scalar>(
        &self,
        alpha: T,
        basis: &B::Slice<T>,
        count: usize,
        h: &B::Slice<T>,
        w: &mut B::Slice<T>,
        square: Option<&mut B::Slice<T>>,
    ) -> Result<()> {
        let Some(square) = square else {
            return self.backend.basis_update(alpha, basis, count, h, w, None);
        };
        self.backend.basis_update(alpha, basis, count, h, w, Some(&mut *square))?;
        self.communicator.all_sum(&self.backend, B::part_mut(square, 0..1))
    }

    /// [`VectorOps::pair_products`], summed over all ranks.
    ///
    /// # Errors
    /// As [`VectorOps::pair_products`] and [`Space::dot`].
    pub fn pair_products<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &B::Slice<S>,
        count: usize,
        w: [&B::Slice<T>; 2],
        out: &mut B::Slice<T>,
    ) -> Result<()> {
        self.backend.pair_products(basis, count, w, out)?;
        self.communicator.all_sum(&self.backend, B::part_mut(out, 0..4 * count + 3))
    }

    /// [`VectorOps::pair_update`] with squared norms over all ranks.
    ///
    /// # Errors
    /// As [`VectorOps::pair_update`] and [`Space::dot`].
    pub fn pair_update<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &mut B::Slice<S>,
        count: usize,
        w: [&B::Slice<T>; 2],
        factors: &B::Slice<T>,
        v: &mut B::Slice<T>,
        squares: &mut B::Slice<T>,
    ) -> Result<()> {
        self.backend.pair_update(basis, count, w, factors, v, squares)?;
        self.communicator.all_sum(&self.backend, B::part_mut(squares, 0..2))
    }
}
