//! The kernels of the primitives, as `kernels/README.md` describes them.

use crate::backend::OffsetsRef;
use crate::backend::cuda::Cuda;
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::scalar::{Element, Key, Number, Offset, Scalar};

kernels! {
    "reduce.cu", types(T: Element as IN);
    /// `y` is null except for dot products.
    fn reduce(x: &Slice<T>, y: u64, n: usize, out: &mut Slice<T>, workspace: u64);
}
kernels! {
    "scan.cu", types(T: Element as IN, O: Element as OUT);
    fn scan(x: &Slice<T>, out: &mut Slice<O>, n: usize, outputs: u64, workspace: u64);
}
kernels! {
    "compact.cu", types(T: Element as _);
    /// Arguments that a mode does not use are null.
    fn compact(
        x: Option<&Slice<T>>,
        flags: Option<&Slice<u8>>,
        out: &mut Slice<T>,
        rest: Option<&mut Slice<T>>,
        n: usize,
        kept: &mut Slice<u64>,
        workspace: u64,
    );
}
kernels! {
    "reduce_by_key.cu", types(K: Key as _, T: Element as VALUE);
    fn reduce_by_key(
        keys: &Slice<K>,
        values: &Slice<T>,
        keys_out: &mut Slice<K>,
        sums_out: &mut Slice<T>,
        n: usize,
        runs: &mut Slice<u64>,
        workspace: u64,
    );
}
kernels! {
    "sort.cu", types(K: Key as KEY);
    fn sort_small(
        keys_in: &Slice<K>,
        keys_out: &Slice<K>,
        values_in: u64,
        values_out: u64,
        n: usize,
        first_bit: u32,
        bit_count: u32,
    );
    fn sort_histogram(
        keys_a: &Slice<K>,
        n: usize,
        first_bit: u32,
        bit_count: u32,
        passes: u32,
        workspace: u64,
        lookback_words: u64,
    );
    fn sort_pass(
        keys_a: &Slice<K>,
        keys_b: &Slice<K>,
        values_a: u64,
        values_b: u64,
        n: usize,
        first_bit: u32,
        bit_count: u32,
        passes: u32,
        pass: u32,
        workspace: u64,
    );
    fn sort_finish(
        keys_a: &Slice<K>,
        keys_b: &Slice<K>,
        values_a: u64,
        values_b: u64,
        n: usize,
        passes: u32,
        workspace: u64,
    );
}
kernels! {
    "histogram.cu", types();
    fn histogram(x: &Slice<u32>, n: usize, counts: &mut Slice<u32>, bins: u32);
    fn histogram_cached(x: &Slice<u32>, n: usize, counts: &mut Slice<u32>, bins: u32);
    fn histogram_by_tiles(x: &Slice<u32>, n: usize, counts: &mut Slice<u32>, bins: u32);
}
kernels! {
    "gather.cu", types(T: Element as _, I: Offset as INDEX);
    fn gather(x: &Slice<T>, m: usize, indices: &Slice<I>, out: &mut Slice<T>, n: usize, misses: u64);
    fn scatter(x: &Slice<T>, n: usize, indices: &Slice<I>, out: &mut Slice<T>, m: usize, misses: u64);
}
kernels! {
    "gather_sum.cu", types(T: Scalar as SCALAR, S: Offset as SOURCE);
    fn gather_sum(
        x: &Slice<T>, length: usize, sources: &Slice<S>, n: usize, before: &Slice<S>, out: &mut Slice<T>, runs: usize,
        misses: u64,
    );
    fn gather_sum_of_half(
        symmetry: u32, x: &Slice<T>, length: usize, sources: &Slice<S>, n: usize, before: &Slice<S>, out: &mut Slice<T>,
        runs: usize, misses: u64,
    );
}
kernels! {
    "stage_runs.cu", types();
    fn longest_run(starts: &Slice<u32>, runs: usize, n: usize, longest: &mut Slice<u32>);
    fn part_runs(starts: &Slice<u32>, runs: usize, length: usize, before: &mut Slice<u32>, parts: u64);
    fn stage_codes(
        sources: &Slice<u32>, n: usize, values: u64, starts: &Slice<u32>, runs: usize, before: &Slice<u32>,
        codes: &mut Slice<u32>, pieces: &mut Slice<u32>, counts: &mut Slice<u32>, most: &mut Slice<u32>,
    );
}
kernels! {
    "staged_sum.cu", types(T: Scalar as SCALAR);
    fn staged_sum(
        x: &Slice<T>, length: usize, codes: &Slice<u32>, pieces: &Slice<u32>, counts: &Slice<u32>, before: &Slice<u32>,
        out: &mut Slice<T>,
    );
}
kernels! {
    "scan_bulk.cu", types(T: Element as ELEMENT);
    fn scan_bulk(x: &Slice<T>, out: u64, n: usize, workspace: u64);
}
kernels! {
    "scan_any.cu", types(T: Element as VALUE);
    fn scan_any(x: &Slice<T>, heads: Option<&Slice<u8>>, out: &mut Slice<T>, n: usize, workspace: u64);
}
kernels! {
    "segmented.cu", types(T: Element as VALUE, I: Offset as INDEX);
    fn segment_partition(offsets: &Slice<I>, segments: usize, n: usize, starts: &mut Slice<u64>);
    fn segmented(
        x: &Slice<T>,
        offsets: &Slice<I>,
        out: &mut Slice<T>,
        segments: usize,
        n: usize,
        starts: &Slice<u64>,
        workspace: u64,
    );
}
kernels! {
    "merge.cu", types(K: Key as KEY);
    fn merge_partition(a: &Slice<K>, b: &Slice<K>, n: usize, na: usize, width: usize, co_ranks: &mut Slice<u64>);
    /// Addresses of values are null if there are none.
    fn merge_tiles(
        a: &Slice<K>,
        b: &Slice<K>,
        out: &Slice<K>,
        a_values: u64,
        b_values: u64,
        out_values: u64,
        n: usize,
        na: usize,
        width: usize,
        co_ranks: &Slice<u64>,
    );
    fn merge_sort_tiles(keys: &Slice<K>, out: &Slice<K>, values: u64, values_out: u64, n: usize);
}
/// The kernels of `merge.cu` that also depend on a type of offsets.
pub(super) mod segments {
    use super::{Key, Offset, Slice, kernels};

    kernels! {
        "merge.cu", types(K: Key as KEY, I: Offset as OFFSET);
        fn merge_sort_segments(
            keys: &Slice<K>,
            out: &Slice<K>,
            values: u64,
            values_out: u64,
            offsets: &Slice<I>,
            list: &Slice<u32>,
        );
    }
}
kernels! {
    "segmented_sort.cu", types(K: Key as KEY, I: Offset as OFFSET);
    fn segment_classes(
        offsets: &Slice<I>,
        segments: usize,
        n: usize,
        first: u32,
        second: u32,
        third: u32,
        counts: &mut Slice<u64>,
    );
    fn segment_flags(offsets: &Slice<I>, segments: usize, low: u64, high: u64, flags: &mut Slice<u8>);
    fn element_flags(offsets: &Slice<I>, segment: &Slice<u32>, n: usize, low: u64, flags: &mut Slice<u8>);
    fn short_tiles(offsets: &Slice<I>, segments: usize, starts: &mut Slice<u64>, tiles: u64);
    fn sort_short_segments(
        keys: &Slice<K>,
        values: u64,
        offsets: &Slice<I>,
        starts: &Slice<u64>,
        keys_out: &Slice<K>,
        values_out: u64,
        n: usize,
    );
}
kernels! {
    "index.cu", types(I: Offset as OFFSET);
    fn offsets_by_search(segments: &Slice<u32>, n: usize, offsets: &mut Slice<I>, count: usize);
    fn offsets_of_sorted(segments: &Slice<u32>, n: usize, offsets: &mut Slice<I>, count: usize);
    fn expand_offsets(offsets: &Slice<I>, n: usize, starts: &Slice<u64>, segments: &mut Slice<u32>);
    fn head_flags(offsets: &Slice<I>, count: usize, heads: &mut Slice<u8>, n: usize);
    fn mark_runs(
        starts: &Slice<I>, runs: usize, sources: &mut Slice<I>, n: usize, before: &mut Slice<I>, tiles: u64, tile: u64,
        misses: u64,
    );
    fn sequence(out: &mut Slice<I>, n: usize);
}
kernels! {
    "index.cu", types(; offsets as OFFSET);
    fn tile_starts(offsets: OffsetsRef<'_, Cuda>, count: usize, n: usize, starts: &mut Slice<u64>, tiles: u64);
}
kernels! {
    "keys.cu", types(K: Key as KEY);
    fn is_sorted(keys: &Slice<K>, n: usize, strictly: u32, wrong: &mut Slice<u32>);
    fn run_heads(keys: &Slice<K>, n: usize, heads: &mut Slice<u8>);
}
kernels! {
    "number.cu", types(T: Number as NUMBER);
    fn add_constant(value: T, x: &mut Slice<T>, n: usize);
}
kernels! {
    "pack.cu", types();
    fn pack(high: &Slice<u32>, low: &Slice<u32>, shift: u32, out: &mut Slice<u64>, n: usize);
    fn mirror(
        high: &Slice<u32>, low: &Slice<u32>, beyond: u32, out_high: &mut Slice<u32>, out_low: &mut Slice<u32>, n: usize,
    );
    fn pair_heads(high: &Slice<u32>, low: &Slice<u32>, n: usize, heads: &mut Slice<u8>, count: &mut Slice<u64>);
    fn unpack(packed: &Slice<u64>, shift: u32, high: &mut Slice<u32>, low: &mut Slice<u32>, n: usize);
}
