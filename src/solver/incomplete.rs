//! Incomplete factorisations for the solver, of matrices with values of full or half width.

use super::SolverBackend;
use super::names::{IlutChoice, Method};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::precondition::{Ilu, Ilut, IlutOptions, Narrowed, Preconditioner};
use crate::scalar::{Promote, Scalar};
use crate::work::look_at;
use std::any::Any;

/// The maximum number of multiplications for each entry of A for factors with fill that the solver chooses (5 ns each),
/// and for those tried before MINRES, which is likely to converge if they take long: on saddle points of quadratic
/// programs they take 17 to 140, on Stokes flow in a box 2200.
const WORK: f64 = 1e3;
const WORK_BEFORE_MINRES: f64 = 200.0;

/// The same limit for factors without fill that replace the diagonal during a solve. If rows have w entries, about w /
/// 4 multiplications are needed for each entry; if one row and one column are full, up to the number of rows.
const WORK_WITHOUT_FILL: f64 = 100.0;

/// Factors without fill with at most this many level sets are tried on a device before a factorisation. Each level set
/// takes 1.2 us of an iteration, all of them together as long as twenty iterations with the diagonal.
pub(super) const TRIED_LEVELS: usize = 400;

/// The limits of incomplete factors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The maximum number of level sets in factors without fill.
    pub(super) levels: usize,
    /// The maximum number of multiplications for each entry of A.
    pub(super) work: f64,
}

impl Bounds {
    /// No limits, for a preconditioner that the caller named.
    pub(super) const NONE: Self = Self { levels: usize::MAX, work: f64::INFINITY };

    /// The limits for factors with fill that the solver chooses.
    pub(super) const FILL: Self = Self { work: WORK, ..Self::NONE };
    pub(super) const BEFORE_MINRES: Self = Self { work: WORK_BEFORE_MINRES, ..Self::NONE };

    /// The limits for factors without fill that replace the diagonal during a solve, and for those that are tried on a
    /// device.
    pub(super) const TAKES_OVER: Self = Self { work: WORK_WITHOUT_FILL, ..Self::NONE };
    pub(super) const TRIED: Self = Self { levels: TRIED_LEVELS, ..Self::TAKES_OVER };
}

/// Factors, and their description.
pub(super) struct Incomplete<T: Scalar, B: SolverBackend> {
    m: Box<dyn Preconditioner<T, B>>,
    pub(super) told: String,
}

impl<T: Scalar, B: SolverBackend> Incomplete<T, B> {
    /// Factorises a matrix with values of type `T` or half as wide; the factors have the same width. `choice` is `None`
    /// for factors without fill.
    pub(super) fn new<V: Scalar + Promote<T>>(
        backend: &B,
        a: &Csr<V, B>,
        choice: Option<IlutChoice>,
        (method, bounds): (Method, Bounds),
    ) -> Result<Self> {
        let a: &dyn Any = a;
        if let Some(a) = a.downcast_ref::<Csr<T, B>>() {
            let (m, told) = made(backend, a, choice, (method, bounds))?;
            return Ok(Self { m, told });
        }
        let Some(a) = a.downcast_ref::<Csr<T::Lower, B>>() else {
            return Err(Error::Unsupported("an incomplete factorisation of values of another type".into()));
        };
        let (m, told) = made(backend, a, choice, (method, bounds))?;
        Ok(Self { m: Box::new(Narrowed::new::<T, B>(m)?), told })
    }

    pub(super) fn get(&self) -> &dyn Preconditioner<T, B> {
        &*self.m
    }

    /// Takes new values of the same pattern.
    pub(super) fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        self.m.update(backend, a)
    }
}

/// Refuses factors without fill that take more than `most` multiplications for each entry of A.
fn check_work<T: Scalar>(a: &Csr<T>, most: f64) -> Result<()> {
    let behind_diagonal =
        |k: usize| a.row(k).0.len() - a.row(k).0.partition_point(|&column| column as usize <= k);
    let right: Vec<usize> = (0..a.rows()).map(behind_diagonal).collect();
    let of_row = |i: usize| -> usize {
        look_at(i);
        a.row(i).0.iter().take_while(|&&k| (k as usize) < i).map(|&k| right[k as usize]).sum()
    };
    let work = (0..a.rows()).map(of_row).sum::<usize>() as f64;
    if work > most * a.nonzeros() as f64 {
        return Err(Error::Unsupported(format!(
            "so expensive an incomplete factorisation: it takes {work:.1e} multiplications"
        )));
    }
    Ok(())
}

/// A preconditioner, and its description.
type Made<T, B> = (Box<dyn Preconditioner<T, B>>, String);

fn made<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &Csr<T, B>,
    choice: Option<IlutChoice>,
    (method, bounds): (Method, Bounds),
) -> Result<Made<T, B>> {
    let definite = matches!(method, Method::Cg | Method::Minres);
    if method == Method::Lsmr {
        return Err(Error::Unsupported(
            "lsmr with an incomplete factorisation; use preconditioner none or jacobi".into(),
        ));
    }
    let Some(choice) = choice else {
        if bounds.work.is_finite() {
            check_work(&a.to_host(backend)?, bounds.work)?;
        }
        let m = Ilu::of_levels(backend, a, definite, bounds.levels)?;
        let ((below, above), (shift, failed)) = (m.depth(), m.repairs());
        let mut told = format!("factors without fill, with {below} and {above} level sets");
        if shift > 1.0 {
            told += &format!(", with the diagonal multiplied by {shift}");
        }
        if failed > 0 {
            told += &format!(", {failed} pivots replaced");
        }
        return Ok((Box::new(m), told));
    };
    if definite {
        return Err(Error::Unsupported(format!(
            "ilut with {method}, which needs a Hermitian preconditioner; use ilu"
        )));
    }
    let options = IlutOptions::default().drop(choice.drop()).fill(choice.fill as f64).work(bounds.work);
    let m = Ilut::new(backend, a, &options)?;
    let ((below, above), times) = (m.depth(), m.entries() as f64 / a.nonzeros().max(1) as f64);
    let mut told =
        format!("factors with {times:.1} times the entries of A, with {below} and {above} level sets");
    if m.replaced() > 0 {
        told += &format!(", {} pivots replaced", m.replaced());
    }
    Ok((Box::new(m), told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn factors_without_fill_of_our_choice_are_refused_where_a_column_is_full() {
        let full = check_work(&generate::arrow(3000).unwrap(), WORK_WITHOUT_FILL).unwrap_err().to_string();
        assert!(full.contains("9.0e6 multiplications"), "{full}");
        let grid = generate::poisson3d(20, 20, 20).unwrap();
        check_work(&grid, WORK_WITHOUT_FILL).unwrap();
        // Each row eliminates with three rows before it, three entries each, and fewer at the boundary.
        assert!(check_work(&grid, 9.0 / 7.0).is_ok() && check_work(&grid, 1.0).is_err());
    }
}
