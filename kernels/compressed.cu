// y = alpha A x + beta y with A in compressed sections. Columns are given by kinds of rows, by codes of one byte, or
// wide; values are given by codes, all equal to one, or stored.
//
//     | 1 . 7 . |     distances (column - row)    0 2 | 1 | -1 0 | -3 0
//     | . . 8 . |     codes       columns, of -3 -1 0 1 2    2 4 * * | 3 * * * | 1 2 * * | 0 2 * *      (* is 255: no entry)
//     | . 4 3 . |                 values, of 1 2 3 4 7 8     0 4     | 5       | 3 2     | 1 0
//     | 2 . . 1 |     wide        the section's smallest, -3, and distances above it  3 5 | 4 * | 2 3 | 0 3  (* 65535)
//                     stored      values, all rows side by side                       1 8 4 2 | 7 - 3 1
//
// A section is 32 rows. The words of a quad of a row's entries are stored one after another, next to those of other
// rows: one word of column codes, or two of wide ones, then one of value codes. If a section's distances differ by more
// than 16 bits hold, they are 14 bits above one of four bases (compressed.cuh), as in three-dimensional meshes with
// many points per layer; if four bases are not enough, the section has columns of 32 bits, four words per quad, with ~0
// for no entry.
//
// A block takes a window of rows, which may be ordered by length within the window; a warp takes one section of it or
// more, with one thread per row (compressed_row.cuh). Sums are exchanged through shared memory, so that y is written,
// and read, in whole lines. Sections get narrower from the first to the last: a warp that takes two has one of the
// first half and one of the last, so that none waits long for the others. Tables are read through the first-level
// cache.
//
// Bytes per nonzero: 0, 1, 2 or 4 for the column, 0, 1, 4 or 8 (twice that if complex) for the value, and the same for
// the padding of stored values. Per row: y, x, 1/4 byte of offsets, 1/2 of bases, one of its kind, one of order.
// Sources: Kourtis, Goumas and Koziris 2008 (compressing indices and values); Kreutzer et al. 2014 (sections).
//
// Constants: SCALAR (vectors), VALUE (the matrix's values), STORED (values as stored), OFFSET (offsets), COLUMNS,
// VALUES; THREADS per block, UNROLL (entries per row in flight, whole quads) and MIN_BLOCKS for a product; DOT_UNROLL
// and DOT_BLOCKS for one with a dot product, whose blocks have one thread per row.
#include "common.cuh"

typedef SCALAR T;
typedef VALUE V;
typedef STORED S;
typedef OFFSET I;
#include "compressed_row.cuh"
static_assert(WINDOW % THREADS == 0, "a block takes a window");

// Arrays that a storage does not use are null.
#define SECTIONS                                                                                                                     \
    u64 rows, const u8 *order, const u8 *kind_of, const u32 *starts, const u32 *distances, const I *offsets, const u32 *bases,       \
        const u32 *words, const V *numbers, const I *entries, const S *values
#define OF_SECTIONS rows, order, kind_of, starts, distances, offsets, bases, words, numbers, entries, values

// The sum of a row whose quads have COLUMN_WORDS words of columns.
template <u32 N, u32 COLUMN_WORDS, typename C>
DEVICE T sum_by(u32 width, const C& columns, const u32* words, const V* numbers, const S* values, u32 conjugate, const T* x) {
    if constexpr (VALUES == COMPRESSED_STORED) return row_sum<N>(width, columns, Stored<S>{values, conjugate}, x);
    else if constexpr (VALUES == COMPRESSED_ONE) return row_sum<N>(width, columns, Only{entry<T>(cached(numbers), conjugate)}, x);
    else return row_sum<N>(width, columns, Coded<COLUMN_WORDS + 1, V>{words + COLUMN_WORDS * 32, numbers, conjugate}, x);
}

// Computes the sum of the row at a place of the window that begins with row `first`, and writes it at its row's
// position in the window. All properties of a section are loaded at once, even by threads without a row: with a branch
// one load would wait for the other.
template <u32 N> DEVICE void sum_at(SECTIONS, u32 conjugate, const T* x, u64 first, u32 at, T* sum_of) {
    constexpr u32 OF_VALUES = VALUES != COMPRESSED_STORED;
    const bool mine = first + at < rows;
    const u64 place = mine ? first + at : rows - 1, section = place / 32;
    const u64 start = entries[section], end = entries[section + 1];
    const u32 lane = place % 32, number = order ? order[place] : u32(place - first), row = u32(first) + number;
    const u32 width = u32(end - start) / 32;
    values += start + lane;
    T sum;
    if constexpr (COLUMNS == COMPRESSED_KINDS) {
        const u32 kind = kind_of[row], from = starts[kind], length = starts[kind + 1] - from;
        words += u64(offsets[section]) + lane;
        sum = sum_by<N, 0>(width, Kind{distances + from, row, length}, words, numbers, values, conjugate, x);
    } else if constexpr (COLUMNS == COMPRESSED_CODES) {
        words += u64(offsets[section]) + lane;
        sum = sum_by<N, 1>(width, Near<1 + OF_VALUES>{words, distances, row}, words, numbers, values, conjugate, x);
    } else {
        const u64 word = offsets[section], word_end = offsets[section + 1];
        const uint4 base = cached(reinterpret_cast<const uint4*>(bases) + section);
        const u32 quads = (width + 3) / 4;
        words += word + lane;
        if (u32(word_end - word) / 32 != (2 + OF_VALUES) * quads) {
            sum = sum_by<N, 4>(width, Far<4 + OF_VALUES>{words}, words, numbers, values, conjugate, x);
        } else if (is_near(base)) {
            sum = sum_by<N, 2>(width, Above<2 + OF_VALUES, u32>{words, base.x + row}, words, numbers, values, conjugate, x);
        } else {
            const uint4 of_row = {base.x + row, base.y + row, base.z + row, base.w + row};
            sum = sum_by<N, 2>(width, Above<2 + OF_VALUES, uint4>{words, of_row}, words, numbers, values, conjugate, x);
        }
    }
    if (mine) sum_of[number] = sum;
}

// One block per window.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) compressed(SECTIONS, u32 conjugate, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    const u64 first = u64(blockIdx.x) * WINDOW;
    constexpr u32 WARPS = THREADS / 32;
    const u32 warp = threadIdx.x / 32;
    __shared__ T sum_of[WINDOW];
#pragma unroll 1
    for (u32 i = 0; i < WINDOW / THREADS; i++) {
        const u32 section = i % 2 ? (i + 1) * WARPS - 1 - warp : i * WARPS + warp;
        sum_at<UNROLL>(OF_SECTIONS, conjugate, x, first, 32 * section + lane_id(), sum_of);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = threadIdx.x; i < WINDOW; i += THREADS)
        if (first + i < rows) finish(alpha, sum_of[i], beta, y + first + i);
}

// y = A x, *xy = x.y, by persistent blocks with one thread per row.
extern "C" __global__ void __launch_bounds__(WINDOW, DOT_BLOCKS) compressed_dot(SECTIONS, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    RowsDot<T> dot = {x, y, T()};
    __shared__ T sum_of[WINDOW];
    for (u64 first = u64(blockIdx.x) * WINDOW; first < rows; first += u64(gridDim.x) * WINDOW) {
        sum_at<DOT_UNROLL>(OF_SECTIONS, 0, x, first, threadIdx.x, sum_of);
        __syncthreads();
        if (first + threadIdx.x < rows) dot.take(first + threadIdx.x, sum_of[threadIdx.x]);
        __syncthreads();
    }
    launch_sum_to<WINDOW>(xy, dot.part, partials, finished);
}
