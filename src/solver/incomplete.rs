//! Incomplete factorisations as a solver takes them: from values of either width.

use super::SolverBackend;
use super::names::{IlutChoice, Method};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::precondition::{Ilu, Ilut, IlutOptions, Narrowed, Preconditioner};
use crate::scalar::{Scalar, Widen};
use std::any::Any;

/// Factors, and what is told of them.
pub(super) struct Incomplete<T: Scalar, B: SolverBackend> {
    m: Box<dyn Preconditioner<T, B>>,
    pub(super) told: String,
}

impl<T: Scalar, B: SolverBackend> Incomplete<T, B> {
    /// Of a matrix whose values are of `T` or half as wide, in which case the factors are, too; without fill, and with
    /// no more levels of rows than `most`, where no choice says how much fill.
    pub(super) fn new<V: Scalar + Widen<T>>(
        backend: &B,
        a: &Csr<V, B>,
        choice: Option<IlutChoice>,
        (method, most): (Method, usize),
    ) -> Result<Self> {
        let a: &dyn Any = a;
        if let Some(a) = a.downcast_ref::<Csr<T, B>>() {
            let (m, told) = made(backend, a, choice, (method, most))?;
            return Ok(Self { m, told });
        }
        let Some(a) = a.downcast_ref::<Csr<T::Narrow, B>>() else {
            return Err(Error::Unsupported("an incomplete factorisation of values of another type".into()));
        };
        let (m, told) = made(backend, a, choice, (method, most))?;
        Ok(Self { m: Box::new(Narrowed::new::<T, B>(m)?), told })
    }

    pub(super) fn get(&self) -> &dyn Preconditioner<T, B> {
        &*self.m
    }

    /// New values of the same pattern.
    pub(super) fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        self.m.update(backend, a)
    }
}

/// A preconditioner, and what is told of it.
type Made<T, B> = (Box<dyn Preconditioner<T, B>>, String);

fn made<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &Csr<T, B>,
    choice: Option<IlutChoice>,
    (method, most): (Method, usize),
) -> Result<Made<T, B>> {
    let definite = matches!(method, Method::Cg | Method::Minres);
    if method == Method::Lsmr {
        return Err(Error::Unsupported(
            "an incomplete factorisation with lsmr: it takes none, or jacobi".into(),
        ));
    }
    let Some(choice) = choice else {
        let m = Ilu::of_levels(backend, a, definite, most)?;
        let ((below, above), (shift, failed)) = (m.depth(), m.repairs());
        let mut told = format!("factors without fill, {below} and {above} levels of rows");
        if shift > 1.0 {
            told += &format!(", of the diagonal times {shift}");
        }
        if failed > 0 {
            told += &format!(", {failed} pivots replaced");
        }
        return Ok((Box::new(m), told));
    };
    if definite {
        return Err(Error::Unsupported(format!(
            "ilut with {method}, which takes a Hermitian preconditioner: ilu is one"
        )));
    }
    let m = Ilut::new(backend, a, &IlutOptions::default().drop(choice.drop()).fill(choice.fill as f64))?;
    let ((below, above), times) = (m.depth(), m.entries() as f64 / a.nonzeros().max(1) as f64);
    let mut told = format!("factors with {times:.1} times the entries, {below} and {above} levels of rows");
    if m.replaced() > 0 {
        told += &format!(", {} pivots replaced", m.replaced());
    }
    Ok((Box::new(m), told))
}
