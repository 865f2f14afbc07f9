//! The stages of a distributed solver: which are tried, how each is set up on a rank, and how it solves.

use super::Solvable;
use super::SolverBackend;
use super::builder::Builder;
use super::choice::{Candidate, Facts, GRIDS, Hierarchy, candidates};
use super::consensus::{local_rows, together, weights};
use super::diagonal::Diagonal;
use super::hierarchy::{Known, Levels, grids_pay};
use super::names::{Method, Precision, PreconditionerChoice as Name};
use super::parted::{Block, Stage};
use super::preconditioner::AnyPreconditioner;
use super::report::{Decision, StageReport};
use super::spread::SpreadSolver;
use crate::backend::{Communicator, Host, PreconditionSteps};
use crate::error::Result;
use crate::matrix::Csr;
use crate::multigrid::{seeming_grid, some_distances};
use crate::operator::LinearOperator;
use crate::precondition::Chebyshev;
use std::ops::Range;
use std::sync::Arc;

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> SpreadSolver<T, B, C> {
    /// Sets up the stages. `given` says that rows of other ranks are empty in `a`.
    pub(super) fn list(
        &mut self,
        wishes: &Builder,
        (a, mut own): (&Csr<T, Host>, Block<T, B>),
        given: bool,
        hermitian: bool,
    ) -> Result<()> {
        let size = [a.rows(), a.columns(), self.shares().iter().map(|share| share.nonzeros).sum()];
        let on_device = <B as PreconditionSteps>::IS_DEVICE;
        let mut facts = Facts::of(wishes, &self.options, size, (hermitian, on_device));
        facts.ranks = self.parts.len();
        let mut grids = match &own {
            Block::Rows(own) if facts.may_take_levels() => self.levels_of_a_grid((a, own), hermitian)?,
            _ => None,
        };
        facts.hierarchy = grids.is_some().then_some(Hierarchy { why: GRIDS, is_made: true });
        let part = self.space.communicator().part();
        for (number, plan) in candidates(&facts).into_iter().enumerate() {
            let (method, name) = (plan.method, plan.preconditioner);
            let setup = match (method, name) {
                // Norms of columns are sums over the rows of all ranks.
                (Method::Lsmr, Name::Jacobi) if given => {
                    let columns = weights::<T, B, C>(&self.space, (a, &self.parts))?;
                    Diagonal::of_weights(self.space.backend(), &columns)
                        .map(|d| Some(AnyPreconditioner::Diagonal(d)))
                }
                _ if number == 0 && grids.is_some() => Ok(grids.take().map(AnyPreconditioner::Levels)),
                _ if number > 0 && matches!(name, Name::Multigrid(_)) => Ok(None),
                _ => {
                    let rows = self.parts[part].clone();
                    self.setup((a, &mut own), (method, hermitian), name, rows).map(Some)
                }
            };
            let mut setup = together(&self.space, setup)?;
            if let Some(AnyPreconditioner::Jacobi(diagonal)) = &mut setup {
                diagonal.agree(&self.space)?;
            }
            if setup.is_none() {
                self.rows = Some(local_rows(a, &self.parts[part])?);
            }
            self.stages.push(Stage { plan, setup });
            self.trail.stages.push(StageReport::listed(
                (method, name, Precision::Double),
                (plan.why, plan.when.words(), None),
                (0, None),
            ));
        }
        let first = self.stages[0].plan.preconditioner;
        let why = match &self.stages[0].setup {
            Some(AnyPreconditioner::Levels(levels)) if levels.told.is_empty() => {
                "from the rows and columns of each rank alone".into()
            }
            Some(AnyPreconditioner::Levels(levels)) => levels.told.clone(),
            _ if matches!(first, Name::BlockJacobi(_) | Name::Fsai | Name::Ilu | Name::Ilut(_)) => {
                "from the rows and columns of each rank alone".into()
            }
            _ => return Ok(()),
        };
        self.trail.decisions.push(Decision::new("preconditioner", first.to_string(), why));
        Ok(())
    }

    /// Multigrid on a grid, if all ranks have planes of one and it is likely to be faster.
    fn levels_of_a_grid(
        &self,
        (a, own): (&Csr<T, Host>, &Csr<T, B>),
        hermitian: bool,
    ) -> Result<Option<Levels<T, B>>> {
        let (backend, own_rows) = (self.space.backend(), &self.parts[self.space.communicator().part()]);
        let nonzeros = self.shares().iter().map(|share| share.nonzeros).sum();
        let grid = seeming_grid(a.rows(), some_distances(a, own_rows));
        let (price, on_device) = (backend.ordering_price(), <B as PreconditionSteps>::IS_DEVICE);
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
    ) -> Result<AnyPreconditioner<T, B>> {
        let backend = self.space.backend();
        if method == Method::Cg
            && let Some(curvature) = self.curvature.filter(|_| name != Name::None)
        {
            return Ok(AnyPreconditioner::NotPositiveDefinite(curvature));
        }
        if name == Name::Jacobi && method != Method::Cg {
            return Diagonal::of_part(backend, a, method, rows).map(AnyPreconditioner::Diagonal);
        }
        let own = match own {
            Block::Rows(own) => &*own,
            Block::Diagonal(_) if name == Name::None => return Ok(AnyPreconditioner::Identity),
            Block::Diagonal(made) => return std::mem::replace(made, Ok(AnyPreconditioner::Identity)),
        };
        if let Name::Multigrid(choice) = name {
            // For a Hermitian matrix the levels are those for conjugate gradients, whatever the method.
            let method = if hermitian { Method::Cg } else { method };
            let levels = Levels::spread(&self.space, (a, &rows, own), &self.parts, (choice, method), false)?;
            return Ok(levels.map_or(AnyPreconditioner::Identity, AnyPreconditioner::Levels));
        }
        match AnyPreconditioner::new(backend, own, (method, name), Known::default())? {
            AnyPreconditioner::Waiting(diagonal, steps) => {
                let Some(operator) = self.operator.clone() else { unreachable!("all parts have made it") };
                let operator: Arc<dyn LinearOperator<T, B>> = operator;
                let made = Chebyshev::on_space(&self.space, operator, Arc::new(diagonal), steps)?;
                Ok(AnyPreconditioner::Chebyshev(Box::new(made)))
            }
            other => Ok(other),
        }
    }

    /// Sets up a stage that is about to be tried; returns the reason if it can't.
    pub(super) fn prepare(&mut self, number: usize) -> Result<Option<String>> {
        let Stage { plan: Candidate { method, preconditioner, .. }, setup: None } = self.stages[number]
        else {
            return Ok(None);
        };
        let Name::Multigrid(choice) = preconditioner else { return Ok(None) };
        let Some(local) = &self.rows else { return Ok(None) };
        let (here, own) = (0..local.rows(), &self.parts[self.space.communicator().part()]);
        let made = match self.curvature.filter(|_| method == Method::Cg) {
            Some(curvature) => Ok(AnyPreconditioner::NotPositiveDefinite(curvature)),
            None => crate::spread::own_columns(local, &here, own)
                .and_then(|own| own.into_backend(self.space.backend()))
                .and_then(|own| {
                    Levels::spread(&self.space, (local, &here, &own), &self.parts, (choice, method), false)
                })
                .map(|levels| levels.map_or(AnyPreconditioner::Identity, AnyPreconditioner::Levels)),
        };
        match together(&self.space, made) {
            Ok(setup) => self.stages[number].setup = Some(setup),
            Err(error) => return Ok(Some(error.to_string())),
        }
        Ok(None)
    }
}
