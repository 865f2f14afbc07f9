// From CSR to tiles of equal numbers of entries (compressed_balanced.cuh), and back. One block per tile.
//
//     | 1 . 7 . |     compressed_tiles     row 0, base 0, count 7; finds columns that are too far apart
//     | . . 8 . |     compressed_deal      starts 0 2 3 5, bits 1 0 1 1 0 1 0, codes 0 2 2 1 2 0 3, values 1 7 8 4 3 2 1
//     | . 4 3 . |     balanced_lengths  2 1 2 2
//     | 2 . . 1 |     balanced_to_csr   columns 0 2 2 1 2 0 3, values as they are
//
// Entries keep their order, so an entry has the same position in both formats. Bytes per entry: its column, or its data
// in CSR and in the tiles.
//
// Constants: VALUE (of the matrix), STORED (of its tiles), OFFSET (of CSR), THREADS.
#include "compressed_balanced.cuh"

typedef VALUE W;
typedef STORED V;
typedef OFFSET I;

template <typename To, typename A> DEVICE To turned(A a) {
    if constexpr (same<A, To>::value) return a;
    else if constexpr (is_complex<A>::value) return To{decltype(To::re)(a.re), decltype(To::re)(a.im)};
    else return To(a);
}

// Returns the first row that starts at `entry` or later.
DEVICE u32 row_from(u64 entry, u64 rows, const I* offsets) {
    u64 low = 0, high = rows;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (u64(offsets[middle]) < entry) low = middle + 1;
        else high = middle;
    }
    return u32(low);
}

// far: initially 0; set to 1 if columns of a tile are too far apart for 16 bits. `count` tiles.
extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_tiles(u64 rows, u64 entries, u32 count, const I* offsets, const u32* columns, Balanced* tiles, u32* far) {
    __shared__ u32 least, most;
    const u32 tile = blockIdx.x;
    const u64 begin = u64(tile) * TILE, here = min(u64(TILE), entries - begin);
    if (threadIdx.x == 0) least = 0xffffffff, most = 0;
    __syncthreads();
    u32 low = 0xffffffff, high = 0;
    for (u32 k = threadIdx.x; k < here; k += THREADS) {
        const u32 column = columns[begin + k];
        low = min(low, column);
        high = max(high, column);
    }
    low = least_of_lanes(low);
    high = most_of_lanes(high);
    if (lane_id() == 0) {
        atomicMin(&least, low);
        atomicMax(&most, high);
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (most - least > 0xffff) *far = 1;
    const u32 row = row_from(begin, rows, offsets);
    u32 since = tile;
    if (row > 0 && u64(offsets[row]) > begin) since = u32(u64(offsets[row - 1]) / TILE);
    tiles[tile] = {row, since, least, u32(here)};
    if (tile + 1 == count) tiles[count] = {u32(rows), count, 0, 0};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_deal(const Balanced* tiles, const I* offsets, const u32* columns, const W* from, u16* starts, u8* row_bits, u16* codes, V* values) {
    __shared__ u32 bits_of[TILE / 32];
    const u32 tile = blockIdx.x, group = threadIdx.x / 32 * GROUP;
    const Balanced here = tiles[tile];
    const u64 begin = u64(tile) * TILE;
    for (u32 i = threadIdx.x; i < TILE / 32; i += THREADS) bits_of[i] = 0;
    __syncthreads();
    for (u64 row = here.row + threadIdx.x; row < tiles[tile + 1].row; row += THREADS) {
        const u64 start = u64(offsets[row]);
        const u32 at = u32(start - begin);
        starts[row] = u16(at);
        // No entry is at the place of an empty row that ends the tile or the matrix.
        if (u64(offsets[row + 1]) > start) atomicOr(bits_of + at / 32, 1u << at % 32);
    }
    __syncthreads();
    row_bits[u64(tile) * THREADS + threadIdx.x] = reinterpret_cast<const u8*>(bits_of)[threadIdx.x];
    u16 code[EACH];
    V value[EACH];
#pragma unroll
    for (u32 u = 0; u < EACH; u++) {
        const u32 k = group + 32 * u + lane_id();
        const bool there = k < here.count;
        code[u] = there ? u16(columns[begin + k] - here.base) : 0;
        value[u] = there ? turned<V>(from[begin + k]) : V();
    }
    uint4 raw;
    memcpy(&raw, code, sizeof(raw));
    *vectors_of(codes, begin + group) = raw;
    lane_values<V> mine;
    memcpy(mine.vector, value, sizeof(value));
#pragma unroll
    for (u32 i = 0; i < lane_values<V>::VECTORS; i++) vectors_of(values, begin + group)[32 * i] = mine.vector[i];
}

// Returns the tile in which a row starts.
DEVICE u32 tile_of(u32 row, u32 count, const Balanced* tiles) {
    u32 low = 0, high = count - 1;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (tiles[middle + 1].row <= row) low = middle + 1;
        else high = middle;
    }
    return low;
}

// One thread per row.
extern "C" __global__ void __launch_bounds__(THREADS)
    balanced_lengths(u32 rows, u32 count, const Balanced* tiles, const u16* starts, u32* lengths) {
    const u32 row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows) return;
    const u32 tile = tile_of(row, count, tiles);
    const bool last = row + 1 == rows;
    const u32 ends = last ? count - 1 : row + 1 < tiles[tile + 1].row ? tile : tile_of(row + 1, count, tiles);
    const u64 end = u64(ends) * TILE + (last ? tiles[ends].count : u32(starts[row + 1]));
    lengths[row] = u32(end - (u64(tile) * TILE + starts[row]));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    balanced_to_csr(const Balanced* tiles, const u16* codes, const V* values, u32* columns, W* to) {
    const u32 tile = blockIdx.x, group = threadIdx.x / 32 * GROUP;
    const Balanced here = tiles[tile];
    const u64 begin = u64(tile) * TILE;
    const uint4 raw = *vectors_of(codes, begin + group);
    lane_values<V> mine;
#pragma unroll
    for (u32 i = 0; i < lane_values<V>::VECTORS; i++) mine.vector[i] = vectors_of(values, begin + group)[32 * i];
    u16 code[EACH];
    V value[EACH];
    memcpy(code, &raw, sizeof(raw));
    memcpy(value, mine.vector, sizeof(value));
#pragma unroll
    for (u32 u = 0; u < EACH; u++) {
        const u32 k = group + 32 * u + lane_id();
        if (k < here.count) {
            columns[begin + k] = here.base + code[u];
            to[begin + k] = turned<W>(value[u]);
        }
    }
}
