//! The table of formats.

use super::lengths::RowLengths;
use super::sparse::SparseMatrix;
use super::storage::Storage;
use super::{Compressed, Coo, Csc, Csr, Dia, Ell, Hybrid, Jds, Sell};
use crate::backend::{Conversions, Products};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};
use std::fmt::{self, Debug};

type Build<T, B, V> = fn(&B, &Csr<V, B>) -> Result<Box<dyn SparseMatrix<T, B, V>>>;

/// One format: a row of the table.
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

    /// Converts from CSR.
    ///
    /// # Errors
    /// [`Error::Refused`] if it would waste memory; if memory runs out, or if the device fails.
    pub fn build(&self, backend: &B, a: &Csr<V, B>) -> Result<Box<dyn SparseMatrix<T, B, V>>> {
        (self.build)(backend, a)
    }

    /// The storage that it would take, computed without building it.
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

        /// Every format. The library's choice, the command, the tests and the benchmarks all use this table.
        pub fn formats<T: Scalar, B: Products + Conversions, V: Scalar + Promote<T>>() -> Vec<Format<T, B, V>> {
            vec![$(Format {
                name: $name::<V, B>::NAME,
                suits: $suits,
                build: |backend, a| Ok(Box::new($name::from_csr(backend, a)?)),
                storage: $name::<V, B>::storage,
            }),*]
        }

        /// The storage of a matrix in each format, without building any: name and storage, in the order of [`formats`].
        /// Its products need not be compiled for that.
        pub fn storage_estimates<V: Scalar, B: Products + Conversions>(
            lengths: &RowLengths,
        ) -> Vec<(&'static str, Storage)> {
            vec![$(($name::<V, B>::NAME, $name::<V, B>::storage(lengths, size_of::<V>()))),*]
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
    Compressed: "rows or distances that repeat, or values of few digits: whatever repeats is stored once, and no bit is lost",
}

/// The format with this name.
///
/// # Errors
/// [`Error::InvalidArgument`] with a list of the names.
pub fn format<T: Scalar, B: Products + Conversions, V: Scalar + Promote<T>>(
    name: &str,
) -> Result<Format<T, B, V>> {
    formats().into_iter().find(|f| f.name == name).ok_or_else(|| {
        Error::InvalidArgument(format!("no format {name}: there are {}", FORMAT_NAMES.join(", ")))
    })
}

/// Converts to the format with this name.
///
/// # Errors
/// If the name is unknown, and as [`Format::build`].
pub fn build<T: Scalar, B: Products + Conversions, V: Scalar + Promote<T>>(
    backend: &B,
    name: &str,
    a: &Csr<V, B>,
) -> Result<Box<dyn SparseMatrix<T, B, V>>> {
    format(name)?.build(backend, a)
}

/// As [`build`], for a matrix that is no longer needed: CSR is moved, not copied.
///
/// # Errors
/// As [`build`].
pub fn convert<T: Scalar, B: Products + Conversions, V: Scalar + Promote<T>>(
    backend: &B,
    name: &str,
    a: Csr<V, B>,
) -> Result<Box<dyn SparseMatrix<T, B, V>>> {
    if name == Csr::<V, B>::NAME { Ok(Box::new(a)) } else { build(backend, name, &a) }
}
