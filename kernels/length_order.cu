// Orders rows by length, from longest to shortest and rows of equal length in their original order, within windows that
// a block holds.
//
//     lengths  2 1 2 2 | 3 3 1 1        order  0 2 3 1 | 4 5 6 7        sorted  2 2 2 1 | 3 3 1 1        moved  1
//
// A block takes a window, with one thread per row (length_order.cuh).
//
// Bytes per row: 4 read, 8 written.
//
// Constants: THREADS (the largest window).
#include "length_order.cuh"

// moved becomes 1 if a row is not in its original place. Windows have at most as many rows as blocks have threads.
extern "C" __global__ void __launch_bounds__(THREADS)
    order_windows(const u32* lengths, u64 rows, u64 window, u32* order, u32* sorted, u64* moved) {
    __shared__ LengthOrder<THREADS> room;
    const u64 first = u64(blockIdx.x) * window;
    const bool mine = threadIdx.x < min(window, rows - first);
    u32 length = mine ? lengths[first + threadIdx.x] : 0, row = threadIdx.x;
    if (order_by_length(room, mine, length, row) && threadIdx.x == 0) atomicMax(moved, 1ull);
    if (mine) {
        order[first + threadIdx.x] = u32(first) + row;
        sorted[first + threadIdx.x] = length;
    }
}
