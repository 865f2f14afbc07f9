//! Solves for several right-hand sides together, in the order of the matrix.

use super::SolverBackend;
use super::choice::is_fault;
use super::columns::column;
use super::core::{Core, Group};
use super::many::{Size, at_once};
use super::plan::in_one_call;
use super::report::SolveReport;
use super::system::Stored;
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::krylov::{MultiCg, Outcome};
use crate::scalar::Scalar;
use std::sync::Arc;
use std::time::Instant;

impl<T: Scalar, B: SolverBackend> Core<T, B> {
    /// Returns how many of the right-hand sides are solved together, and allocates memory for them.
    pub(super) fn make_room(&mut self, right_hand_sides: usize) -> Result<usize> {
        let wanted = self.at_once(right_hand_sides);
        if wanted < 2 {
            return Ok(1);
        }
        if self.group.as_ref().is_some_and(|group| group.cg.systems() == wanted) {
            return Ok(wanted);
        }
        self.group = None;
        let (backend, n) = (&self.backend, self.stored.operator().rows());
        let make = || {
            let (b, x) = (backend.zeros(n * wanted)?, backend.zeros(n * wanted)?);
            Ok(Group { cg: MultiCg::new(backend, n, wanted, self.options.clone())?, b, x })
        };
        match make() {
            Ok(group) => self.group = Some(group),
            Err(Error::OutOfMemory { .. }) => return Ok(1),
            Err(error) => return Err(error),
        }
        Ok(wanted)
    }

    fn at_once(&self, right_hand_sides: usize) -> usize {
        let setup = self.stages[self.first].ready.as_ref().and_then(|ready| ready.for_several());
        let (Some(setup), "csr") = (setup, self.stored.format()) else { return 1 };
        let (rows, backend) = (self.stored.operator().rows(), &self.backend);
        let (nonzeros, value, in_one_call) = match &self.stored {
            Stored::Open(a) => {
                let nonzeros = a.nonzeros();
                (nonzeros, size_of::<T>(), in_one_call::<T, T, B>(backend, rows, nonzeros))
            }
            Stored::Full(a) => {
                let nonzeros = a.nonzeros();
                (nonzeros, size_of::<T>(), in_one_call::<T, T, B>(backend, rows, nonzeros))
            }
            Stored::Lower(a) => {
                let nonzeros = a.nonzeros();
                (nonzeros, size_of::<T::Lower>(), in_one_call::<T::Lower, T, B>(backend, rows, nonzeros))
            }
        };
        if in_one_call {
            return 1;
        }
        let size = Size { rows, nonzeros, value };
        at_once::<T, B>(size, self.stored.operator().bytes(), setup, right_hand_sides)
    }

    /// Takes the memory for several right-hand sides out; the caller puts it back.
    pub(super) fn take_group(&mut self) -> Result<Group<T, B>> {
        let none = || {
            Error::Unsupported("several right-hand sides at once, for which no memory was allocated".into())
        };
        self.group.take().ok_or_else(none)
    }

    /// Solves the first `count` systems of the group, from the x stored there.
    pub(super) fn solve_group(
        &mut self,
        count: usize,
        watch: &mut Watch<'_>,
        reports: &mut Vec<SolveReport>,
    ) -> Result<()> {
        self.begin();
        let number = self.first;
        let Some(mut group) = self.group.take() else { return Ok(()) };
        let n = self.stored.operator().rows();
        let start = Instant::now();
        watch.method = self.stages[number].plan.method;
        let done = {
            let a = self.stored.operator();
            let (b, x) = (B::part(&group.b, 0..count * n), B::part_mut(&mut group.x, 0..count * n));
            let setup = self.stages[number].ready.as_ref().and_then(|ready| ready.for_several());
            let Some(setup) = setup else { return Ok(()) };
            let cg = &mut group.cg;
            let mut see = |place, iteration, norm| watch.see(place, iteration, norm);
            cg.solve(a, setup.get(), b, x, &mut see)?.to_vec()
        };
        self.seconds.solve = start.elapsed().as_secs_f64();
        self.seconds.iterating = group.cg.iterating().as_secs_f64();
        let told = &mut Arc::make_mut(&mut self.trail).stages[number];
        told.seconds = self.seconds.solve;
        told.iterations = done.iter().map(|report| report.iterations).max().unwrap_or(0);
        told.bytes = done.iter().map(|r| r.iterations as f64 * r.bytes_per_iteration as f64).sum();
        told.outcome = done.iter().map(|report| watch.reason(report.outcome)).reduce(worse);
        told.relative_residual = done.iter().map(|report| report.relative_residual).reduce(f64::max);
        for (place, mut report) in done.into_iter().enumerate() {
            report.outcome = watch.reason(report.outcome);
            self.history.clear();
            self.history.extend(group.cg.history(place));
            let own = column(n, place);
            let x = B::part_mut(&mut group.x, own.clone());
            // The time is divided evenly among the systems.
            self.seconds.solve = start.elapsed().as_secs_f64() / count as f64;
            self.seconds.iterating = group.cg.iterating().as_secs_f64() / count as f64;
            let b = B::part(&group.b, own);
            self.forget_verdict();
            if report.outcome == Outcome::Converged {
                let judged = self.judge(b, x)?;
                if !judged.met {
                    // A solve for one right-hand side requires more than this x meets.
                    report.outcome = Outcome::Stagnated;
                }
                self.judged = Some(judged);
            }
            reports.push(if is_fault(&report.outcome) {
                watch.offset += place;
                let next = if report.outcome == Outcome::Stagnated { number } else { number + 1 };
                let report = self.go_on(next, Some(report), b, x, watch);
                watch.offset -= place;
                SolveReport { at_once: count, ..report? }
            } else {
                self.tell(&report, number, count, (b, x))?
            });
            self.keep_history();
        }
        self.group = Some(group);
        Ok(())
    }
}

/// The more informative outcome: the first that is not `Converged`.
fn worse(first: Outcome, second: Outcome) -> Outcome {
    if first.is_converged() { second } else { first }
}
