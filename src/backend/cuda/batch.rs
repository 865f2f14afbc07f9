//! Many small systems on the device.

use super::launch::{Argument, kernels};
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{
    Backend, BatchElimination, BatchEntries, BatchGoal, BatchIteration, BatchParts, BatchReduction,
    BatchSteps, BatchVectors, UNCERTAIN,
};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "batch_lanes.cu", types(T: Scalar as SCALAR);
        fn solve_lanes(systems: Systems<'_, T>);
    }
    kernels! {
        "batch_block.cu", types(T: Scalar as SCALAR);
        fn solve_block(systems: Systems<'_, T>, kept: Option<&mut Slice<T::Double>>);
    }
    kernels! {
        "batch_krylov.cu", types(T: Scalar as SCALAR);
        fn solve_krylov(
            systems: Systems<'_, T>,
            order: &Slice<u32>,
            eliminated: &Slice<u32>,
            most: u32,
            staged: u32,
            hermitian: u32,
        );
    }
    kernels! {
        "batch_sparse.cu", types(T: Scalar as SCALAR);
        fn solve_sparse(
            systems: Systems<'_, T>,
            order: &Slice<u32>,
            offsets: &Slice<u32>,
            columns: &Slice<u32>,
            diagonals: &Slice<u32>,
            places: &Slice<u32>,
            entries: u32,
            longest: u32,
            room: &mut Slice<T::Double>,
        );
    }
}

/// The arguments of each of these kernels.
struct Systems<'a, T: Scalar> {
    count: usize,
    entries_each: usize,
    size: usize,
    starts: Option<&'a Slice<u64>>,
    offsets: Option<&'a Slice<u64>>,
    columns: Option<&'a Slice<u32>>,
    values: &'a Slice<T>,
    vectors: usize,
    b: &'a Slice<T>,
    x: &'a mut Slice<T>,
    steps: &'a mut Slice<u32>,
    residuals: &'a mut Slice<f64>,
    worst: &'a mut Slice<u32>,
    goal: &'a BatchGoal,
}

/// The same as kernels receive it: `Systems` in `kernels/batch.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
struct SystemsBits {
    count: u64,
    entries_each: u64,
    starts: u64,
    offsets: u64,
    columns: u64,
    values: u64,
    b: u64,
    x: u64,
    steps: u64,
    residuals: u64,
    worst: u64,
    relative: f64,
    absolute: f64,
    row_wise: u32,
    size: u32,
    vectors: u32,
    uncertain_only: u32,
}

impl<T: Scalar> Argument for Systems<'_, T> {
    type Bits = SystemsBits;

    // A recording needs to know what a launch writes only for kernels that are launched before the one ahead has ended;
    // these are not.
    fn bits(self) -> SystemsBits {
        let address = |of: Option<&Slice<u64>>| of.map_or(0, Slice::address);
        SystemsBits {
            count: self.count as u64,
            entries_each: self.entries_each as u64,
            starts: address(self.starts),
            offsets: address(self.offsets),
            columns: self.columns.map_or(0, Slice::address),
            values: self.values.address(),
            b: self.b.address(),
            x: self.x.address(),
            steps: self.steps.address(),
            residuals: self.residuals.address(),
            worst: self.worst.address(),
            relative: self.goal.relative,
            absolute: self.goal.absolute,
            row_wise: u32::from(self.goal.row_wise),
            size: self.size as u32,
            vectors: self.vectors as u32,
            uncertain_only: u32::from(self.goal.uncertain_only),
        }
    }
}

impl<'a, T: Scalar> Systems<'a, T> {
    fn new(
        parts: &BatchParts<'a, T, Cuda>,
        vectors: BatchVectors<'a, T, Cuda>,
        goal: &'a BatchGoal,
    ) -> Result<Self> {
        parts.check(&vectors)?;
        let (offsets, columns, values) = match parts.entries {
            BatchEntries::Dense(values) => (None, None, values),
            BatchEntries::Compressed { offsets, columns, values } => (Some(offsets), Some(columns), values),
        };
        let BatchVectors { count, b, x, steps, residuals, worst } = vectors;
        Ok(Self {
            count: parts.systems,
            entries_each: parts.entries_each,
            size: parts.size,
            starts: parts.starts,
            offsets,
            columns,
            values,
            vectors: count,
            b,
            x,
            steps,
            residuals,
            worst,
            goal,
        })
    }
}

/// Global memory of blocks of threads: factors and vectors of the systems that are being solved, if these don't fit in
/// shared memory.
#[derive(Debug)]
pub struct BatchRoom<T: Scalar>(Option<<Cuda as Backend>::Vec<T::Double>>);

impl<T: Scalar> Default for BatchRoom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Scalar> BatchRoom<T> {
    /// Room for `len` numbers.
    fn of(&mut self, cuda: &Cuda, len: usize) -> Result<&mut Slice<T::Double>> {
        if self.0.as_ref().is_none_or(|room| room.len() < len) {
            self.0 = None;
        }
        let room = match self.0.take() {
            Some(room) => room,
            None => cuda.buffer(len)?,
        };
        Ok(&mut **self.0.insert(room))
    }
}

impl BatchSteps for Cuda {
    type BatchRoom<T: Scalar> = BatchRoom<T>;

    const MOST_DENSE: usize = tuning::BATCH_ROWS;
    const MOST_SPARSE: usize = tuning::BATCH_SPARSE_ROWS;
    const MOST_ITERATED: usize = tuning::BATCH_KRYLOV_ROWS;
    const DENSE_BEHIND_SPARSE: bool = true;
    const SPARSE_PRICE: f64 = tuning::BATCH_SPARSE_PRICE;

    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        let systems = Systems::new(systems, vectors, goal)?;
        let (m, n) = (systems.count, systems.size);
        if n > tuning::BATCH_ROWS {
            return Err(Error::InvalidArgument(format!(
                "a batch of systems of {n} rows on a GPU: {} at most",
                tuning::BATCH_ROWS
            )));
        }
        if n <= tuning::BATCH_LANES {
            return kernel::solve_lanes::<T>(
                *self,
                tuning::batch_lanes(m, n, size_of::<T::Double>()),
                systems,
            );
        }
        let (shape, kept) = tuning::batch_block(self.0.chip, m, n, size_of::<T::Double>());
        let kept = if kept == 0 { None } else { Some(room.of(self, kept)?) };
        kernel::solve_block::<T>(*self, shape, systems, kept)
    }

    fn solve_sparse_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        pattern: &BatchElimination<'_, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        pattern.check(systems)?;
        let systems = Systems::new(systems, vectors, goal)?;
        if systems.offsets.is_none() || systems.starts.is_some() {
            return Err(Error::InvalidArgument("a sparse elimination of systems without one pattern".into()));
        }
        let (entries, longest) = (pattern.columns.len(), pattern.longest);
        let sizes = (systems.size, entries, longest);
        match tuning::batch_sparse(self.0.chip, systems.count, sizes, size_of::<T::Double>()) {
            Some((shape, kept)) => kernel::solve_sparse::<T>(
                *self,
                shape,
                systems,
                pattern.order,
                pattern.offsets,
                pattern.columns,
                pattern.diagonals,
                pattern.places,
                entries as u32,
                longest as u32,
                room.of(self, kept)?,
            ),
            None if goal.uncertain_only => self.fill(UNCERTAIN, systems.worst),
            None => self.leave(systems),
        }
    }

    fn iterate_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        (iteration, reduction): (BatchIteration, &BatchReduction<'_, Self>),
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        _room: &mut BatchRoom<T>,
    ) -> Result<()> {
        let longest = systems.longest;
        reduction.check(systems, vectors.b.len().checked_div(vectors.count).unwrap_or(0))?;
        let systems = Systems::new(systems, vectors, goal)?;
        if systems.offsets.is_none() || systems.size > tuning::BATCH_KRYLOV_ROWS {
            return Err(Error::InvalidArgument(format!(
                "an iteration on dense systems of a batch, or of {} rows on a GPU: {} at most",
                systems.size,
                tuning::BATCH_KRYLOV_ROWS
            )));
        }
        let (count, size, each) = (systems.count, systems.size, systems.entries_each);
        // What is eliminated of systems with patterns of their own differs.
        let gone = if systems.starts.is_some() { 0 } else { reduction.fewest };
        let sizes = (size, gone, each, longest);
        match tuning::batch_krylov(self.0.chip, count, sizes, size_of::<T::Double>()) {
            Some((shape, staged)) => kernel::solve_krylov::<T>(
                *self,
                shape,
                systems,
                reduction.order,
                reduction.eliminated,
                each as u32,
                u32::from(staged),
                u32::from(iteration == BatchIteration::Cg),
            ),
            None if goal.uncertain_only => self.fill(UNCERTAIN, systems.worst),
            None => self.leave(systems),
        }
    }
}

impl Cuda {
    /// Leaves all systems uncertain.
    fn leave<T: Scalar>(&self, systems: Systems<'_, T>) -> Result<()> {
        self.fill(UNCERTAIN, systems.steps)?;
        self.fill(UNCERTAIN, systems.worst)
    }
}
