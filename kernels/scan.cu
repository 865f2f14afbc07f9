// Prefix sums of a whole array in one pass.
//
//     x    3 1 4 1 5 9 2 6        exclusive: 0 3 4 8 9 14 23 25      inclusive: 3 4 8 9 14 23 25 31
//
// A tile is THREADS * ROWS vectors of 16 bytes. A warp owns a contiguous piece of it, row after row; in a row, a lane
// holds one vector, so every access to global memory is 16 bytes wide and coalesced, and nothing is transposed.
// A lane adds its vector up, the warp scans the lanes of each row by shuffles, the rows are chained, the warps' totals
// meet in shared memory, and the first warp finds what lies before the tile by look-back (lookback.cuh). While it
// walks, the vectors of the block's next tile are already on their way into shared memory (a thread fetches only what
// it will read itself, so no barrier guards them).
//
// Bytes an element: one read and one write, which is the floor. Two passes would read twice.
// Floats: every sum is formed in an order that depends on the size alone, so two runs give the same bits.
//
// Sources: Merrill and Garland 2016 (one pass, look-back); Merrill 2011, chapters 3 and 4 (rows, tuning by constants).
//
// Constants: IN, OUT (element types), ACC (type of the sums), INCLUSIVE (0 or 1), THREADS, ROWS.
#include "lookback.cuh"

#define VEC int(16 / sizeof(IN))
#define WARPS (THREADS / 32)
#define TILE (THREADS * ROWS * VEC)

// The vectors of one tile on their way: slot r * THREADS + thread.
DEVICE void fetch(uint4* stage, const IN* x, u64 tile) {
    const IN* at = x + tile * TILE + (threadIdx.x / 32) * (32 * ROWS * VEC) + lane_id() * VEC;
#pragma unroll
    for (int r = 0; r < ROWS; r++) copy16_async(stage + r * THREADS + threadIdx.x, at + r * 32 * VEC);
}

extern "C" __global__ void __launch_bounds__(THREADS) scan(const IN* x, OUT* out, u64 n, u64* workspace) {
    __shared__ uint4 stage[ROWS * THREADS];
    __shared__ ACC warp_total[WARPS];
    __shared__ ACC tile_prefix;
    __shared__ u64 next_tile;
    __shared__ u32 launch_number;

    const Tickets tickets{workspace};
    const u64 tiles = (n + TILE - 1) / TILE, whole = n / TILE;
    const bool fetchable = aligned16(x), storable = aligned16(out);
    const u32 lane = lane_id(), warp = threadIdx.x / 32;

    if (threadIdx.x == 0) {
        launch_number = tickets.launch();
        next_tile = tickets.take();
    }
    __syncthreads();
    const Descriptors<ACC> descriptors(workspace, launch_number);
    u64 tile = next_tile;
    if (fetchable && tile < whole) fetch(stage, x, tile);
    __syncthreads();

    while (tile < tiles) {
        u64 following = tiles;
        if (threadIdx.x == 0 && gridDim.x < tiles) following = tickets.take();

        IN item[ROWS][VEC];
        const u64 first = tile * TILE + warp * (32 * ROWS * VEC) + lane * VEC;
        if (fetchable && tile < whole) {
            copies_arrived();
#pragma unroll
            for (int r = 0; r < ROWS; r++) memcpy(item[r], stage + r * THREADS + threadIdx.x, 16);
        } else {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    u64 i = first + r * 32 * VEC + v;
                    item[r][v] = i < n ? x[i] : IN();
                }
        }

        // What lies before each row's vector inside the warp's piece.
        ACC before[ROWS], row_total[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            ACC sum = ACC(item[r][0]);
#pragma unroll
            for (int v = 1; v < VEC; v++) sum = sum + ACC(item[r][v]);
            ACC inclusive = warp_inclusive_sum(sum);
            before[r] = shuffle_up(inclusive, 1);
            if (lane == 0) before[r] = ACC();
            row_total[r] = shuffle(inclusive, 31);
        }
        ACC chained = row_total[0];
#pragma unroll
        for (int r = 1; r < ROWS; r++) {
            before[r] = chained + before[r];
            chained = chained + row_total[r];
        }
        if (lane == 0) warp_total[warp] = chained;
        if (threadIdx.x == 0) next_tile = following;
        __syncthreads();

        following = next_tile;
        if (fetchable && following < whole) fetch(stage, x, following);
        ACC offset = warp_total[0], total = offset;  // of the warps before this one, and of all
#pragma unroll
        for (u32 w = 1; w < WARPS; w++) {
            if (w == warp) offset = total;
            total = total + warp_total[w];
        }
        if (warp == 0) {
            ACC prefix = exclusive_prefix<ACC, is_float<ACC>::value>(descriptors, tile, total, ACC());
            if (lane == 0) tile_prefix = prefix;
        }
        __syncthreads();

        ACC start = warp == 0 ? tile_prefix : tile_prefix + offset;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            OUT result[VEC];
            ACC sum = start + before[r];
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                if (!INCLUSIVE) result[v] = OUT(sum);
                sum = sum + ACC(item[r][v]);
                if (INCLUSIVE) result[v] = OUT(sum);
            }
            u64 i = first + r * 32 * VEC;
            if (storable && tile < whole) store16(out + i, result);
            else
#pragma unroll
                for (int v = 0; v < VEC; v++)
                    if (i + v < n) out[i + v] = result[v];
        }
        tile = following;
    }
    if (threadIdx.x == 0) tickets.leave();
}
