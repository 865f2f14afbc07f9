// Block-diagonal preconditioner: the inverses of the diagonal blocks of a Hermitian matrix, and the product with them.
//
// same_columns finds where blocks may start: at rows whose columns differ from those of the previous row. One thread
// takes one row, and stops at the first difference.
//
//     | 4 1     |      starts  0 2 3         a warp inverts a block; in the product a thread takes a row
//     | 1 5     |      offsets 0 4 5
//     |       2 |      values  column after column, block after block
//
// Gauss-Jordan elimination without pivoting (Golub and Van Loan, Matrix Computations, 4th ed., 3.4): the pivots of a
// positive definite matrix are positive. Bytes of a product: the blocks once, r, z, and 4 for the row's block.
//
// Constants: SCALAR (vectors), STORED (values of A), OFFSET (offsets of A), WARPS (per block of threads), THREADS.
#include "columns.cuh"
#include "dense.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    block_inverses(u64 blocks, const I* offsets, const u32* columns, const V* values, const u32* starts, const u64* places,
                   T* inverses, u32* first_bad) {
    __shared__ Dense<T> systems[WARPS];
    Dense<T>& a = systems[threadIdx.x / 32];
    const u32 lane = threadIdx.x % 32;
    for (u64 k = u64(blockIdx.x) * WARPS + threadIdx.x / 32; k < blocks; k += u64(gridDim.x) * WARPS) {
        const u32 start = starts[k], size = starts[k + 1] - start;
        if (lane < size) {
            for (u32 j = 0; j < size; j++) a(lane, j) = T();
            const u64 end = offsets[start + lane + 1];
            for (u64 at = first_from(columns, u64(offsets[start + lane]), end, start); at < end && columns[at] < start + size; at++) a(lane, columns[at] - start) = widen<T>::from(values[at]);
        }
        __syncwarp();
        u32 bad = size;
        for (u32 p = 0; p < size && bad == size; p++) {
            if (!is_pivot(a(p, p))) bad = p;
            else {
                const T reciprocal = from_real<T>(1 / real_part(a(p, p)));
                const T factor = lane < size && lane != p ? a(lane, p) : T();
                __syncwarp();
                if (lane < size) {
                    a(p, lane) = lane == p ? reciprocal : a(p, lane) * reciprocal;
                    if (lane != p) a(lane, p) = T();
                }
                __syncwarp();
                if (lane < size && lane != p)
                    for (u32 j = 0; j < size; j++) a(lane, j) = a(lane, j) - factor * a(p, j);
                __syncwarp();
            }
        }
        if (lane < size) {
            T* inverse = inverses + places[k];
            for (u32 j = 0; j < size; j++) // only the lower triangle is read, so the block is exactly Hermitian
                inverse[u64(j) * size + lane] = j < lane ? a(lane, j) : j == lane ? from_real<T>(real_part(a(lane, lane))) : conj(a(j, lane));
        }
        if (lane == 0 && bad < size) atomicMin(first_bad, start + bad);
        __syncwarp();
    }
}

// same[i] = 1 if row i has the columns of row i - 1, else 0.
extern "C" __global__ void __launch_bounds__(THREADS) same_columns(u64 rows, const I* offsets, const u32* columns, u8* same) {
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const u64 start = offsets[row], length = offsets[row + 1] - start;
        bool alike = row > 0 && u64(start - offsets[row - (row > 0)]) == length;
        for (u64 k = 0; alike && k < length; k++) alike = columns[start + k] == columns[start - length + k];
        same[row] = alike;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    block_multiply(u64 rows, const u32* starts, const u32* block_of, const u64* places, const T* values, const T* r, T* z) {
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const u32 k = block_of[row], start = starts[k], size = starts[k + 1] - start;
        const T* m = values + places[k] + (row - start);
        T sum = T();
        for (u32 j = 0; j < size; j++) sum = sum + m[u64(j) * size] * r[start + j];
        z[row] = sum;
    }
}

// d[i] = 1 / weight of row i, with one warp per row. The weight is the real part of the diagonal entry, or its
// magnitude if `positive`; it is the row's norm if that part is missing or at most `small` times the norm. If the
// reciprocal is not usable, as for an empty row, d[i] is 1.
extern "C" __global__ void __launch_bounds__(THREADS)
    row_inverses(u64 rows, const I* offsets, const u32* columns, const V* values, f64 small, u32 positive,
                 real_of<T>::type* d) {
    const u64 warps = u64(gridDim.x) * (THREADS / 32);
    for (u64 row = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32; row < rows; row += warps) {
        f64 largest = 0, diagonal = 0, sum = 0;
        for (u64 at = offsets[row] + lane_id(); at < offsets[row + 1]; at += 32) {
            largest = max(largest, sqrt(f64(abs2(widen<T>::from(values[at])))));
            if (columns[at] == row) diagonal = f64(real_part(values[at]));
        }
#pragma unroll
        for (u32 with = 16; with; with /= 2) largest = max(largest, shuffle_xor(largest, with));
        diagonal = warp_sum(diagonal);
        for (u64 at = offsets[row] + lane_id(); largest > 0 && at < offsets[row + 1]; at += 32) {
            const f64 part = sqrt(f64(abs2(widen<T>::from(values[at])))) / largest;
            sum += part * part;
        }
        const f64 norm = largest * sqrt(warp_sum(sum));
        const f64 weight = abs(diagonal) <= small * norm ? norm : positive ? abs(diagonal) : diagonal;
        const real_of<T>::type inverse = real_of<T>::type(1 / weight);
        const bool usable = weight != 0 && inverse - inverse == 0 && inverse != 0;
        if (lane_id() == 0) d[row] = usable ? inverse : real_of<T>::type(1);
    }
}
