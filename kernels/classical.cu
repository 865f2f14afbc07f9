// Classical coarsening: strong dependences, the choice of coarse unknowns, and the interpolation extended+i.
// src/multigrid/classical.rs and extended.rs describe each step; results have the bits of the host.
//
// One thread takes a row; for the strong dependences and the interpolation GROUP lanes of a warp do. For the latter they
// collect the coarse unknowns C_i around row i in a hash table, which gives each its place in a list:
//
//     list      coarse unknowns in the order in which the host finds them
//     weights   one for each, summed in the order of the entries of row i and of its neighbours' rows
//
// and writes the `most` largest weights to its part of an array with that many elements per row. A row with more
// unknowns than the table has places is left for a launch with larger tables.
//
// Bytes moved: A and the dependences once, and the rows of the neighbours from the caches.
//
// Constants: SCALAR, OFFSET (of A), TARGET (of the dependences and the result), PLACES (in a list), GROUP (lanes per
// row), THREADS.
#include "columns.cuh"
#include "hash_table.cuh"
#include "lanes_of_row.cuh"
#include "mixing.cuh"
#include "nodes.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef OFFSET I;
typedef TARGET J;

constexpr u32 FINE = 0, COARSE = 1, UNDECIDED = 2;
// The number of an unknown that is not coarse, and the length of a row that is left for larger tables.
constexpr u32 NONE = 0xffffffffu, BEYOND = 0xffffffffu;
// Longer rows of neighbours are not read.
constexpr u32 LONGEST = 1024;
constexpr u32 SLOTS = 2 * PLACES;
constexpr R SMALLEST = sizeof(R) == 4 ? R(1.17549435e-38) : R(2.2250738585072014e-308);
// Kept weights are scaled to the sum of all, unless the factor exceeds this.
constexpr R SCALED = 10;

DEVICE u32 lane_of_row() { return lane_id() % GROUP; }

DEVICE T diagonal_of(u64 i, const I* offsets, const u32* columns, const T* values) {
    const u64 end = offsets[i + 1], at = first_from(columns, u64(offsets[i]), end, i);
    return at < end && columns[at] == i ? values[at] : T();
}

// The number of modulus one whose product with the diagonal is positive; zero for zero.
DEVICE T phase_of(T diagonal) {
    if constexpr (sizeof(T) == sizeof(R)) return from_real<T>(R(real_part(diagonal) > 0) - R(real_part(diagonal) < 0));
    const R size = magnitude(diagonal);
    return size > 0 ? divide(conj(diagonal), from_real<T>(size)) : T();
}

DEVICE R signed_by(T phase, T value) { return real_part(value * phase); }

// The size of couplings from which on row i depends strongly on a column. If there is none, all are smaller. The lanes that
// share a row take neighbouring entries, and all lanes of the warp call this.
DEVICE R least_strong(u64 i, u64 begin, u64 end, T phase, const u32* columns, const T* values, R threshold) {
    R largest = 0;
    for (u64 at = begin + lane_of_row(); at < end; at += GROUP)
        if (columns[at] != i) largest = max(largest, -signed_by(phase, values[at]));
#pragma unroll
    for (u32 with = GROUP / 2; with; with /= 2) largest = max(largest, shuffle_xor(largest, with));
    return max(threshold * largest, SMALLEST);
}

// Calls `each(i, begin, end, phase, least)` for all rows, which lanes share.
template <typename F>
DEVICE void each_strong_row(u64 n, const I* offsets, const u32* columns, const T* values, R threshold, F each) {
    constexpr u32 ROWS = THREADS / GROUP;
    for (u64 first = u64(blockIdx.x) * ROWS + threadIdx.x / 32 * (32 / GROUP); first < n; first += u64(gridDim.x) * ROWS) {
        const u64 i = first + lane_id() / GROUP;
        const u64 begin = i < n ? u64(offsets[i]) : 0, end = i < n ? u64(offsets[i + 1]) : 0;
        const T phase = i < n ? phase_of(diagonal_of(i, offsets, columns, values)) : T();
        each(i, begin, end, phase, least_strong(i, begin, end, phase, columns, values, threshold));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    dependence_lengths(u64 n, const I* offsets, const u32* columns, const T* values, R threshold, u32* lengths) {
    if (blockIdx.x == 0 && threadIdx.x == 0) lengths[n] = 0;
    each_strong_row(n, offsets, columns, values, threshold, [=](u64 i, u64 begin, u64 end, T phase, R least) {
        u32 count = 0;
        for (u64 at = begin + lane_of_row(); at < end; at += GROUP)
            count += columns[at] != i && -signed_by(phase, values[at]) >= least;
#pragma unroll
        for (u32 with = GROUP / 2; with; with /= 2) count += shuffle_xor(count, with);
        if (i < n && lane_of_row() == 0) lengths[i] = count;
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    dependence_entries(u64 n, const I* offsets, const u32* columns, const T* values, R threshold, const J* starts,
                       u32* dependences) {
    each_strong_row(n, offsets, columns, values, threshold, [=](u64 i, u64 begin, u64 end, T phase, R least) {
        u64 place = i < n ? u64(starts[i]) : 0;
        for (u64 tile = begin; __any_sync(ALL, tile < end); tile += GROUP) {
            const u64 at = tile + lane_of_row();
            const u32 j = at < end ? columns[at] : 0;
            const bool strong = at < end && j != i && -signed_by(phase, values[at]) >= least;
            const u32 votes = votes_of_row(strong);
            if (strong) dependences[place + __popc(votes & ((1u << lane_of_row()) - 1))] = j;
            place += __popc(votes);
        }
    });
}

// Counts the unknowns that each one influences; the counts are zero before.
extern "C" __global__ void __launch_bounds__(THREADS)
    influence_counts(u64 entries, const u32* dependences, u32* counts) {
    EACH(e, entries) atomicAdd(counts + dependences[e], 1u);
}

// Unknowns that influence no other are fine. `undecided` is zero before. Rounds are numbered from 1.
extern "C" __global__ void __launch_bounds__(THREADS)
    coarse_start(u64 n, const u32* counts, u32* state, u32* lost, u32* undecided) {
    u32 count = 0;
    EACH(i, n) {
        const bool open = counts[i] > 0;
        state[i] = open ? UNDECIDED : FINE;
        lost[i] = 0;
        count += open;
    }
    count = warp_sum(count);
    if (lane_id() == 0 && count) atomicAdd(undecided, count);
}

// Of two undecided unknowns, one of which depends on the other, the one with the smaller measure loses the round. All
// threads that write to an element write the same.
extern "C" __global__ void __launch_bounds__(THREADS)
    coarse_compare(u64 n, const J* starts, const u32* dependences, const u32* counts, const u32* state, u32 round,
                   u32* lost) {
    const auto measure = [=](u64 i) { return u64(counts[i]) << 32 | mixed(i) >> 32; };
    EACH(i, n) {
        if (state[i] != UNDECIDED) continue;
        const u64 own = measure(i);
        for (u64 at = starts[i]; at < starts[i + 1]; at++) {
            const u32 j = dependences[at];
            if (state[j] != UNDECIDED) continue;
            const u64 other = measure(j);
            lost[other < own || (other == own && j < i) ? j : i] = round;
        }
    }
}

// Undecided unknowns that have not lost the round become coarse, and those that depend on one of these become fine; the
// others are counted in `undecided`. An unknown that is coarse already when another looks at it has become so in this
// round: those that depend on one of an earlier round are decided.
extern "C" __global__ void __launch_bounds__(THREADS)
    coarse_decide(u64 n, const J* starts, const u32* dependences, const u32* lost, u32 round, u32* state, u32* undecided) {
    u32 count = 0;
    EACH(i, n) {
        if (state[i] != UNDECIDED) continue;
        const bool chosen = lost[i] != round;
        bool depends = false;
        for (u64 at = starts[i]; at < starts[i + 1] && !depends && !chosen; at++) {
            const u32 j = dependences[at], there = state[j];
            depends = there == COARSE || (there == UNDECIDED && lost[j] != round);
        }
        if (chosen || depends) state[i] = chosen ? COARSE : FINE;
        count += !chosen && !depends;
    }
    count = warp_sum(count);
    if (lane_id() == 0 && count) atomicAdd(undecided, count);
}

extern "C" __global__ void __launch_bounds__(THREADS) coarse_flags(u64 n, const u32* state, u32* flags) {
    EACH(i, n + 1) flags[i] = i < n && state[i] == COARSE;
}

// numbers[i] = places[i] for coarse unknowns, NONE for others.
extern "C" __global__ void __launch_bounds__(THREADS)
    coarse_numbers(u64 n, const u32* state, const u32* places, u32* numbers) {
    EACH(i, n) numbers[i] = state[i] == COARSE ? places[i] : NONE;
}

// The coarse unknowns around a row, in shared memory of the lanes that share the row.
struct Around {
    u32 *table, *place, *list;
    T* weights;
    u32 count;

    // Adds the columns of the lanes with `want`, which differ, in the order of lanes. All lanes of the warp call this.
    DEVICE void add(u32 column, bool want) {
        bool first;
        const u32 slot = slot_for<1>(table, SLOTS, column, want, false, first);
        const u32 added = votes_of_row(first);
        if (first) {
            const u32 to = count + __popc(added & ((1u << lane_of_row()) - 1));
            place[slot] = to;
            list[to] = column;
        }
        count += __popc(added);
        __syncwarp();
    }

    // Returns the place of a column, or NONE. A lane may call this alone.
    DEVICE u32 place_of(u32 column) const {
        const u32 slot = slot_of<1>(table, SLOTS, column);
        return table[slot] == column ? place[slot] : NONE;
    }
};

struct Level {
    const I* offsets;
    const u32* columns;
    const T* values;
    const J* starts;
    const u32 *dependences, *numbers;

    DEVICE u32 length(u32 k) const { return u32(offsets[k + 1] - offsets[k]); }
    DEVICE bool is_averaged(u32 k) const { return numbers[k] == NONE && length(k) <= LONGEST; }
};

// Collects C_i if the row takes part. Returns false if it does not fit. All lanes of the warp call this and what
// follows.
DEVICE bool collect(const Level& level, u32 i, bool takes, Around& around) {
    const u64 begin = takes ? u64(level.starts[i]) : 0;
    const u32 strong = takes ? u32(level.starts[i + 1] - begin) : 0, lane = lane_of_row();
    bool fits = true;
    for (u32 tile = 0; __any_sync(ALL, tile < strong); tile += GROUP) {
        // Each lane looks up what it has to know of a neighbour j, so that their loads do not wait for one another.
        const bool there = tile + lane < strong;
        const u32 j = there ? level.dependences[begin + tile + lane] : 0;
        const bool coarse = there && level.numbers[j] != NONE, averaged = there && !coarse && level.length(j) <= LONGEST;
        const u64 first = averaged ? u64(level.starts[j]) : 0;
        const u32 count = coarse ? 1 : averaged ? u32(level.starts[j + 1] - first) : 0;
        for (u32 k = 0; k < GROUP && __any_sync(ALL, tile + k < strong); k++) {
            const u32 of_k = from_lane(count, k), own = from_lane(coarse ? j : NONE, k);
            const u64 from = from_lane(first, k);
            for (u32 next = 0; __any_sync(ALL, next < of_k); next += GROUP) {
                fits = fits && (next >= of_k || around.count + GROUP <= PLACES);
                const bool has = fits && next + lane < of_k;
                const u32 l = has && own == NONE ? level.dependences[from + next + lane] : own;
                around.add(l, has && (own != NONE || level.numbers[l] != NONE));
            }
        }
    }
    return fits;
}

// Adds the contribution of a fine neighbour k to the weights if a_ik is an entry that is replaced by a mean: then row k
// has `length` entries from `begin` on, and its diagonal has this phase. Returns what is added to d.
DEVICE T add_mean(const Level& level, u32 i, u64 begin, u32 length, T phase, T entry, Around& around) {
    const u32 lane = lane_of_row();
    T sum = T(), of_i = T();
    u32 place = NONE;
    T value = T();
    const auto load = [&](u32 tile) {
        const bool there = tile + lane < length;
        const u32 l = there ? level.columns[begin + tile + lane] : 0;
        value = there ? level.values[begin + tile + lane] : T();
        place = there ? around.place_of(l) : NONE;
        const bool counts = there && (place != NONE || l == i) && !(signed_by(phase, value) >= 0);
        if (!counts) place = NONE;
        return counts;
    };
    for (u32 tile = 0; __any_sync(ALL, tile < length); tile += GROUP) {
        const bool counts = tile < length && load(tile);
        for (u32 left = votes_of_row(counts); __any_sync(ALL, left); left &= left - 1) {
            const T next = from_lane(value, left ? __ffs(left) - 1 : 0);
            if (left) sum = sum + next;
        }
        const u32 own = votes_of_row(counts && place == NONE);
        const T there = from_lane(value, own ? __ffs(own) - 1 : 0);
        if (own) of_i = there;
    }
    const bool none = is_zero(sum);
    const T scale = none ? T() : divide(entry, sum);
    for (u32 tile = 0; __any_sync(ALL, !none && tile < length); tile += GROUP) {
        if (none || tile >= length) continue;
        // The columns of a row differ, so that no two lanes add to the same weight.
        if (length > GROUP) load(tile);
        if (place != NONE) around.weights[place] = around.weights[place] + scale * value;
    }
    __syncwarp();
    return none ? entry : scale * of_i;
}

// Sets the weights of C_i if the row takes part; zeros if one is not finite.
DEVICE void set_weights(const Level& level, u32 i, bool takes, Around& around) {
    const u32 lane = lane_of_row(), around_it = takes ? around.count : 0;
    for (u32 k = lane; k < around_it; k += GROUP) around.weights[k] = T();
    __syncwarp();
    T d = takes ? diagonal_of(i, level.offsets, level.columns, level.values) : T();
    const u64 begin = takes ? u64(level.offsets[i]) : 0;
    const u64 first = takes ? u64(level.starts[i]) : 0, last = takes ? u64(level.starts[i + 1]) : 0;
    const u32 length = takes ? level.length(i) : 0;
    for (u32 tile = 0; __any_sync(ALL, tile < length); tile += GROUP) {
        const bool there = tile + lane < length;
        const u32 j = there ? level.columns[begin + tile + lane] : i;
        const T value = there ? level.values[begin + tile + lane] : T();
        const u32 place = j != i ? around.place_of(j) : NONE;
        bool averaged = false;
        if (j != i && place == NONE) {
            const u64 at = first_from(level.dependences, first, last, j);
            averaged = at < last && level.dependences[at] == j && level.is_averaged(j);
        }
        const u64 row = averaged ? u64(level.offsets[j]) : 0;
        const u32 entries = averaged ? level.length(j) : 0;
        const T phase = averaged ? phase_of(diagonal_of(j, level.offsets, level.columns, level.values)) : T();
        for (u32 k = 0; k < GROUP && __any_sync(ALL, tile + k < length); k++) {
            const u32 kind = from_lane(u32(j != i) + 2 * u32(averaged), k), to = from_lane(place, k);
            const bool other = kind > 0, of_mean = kind > 1;
            const T entry = from_lane(value, k);
            if (to != NONE && lane == 0) around.weights[to] = around.weights[to] + entry;
            __syncwarp();
            T more = entry;
            if (__any_sync(ALL, of_mean)) {
                const u32 of_k = from_lane(entries, k);
                const T of_row = add_mean(level, i, from_lane(row, k), of_k, from_lane(phase, k), entry, around);
                if (of_mean) more = of_row;
            }
            if (other && to == NONE) d = d + more;
        }
    }
    bool all_finite = true;
    for (u32 k = lane; k < around_it; k += GROUP) {
        around.weights[k] = divide(-around.weights[k], d);
        all_finite = all_finite && finite(around.weights[k]);
    }
    if (votes_of_row(!all_finite))
        for (u32 k = lane; k < around_it; k += GROUP) around.weights[k] = T();
    __syncwarp();
}

// Returns the factor that gives the kept weights the sum of all weights; one if that factor is too large or too small.
DEVICE T factor_of(T all, T kept) {
    const T scale = divide(all, kept);
    return real_part(scale) > R(1) / SCALED && magnitude(scale) < SCALED ? scale : from_real<T>(R(1));
}

// The rows of the interpolation, with at most GROUP kept weights each, sorted by column in shared memory.
extern "C" __global__ void __launch_bounds__(THREADS)
    extended_rows(u64 n, const I* offsets, const u32* columns, const T* values, const J* starts, const u32* dependences,
                  const u32* numbers, u32 most, u32 again, u32* lengths, u32* kept_columns, T* kept_values,
                  u32* beyond) {
    constexpr u32 ROWS = THREADS / GROUP;
    __shared__ u32 tables[ROWS][SLOTS], places[ROWS][SLOTS], lists[ROWS][PLACES];
    __shared__ T weights[ROWS][PLACES];
    const u32 of_block = threadIdx.x / GROUP, lane = lane_of_row();
    const Level level = {offsets, columns, values, starts, dependences, numbers};
    // All lanes of a warp stay together, including those whose rows need no work.
    for (u64 first = u64(blockIdx.x) * ROWS + threadIdx.x / 32 * (32 / GROUP); first < n; first += u64(gridDim.x) * ROWS) {
        const u64 row = first + lane_id() / GROUP;
        const u32 i = u32(row);
        const bool open = row < n && !(again && lengths[i] != BEYOND), coarse = open && numbers[i] != NONE;
        if (coarse && lane == 0) {
            lengths[i] = 1;
            kept_columns[row * most] = numbers[i];
            kept_values[row * most] = from_real<T>(R(1));
        }
        const bool takes = open && !coarse;
        if (!__any_sync(ALL, takes)) continue;
        Around around = {tables[of_block], places[of_block], lists[of_block], weights[of_block], 0};
        for (u32 k = lane; k < SLOTS; k += GROUP) around.table[k] = FREE;
        __syncwarp();
        const bool fits = collect(level, i, takes, around), done = takes && fits;
        if (takes && !fits && lane == 0) {
            lengths[i] = BEYOND;
            atomicAdd(beyond, 1u);
        }
        set_weights(level, i, done, around);
        T all = T();
        u32 count = 0;
        const u32 around_it = done ? around.count : 0;
        for (u32 k = 0; k < around_it; k++)
            if (!is_zero(around.weights[k])) {
                all = all + around.weights[k];
                count++;
            }
        // Lane r takes the weight that is r-th by size; of two equal ones, the first in the list.
        const u32 kept = min(count, most);
        u32 column = NONE;
        T value = T();
        for (u32 r = 0; __any_sync(ALL, r < kept); r++) {
            u64 best = 0;
            u32 at = NONE;
            for (u32 k = lane; k < around_it; k += GROUP) {
                const u64 size = bits<u64>(f64(abs2(around.weights[k])));
                if (around.list[k] != NONE && !is_zero(around.weights[k]) && (at == NONE || size > best)) {
                    best = size;
                    at = k;
                }
            }
#pragma unroll
            for (u32 with = GROUP / 2; with; with /= 2) {
                const u64 size = __shfl_xor_sync(ALL, best, with);
                const u32 other = __shfl_xor_sync(ALL, at, with);
                if (other != NONE && (at == NONE || size > best || (size == best && other < at))) {
                    best = size;
                    at = other;
                }
            }
            if (r < kept && lane == r) {
                column = numbers[around.list[at]];
                value = around.weights[at];
            }
            __syncwarp();
            if (r < kept && lane == 0) around.list[at] = NONE;
            __syncwarp();
        }
        // Sorts the kept weights by column.
        u32 before = 0;
        for (u32 r = 0; __any_sync(ALL, r < kept); r++) before += from_lane(column, r) < column;
        if (lane < kept) around.weights[before] = value;
        __syncwarp();
        T sum = T();
        for (u32 r = 0; r < kept; r++) sum = sum + around.weights[r];
        if (lane < kept) {
            const bool scales = count > most;
            kept_columns[row * most + before] = column;
            kept_values[row * most + before] = scales ? value * factor_of(all, sum) : value;
        }
        if (done && lane == 0) lengths[i] = kept;
        __syncwarp();
    }
}

// Keeps the `most` largest weights of rows with at most 32, as extended_rows does.
extern "C" __global__ void __launch_bounds__(THREADS)
    fewer_weights(u64 n, const J* starts, const u32* columns, const T* values, u32 most, u32* lengths,
                  u32* kept_columns, T* kept_values) {
    EACH(i, n) {
        const u64 begin = starts[i];
        const u32 count = u32(starts[i + 1] - begin), kept = min(count, most);
        T all = T(), sum = T();
        u32 taken = 0;
        for (u32 k = 0; k < count; k++) all = all + values[begin + k];
        for (u32 r = 0; r < kept; r++) {
            u32 best = NONE;
            for (u32 k = 0; k < count; k++)
                if (!(taken >> k & 1) && (best == NONE || f64(abs2(values[begin + k])) > f64(abs2(values[begin + best]))))
                    best = k;
            taken |= 1u << best;
        }
        for (u32 k = 0; k < count; k++)
            if (taken >> k & 1) sum = sum + values[begin + k];
        const T factor = count > most ? factor_of(all, sum) : from_real<T>(R(1));
        u32 place = 0;
        for (u32 k = 0; k < count; k++)
            if (taken >> k & 1) {
                kept_columns[i * most + place] = columns[begin + k];
                kept_values[i * most + place] = count > most ? values[begin + k] * factor : values[begin + k];
                place++;
            }
        lengths[i] = kept;
    }
}

// Packs rows that start `width` places apart, so that each follows the previous one without a gap.
extern "C" __global__ void __launch_bounds__(THREADS)
    packed_rows(u64 n, u32 width, const u32* wide_columns, const T* wide_values, const J* starts, u32* indices, T* packed) {
    EACH(i, n)
        for (u64 at = starts[i], from = i * width; at < starts[i + 1]; at++, from++) {
            indices[at] = wide_columns[from];
            packed[at] = wide_values[from];
        }
}
