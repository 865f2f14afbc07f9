//! The kernels of sparse products and sums.

use super::*;
kernels! {
    "spgemm.cu", types(; a as OFFSET, "u32" as TARGET);
    fn product_classes(
        rows: usize,
        a: CsrPattern<'_, Cuda>,
        b_offsets: OffsetsRef<'_, Cuda>,
        s: u32,
        t: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
    );
    fn block_lengths(
        rows: Rows<'_>,
        a: CsrPattern<'_, Cuda>,
        b: CsrPattern<'_, Cuda>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm.cu", types(; "u32" as OFFSET, offsets as TARGET);
    fn length_classes(
        rows: usize,
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
    fn differing(count: usize, list: &Slice<u32>, other: &Slice<u32>, all: &mut Slice<u32>);
}
kernels! {
    "spgemm_merged_lengths.cu", types(; a as OFFSET);
    fn merged_lengths(rows: usize, a: CsrPattern<'_, Cuda>, b: CsrPattern<'_, Cuda>, lengths: &mut Slice<u32>);
}
kernels! {
    "spgemm_merged.cu", types(T: Scalar as SCALAR; a as OFFSET, offsets as TARGET);
    fn merged_rows(
        rows: usize,
        a: CsrParts<'_, T, Cuda>,
        b: CsrParts<'_, T, Cuda>,
        offsets: OffsetsRef<'_, Cuda>,
        with_columns: bool,
        columns: Option<&mut Slice<u32>>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_sorted_lengths.cu", types(; a as OFFSET);
    fn sorted_lengths(
        rows: Rows<'_>,
        a: CsrPattern<'_, Cuda>,
        b: CsrPattern<'_, Cuda>,
        deals: bool,
        next: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_sorted.cu", types(T: Scalar as SCALAR; a as OFFSET, offsets as TARGET);
    fn sorted_rows(
        rows: Rows<'_>,
        a: CsrParts<'_, T, Cuda>,
        b: CsrParts<'_, T, Cuda>,
        offsets: OffsetsRef<'_, Cuda>,
        deals: bool,
        next: u32,
        classes: &mut Slice<u32>,
        counts: &mut Slice<u32>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_lengths.cu", types(; a as OFFSET);
    fn product_lengths(
        rows: Rows<'_>,
        a: CsrPattern<'_, Cuda>,
        b: CsrPattern<'_, Cuda>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_rows.cu", types(T: Scalar as SCALAR; a as OFFSET, offsets as TARGET);
    fn product_rows(
        rows: Rows<'_>,
        a: CsrParts<'_, T, Cuda>,
        b: CsrParts<'_, T, Cuda>,
        offsets: OffsetsRef<'_, Cuda>,
        columns: &mut Columns<'_>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_known.cu", types(T: Scalar as SCALAR; a as OFFSET, offsets as TARGET);
    fn known_values(
        rows: Rows<'_>,
        a: CsrParts<'_, T, Cuda>,
        b: CsrParts<'_, T, Cuda>,
        offsets: OffsetsRef<'_, Cuda>,
        pattern: &Slice<u32>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spgemm_long.cu", types(; a as OFFSET, "u32" as TARGET);
    fn long_lengths(
        count: usize,
        rows: &Slice<u32>,
        a: CsrPattern<'_, Cuda>,
        b: CsrPattern<'_, Cuda>,
        lengths: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_long.cu", types(; a as OFFSET, offsets as TARGET);
    fn long_columns(
        count: usize,
        rows: &Slice<u32>,
        a: CsrPattern<'_, Cuda>,
        b: CsrPattern<'_, Cuda>,
        offsets: OffsetsRef<'_, Cuda>,
        columns: &mut Slice<u32>,
    );
}
kernels! {
    "spgemm_values.cu", types(T: Scalar as SCALAR; a as OFFSET, c as TARGET);
    fn long_values(
        count: usize,
        rows: &Slice<u32>,
        a: CsrParts<'_, T, Cuda>,
        b: CsrParts<'_, T, Cuda>,
        c: CsrPattern<'_, Cuda>,
        values: &mut Slice<T>,
    );
}
kernels! {
    "spadd.cu", types(T: Scalar as SCALAR; a as OFFSET, "u32" as TARGET);
    fn sum_lengths(rows: usize, a: CsrPattern<'_, Cuda>, b: CsrPattern<'_, Cuda>, lengths: &mut Slice<u32>);
}
kernels! {
    "spadd.cu", types(T: Scalar as SCALAR; a as OFFSET, offsets as TARGET);
    fn sum_rows(
        rows: usize,
        alpha: T,
        a: CsrParts<'_, T, Cuda>,
        beta: T,
        b: CsrParts<'_, T, Cuda>,
        offsets: OffsetsRef<'_, Cuda>,
        columns: &mut Slice<u32>,
        values: &mut Slice<T>,
    );
}
