// From CSR to CSC by windows (transpose_windows.cuh), after the entries' numbers have been sorted by them
// (transpose_sort.cu): each block orders a window.
//
//     mark_rows   where rows start, one bit per entry, so that an entry's row is found by counting, not by a search
//     finish      an entry's place is its column's start plus the number of the column's entries before it; row and
//                 value are loaded, put in place in shared memory, and written
//
// Rows ascend, because nothing changes the order of a column's entries. A column that extends to the end of the next
// window is in order already, and its entries are loaded by the blocks whose windows contain their places.
//
// A warp counts its entries of each column, 32 at a time, by votes; sums over the warps then give the number of entries
// before.
//
// Memory: only the target, whose rows take the places of numbers. Bytes per entry: number with a part of its column's
// name, the other part, value and row read, the latter two at random (for rows, 8 bytes per 32 entries); row and value
// written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), CURSOR (of columns), WINDOW_BITS, THREADS, RESIDENT (threads per
// multiprocessor, at least).
#include "transpose_windows.cuh"
#include "votes.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
typedef CURSOR C;

#define WARPS (THREADS / 32)
#define PIECE 32 // entries per word of marks
#define MOST (2 * int(WINDOW) / THREADS)
#define USUAL (MOST / 2 + 1) // lines of most windows, which are staged in shared memory unless it is too large
#define STAGED (USUAL * THREADS * (VALUE_BYTES + 4) <= 64 << 10)

// The row of a piece's first entry, and a bit for each place in it at which a row starts; bit 0 is set if a row in
// between is empty.
struct alignas(8) Rows {
    u32 row, starts;
};

// The last row that starts at `entry` or before; called by a whole warp.
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

// One warp per 32 pieces; `pieces` is a multiple of that, and at least one more than there are pieces with entries.
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

// The row of an entry, from the mark of its piece if no row in it is empty.
DEVICE u32 row_by_count(Rows mark, u32 entry) { return mark.row + __popc(mark.starts & ((2u << entry % PIECE) - 1)); }

// The row of an entry.
DEVICE u32 row_of_entry(const I* offsets, const Rows* marks, u32 entry) {
    const Rows mark = marks[entry / PIECE];
    if (!(mark.starts & 1)) return row_by_count(mark, entry);
    u32 low = mark.row, high = marks[entry / PIECE + 1].row;
    while (low < high) {
        const u32 middle = low + (high - low + 1) / 2;
        if (offsets[middle] <= entry) low = middle;
        else high = middle - 1;
    }
    return low;
}

// True if the last window before w that is not empty is a long column, and ends where w begins.
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

#define NUMBERS ((1u << NUMBER_BITS) - 1)

// Hides from the compiler how a word was computed: it would otherwise keep the parts, too.
DEVICE void forget(u32& x) { asm volatile("" : "+r"(x)); }

// A window's entries and columns.
struct Window {
    u32 first, size, low; // where its entries and its places start, and number of entries
    u32 column, columns; // its first column, and number of columns
};
struct Source {
    const I* offsets;
    const Rows* marks;
    const C* starts;
    const V* values;
    const u8* names;
};

// Loops over a warp's lines: all for which there is room, or only those that it has.
#define EACH_LINE(i) _Pragma("unroll") for (int i = 0; i < LINES; i++)
#define EACH_LINE_THERE(i) EACH_LINE(i) if (i < lines)
// Whether a lane has an entry in line i.
#define HERE(i) ((i) * 32 < left)

// A name's half of a word of counts.
DEVICE u32 half_of(u32 word, u32 name) { return word >> name % 2 * 16 & 0xffff; }
DEVICE u32 two_halves(u32 low, u32 high) { return (low & 0xffff) | high << 16; }

// The starts of the columns of eight names, two per word.
DEVICE uint4 starts_of_names(const Source& a, const Window& w, bool by_number, u32 name) {
    u32 at[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++)
        at[i] = by_number ? u32(a.starts[w.column + min(name + i, w.columns)]) - w.first : name + i + w.low - w.first;
    return {two_halves(at[0], at[1]), two_halves(at[2], at[3]), two_halves(at[4], at[5]), two_halves(at[6], at[7])};
}

// Orders the entries of a window, which has at most LINES * THREADS of them. `counts`: a warp's number of entries of
// each column, by name, two counts per word. A lane without an entry loads another's: conditional loads would be
// branches, one per line.
template <int LINES> DEVICE void place_entries(const Source& a, u32* all_entries, V* all_values, const Window& w, u32* counts) {
    u32* entries = all_entries + w.first;
    V* to_values = all_values + w.first;
    const u8* names = a.names + w.first;
    const u32 lane = lane_id(), warp = threadIdx.x / 32, size = w.size;
    const int lines = (size + THREADS - 1) / THREADS;
    const u32 from = warp * lines * 32 + lane;
    const int left = int(min(size, (warp + 1) * lines * 32)) - int(from);
    const bool by_number = names_by_number(w.columns);
    // Counts are cleared and added up for eight names at a time.
    const u32 stride = by_number ? (w.columns + 7) / 8 : WINDOW / 8, name_bits = by_number ? 32 - __clz(w.columns - 1 | 1) : WINDOW_BITS;
    u32* mine = counts + warp * stride * 4;
    u32 entry[LINES], place[LINES], equal[LINES];
    EACH_LINE(i) {
        const u32 at = min(from + i * 32, size - 1);
        entry[i] = entries[at];
        place[i] = names[at];
    }
    uint4 starts = {0, 0, 0, 0};
    if (threadIdx.x < stride) starts = starts_of_names(a, w, by_number, threadIdx.x * 8);
    for (u32 k = lane; k < stride; k += 32) reinterpret_cast<uint4*>(mine)[k] = {0, 0, 0, 0};
    EACH_LINE(i) {
        place[i] = place[i] << (32 - NUMBER_BITS) | entry[i] >> NUMBER_BITS;
        entry[i] &= NUMBERS;
        forget(entry[i]);
        forget(place[i]);
        equal[i] = __ballot_sync(ALL, HERE(i)) ^ (HERE(i) ? 0 : ALL);
    }
    for (u32 bit = 1; bit >> name_bits == 0; bit *= 2) EACH_LINE(i) vote(equal[i], place[i], bit);
    // Among the lanes with the same name: the first one, and the number of lanes below; the first one reads how many
    // entries the warp had before.
    EACH_LINE_THERE(i) {
        const u32 below = __popc(equal[i] & lanes_below());
        u32 earlier = 0;
        __syncwarp();
        if (below == 0 && HERE(i)) earlier = atomicAdd(mine + place[i] / 2, __popc(equal[i]) << place[i] % 2 * 16);
        earlier = __shfl_sync(ALL, earlier, __ffs(equal[i]) - 1);
        place[i] |= half_of(earlier, place[i]) + below << 16;
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < stride; k += THREADS) {
        uint4 sum = k < THREADS ? starts : starts_of_names(a, w, by_number, k * 8);
#pragma unroll
        for (u32 of = 0; of < WARPS; of++) {
            uint4* at = reinterpret_cast<uint4*>(counts) + of * stride + k;
            const uint4 c = *at;
            *at = sum;
            sum = {sum.x + c.x, sum.y + c.y, sum.z + c.z, sum.w + c.w};
        }
    }
    __syncthreads();
    EACH_LINE(i) {
        const u32 name = place[i] & 0xffff;
        place[i] = (place[i] >> 16) + half_of(mine[name / 2], name);
    }
    constexpr bool staged = STAGED && LINES <= USUAL;
    if (staged) __syncthreads();
    V* staged_values = reinterpret_cast<V*>(counts);
    u32* staged_rows = reinterpret_cast<u32*>(staged_values + USUAL * THREADS);
    // Several loads are in flight together.
    constexpr int TOGETHER = VALUE_BYTES == 4 ? USUAL : VALUE_BYTES == 8 ? (USUAL + 1) / 2 : 3;
#pragma unroll
    for (int first = 0; first < LINES; first += TOGETHER) {
        V value[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) value[i] = a.values[entry[min(first + i, LINES - 1)]];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            if (first + i < LINES && HERE(first + i)) (staged ? staged_values : to_values)[place[first + i]] = value[i];
    }
    // All numbers have been read, so rows may replace them.
    u32* to_rows = staged ? staged_rows : entries;
    u32 searched = 0;
#pragma unroll
    for (int first = 0; first < LINES; first += 3) {
        Rows mark[3];
#pragma unroll
        for (int i = 0; i < 3; i++) mark[i] = a.marks[entry[min(first + i, LINES - 1)] / PIECE];
#pragma unroll
        for (int i = 0; i < 3; i++) {
            searched |= mark[i].starts & 1;
            if (first + i < LINES && HERE(first + i)) to_rows[place[first + i]] = row_by_count(mark[i], entry[first + i]);
        }
    }
    if (searched) EACH_LINE(i) if (HERE(i)) to_rows[place[i]] = row_of_entry(a.offsets, a.marks, entry[i]);
    if (!staged) return;
    __syncthreads();
    for (u32 k = threadIdx.x; k < size; k += THREADS) {
        to_values[k] = staged_values[k];
        entries[k] = staged_rows[k];
    }
}

// One block per window. `entries`: numbers of entries by windows with parts of their columns' names, which are replaced
// by rows; `names`: the other parts. Dynamic shared memory: WARPS * WINDOW * 2, and at least what is staged.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
    finish(const I* offsets, const Rows* marks, const C* starts, const V* values, const u8* names, u64 n, const u32* begin,
           const u32* first_columns, u32 windows, u32* entries, V* to_values) {
    extern __shared__ uint4 dynamic[];
    const Source a = {offsets, marks, starts, values, names};
    const u32 w = blockIdx.x;
    const u32 first = begin[w], end = begin[w + 1], low = w * WINDOW, high = u32(min(u64(low) + WINDOW, n));

    // Loads the entries of long columns that belong to places of this window.
    auto fetch = [&](u32 from, u32 to) {
        for (u32 k = from + threadIdx.x; k < to; k += THREADS) {
            const u32 entry = entries[k] & NUMBERS;
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
    const u32 column = first_columns[w];
    const Window window = {first, end - first, low, column, first_columns[w + 1] - column};
    if (window.size <= USUAL * THREADS) place_entries<USUAL>(a, entries, to_values, window, counts);
    else place_entries<MOST>(a, entries, to_values, window, counts);
}
