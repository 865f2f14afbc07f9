//! The symmetry of a matrix given by triplets.

use super::Scalar;

/// How entries that are not stored follow from stored ones. The names are those of Matrix Market files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Symmetry {
    /// Every entry is stored.
    #[default]
    General,
    /// One triangle and the diagonal are stored: a(j, i) = a(i, j).
    Symmetric,
    /// One triangle is stored, the diagonal is zero: a(j, i) = -a(i, j).
    SkewSymmetric,
    /// One triangle and the real diagonal are stored: a(j, i) is the conjugate of a(i, j).
    Hermitian,
}

impl Symmetry {
    /// The value at (j, i) if `value` is stored at (i, j).
    #[inline(always)]
    pub fn mirror<T: Scalar>(self, value: T) -> T {
        match self {
            Symmetry::General | Symmetry::Symmetric => value,
            Symmetry::SkewSymmetric => -value,
            Symmetry::Hermitian => value.conj(),
        }
    }

    /// The word in a Matrix Market header.
    pub fn name(self) -> &'static str {
        match self {
            Symmetry::General => "general",
            Symmetry::Symmetric => "symmetric",
            Symmetry::SkewSymmetric => "skew-symmetric",
            Symmetry::Hermitian => "hermitian",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn mirrors_follow_the_definitions() {
        let z = Complex::new(1.0, 2.0);
        assert_eq!(Symmetry::Symmetric.mirror(z), z);
        assert_eq!(Symmetry::SkewSymmetric.mirror(z), -z);
        assert_eq!(Symmetry::Hermitian.mirror(z), z.conj());
    }
}
