// The lengths of the rows of a product of sparse matrices, C = A B, that have too many products to be sorted, but few
// columns. gustavson.cuh says in which order products come. The columns of a row are inserted in a hash table in shared
// memory, and new ones are counted. A row whose table becomes too full gets the length UNKNOWN, and is left to
// block_lengths of spgemm.cu.
//
// Bytes moved: the columns of B's rows once per product (mostly from the caches), A's once. Source: Nagasaka, Nukada
// and Matsuoka, ICPP 2017 (tables by bins of rows).
//
// Constants: OFFSET (of A and B), GROUP (lanes per row), SLOTS (of its table: a power of two), THREADS.
#include "gustavson.cuh"
#include "hash_table.cuh"
#include "unknown_length.cuh"

// Number of slots that are read for a column before the table counts as too full.
constexpr u32 MOST_PROBES = 16;

extern "C" __global__ void __launch_bounds__(THREADS)
    product_lengths(u64 count, u32 listed, const u32* rows, const I* a_offsets, const u32* a_columns,
                    const I* b_offsets, const u32* b_columns, u32* lengths) {
    __shared__ alignas(16) u32 tables[THREADS / GROUP][SLOTS];
    u32* table = tables[threadIdx.x / GROUP];
    const u32 lane = lane_id() % GROUP;
    const Nothing* const none = nullptr;
    // All lanes of a warp stay together, including those whose rows are beyond the last.
    for (u64 of_warp = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32 * (32 / GROUP); of_warp < count;
         of_warp += u64(gridDim.x) * (THREADS / GROUP)) {
        const u64 i = of_warp + lane_id() / GROUP;
        const u64 row = i < count ? listed ? u64(rows[i]) : i : 0;
        const u64 begin = i < count ? u64(a_offsets[row]) : 0, end = i < count ? u64(a_offsets[row + 1]) : 0;
        for (u32 j = 4 * lane; j < SLOTS; j += 4 * GROUP)
            *reinterpret_cast<uint4*>(table + j) = make_uint4(FREE, FREE, FREE, FREE);
        __syncwarp();
        u32 fresh = 0;
        bool full = false;
        const auto use = [&](bool want, Nothing, EntryOf<Nothing> entry) {
            u32 at = first_slot<1>(SLOTS, entry.column);
            for (u32 probe = 0; probe < MOST_PROBES && __any_sync(ALL, want); probe++)
                if (want) {
                    const u32 before = atomicCAS(table + at, FREE, entry.column);
                    fresh += before == FREE;
                    want = before != FREE && before != entry.column;
                    at = (at + 1) & (SLOTS - 1);
                }
            full |= want;
        };
        each_product(begin, end, a_columns, none, b_offsets, b_columns, none, use, [&] { return !full; });
#pragma unroll
        for (u32 with = GROUP / 2; with; with /= 2) fresh += __shfl_xor_sync(ALL, fresh, with);
        const u32 gave_up = votes_of_row(full);
        if (lane == 0 && i < count) lengths[row] = gave_up ? UNKNOWN : fresh;
        __syncwarp();
    }
}
