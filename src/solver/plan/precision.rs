//! Stages of a system, in full precision, in half of it with refinement, or in the one and then the other.

use super::store::Kept;
use super::{
    AS_ASKED, GENERAL, GRIDS, HALF, INSTEAD, MESH, PLAIN, POLYNOMIAL, Planner, RESCUE, SYMMETRIZED, System,
};
use crate::error::{Error, Result};
use crate::matrix::{Csr, SparseMatrix};
use crate::operator::LinearOperator;
use crate::scalar::{Scalar, Widen};
use crate::solver::SolverBackend;
use crate::solver::budgets::{BEFORE_FACTORS, BEFORE_LEVELS_OF_OTHERS, levels_iterations};
use crate::solver::iterated::Parts;
use crate::solver::names::{Method, Precision, PreconditionerChoice as Name};
use crate::solver::preconditioner::Setup;
use crate::solver::refined::Refined;
use crate::solver::stage::{Plan, Ready, Stage, iterated};
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
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let halves = size_of::<T::Narrow>() < size_of::<T>() && self.first() == Method::Cg;
        match self.wishes.precision {
            Precision::Mixed if halves => self.mixed(a, wrap),
            Precision::Auto if halves => self.either(a, wrap),
            _ => self.full(a, wrap),
        }
    }

    /// In full precision.
    fn full<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let Kept { operator, setup, rescue, why, name, choice, later } = self.store::<V, T>(a, true)?;
        let (n, stored) = (operator.columns(), wrap(operator.into()));
        let why = if rescue.is_some() { why } else { self.why() };
        let setup = match (setup, stored.shared()) {
            (setup, Some(operator)) => setup.on(self.backend, &operator)?,
            (setup, None) => setup,
        };
        let mut stages = self.stages(n, setup, name, why)?;
        if why == MESH {
            // What did not serve at first does not later.
            let levels = |stage: &Stage<T, B>| matches!(stage.plan.preconditioner, Name::Multigrid(_));
            stages.retain(|stage| !levels(stage) || stage.plan.why == MESH);
        }
        if let Some(why) = later {
            // Nothing is set up for a stage that may not have its turn.
            let levels = self.plan(n, Name::Multigrid(Default::default()), Precision::Double, why);
            let levels = Stage::later(Plan { share: Some(self.patience(n, levels_iterations(n))), ..levels });
            let (first, most) = if why == GRIDS {
                let place = stages.iter().position(|stage| stage.plan.method == Method::Direct);
                stages.insert(place.map_or(0, |place| place + 1), levels);
                (&mut stages[0].plan, BEFORE_FACTORS)
            } else {
                stages.insert(1, levels);
                (&mut stages[0].plan, BEFORE_LEVELS_OF_OTHERS)
            };
            if first.race || why != GRIDS {
                first.share = Some(self.patience(n, most));
            }
        }
        if let Some(setup) = rescue {
            let parts = Parts { setup, method: self.first(), name: Name::Jacobi, options: self.options };
            let behind = match why {
                POLYNOMIAL => INSTEAD,
                SYMMETRIZED => GENERAL,
                _ => PLAIN,
            };
            let plan = self.plan(n, Name::Jacobi, Precision::Double, behind);
            // Behind the stage that it stands in for, where that is not the first. Rows were scaled in easy systems
            // too: there the diagonal comes before, for a few iterations.
            let stands_in = stages.iter().position(|stage| stage.plan.why == why);
            let (place, share) = if why == SYMMETRIZED {
                (stands_in.unwrap_or(0), Some(self.patience(n, BEFORE_LEVELS_OF_OTHERS)))
            } else {
                let share = self.share_of_first(n, Name::Jacobi).filter(|_| plan.method == Method::Gmres);
                (stands_in.map_or(0, |place| place + 1), share)
            };
            stages.insert(place, Stage::new(Plan { share, ..plan }, iterated(self.backend, parts)?));
        }
        Ok(System { stored, stages, choice })
    }

    /// With the matrix rounded in the loop and as it is outside.
    fn mixed<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let backend = self.backend;
        let low = self.store::<V::Narrow, T::Narrow>(a.to_rounded(backend)?, false);
        let refused = match &low {
            Ok(kept) => matches!(kept.setup, Setup::NotPositiveDefinite(_)),
            Err(error) => matches!(error, Error::Diagonal { .. }),
        };
        // Where rounding has done that, it is the precision that does not serve, not the matrix.
        let whole = || Setup::<T, B>::new(backend, &a, (Method::Cg, Name::Jacobi), None);
        if refused && !matches!(whole()?, Setup::NotPositiveDefinite(_)) {
            return Err(Error::InvalidArgument(
                "a diagonal entry is beyond the range of single precision; use precision double, or scale A and b"
                    .into(),
            ));
        }
        let Kept { operator, setup, name, choice, .. } = low?;
        let plan = self.plan(a.rows(), name, Precision::Mixed, AS_ASKED);
        let stage = Stage::new(plan, self.refined(operator, setup)?);
        Ok(System { stored: wrap(Arc::new(a)), stages: vec![stage], choice })
    }

    /// As `mixed` where rounding leaves a matrix to iterate with, and then in full precision where that does not do;
    /// else as `full`.
    fn either<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let backend = self.backend;
        match self.store::<V::Narrow, T::Narrow>(a.to_rounded(backend)?, false) {
            Ok(Kept { setup: Setup::NotPositiveDefinite(_), .. }) | Err(Error::Diagonal { .. }) => {
                self.full(a, wrap)
            }
            Ok(Kept { operator, setup, name, choice, .. }) => {
                let own = match self.named_or(Name::Jacobi) {
                    Name::ChebyshevSingle(_) => Name::Jacobi,
                    named => named,
                };
                let n = a.rows();
                let mut stages = vec![
                    Stage::new(self.plan(n, name, Precision::Mixed, HALF), self.refined(operator, setup)?),
                    Stage::later(self.plan(n, own, Precision::Double, RESCUE)),
                ];
                stages.extend(self.others(n));
                Ok(System { stored: wrap(Arc::new(a)), stages, choice })
            }
            Err(error) => Err(error),
        }
    }

    /// The stage of refinement.
    fn refined<T: Scalar, V: Scalar>(
        &self,
        operator: Box<dyn SparseMatrix<T::Narrow, B, V>>,
        setup: Setup<T::Narrow, B>,
    ) -> Result<Box<dyn Ready<T, B>>> {
        let operator: Box<dyn LinearOperator<T::Narrow, B>> = operator;
        let operator = Arc::from(operator);
        let setup = setup.on(self.backend, &operator)?;
        Ok(Box::new(Refined::new(self.backend, operator, setup, self.options)))
    }
}
