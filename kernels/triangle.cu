// The part of a matrix on one side of its diagonal, with rows in a given order and columns renumbered.
//
// Constants: SCALAR, OFFSET (of the matrix), TARGET (of its part), THREADS.
#include "columns.cuh"
#include "nodes.cuh"

typedef SCALAR T;
typedef OFFSET I;
typedef TARGET J;

// Sets begin .. end to the places of a row's entries on one side of the diagonal.
DEVICE void on_side(const I* offsets, const u32* columns, u64 row, u32 upper, u64& begin, u64& end) {
    begin = offsets[row];
    end = offsets[row + 1];
    const u64 middle = first_from(columns, begin, end, row + upper);
    if (upper) begin = middle;
    else end = middle;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    triangle_lengths(u64 n, const I* offsets, const u32* columns, u32 upper, const u32* order, u32* lengths) {
    EACH(k, n + 1) {
        u64 begin = 0, end = 0;
        if (k < n) on_side(offsets, columns, order[k], upper, begin, end);
        lengths[k] = u32(end - begin);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    triangle_entries(u64 n, const I* offsets, const u32* columns, const T* values, u32 upper, const u32* order,
                     const u32* places, const J* starts, u32* to_columns, T* to_values) {
    EACH(k, n) {
        u64 begin, end, to = starts[k];
        on_side(offsets, columns, order[k], upper, begin, end);
        for (u64 at = begin; at < end; at++, to++) {
            to_columns[to] = places[columns[at]];
            to_values[to] = values[at];
        }
    }
}
