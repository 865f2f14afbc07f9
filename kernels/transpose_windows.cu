// From CSR to CSC, by windows (transpose_windows.cuh), once the entries' numbers are sorted by them (transpose_sort.cu): a block puts a
// window in order.
//
//     mark_rows   where rows start, a bit an entry, so that an entry's row is counted and not searched
//     finish      an entry's place is that of its column, and how many of the column's entries lie before it; row and value are fetched,
//                 put there in shared memory, and written
//
// Rows ascend, for nothing changes the order of a column's entries. A column that reaches to the end of the window behind its own is in
// order already, and its entries are fetched by the blocks in whose windows they come to lie.
//
// A warp counts its entries of each column, 32 at a time, by votes; sums over the warps then tell how many came before.
//
// Memory: the target itself: numbers lie where rows come to lie.
// Bytes an entry: number, column, value and row read, the latter three at random (of rows, 8 bytes for 32 entries; with CARRY no column, but
// its place, in order); row and value written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), CURSOR (of columns), WINDOW_BITS, CARRY (whether places came along), THREADS, RESIDENT
// (threads a multiprocessor, at least).
#include "transpose_windows.cuh"
#include "votes.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
typedef CURSOR C;

#define WARPS (THREADS / 32)
#define PIECE 32 // entries of a word of marks
#define MOST (2 * int(WINDOW) / THREADS)
#define USUAL (MOST / 2 + 1) // lines of most windows: these are staged in shared memory, where that is not too large
#define STAGED (USUAL * THREADS * (VALUE_BYTES + 4) <= 64 << 10)

// The row of a piece's first entry, and the places at which rows start behind it, a bit each; bit 0 where a row in between is empty.
struct alignas(8) Rows {
    u32 row, starts;
};

// The last row that does not start behind `entry`; called by a whole warp.
DEVICE u64 row_by_warp(const I* offsets, u64 rows, u64 entry) {
    u64 low = 0, high = rows;
    while (low + 1 < high) {
        const u64 step = (high - low + 31) / 32, probe = low + lane_id() * step;
        const u32 ok = __ballot_sync(ALL, probe < high && u64(offsets[probe]) <= entry);
        low += (__popc(ok) - 1) * step;
        high = min(low + step, high);
    }
    return low;
}

// A warp for 32 pieces; `pieces` is a multiple of that, and one more at least than entries are in.
extern "C" __global__ void __launch_bounds__(THREADS) mark_rows(const I* offsets, u64 rows, Rows* marks, u64 pieces) {
    __shared__ u32 all_starts[THREADS], all_rows[THREADS];
    u32 *starts = all_starts + threadIdx.x / 32 * 32, *rows_to = all_rows + threadIdx.x / 32 * 32;
    const u64 piece = u64(blockIdx.x) * THREADS + threadIdx.x, first = piece / 32 * (32 * PIECE);
    if (piece >= pieces) return;
    starts[lane_id()] = rows_to[lane_id()] = 0;
    __syncwarp();
    const u64 begin = row_by_warp(offsets, rows, first);
    bool more = true;
    for (u64 s = begin + 1 + lane_id(); more; s += 32) {
        const u64 at = s < rows ? u64(offsets[s]) - first : 32 * PIECE;
        if (at < 32 * PIECE) {
            const u32 word = u32(at) / PIECE, bit = 1u << at % PIECE, next = (u32(at) + PIECE - 1) / PIECE;
            if (at % PIECE && atomicOr(starts + word, bit) & bit) atomicOr(starts + word, 1u);
            if (next < 32) atomicAdd(rows_to + next, 1u);
        }
        more = __all_sync(ALL, at < 32 * PIECE);
    }
    __syncwarp();
    marks[piece] = {u32(begin) + warp_inclusive_sum(rows_to[lane_id()]), starts[lane_id()]};
}

// The row of an entry.
DEVICE u32 row_of_entry(const I* offsets, const Rows* marks, u32 entry) {
    const Rows mark = marks[entry / PIECE];
    if (!(mark.starts & 1)) return mark.row + __popc(mark.starts & ((2u << entry % PIECE) - 1));
    u32 low = mark.row, high = marks[entry / PIECE + 1].row;
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

struct Source {
    const I* offsets;
    const Rows* marks;
    const C* starts;
    const u32* columns;
    const V* values;
    const u16* places;
};

#define EACH_LINE(i) _Pragma("unroll") for (int i = 0; i < LINES; i++) if (i < lines)

// A place's half of a word of counts.
DEVICE u32 half_of(u32 word, u32 place) { return word >> place % 2 * 16 & 0xffff; }

// Puts a window's `size` entries from `first` on in order, for which LINES * THREADS suffice. `low`: its first place. `counts`: a warp's
// entries of each column, by the column's place, two counts a word.
template <int LINES> DEVICE void place_entries(const Source& a, u32* all_entries, V* all_values, u32 first, u32 size, u32 low, u32* counts) {
    u32* entries = all_entries + first;
    V* to_values = all_values + first;
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    const int lines = (size + THREADS - 1) / THREADS;
    const u32 from = warp * lines * 32 + lane;
    u32* mine = counts + warp * (WINDOW / 2);
    u32 entry[LINES], place[LINES];
    EACH_LINE(i) entry[i] = from + i * 32 < size ? entries[from + i * 32] : 0;
    for (u32 k = lane; k < WINDOW / 8; k += 32) reinterpret_cast<uint4*>(mine)[k] = {0, 0, 0, 0};
    __syncwarp();
    if (CARRY) {
        EACH_LINE(i) place[i] = from + i * 32 < size ? a.places[first + from + i * 32] : WINDOW;
    } else {
        EACH_LINE(i) place[i] = a.columns[entry[i]];
        EACH_LINE(i) place[i] = from + i * 32 < size ? u32(a.starts[place[i]]) & (WINDOW - 1) : WINDOW;
    }
    // Of the lanes with the same place: the first, and how many are below; the first one learns how many the warp had before.
    EACH_LINE(i) {
        const u32 equal = equal_lanes<WINDOW_BITS + 1>(place[i]), below = __popc(equal & lanes_below());
        u32 earlier = 0;
        if (below == 0 && place[i] < WINDOW) earlier = atomicAdd(mine + place[i] / 2, __popc(equal) << place[i] % 2 * 16);
        __syncwarp();
        earlier = __shfl_sync(ALL, earlier, __ffs(equal) - 1);
        place[i] |= half_of(earlier, place[i]) + below << 16;
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < WINDOW / 8; k += THREADS) {
        uint4 sum = {0, 0, 0, 0};
#pragma unroll
        for (u32 w = 0; w < WARPS; w++) {
            uint4* at = reinterpret_cast<uint4*>(counts + w * (WINDOW / 2)) + k;
            const uint4 c = *at;
            *at = sum;
            sum = {sum.x + c.x, sum.y + c.y, sum.z + c.z, sum.w + c.w};
        }
    }
    __syncthreads();
    EACH_LINE(i) {
        const u32 at = place[i] & 0xffff;
        place[i] = at < WINDOW ? (place[i] >> 16) + half_of(mine[at / 2], at) + at + low - first : 0;
    }
    // All numbers have been read: rows may take their places.
    if (!STAGED || LINES > USUAL) {
        EACH_LINE(i) if (from + i * 32 < size) to_values[place[i]] = a.values[entry[i]];
        EACH_LINE(i) if (from + i * 32 < size) entries[place[i]] = row_of_entry(a.offsets, a.marks, entry[i]);
        return;
    }
    __syncthreads();
    V* staged_values = reinterpret_cast<V*>(counts);
    u32* staged_rows = reinterpret_cast<u32*>(staged_values + USUAL * THREADS);
    EACH_LINE(i) if (from + i * 32 < size) staged_values[place[i]] = a.values[entry[i]];
    EACH_LINE(i) if (from + i * 32 < size) staged_rows[place[i]] = row_of_entry(a.offsets, a.marks, entry[i]);
    __syncthreads();
    for (u32 k = threadIdx.x; k < size; k += THREADS) {
        to_values[k] = staged_values[k];
        entries[k] = staged_rows[k];
    }
}

// A block a window. `entries`: numbers of entries by windows, which become rows; `places`: their columns' places in the windows, with CARRY.
// Dynamic shared memory: WARPS * WINDOW * 2, and what is staged at least.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
    finish(const I* offsets, const Rows* marks, const C* starts, const u32* columns, const V* values, const u16* places, u64 n, const u32* begin, u32 windows, u32* entries,
           V* to_values) {
    extern __shared__ uint4 dynamic[];
    const Source a = {offsets, marks, starts, columns, values, places};
    const u32 w = blockIdx.x;
    const u32 first = begin[w], end = begin[w + 1], low = w * WINDOW, high = u32(min(u64(low) + WINDOW, n));

    // Entries of long columns that lie in this window's places.
    auto fetch = [&](u32 from, u32 to) {
        for (u32 k = from + threadIdx.x; k < to; k += THREADS) {
            const u32 entry = entries[k];
            to_values[k] = values[entry];
            entries[k] = row_of_entry(offsets, marks, entry);
        }
    };
    const bool is_long = first < end && first >> WINDOW_BITS != w;
    if (is_long) fetch(low, high);
    else if (low < n && first > low && ends_long(begin, w)) fetch(low, min(first, high));
    if (w + 1 < windows && begin[w + 2] > end && end >> WINDOW_BITS == w) fetch(end, high);
    if (is_long || first == end) return;

    u32* counts = reinterpret_cast<u32*>(dynamic);
    const u32 size = end - first;
    if (size <= USUAL * THREADS) place_entries<USUAL>(a, entries, to_values, first, size, low, counts);
    else place_entries<MOST>(a, entries, to_values, first, size, low, counts);
}
