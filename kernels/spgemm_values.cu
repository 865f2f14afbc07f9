// The values of long rows of a product of sparse matrices, C = A B, whose pattern is known.
//
// A row is cut into pieces of at most ROOM entries, which warps of many blocks share out: their columns and sums lie in
// shared memory. Entries of A's row come one after the other; for each, bisection finds where B's row enters the piece,
// the lanes share out what is within it, find each column among C's by bisection, and add the product to its sum. A row
// of B has a column once, and the lanes meet before the next entry: so products of an entry are added in the order of
// A's row, one by one, as on the host, and every run gives the same bits.
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), ROOM (entries of C a warp), PARTS (blocks that share a row's
// pieces), THREADS.
#include "columns.cuh"
#include "complex.cuh"

typedef SCALAR T;
typedef OFFSET I;
typedef TARGET J;

struct Sums {
    u32 columns[ROOM];
    T values[ROOM];
};

// The entries of C from `place` on, `length` of them, in row `row`: B's rows may reach beyond them.
DEVICE void add_products(Sums& sums, u64 row, u64 place, u32 length, const I* a_offsets, const u32* a_columns,
                         const T* a_values, const I* b_offsets, const u32* b_columns, const T* b_values,
                         const u32* columns, T* values) {
    const u32 lane = lane_id();
    for (u32 i = lane; i < length; i += 32) {
        sums.columns[i] = columns[place + i];
        sums.values[i] = T();
    }
    __syncwarp();
    const u32 first = sums.columns[0], last = sums.columns[length - 1];
    for (u64 at = a_offsets[row]; at < a_offsets[row + 1]; at++) {
        const u64 k = a_columns[at], end = b_offsets[k + 1];
        const T factor = a_values[at];
        for (u64 entry = first_from(b_columns, u64(b_offsets[k]), end, first) + lane; entry < end; entry += 32) {
            const u32 column = b_columns[entry];
            if (column > last) break;
            const u32 i = first_from(sums.columns, 0u, length, column);
            sums.values[i] = sums.values[i] + factor * b_values[entry];
        }
        __syncwarp();
    }
    for (u32 i = lane; i < length; i += 32) values[place + i] = sums.values[i];
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    long_values(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, const u32* columns,
                T* values) {
    __shared__ Sums of_warps[THREADS / 32];
    for (u64 item = blockIdx.x; item < count * PARTS; item += gridDim.x) {
        const u64 row = rows[item / PARTS], end = offsets[row + 1];
        const u64 piece = item % PARTS * (THREADS / 32) + threadIdx.x / 32;
        for (u64 place = offsets[row] + piece * ROOM; place < end; place += u64(PARTS) * (THREADS / 32) * ROOM)
            add_products(of_warps[threadIdx.x / 32], row, place, u32(min(u64(ROOM), end - place)), a_offsets,
                               a_columns, a_values, b_offsets, b_columns, b_values, columns, values);
    }
}
