//! Factorisations in the memory of a backend: by an external library that is found at run time, or in dense fronts.
//!
//! The numbers are not trusted: success says nothing about their accuracy, and the caller must verify each solution
//! (`direct::OnDevice` does).

use super::{Backend, CsrArrays, FrontPlan};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The kind of factorisation of a matrix A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorKind {
    /// L L^H: A is Hermitian and positive definite.
    Positive,
    /// L D L^H: A is Hermitian (symmetric if real).
    Hermitian,
    /// L D L^T: A is complex symmetric.
    Symmetric,
    /// L U.
    General,
}

/// A fill-reducing ordering, and the sizes of the parts if it is a nested dissection.
///
/// ```text
/// parts   5 4 | 4 6 | 2   2 | 3        the first separator has 3 unknowns; of its sides one consists of
/// order   l l   l l   s   s   s        5 and 4 unknowns and a separator of 2, the other of 4 and 6 and one of 2
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elimination {
    /// For each new index the old one: the leaves one after another, then the separators, level by level from the
    /// smallest subgraphs up.
    pub order: Vec<u32>,
    /// The number of unknowns in each of the 2^k leaves and 2^k - 1 separators; empty if the ordering is not by nested
    /// dissection.
    pub parts: Vec<u32>,
}

impl Elimination {
    /// Returns an error unless this orders `n` unknowns and the sizes of the parts add up to `n`.
    #[cfg(any(test, feature = "cuda"))]
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        Error::check_dimension("length of the order of elimination", n, self.order.len())?;
        let mut seen = vec![false; n];
        for &old in &self.order {
            match seen.get_mut(old as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(Error::InvalidArgument(format!(
                        "the order of elimination has {old} twice, or it is not below the number of unknowns, {n}"
                    )));
                }
            }
        }
        if self.parts.is_empty() {
            return Ok(());
        }
        if !(self.parts.len() + 1).is_power_of_two() {
            return Err(Error::InvalidArgument(format!(
                "the order of elimination has {} parts, but must have 2^k - 1",
                self.parts.len()
            )));
        }
        let total = self.parts.iter().map(|&part| part as usize).sum();
        Error::check_dimension("unknowns in all parts of the order", n, total)
    }
}

/// Options of a factorisation.
#[derive(Debug, Clone, Copy)]
pub struct FactorOptions<'a> {
    /// The kind of factorisation.
    pub kind: FactorKind,
    /// The fill-reducing ordering, for both rows and columns; if `None`, the library computes one.
    pub order: Option<&'a Elimination>,
    /// True if L D L^H may use 2 x 2 pivots (Bunch and Kaufman), provided that the library can.
    pub blocks_of_two: bool,
    /// True if the same input must give the same bits, provided that the library can.
    pub deterministic: bool,
}

/// The cost of a numerical factorisation, which is known after the analysis.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FactorEstimate {
    /// The number of entries in the factors.
    pub entries: f64,
    /// Operations, if the library reports them.
    pub flops: Option<f64>,
    /// The number of bytes that the factors occupy.
    pub bytes: u64,
    /// The maximum number of bytes in use during the factorisation.
    pub peak: u64,
    /// The number of free bytes.
    pub free: u64,
}

/// The determinant of a matrix, from the pivots of its factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Determinant<T> {
    /// The determinant divided by its magnitude.
    pub sign: T,
    /// The natural logarithm of its magnitude.
    pub logarithm: f64,
    /// The number of negative eigenvalues, if the matrix is Hermitian and the pivots show it. Rounding errors may have
    /// changed the signs of eigenvalues near zero.
    pub negative: Option<usize>,
}

/// Factors of a matrix in the memory of a backend. The pattern has been analysed.
pub trait Factors<T: Scalar, B: Backend>: Send {
    /// The cost of the numerical factorisation.
    fn estimate(&self) -> FactorEstimate;

    /// Computes the factors for these values of the entries, without a new analysis of the pattern, and reuses the
    /// memory of an earlier call. For [`FactorKind::Positive`], returns the first row, from 0, at which the matrix was
    /// found not to be positive definite.
    ///
    /// # Errors
    /// If the number of values differs, if memory runs out, or if the library or the device fails.
    fn factorise(&mut self, values: &B::Slice<T>) -> Result<Option<usize>>;

    /// x = A^-1 b for `count` right-hand sides, stored one after another.
    ///
    /// # Errors
    /// If a vector has another length, if [`Factors::factorise`] was not called before, or if the library or the device
    /// fails.
    fn solve(&mut self, count: usize, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<()>;

    /// The number of pivots that were perturbed by the last factorisation; `None` if it is not known.
    fn perturbed(&self) -> Option<usize> {
        None
    }

    /// The determinant of the matrix that was factorised, which differs from A if pivots were perturbed.
    ///
    /// # Errors
    /// If the library does not tell it, if [`Factors::factorise`] was not called before, or if the device fails.
    fn determinant(&self) -> Result<Determinant<T>> {
        Err(Error::Unsupported("the determinant from the factors of this library".into()))
    }
}

/// Factorisations in the memory of a backend.
pub trait FactorSteps: Backend {
    /// Returns the name and release of the library.
    ///
    /// # Errors
    /// If none was found; the error says why, and how to install one.
    fn factor_library(&self) -> Result<String> {
        Err(Error::Unsupported("factorisations by a library on this device".into()))
    }

    /// Returns whether the library supports 2 x 2 pivots.
    fn has_blocks_of_two(&self) -> bool {
        false
    }

    /// Analyses the pattern of a square matrix with `n` rows. The result keeps the pattern.
    ///
    /// # Errors
    /// As [`FactorSteps::factor_library`]; if the ordering has another length, if memory runs out, or if the library or
    /// the device fails.
    fn factors<T: Scalar>(
        &self,
        n: usize,
        arrays: CsrArrays<T, Self>,
        options: FactorOptions<'_>,
    ) -> Result<Box<dyn Factors<T, Self>>> {
        let _ = (n, arrays, options);
        self.factor_library().and_then(|_| Err(Error::Unsupported("factorisations on this device".into())))
    }

    /// Returns whether the backend has its own factorisation in dense fronts.
    fn has_fronts(&self) -> bool {
        false
    }

    /// Prepares a factorisation in dense fronts with this structure, by the backend itself. Memory for the factors is
    /// allocated at the first [`Factors::factorise`], which takes the values of A and always returns `None` as the row.
    ///
    /// # Errors
    /// If the backend has no fronts, if memory runs out, or if the device fails.
    fn fronts<T: Scalar>(&self, plan: &FrontPlan) -> Result<Box<dyn Factors<T, Self>>> {
        let _ = plan;
        Err(Error::Unsupported("factorisations in dense fronts on this device".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_every_unknown_once_and_its_parts_add_up() {
        let order = |order: &[u32], parts: &[u32]| Elimination { order: order.into(), parts: parts.into() };
        assert!(order(&[2, 0, 1], &[]).check(3).is_ok());
        assert!(order(&[2, 0, 1], &[1, 1, 1]).check(3).is_ok());
        for (wrong, told) in [
            (order(&[2, 0], &[]), "length"),
            (order(&[2, 0, 2], &[]), "has 2 twice"),
            (order(&[3, 0, 1], &[]), "has 3 twice, or it is not below"),
            (order(&[2, 0, 1], &[1, 2]), "2 parts"),
            (order(&[2, 0, 1], &[1, 1, 2]), "unknowns in all parts"),
        ] {
            let error = wrong.check(3).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
