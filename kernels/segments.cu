// Reductions and scans of segments, with any operation of combine.cuh.
//
//     x      3 1 4 | 1 5 | 9        heads  1 0 0 1 0 1        segmented scan (sum)  3 4 8 | 1 6 | 9       reduce  8 6 9
//
// reduce: one warp a segment, lanes in turn, then a fixed tree. Right for every length, fast for medium ones.
// scan, in three launches: what each tile leaves behind (the sum since its last head), the scan of these by one block,
// and the tiles again from what precedes them. A pair (head seen, sum since) combines associatively, so a scan without
// heads is the same with none. Bytes an element: x twice, heads twice, out once. Plain, and right; sums of whole arrays
// have a scan of one pass (scan.cu).
//
// Sources: Merrill 2011, 4.5 (segments as an operator); cs378h (segmented scan).
//
// Constants: ELEMENT, OP (combine.cuh), THREADS (a power of two, at most 1024), ITEMS.
#include "combine.cuh"

typedef ELEMENT T;
typedef OP<T> Op;
#define TILE (THREADS * ITEMS)

template <typename I> DEVICE void reduce_segments(const T* x, const I* offsets, u64 segments, T* out) {
    const u64 warps = u64(gridDim.x) * (THREADS / 32);
    for (u64 s = u64(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32; s < segments; s += warps) {
        T sum = Op::identity();
        for (u64 i = offsets[s] + lane_id(), end = offsets[s + 1]; i < end; i += 32) sum = Op::of(sum, x[i]);
#pragma unroll
        for (u32 by = 1; by < 32; by *= 2) {
            T other = shuffle_down(sum, by);
            if (lane_id() + by < 32) sum = Op::of(sum, other);
        }
        if (lane_id() == 0) out[s] = sum;
    }
}
extern "C" __global__ void __launch_bounds__(THREADS) reduce_narrow(const T* x, const u32* offsets, u64 segments, T* out) { reduce_segments(x, offsets, segments, out); }
extern "C" __global__ void __launch_bounds__(THREADS) reduce_wide(const T* x, const u64* offsets, u64 segments, T* out) { reduce_segments(x, offsets, segments, out); }

struct Since {
    T sum;
    u32 head;
};
DEVICE Since then(Since a, Since b) { return {b.head ? b.sum : Op::of(a.sum, b.sum), a.head | b.head}; }

// What precedes this thread in the block; `total` is what the block leaves behind. All threads call it.
DEVICE Since before_thread(Since mine, Since& total) {
    __shared__ Since of_warp[32];
    Since inclusive = mine;
#pragma unroll
    for (u32 by = 1; by < 32; by *= 2) {
        Since other = shuffle_up(inclusive, by);
        if (lane_id() >= by) inclusive = then(other, inclusive);
    }
    __syncthreads();
    if (lane_id() == 31) of_warp[threadIdx.x / 32] = inclusive;
    __syncthreads();
    Since before = {Op::identity(), 0};
    total = before;
    for (u32 w = 0; w < THREADS / 32; w++) {
        if (w == threadIdx.x / 32) before = total;
        total = then(total, of_warp[w]);
    }
    Since neighbour = shuffle_up(inclusive, 1);
    return lane_id() == 0 ? before : then(before, neighbour);
}

DEVICE Since of_thread(const T* x, const u8* heads, u64 first, u64 n) {
    Since mine = {Op::identity(), 0};
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (first + k < n) mine = then(mine, {x[first + k], heads ? u32(heads[first + k] != 0) : 0});
    return mine;
}

extern "C" __global__ void __launch_bounds__(THREADS) scan_left_behind(const T* x, const u8* heads, u64 n, Since* left) {
    for (u64 tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
        Since total;
        before_thread(of_thread(x, heads, tile * TILE + threadIdx.x * ITEMS, n), total);
        if (threadIdx.x == 0) left[tile] = total;
    }
}

// In place: what precedes each tile. One block.
extern "C" __global__ void __launch_bounds__(THREADS) scan_between(Since* left, u64 tiles) {
    Since carry = {Op::identity(), 0};
    for (u64 start = 0; start < tiles; start += THREADS) {
        const u64 tile = start + threadIdx.x;
        Since mine = {Op::identity(), 0}, total;
        if (tile < tiles) mine = left[tile];
        Since before = then(carry, before_thread(mine, total));
        if (tile < tiles) left[tile] = before;
        carry = then(carry, total);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scan_again(const T* x, const u8* heads, u64 n, const Since* before_tile, T* out, u32 inclusive) {
    for (u64 tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
        const u64 first = tile * TILE + threadIdx.x * ITEMS;
        Since total;
        Since before = then(before_tile[tile], before_thread(of_thread(x, heads, first, n), total));
        T sum = before.sum;
        for (int k = 0; k < ITEMS; k++) {
            if (first + k >= n) break;
            if (heads && heads[first + k]) sum = Op::identity();
            const T item = x[first + k];
            if (!inclusive) out[first + k] = sum;
            sum = Op::of(sum, item);
            if (inclusive) out[first + k] = sum;
        }
    }
}

// Bytes of a Since, for the caller's allocation to be checked against.
static_assert(sizeof(Since) <= 32, "a Since has at most 32 bytes");
