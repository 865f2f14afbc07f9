// Writes the entries of a matrix to their fronts, and eliminates fronts of at most ROWS rows, with one block of threads
// each (fronts.cuh), from assembly to contribution in shared memory. Factors and contributions are moved once.
//
// Constants: SCALAR, ROWS (a multiple of 16, at most 64), THREADS.
#include "fronts.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
constexpr u32 DOWN = ROWS < 32 ? ROWS : 32, ACROSS = THREADS / DOWN;

// Writes each entry, scaled, to its place, and computes the largest squared magnitude. That is kept as bits, which
// compare as the numbers do.
extern "C" __global__ void __launch_bounds__(THREADS)
    front_entries(u64 entries, const T* values, const f64* scales, const u64* targets, T* factors, u64* largest) {
    u64 most = 0;
    for (u64 k = u64(blockIdx.x) * THREADS + threadIdx.x; k < entries; k += u64(gridDim.x) * THREADS) {
        T value = values[k];
        if (scales) value = R(scales[k]) * value;
        factors[targets[k]] = value;
        const f64 size = f64(abs2(value));
        if (size > 0) most = max(most, bits<u64>(size));
    }
#pragma unroll
    for (u32 with = 16; with; with /= 2) most = max(most, shuffle_xor(most, with));
    if (lane_id() == 0 && most > 0) atomicMax(largest, most);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    small_fronts(u32 first, const Front* fronts, const u32* children, const u32* places, T* factors, const T* below,
                 T* above, u32 mirror, R preference, R least, const u64* largest, u32* made_up) {
    extern __shared__ __align__(16) u8 room[];
    __shared__ Inversion<T, ROWS> s;
    T* a = reinterpret_cast<T*>(room); // the front
    const Front front = fronts[first + blockIdx.x];
    const u32 w = front.width, m = front.height, r = m - w;
    T *v = a + m * m, *panel = factors + front.panel, *upper = factors + front.upper;
    const u32 x = threadIdx.x % DOWN, y = threadIdx.x / DOWN;
    for (u32 j = y; j < m; j += ACROSS)
        for (u32 i = x; i < m; i += DOWN)
            a[i + j * m] = j < w ? panel[i + j * m] : i < w ? upper[i + (j - w) * w] : T();
    __syncthreads();
    for (u32 child = front.children; child < front.children_end; child++) {
        const Front from = fronts[children[child]];
        const u32 count = from.height - from.width;
        const u32* place = places + from.rows;
        const T* given = below + from.contribution;
        for (u32 j = y; j < count; j += ACROSS)
            for (u32 i = x; i < count; i += DOWN) {
                T& entry = a[place[i] + place[j] * m];
                entry = entry + given[i + u64(j) * count];
            }
        __syncthreads();
    }
    const u32 replaced = invert<DOWN, THREADS>(a, m, w, rule_of(preference, least, largest), s);
    if (threadIdx.x == 0 && replaced) atomicAdd(made_up, replaced);
    for (u32 c = y; c < w; c += ACROSS) {
        const u32 column = s.pivots[c];
        for (u32 k = x; k < w; k += DOWN) panel[k + column * m] = a[s.pivots[k] + c * m];
        for (u32 i = x; i < r; i += DOWN) {
            T sum = T();
            for (u32 k = 0; k < w; k++) sum = fused(a[w + i + k * m], a[s.pivots[k] + c * m], sum);
            v[i + column * r] = sum;
            panel[w + i + column * m] = sum;
        }
    }
    __syncthreads();
    T* contribution = above + front.contribution;
    for (u32 j = y; j < r; j += ACROSS) {
        const T* e = a + (w + j) * m;
        for (u32 k = x; k < w; k += DOWN) upper[k + j * w] = e[k];
        for (u32 i = x; i < r; i += DOWN) {
            if (mirror && i < j) continue;
            T sum = T();
            for (u32 k = 0; k < w; k++) sum = fused(v[i + k * r], e[k], sum);
            const T left_over = e[w + i] - sum;
            contribution[i + j * r] = i == j ? on_diagonal(left_over, mirror) : left_over;
            if (mirror && i > j) contribution[j + i * r] = mirrored(left_over, mirror);
        }
    }
}
