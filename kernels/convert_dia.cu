// CSR to and from diagonals; a warp processes LANES diagonals of a section of 32 rows at a time.
//
//     | 1 . 7 . |     row 2, diagonals -3 -1 0 1 2:  * 4 3 * *       CSR  4 in column 1, 3 in column 2
//     | . . 8 . |
//     | . 4 3 . |     Entry j of the rest of a row is on diagonal first + j, or later if some are missing before it.
//     | 2 . . 1 |
//
// One format is contiguous along rows, the other along diagonals, so entries are transposed in shared memory (as in
// convert_rows.cu): for CSR, 32 / LANES rows are read or written at once, with LANES neighbouring entries of each; for
// diagonals, the 32 rows of one diagonal, including padding.
//
// If only half of a symmetric matrix is stored, the diagonals left of the main one are transposed in the same way, and
// compared with the stored diagonals that mirror them.
//
// Bytes per place: its value; per entry: value and column.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (u32 or u64), THREADS, LANES (4, 8, 16).
#include "columns.cuh"
#include "dia.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define ROWS_AT_ONCE (32 / LANES)
#define AT_ONCE 4
// Larger than any entry's distance.
#define NOWHERE i64(~u64(0) >> 1)

// One place more than LANES, so that neighbouring rows start in different banks.
struct Tile {
    V values[SECTION][LANES + 1];
    i64 distances[LANES];
};

DEVICE V no_entry() {
    V value;
    memset(&value, 0xff, sizeof(V));
    return value;
}

// The index of a distance among LANES ascending ones; LANES if it is not among them. Distances that exist come first.
DEVICE u32 slot_of(const i64* distances, i64 distance) {
    u32 slot = 0;
#pragma unroll
    for (u32 step = LANES / 2; step; step /= 2) slot += distances[slot + step - 1] < distance ? step : 0;
    return distances[slot] == distance ? slot : LANES;
}

DEVICE bool same_bits(V a, V b) {
    const words_of<V> left = split(a), right = split(b);
    bool same = true;
#pragma unroll
    for (u32 i = 0; i < sizeof(left.word) / sizeof(u32); i++) same = same && left.word[i] == right.word[i];
    return same;
}

// Stored diagonals; the last `mirrored` of them also represent their mirror images.
struct Diagonals {
    u32 stored, mirrored;
    const i64* distances;

    DEVICE u32 count() const { return stored + mirrored; }
    // The distances in the order of columns: the mirror image of the last diagonal is first.
    DEVICE i64 distance(u32 k) const { return k < mirrored ? -__ldg(distances + stored - 1 - k) : __ldg(distances + k - mirrored); }
    DEVICE V entry(const V* places, u64 row, u32 k) const {
        if (k >= mirrored) return places[first_place(row, stored) + u64(k - mirrored) * SECTION];
        const u64 above = row + distance(k);
        return above < row ? places[first_place(above, stored) + u64(stored - 1 - k) * SECTION] : no_entry();
    }
};

// The number of this warp's section.
DEVICE u64 own_section() { return u64(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32; }

// A warp takes LANES of the diagonals begin .. end of a section; `done` gets the tile with their entries, and the
// number of the first. `lost` is set if an entry has the bit pattern of a missing one.
template <typename F>
DEVICE void turn_over(u64 rows, const I* offsets, const u32* columns, const V* values, const Diagonals& a, u32 from, u32 to, u32* lost,
                      F done) {
    __shared__ Tile tiles[THREADS / 32];
    Tile& tile = tiles[threadIdx.x / 32];
    const u32 lane = lane_id(), j = lane % LANES, groups = (to - from + LANES - 1) / LANES;
    u32 section = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, k = from;
    if (groups > 1) {
        k += section % groups * LANES;
        section /= groups;
    }
    const u64 begin = u64(section) * SECTION, row = begin + lane;
    if (begin >= rows) return;
    u64 at = row < rows ? u64(offsets[row]) : 0;
    const u64 end = row < rows ? u64(offsets[row + 1]) : 0;
    const i64 usual = k + j < to ? a.distance(k + j) : NOWHERE;
    if (k > 0) at = first_from(columns, at, end, i64(row) + a.distance(k));
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
    done(tile, row, k);
}

// Rows after the last, up to the end of its section, have no entries.
KERNEL csr_to_dia(u64 rows, const I* offsets, const u32* columns, const V* values, u32 stored, u32 mirrored, const i64* distances,
                  V* places, u32* lost) {
    const Diagonals a = {stored, mirrored, distances};
    turn_over(rows, offsets, columns, values, a, mirrored, a.count(), lost, [=](const Tile& tile, u64 row, u32 k) {
        const u64 first = first_place(row, stored);
#pragma unroll
        for (u32 i = 0; i < LANES; i++)
            if (k + i < stored + mirrored) places[first + u64(k + i - mirrored) * SECTION] = tile.values[lane_id()][i];
    });
}

// Checks whether each entry left of the main diagonal has the same bits as its mirror image, and each mirror image
// those of its entry.
KERNEL compare_images(u64 rows, const I* offsets, const u32* columns, const V* values, u32 stored, u32 mirrored, const i64* distances,
                      const V* places, u32* lost, u32* unlike) {
    const Diagonals a = {stored, mirrored, distances};
    turn_over(rows, offsets, columns, values, a, 0, mirrored, lost, [=](const Tile& tile, u64 row, u32 k) {
        bool same = true;
        if (row < rows)
#pragma unroll
            for (u32 i = 0; i < LANES; i++)
                if (k + i < mirrored) same = same && same_bits(tile.values[lane_id()][i], a.entry(places, row, k + i));
        if (!same) *unlike = 1;
    });
}

// The check of `compare_images` for all entries of every `apart`-th row, with one warp per row, before anything is
// stored.
KERNEL compare_rows(u64 rows, u64 apart, const I* offsets, const u32* columns, const V* values, u32* unlike) {
    const u64 row = own_section() * apart;
    if (row >= rows) return;
    for (u64 at = u64(offsets[row]) + lane_id(), end = offsets[row + 1]; at < end; at += 32) {
        const u64 column = columns[at], last = offsets[column + 1], image = first_from(columns, u64(offsets[column]), last, row);
        if (image == last || columns[image] != row || !same_bits(values[at], values[image])) *unlike = 1;
    }
}

KERNEL dia_lengths(u64 rows, u32 stored, u32 mirrored, const i64* distances, const V* places, u32* lengths) {
    const u64 row = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (row >= rows) return;
    const Diagonals a = {stored, mirrored, distances};
    u32 length = 0;
#pragma unroll 8
    for (u32 k = 0; k < a.count(); k++) length += !is_no_entry(a.entry(places, row, k));
    lengths[row] = length;
}

KERNEL dia_to_csr(u64 rows, const I* offsets, u32* columns, V* values, u32 stored, u32 mirrored, const i64* distances,
                  const V* places) {
    __shared__ Tile tiles[THREADS / 32];
    Tile& tile = tiles[threadIdx.x / 32];
    const u32 lane = lane_id(), j = lane % LANES;
    const Diagonals a = {stored, mirrored, distances};
    const u64 begin = own_section() * SECTION, row = begin + lane;
    if (begin >= rows) return;
    u64 at = row < rows ? u64(offsets[row]) : 0;
    for (u32 k = 0; k < a.count(); k += LANES) {
        const u32 last = min(k + LANES, a.count());
        u32 mine = 0;
#pragma unroll
        for (u32 i = 0; i < LANES; i++)
            if (k + i < last) {
                const V value = a.entry(places, row, k + i);
                tile.values[lane][i] = value;
                mine |= u32(!is_no_entry(value)) << i;
            }
        __syncwarp();
        const i64 distance = k + j < last ? a.distance(k + j) : 0;
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
