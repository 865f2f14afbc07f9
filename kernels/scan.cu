// Prefix sums of a whole array in one pass.
//
//     x    3 1 4 1 5 9 2 6        exclusive: 0 3 4 8 9 14 23 25      inclusive: 3 4 8 9 14 23 25 31
//
// A tile is THREADS * ROWS vectors of 16 bytes. A warp owns a contiguous piece of it, row after row; in a row, a lane
// holds one vector, so every access to global memory is 16 bytes wide and coalesced, and nothing is transposed. A lane
// sums its vector, the warp scans the lanes of each row by shuffles, the rows are chained, and the warps' totals are
// combined in shared memory. The tile's total is published, and its scan, still without the sum before the tile, is
// kept in shared memory, while the vectors of the block's next tile are already being loaded. Only then does the first
// warp find by look-back (lookback.cuh) the sum before the block's previous tile, which is completed and written. A
// thread stores and reloads only its own vectors, so no barrier is needed for them.
//
// `outputs` is n, or n + 1 if an exclusive scan is to end with the total: elements beyond the end are taken as zero.
//
// Bytes per element: one read and one write, which is the minimum. Two passes would read twice. Floating-point sums are
// computed in an order that depends on the size alone, so two runs give the same bits.
//
// Sources: Merrill and Garland 2016 (one pass, look-back); Merrill 2011, chapters 3 and 4 (rows, tuning by constants).
//
// Constants: IN, OUT (element types), ACC (type of the sums), INCLUSIVE (0 or 1), THREADS, ROWS, MIN_BLOCKS (blocks
// that a multiprocessor should hold, which limits registers).
#include "lookback.cuh"

#define VEC int(16 / sizeof(IN))
#define WARPS (THREADS / 32)
#define TILE (THREADS * ROWS * VEC)
#define CHUNKS int(VEC * sizeof(ACC) / 16)  // 16-byte pieces of one vector's sums

// Dynamic shared memory: TILE * sizeof(ACC).
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) scan(const IN* x, OUT* out, u64 n, u64 outputs, u64* workspace) {
    extern __shared__ uint4 aside[];  // [row][chunk][thread]
    // Two of each, used alternately, because a warp may be one tile ahead of another.
    __shared__ ACC warp_total[2][WARPS];
    __shared__ ACC tile_prefix[2];
    __shared__ u64 next_tile[2];
    __shared__ u32 launch_number;

    const Tickets tickets{workspace};
    const u64 tiles = (outputs + TILE - 1) / TILE, whole = n / TILE;
    const bool loadable = aligned16(x), storable = aligned16(out);
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    const u32 place = warp * (32 * ROWS * VEC) + lane * VEC;  // the position of this thread's first vector in a tile

    IN item[ROWS][VEC];
    auto load = [&](u64 tile) {
        const IN* at = x + tile * TILE + place;
        if (loadable && tile < whole)
#pragma unroll
            for (int r = 0; r < ROWS; r++) load16(at + r * 32 * VEC, item[r]);
        else if (tile < tiles)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int v = 0; v < VEC; v++) item[r][v] = tile * TILE + place + r * 32 * VEC + v < n ? at[r * 32 * VEC + v] : IN();
    };

    if (threadIdx.x == 0) {
        launch_number = tickets.launch();
        next_tile[1] = tickets.take();
    }
    __syncthreads();
    const Descriptors<ACC> descriptors(workspace, launch_number);
    u64 tile = next_tile[1], previous = tiles;
    ACC previous_total = ACC();
    load(tile);

    for (u32 side = 0; tile < tiles || previous < tiles; side ^= 1) {
        ACC local[ROWS][VEC], total = ACC();
        u64 following = tiles;
        if (tile < tiles) {
            if (threadIdx.x == 0 && gridDim.x < tiles) following = tickets.take();
            // The scan of the warp's piece.
            ACC row_total[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                ACC sum = ACC();
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    if (!INCLUSIVE) local[r][v] = sum;
                    sum = v == 0 ? ACC(item[r][v]) : sum + ACC(item[r][v]);
                    if (INCLUSIVE) local[r][v] = sum;
                }
                ACC inclusive = warp_inclusive_sum(sum);
                ACC before = shuffle_up(inclusive, 1);
                if (lane == 0) before = ACC();
                row_total[r] = shuffle(inclusive, 31);
#pragma unroll
                for (int v = 0; v < VEC; v++) local[r][v] = before + local[r][v];
            }
            ACC chained = row_total[0];
#pragma unroll
            for (int r = 1; r < ROWS; r++) {
#pragma unroll
                for (int v = 0; v < VEC; v++) local[r][v] = chained + local[r][v];
                chained = chained + row_total[r];
            }
            if (lane == 0) warp_total[side][warp] = chained;
            if (threadIdx.x == 0) next_tile[side] = following;
            __syncthreads();

            following = next_tile[side];
            ACC offset = ACC();  // the sum of the warps before this one
            total = warp_total[side][0];
#pragma unroll
            for (u32 w = 1; w < WARPS; w++) {
                if (w == warp) offset = total;
                total = total + warp_total[side][w];
            }
            if (threadIdx.x == 0) descriptors.publish(tile, total, tile == 0 ? PREFIX : AGGREGATE);
            load(following);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int v = 0; v < VEC; v++) local[r][v] = offset + local[r][v];
        }
        if (previous < tiles) {
            if (warp == 0) {
                ACC prefix = exclusive_prefix<ACC, is_float<ACC>::value>(descriptors, previous, previous_total, ACC());
                if (lane == 0) tile_prefix[side] = prefix;
            }
            __syncthreads();
            const ACC start = tile_prefix[side];
            const u64 first = previous * TILE + place;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                ACC sums[VEC];
                OUT result[VEC];
#pragma unroll
                for (int c = 0; c < CHUNKS; c++)
                    memcpy(reinterpret_cast<char*>(sums) + 16 * c, aside + (r * CHUNKS + c) * THREADS + threadIdx.x, 16);
#pragma unroll
                for (int v = 0; v < VEC; v++) result[v] = OUT(start + sums[v]);
                u64 i = first + r * 32 * VEC;
                if (storable && previous < whole) store16(out + i, result);
                else
#pragma unroll
                    for (int v = 0; v < VEC; v++)
                        if (i + v < outputs) out[i + v] = result[v];
            }
        }
        if (tile < tiles)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < CHUNKS; c++)
                    memcpy(aside + (r * CHUNKS + c) * THREADS + threadIdx.x, reinterpret_cast<char*>(local[r]) + 16 * c, 16);
        previous = tile < tiles ? tile : tiles;
        previous_total = total;
        tile = following;
    }
    if (threadIdx.x == 0) tickets.leave();
}
