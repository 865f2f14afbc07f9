//! Vector operations. Results that the iteration needs again (inner products, norms) stay in one-element buffers of the
//! backend, so no operation waits for the device. Sums are deterministic: the same input gives the same bits, whatever
//! the load and the number of threads.

use super::{Backend, PairScalars, ScalarProgram, Slot};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};

/// A factor in a [`LinearUpdate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coefficient {
    /// 0: the vector is not read for this output.
    Zero,
    /// 1.
    One,
    /// -1.
    MinusOne,
    /// The value at this position of the state.
    At(Slot),
    /// The negative of the value at this position of the state.
    Minus(Slot),
}

/// An inner product that a [`LinearUpdate`] computes in the same pass and writes to the state: conj(left) . right.
/// Vectors are numbered, first the inputs, then the outputs with their new values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InnerProduct {
    /// The conjugated vector.
    pub left: usize,
    /// The other vector.
    pub right: usize,
    /// The position in the state where the result is written.
    pub to: Slot,
}

/// Replaces vectors by linear combinations of vectors of equal length, and computes inner products of the results, in
/// one pass:
///
/// ```text
/// output_i = sum_j c(i, j) input_j + sum_k c(i, inputs + k) output_k        all outputs on the right are old
/// ```
///
/// The pass reads each input once and writes each output once. It reads an output only if a coefficient needs its old
/// values.
pub struct LinearUpdate<'a, 'v, T: Scalar, B: Backend> {
    /// At most [`LinearUpdate::INPUTS`] vectors that are only read.
    pub inputs: &'a [&'v B::Slice<T>],
    /// At most [`LinearUpdate::OUTPUTS`] vectors that are written.
    pub outputs: &'a mut [&'v mut B::Slice<T>],
    /// The coefficients for each output: those of all inputs, then of all outputs.
    pub coefficients: &'a [Coefficient],
    /// At most [`LinearUpdate::PRODUCTS`] inner products.
    pub products: &'a [InnerProduct],
}

impl<T: Scalar, B: Backend> LinearUpdate<'_, '_, T, B> {
    /// The maximum number of inputs.
    pub const INPUTS: usize = 4;
    /// The maximum number of outputs.
    pub const OUTPUTS: usize = 4;
    /// The maximum number of inner products.
    pub const PRODUCTS: usize = 4;

    /// Returns the number of elements of each vector.
    pub(crate) fn len(&self) -> usize {
        self.inputs.first().map_or_else(|| self.outputs.first().map_or(0, |y| B::len(y)), |x| B::len(x))
    }

    /// Returns an error for too many operands, vectors of different lengths, or invalid positions.
    pub(crate) fn check(&self, state: usize) -> Result<()> {
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let vectors = inputs + outputs;
        if inputs > Self::INPUTS || outputs > Self::OUTPUTS || self.products.len() > Self::PRODUCTS {
            return Err(Error::InvalidArgument(format!(
                "a linear update of {inputs} inputs, {outputs} outputs and {} products: at most {}, {} and {} are possible",
                self.products.len(),
                Self::INPUTS,
                Self::OUTPUTS,
                Self::PRODUCTS
            )));
        }
        Error::check_dimension("number of coefficients", outputs * vectors, self.coefficients.len())?;
        let n = self.len();
        for x in self.inputs {
            Error::check_dimension("length of an input", n, B::len(x))?;
        }
        for y in self.outputs.iter() {
            Error::check_dimension("length of an output", n, B::len(y))?;
        }
        let places = self.coefficients.iter().filter_map(|c| match c {
            Coefficient::At(slot) | Coefficient::Minus(slot) => Some(slot.place()),
            _ => None,
        });
        let places = places.chain(self.products.iter().map(|product| product.to.place()));
        let known = places.max().is_none_or(|most| most < state);
        if !known || self.products.iter().any(|p| p.left >= vectors || p.right >= vectors) {
            return Err(Error::InvalidArgument(
                "a linear update refers to a scalar or vector that does not exist".into(),
            ));
        }
        Ok(())
    }
}

impl<T: Scalar, B: Backend> std::fmt::Debug for LinearUpdate<'_, '_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { inputs, outputs, coefficients, products } = self;
        write!(f, "LinearUpdate of {} and {}: {coefficients:?} {products:?}", inputs.len(), outputs.len())
    }
}

/// The operands of [`VectorOps::hessenberg_step`], which computes the QR factorisation of the Hessenberg matrix H of an
/// Arnoldi process column by column. Column j of R starts at j (m + 1) in `r`, where m is the maximum number of
/// columns.
pub struct Hessenberg<'a, T: Scalar, B: Backend> {
    /// The maximum number of columns, m.
    pub columns: usize,
    /// V^H w of the first and the second pass of Gram-Schmidt, m + 1 scalars each.
    pub passes: [&'a B::Slice<T>; 2],
    /// The triangular factor R, (m + 1) m scalars.
    pub r: &'a mut B::Slice<T>,
    /// The cosine and sine of each rotation, 2 m scalars.
    pub rotations: &'a mut B::Slice<T>,
    /// The rotated right-hand side, m + 1 scalars.
    pub g: &'a mut B::Slice<T>,
    /// The state. The step replaces ||w||^2 at `norm` by 1 / ||w||, or by 0 if w is zero.
    pub state: &'a mut B::Slice<T>,
    /// The position of ||w||^2 in the state.
    pub norm: Slot,
}

impl<T: Scalar, B: Backend> Hessenberg<'_, T, B> {
    /// Returns an error for buffers that are too short for a step of this column.
    pub(crate) fn check(&self, column: usize) -> Result<()> {
        let m = self.columns;
        if column >= m {
            return Err(Error::InvalidArgument(format!("column {column} of a basis of {m}")));
        }
        Error::check_dimension("length of the first pass's products", m + 1, B::len(self.passes[0]))?;
        Error::check_dimension("length of the second pass's products", m + 1, B::len(self.passes[1]))?;
        Error::check_dimension("length of R", m * (m + 1), B::len(self.r))?;
        Error::check_dimension("length of the rotations", 2 * m, B::len(self.rotations))?;
        Error::check_dimension("length of g", m + 1, B::len(self.g))
    }
}

impl<T: Scalar, B: Backend> std::fmt::Debug for Hessenberg<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hessenberg of {} columns", self.columns)
    }
}

/// Operations on dense vectors of equal length.
///
/// Several vectors may be stored interleaved: entry i of vector j of k at i * k + j. Then [`VectorOps::dot`] has k
/// results, and the steps of [`KrylovSteps`](super::KrylovSteps) take k systems; elementwise operations are the same.
pub trait VectorOps: Backend {
    /// The number of iterations that a recording should contain: more than one if starting a replay is expensive.
    const RECORDED: usize = 1;

    /// `out[0]` = the sum of conj(x\[i\]) y\[i\]. If `out` has k entries, 2 to 32, x and y consist of k interleaved
    /// vectors each, and `out[j]` is the inner product of the j-th ones.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn dot<T: Scalar>(&self, x: &Self::Slice<T>, y: &Self::Slice<T>, out: &mut Self::Slice<T>) -> Result<()>;

    /// Interleaves vectors that are stored one after another: entry i of vector j of `vectors`, at j * n + i in `x`,
    /// goes to i * `vectors` + j in `y`.
    ///
    /// # Errors
    /// If lengths differ or are not multiples of `vectors`, or if the device fails.
    fn interleave<T: Scalar>(&self, vectors: usize, x: &Self::Slice<T>, y: &mut Self::Slice<T>)
    -> Result<()>;

    /// The inverse of [`VectorOps::interleave`]: stores the `vectors` interleaved vectors in `x` one after another in
    /// `y`.
    ///
    /// # Errors
    /// As [`VectorOps::interleave`].
    fn separate<T: Scalar>(&self, vectors: usize, x: &Self::Slice<T>, y: &mut Self::Slice<T>) -> Result<()>;

    /// `out[0]` = sum of |x\[i\]|^2.
    ///
    /// # Errors
    /// If the device fails.
    fn norm2_squared<T: Scalar>(&self, x: &Self::Slice<T>, out: &mut Self::Slice<T::Real>) -> Result<()>;

    /// y = alpha x + beta y. If `beta` is zero, `y` is not read.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn axpby<T: Scalar>(&self, alpha: T, x: &Self::Slice<T>, beta: T, y: &mut Self::Slice<T>) -> Result<()>;

    /// x = alpha x.
    ///
    /// # Errors
    /// If the device fails.
    fn scale_in_place<T: Scalar>(&self, alpha: T, x: &mut Self::Slice<T>) -> Result<()>;

    /// z = x .* y, element by element.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn multiply<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        y: &Self::Slice<T>,
        z: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// z = d .* x with a real d: a diagonal matrix times a vector.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn scale<T: Scalar>(
        &self,
        d: &Self::Slice<T::Real>,
        x: &Self::Slice<T>,
        z: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `out[0]` = the sum of |x\[i\]|^2 and `out[1]` = the sum of (d\[i\] |x\[i\]|)^2 with a real d: the squares of a
    /// norm and of a weighted norm.
    ///
    /// # Errors
    /// If lengths differ, if memory for a vector runs out, or if the device fails.
    fn weighted_norms<T: Scalar>(
        &self,
        d: &Self::Slice<T::Real>,
        x: &Self::Slice<T>,
        out: &mut Self::Slice<T::Real>,
    ) -> Result<()> {
        let mut weighted = self.buffer(Self::len(x))?;
        self.scale(d, x, &mut weighted)?;
        self.norm2_squared(x, Self::part_mut(out, 0..1))?;
        self.norm2_squared(&weighted, Self::part_mut(out, 1..2))
    }

    /// Does a [`LinearUpdate`] with coefficients from `state`, writes its inner products there, and then runs the
    /// program `then`. Changes nothing if the state says that the recurrence has ended ([`Slot::ENDED`]).
    ///
    /// # Errors
    /// If vectors have different lengths, if there are too many, if a coefficient or product is not a position of the
    /// state, or if the device fails.
    fn linear_update<T: Scalar>(
        &self,
        update: LinearUpdate<'_, '_, T, Self>,
        state: &mut Self::Slice<T>,
        then: Option<&ScalarProgram<Self>>,
    ) -> Result<()>;

    /// Runs a program on its state.
    ///
    /// # Errors
    /// If the state has more than [`Slot::MOST`] scalars, or if the device fails.
    fn run_program<T: Scalar>(&self, program: &ScalarProgram<Self>, state: &mut Self::Slice<T>)
    -> Result<()>;

    /// `out[j]` = v_j^H w for the first `count` vectors of a basis. They are stored one after another, each as long as
    /// w. Reads the basis and w once.
    ///
    /// # Errors
    /// If the basis or `out` is too short, or if the device fails.
    fn basis_products<T: Scalar>(
        &self,
        basis: &Self::Slice<T>,
        count: usize,
        w: &Self::Slice<T>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// w += alpha V h for the first `count` vectors of a basis, and `square[0]` = ||w||^2 if `square` is given. Reads
    /// the basis once, and reads and writes w.
    ///
    /// # Errors
    /// As [`VectorOps::basis_products`].
    fn basis_update<T: Scalar>(
        &self,
        alpha: T,
        basis: &Self::Slice<T>,
        count: usize,
        h: &Self::Slice<T>,
        w: &mut Self::Slice<T>,
        square: Option<&mut Self::Slice<T>>,
    ) -> Result<()>;

    /// w -= V h, and then `out[j]` = v_j^H w: the update of one pass of Gram-Schmidt, and the inner products of the
    /// next. The provided method does one after the other. A backend that keeps a row of V in registers between the two
    /// reads the basis only once, and reads and writes w.
    ///
    /// # Errors
    /// As [`VectorOps::basis_products`].
    fn basis_project<T: Scalar>(
        &self,
        basis: &Self::Slice<T>,
        count: usize,
        h: &Self::Slice<T>,
        w: &mut Self::Slice<T>,
        out: &mut Self::Slice<T>,
    ) -> Result<()> {
        self.basis_update(-T::one(), basis, count, h, w, None)?;
        self.basis_products(basis, count, w, out)
    }

    /// Adds column `column` (from 0) of the Hessenberg matrix to its QR factorisation: adds the coefficients of both
    /// passes, applies the earlier rotations, computes a new one (Saad, Iterative Methods for Sparse Linear Systems,
    /// 2nd ed., 6.5.3), and records |g_(j+1)|^2, the squared norm of the least-squares residual, as r.r. Copies the
    /// status to `ended` before, as [`Writer::begin`](super::Writer::begin) does. If the new diagonal entry of R is
    /// zero to working precision, relative to its column, the recurrence ends with `Breakdown`.
    ///
    /// # Errors
    /// If a buffer is too short, or if the device fails.
    fn hessenberg_step<T: Scalar>(&self, column: usize, hessenberg: Hessenberg<'_, T, Self>) -> Result<()>;

    /// y = R^-1 g for the first `count` columns of R, which are `stride` scalars apart.
    ///
    /// # Errors
    /// If a buffer is too short, or if the device fails.
    fn triangular_solve<T: Scalar>(
        &self,
        count: usize,
        stride: usize,
        r: &Self::Slice<T>,
        g: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Computes all inner products for a pair of Arnoldi steps ([`pairs`](super::PairScalars)), in the order of
    /// [`PairLayout::products`](super::PairLayout::products): those of the first `count` vectors of a basis with w_1,
    /// w_2 and the last two basis vectors, and those of w_1 and w_2 with each other. The basis vectors are stored one
    /// after another, possibly in half the precision. If there is only one, it counts as both of the last two. Reads
    /// the basis, w_1 and w_2 once.
    ///
    /// # Errors
    /// If vectors have other lengths, if there are more than 32, if `out` is too short, or if the device fails.
    fn pair_products<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &Self::Slice<S>,
        count: usize,
        w: [&Self::Slice<T>; 2],
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Computes the factors of a pair of steps from its inner products, and adds the new columns of G. Copies the
    /// status to `ended` before, as [`Writer::begin`](super::Writer::begin) does, and ends the recurrence with
    /// `Breakdown` if the basis is far from orthogonal. `column` is the number of the last vector.
    ///
    /// # Errors
    /// If a buffer is too short, or if the device fails.
    fn pair_factors<T: Scalar>(&self, column: usize, pair: PairScalars<'_, T, Self>) -> Result<()>;

    /// Computes the next two vectors of a basis of `count` from the factors
    /// ([`PairLayout::factors`](super::PairLayout::factors)), rounded to the precision of the basis. `v` becomes the
    /// second of them, and `squares` the squared norms of both. Reads the basis, w_1 and w_2 once, and writes the new
    /// vectors and v.
    ///
    /// # Errors
    /// As [`VectorOps::pair_products`].
    fn pair_update<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &mut Self::Slice<S>,
        count: usize,
        w: [&Self::Slice<T>; 2],
        factors: &Self::Slice<T>,
        v: &mut Self::Slice<T>,
        squares: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Adds the two columns of a pair of steps to the QR factorisation of the Hessenberg matrix, as
    /// [`VectorOps::hessenberg_step`] adds one.
    ///
    /// # Errors
    /// As [`VectorOps::pair_factors`].
    fn pair_columns<T: Scalar>(&self, column: usize, pair: PairScalars<'_, T, Self>) -> Result<()>;

    /// x = V c for the first `count` vectors of a basis, which may have half the precision.
    ///
    /// # Errors
    /// As [`VectorOps::pair_products`].
    fn basis_combination<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &Self::Slice<S>,
        count: usize,
        c: &Self::Slice<T>,
        x: &mut Self::Slice<T>,
    ) -> Result<()>;
}
