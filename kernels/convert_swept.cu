// CSR to and from bands of rows swept in the order of columns (swept.cu draws them).
//
//     entries of a band by column   (0,0) (3,0) (2,1) (0,2) (1,2) (2,2) (3,3)        steps of 3
//     step of each                    0     0     0     1     1     1     2
//
// Entries come sorted by band, then column. A warp a band hands them out, 32 at a time: an entry goes to the first step that has room,
// whose columns begin near enough, and that lies behind the last step with an entry of its row. So no two of one step are of one row, and those of a row
// keep their order. Of 32 entries in one row only the first is placed at a time.
//
// Bytes an entry: key, number, row and place; a counter and a base a step, from the first-level cache.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), KEY (u32 or u64: band << bits | column), THREADS, ITEMS, BACK_THREADS.
#include "swept.cuh"
#include "tile_segments.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
typedef KEY K;
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
extern __shared__ u32 of_rows[];

DEVICE u32 column_of(K key, u32 bits) { return u32(key & ((K(1) << bits) - 1)); }

// Key and row within the band of each entry. A block a tile.
KERNEL swept_keys(const I* offsets, u64 n, const u64* starts, const u32* columns, u32 height, u32 bits, K* keys, u16* rows_in_band) {
    each_element(offsets, n, starts, [&](u64 row, u64, u64 at) {
        keys[at] = K(row / height) << bits | columns[at];
        rows_in_band[at] = u16(row % height);
    });
}

// Step << STEP_BITS | place of each entry, counted from its band's first step; entries and smallest column of each step, from the place
// of the band's first entry on; number of steps a band. A warp a band, `height` words of shared memory.
extern "C" __global__ void __launch_bounds__(32)
    hand_out(u64 rows, u32 height, u32 bits, const I* offsets, const K* keys, const u32* numbers, const u16* rows_in_band, u32* counts, u32* bases,
         u64* steps, u32* band_steps) {
    const u64 first_row = u64(blockIdx.x) * height, last_row = min(first_row + height, rows);
    const u64 begin = offsets[first_row], end = offsets[last_row];
    // The step behind the last that has an entry of the row.
    u32* const behind = of_rows;
    for (u32 i = lane_id(); i < height; i += 32) behind[i] = 0;
    counts += begin, bases += begin;
    __syncwarp();
    // What comes is asked for ahead: numbers of the entries after the next ones, and rows of the next.
    const auto number_at = [&](u64 e) { return e < end ? numbers[e] : 0; };
    const auto row_at = [&](u64 e, u32 number) { return e < end ? u32(rows_in_band[number]) : 0; };
    const auto column_at = [&](u64 e) { return e < end ? column_of(keys[e], bits) : 0; };
    u64 e = begin + lane_id();
    u32 next_row = row_at(e, number_at(e)), next_column = column_at(e), next_number = number_at(e + 32);
    // The first step with room, and the number of steps.
    u32 open = 0, have = 0;
    for (; e < end + lane_id(); e += 32) {
        const u32 row = next_row, column = next_column;
        next_row = row_at(e + 32, next_number), next_column = column_at(e + 32), next_number = number_at(e + 64);
        u32 waiting = __ballot_sync(ALL, e < end);
        const u32 smallest = __shfl_sync(ALL, column, 0);
        while (open < have && (counts[open] == STEP || smallest - bases[open] >= REACH)) open++;
        while (waiting) {
            bool mine = waiting >> lane_id() & 1;
            // Of those in one row, the first.
            const u32 alike = __match_any_sync(ALL, mine ? row : ALL - lane_id());
            mine = mine && !(alike & lanes_below());
            u32 step = 0;
            if (mine) {
                step = max(open, behind[row]);
                while (step < have && (counts[step] == STEP || column - bases[step] >= REACH)) step++;
            }
            const u32 together = __match_any_sync(ALL, mine ? step : ALL - lane_id());
            const u32 before = __popc(together & lanes_below());
            const u32 leads = __shfl_sync(ALL, column, __ffs(together) - 1);
            const bool opens = step >= have;
            const u32 full = mine && !opens ? counts[step] : 0, base = mine && !opens ? bases[step] : leads;
            const bool placed = mine && full + before < STEP && column - base < REACH;
            const u32 all_placed = __ballot_sync(ALL, placed);
            __syncwarp();
            if (placed) {
                steps[e] = u64(step) << STEP_BITS | (full + before);
                behind[row] = step + 1;
                if (before == 0) {
                    counts[step] = full + __popc(together & all_placed);
                    bases[step] = base;
                }
            }
            have += __any_sync(ALL, placed && opens);
            waiting &= ~all_placed;
            __syncwarp();
        }
    }
    if (lane_id() == 0) band_steps[blockIdx.x] = have;
}

// Counts and bases of all steps, without gaps. A block a band.
KERNEL close_up(u64 rows, u32 height, const I* offsets, const u32* firsts, const u32* counts, const u32* bases, u32* to_counts, u32* to_bases) {
    const u64 begin = offsets[u64(blockIdx.x) * height];
    const u32 first = firsts[blockIdx.x], have = firsts[blockIdx.x + 1] - first;
    for (u32 s = threadIdx.x; s < have; s += THREADS) {
        to_counts[first + s] = counts[begin + s];
        to_bases[first + s] = bases[begin + s];
    }
}

// Every entry to its place.
KERNEL place_swept(u64 n, u32 bits, const K* keys, const u32* numbers, const u16* rows_in_band, const u64* steps, const u32* firsts, const u64* starts,
            const u32* bases, const V* from, u32* places, V* values) {
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < n; e += u64(gridDim.x) * THREADS) {
        const K key = keys[e];
        const u32 number = numbers[e], step = firsts[u64(key) >> bits] + u32(steps[e] >> STEP_BITS);
        const u64 at = starts[step] + (steps[e] & (STEP - 1));
        places[at] = to_place(rows_in_band[number], column_of(key, bits) - bases[step]);
        values[at] = from[number];
    }
}

// Back: entries of a row are in the order of steps. A block a band, `height` words of shared memory.
extern "C" __global__ void __launch_bounds__(BACK_THREADS)
    swept_to_csr(u64 rows, u32 height, const u32* firsts, const u64* starts, const u32* bases, const u32* places, const V* values,
             const I* offsets, u32* columns, V* to_values) {
    const u64 row = u64(blockIdx.x) * height;
    u32* const taken = of_rows;
    for (u32 i = threadIdx.x; i < height; i += BACK_THREADS) taken[i] = 0;
    __syncthreads();
    for (u32 step = firsts[blockIdx.x]; step < firsts[blockIdx.x + 1]; step++) {
        for (u64 at = starts[step] + threadIdx.x; at < starts[step + 1]; at += BACK_THREADS) {
            const u32 place = places[at], r = row_in_band(place);
            const u64 to = u64(offsets[row + r]) + taken[r]++;
            columns[to] = bases[step] + column_in_reach(place);
            to_values[to] = values[at];
        }
        __syncthreads();
    }
}
