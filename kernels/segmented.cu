// Reductions of segments of an array, and scans that restart with every segment, for segments of any length.
//
//     offsets 0 2 2 5        x  a b | | c d e        reduce: a+b  0  c+d+e        scan: a a+b c c+d c+d+e
//
// Work is divided evenly over elements and segments together, along the path that a merge of the elements' positions
// with the segments' ends would take: a step of the path either takes an element or ends a segment. segment_partition
// finds where every TILE-th step of the path is, with one thread each. A block loads the elements and ends of its TILE
// steps to shared memory; a thread finds its own ITEMS steps there and takes them one by one. Sums that are open at a
// thread's start come from earlier threads by a scan, those that are open at the tile's start by look-back
// (open_run.cuh). Therefore neither many empty segments nor a giant one are slower than segments of similar lengths,
// and every sum is computed in an order that depends on positions alone.
//
// Bytes: each element once (read; and written, for the scan), an offset and a result once per segment.
//
// Sources: Green, McColl and Bader 2012 and Merrill and Garland 2016 (merge path); cs378h (segmented scan).
//
// Constants: VALUE, INDEX (offsets: u32 or u64), OP (combine.cuh), MODE, THREADS, ITEMS.
#include "open_run.cuh"

#define REDUCE 0
#define SCAN 1            // inclusive
#define SCAN_EXCLUSIVE 2
#define WARPS (THREADS / 32)
#define TILE (THREADS * ITEMS)

// Number of segments ended by the first `k` steps of the path: segment i ends before element j is taken if ends[i] <=
// j.
template <typename End> DEVICE u64 ended(u64 k, u64 segments, u64 n, End end) {
    u64 low = k > n ? k - n : 0, high = k < segments ? k : segments;
    while (low < high) {
        u64 i = low + (high - low) / 2;
        if (end(i) <= k - 1 - i) low = i + 1;
        else high = i;
    }
    return low;
}

// starts[t]: number of segments ended before tile t; one thread per tile, and one more for the end of the path.
extern "C" __global__ void segment_partition(const INDEX* offsets, u64 segments, u64 n, u64* starts) {
    const u64 t = u64(blockIdx.x) * blockDim.x + threadIdx.x, tiles = (n + segments + TILE - 1) / TILE, base = offsets[0];
    if (t > tiles) return;
    n = offsets[segments] - base;
    const u64 steps = n + segments;
    const u64 k = t * TILE < steps ? t * TILE : steps;
    starts[t] = ended(k, segments, n, [&](u64 i) { return u64(offsets[i + 1]) - base; });
}

// `n`: the length of x, at least offsets[segments]; elements outside of all segments are not changed. `out`: one result
// per segment for REDUCE, n for the scans. Dynamic shared memory: TILE * (sizeof(VALUE) + 4). Grid: one block per tile
// of the path, tiles = ceil((n + segments) / TILE).
extern "C" __global__ void __launch_bounds__(THREADS)
    segmented(const VALUE* x, const INDEX* offsets, VALUE* out, u64 segments, u64 n, const u64* starts, u64* workspace) {
    extern __shared__ uint4 dynamic[];
    __shared__ u64 my_tile;
    __shared__ u32 launch_number;
    VALUE* items = reinterpret_cast<VALUE*>(dynamic);     // the tile's elements, then its segments' results
    u32* ends = reinterpret_cast<u32*>(items + TILE);     // of its segments, counted from the tile's first element

    const Tickets tickets{workspace};
    if (threadIdx.x == 0) {
        launch_number = tickets.launch();
        my_tile = tickets.take();
    }
    __syncthreads();
    const u64 tile = my_tile, base = offsets[0];
    n = offsets[segments] - base;
    x += base;
    const u64 steps = n + segments;
    const Descriptors<OpenRun> descriptors(workspace, launch_number);
    const u64 first_step = tile * TILE < steps ? tile * TILE : steps, last_step = first_step + TILE < steps ? first_step + TILE : steps;
    const u64 first_segment = starts[tile], first_item = first_step - first_segment;
    const u32 segment_count = u32(starts[tile + 1] - first_segment), item_count = u32(last_step - first_step) - segment_count;
    for (u32 i = threadIdx.x; i < segment_count; i += THREADS) ends[i] = u32(offsets[first_segment + i + 1] - base - first_item);
    VALUE mine_in_tile[ITEMS];  // all are loaded before the first is stored
#pragma unroll
    for (u32 v = 0; v < ITEMS; v++) {
        const u32 i = v * THREADS + threadIdx.x;
        if (i < item_count) mine_in_tile[v] = x[first_item + i];
    }
#pragma unroll
    for (u32 v = 0; v < ITEMS; v++) {
        const u32 i = v * THREADS + threadIdx.x;
        if (i < item_count) items[i] = mine_in_tile[v];
    }
    __syncthreads();

    // This thread's steps: it starts in segment s of the tile, at item i.
    const u32 count = item_count + segment_count, k = threadIdx.x * ITEMS < count ? threadIdx.x * ITEMS : count;
    const u32 last = k + ITEMS < count ? k + ITEMS : count;
    const u32 first_s = u32(ended(k, segment_count, item_count, [&](u64 i) { return u64(ends[i]); }));
    const auto end_of = [&](u32 s) { return s < segment_count ? ends[s] : ~0u; };
    u32 s = first_s, i = k - s, end = end_of(s);
    OpenRun mine = no_run();  // heads: segments that ended here
#pragma unroll
    for (int step = 0; step < ITEMS; step++)
        if (k + step < last) {
            if (end <= i) {
                // Results are stored after the elements.
                if (MODE == REDUCE) items[item_count + s] = mine.sum;
                mine.sum = Op::identity();
                mine.heads++;
                end = end_of(++s);
            } else mine.sum = Op::of(mine.sum, items[i++]);
        }

    VALUE open = open_before_thread<WARPS>(descriptors, tile, mine);

    if (MODE == REDUCE) {
        // Only the first segment that ended here was open before.
        if (mine.heads) items[item_count + first_s] = Op::of(open, items[item_count + first_s]);
    } else {
        s = first_s, i = k - s, end = end_of(s);
#pragma unroll
        for (int step = 0; step < ITEMS; step++)
            if (k + step < last) {
                if (end <= i) {
                    open = Op::identity();
                    end = end_of(++s);
                } else {
                    const VALUE element = items[i], next = Op::of(open, element);
                    items[i++] = MODE == SCAN ? next : open;
                    open = next;
                }
            }
    }
    __syncthreads();
    if (MODE == REDUCE)
        for (u32 j = threadIdx.x; j < segment_count; j += THREADS) out[first_segment + j] = items[item_count + j];
    else
        for (u32 j = threadIdx.x; j < item_count; j += THREADS) out[base + first_item + j] = items[j];
    if (threadIdx.x == 0) tickets.leave();
}
