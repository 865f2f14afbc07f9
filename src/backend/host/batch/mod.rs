//! Batches of small systems, each solved by one thread.
//!
//! | file | what it holds |
//! |---|---|
//! | `dense` | elimination of one matrix |
//! | `sparse` | elimination of several matrices of one sparse pattern |
//! | `judge` | from factors to an x with a verdict |

mod dense;
mod judge;
mod sparse;

use super::Host;
use crate::backend::batch::{
    BatchElimination, BatchEntries, BatchGoal, BatchParts, BatchSteps, BatchVectors, UNCERTAIN,
};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::parallel::prelude::*;
use crate::parallel::vectorised;
use crate::scalar::Scalar;
use dense::{Dense, SUMS, size};
use judge::{Row, Rows, Vectors, exponent, power};
use sparse::{LANES, OfLane, Sparse};
use std::sync::Mutex;

/// Multiplications of one task.
const AT_ONCE: usize = 1 << 16;
/// If the exponents of all rows' largest entries are smaller than this, a Hermitian matrix is eliminated without row
/// scaling.
const UNSCALED: i32 = 300;

/// The workspaces of threads, each for one system.
#[derive(Debug)]
pub struct BatchRoom<T: Scalar>(Mutex<Vec<Workspace<T::Double>>>);

impl<T: Scalar> Default for BatchRoom<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The workspace of one system.
#[derive(Debug, Default)]
struct Workspace<D> {
    factors: Dense<D>,
    sparse: Sparse<D>,
    /// Vectors of each of the systems that are eliminated together.
    lanes: [Vectors<D>; LANES],
    vectors: Vectors<D>,
}

impl<D: Scalar<Real = f64>> Workspace<D> {
    /// Loads the entries; returns false unless all are finite and every row has a nonzero one within the range of
    /// powers of two.
    #[inline(always)]
    fn load<T: Scalar<Double = D>>(&mut self, n: usize, rows: &Rows<'_, T>) -> bool {
        self.factors.clear(n);
        self.vectors.resize(n);
        let mut sound = true;
        for i in 0..n {
            let own = self.factors.row(i);
            let (mut most, mut nothing) = ([0.0_f64; SUMS], [D::default(); SUMS]);
            match rows.row(n, i) {
                Row::Dense(values) => {
                    for (own, value) in own.iter_mut().zip(values) {
                        *own = value.to_double();
                    }
                }
                Row::Sparse(columns, values) => {
                    for (&column, value) in columns.iter().zip(values) {
                        own[column as usize] += value.to_double();
                    }
                }
            }
            for values in own.chunks(SUMS) {
                for (value, (most, nothing)) in values.iter().zip(most.iter_mut().zip(&mut nothing)) {
                    let size = size(*value);
                    *most = if size > *most { size } else { *most };
                    // Neither infinities nor NaN times zero are zero.
                    *nothing += *value * D::default();
                }
            }
            let most = most.into_iter().fold(0.0, f64::max);
            let finite = nothing.iter().all(|nothing| *nothing == D::default());
            let found = exponent(most).filter(|_| finite);
            sound &= found.is_some();
            self.vectors.exponents[i] = -found.unwrap_or(0);
        }
        sound
    }

    /// Factorises the loaded matrix.
    #[inline(always)]
    fn factorise<T: Scalar<Double = D>>(&mut self, n: usize, rows: &Rows<'_, T>) -> bool {
        let ordinary = self.vectors.exponents.iter().all(|e| e.abs() < UNSCALED);
        if ordinary && self.factors.is_hermitian() {
            self.vectors.exponents.fill(0);
            self.scale(n);
            if self.factors.eliminate_definite() {
                return true;
            }
            self.load(n, rows);
        }
        self.scale(n);
        self.factors.eliminate()
    }

    /// Scales rows by powers of two, and computes their norms.
    #[inline(always)]
    fn scale(&mut self, n: usize) {
        for i in 0..n {
            let scale = D::from_f64(power(self.vectors.exponents[i]));
            let mut sums = [0.0; 4];
            let row = self.factors.row(i);
            for own in row.iter_mut() {
                *own *= scale;
            }
            for four in row.chunks(4) {
                for (sum, own) in sums.iter_mut().zip(four) {
                    *sum += own.abs2();
                }
            }
            self.vectors.norms[i] = ((sums[0] + sums[1]) + (sums[2] + sums[3])).sqrt();
        }
    }

    /// Solves up to [`LANES`] systems of one pattern; returns the most steps of refinement and the largest residual of
    /// each.
    #[inline(always)]
    fn solve_side_by_side<T: Scalar<Double = D>>(
        &mut self,
        count: usize,
        pattern: &BatchElimination<'_, Host>,
        (offsets, columns, values): (&[u64], &[u32], &[T]),
        (b, x): (&[T], &mut [T]),
        goal: &BatchGoal,
        told: &mut dyn FnMut(usize, Option<(u32, f64)>),
    ) {
        let (n, each) = (offsets.len() - 1, columns.len());
        let systems = b.len() / (n * count);
        self.sparse.clear(pattern);
        let mut sound = [false; LANES];
        for lane in 0..systems {
            let own = (offsets, &values[lane * each..(lane + 1) * each]);
            sound[lane] = self.sparse.load(lane, own, pattern.places, &mut self.lanes[lane]);
        }
        self.sparse.eliminate(pattern);
        for lane in 0..systems {
            let values = &values[lane * each..(lane + 1) * each];
            let rows = Rows::Compressed { offsets, columns, values };
            let factors = OfLane { factors: &self.sparse, pattern, lane };
            let mut worst = sound[lane].then_some((0, 0.0_f64));
            for column in 0..count {
                let Some((steps, residual)) = worst else { break };
                let start = lane * n * count + column;
                let vectors = (&b[start..], &mut x[start..], count);
                let found = self.lanes[lane].solve((&rows, &factors), vectors, goal);
                worst = found.map(|(own, size)| (steps.max(own), residual.max(size)));
            }
            told(lane, worst);
        }
    }

    /// Solves one system; returns the most steps of refinement and the largest residual over its right-hand sides.
    #[inline(always)]
    fn solve<T: Scalar<Double = D>>(
        &mut self,
        (n, count): (usize, usize),
        rows: &Rows<'_, T>,
        (b, x): (&[T], &mut [T]),
        goal: &BatchGoal,
    ) -> Option<(u32, f64)> {
        if !self.load(n, rows) || !self.factorise(n, rows) {
            return None;
        }
        let mut worst = (0, 0.0_f64);
        for column in 0..count {
            let vectors = (&b[column..], &mut x[column..], count);
            let (steps, residual) = self.vectors.solve((rows, &self.factors), vectors, goal)?;
            worst = (worst.0.max(steps), worst.1.max(residual));
        }
        Some(worst)
    }
}

impl BatchSteps for Host {
    type BatchRoom<T: Scalar> = BatchRoom<T>;

    const MOST_DENSE: usize = 4096;
    const MOST_SPARSE: usize = u32::MAX as usize;

    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        let (m, n) = (systems.systems, systems.size);
        let rows = systems.starts.map_or(m * n, |starts| starts.last().map_or(0, |end| *end as usize));
        systems.check(rows, &vectors)?;
        if let Some(starts) = systems.starts {
            Error::check_dimension("number of systems' starts", m + 1, starts.len())?;
        }
        let BatchVectors { count, b, x, steps, residuals } = vectors;
        let at_once = (AT_ONCE / (n * n * n).max(1)).clamp(1, 1 << 12);
        let first_row = |system: usize| systems.starts.map_or(system * n, |starts| starts[system] as usize);
        let room = &room.0;
        let of_group = |group: usize, x: &mut [T], steps: &mut [u32], residuals: &mut [f64]| {
            let mut space = lock(room).pop().unwrap_or_default();
            let start = first_row(group * at_once);
            vectorised(|| {
                for (k, (steps, residual)) in steps.iter_mut().zip(residuals).enumerate() {
                    let system = group * at_once + k;
                    let own = first_row(system)..first_row(system + 1);
                    let of_vectors = own.start * count..own.end * count;
                    let x = &mut x[of_vectors.start - start * count..of_vectors.end - start * count];
                    let rows = rows_of(systems, system, &own);
                    let size = (own.len(), count);
                    let found = space.solve(size, &rows, (&b[of_vectors], x), goal);
                    (*steps, *residual) = found.unwrap_or((UNCERTAIN, f64::NAN));
                }
            });
            lock(room).push(space);
        };
        let told = steps.par_chunks_mut(at_once).zip(residuals.par_chunks_mut(at_once));
        if systems.starts.is_none() {
            let x = x.par_chunks_mut((at_once * n * count).max(1));
            told.zip(x)
                .enumerate()
                .for_each(|(group, ((steps, residuals), x))| of_group(group, x, steps, residuals));
        } else {
            let groups: Vec<u64> =
                (0..m.div_ceil(at_once)).map(|group| (first_row(group * at_once) * count) as u64).collect();
            let x = crate::parallel::Cut::new(x, &groups)
                .ok_or_else(|| Error::InvalidArgument("starts of systems that do not ascend".into()))?;
            told.zip(x)
                .enumerate()
                .for_each(|(group, ((steps, residuals), x))| of_group(group, x, steps, residuals));
        }
        Ok(())
    }

    fn solve_sparse_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        pattern: &BatchElimination<'_, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        let (n, each) = (systems.size, systems.entries_each);
        systems.check(systems.systems * n, &vectors)?;
        let BatchEntries::Compressed { offsets, columns, values } = systems.entries else {
            return Err(Error::InvalidArgument("a sparse elimination of dense systems".into()));
        };
        Error::check_dimension("number of entries' places", each, pattern.places.len())?;
        Error::check_dimension("length of the order of elimination", n, pattern.order.len())?;
        let BatchVectors { count, b, x, steps, residuals } = vectors;
        let room = &room.0;
        let told = steps.par_chunks_mut(LANES).zip(residuals.par_chunks_mut(LANES));
        told.zip(x.par_chunks_mut((LANES * n * count).max(1))).enumerate().for_each(
            |(group, ((steps, residuals), x))| {
                let mut space = lock(room).pop().unwrap_or_default();
                let first = group * LANES;
                let values = &values[first * each..(first + steps.len()) * each];
                let b = &b[first * n * count..(first + steps.len()) * n * count];
                let mut tell = |lane: usize, found: Option<(u32, f64)>| {
                    (steps[lane], residuals[lane]) = found.unwrap_or((UNCERTAIN, f64::NAN));
                };
                vectorised(|| {
                    let a = (offsets, columns, values);
                    space.solve_side_by_side(count, pattern, a, (b, x), goal, &mut tell);
                });
                lock(room).push(space);
            },
        );
        Ok(())
    }
}

/// The rows of one system.
fn rows_of<'a, T: Scalar>(
    systems: &BatchParts<'a, T, Host>,
    system: usize,
    own: &std::ops::Range<usize>,
) -> Rows<'a, T> {
    match systems.entries {
        BatchEntries::Dense(values) => {
            let entries = systems.size * systems.size;
            Rows::Dense(&values[system * entries..(system + 1) * entries])
        }
        BatchEntries::Compressed { offsets, columns, values } if systems.starts.is_some() => {
            Rows::Compressed { offsets: &offsets[own.start..=own.end], columns, values }
        }
        BatchEntries::Compressed { offsets, columns, values } => {
            let each = systems.entries_each;
            Rows::Compressed { offsets, columns, values: &values[system * each..(system + 1) * each] }
        }
    }
}
