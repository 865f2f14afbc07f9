//! Solves the systems that a backend leaves uncertain, one by one. `Solver` does it, so that a system gets the same
//! verdict in a batch as alone.

use super::Batch;
use super::pattern::Pattern;
use crate::backend::{Backend, BatchSteps, UNCERTAIN};
use crate::error::Result;
use crate::krylov::{Outcome, SolveOptions};
use crate::parallel::prelude::*;
use crate::solver::{Device, Solvable, Solver};
use num_traits::Float;
use std::ops::Range;

/// Up to this number of systems, the values of each are fetched by themselves; for more, those of all are.
const FEW: usize = 64;

/// The x of one system, with a number per right-hand side in each row, and the verdict on it.
struct Solved<T> {
    x: Vec<T>,
    outcome: Outcome,
    residual: f64,
    iterations: usize,
}

/// Orders outcomes from good to bad.
fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Converged => 0,
        outcome if outcome.is_solved() => 1,
        Outcome::NotFinite => 3,
        _ => 2,
    }
}

/// Values that were fetched from the backend.
enum Fetched<T> {
    All(Vec<T>),
    Each(Vec<Vec<T>>),
}

impl<T> Fetched<T> {
    /// The values of one system, from its number in the list and its range in all values.
    fn of(&self, place: usize, range: Range<usize>) -> &[T] {
        match self {
            Self::All(all) => &all[range],
            Self::Each(each) => &each[place],
        }
    }
}

impl<T: Solvable, B: BatchSteps> Batch<T, B> {
    /// Solves the uncertain systems, and stores their x and verdicts.
    pub(super) fn solve_the_rest(
        &mut self,
        values: &B::Slice<T>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        count: usize,
    ) -> Result<()> {
        if !self.steps_here.contains(&UNCERTAIN) {
            return Ok(());
        }
        let left: Vec<usize> = (0..self.systems()).filter(|&s| self.steps_here[s] == UNCERTAIN).collect();
        let fetch = |from: &B::Slice<T>, of: &dyn Fn(usize) -> Range<usize>| -> Result<Fetched<T>> {
            if left.len() > FEW {
                return Ok(Fetched::All(self.backend.download(from)?));
            }
            let each = left.iter().map(|&system| self.backend.download(B::part(from, of(system))));
            Ok(Fetched::Each(each.collect::<Result<_>>()?))
        };
        let of_values = |system: usize| self.pattern.values_of(system);
        let of_vectors = |system: usize| {
            let rows = self.pattern.rows_of(system);
            rows.start * count..rows.end * count
        };
        let (pattern, goal) = (&self.pattern, (&self.options, self.row_wise));
        let (values, b) = (fetch(values, &of_values)?, fetch(b, &of_vectors)?);
        let solved: Vec<Result<Solved<T>>> = (0..left.len())
            .into_par_iter()
            .map(|place| {
                let system = left[place];
                let (values, b) = (values.of(place, of_values(system)), b.of(place, of_vectors(system)));
                solve_apart(pattern, goal, (system, values, b, count))
            })
            .collect();
        self.verdicts.apart = left.len();
        for (&system, solved) in left.iter().zip(solved) {
            let Solved { x: own, outcome, residual, iterations } = solved?;
            let rows = self.pattern.rows_of(system);
            self.backend.write(&own, B::part_mut(x, rows.start * count..rows.end * count))?;
            self.verdicts.outcomes[system] = outcome;
            self.verdicts.residuals[system] = residual;
            self.verdicts.iterations[system] = u32::try_from(iterations).unwrap_or(UNCERTAIN - 1);
        }
        Ok(())
    }
}

/// Solves one system with all its right-hand sides.
fn solve_apart<T: Solvable, B: Backend>(
    pattern: &Pattern<B>,
    (options, row_wise): (&SolveOptions, bool),
    (system, values, b, count): (usize, &[T], &[T], usize),
) -> Result<Solved<T>> {
    let n = pattern.rows_of(system).len();
    let x = vec![T::default(); b.len()];
    let mut all = Solved { x, outcome: Outcome::Converged, residual: 0.0, iterations: 0 };
    if !values.iter().chain(b).all(|value| value.is_finite()) {
        all.x.fill(T::from_real(<T::Real as Float>::nan()));
        return Ok(Solved { outcome: Outcome::NotFinite, residual: f64::NAN, ..all });
    }
    let builder = Solver::builder()
        .device(Device::Cpu)
        .row_wise(row_wise)
        .tolerance(options.threshold_of_one::<T>())
        .absolute_tolerance(options.threshold::<T>(0.0))
        .right_hand_sides(count);
    let mut solver = builder.build(pattern.matrix(system, values)?)?;
    let (mut own_b, mut own_x) = (vec![T::default(); n], vec![T::default(); n]);
    for column in 0..count {
        for (row, own) in own_b.iter_mut().enumerate() {
            *own = b[row * count + column];
        }
        own_x.fill(T::default());
        let report = solver.solve_into(&own_b, &mut own_x)?;
        for (row, &own) in own_x.iter().enumerate() {
            all.x[row * count + column] = own;
        }
        if column == 0 || rank(&report.outcome) > rank(&all.outcome) {
            all.outcome = report.outcome;
        }
        all.residual = match report.relative_residual {
            residual if residual > all.residual || residual.is_nan() => residual,
            _ => all.residual,
        };
        all.iterations = all.iterations.max(report.iterations);
    }
    Ok(all)
}
