// out[s] = x[sources[j]] summed over the segment j = offsets[s] .. offsets[s + 1], from left to right: the values of a
// matrix from those of its triplets. One thread a segment, UNROLL sources and then elements of x under way; the order is
// part of the result.
//
// Where `symmetry` is not 0 a source is 2 i + m, and x[i] is mirrored if m is 1: as it is (1), negated (2), conjugated (3).
// Sources are checked: those beyond x add nothing, and are counted in `misses`.
//
// Constants: SCALAR, SOURCE, OFFSET, THREADS, UNROLL.
#include "complex.cuh"

typedef SCALAR T;

DEVICE T mirrored(T value, u32 symmetry) { return symmetry == 2 ? T(-value) : symmetry == 3 ? conj(value) : value; }

extern "C" __global__ void __launch_bounds__(THREADS)
    gather_sum(u32 symmetry, const T* x, u64 length, const SOURCE* sources, const OFFSET* offsets, T* out, u64 segments, u32* misses) {
    const u64 s = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (s >= segments) return;
    T sum = T();
    bool first = true;
    for (u64 j = offsets[s], end = offsets[s + 1]; j < end; j += UNROLL) {
        u64 source[UNROLL];
        T value[UNROLL];
        bool here[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++) source[u] = j + u < end ? sources[j + u] : 0;
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++) {
            const u64 at = symmetry ? source[u] / 2 : source[u];
            here[u] = j + u < end && at < length;
            if (j + u < end && !here[u]) atomicAdd(misses, 1u);
            if (here[u]) value[u] = symmetry && source[u] % 2 ? mirrored(x[at], symmetry) : x[at];
        }
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (here[u]) {
                sum = first ? value[u] : sum + value[u];
                first = false;
            }
    }
    out[s] = sum;
}
