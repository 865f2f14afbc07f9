// The factor G of a factorised sparse approximate inverse, G^H G ~ A^-1, on the pattern of A's lower triangle.
//
//     | 4 1 . |     row 2 of G has the columns J = {1, 2} of A's row 2
//     | 1 5 2 |     and solves  g | 5 2 | = c | 0 1 |,  c so that g A(J, J) g^H = 1
//     | . 2 6 |                   | 2 6 |
//
// A warp takes a row: lane i gathers row J[i] of A(J, J), Cholesky A(J, J) = L L^H, then L^H y = e_last, g = conj(y).
// Source: Kolotilina and Yeremin, SIAM J. Matrix Anal. Appl. 14 (1993).
//
// Constants: SCALAR (vectors), STORED (values of A), OFFSET (offsets of A), FACTOR_OFFSET (offsets of G), WARPS,
// THREADS.
#include "columns.cuh"
#include "dense.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;

// Returns the place of the diagonal entry in a row, or the row's end if it is missing.
DEVICE u64 diagonal_of(const I* offsets, const u32* columns, u64 row) {
    const u64 end = offsets[row + 1], at = first_from(columns, u64(offsets[row]), end, row);
    return at < end && columns[at] == row ? at : end;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lower_lengths(u64 rows, const I* offsets, const u32* columns, u32 limit, u32* lengths) {
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row <= rows; row += u64(gridDim.x) * THREADS) {
        u32 length = 0;
        if (row < rows) {
            const u64 place = diagonal_of(offsets, columns, row), before = place - offsets[row];
            if (place < offsets[row + 1]) length = before < limit ? u32(before) + 1 : limit;
        }
        lengths[row] = length;
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    sparse_factor(u64 rows, const I* offsets, const u32* columns, const V* values, const FACTOR_OFFSET* places,
                  u32* factor_columns, T* factor, u32* first_bad) {
    __shared__ Dense<T> systems[WARPS];
    __shared__ u32 lists[WARPS][DENSE_LIMIT];
    Dense<T>& a = systems[threadIdx.x / 32];
    u32* list = lists[threadIdx.x / 32];
    const u32 lane = threadIdx.x % 32;
    for (u64 row = u64(blockIdx.x) * WARPS + threadIdx.x / 32; row < rows; row += u64(gridDim.x) * WARPS) {
        const u64 place = places[row];
        const u32 size = u32(places[row + 1] - place);
        bool good = size > 0;
        if (lane < size) {
            const u32 column = columns[diagonal_of(offsets, columns, row) + 1 - size + lane];
            list[lane] = column;
            factor_columns[place + lane] = column;
            for (u32 j = 0; j <= lane; j++) a(lane, j) = T();
        }
        __syncwarp();
        if (lane < size) {
            const u64 other = list[lane];
            const u64 end = offsets[other + 1];
            u64 at = first_from(columns, u64(offsets[other]), end, list[0]);
            for (u32 j = 0; at < end && columns[at] <= other; at++) {
                while (list[j] < columns[at]) j++;
                if (list[j] == columns[at]) a(lane, j) = widen<T>::from(values[at]);
            }
        }
        __syncwarp();
        for (u32 k = 0; k < size && good; k++) {
            good = is_pivot(a(k, k));
            if (!good) break;
            const real_of<T>::type root = sqrt(real_part(a(k, k)));
            __syncwarp();
            if (lane < size && lane >= k) a(lane, k) = lane == k ? from_real<T>(root) : from_real<T>(1 / root) * a(lane, k);
            __syncwarp();
            if (lane < size && lane > k)
                for (u32 j = k + 1; j <= lane; j++) a(lane, j) = a(lane, j) - a(lane, k) * conj(a(j, k));
            __syncwarp();
        }
        // L^H y = e_last: lane k holds the rest of its right-hand side.
        T y = lane + 1 == size ? from_real<T>(1) : T();
        for (u32 k = size; good && k-- > 0;) {
            if (lane == k) y = from_real<T>(1 / real_part(a(k, k))) * y;
            const T known = shuffle(y, k);
            if (lane < k) y = y - conj(a(k, lane)) * known;
        }
        if (lane < size) {
            factor[place + lane] = conj(y);
            if (!all_finite(y) || (lane + 1 == size && !(real_part(y) > 0))) good = false;
        }
        good = __all_sync(ALL, good);
        if (lane == 0 && !good) atomicMin(first_bad, u32(row));
        __syncwarp();
    }
}
