//! The solves of a solver on a backend: one right-hand side or several, with a null space beside them or without.

use super::SolverBackend;
use super::columns::Columns;
use super::finite;
use super::nullspace::{self, Beside};
use super::placed::{Pair, Placed};
use super::report::SolveReport;
use super::watch::Watch;
use crate::backend::Host;
use crate::error::{Error, Result};
use crate::krylov::Outcome;
use crate::scalar::{Real, Scalar};
use crate::verdict::Verdict;
use num_traits::Float;
use std::any::Any;
use std::ops::Range;

/// Rounding may make the residual of the shorter x larger by this factor.
const LEVEL: f64 = 1.0 + 1e-9;

/// What is left of b after a projection counts as zero below this many units of rounding.
const ROUNDING: f64 = 16.0;

/// Methods reach a residual of this power of the rounding unit, relative to b, if they are asked for it.
const REACHABLE: f64 = 0.75;

impl<T: Scalar, B: SolverBackend> Placed<T, B> {
    /// Solves from x, with the null space if there is one.
    pub(super) fn solve_one(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        Error::check_dimension("length of b", self.about.rows, B::len(b))?;
        Error::check_dimension("length of x", self.about.columns, B::len(x))?;
        self.check_right_hand_side(b)?;
        let Some(mut null) = self.null.take() else { return self.solve_here(b, x, watch) };
        let report = self.solve_beside(&mut null, b, x, watch);
        self.null = Some(null);
        report
    }

    /// Returns an error if the right-hand side has an entry that is infinite or NaN, with its position.
    fn check_right_hand_side(&self, b: &B::Slice<T>) -> Result<()> {
        finite::check_vector(&self.backend, b, "the right-hand side")
    }

    /// Solves with the matrix as it is stored, after permuting and scaling b and x.
    fn solve_here(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        self.turn(x)?;
        let report = self.solve_in_order(b, x, watch);
        self.turn(x)?;
        report
    }

    /// Solves with the stored matrix, A or -A, in its order.
    fn solve_in_order(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        let Some(mut room) = self.enter(b, x)? else { return self.core.solve(b, x, watch) };
        let report = self.core.solve(&room.0, &mut room.1, watch);
        let left = self.leave(&room.1, x);
        self.room = Some(room);
        left?;
        let mut report = report?;
        if let (Some(unmatched), Some(order)) = (&mut report.unmatched, &self.order) {
            let old = self.backend.download(order.permutation.new_to_old())?;
            let numbers = unmatched.rows.iter_mut().chain(&mut unmatched.columns);
            numbers.for_each(|number| *number = old[*number as usize]);
        }
        Ok(report)
    }

    /// Copies b and x to the order and scale of the stored matrix. Returns `None` if these are the caller's.
    fn enter(&mut self, b: &B::Slice<T>, x: &B::Slice<T>) -> Result<Option<Pair<T, B>>> {
        if self.order.is_none() && self.scaled.is_none() {
            return Ok(None);
        }
        let backend = self.backend.clone();
        let (mut to_b, mut to_x) = match self.room.take() {
            Some(room) => room,
            None => (backend.zeros(self.about.rows)?, backend.zeros(self.about.columns)?),
        };
        self.enter_into((b, x), (&mut to_b, &mut to_x))?;
        Ok(Some((to_b, to_x)))
    }

    /// [`Placed::enter`] into given vectors.
    fn enter_into(
        &mut self,
        (b, x): (&B::Slice<T>, &B::Slice<T>),
        (to_b, to_x): (&mut B::Slice<T>, &mut B::Slice<T>),
    ) -> Result<()> {
        let backend = &self.backend;
        match (&mut self.order, &self.scaled) {
            (None, None) => {
                backend.copy(b, to_b)?;
                backend.copy(x, to_x)
            }
            (Some(order), None) => {
                order.permutation.apply_on(backend, b, to_b)?;
                order.permutation.apply_on(backend, x, to_x)
            }
            (None, Some(scaled)) => scaled.enter(backend, (b, x), (to_b, to_x)),
            (Some(order), Some(scaled)) => {
                order.permutation.apply_on(backend, b, &mut order.b)?;
                order.permutation.apply_on(backend, x, &mut order.x)?;
                scaled.enter(backend, (&order.b, &order.x), (to_b, to_x))
            }
        }
    }

    /// Copies x back to the caller's order and units.
    fn leave(&mut self, from: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<()> {
        let backend = &self.backend;
        match (&mut self.order, &self.scaled) {
            (None, None) => backend.copy(from, x),
            (Some(order), None) => order.permutation.apply_inverse_on(backend, from, x),
            (None, Some(scaled)) => scaled.leave(backend, from, x),
            (Some(order), Some(scaled)) => {
                scaled.leave(backend, from, &mut order.x)?;
                order.permutation.apply_inverse_on(backend, &order.x, x)
            }
        }
    }

    /// Replaces x by -x if -A is stored.
    fn turn(&self, x: &mut B::Slice<T>) -> Result<()> {
        if self.negated { self.backend.scale_in_place(-T::one(), x) } else { Ok(()) }
    }

    /// Solves with a known null space: removes the part of b outside of the range, and returns the shortest of all
    /// solutions.
    fn solve_beside(
        &mut self,
        Beside { space: null, b: here, x: short }: &mut Beside<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        let backend = self.backend.clone();
        let size = nullspace::norm(&backend, b)?;
        backend.copy(b, here)?;
        let outside = if null.hermitian { null.remove(&backend, here)? } else { 0.0 };
        let unit = <T::Real as Float>::epsilon().to_f64();
        if nullspace::norm(&backend, here)? <= ROUNDING * unit * size {
            // b is in the null space, up to rounding.
            backend.fill(T::default(), here)?;
        }
        let enough = self.core.options.threshold::<T>(size);
        let inside = nullspace::norm(&backend, here)?;
        if outside > enough && inside > 0.0 {
            // A^H r only has contributions of the residual inside the range: that must be small compared to the part of
            // b outside.
            let least = self.core.options.least_squares_tolerance::<T>() * outside / (2.0 * inside);
            // If that is lost in rounding, the tolerance itself has to do.
            let wanted = if least > unit.powf(REACHABLE) { least } else { f64::INFINITY };
            self.core.aim = Some(wanted.min(self.core.options.threshold_of_one::<T>()));
        }
        let report = self.solve_here(here, x, watch);
        self.core.aim = None;
        let mut report = report?;
        backend.copy(x, short)?;
        null.remove(&backend, short)?;
        // A times the shorter x is the same up to rounding, so its residual is computed anew.
        let (long, mut judged) = (self.judge(b, x)?, self.judge(b, short)?);
        if judged.met || judged.residual <= (long.residual * LEVEL).max(enough) {
            backend.copy(short, x)?;
        } else {
            judged = long;
        }
        (report.residual_norm, report.relative_residual) = (judged.residual, judged.relative());
        (report.row_wise_residual, report.normal_residual) = (judged.row_wise(), None);
        report.backward_error = judged.backward_error(self.core.norms.frobenius);
        if null.hermitian {
            report.outside_range = Some(outside);
        }
        if judged.met {
            report.outcome = Outcome::Converged;
        } else if report.outcome.is_converged() || report.outcome == Outcome::LeastSquares {
            report.normal_residual = self.nearest(b, x, true)?.filter(|_| null.hermitian);
            if report.normal_residual.is_none() && null.hermitian && self.judge(here, x)?.met {
                // What is left of b beside its part outside of the range meets the tolerance, so that no x has a residual
                // that is smaller by more than that.
                report.normal_residual = self.nearest(b, x, false)?;
            }
            report.singularity = null.singularity();
            report.outcome = match report.normal_residual {
                Some(_) => Outcome::LeastSquares,
                None => Outcome::Stagnated,
            };
        }
        Ok(report)
    }

    /// Judges an x in the caller's order and units.
    fn judge(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<Verdict> {
        self.turn(x)?;
        let judged = match self.enter(b, x)? {
            None => self.core.judge(b, x),
            Some(room) => {
                let judged = self.core.judge(&room.0, &room.1);
                self.room = Some(room);
                judged
            }
        };
        self.turn(x)?;
        judged
    }

    /// Returns the ratio of [`Core::nearest`] for an x in the caller's order and units.
    fn nearest(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>, tested: bool) -> Result<Option<f64>> {
        self.turn(x)?;
        let nearest = match self.enter(b, x)? {
            None => self.core.nearest((b, x), tested),
            Some(room) => {
                let nearest = self.core.nearest((&room.0, &room.1), tested);
                self.room = Some(room);
                nearest
            }
        };
        self.turn(x)?;
        nearest
    }

    /// The number of right-hand sides in vectors of these lengths.
    pub(super) fn count(&self, b: usize, x: usize) -> Result<usize> {
        let (rows, columns) = self.about.shape();
        Error::check_dimension("entries of b after the last complete right-hand side", 0, b % rows.max(1))?;
        let count = b.checked_div(rows).unwrap_or(0);
        Error::check_dimension("length of x", columns * count, x)?;
        Ok(count)
    }

    /// Solves `count` systems, one by one or several together.
    pub(super) fn each(
        &mut self,
        count: usize,
        columns: &mut dyn Columns<T, B>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SolveReport>> {
        let mut reports = Vec::with_capacity(count);
        self.core.forget_histories();
        // Each right-hand side has its own part in the null space.
        let at_once = if self.null.is_some() { 1 } else { self.core.make_room(count)? };
        let (mut b, mut x) = self.take_vectors()?;
        for first in (0..count).step_by(at_once) {
            watch.offset = first;
            if at_once == 1 {
                columns.load(&self.backend, first, &mut b, &mut x)?;
                reports.push(self.solve_one(&b, &mut x, watch)?);
                columns.store(&self.backend, first, &x)?;
                self.core.keep_history();
            } else {
                let group = first..count.min(first + at_once);
                self.group(group, columns, (&mut b, &mut x), watch, &mut reports)?;
            }
        }
        watch.offset = 0;
        self.vectors = Some((b, x));
        Ok(reports)
    }

    /// Solves several systems together. `b` and `x` are workspaces for one system.
    fn group(
        &mut self,
        numbers: Range<usize>,
        columns: &mut dyn Columns<T, B>,
        (b, x): (&mut B::Slice<T>, &mut B::Slice<T>),
        watch: &mut Watch<'_>,
        reports: &mut Vec<SolveReport>,
    ) -> Result<()> {
        let backend = self.backend.clone();
        for (place, number) in numbers.clone().enumerate() {
            columns.load(&backend, number, b, x)?;
            self.check_right_hand_side(b)?;
            self.turn(x)?;
            let mut group = self.core.take_group()?;
            let (to_b, to_x) = group.room(self.about.columns, place);
            let entered = self.enter_into((b, x), (to_b, to_x));
            self.core.group = Some(group);
            entered?;
        }
        self.core.solve_group(numbers.len(), watch, reports)?;
        for (place, number) in numbers.enumerate() {
            let mut group = self.core.take_group()?;
            let left = self.leave(group.room(self.about.columns, place).1, x);
            self.core.group = Some(group);
            left?;
            self.turn(x)?;
            columns.store(&backend, number, x)?;
        }
        Ok(())
    }

    /// This solver, if its backend is the host: the caller's vectors are then used without a copy.
    pub(super) fn on_host(&mut self) -> Option<&mut Placed<T, Host>> {
        let any: &mut dyn Any = self;
        any.downcast_mut()
    }

    /// Workspaces for a right-hand side and a solution in the caller's order.
    pub(super) fn take_vectors(&mut self) -> Result<(B::Vec<T>, B::Vec<T>)> {
        let (rows, columns) = self.about.shape();
        match self.vectors.take() {
            Some(vectors) => Ok(vectors),
            None => Ok((self.backend.zeros(rows)?, self.backend.zeros(columns)?)),
        }
    }
}
