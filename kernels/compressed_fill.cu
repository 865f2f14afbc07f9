// From CSR to the compressed format's arrays, after compressed_survey.cu has found what repeats, compressed_sizes.cu
// has computed the sizes of sections, and the host has numbered the keys.
//
//     compressed_table       the entries of the first row of each kind
//     compressed_rows        the kind of each row; every entry is compared with the table's
//     compressed_fill        codes and values of each section
//     compressed_long        the rows that are too long for sections
//
// Tables are looked up through the survey's sets: `slots` are the keys of a set, `codes` are the codes of the keys.
//
// Constants: VALUE (values), STORED (values as stored), OFFSET (CSR's offsets), TARGET (offsets of sections), COLUMNS,
// VALUES, LINES (1 if kinds include values), THREADS, MIN_BLOCKS (compressed_fill), LANES and CHUNK (compressed_rows:
// powers of two, at least 16 rows per chunk), ITEMS (elements per thread of a tile).
#include "tile_segments.cuh"

typedef VALUE V;
typedef STORED S;
typedef OFFSET I;
typedef TARGET O;
#include "compressed_turn.cuh"

// One block per kind.
extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_table(const I* offsets, const u32* columns, const V* values, const u32* first_rows, const u32* told_starts, u32* starts, u32* distances, V* numbers) {
    const u32 row = first_rows[blockIdx.x], start = told_starts[blockIdx.x], length = told_starts[blockIdx.x + 1] - start;
    const u64 from = offsets[row];
    if (threadIdx.x == 0) starts[blockIdx.x] = start;
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) starts[gridDim.x] = start + length;
    for (u32 k = threadIdx.x; k < length; k += THREADS) {
        distances[start + k] = columns[from + k] - row;
        if (LINES) numbers[start + k] = values[from + k];
    }
}

// wrong[0] becomes 1 if a row differs from the table's row with the same hash. A warp takes CHUNK rows, 32 / LANES at a
// time. A row like the row above has the same kind; only others are looked up and compared with the table.
extern "C" __global__ void __launch_bounds__(THREADS) compressed_rows(u64 rows, const I* offsets, const u32* columns, const V* values, const u64* slots, const u8* codes, const u32* starts,
                                                                const u32* distances, const V* numbers, u8* kind_of, u64* wrong) {
    __shared__ u64 slot[SLOTS];
    __shared__ u8 code[SLOTS];
    for (u32 i = threadIdx.x; i < SLOTS; i += THREADS) {
        slot[i] = slots[i];
        code[i] = codes[i];
    }
    __syncthreads();
    const u32 lane = threadIdx.x % LANES, place = lane_id() / LANES;
    bool good = true;
    const u64 warps = u64(gridDim.x) * (THREADS / 32);
    for (u64 chunk = u64(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32; chunk * CHUNK < rows; chunk += warps) {
        u32 last = 0;
        for (u32 step = 0; step < CHUNK; step += 32 / LANES) {
            const u64 row = chunk * CHUNK + step + place;
            const u64 from = row < rows ? offsets[row] : 0;
            const u32 length = row < rows ? u32(offsets[row + 1] - from) : 0;
            const Likeness like = row < rows ? likeness<LANES, LINES>(row, from, length, offsets, columns, values) : Likeness{true, true};
            const bool same = all_lanes<LANES>(like.pattern && like.line);
            // For the first row of a chunk the kind above is unknown.
            const bool head = row < rows && (step + place == 0 || !same);
            u64 hash = 0;
            if (head)
                for (u32 k = lane; k < length; k += LANES) {
                    const EntryHash<V> entry(k, columns[from + k] - u32(row), LINES ? values[from + k] : V());
                    hash += LINES ? entry.line : entry.pattern;
                }
            __syncwarp();
#pragma unroll
            for (u32 with = LANES / 2; with; with /= 2) hash += shuffle_xor(hash, with);
            u32 kind = 0;
            if (head) {
                const u32 at = find(slot, row_key(hash, length));
                kind = at < SLOTS ? code[at] : 0;
                const u32 start = starts[kind];
                good = good && at < SLOTS && starts[kind + 1] - start == length;
                for (u32 k = lane; good && k < length; k += LANES) {
                    good = distances[start + k] == columns[from + k] - u32(row);
                    if (LINES) good = good && same_bits(numbers[start + k], values[from + k]);
                }
            }
            __syncwarp();
            const u32 heads = __ballot_sync(ALL, head) & (lanes_below() | 1u << lane_id());
            const u32 own = __shfl_sync(ALL, kind, heads ? 31 - __clz(heads) : 0);
            kind = heads ? own : last;
            last = __shfl_sync(ALL, kind, 31);
            if (row < rows && lane == 0) kind_of[row] = u8(kind);
        }
    }
    if (!good) wrong[0] = 1;
}

// The row of a lane in its section, and the place of its entries.
struct Row {
    u32 row, length;
    u64 start;
};
DEVICE Row row_of_lane(u64 section, u64 rows, const u8* order, const I* offsets, u32 longest) {
    const u64 place = section * 32 + lane_id();
    if (place >= rows) return {0, 0, 0};
    const u32 row = u32(row_at(order, place));
    const u64 start = offsets[row], length = offsets[u64(row) + 1] - start;
    return {row, length > longest ? 0u : u32(length), start};
}

template <typename To, typename A> DEVICE To narrowed(A a) {
    if constexpr (same<A, To>::value) return a;
    else if constexpr (is_complex<A>::value) return To{f32(a.re), f32(a.im)};
    else return To(a);
}

// The codes of a set's keys; without a table the size is minimal.
template <bool USED> struct Table {
    alignas(16) u64 slot[USED ? SLOTS : 1];
    alignas(16) u8 code[USED ? SLOTS : 1];

    // Called by the whole block, which must synchronise before any lookup. Both arrays are read from their beginning.
    DEVICE void bring(const u64* slots, const u8* codes) {
        for (u32 i = threadIdx.x; i < SLOTS / 2; i += THREADS) reinterpret_cast<uint4*>(slot)[i] = reinterpret_cast<const uint4*>(slots)[i];
        for (u32 i = threadIdx.x; i < SLOTS / 16; i += THREADS) reinterpret_cast<uint4*>(code)[i] = reinterpret_cast<const uint4*>(codes)[i];
    }
    DEVICE u32 code_of(u64 key, u64* wrong) const {
        const u32 at = find(slot, key);
        if (at == SLOTS) wrong[0] = 1;
        return code[at % SLOTS];
    }
};

// `splits` warps per section, each with every `splits`-th of the pieces that are transposed; blocks may be persistent
// and take further sections, so that tables are loaded once. If rows have at most one quad of entries, those of
// neighbouring rows are so close together that they are read directly. wrong[0] becomes 1 if a distance or value is in
// no table.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    compressed_fill(u64 rows, const u8* order, const I* offsets, const u32* columns, const V* from, u32 longest, const u64* column_slots, const u8* column_codes, const u64* number_slots,
              const u8* number_codes, const O* word_offsets, const O* entries, const u32* bases, u32* words, S* values, u32 splits, u64* wrong) {
    __shared__ Table<COLUMNS == COMPRESSED_CODES> column_table;
    __shared__ Table<VALUES == COMPRESSED_CODES> number_table;
    if (COLUMNS == COMPRESSED_CODES) column_table.bring(column_slots, column_codes);
    if (VALUES == COMPRESSED_CODES) number_table.bring(number_slots, number_codes);
    __syncthreads();
    const u32 lane = lane_id(), sections = u32((rows + 31) / 32), warps = gridDim.x * (THREADS / 32);
    Turned& turned = turned_by_warp();
    for (u32 at = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; at < sections * splits; at += warps) {
        const u32 section = at / splits, split = at % splits;
        const Row mine = row_of_lane(section, rows, order, offsets, longest);
        const u64 first = entries[section], word = word_offsets[section];
        const u32 width = u32(u64(entries[section + 1]) - first) / 32, quads = (width + 3) / 4;
        if (quads == 0) continue;
        const u32 stride = u32(u64(word_offsets[section + 1]) - word) / (32 * quads), of_columns = stride - (VALUES == COMPRESSED_CODES);
        const uint4 base = COLUMNS == COMPRESSED_WIDE ? reinterpret_cast<const uint4*>(bases)[section] : uint4();
        const bool near = is_near(base);
        for (u32 piece = split * TURNED; piece < width; piece += splits * TURNED) {
            if (quads == 1) {
#pragma unroll
                for (u32 j = 0; j < 4; j++) {
                    if (j >= mine.length) continue;
                    turned.columns[lane][j] = columns[mine.start + j];
                    turned.values[lane][j] = from[mine.start + j];
                }
            } else {
                along_rows(mine.start, mine.length, piece, [&](u32 to, u32 j, u64 place) {
                    turned.columns[to][j] = columns[place];
                    turned.values[to][j] = from[place];
                });
            }
            __syncwarp();
#pragma unroll
            for (u32 q = 0; q < TURNED_QUADS; q++) {
                const u32 quad = piece / 4 + q;
                if (quad >= quads) break;
                u32 column[4], code[4] = {~0u, ~0u, ~0u, ~0u}, number = 0;
                V value[4];
#pragma unroll
                for (u32 j = 0; j < 4; j++) {
                    const bool here = 4 * quad + j < mine.length;
                    column[j] = here ? turned.columns[lane][4 * q + j] : 0;
                    value[j] = here ? turned.values[lane][4 * q + j] : V();
                }
#pragma unroll
                for (u32 j = 0; j < 4; j++) {
                    const u32 k = 4 * quad + j, distance = column[j] - mine.row;
                    const bool here = k < mine.length;
                    if (COLUMNS == COMPRESSED_CODES) {
                        const u32 c = here ? column_table.code_of(distance, wrong) : 255;
                        code[0] = (code[0] & ~(255u << (8 * j))) | c << (8 * j);
                    } else if (COLUMNS == COMPRESSED_WIDE && of_columns == 2) {
                        const u32 c = !here ? 65535 : near ? distance - base.x : code_of(base, distance);
                        code[j / 2] = (code[j / 2] & ~(65535u << (16 * (j % 2)))) | c << (16 * (j % 2));
                    } else if (COLUMNS == COMPRESSED_WIDE && here) {
                        code[j] = column[j];
                    }
                    if (VALUES == COMPRESSED_CODES) {
                        if (here) number |= number_table.code_of(key_of(value[j]), wrong) << (8 * j);
                    } else if (k < width) {
                        values[first + u64(k) * 32 + lane] = narrowed<S>(value[j]);
                    }
                }
                u32* mine_words = words + word + u64(quad) * stride * 32 + lane;
                for (u32 i = 0; i < of_columns; i++) mine_words[i * 32] = i == 0 ? code[0] : i == 1 ? code[1] : i == 2 ? code[2] : code[3];
                if (VALUES == COMPRESSED_CODES) mine_words[of_columns * 32] = number;
            }
            __syncwarp();
        }
    }
}

// The entries of the long rows, by tiles (tile_segments.cuh).
extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_long(const I* offsets, const u32* columns, const V* values, const u32* long_rows, const O* to, u64 n, const u64* starts, u32* to_columns, V* to_values) {
    each_element(to, n, starts, [&](u64 number, u64 k, u64 at) {
        const u64 from = offsets[long_rows[number]] + k;
        to_columns[at] = columns[from];
        to_values[at] = values[from];
    });
}
