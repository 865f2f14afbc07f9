//! From triplets to CSR.
//!
//! Triplets may come in any order. Entries at the same place add up, in the order in which they appear, so the result
//! is the same bits on every run. Explicit zeros stay: they belong to the pattern.
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
//! | `map` | [`Assembly`], the kept map from triplets to nonzeros: new values on the same pattern in one pass |
//! | `resident` | [`ResidentTriplets`], triplets in the memory of a backend |
//! | `arrays` | [`Arrays`]: compressed rows or columns, or triplets, that a caller has in the memory of a backend |
//! | `fingerprint` | whether two matrices have their entries at the same places |
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

/// What a backend does to assemble. The provided methods serve every backend; one that can do a whole step in less
/// memory or time overrides it, with the same structure, and sums in the same order.
#[allow(clippy::missing_errors_doc)]
pub trait Assemble: RunSums {
    /// As [`Assembler::to_csr`], sizes and diagonal checked.
    fn assemble<T: Scalar>(
        &self,
        triplets: ResidentTriplets<T, Self>,
        symmetry: Symmetry,
    ) -> Result<Csr<T, Self>> {
        sorting::assemble(self, triplets, symmetry)
    }

    /// As [`Assembler::assembly`], sizes and diagonal checked.
    fn analyse<T: Scalar>(
        &self,
        triplets: &ResidentTriplets<T, Self>,
        symmetry: Symmetry,
    ) -> Result<(Csr<T, Self>, Assembly<Self>)> {
        sorting::analyse(self, triplets, symmetry)
    }
}

/// Assembles triplets where every entry is stored: [`Assembler`] with its defaults.
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
/// Without memory, or when the device fails.
pub fn to_csr<T: Scalar, B: Assemble>(backend: &B, triplets: Triplets<T>) -> Result<Csr<T, B>> {
    Assembler::default().to_csr(backend, triplets)
}

/// How triplets become a matrix.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Assembler {
    symmetry: Symmetry,
}

impl Assembler {
    /// Which half the triplets hold. An entry off the diagonal then stands for its mirror image too, whichever
    /// triangle it lies in.
    #[must_use]
    pub fn symmetry(mut self, symmetry: Symmetry) -> Self {
        self.symmetry = symmetry;
        self
    }

    /// The matrix. Takes the triplets by value and frees their arrays as soon as it can.
    ///
    /// # Errors
    /// Where a stored half is not square, or its diagonal contradicts the symmetry; without memory, or when the device
    /// fails.
    pub fn to_csr<T: Scalar, B: Assemble>(&self, backend: &B, triplets: Triplets<T>) -> Result<Csr<T, B>> {
        check(&triplets, self.symmetry)?;
        backend.assemble(ResidentTriplets::upload(backend, triplets)?, self.symmetry)
    }

    /// The matrix of triplets that are in the backend's memory already.
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

    /// The matrix, and the map with which new values of the same triplets update it in one pass.
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

    /// As [`Assembler::assembly`], of triplets that are in the backend's memory already.
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

    /// Whether a diagonal contradicts the symmetry is looked up on the host.
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

/// A stored half is square; the diagonal of a skew-symmetric matrix is zero, that of a hermitian one real.
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
            "triplet {k}: {} on the diagonal (row {}) of a {name} matrix",
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
    Err(Error::InvalidMatrix(format!("{rows} x {columns}: a {} matrix is square", symmetry.name())))
}

#[cfg(feature = "cuda")]
impl Assemble for crate::backend::Cuda {}

impl<V: Scalar> Csr<V, Host> {
    /// From triplets in any order; entries at the same place add up (this module has more choices).
    ///
    /// # Errors
    /// Without memory.
    pub fn from_triplets(triplets: Triplets<V>) -> Result<Self> {
        to_csr(&Host, triplets)
    }
}
