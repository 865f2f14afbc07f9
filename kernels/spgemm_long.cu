// The pattern of a product of sparse matrices, C = A B, for rows with too many products for the tables of spgemm.cu.
//
// A block takes a row, with one bit for each column of a window; warps take 32 of A's entries in turn, find where B's rows
// enter the window by bisection, and set the bits of their columns: a lane those of a short row, all lanes those of a
// longer one. Set bits are counted, or written as columns, which ascend by themselves. Rows that are wider than a window
// take several, each with a pass over A's row.
//
// Constants: OFFSET (of A and B), TARGET (of C), WORDS (of a window, 32 columns each), THREADS.
#include "block_before.cuh"
#include "columns.cuh"

typedef OFFSET I;
typedef TARGET J;

// A lane alone reads rows of B with at most this many entries.
constexpr u64 OF_LANE = 4;

// The first and the last column of the row, in shared memory.
DEVICE void find_ends(u32& first, u32& last, u64 begin, u64 end, const u32* a_columns, const I* b_offsets, const u32* b_columns) {
    if (threadIdx.x == 0) {
        first = 0xffffffffu;
        last = 0;
    }
    __syncthreads();
    for (u64 at = begin + threadIdx.x; at < end; at += THREADS) {
        const u64 k = a_columns[at], from = b_offsets[k], to = b_offsets[k + 1];
        if (from < to) {
            atomicMin(&first, b_columns[from]);
            atomicMax(&last, b_columns[to - 1]);
        }
    }
    __syncthreads();
}

// Sets the bits of a window of `words` words from column `start` on.
DEVICE void set_bits(u32* bits, u32 words, u64 start, u64 begin, u64 end, const u32* a_columns, const I* b_offsets, const u32* b_columns) {
    for (u32 word = threadIdx.x; word < words; word += THREADS) bits[word] = 0;
    __syncthreads();
    const u64 behind = start + 32 * u64(words);
    const auto set = [=](u64 entry) {
        const u64 column = b_columns[entry];
        const u32 place = u32(column - start);
        if (column < behind) atomicOr(bits + place / 32, 1u << (place % 32));
        return column < behind;
    };
    for (u64 tile = begin + threadIdx.x / 32 * 32; tile < end; tile += THREADS) {
        u64 from = 0, to = 0;
        if (tile + lane_id() < end) {
            const u64 k = a_columns[tile + lane_id()];
            to = b_offsets[k + 1];
            from = first_from(b_columns, u64(b_offsets[k]), to, start);
        }
        const bool is_short = to - from <= OF_LANE;
        for (u64 entry = from; is_short && entry < to && set(entry); entry++) {}
        for (u32 left = __ballot_sync(ALL, !is_short); left; left &= left - 1) {
            const u32 lane = __ffs(left) - 1;
            const u64 last = __shfl_sync(ALL, to, lane);
            for (u64 entry = __shfl_sync(ALL, from, lane) + lane_id(); entry < last && set(entry); entry += 32) {}
        }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    long_lengths(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const I* b_offsets,
                 const u32* b_columns, u32* lengths) {
    __shared__ u32 bits[WORDS];
    __shared__ u32 first, last;
    for (u64 i = blockIdx.x; i < count; i += gridDim.x) {
        const u64 row = rows[i], begin = a_offsets[row], end = a_offsets[row + 1];
        find_ends(first, last, begin, end, a_columns, b_offsets, b_columns);
        // Read here, between two barriers, because the next row overwrites them.
        const u64 low = first, high = last;
        u32 set = 0;
        for (u64 start = low / 32 * 32; start <= high; start += 32 * WORDS) {
            const u32 words = u32(min(u64(WORDS), (high - start) / 32 + 1));
            set_bits(bits, words, start, begin, end, a_columns, b_offsets, b_columns);
            for (u32 word = threadIdx.x; word < words; word += THREADS) set += __popc(bits[word]);
            __syncthreads();
        }
        u32 all;
        block_before<THREADS>(set, all);
        if (threadIdx.x == 0) lengths[row] = all;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    long_columns(u64 count, const u32* rows, const I* a_offsets, const u32* a_columns, const I* b_offsets,
                 const u32* b_columns, const J* offsets, u32* columns) {
    __shared__ u32 bits[WORDS];
    __shared__ u32 first, last;
    for (u64 i = blockIdx.x; i < count; i += gridDim.x) {
        const u64 row = rows[i], begin = a_offsets[row], end = a_offsets[row + 1];
        find_ends(first, last, begin, end, a_columns, b_offsets, b_columns);
        // Read here, between two barriers, because the next row overwrites them.
        const u64 low = first, high = last;
        u64 place = offsets[row];
        for (u64 start = low / 32 * 32; start <= high; start += 32 * WORDS) {
            const u32 words = u32(min(u64(WORDS), (high - start) / 32 + 1));
            set_bits(bits, words, start, begin, end, a_columns, b_offsets, b_columns);
            for (u32 tile = 0; tile < words; tile += THREADS) {
                const u32 word = tile + threadIdx.x;
                u32 here = word < words ? bits[word] : 0, all;
                u64 to = place + block_before<THREADS>(u32(__popc(here)), all);
                for (; here; here &= here - 1) columns[to++] = u32(start) + 32 * word + (__ffs(here) - 1);
                place += all;
            }
            __syncthreads();
        }
    }
}
