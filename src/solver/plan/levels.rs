//! Decides whether multigrid is chosen automatically, on a grid or on a mesh.

use super::{Planner, known, timed};
use crate::backend::{Diagonals, NEIGHBOURS, PreconditionSteps};
use crate::error::Result;
use crate::matrix::Csr;
use crate::multigrid;
use crate::prepare::expected_order;
use crate::prices::budgets::{SMALL, device_setup, flops_of_levels};
use crate::prices::multigrid::PRODUCTS_OF_LEVELS;
use crate::scalar::{Promote, Scalar};
use crate::solver::SolverBackend;
use crate::solver::hierarchy::{Levels, grids_pay, unknowns_a_node};
use crate::solver::mesh::Mesh;
use crate::solver::names::{Method, PreconditionerChoice as Name};
use std::time::Instant;

/// Multigrid is not set up beforehand if a factorisation is expected to take this fraction of its time. That is less
/// than the factor of 2 by which guesses are wrong in the median. It was set for one kind of system, porous electrodes
/// of lithium cells, whose regret fell from 10 to 3 (2026-11-28).
const MUCH_LESS: f64 = 0.4;

/// Returns whether a factorisation is expected to take much less time than multigrid: its matrix is long and narrow.
fn expects_cheap_factors<V: Scalar, B: SolverBackend>(backend: &B, a: &Csr<V, B>) -> Result<bool> {
    let guess = expected_order(&a.to_host(backend)?, <B as PreconditionSteps>::IS_DEVICE)?;
    Ok(!guess.exceeds(MUCH_LESS * flops_of_levels(a.nonzeros())))
}

impl<B: SolverBackend> Planner<'_, B> {
    /// The diagonals of a matrix on a grid, if multigrid is likely to be faster.
    pub(super) fn suits_levels_of_a_grid<V: Scalar + Promote<T>, T: Scalar>(
        &mut self,
        a: &Csr<V, B>,
    ) -> Result<Option<Diagonals>> {
        let (backend, parts, rows) = (self.backend, a.parts(), a.rows());
        if !self.facts(a.nonzeros()).may_make_levels() || a.nonzeros() > NEIGHBOURS * rows {
            return Ok(None);
        }
        let found = timed(&mut self.notes.seconds.setup, || {
            backend.diagonals((rows, rows), parts.offsets, parts.indices, NEIGHBOURS)
        })?;
        let (price, on_device) = (backend.ordering_price(), <B as PreconditionSteps>::IS_DEVICE);
        let grid = multigrid::of_distances(rows, &found.distances);
        let pays = grid.is_some_and(|(grid, _)| {
            grids_pay::<T>(grid.sizes, a.nonzeros(), price, (on_device, self.hermitian))
        });
        // If diagonal entries are large, few iterations are needed.
        let suits = pays
            && if self.hermitian {
                !Mesh::of(backend, a)?.is_soon_done()
            } else {
                !multigrid::is_shifted(backend, a)?
            };
        Ok(suits.then_some(found))
    }

    /// Whether [`Planner::system`] would choose multigrid on a grid.
    pub(in crate::solver) fn takes_levels_of_a_grid<T: Scalar>(&mut self, a: &Csr<T, B>) -> Result<bool> {
        let facts = self.facts(a.nonzeros());
        if !matches!(facts.wish(), Name::Auto) || facts.begins_with_factors() {
            return Ok(false);
        }
        Ok(self.suits_levels_of_a_grid::<T, T>(a)?.is_some())
    }

    /// Multigrid for a large matrix that becomes Hermitian if its rows are scaled.
    pub(super) fn levels_of_scaled_rows<V: Scalar + Promote<T>, T: Scalar>(
        &mut self,
        a: &Csr<V, B>,
    ) -> Result<Option<Levels<T, B>>> {
        let (backend, facts) = (self.backend, self.facts(a.nonzeros()));
        let method = facts.first_method();
        if self.hermitian || method != Method::Gmres || !facts.may_make_levels() {
            return Ok(None);
        }
        let begins_with_factors = facts.races() && facts.begins_with_factors();
        let pays = || Ok(!(begins_with_factors && expects_cheap_factors(backend, a)?));
        timed(&mut self.notes.seconds.setup, || {
            Ok(Levels::symmetrized(backend, a, (Default::default(), method), &pays).unwrap_or(None))
        })
    }

    /// Returns whether a matrix that is not Hermitian suits classical multigrid.
    pub(super) fn suits_classical_levels<V: Scalar>(&mut self, a: &Csr<V, B>) -> Result<bool> {
        let (backend, facts) = (self.backend, self.facts(a.nonzeros()));
        if self.hermitian || facts.first_method() != Method::Gmres || !facts.may_make_levels() {
            return Ok(false);
        }
        timed(&mut self.notes.seconds.setup, || {
            Ok(multigrid::is_like_an_m_matrix(backend, a)?
                && !multigrid::has_hubs(backend, a)?
                && !multigrid::is_shifted(backend, a)?)
        })
    }

    /// Multigrid on a grid. If it can't be set up, the current preconditioner is kept.
    pub(super) fn levels_of_a_grid<V: Scalar + Promote<T>, T: Scalar>(
        &mut self,
        a: &Csr<V, B>,
        diagonals: &Diagonals,
    ) -> Result<Option<Levels<T, B>>> {
        let (backend, method) = (self.backend, self.facts(a.nonzeros()).first_method());
        timed(&mut self.notes.seconds.setup, || {
            let (choice, units) = ((Default::default(), method), self.units.as_ref());
            Ok(Levels::of_grid(backend, a, choice, diagonals, units).unwrap_or(None))
        })
    }

    /// Returns whether multigrid may be the first choice if conjugate gradients would take many iterations.
    fn may_take_levels_of_a_mesh(&self, nonzeros: usize) -> bool {
        let facts = self.facts(nonzeros);
        facts.rows > SMALL && facts.first_method() == Method::Cg && facts.hermitian && facts.may_make_levels()
    }

    /// The estimates for a mesh. On the host a path through it is searched, since rows may be in any order.
    fn mesh_of<V: Scalar>(&mut self, a: &Csr<V, B>) -> Result<Mesh> {
        if let Some(mesh) = self.mesh {
            return Ok(mesh);
        }
        let mut mesh = Mesh::of(self.backend, a)?;
        if !<B as PreconditionSteps>::IS_DEVICE && !mesh.wants_levels::<V>(None) {
            // On a device no path is needed: the rows are in a good order already, or their order does not matter.
            mesh = mesh.with_path(self.backend, a)?;
        }
        self.mesh = Some(mesh);
        Ok(mesh)
    }

    /// Returns the number of products that multigrid named by the caller gains from a better order of rows. It is 0 on
    /// a device, where the order does not matter, and for nodes of several unknowns, which renumbering would split.
    pub(in crate::solver) fn products_of_named_levels<T: Scalar>(&self, a: &Csr<T, B>) -> Result<usize> {
        let named = matches!(self.wishes.preconditioner, Name::Multigrid(choice) if choice.unknowns <= 1);
        let suits = named && self.shape.0 == self.shape.1 && !<B as PreconditionSteps>::IS_DEVICE;
        let alone = suits && unknowns_a_node::<T, T, B>(self.backend, a)? == 1;
        Ok(if alone { PRODUCTS_OF_LEVELS } else { 0 })
    }

    /// The same gain for multigrid that will be chosen automatically; none if it will not be.
    pub(in crate::solver) fn products_of_levels<T: Scalar>(
        &mut self,
        a: &Csr<T, B>,
    ) -> Result<Option<usize>> {
        let may = !<B as PreconditionSteps>::IS_DEVICE && self.may_take_levels_of_a_mesh(a.nonzeros());
        let will = may
            && self.mesh_of(a)?.wants_levels::<T>(None)
            && unknowns_a_node::<T, T, B>(self.backend, a)? == 1;
        Ok(will.then_some(PRODUCTS_OF_LEVELS))
    }

    /// Multigrid, if conjugate gradients are likely to take so many iterations that its setup pays.
    pub(super) fn levels_of_a_mesh<V: Scalar + Promote<T>, T: Scalar>(
        &mut self,
        a: &Csr<V, B>,
    ) -> Result<Option<Levels<T, B>>> {
        let (backend, rows) = (self.backend, a.rows());
        if !self.may_take_levels_of_a_mesh(a.nonzeros()) {
            return Ok(None);
        }
        let start = Instant::now();
        let setup = <B as PreconditionSteps>::IS_DEVICE.then(|| device_setup(rows));
        let levels = if self.mesh_of(a)?.wants_levels::<T>(setup) {
            // If it can't be set up, the current preconditioner is kept.
            Levels::new(backend, a, (Default::default(), Method::Cg), known(self.wishes, self.units.as_ref()))
                .ok()
        } else {
            None
        };
        self.notes.seconds.setup += start.elapsed().as_secs_f64();
        Ok(levels)
    }
}
