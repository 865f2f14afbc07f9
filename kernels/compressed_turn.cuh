// Transposition through shared memory between entries in sections of the compressed format, which are stored lane by
// lane, and those in CSR, which are stored row by row, so that both are read and written by neighbouring lanes. A warp
// takes TURNED entries of each of its 32 rows at a time.
//
// Constants: THREADS, V (values).
#pragma once
#include "compressed.cuh"

#define TURNED_QUADS (sizeof(V) == 16 ? 1 : 2)
#define TURNED (4 * TURNED_QUADS)

struct Turned {
    // One place more than TURNED, so that neighbouring rows start in different banks.
    u32 columns[32][TURNED + 1];
    V values[32][TURNED + 1];
};
DEVICE Turned& turned_by_warp() {
    __shared__ Turned all[THREADS / 32];
    return all[threadIdx.x / 32];
}

// Calls move(row's lane, entry among the TURNED ones, place in CSR) for the entries from `first` on of the warp's rows,
// which start at `start`.
template <typename Move> DEVICE void along_rows(u64 start, u32 length, u32 first, Move move) {
    const u32 j = lane_id() % TURNED;
#pragma unroll 4
    for (u32 i = 0; i < TURNED; i++) {
        const u32 from = i * (32 / TURNED) + lane_id() / TURNED;
        const u64 begin = shuffle(start, from);
        const u32 have = __shfl_sync(ALL, length, from);
        if (first + j < have) move(from, j, begin + first + j);
    }
}
