//! What all stored matrices have in common, and the one table of formats.

use super::lengths::RowLengths;
use super::{Coo, Csc, Csr, Dia, Ell, Hybrid, Jds, Sell, Slim, Swept};
use crate::backend::{
    Backend, CgBurst, ChebyshevStep, Conversions, KrylovSteps, Op, PreconditionSteps, Products, VectorOps,
};
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::scalar::{Scalar, Widen};
use std::fmt::{self, Debug};

/// A stored matrix: values of type `V` in one of the formats, products in type `T`.
///
/// Padding never touches x: an infinite or NaN element of x reaches only the rows that refer to it.
pub trait SparseMatrix<T: Scalar, B: Products + Conversions, V: Scalar = T>:
    LinearOperator<T, B> + Debug
{
    /// The format's name, as [`formats`] lists it.
    fn format(&self) -> &'static str;

    /// Number of stored entries, explicit zeros counted, padding not.
    fn nonzeros(&self) -> usize;

    /// Bytes of all arrays.
    fn storage_bytes(&self) -> usize;

    /// Entries stored beyond the nonzeros.
    fn padding(&self) -> usize;

    /// y = alpha op(A) x + beta y. Where `beta` is zero, y is not read.
    ///
    /// # Errors
    /// On vectors of the wrong length, where the backend has no kernel, or when the device fails.
    fn product_op(
        &self,
        backend: &B,
        op: Op,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>;

    /// y = alpha A x + beta y.
    ///
    /// # Errors
    /// As [`SparseMatrix::product_op`].
    fn product(&self, backend: &B, alpha: T, x: &B::Slice<T>, beta: T, y: &mut B::Slice<T>) -> Result<()> {
        self.product_op(backend, Op::None, alpha, x, beta, y)
    }

    /// y = alpha A^T x + beta y.
    ///
    /// # Errors
    /// As [`SparseMatrix::product_op`].
    fn transposed_product(
        &self,
        backend: &B,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()> {
        self.product_op(backend, Op::Transpose, alpha, x, beta, y)
    }

    /// The same matrix in CSR: the same entries, bit for bit, explicit zeros too.
    ///
    /// # Errors
    /// On too little memory, where the backend has no kernel, or when the device fails.
    fn to_csr(&self, backend: &B) -> Result<Csr<V, B>>;
}

/// Checks the vectors of a product with op(A).
pub(super) fn check_vectors(op: Op, (rows, columns): (usize, usize), (x, y): (usize, usize)) -> Result<()> {
    let (rows, columns) = if op.transposes() { (columns, rows) } else { (rows, columns) };
    Error::check_dimension("length of x", columns, x)?;
    Error::check_dimension("length of y", rows, y)
}

/// [`SparseMatrix`] by a type's own methods of the same names.
macro_rules! stored {
    ($($name:ident),*) => {$(
        impl<V: Scalar + Widen<T>, T: Scalar, B: Products + Conversions> SparseMatrix<T, B, V> for $name<V, B> {
            fn format(&self) -> &'static str {
                Self::NAME
            }

            fn nonzeros(&self) -> usize {
                $name::nonzeros(self)
            }

            fn storage_bytes(&self) -> usize {
                $name::storage_bytes(self)
            }

            fn padding(&self) -> usize {
                $name::padding(self)
            }

            fn product_op(
                &self,
                backend: &B,
                op: Op,
                alpha: T,
                x: &B::Slice<T>,
                beta: T,
                y: &mut B::Slice<T>,
            ) -> Result<()> {
                $name::product_op(self, backend, op, alpha, x, beta, y)
            }

            fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
                $name::to_csr(self, backend)
            }
        }
    )*};
}
stored!(Csr, Coo, Csc, Ell, Hybrid, Jds, Sell, Dia, Swept, Slim);

/// `ell f64 4 x 4, 7 nonzeros, 1 padded`.
macro_rules! debug {
    ($($name:ident),*) => {$(
        impl<V: Scalar, B: Backend> Debug for $name<V, B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (rows, columns, nonzeros) = (self.rows(), self.columns(), self.nonzeros());
                write!(f, "{} {} {rows} x {columns}, {nonzeros} nonzeros", Self::NAME, V::NAME)?;
                match self.padding() {
                    0 => Ok(()),
                    padding => write!(f, ", {padding} padded"),
                }
            }
        }
    )*};
}
debug!(Csr, Coo, Csc, Ell, Hybrid, Jds, Sell, Dia, Swept, Slim);

/// [`LinearOperator`] by a type's own methods: as CSR it is `stored` or must be `converted`; `fused` is its product fused
/// with x.y, where the seam has one; `burst` the way to do several iterations at once, where it has one, and what it keeps
/// with the matrix; `block` the fused product with several vectors; `chebyshev` the product fused with a step of that iteration.
macro_rules! operator {
    (@csr stored $a:ident $backend:ident) => {
        $a
    };
    (@csr converted $a:ident $backend:ident) => {
        &$a.to_csr($backend)?
    };
    ($name:ident, $csr:ident $(, $fused:ident $(, $burst:ident($($kept:ident)?) $(, $block:ident)?)?)? $(; $chebyshev:ident)?) => {
        impl<V: Scalar + Widen<T>, T: Scalar, B: Products> LinearOperator<T, B> for $name<V, B> {
            fn rows(&self) -> usize {
                $name::rows(self)
            }

            fn columns(&self) -> usize {
                $name::columns(self)
            }

            fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
                self.product_op(backend, Op::None, T::one(), x, T::zero(), y)
            }

            $(fn apply_dot(
                &self,
                backend: &B,
                x: &B::Slice<T>,
                y: &mut B::Slice<T>,
                xy: &mut B::Slice<T>,
            ) -> Result<()>
            where
                B: VectorOps,
            {
                $($(if B::len(xy) > 1 {
                    Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                    Error::check_dimension("length of X", self.columns() * B::len(xy), B::len(x))?;
                    Error::check_dimension("length of Y", self.rows() * B::len(xy), B::len(y))?;
                    return backend.$block(self.parts(), x, y, xy);
                })?)?
                check_vectors(Op::None, (self.rows(), self.columns()), (B::len(x), B::len(y)))?;
                Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                backend.$fused(self.parts(), x, y, xy)
            }

            $(fn cg_burst(&self, backend: &B, burst: CgBurst<'_, T, B>) -> Result<bool>
            where
                B: KrylovSteps,
            {
                Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                Error::check_dimension("length of r", self.rows(), B::len(burst.r))?;
                backend.$burst(self.parts(), $(self.$kept(),)? burst)
            })?)?

            $(fn chebyshev_step(
                &self,
                backend: &B,
                step: ChebyshevStep<'_, T, B>,
                z: &B::Slice<T>,
            ) -> Result<bool>
            where
                B: PreconditionSteps,
            {
                Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                Error::check_dimension("length of z", self.rows(), B::len(z))?;
                step.check(self.rows())?;
                backend.$chebyshev(self.parts(), step, z)
            })?

            fn accurate_residual(
                &self,
                backend: &B,
                scale: T,
                b: &B::Slice<T>,
                x: &B::Slice<T>,
                r: &mut B::Slice<T>,
            ) -> Result<()>
            where
                B: KrylovSteps,
            {
                check_vectors(Op::None, (self.rows(), self.columns()), (B::len(x), B::len(r)))?;
                Error::check_dimension("length of b", self.rows(), B::len(b))?;
                let mut accurate = || {
                    let csr = operator!(@csr $csr self backend);
                    backend.csr_residual(csr.parts(), scale, b, x, r)
                };
                // Without memory for CSR or a kernel for it, working precision must do.
                accurate().or_else(|_| {
                    self.apply(backend, x, r)?;
                    backend.axpby(scale, b, -scale, r)
                })
            }

            fn bytes(&self) -> usize {
                self.storage_bytes() + (self.rows() + self.columns()) * size_of::<T>()
            }

            $($($(fn block_bytes(&self, vectors: usize) -> Option<usize>
            where
                B: VectorOps,
            {
                // The product that is meant: where it has another name, this does not compile.
                let _ = B::$block::<V, T>;
                Some(self.storage_bytes() + vectors * (self.rows() + self.columns()) * size_of::<T>())
            })?)?)?
        }
    };
}
operator!(Csr, stored, csr_dot, csr_cg_burst(derived), csr_block_dot);
operator!(Coo, converted);
operator!(Csc, converted);
operator!(Ell, converted);
operator!(Hybrid, converted);
operator!(Jds, converted);
operator!(Sell, converted, sell_dot, sell_cg_burst());
operator!(Dia, converted, dia_dot);
operator!(Swept, converted);
operator!(Slim, converted, slim_dot; slim_chebyshev);

/// What a format would take for a matrix, worked out from its row lengths and diagonals without building it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Storage {
    /// Bytes of all arrays; `u64::MAX` where they exceed it.
    pub bytes: u64,
    /// Whether that is what it takes, or the most that it can take: row lengths do not tell what repeats.
    pub exact: bool,
    /// Entries stored beyond the nonzeros.
    pub padding: u64,
    /// Why the format is refused for this matrix, in figures.
    pub refused: Option<String>,
}

/// Padding up to this many entries is never refused: it is small in any case.
pub const FREE_PADDING: u64 = 1 << 12;

/// Padding of more than this many times the nonzeros is refused.
pub const MOST_PADDING: u64 = 2;

impl Storage {
    /// `entries` stored places of `nonzeros` entries, `entry` bytes each, and `index` bytes around them.
    pub(super) fn new(nonzeros: usize, entries: u128, entry: usize, index: u128, about: &str) -> Self {
        let bytes = u64::try_from(entries * entry as u128 + index).unwrap_or(u64::MAX);
        let padding = u64::try_from(entries - nonzeros as u128).unwrap_or(u64::MAX);
        let limit = FREE_PADDING.max((nonzeros as u64).saturating_mul(MOST_PADDING));
        let refused = (padding > limit).then(|| {
            format!(
                "{about}: {padding} padded entries for {nonzeros} nonzeros ({bytes} bytes), more than {MOST_PADDING} a nonzero"
            )
        });
        Self { bytes, exact: true, padding, refused }
    }

    /// At most so many bytes: `entries` places of `entry` bytes, and `index` bytes around them. Never refused.
    pub(super) fn at_most(nonzeros: usize, entries: u128, entry: usize, index: u128) -> Self {
        Self { exact: false, refused: None, ..Self::new(nonzeros, entries, entry, index, "") }
    }

    /// The refusal as an error.
    pub(super) fn check(&self, format: &'static str) -> Result<()> {
        match &self.refused {
            Some(reason) => Err(Error::Refused { format, reason: reason.clone() }),
            None => Ok(()),
        }
    }
}

/// Bytes of `n` offsets that count to `total`.
pub(super) fn offset_bytes(n: usize, total: u128) -> u128 {
    n as u128 * if total <= crate::backend::NARROW_LIMIT as u128 { 4 } else { 8 }
}

type Build<T, B, V> = fn(&B, &Csr<V, B>) -> Result<Box<dyn SparseMatrix<T, B, V>>>;

/// One format: a line of the table.
pub struct Format<T: Scalar, B: Products + Conversions, V: Scalar = T> {
    name: &'static str,
    suits: &'static str,
    build: Build<T, B, V>,
    storage: fn(&RowLengths, usize) -> Storage,
}

impl<T: Scalar, B: Products + Conversions, V: Scalar> Format<T, B, V> {
    /// The name that users type.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Which matrices it suits, in one line.
    pub fn suits(&self) -> &'static str {
        self.suits
    }

    /// Converts.
    ///
    /// # Errors
    /// [`Error::Refused`] where it would waste memory, and on too little memory or a failing device.
    pub fn build(&self, backend: &B, a: &Csr<V, B>) -> Result<Box<dyn SparseMatrix<T, B, V>>> {
        (self.build)(backend, a)
    }

    /// What it would take, without building it.
    pub fn storage(&self, lengths: &RowLengths) -> Storage {
        (self.storage)(lengths, size_of::<V>())
    }
}

impl<T: Scalar, B: Products + Conversions, V: Scalar> Debug for Format<T, B, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Format({}: {})", self.name, self.suits)
    }
}

macro_rules! table {
    ($($name:ident: $suits:literal),* $(,)?) => {
        /// Names of all formats, in the order of [`formats`].
        pub const FORMAT_NAMES: &[&str] = &[$($name::<f64, crate::Host>::NAME),*];

        /// Every format. The library's choice, the command, the tests and the benchmarks go through this table.
        pub fn formats<T: Scalar, B: Products + Conversions, V: Scalar + Widen<T>>() -> Vec<Format<T, B, V>> {
            vec![$(Format {
                name: $name::<V, B>::NAME,
                suits: $suits,
                build: |backend, a| Ok(Box::new($name::from_csr(backend, a)?)),
                storage: $name::<V, B>::storage,
            }),*]
        }
    };
}
table! {
    Csr: "any matrix; no padding, and the format that all others come from",
    Coo: "a few entries here and there: empty rows cost nothing; the most bytes a nonzero",
    Csc: "products with the transpose",
    Ell: "rows of equal length (stencils away from boundaries)",
    Hybrid: "rows of like length with a few long ones",
    Jds: "rows of many lengths, without padding; y is written out of order",
    Sell: "rows of like length within a neighbourhood: wide loads without much padding",
    Dia: "entries on few diagonals (grids): no columns are stored",
    Swept: "columns all over the matrix, rows of up to 4096 entries: elements of x are fetched once for many rows",
    Slim: "rows or distances that repeat, or values of few digits: whatever repeats is stored once, and no bit is lost",
}

/// The format of that name.
///
/// # Errors
/// [`Error::InvalidArgument`] that lists the names.
pub fn format<T: Scalar, B: Products + Conversions, V: Scalar + Widen<T>>(
    name: &str,
) -> Result<Format<T, B, V>> {
    formats().into_iter().find(|f| f.name == name).ok_or_else(|| {
        Error::InvalidArgument(format!("no format {name}: there are {}", FORMAT_NAMES.join(", ")))
    })
}

/// Converts to the format of that name.
///
/// # Errors
/// On an unknown name, and as [`Format::build`].
pub fn build<T: Scalar, B: Products + Conversions, V: Scalar + Widen<T>>(
    backend: &B,
    name: &str,
    a: &Csr<V, B>,
) -> Result<Box<dyn SparseMatrix<T, B, V>>> {
    format(name)?.build(backend, a)
}

/// As [`build`], from a matrix that is no longer needed: CSR is moved, not copied.
///
/// # Errors
/// As [`build`].
pub fn convert<T: Scalar, B: Products + Conversions, V: Scalar + Widen<T>>(
    backend: &B,
    name: &str,
    a: Csr<V, B>,
) -> Result<Box<dyn SparseMatrix<T, B, V>>> {
    if name == Csr::<V, B>::NAME { Ok(Box::new(a)) } else { build(backend, name, &a) }
}

/// What each format would take for a matrix on a backend, without building any: name and storage, in the table's order.
pub fn storage_estimates<V: Scalar, B: Products + Conversions>(
    lengths: &RowLengths,
) -> Vec<(&'static str, Storage)> {
    formats::<V, B, V>().iter().map(|f| (f.name(), f.storage(lengths))).collect()
}
