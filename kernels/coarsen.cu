// The steps from a matrix to that of the next level of algebraic multigrid: strong couplings, the prolongation and its
// smoothing, and scales for smoothing. src/backend/coarsen.rs describes each step. One thread adds the entries of a row
// in their order, so that sums have the same bits as on the host.
//
// Constants: SCALAR, OFFSET (of A), TARGET (of the graph, or of the result), THREADS.
#include "columns.cuh"
#include "nodes.cuh"
#include "scalars.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef OFFSET I;
typedef TARGET J;

// A row whose largest coupling is infinite has no strong ones, because infinity - infinity is NaN.
DEVICE bool is_strong(R threshold, R largest, R largest_there, T value) {
    const R size = magnitude(value), smaller = min(largest, largest_there);
    return size > 0 && size >= threshold * smaller && largest - largest == 0;
}

// Number of entries in shared memory: with gathered and written data, no more than 48 KiB.
constexpr u32 ROOM = (sizeof(T) <= 4 ? 8 : sizeof(T) <= 8 ? 4 : 2) * THREADS;

// A tile: the rows from .. behind, with the entries begin .. end; `near` says whether these fit shared memory.
struct Tile {
    u64 from, behind, begin, end;
    bool near;
};

// A row's entries, or a piece of them, and the elements of another array at their columns.
template <typename G> struct Row {
    const u32* columns;
    const T* values;
    const G *far, *near;
    u32 length;
    // Whether these are the first entries of the row, and the last.
    bool first, last;
    // A lane takes every `lanes`-th entry: 1, or 32 for a piece, of which all lanes of a warp take some.
    u32 lanes;

    DEVICE u32 own() const { return lanes == 1 ? 0 : lane_id(); }
    // Calls `add` with a value of each entry in the order of entries.
    template <typename F, typename A> DEVICE void in_order(F value_of, A add) const {
        if (lanes == 1) {
            for (u32 at = 0; at < length; at++) add(value_of(at));
            return;
        }
        for (u32 tile = 0; tile < length; tile += 32) {
            const auto value = tile + lane_id() < length ? value_of(tile + lane_id()) : decltype(value_of(0))();
            const u32 count = min(32u, length - tile);
            for (u32 k = 0; k < count; k++) add(shuffle(value, k));
        }
    }

    DEVICE G there(u32 at) const { return near ? near[at] : far[columns[at]]; }
};

// Calls `of_row(i, row, tile)` for every row, with one thread per row, and `before(tile)` and `behind(tile)` with all
// threads of a block if the tile is near. The entries of neighbouring rows are adjacent: they are loaded to shared
// memory first, along with the elements of `far` at their columns, so that lanes read neighbouring addresses and a
// thread does not wait for one entry after another. `columns`, `values` and `far` may be null. A block takes as many
// rows at a time as fit according to the mean length, and fewer if they are longer than that. A single row that does
// not fit comes to the lanes of a warp piece by piece, in a tile that is not near; without PIECES, a thread reads it
// from global memory.
template <u32 PLACES = ROOM, bool PIECES = false, typename O, typename G, typename A, typename F, typename B>
DEVICE void each_row(u64 n, const O* offsets, const u32* columns, const T* values, const G* far, A before, F of_row,
                     B behind) {
    __shared__ u32 near_columns[PLACES];
    __shared__ T near_values[PLACES];
    __shared__ G near_there[PLACES];
    // A multiple of 8 if rows are short; an eighth of the room is reserved for tiles whose rows are longer than the mean.
    const u64 all = offsets[n], fit = max(u64(1), u64(PLACES) * n / 8 * 7 / (all + 1));
    const u32 most = u32(min(u64(THREADS), fit < 8 ? fit : fit / 8 * 8));
    for (u64 first = u64(blockIdx.x) * most; first < n; first += u64(gridDim.x) * most) {
        const u64 last = min(first + most, n), entries = offsets[last] - offsets[first];
        u32 rows = most;
        while (rows > 1 && entries * rows > u64(PLACES) * most) rows = (rows + 1) / 2;
        for (u64 from = first; from < last; from += rows) {
            const u64 end_of_rows = min(from + rows, last), begin = offsets[from], end = offsets[end_of_rows];
            const Tile tile = {from, end_of_rows, begin, end, end - begin <= PLACES};
            const auto bring = [&](u64 here, u64 behind_here) {
                for (u64 at = here + threadIdx.x; at < behind_here; at += THREADS) {
                    if (values) near_values[at - here] = values[at];
                    if (!columns) continue;
                    const u32 column = columns[at];
                    near_columns[at - here] = column;
                    if (far) near_there[at - here] = far[column];
                }
            };
            if (PIECES && !tile.near) {
                for (u64 i = from; i < end_of_rows; i++) {
                    const u64 start = offsets[i], behind_row = offsets[i + 1];
                    u64 here = start;
                    do {
                        const u64 next = min(here + PLACES, behind_row);
                        bring(here, next);
                        __syncthreads();
                        if (threadIdx.x < 32)
                            of_row(i,
                                   Row<G>{near_columns, near_values, far, far ? near_there : nullptr, u32(next - here),
                                          here == start, next == behind_row, 32},
                                   tile);
                        __syncthreads();
                        here = next;
                    } while (here < behind_row);
                }
                continue;
            }
            if (tile.near) {
                bring(begin, end);
                before(tile);
            }
            __syncthreads();
            const u64 i = from + threadIdx.x;
            if (i < end_of_rows) {
                const u64 start = offsets[i], place = tile.near ? start - begin : start;
                of_row(i,
                       Row<G>{(tile.near ? near_columns : columns) + place, (tile.near ? near_values : values) + place,
                              far, tile.near && far ? near_there + place : nullptr, u32(offsets[i + 1] - start), true,
                              true, 1},
                       tile);
            }
            __syncthreads();
            // All threads reach the next barrier before the rows' results are overwritten.
            if (tile.near) behind(tile);
        }
    }
}

// Does nothing before or after the rows of a tile.
struct Nothing {
    DEVICE void operator()(const Tile&) const {}
};

// Calls `each(i, at)` for every entry of every row. Several lanes take a row, and all threads of a block a long one.
template <typename O, typename F> DEVICE void each_entry(u64 n, const O* offsets, F each) {
    constexpr u32 LANES = 8, ROWS = THREADS / LANES, LONG = 512;
    for (u64 first = u64(blockIdx.x) * ROWS; first < n; first += u64(gridDim.x) * ROWS) {
        const u64 i = first + threadIdx.x / LANES;
        const u64 begin = i < n ? u64(offsets[i]) : 0, end = i < n ? u64(offsets[i + 1]) : 0;
        const bool is_long = end - begin > LONG;
        if (!is_long)
            for (u64 at = begin + threadIdx.x % LANES; at < end; at += LANES) each(i, at);
        if (!__syncthreads_or(is_long)) continue;
        for (u64 row = first; row < min(first + ROWS, n); row++)
            if (offsets[row + 1] - offsets[row] > LONG)
                for (u64 at = offsets[row] + threadIdx.x; at < offsets[row + 1]; at += THREADS) each(row, at);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    largest_couplings(u64 n, const I* offsets, const u32* columns, const T* values, R* largest) {
    R most = 0;
    const auto of_row = [&](u64 i, const Row<u8>& row, const Tile&) {
        if (row.first) most = 0;
        for (u32 at = row.own(); at < row.length; at += row.lanes)
            if (row.columns[at] != i) {
                const R size = magnitude(row.values[at]);
                if (size > most) most = size;
            }
        if (!row.last) return;
        if (row.lanes > 1)
            for (u32 with = 16; with; with /= 2) {
                const R other = shuffle_xor(most, with);
                if (other > most) most = other;
            }
        if (row.own() == 0) largest[i] = most;
    };
    each_row<ROOM, true>(n, offsets, columns, values, static_cast<const u8*>(nullptr), Nothing(), of_row, Nothing());
}

// Biased exponents of the elements as doubles.
extern "C" __global__ void __launch_bounds__(THREADS) exponents(u64 n, const R* x, u32* exponents) {
    EACH(i, n) exponents[i] = u32(u64(__double_as_longlong(f64(x[i]))) >> 52) % 2048;
}

extern "C" __global__ void __launch_bounds__(THREADS) flags_from(u64 n, const u32* x, u32 least, u8* flags) {
    EACH(i, n) flags[i] = x[i] >= least;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    strong_lengths(u64 n, const I* offsets, const u32* columns, const T* values, R threshold, const R* largest, u32* lengths) {
    if (blockIdx.x == 0 && threadIdx.x == 0) lengths[n] = 0;
    u32 strong = 0;
    const auto of_row = [&](u64 i, const Row<R>& row, const Tile&) {
        const R own = largest[i];
        if (row.first) strong = 0;
        // A hub (a vertex of high degree) has an infinite largest coupling, and no strong couplings.
        if (finite(own))
            for (u32 at = row.own(); at < row.length; at += row.lanes)
                strong += row.columns[at] != i && is_strong(threshold, own, row.there(at), row.values[at]);
        if (!row.last) return;
        if (row.lanes > 1) strong = warp_sum(strong);
        if (row.own() == 0) lengths[i] = strong;
    };
    each_row<ROOM, true>(n, offsets, columns, values, largest, Nothing(), of_row, Nothing());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    strong_entries(u64 n, const I* offsets, const u32* columns, const T* values, R threshold, const R* largest,
                   const J* starts, u32* neighbours, f32* weights) {
    __shared__ u32 near_neighbours[ROOM];
    __shared__ f32 near_weights[ROOM];
    u64 place = 0;
    const auto of_row = [&](u64 i, const Row<R>& row, const Tile& tile) {
        const R own = largest[i];
        if (!finite(own) || row.own() > 0) return;
        u32* const to = tile.near ? near_neighbours : neighbours;
        f32* const weight_to = tile.near ? near_weights : weights;
        if (row.first) place = starts[i] - (tile.near ? u64(starts[tile.from]) : 0);
        for (u32 at = 0; at < row.length; at++) {
            const u32 j = row.columns[at];
            if (j == i || !is_strong(threshold, own, row.there(at), row.values[at])) continue;
            to[place] = j;
            weight_to[place++] = f32(magnitude(row.values[at]) / own);
        }
    };
    each_row<ROOM, true>(n, offsets, columns, values, largest, Nothing(), of_row, [&](const Tile& tile) {
        const u64 first = starts[tile.from], count = starts[tile.behind] - first;
        for (u64 k = threadIdx.x; k < count; k += THREADS) {
            neighbours[first + k] = near_neighbours[k];
            weights[first + k] = near_weights[k];
        }
    });
}

// Calls `each(is_diagonal, place, value)` for the entries of a damped row in their order: strong neighbours, with their
// places in A's row, and the diagonal, which A's row may lack.
template <typename G, typename F>
DEVICE void each_damped(u64 i, const Row<G>& row, T diagonal, const u32* neighbours, u32 strong, F each) {
    u32 next = 0;
    bool before = true;
    for (u32 at = 0; at < row.length; at++) {
        const u32 j = row.columns[at];
        if (before && j >= i) {
            each(true, row.length, diagonal);
            before = false;
        }
        if (j != i && next < strong && neighbours[next] == j) {
            each(false, at, row.values[at]);
            next++;
        }
    }
    if (before) each(true, row.length, diagonal);
}

// Calls `write(is_diagonal, place, value)` for the entries of row i of I - omega D^-1 F in their order, which are its
// strong neighbours and the diagonal; `place` is the place in A's row, or its length for the diagonal.
template <typename G, typename F>
DEVICE void damped_row(u64 i, const Row<G>& row, const u32* others, u32 strong, R omega, F write) {
    u32 next = 0;
    T diagonal = T(), lumped = T();
    for (u32 at = 0; at < row.length; at++) {
        const u32 j = row.columns[at];
        if (j == i) diagonal = row.values[at];
        else if (next < strong && others[next] == j) next++;
        else lumped = lumped + row.values[at];
    }
    diagonal = with_lumped(diagonal, lumped);
    R sum = 0;
    each_damped(i, row, diagonal, others, strong, [&](bool, u32, T value) { sum += magnitude(value); });
    const T scale = from_real<T>(sum > 0 && strong > 0 ? -omega / sum : R(0));
    each_damped(i, row, diagonal, others, strong, [&](bool own, u32 place, T value) {
        write(own, place, own ? value * scale + from_real<T>(R(1)) : value * scale);
    });
}

// Loads the strong couplings of a tile's rows to shared memory. They are entries of A, so they fit.
template <u32 PLACES> DEVICE void bring_strong(u32* near, const Tile& tile, const J* starts, const u32* neighbours) {
    const u64 first = starts[tile.from], count = min(u64(starts[tile.behind]) - first, u64(PLACES));
    for (u64 k = threadIdx.x; k < count; k += THREADS) near[k] = neighbours[first + k];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    damped_entries(u64 n, const I* offsets, const u32* columns, const T* values, const J* starts, const u32* neighbours,
                   R omega, u32* indices, T* damped) {
    __shared__ u32 near_neighbours[ROOM];
    __shared__ u32 near_indices[ROOM + THREADS];
    __shared__ T near_damped[ROOM + THREADS];
    const auto before = [&](const Tile& tile) { bring_strong<ROOM>(near_neighbours, tile, starts, neighbours); };
    const auto of_row = [&](u64 i, const Row<u8>& row, const Tile& tile) {
        const u32* const others = tile.near ? near_neighbours + (starts[i] - starts[tile.from]) : neighbours + starts[i];
        const u64 first = starts[i] + i - (tile.near ? starts[tile.from] + tile.from : 0);
        u32* to = (tile.near ? near_indices : indices) + first;
        T* value_to = (tile.near ? near_damped : damped) + first;
        damped_row(i, row, others, u32(starts[i + 1] - starts[i]), omega, [&](bool own, u32 place, T value) {
            *to++ = own ? u32(i) : row.columns[place];
            *value_to++ = value;
        });
    };
    const auto behind = [&](const Tile& tile) {
        const u64 first = starts[tile.from] + tile.from, count = starts[tile.behind] + tile.behind - first;
        for (u64 k = threadIdx.x; k < count; k += THREADS) {
            indices[first + k] = near_indices[k];
            damped[first + k] = near_damped[k];
        }
    };
    each_row(n, offsets, columns, values, static_cast<const u8*>(nullptr), before, of_row, behind);
}

// Inserts a group into an ascending list unless it is there; returns its place.
DEVICE u32 place_in(u32* list, u32& count, u32 group, bool& is_new) {
    u32 place = count;
    while (place > 0 && list[place - 1] > group) place--;
    is_new = place == 0 || list[place - 1] != group;
    if (!is_new) return place - 1;
    for (u32 k = count; k > place; k--) list[k] = list[k - 1];
    list[place] = group;
    count++;
    return place;
}

// The number of groups among a node and its strong neighbours.
extern "C" __global__ void __launch_bounds__(THREADS)
    smoothed_lengths(u64 n, const J* starts, const u32* neighbours, const u32* group, u32* lengths) {
    __shared__ u32 lists[ROOM + THREADS];
    if (blockIdx.x == 0 && threadIdx.x == 0) lengths[n] = 0;
    const auto of_row = [&](u64 i, const Row<u32>& row, const Tile& tile) {
        const u32 own = group[i];
        u32 count = 0;
        if (tile.near) {
            u32* const list = lists + (starts[i] - tile.begin) + threadIdx.x;
            bool is_new;
            if (own != NO_GROUP) place_in(list, count, own, is_new);
            for (u32 at = 0; at < row.length; at++)
                if (row.there(at) != NO_GROUP) place_in(list, count, row.there(at), is_new);
        } else {
            count = own != NO_GROUP;
            for (u32 at = 0; at < row.length; at++) {
                bool is_new = row.there(at) != NO_GROUP && row.there(at) != own;
                for (u32 k = 0; k < at && is_new; k++) is_new = row.there(k) != row.there(at);
                count += is_new;
            }
        }
        lengths[i] = count;
    };
    each_row(n, starts, neighbours, static_cast<const T*>(nullptr), group, Nothing(), of_row, Nothing());
}

// (I - omega D^-1 F) P, where row j of P has vector[j] / norms[g] in the column of its group g. Products of an entry
// are added one by one in the order of A's row. For longer rows several lanes share a row: smoothed_rows.cu.
extern "C" __global__ void __launch_bounds__(THREADS)
    smoothed_entries(u64 n, const I* offsets, const u32* columns, const T* values, const J* starts, const u32* neighbours,
                     R omega, const u32* group, const R* vector, const R* norms, const J* places, u32* indices,
                     T* smoothed) {
    constexpr u32 PLACES = ROOM < 6 * THREADS ? ROOM : 6 * THREADS;
    __shared__ u32 near_neighbours[PLACES];
    __shared__ u32 near_groups[PLACES];
    __shared__ R near_parts[PLACES];
    __shared__ u32 near_indices[PLACES + THREADS];
    __shared__ T near_smoothed[PLACES + THREADS];
    const auto part_of = [=](u32 j, u32 g) { return g == NO_GROUP ? R(0) : vector[j] / norms[g]; };
    // Strong couplings are entries of A, so they fit.
    const auto before = [&](const Tile& tile) {
        const u64 first = starts[tile.from], count = min(u64(starts[tile.behind]) - first, u64(PLACES));
        for (u64 k = threadIdx.x; k < count; k += THREADS) {
            const u32 j = neighbours[first + k], g = group[j];
            near_neighbours[k] = j;
            near_groups[k] = g;
            near_parts[k] = part_of(j, g);
        }
    };
    const auto of_row = [&](u64 i, const Row<u8>& row, const Tile& tile) {
        const u64 begin = starts[i] - (tile.near ? u64(starts[tile.from]) : 0);
        const u32* const others = (tile.near ? near_neighbours : neighbours) + begin;
        const u64 first = places[i] - (tile.near ? u64(places[tile.from]) : 0);
        u32* const list = (tile.near ? near_indices : indices) + first;
        T* const sums = (tile.near ? near_smoothed : smoothed) + first;
        u32 count = 0, next = 0;
        damped_row(i, row, others, u32(starts[i + 1] - starts[i]), omega, [&](bool own, u32, T value) {
            // Entries other than the row's own node are in the order of its strong neighbours.
            const u32 j = own ? u32(i) : others[next];
            const bool near = tile.near && !own;
            const u32 g = near ? near_groups[begin + next] : group[j];
            const R part = near ? near_parts[begin + next] : part_of(j, g);
            next += !own;
            if (g == NO_GROUP) return;
            const T product = value * from_real<T>(part);
            bool is_new;
            const u32 before = count, to = place_in(list, count, g, is_new);
            if (is_new) {
                for (u32 k = before; k > to; k--) sums[k] = sums[k - 1];
                sums[to] = T();
            }
            sums[to] = sums[to] + product;
        });
    };
    const auto behind = [&](const Tile& tile) {
        const u64 first = places[tile.from], count = places[tile.behind] - first;
        for (u64 k = threadIdx.x; k < count; k += THREADS) {
            indices[first + k] = near_indices[k];
            smoothed[first + k] = near_smoothed[k];
        }
    };
    each_row<PLACES>(n, offsets, columns, values, static_cast<const u8*>(nullptr), before, of_row, behind);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    group_entries(u64 n, const u32* group, const R* vector, const J* starts, u32* indices, T* values) {
    EACH(i, n)
        if (group[i] != NO_GROUP) {
            indices[starts[i]] = group[i];
            values[starts[i]] = from_real<T>(vector[i]);
        }
}

// If a sum of squares is between these, neither overflow nor underflow of the type affected it noticeably.
constexpr R SAFE_SQUARE = sizeof(R) == 4 ? R(8.3e-25) : R(4.6e-277), LARGE_SQUARE = sizeof(R) == 4 ? R(4e31) : R(3.9e292);

extern "C" __global__ void __launch_bounds__(THREADS) row_norms(u64 n, const I* offsets, const T* values, R* norms) {
    R sum = 0;
    const auto of_row = [&](u64 i, const Row<u8>& row, const Tile&) {
        if (row.first) sum = 0;
        row.in_order([&](u32 at) { return abs2(row.values[at]); }, [&](R square) { sum += square; });
        if (!row.last || row.own() > 0) return;
        norms[i] = sqrt(sum);
        if (sum >= SAFE_SQUARE && sum <= LARGE_SQUARE) return;
        // Squares of these entries overflow, or lose digits to underflow.
        R largest = 0;
        for (u64 at = offsets[i]; at < offsets[i + 1]; at++) largest = max(largest, magnitude(values[at]));
        norms[i] = largest;
        if (!(largest > 0) || isinf(largest)) return;
        sum = 0;
        for (u64 at = offsets[i]; at < offsets[i + 1]; at++) {
            const R part = magnitude(values[at]) / largest;
            sum += part * part;
        }
        norms[i] = sqrt(sum) * largest;
    };
    each_row<ROOM, true>(n, offsets, static_cast<const u32*>(nullptr), values, static_cast<const u8*>(nullptr), Nothing(),
                         of_row, Nothing());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    divide_by_column(u64 entries, const u32* indices, const R* norms, T* values) {
    EACH(e, entries) values[e] = from_real<T>(real_part(values[e]) / norms[indices[e]]);
}

extern "C" __global__ void __launch_bounds__(THREADS) conjugate(u64 n, T* x) { EACH(i, n) x[i] = conj(x[i]); }

// 1 / sqrt(a_ii), or 0 if a_ii is not positive.
DEVICE f64 inverse_root(u64 i, const I* offsets, const u32* columns, const T* values) {
    const u64 end = offsets[i + 1], at = first_from(columns, u64(offsets[i]), end, i);
    const f64 diagonal = at < end && columns[at] == i ? f64(real_part(values[at])) : 0;
    return diagonal > 0 ? 1 / sqrt(diagonal) : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    diagonal_scales(u64 n, const I* offsets, const u32* columns, const T* values, f64* scales) {
    EACH(i, n) scales[i] = inverse_root(i, offsets, columns, values);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    inverse_roots(u64 n, const I* offsets, const u32* columns, const T* values, T* roots) {
    EACH(i, n) roots[i] = from_real<T>(R(inverse_root(i, offsets, columns, values)));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scaled_values(u64 n, const I* offsets, const u32* columns, const T* values, const T* left, const T* right,
                  T* scaled) {
    each_entry(n, offsets, [=](u64 i, u64 at) {
        const T factor = left[i] * right[columns[at]];
        const R size = magnitude(factor);
        // The product of the factors may overflow although the scaled entry does not.
        scaled[at] = size - size == 0 ? values[at] * factor : values[at] * left[i] * right[columns[at]];
    });
}

// strong is initially zero.
extern "C" __global__ void __launch_bounds__(THREADS)
    scaled_sums(u64 n, const I* offsets, const u32* columns, const T* values, const f64* scales, f64 threshold, R* sums,
                u32* strong) {
    u32 count = 0;
    f64 sum = 0, strongest = 0;
    const auto of_row = [&](u64 i, const Row<f64>& row, const Tile&) {
        const f64 own = scales[i];
        if (row.first) sum = strongest = 0;
        const auto scaled = [&](u32 at) {
            const f64 size = f64(magnitude(row.values[at])) * row.there(at);
            if (row.columns[at] != i) strongest = max(strongest, size * own);
            return size;
        };
        row.in_order(scaled, [&](f64 size) { sum += size; });
        if (!row.last) return;
        if (row.lanes > 1)
            for (u32 with = 16; with; with /= 2) strongest = max(strongest, shuffle_xor(strongest, with));
        if (row.own() > 0) return;
        count += strongest > threshold;
        const R inverse = R(own / sum);
        sums[i] = finite(inverse) ? inverse : R(0);
    };
    each_row<ROOM, true>(n, offsets, columns, values, scales, Nothing(), of_row, Nothing());
    count = warp_sum(count);
    if (lane_id() == 0 && count) atomicAdd(strong, count);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scaled_magnitudes(u64 n, const I* offsets, const u32* columns, const T* values, const f64* scales, f32* weights) {
    each_entry(n, offsets, [=](u64 i, u64 at) {
        weights[at] = f32(f64(magnitude(values[at])) * scales[i] * scales[columns[at]]);
    });
}
