// Computes the layout of the operands of a conjugate gradient kernel that keeps the matrix on the chip
// (cg_resident.cu).
//
// Block k of that kernel owns the rows from k * rows_a_block on. It keeps p for its own rows and after them for the
// other rows that its rows refer to, the halo, in ascending order:
//
//     | 1 . 7 . |   rows_a_block = 2      block 0   own 0 1, halo 2       local columns   0 2 | 2
//     | . . 8 . |                         block 1   own 2 3, halo 0 1                     3 0 | 2 1
//     | . 4 3 . |
//     | 2 . . 1 |
//
// A block marks columns outside its rows in a bitmap of all columns and counts the marks before each word, which gives
// the place of each in the halo. The result depends on the pattern alone.
//
// Constants: OFFSET (offsets), THREADS.
#include "common.cuh"

typedef OFFSET I;

// counts[2 k] = length of block k's halo, counts[2 k + 1] = entries of its rows in slices of 32 padded to their longest
// row. If `halo` is not null, also writes the halo of block k from halo_starts[k] on, and the local column of each
// nonzero. Dynamic shared memory: 8 bytes for every 32 rows.
extern "C" __global__ void __launch_bounds__(THREADS)
    cg_layout(u32 rows, u32 rows_a_block, const I* offsets, const u32* columns, u32* counts, const u32* halo_starts, u32* halo, u16* locals) {
    extern __shared__ u32 bitmap[];
    __shared__ u32 of_warp[THREADS / 32], padded;
    const u32 words = (rows + 31) / 32;
    u32* const before = bitmap + words;
    const u32 first = min(rows, blockIdx.x * rows_a_block), last = min(rows, first + rows_a_block);
    const u64 start = offsets[first], end = offsets[last];
    for (u32 w = threadIdx.x; w < words; w += THREADS) bitmap[w] = 0;
    if (threadIdx.x == 0) padded = 0;
    __syncthreads();
    for (u64 e = start + threadIdx.x; e < end; e += THREADS) {
        const u32 c = columns[e];
        if (c < first || c >= last) atomicOr(&bitmap[c / 32], 1u << c % 32);
    }
    for (u32 base = threadIdx.x / 32 * 32; base < last - first; base += THREADS) {
        const u32 row = first + base + lane_id();
        u32 length = row < last ? u32(offsets[row + 1] - offsets[row]) : 0;
        length = most_of_lanes(length);
        if (lane_id() == 0) atomicAdd(&padded, 32 * length);
    }
    __syncthreads();
    // Each thread counts a range of words; a prefix sum gives the number of marks before that range.
    const u32 run = (words + THREADS - 1) / THREADS;
    const u32 from = min(words, threadIdx.x * run), to = min(words, from + run);
    u32 marks = 0;
    for (u32 w = from; w < to; w++) marks += __popc(bitmap[w]);
    const u32 up_to = warp_inclusive_sum(marks);
    if (lane_id() == 31) of_warp[threadIdx.x / 32] = up_to;
    __syncthreads();
    u32 rank = up_to - marks, total = 0;
    for (u32 w = 0; w < THREADS / 32; w++) {
        if (w < threadIdx.x / 32) rank += of_warp[w];
        total += of_warp[w];
    }
    if (threadIdx.x == 0) {
        counts[2 * blockIdx.x] = total;
        counts[2 * blockIdx.x + 1] = padded;
    }
    if (!halo) return;
    const u32 out = halo_starts[blockIdx.x];
    for (u32 w = from; w < to; w++) {
        before[w] = rank;
        for (u32 left = bitmap[w]; left; left &= left - 1) halo[out + rank++] = 32 * w + __ffs(left) - 1;
    }
    __syncthreads();
    for (u64 e = start + threadIdx.x; e < end; e += THREADS) {
        const u32 c = columns[e];
        const bool own = c >= first && c < last;
        const u32 below = bitmap[c / 32] & ((1u << c % 32) - 1);
        locals[e] = u16(own ? c - first : rows_a_block + before[c / 32] + __popc(below));
    }
}
