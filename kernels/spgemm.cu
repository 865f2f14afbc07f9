// How long the rows of a product of sparse matrices are, C = A B.
//
//     A  | 1 . 7 . |   row 0 of C has the columns of B's rows 0 and 2, each once.  With B = A:  {0, 2} and {1, 2},
//        | . . 8 . |   so 0 1 2.  Its products are 4: the most entries that it can have.
//        | . 4 3 . |
//        | 2 . . 1 |
//
// Rows are dealt by the number of their products. Most have so few that these are sorted (sorted_products.cuh). For
// others a warp takes a row, each lane an entry of A's row at a time, and puts the columns of B's row into a hash table
// in shared memory (open addressing), and a block does for rows with more. Which lane comes first decides where a
// column lies in the table, and nothing else.
//
// Bytes moved: the columns of B's rows once a product (mostly from the caches), A's once.
// Source: Gustavson, ACM TOMS 4 (1978); Nagasaka, Nukada and Matsuoka, ICPP 2017 (tables by bins of rows).
//
// Constants: OFFSET (of A and B), TARGET (of C), GROUP (lanes a row), SLOTS (of its table: a power of two), BLOCK_SLOTS
// (of a block's), LARGE, LONG (products from which a row is one of a block, and one of spgemm_long.cu), CLASS_LANES
// (lanes a row whose products are counted), THREADS.
#include "hash_table.cuh"

typedef OFFSET I;
typedef TARGET J;

DEVICE u32 group_sum(u32 v, u32 mask) {
#pragma unroll
    for (u32 with = GROUP / 2; with; with /= 2) v += __shfl_xor_sync(mask, v, with);
    return v;
}

// 0: no products. 1 to 5: as many as are sorted, at most a, b, c, d or e, which ascend but for those that are 0: for
// columns that are too large. 6: as many as a warp's table has room for. 7: a block's. 8: more.
// CLASS_LANES lanes take a row, and read its entries side by side.
extern "C" __global__ void __launch_bounds__(THREADS)
    product_classes(u64 rows, const I* a_offsets, const u32* a_columns, const I* b_offsets, u32 a, u32 b, u32 c, u32 d,
                    u32 e, u32* classes) {
    const u32 lane = lane_id() % CLASS_LANES, mask = ((1u << CLASS_LANES) - 1) << (lane_id() / CLASS_LANES * CLASS_LANES);
    for (u64 row = (u64(blockIdx.x) * THREADS + threadIdx.x) / CLASS_LANES; row < rows;
         row += u64(gridDim.x) * THREADS / CLASS_LANES) {
        u64 products = 0;
        for (u64 at = a_offsets[row] + lane, end = a_offsets[row + 1]; at < end; at += CLASS_LANES) {
            const u64 k = a_columns[at];
            products += b_offsets[k + 1] - b_offsets[k];
        }
#pragma unroll
        for (u32 with = CLASS_LANES / 2; with; with /= 2) products += __shfl_xor_sync(mask, products, with);
        if (lane) continue;
        classes[row] = products == 0   ? 0
                       : products <= a ? 1
                       : products <= b ? 2
                       : products <= c ? 3
                       : products <= d ? 4
                       : products <= e ? 5
                       : products < LARGE ? 6
                       : products < LONG  ? 7
                                          : 8;
    }
}

// The same by the entries of a row of C, which is known, for rows that are not sorted: a warp's, 1, or longer, 2.
// Others become 0.
extern "C" __global__ void __launch_bounds__(THREADS)
    length_classes(u64 rows, const J* offsets, u32 wide, u32* classes) {
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const u64 length = offsets[row + 1] - offsets[row];
        classes[row] = classes[row] < 6 || length == 0 ? 0 : length < wide ? 1 : 2;
    }
}

// Fills the table; how many columns it holds then. `slots` becomes how many of its places are in use.
DEVICE u32 fill(u32* table, u32& slots, u64 row, const I* a_offsets, const u32* a_columns, const I* b_offsets,
                const u32* b_columns, u32 mask) {
    const u32 lane = lane_id() % GROUP;
    const u64 begin = a_offsets[row], end = a_offsets[row + 1];
    u32 products = 0;
    for (u64 at = begin + lane; at < end; at += GROUP) products += u32(b_offsets[u64(a_columns[at]) + 1] - b_offsets[a_columns[at]]);
    products = group_sum(products, mask);
    slots = max(u32(GROUP), 1u << (32 - __clz(2 * products - 1)));
    for (u32 i = lane; i < slots; i += GROUP) table[i] = FREE;
    __syncwarp(mask);
    u32 fresh = 0;
    for (u64 at = begin + lane; at < end; at += GROUP) {
        const u64 k = a_columns[at], behind = b_offsets[k + 1];
        for (u64 entry = b_offsets[k]; entry < behind; entry++) {
            bool first;
            slot_for(table, slots, b_columns[entry], first);
            fresh += first;
        }
    }
    fresh = group_sum(fresh, mask);
    __syncwarp(mask);
    return fresh;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    product_lengths(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const I* b_offsets,
                    const u32* b_columns, u32* lengths) {
    __shared__ u32 tables[THREADS / GROUP][SLOTS];
    u32* table = tables[threadIdx.x / GROUP];
    const u32 mask = mask_of_group();
    for (u64 i = (u64(blockIdx.x) * THREADS + threadIdx.x) / GROUP; i < count; i += u64(gridDim.x) * (THREADS / GROUP)) {
        u32 slots;
        const u32 found = fill(table, slots, rows[i], a_offsets, a_columns, b_offsets, b_columns, mask);
        if (lane_id() % GROUP == 0) lengths[rows[i]] = found;
        __syncwarp(mask);
    }
}

// A block takes a row.
extern "C" __global__ void __launch_bounds__(THREADS)
    block_lengths(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const I* b_offsets,
                  const u32* b_columns, u32* lengths) {
    __shared__ u32 table[BLOCK_SLOTS];
    __shared__ u32 all;
    for (u64 i = blockIdx.x; i < count; i += gridDim.x) {
        const u64 row = rows[i], begin = a_offsets[row], end = a_offsets[row + 1];
        for (u32 j = threadIdx.x; j < BLOCK_SLOTS; j += THREADS) table[j] = FREE;
        if (threadIdx.x == 0) all = 0;
        __syncthreads();
        u32 fresh = 0;
        for (u64 at = begin + threadIdx.x / 32; at < end; at += THREADS / 32) {
            const u64 k = a_columns[at], behind = b_offsets[k + 1];
            for (u64 entry = b_offsets[k] + lane_id(); entry < behind; entry += 32) {
                bool first;
                slot_for(table, BLOCK_SLOTS, b_columns[entry], first);
                fresh += first;
            }
        }
        fresh = warp_sum(fresh);
        if (lane_id() == 0) atomicAdd(&all, fresh);
        __syncthreads();
        if (threadIdx.x == 0) lengths[row] = all;
        __syncthreads();
    }
}
