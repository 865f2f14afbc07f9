//! Vectors that are spread over several parts: what their owners tell each other.
//!
//! A part owns some of the unknowns, and its vectors hold those alone. Whatever is computed element by element needs
//! nobody else. Sums do: each part adds its own, and a [`Communicator`] adds those of all parts, in the order of their
//! numbers, so that every part gets the same bits. Products need the entries of x that other parts own, the *halo*.
//!
//! Solvers take their sums through a [`Space`], a backend with a communicator. [`Alone`], the communicator of vectors
//! that are whole, does nothing, and what it does compiles away.

use super::{
    Backend, CsrParts, KrylovSteps, LinearUpdate, PartDirection, PartResidual, ScalarProgram, Sends, Slot,
    VectorOps,
};
use crate::error::{Error, Result};
use crate::scalar::{Real, Scalar, Widen};
use std::fmt::Debug;

/// How many entries a part sends to each part, and gets from it, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangePlan {
    /// Entries for each part, one part's behind the other's.
    pub send: Vec<usize>,
    /// Entries from each part, likewise.
    pub receive: Vec<usize>,
}

impl ExchangePlan {
    /// Refuses a plan for another number of parts, or for so many entries to send and to receive.
    pub(crate) fn check(&self, parts: usize, send: usize, halo: usize) -> Result<()> {
        Error::check_dimension("parts to send to", parts, self.send.len())?;
        Error::check_dimension("parts to receive from", parts, self.receive.len())?;
        Error::check_dimension("entries to send", self.send.iter().sum(), send)?;
        Error::check_dimension("entries to receive", self.receive.iter().sum(), halo)
    }
}

/// A vector, and the scalar to which its inner product (conjugating the vector) is added.
pub type DotWith<'a, T, B> = (&'a <B as Backend>::Slice<T>, &'a mut <B as Backend>::Slice<T>);

/// What is added to y = A x once the halo of x is there: `y[i] += alpha d[i] (row k of the matrix) halo`
/// for row i = `rows[k]`.
pub struct HaloProduct<'a, T: Scalar, B: Backend> {
    /// The rows of y.
    pub rows: &'a B::Slice<u32>,
    /// A row for each of these, and a column for each entry of the halo.
    pub matrix: CsrParts<'a, T, B>,
    /// What the product is multiplied by.
    pub alpha: T,
    /// What each row of y multiplies it by; `None` stands for ones.
    pub d: Option<&'a B::Slice<T::Real>>,
    /// Where the product is added.
    pub y: &'a mut B::Slice<T>,
    /// x, and where this product's share of x.y is added, where that is asked for.
    pub dot: Option<DotWith<'a, T, B>>,
    /// Whether x.y is then on its way to all parts ([`Communicator::cg_residual`] takes it from there).
    pub publish: bool,
}

impl<T: Scalar, B: Backend> Debug for HaloProduct<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HaloProduct of {} rows", B::len(self.rows))
    }
}

/// What the parts of spread vectors do together. All parts call the same functions in the same order.
pub trait Communicator<B: VectorOps>: Clone + Debug + Send + Sync + 'static {
    /// Whether there is only one part: then sums need nobody, and fused steps that add up by themselves are right.
    const ALONE: bool;

    /// Number of this part.
    fn part(&self) -> usize;

    /// Number of parts.
    fn parts(&self) -> usize;

    /// Whether [`Communicator::begin_exchange_of`] and [`Communicator::end_exchange_with`] are there: an exchange that
    /// takes from x and adds to y at once.
    fn is_fused(&self) -> bool {
        false
    }

    /// Every scalar becomes its sum over all parts, added in the order of the parts, in the backend's order of work.
    ///
    /// # Errors
    /// When another part has failed, or the device fails.
    fn all_sum<T: Scalar>(&self, backend: &B, sums: &mut B::Slice<T>) -> Result<()>;

    /// Every word gets the bits that it has on any part. All parts bring as many words.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`]; and where parts have brought different numbers of words, or can't be told of
    /// ([`Communicator::deliver`]).
    fn all_or(&self, backend: &B, words: &mut B::Slice<u32>) -> Result<()> {
        or_by_way_of_hosts(self, backend, words)
    }

    /// Makes room for exchanges of `T` by a plan. Nothing may be recorded meanwhile.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`], and without memory.
    fn prepare_exchange<T: Scalar>(&self, _backend: &B, _plan: &ExchangePlan) -> Result<()> {
        Ok(())
    }

    /// Begins an exchange, which [`Communicator::exchange`] ends with the same plan and the same entries; what is done
    /// between both needs not wait for it.
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

    /// Sends to and receives from the other parts, as `plan` says, what was begun with
    /// [`Communicator::begin_exchange`].
    ///
    /// # Errors
    /// As [`Communicator::all_sum`], and on buffers that are not as long as the plan says.
    fn exchange<T: Scalar>(
        &self,
        backend: &B,
        plan: &ExchangePlan,
        send: &B::Slice<T>,
        halo: &mut B::Slice<T>,
    ) -> Result<()>;

    /// As [`Communicator::begin_exchange`], of the entries of x that are `asked` for.
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

    /// Ends an exchange by adding a product with the halo.
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

    /// Makes ready to send the entries of vectors of `n` scalars of type `T` that are `asked` for, as soon as they are
    /// computed. None where the fused steps below are not there.
    ///
    /// # Errors
    /// As [`Communicator::prepare_exchange`].
    fn prepare_sends<T: Scalar>(&self, _backend: &B, _asked: &[u32], _n: usize) -> Result<Option<Sends<B>>> {
        Ok(None)
    }

    /// What was sent by [`Communicator::cg_direction`] and not received yet is not needed.
    ///
    /// # Errors
    /// As [`Communicator::exchange`].
    fn drop_exchange<T: Scalar>(&self, _backend: &B) -> Result<()> {
        Ok(())
    }

    /// [`KrylovSteps::cg_part_residual`] with the sum that [`Communicator::end_exchange_with`] has published, where
    /// none is given; its own sums are then on their way to all parts, but for those of a general inverse.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    fn cg_residual<T: Scalar>(&self, _backend: &B, _step: PartResidual<'_, T, B>) -> Result<()>
    where
        B: KrylovSteps,
    {
        Err(Error::Unsupported("fused steps on several parts".into()))
    }

    /// [`KrylovSteps::cg_part_direction`] with the sums that [`Communicator::cg_residual`] has sent, where none are
    /// given; and begins the exchange of p that [`Communicator::end_exchange_with`] ends.
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

    /// Whether any part wants to stop; all parts get the same answer where they call it at the same place of the same
    /// work. A wish may travel with the next sum, so that a later call is the first that tells of it.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    fn agree(&self, stop: bool) -> Result<bool>;

    /// Whether what it does waits for the backend, so that it can't be recorded.
    fn waits(&self) -> bool;

    /// Seconds that an iteration takes beyond each part's share of the work: launches that only several parts need, and
    /// their meetings. Where it is not zero, small systems are left to one part.
    fn latency(&self) -> f64 {
        0.0
    }

    /// Sends bytes to each part and receives those of each, by way of the hosts, however long it takes.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`], and where there is no such way.
    fn deliver(&self, _to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Err(Error::Unsupported("bytes between these parts".into()))
    }

    /// What each part has brought, to all.
    ///
    /// # Errors
    /// As [`Communicator::deliver`].
    fn gather(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.deliver(vec![own; self.parts()])
    }
}

/// [`Communicator::all_or`] with [`Communicator::gather`].
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

/// The communicator of vectors that are whole.
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

/// Where the vectors of a solve live: on a backend, whole or spread.
#[derive(Debug, Clone)]
pub struct Space<B, C = Alone> {
    backend: B,
    communicator: C,
}

impl<B> Space<B> {
    /// Whole vectors on a backend.
    pub fn new(backend: B) -> Self {
        Self { backend, communicator: Alone }
    }
}

impl<B: VectorOps, C: Communicator<B>> Space<B, C> {
    /// Vectors that are spread over the parts of a communicator.
    pub fn spread(backend: B, communicator: C) -> Self {
        Self { backend, communicator }
    }

    /// The backend of this part.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// What the parts do together.
    pub fn communicator(&self) -> &C {
        &self.communicator
    }

    /// How many elements a vector has over all parts, of which this one has `own`; `scratch` has one element.
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

    /// How many parts say yes; all get the same number.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    pub fn count(&self, yes: bool) -> Result<usize> {
        let mut scratch = self.backend.zeros::<f64>(1)?;
        if C::ALONE { Ok(usize::from(yes)) } else { self.len_over_all(usize::from(yes), &mut scratch) }
    }

    /// `out[0]` = x.y (conjugating x), over all parts.
    ///
    /// # Errors
    /// As [`VectorOps::dot`] and [`Communicator::all_sum`].
    pub fn dot<T: Scalar>(&self, x: &B::Slice<T>, y: &B::Slice<T>, out: &mut B::Slice<T>) -> Result<()> {
        self.backend.dot(x, y, out)?;
        self.communicator.all_sum(&self.backend, out)
    }

    /// `out[0]` = ||x||^2, over all parts.
    ///
    /// # Errors
    /// As [`Space::dot`].
    pub fn norm2_squared<T: Scalar>(&self, x: &B::Slice<T>, out: &mut B::Slice<T::Real>) -> Result<()> {
        self.backend.norm2_squared(x, out)?;
        self.communicator.all_sum(&self.backend, out)
    }

    /// [`VectorOps::linear_update`], its inner products over all parts; their places must follow one another.
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

    /// [`VectorOps::basis_products`], over all parts.
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

    /// [`VectorOps::basis_project`], the products over all parts.
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

    /// [`VectorOps::basis_update`], the norm over all parts.
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

    /// [`VectorOps::pair_products`], over all parts.
    ///
    /// # Errors
    /// As [`VectorOps::pair_products`] and [`Space::dot`].
    pub fn pair_products<S: Scalar + Widen<T>, T: Scalar>(
        &self,
        basis: &B::Slice<S>,
        count: usize,
        w: [&B::Slice<T>; 2],
        out: &mut B::Slice<T>,
    ) -> Result<()> {
        self.backend.pair_products(basis, count, w, out)?;
        self.communicator.all_sum(&self.backend, B::part_mut(out, 0..4 * count + 3))
    }

    /// [`VectorOps::pair_update`], the squared norms over all parts.
    ///
    /// # Errors
    /// As [`VectorOps::pair_update`] and [`Space::dot`].
    pub fn pair_update<S: Scalar + Widen<T>, T: Scalar>(
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
