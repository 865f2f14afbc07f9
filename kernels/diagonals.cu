// Finds the diagonals of a matrix that have an entry.
//
//     | 1 . 7 . |     diagonal column - row + rows - 1:  0 2 3 4 5       marks  111101 (bit 0 to the right)
//     | . . 8 . |
//     | . 4 3 . |     One bit per diagonal; one thread per entry, in tiles of equal work (tile_segments.cuh).
//     | 2 . . 1 |
//
// Bytes per entry: its column. There are few diagonals and many entries: if all blocks wrote to the marks directly,
// they would read the same few words, and set bits that are already being set, tens of thousands of times. Therefore a
// block keeps a set of its diagonals in shared memory and adds each to the marks once, at the end; a diagonal without a
// slot is marked directly. Marks are read before they are set, bypassing the first-level cache, which would not see
// what other multiprocessors set.
//
// Constants: OFFSET (u32 or u64), THREADS, ITEMS.
#include "tile_segments.cuh"

#define SLOT_BITS 8
#define SLOTS (1 << SLOT_BITS)
#define PROBES 4
#define FREE (~u32(0))
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

DEVICE void set_mark(u32* marks, u64 place) {
    u32* const mark = marks + place / 32;
    const u32 bit = 1u << place % 32;
    if (!(__ldcg(mark) & bit)) atomicOr(mark, bit);
}

// Adds a number to the set unless it is there. Returns false if no slot is free for it, or if the number is too large.
DEVICE bool insert(u32* seen, u64 place) {
    if (place >= FREE) return false;
    u32 slot = u32(place) * 0x9e3779b1u >> (32 - SLOT_BITS);
#pragma unroll
    for (u32 probe = 0; probe < PROBES; probe++, slot = (slot + 1) % SLOTS) {
        u32 there = *(volatile u32*)(seen + slot);
        if (there == FREE) there = atomicCAS(seen + slot, FREE, u32(place));
        if (there == FREE || there == u32(place)) return true;
    }
    return false;
}

// One block per tile. Columns are loaded while the tile's rows are found.
KERNEL mark_diagonals(u64 rows, const OFFSET* offsets, u64 n, const u64* starts, const u32* columns, u32* marks) {
    __shared__ TileSegments segments;
    __shared__ u32 seen[SLOTS];
    const u64 first = u64(blockIdx.x) * TILE, begin = starts[blockIdx.x];
    const u32 have = u32(min(u64(TILE), n - first));
    u32 column[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; k++) {
        const u32 i = threadIdx.x + k * THREADS;
        column[k] = i < have ? columns[first + i] : 0;
    }
    for (u32 i = threadIdx.x; i < SLOTS; i += THREADS) seen[i] = FREE;
    // The barriers in mark_segments also separate these stores from what follows.
    mark_segments(offsets, begin, starts[blockIdx.x + 1], first, have, segments);
#pragma unroll
    for (u32 k = 0; k < ITEMS; k++) {
        const u32 i = threadIdx.x + k * THREADS;
        if (i >= have) break;
        const u64 place = u64(column[k]) + (rows - 1 - (begin + segments.segment[i]));
        if (!insert(seen, place)) set_mark(marks, place);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < SLOTS; i += THREADS)
        if (seen[i] != FREE) set_mark(marks, seen[i]);
}

// Words that are not zero, up to `most` of them: number << 32 | word, in any order. `counts` has their number and that
// of the bits, and must be zero initially.
KERNEL list_diagonals(const u32* marks, u64 words, u64 most, u64* list, u64* counts) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < words; i += u64(gridDim.x) * THREADS) {
        const u32 word = marks[i];
        if (!word) continue;
        const u64 at = atomicAdd(counts, u64(1));
        if (at < most) list[at] = i << 32 | word;
        atomicAdd(counts + 1, u64(__popc(word)));
    }
}
