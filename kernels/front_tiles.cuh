// Products of dense tiles, 64 x 64, by 256 threads: doubles and complex doubles on tensor cores where the chip has them
// for doubles (mma.m8n8k4 of compute capability 8.0), everything else by plain arithmetic with the same distribution.
//
//     warp w of 8: rows 32 (w / 4) .. + 32, columns 16 (w % 4) .. + 16, as 4 x 2 squares of 8 x 8
//     lane l of a square: row l / 4, columns 2 (l % 4) and the next
//
// 16 columns of the left matrix and 16 rows of the right one are in shared memory at a time, while the next ones are
// on their way in registers. Both are padded such that lanes of a warp read different banks.
#pragma once
#include "complex.cuh"

constexpr u32 TILE = 64, DEEP = 16, TILE_THREADS = 256;

template <typename T> struct Stage {
    static constexpr u32 LEFT = TILE + (sizeof(T) > 8 ? 2 : 4), RIGHT = DEEP + 4;
    T left[DEEP * LEFT], right[TILE * RIGHT];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TENSOR_CORES 1
DEVICE void multiply_square(f64& c, f64& d, f64 a, f64 b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c), "+d"(d) : "d"(a), "d"(b));
}
DEVICE void multiply_square(c64& c, c64& d, c64 a, c64 b) {
    multiply_square(c.re, d.re, a.re, b.re);
    multiply_square(c.re, d.re, -a.im, b.im);
    multiply_square(c.im, d.im, a.re, b.im);
    multiply_square(c.im, d.im, a.im, b.re);
}
template <typename T> constexpr bool on_tensor_cores = same<T, f64>::value || same<T, c64>::value;
#else
template <typename T> DEVICE void multiply_square(T&, T&, T, T) {}
template <typename T> constexpr bool on_tensor_cores = false;
#endif

// sums += left right, of `rows` x `depth` and `depth` x `columns` entries, columns `left_stride` and `right_stride`
// apart. Entries beyond these count as zero. Once it returns, no thread reads the left matrix any more.
template <typename T>
DEVICE void add_product(Stage<T>& s, const T* left, u64 left_stride, u32 rows, const T* right, u64 right_stride,
                        u32 columns, u32 depth, T (&sums)[4][2][2]) {
    constexpr u32 EACH = TILE * DEEP / TILE_THREADS;
    const u32 lane = lane_id(), warp = threadIdx.x / 32, top = warp / 4 * 32, first = warp % 4 * 16;
    T a[EACH], b[EACH];
    auto load = [&](u32 from) {
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 place = threadIdx.x + q * TILE_THREADS;
            const u32 i = place % TILE, k = from + place / TILE, l = from + place % DEEP, j = place / DEEP;
            a[q] = i < rows && k < depth ? left[i + k * left_stride] : T();
            b[q] = j < columns && l < depth ? right[l + j * right_stride] : T();
        }
    };
    load(0);
    for (u32 from = 0; from < depth; from += DEEP) {
        __syncthreads();
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 place = threadIdx.x + q * TILE_THREADS;
            s.left[place / TILE * s.LEFT + place % TILE] = a[q];
            s.right[place / DEEP * s.RIGHT + place % DEEP] = b[q];
        }
        __syncthreads();
        if (from + DEEP < depth) load(from + DEEP);
        if constexpr (on_tensor_cores<T>) {
#pragma unroll
            for (u32 k = 0; k < DEEP; k += 4) {
                T p[4], q[2];
#pragma unroll
                for (u32 i = 0; i < 4; i++) p[i] = s.left[(k + lane % 4) * s.LEFT + top + 8 * i + lane / 4];
#pragma unroll
                for (u32 j = 0; j < 2; j++) q[j] = s.right[(first + 8 * j + lane / 4) * s.RIGHT + k + lane % 4];
#pragma unroll
                for (u32 i = 0; i < 4; i++)
#pragma unroll
                    for (u32 j = 0; j < 2; j++) multiply_square(sums[i][j][0], sums[i][j][1], p[i], q[j]);
            }
        } else {
#pragma unroll 4
            for (u32 k = 0; k < DEEP; k++) {
                T p[4], q[2][2];
#pragma unroll
                for (u32 i = 0; i < 4; i++) p[i] = s.left[k * s.LEFT + top + 8 * i + lane / 4];
#pragma unroll
                for (u32 j = 0; j < 4; j++)
                    q[j / 2][j % 2] = s.right[(first + 8 * (j / 2) + 2 * (lane % 4) + j % 2) * s.RIGHT + k];
#pragma unroll
                for (u32 i = 0; i < 4; i++)
#pragma unroll
                    for (u32 j = 0; j < 4; j++)
                        sums[i][j / 2][j % 2] = fused(p[i], q[j / 2][j % 2], sums[i][j / 2][j % 2]);
            }
        }
    }
    __syncthreads();
}

// sums = left right; the rest is as above.
template <typename T>
DEVICE void multiply(Stage<T>& s, const T* left, u64 left_stride, u32 rows, const T* right, u64 right_stride,
                     u32 columns, u32 depth, T (&sums)[4][2][2]) {
#pragma unroll
    for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 j = 0; j < 2; j++) sums[i][j][0] = sums[i][j][1] = T();
    add_product(s, left, left_stride, rows, right, right_stride, columns, depth, sums);
}

// Calls `each` for the entries of a tile that this thread has, with row, column and sum.
template <typename T, typename F> DEVICE void each_of_tile(u32 rows, u32 columns, const T (&sums)[4][2][2], F each) {
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
#pragma unroll
    for (u32 j = 0; j < 4; j++)
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 row = warp / 4 * 32 + 8 * i + lane / 4;
            const u32 column = warp % 4 * 16 + 8 * (j / 2) + 2 * (lane % 4) + j % 2;
            if (row < rows && column < columns) each(row, column, sums[i][j / 2][j % 2]);
        }
}

// Loads the entries of a tile that this thread has, negated: a product is added to them, so that they arrive at the
// same time as its factors.
template <typename T> DEVICE void load_negated(const T* from, u64 stride, u32 rows, u32 columns, T (&values)[4][2][2]) {
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
#pragma unroll
    for (u32 j = 0; j < 4; j++)
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 row = warp / 4 * 32 + 8 * i + lane / 4;
            const u32 column = warp % 4 * 16 + 8 * (j / 2) + 2 * (lane % 4) + j % 2;
            values[i][j / 2][j % 2] = row < rows && column < columns ? -from[row + column * stride] : T();
        }
}
