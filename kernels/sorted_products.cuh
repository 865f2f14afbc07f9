// Products of sparse matrices, C = A B, whose rows have few products, which are sorted in registers.
//
//     A  | 1 . 7 . |   row 0 of C = A A:  products 1*1 in column 0, 1*7 in 2, 7*4 in 1, 7*3 in 2
//        | . . 8 . |   numbered as they come: 0:0 2:1 1:2 2:3, sorted: 0:0 1:2 2:1 2:3
//        | . 4 3 . |   sums of equal columns, in the order of their numbers: 1, 28, 7 + 21
//        | 2 . . 1 |
//
// GROUP lanes take a row, EACH products per lane. First each entry of A's row writes to shared memory where its
// products' entries of B are; then neighbouring lanes load neighbouring products. A key is a column with the number of
// its product in the lower bits, so that no two keys are equal, and keys are sorted (sort_keys.cuh).
//
// Sources: Gustavson, ACM TOMS 4 (1978); Dalton, Olson and Bell, ACM TOMS 41 (2015) (products expanded and sorted
// within a row).
//
// Constants: OFFSET (of A and B), GROUP (lanes per row), EACH (products per lane; both powers of two), THREADS.
#pragma once
#include "sort_keys.cuh"

typedef OFFSET I;

constexpr u32 ROOM = GROUP * EACH;
// Greater than every column.
constexpr u32 NONE = 0xffffffffu;

template <u32 N> struct log2_of {
    static constexpr u32 value = 1 + log2_of<N / 2>::value;
};
template <> struct log2_of<1> {
    static constexpr u32 value = 0;
};
constexpr u32 NUMBER_BITS = log2_of<ROOM>::value, NUMBERS = ROOM - 1;

DEVICE u32 mask_of_row() {
    if (GROUP == 32) return ALL;
    return ((1u << (GROUP & 31)) - 1) << (lane_id() / GROUP * GROUP);
}

// Returns the sum over the lanes of a row before this one; `all` becomes the sum over all of them.
DEVICE u32 lanes_before(u32 own, u32& all, u32 mask) {
    const u32 lane = lane_id() % GROUP;
    u32 sum = own;
#pragma unroll
    for (u32 by = 1; by < GROUP; by *= 2) {
        const u32 other = __shfl_up_sync(mask, sum, by, GROUP);
        if (lane >= by) sum += other;
    }
    all = __shfl_sync(mask, sum, GROUP - 1, GROUP);
    return sum - own;
}

// Writes the places in B of the products of a row; `each` gets an entry of A, its first product and the number of its
// products. Returns the number of products of the row: if there are more than ROOM, only some are listed, and counting
// stops above `most`.
template <typename F>
DEVICE u32 list_products(I* from, u64 row, const I* a_offsets, const u32* a_columns, const I* b_offsets, u32 mask,
                         u32 most, F each) {
    const u32 lane = lane_id() % GROUP;
    const u64 end = a_offsets[row + 1];
    u32 products = 0;
    for (u64 tile = a_offsets[row]; tile < end && products <= most; tile += GROUP) {
        I first = 0;
        u32 length = 0, all;
        if (tile + lane < end) {
            const u64 k = a_columns[tile + lane];
            first = b_offsets[k];
            // Limited such that sums over all lanes stay below 2^32.
            length = u32(min(u64(b_offsets[k + 1] - first), u64(1) << 24));
        }
        const u32 place = products + lanes_before(length, all, mask);
        const u32 listed = place < ROOM ? min(length, ROOM - place) : 0;
        for (u32 j = 0; j < listed; j++) from[place + j] = first + j;
        each(place, listed, tile + lane);
        products += all;
    }
    __syncwarp(mask);
    return products;
}

// Loads the keys of a row's products. Lanes load neighbouring entries: it does not matter which lane sorts which.
DEVICE void load_keys(u32 (&keys)[EACH], u32 products, const I* from, const u32* b_columns) {
    const u32 lane = lane_id() % GROUP;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        const u32 number = i * GROUP + lane;
        keys[i] = number < products ? b_columns[from[number]] << NUMBER_BITS | number : NONE;
    }
}

// Bit i says whether key i is the first of its column; returns the number of set bits.
DEVICE u32 first_of_columns(const u32 (&keys)[EACH], u32 mask) {
    const u32 before = __shfl_up_sync(mask, keys[EACH - 1], 1, GROUP);
    u32 firsts = 0;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        const u32 last = i ? keys[i ? i - 1 : 0] : before;
        const bool start = i == 0 && lane_id() % GROUP == 0;
        const bool first = keys[i] != NONE && (start || last >> NUMBER_BITS != keys[i] >> NUMBER_BITS);
        firsts |= u32(first) << i;
    }
    return firsts;
}

// Adds the products of each column, whose keys are sorted, in the order of their numbers. The row of C replaces data
// that is no longer needed: its columns are written to `list` and its values to `product`. Returns its length.
template <typename T>
DEVICE u32 sum_by_columns(const u32 (&keys)[EACH], u32 products, u32* list, T* product, u32 mask) {
    const u32 lane = lane_id() % GROUP;
#pragma unroll
    for (u32 j = 0; j < EACH; j++) list[lane * EACH + j] = keys[j];
    __syncwarp(mask);
    const u32 firsts = first_of_columns(keys, mask);
    u32 length;
    u32 to = lanes_before(__popc(firsts), length, mask);
    // Partial sums up to each product of a column. Those of a column that began in another lane belong to that lane.
    T sums[EACH];
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        const T own = keys[j] == NONE ? T() : product[keys[j] & NUMBERS];
        sums[j] = (firsts >> j & 1) || j == 0 ? T() + own : sums[j ? j - 1 : 0] + own;
    }
    if (firsts && keys[EACH - 1] != NONE) {
        T last = sums[EACH - 1];
        const u32 column = keys[EACH - 1] >> NUMBER_BITS;
        for (u32 at = (lane + 1) * EACH; at < products && list[at] >> NUMBER_BITS == column; at++)
            last = last + product[list[at] & NUMBERS];
        sums[EACH - 1] = last;
    }
    __syncwarp(mask);
    bool begun = false;
#pragma unroll
    for (u32 j = 0; j < EACH; j++) {
        begun |= firsts >> j & 1;
        const u32 next = j + 1 < EACH ? j + 1 : j;
        const bool ends = j + 1 == EACH || (firsts >> next & 1) || keys[next] == NONE;
        if (begun && ends && keys[j] != NONE) {
            list[to] = keys[j] >> NUMBER_BITS;
            product[to++] = sums[j];
        }
    }
    __syncwarp(mask);
    return length;
}
