// out[s] = x[sources[j]] summed over the segment j = offsets[s] .. offsets[s + 1], from left to right: the values of a
// matrix from those of its triplets. One thread a segment; the order is part of the result.
//
// Where `symmetry` is not 0 a source is 2 i + m, and x[i] is mirrored if m is 1: as it is (1), negated (2), conjugated (3).
// Sources are checked: those beyond x add nothing, and are counted in `misses`.
//
// Constants: SCALAR, SOURCE, OFFSET, THREADS.
#include "complex.cuh"

typedef SCALAR T;

DEVICE T mirrored(T value, u32 symmetry) { return symmetry == 2 ? T(-value) : symmetry == 3 ? conj(value) : value; }

extern "C" __global__ void __launch_bounds__(THREADS)
    gather_sum(u32 symmetry, const T* x, u64 length, const SOURCE* sources, const OFFSET* offsets, T* out, u64 segments, u32* misses) {
    for (u64 s = u64(blockIdx.x) * THREADS + threadIdx.x; s < segments; s += u64(gridDim.x) * THREADS) {
        T sum = T();
        bool first = true;
        for (u64 j = offsets[s], end = offsets[s + 1]; j < end; j++) {
            const u64 source = sources[j], at = symmetry ? source / 2 : source;
            if (at >= length) {
                atomicAdd(misses, 1u);
                continue;
            }
            const T value = symmetry && source % 2 ? mirrored(x[at], symmetry) : x[at];
            sum = first ? value : sum + value;
            first = false;
        }
        out[s] = sum;
    }
}
