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
// A block takes a window of rows, within which they may be ordered by length, and a warp a section of it, a thread a row. Up to UNROLL entries of a
// row are asked for with no branch between: where there is none, x_0 is read and not used. Sums change places in shared memory, so that y is
// written, and read, line by line. Matrices are larger than the caches, so what counts is that a multiprocessor is full of threads, as MIN_BLOCKS tells
// the compiler: it then keeps fewer of a row's loads under way, of more rows. Sums run from left to right: two runs give the same bits.
//
// Bytes a nonzero: 2 or 4 for the column, 4 or 8 (complex twice that) for the value, padding too. A row: y, x, 3/8 byte of offsets, one of order.
// Source: as slim.cu.
//
// Constants: SCALAR (vectors), STORED (values as stored), OFFSET (offsets), THREADS (those of a window), UNROLL (even), MIN_BLOCKS.
#include "product_dot.cuh"
#include "slim.cuh"

typedef SCALAR T;
typedef STORED S;
typedef OFFSET I;
static_assert(UNROLL % 2 == 0, "a step begins with a word of its own");
static_assert(THREADS == WINDOW, "a block takes a window");

// How a section's columns are held: in 32 bits, in 16 above one base, or in 16 above one of four.
enum Held { FAR, NEAR, RANGES };

// Adds N entries of a row, to which the bases have been added.
template <u32 N, Held HELD> DEVICE T add_entries(T sum, const u32* words, const S* values, uint4 bases, const T* x, u32 conjugate) {
    constexpr bool NARROW = HELD != FAR;
    constexpr u32 WORDS = NARROW ? (N + 1) / 2 : N;
    u32 word[WORDS], column[N];
    bool here[N];
    S value[N];
    T of_x[N];
#pragma unroll
    for (u32 w = 0; w < WORDS; w++) word[w] = passing(words + w * 32);
#pragma unroll
    for (u32 u = 0; u < N; u++) value[u] = passing(values + u * 32);
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const u32 code = NARROW ? word[u / 2] >> (16 * (u % 2)) & 65535 : word[u];
        here[u] = code != (NARROW ? 65535 : ~0u);
        const u32 base = HELD == FAR ? 0 : HELD == NEAR ? bases.x : base_of(bases, code);
        column[u] = here[u] ? base + code : 0;
    }
#pragma unroll
    for (u32 u = 0; u < N; u++) of_x[u] = cached(x + column[u]);
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const T more = sum + entry<T>(value[u], conjugate) * of_x[u];
        sum = here[u] ? more : sum;
    }
    return sum;
}
// As many as are left, fewer than N.
template <u32 N, Held HELD> DEVICE T add_rest(u32 left, T sum, const u32* words, const S* values, uint4 bases, const T* x, u32 conjugate) {
    if constexpr (N > 1) {
        if (left == N - 1) return add_entries<N - 1, HELD>(sum, words, values, bases, x, conjugate);
        return add_rest<N - 1, HELD>(left, sum, words, values, bases, x, conjugate);
    }
    return sum;
}
template <Held HELD> DEVICE T row_sum(u32 width, const u32* words, const S* values, uint4 bases, const T* x, u32 conjugate) {
    constexpr u32 CODES = HELD == FAR ? 1 : 2; // of a word
    T sum = T();
    u32 k = 0;
    for (; k + UNROLL <= width; k += UNROLL)
        sum = add_entries<UNROLL, HELD>(sum, words + u64(k / CODES) * 32, values + u64(k) * 32, bases, x, conjugate);
    return add_rest<UNROLL, HELD>(width - k, sum, words + u64(k / CODES) * 32, values + u64(k) * 32, bases, x, conjugate);
}

#define WIDE u64 rows, const u8 *order, const I *offsets, const u32 *bases, const u32 *words, const I *entries, const S *values
#define OF_WIDE rows, order, offsets, bases, words, entries, values

// The sum of the row that this thread's place in the window of rows from `first` on has in their order. The whole block calls it. A row's words
// of a quad of entries lie one behind the other, and so do its quads. What is known of a section is asked for at once, also where a thread has no
// row: in a branch one load would wait for the other.
DEVICE T sum_in_order(WIDE, u32 conjugate, const T* x, u64 first) {
    __shared__ T sum_of[WINDOW];
    const bool mine = first + threadIdx.x < rows;
    const u64 place = mine ? first + threadIdx.x : rows - 1, section = place / 32;
    const u64 start = entries[section], end = entries[section + 1], word = offsets[section], word_end = offsets[section + 1];
    const uint4 base = cached(reinterpret_cast<const uint4*>(bases) + section);
    const u32 lane = place % 32, number = order ? order[place] : u32(place - first), row = u32(first) + number;
    const u32 width = u32(end - start) / 32, quads = (width + 3) / 4;
    const uint4 from_row = {base.x + row, base.y + row, base.z + row, base.w + row};
    words += word + lane;
    values += start + lane;
    const T sum = u32(word_end - word) / 32 != 2 * quads ? row_sum<FAR>(width, words, values, from_row, x, conjugate)
                  : is_near(base)                        ? row_sum<NEAR>(width, words, values, from_row, x, conjugate)
                                                         : row_sum<RANGES>(width, words, values, from_row, x, conjugate);
    if (mine) sum_of[number] = sum;
    __syncthreads();
    return sum_of[threadIdx.x];
}

// A block a window.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) slim_wide(WIDE, u32 conjugate, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    const u64 first = u64(blockIdx.x) * WINDOW, row = first + threadIdx.x;
    const T sum = sum_in_order(OF_WIDE, conjugate, x, first);
    if (row < rows) finish(alpha, sum, beta, y + row);
}

// y = A x, *xy = x.y, by blocks that stay.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) slim_wide_dot(WIDE, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    RowsDot<T> dot = {x, y, T()};
    for (u64 first = u64(blockIdx.x) * WINDOW; first < rows; first += u64(gridDim.x) * WINDOW) {
        const T sum = sum_in_order(OF_WIDE, 0, x, first);
        if (first + threadIdx.x < rows) dot.take(first + threadIdx.x, sum);
        __syncthreads();
    }
    launch_sum_to<THREADS>(xy, dot.part, partials, finished);
}
