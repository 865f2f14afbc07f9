//! The stages of a spread solver: which are tried, how each is set up on a part, and the solve of one.

use super::Solvable;
use super::SolverBackend;
use super::agreed::{local_rows, together, weights};
use super::builder::Builder;
use super::choice::prices::{LEVELS_FROM, LEVELS_ITERATIONS, PATIENCE, SHARE, before_levels};
use super::choice::{AS_ASKED, GENERAL, GRIDS, HERMITIAN, LEAST, LEVELS, PLAIN, SHORT, SPD};
use super::diagonal::Diagonal;
use super::hierarchy::{Levels, grids_pay};
use super::iterated::RESTART;
use super::names::{Method, Precision, PreconditionerChoice as Name};
use super::preconditioner::Setup;
use super::report::{Decision, StageReport};
use super::spread::SpreadSolver;
use crate::backend::{Communicator, Host, PreconditionSteps, Space};
use crate::error::Result;
use crate::krylov::{
    self, BiConjugateGradients, ConjugateGradients, FlexibleMinimalResidual, Krylov, LeastSquaresResidual,
    MinimalResidual, Outcome, Report, SolveOptions,
};
use crate::matrix::Csr;
use crate::multigrid::{seeming_grid, some_distances};
use crate::operator::LinearOperator;
use crate::precondition::{Chebyshev, Identity};
use crate::scalar::Scalar;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

/// A method with its preconditioner.
pub(super) struct Stage<T: Scalar, B: SolverBackend> {
    pub(super) method: Method,
    pub(super) name: Name,
    /// None of multigrid that is set up when its turn comes.
    pub(super) setup: Option<Setup<T, B>>,
    pub(super) share: Option<f64>,
}

/// What preconditioners are made of: the block of a part's rows and columns, or what conjugate gradients take of its
/// diagonal, where that is all that was wished for.
pub(super) enum Block<T: Scalar, B: SolverBackend> {
    Rows(Csr<T, B>),
    Diagonal(Result<Setup<T, B>>),
}

impl<T: Scalar, B: SolverBackend> Stage<T, B> {
    /// Whether it is multigrid of our choice, which gives way where it does not contract.
    pub(super) fn is_trial_of_levels(&self) -> bool {
        matches!(self.name, Name::Multigrid(_)) && self.share.is_some()
    }
}

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> SpreadSolver<T, B, C> {
    /// Sets up what is to be tried. `given`: whether other rows of `a` are empty.
    pub(super) fn list(
        &mut self,
        wishes: &Builder,
        (a, mut own): (&Csr<T, Host>, Block<T, B>),
        given: bool,
        hermitian: bool,
    ) -> Result<()> {
        let named = if wishes.preconditioner == Name::Auto { Name::Jacobi } else { wishes.preconditioner };
        let plain = if named == Name::None { Name::None } else { Name::Jacobi };
        let limit = self.options.iteration_limit(a.rows()) as f64;
        let patience = Some(SHARE.min(PATIENCE / limit));
        let levels_may_follow = wishes.preconditioner == Name::Auto
            && wishes.max_iterations.is_none()
            && wishes.near_null.is_none()
            && a.rows() >= LEVELS_FROM;
        let levels = Name::Multigrid(Default::default());
        let may_begin = levels_may_follow && wishes.method == Method::Auto;
        let mut grids = match &own {
            Block::Rows(own) if may_begin => self.levels_of_a_grid((a, own), hermitian)?,
            _ => None,
        };
        let some = |most: f64| Some((most / limit).min(1.0));
        let list: Vec<(Method, Name, Option<f64>, &'static str)> = match wishes.method {
            Method::Auto if hermitian && grids.is_some() => vec![
                (Method::Cg, levels, some(LEVELS_ITERATIONS), GRIDS),
                (Method::Cg, named, None, PLAIN),
                (Method::Minres, plain, Some(SHARE), HERMITIAN),
                (Method::Lsmr, plain, None, LEAST),
            ],
            Method::Auto if grids.is_some() => vec![
                (Method::Gmres, levels, some(LEVELS_ITERATIONS), GRIDS),
                (Method::Gmres, named, patience, PLAIN),
                (Method::BiCgStab, plain, patience, SHORT),
                (Method::Lsmr, plain, None, LEAST),
            ],
            Method::Auto if hermitian && levels_may_follow => {
                let first = before_levels(a.rows(), <B as PreconditionSteps>::BYTES_TELL);
                vec![
                    (Method::Cg, named, some(first), SPD),
                    (Method::Cg, levels, some(LEVELS_ITERATIONS), LEVELS),
                    (Method::Minres, plain, Some(SHARE), HERMITIAN),
                    (Method::Lsmr, plain, None, LEAST),
                ]
            }
            Method::Auto if hermitian => vec![
                (Method::Cg, named, None, SPD),
                (Method::Minres, plain, Some(SHARE), HERMITIAN),
                (Method::Lsmr, plain, None, LEAST),
            ],
            Method::Auto => vec![
                (Method::Gmres, named, patience, GENERAL),
                (Method::BiCgStab, plain, patience, SHORT),
                (Method::Lsmr, plain, None, LEAST),
            ],
            method => vec![(method, named, None, AS_ASKED)],
        };
        let part = self.space.communicator().part();
        for (number, (method, name, share, why)) in list.into_iter().enumerate() {
            let setup = match (method, name) {
                // Norms of columns are sums over the rows of all parts.
                (Method::Lsmr, Name::Jacobi) if given => {
                    let columns = weights::<T, B, C>(&self.space, (a, &self.parts))?;
                    Diagonal::of_weights(self.space.backend(), &columns).map(|d| Some(Setup::Diagonal(d)))
                }
                _ if number == 0 && grids.is_some() => Ok(grids.take().map(Setup::Levels)),
                _ if number > 0 && matches!(name, Name::Multigrid(_)) => Ok(None),
                _ => {
                    let rows = self.parts[part].clone();
                    self.setup((a, &mut own), (method, hermitian), name, rows).map(Some)
                }
            };
            let mut setup = together(&self.space, setup)?;
            if let Some(Setup::Jacobi(diagonal)) = &mut setup {
                diagonal.agree(&self.space)?;
            }
            if setup.is_none() {
                self.rows = Some(local_rows(a, &self.parts[part])?);
            }
            self.stages.push(Stage { method, name, setup, share });
            self.trail.stages.push(StageReport::listed(
                (method, name, Precision::Double),
                (why, None, None),
                (0, None),
            ));
        }
        let first = self.stages[0].name;
        let why = match &self.stages[0].setup {
            Some(Setup::Levels(levels)) if levels.told.is_empty() => {
                "of each part's own rows and columns".into()
            }
            Some(Setup::Levels(levels)) => levels.told.clone(),
            _ if matches!(named, Name::BlockJacobi(_) | Name::Fsai | Name::Ilu | Name::Ilut(_)) => {
                "of each part's own rows and columns".into()
            }
            _ => return Ok(()),
        };
        self.trail.decisions.push(Decision::new("preconditioner", first.to_string(), why));
        Ok(())
    }

    /// Multigrid, where all parts have planes of a grid for which that is likely to be faster.
    fn levels_of_a_grid(
        &self,
        (a, own): (&Csr<T, Host>, &Csr<T, B>),
        hermitian: bool,
    ) -> Result<Option<Levels<T, B>>> {
        let (backend, own_rows) = (self.space.backend(), &self.parts[self.space.communicator().part()]);
        let nonzeros = self.shares().iter().map(|share| share.nonzeros).sum();
        let grid = seeming_grid(a.rows(), some_distances(a, own_rows));
        let (price, on_device) = (backend.ordering_price(), <B as PreconditionSteps>::BYTES_TELL);
        let pays =
            grid.is_some_and(|grid| grids_pay::<T>(grid.sizes, nonzeros, price, (on_device, hermitian)));
        let curved = hermitian && self.curvature.is_some();
        if curved || self.space.count(pays)? < self.parts.len() {
            return Ok(None);
        }
        let method = if hermitian { Method::Cg } else { Method::Gmres };
        Levels::spread(&self.space, (a, own_rows, own), &self.parts, (Default::default(), method), true)
    }

    fn setup(
        &self,
        (a, own): (&Csr<T, Host>, &mut Block<T, B>),
        (method, hermitian): (Method, bool),
        name: Name,
        rows: Range<usize>,
    ) -> Result<Setup<T, B>> {
        let backend = self.space.backend();
        if method == Method::Cg
            && let Some(curvature) = self.curvature.filter(|_| name != Name::None)
        {
            return Ok(Setup::NotPositiveDefinite(curvature));
        }
        if name == Name::Jacobi && method != Method::Cg {
            return Diagonal::of_part(backend, a, method, rows).map(Setup::Diagonal);
        }
        let own = match own {
            Block::Rows(own) => &*own,
            Block::Diagonal(_) if name == Name::None => return Ok(Setup::Identity),
            Block::Diagonal(made) => return std::mem::replace(made, Ok(Setup::Identity)),
        };
        if let Name::Multigrid(choice) = name {
            // Whatever the method, a Hermitian matrix has the levels that it has for conjugate gradients.
            let method = if hermitian { Method::Cg } else { method };
            let levels = Levels::spread(&self.space, (a, &rows, own), &self.parts, (choice, method), false)?;
            return Ok(levels.map_or(Setup::Identity, Setup::Levels));
        }
        match Setup::new(backend, own, (method, name), None)? {
            Setup::Waiting(diagonal, steps) => {
                let Some(operator) = self.operator.clone() else { unreachable!("all parts have made it") };
                let operator: Arc<dyn LinearOperator<T, B>> = operator;
                let made = Chebyshev::on_space(&self.space, operator, Arc::new(diagonal), steps)?;
                Ok(Setup::Chebyshev(Box::new(made)))
            }
            other => Ok(other),
        }
    }

    /// Sets a stage up whose turn has come; why not, where it can't be.
    pub(super) fn prepare(&mut self, number: usize) -> Result<Option<String>> {
        let Stage { method, name: Name::Multigrid(choice), setup: None, .. } = self.stages[number] else {
            return Ok(None);
        };
        let Some(local) = &self.rows else { return Ok(None) };
        let (here, own) = (0..local.rows(), &self.parts[self.space.communicator().part()]);
        let made = match self.curvature.filter(|_| method == Method::Cg) {
            Some(curvature) => Ok(Setup::NotPositiveDefinite(curvature)),
            None => crate::spread::own_columns(local, &here, own)
                .and_then(|own| own.into_backend(self.space.backend()))
                .and_then(|own| {
                    Levels::spread(&self.space, (local, &here, &own), &self.parts, (choice, method), false)
                })
                .map(|levels| levels.map_or(Setup::Identity, Setup::Levels)),
        };
        match together(&self.space, made) {
            Ok(setup) => self.stages[number].setup = Some(setup),
            Err(error) => return Ok(Some(error.to_string())),
        }
        Ok(None)
    }
}

/// The solve of a stage.
pub(super) struct Task<'a, T: Solvable, B: SolverBackend, C: Communicator<B>> {
    pub(super) space: &'a Space<B, C>,
    pub(super) a: &'a dyn LinearOperator<T, B>,
    pub(super) options: SolveOptions,
    pub(super) b: &'a B::Slice<T>,
    pub(super) x: &'a mut B::Slice<T>,
}

/// How a stage ended, its norms, and how long it iterated.
pub(super) type Ran = (Report, Vec<f64>, Duration);

/// Hears of iterations.
pub(super) type Observer<'a> = dyn FnMut(usize, f64) -> ControlFlow<()> + 'a;

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> Task<'_, T, B, C> {
    pub(super) fn run(self, stage: &Stage<T, B>, observer: &mut Observer<'_>) -> Result<Ran> {
        let (backend, n) = (self.space.backend(), self.a.rows());
        match stage.method {
            Method::Minres => self.with(MinimalResidual::new(backend, n)?, stage, observer),
            Method::Gmres => self.with(FlexibleMinimalResidual::new(backend, n, RESTART)?, stage, observer),
            Method::BiCgStab => self.with(BiConjugateGradients::new(backend, n)?, stage, observer),
            Method::Lsmr => self.with(LeastSquaresResidual::new(backend, n, n)?, stage, observer),
            _ => self.with(ConjugateGradients::new(backend, n)?, stage, observer),
        }
    }

    fn with<M: krylov::Method<T, B, C>>(
        self,
        method: M,
        stage: &Stage<T, B>,
        observer: &mut Observer<'_>,
    ) -> Result<Ran> {
        let curvature = match stage.setup {
            Some(Setup::NotPositiveDefinite(curvature)) => Some(curvature),
            _ => None,
        };
        let options = if curvature.is_some() { self.options.max_iterations(0) } else { self.options };
        let mut krylov = Krylov::with_method(self.space.clone(), method, options)?;
        let m = stage.setup.as_ref().filter(|_| curvature.is_none()).map_or(&Identity as _, Setup::get);
        let mut report = krylov.solve(self.a, m, self.b, self.x, observer)?;
        if let (Some(curvature), Outcome::IterationLimit) = (curvature, report.outcome) {
            report.outcome = Outcome::NotPositiveDefinite { iteration: 0, curvature };
        }
        let iterating = krylov.iterating();
        Ok((report, krylov.into_history(), iterating))
    }
}
