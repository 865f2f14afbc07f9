// The lengths of the rows of a product of sparse matrices, C = A B.
//
//     A  | 1 . 7 . |   row 0 of C has the columns of B's rows 0 and 2, each once.  With B = A:  {0, 2} and {1, 2},
//        | . . 8 . |   so 0 1 2.  It has 4 products, so at most 4 entries.
//        | . 4 3 . |
//        | 2 . . 1 |
//
// If all rows of A have few entries, a thread merges rows of B (merged_products.cuh). Otherwise rows are divided into
// classes by their number of products. If there are few, they are sorted (sorted_products.cuh). With more, several
// lanes of a warp take a row (spgemm_lengths.cu), and a block takes rows with too many columns for that: columns of B's
// rows are inserted in a hash table in shared memory, and new ones are counted. Rows that are too long for this use a
// bitmap of their own (spgemm_long.cu).
//
// Bytes moved: the columns of B's rows once per product (mostly from the caches), A's once. Source: Gustavson, ACM TOMS
// 4 (1978); Nagasaka, Nukada and Matsuoka, ICPP 2017 (tables by bins of rows).
//
// Constants: OFFSET (of A and B), TARGET (of C), BLOCK_SLOTS (of a block's table: a power of two), LONG (number of
// products from which on a row is left to spgemm_long.cu), LOOKED_AT (rows that a block examines, at most THREADS),
// CLASS_LANES (lanes per row whose products are counted), THREADS.
#include "classes_of_rows.cuh"
#include "hash_table.cuh"
#include "unknown_length.cuh"

typedef OFFSET I;
typedef TARGET J;

// A lane alone reads rows of B with at most this many entries.
constexpr u64 OF_LANE = 4;

// CLASS_LANES lanes take a row, and read neighbouring entries.
extern "C" __global__ void __launch_bounds__(THREADS)
    product_classes(u64 rows, const I* a_offsets, const u32* a_columns, const I* b_offsets, u32 a, u32 b, u32* classes,
                    u32* counts) {
    __shared__ RowsOfClasses of_block;
    begin_counting(of_block);
    const u32 lane = lane_id() % CLASS_LANES, first_lane = lane_id() / CLASS_LANES * CLASS_LANES;
    const u32 mask = ((1u << CLASS_LANES) - 1) << first_lane;
    for (u64 row = (u64(blockIdx.x) * THREADS + threadIdx.x) / CLASS_LANES; row < rows;
         row += u64(gridDim.x) * THREADS / CLASS_LANES) {
        u64 products = 0;
        for (u64 at = a_offsets[row] + lane, end = a_offsets[row + 1]; at < end; at += CLASS_LANES) {
            const u64 k = a_columns[at];
            products += b_offsets[k + 1] - b_offsets[k];
        }
#pragma unroll
        for (u32 with = CLASS_LANES / 2; with; with /= 2) products += __shfl_xor_sync(mask, products, with);
        if (lane == 0) {
            const u32 own = class_of(products, a, b, LONG - 1);
            classes[row] = own;
            atomicAdd(of_block.seen + own, 1u);
        }
    }
    end_counting(of_block, counts);
}

// Classes by the known number of entries of a row of C, for rows that are not sorted; those of classes 1 to `sorted`
// are. 0: none, or sorted. 1 to 5: at most a, b, c, d or e, which ascend. 6: more, or, if such rows are to be `apart`, more
// than d with so many products that one warp would take long.
extern "C" __global__ void __launch_bounds__(THREADS)
    length_classes(u64 rows, const J* offsets, u32 sorted, u32 apart, u32 a, u32 b, u32 c, u32 d, u32 e, u32* classes,
                   u32* counts) {
    __shared__ RowsOfClasses of_block;
    begin_counting(of_block);
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const u64 length = offsets[row + 1] - offsets[row];
        const u32 of_length = (length > 0) + (length > a) + (length > b) + (length > c) + (length > d) + (length > e);
        const u32 own = classes[row] <= sorted ? 0 : apart && classes[row] == 4 && of_length == 5 ? 6 : of_length;
        classes[row] = own;
        atomicAdd(of_block.seen + own, 1u);
    }
    end_counting(of_block, counts);
}

// Adds the number of elements in which two lists differ to *all.
extern "C" __global__ void __launch_bounds__(THREADS) differing(u64 count, const u32* list, const u32* other, u32* all) {
    u32 differ = 0;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < count; i += u64(gridDim.x) * THREADS)
        differ += list[i] != other[i];
    differ = warp_sum(differ);
    if (lane_id() == 0 && differ) atomicAdd(all, differ);
}

// A block takes a row whose length is UNKNOWN. It examines LOOKED_AT rows at a time, since most are known.
extern "C" __global__ void __launch_bounds__(THREADS)
    block_lengths(u64 count, u32 listed, const u32* rows, const I* a_offsets, const u32* a_columns,
                  const I* b_offsets, const u32* b_columns, u32* lengths) {
    __shared__ u32 table[BLOCK_SLOTS];
    __shared__ u32 unknown[LOOKED_AT];
    __shared__ u32 many, all;
    for (u64 first = u64(blockIdx.x) * LOOKED_AT; first < count; first += u64(gridDim.x) * LOOKED_AT) {
        if (threadIdx.x == 0) many = 0;
        __syncthreads();
        if (threadIdx.x < LOOKED_AT && first + threadIdx.x < count) {
            const u64 row = listed ? u64(rows[first + threadIdx.x]) : first + threadIdx.x;
            if (lengths[row] == UNKNOWN) unknown[atomicAdd(&many, 1u)] = u32(row);
        }
        __syncthreads();
        const u32 rows_here = many;
        for (u32 i = 0; i < rows_here; i++) {
            const u64 row = unknown[i], begin = a_offsets[row], end = a_offsets[row + 1];
            for (u32 j = threadIdx.x; j < BLOCK_SLOTS; j += THREADS) table[j] = FREE;
            if (threadIdx.x == 0) all = 0;
            __syncthreads();
            u32 fresh = 0;
            const auto insert = [&](u64 entry, u64 behind) {
                bool first_of_column, want = entry < behind;
                const u32 column = want ? b_columns[entry] : 0;
                slot_for<1>(table, BLOCK_SLOTS, column, want, false, first_of_column);
                fresh += first_of_column;
            };
            // A lane inserts the columns of a short row of B, all lanes of a warp those of a longer one.
            for (u64 tile = begin + threadIdx.x / 32 * 32; tile < end; tile += THREADS) {
                u64 from = 0, behind = 0;
                if (tile + lane_id() < end) {
                    const u64 k = a_columns[tile + lane_id()];
                    from = b_offsets[k];
                    behind = b_offsets[k + 1];
                }
                const bool is_short = behind - from <= OF_LANE;
                const u64 end_of_short = is_short ? behind : from;
                for (u64 entry = from; __any_sync(ALL, entry < end_of_short); entry++) insert(entry, end_of_short);
                for (u32 left = __ballot_sync(ALL, !is_short); left; left &= left - 1) {
                    const u32 lane = __ffs(left) - 1;
                    const u64 last = __shfl_sync(ALL, behind, lane);
                    for (u64 entry = __shfl_sync(ALL, from, lane); entry < last; entry += 32)
                        insert(entry + lane_id(), last);
                }
            }
            fresh = warp_sum(fresh);
            if (lane_id() == 0) atomicAdd(&all, fresh);
            __syncthreads();
            if (threadIdx.x == 0) lengths[row] = all;
            __syncthreads();
        }
    }
}
