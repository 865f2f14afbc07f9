//! The stages of a distributed solver: which are tried, how each is set up on a rank, and how it solves.

use super::Solvable;
use super::SolverBackend;
use super::builder::Builder;
use super::choice::{Candidate, Facts, GRIDS, Hierarchy, candidates};
use super::consensus::{together, weights};
use super::diagonal::Diagonal;
use super::hierarchy::{Known, Levels, grids_pay};
use super::names::{Method, Precision, PreconditionerChoice as Name};
use super::parted::{Block, Sources, Stage};
use super::preconditioner::AnyPreconditioner;
use super::report::{Decision, StageReport};
use super::spread::SpreadSolver;
use crate::backend::{Communicator, PreconditionSteps};
use crate::error::Result;
use crate::multigrid::{seeming_grid, some_distances};
use crate::operator::LinearOperator;
use crate::precondition::Chebyshev;
use crate::spread::{among_all, joined_rows, own_columns};
use std::sync::Arc;

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> SpreadSolver<T, B, C> {
    /// Sets up the stages.
    pub(super) fn list(
        &mut self,
        wishes: &Builder,
        mut sources: Sources<'_, T, B>,
        hermitian: bool,
    ) -> Result<()> {
        let n = self.columns();
        let size = [n, n, self.shares().iter().map(|share| share.nonzeros).sum()];
        let on_device = <B as PreconditionSteps>::IS_DEVICE;
        let mut facts = Facts::of(wishes, &self.options, size, (hermitian, on_device));
        facts.ranks = self.parts.len();
        let mut grids = match facts.may_take_levels() {
            true => self.levels_of_a_grid(&sources, hermitian)?,
            false => None,
        };
        facts.hierarchy = grids.is_some().then_some(Hierarchy { why: GRIDS, is_made: true });
        let mut later = false;
        for (number, plan) in candidates(&facts).into_iter().enumerate() {
            let (method, name) = (plan.method, plan.preconditioner);
            let setup = match name {
                _ if number == 0 && grids.is_some() => Ok(grids.take().map(AnyPreconditioner::Levels)),
                Name::Multigrid(_) if number > 0 => Ok(None),
                _ => self.setup(&mut sources, (method, hermitian), name).map(Some),
            };
            let mut setup = together(&self.space, setup)?;
            if let Some(AnyPreconditioner::Jacobi(diagonal)) = &mut setup {
                diagonal.agree(&self.space)?;
            }
            later |= setup.is_none();
            self.stages.push(Stage { plan, setup });
            self.trail.stages.push(StageReport::listed(
                (method, name, Precision::Double),
                (plan.why, plan.when.words(), None),
                (0, None),
            ));
        }
        if later {
            let own = &self.parts[self.space.communicator().part()];
            self.rows = Some(match sources {
                Sources { block: Block::Rows(block), edge, .. } => (block, edge),
                Sources { block, edge, on_host } => {
                    let rows = on_host(&block, &edge)?;
                    (own_columns(&rows, &(0..rows.rows()), own)?.into_backend(self.space.backend())?, edge)
                }
            });
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
    fn levels_of_a_grid(&self, sources: &Sources<'_, T, B>, hermitian: bool) -> Result<Option<Levels<T, B>>> {
        let Block::Rows(block) = &sources.block else { return Ok(None) };
        let backend = self.space.backend();
        let nonzeros = self.shares().iter().map(|share| share.nonzeros).sum();
        let grid = seeming_grid(self.columns(), some_distances(backend, block)?);
        let (price, on_device) = (backend.ordering_price(), <B as PreconditionSteps>::IS_DEVICE);
        let pays =
            grid.is_some_and(|grid| grids_pay::<T>(grid.sizes, nonzeros, price, (on_device, hermitian)));
        let curved = hermitian && self.curvature.is_some();
        if curved || self.space.count(pays)? < self.parts.len() {
            return Ok(None);
        }
        let method = if hermitian { Method::Cg } else { Method::Gmres };
        let rows = || (sources.on_host)(&sources.block, &sources.edge);
        let part = (block, &sources.edge, &rows as _);
        Levels::spread(&self.space, part, &self.parts, (Default::default(), method), true)
    }

    fn setup(
        &self,
        sources: &mut Sources<'_, T, B>,
        (method, hermitian): (Method, bool),
        name: Name,
    ) -> Result<AnyPreconditioner<T, B>> {
        let backend = self.space.backend();
        if method == Method::Cg
            && let Some(curvature) = self.curvature.filter(|_| name != Name::None)
        {
            return Ok(AnyPreconditioner::NotPositiveDefinite(curvature));
        }
        if name == Name::Jacobi && method != Method::Cg {
            let rows = (sources.on_host)(&sources.block, &sources.edge);
            if method == Method::Lsmr {
                // Norms of columns are sums over the rows of all ranks.
                let columns = weights::<T, B, C>(&self.space, (&rows?, &self.parts))?;
                return Diagonal::of_weights(backend, &columns).map(AnyPreconditioner::Diagonal);
            }
            let here = self.parts[self.space.communicator().part()].clone();
            let a = among_all(rows?, here.start)?;
            return Diagonal::of_part(backend, &a, method, here).map(AnyPreconditioner::Diagonal);
        }
        if let Block::Diagonal(made) = &mut sources.block {
            let unused = if name == Name::None { &mut Ok(AnyPreconditioner::Identity) } else { made };
            return std::mem::replace(unused, Ok(AnyPreconditioner::Identity));
        }
        let Block::Rows(own) = &sources.block else { unreachable!("the other kind of block has returned") };
        if let Name::Multigrid(choice) = name {
            // For a Hermitian matrix the levels are those for conjugate gradients, whatever the method.
            let method = if hermitian { Method::Cg } else { method };
            let rows = || (sources.on_host)(&sources.block, &sources.edge);
            let part = (own, &sources.edge, &rows as _);
            let levels = Levels::spread(&self.space, part, &self.parts, (choice, method), false)?;
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
        let Some((block, edge)) = &self.rows else { return Ok(None) };
        let (backend, first) = (self.space.backend(), self.parts[self.space.communicator().part()].start);
        let rows = || joined_rows(&block.to_host(backend)?, edge, first);
        let made = match self.curvature.filter(|_| method == Method::Cg) {
            Some(curvature) => Ok(AnyPreconditioner::NotPositiveDefinite(curvature)),
            None => {
                let part = (block, edge, &rows as _);
                Levels::spread(&self.space, part, &self.parts, (choice, method), false)
                    .map(|levels| levels.map_or(AnyPreconditioner::Identity, AnyPreconditioner::Levels))
            }
        };
        match together(&self.space, made) {
            Ok(setup) => self.stages[number].setup = Some(setup),
            Err(error) => return Ok(Some(error.to_string())),
        }
        Ok(None)
    }
}
