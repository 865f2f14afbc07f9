// Inverses of blocks of a few unknowns with arbitrary numbers, and the product with them (`ScatteredBlocks` in
// src/backend/layout/blocks.rs).
//
//     | 4 . 1 |      starts  0 2 3      members  0 2 | 1
//     | . 2 . |      places  0 4 5
//     | 1 . 5 |      values  4 1 1 5 | 2      column after column, block after block, in units of a power of two
//
// Values are in single precision also if the matrix is in double precision; a unit per block, a power of two, preserves
// the range of doubles. A warp inverts a block, lane i its row i, in the precision of the matrix; of a Hermitian block
// only the lower triangle is used, so that it is still Hermitian after rounding. In the product LANES lanes take a
// block, one row each: they read neighbouring values, and the same member and element of x at a time. Bytes of a
// product: the values and members once, x and y, and for each block its start, place and unit.
//
// Constants: SCALAR, NARROW (values), OFFSET (of A), TARGET (places), WARPS (per block of threads that inverts),
// MOST_OF_BLOCK (maximum number of unknowns of a block), LANES, THREADS.
#include "columns.cuh"
#include "nodes.cuh"
#include "rounded.cuh"
#include "scalars.cuh"

typedef SCALAR T;
typedef NARROW N;
typedef real_of<T>::type R;
typedef OFFSET I;
typedef TARGET J;

// The power of two with the exponent of `a`, which is not negative; limited such that it has a reciprocal.
DEVICE f64 unit_of(f64 a) {
    const u64 least = sizeof(R) == 8 ? 23 : 903, exponent = bits<u64>(a) >> 52;
    return __longlong_as_double(max(least, min(exponent, 2046 - least)) << 52);
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    group_inverses(u64 n, const I* offsets, const u32* columns, const T* values, u64 blocks, const u32* member_starts,
                   const u32* members, const f64* scales, R part, u32 hermitian, const J* places, R* units, N* inverses) {
    __shared__ T systems[WARPS][MOST_OF_BLOCK * (MOST_OF_BLOCK + 1)];
    T* a = systems[threadIdx.x / 32];
    const u32 lane = threadIdx.x % 32, WIDTH = MOST_OF_BLOCK + 1;
    for (u64 k = u64(blockIdx.x) * WARPS + threadIdx.x / 32; k < blocks; k += u64(gridDim.x) * WARPS) {
        const u32 first = member_starts[k], size = member_starts[k + 1] - first;
        const bool own = lane < size;
        const u64 row = own ? members[first + lane] : 0;
        if (own) {
            for (u32 j = 0; j < size; j++) a[lane * WIDTH + j] = T();
            f64 outside = 0;
            for (u64 at = offsets[row]; at < offsets[row + 1]; at++) {
                const u32 column = columns[at], place = first_from(members, first, first + size, column);
                if (place < first + size && members[place] == column) a[lane * WIDTH + place - first] = values[at];
                else outside += f64(magnitude(values[at])) * scales[column];
            }
            T& diagonal = a[lane * WIDTH + lane];
            diagonal = diagonal + from_real<T>(part) * diagonal;
            if (scales[row] > 0) diagonal = diagonal + from_real<T>(R(outside / scales[row]));
        }
        __syncwarp();
        R largest = 0;
        for (u32 i = 0; i < size; i++) largest = max(largest, magnitude(a[i * WIDTH + i]));
        const R epsilon = sizeof(R) == 8 ? R(2.220446049250313e-16) : R(1.1920929e-7f), smallest = largest * epsilon * R(size);
        for (u32 p = 0; p < size; p++) {
            const R pivot = real_part(a[p * WIDTH + p]);
            const T reciprocal = pivot > smallest ? from_real<T>(R(1) / pivot) : T();
            const T factor = own && lane != p ? a[lane * WIDTH + p] : T();
            __syncwarp();
            if (own) a[p * WIDTH + lane] = lane == p ? reciprocal : a[p * WIDTH + lane] * reciprocal;
            __syncwarp();
            if (own && lane != p)
                for (u32 j = 0; j < size; j++) {
                    const T before = j == p ? T() : a[lane * WIDTH + j];
                    a[lane * WIDTH + j] = before - factor * a[p * WIDTH + j];
                }
            __syncwarp();
        }
        R most = 0;
        if (own)
            for (u32 j = 0; j < size; j++) most = max(most, magnitude(a[lane * WIDTH + j]));
#pragma unroll
        for (u32 with = 16; with; with /= 2) most = max(most, shuffle_xor(most, with));
        const f64 unit = unit_of(f64(most));
        if (lane == 0) units[k] = R(unit);
        if (own)
            for (u32 j = 0; j < size; j++) {
                T value = a[lane * WIDTH + j];
                if (hermitian && j == lane) value = from_real<T>(real_part(value));
                if (hermitian && j > lane) value = conj(a[j * WIDTH + lane]);
                inverses[places[k] + j * size + lane] = rounded<N>(R(1 / unit) * value);
            }
        __syncwarp();
    }
}

// y = alpha M x + beta y, where y is read only if beta is not zero.
extern "C" __global__ void __launch_bounds__(THREADS)
    group_product(u64 blocks, const u32* member_starts, const u32* members, const J* places, const R* units,
                  const N* inverses, T alpha, const T* x, T beta, T* y) {
    const u32 lane = threadIdx.x % LANES;
    const u64 stride = u64(gridDim.x) * (THREADS / LANES);
    for (u64 k = (u64(blockIdx.x) * THREADS + threadIdx.x) / LANES; k < blocks; k += stride) {
        const u32 first = member_starts[k], size = member_starts[k + 1] - first;
        const N* columns = inverses + places[k];
        const T factor = units[k] * alpha;
        for (u32 i = lane; i < size; i += LANES) {
            T sum = T();
            for (u32 j = 0; j < size; j++) sum = sum + widen<T>::from(columns[j * size + i]) * x[members[first + j]];
            T* const to = y + members[first + i];
            *to = is_zero(beta) ? factor * sum : factor * sum + beta * *to;
        }
    }
}
