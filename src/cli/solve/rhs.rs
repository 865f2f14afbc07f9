//! Right-hand sides.

use crate::cli::Failure;
use crate::cli::failure::About;
use residua::generate::Random;
use residua::market::{self, ReadOptions};
use residua::{Csr, Host, Scalar};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What `--rhs` names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rhs {
    /// b = (1, ..., 1).
    Ones,
    /// b = A (1, ..., 1).
    TimesOnes,
    /// b random.
    Random(u64),
    /// b = A x, x random.
    TimesRandom(u64),
    /// b from a file.
    File(PathBuf),
}

impl FromStr for Rhs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, seed) = text.split_once(':').map_or((text, None), |(name, seed)| (name, Some(seed)));
        let seeded = |make: fn(u64) -> Rhs| match seed.map_or(Ok(1), str::parse) {
            Ok(seed) => Ok(make(seed)),
            Err(_) => Err(format!("{text}: the seed is a whole number, as in {name}:7")),
        };
        match name {
            "ones" if seed.is_none() => Ok(Rhs::Ones),
            "a-ones" if seed.is_none() => Ok(Rhs::TimesOnes),
            "random" => seeded(Rhs::Random),
            "a-random" => seeded(Rhs::TimesRandom),
            "" => Err("name a file, or one of ones, a-ones, random:SEED, a-random:SEED".into()),
            _ => Ok(Rhs::File(text.into())),
        }
    }
}

/// Right-hand sides of one length, with the solution where it is known.
pub(super) struct RightHandSides<T> {
    /// Each of them.
    pub(super) columns: Vec<Vec<T>>,
    /// The solution that `columns[0]` was made from.
    pub(super) solution: Option<Vec<T>>,
    /// For the report.
    pub(super) words: String,
}

impl Rhs {
    /// Makes or reads b for `a`, which came from the file `matrix`.
    pub(super) fn make<T: Scalar>(&self, a: &Csr<T>, matrix: &Path) -> Result<RightHandSides<T>, Failure> {
        let n = a.rows();
        let (x, words) = match self {
            Rhs::File(path) => return read(path, matrix, n),
            Rhs::Ones => (ones(n), "all ones".to_string()),
            Rhs::TimesOnes => (ones(n), "A times ones, so that x is known".to_string()),
            Rhs::Random(seed) => (random(n, *seed), format!("random in [-1, 1), seed {seed}")),
            Rhs::TimesRandom(seed) => {
                (random(n, *seed), format!("A times a random x, seed {seed}, so that x is known"))
            }
        };
        if !matches!(self, Rhs::TimesOnes | Rhs::TimesRandom(_)) {
            return Ok(RightHandSides { columns: vec![x], solution: None, words });
        }
        let mut b = vec![T::zero(); n];
        a.product(&Host, T::one(), &x, T::zero(), &mut b).about(matrix)?;
        Ok(RightHandSides { columns: vec![b], solution: Some(x), words })
    }
}

fn ones<T: Scalar>(n: usize) -> Vec<T> {
    vec![T::one(); n]
}

fn random<T: Scalar>(n: usize, seed: u64) -> Vec<T> {
    let mut stream = Random::new(seed);
    let mut number = || stream.between(-1.0, 1.0);
    let mut entry = || {
        let re = number();
        let im = if T::COMPLEX { number() } else { 0.0 };
        T::from_parts(re, im).unwrap_or_default()
    };
    (0..n).map(|_| entry()).collect()
}

fn read<T: Scalar>(path: &Path, matrix: &Path, n: usize) -> Result<RightHandSides<T>, Failure> {
    let file = market::read_dense::<T>(path, &ReadOptions::default()).about(path)?;
    let (rows, k) = (file.rows(), file.columns());
    if rows != n {
        let hint = if rows == 1 && k == n { "; write it as a column" } else { "" };
        return Err(Failure::about(
            path,
            format!("a right-hand side of {rows} rows, but {} has {n}{hint}", matrix.display()),
        ));
    }
    if k == 0 {
        return Err(Failure::about(path, "no right-hand side: the array has no columns"));
    }
    let columns = (0..k).map(|j| file.column(j).to_vec()).collect();
    let words = match k {
        1 => path.display().to_string(),
        _ => format!("{}, {k} columns", path.display()),
    };
    Ok(RightHandSides { columns, solution: None, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_are_told_apart() {
        for (text, rhs) in [
            ("ones", Rhs::Ones),
            ("a-ones", Rhs::TimesOnes),
            ("random:7", Rhs::Random(7)),
            ("random", Rhs::Random(1)),
            ("a-random:0", Rhs::TimesRandom(0)),
            ("./ones", Rhs::File("./ones".into())),
            ("ones:3", Rhs::File("ones:3".into())),
        ] {
            assert_eq!(text.parse(), Ok(rhs), "{text}");
        }
        assert!("random:x".parse::<Rhs>().is_err() && "random:-1".parse::<Rhs>().is_err());
        assert!("".parse::<Rhs>().is_err());
    }
}
