//! Right-hand sides.

use crate::backend::Products;
use crate::cli::Failure;
use crate::cli::failure::About;
use crate::files;
use crate::generate::Random;
use crate::market::{DenseFile, ReadOptions};
use crate::{Backend, Csr, Scalar};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The value of `--rhs`.
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

/// Refuses a plain word that is neither a file nor one of the names.
pub(super) fn check_name(path: &Path) -> Result<(), Failure> {
    let is_word = path.to_string_lossy().chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if !is_word || path == Path::new("-") || path.exists() {
        return Ok(());
    }
    let names = "no such file, nor one of the names ones, a-ones, random:SEED, a-random:SEED";
    Err(Failure::about(path, names))
}

/// Right-hand sides of one length, with the solution if it is known.
pub(super) struct RightHandSides<T: Scalar, B: Backend> {
    pub(super) columns: Columns<T, B>,
    /// The solution that the only column was made from.
    pub(super) solution: Option<B::Vec<T>>,
    /// Their source.
    pub(super) origin: Origin,
}

/// The source of right-hand sides.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Origin {
    /// `file`: a named file; `matrix`: they came with the matrix; `generated`.
    pub(super) source: &'static str,
    /// The file, with the member of an archive after a colon; or how they were made.
    pub(super) name: String,
    pub(super) columns: usize,
}

impl Origin {
    /// The description for the report.
    pub(super) fn words(&self) -> String {
        let columns = if self.columns == 1 { String::new() } else { format!(", {} columns", self.columns) };
        let with = if self.source == "matrix" { ", which came with the matrix" } else { "" };
        format!("{}{columns}{with}", self.name)
    }
}

/// The storage of right-hand sides.
pub(super) enum Columns<T: Scalar, B: Backend> {
    /// From a file, on the host because there may be many: stored one after another, with the length of one.
    Read(Vec<T>, usize),
    /// Generated in the memory of the backend.
    Made(B::Vec<T>),
}

impl<T: Scalar, B: Backend> RightHandSides<T, B> {
    /// The number of right-hand sides.
    pub(super) fn count(&self) -> usize {
        match &self.columns {
            Columns::Read(columns, n) => columns.len() / n,
            Columns::Made(_) => 1,
        }
    }
}

/// [`Rhs::make`]; if none is named, the right-hand side that came with the matrix, else A times ones.
pub(super) fn make<T: Scalar, B: Products>(
    named: Option<&Rhs>,
    backend: &B,
    a: &Csr<T, B>,
    matrix: &Path,
) -> Result<RightHandSides<T, B>, Failure> {
    if named.is_none()
        && let Some((name, file)) = files::right_hand_side(matrix, &ReadOptions::default()).about(matrix)?
    {
        let mut read = columns(file, Path::new(&name), matrix, a.rows())?;
        read.origin.source = "matrix";
        return Ok(read);
    }
    named.unwrap_or(&Rhs::TimesOnes).make(backend, a, matrix)
}

impl Rhs {
    /// Makes or reads b for `a`, which was read from the file `matrix`.
    pub(super) fn make<T: Scalar, B: Products>(
        &self,
        backend: &B,
        a: &Csr<T, B>,
        matrix: &Path,
    ) -> Result<RightHandSides<T, B>, Failure> {
        // A vector of one of the two lengths: x, or b itself.
        let n = if matches!(self, Rhs::TimesOnes | Rhs::TimesRandom(_)) { a.columns() } else { a.rows() };
        let (x, name) = match self {
            Rhs::File(path) => return read(path, matrix, a.rows()),
            Rhs::Ones => (ones(backend, n), "all ones".to_string()),
            Rhs::TimesOnes => (ones(backend, n), "A times ones, so that x is known".to_string()),
            Rhs::Random(seed) => {
                (backend.upload(random(n, *seed)), format!("random in [-1, 1), seed {seed}"))
            }
            Rhs::TimesRandom(seed) => (
                backend.upload(random(n, *seed)),
                format!("A times a random x, seed {seed}, so that x is known"),
            ),
        };
        let origin = Origin { source: "generated", name, columns: 1 };
        let x = x.about(matrix)?;
        if !matches!(self, Rhs::TimesOnes | Rhs::TimesRandom(_)) {
            return Ok(RightHandSides { columns: Columns::Made(x), solution: None, origin });
        }
        let mut b = backend.zeros(a.rows()).about(matrix)?;
        a.product(backend, T::one(), &x, T::zero(), &mut b).about(matrix)?;
        Ok(RightHandSides { columns: Columns::Made(b), solution: Some(x), origin })
    }
}

fn ones<T: Scalar, B: Backend>(backend: &B, n: usize) -> crate::Result<B::Vec<T>> {
    let mut ones = backend.buffer(n)?;
    backend.fill(T::one(), &mut ones)?;
    Ok(ones)
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

fn read<T: Scalar, B: Backend>(
    path: &Path,
    matrix: &Path,
    n: usize,
) -> Result<RightHandSides<T, B>, Failure> {
    columns(files::read_dense(path, &ReadOptions::default()).about(path)?, path, matrix, n)
}

fn columns<T: Scalar, B: Backend>(
    file: DenseFile<T>,
    path: &Path,
    matrix: &Path,
    n: usize,
) -> Result<RightHandSides<T, B>, Failure> {
    let (rows, k) = (file.rows(), file.columns());
    if rows != n {
        let hint = if rows == 1 && k == n { "; write it as a column" } else { "" };
        return Err(Failure::about(
            path,
            format!("the right-hand side has {rows} rows, but {} has {n}{hint}", matrix.display()),
        ));
    }
    if k == 0 {
        return Err(Failure::about(path, "the array has no columns, so it holds no right-hand side"));
    }
    let columns: Vec<T> = (0..k).flat_map(|j| file.column(j).iter().copied()).collect();
    let origin = Origin { source: "file", name: path.display().to_string(), columns: k };
    Ok(RightHandSides { columns: Columns::Read(columns, n), solution: None, origin })
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
