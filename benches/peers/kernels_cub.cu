// A C interface to CUB, with which kernels_cupy.py times CUB and our kernels in one process, on the same arrays.
// Build: nvcc -O3 -std=c++17 -arch=sm_90 -shared -Xcompiler -fPIC kernels_cub.cu -o libkernels_cub.so
// Each function follows CUB's convention: with a null `temp` it only sets `bytes`.
#include <cub/cub.cuh>
#include <cstdint>

typedef uint32_t u32;
typedef uint64_t u64;
typedef double f64;
#define API extern "C" int
#define ARGS void *temp, size_t *bytes
#define HEAD temp, *bytes

struct product {
    const f64 *x, *y;
    __device__ f64 operator()(u64 i) const { return x[i] * y[i]; }
};

#if !defined(PART) || PART == 0
API cub_sum_f64(ARGS, const f64* x, f64* out, u64 n, cudaStream_t s) { return cub::DeviceReduce::Sum(HEAD, x, out, n, s); }
API cub_dot_f64(ARGS, const f64* x, const f64* y, f64* out, u64 n, cudaStream_t s) {
    return cub::DeviceReduce::TransformReduce(HEAD, thrust::counting_iterator<u64>(0), out, n, cuda::std::plus<>{}, product{x, y}, 0.0, s);
}
API cub_scan_u32(ARGS, const u32* x, u32* out, u64 n, cudaStream_t s) { return cub::DeviceScan::ExclusiveSum(HEAD, x, out, n, s); }
API cub_scan_u64(ARGS, const u64* x, u64* out, u64 n, cudaStream_t s) { return cub::DeviceScan::ExclusiveSum(HEAD, x, out, n, s); }
API cub_unique_u32(ARGS, const u32* x, u32* out, u64* count, u64 n, cudaStream_t s) { return cub::DeviceSelect::Unique(HEAD, x, out, count, int64_t(n), s); }
API cub_flagged_u32(ARGS, const u32* x, const uint8_t* f, u32* out, u64* count, u64 n, cudaStream_t s) { return cub::DeviceSelect::Flagged(HEAD, x, f, out, count, int64_t(n), s); }
API cub_reduce_by_key(ARGS, const u64* k, const f64* v, u64* ko, f64* vo, u64* count, u64 n, cudaStream_t s) {
    return cub::DeviceReduce::ReduceByKey(HEAD, k, ko, v, vo, count, cuda::std::plus<>{}, int64_t(n), s);
}
API cub_histogram_u32(ARGS, const u32* x, int* counts, u64 n, int bins, cudaStream_t s) {
    return cub::DeviceHistogram::HistogramEven(HEAD, (const int*)x, counts, bins + 1, 0, bins, (int)n, s);
}
#endif
#if !defined(PART) || PART == 1
API cub_keys_u32(ARGS, const u32* k, u32* ko, u64 n, int bits, cudaStream_t s) { return cub::DeviceRadixSort::SortKeys(HEAD, k, ko, n, 0, bits, s); }
API cub_pairs_u32(ARGS, const u32* k, u32* ko, const u32* v, u32* vo, u64 n, int bits, cudaStream_t s) { return cub::DeviceRadixSort::SortPairs(HEAD, k, ko, v, vo, n, 0, bits, s); }
#endif
#if !defined(PART) || PART == 2
API cub_keys_u64(ARGS, const u64* k, u64* ko, u64 n, int bits, cudaStream_t s) { return cub::DeviceRadixSort::SortKeys(HEAD, k, ko, n, 0, bits, s); }
API cub_pairs_u64(ARGS, const u64* k, u64* ko, const u32* v, u32* vo, u64 n, int bits, cudaStream_t s) { return cub::DeviceRadixSort::SortPairs(HEAD, k, ko, v, vo, n, 0, bits, s); }
#endif
#if !defined(PART) || PART == 3
API cub_merge_sort(ARGS, const u64* k, u64* ko, const u32* v, u32* vo, u64 n, cudaStream_t s) {
    return cub::DeviceMergeSort::SortPairsCopy(HEAD, k, v, ko, vo, n, cuda::std::less<u64>{}, s);
}
API cub_merge_pairs(ARGS, const u64* a, const u32* av, u64 na, const u64* b, const u32* bv, u64 nb, u64* o, u32* ov, cudaStream_t s) {
    return cub::DeviceMerge::MergePairs(HEAD, a, av, (int)na, b, bv, (int)nb, o, ov, cuda::std::less<u64>{}, s);
}
#endif
#if !defined(PART) || PART == 4
API cub_segmented_sum(ARGS, const f64* x, f64* out, u64 segments, const u32* offsets, cudaStream_t s) {
    return cub::DeviceSegmentedReduce::Sum(HEAD, x, out, (int64_t)segments, offsets, offsets + 1, s);
}
API cub_segmented_sort(ARGS, const u32* k, u32* ko, const f64* v, f64* vo, u64 n, u64 segments, const u32* offsets, cudaStream_t s) {
    return cub::DeviceSegmentedSort::StableSortPairs(HEAD, k, ko, v, vo, (int64_t)n, (int64_t)segments, offsets, offsets + 1, s);
}
#endif
