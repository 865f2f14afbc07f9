// Operations on k interleaved vectors: entry i of vector j is at i * k + j.
//
//     bytes per entry   dots: 2 reads    sums: 1 read    interleave, separate: 1 read, 1 write
//
// Constants: SCALAR (element type), THREADS (moves), SUM_THREADS, SUM_UNROLL (sums); k is 2 to 32.
#include "column_sums.cuh"

typedef SCALAR T;
#include "lanes16.cuh"

template <typename F> DEVICE void column_sums(u32 k, const T* x, const T* y, u64 n, T* out, T* partials, u32* finished, F term) {
    const u32 active = of_whole_rows<SUM_THREADS>(k), place = threadIdx.x * VEC;
    const u64 step = u64(active) * VEC, tile = step * SUM_UNROLL;
    const bool aligned = aligned16(x) && aligned16(y);
    T sum[VEC] = {};
    if (threadIdx.x < active)
        for (u64 start = blockIdx.x * tile; start < n; start += gridDim.x * tile) {
            const bool wide = aligned && start + tile <= n;
            T a[SUM_UNROLL][VEC], b[SUM_UNROLL][VEC];
#pragma unroll
            for (int u = 0; u < SUM_UNROLL; u++) {
                get(wide, x, start + u * step + place, n, a[u]);
                get(wide, y, start + u * step + place, n, b[u]);
            }
#pragma unroll
            for (int u = 0; u < SUM_UNROLL; u++)
#pragma unroll
                for (int v = 0; v < VEC; v++) sum[v] = sum[v] + term(a[u][v], b[u][v]);
        }
    launch_column_sums<SUM_THREADS>(sum, k, partials, finished, [=](u32 column, T all) { out[column] = all; });
}

// out[j] = sum of conj(x[i k + j]) y[i k + j]; n is k times the length.
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    dots(u32 k, const T* x, const T* y, u64 n, T* out, T* partials, u32* finished) {
    column_sums(k, x, y, n, out, partials, finished, [](T a, T b) { return conj(a) * b; });
}

// out[j] = sum of x[i k + j]: adds up the partial sums of x.y that a product's blocks left. Both operands are the same,
// so the compiler drops the second loads.
extern "C" __global__ void __launch_bounds__(SUM_THREADS) sums(u32 k, const T* x, u64 n, T* out, T* partials, u32* finished) {
    column_sums(k, x, x, n, out, partials, finished, [](T a, T) { return a; });
}

// From vectors one after another to interleaved ones, and back. On one side neighbouring elements are in different
// vectors, and several warps together complete its cache lines.
extern "C" __global__ void __launch_bounds__(THREADS) interleave(u32 k, const T* x, T* y, u64 rows) {
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < rows * k; e += u64(gridDim.x) * THREADS) y[e] = x[e % k * rows + e / k];
}
extern "C" __global__ void __launch_bounds__(THREADS) separate(u32 k, const T* x, T* y, u64 rows) {
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < rows * k; e += u64(gridDim.x) * THREADS) y[e % k * rows + e / k] = x[e];
}
