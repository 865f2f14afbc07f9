// Fronts of many rows (fronts.cuh), those of a level side by side:
//
//     assemble       zeros, and what children contribute, by strips of columns
//     for each block of pivots D:
//         pivots     D^-1
//         divide     V = F D^-1, by tiles of rows
//         update     own columns and own rows after D: - V E, by tiles
//     contribute     C - V E with all own columns together, by tiles
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

extern "C" __global__ void __launch_bounds__(THREADS)
    invert_pivots(u32 first, u32 step, const Front* fronts, const u32* steps, T* factors, R preference, R least,
                  const u64* largest, u32* made_up) {
    __shared__ T a[PIVOTS * PIVOTS];
    __shared__ Inversion<T, PIVOTS> s;
    const Front front = fronts[first + blockIdx.x];
    if (step >= front.step_count) return;
    const u32 begin = steps[front.steps + step], n = steps[front.steps + step + 1] - begin;
    const u64 m = front.height;
    T* pivots = factors + front.panel + begin * m + begin;
    const u32 x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (u32 j = y; j < n; j += WARPS)
        for (u32 i = x; i < n; i += 32) a[i + j * n] = pivots[i + j * m];
    __syncthreads();
    const u32 replaced = invert<32, THREADS>(a, n, n, rule_of(preference, least, largest), s);
    if (threadIdx.x == 0 && replaced) atomicAdd(made_up, replaced);
    for (u32 c = y; c < n; c += WARPS)
        for (u32 k = x; k < n; k += 32) pivots[k + s.pivots[c] * m] = a[s.pivots[k] + c * n];
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

extern "C" __global__ void __launch_bounds__(THREADS)
    update_fronts(u32 first, u32 count, const u32* starts, u32 step, const Front* fronts, const u32* steps,
                  T* factors) {
    __shared__ Stage<T> stage;
    const u32 number = find_start(starts, count, blockIdx.x);
    const Front front = fronts[first + number];
    const u32 begin = steps[front.steps + step], end = steps[front.steps + step + 1];
    const u32 w = front.width, m = front.height, own = w - end, all = m - end;
    u32 tile = blockIdx.x - starts[number];
    // Own columns first, then the own rows of the others.
    const bool beside = tile >= tiles(own) * tiles(all);
    if (beside) tile -= tiles(own) * tiles(all);
    const u32 down = beside ? tiles(own) : tiles(all);
    const u32 top = tile % down * TILE, left = tile / down * TILE;
    const u32 rows = min((beside ? own : all) - top, TILE), columns = min((beside ? m - w : own) - left, TILE);
    const u64 stride = beside ? w : m;
    T* panel = factors + front.panel;
    T* e = beside ? factors + front.upper + left * stride : panel + (end + left) * stride;
    T sums[4][2][2];
    multiply(stage, panel + u64(begin) * m + end + top, m, rows, e + begin, stride, columns, end - begin, sums);
    T* target = e + end + top;
    each_of_tile(rows, columns, sums, [=](u32 i, u32 j, T sum) {
        target[i + j * stride] = target[i + j * stride] - sum;
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    contribute_fronts(u32 first, u32 count, const u32* starts, const Front* fronts, const T* factors, T* above) {
    __shared__ Stage<T> stage;
    const u32 number = find_start(starts, count, blockIdx.x);
    const Front front = fronts[first + number];
    const u32 w = front.width, m = front.height, r = m - w, tile = blockIdx.x - starts[number];
    const u32 top = tile % tiles(r) * TILE, left = tile / tiles(r) * TILE;
    const u32 rows = min(r - top, TILE), columns = min(r - left, TILE);
    T sums[4][2][2];
    multiply(stage, factors + front.panel + w + top, m, rows, factors + front.upper + u64(left) * w, w, columns, w, sums);
    T* target = above + front.contribution + top + u64(left) * r;
    each_of_tile(rows, columns, sums, [=](u32 i, u32 j, T sum) {
        target[i + u64(j) * r] = target[i + u64(j) * r] - sum;
    });
}
