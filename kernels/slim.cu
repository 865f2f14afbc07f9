// y = alpha A x + beta y with A in slim sections: columns as kinds of rows or as codes, values as codes or stored.
//
//     | 1 . 7 . |     distances (column - row)   0 2 | 1 | -1 0 | -3 0        sorted: -3 -1 0 1 2 = codes 0 1 2 3 4
//     | . . 8 . |     values, sorted             1 2 3 4 7 8                               = codes 0 1 2 3 4 5
//     | . 4 3 . |     a section is 32 rows; a row's codes lie four to a word, a section's words row beside row:
//     | 2 . . 1 |     columns  2 4 * * | 3 * * * | 1 2 * * | 0 2 * *          (* is 255: no entry)
//                     values   0 4     | 5       | 3 2     | 1 0
//
// A warp takes a section, a thread a row. A thread reads four codes at once and has two such quads on their way, so that
// eight elements of x are asked for together. Sums run from left to right: two runs give the same bits.
//
// Columns of a section: a byte a row that names its kind (KINDS), a byte an entry into the matrix's table of distances
// (CODES), or, whichever holds the section, 16 bits above one of the section's bases (slim.cuh) or plain 32 bits (WIDE). With
// stored values slim_kinds_stored.cu and slim_wide.cu have the products of the first and the last.
// Values: a byte an entry into a table of 256 (CODES), or STORED, in a narrower type where that is exact.
//
// Bytes a nonzero: 0, 1, 2 or 4 for the column, 1, 4 or 8 for the value. A row: y, x, 1/4 byte of offsets, 1/2 of bases, its kind.
// Source: Kourtis, Goumas and Koziris 2008 (compressing indices and values); Kreutzer et al. 2014 (sections).
//
// Constants: SCALAR (vectors), VALUE (the matrix's values), STORED (values as stored), OFFSET (offsets), COLUMNS, VALUES,
// THREADS, QUADS.
#include "product_dot.cuh"
#include "slim.cuh"

typedef SCALAR T;
typedef VALUE V;
typedef STORED S;
typedef OFFSET I;

struct Tables {
    V* number;
    u32* distance;
    u32* start;
};

// The tables move into shared memory. A table of distances has 256 places, whatever it holds: the last is for 255.
DEVICE Tables tables_of(u32 kinds, u32 table, const u32* starts, const u32* distances, u32 count, const V* numbers) {
    extern __shared__ u128 memory[];
    Tables t = {reinterpret_cast<V*>(memory), nullptr, nullptr};
    t.distance = reinterpret_cast<u32*>(t.number + (VALUES == SLIM_CODES ? 256 : 0));
    t.start = t.distance + (COLUMNS == SLIM_CODES ? 256 : COLUMNS == SLIM_KINDS ? table : 0);
    if (VALUES == SLIM_CODES)
        for (u32 i = threadIdx.x; i < count; i += THREADS) t.number[i] = numbers[i];
    if (COLUMNS == SLIM_CODES)
        for (u32 i = threadIdx.x; i < 256; i += THREADS) t.distance[i] = i < table ? distances[i] : 0;
    if (COLUMNS == SLIM_KINDS) {
        for (u32 i = threadIdx.x; i < table; i += THREADS) t.distance[i] = distances[i];
        for (u32 i = threadIdx.x; i <= kinds; i += THREADS) t.start[i] = starts[i];
    }
    __syncthreads();
    return t;
}

// A section, as a lane has it: its row's kind starts at `start` and has `length` entries, or its bases are these, the row added; where RANGES
// one of four, else the first.
struct Section {
    const u32* word;
    const S* value;
    u32 row, width, quads, of_columns, start, length;
};
template <bool RANGES> DEVICE T section_sum(const Tables& t, const Section& of, uint4 bases, u32 conjugate, const T* __restrict__ x) {
    const u32 stride = of.of_columns + (VALUES == SLIM_CODES);
    T sum = T();
    for (u32 quad = 0; quad < of.quads; quad += QUADS) {
        u32 column[4 * QUADS];
        bool here[4 * QUADS];
        T number[4 * QUADS], element[4 * QUADS];
#pragma unroll
        for (u32 u = 0; u < QUADS; u++) {
            const bool any = quad + u < of.quads;
            const u32* mine = of.word + u64(quad + u) * stride * 32;
            u32 codes[4] = {~0u, ~0u, ~0u, ~0u};
            if (COLUMNS == SLIM_CODES && any) codes[0] = __ldcs(mine);
            if (COLUMNS == SLIM_WIDE && any) {
                codes[0] = __ldcs(mine);
                codes[1] = __ldcs(mine + 32);
                if (!RANGES && of.of_columns == 4) {
                    codes[2] = __ldcs(mine + 64);
                    codes[3] = __ldcs(mine + 96);
                }
            }
            const u32 number_codes = VALUES == SLIM_CODES && any ? __ldcs(mine + of.of_columns * 32) : 0;
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                const u32 i = 4 * u + j, k = 4 * quad + i;
                if (COLUMNS == SLIM_KINDS) {
                    here[i] = k < of.length;
                    column[i] = here[i] ? of.row + t.distance[of.start + k] : 0;
                } else if (COLUMNS == SLIM_CODES) {
                    const u32 code = codes[0] >> (8 * j) & 255;
                    here[i] = code != 255;
                    column[i] = of.row + t.distance[code];
                } else if (RANGES || of.of_columns == 2) {
                    const u32 code = codes[j / 2] >> (16 * (j % 2)) & 65535;
                    here[i] = code != 65535;
                    column[i] = (RANGES ? base_of(bases, code) : bases.x) + code;
                } else {
                    here[i] = codes[j] != ~0u;
                    column[i] = codes[j];
                }
                if (VALUES == SLIM_CODES) number[i] = entry<T>(t.number[number_codes >> (8 * j) & 255], conjugate);
                else number[i] = k < of.width ? entry<T>(stream(of.value + u64(k) * 32), conjugate) : T();
            }
        }
#pragma unroll
        for (u32 i = 0; i < 4 * QUADS; i++) element[i] = here[i] ? x[column[i]] : T();
#pragma unroll
        for (u32 i = 0; i < 4 * QUADS; i++)
            if (here[i]) sum = sum + number[i] * element[i];
    }
    return sum;
}

// finish(row, sum) for every row of this thread's sections.
template <typename F>
DEVICE void sums(u64 rows, const u8* order, const u8* kind_of, u32 kinds, u32 table, const u32* starts, const u32* distances, const I* offsets, const u32* bases, const u32* words, u32 count,
                 const V* numbers, const I* entries, const S* values, u32 conjugate, const T* __restrict__ x, F finish) {
    const Tables t = tables_of(kinds, table, starts, distances, count, numbers);
    const u32 lane = lane_id();
    const u64 sections = (rows + 31) / 32;
    for (u64 section = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32; section < sections; section += u64(gridDim.x) * (THREADS / 32)) {
        const u64 place = section * 32 + lane;
        const bool real = place < rows;
        const u32 row = real ? u32(row_at(order, place)) : 0;
        const u64 first = entries[section];
        const u32 width = u32(u64(entries[section + 1]) - first) / 32, quads = (width + 3) / 4;
        Section of = {words + u64(offsets[section]) + lane, values + first + lane, row, width, quads, COLUMNS == SLIM_KINDS ? 0u : 1u, 0, 0};
        uint4 base = {};
        bool ranges = false;
        if (COLUMNS == SLIM_WIDE) {
            of.of_columns = quads ? u32(u64(offsets[section + 1]) - u64(offsets[section])) / (32 * quads) - (VALUES == SLIM_CODES) : 0;
            base = cached(reinterpret_cast<const uint4*>(bases) + section);
            ranges = of.of_columns == 2 && !is_near(base);
            base = {base.x + row, base.y + row, base.z + row, base.w + row};
        }
        if (COLUMNS == SLIM_KINDS && real) {
            const u32 kind = kind_of[row];
            of.start = t.start[kind];
            of.length = t.start[kind + 1] - of.start;
        }
        const T sum = COLUMNS == SLIM_WIDE && ranges ? section_sum<true>(t, of, base, conjugate, x) : section_sum<false>(t, of, base, conjugate, x);
        if (real) finish(row, sum);
    }
}

#define SLIM_ARGUMENTS                                                                                                                                                                                  \
    u64 rows, const u8 *order, const u8 *kind_of, u32 kinds, u32 table, const u32 *starts, const u32 *distances, const I *offsets, const u32 *bases, const u32 *words, u32 count, const V *numbers, \
        const I *entries, const S *values
#define SLIM_PASSED rows, order, kind_of, kinds, table, starts, distances, offsets, bases, words, count, numbers, entries, values

extern "C" __global__ void __launch_bounds__(THREADS) slim(SLIM_ARGUMENTS, u32 conjugate, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    sums(SLIM_PASSED, conjugate, x, [=](u32 row, T sum) { finish(alpha, sum, beta, y + row); });
}

// y = A x, *xy = x.y.
extern "C" __global__ void __launch_bounds__(THREADS) slim_dot(SLIM_ARGUMENTS, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    RowsDot<T> dot = {x, y, T()};
    sums(SLIM_PASSED, 0, x, [&](u32 row, T sum) { dot.take(row, sum); });
    launch_sum_to<THREADS>(xy, dot.part, partials, finished);
}
