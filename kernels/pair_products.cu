// The inner products of a pair of Arnoldi steps (src/backend/pairs.rs): those of every vector of a basis with w_1, w_2
// and the basis's own last two vectors, and those of w_1 and w_2 with each other.
//
// bytes: the basis, as it is stored, w_1 and w_2 once each.
//
//     tile of rows     w_1, w_2, v_(count-2), v_(count-1), widened: shared memory
//     warp             EACH vectors of the basis; a lane has row after row of them, and EACH * 4 sums in registers
//
// If there are too few vectors for every warp to have some, several warps have the same ones and share the rows. Tiles
// are processed from the last to the first, because the last rows of w_2, which the product has just written, are still
// in the second-level cache.
//
// Sums are computed in an order that depends on the shape of the launch alone, so they have the same bits in every run.
//
// Constants: SCALAR (vectors), STORED (the basis), THREADS, ROWS (rows of a tile per thread), BLOCKS (per
// multiprocessor).
#include "several_sums.cuh"

typedef SCALAR T;
typedef STORED V;

#define EACH 4
#define RIGHT 4
#define UNROLL 4
#define WARPS (THREADS / 32)
#define TILE (THREADS * ROWS)

struct Fetched {
    T right[RIGHT][ROWS];

    DEVICE void fetch(u64 start, const T* w1, const T* w2, const V* before, const V* last, u64 n) {
#pragma unroll
        for (int u = 0; u < ROWS; u++) {
            const u64 at = start + threadIdx.x + u * THREADS;
            const bool there = at < n;
            right[0][u] = there ? w1[at] : T();
            right[1][u] = there ? w2[at] : T();
            right[2][u] = there ? widen<T>::from(before[at]) : T();
            right[3][u] = there ? widen<T>::from(last[at]) : T();
        }
    }
};

// out, and the partials of every block: 4 count + 3, as described by PairLayout::products. 0 < count <= 32.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    pair_products(const V* basis, u32 count, const T* w1, const T* w2, u64 n, T* out, T* partials, u32* finished) {
    after_predecessors();
    __shared__ T right[RIGHT][TILE];
    __shared__ T sums[WARPS][EACH * RIGHT], of_squares[3][WARPS];
    const u32 warp = threadIdx.x / 32, lane = lane_id();
    const u32 groups = (count + EACH - 1) / EACH, splits = WARPS / groups;
    const u32 group = warp % groups, split = warp / groups;
    const V* const last = basis + (count - 1) * n;
    const V* const before = count > 1 ? last - n : last;
    const u32 vectors = min(u32(EACH), count - group * EACH);
    T sum[EACH * RIGHT] = {}, own[3] = {};
    const u64 tiles = (n + TILE - 1) / TILE;
    Fetched next;
    if (blockIdx.x < tiles) next.fetch((tiles - 1 - blockIdx.x) * TILE, w1, w2, before, last, n);
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const u64 start = (tiles - 1 - tile) * TILE;
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ROWS; u++) {
            const T a = next.right[0][u], b = next.right[1][u];
#pragma unroll
            for (int k = 0; k < RIGHT; k++) right[k][threadIdx.x + u * THREADS] = next.right[k][u];
            own[0] = own[0] + conj(a) * a;
            own[1] = own[1] + conj(a) * b;
            own[2] = own[2] + conj(b) * b;
        }
        __syncthreads();
        if (tile + gridDim.x < tiles) next.fetch(start - u64(gridDim.x) * TILE, w1, w2, before, last, n);
        if (split >= splits) continue;
        const V* const v = basis + u64(group * EACH) * n + start;
        for (u32 first = split * 32 + lane; first < TILE; first += splits * 32 * UNROLL) {
            V items[UNROLL][EACH];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                const u32 row = first + u * splits * 32;
#pragma unroll
                for (int e = 0; e < EACH; e++) items[u][e] = row < TILE && start + row < n && e < vectors ? v[e * n + row] : V();
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                const u32 row = first + u * splits * 32;
                if (row >= TILE) break;
#pragma unroll
                for (int k = 0; k < RIGHT; k++) {
                    const T x = right[k][row];
#pragma unroll
                    for (int e = 0; e < EACH; e++) sum[e * RIGHT + k] = sum[e * RIGHT + k] + conj(widen<T>::from(items[u][e])) * x;
                }
            }
        }
    }
    const T all = warp_sums(sum);
    if (lane < EACH * RIGHT) sums[warp][sum_of_lane<EACH * RIGHT>()] = all;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const T total = warp_sum(own[k]);
        if (lane == 0) of_squares[k][warp] = total;
    }
    __syncthreads();
    const u32 places = RIGHT * count + 3;
    for (u32 place = threadIdx.x; place < places; place += THREADS) {
        T total = T();
        if (place < RIGHT * count) {
            const u32 k = place / count, i = place % count;
            for (u32 s = 0; s < splits; s++) total = total + sums[s * groups + i / EACH][i % EACH * RIGHT + k];
        } else {
            for (u32 w = 0; w < WARPS; w++) total = total + of_squares[place - RIGHT * count][w];
        }
        if (gridDim.x == 1) {
            out[place] = total;
        } else {
            partials[place * gridDim.x + blockIdx.x] = total;
            __threadfence();
        }
    }
    if (gridDim.x == 1 || !is_last(finished, gridDim.x)) return;
    for (u32 place = warp; place < places; place += WARPS) {
        T total = T();
#pragma unroll 8
        for (u32 block = lane; block < gridDim.x; block += 32) total = total + load_shared_result(partials + place * gridDim.x + block);
        total = warp_sum(total);
        if (lane == 0) out[place] = total;
    }
}
