// alpha A + beta B for sparse matrices. A thread takes a row and merges A's and B's entries, whose columns ascend.
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of the sum), THREADS.
#include "complex.cuh"

typedef SCALAR T;
typedef OFFSET I;
typedef TARGET J;

// Calls each(column, place in A or its end, place in B or its end) for every column of either row.
template <typename F>
DEVICE void merged(u64 row, const I* a_offsets, const u32* a_columns, const I* b_offsets, const u32* b_columns, F each) {
    u64 a = a_offsets[row], b = b_offsets[row];
    const u64 a_end = a_offsets[row + 1], b_end = b_offsets[row + 1];
    while (a < a_end || b < b_end) {
        const bool from_a = a < a_end && (b == b_end || a_columns[a] <= b_columns[b]);
        const bool from_b = b < b_end && (a == a_end || b_columns[b] <= a_columns[a]);
        each(from_a ? a_columns[a] : b_columns[b], from_a, a, from_b, b);
        a += from_a;
        b += from_b;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sum_lengths(u64 rows, const I* a_offsets, const u32* a_columns, const I* b_offsets, const u32* b_columns, u32* lengths) {
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row <= rows; row += u64(gridDim.x) * THREADS) {
        u32 length = 0;
        if (row < rows)
            merged(row, a_offsets, a_columns, b_offsets, b_columns, [&](u32, bool, u64, bool, u64) { length++; });
        lengths[row] = length;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sum_rows(u64 rows, T alpha, const I* a_offsets, const u32* a_columns, const T* a_values, T beta, const I* b_offsets,
             const u32* b_columns, const T* b_values, const J* offsets, u32* columns, T* values) {
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        u64 place = offsets[row];
        merged(row, a_offsets, a_columns, b_offsets, b_columns, [&](u32 column, bool from_a, u64 a, bool from_b, u64 b) {
            columns[place] = column;
            T value;
            if (from_a && from_b) value = alpha * a_values[a] + beta * b_values[b];
            else if (from_a) value = alpha * a_values[a];
            else value = beta * b_values[b];
            values[place++] = value;
        });
    }
}
