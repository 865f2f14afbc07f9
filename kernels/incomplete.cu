// Incomplete factorisation on the pattern of A, and the levels of its rows.
//
// Constants: SCALAR, OFFSET, THREADS.
#include "awaited.cuh"
#include "block_sum.cuh"
#include "columns.cuh"
#include "dense.cuh"

typedef SCALAR T;
typedef OFFSET I;
typedef real_of<T>::type R;
constexpr u32 LANES = 8;         // lanes per row when levels are found
constexpr u32 ROWS = 32 / LANES; // rows per warp

// Launched first: marks all words as not computed, and no turn as taken. words has n + 1 elements.
extern "C" __global__ void __launch_bounds__(THREADS) rows_start(u64 n, u32* words) {
    for (u64 k = u64(blockIdx.x) * THREADS + threadIdx.x; k <= n; k += u64(gridDim.x) * THREADS)
        words[k] = k < n ? 0xffffffffu : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    row_levels(u64 n, const I* offsets, const u32* columns, u32 upper, u32* levels) {
    const u32 lane = lane_id() % LANES;
    while (true) {
        const u64 first = next_turn(levels + n) * ROWS;
        if (first >= n) return;
        const u64 k = first + lane_id() / LANES, row = upper ? n - 1 - k : k;
        u64 at = 0, end = 0;
        if (k < n) {
            const u64 begin = offsets[row], behind = offsets[row + 1];
            at = (upper ? first_from(columns, begin, behind, row + 1) : begin) + lane;
            end = upper ? behind : first_from(columns, begin, behind, row);
        }
        bool done = k >= n;
        u32 level = 0;
        while (true) {
            if (at < end) {
                const u32 below = load_now(levels + columns[at]);
                if (!absent(below)) {
                    level = max(level, below + 1);
                    at += LANES;
                }
            }
            const bool complete = in_group<LANES>(at >= end) && !done;
            if (__any_sync(ALL, complete)) {
                u32 most = level;
#pragma unroll
                for (u32 with = LANES / 2; with; with /= 2) most = max(most, __shfl_xor_sync(ALL, most, with));
                if (complete && lane == 0) store_now(levels + row, most);
                done = done || complete;
            }
            if (__all_sync(ALL, done)) break;
        }
    }
}

DEVICE R size(T a) { return sqrt(abs2(a)); }
DEVICE R inverse_of(R a) { return R(1) / a; }
template <typename C> DEVICE C inverse_of(C a) {
    const R square = abs2(a);
    return {a.re / square, -a.im / square};
}

DEVICE u32 load_ready(const u32* p) {
    u32 v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
DEVICE void store_ready(u32* p, u32 v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

// ILU(0) with one row per warp. Values of other rows are loaded past the first-level cache, and rows come in the order
// of their levels: row i is ready when upper[i], the number of its entries on and left of the diagonal, has been
// written.
extern "C" __global__ void __launch_bounds__(THREADS)
    incomplete_lu(u64 n, const u32* order, const I* offsets, const u32* columns, R diagonal, R smallest, u32 positive,
                  u32* upper, T* values, T* inverses, u32* failed) {
    while (true) {
        const u64 turn = next_turn(upper + n);
        if (turn >= n) return;
        const u64 i = order[turn], begin = offsets[i], end = offsets[i + 1];
        const u64 middle = first_from(columns, begin, end, i);
        const bool stored = middle < end && columns[middle] == i;
        R largest = 0;
        for (u64 at = begin + lane_id(); at < end; at += 32) largest = max(largest, size(values[at]));
#pragma unroll
        for (u32 with = 16; with; with /= 2) largest = max(largest, shuffle_xor(largest, with));
        if (stored && lane_id() == 0) values[middle] = diagonal * values[middle];
        __syncwarp();
        for (u64 at = begin; at < middle; at++) {
            const u64 k = columns[at], of_k = offsets[k], behind = offsets[k + 1];
            u32 left = 0;
            if (lane_id() == 0)
                do left = load_ready(upper + k);
                while (absent(left));
            left = __shfl_sync(ALL, left, 0);
            const T factor = values[at] * load_shared_result(inverses + k);
            __syncwarp();
            if (lane_id() == 0) values[at] = factor;
            for (u64 other = of_k + left + lane_id(); other < behind; other += 32) {
                const u32 column = columns[other];
                const u64 to = first_from(columns, at + 1, end, column);
                if (to < end && columns[to] == column) values[to] = values[to] - factor * load_shared_result(values + other);
            }
            __syncwarp();
        }
        if (lane_id() == 0) {
            T pivot = stored ? values[middle] : T();
            const R of_pivot = positive ? real_part(pivot) : size(pivot);
            const R infinite = R(1) / R(0);
            // A comparison with NaN is false.
            if (of_pivot > smallest * largest && of_pivot < infinite) {
                if (positive) pivot = from_real<T>(of_pivot);
            } else {
                const R instead = largest > 0 && largest < infinite ? largest : R(1);
                pivot = from_real<T>(!positive && real_part(pivot) < 0 ? -instead : instead);
                atomicAdd(failed, 1);
            }
            if (stored) values[middle] = pivot;
            inverses[i] = inverse_of(pivot);
        }
        __threadfence();
        __syncwarp();
        if (lane_id() == 0) store_ready(upper + i, u32(middle - begin) + (stored ? 1 : 0));
    }
}
