// From CSR to the slim format's arrays, once slim_survey.cu has told what repeats and the host has numbered it.
//
//     slim_table       the entries of the first row of each kind
//     slim_rows        the kind of each row, every entry compared with the table's
//     slim_order       within windows of 256 rows, from longest to shortest
//     slim_sections    entries and words of each section, and its smallest distance
//     slim_fill        codes and values of each section
//     slim_long        the rows that are too long for sections
//
// Tables are looked up through the survey's sets: `slots` are a set's keys, `codes` what each of them stands for.
//
// Constants: VALUE (values), STORED (values as stored), OFFSET (CSR's offsets), TARGET (offsets of sections), COLUMNS, VALUES,
// LINES (1 where kinds hold values), THREADS, LANES and CHUNK (slim_rows: powers of two, 32 rows a chunk at least).
#include "slim.cuh"

typedef VALUE V;
typedef STORED S;
typedef OFFSET I;
typedef TARGET O;

// A block a kind.
extern "C" __global__ void __launch_bounds__(THREADS)
    slim_table(const I* offsets, const u32* columns, const V* values, const u32* first_rows, const u32* starts, u32* distances, V* numbers) {
    const u32 row = first_rows[blockIdx.x], start = starts[blockIdx.x];
    const u64 from = offsets[row];
    for (u32 k = threadIdx.x; k < starts[blockIdx.x + 1] - start; k += THREADS) {
        distances[start + k] = columns[from + k] - row;
        if (LINES) numbers[start + k] = values[from + k];
    }
}

// wrong[0] becomes 1 where a row is not what its hash says. A warp takes CHUNK rows, 32 / LANES at a time. A row like the row
// above is of its kind; only others are looked up and compared with the table.
extern "C" __global__ void __launch_bounds__(THREADS) slim_rows(u64 rows, const I* offsets, const u32* columns, const V* values, const u64* slots, const u8* codes, const u32* starts,
                                                                const u32* distances, const V* numbers, u8* kind_of, u32* wrong) {
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
            const Likeness like = row < rows ? likeness<LANES>(row, from, length, offsets, columns, LINES ? values : nullptr) : Likeness{true, true};
            const bool same = all_lanes<LANES>(like.pattern && like.line);
            // The first row of a chunk does not know the kind above it.
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

// A block of 256 threads a window: a row's place is the number of rows before it. Long rows count as empty.
extern "C" __global__ void __launch_bounds__(256) slim_order(u64 rows, const I* offsets, u32 longest, u32* order) {
    __shared__ u32 length[256];
    const u64 row = u64(blockIdx.x) * 256 + threadIdx.x;
    u64 mine = row < rows ? u64(offsets[row + 1]) - u64(offsets[row]) : 0;
    if (mine > longest) mine = 0;
    length[threadIdx.x] = u32(mine);
    __syncthreads();
    const u32 here = u32(rows - u64(blockIdx.x) * 256 < 256 ? rows - u64(blockIdx.x) * 256 : 256);
    u32 before = 0;
    for (u32 other = 0; other < here; other++) before += length[other] > u32(mine) || (length[other] == u32(mine) && other < threadIdx.x);
    if (row < rows) order[u64(blockIdx.x) * 256 + before] = u32(row);
}

// The row of a lane in its section, and where its entries are.
struct Row {
    u32 row, length;
    u64 start;
};
DEVICE Row row_at(u64 section, u64 rows, const u32* order, const I* offsets, u32 longest) {
    const u64 place = section * 32 + lane_id();
    if (place >= rows) return {0, 0, 0};
    const u32 row = order ? order[place] : u32(place);
    const u64 start = offsets[row], length = offsets[u64(row) + 1] - start;
    return {row, length > longest ? 0u : u32(length), start};
}

// A warp a section. Distances are compared as signed numbers and kept modulo 2^32. Places and words of all are added to `totals`.
extern "C" __global__ void __launch_bounds__(THREADS)
    slim_sections(u64 rows, const u32* order, const I* offsets, const u32* columns, u32 longest, u32* entries, u32* words, u32* bases, u64* totals) {
    __shared__ u64 total[2];
    if (threadIdx.x < 2) total[threadIdx.x] = 0;
    __syncthreads();
    u64 places = 0, all_words = 0;
    for (u64 section = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32; section * 32 < rows; section += u64(gridDim.x) * (THREADS / 32)) {
        const Row mine = row_at(section, rows, order, offsets, longest);
        i64 low = 1ll << 40, high = -(1ll << 40);
        if (mine.length && COLUMNS == SLIM_WIDE) {
            low = i64(columns[mine.start]) - mine.row;
            high = i64(columns[mine.start + mine.length - 1]) - mine.row;
        }
        u32 width = mine.length;
#pragma unroll
        for (u32 with = 16; with; with /= 2) {
            const i64 other_low = shuffle_xor(low, with), other_high = shuffle_xor(high, with);
            const u32 other = shuffle_xor(width, with);
            low = other_low < low ? other_low : low;
            high = other_high > high ? other_high : high;
            width = other > width ? other : width;
        }
        const u32 of_columns = COLUMNS == SLIM_KINDS ? 0 : COLUMNS == SLIM_CODES ? 1 : high - low < 65535 ? 2 : 4;
        const u32 of_section = (width + 3) / 4 * 32 * (of_columns + (VALUES == SLIM_CODES));
        if (lane_id() == 0) {
            entries[section] = width * 32;
            words[section] = of_section;
            if (COLUMNS == SLIM_WIDE) bases[section] = u32(low);
        }
        places += width * 32;
        all_words += of_section;
    }
    if (lane_id() == 0) {
        atomicAdd(&total[0], places);
        atomicAdd(&total[1], all_words);
    }
    __syncthreads();
    if (threadIdx.x < 2) atomicAdd(&totals[threadIdx.x], total[threadIdx.x]);
}

template <typename To, typename A> DEVICE To narrowed(A a) {
    if constexpr (same<A, To>::value) return a;
    else if constexpr (is_complex<A>::value) return To{f32(a.re), f32(a.im)};
    else return To(a);
}

// `splits` warps a section. wrong[0] becomes 1 where a distance or value is in no table; without tables it is null.
extern "C" __global__ void __launch_bounds__(THREADS)
    slim_fill(u64 rows, const u32* order, const I* offsets, const u32* columns, const V* from, u32 longest, const u64* column_slots, const u8* column_codes, const u64* number_slots,
              const u8* number_codes, const O* word_offsets, const O* entries, const u32* bases, u32* words, S* values, u32 splits, u32* wrong) {
    __shared__ u64 column_slot[COLUMNS == SLIM_CODES ? SLOTS : 1], number_slot[VALUES == SLIM_CODES ? SLOTS : 1];
    __shared__ u8 column_code[COLUMNS == SLIM_CODES ? SLOTS : 1], number_code[VALUES == SLIM_CODES ? SLOTS : 1];
    for (u32 i = threadIdx.x; i < SLOTS; i += THREADS) {
        if (COLUMNS == SLIM_CODES) column_slot[i] = column_slots[i], column_code[i] = column_codes[i];
        if (VALUES == SLIM_CODES) number_slot[i] = number_slots[i], number_code[i] = number_codes[i];
    }
    __syncthreads();
    const u32 lane = lane_id();
    const u64 warp = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32, section = warp / splits;
    if (section * 32 >= rows) return;
    const Row mine = row_at(section, rows, order, offsets, longest);
    const u64 first = entries[section], word = word_offsets[section];
    const u32 width = u32(u64(entries[section + 1]) - first) / 32, quads = (width + 3) / 4;
    if (quads == 0) return;
    const u32 stride = u32(u64(word_offsets[section + 1]) - word) / (32 * quads), of_columns = stride - (VALUES == SLIM_CODES);
    const u32 base = COLUMNS == SLIM_WIDE ? bases[section] + mine.row : 0;
    for (u32 quad = u32(warp % splits); quad < quads; quad += splits) {
        u32 code[4] = {~0u, ~0u, ~0u, ~0u}, number = 0;
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            const u32 k = 4 * quad + j;
            const bool here = k < mine.length;
            const u32 column = here ? columns[mine.start + k] : 0;
            const V value = here ? from[mine.start + k] : V();
            if (COLUMNS == SLIM_CODES) {
                const u32 slot = here ? find(column_slot, column - mine.row) : 0;
                if (slot == SLOTS) wrong[0] = 1;
                const u32 c = here ? column_code[slot % SLOTS] : 255;
                code[0] = (code[0] & ~(255u << (8 * j))) | c << (8 * j);
            } else if (COLUMNS == SLIM_WIDE && of_columns == 2) {
                const u32 c = here ? column - base : 65535;
                code[j / 2] = (code[j / 2] & ~(65535u << (16 * (j % 2)))) | c << (16 * (j % 2));
            } else if (COLUMNS == SLIM_WIDE && here) {
                code[j] = column;
            }
            if (VALUES == SLIM_CODES) {
                const u32 slot = here ? find(number_slot, key_of(value)) : 0;
                if (slot == SLOTS) wrong[0] = 1;
                if (here) number |= u32(number_code[slot % SLOTS]) << (8 * j);
            } else if (k < width) {
                values[first + u64(k) * 32 + lane] = narrowed<S>(value);
            }
        }
        u32* mine_words = words + word + u64(quad) * stride * 32 + lane;
        for (u32 i = 0; i < of_columns; i++) mine_words[i * 32] = i == 0 ? code[0] : i == 1 ? code[1] : i == 2 ? code[2] : code[3];
        if (VALUES == SLIM_CODES) mine_words[of_columns * 32] = number;
    }
}

// A block a long row.
extern "C" __global__ void __launch_bounds__(THREADS)
    slim_long(const I* offsets, const u32* columns, const V* values, const u32* long_rows, const O* starts, u32* to_columns, V* to_values) {
    const u64 from = offsets[long_rows[blockIdx.x]];
    const u64 start = starts[blockIdx.x], length = starts[blockIdx.x + 1] - start;
    for (u64 k = threadIdx.x; k < length; k += THREADS) {
        to_columns[start + k] = columns[from + k];
        to_values[start + k] = values[from + k];
    }
}
