// Values of the rows of a product of sparse matrices, C = A B, whose pattern is known, for rows with too many products
// to be sorted. gustavson.cuh says in which order products come.
//
//     columns 3 17 40 of a row of C    bits  . 17 . . | 3 . . 40    h(c) = the leading bits of c times an odd number
//     sums, in the order of places     before  0      | 1           the sum of 40 is number 1 + one bit before its own
//
// A multiplicative hash gives each column of the row a place among PLACES bits. Odd factors are tried until one sends
// no two columns of the row to the same place. The number of bits set before a column's place is the number of its sum,
// so that a product finds its sum by one read; in a table with collisions all lanes of a warp would search until the
// last of them has found its slot. If every factor collides, the pattern is searched by bisection. Products of an entry
// of C are added one by one in the order of A's row, as on the host.
//
// Bytes moved: B's rows once per product (mostly from the caches), A's and C's pattern and values once. Sources:
// Fredman, Komlos and Szemeredi, J. ACM 31 (1984) (tables without collisions); Jacobson, FOCS 1989 (ranks in a string
// of bits).
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), GROUP (lanes per row), MOST (maximum number of entries of a
// row of C), PLACES (for them), THREADS. All are powers of two.
#include "columns.cuh"
#include "gustavson.cuh"

typedef SCALAR T;
typedef TARGET J;

// Columns per lane, and words of bits.
constexpr u32 EACH = MOST / GROUP, WORDS = PLACES / 32 / GROUP;
// Number of factors that are tried. A factor has no collision in a row of n columns with a probability of exp(-n^2 / (2
// PLACES)).
constexpr u32 TRIALS = 64;

struct Word {
    u32 bits, before;
};

struct Table {
    T sums[MOST];
    Word words[PLACES / 32];
};

DEVICE u32 place_of(u32 column, u32 factor) { return u32(u64(column * factor) * PLACES >> 32); }

DEVICE u32 number_of(const Word* words, u32 place) {
    const Word word = words[place / 32];
    return word.before + __popc(word.bits & ((1u << place % 32) - 1));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    known_values(u64 count, u32 listed, const u32* rows, const I* a_offsets, const u32* a_columns, const T* a_values,
                 const I* b_offsets, const u32* b_columns, const T* b_values, const J* offsets, const u32* pattern,
                 T* values) {
    __shared__ Table tables[THREADS / GROUP];
    Table& table = tables[threadIdx.x / GROUP];
    const u32 lane = lane_id() % GROUP;
    // All lanes of a warp stay together, including those whose rows are beyond the last.
    for (u64 of_warp = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32 * (32 / GROUP); of_warp < count;
         of_warp += u64(gridDim.x) * (THREADS / GROUP)) {
        const u64 i = of_warp + lane_id() / GROUP;
        const ProductRow of = product_row(i, count, listed, rows, a_offsets, offsets);
        const u64 place = of.place, begin = of.begin, end = of.end;
        const u32 length = of.length;
        u32 own[EACH];
#pragma unroll
        for (u32 k = 0; k < EACH; k++) {
            const u32 entry = k * GROUP + lane;
            own[k] = entry < length ? pattern[place + entry] : 0;
            table.sums[entry] = T();
        }
        u32 factor = 0;
        bool alone = false;
        for (u32 trial = 0; trial < TRIALS && __any_sync(ALL, !alone); trial++) {
            if (!alone) {
                factor = 0x9e3779b1u * (2 * trial + 1);
#pragma unroll
                for (u32 k = 0; k < WORDS; k++) table.words[k * GROUP + lane].bits = 0;
            }
            __syncwarp();
            bool meets = false;
            if (!alone)
#pragma unroll
                for (u32 k = 0; k < EACH; k++)
                    if (k * GROUP + lane < length) {
                        const u32 at = place_of(own[k], factor), bit = 1u << (at & 31);
                        meets |= (atomicOr(&table.words[at / 32].bits, bit) & bit) != 0;
                    }
            alone = votes_of_row(meets) == 0;
            __syncwarp();
        }
        u32 before = 0;
#pragma unroll
        for (u32 k = 0; k < WORDS; k++) {
            const u32 set = __popc(table.words[k * GROUP + lane].bits);
            u32 sum = set;
#pragma unroll
            for (u32 by = 1; by < GROUP; by *= 2) {
                const u32 other = __shfl_up_sync(ALL, sum, by, GROUP);
                if (lane >= by) sum += other;
            }
            table.words[k * GROUP + lane].before = before + sum - set;
            before += from_lane(sum, GROUP - 1);
        }
        __syncwarp();
        const auto use = [&](bool has, T value, EntryOf<T> entry) {
            if (!has) return;
            // A column that is not in the pattern gets some number too.
            const u32 at = alone ? number_of(table.words, place_of(entry.column, factor)) % MOST
                                 : first_from(pattern + place, 0u, length - 1, entry.column);
            table.sums[at] = table.sums[at] + value * entry.value;
        };
        each_product(begin, end, a_columns, a_values, b_offsets, b_columns, b_values, use, [] { return true; });
#pragma unroll
        for (u32 k = 0; k < EACH; k++)
            if (k * GROUP + lane < length) {
                const u32 entry = k * GROUP + lane;
                values[place + entry] = table.sums[alone ? number_of(table.words, place_of(own[k], factor)) : entry];
            }
        __syncwarp();
    }
}
