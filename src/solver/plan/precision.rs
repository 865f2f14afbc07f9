//! The stages of a system: in full precision, in half of it with refinement, or one after the other.

use super::store::Kept;
use super::{Planner, System};
use crate::error::{Error, Result};
use crate::matrix::{Csr, SparseMatrix};
use crate::operator::LinearOperator;
use crate::scalar::{Promote, Scalar};
use crate::solver::SolverBackend;
use crate::solver::choice::{AS_ASKED, Facts, candidates, in_half};
use crate::solver::hierarchy::Known;
use crate::solver::names::{Method, Precision, PreconditionerChoice as Name};
use crate::solver::preconditioner::AnyPreconditioner;
use crate::solver::ready::Ready;
use crate::solver::refined::Refined;
use crate::solver::stage::Stage;
use crate::solver::system::Stored;
use std::sync::Arc;

impl<B: SolverBackend> Planner<'_, B> {
    pub(super) fn in_precision<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Promote<T>,
        V::Lower: Promote<T::Lower>,
    {
        let halves =
            size_of::<T::Lower>() < size_of::<T>() && self.facts(a.nonzeros()).first_method() == Method::Cg;
        match self.wishes.precision {
            Precision::Mixed if halves => self.mixed(a, wrap),
            Precision::Auto if halves => self.either(a, wrap),
            _ => self.full(a, wrap),
        }
    }

    /// Stages in full precision.
    fn full<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Promote<T>,
        V::Lower: Promote<T::Lower>,
    {
        let nonzeros = a.nonzeros();
        let Kept { operator, setup, rescue, hierarchy, polynomial, choice, .. } =
            self.store::<V, T>(a, true)?;
        let stored = wrap(operator.into());
        let setup = match (setup, stored.shared()) {
            (setup, Some(operator)) => setup.on(self.backend, &operator)?,
            (setup, None) => setup,
        };
        let facts = Facts { hierarchy, polynomial, ..self.facts(nonzeros) };
        let stages = self.listed(candidates(&facts), setup, rescue)?;
        Ok(System { stored, stages, facts, choice })
    }

    /// Stages of iterative refinement, with the rounded matrix in the inner solve and the unrounded one outside.
    fn mixed<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Promote<T>,
        V::Lower: Promote<T::Lower>,
    {
        let backend = self.backend;
        let low = self.store::<V::Lower, T::Lower>(a.to_rounded(backend)?, false);
        let refused = match &low {
            Ok(kept) => matches!(kept.setup, AnyPreconditioner::NotPositiveDefinite(_)),
            Err(error) => matches!(error, Error::Diagonal { .. }),
        };
        // If only rounding made a diagonal entry invalid, the precision is to blame and not the matrix.
        let whole =
            || AnyPreconditioner::<T, B>::new(backend, &a, (Method::Cg, Name::Jacobi), Known::default());
        if refused && !matches!(whole()?, AnyPreconditioner::NotPositiveDefinite(_)) {
            return Err(Error::InvalidArgument(
                "a diagonal entry is beyond the range of single precision; use precision double, or scale A and b"
                    .into(),
            ));
        }
        let Kept { operator, setup, name, choice, .. } = low?;
        let facts = self.facts(a.nonzeros());
        let mut half = in_half(&facts, name).swap_remove(0);
        half.why = AS_ASKED;
        let stage = Stage::new(half, self.refined(operator, setup)?, self.units.clone());
        Ok(System { stored: wrap(Arc::new(a)), stages: vec![stage], facts, choice })
    }

    /// As `mixed` if the rounded matrix can be iterated with, followed by stages in full precision; else as `full`.
    fn either<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Promote<T>,
        V::Lower: Promote<T::Lower>,
    {
        let backend = self.backend;
        match self.store::<V::Lower, T::Lower>(a.to_rounded(backend)?, false) {
            Ok(Kept { setup: AnyPreconditioner::NotPositiveDefinite(_), .. })
            | Err(Error::Diagonal { .. }) => self.full(a, wrap),
            Ok(Kept { operator, setup, name, choice, .. }) => {
                let mut refined = Some(self.refined(operator, setup)?);
                let stage = |plan| match refined.take() {
                    Some(ready) => Stage::new(plan, ready, self.units.clone()),
                    None => Stage::later(plan, self.units.clone()),
                };
                let facts = self.facts(a.nonzeros());
                let stages = in_half(&facts, name).into_iter().map(stage).collect();
                Ok(System { stored: wrap(Arc::new(a)), stages, facts, choice })
            }
            Err(error) => Err(error),
        }
    }

    /// The stage of refinement.
    fn refined<T: Scalar, V: Scalar>(
        &self,
        operator: Box<dyn SparseMatrix<T::Lower, B, V>>,
        setup: AnyPreconditioner<T::Lower, B>,
    ) -> Result<Box<dyn Ready<T, B>>> {
        let operator: Box<dyn LinearOperator<T::Lower, B>> = operator;
        let operator = Arc::from(operator);
        let setup = setup.on(self.backend, &operator)?;
        Ok(Box::new(Refined::new(self.backend, operator, setup, self.options)))
    }
}
