// Y = alpha A X + beta Y with A in compressed sparse rows of any lengths and several vectors at once: all blocks get
// the same share.
//
//     tile of 8 nonzeros, 4 groups of LANES threads:   | r0 r0 | r0 r1 | r2 r2 | r2 r2 | (row 2 continues after it)
//
// Tiles of steps as in csr_balanced.cu. Within a tile each group takes the same number of nonzeros, whatever rows they
// belong to. A row within a group's share is written directly. If a row spans groups, each leaves its piece in shared
// memory, and the group in which the row starts adds them up in their order (group 0: row 0, group 2: row 2). A row
// that spans tiles leaves its pieces in device memory for csr_block_join: two runs give the same bits, and a row of a
// million nonzeros is shared by hundreds of blocks.
//
// Bytes per nonzero: value + 4 for the column + accesses to X that miss the caches. Per row: its offset, and a row of
// Y. Sources: Merrill and Garland 2016 (merge-based products); Yang, Buluc and Owens 2018 (several vectors).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (threads for the vectors of a row, a power of
// two up to 32), WIDTH (vectors per thread: 1, or 16 bytes' worth), UNROLL (nonzeros in flight per thread), THREADS,
// STEPS (of a tile).
#include "complex.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
#include "interleaved.cuh"
#include "stage.cuh"
#define GROUPS (THREADS / LANES)

// The last of `count` parts that starts at nonzero k or before, which is the part with that nonzero.
DEVICE u32 part_of(const u16* starts, u32 count, u32 k) {
    u32 low = 0, high = count;
    while (low + 1 < high) {
        const u32 middle = (low + high) / 2;
        if (starts[middle] <= k) low = middle;
        else high = middle;
    }
    return low;
}

// pieces: two per tile, of `vectors` each: of the row that continues from the previous tile and of the one that
// continues in the next. Shared memory: STEPS + 4 nonzeros.
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_block_tiles(u64 rows, u64 count, const u32* tile_rows, const I* offsets, const u32* columns, const V* values, T alpha, const T* x,
                    T beta, T* y, u32 vectors, T* pieces) {
    extern __shared__ uint4 shared[];
    __shared__ alignas(16) unsigned char cut_bytes[THREADS * sizeof(Part)];
    __shared__ u16 starts[STEPS + 2];
    V* const tile_values = reinterpret_cast<V*>(shared);
    u32* const tile_columns = reinterpret_cast<u32*>(tile_values + STEPS + 4);
    Part* const heads = reinterpret_cast<Part*>(cut_bytes);
    const u64 tile = blockIdx.x, first_step = tile * STEPS;
    const u64 last_step = first_step + STEPS < rows + count ? first_step + STEPS : rows + count;
    const u64 first = cached(tile_rows + tile), behind = cached(tile_rows + tile + 1);
    const u64 begin = first_step - first, end = last_step - behind;
    const u32 nonzeros = u32(end - begin), n = u32(behind - first);
    // Copies start at a multiple of 16 bytes.
    const u32 lead = u32(begin & 3);
    if (nonzeros) {
        stage<THREADS>(tile_columns, columns, begin - lead, end, count);
        stage<THREADS>(tile_values, values, begin - lead, end, count);
    }
    // Part 0 is the rest of the row that continues from an earlier tile, part i is row first + i - 1 as far as it is in
    // this tile.
    for (u32 i = threadIdx.x; i <= n + 1; i += THREADS)
        starts[i] = u16(i == 0 ? 0 : i > n ? nonzeros : u32(u64(offsets[first + i - 1]) - begin));
    const bool goes_on = n > 0 && u64(offsets[behind]) > begin + nonzeros;
    copies_done();
    __syncthreads();

    const u32 vector = threadIdx.x % LANES * WIDTH, group = threadIdx.x / LANES;
    const bool mine = vector < vectors;
    const auto leave = [&](u32 part, const Part& sum) {
        if (!mine) return;
        if (part == 0) *reinterpret_cast<Part*>(pieces + 2 * tile * vectors + vector) = sum;
        else if (part == n && goes_on) *reinterpret_cast<Part*>(pieces + (2 * tile + 1) * vectors + vector) = sum;
        else store_part(alpha, sum, beta, y + (first + part - 1) * vectors + vector);
    };
    const u32 share = (nonzeros + GROUPS - 1) / GROUPS;
    const u32 low = group * share < nonzeros ? group * share : nonzeros, high = low + share < nonzeros ? low + share : nonzeros;
    u32 part = part_of(starts, n + 1, low), stop = starts[part + 1];
    Part sum = {};
    const auto over = [&] {
        if (starts[part] < low) heads[threadIdx.x] = sum;
        else leave(part, sum);
        sum = {};
    };
    for (u32 k = low; k < high; k += UNROLL) {
        Part of_x[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (mine && k + u < high) of_x[u] = load_part(x + u64(tile_columns[lead + k + u]) * vectors + vector);
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u < high) {
                if (k + u == stop) {
                    over();
                    // Rows without nonzeros start where the next one does.
                    do stop = starts[++part + 1];
                    while (stop == k + u);
                }
                if (mine) add_product(sum, entry<T>(tile_values[lead + k + u], 0), of_x[u]);
            }
    }
    const bool begins = starts[part] >= low, is_cut = low < high && stop > high;
    if (is_cut) {
        if (!begins) heads[threadIdx.x] = sum;
    } else if (low < high) {
        over();
    }
    __syncthreads();
    if (is_cut && begins) {
        for (u32 next = group + 1; next * share < stop; next++) sum = sum + heads[next * LANES + threadIdx.x % LANES];
        leave(part, sum);
    }
    for (u32 i = 1 + group; i <= n; i += GROUPS)
        if (starts[i] == starts[i + 1]) leave(i, Part{});
}

// One warp per tile: if a row starts in it and continues, computes the sum of its pieces.
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_block_join(u64 rows, u64 count, const u32* tile_rows, const I* offsets, T alpha, T beta, T* y, u32 vectors, const T* pieces) {
    const u64 tiles = (rows + count + STEPS - 1) / STEPS, tile = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32;
    if (tile + 1 >= tiles) return;
    const u64 behind = tile_rows[tile + 1], end = offsets[behind];
    if (behind == tile_rows[tile] || end <= (tile + 1) * STEPS - behind) return;
    const u64 row = behind - 1, last = (end + row) / STEPS;
    const u32 vector = lane_id() % LANES * WIDTH, turn = lane_id() / LANES;
    Part sum = {};
    if (vector < vectors) {
        if (turn == 0) sum = *reinterpret_cast<const Part*>(pieces + (2 * tile + 1) * vectors + vector);
#pragma unroll 4
        for (u64 t = tile + 1 + turn; t <= last; t += 32 / LANES)
            sum = sum + *reinterpret_cast<const Part*>(pieces + 2 * t * vectors + vector);
    }
#pragma unroll
    for (u32 with = LANES; with < 32; with *= 2) sum = sum + shuffle_xor(sum, with);
    if (turn == 0 && vector < vectors) store_part(alpha, sum, beta, y + row * vectors + vector);
}
