// The lengths of the rows of a product of sparse matrices, C = A B, that have few products (sorted_products.cuh): the
// columns that differ from the previous one are counted.
//
// If rows are not listed because most have few enough products, the others are assigned a class (classes_of_rows.cuh).
//
// Bytes moved: the columns of B's rows once per product (mostly from the caches), A's once.
//
// Constants: OFFSET (of A and B), GROUP (lanes per row), EACH (products per lane), LONG (number of products from which
// on a row is long), THREADS.
#include "classes_of_rows.cuh"
#include "sorted_products.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    sorted_lengths(u64 count, u32 listed, const u32* rows, const I* a_offsets, const u32* a_columns, const I* b_offsets,
                   const u32* b_columns, u32 deals, u32 next, u32* classes, u32* counts, u32* lengths) {
    __shared__ I of_groups[THREADS / GROUP][ROOM];
    __shared__ RowsOfClasses of_block;
    I* from = of_groups[threadIdx.x / GROUP];
    begin_counting(of_block);
    const u32 mask = mask_of_row();
    const u64 apart = u64(gridDim.x) * (THREADS / GROUP);
    for (u64 i = (u64(blockIdx.x) * THREADS + threadIdx.x) / GROUP; i < count; i += apart) {
        const u64 row = listed ? rows[i] : i;
        const u32 products =
            list_products(from, row, a_offsets, a_columns, b_offsets, mask, LONG, [](u32, u32, u64) {});
        if (deals && products > ROOM) {
            if (lane_id() % GROUP == 0) {
                const u32 own = class_of(products, ROOM, next, LONG - 1);
                classes[row] = own;
                atomicAdd(of_block.seen + own, 1u);
            }
            continue;
        }
        if (deals && lane_id() % GROUP == 0) classes[row] = 0;
        u32 keys[EACH], all;
        load_keys(keys, products, from, b_columns);
        sort_keys(keys, mask);
        lanes_before(__popc(first_of_columns(keys, mask)), all, mask);
        if (lane_id() % GROUP == 0) lengths[row] = all;
        __syncwarp(mask);
    }
    if (deals) end_counting(of_block, counts);
}
