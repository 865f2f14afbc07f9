// The result of combining the elements of the run that is open at some place of an array divided into runs, and the
// number of runs that began before: this is what reduce-by-key and the segmented operations carry from tile to tile.
// The including file defines VALUE, INDEX and OP (combine.cuh).
#pragma once
#include "combine.cuh"
#include "lookback.cuh"

typedef OP<VALUE> Op;

// The result for a part of the input: the number of heads in it, and the combination of the elements since the last
// head (of all elements if there is none).
struct OpenRun {
    VALUE sum;
    INDEX heads;
};
DEVICE OpenRun no_run() { return {Op::identity(), 0}; }
DEVICE OpenRun then(OpenRun a, OpenRun b) {
    b.sum = b.heads ? b.sum : Op::of(a.sum, b.sum);
    b.heads += a.heads;
    return b;
}

// `exclusive_prefix` for OpenRun; the aggregate has been published already. The sum needs only the tiles since the last
// head, mostly the previous tile.
DEVICE OpenRun open_run_before(const Descriptors<OpenRun>& descriptors, u64 tile, OpenRun aggregate) {
    const OpenRun zero = no_run();
    if (tile == 0) return zero;
    INDEX heads = 0;
    VALUE sum = zero.sum;
    bool open = true;  // no head and no prefix seen yet
    const i64 newest = i64(tile) - 1;
    descriptors.walk(newest, zero, [&](OpenRun value, u32 state, u32 nearest, i64 last) {
        u32 stops = __ballot_sync(ALL, lane_id() <= nearest && (state == PREFIX || value.heads));
        if (open && stops) {
            // Fold from the left, from the newest tile with a head or a prefix up to the newest of all.
            open = false;
            u32 from = __ffs(stops) - 1;
            OpenRun at = value;
            u32 again;
            sum = shuffle(at.sum, from);
            while (true) {
                for (i32 lane = i32(from) - 1; lane >= 0; lane--) sum = Op::of(sum, shuffle(at.sum, u32(lane)));
                if (last == newest) break;
                last += 32;
                from = descriptors.group(last, zero, at, again);  // no heads; perhaps prefixes by now: the same bits
                if (from < 32) sum = shuffle(at.sum, from);
            }
        }
        if (lane_id() <= nearest) heads += value.heads;
    });
    heads = warp_sum(heads);
    OpenRun before = {sum, heads};
    if (lane_id() == 0) descriptors.publish(tile, then(before, aggregate), PREFIX);
    return before;
}

// The run that is open where this thread of a block of `WARPS` warps starts, given the result for the thread's own
// elements; publishes the tile and looks back. All threads call it once; it contains barriers.
template <int WARPS> DEVICE VALUE open_before_thread(const Descriptors<OpenRun>& descriptors, u64 tile, OpenRun mine) {
    __shared__ OpenRun warp_run[WARPS];
    __shared__ VALUE tile_open;
    OpenRun inclusive = mine;
#pragma unroll
    for (u32 by = 1; by < 32; by *= 2) {
        OpenRun other = shuffle_up(inclusive, by);
        if (lane_id() >= by) inclusive = then(other, inclusive);
    }
    OpenRun before = shuffle_up(inclusive, 1);
    if (lane_id() == 0) before = no_run();
    if (lane_id() == 31) warp_run[threadIdx.x / 32] = inclusive;
    __syncthreads();
    OpenRun warp_before = no_run(), tile_run = no_run();
    for (u32 w = 0; w < WARPS; w++) {
        if (w == threadIdx.x / 32) warp_before = tile_run;
        tile_run = then(tile_run, warp_run[w]);
    }
    before = then(warp_before, before);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) descriptors.publish(tile, tile_run, tile == 0 ? PREFIX : AGGREGATE);
        OpenRun run = open_run_before(descriptors, tile, tile_run);
        if (threadIdx.x == 0) tile_open = run.sum;
    }
    __syncthreads();
    return before.heads ? before.sum : Op::of(tile_open, before.sum);
}
