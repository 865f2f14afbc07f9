//! Conversions on the device, which computes sizes and moves entries. Nothing is copied to the host.

use super::launch::kernels;
use super::primitives::{bits_to, exclusive_scan, histogram_of_neighbours};
use super::shape::Shape;
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, diagonals, transpose, tuning};
use crate::backend::{
    Backend, Conversions, CooParts, CsrParts, CsrPattern, DiaFill, DiaParts, Diagonals, EllParts, JdsParts,
    Offsets, OffsetsRef, Primitives, RowOrderRef, SellParts,
};
use crate::error::{Error, Result};
use crate::scalar::{Element, Offset, Scalar};
use std::ops::Range;

mod kernel {
    use super::*;
    kernels! {
        "convert_rows.cu", types(V: Element as _; a as OFFSET, "u32" as STARTS);
        fn csr_to_ell(
            rows: usize, a: CsrParts<'_, V, Cuda>, width: u32, columns: &mut Slice<u32>, values: &mut Slice<V>,
            splits: u32,
        );
    }
    kernels! {
        "convert_rows.cu", types(V: Element as _; offsets as OFFSET, "u32" as STARTS);
        fn ell_to_csr(
            rows: usize, offsets: OffsetsRef<'_, Cuda>, to_columns: &mut Slice<u32>, to_values: &mut Slice<V>,
            width: u32, columns: &Slice<u32>, values: &Slice<V>, splits: u32,
        );
    }
    kernels! {
        "convert_rows.cu", types(V: Element as _; a as OFFSET, sections as STARTS);
        fn csr_to_jds(
            rows: usize, a: CsrParts<'_, V, Cuda>, order: &Slice<u32>, sections: OffsetsRef<'_, Cuda>,
            count: usize, columns: &mut Slice<u32>, values: &mut Slice<V>, splits: u32, near: u32, far: u32,
        );
        /// `order` is null if rows keep their order.
        fn csr_to_sell(
            rows: usize, a: CsrParts<'_, V, Cuda>, order: Option<&Slice<u32>>, sections: OffsetsRef<'_, Cuda>,
            count: usize, height: usize, columns: &mut Slice<u32>, values: &mut Slice<V>, splits: u32,
            near: u32,
        );
        fn csr_to_sell_far(
            rows: usize, a: CsrParts<'_, V, Cuda>, order: Option<&Slice<u32>>, sections: OffsetsRef<'_, Cuda>,
            count: usize, height: usize, columns: &mut Slice<u32>, values: &mut Slice<V>, near: u32, share: u32,
        );
    }
    kernels! {
        "convert_rows.cu", types(V: Element as _; offsets as OFFSET, sections as STARTS);
        fn jds_to_csr(
            rows: usize, offsets: OffsetsRef<'_, Cuda>, to_columns: &mut Slice<u32>, to_values: &mut Slice<V>,
            order: &Slice<u32>, sections: OffsetsRef<'_, Cuda>, count: usize, columns: &Slice<u32>,
            values: &Slice<V>, splits: u32, near: u32, far: u32,
        );
        fn sell_to_csr(
            rows: usize, offsets: OffsetsRef<'_, Cuda>, to_columns: &mut Slice<u32>, to_values: &mut Slice<V>,
            order: Option<&Slice<u32>>, sections: OffsetsRef<'_, Cuda>, count: usize, height: usize,
            columns: &Slice<u32>, values: &Slice<V>, splits: u32, near: u32,
        );
        fn sell_to_csr_far(
            rows: usize, offsets: OffsetsRef<'_, Cuda>, to_columns: &mut Slice<u32>, to_values: &mut Slice<V>,
            order: Option<&Slice<u32>>, sections: OffsetsRef<'_, Cuda>, count: usize, height: usize,
            columns: &Slice<u32>, values: &Slice<V>, near: u32, share: u32,
        );
    }
    kernels! {
        "convert_tails.cu", types(V: Element as _; offsets as OFFSET, "u32" as HEADS, from as TAILS);
        fn tails(
            from: OffsetsRef<'_, Cuda>, skip: usize, from_columns: &Slice<u32>, from_values: &Slice<V>,
            offsets: OffsetsRef<'_, Cuda>, n: usize, starts: &Slice<u64>, rows: &mut Slice<u32>,
            columns: &mut Slice<u32>, values: &mut Slice<V>,
        );
        fn append(
            from: OffsetsRef<'_, Cuda>, tail_columns: &Slice<u32>, tail_values: &Slice<V>,
            offsets: OffsetsRef<'_, Cuda>, n: usize, starts: &Slice<u64>, columns: &mut Slice<u32>,
            values: &mut Slice<V>,
        );
    }
    kernels! {
        "convert_tails.cu", types(I: Offset as _; offsets as OFFSET, heads as HEADS, tails as TAILS);
        fn join_offsets(
            heads: OffsetsRef<'_, Cuda>, tails: OffsetsRef<'_, Cuda>, offsets: &mut Slice<I>, n: usize,
        );
    }
    kernels! {
        "own_columns.cu", types(V: Element as _; from as OFFSET, to as TARGET);
        fn split_columns(
            rows: usize, from: OffsetsRef<'_, Cuda>, columns: &Slice<u32>, values: &Slice<V>, first: usize,
            last: usize, before: &Slice<u64>, to: &mut Offsets<Cuda>, own_columns: &mut Slice<u32>,
            own_values: &mut Slice<V>, other_columns: &mut Slice<u32>, other_values: &mut Slice<V>,
        );
    }
    kernels! {
        "own_columns.cu", types(; a as OFFSET, "u32" as TARGET);
        fn entries_beyond(
            rows: usize, a: CsrPattern<'_, Cuda>, first: usize, last: usize, beyond: &mut Slice<u32>,
        );
    }
    kernels! {
        "convert_sizes.cu", types(; offsets as OFFSET);
        fn row_lengths(
            offsets: OffsetsRef<'_, Cuda>, rows: usize, skip: usize, most: usize, lengths: &mut Slice<u32>,
        );
        fn jagged_lengths(
            order: &Slice<u32>, rows: usize, offsets: OffsetsRef<'_, Cuda>, count: usize,
            lengths: &mut Slice<u32>,
        );
    }
    kernels! {
        "convert_sizes.cu", types(I: Offset as _; keys as OFFSET);
        fn order_keys(
            lengths: &Slice<u32>, rows: usize, window: usize, longest: u32, bits: u32, keys: &mut Slice<I>,
            order: &mut Slice<u32>,
        );
    }
    kernels! {
        "convert_sizes.cu", types(I: Offset as _; places as OFFSET);
        fn section_places(
            lengths: &Slice<u32>, rows: usize, height: usize, places: &mut Slice<I>, sections: usize,
            found: &mut Slice<u64>,
        );
    }
    kernels! {
        "convert_sizes.cu", types(; "u32" as OFFSET);
        fn jagged_reach(
            lengths: &Slice<u32>, order: &Slice<u32>, rows: usize, reach: &mut Slice<u32>, count: usize,
        );
        fn ordered_lengths(
            lengths: &Slice<u32>, rows: usize, order: &Slice<u32>, sorted: &mut Slice<u32>,
            moved: &mut Slice<u64>,
        );
    }
}

kernels! {
    "length_order.cu", types();
    fn order_windows(
        lengths: &Slice<u32>, rows: usize, window: usize, order: &mut Slice<u32>, sorted: &mut Slice<u32>,
        moved: &mut Slice<u64>,
    );
}

/// Some of the offsets.
fn part_of<'a>(offsets: &OffsetsRef<'a, Cuda>, range: Range<usize>) -> OffsetsRef<'a, Cuda> {
    match offsets {
        OffsetsRef::Lower(offsets) => OffsetsRef::Lower(offsets.part(range)),
        OffsetsRef::Wide(offsets) => OffsetsRef::Wide(offsets.part(range)),
    }
}

/// Returns the launch shape for conversions by rows, in both directions.
fn rows_shape<V: Element>(positions: usize, nonzeros: usize, longest: usize) -> (Shape, u32) {
    let (shape, splits) = tuning::convert_rows(positions, nonzeros, longest);
    (shape.for_values::<V>(), splits)
}

/// Returns the shape for layouts in which the columns after the first `near` have few entries each: some blocks process
/// the near columns, and additional blocks the rest.
fn near_and_far<V: Element>(
    positions: usize,
    nonzeros: usize,
    (near, far): (usize, usize),
) -> (Shape, u32, u32, u32) {
    let (shape, splits) = rows_shape::<V>(positions, nonzeros, near);
    (shape.blocks(shape.blocks as usize + far), splits, near as u32, far as u32)
}

/// Returns the largest number with the same number of bits as `most`.
fn all_ones(most: usize) -> u32 {
    let bits = bits_to(most).min(u32::BITS);
    ((1_u64 << bits) - 1) as u32
}

impl Cuda {
    fn order_by<K: Offset + crate::scalar::Key>(
        self,
        lengths: &Slice<u32>,
        window: usize,
        longest: u32,
        bits: (u32, u32),
    ) -> Result<DeviceVec<u32>> {
        let (rows, mut keys) = (lengths.len(), self.uninitialised::<K>(lengths.len())?);
        let shape = tuning::elementwise(self.0.chip, rows);
        let mut order = self.uninitialised(rows)?;
        kernel::order_keys(self, shape, lengths, rows, window, longest, bits.0, &mut keys, &mut order)?;
        self.sort_pairs(&mut keys, &mut order, 0..bits.0 + bits.1)?;
        Ok(order)
    }
}

impl Conversions for Cuda {
    /// The number of rows of a warp.
    const CHUNK_HEIGHT: usize = 32;

    fn row_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        skip: usize,
        most: usize,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, rows) = (tuning::elementwise(self.0.chip, lengths.len()), lengths.len());
        kernel::row_lengths(*self, shape, offsets, rows, skip, most, lengths)
    }

    fn longest_first(&self, lengths: &Slice<u32>, window: usize, longest: u32) -> Result<DeviceVec<u32>> {
        let bits = (bits_to(longest as usize), bits_to(lengths.len().saturating_sub(1) / window));
        if bits.0 + bits.1 <= 32 {
            self.order_by::<u32>(lengths, window, longest, bits)
        } else {
            self.order_by::<u64>(lengths, window, longest, bits)
        }
    }

    fn order_windows(
        &self,
        lengths: &Slice<u32>,
        (window, most): (usize, usize),
        order: &mut DeviceVec<u32>,
        sorted: &mut Slice<u32>,
        moved: &mut Slice<u64>,
    ) -> Result<()> {
        let rows = lengths.len();
        if let Some(shape) = tuning::order_windows(rows, window) {
            return order_windows(*self, shape, lengths, rows, window, order, sorted, moved);
        }
        // Digits that are equal in all keys cost a launch but no pass. To determine the length of the longest row, the
        // host would have to wait.
        *order = self.longest_first(lengths, window, all_ones(most))?;
        let shape = tuning::elementwise(self.0.chip, rows);
        kernel::ordered_lengths(*self, shape, lengths, rows, order, sorted, moved)
    }

    fn chunk_offsets<I: Offset>(
        &self,
        lengths: &Slice<u32>,
        height: usize,
        offsets: &mut Slice<I>,
        found: &mut Slice<u64>,
    ) -> Result<()> {
        let (rows, sections) = (lengths.len(), offsets.len() - 1);
        let mut places = self.uninitialised::<I>(sections)?;
        let (shape, count) = (tuning::section_places(sections), sections);
        kernel::section_places(*self, shape, lengths, rows, height, &mut places, count, found)?;
        exclusive_scan(*self, &places, offsets)
    }

    fn jagged_reach(
        &self,
        lengths: &Slice<u32>,
        order: RowOrderRef<'_, Self>,
        reach: &mut Slice<u32>,
    ) -> Result<()> {
        let (rows, count) = (lengths.len(), reach.len());
        let shape = tuning::one_each(reach.len());
        kernel::jagged_reach(*self, shape, lengths, order.as_slice(), rows, reach, count)
    }

    fn jagged_lengths(
        &self,
        order: RowOrderRef<'_, Self>,
        diagonals: OffsetsRef<'_, Self>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        let (shape, rows) = (tuning::elementwise(self.0.chip, lengths.len()), lengths.len());
        let count = diagonals.len() - 1;
        kernel::jagged_lengths(*self, shape, order.as_slice(), rows, diagonals, count, lengths)
    }

    fn join_offsets<I: Offset>(
        &self,
        head: OffsetsRef<'_, Self>,
        tail: OffsetsRef<'_, Self>,
        offsets: &mut Slice<I>,
    ) -> Result<()> {
        let shape = tuning::elementwise(self.0.chip, offsets.len()).variant("VALUE_BYTES", "8");
        let n = offsets.len();
        kernel::join_offsets(*self, shape, head, tail, offsets, n)
    }

    fn entries_beyond(
        &self,
        a: CsrPattern<'_, Self>,
        rows: Range<usize>,
        own: Range<usize>,
        beyond: &mut Slice<u32>,
    ) -> Result<()> {
        Error::check_dimension("counts of entries", rows.len(), beyond.len())?;
        let offsets = part_of(&a.offsets, rows.start..rows.end + 1);
        let shape = tuning::elementwise(self.0.chip, rows.len()).for_values::<f64>();
        let (first, last) = (own.start, own.end);
        kernel::entries_beyond(*self, shape, rows.len(), CsrPattern { offsets, ..a }, first, last, beyond)
    }

    fn split_columns<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        rows: Range<usize>,
        own: Range<usize>,
        before: &Slice<u64>,
        (offsets, indices, values): (&mut Offsets<Self>, &mut Slice<u32>, &mut Slice<V>),
        (columns, numbers): (&mut Slice<u32>, &mut Slice<V>),
    ) -> Result<()> {
        Error::check_dimension("counts of entries", rows.len() + 1, before.len())?;
        Error::check_dimension("offsets of own columns", rows.len() + 1, offsets.as_ref().len())?;
        if rows.is_empty() {
            // The single offset is zero.
            return match offsets {
                Offsets::Lower(offsets) => self.fill(0, offsets),
                Offsets::Wide(offsets) => self.fill(0, offsets),
            };
        }
        let from = part_of(&a.offsets, rows.start..rows.end + 1);
        let shape = tuning::elementwise(self.0.chip, rows.len()).for_values::<V>();
        let (count, first, last) = (rows.len(), own.start, own.end);
        kernel::split_columns(
            *self, shape, count, from, a.indices, a.values, first, last, before, offsets, indices, values,
            columns, numbers,
        )
    }

    fn csr_tails<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        skip: usize,
        offsets: OffsetsRef<'_, Self>,
        entries: (&mut Slice<u32>, &mut Slice<u32>, &mut Slice<V>),
    ) -> Result<()> {
        let (rows, columns, values) = entries;
        let n = values.len();
        self.by_tiles(offsets, n, |shape, starts| {
            let shape = shape.for_values::<V>();
            kernel::tails(
                *self, shape, a.offsets, skip, a.indices, a.values, offsets, n, starts, rows, columns, values,
            )
        })
    }

    fn join_rows<V: Element>(
        &self,
        head: EllParts<'_, V, Self>,
        tail: CooParts<'_, V, Self>,
        tails: OffsetsRef<'_, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        self.ell_to_csr(head, offsets, indices, values)?;
        let n = tail.values.len();
        self.by_tiles(tails, n, |shape, starts| {
            let shape = shape.for_values::<V>();
            let (from_columns, from_values) = (tail.column_indices, tail.values);
            kernel::append(
                *self,
                shape,
                tails,
                from_columns,
                from_values,
                offsets,
                n,
                starts,
                indices,
                values,
            )
        })
    }

    fn csr_mirror<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<bool> {
        transpose::mirror(*self, a, indices, values)
    }

    fn column_counts(&self, columns: &Slice<u32>, counts: &mut Slice<u32>) -> Result<()> {
        histogram_of_neighbours(*self, columns, counts)
    }

    fn csr_transpose<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        transpose::csr_to_csc(*self, a, offsets, indices, values)
    }

    fn csr_to_ell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        width: usize,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let (shape, splits) = rows_shape::<V>(a.rows, indices.len(), width);
        let (rows, width) = (a.rows, width as u32);
        kernel::csr_to_ell::<V>(*self, shape, rows, a, width, indices, values, splits)
    }

    fn ell_to_csr<V: Element>(
        &self,
        a: EllParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let (shape, splits) = rows_shape::<V>(a.rows, indices.len(), a.width);
        let (rows, width) = (a.rows, a.width as u32);
        kernel::ell_to_csr::<V>(
            *self, shape, rows, offsets, indices, values, width, a.indices, a.values, splits,
        )
    }

    fn diagonals(
        &self,
        size: (usize, usize),
        offsets: OffsetsRef<'_, Self>,
        indices: &Slice<u32>,
        most: usize,
    ) -> Result<Diagonals> {
        diagonals::find(*self, size, offsets, indices, most)
    }

    fn half_pays<V: Scalar>(&self, places: usize) -> bool {
        tuning::half_pays(places, size_of::<V>())
    }

    fn seems_symmetric<V: Scalar>(&self, a: CsrParts<'_, V, Self>) -> Result<bool> {
        diagonals::seems_symmetric(*self, a)
    }

    fn csr_to_dia<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        mirrored: usize,
        distances: &Slice<i64>,
        values: &mut Slice<V>,
    ) -> Result<DiaFill> {
        diagonals::from_csr(*self, a, mirrored, distances, values)
    }

    fn dia_lengths<V: Scalar>(&self, a: DiaParts<'_, V, Self>, lengths: &mut Slice<u32>) -> Result<()> {
        diagonals::lengths(*self, a, lengths)
    }

    fn dia_to_csr<V: Scalar>(
        &self,
        a: DiaParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        diagonals::to_csr(*self, a, offsets, indices, values)
    }

    fn csr_to_jds<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        order: RowOrderRef<'_, Self>,
        diagonals: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let (rows, order, count) = (a.rows, order.as_slice(), diagonals.len() - 1);
        let far = tuning::far_diagonals(self.0.chip, a.rows, indices.len(), count);
        let (shape, splits, near, far) = near_and_far::<V>(a.rows, indices.len(), far);
        kernel::csr_to_jds(*self, shape, rows, a, order, diagonals, count, indices, values, splits, near, far)
    }

    fn jds_to_csr<V: Element>(
        &self,
        a: JdsParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let (rows, order, count) = (a.rows, a.order.as_slice(), a.offsets.len() - 1);
        let far = tuning::far_diagonals(self.0.chip, a.rows, indices.len(), count);
        let (shape, splits, near, far) = near_and_far::<V>(a.rows, indices.len(), far);
        kernel::jds_to_csr(
            *self, shape, rows, offsets, indices, values, order, a.offsets, count, a.indices, a.values,
            splits, near, far,
        )
    }

    fn csr_to_sell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        (height, widest): (usize, usize),
        order: Option<RowOrderRef<'_, Self>>,
        sections: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let count = sections.len() - 1;
        let matrix = (a.rows, a.indices.len());
        let (near, far, share) = tuning::far_columns(self.0.chip, matrix, (height, widest), indices.len());
        let (shape, splits) = rows_shape::<V>(count * height, a.indices.len(), near);
        let (rows, near) = (a.rows, near as u32);
        let order = order.map(|order| order.as_slice());
        kernel::csr_to_sell(
            *self, shape, rows, a, order, sections, count, height, indices, values, splits, near,
        )?;
        kernel::csr_to_sell_far(
            *self,
            shape.blocks(far),
            rows,
            a,
            order,
            sections,
            count,
            height,
            indices,
            values,
            near,
            share,
        )
    }

    fn sell_to_csr<V: Element>(
        &self,
        a: SellParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let (matrix, sections) = ((a.rows, indices.len()), (a.height, a.widest));
        let (near, far, share) = tuning::far_columns(self.0.chip, matrix, sections, a.indices.len());
        let (shape, splits) = rows_shape::<V>(a.rows, indices.len(), near);
        let (rows, count, near) = (a.rows, a.offsets.len() - 1, near as u32);
        let (order, height) = (a.order.map(|order| order.as_slice()), a.height);
        kernel::sell_to_csr(
            *self, shape, rows, offsets, indices, values, order, a.offsets, count, height, a.indices,
            a.values, splits, near,
        )?;
        kernel::sell_to_csr_far(
            *self,
            shape.blocks(far),
            rows,
            offsets,
            indices,
            values,
            order,
            a.offsets,
            count,
            height,
            a.indices,
            a.values,
            near,
            share,
        )
    }
}
