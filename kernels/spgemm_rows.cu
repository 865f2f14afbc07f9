// The rows of a product of sparse matrices, C = A B, whose lengths are known: columns ascending, and values.
//
// GROUP lanes take a row of C. Entries of A's row come one after the other; for each, the lanes share B's row out, look
// each column up in a hash table in shared memory, and add the product to what lies beside it there. A row of B has a
// column once, and the lanes meet before the next entry: so products of an entry of C are added in the order of A's
// row, one by one, as on the host, and every run gives the same bits. At the end the table is closed up, and an entry's
// place in the row is the number of columns below its own.
//
// Bytes moved: B's rows once a product (mostly from the caches), A's and C's once.
// Source: Gustavson, ACM TOMS 4 (1978); Nagasaka, Nukada and Matsuoka, ICPP 2017 (tables by bins of rows).
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), GROUP (lanes a row), SLOTS (of its table, at least twice the
// entries of a row), THREADS.
#include "complex.cuh"
#include "hash_table.cuh"

typedef SCALAR T;
typedef OFFSET I;
typedef TARGET J;

struct Table {
    u32 columns[SLOTS];
    T values[SLOTS];
};

template <typename A> DEVICE A from_lane(A value, u32 lane, u32 mask) {
    return each_word(value, [=](u32 word) { return __shfl_sync(mask, word, lane, GROUP); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    product_rows(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                 const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, u32* columns, T* values) {
    __shared__ Table tables[THREADS / GROUP];
    Table& table = tables[threadIdx.x / GROUP];
    const u32 mask = mask_of_group(), lane = lane_id() % GROUP, below = (1u << lane) - 1;
    for (u64 i = (u64(blockIdx.x) * THREADS + threadIdx.x) / GROUP; i < count; i += u64(gridDim.x) * (THREADS / GROUP)) {
        const u64 row = rows[i], begin = a_offsets[row], end = a_offsets[row + 1], place = offsets[row];
        const u32 length = u32(offsets[row + 1] - place);
        const u32 slots = max(u32(GROUP), 1u << (32 - __clz(2 * length - 1)));
        for (u32 j = lane; j < slots; j += GROUP) table.columns[j] = FREE;
        __syncwarp(mask);
        for (u64 tile = begin; tile < end; tile += GROUP) {
            // Each lane asks for an entry of A and where B's row lies, so that the loads of several are under way.
            u64 from = 0;
            u32 long_ = 0;
            T own = T();
            if (tile + lane < end) {
                const u64 k = a_columns[tile + lane];
                from = b_offsets[k];
                long_ = u32(b_offsets[k + 1] - from);
                own = a_values[tile + lane];
            }
            const u32 entries = u32(min(u64(GROUP), end - tile));
            for (u32 e = 0; e < entries; e++) {
                const u64 first_entry = from_lane(from, e, mask);
                const u32 of_row = __shfl_sync(mask, long_, e, GROUP);
                const T factor = from_lane(own, e, mask);
                for (u32 j = lane; j < of_row; j += GROUP) {
                    const T product = factor * b_values[first_entry + j];
                    bool first;
                    const u32 slot = slot_for(table.columns, slots, b_columns[first_entry + j], first);
                    table.values[slot] = first ? T() + product : table.values[slot] + product;
                }
                __syncwarp(mask);
            }
        }
        // Entries move towards the front, never past what is still to be read.
        u32 found = 0;
        for (u32 j = lane; j < slots; j += GROUP) {
            const u32 column = table.columns[j];
            const T value = table.values[j];
            const u32 taken = (__ballot_sync(mask, column != FREE) & mask) >> (lane_id() / GROUP * GROUP);
            __syncwarp(mask);
            if (column != FREE) {
                const u32 to = found + __popc(taken & below);
                table.columns[to] = column;
                table.values[to] = value;
            }
            found += __popc(taken);
            __syncwarp(mask);
        }
        for (u32 j = lane; j < length; j += GROUP) {
            const u32 column = table.columns[j];
            u32 before = 0;
            for (u32 k = 0; k < length; k++) before += table.columns[k] < column;
            columns[place + before] = column;
            values[place + before] = table.values[j];
        }
        __syncwarp(mask);
    }
}
