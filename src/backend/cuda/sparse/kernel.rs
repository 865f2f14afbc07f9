//! The kernels of sparse products and sums.

use super::*;
kernels! {
    "spgemm.cu", types(; a_offsets as OFFSET, "u32" as TARGET);
    fn product_classes(
        rows: u64,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        a: u32,
        b: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
    );
    fn block_lengths(
        count: u64,
        listed: u32,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm.cu", types(; "u32" as OFFSET, offsets as TARGET);
    fn length_classes(
        rows: u64,
        offsets: OffsetsRef<'_, Cuda>,
        sorted: u32,
        apart: u32,
        a: u32,
        b: u32,
        c: u32,
        d: u32,
        e: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm.cu", types(; "u32" as OFFSET, "u32" as TARGET);
    fn differing(count: u64, list: &Slice<u32>, other: &Slice<u32>, all: &mut Slice<u32>);
}
kernels! {
    "spgemm_merged_lengths.cu", types(; a_offsets as OFFSET);
    fn merged_lengths(
        rows: u64,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_merged.cu", types(T: Scalar as SCALAR; a_offsets as OFFSET, offsets as TARGET);
    fn merged_rows(
        rows: u64,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        a_values: &Slice<T>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        b_values: &Slice<T>,
        offsets: OffsetsRef<'_, Cuda>,
        with_columns: u32,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_sorted_lengths.cu", types(; a_offsets as OFFSET);
    fn sorted_lengths(
        count: u64,
        listed: u32,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        deals: u32,
        next: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_sorted.cu", types(T: Scalar as SCALAR; a_offsets as OFFSET, offsets as TARGET);
    fn sorted_rows(
        count: u64,
        listed: u32,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        a_values: &Slice<T>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        b_values: &Slice<T>,
        offsets: OffsetsRef<'_, Cuda>,
        deals: u32,
        next: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_lengths.cu", types(; a_offsets as OFFSET);
    fn product_lengths(
        count: u64,
        listed: u32,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_rows.cu", types(T: Scalar as SCALAR; a_offsets as OFFSET, offsets as TARGET);
    fn product_rows(
        count: u64,
        listed: u32,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        a_values: &Slice<T>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        b_values: &Slice<T>,
        offsets: OffsetsRef<'_, Cuda>,
        known: u32,
        pattern: &Slice<u32>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_known.cu", types(T: Scalar as SCALAR; a_offsets as OFFSET, offsets as TARGET);
    fn known_values(
        count: u64,
        listed: u32,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        a_values: &Slice<T>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        b_values: &Slice<T>,
        offsets: OffsetsRef<'_, Cuda>,
        pattern: &Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_long.cu", types(; a_offsets as OFFSET, "u32" as TARGET);
    fn long_lengths(
        count: u64,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_long.cu", types(; a_offsets as OFFSET, offsets as TARGET);
    fn long_columns(
        count: u64,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        offsets: OffsetsRef<'_, Cuda>,
        columns: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_values.cu", types(T: Scalar as SCALAR; a_offsets as OFFSET, offsets as TARGET);
    fn long_values(
        count: u64,
        rows: &Slice<u32>,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        a_values: &Slice<T>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        b_values: &Slice<T>,
        offsets: OffsetsRef<'_, Cuda>,
        columns: &Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spadd.cu", types(T: Scalar as SCALAR; a_offsets as OFFSET, "u32" as TARGET);
    fn sum_lengths(
        rows: u64,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spadd.cu", types(T: Scalar as SCALAR; a_offsets as OFFSET, offsets as TARGET);
    fn sum_rows(
        rows: u64,
        alpha: T,
        a_offsets: OffsetsRef<'_, Cuda>,
        a_columns: &Slice<u32>,
        a_values: &Slice<T>,
        beta: T,
        b_offsets: OffsetsRef<'_, Cuda>,
        b_columns: &Slice<u32>,
        b_values: &Slice<T>,
        offsets: OffsetsRef<'_, Cuda>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
