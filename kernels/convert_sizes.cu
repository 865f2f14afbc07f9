// Sizes that conversions need, from row offsets and row lengths.
//
// Constants: OFFSET (u32 or u64), THREADS.
#include "common.cuh"

typedef OFFSET I;
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

// Entries of each row after the first `skip`, `most` at most.
KERNEL row_lengths(const I* offsets, u64 rows, u64 skip, u64 most, u32* lengths) {
    EACH(i, rows) {
        const u64 length = u64(offsets[i + 1]) - u64(offsets[i]);
        lengths[i] = u32(min(length - min(length, skip), most));
    }
}

// Keys that ascend with (window, length from the longest down).
KERNEL order_keys(const u32* lengths, u64 rows, u64 window, u32 longest, u32 bits, I* keys) {
    EACH(i, rows) keys[i] = I(i / window << bits | u64(longest - lengths[i]));
}

// The longest row of each section.
KERNEL section_widths(const u32* lengths, u64 rows, u64 height, u32* widths, u64 sections) {
    EACH(s, sections) {
        u32 width = 0;
        for (u64 i = s * height, end = min(rows, (s + 1) * height); i < end; i++) width = max(width, lengths[i]);
        widths[s] = width;
    }
}

KERNEL scale_offsets(I* offsets, u64 n, u64 factor) { EACH(i, n) offsets[i] = I(u64(offsets[i]) * factor); }

// Diagonals get shorter: those that reach position p are the first ones.
KERNEL jagged_lengths(const u32* order, u64 rows, const I* diagonals, u64 count, u32* lengths) {
    EACH(p, rows) {
        u64 low = 0, high = count;
        while (low < high) {
            const u64 k = low + (high - low) / 2;
            if (u64(diagonals[k + 1]) - u64(diagonals[k]) > p) low = k + 1;
            else high = k;
        }
        lengths[order[p]] = u32(low);
    }
}
