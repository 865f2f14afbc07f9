//! Sparse products and sums of matrices on the device: rows in classes by how much work they are.

use super::launch::kernels;
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, tuning};
use crate::backend::{
    Backend, Conversions, CsrArrays, CsrParts, CsrPattern, Offsets, OffsetsRef, Primitives, SparseProducts,
    offsets_of, with_offsets,
};
use crate::error::{Error, Result};
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

mod kernel {
    use super::*;
    kernels! {
        "spgemm.cu", types(I: Offset as OFFSET, J: Offset as TARGET);
        fn product_classes(
            rows: u64,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            b_offsets: &Slice<I>,
            classes: &mut Slice<u32>,
        );
        fn length_classes(rows: u64, offsets: &Slice<J>, wide: u32, widest: u32, classes: &mut Slice<u32>);
        fn product_lengths(
            count: u64,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            lengths: &mut Slice<u32>,
        );
        fn block_lengths(
            count: u64,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            lengths: &mut Slice<u32>,
        );
    }
    kernels! {
        "spgemm_rows.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET, J: Offset as TARGET);
        fn product_rows(
            count: u64,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            a_values: &Slice<T>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            b_values: &Slice<T>,
            offsets: &Slice<J>,
            columns: &mut Slice<u32>,
            values: &mut Slice<T>,
        );
    }
    kernels! {
        "spgemm_long.cu", types(I: Offset as OFFSET, J: Offset as TARGET);
        fn long_lengths(
            count: u64,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            lengths: &mut Slice<u32>,
        );
        fn long_columns(
            count: u64,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            offsets: &Slice<J>,
            columns: &mut Slice<u32>,
        );
    }
    kernels! {
        "spgemm_values.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET, J: Offset as TARGET);
        fn product_values(
            count: u64,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            a_values: &Slice<T>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            b_values: &Slice<T>,
            offsets: &Slice<J>,
            columns: &Slice<u32>,
            values: &mut Slice<T>,
        );
        fn long_values(
            count: u64,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            a_values: &Slice<T>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            b_values: &Slice<T>,
            offsets: &Slice<J>,
            columns: &Slice<u32>,
            values: &mut Slice<T>,
        );
    }
    kernels! {
        "spadd.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET, J: Offset as TARGET);
        fn sum_lengths(
            rows: u64,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            lengths: &mut Slice<u32>,
        );
        fn sum_rows(
            rows: u64,
            alpha: T,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            a_values: &Slice<T>,
            beta: T,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            b_values: &Slice<T>,
            offsets: &Slice<J>,
            columns: &mut Slice<u32>,
            values: &mut Slice<T>,
        );
    }
}

/// Classes of rows, the first of which is of rows without work.
const CLASSES: usize = 5;

/// Rows in an order in which each class is together.
struct Dealt {
    order: DeviceVec<u32>,
    /// Where each class lies in the order.
    places: [Range<usize>; CLASSES],
}

impl Dealt {
    /// From the class of each row. Reads the counts of classes back.
    fn new(cuda: Cuda, classes: &Slice<u32>) -> Result<Self> {
        let mut counts = cuda.zeros::<u32>(CLASSES)?;
        cuda.histogram(classes, &mut counts)?;
        let counts = cuda.download(&counts)?;
        let order = cuda.longest_first(classes, classes.len().max(1), CLASSES as u32 - 1)?;
        let (mut places, mut start) = ([const { 0..0 }; CLASSES], 0);
        for class in (0..CLASSES).rev() {
            let behind = start + counts[class] as usize;
            places[class] = start..behind;
            start = behind;
        }
        Ok(Self { order, places })
    }

    /// By the number of products of each row.
    fn of_products<I: Offset>(
        cuda: Cuda,
        rows: usize,
        a: (&Slice<I>, &Slice<u32>),
        b: &Slice<I>,
    ) -> Result<Self> {
        let mut classes = cuda.buffer::<u32>(rows)?;
        let shape = tuning::row_threads(cuda.0.chip, rows);
        kernel::product_classes::<I, u32>(cuda, shape, rows as u64, a.0, a.1, b, &mut classes)?;
        Self::new(cuda, &classes)
    }

    /// By the number of entries of each row of C, in classes 1 to 3: fewer than the first, than the second, and more.
    fn of_lengths(
        cuda: Cuda,
        rows: usize,
        offsets: OffsetsRef<'_, Cuda>,
        [wide, widest]: [u32; 2],
    ) -> Result<Self> {
        let mut classes = cuda.buffer::<u32>(rows)?;
        let shape = tuning::row_threads(cuda.0.chip, rows);
        with_offsets!(offsets, offsets => {
            kernel::length_classes::<u32, _>(cuda, shape, rows as u64, offsets, wide, widest, &mut classes)?;
        });
        Self::new(cuda, &classes)
    }

    /// The rows of a class; none where there are none.
    fn rows(&self, class: u32) -> Option<&Slice<u32>> {
        let places = self.places[class as usize].clone();
        (!places.is_empty()).then(|| Cuda::part(&self.order, places))
    }
}

/// A column is what a free place of a table holds where there are 2^32.
fn check_columns(columns: usize) -> Result<()> {
    if columns > u32::MAX as usize {
        return Err(Error::Unsupported(
            "a product of sparse matrices with 2^32 columns on a device; use the cpu".into(),
        ));
    }
    Ok(())
}

/// Offsets of 64 bits with the same content.
fn wide(cuda: Cuda, offsets: OffsetsRef<'_, Cuda>) -> Result<DeviceVec<u64>> {
    let rows = offsets.len() - 1;
    let (mut lengths, mut wide) = (cuda.buffer(rows)?, cuda.buffer(rows + 1)?);
    cuda.row_lengths(offsets, 0, u32::MAX as usize, &mut lengths)?;
    cuda.exclusive_scan(&lengths, &mut wide)?;
    Ok(wide)
}

/// Runs `work` with offsets of one width: those of 32 bits are copied where the others have 64.
fn alike<R>(
    cuda: Cuda,
    a: OffsetsRef<'_, Cuda>,
    b: OffsetsRef<'_, Cuda>,
    work: impl FnOnce(OffsetsRef<'_, Cuda>, OffsetsRef<'_, Cuda>) -> Result<R>,
) -> Result<R> {
    match (a, b) {
        (OffsetsRef::Narrow(_), OffsetsRef::Wide(_)) => {
            let a = Offsets::<Cuda>::Wide(wide(cuda, a)?);
            work(a.as_ref(), b)
        }
        (OffsetsRef::Wide(_), OffsetsRef::Narrow(_)) => {
            let b = Offsets::<Cuda>::Wide(wide(cuda, b)?);
            work(a, b.as_ref())
        }
        _ => work(a, b),
    }
}

/// As `with_offsets!`, for two that are known to be alike.
macro_rules! with_alike {
    ($a:expr, $b:expr, ($first:ident, $second:ident) => $body:expr) => {
        match ($a, $b) {
            (OffsetsRef::Narrow($first), OffsetsRef::Narrow($second)) => $body,
            (OffsetsRef::Wide($first), OffsetsRef::Wide($second)) => $body,
            _ => unreachable!("offsets were made alike"),
        }
    };
}

impl SparseProducts for Cuda {
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
    ) -> Result<CsrArrays<V, Self>> {
        check_columns(b.columns)?;
        let chip = self.0.chip;
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            with_alike!(of_a, of_b, (of_a, of_b) => {
                let mut lengths = self.zeros::<u32>(a.rows + 1)?;
                let dealt = Dealt::of_products(*self, a.rows, (of_a, a.indices), of_b)?;
                for class in tuning::CLASSES {
                    let Some(rows) = dealt.rows(class) else { continue };
                    let (shape, count) = (tuning::product_lengths(chip, class, rows.len()), rows.len() as u64);
                    kernel::product_lengths::<_, u32>(
                        *self, shape, count, rows, of_a, a.indices, of_b, b.indices, &mut lengths,
                    )?;
                }
                if let Some(rows) = dealt.rows(3) {
                    let (shape, count) = (tuning::block_of_rows(chip, rows.len()), rows.len() as u64);
                    kernel::block_lengths::<_, u32>(
                        *self, shape, count, rows, of_a, a.indices, of_b, b.indices, &mut lengths,
                    )?;
                }
                if let Some(rows) = dealt.rows(4) {
                    let (shape, count) = (tuning::block_of_rows(chip, rows.len()), rows.len() as u64);
                    kernel::long_lengths::<_, u32>(
                        *self, shape, count, rows, of_a, a.indices, of_b, b.indices, &mut lengths,
                    )?;
                }
                drop(dealt);
                let (offsets, entries) = offsets_of(self, &lengths)?;
                drop(lengths);
                let (mut indices, mut values) = (self.buffer(entries)?, self.buffer(entries)?);
                let dealt = Dealt::of_lengths(*self, a.rows, offsets.as_ref(), tuning::ROWS_BY_LENGTH)?;
                with_offsets!(offsets.as_ref(), to => {
                    for class in tuning::CLASSES {
                        let Some(rows) = dealt.rows(class) else { continue };
                        let (shape, count) = (tuning::product_values(chip, class, rows.len()), rows.len() as u64);
                        kernel::product_rows(
                            *self, shape, count, rows, of_a, a.indices, a.values, of_b, b.indices, b.values, to,
                            &mut indices, &mut values,
                        )?;
                    }
                    if let Some(rows) = dealt.rows(3) {
                        let (shape, count) = (tuning::block_of_rows(chip, rows.len()), rows.len() as u64);
                        kernel::long_columns(
                            *self, shape, count, rows, of_a, a.indices, of_b, b.indices, to, &mut indices,
                        )?;
                        let shape = tuning::long_values(chip, rows.len());
                        kernel::long_values(
                            *self, shape, count, rows, of_a, a.indices, a.values, of_b, b.indices, b.values, to,
                            &indices, &mut values,
                        )?;
                    }
                });
                Ok((offsets, indices, values))
            })
        })
    }

    fn multiply_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        c: CsrPattern<'_, Self>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let chip = self.0.chip;
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            with_alike!(of_a, of_b, (of_a, of_b) => with_offsets!(c.offsets, offsets => {
                let dealt = Dealt::of_lengths(*self, c.rows, c.offsets, tuning::VALUES_BY_LENGTH)?;
                for class in tuning::CLASSES {
                    let Some(rows) = dealt.rows(class) else { continue };
                    let (shape, count) = (tuning::product_values(chip, class, rows.len()), rows.len() as u64);
                    kernel::product_values(
                        *self, shape, count, rows, of_a, a.indices, a.values, of_b, b.indices, b.values, offsets,
                        c.indices, values,
                    )?;
                }
                let Some(rows) = dealt.rows(3) else { return Ok(()) };
                let (shape, count) = (tuning::long_values(chip, rows.len()), rows.len() as u64);
                kernel::long_values(
                    *self, shape, count, rows, of_a, a.indices, a.values, of_b, b.indices, b.values, offsets,
                    c.indices, values,
                )
            }))
        })
    }

    fn add_lengths(
        &self,
        a: CsrPattern<'_, Self>,
        b: CsrPattern<'_, Self>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, rows) = (tuning::row_threads(self.0.chip, a.rows + 1), a.rows as u64);
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            with_alike!(of_a, of_b, (of_a, of_b) => {
                kernel::sum_lengths::<f32, _, u32>(*self, shape, rows, of_a, a.indices, of_b, b.indices, lengths)
            })
        })
    }

    fn add_rows<V: Scalar>(
        &self,
        (alpha, a): (V, CsrParts<'_, V, Self>),
        (beta, b): (V, CsrParts<'_, V, Self>),
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let (shape, rows) = (tuning::row_threads(self.0.chip, a.rows), a.rows as u64);
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            with_alike!(of_a, of_b, (of_a, of_b) => with_offsets!(offsets, offsets => {
                kernel::sum_rows(
                    *self, shape, rows, alpha, of_a, a.indices, a.values, beta, of_b, b.indices, b.values, offsets,
                    indices, values,
                )
            }))
        })
    }
}
