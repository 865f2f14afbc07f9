// y = alpha A x + beta y with A in slim sections whose columns are wide and whose values are stored: no distance and no value need repeat.
//
//     | 1 . 7 . |     distances (column - row)    0 2 | 1 | -1 0 | -3 0
//     | . . 8 . |     the section's smallest, -3, and what is above it    3 5 | 4 * | 2 3 | 0 3      (* is 65535: no entry)
//     | . 4 3 . |     words of two codes, row beside row    3|5  4|*  2|3  0|3
//     | 2 . . 1 |     values, row beside row                1 8 4 2 | 7 - 3 1
//
// A section is 32 rows. Where its distances are too far apart for that they are 14 bits above one of four bases (slim.cuh), as those of a mesh in space
// with many points a layer; where these do not hold them it has columns of 32 bits, a word each, and ~0 for no entry.
//
// A block takes a window of rows, within which they may be ordered by length, and a warp one section of it or more, a thread a row (slim_row.cuh). Sums change places in
// shared memory, so that y is written, and read, line by line. Sections get narrower from the first to the last: a warp that takes two has one of the first half
// and one of the last, so that none waits long for the others.
//
// Bytes a nonzero: 2 or 4 for the column, 4 or 8 (complex twice that) for the value, padding too. A row: y, x, 3/4 byte of offsets and bases, one of order.
// Source: as slim.cu.
//
// Constants: SCALAR (vectors), STORED (values as stored), OFFSET (offsets); THREADS of a block, UNROLL, entries of a row under way (even), and MIN_BLOCKS of a product; DOT_UNROLL and
// DOT_BLOCKS of one with dot, whose blocks have a thread a row.
#include "common.cuh"

typedef SCALAR T;
typedef STORED S;
typedef OFFSET I;
#include "slim_row.cuh"
static_assert(UNROLL % 2 == 0 && DOT_UNROLL % 2 == 0, "a step begins with a word of its own");
static_assert(WINDOW % THREADS == 0, "a block takes a window");

DEVICE u32 base_of(u32 base, u32) { return base; }

// Columns of 32 bits; of 16 above one base; of 16 above one of four. The row has been added to the bases.
struct Far {
    static constexpr u32 CODES = 1;
    const u32* words;
    DEVICE Far from(u32 k) const { return {words + u64(k) * 32}; }
    DEVICE u32 word(u32 i) const { return passing(words + i * 32); }
    DEVICE u32 column(u32 word, u32, bool& here) const {
        here = word != ~0u;
        return word;
    }
};
template <typename B> struct Above {
    static constexpr u32 CODES = 2;
    const u32* words;
    B bases;
    DEVICE Above from(u32 k) const { return {words + u64(k / 2) * 32, bases}; }
    DEVICE u32 word(u32 i) const { return passing(words + i * 32); }
    DEVICE u32 column(u32 word, u32 k, bool& here) const {
        const u32 code = word >> (16 * (k % 2)) & 65535;
        here = code != 65535;
        return base_of(bases, code) + code;
    }
};

#define WIDE u64 rows, const u8 *order, const I *offsets, const u32 *bases, const u32 *words, const I *entries, const S *values
#define OF_WIDE rows, order, offsets, bases, words, entries, values

// The sum of the row at a place of the window of rows from `first` on, in their order, to its number in the window. A row's words of a quad of entries lie one
// behind the other, and so do its quads. What is known of a section is asked for at once, also where a thread has no row: in a branch one load would
// wait for the other.
template <u32 N> DEVICE void sum_at(WIDE, u32 conjugate, const T* x, u64 first, u32 at, T* sum_of) {
    const bool mine = first + at < rows;
    const u64 place = mine ? first + at : rows - 1, section = place / 32;
    const u64 start = entries[section], end = entries[section + 1], word = offsets[section], word_end = offsets[section + 1];
    const uint4 base = cached(reinterpret_cast<const uint4*>(bases) + section);
    const u32 lane = place % 32, number = order ? order[place] : u32(place - first), row = u32(first) + number;
    const u32 width = u32(end - start) / 32, quads = (width + 3) / 4;
    words += word + lane;
    values += start + lane;
    T sum;
    if (u32(word_end - word) / 32 != 2 * quads) sum = row_sum<N>(width, Far{words}, values, x, conjugate);
    else if (is_near(base)) sum = row_sum<N>(width, Above<u32>{words, base.x + row}, values, x, conjugate);
    else sum = row_sum<N>(width, Above<uint4>{words, {base.x + row, base.y + row, base.z + row, base.w + row}}, values, x, conjugate);
    if (mine) sum_of[number] = sum;
}

// A block a window.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) slim_wide(WIDE, u32 conjugate, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    const u64 first = u64(blockIdx.x) * WINDOW;
    constexpr u32 WARPS = THREADS / 32;
    const u32 warp = threadIdx.x / 32;
    __shared__ T sum_of[WINDOW];
#pragma unroll 1
    for (u32 i = 0; i < WINDOW / THREADS; i++) {
        const u32 section = i % 2 ? (i + 1) * WARPS - 1 - warp : i * WARPS + warp;
        sum_at<UNROLL>(OF_WIDE, conjugate, x, first, 32 * section + lane_id(), sum_of);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = threadIdx.x; i < WINDOW; i += THREADS)
        if (first + i < rows) finish(alpha, sum_of[i], beta, y + first + i);
}

// y = A x, *xy = x.y, by blocks that stay, of a thread a row.
extern "C" __global__ void __launch_bounds__(WINDOW, DOT_BLOCKS) slim_wide_dot(WIDE, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    RowsDot<T> dot = {x, y, T()};
    __shared__ T sum_of[WINDOW];
    for (u64 first = u64(blockIdx.x) * WINDOW; first < rows; first += u64(gridDim.x) * WINDOW) {
        sum_at<DOT_UNROLL>(OF_WIDE, 0, x, first, threadIdx.x, sum_of);
        __syncthreads();
        if (first + threadIdx.x < rows) dot.take(first + threadIdx.x, sum_of[threadIdx.x]);
        __syncthreads();
    }
    launch_sum_to<WINDOW>(xy, dot.part, partials, finished);
}
