// The values of long rows of a product of sparse matrices, C = A B, whose pattern is known.
//
// A row is divided into pieces of at most ROOM entries, which warps of many blocks share; their columns and sums are in
// shared memory. Each lane takes an entry of A's row and finds by bisection which part of B's row is within the piece.
// Then entries are taken one after another: the lanes share that part, find each column's place among C's, and add the
// product to its sum. A row of B has each column once, and the lanes synchronise before the next entry, so products of
// an entry are added in the order of A's row, one by one, as on the host, and every run gives the same bits. If no part
// has more than one entry, as with aggregates, 32 are added at a time, those of one column one after another.
//
// A column's place is the number of C's columns before it, which is counted in a bitmap or, if the piece spans too many
// columns, found by bisection. (H200, 2026-11-26, a graph with 1.6 10^8 entries in its square: 9.2 ms; 40.7 ms if all
// lanes search for the beginning of one row of B, and for places by bisection.)
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), ROOM (entries of C per warp), PARTS (blocks that share a row's
// pieces), THREADS.
#include "columns.cuh"
#include "complex.cuh"

typedef SCALAR T;
typedef OFFSET I;
typedef TARGET J;

// The value of a lane.
template <typename A> DEVICE A of_lane(A value, u32 lane) {
    return each_word(value, [=](u32 word) { return __shfl_sync(ALL, word, lane); });
}

// Number of entries of A's row for which B's entries are in flight at a time.
constexpr u32 AHEAD = 4;
// Words of 32 columns in the bitmap of a piece.
constexpr u32 WORDS = ROOM / 2;

struct Sums {
    // A bit for each column of C within the piece, and the number of bits set before each word.
    u32 bits[WORDS];
    u16 before[WORDS];
    u32 columns[ROOM];
    T values[ROOM];
};

// Computes `length` entries of C from `place` on, which are in row `row`; B's rows may extend beyond them.
DEVICE void add_products(Sums& sums, u64 row, u64 place, u32 length, const I* a_offsets, const u32* a_columns,
                         const T* a_values, const I* b_offsets, const u32* b_columns, const T* b_values,
                         const u32* columns, T* values) {
    const u32 lane = lane_id();
    for (u32 i = lane; i < length; i += 32) {
        sums.columns[i] = columns[place + i];
        sums.values[i] = T();
    }
    __syncwarp();
    const u32 first = sums.columns[0], last = sums.columns[length - 1];
    const bool dense = last - first < 32 * WORDS;
    if (dense) {
        for (u32 word = lane; word < WORDS; word += 32) sums.bits[word] = 0;
        __syncwarp();
        for (u32 i = lane; i < length; i += 32) {
            const u32 at = sums.columns[i] - first;
            atomicOr(sums.bits + at / 32, 1u << (at % 32));
        }
        __syncwarp();
        for (u32 i = lane; i < length; i += 32) {
            const u32 at = sums.columns[i] - first;
            // The first column of a word gives the number of columns before the word.
            if (!(sums.bits[at / 32] & ((1u << (at % 32)) - 1))) sums.before[at / 32] = u16(i);
        }
        __syncwarp();
    }
    const auto place_of = [&](u32 column) {
        if (!dense) return first_from(sums.columns, 0u, length, column);
        const u32 at = column - first;
        return sums.before[at / 32] + u32(__popc(sums.bits[at / 32] & ((1u << (at % 32)) - 1)));
    };
    const u64 behind = a_offsets[row + 1];
    for (u64 tile = a_offsets[row]; tile < behind; tile += 32) {
        // Each lane finds the part of one of B's rows that is within the piece.
        u64 from = 0;
        u32 within = 0;
        T own = T();
        if (tile + lane < behind) {
            const u64 k = a_columns[tile + lane], end = b_offsets[k + 1];
            from = first_from(b_columns, u64(b_offsets[k]), end, first);
            within = u32(first_from(b_columns, from, end, last + 1) - from);
            own = a_values[tile + lane];
        }
        if (__all_sync(ALL, within <= 1)) {
            // Each lane has at most one product. Those of one column are added one after another.
            const u32 column = within ? b_columns[from] : 0;
            const T product = within ? own * b_values[from] : T();
            const u32 alike = __match_any_sync(ALL, column) & __ballot_sync(ALL, within > 0);
            const u32 turn = __popc(alike & lanes_below()), i = within ? place_of(column) : 0;
            for (u32 t = 0; __any_sync(ALL, within && turn >= t); t++) {
                if (within && turn == t) sums.values[i] = sums.values[i] + product;
                __syncwarp();
            }
            continue;
        }
        for (u32 left = __ballot_sync(ALL, within > 0); left;) {
            u32 lengths[AHEAD], column[AHEAD];
            u64 begin[AHEAD];
            T factor[AHEAD], value[AHEAD];
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                const u32 e = left ? __ffs(left) - 1 : 0;
                lengths[u] = left ? __shfl_sync(ALL, within, e) : 0;
                begin[u] = __shfl_sync(ALL, from, e) + lane;
                factor[u] = of_lane(own, e);
                left &= left - 1;
                column[u] = 0;
                value[u] = T();
                if (lane < lengths[u]) {
                    column[u] = b_columns[begin[u]];
                    value[u] = b_values[begin[u]];
                }
            }
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                for (u32 j = lane; j < lengths[u]; j += 32) {
                    if (j > lane) {
                        column[u] = b_columns[begin[u] + (j - lane)];
                        value[u] = b_values[begin[u] + (j - lane)];
                    }
                    const u32 i = place_of(column[u]);
                    sums.values[i] = sums.values[i] + factor[u] * value[u];
                }
                __syncwarp();
            }
        }
    }
    for (u32 i = lane; i < length; i += 32) values[place + i] = sums.values[i];
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    long_values(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, const u32* columns,
                T* values) {
    __shared__ Sums of_warps[THREADS / 32];
    for (u64 item = blockIdx.x; item < count * PARTS; item += gridDim.x) {
        const u64 row = rows[item / PARTS], end = offsets[row + 1];
        const u64 piece = item % PARTS * (THREADS / 32) + threadIdx.x / 32;
        for (u64 place = offsets[row] + piece * ROOM; place < end; place += u64(PARTS) * (THREADS / 32) * ROOM)
            add_products(of_warps[threadIdx.x / 32], row, place, u32(min(u64(ROOM), end - place)), a_offsets,
                               a_columns, a_values, b_offsets, b_columns, b_values, columns, values);
    }
}
