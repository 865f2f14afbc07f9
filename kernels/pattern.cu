// Properties of the pattern of a matrix that orderings need, one pass each.
//
// Constants: OFFSET, THREADS (a multiple of LANES), LANES (threads per row: a power of two).
#include "row.cuh"

typedef OFFSET I;

DEVICE u64 mixed(u64 z, u64 factor, u32 a, u32 b) {
    z = (z ^ (z >> a)) * factor;
    return z ^ (z >> b);
}

// Number of neighbours of each row, except itself. *asymmetry, initially zero, gets f^T (P - P^T) g modulo 2^64 for the
// pattern P and two pseudorandom vectors: Freivalds' test, zero if P is symmetric.
extern "C" __global__ void __launch_bounds__(THREADS)
    degrees(u64 rows, const I* offsets, const u32* indices, u32* degrees, u64* asymmetry) {
    const u32 lane = threadIdx.x % LANES;
    u64 mine = 0;
    for (u64 base = u64(blockIdx.x) * (THREADS / LANES); base < rows; base += u64(gridDim.x) * (THREADS / LANES)) {
        const u64 row = base + threadIdx.x / LANES;
        u64 f = 0, g = 0;
        u32 count = 0;
        if (row < rows)
            for (u64 k = offsets[row] + lane, end = offsets[row + 1]; k < end; k += LANES) {
                const u32 w = indices[k];
                u64 z = (u64(w) + 1) * 0x9e3779b97f4a7c15;
                z ^= z >> 30;
                f += mixed(z, 0xbf58476d1ce4e5b9, 27, 31);
                g += mixed(z, 0x94d049bb133111eb, 32, 29);
                count += w != row;
            }
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) {
            f += shuffle_xor(f, with);
            g += shuffle_xor(g, with);
            count += shuffle_xor(count, with);
        }
        if (row < rows && lane == 0) {
            degrees[row] = count;
            u64 z = (row + 1) * 0x9e3779b97f4a7c15;
            z ^= z >> 30;
            mine += mixed(z, 0xbf58476d1ce4e5b9, 27, 31) * g - mixed(z, 0x94d049bb133111eb, 32, 29) * f;
        }
    }
    mine = warp_sum(mine);
    if (lane_id() == 0 && mine) atomicAdd(asymmetry, mine);
}

// *lowest, initially all bits set, becomes the smallest degree << 32 | vertex of the listed vertices (of all if there
// is no list).
extern "C" __global__ void __launch_bounds__(THREADS) lowest(u64 n, const u32* vertices, const u32* degrees, u64* lowest) {
    u64 mine = ~u64(0);
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        const u32 v = vertices ? vertices[i] : u32(i);
        const u64 key = u64(degrees[v]) << 32 | v;
        mine = mine < key ? mine : key;
    }
#pragma unroll
    for (u32 with = 16; with; with /= 2) {
        const u64 other = shuffle_xor(mine, with);
        mine = mine < other ? mine : other;
    }
    if (lane_id() == 0) atomicMin(lowest, mine);
}

// flags[i] = 1 if the vertex has this degree; the vertices are those of the list, or all.
extern "C" __global__ void __launch_bounds__(THREADS) of_degree(u64 n, const u32* vertices, const u32* degrees, u32 degree, u8* flags) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        flags[i] = degrees[vertices ? vertices[i] : u32(i)] == degree;
}

// vertices[v] = the row of v.
extern "C" __global__ void __launch_bounds__(THREADS) describe(u64 n, const I* offsets, const u32* degrees, u64* vertices) {
    for (u64 v = u64(blockIdx.x) * THREADS + threadIdx.x; v < n; v += u64(gridDim.x) * THREADS) {
        const u64 start = offsets[v];
        vertices[v] = row_word(start, offsets[v + 1] - start, degrees[v]);
    }
}

// keys[i] = mark << 32 | degree, by which a level of a Cuthill-McKee order is sorted.
extern "C" __global__ void __launch_bounds__(THREADS)
    level_keys(u64 n, const u32* vertices, const u32* degrees, const u32* marks, u64* keys) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        const u32 v = vertices[i];
        keys[i] = u64(marks[v]) << 32 | degrees[v];
    }
}

// From an order (place to vertex) to the reversed numbering, both ways.
extern "C" __global__ void __launch_bounds__(THREADS) reverse(u64 n, const u32* order, u32* new_to_old, u32* old_to_new) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        const u32 v = order[n - 1 - i];
        new_to_old[i] = v;
        if (v < n) old_to_new[v] = u32(i);
    }
}

// envelope[0] = largest |i - j| over the neighbours i, j; envelope[1] = sum over i of i - min(i, its smallest
// neighbour), in the numbering of the list if there is one. Initially zero.
extern "C" __global__ void __launch_bounds__(THREADS)
    envelope(u64 rows, const I* offsets, const u32* indices, const u32* numbers, u64* envelope) {
    const u32 lane = threadIdx.x % LANES;
    u64 far = 0, sum = 0;
    for (u64 base = u64(blockIdx.x) * (THREADS / LANES); base < rows; base += u64(gridDim.x) * (THREADS / LANES)) {
        const u64 row = base + threadIdx.x / LANES;
        const u32 here = row < rows ? (numbers ? numbers[row] : u32(row)) : 0;
        u32 lowest = here, highest = here;
        if (row < rows)
            for (u64 k = offsets[row] + lane, end = offsets[row + 1]; k < end; k += LANES) {
                const u32 w = indices[k], there = numbers ? numbers[w] : w;
                lowest = lowest < there ? lowest : there;
                highest = highest > there ? highest : there;
            }
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) {
            const u32 low = shuffle_xor(lowest, with), high = shuffle_xor(highest, with);
            lowest = lowest < low ? lowest : low;
            highest = highest > high ? highest : high;
        }
        if (lane == 0) sum += here - lowest;
        const u64 most = here - lowest > highest - here ? here - lowest : highest - here;
        far = far > most ? far : most;
    }
    sum = warp_sum(sum);
#pragma unroll
    for (u32 with = 16; with; with /= 2) {
        const u64 other = shuffle_xor(far, with);
        far = far > other ? far : other;
    }
    if (lane_id() == 0) {
        if (far) atomicMax(envelope, far);
        if (sum) atomicAdd(envelope + 1, sum);
    }
}
