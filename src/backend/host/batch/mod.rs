//! Many small systems: each thread takes one at a time, or eight of one sparse pattern.
//!
//! | file | what it holds |
//! |---|---|
//! | `dense` | elimination of one matrix |
//! | `sparse` | elimination of several matrices of one sparse pattern |
//! | `iterate` | iteration on one matrix |
//! | `judge` | from factors to an x of which is known how good it is |

mod dense;
mod iterate;
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
use iterate::Iterated;
use judge::{Row, Rows, Vectors, exponent, power};
use sparse::{LANES, OfLane, Sparse};
use std::sync::Mutex;

/// Multiplications that a thread takes at once.
const AT_ONCE: usize = 1 << 16;
/// Exponents of the largest entries of rows with which a Hermitian matrix is eliminated as it is.
const UNSCALED: i32 = 300;

/// Memory of the threads, for one system each.
#[derive(Debug)]
pub struct BatchRoom<T: Scalar>(Mutex<Vec<Workspace<T::Double>>>);

impl<T: Scalar> Default for BatchRoom<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// What one system needs.
#[derive(Debug, Default)]
struct Workspace<D> {
    factors: Dense<D>,
    sparse: Sparse<D>,
    iterated: Iterated<D>,
    /// Of each of the systems that are eliminated together.
    lanes: [Vectors<D>; LANES],
    vectors: Vectors<D>,
}

impl<D: Scalar<Real = f64>> Workspace<D> {
    /// Brings the entries as they are; false unless all are finite and every row has one other than zero, within the
    /// range of powers of two.
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

    /// Factorises what was loaded.
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

    /// Multiplies rows by their powers of two, and takes their norms.
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

    /// Solves up to [`LANES`] systems of one pattern, unless they are not asked for: of each the most steps of
    /// refinement and the largest residual.
    #[inline(always)]
    fn solve_side_by_side<T: Scalar<Double = D>>(
        &mut self,
        (count, asked): (usize, &[bool; LANES]),
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
            let mut factors = OfLane { factors: &self.sparse, pattern, lane };
            if !asked[lane] {
                continue;
            }
            let mut worst = sound[lane].then_some((0, 0.0_f64));
            for column in 0..count {
                let Some((steps, residual)) = worst else { break };
                let start = lane * n * count + column;
                let vectors = (&b[start..], &mut x[start..], count);
                let found = self.lanes[lane].solve((&rows, &mut factors), vectors, goal);
                worst = found.map(|(own, size)| (steps.max(own), residual.max(size)));
            }
            told(lane, worst);
        }
    }

    /// Solves one system: the most steps of refinement and the largest residual of its right-hand sides.
    fn solve<T: Scalar<Double = D>>(
        &mut self,
        (n, count): (usize, usize),
        rows: &Rows<'_, T>,
        (b, x): (&[T], &mut [T]),
        goal: &BatchGoal,
    ) -> Option<(u32, f64)> {
        vectorised(|| {
            if !self.load(n, rows) || !self.factorise(n, rows) {
                return None;
            }
            let mut worst = (0, 0.0_f64);
            for column in 0..count {
                let vectors = (&b[column..], &mut x[column..], count);
                let (steps, residual) = self.vectors.solve((rows, &mut self.factors), vectors, goal)?;
                worst = (worst.0.max(steps), worst.1.max(residual));
            }
            Some(worst)
        })
    }

    /// The same by iteration, with the most iterations.
    fn iterate<T: Scalar<Double = D>>(
        &mut self,
        (n, count): (usize, usize),
        rows: &Rows<'_, T>,
        (b, x): (&[T], &mut [T]),
        goal: &BatchGoal,
    ) -> Option<(u32, f64)> {
        vectorised(|| {
            if !self.iterated.load(n, rows, &mut self.vectors) {
                return None;
            }
            let mut worst = (0, 0.0_f64);
            for column in 0..count {
                let mut system = self.iterated.of(rows, goal.relative);
                let vectors = (&b[column..], &mut x[column..], count);
                let (_, residual) = self.vectors.solve((rows, &mut system), vectors, goal)?;
                worst = (worst.0.max(system.iterations), worst.1.max(residual));
            }
            Some(worst)
        })
    }
}

impl BatchSteps for Host {
    type BatchRoom<T: Scalar> = BatchRoom<T>;

    const MOST_DENSE: usize = 4096;
    const MOST_SPARSE: usize = u32::MAX as usize;
    const MOST_ITERATED: usize = 4096;
    const DENSE_BEHIND_SPARSE: bool = false;
    const SPARSE_PRICE: f64 = 1.0;

    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        let n = systems.size;
        let at_once = (AT_ONCE / (n * n * n).max(1)).clamp(1, 1 << 12);
        each_system(systems, vectors, goal, (room, at_once), &|space, size, rows, vectors| {
            space.solve(size, rows, vectors, goal)
        })
    }

    fn iterate_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        if matches!(systems.entries, BatchEntries::Dense(_)) {
            return Err(Error::InvalidArgument("an iteration on dense systems of a batch".into()));
        }
        each_system(systems, vectors, goal, (room, 1), &|space, size, rows, vectors| {
            space.iterate(size, rows, vectors, goal)
        })
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
        systems.check(&vectors)?;
        pattern.check(systems)?;
        let BatchEntries::Compressed { offsets, columns, values } = systems.entries else {
            return Err(Error::InvalidArgument("a sparse elimination of dense systems".into()));
        };
        let BatchVectors { count, b, x, steps, residuals } = vectors;
        let room = &room.0;
        let told = steps.par_chunks_mut(LANES).zip(residuals.par_chunks_mut(LANES));
        told.zip(x.par_chunks_mut((LANES * n * count).max(1))).enumerate().for_each(
            |(group, ((steps, residuals), x))| {
                let first = group * LANES;
                let values = &values[first * each..(first + steps.len()) * each];
                let b = &b[first * n * count..(first + steps.len()) * n * count];
                let asked: [bool; LANES] =
                    std::array::from_fn(|lane| steps.get(lane).is_some_and(|steps| goal.asks_for(*steps)));
                if !asked.contains(&true) {
                    return;
                }
                let mut space = lock(room).pop().unwrap_or_default();
                let mut tell = |lane: usize, found: Option<(u32, f64)>| {
                    (steps[lane], residuals[lane]) = found.unwrap_or((UNCERTAIN, f64::NAN));
                };
                vectorised(|| {
                    let a = (offsets, columns, values);
                    space.solve_side_by_side((count, &asked), pattern, a, (b, x), goal, &mut tell);
                });
                lock(room).push(space);
            },
        );
        Ok(())
    }
}

/// What a thread does with one system of so many unknowns and right-hand sides: the most steps and the largest residual.
type OfOne<'a, T> = dyn Fn(
        &mut Workspace<<T as Scalar>::Double>,
        (usize, usize),
        &Rows<'_, T>,
        (&[T], &mut [T]),
    ) -> Option<(u32, f64)>
    + Sync
    + 'a;

/// Hands each system to a thread, `at_once` of them together.
fn each_system<T: Scalar>(
    systems: &BatchParts<'_, T, Host>,
    vectors: BatchVectors<'_, T, Host>,
    goal: &BatchGoal,
    (room, at_once): (&BatchRoom<T>, usize),
    of_one: &OfOne<'_, T>,
) -> Result<()> {
    let (m, n) = (systems.systems, systems.size);
    systems.check(&vectors)?;
    let BatchVectors { count, b, x, steps, residuals } = vectors;
    if let Some(end) = systems.starts.and_then(|starts| starts.last()) {
        Error::check_dimension("number of right-hand sides' entries", *end as usize * count, b.len())?;
    }
    let first_row = |system: usize| systems.starts.map_or(system * n, |starts| starts[system] as usize);
    let of_group = |group: usize, x: &mut [T], steps: &mut [u32], residuals: &mut [f64]| {
        let mut space = lock(&room.0).pop().unwrap_or_default();
        let start = first_row(group * at_once);
        for (k, (steps, residual)) in steps.iter_mut().zip(residuals).enumerate() {
            if !goal.asks_for(*steps) {
                continue;
            }
            let system = group * at_once + k;
            let own = first_row(system)..first_row(system + 1);
            let of_vectors = own.start * count..own.end * count;
            let x = &mut x[of_vectors.start - start * count..of_vectors.end - start * count];
            let rows = rows_of(systems, system, &own);
            let found = of_one(&mut space, (own.len(), count), &rows, (&b[of_vectors], x));
            (*steps, *residual) = found.unwrap_or((UNCERTAIN, f64::NAN));
        }
        lock(&room.0).push(space);
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
