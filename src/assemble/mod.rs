//! From triplets to CSR.
//!
//! Triplets may come in any order. Duplicate entries are summed in the order in which they appear, so the result has
//! the same bits in every run. Explicit zeros are kept, because they belong to the pattern.
//!
//! ```text
//! triplets (row, column, value)        CSR
//! (2, 1, 4) (0, 0, 1) (1, 2, 5)        offsets  0   2   3   5
//! (0, 2, 7) (2, 2, 3) (1, 2, 3)   ->   columns  0 2 | 2 | 1 2
//!                                      values   1 7 | 8 | 4 3
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `sorting` | the algorithm, for any backend: sort by (row, column), find the runs, sum them |
//! | `map` | [`Assembly`], the map from triplets to nonzeros: new values on the same pattern in one pass |
//! | `resident` | [`ResidentTriplets`], triplets in the memory of a backend |
//! | `arrays` | [`Arrays`]: a caller's compressed rows, compressed columns or triplets in the memory of a backend |
//! | `fingerprint` | a hash of the sparsity pattern |
//! | `host` | the same result on the CPU in less memory and time |

mod arrays;
mod fingerprint;
mod host;
mod map;
mod resident;
mod sorting;

pub use crate::scalar::Symmetry;
pub use arrays::{Arrays, Built, Integers, Kept, Layout};
pub(crate) use fingerprint::{check_pattern, fingerprint_of};
#[cfg(all(unix, feature = "ranks", feature = "cli"))]
pub(crate) use host::{Arrangement, Stretch, some_rows};
pub use map::Assembly;
pub use resident::ResidentTriplets;

use crate::backend::{Backend, Host, RunSums};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Triplets};
use crate::scalar::Scalar;

/// Assembly on a backend. The provided methods work on every backend. A backend that needs less memory or time for a
/// step overrides it, with the same structure and the same order of sums.
#[allow(clippy::missing_errors_doc)]
pub trait Assemble: RunSums {
    /// As [`Assembler::to_csr`], after sizes and diagonal were checked.
    fn assemble<T: Scalar>(
        &self,
        triplets: ResidentTriplets<T, Self>,
        symmetry: Symmetry,
    ) -> Result<Csr<T, Self>> {
        sorting::assemble(self, triplets, symmetry)
    }

    /// As [`Assembler::assembly`], after sizes and diagonal were checked.
    fn analyse<T: Scalar>(
        &self,
        triplets: &ResidentTriplets<T, Self>,
        symmetry: Symmetry,
    ) -> Result<(Csr<T, Self>, Assembly<Self>)> {
        sorting::analyse(self, triplets, symmetry)
    }
}

/// Assembles triplets of a matrix stored in full, not as one triangle: [`Assembler`] with its defaults.
///
/// ```
/// use residua::{Host, Triplets, assemble};
/// let mut t = Triplets::new(2, 2)?;
/// for (i, j, value) in [(1, 1, 2.0), (0, 0, 1.0), (1, 1, 0.5)] {
///     t.push(i, j, value)?;
/// }
/// let a = assemble::to_csr(&Host, t)?;
/// assert_eq!(a.nonzeros(), 2);
/// assert_eq!(a.parts().values, [1.0, 2.5]);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If memory is insufficient, or the device fails.
pub fn to_csr<T: Scalar, B: Assemble>(backend: &B, triplets: Triplets<T>) -> Result<Csr<T, B>> {
    Assembler::default().to_csr(backend, triplets)
}

/// Options of the assembly of triplets.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Assembler {
    symmetry: Symmetry,
}

impl Assembler {
    /// Sets the symmetry of the matrix. If it is not general, the triplets hold one half, and an entry off the diagonal
    /// stands for its mirror image too, whichever triangle it is in.
    #[must_use]
    pub fn symmetry(mut self, symmetry: Symmetry) -> Self {
        self.symmetry = symmetry;
        self
    }

    /// Assembles the matrix. Takes the triplets by value and frees their arrays as soon as it can.
    ///
    /// # Errors
    /// If a stored half is not square or its diagonal contradicts the symmetry, memory is insufficient, or the device
    /// fails.
    pub fn to_csr<T: Scalar, B: Assemble>(&self, backend: &B, triplets: Triplets<T>) -> Result<Csr<T, B>> {
        check(&triplets, self.symmetry)?;
        backend.assemble(ResidentTriplets::upload(backend, triplets)?, self.symmetry)
    }

    /// Assembles triplets that are already in the memory of the backend.
    ///
    /// # Errors
    /// As [`Assembler::to_csr`].
    pub fn resident_to_csr<T: Scalar, B: Assemble>(
        &self,
        backend: &B,
        triplets: ResidentTriplets<T, B>,
    ) -> Result<Csr<T, B>> {
        self.check_resident(backend, &triplets)?;
        backend.assemble(triplets, self.symmetry)
    }

    /// Assembles the matrix and the map with which new values of the same triplets update it in one pass.
    ///
    /// # Errors
    /// As [`Assembler::to_csr`].
    pub fn assembly<T: Scalar, B: Assemble>(
        &self,
        backend: &B,
        triplets: &Triplets<T>,
    ) -> Result<(Csr<T, B>, Assembly<B>)> {
        check(triplets, self.symmetry)?;
        backend.analyse(&ResidentTriplets::upload(backend, triplets.clone())?, self.symmetry)
    }

    /// As [`Assembler::assembly`], for triplets that are already in the memory of the backend.
    ///
    /// # Errors
    /// As [`Assembler::to_csr`].
    pub fn resident_assembly<T: Scalar, B: Assemble>(
        &self,
        backend: &B,
        triplets: &ResidentTriplets<T, B>,
    ) -> Result<(Csr<T, B>, Assembly<B>)> {
        self.check_resident(backend, triplets)?;
        backend.analyse(triplets, self.symmetry)
    }

    /// Checks on the host whether the diagonal contradicts the symmetry.
    fn check_resident<T: Scalar, B: Backend>(
        &self,
        backend: &B,
        triplets: &ResidentTriplets<T, B>,
    ) -> Result<()> {
        match self.symmetry {
            Symmetry::General => Ok(()),
            known if known == triplets.checked || known == Symmetry::Symmetric => {
                check_square(triplets.rows(), triplets.columns(), self.symmetry)
            }
            _ => check(&triplets.to_host(backend)?, self.symmetry),
        }
    }
}

/// A stored half must be square, with a zero diagonal if skew-symmetric and a real one if Hermitian.
fn check<T: Scalar>(triplets: &Triplets<T>, symmetry: Symmetry) -> Result<()> {
    if symmetry == Symmetry::General {
        return Ok(());
    }
    check_square(triplets.rows(), triplets.columns(), symmetry)?;
    if symmetry == Symmetry::Symmetric {
        return Ok(());
    }
    let (is, js, values) = triplets.parts();
    let contradicts = |k: &usize| is[*k] == js[*k] && symmetry.mirror(values[*k]) != values[*k];
    match (0..values.len()).find(contradicts) {
        None => Ok(()),
        Some(k) => Err(Error::InvalidMatrix(format!(
            "triplet {k} has the value {} on the diagonal (row {}), which no {name} matrix has",
            values[k],
            is[k],
            name = symmetry.name()
        ))),
    }
}

fn check_square(rows: usize, columns: usize, symmetry: Symmetry) -> Result<()> {
    if rows == columns {
        return Ok(());
    }
    Err(Error::InvalidMatrix(format!("a {} matrix must be square, not {rows} x {columns}", symmetry.name())))
}

#[cfg(feature = "cuda")]
impl Assemble for crate::backend::Cuda {}

impl<V: Scalar> Csr<V, Host> {
    /// Assembles triplets in any order; duplicate entries are summed ([`crate::assemble`] has more options).
    ///
    /// # Errors
    /// If memory is insufficient.
    pub fn from_triplets(triplets: Triplets<V>) -> Result<Self> {
        to_csr(&Host, triplets)
    }
}
