//! Triangular systems and incomplete factorisations on the device. Rows are taken in order, and each waits until the
//! rows on which it depends are done.

use super::coarsen::nodes;
use super::launch::kernels;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{
    Backend, CsrParts, CsrPattern, OffsetsRef, Pivots, Side, TriangleParts, TriangularSteps,
};
use crate::error::Result;
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "incomplete.cu", types(T: Scalar as SCALAR; "u32" as OFFSET);
        fn rows_start(n: usize, words: &mut Slice<u32>);
    }
    kernels! {
        "incomplete.cu", types(T: Scalar as SCALAR; a as OFFSET);
        fn row_levels(n: usize, a: CsrPattern<'_, Cuda>, upper: bool, levels: &mut Slice<u32>);
        fn incomplete_lu(
            n: usize,
            order: &Slice<u32>,
            a: CsrPattern<'_, Cuda>,
            diagonal: T::Real,
            smallest: T::Real,
            positive: bool,
            upper: &mut Slice<u32>,
            values: &mut Slice<T>,
            inverses: &mut Slice<T>,
            failed: &mut Slice<u32>,
        );
    }
    kernels! {
        "triangle.cu", types(T: Scalar as SCALAR; a as OFFSET, "u32" as TARGET);
        fn triangle_lengths(
            n: usize,
            a: CsrPattern<'_, Cuda>,
            upper: bool,
            order: &Slice<u32>,
            lengths: &mut Slice<u32>,
        );
    }
    kernels! {
        "triangle.cu", types(T: Scalar as SCALAR; a as OFFSET, starts as TARGET);
        fn triangle_entries(
            n: usize,
            a: CsrParts<'_, T, Cuda>,
            upper: bool,
            order: &Slice<u32>,
            places: &Slice<u32>,
            starts: OffsetsRef<'_, Cuda>,
            to_columns: &mut Slice<u32>,
            to_values: &mut Slice<T>,
        );
    }
    kernels! {
        "triangular.cu", types(T: Scalar as SCALAR; "u32" as OFFSET);
        fn triangular_start(n: usize, x: &mut Slice<T>);
    }
    kernels! {
        "triangular.cu", types(T: Scalar as SCALAR; offsets as OFFSET);
        fn triangular_solve(
            n: usize,
            sources: &Slice<u32>,
            offsets: OffsetsRef<'_, Cuda>,
            columns: &Slice<u32>,
            values: &Slice<T>,
            inverses: Option<&Slice<T>>,
            r: &Slice<T>,
            x: &mut Slice<T>,
        );
    }
}

impl TriangularSteps for Cuda {
    fn row_levels(&self, pattern: CsrPattern<'_, Self>, side: Side, levels: &mut Slice<u32>) -> Result<()> {
        let (rows, upper) = (pattern.rows, side == Side::Upper);
        kernel::rows_start::<f64>(*self, nodes(*self, rows), rows, levels)?;
        let shape = tuning::rows_in_turn(self.0.chip, rows, 8);
        kernel::row_levels::<f64>(*self, shape, rows, pattern, upper, levels)
    }

    fn incomplete_lu<T: Scalar>(
        &self,
        pattern: CsrPattern<'_, Self>,
        order: &Slice<u32>,
        pivots: Pivots,
        values: &mut Slice<T>,
        inverses: &mut Slice<T>,
        failed: &mut Slice<u32>,
    ) -> Result<()> {
        let rows = pattern.rows;
        self.fill(0, failed)?;
        let mut upper = self.buffer::<u32>(rows + 1)?;
        kernel::rows_start::<f64>(*self, nodes(*self, rows), rows, &mut upper)?;
        let real = T::Real::from_f64;
        let shape = tuning::rows_in_turn(self.0.chip, rows, 32);
        kernel::incomplete_lu(
            *self,
            shape,
            rows,
            order,
            pattern,
            real(pivots.diagonal),
            real(pivots.smallest),
            pivots.positive,
            &mut upper,
            values,
            inverses,
            failed,
        )
    }

    fn triangle_lengths(
        &self,
        pattern: CsrPattern<'_, Self>,
        side: Side,
        order: &Slice<u32>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, upper) = (nodes(*self, order.len()), side == Side::Upper);
        kernel::triangle_lengths::<f64>(*self, shape, order.len(), pattern, upper, order, lengths)
    }

    fn triangle_entries<T: Scalar>(
        &self,
        a: CsrParts<'_, T, Self>,
        side: Side,
        order: &Slice<u32>,
        places: &Slice<u32>,
        offsets: OffsetsRef<'_, Self>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    ) -> Result<()> {
        let (shape, upper) = (nodes(*self, order.len()), side == Side::Upper);
        kernel::triangle_entries(*self, shape, order.len(), a, upper, order, places, offsets, columns, values)
    }

    fn triangular_solve<T: Scalar>(
        &self,
        triangle: TriangleParts<'_, T, Self>,
        r: &Slice<T>,
        x: &mut Slice<T>,
    ) -> Result<()> {
        let TriangleParts { sources, offsets, columns, values, inverses, levels } = triangle;
        let (rows, chip) = (sources.len(), self.0.chip);
        kernel::triangular_start::<T>(*self, nodes(*self, rows), rows, x)?;
        let shape = tuning::triangular(chip, rows, columns.len(), levels.len());
        kernel::triangular_solve(*self, shape, rows, sources, offsets, columns, values, inverses, r, x)
    }
}
