//! Setup steps of algebraic multigrid, on the device.

use super::launch::kernels;
use super::product::extent;
use super::slice::Slice;
use super::sparse::alike;
use super::{Cuda, tuning};
use crate::backend::{Backend, CoarseningSteps, CsrParts, CsrPattern, Gemv, OffsetsRef, ScatteredBlocks};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "coarsen.cu", types(T: Scalar as SCALAR; a as OFFSET, "u32" as TARGET);
        fn largest_couplings(n: usize, a: CsrParts<'_, T, Cuda>, largest: &mut Slice<T::Real>);
        fn strong_lengths(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            threshold: T::Real,
            largest: &Slice<T::Real>,
            lengths: &mut Slice<u32>,
        );
        fn diagonal_scales(n: usize, a: CsrParts<'_, T, Cuda>, scales: &mut Slice<f64>);
        fn inverse_roots(n: usize, a: CsrParts<'_, T, Cuda>, roots: &mut Slice<T>);
        fn scaled_values(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            left: &Slice<T>,
            right: &Slice<T>,
            scaled: &mut Slice<T>,
        );
        fn scaled_sums(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            scales: &Slice<f64>,
            threshold: f64,
            sums: &mut Slice<T::Real>,
            strong: &mut Slice<u32>,
        );
        fn scaled_magnitudes(n: usize, a: CsrParts<'_, T, Cuda>, scales: &Slice<f64>, weights: &mut Slice<f32>);
    }
    kernels! {
        "coarsen.cu", types(T: Scalar as SCALAR; offsets as OFFSET, "u32" as TARGET);
        fn row_norms(n: usize, offsets: OffsetsRef<'_, Cuda>, values: &Slice<T>, norms: &mut Slice<T::Real>);
    }
    kernels! {
        "coarsen.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, "u32" as TARGET);
        fn exponents(n: usize, x: &Slice<T::Real>, exponents: &mut Slice<u32>);
        fn flags_from(n: usize, x: &Slice<u32>, least: u32, flags: &mut Slice<u8>);
        fn divide_by_column(
            entries: usize,
            indices: &Slice<u32>,
            norms: &Slice<T::Real>,
            values: &mut Slice<T>,
        );
        fn conjugate(n: usize, x: &mut Slice<T>);
    }
    kernels! {
        "coarsen.cu", types(T: Scalar as SCALAR; a as OFFSET, starts as TARGET);
        fn strong_entries(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            threshold: T::Real,
            largest: &Slice<T::Real>,
            starts: OffsetsRef<'_, Cuda>,
            neighbours: &mut Slice<u32>,
            weights: &mut Slice<f32>,
        );
    }
    kernels! {
        "coarsen.cu", types(T: Scalar as SCALAR; a as OFFSET, strong as TARGET);
        fn damped_entries(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            strong: CsrPattern<'_, Cuda>,
            omega: T::Real,
            indices: &mut Slice<u32>,
            damped: &mut Slice<T>,
        );
        fn smoothed_entries(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            strong: CsrPattern<'_, Cuda>,
            omega: T::Real,
            group: &Slice<u32>,
            vector: &Slice<T::Real>,
            norms: &Slice<T::Real>,
            places: OffsetsRef<'_, Cuda>,
            indices: &mut Slice<u32>,
            smoothed: &mut Slice<T>,
        );
    }
    kernels! {
        "coarsen.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, strong as TARGET);
        fn smoothed_lengths(
            n: usize,
            strong: CsrPattern<'_, Cuda>,
            group: &Slice<u32>,
            lengths: &mut Slice<u32>,
        );
    }
    kernels! {
        "coarsen.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, starts as TARGET);
        fn group_entries(
            n: usize,
            group: &Slice<u32>,
            vector: &Slice<T::Real>,
            starts: OffsetsRef<'_, Cuda>,
            indices: &mut Slice<u32>,
            values: &mut Slice<T>,
        );
    }
    kernels! {
        "group_inverses.cu", types(T: Scalar as SCALAR, N: Scalar as NARROW; a as OFFSET, places as TARGET);
        fn group_inverses(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            blocks: usize,
            member_starts: &Slice<u32>,
            members: &Slice<u32>,
            scales: &Slice<f64>,
            part: T::Real,
            hermitian: bool,
            places: OffsetsRef<'_, Cuda>,
            units: &mut Slice<T::Real>,
            inverses: &mut Slice<N>,
        );
    }
    kernels! {
        "group_inverses.cu", types(T: Scalar as SCALAR, N: Scalar as NARROW; "u32" as OFFSET, places as TARGET);
        fn group_product(
            blocks: usize,
            member_starts: &Slice<u32>,
            members: &Slice<u32>,
            places: OffsetsRef<'_, Cuda>,
            units: &Slice<T::Real>,
            inverses: &Slice<N>,
            alpha: T,
            x: &Slice<T>,
            beta: T,
            y: &mut Slice<T>,
        );
    }
    kernels! {
        "smoothed_rows.cu", types(T: Scalar as SCALAR; a as OFFSET, strong as TARGET);
        fn smoothed_rows(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            strong: CsrPattern<'_, Cuda>,
            omega: T::Real,
            group: &Slice<u32>,
            vector: &Slice<T::Real>,
            norms: &Slice<T::Real>,
            places: OffsetsRef<'_, Cuda>,
            indices: &mut Slice<u32>,
            smoothed: &mut Slice<T>,
        );
    }
}

/// A shape with a thread for each node or row.
pub(super) fn nodes(cuda: Cuda, n: usize) -> super::shape::Shape {
    tuning::row_threads(cuda.0.chip, n + 1)
}

/// A shape for kernels that first copy the entries of rows to shared memory. It has more blocks if rows are long.
fn entries<V: Scalar>(cuda: Cuda, a: &CsrParts<'_, V, Cuda>) -> super::shape::Shape {
    tuning::row_entries(cuda.0.chip, a.rows + 1, a.indices.len())
}

impl CoarseningSteps for Cuda {
    fn largest_couplings<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        largest: &mut Slice<V::Real>,
    ) -> Result<()> {
        kernel::largest_couplings::<V>(*self, entries(*self, &a), a.rows, a, largest)
    }

    fn exponents<V: Scalar>(&self, x: &Slice<V::Real>, exponents: &mut Slice<u32>) -> Result<()> {
        kernel::exponents::<V>(*self, nodes(*self, x.len()), x.len(), x, exponents)
    }

    fn flags_from(&self, x: &Slice<u32>, least: u32, flags: &mut Slice<u8>) -> Result<()> {
        kernel::flags_from::<f32>(*self, nodes(*self, x.len()), x.len(), x, least, flags)
    }

    fn strong_lengths<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Slice<V::Real>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        kernel::strong_lengths::<V>(*self, entries(*self, &a), a.rows, a, threshold, largest, lengths)
    }

    fn strong_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &Slice<V::Real>,
        starts: OffsetsRef<'_, Self>,
        neighbours: &mut Slice<u32>,
        weights: &mut Slice<f32>,
    ) -> Result<()> {
        kernel::strong_entries(
            *self,
            entries(*self, &a),
            a.rows,
            a,
            threshold,
            largest,
            starts,
            neighbours,
            weights,
        )
    }

    fn damped_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        kernel::damped_entries(*self, entries(*self, &a), a.rows, a, strong, omega, indices, values)
    }

    fn smoothed_lengths(
        &self,
        strong: CsrPattern<'_, Self>,
        group: &Slice<u32>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        let shape = tuning::row_entries(self.0.chip, strong.rows + 1, strong.indices.len());
        kernel::smoothed_lengths::<f32>(*self, shape, strong.rows, strong, group, lengths)
    }

    fn smoothed_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        group: &Slice<u32>,
        vector: &Slice<V::Real>,
        norms: &Slice<V::Real>,
        places: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let lengths = (a.indices.len() / a.rows.max(1), extent(*self, &a)?.longest as usize);
        let by_lanes = tuning::smoothed_rows(self.0.chip, a.rows, lengths, norms.len());
        let shared = by_lanes.is_some();
        let shape = by_lanes.unwrap_or_else(|| entries(*self, &a));
        let launch = if shared { kernel::smoothed_rows } else { kernel::smoothed_entries };
        alike(*self, strong.offsets, places, |offsets, places| {
            let strong = strong.with_offsets(offsets);
            launch(*self, shape, a.rows, a, strong, omega, group, vector, norms, places, indices, values)
        })
    }

    fn group_entries<V: Scalar>(
        &self,
        group: &Slice<u32>,
        vector: &Slice<V::Real>,
        starts: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        kernel::group_entries::<V>(
            *self,
            nodes(*self, group.len()),
            group.len(),
            group,
            vector,
            starts,
            indices,
            values,
        )
    }

    fn row_norms<V: Scalar>(&self, a: CsrParts<'_, V, Self>, norms: &mut Slice<V::Real>) -> Result<()> {
        let shape = tuning::row_entries(self.0.chip, a.rows + 1, a.values.len());
        kernel::row_norms::<V>(*self, shape, a.rows, a.offsets, a.values, norms)
    }

    fn divide_by_column<V: Scalar>(
        &self,
        indices: &Slice<u32>,
        norms: &Slice<V::Real>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        kernel::divide_by_column::<V>(*self, nodes(*self, values.len()), values.len(), indices, norms, values)
    }

    fn conjugate<V: Scalar>(&self, x: &mut Slice<V>) -> Result<()> {
        kernel::conjugate::<V>(*self, nodes(*self, x.len()), x.len(), x)
    }

    fn diagonal_scales<V: Scalar>(&self, a: CsrParts<'_, V, Self>, scales: &mut Slice<f64>) -> Result<()> {
        kernel::diagonal_scales::<V>(*self, nodes(*self, a.rows), a.rows, a, scales)
    }

    fn inverse_roots<V: Scalar>(&self, a: CsrParts<'_, V, Self>, roots: &mut Slice<V>) -> Result<()> {
        kernel::inverse_roots::<V>(*self, nodes(*self, a.rows), a.rows, a, roots)
    }

    fn scaled_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        left: &Slice<V>,
        right: &Slice<V>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let shape = tuning::node_lanes(self.0.chip, a.rows);
        kernel::scaled_values::<V>(*self, shape, a.rows, a, left, right, values)
    }

    fn scaled_sums<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &Slice<f64>,
        threshold: f64,
        sums: &mut Slice<V::Real>,
        strong: &mut Slice<u32>,
    ) -> Result<()> {
        self.fill(0, strong)?;
        kernel::scaled_sums::<V>(*self, entries(*self, &a), a.rows, a, scales, threshold, sums, strong)
    }

    fn scaled_magnitudes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &Slice<f64>,
        weights: &mut Slice<f32>,
    ) -> Result<()> {
        let shape = tuning::node_lanes(self.0.chip, a.rows);
        kernel::scaled_magnitudes::<V>(*self, shape, a.rows, a, scales, weights)
    }

    fn group_inverses<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: &ScatteredBlocks<Self>,
        (scales, part): (&Slice<f64>, f64),
        hermitian: bool,
        units: &mut Slice<V::Real>,
        values: &mut Slice<V::Lower>,
    ) -> Result<()> {
        let (starts, members) = (narrow_starts(blocks)?, blocks.order().as_slice());
        let (n, count) = (a.rows, blocks.count());
        let (shape, part) = (tuning::group_blocks(self.0.chip, blocks.count()), V::Real::from_f64(part));
        let places = blocks.places();
        kernel::group_inverses(
            *self, shape, n, a, count, starts, members, scales, part, hermitian, places, units, values,
        )
    }

    fn group_product<V: Scalar>(
        &self,
        blocks: &ScatteredBlocks<Self>,
        units: &Slice<V::Real>,
        values: &Slice<V::Lower>,
        Gemv { alpha, x, beta, y, .. }: Gemv<'_, V, Self>,
    ) -> Result<()> {
        Error::check_dimension("length of x", blocks.unknowns(), x.len())?;
        Error::check_dimension("length of y", blocks.unknowns(), y.len())?;
        let (starts, members) = (narrow_starts(blocks)?, blocks.order().as_slice());
        let (count, shape) = (blocks.count(), tuning::group_rows(self.0.chip, blocks.count()));
        let places = blocks.places();
        kernel::group_product::<V, V::Lower>(
            *self, shape, count, starts, members, places, units, values, alpha, x, beta, y,
        )
    }
}

/// Returns the start of each block's members.
fn narrow_starts(blocks: &ScatteredBlocks<Cuda>) -> Result<&Slice<u32>> {
    match blocks.members().offsets {
        OffsetsRef::Lower(starts) => Ok(starts),
        OffsetsRef::Wide(_) => {
            Err(Error::Unsupported("blocks of 2^32 unknowns on a device; use the cpu".into()))
        }
    }
}
