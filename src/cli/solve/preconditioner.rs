//! Preconditioners as a user names them, and set up.

use residua::backend::{PreconditionSteps, Products};
use residua::precondition::{BlockJacobi, Chebyshev, Fsai, Identity, Jacobi, Narrowed, Preconditioner};
use residua::scalar::Widen;
use residua::{Csr, Error, LinearOperator, Scalar};
use std::sync::Arc;

/// Rows of a block where the matrix has no natural ones.
const BLOCK: usize = 4;

/// Steps of the polynomial where none are given, and where it is in half the precision.
const STEPS: usize = 4;
pub(super) const SINGLE_STEPS: usize = 14;

/// A preconditioner by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    None,
    Jacobi,
    /// Blocks of so many rows, or natural ones.
    Blocks(Option<usize>),
    Fsai,
    /// A polynomial of so many steps.
    Chebyshev(usize),
    /// The same in half the precision.
    ChebyshevSingle(usize),
    /// Jacobi, or the polynomial in half the precision where that is likely to be faster.
    Auto,
}

/// Accepts what [`Name`] can be.
pub(super) fn parse(text: &str) -> Result<Name, String> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    let number = number
        .map(|number| number.parse::<usize>().ok().filter(|n| (1..=64).contains(n)).ok_or(number))
        .transpose()
        .map_err(|number| format!("'{number}' is no number from 1 to 64"))?;
    match (name, number) {
        ("auto", None) => Ok(Name::Auto),
        ("none", None) => Ok(Name::None),
        ("jacobi", None) => Ok(Name::Jacobi),
        ("block-jacobi", Some(33..)) => Err("a block has at most 32 rows".into()),
        ("block-jacobi", size) => Ok(Name::Blocks(size)),
        ("fsai", None) => Ok(Name::Fsai),
        ("chebyshev", steps) => Ok(Name::Chebyshev(steps.unwrap_or(STEPS))),
        ("chebyshev-single", steps) => Ok(Name::ChebyshevSingle(steps.unwrap_or(SINGLE_STEPS))),
        _ => Err("possible: auto, none, jacobi, block-jacobi[:ROWS], fsai, chebyshev[:STEPS], chebyshev-single[:STEPS]".into()),
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Name::None => f.write_str("none"),
            Name::Jacobi => f.write_str("jacobi"),
            Name::Blocks(None) => f.write_str("block-jacobi"),
            Name::Blocks(Some(rows)) => write!(f, "block-jacobi:{rows}"),
            Name::Fsai => f.write_str("fsai"),
            Name::Chebyshev(steps) => write!(f, "chebyshev:{steps}"),
            Name::ChebyshevSingle(steps) => write!(f, "chebyshev-single:{steps}"),
            Name::Auto => f.write_str("auto"),
        }
    }
}

/// A preconditioner that is set up, or the proof that none is needed.
pub(super) enum Setup<T: Scalar, B: PreconditionSteps + Products> {
    Identity,
    Jacobi(Jacobi<T, B>),
    Blocks(BlockJacobi<T, B>),
    Fsai(Box<Fsai<T, B>>),
    /// The diagonal of a polynomial that waits for its operator.
    Diagonal(Jacobi<T, B>, usize),
    Chebyshev(Box<Chebyshev<T, B>>),
    /// A polynomial in half the precision, and what to go on with where the choice was ours and it fails.
    Single(Box<Narrowed<Chebyshev<T::Narrow, B>>>, Option<Box<Setup<T, B>>>),
    /// A diagonal entry that no positive definite matrix has.
    NotPositiveDefinite(f64),
}

impl<T: Scalar, B: PreconditionSteps + Products> Setup<T, B> {
    pub(super) fn new<V: Scalar + Widen<T>>(backend: &B, a: &Csr<V, B>, name: Name) -> residua::Result<Self> {
        let made = match name {
            Name::None => Ok(Setup::Identity),
            // Half the precision is set up by `store`, behind the matrix's own format.
            Name::Jacobi | Name::Auto | Name::ChebyshevSingle(_) => {
                Jacobi::new(backend, a).map(Setup::Jacobi)
            }
            Name::Chebyshev(steps) => Jacobi::new(backend, a).map(|d| Setup::Diagonal(d, steps)),
            Name::Fsai => Fsai::new(backend, a).map(|m| Setup::Fsai(Box::new(m))),
            Name::Blocks(Some(rows)) => BlockJacobi::new(backend, a, rows).map(Setup::Blocks),
            Name::Blocks(None) => {
                let sizes = BlockJacobi::<T, B>::natural_blocks(backend, a, BlockJacobi::<T, B>::LARGEST)?;
                if sizes.iter().any(|&size| size > 1) {
                    BlockJacobi::with_blocks(backend, a, &sizes).map(Setup::Blocks)
                } else {
                    BlockJacobi::new(backend, a, BLOCK).map(Setup::Blocks)
                }
            }
        };
        match made {
            Err(Error::Diagonal { value, .. }) if value <= 0.0 => Ok(Setup::NotPositiveDefinite(value)),
            made => made,
        }
    }

    /// A polynomial gets its operator.
    pub(super) fn on(self, backend: &B, a: &Arc<dyn LinearOperator<T, B>>) -> residua::Result<Self> {
        match self {
            Setup::Diagonal(diagonal, steps) => {
                let made = Chebyshev::new(backend, a.clone(), Arc::new(diagonal), steps)?;
                Ok(Setup::Chebyshev(Box::new(made)))
            }
            other => Ok(other),
        }
    }

    /// The preconditioner.
    pub(super) fn get(&self) -> &dyn Preconditioner<T, B> {
        match self {
            Setup::Identity | Setup::NotPositiveDefinite(_) => &Identity,
            Setup::Jacobi(m) | Setup::Diagonal(m, _) => m,
            Setup::Blocks(m) => m,
            Setup::Fsai(m) => &**m,
            Setup::Chebyshev(m) => &**m,
            Setup::Single(m, _) => &**m,
        }
    }

    /// What to go on with where the choice was ours, and it failed.
    pub(super) fn rescue(&self) -> Option<&Self> {
        match self {
            Setup::Single(_, rescue) => rescue.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_typed() {
        for name in ["none", "jacobi", "block-jacobi", "block-jacobi:3", "fsai", "chebyshev:5"] {
            assert_eq!(parse(name).unwrap().to_string(), name);
        }
        assert_eq!(parse("chebyshev").unwrap(), Name::Chebyshev(STEPS));
        for wrong in ["magic", "jacobi:2", "block-jacobi:0", "block-jacobi:33", "chebyshev:x", "fsai:1", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
