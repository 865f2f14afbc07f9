//! Classical coarsening, on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::sparse::alike;
use super::{Cuda, tuning};
use crate::backend::{
    Backend, ClassicalSteps, CsrArrays, CsrParts, CsrPattern, Offsets, OffsetsRef, Primitives, offsets_of,
};
use crate::error::Result;
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "classical.cu", types(T: Scalar as SCALAR; a as OFFSET, "u32" as TARGET);
        fn dependence_lengths(n: usize, a: CsrParts<'_, T, Cuda>, threshold: T::Real, lengths: &mut Slice<u32>);
    }
    kernels! {
        "classical.cu", types(T: Scalar as SCALAR; a as OFFSET, starts as TARGET);
        fn dependence_entries(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            threshold: T::Real,
            starts: OffsetsRef<'_, Cuda>,
            dependences: &mut Slice<u32>,
        );
    }
    kernels! {
        "classical.cu", types(T: Scalar as SCALAR; a as OFFSET, strong as TARGET);
        fn extended_rows(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            strong: CsrPattern<'_, Cuda>,
            numbers: &Slice<u32>,
            most: u32,
            again: bool,
            lengths: &mut Slice<u32>,
            kept_columns: &mut Slice<u32>,
            kept_values: &mut Slice<T>,
            beyond: &mut Slice<u32>,
        );
    }
    kernels! {
        "classical.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, starts as TARGET);
        fn packed_rows(
            n: usize,
            width: u32,
            wide_columns: &Slice<u32>,
            wide_values: &Slice<T>,
            starts: OffsetsRef<'_, Cuda>,
            indices: &mut Slice<u32>,
            packed: &mut Slice<T>,
        );
    }
    kernels! {
        "classical.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, depends as TARGET);
        fn coarse_compare(
            n: usize,
            depends: CsrPattern<'_, Cuda>,
            counts: &Slice<u32>,
            state: &Slice<u32>,
            round: u32,
            lost: &mut Slice<u32>,
        );
        fn coarse_decide(
            n: usize,
            depends: CsrPattern<'_, Cuda>,
            lost: &Slice<u32>,
            round: u32,
            state: &mut Slice<u32>,
            undecided: &mut Slice<u32>,
        );
    }
    kernels! {
        "classical.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, p as TARGET);
        fn fewer_weights(
            n: usize,
            p: CsrParts<'_, T, Cuda>,
            most: u32,
            lengths: &mut Slice<u32>,
            kept_columns: &mut Slice<u32>,
            kept_values: &mut Slice<T>,
        );
    }
    kernels! {
        "classical.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, "u32" as TARGET);
        fn influence_counts(entries: usize, dependences: &Slice<u32>, counts: &mut Slice<u32>);
        fn coarse_start(
            n: usize,
            counts: &Slice<u32>,
            state: &mut Slice<u32>,
            lost: &mut Slice<u32>,
            undecided: &mut Slice<u32>,
        );
        fn coarse_flags(n: usize, state: &Slice<u32>, flags: &mut Slice<u32>);
        fn coarse_numbers(
            n: usize,
            state: &Slice<u32>,
            places: &Slice<u32>,
            numbers: &mut Slice<u32>,
        );
    }
}

/// Rows with space for `width` entries each.
struct Wide<T: Scalar> {
    width: usize,
    /// The number of entries of each row, and one more element, which is 0.
    lengths: <Cuda as Backend>::Vec<u32>,
    columns: <Cuda as Backend>::Vec<u32>,
    values: <Cuda as Backend>::Vec<T>,
}

impl<T: Scalar> Wide<T> {
    fn new(cuda: Cuda, rows: usize, width: usize) -> Result<Self> {
        let (columns, values) = (cuda.buffer(rows * width)?, cuda.buffer(rows * width)?);
        Ok(Self { width, lengths: cuda.zeros(rows + 1)?, columns, values })
    }

    /// Returns the matrix of these rows.
    fn packed(self, cuda: Cuda) -> Result<CsrArrays<T, Cuda>> {
        let rows = self.lengths.len() - 1;
        let (offsets, entries) = offsets_of(&cuda, &self.lengths)?;
        let (mut indices, mut values) = (cuda.buffer(entries)?, cuda.buffer(entries)?);
        let (shape, width) = (tuning::classical_rows(cuda.0.chip, rows), self.width as u32);
        let (from, to) = ((&self.columns, &self.values), offsets.as_ref());
        kernel::packed_rows(cuda, shape, rows, width, from.0, from.1, to, &mut indices, &mut values)?;
        Ok((offsets, indices, values))
    }
}

/// Returns whether the host checks after this round if all unknowns are decided. It must then wait for the device. A
/// superfluous round takes less time than a wait and changes nothing.
fn asked_after(round: u32) -> bool {
    round >= 4 && round.is_multiple_of(2)
}

/// Returns the number of each coarse unknown (`u32::MAX` for others), and how many coarse unknowns there are.
fn coarse_unknowns<T: Scalar>(
    cuda: Cuda,
    depends: CsrPattern<'_, Cuda>,
) -> Result<(<Cuda as Backend>::Vec<u32>, usize)> {
    let (n, columns) = (depends.rows, depends.indices);
    let shape = || tuning::classical_rows(cuda.0.chip, n + 1);
    let mut counts = cuda.zeros::<u32>(n)?;
    let of_entries = tuning::classical_rows(cuda.0.chip, columns.len());
    kernel::influence_counts::<T>(cuda, of_entries, columns.len(), columns, &mut counts)?;
    let (mut state, mut lost) = (cuda.buffer::<u32>(n)?, cuda.buffer::<u32>(n)?);
    let mut undecided = cuda.zeros::<u32>(1)?;
    kernel::coarse_start::<T>(cuda, shape(), n, &counts, &mut state, &mut lost, &mut undecided)?;
    for round in 1.. {
        kernel::coarse_compare::<T>(cuda, shape(), n, depends, &counts, &state, round, &mut lost)?;
        cuda.fill(0, &mut undecided)?;
        kernel::coarse_decide::<T>(cuda, shape(), n, depends, &lost, round, &mut state, &mut undecided)?;
        if asked_after(round) && cuda.value(&undecided)? == 0 {
            break;
        }
    }
    let (mut flags, mut places) = (cuda.buffer::<u32>(n + 1)?, cuda.buffer::<u32>(n + 1)?);
    kernel::coarse_flags::<T>(cuda, shape(), n, &state, &mut flags)?;
    cuda.exclusive_scan(&flags, &mut places)?;
    let count = cuda.value(Cuda::part(&places, n..n + 1))? as usize;
    let mut numbers = lost;
    kernel::coarse_numbers::<T>(cuda, shape(), n, &state, &places, &mut numbers)?;
    Ok((numbers, count))
}

impl ClassicalSteps for Cuda {
    /// One for each lane.
    const MOST_WEIGHTS: usize = 32;

    fn strong_columns<T: Scalar>(
        &self,
        a: CsrParts<'_, T, Self>,
        strength: f64,
    ) -> Result<(Offsets<Self>, Self::Vec<u32>)> {
        let (cuda, n, threshold) = (*self, a.rows, T::Real::from_f64(strength));
        let shape = || tuning::strong_lanes(cuda.0.chip, n);
        let mut lengths = cuda.buffer::<u32>(n + 1)?;
        kernel::dependence_lengths(cuda, shape(), n, a, threshold, &mut lengths)?;
        let (starts, entries) = offsets_of(&cuda, &lengths)?;
        let mut columns = cuda.buffer(entries)?;
        alike(cuda, a.offsets, starts.as_ref(), |offsets, starts| {
            let a = a.with_offsets(offsets);
            kernel::dependence_entries(cuda, shape(), n, a, threshold, starts, &mut columns)
        })?;
        Ok((starts, columns))
    }

    fn extended_interpolation<T: Scalar>(
        &self,
        a: CsrParts<'_, T, Self>,
        strong: CsrPattern<'_, Self>,
        weights: usize,
    ) -> Result<Option<(CsrArrays<T, Self>, usize)>> {
        let (cuda, n) = (*self, a.rows);
        let (numbers, count) = coarse_unknowns::<T>(cuda, strong)?;
        let mut wide = Wide::<T>::new(cuda, n, weights)?;
        // Later launches with larger tables are only for the few rows with many unknowns around them.
        let shapes = tuning::classical_lanes(cuda.0.chip, n, a.indices.len() / n.max(1), weights);
        for (number, shape) in shapes.enumerate() {
            let mut beyond = cuda.zeros::<u32>(1)?;
            let Wide { lengths, columns, values, .. } = &mut wide;
            alike(cuda, a.offsets, strong.offsets, |of_a, of_strong| {
                let a = a.with_offsets(of_a);
                let strong = strong.with_offsets(of_strong);
                let (most, again, beyond) = (weights as u32, number > 0, &mut beyond);
                kernel::extended_rows(
                    cuda, shape, n, a, strong, &numbers, most, again, lengths, columns, values, beyond,
                )
            })?;
            if cuda.value(&beyond)? == 0 {
                return Ok(Some((wide.packed(cuda)?, count)));
            }
        }
        Ok(None)
    }

    fn with_fewer_weights<T: Scalar>(
        &self,
        p: CsrParts<'_, T, Self>,
        weights: usize,
    ) -> Result<CsrArrays<T, Self>> {
        let (cuda, n) = (*self, p.rows);
        let mut wide = Wide::<T>::new(cuda, n, weights)?;
        let shape = tuning::classical_rows(cuda.0.chip, n);
        let Wide { lengths, columns, values, .. } = &mut wide;
        kernel::fewer_weights(cuda, shape, n, p, weights as u32, lengths, columns, values)?;
        wide.packed(cuda)
    }
}
