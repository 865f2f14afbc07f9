//! The factorisation strategies to try on a device, and their order.

use super::steps::as_reason;
use super::structures::prepared;
use super::{Kind, Prepared, Reason};
use crate::backend::{FactorKind, OffsetsRef, RowFacts};
use crate::error::Result;
use crate::graph::Permutation;
use crate::look::{Transposed, has_positive_diagonal};
use crate::matrix::Csr;
use crate::prepare::permute;
use crate::scalar::{Real, Scalar, Symmetry};

/// Diagonal entries of at least this fraction of the largest in their row can be pivots without a matching.
const STRONG: f64 = 1e-3;

/// A strategy: a kind of factorisation, and whether a matching comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) kind: FactorKind,
    pub(super) blocks_of_two: bool,
    /// Whether rows are permuted by a matching, and scaled, before the factorisation.
    pub(super) matched: bool,
    /// Whether the backend factorises in its own fronts instead of with a library.
    pub(super) fronts: bool,
}

impl Way {
    /// LU in the backend's own fronts, whose structure includes a matching and scaling.
    pub(super) const FRONTS: Self =
        Self { kind: FactorKind::General, blocks_of_two: false, matched: false, fronts: true };

    pub(super) fn name(self) -> Kind {
        if self.fronts {
            return Kind::FrontalLu;
        }
        match self.kind {
            FactorKind::Positive => Kind::Cholesky,
            FactorKind::Hermitian | FactorKind::Symmetric => Kind::Ldlt,
            FactorKind::General => Kind::SupernodalLu,
        }
    }
}

/// The properties of a matrix that decide on the strategies; new values may change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nature {
    /// L D L^H or L D L^T if A has the symmetry for it.
    symmetric: Option<FactorKind>,
    /// Whether A is Hermitian with a positive diagonal.
    positive: bool,
}

impl Nature {
    /// Determines the properties of a matrix in the memory of a backend.
    pub(super) fn of<T: Scalar, B: RowFacts>(backend: &B, a: &Csr<T, B>) -> Result<Self> {
        let seen = Transposed::of(backend, a)?;
        let symmetric = match (seen.is_hermitian(), seen.is_symmetric()) {
            (true, _) => Some(FactorKind::Hermitian),
            (false, true) => Some(FactorKind::Symmetric),
            (false, false) => None,
        };
        let positive = symmetric == Some(FactorKind::Hermitian) && has_positive_diagonal(backend, a)?;
        Ok(Self { symmetric, positive })
    }

    /// The symmetry of all entries, bit by bit.
    pub(super) fn symmetry(self) -> Symmetry {
        match self.symmetric {
            Some(FactorKind::Hermitian) => Symmetry::Hermitian,
            Some(FactorKind::Symmetric) => Symmetry::Symmetric,
            _ => Symmetry::General,
        }
    }

    /// The strategies to try, the most likely one first. `has_strong_diagonal` is called only if A has no symmetry.
    pub(super) fn ways(
        self,
        has_blocks_of_two: bool,
        has_strong_diagonal: impl FnOnce() -> Result<bool>,
    ) -> Result<Vec<Way>> {
        let way = |kind| Way { kind, blocks_of_two: false, matched: false, fronts: false };
        let mut ways = Vec::new();
        if let Some(kind) = self.symmetric {
            ways.extend(self.positive.then(|| way(FactorKind::Positive)));
            ways.push(way(kind));
            ways.extend(has_blocks_of_two.then(|| Way { blocks_of_two: true, ..way(kind) }));
        } else if has_strong_diagonal()? {
            ways.push(way(FactorKind::General));
        }
        ways.push(Way { matched: true, ..way(FactorKind::General) });
        Ok(ways)
    }
}

/// Returns whether pivots on the diagonal are likely to suffice.
pub(super) fn has_strong_diagonal<T: Scalar>(a: &Csr<T>) -> bool {
    let parts = a.parts();
    let range = |row: usize| match parts.offsets {
        OffsetsRef::Lower(o) => o[row] as usize..o[row + 1] as usize,
        OffsetsRef::Wide(o) => o[row] as usize..o[row + 1] as usize,
    };
    (0..a.rows()).all(|row| {
        let (mut diagonal, mut largest) = (0.0, 0.0_f64);
        for k in range(row) {
            let size = parts.values[k].abs().to_f64();
            largest = largest.max(size);
            if parts.indices[k] as usize == row {
                diagonal = size;
            }
        }
        diagonal > 0.0 && diagonal >= STRONG * largest
    })
}

/// The scaling and row permutation that move large entries to the diagonal.
pub(super) struct Matched {
    pub(super) prepared: Prepared,
    columns: Permutation,
}

impl Matched {
    pub(super) fn new<T: Scalar>(a: &Csr<T>) -> Result<Self, Reason> {
        let (prepared, matched, unmatched) = prepared(a)?;
        if matched < a.rows() {
            return Err(Reason::StructurallySingular { rank: matched, unmatched });
        }
        Ok(Self { prepared, columns: Permutation::identity(a.columns()).map_err(as_reason)? })
    }

    /// P R A C.
    pub(super) fn matrix<T: Scalar>(&self, a: &Csr<T>) -> Result<Csr<T>> {
        permute(&self.prepared.scaling.apply(a)?, &self.prepared.rows, &self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use num_complex::Complex;

    fn matrix<T: Scalar>(values: [T; 4]) -> Csr<T> {
        Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap()
    }

    fn names<T: Scalar>(values: [T; 4]) -> String {
        let a = matrix(values);
        let nature = Nature::of(&Host, &a).unwrap();
        let ways = nature.ways(true, || Ok(has_strong_diagonal(&a))).unwrap();
        let word = |way: Way| {
            format!(
                "{:?}{}{}",
                way.kind,
                ["", "2"][usize::from(way.blocks_of_two)],
                ["", "m"][usize::from(way.matched)]
            )
        };
        ways.into_iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_matrix_has_its_ways() {
        assert_eq!(names([2.0, 1.0, 1.0, 2.0]), "Positive Hermitian Hermitian2 Generalm");
        assert_eq!(names([2.0, 1.0, 1.0, 0.0]), "Hermitian Hermitian2 Generalm");
        assert_eq!(names([2.0, 1.0, 0.5, 2.0]), "General Generalm");
        assert_eq!(names([1e-4, 1.0, 0.5, 2.0]), "Generalm");
        let i = Complex::new(0.0, 1.0);
        assert_eq!(names([i, i, i, i]), "Symmetric Symmetric2 Generalm");
        assert_eq!(names([i * 0.0 + 1.0, i, -i, i * 0.0 + 2.0]), "Positive Hermitian Hermitian2 Generalm");
    }

    #[test]
    fn a_row_without_a_partner_is_structurally_singular() {
        let a = matrix([0.0, 1.0, 0.0, 2.0]);
        assert!(matches!(Matched::new(&a), Err(Reason::StructurallySingular { rank: 1, .. })));
    }
}
