//! Factorisations in dense fronts on the device, by residua's own kernels.
//!
//! ```text
//! values of A -> places in the fronts -> level by level, the lowest first:
//!     small fronts            one block of threads each, from assembly to contribution
//!     large ones, together    assemble, then for each block of pivots: invert, divide, update; contribute
//! b -> up the levels -> down the levels -> x
//! ```
//!
//! A level contains the fronts at one distance from the root. Only the next level needs the contributions of a level,
//! so two buffers contain them alternately.
//!
//! | file | what it holds |
//! |---|---|
//! | `schedule` | levels, classes of size and tiles: what is launched |

mod schedule;

use super::launch::kernels;
use super::shape::Shape;
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, record, tuning};
use crate::backend::{Backend, FactorEstimate, Factors, FrontPlan};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use schedule::{Level, Schedule, Tiled};
use std::ops::Range;

mod kernel {
    use super::*;
    kernels! {
        "fronts_small.cu", types(T: Scalar as SCALAR);
        fn front_entries(
            entries: u64,
            values: &Slice<T>,
            scales: Option<&Slice<f64>>,
            targets: &Slice<u64>,
            factors: &mut Slice<T>,
            largest: &mut Slice<u64>,
        );
        fn small_fronts(
            first: u32,
            fronts: &Slice<u64>,
            children: &Slice<u32>,
            places: &Slice<u32>,
            factors: &mut Slice<T>,
            below: &Slice<T>,
            above: &mut Slice<T>,
            preference: T::Real,
            least: T::Real,
            largest: &Slice<u64>,
            made_up: &mut Slice<u32>,
        );
    }
    kernels! {
        "fronts.cu", types(T: Scalar as SCALAR);
        fn assemble_fronts(
            first: u32,
            count: u32,
            starts: &Slice<u32>,
            fronts: &Slice<u64>,
            children: &Slice<u32>,
            places: &Slice<u32>,
            factors: &mut Slice<T>,
            below: &Slice<T>,
            above: &mut Slice<T>,
        );
        fn invert_pivots(
            first: u32,
            step: u32,
            fronts: &Slice<u64>,
            steps: &Slice<u32>,
            factors: &mut Slice<T>,
            preference: T::Real,
            least: T::Real,
            largest: &Slice<u64>,
            made_up: &mut Slice<u32>,
        );
        fn divide_fronts(
            first: u32,
            count: u32,
            starts: &Slice<u32>,
            step: u32,
            fronts: &Slice<u64>,
            steps: &Slice<u32>,
            factors: &mut Slice<T>,
        );
        fn update_fronts(
            first: u32,
            count: u32,
            starts: &Slice<u32>,
            step: u32,
            fronts: &Slice<u64>,
            steps: &Slice<u32>,
            factors: &mut Slice<T>,
        );
        fn contribute_fronts(
            first: u32,
            count: u32,
            starts: &Slice<u32>,
            fronts: &Slice<u64>,
            factors: &Slice<T>,
            above: &mut Slice<T>,
        );
    }
    kernels! {
        "fronts_solve.cu", types(T: Scalar as SCALAR);
        fn gather_vectors(
            n: u64,
            count: u64,
            from: &Slice<u32>,
            scales: Option<&Slice<f64>>,
            b: &Slice<T>,
            y: &mut Slice<T>,
        );
        fn scatter_vectors(
            n: u64,
            count: u64,
            to: &Slice<u32>,
            scales: Option<&Slice<f64>>,
            y: &Slice<T>,
            x: &mut Slice<T>,
        );
        fn fronts_up(
            first: u32,
            count: u32,
            fronts: &Slice<u64>,
            children: &Slice<u32>,
            places: &Slice<u32>,
            steps: &Slice<u32>,
            factors: &Slice<T>,
            n: u64,
            all_rows: u64,
            y: &mut Slice<T>,
            u: &mut Slice<T>,
        );
        fn fronts_down(
            first: u32,
            count: u32,
            fronts: &Slice<u64>,
            rows: &Slice<u32>,
            steps: &Slice<u32>,
            factors: &Slice<T>,
            n: u64,
            y: &Slice<T>,
            x: &mut Slice<T>,
        );
        fn large_gather(
            first: u32,
            fronts_here: u32,
            starts: &Slice<u32>,
            count: u32,
            fronts: &Slice<u64>,
            children: &Slice<u32>,
            places: &Slice<u32>,
            n: u64,
            all_rows: u64,
            y: &mut Slice<T>,
            u: &mut Slice<T>,
        );
        fn large_up(
            first: u32,
            fronts_here: u32,
            starts: &Slice<u32>,
            step: u32,
            count: u32,
            fronts: &Slice<u64>,
            steps: &Slice<u32>,
            factors: &Slice<T>,
            n: u64,
            all_rows: u64,
            y: &mut Slice<T>,
            u: &mut Slice<T>,
        );
        fn large_rest(
            first: u32,
            fronts_here: u32,
            starts: &Slice<u32>,
            count: u32,
            fronts: &Slice<u64>,
            rows: &Slice<u32>,
            factors: &Slice<T>,
            n: u64,
            y: &mut Slice<T>,
            x: &Slice<T>,
        );
        fn large_down(
            first: u32,
            fronts_here: u32,
            starts: &Slice<u32>,
            step: u32,
            count: u32,
            fronts: &Slice<u64>,
            steps: &Slice<u32>,
            factors: &Slice<T>,
            n: u64,
            y: &mut Slice<T>,
            x: &mut Slice<T>,
        );
    }
}

/// The structure in the device's memory and, after the first factorisation, the factors.
pub(super) struct Fronts<T: Scalar> {
    cuda: Cuda,
    n: usize,
    schedule: Schedule,
    estimate: FactorEstimate,
    pivots: (T::Real, T::Real),
    fronts: DeviceVec<u64>,
    children: DeviceVec<u32>,
    starts: DeviceVec<u32>,
    rows: DeviceVec<u32>,
    places: DeviceVec<u32>,
    steps: DeviceVec<u32>,
    targets: DeviceVec<u64>,
    scales: Option<DeviceVec<f64>>,
    from: DeviceVec<u32>,
    to: DeviceVec<u32>,
    scaling: Option<(DeviceVec<f64>, DeviceVec<f64>)>,
    numbers: Option<Numbers<T>>,
    vectors: Option<Vectors<T>>,
}

/// The factors, the contributions of two levels, the largest entry, and the number of perturbed pivots.
struct Numbers<T: Scalar> {
    factors: DeviceVec<T>,
    contributions: [DeviceVec<T>; 2],
    largest: DeviceVec<u64>,
    made_up: DeviceVec<u32>,
}

/// The memory of a solve for `count` right-hand sides: two vectors, and the contributions of fronts to their parents.
struct Vectors<T: Scalar> {
    count: usize,
    y: DeviceVec<T>,
    x: DeviceVec<T>,
    u: DeviceVec<T>,
}

impl<T: Scalar> Fronts<T> {
    pub(super) fn new(cuda: Cuda, plan: &FrontPlan) -> Result<Self> {
        record::forbid(cuda, "the analysis of a factorisation")?;
        let schedule = Schedule::new(plan, tuning::small_fronts(size_of::<T>()));
        let entries = plan.entries() as usize;
        let numbers = entries + schedule.contributions.iter().sum::<usize>();
        let bytes = |numbers: usize| (numbers * size_of::<T>()) as u64;
        let estimate = FactorEstimate {
            entries: entries as f64,
            flops: Some(2.0 * plan.multiplications),
            bytes: bytes(entries),
            peak: bytes(numbers + 2 * plan.from.len() + schedule.rows),
            free: 0,
        };
        let up = |numbers: &[u32]| cuda.upload(numbers.to_vec());
        let mut made = Self {
            cuda,
            n: plan.from.len(),
            estimate,
            pivots: (real::<T>(plan.preference), real::<T>(plan.least)),
            fronts: cuda.upload(schedule.fronts.clone())?,
            children: up(&schedule.children)?,
            starts: up(&schedule.starts)?,
            rows: up(&plan.rows)?,
            places: up(&plan.places)?,
            steps: up(&plan.blocks)?,
            targets: cuda.upload(plan.targets.clone())?,
            scales: plan.scales.clone().map(|scales| cuda.upload(scales)).transpose()?,
            from: up(&plan.from)?,
            to: up(&plan.to)?,
            scaling: match &plan.scaling {
                Some((rows, columns)) => Some((cuda.upload(rows.clone())?, cuda.upload(columns.clone())?)),
                None => None,
            },
            schedule,
            numbers: None,
            vectors: None,
        };
        made.estimate.free = cuda.memory()?.0 as u64;
        Ok(made)
    }

    fn tiled(&self, tiled: Tiled) -> (u32, &Slice<u32>, usize) {
        (tiled.fronts as u32, self.starts.part(tiled.at..tiled.at + tiled.fronts), tiled.blocks)
    }

    /// Eliminates the own columns of all fronts of a level.
    fn eliminate(&self, number: usize, level: &Level, numbers: &mut Numbers<T>) -> Result<()> {
        let Numbers { factors, contributions, largest, made_up } = numbers;
        let [even, odd] = contributions;
        let (below, above) = if number.is_multiple_of(2) { (odd, even) } else { (even, odd) };
        let (preference, least) = self.pivots;
        let (cuda, fronts, children, places, steps) =
            (self.cuda, &*self.fronts, &*self.children, &*self.places, &*self.steps);
        for (class, range) in level.small.iter().enumerate() {
            kernel::small_fronts(
                cuda,
                tuning::fronts_small(size_of::<T>(), class, range.len()),
                range.start as u32,
                fronts,
                children,
                places,
                factors,
                below,
                above,
                preference,
                least,
                largest,
                made_up,
            )?;
        }
        let first = level.parted.start as u32;
        let (count, starts, blocks) = self.tiled(level.assemble);
        let shape = tuning::fronts_large;
        kernel::assemble_fronts(
            cuda,
            shape(blocks),
            first,
            count,
            starts,
            fronts,
            children,
            places,
            factors,
            below,
            above,
        )?;
        for (number, step) in level.steps.iter().enumerate() {
            let step_number = number as u32;
            kernel::invert_pivots(
                cuda,
                shape(step.fronts),
                first,
                step_number,
                fronts,
                steps,
                factors,
                preference,
                least,
                largest,
                made_up,
            )?;
            let (count, starts, blocks) = self.tiled(step.divide);
            kernel::divide_fronts(
                cuda,
                shape(blocks),
                first,
                count,
                starts,
                step_number,
                fronts,
                steps,
                factors,
            )?;
            let (count, starts, blocks) = self.tiled(step.update);
            kernel::update_fronts(
                cuda,
                shape(blocks),
                first,
                count,
                starts,
                step_number,
                fronts,
                steps,
                factors,
            )?;
        }
        let (count, starts, blocks) = self.tiled(level.contribute);
        kernel::contribute_fronts(cuda, shape(blocks), first, count, starts, fronts, factors, above)
    }

    /// Returns the ranges of fronts for which a solve uses a block of threads each, with the number of threads and the
    /// maximum number of rows in a front.
    fn whole(level: &Level) -> [(Range<usize>, u32, usize); 3] {
        let [threads, more] = tuning::FRONT_SOLVES;
        let last = level.small.len() - 1;
        let few = level.small[0].start..level.small[last].start;
        [
            (few, threads, level.rows[0]),
            (level.small[last].clone(), more, level.rows[1]),
            (level.large.clone(), more, level.rows[2]),
        ]
    }

    fn up(&self, level: &Level, factors: &Slice<T>, vectors: &mut Vectors<T>) -> Result<()> {
        let Vectors { count, y, u, .. } = vectors;
        let (cuda, fronts, children, places, steps) =
            (self.cuda, &*self.fronts, &*self.children, &*self.places, &*self.steps);
        let (n, all, many) = (self.n as u64, self.schedule.rows as u64, *count as u32);
        for (range, threads, rows) in Self::whole(level) {
            kernel::fronts_up(
                cuda,
                Shape::new((range.len() * *count) as u32, threads).class(threads).shared(room::<T>(rows)),
                range.start as u32,
                many,
                fronts,
                children,
                places,
                steps,
                factors,
                n,
                all,
                y,
                u,
            )?;
        }
        let first = level.parted.start as u32;
        let shape = |blocks: usize| tuning::fronts_by_parts(blocks * *count);
        let (here, starts, blocks) = self.tiled(level.gather);
        kernel::large_gather(
            cuda,
            shape(blocks),
            first,
            here,
            starts,
            many,
            fronts,
            children,
            places,
            n,
            all,
            y,
            u,
        )?;
        for (number, step) in level.solve_steps.iter().enumerate() {
            let (here, starts, blocks) = self.tiled(step.up);
            kernel::large_up(
                cuda,
                shape(blocks),
                first,
                here,
                starts,
                number as u32,
                many,
                fronts,
                steps,
                factors,
                n,
                all,
                y,
                u,
            )?;
        }
        Ok(())
    }

    fn down(&self, level: &Level, factors: &Slice<T>, vectors: &mut Vectors<T>) -> Result<()> {
        let Vectors { count, y, x, .. } = vectors;
        let (cuda, fronts, rows, steps) = (self.cuda, &*self.fronts, &*self.rows, &*self.steps);
        let (n, many) = (self.n as u64, *count as u32);
        for (range, threads, most) in Self::whole(level) {
            kernel::fronts_down(
                cuda,
                Shape::new((range.len() * *count) as u32, threads).class(threads).shared(room::<T>(most)),
                range.start as u32,
                many,
                fronts,
                rows,
                steps,
                factors,
                n,
                y,
                x,
            )?;
        }
        let first = level.parted.start as u32;
        let shape = |blocks: usize| tuning::fronts_by_parts(blocks * *count);
        let (here, starts, blocks) = self.tiled(level.rest);
        kernel::large_rest(cuda, shape(blocks), first, here, starts, many, fronts, rows, factors, n, y, x)?;
        for (number, step) in level.solve_steps.iter().enumerate().rev() {
            let (here, starts, blocks) = self.tiled(step.down);
            kernel::large_down(
                cuda,
                shape(blocks),
                first,
                here,
                starts,
                number as u32,
                many,
                fronts,
                steps,
                factors,
                n,
                y,
                x,
            )?;
        }
        Ok(())
    }

    fn numbers(&self) -> Result<Numbers<T>> {
        let cuda = self.cuda;
        let [even, odd] = self.schedule.contributions;
        Ok(Numbers {
            factors: cuda.uninitialised(self.estimate.entries as usize)?,
            contributions: [cuda.uninitialised(even)?, cuda.uninitialised(odd)?],
            largest: cuda.uninitialised(1)?,
            made_up: cuda.uninitialised(1)?,
        })
    }
}

/// Returns the number of bytes of shared memory for a vector of `rows` rows, rounded up to a power of two, because the
/// table of loaded kernels has an entry for each size.
fn room<T: Scalar>(rows: usize) -> usize {
    rows.next_power_of_two() * size_of::<T>()
}

fn real<T: Scalar>(value: f64) -> T::Real {
    T::from_f64(value).re()
}

impl<T: Scalar> Factors<T, Cuda> for Fronts<T> {
    fn estimate(&self) -> FactorEstimate {
        self.estimate
    }

    fn factorise(&mut self, values: &Slice<T>) -> Result<Option<usize>> {
        Error::check_dimension("number of values", self.targets.len(), values.len())?;
        record::forbid(self.cuda, "a factorisation")?;
        let mut numbers = match self.numbers.take() {
            Some(numbers) => numbers,
            None => self.numbers()?,
        };
        let cuda = self.cuda;
        cuda.fill(T::default(), &mut numbers.factors)?;
        cuda.fill(0, &mut numbers.largest)?;
        cuda.fill(0, &mut numbers.made_up)?;
        kernel::front_entries(
            cuda,
            tuning::front_entries(cuda.0.chip, size_of::<T>(), values.len()),
            values.len() as u64,
            values,
            self.scales.as_deref(),
            &self.targets,
            &mut numbers.factors,
            &mut numbers.largest,
        )?;
        for (number, level) in self.schedule.levels.iter().enumerate() {
            self.eliminate(number, level, &mut numbers)?;
        }
        self.numbers = Some(numbers);
        cuda.synchronize()?;
        Ok(None)
    }

    fn solve(&mut self, count: usize, b: &Slice<T>, x: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of b", self.n * count, b.len())?;
        Error::check_dimension("length of x", self.n * count, x.len())?;
        let Some(numbers) = &self.numbers else {
            return Err(Error::InvalidArgument("a solve before the first factorisation".into()));
        };
        let cuda = self.cuda;
        let mut vectors = match self.vectors.take().filter(|vectors| vectors.count == count) {
            Some(vectors) => vectors,
            None => Vectors {
                count,
                y: cuda.uninitialised(self.n * count)?,
                x: cuda.uninitialised(self.n * count)?,
                u: cuda.uninitialised(self.schedule.rows * count)?,
            },
        };
        let (n, many) = (self.n as u64, count as u64);
        let shape = tuning::front_vectors(cuda.0.chip, self.n * count);
        let (rows, columns) = match &self.scaling {
            Some((rows, columns)) => (Some(&**rows), Some(&**columns)),
            None => (None, None),
        };
        kernel::gather_vectors(cuda, shape, n, many, &self.from, rows, b, &mut vectors.y)?;
        for level in &self.schedule.levels {
            self.up(level, &numbers.factors, &mut vectors)?;
        }
        for level in self.schedule.levels.iter().rev() {
            self.down(level, &numbers.factors, &mut vectors)?;
        }
        kernel::scatter_vectors(cuda, shape, n, many, &self.to, columns, &vectors.x, x)?;
        self.vectors = Some(vectors);
        Ok(())
    }
}
