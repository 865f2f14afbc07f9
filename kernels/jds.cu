// y = alpha A x + beta y with A in jagged diagonals, one thread per row.
//
//     | 1 . 7 . |     order    0 2 3 1        (row 1 is the shortest)
//     | . . 8 . |     offsets  0 4 7
//     | . 4 3 . |     columns  0 1 0 2 | 2 2 3         step 0 reads 0 1 0 2, step 1 reads 2 2 3
//     | 2 . . 1 |     values   1 4 2 8 | 7 3 1
//
// Entry k of the row at position p is at offsets[k] + p, as long as that is before offsets[k + 1]: rows are ordered
// from longest to shortest. y is written in the original order, so the operator is A itself.
//
// Bytes per nonzero: value + 4 for the column + accesses to x that miss the caches. Per row: its place in the order,
// and y. Source: PMPP 14.5 and its exercise 5; CS13 (transposed JDS).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), UNROLL (entries in flight per thread), THREADS.
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(THREADS)
    jds(u64 rows, u64 diagonals, const u32* order, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta,
        T* y, u32 conjugate) {
    after_predecessors();
    for (u64 p = u64(blockIdx.x) * THREADS + threadIdx.x; p < rows; p += u64(gridDim.x) * THREADS) {
        T sum = T();
        bool more = true;
        for (u64 k = 0; more && k < diagonals; k += UNROLL) {
            u32 column[UNROLL];
            V value[UNROLL];
            T of_x[UNROLL];
            bool there[UNROLL];
            u64 start = cached(offsets + k);
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++) {
                const u64 next = k + u < diagonals ? u64(cached(offsets + k + u + 1)) : start;
                there[u] = p < next - start;
                if (there[u]) {
                    column[u] = stream(columns + start + p);
                    value[u] = stream(values + start + p);
                }
                start = next;
            }
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++)
                if (there[u]) of_x[u] = cached(x + column[u]);
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++)
                if (there[u]) sum = sum + entry<T>(value[u], conjugate) * of_x[u];
            more = there[UNROLL - 1];
        }
        finish(alpha, sum, beta, y + order[p]);
    }
}
