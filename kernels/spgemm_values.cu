// The values of a product of sparse matrices, C = A B, whose pattern is known.
//
// GROUP lanes take up to ROOM entries of a row of C: their columns and sums lie in shared memory. Entries of A's row
// come one after the other; for each, the lanes share B's row out, find each column among C's by bisection, and add the
// product to its sum. A row of B has a column once, and the lanes meet before the next entry: so products of an entry
// are added in the order of A's row, one by one, as on the host, and every run gives the same bits.
//
// Rows with more than ROOM entries are cut into pieces, which warps of many blocks share out; a piece begins where
// bisection finds its first column in B's row.
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), GROUP (lanes a row), ROOM (entries of C a group), PARTS
// (blocks that share a long row's pieces), THREADS.
#include "columns.cuh"
#include "complex.cuh"
#include "hash_table.cuh"

typedef SCALAR T;
typedef OFFSET I;
typedef TARGET J;

struct Sums {
    u32 columns[ROOM];
    T values[ROOM];
};

// The entries of C from `place` on, `length` of them, in row `row`. CUT: B's rows may reach beyond them.
template <bool CUT>
DEVICE void add_products(Sums& sums, u64 row, u64 place, u32 length, const I* a_offsets, const u32* a_columns,
                         const T* a_values, const I* b_offsets, const u32* b_columns, const T* b_values,
                         const u32* columns, T* values, u32 mask) {
    const u32 lane = lane_id() % GROUP;
    for (u32 i = lane; i < length; i += GROUP) {
        sums.columns[i] = columns[place + i];
        sums.values[i] = T();
    }
    __syncwarp(mask);
    const u32 first = sums.columns[0], last = sums.columns[length - 1];
    for (u64 at = a_offsets[row]; at < a_offsets[row + 1]; at++) {
        const u64 k = a_columns[at], end = b_offsets[k + 1];
        const T factor = a_values[at];
        u64 entry = b_offsets[k];
        if (CUT) entry = first_from(b_columns, entry, end, first);
        for (entry += lane; entry < end; entry += GROUP) {
            const u32 column = b_columns[entry];
            if (CUT && column > last) break;
            const u32 i = first_from(sums.columns, 0u, length, column);
            sums.values[i] = sums.values[i] + factor * b_values[entry];
        }
        __syncwarp(mask);
    }
    for (u32 i = lane; i < length; i += GROUP) values[place + i] = sums.values[i];
    __syncwarp(mask);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    product_values(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                   const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, const u32* columns,
                   T* values) {
    __shared__ Sums of_groups[THREADS / GROUP];
    const u32 mask = mask_of_group();
    for (u64 i = (u64(blockIdx.x) * THREADS + threadIdx.x) / GROUP; i < count; i += u64(gridDim.x) * (THREADS / GROUP)) {
        const u64 row = rows[i], place = offsets[row];
        add_products<false>(of_groups[threadIdx.x / GROUP], row, place, u32(offsets[row + 1] - place), a_offsets, a_columns,
                            a_values, b_offsets, b_columns, b_values, columns, values, mask);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    long_values(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, const u32* columns,
                T* values) {
    __shared__ Sums of_groups[THREADS / GROUP];
    const u32 mask = mask_of_group();
    for (u64 item = blockIdx.x; item < count * PARTS; item += gridDim.x) {
        const u64 row = rows[item / PARTS], end = offsets[row + 1];
        const u64 piece = item % PARTS * (THREADS / GROUP) + threadIdx.x / GROUP;
        for (u64 place = offsets[row] + piece * ROOM; place < end; place += u64(PARTS) * (THREADS / GROUP) * ROOM)
            add_products<true>(of_groups[threadIdx.x / GROUP], row, place, u32(min(u64(ROOM), end - place)), a_offsets,
                               a_columns, a_values, b_offsets, b_columns, b_values, columns, values, mask);
    }
}
