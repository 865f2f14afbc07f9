// Products with a basis V, whose vectors of n elements are stored one after another: V^H w, and w += alpha V h.
//
// bytes: V once, and w once (products) or twice (update). A vector starts where the previous one ends, so that for odd
// n most are not aligned to 16 bytes. Therefore neighbouring threads read neighbouring elements, one at a time, and a
// thread has AT_ONCE * ITEMS loads in flight.
//
//     tile of basis_products    w: ITEMS elements per thread, in registers    v_j, v_(j+1), ...: AT_ONCE at a time
//                               sums of a warp: shared memory, a place for each vector and warp
//
// Sums are computed in an order that depends on the shape of the launch alone, so they have the same bits in every run.
// The host passes only alpha and the sizes: h is in device memory.
//
// Constants: SCALAR (element type), THREADS (update), SUM_THREADS (products), ITEMS, AT_ONCE (a power of two), SLICE
// (maximum number of vectors of a block of basis_products), FACTORS (elements of h in shared memory at a time).
#include "several_sums.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

template <typename A> DEVICE A from_real(R a) {
    if constexpr (is_complex<A>::value) return {a, 0};
    else return a;
}

// Loads the elements of AT_ONCE vectors in the rows of this thread's items; zero for rows beyond the end.
template <int STRIDE> DEVICE void fetch(const T* v, u64 n, u32 vectors, const bool (&there)[ITEMS], T (&items)[AT_ONCE][ITEMS]) {
#pragma unroll
    for (int c = 0; c < AT_ONCE; c++)
#pragma unroll
        for (int u = 0; u < ITEMS; u++) items[c][u] = there[u] && c < vectors ? v[c * n + u * STRIDE] : T();
}

// out[j] = v_j^H w. Blocks form a rectangle: `rows` blocks share the tiles of w for each `slice` of vectors; rows is
// gridDim.x / ceil(count / slice), and every slice has a counter in `finished`. partials: count * rows.
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    basis_products(const T* basis, u32 count, u32 slice, u32 rows, const T* w, u64 n, T* out, T* partials, u32* finished) {
    after_predecessors();
    constexpr u32 WARPS = SUM_THREADS / 32;
    __shared__ T sums[SLICE][WARPS];
    const u32 warp = threadIdx.x / 32, lane = lane_id();
    const u32 number = blockIdx.x / rows, row = blockIdx.x % rows;
    const u32 first = number * slice, vectors = min(slice, count - first);
    for (u32 c = threadIdx.x; c < vectors * WARPS; c += SUM_THREADS) sums[c / WARPS][c % WARPS] = T();
    __syncthreads();
    const u64 tile = u64(SUM_THREADS) * ITEMS;
    for (u64 start = row * tile; start < n; start += rows * tile) {
        const u64 at = start + threadIdx.x;
        T x[ITEMS];
        bool there[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            there[u] = at + u * SUM_THREADS < n;
            x[u] = there[u] ? w[at + u * SUM_THREADS] : T();
        }
        const T* v = basis + first * n + at;
        for (u32 c = 0; c < vectors; c += AT_ONCE, v += AT_ONCE * n) {
            T items[AT_ONCE][ITEMS], sum[AT_ONCE];
            fetch<SUM_THREADS>(v, n, vectors - c, there, items);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                sum[k] = conj(items[k][0]) * x[0];
#pragma unroll
                for (int u = 1; u < ITEMS; u++) sum[k] = sum[k] + conj(items[k][u]) * x[u];
            }
            const T all = warp_sums(sum);
            const u32 k = c + sum_of_lane<AT_ONCE>();
            if (lane < AT_ONCE && k < vectors) sums[k][warp] = sums[k][warp] + all;
        }
    }
    __syncthreads();
    for (u32 c = threadIdx.x; c < vectors; c += SUM_THREADS) {
        T sum = sums[c][0];
        for (u32 other = 1; other < WARPS; other++) sum = sum + sums[c][other];
        if (rows == 1) {
            out[first + c] = sum;
        } else {
            partials[u64(first + c) * rows + row] = sum;
            __threadfence();
        }
    }
    if (rows == 1 || !is_last(finished + number, rows)) return;
    for (u32 c = warp; c < vectors; c += WARPS) {
        T sum = T();
        for (u32 part = lane; part < rows; part += 32) sum = sum + load_shared_result(partials + u64(first + c) * rows + part);
        sum = warp_sum(sum);
        if (lane == 0) out[first + c] = sum;
    }
}

// w += alpha V h; *square = ||w||^2 if it is not null.
extern "C" __global__ void __launch_bounds__(THREADS)
    basis_update(T alpha, const T* basis, u32 count, const T* h, T* w, u64 n, T* square, R* partials, u32* finished) {
    after_predecessors();
    __shared__ T factors[FACTORS];
    const u64 tile = u64(THREADS) * ITEMS;
    R sum = R();
    u32 first = 0;
    do {
        const u32 vectors = min(count - first, u32(FACTORS));
        const bool last = first + vectors == count;
        if (first > 0) __syncthreads();
        for (u32 c = threadIdx.x; c < vectors; c += THREADS) factors[c] = alpha * h[first + c];
        __syncthreads();
        for (u64 start = blockIdx.x * tile; start < n; start += gridDim.x * tile) {
            const u64 at = start + threadIdx.x;
            T x[ITEMS];
            bool there[ITEMS];
#pragma unroll
            for (int u = 0; u < ITEMS; u++) {
                there[u] = at + u * THREADS < n;
                x[u] = there[u] ? w[at + u * THREADS] : T();
            }
            const T* v = basis + first * n + at;
            for (u32 c = 0; c < vectors; c += AT_ONCE, v += AT_ONCE * n) {
                T items[AT_ONCE][ITEMS];
                fetch<THREADS>(v, n, vectors - c, there, items);
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++)
                    if (c + k < vectors) {
                        const T by = factors[c + k];
#pragma unroll
                        for (int u = 0; u < ITEMS; u++) x[u] = x[u] + by * items[k][u];
                    }
            }
#pragma unroll
            for (int u = 0; u < ITEMS; u++)
                if (there[u]) {
                    w[at + u * THREADS] = x[u];
                    if (last) sum = sum + abs2(x[u]);
                }
        }
        first += vectors;
    } while (first < count);
    if (square) launch_sum<THREADS>(sum, partials, finished, [=](R all) { *square = from_real<T>(all); });
}
