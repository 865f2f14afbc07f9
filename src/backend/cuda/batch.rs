//! Batches of small systems on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{Backend, BatchEntries, BatchGoal, BatchParts, BatchSteps, BatchVectors};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "batch_lanes.cu", types(T: Scalar as SCALAR);
        fn solve_lanes(
            systems: u64,
            entries_each: u64,
            size: u32,
            starts: Option<&Slice<u64>>,
            offsets: Option<&Slice<u64>>,
            columns: Option<&Slice<u32>>,
            values: &Slice<T>,
            vectors: u32,
            b: &Slice<T>,
            x: &mut Slice<T>,
            relative: f64,
            absolute: f64,
            row_wise: u32,
            steps: &mut Slice<u32>,
            residuals: &mut Slice<f64>,
        );
    }
    kernels! {
        "batch_block.cu", types(T: Scalar as SCALAR);
        fn solve_block(
            systems: u64,
            entries_each: u64,
            size: u32,
            starts: Option<&Slice<u64>>,
            offsets: Option<&Slice<u64>>,
            columns: Option<&Slice<u32>>,
            values: &Slice<T>,
            vectors: u32,
            b: &Slice<T>,
            x: &mut Slice<T>,
            relative: f64,
            absolute: f64,
            row_wise: u32,
            steps: &mut Slice<u32>,
            residuals: &mut Slice<f64>,
            kept: Option<&mut Slice<T::Double>>,
        );
    }
}

/// Workspace for the matrices of the systems that are solved at the same time, if they don't fit in shared memory.
#[derive(Debug)]
pub struct BatchRoom<T: Scalar>(Option<<Cuda as Backend>::Vec<T::Double>>);

impl<T: Scalar> Default for BatchRoom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Scalar> BatchRoom<T> {
    /// The workspace, extended to this many scalars.
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

    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        let (m, n) = (systems.systems, systems.size);
        let BatchVectors { count, b, x, steps, residuals } = vectors;
        let rows = b.len().checked_div(count).unwrap_or(0);
        systems.check(
            rows,
            &BatchVectors { count, b, x: &mut *x, steps: &mut *steps, residuals: &mut *residuals },
        )?;
        if let Some(starts) = systems.starts {
            Error::check_dimension("number of systems' starts", m + 1, starts.len())?;
        }
        if n > tuning::BATCH_ROWS {
            return Err(Error::InvalidArgument(format!(
                "a batch of systems of {n} rows on a GPU: {} at most",
                tuning::BATCH_ROWS
            )));
        }
        let (offsets, columns, values) = match systems.entries {
            BatchEntries::Dense(values) => (None, None, values),
            BatchEntries::Compressed { offsets, columns, values } => (Some(offsets), Some(columns), values),
        };
        let (all, each, size, starts) = (m as u64, systems.entries_each as u64, n as u32, systems.starts);
        let BatchGoal { relative, absolute, row_wise } = *goal;
        let (vectors, row_wise) = (count as u32, u32::from(row_wise));
        if n <= tuning::BATCH_LANES {
            let shape = tuning::batch_lanes(m, n);
            return kernel::solve_lanes::<T>(
                *self, shape, all, each, size, starts, offsets, columns, values, vectors, b, x, relative,
                absolute, row_wise, steps, residuals,
            );
        }
        let (shape, kept) = tuning::batch_block(self.0.chip, m, n, size_of::<T::Double>());
        let kept = if kept == 0 { None } else { Some(room.of(self, kept)?) };
        kernel::solve_block::<T>(
            *self, shape, all, each, size, starts, offsets, columns, values, vectors, b, x, relative,
            absolute, row_wise, steps, residuals, kept,
        )
    }
}
