// The rows of a product of sparse matrices, C = A B, that have few products, and whose lengths are known;
// sorted_products.cuh explains how they are sorted. Products of an entry of C are added one by one in the order of A's
// row, as on the host, so that every run gives the same bits.
//
// Bytes moved: B's rows once per product (mostly from the caches), A's and C's once.
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), GROUP (lanes per row), EACH (products per lane), LONG (number
// of products from which on a row is long), THREADS.
#include "classes_of_rows.cuh"
#include "complex.cuh"
#include "sorted_products.cuh"

typedef SCALAR T;
typedef TARGET J;

// If rows are not listed because most have few enough products, the others are left out, and are assigned a class if
// `deals` is set (classes_of_rows.cuh).
extern "C" __global__ void __launch_bounds__(THREADS)
    sorted_rows(u64 count, u32 listed, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, u32 deals,
                u32 next, u32* classes, u32* counts, u32* columns, T* values) {
    union Listed {
        I from[ROOM];
        u32 keys[ROOM];
    };
    __shared__ Listed lists[THREADS / GROUP];
    __shared__ T products_of[THREADS / GROUP][ROOM];
    __shared__ RowsOfClasses of_block;
    begin_counting(of_block);
    Listed& list = lists[threadIdx.x / GROUP];
    T* product = products_of[threadIdx.x / GROUP];
    const u32 mask = mask_of_row(), lane = lane_id() % GROUP;
    const u64 apart = u64(gridDim.x) * (THREADS / GROUP);
    for (u64 i = (u64(blockIdx.x) * THREADS + threadIdx.x) / GROUP; i < count; i += apart) {
        const u64 row = listed ? rows[i] : i, place = offsets[row];
        const auto factors = [=](u32 first, u32 length, u64 entry) {
            if (length) {
                const T factor = a_values[entry];
                for (u32 j = 0; j < length; j++) product[first + j] = factor;
            }
        };
        const u32 products =
            list_products(list.from, row, a_offsets, a_columns, b_offsets, mask, deals ? LONG : ROOM, factors);
        if (deals && lane == 0) {
            const u32 own = products > ROOM ? class_of(products, ROOM, next, LONG - 1) : 0;
            classes[row] = own;
            if (own) atomicAdd(of_block.seen + own, 1u);
        }
        if (products > ROOM) {
            __syncwarp(mask);
            continue;
        }
        u32 keys[EACH];
        load_keys(keys, products, list.from, b_columns);
#pragma unroll
        for (u32 j = 0; j < EACH; j++) {
            const u32 number = j * GROUP + lane;
            if (number < products) product[number] = product[number] * b_values[list.from[number]];
        }
        __syncwarp(mask);
        sort_keys(keys, mask);
        u32 length = sum_by_columns(keys, products, list.keys, product, mask);
        // If the given pattern is not that of the product, nothing is written beyond it.
        length = u32(min(u64(length), offsets[row + 1] - place));
        for (u32 j = lane; j < length; j += GROUP) {
            columns[place + j] = list.keys[j];
            values[place + j] = product[j];
        }
        __syncwarp(mask);
    }
    if (deals) end_counting(of_block, counts);
}
