// Which diagonals of a matrix have an entry.
//
//     | 1 . 7 . |     diagonal column - row + rows - 1:  0 2 3 4 5       marks  111101 (bit 0 to the right)
//     | . . 8 . |
//     | . 4 3 . |     A bit a diagonal; a thread an entry, tiles of even work (tile_segments.cuh).
//     | 2 . . 1 |
//
// Bytes an entry: its column. Few bits are set often, and to set one that is there already would wait for an atomic operation. So marks are
// looked at before they are set, past the first-level cache, which would not see what other multiprocessors set; and before that a block
// looks for the diagonal among those that it saw last, of which some slots of shared memory keep one each.
//
// Constants: OFFSET (u32 or u64), THREADS, ITEMS.
#include "tile_segments.cuh"

#define SLOTS 256
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

KERNEL mark_diagonals(u64 rows, const OFFSET* offsets, u64 n, const u64* starts, const u32* columns, u32* marks) {
    __shared__ u64 seen[SLOTS];
    // No diagonal has this number; each_element's barriers come before seen is read.
    for (u32 i = threadIdx.x; i < SLOTS; i += THREADS) seen[i] = ~u64(0);
    each_element(offsets, n, starts, [&](u64 row, u64, u64 at) {
        const u64 place = u64(columns[at]) + (rows - 1 - row);
        // Several threads may write a slot, so it is exchanged; whichever it keeps was marked or is being marked.
        u64* const slot = seen + (u32(place) * 0x9e3779b1u >> 16) % SLOTS;
        if (*(volatile u64*)slot == place) return;
        u32* const mark = marks + place / 32;
        const u32 bit = 1u << place % 32;
        if (!(__ldcg(mark) & bit)) atomicOr(mark, bit);
        atomicExch(slot, place);
    });
}

// Words that are not zero, up to `most` of them: number << 32 | word, in whatever order they come. `counts` has their number and
// that of the bits, and starts from zero.
KERNEL list_diagonals(const u32* marks, u64 words, u64 most, u64* list, u64* counts) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < words; i += u64(gridDim.x) * THREADS) {
        const u32 word = marks[i];
        if (!word) continue;
        const u64 at = atomicAdd(counts, u64(1));
        if (at < most) list[at] = i << 32 | word;
        atomicAdd(counts + 1, u64(__popc(word)));
    }
}
