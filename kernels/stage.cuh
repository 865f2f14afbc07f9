// Copies nonzeros from device memory to shared memory, sixteen bytes at a time and bypassing registers if the chip can
// (8.0 and later), so that a block has its whole tile in flight at once.
#pragma once
#include "bulk.cuh"
#include "product.cuh"

// All threads of the block copy elements start .. stop of `from` to the beginning of `to`. `start` is a multiple of 16
// / sizeof(A), and elements up to the next multiple after `stop` are copied too, within the array of `count`.
template <int BLOCK, typename A> DEVICE void stage(A* to, const A* from, u64 start, u64 stop, u64 count) {
    constexpr u32 PER = 16 / sizeof(A);
    const u32 pieces = u32((stop - start + PER - 1) / PER);
    if (aligned16(from)) {
        for (u32 i = threadIdx.x; i < pieces; i += BLOCK) {
            const u64 at = start + u64(i) * PER;
            if (at + PER <= count) copy16(in_shared(to + i * PER), from + at);
            else
                for (u32 j = 0; at + j < count; j++) to[i * PER + j] = from[at + j];
        }
    } else {
        const u32 n = u32(stop - start);
        for (u32 i = threadIdx.x; i < n; i += BLOCK) to[i] = stream(from + start + i);
    }
}

// Must be called before stage_tile in bulk, by all threads.
DEVICE void stages_begin(u64* barrier) {
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        barrier_init_done();
    }
    __syncthreads();
}
// Copies columns and values start .. stop in the same way, complete for each thread after the block's next barrier.
// BY_ONE: they are copied by one thread in bulk if the chip can and the arrays are aligned, so that the others have no
// copies to start. `parity` starts at 0.
template <int BLOCK, bool BY_ONE, typename V>
DEVICE void stage_tile(u32* to_columns, V* to_values, const u32* columns, const V* values, u64 start, u64 stop, u64 count, u64* barrier,
                       u32& parity) {
    if (!BY_ONE || !BULK || !aligned16(columns) || !aligned16(values)) {
        stage<BLOCK>(to_columns, columns, start, stop, count);
        stage<BLOCK>(to_values, values, start, stop, count);
        copies_done();
        return;
    }
    // The arrays may end before a multiple of 16 bytes; the rest is then copied one by one.
    const u32 n = u32(stop - start), padded = (n + 3) & ~3u, whole = start + padded <= count ? padded : n & ~3u;
    if (threadIdx.x == 0) {
        arrive(barrier, whole * u32(sizeof(V) + 4));
        if (whole) {
            bulk_load(to_columns, columns + start, whole * 4, barrier);
            bulk_load(to_values, values + start, whole * u32(sizeof(V)), barrier);
        }
    }
    const u32 i = whole + threadIdx.x;
    if (i < n) {
        to_columns[i] = columns[start + i];
        to_values[i] = values[start + i];
    }
    wait(barrier, parity);
    parity ^= 1;
}
