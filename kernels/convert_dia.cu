// CSR to and from diagonals, a warp LANES diagonals of a section of 32 rows at a time.
//
//     | 1 . 7 . |     row 2, diagonals -3 -1 0 1 2:  * 4 3 * *       CSR  4 in column 1, 3 in column 2
//     | . . 8 . |
//     | . 4 3 . |     Entry j of what is left of a row is on diagonal first + j or, where some are missing before it, further on.
//     | 2 . . 1 |
//
// One side lies along rows, the other along diagonals, so entries are turned over in shared memory (as in
// convert_rows.cu): on the side of CSR, 32 / LANES rows are read or written at once, LANES neighbouring entries of
// each; on the other side the 32 rows of a diagonal, padding too.
//
// Bytes a place: its value; an entry: value and column.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (u32 or u64), THREADS, LANES (4, 8, 16).
#include "columns.cuh"
#include "dia.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define ROWS_AT_ONCE (32 / LANES)
#define AT_ONCE 4
// No entry's distance.
#define NOWHERE i64(~u64(0) >> 1)

// One place more than LANES: neighbouring rows then start in different banks.
struct Tile {
    V values[SECTION][LANES + 1];
    i64 distances[LANES];
};

DEVICE V no_entry() {
    V value;
    memset(&value, 0xff, sizeof(V));
    return value;
}

// Which of LANES ascending distances it is; LANES where it is none. Those that are there come first.
DEVICE u32 slot_of(const i64* distances, i64 distance) {
    u32 slot = 0;
#pragma unroll
    for (u32 step = LANES / 2; step; step /= 2) slot += distances[slot + step - 1] < distance ? step : 0;
    return distances[slot] == distance ? slot : LANES;
}

// This warp's section.
DEVICE u64 own_section() { return u64(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32; }

// A warp takes LANES diagonals of a section. Rows behind the last, to the end of its section, have no entries. `lost`
// is set where an entry has the bits of none.
KERNEL csr_to_dia(u64 rows, const I* offsets, const u32* columns, const V* values, u32 diagonals, const i64* distances, V* places,
                  u32* lost) {
    __shared__ Tile tiles[THREADS / 32];
    Tile& tile = tiles[threadIdx.x / 32];
    const u32 lane = lane_id(), j = lane % LANES, groups = (diagonals + LANES - 1) / LANES;
    u32 section = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, k = 0;
    if (groups > 1) {
        k = section % groups * LANES;
        section /= groups;
    }
    const u64 begin = u64(section) * SECTION, row = begin + lane;
    if (begin >= rows) return;
    u64 at = row < rows ? u64(offsets[row]) : 0;
    const u64 end = row < rows ? u64(offsets[row + 1]) : 0;
    const i64 usual = k + j < diagonals ? __ldg(distances + k + j) : NOWHERE;
    if (k > 0) at = first_from(columns, at, end, i64(row) + __ldg(distances + k));
#pragma unroll
    for (u32 i = 0; i < LANES; i++) tile.values[lane][i] = no_entry();
    if (lane < LANES) tile.distances[lane] = usual;
    __syncwarp();
    for (u32 i = 0; i < LANES; i += AT_ONCE) {
        u32 column[AT_ONCE];
        V value[AT_ONCE];
        bool here[AT_ONCE];
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            const u32 of = (i + u) * ROWS_AT_ONCE + lane / LANES;
            const u64 from = shuffle(at, of) + j;
            here[u] = from < shuffle(end, of);
            if (here[u]) {
                column[u] = columns[from];
                value[u] = values[from];
            }
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            if (!here[u]) continue;
            const u32 of = (i + u) * ROWS_AT_ONCE + lane / LANES;
            const i64 distance = i64(column[u]) - i64(begin + of);
            const u32 slot = usual == distance ? j : slot_of(tile.distances, distance);
            if (slot == LANES) continue;
            tile.values[of][slot] = value[u];
            if (is_no_entry(value[u])) *lost = 1;
        }
    }
    __syncwarp();
    const u64 first = first_place(row, diagonals);
#pragma unroll
    for (u32 i = 0; i < LANES; i++)
        if (k + i < diagonals) places[first + u64(k + i) * SECTION] = tile.values[lane][i];
}

KERNEL dia_lengths(u64 rows, u32 diagonals, const V* places, u32* lengths) {
    const u64 row = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (row >= rows) return;
    const u64 first = first_place(row, diagonals);
    u32 length = 0;
#pragma unroll 8
    for (u32 k = 0; k < diagonals; k++) length += !is_no_entry(places[first + u64(k) * SECTION]);
    lengths[row] = length;
}

KERNEL dia_to_csr(u64 rows, const I* offsets, u32* columns, V* values, u32 diagonals, const i64* distances, const V* places) {
    __shared__ Tile tiles[THREADS / 32];
    Tile& tile = tiles[threadIdx.x / 32];
    const u32 lane = lane_id(), j = lane % LANES;
    const u64 begin = own_section() * SECTION, row = begin + lane, first = first_place(row, diagonals);
    if (begin >= rows) return;
    u64 at = row < rows ? u64(offsets[row]) : 0;
    for (u32 k = 0; k < diagonals; k += LANES) {
        const u32 last = min(k + LANES, diagonals);
        u32 mine = 0;
#pragma unroll
        for (u32 i = 0; i < LANES; i++)
            if (k + i < last) {
                const V value = places[first + u64(k + i) * SECTION];
                tile.values[lane][i] = value;
                mine |= u32(!is_no_entry(value)) << i;
            }
        __syncwarp();
        const i64 distance = k + j < last ? __ldg(distances + k + j) : 0;
#pragma unroll 4
        for (u32 i = 0; i < LANES; i++) {
            const u32 of = i * ROWS_AT_ONCE + lane / LANES, there = __shfl_sync(ALL, mine, of);
            const u64 to = shuffle(at, of) + __popc(there & ((1u << j) - 1));
            if (there >> j & 1) {
                columns[to] = u32(i64(begin + of) + distance);
                values[to] = tile.values[of][j];
            }
        }
        at += __popc(mine);
        __syncwarp();
    }
}
