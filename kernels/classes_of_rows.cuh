// Classes of the rows of a product of sparse matrices, and the number of rows of each.
#pragma once
#include "common.cuh"

constexpr u32 CLASSES = 7;

// The number of rows of each class that a block has met.
struct RowsOfClasses {
    u32 seen[CLASSES];
};

// All threads of the block must call this and the functions below.
DEVICE void begin_counting(RowsOfClasses& rows) {
    if (threadIdx.x < CLASSES) rows.seen[threadIdx.x] = 0;
    __syncthreads();
}

DEVICE void end_counting(const RowsOfClasses& rows, u32* counts) {
    __syncthreads();
    if (threadIdx.x < CLASSES && rows.seen[threadIdx.x]) atomicAdd(counts + threadIdx.x, rows.seen[threadIdx.x]);
}

// The class of a row by its number of products. 0: none. 1 and 2: few enough to be sorted, at most a or b, where a < b.
// 3: more. 4: so many that the row is long.
DEVICE u32 class_of(u64 products, u32 a, u32 b, u32 most) {
    return products == 0 ? 0 : products <= a ? 1 : products <= b ? 2 : products <= most ? 3 : 4;
}
