//! The kernels of sparse products and sums.

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
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
    );
    fn length_classes(
        rows: u64,
        offsets: &Slice<J>,
        sorted: u32,
        a: u32,
        b: u32,
        c: u32,
        d: u32,
        e: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
    );
    fn differing(count: u64, list: &Slice<u32>, other: &Slice<u32>, all: &mut Slice<u32>);
    fn block_lengths(
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
    "spgemm_merged_lengths.cu", types(I: Offset as OFFSET);
    fn merged_lengths(
        rows: u64,
        a_offsets: &Slice<I>,
        a_columns: &Slice<u32>,
        b_offsets: &Slice<I>,
        b_columns: &Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_merged.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET, J: Offset as TARGET);
    fn merged_rows(
        rows: u64,
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
    "spgemm_sorted_lengths.cu", types(I: Offset as OFFSET);
    fn sorted_lengths(
        count: u64,
        listed: u32,
        rows: &Slice<u32>,
        a_offsets: &Slice<I>,
        a_columns: &Slice<u32>,
        b_offsets: &Slice<I>,
        b_columns: &Slice<u32>,
        deals: u32,
        next: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
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
        deals: u32,
        next: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_lengths.cu", types(I: Offset as OFFSET);
    fn product_lengths(
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
    "spgemm_rows.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET, J: Offset as TARGET);
    fn product_rows(
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
        known: u32,
        pattern: &Slice<u32>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_known.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET, J: Offset as TARGET);
    fn known_values(
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
        pattern: &Slice<u32>,
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
