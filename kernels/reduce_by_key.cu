// Sums runs of equal neighbouring keys in one pass: the step that turns sorted triplets into matrix entries.
//
//     keys   2 2 5 7 7 7          keys_out   2 5 7
//     values 1 2 4 1 1 1          sums       3 4 3        runs 3
//
// A tile is THREADS * ROWS pairs of neighbours; a warp owns a contiguous piece, row after row, and a lane holds the two
// neighbours of each row. A key that differs from its left neighbour is the head of a run. Sums within a row are passed
// up the lanes by shuffles, as far as runs reach and no farther: the votes for heads give all lanes the length of the
// longest run of the row, so short runs take few steps. Rows are chained, and the warps' results are combined in shared
// memory. A head closes the run before it: heads are packed in shared memory as (key of this run, sum of the run
// before). The tile's aggregate is published, the loads of the next tile are started, and only then does the first warp
// find by look-back (lookback.cuh) how many runs began before the block's previous tile, and the sum of the open run
// there; that tile's heads are then written with coalesced stores, the sums shifted by one.
//
// Every sum is computed in an order that depends on positions alone, also across tiles (open_run.cuh), so two runs give
// the same bits.
//
// Bytes per element: sizeof(KEY) + sizeof(VALUE) read, and as much written per run, which is the minimum.
//
// Sources: Merrill 2011, 4.5 (reduce-by-key as a scan); Merrill and Garland 2016 (one pass); cs378h (segmented scan).
//
// Constants: KEY, VALUE (f32, f64, c32, c64, u32, u64), INDEX (u32 below 2^32 elements, else u64), THREADS, ROWS.
#include "open_run.cuh"

#define WARPS (THREADS / 32)
#define PIECE (32 * ROWS * 2)
#define TILE (THREADS * ROWS * 2)

template <typename ELEMENT> DEVICE void load_pair(const ELEMENT* p, ELEMENT (&v)[2]) {
    if constexpr (sizeof(ELEMENT) == 16) {
        v[0] = p[0];
        v[1] = p[1];
    } else {
        typename unsigned_of<sizeof(ELEMENT)>::type raw[2];
        if constexpr (sizeof(ELEMENT) == 8) {
            ulonglong2 both = __ldg(reinterpret_cast<const ulonglong2*>(p));
            raw[0] = both.x, raw[1] = both.y;
        } else {
            uint2 both = __ldg(reinterpret_cast<const uint2*>(p));
            raw[0] = both.x, raw[1] = both.y;
        }
        v[0] = bits<ELEMENT>(raw[0]);
        v[1] = bits<ELEMENT>(raw[1]);
    }
}

// Dynamic shared memory: 2 * TILE * (sizeof(KEY) + sizeof(VALUE)). Grid: blocks that fit the device, at most one per
// tile. keys_out and sums_out have room for all runs; `runs` receives their number.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
reduce_by_key(const KEY* keys, const VALUE* values, KEY* keys_out, VALUE* sums_out, u64 n, u64* runs, u64* workspace) {
    extern __shared__ uint4 dynamic[];
    // Two of each, used alternately, because a warp may be one tile ahead of another.
    __shared__ OpenRun warp_run[2][WARPS];
    __shared__ OpenRun tile_before[2];
    __shared__ u64 next_tile[2];
    __shared__ u32 launch_number;
    VALUE* all_sums = reinterpret_cast<VALUE*>(dynamic);
    KEY* all_keys = reinterpret_cast<KEY*>(all_sums + 2 * TILE);

    const Tickets tickets{workspace};
    const u64 tiles = (n + TILE - 1) / TILE, whole = n / TILE;
    const u64 key_mask = 2 * sizeof(KEY) - 1, value_mask = (2 * sizeof(VALUE) - 1) & 15;
    const bool pairs = !(reinterpret_cast<u64>(keys) & key_mask) && !(reinterpret_cast<u64>(values) & value_mask);
    const u32 lane = lane_id(), warp = threadIdx.x / 32;

    KEY key[ROWS][2], left_key = KEY();
    VALUE value[ROWS][2];
    auto fetch = [&](u64 tile) {
        const u64 first = tile * TILE + warp * PIECE + lane * 2;
        if (tile < whole && pairs) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) load_pair(keys + first + r * 64, key[r]);
#pragma unroll
            for (int r = 0; r < ROWS; r++) load_pair(values + first + r * 64, value[r]);
        } else if (tile < tiles)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int v = 0; v < 2; v++) {
                    u64 i = first + r * 64 + v;
                    key[r][v] = i < n ? keys[i] : KEY();
                    value[r][v] = i < n ? values[i] : Op::identity();
                }
        if (lane == 0 && first > 0 && first < n) left_key = keys[first - 1];
    };

    if (threadIdx.x == 0) {
        launch_number = tickets.launch();
        next_tile[1] = tickets.take();
        if (blockIdx.x == 0 && n == 0) *runs = 0;
    }
    __syncthreads();
    const Descriptors<OpenRun> descriptors(workspace, launch_number);
    u64 tile = next_tile[1], previous = tiles;
    OpenRun previous_run = no_run();
    fetch(tile);

    for (u32 side = 0; tile < tiles || previous < tiles; side ^= 1) {
        u64 following = tiles;
        OpenRun tile_run = no_run();
        if (tile < tiles) {
            if (threadIdx.x == 0 && gridDim.x < tiles) following = tickets.take();
            const u64 first = tile * TILE + warp * PIECE + lane * 2;

            // Heads: two bits per row. Beyond the end there are none, and nothing is added.
            u32 head[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                u64 i = first + r * 64;
                KEY left = shuffle_up(key[r][1], 1);
                if (lane == 0) left = left_key;
                left_key = shuffle(key[r][1], 31);
                head[r] = u32(i < n && (i == 0 || !same_key(key[r][0], left))) | u32(i + 1 < n && !same_key(key[r][1], key[r][0])) << 1;
            }

            // Sums passed up the lanes of each row. `before[r]`: sum and heads of the row's lanes below this one.
            OpenRun before[ROWS], piece = no_run();
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                VALUE sum = head[r] & 2 ? value[r][1] : Op::of(value[r][0], value[r][1]);
                u32 heads = __ballot_sync(ALL, head[r] != 0);
                u32 second = __ballot_sync(ALL, head[r] == 3);
                u32 reach = ~(heads | 1);  // lanes that still add the value of the lane `by` below
#pragma unroll
                for (u32 by = 1; by < 32; by *= 2) {
                    if (!reach) break;
                    VALUE other = shuffle_up(sum, by);
                    if (reach >> lane & 1) sum = Op::of(other, sum);
                    reach &= reach << by;
                }
                before[r].sum = shuffle_up(sum, 1);
                before[r].heads = INDEX(__popc(heads & lanes_below()) + __popc(second & lanes_below()));
                if (lane == 0) before[r].sum = Op::identity();
                OpenRun row = {shuffle(sum, 31), INDEX(__popc(heads) + __popc(second))};
                // Chained: the result of the warp's piece before this lane.
                bool since_piece = !(heads & lanes_below());
                if (since_piece) before[r].sum = Op::of(piece.sum, before[r].sum);
                before[r].heads += piece.heads;
                piece = then(piece, row);
            }
            if (lane == 0) warp_run[side][warp] = piece;
            if (threadIdx.x == 0) next_tile[side] = following;
            __syncthreads();

            following = next_tile[side];
            OpenRun warp_before = no_run();
            tile_run = warp_run[side][0];
#pragma unroll
            for (u32 w = 1; w < WARPS; w++) {
                if (w == warp) warp_before = tile_run;
                tile_run = then(tile_run, warp_run[side][w]);
            }
            if (threadIdx.x == 0) descriptors.publish(tile, tile_run, tile == 0 ? PREFIX : AGGREGATE);
            VALUE* packed_sums = all_sums + side * TILE;
            KEY* packed_keys = all_keys + side * TILE;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                // The open run before the pair, within the tile; for the tile's first head, the part before the tile is
                // still missing.
                VALUE open = before[r].heads ? before[r].sum : Op::of(warp_before.sum, before[r].sum);
                u32 place = u32(before[r].heads + warp_before.heads);
                if (head[r] & 1) {
                    packed_keys[place] = key[r][0];
                    packed_sums[place] = open;
                    place++;
                    open = value[r][0];
                } else open = Op::of(open, value[r][0]);
                if (head[r] & 2) {
                    packed_keys[place] = key[r][1];
                    packed_sums[place] = open;
                }
            }
            fetch(following);
        }
        if (previous < tiles) {
            if (warp == 0) {
                OpenRun run = open_run_before(descriptors, previous, previous_run);
                if (lane == 0) tile_before[side] = run;
            }
            __syncthreads();
            const OpenRun run = tile_before[side];
            const VALUE* packed_sums = all_sums + (side ^ 1) * TILE;
            const KEY* packed_keys = all_keys + (side ^ 1) * TILE;
            const u32 heads = u32(previous_run.heads);
            const u64 start = run.heads;
            for (u32 j = threadIdx.x; j < heads; j += THREADS) keys_out[start + j] = packed_keys[j];
            for (u32 j = threadIdx.x; j < heads; j += THREADS) {
                VALUE sum = packed_sums[j];
                if (j == 0) sum = Op::of(run.sum, sum);  // closes a run that may have begun in an earlier tile
                if (start + j > 0) sums_out[start + j - 1] = sum;
            }
            if (previous == tiles - 1 && threadIdx.x == 0) {
                OpenRun all = then(run, previous_run);
                sums_out[all.heads - 1] = all.sum;
                *runs = all.heads;
            }
        } else __syncthreads();
        previous = tile < tiles ? tile : tiles;
        previous_run = tile_run;
        tile = following;
    }
    if (threadIdx.x == 0) tickets.leave();
}
