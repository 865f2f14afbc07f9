// Fronts of many rows (fronts.cuh), those of a level side by side:
//
//     assemble       zeros, and what children contribute, by strips of columns
//     pivots         D^-1 of the first block of pivots
//     for each block of pivots D:
//         divide     V = F D^-1, by tiles of rows
//         update     own columns and own rows after D: - V E, by tiles; the first tile has the next D, and inverts it
//     contribute     C - V E with all own columns together, by tiles
//
// A front of a symmetric or Hermitian matrix (`mirror`) has E = F^T or F^H, so only tiles on and below the diagonal are
// computed, and what is above the diagonal is their mirror image.
//
// For solves, V and E within a group of blocks are replaced by those of the inverses of L and U, in halves that double:
//
//     | A    |^-1   | A^-1                   |         | A  E |^-1   | A^-1   - A^-1 E C^-1 |
//     | B  C |    = | - C^-1 B A^-1     C^-1 |         |    C |    = |               C^-1   |
//
//     join_rows      B A^-1 and E C^-1, by rows of a block
//     join_columns   - C^-1 (B A^-1) and - A^-1 (E C^-1), by columns of a block
//
// Blocks of threads find their front by the tiles of those before it: starts[k] for front `first` + k.
//
// Constants: SCALAR, THREADS (256), PIVOTS (columns of D at most).
#include "front_tiles.cuh"
#include "fronts.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
constexpr u32 WARPS = THREADS / 32, STRIP = 16;

DEVICE u32 tiles(u32 n) { return (n + TILE - 1) / TILE; }

extern "C" __global__ void __launch_bounds__(THREADS)
    assemble_fronts(u32 first, u32 count, const u32* starts, const Front* fronts, const u32* children,
                    const u32* places, T* factors, const T* below, T* above) {
    const u32 number = find_start(starts, count, blockIdx.x);
    const Front front = fronts[first + number];
    const u32 w = front.width, m = front.height, r = m - w, lane = lane_id(), warp = threadIdx.x / 32;
    const u32 begin = (blockIdx.x - starts[number]) * STRIP, end = min(begin + STRIP, m);
    T *panel = factors + front.panel, *upper = factors + front.upper, *own = above + front.contribution;
    for (u32 j = max(begin, w); j < end; j++)
        for (u32 i = threadIdx.x; i < r; i += THREADS) own[i + u64(j - w) * r] = T();
    __syncthreads();
    for (u32 child = front.children; child < front.children_end; child++) {
        const Front from = fronts[children[child]];
        const u32 rows = from.height - from.width;
        const u32* place = places + from.rows;
        const u32 last = count_below(place, rows, end);
        for (u32 k = count_below(place, rows, begin) + warp; k < last; k += WARPS) {
            const u32 j = place[k];
            const T* given = below + from.contribution + u64(k) * rows;
            for (u32 i = lane; i < rows; i += 32) {
                const u32 row = place[i];
                T* entry = j < w ? panel + row + u64(j) * m
                           : row < w ? upper + row + u64(j - w) * w
                                     : own + (row - w) + u64(j - w) * r;
                *entry = *entry + given[i];
            }
        }
        __syncthreads();
    }
}

// What a block of threads needs to invert a block of pivots.
struct Square {
    T a[PIVOTS * PIVOTS];
    Inversion<T, PIVOTS> s;
};

// Inverts the n x n block of pivots at `pivots`, whose columns are m entries apart.
DEVICE void invert_block(Square& square, T* pivots, u64 m, u32 n, Pivots<R> rule, u32* made_up) {
    T* a = square.a;
    const u32 x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (u32 j = y; j < n; j += WARPS)
        for (u32 i = x; i < n; i += 32) a[i + j * n] = pivots[i + j * m];
    __syncthreads();
    const u32 replaced = invert<32, THREADS>(a, n, n, rule, square.s);
    if (threadIdx.x == 0 && replaced) atomicAdd(made_up, replaced);
    for (u32 c = y; c < n; c += WARPS)
        for (u32 k = x; k < n; k += 32) pivots[k + square.s.pivots[c] * m] = a[square.s.pivots[k] + c * n];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    invert_pivots(u32 first, const Front* fronts, const u32* steps, T* factors, R preference, R least,
                  const u64* largest, u32* made_up) {
    __shared__ Square square;
    const Front front = fronts[first + blockIdx.x];
    const u32 n = steps[front.steps + 1];
    invert_block(square, factors + front.panel, front.height, n, rule_of(preference, least, largest), made_up);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    divide_fronts(u32 first, u32 count, const u32* starts, u32 step, const Front* fronts, const u32* steps,
                  T* factors) {
    __shared__ Stage<T> stage;
    const u32 number = find_start(starts, count, blockIdx.x);
    const Front front = fronts[first + number];
    const u32 begin = steps[front.steps + step], end = steps[front.steps + step + 1], n = end - begin;
    const u32 top = end + (blockIdx.x - starts[number]) * TILE, rows = min(front.height - top, TILE);
    const u64 m = front.height;
    T *columns = factors + front.panel + begin * m, *target = columns + top, sums[4][2][2];
    multiply(stage, target, m, rows, columns + begin, m, n, n, sums);
    each_of_tile(rows, n, sums, [=](u32 i, u32 j, T sum) { target[i + j * m] = sum; });
}

// Finds a tile on or below the diagonal by its number: of `across` columns of tiles, column j has tiles j .. down. Two
// columns, one from each end, have `both` tiles together.
DEVICE void lower_tile(u32 tile, u32 across, u32 down, u32& row, u32& column) {
    const u32 both = 2 * down - across + 1, pair = tile / both, k = tile % both;
    const bool is_first = k < down - pair;
    column = is_first ? pair : across - 1 - pair;
    row = column + (is_first ? k : k - (down - pair));
}

// Two blocks on a multiprocessor hide more than the registers that they lack.
extern "C" __global__ void __launch_bounds__(THREADS, sizeof(T) > 8 ? 1 : 2)
    update_fronts(u32 first, u32 count, const u32* starts, u32 step, const Front* fronts, const u32* steps,
                  T* factors, u32 mirror, R preference, R least, const u64* largest, u32* made_up) {
    __shared__ union {
        Stage<T> stage;
        Square square;
    } room;
    const u32 number = find_start(starts, count, blockIdx.x);
    const Front front = fronts[first + number];
    const u32 begin = steps[front.steps + step], end = steps[front.steps + step + 1];
    const u32 w = front.width, m = front.height, own = w - end, all = m - end;
    u32 tile = blockIdx.x - starts[number], top, left;
    const bool has_next = tile == 0;
    bool beside = false;
    if (mirror) {
        lower_tile(tile, tiles(own), tiles(all), top, left);
    } else {
        // Own columns first, then the own rows of the others.
        beside = tile >= tiles(own) * tiles(all);
        if (beside) tile -= tiles(own) * tiles(all);
        const u32 down = beside ? tiles(own) : tiles(all);
        top = tile % down, left = tile / down;
    }
    top *= TILE, left *= TILE;
    const u32 rows = min((beside ? own : all) - top, TILE), columns = min((beside ? m - w : own) - left, TILE);
    const u64 stride = beside ? w : m;
    T *panel = factors + front.panel, *upper = factors + front.upper;
    T* e = beside ? upper + left * stride : panel + (end + left) * stride;
    T *target = e + end + top, sums[4][2][2];
    load_negated(target, stride, rows, columns, sums);
    add_product(room.stage, panel + u64(begin) * m + end + top, m, rows, e + begin, stride, columns, end - begin, sums);
    if (mirror) {
        each_of_tile(rows, columns, sums, [=](u32 i, u32 j, T sum) {
            const u32 row = end + top + i, column = end + left + j;
            if (row < column) return;
            target[i + j * stride] = row > column ? -sum : on_diagonal(-sum, mirror);
            if (row >= w) upper[column + u64(row - w) * w] = mirrored(-sum, mirror);
            else if (row > column) panel[column + u64(row) * m] = mirrored(-sum, mirror);
        });
    } else {
        each_of_tile(rows, columns, sums, [=](u32 i, u32 j, T sum) { target[i + j * stride] = -sum; });
    }
    if (has_next) {
        __syncthreads();
        const u32 n = steps[front.steps + step + 2] - end;
        invert_block(room.square, target, m, n, rule_of(preference, least, largest), made_up);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    contribute_fronts(u32 first, u32 count, const u32* starts, const Front* fronts, const T* factors, T* above,
                      u32 mirror) {
    __shared__ Stage<T> stage;
    const u32 number = find_start(starts, count, blockIdx.x);
    const Front front = fronts[first + number];
    const u32 w = front.width, m = front.height, r = m - w, tile = blockIdx.x - starts[number];
    u32 top = tile % tiles(r), left = tile / tiles(r);
    if (mirror) lower_tile(tile, tiles(r), tiles(r), top, left);
    top *= TILE, left *= TILE;
    const u32 rows = min(r - top, TILE), columns = min(r - left, TILE);
    T sums[4][2][2];
    const T *v = factors + front.panel + w + top, *e = factors + front.upper + u64(left) * w;
    T *own = above + front.contribution, *target = own + top + u64(left) * r, *image = own + left + u64(top) * r;
    multiply(stage, v, m, rows, e, w, columns, w, sums);
    each_of_tile(rows, columns, sums, [=](u32 i, u32 j, T sum) {
        const u32 row = top + i, column = left + j;
        if (mirror && row < column) return;
        const T left_over = target[i + u64(j) * r] - sum;
        target[i + u64(j) * r] = row == column ? on_diagonal(left_over, mirror) : left_over;
        if (mirror && row > column) image[j + u64(i) * r] = mirrored(left_over, mirror);
    });
}

// ---- inverses of L, whose diagonal blocks are ones, and of U, whose diagonal blocks are inverted already ------------

// A block of pivots among 2 * `half` of them, which are first .. middle and middle .. last.
struct Half {
    Front front;
    u32 own, first, middle, last;
    const u32* at; // the first columns of blocks
};

DEVICE Half half_of(u64 block, u32 half, const Front* fronts, const u32* steps) {
    Half here;
    here.front = fronts[u32(block)];
    here.own = u32(block >> 32);
    here.first = here.own / (2 * half) * (2 * half);
    here.middle = here.first + half;
    here.last = min(here.middle + half, here.front.step_count);
    here.at = steps + here.front.steps;
    return here;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    join_rows(u32 half, const u64* blocks, const Front* fronts, const u32* steps, T* factors) {
    __shared__ Stage<T> stage;
    const Half here = half_of(blocks[blockIdx.x], half, fronts, steps);
    const u32 middle = here.middle, *at = here.at;
    if (middle >= here.front.step_count) return;
    const u64 m = here.front.height;
    const u32 rows = at[here.own + 1] - at[here.own];
    T *panel = factors + here.front.panel, *strip = panel + at[here.own], sums[4][2][2];
    if (here.own < middle) {
        // A product with C^-1 needs columns up to its own, so the last comes first.
        for (u32 j = here.last; j-- > middle;) {
            T* target = strip + at[j] * m;
            multiply(stage, strip + at[middle] * m, m, rows, panel + at[middle] + at[j] * m, m, at[j + 1] - at[j],
                     at[j + 1] - at[middle], sums);
            each_of_tile(rows, at[j + 1] - at[j], sums, [=](u32 i, u32 k, T sum) { target[i + k * m] = sum; });
        }
    } else {
        for (u32 j = here.first; j + 1 < middle; j++) {
            T* target = strip + at[j] * m;
            multiply(stage, strip + at[j + 1] * m, m, rows, panel + at[j + 1] + at[j] * m, m, at[j + 1] - at[j],
                     at[middle] - at[j + 1], sums);
            each_of_tile(rows, at[j + 1] - at[j], sums, [=](u32 i, u32 k, T sum) {
                target[i + k * m] = target[i + k * m] + sum;
            });
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    join_columns(u32 half, const u64* blocks, const Front* fronts, const u32* steps, T* factors) {
    __shared__ Stage<T> stage;
    const Half here = half_of(blocks[blockIdx.x], half, fronts, steps);
    const u32 middle = here.middle, *at = here.at;
    if (middle >= here.front.step_count) return;
    const u64 m = here.front.height;
    const u32 columns = at[here.own + 1] - at[here.own];
    T *panel = factors + here.front.panel, *strip = panel + at[here.own] * m, sums[4][2][2];
    if (here.own < middle) {
        // A product with C^-1 needs rows up to its own, so the last come first.
        for (u32 i = here.last; i-- > middle;) {
            T* target = strip + at[i];
            multiply(stage, panel + at[i] + at[middle] * m, m, at[i + 1] - at[i], strip + at[middle], m, columns,
                     at[i] - at[middle], sums);
            each_of_tile(at[i + 1] - at[i], columns, sums, [=](u32 k, u32 j, T sum) {
                target[k + j * m] = -(target[k + j * m] + sum);
            });
        }
    } else {
        for (u32 i = here.first; i < middle; i++) {
            T* target = strip + at[i];
            multiply(stage, panel + at[i] + at[i] * m, m, at[i + 1] - at[i], strip + at[i], m, columns,
                     at[middle] - at[i], sums);
            each_of_tile(at[i + 1] - at[i], columns, sums, [=](u32 k, u32 j, T sum) { target[k + j * m] = -sum; });
        }
    }
}
