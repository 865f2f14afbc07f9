// The rows of a product of sparse matrices, C = A B, that have too many products to be sorted, and whose lengths are
// known: columns in ascending order and values, or values alone if columns are known as well. gustavson.cuh says in
// which order products come.
//
// Each column is looked up in a hash table in shared memory, and the product is added to the sum in its slot. Products
// of an entry of C are thus added in the order of A's row, one by one, as on the host, and every run gives the same
// bits. At the end the columns are sorted in registers.
//
// Bytes moved: B's rows once per product (mostly from the caches), A's and C's once. Sources: Gustavson, ACM TOMS 4
// (1978); Nagasaka, Nukada and Matsuoka, ICPP 2017 (tables by bins of rows).
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), GROUP (lanes per row), SLOTS (of its table, at least twice the
// entries of a row), THREADS.
#include "gustavson.cuh"
#include "hash_table.cuh"
#include "sort_keys.cuh"

typedef SCALAR T;
typedef TARGET J;

// Number of columns that a lane sorts.
constexpr u32 EACH = SLOTS / 2 / GROUP;
// Number of slots of a table that are read at once (H200, 2026-11-26: 27 points A A, 2.9 ms with 4 in tables of 256 and
// 4.2 ms with one; 7 points 160^3, R (A P), 1.4 and 1.1 ms in tables of 128).
constexpr u32 BUCKET = SLOTS > 128 ? 4 : 1;

struct alignas(16) Table {
    u32 columns[SLOTS];
    T sums[SLOTS];
    u32 ascending[SLOTS / 2];
};

// Sorts the columns of a table of `slots` slots in ascending order.
DEVICE void sort_columns(Table& table, u32 slots) {
    const u32 lane = lane_id() % GROUP, below = (1u << lane) - 1;
    u32 found = 0;
    for (u32 j = 0, most = most_of_lanes(slots); j < most; j += GROUP) {
        const u32 column = j < slots ? table.columns[j + lane] : FREE;
        const u32 taken = votes_of_row(column != FREE);
        if (column != FREE) table.ascending[found + __popc(taken & below)] = column;
        found += __popc(taken);
    }
    __syncwarp();
    u32 keys[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; i++) keys[i] = i * GROUP + lane < found ? table.ascending[i * GROUP + lane] : FREE;
    sort_keys(keys, ALL);
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < EACH; i++) table.ascending[lane * EACH + i] = keys[i];
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    product_rows(u64 count, u32 listed, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                 const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, u32 known,
                 const u32* pattern, u32* columns, T* values) {
    __shared__ Table tables[THREADS / GROUP];
    Table& table = tables[threadIdx.x / GROUP];
    const u32 lane = lane_id() % GROUP;
    // All lanes of a warp stay together, including those whose rows are beyond the last.
    for (u64 of_warp = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32 * (32 / GROUP); of_warp < count;
         of_warp += u64(gridDim.x) * (THREADS / GROUP)) {
        const u64 i = of_warp + lane_id() / GROUP;
        const ProductRow of = product_row(i, count, listed, rows, a_offsets, offsets);
        const u64 place = of.place, begin = of.begin, end = of.end;
        const u32 length = of.length;
        const u32 slots = slots_for<GROUP>(length);
        for (u32 j = lane; j < slots; j += GROUP) table.columns[j] = FREE;
        __syncwarp();
        for (u32 j = 0, most = known ? most_of_lanes(length) : 0; j < most; j += GROUP) {
            const bool has = j + lane < length;
            const u32 column = has ? pattern[place + j + lane] : 0;
            bool first;
            const u32 slot = slot_for<BUCKET>(table.columns, slots, column, has, false, first);
            if (has) table.sums[slot] = T();
        }
        __syncwarp();
        const auto use = [&](bool has, T factor, EntryOf<T> entry) {
            const T product = factor * entry.value;
            bool first;
            const u32 slot = slot_for<BUCKET>(table.columns, slots, entry.column, has, known, first);
            if (has) table.sums[slot] = first ? T() + product : table.sums[slot] + product;
        };
        each_product(begin, end, a_columns, a_values, b_offsets, b_columns, b_values, use, [] { return true; });
        if (!known) sort_columns(table, slots);
        for (u32 j = lane; j < length; j += GROUP) {
            const u32 column = known ? pattern[place + j] : table.ascending[j];
            if (!known) columns[place + j] = column;
            values[place + j] = table.sums[slot_of<BUCKET>(table.columns, slots, column)];
        }
        __syncwarp();
    }
}
