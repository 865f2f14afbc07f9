// Scan of a whole array with any operation of combine.cuh, in one pass; with heads it restarts at each of them.
//
//     x      3 1 4 | 1 5 | 9        heads  1 0 0 1 0 1        inclusive sum  3 4 8 | 1 6 | 9       exclusive  0 3 4 | 0 1 | 0
//
// A block takes a tile by ticket and copies it to shared memory; a thread combines ITEMS neighbours (an odd number, so
// that no two threads of a warp use one bank), the threads' results are scanned, and the run that is open at the tile's
// start is found by look-back (open_run.cuh). Then the results are written from shared memory. Sums of whole arrays
// have a faster scan (scan.cu). Bytes per element: one read (and one of the head), one write.
//
// Sources: Merrill 2011, 4.5 (segments as an operator); Merrill and Garland 2016 (one pass); cs378h (segmented scan).
//
// Constants: VALUE, INDEX (u32, u64 for 2^32 elements and more), OP (combine.cuh), INCLUSIVE (0 or 1), THREADS, ITEMS
// (odd).
#include "open_run.cuh"

#define TILE (THREADS * ITEMS)

// `heads` may be null. Input and output may be the same. Grid: one block per tile. Dynamic shared memory: TILE *
// (sizeof(VALUE) + 1).
extern "C" __global__ void __launch_bounds__(THREADS) scan_any(const VALUE* x, const u8* heads, VALUE* out, u64 n, u64* workspace) {
    extern __shared__ uint4 dynamic[];
    __shared__ u64 my_tile;
    __shared__ u32 launch_number;
    VALUE* items = reinterpret_cast<VALUE*>(dynamic);
    u8* starts = reinterpret_cast<u8*>(items + TILE);

    const Tickets tickets{workspace};
    if (threadIdx.x == 0) {
        launch_number = tickets.launch();
        my_tile = tickets.take();
    }
    __syncthreads();
    const u64 tile = my_tile, first = tile * TILE;
    const Descriptors<OpenRun> descriptors(workspace, launch_number);
    const u32 have = first + TILE <= n ? TILE : u32(n - first), mine_at = threadIdx.x * ITEMS;
    for (u32 j = threadIdx.x; j < have; j += THREADS) {
        items[j] = x[first + j];
        starts[j] = heads && heads[first + j];
    }
    __syncthreads();

    OpenRun mine = no_run();
#pragma unroll
    for (u32 j = mine_at; j < mine_at + ITEMS; j++)
        if (j < have) {
            if (starts[j]) mine = {Op::identity(), INDEX(mine.heads + 1)};
            mine.sum = Op::of(mine.sum, items[j]);
        }
    VALUE open = open_before_thread<THREADS / 32>(descriptors, tile, mine);
#pragma unroll
    for (u32 j = mine_at; j < mine_at + ITEMS; j++)
        if (j < have) {
            const VALUE item = items[j];
            if (starts[j]) open = Op::identity();
            if (!INCLUSIVE) items[j] = open;
            open = Op::of(open, item);
            if (INCLUSIVE) items[j] = open;
        }
    __syncthreads();
    for (u32 j = threadIdx.x; j < have; j += THREADS) out[first + j] = items[j];
    if (threadIdx.x == 0) tickets.leave();
}
