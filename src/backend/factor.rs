//! Factorisations by a library that was found when the program ran.
//!
//! Such a library is foreign: that it reports success says nothing of the numbers that it leaves. Who solves with it
//! tests what it gives (`direct::OnDevice` does).

use super::{Backend, CsrArrays};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// Which factorisation of a matrix A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorKind {
    /// L L^H: A is Hermitian and positive definite.
    Positive,
    /// L D L^H: A is Hermitian, which for real entries is symmetric.
    Hermitian,
    /// L D L^T: A is complex and equals its transpose.
    Symmetric,
    /// L U.
    General,
}

/// An order of elimination, with the parts into which nested dissection has cut it.
///
/// ```text
/// parts   5 4 | 4 6 | 2   2 | 3        the first separator has 3 unknowns; of its sides one consists of
/// order   l l   l l   s   s   s        5 and 4 unknowns and a separator of 2, the other of 4 and 6 and one of 2
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elimination {
    /// The old index of each new one: the leaves one behind the other, then the separators, level by level, those that
    /// keep the fewest unknowns apart first.
    pub order: Vec<u32>,
    /// How many unknowns of the order belong to each part, 2^k leaves and 2^k - 1 separators; empty where the order was
    /// not found by dissection.
    pub parts: Vec<u32>,
}

impl Elimination {
    /// Refuses what is no order of `n` unknowns, or parts that do not add up to it.
    #[cfg(any(test, feature = "cuda"))]
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        Error::check_dimension("length of the order of elimination", n, self.order.len())?;
        let mut seen = vec![false; n];
        for &old in &self.order {
            match seen.get_mut(old as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(Error::InvalidArgument(format!(
                        "an order of elimination of {n} unknowns names {old} twice, or beyond the last"
                    )));
                }
            }
        }
        if self.parts.is_empty() {
            return Ok(());
        }
        if !(self.parts.len() + 1).is_power_of_two() {
            return Err(Error::InvalidArgument(format!(
                "{} parts of an order of elimination: there are 2^k - 1",
                self.parts.len()
            )));
        }
        let total = self.parts.iter().map(|&part| part as usize).sum();
        Error::check_dimension("unknowns in all parts of the order", n, total)
    }
}

/// How to factorise.
#[derive(Debug, Clone, Copy)]
pub struct FactorOptions<'a> {
    /// Which factorisation.
    pub kind: FactorKind,
    /// The order of elimination, rows and columns alike; none: the library finds one.
    pub order: Option<&'a Elimination>,
    /// Whether pivots of L D L^H are looked for in blocks of 2 x 2 too (Bunch and Kaufman), where the library can.
    pub blocks_of_two: bool,
    /// Whether the same input gives the same bits, where the library can.
    pub deterministic: bool,
}

/// What a factorisation takes, known before it is computed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FactorEstimate {
    /// Entries of the factors.
    pub entries: f64,
    /// Operations, where the library tells them.
    pub flops: Option<f64>,
    /// Bytes that the factors keep.
    pub bytes: u64,
    /// Bytes that factorising takes at most.
    pub peak: u64,
    /// Bytes that are free.
    pub free: u64,
}

/// Factors of a matrix in the memory of a backend. The pattern has been analysed.
pub trait Factors<T: Scalar, B: Backend>: Send {
    /// What the numbers will take.
    fn estimate(&self) -> FactorEstimate;

    /// Computes the factors, from these values of the entries. The pattern is not analysed again, and what an earlier
    /// call allocated serves again. Gives the first row, from 0, at which the matrix turned out not to be positive
    /// definite, where that was promised.
    ///
    /// # Errors
    /// On another number of values, without memory, or when the library or the device fails.
    fn factorise(&mut self, values: &B::Slice<T>) -> Result<Option<usize>>;

    /// x = A^-1 b for `count` right-hand sides, one behind the other.
    ///
    /// # Errors
    /// On vectors of other lengths, before the first [`Factors::factorise`], or when the library or the device fails.
    fn solve(&mut self, count: usize, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<()>;
}

/// What factorises in the memory of a backend, where a library for that was found.
pub trait FactorSteps: Backend {
    /// Name and release of the library.
    ///
    /// # Errors
    /// Why there is none, and how to get it.
    fn factor_library(&self) -> Result<String> {
        Err(Error::Unsupported("no library factorises in this memory".into()))
    }

    /// Whether the library looks for pivots in blocks of two.
    fn has_blocks_of_two(&self) -> bool {
        false
    }

    /// Analyses the pattern of a square matrix with `n` rows, which it takes over.
    ///
    /// # Errors
    /// As [`FactorSteps::factor_library`]; on an order of another length, without memory, or when the library or the
    /// device fails.
    fn factors<T: Scalar>(
        &self,
        n: usize,
        arrays: CsrArrays<T, Self>,
        options: FactorOptions<'_>,
    ) -> Result<Box<dyn Factors<T, Self>>> {
        let _ = (n, arrays, options);
        self.factor_library().and_then(|_| Err(Error::Unsupported("factors in this memory".into())))
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
            (order(&[2, 0, 2], &[]), "names 2 twice"),
            (order(&[3, 0, 1], &[]), "names 3 twice, or beyond"),
            (order(&[2, 0, 1], &[1, 2]), "2 parts"),
            (order(&[2, 0, 1], &[1, 1, 2]), "unknowns in all parts"),
        ] {
            let error = wrong.check(3).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
