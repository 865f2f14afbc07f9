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
            a: u32,
            b: u32,
            c: u32,
            d: u32,
            e: u32,
            classes: &mut Slice<u32>,
        );
        fn length_classes(rows: u64, offsets: &Slice<J>, wide: u32, classes: &mut Slice<u32>);
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
        "spgemm_sorted_lengths.cu", types(I: Offset as OFFSET);
        fn sorted_lengths(
            count: u64,
            listed: u32,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            lengths: &mut Slice<u32>,
        );
    }
    kernels! {
        "spgemm_sorted.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET, J: Offset as TARGET);
        fn sorted_rows(
            count: u64,
            listed: u32,
            rows: &Slice<u32>,
            a_offsets: &Slice<I>,
            a_columns: &Slice<u32>,
            a_values: &Slice<T>,
            b_offsets: &Slice<I>,
            b_columns: &Slice<u32>,
            b_values: &Slice<T>,
            offsets: &Slice<J>,
            with_columns: u32,
            columns: &mut Slice<u32>,
            values: &mut Slice<T>,
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

/// Classes of rows by their products: none, five whose products are sorted, those of a warp, of a block, and longer
/// ones.
const CLASSES: usize = 9;
const OF_WARP: usize = 6;
const OF_BLOCK: usize = 7;
const LONG: usize = 8;

/// Rows of a class that are fewer than this part of those of the next join these.
const FEW: usize = 4;

/// Rows in an order in which each class is together.
struct Dealt {
    /// Descending by class; nothing where one class has all rows, in their own order.
    order: Option<DeviceVec<u32>>,
    /// Where each class lies in the order.
    places: [Range<usize>; CLASSES],
}

/// Rows of a class.
struct Rows<'a> {
    count: usize,
    /// None where they are all rows.
    listed: Option<&'a Slice<u32>>,
}

impl Dealt {
    /// From the class of each row; `sorted` tells whether classes are those of products, of which the first may join.
    /// Reads the counts of classes back.
    fn new(cuda: Cuda, classes: &Slice<u32>, sorted: bool) -> Result<Self> {
        let mut counts = cuda.zeros::<u32>(CLASSES)?;
        cuda.histogram(classes, &mut counts)?;
        let counts = cuda.download(&counts)?;
        let (mut places, mut start) = ([const { 0..0 }; CLASSES], 0);
        for class in (0..CLASSES).rev() {
            let behind = start + counts[class] as usize;
            places[class] = start..behind;
            start = behind;
        }
        if !sorted {
            let order = cuda.longest_first(classes, classes.len().max(1), CLASSES as u32 - 1)?;
            return Ok(Self { order: Some(order), places });
        }
        let mut before = 1;
        for class in 2..OF_WARP {
            let (fewer, more) = (places[before].clone(), places[class].clone());
            if FEW * fewer.len() <= more.len() {
                places[class] = more.start..fewer.end;
                places[before] = fewer.end..fewer.end;
            }
            before = if more.is_empty() { before } else { class };
        }
        let all =
            places[1..OF_WARP].iter_mut().find(|place| place.len() + counts[0] as usize == classes.len());
        if let Some(all) = all {
            *all = 0..classes.len();
            return Ok(Self { order: None, places });
        }
        let order = cuda.longest_first(classes, classes.len().max(1), CLASSES as u32 - 1)?;
        Ok(Self { order: Some(order), places })
    }

    /// By the number of products of each row; the class of each too.
    fn of_products<I: Offset>(
        cuda: Cuda,
        (rows, columns): (usize, usize),
        a: (&Slice<I>, &Slice<u32>),
        b: &Slice<I>,
    ) -> Result<(Self, DeviceVec<u32>)> {
        let mut classes = cuda.buffer::<u32>(rows)?;
        let (shape, count) = (tuning::node_lanes(cuda.0.chip, rows), rows as u64);
        let [s, t, u, v, w] = tuning::most_sorted(columns);
        kernel::product_classes::<I, u32>(cuda, shape, count, a.0, a.1, b, s, t, u, v, w, &mut classes)?;
        Ok((Self::new(cuda, &classes, true)?, classes))
    }

    /// Of rows whose products are not sorted, by the number of their entries in C: in class 1 fewer than `wide`, in
    /// class 2 the others. None where all are sorted.
    fn of_lengths(
        &self,
        cuda: Cuda,
        mut classes: DeviceVec<u32>,
        offsets: OffsetsRef<'_, Cuda>,
        wide: u32,
    ) -> Result<Option<Self>> {
        if self.places[OF_WARP..].iter().all(Range::is_empty) {
            return Ok(None);
        }
        let (shape, rows) = (tuning::row_threads(cuda.0.chip, classes.len()), classes.len() as u64);
        with_offsets!(offsets, offsets => {
            kernel::length_classes::<u32, _>(cuda, shape, rows, offsets, wide, &mut classes)?;
        });
        Self::new(cuda, &classes, false).map(Some)
    }

    /// The rows of a class and their number, where they are listed.
    fn listed(&self, class: usize) -> Option<(&Slice<u32>, u64)> {
        let rows = self.rows(class)?;
        rows.listed.map(|listed| (listed, rows.count as u64))
    }

    /// The rows of a class; none where there are none.
    fn rows(&self, class: usize) -> Option<Rows<'_>> {
        let places = self.places[class].clone();
        let listed = self.order.as_ref().map(|order| Cuda::part(order, places.clone()));
        (!places.is_empty()).then_some(Rows { count: places.len(), listed })
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
pub(super) fn alike<R>(
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

/// How long the rows of C are, and a zero behind.
fn lengths<V: Scalar, I: Offset>(
    cuda: Cuda,
    dealt: &Dealt,
    (of_a, a): (&Slice<I>, &CsrParts<'_, V, Cuda>),
    (of_b, b): (&Slice<I>, &CsrParts<'_, V, Cuda>),
) -> Result<DeviceVec<u32>> {
    let (chip, mut lengths) = (cuda.0.chip, cuda.zeros::<u32>(a.rows + 1)?);
    for class in tuning::SORTED_CLASSES {
        let Some(rows) = dealt.rows(class as usize) else { continue };
        let (count, listed) = (rows.count as u64, u32::from(rows.listed.is_some()));
        let shape = tuning::sorted_rows(chip, class, rows.count);
        let rows = rows.listed.unwrap_or(Cuda::part(a.indices, 0..0));
        kernel::sorted_lengths(
            cuda,
            shape,
            count,
            listed,
            rows,
            of_a,
            a.indices,
            of_b,
            b.indices,
            &mut lengths,
        )?;
    }
    if let Some((rows, count)) = dealt.listed(OF_WARP) {
        let shape = tuning::product_lengths(chip, rows.len());
        kernel::product_lengths::<_, u32>(
            cuda,
            shape,
            count,
            rows,
            of_a,
            a.indices,
            of_b,
            b.indices,
            &mut lengths,
        )?;
    }
    if let Some((rows, count)) = dealt.listed(OF_BLOCK) {
        let shape = tuning::block_of_rows(chip, rows.len());
        kernel::block_lengths::<_, u32>(
            cuda,
            shape,
            count,
            rows,
            of_a,
            a.indices,
            of_b,
            b.indices,
            &mut lengths,
        )?;
    }
    if let Some((rows, count)) = dealt.listed(LONG) {
        let shape = tuning::block_of_rows(chip, rows.len());
        kernel::long_lengths::<_, u32>(
            cuda,
            shape,
            count,
            rows,
            of_a,
            a.indices,
            of_b,
            b.indices,
            &mut lengths,
        )?;
    }
    Ok(lengths)
}

/// Columns and values of the rows of C whose products are sorted; values alone without columns.
fn sorted<V: Scalar, I: Offset>(
    cuda: Cuda,
    dealt: &Dealt,
    (of_a, a): (&Slice<I>, &CsrParts<'_, V, Cuda>),
    (of_b, b): (&Slice<I>, &CsrParts<'_, V, Cuda>),
    offsets: OffsetsRef<'_, Cuda>,
    mut columns: Option<&mut Slice<u32>>,
    values: &mut Slice<V>,
) -> Result<()> {
    let mut none = cuda.buffer(0)?;
    let with_columns = u32::from(columns.is_some());
    for class in tuning::SORTED_CLASSES {
        let Some(rows) = dealt.rows(class as usize) else { continue };
        let (count, listed) = (rows.count as u64, u32::from(rows.listed.is_some()));
        let shape = tuning::sorted_rows(cuda.0.chip, class, rows.count);
        let rows = rows.listed.unwrap_or(Cuda::part(a.indices, 0..0));
        let columns = columns.as_deref_mut().unwrap_or(&mut none);
        with_offsets!(offsets, to => {
            kernel::sorted_rows(
                cuda, shape, count, listed, rows, of_a, a.indices, a.values, of_b, b.indices, b.values, to,
                with_columns, columns, values,
            )?;
        });
    }
    Ok(())
}

impl SparseProducts for Cuda {
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
    ) -> Result<CsrArrays<V, Self>> {
        check_columns(b.columns)?;
        let (chip, size) = (self.0.chip, (a.rows, b.columns));
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            with_alike!(of_a, of_b, (of_a, of_b) => {
                let (dealt, classes) = Dealt::of_products(*self, size, (of_a, a.indices), of_b)?;
                let lengths = lengths(*self, &dealt, (of_a, &a), (of_b, &b))?;
                let (offsets, entries) = offsets_of(self, &lengths)?;
                drop(lengths);
                let (mut indices, mut values) = (self.buffer(entries)?, self.buffer(entries)?);
                let to = offsets.as_ref();
                sorted(*self, &dealt, (of_a, &a), (of_b, &b), to, Some(&mut indices), &mut values)?;
                let others = dealt.of_lengths(*self, classes, to, tuning::LONG_ROW)?;
                let Some(dealt) = others else { return Ok((offsets, indices, values)) };
                with_offsets!(to, to => {
                    if let Some((rows, count)) = dealt.listed(1) {
                        kernel::product_rows(
                            *self, tuning::product_values(chip, rows.len()), count, rows, of_a, a.indices, a.values,
                            of_b, b.indices, b.values, to, &mut indices, &mut values,
                        )?;
                    }
                    if let Some((rows, count)) = dealt.listed(2) {
                        kernel::long_columns(
                            *self, tuning::block_of_rows(chip, rows.len()), count, rows, of_a, a.indices, of_b,
                            b.indices, to, &mut indices,
                        )?;
                        kernel::long_values(
                            *self, tuning::long_values(chip, rows.len()), count, rows, of_a, a.indices, a.values, of_b,
                            b.indices, b.values, to, &indices, &mut values,
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
        let (chip, size) = (self.0.chip, (a.rows, b.columns));
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            with_alike!(of_a, of_b, (of_a, of_b) => {
                let (dealt, classes) = Dealt::of_products(*self, size, (of_a, a.indices), of_b)?;
                sorted(*self, &dealt, (of_a, &a), (of_b, &b), c.offsets, None, values)?;
                let others = dealt.of_lengths(*self, classes, c.offsets, tuning::LONG_VALUES)?;
                let Some(dealt) = others else { return Ok(()) };
                with_offsets!(c.offsets, offsets => {
                    if let Some((rows, count)) = dealt.listed(1) {
                        kernel::product_values(
                            *self, tuning::product_values(chip, rows.len()), count, rows, of_a, a.indices, a.values,
                            of_b, b.indices, b.values, offsets, c.indices, values,
                        )?;
                    }
                    let Some((rows, count)) = dealt.listed(2) else { return Ok(()) };
                    kernel::long_values(
                        *self, tuning::long_values(chip, rows.len()), count, rows, of_a, a.indices, a.values, of_b,
                        b.indices, b.values, offsets, c.indices, values,
                    )
                })
            })
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
