// From CSR to CSC, by windows: the columns that start within the same WINDOW places of the target, all of whose entries one block can hold.
//
//     columns   0 2 | 2 | 1 2 | 0 3      offsets of columns  0 2 3 6 7      WINDOW 4: columns 0 1 2 are window 0, column 3 is window 1
//
//     1  windows_of   the number of each entry's window, 16 bits
//     2  sort.cu      sorts the entries' numbers by them, stably: two passes, however many columns there are
//     3  finish       a block a window: an entry's place is that of its column, and how many of the column's entries lie before it;
//                     row and value are fetched there, and written in order
//
// Rows ascend, for nothing changes the order of a column's entries. A window has fewer than two times WINDOW entries, but for a column
// that reaches to the end of the next window: none other starts there, so that this window's number is free for it. Such a column is in
// order after step 2, and its entries are fetched by the blocks in whose windows they come to lie.
//
// In step 3 a warp counts the entries of a column within each 32 by votes. Then warps take turns, in the order of the source, to add
// their counts and to learn how many came before; all else they do at any time.
//
// Memory: the target itself holds numbers and windows, twice, until step 3; it must have 12 bytes an entry.
// Bytes an entry: column, window and number once, window and number five times for each is counted, read and written twice; number, column,
// value and row read, the latter three at random; row and value written.
//
// Constants: VALUE_BYTES (8, 16), OFFSET (of CSR), CURSOR (of columns), WINDOW_BITS, THREADS (16 warps at most, for each has a barrier), ITEMS, RESIDENT (threads a
// multiprocessor, at least).
#include "tile_segments.cuh"
#include "turns.cuh"
#include "votes.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
typedef CURSOR C;

#define WINDOW (1u << WINDOW_BITS)
#define WARPS (THREADS / 32)
#define PIECE 256 // entries between those whose rows are known
#define MOST (2 * int(WINDOW) / THREADS)
#define EACH_LINE(i) _Pragma("unroll") for (int i = 0; i < MOST; i++) if (i < lines)

// The window of a column that starts and ends at these places of the target.
DEVICE u32 window_of(C start, C end) {
    const u32 window = u32(start >> WINDOW_BITS);
    return window + (u32(end >> WINDOW_BITS) - window >= 2);
}

// The row of each piece's first entry, and that of the last entry of all behind; at least pieces + 1 threads.
extern "C" __global__ void __launch_bounds__(THREADS) piece_rows(const I* offsets, u64 rows, u64 n, u32* row_of, u64 pieces) {
    const u64 p = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (p <= pieces) row_of[p] = u32(segment_of(offsets, rows, min(p * PIECE, n - 1)));
}

// Where each window starts, and the end behind; at least windows + 1 threads.
extern "C" __global__ void __launch_bounds__(THREADS) window_starts(const C* starts, u64 columns, u32* begin, u32 windows) {
    const u32 w = blockIdx.x * THREADS + threadIdx.x;
    if (w > windows) return;
    u64 low = 0, high = columns;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (window_of(starts[middle], starts[middle + 1]) < w) low = middle + 1;
        else high = middle;
    }
    begin[w] = u32(starts[low]);
}

// A block a tile of THREADS * ITEMS entries.
extern "C" __global__ void __launch_bounds__(THREADS) windows_of(const C* starts, const u32* columns, u64 n, u16* windows, u32* numbers) {
    const u64 first = u64(blockIdx.x) * THREADS * ITEMS + threadIdx.x;
    u32 column[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) column[i] = first + i * THREADS < n ? columns[first + i * THREADS] : 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u64 at = first + i * THREADS;
        if (at >= n) continue;
        windows[at] = u16(window_of(starts[column[i]], starts[u64(column[i]) + 1]));
        numbers[at] = u32(at);
    }
}

// The row of an entry.
DEVICE u32 row_of_entry(const I* offsets, const u32* row_of, u32 entry) {
    u32 low = row_of[entry / PIECE], high = row_of[entry / PIECE + 1];
    while (low < high) {
        const u32 middle = low + (high - low + 1) / 2;
        if (offsets[middle] <= entry) low = middle;
        else high = middle - 1;
    }
    return low;
}

// Whether the last window before w that is not empty, and ends where w begins, is a long column.
DEVICE bool ends_long(const u32* begin, u32 w) {
    u32 low = w - 1;
    if (begin[low] == begin[w]) {
        u32 high = low;
        for (low = 0; low < high;) {
            const u32 middle = low + (high - low) / 2;
            if (begin[middle] < begin[w]) low = middle + 1;
            else high = middle;
        }
        low--;
    }
    return begin[low] >> WINDOW_BITS != low;
}

// A block a window. `entries`: numbers of entries by windows, which become rows.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
    finish(const I* offsets, const u32* row_of, const C* starts, const u32* columns, const V* values, u64 n, const u32* begin, u32 windows, u32* entries, V* to_values) {
    __shared__ u32 next[WINDOW]; // where a column's next entry goes, by where the column starts
    const u32 w = blockIdx.x, lane = lane_id(), warp = threadIdx.x / 32;
    const u32 first = begin[w], end = begin[w + 1], low = w * WINDOW, high = u32(min(u64(low) + WINDOW, n));

    // Entries of long columns that lie in this window's places.
    auto fetch = [&](u32 from, u32 to) {
        for (u32 k = from + threadIdx.x; k < to; k += THREADS) {
            const u32 entry = entries[k];
            to_values[k] = values[entry];
            entries[k] = row_of_entry(offsets, row_of, entry);
        }
    };
    const bool is_long = first < end && first >> WINDOW_BITS != w;
    if (is_long) fetch(low, high);
    else if (low < n && first > low && ends_long(begin, w)) fetch(low, min(first, high));
    if (w + 1 < windows && begin[w + 2] > end && end >> WINDOW_BITS == w) fetch(end, high);
    if (is_long || first == end) return;

    const u32 size = end - first, lines = (size + THREADS - 1) / THREADS, from = warp * lines * 32 + lane;
    for (u32 k = threadIdx.x; k < WINDOW; k += THREADS) next[k] = low + k;
    u32 entry[MOST], place[MOST], same[MOST];
    EACH_LINE(i) entry[i] = from + i * 32 < size ? entries[first + from + i * 32] : 0;
    EACH_LINE(i) place[i] = columns[entry[i]];
    EACH_LINE(i) place[i] = from + i * 32 < size ? u32(starts[place[i]]) & (WINDOW - 1) : WINDOW;
    EACH_LINE(i) same[i] = equal_lanes<WINDOW_BITS + 1>(place[i]);
    __syncthreads();
    if (warp) wait_turn(warp);
    EACH_LINE(i) {
        __syncwarp();
        if ((same[i] & lanes_below()) == 0 && from + i * 32 < size) place[i] = atomicAdd(next + place[i], __popc(same[i]));
    }
    if (warp + 1 < WARPS) pass_turn(warp + 1);
    // All numbers have been read: rows may take their places.
    EACH_LINE(i) place[i] = __shfl_sync(ALL, place[i], __ffs(same[i]) - 1) + __popc(same[i] & lanes_below());
    EACH_LINE(i) if (from + i * 32 < size) to_values[place[i]] = values[entry[i]];
    EACH_LINE(i) if (from + i * 32 < size) entries[place[i]] = row_of_entry(offsets, row_of, entry[i]);
}
