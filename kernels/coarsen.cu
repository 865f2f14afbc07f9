// From a matrix to the one of the next level of algebraic multigrid: which couplings are strong, the prolongation and
// what smooths it, scales and blocks for smoothing. src/backend/coarsen.rs says what each step does. A thread takes a
// row, in the order of its entries, so that sums have the bits that the host gets.
//
// Constants: SCALAR, OFFSET (of A), TARGET (of the graph, or what is written), WARPS (of a block of threads for dense
// blocks), MOST_OF_BLOCK (unknowns of a dense block at most), THREADS.
#include "columns.cuh"
#include "nodes.cuh"
#include "scalars.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef OFFSET I;
typedef TARGET J;

constexpr f64 SMALLEST_LUMPED = 0.3;

DEVICE bool is_strong(R threshold, const R* largest, u64 i, u64 j, T value) {
    const R size = magnitude(value), smaller = min(largest[i], largest[j]);
    return size > 0 && size >= threshold * smaller;
}

// Calls `of_row(i, columns, values, length)` for every row, a thread a row. The entries of neighbouring rows lie side
// by side: they are brought to shared memory first, so that lanes read neighbouring addresses. A block takes as many
// rows at a time as there is room for by their mean; where they are longer than that, a thread reads its row where it
// lies.
template <typename F> DEVICE void each_row(u64 n, const I* offsets, const u32* columns, const T* values, F of_row) {
    constexpr u32 ROOM = 8 * THREADS;
    __shared__ u32 near_columns[ROOM];
    __shared__ T near_values[ROOM];
    for (u64 tile = u64(blockIdx.x) * THREADS; tile < n; tile += u64(gridDim.x) * THREADS) {
        const u64 behind = min(tile + THREADS, n), entries = offsets[behind] - offsets[tile];
        u32 rows = THREADS;
        while (rows > 8 && entries * rows > u64(ROOM) * THREADS) rows /= 2;
        for (u64 from = tile; from < behind; from += rows) {
            const u64 begin = offsets[from], end = offsets[min(from + rows, behind)], i = from + threadIdx.x;
            const bool near = end - begin <= ROOM;
            if (near)
                for (u64 at = begin + threadIdx.x; at < end; at += THREADS) {
                    near_columns[at - begin] = columns[at];
                    near_values[at - begin] = values[at];
                }
            __syncthreads();
            if (threadIdx.x < rows && i < behind) {
                const u64 first = offsets[i], place = near ? first - begin : first;
                of_row(i, (near ? near_columns : columns) + place, (near ? near_values : values) + place,
                       u32(offsets[i + 1] - first));
            }
            __syncthreads();
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    largest_couplings(u64 n, const I* offsets, const u32* columns, const T* values, R* largest) {
    each_row(n, offsets, columns, values, [=](u64 i, const u32* js, const T* row, u32 length) {
        R most = 0;
        for (u32 at = 0; at < length; at++)
            if (js[at] != i) {
                const R size = magnitude(row[at]);
                if (size > most) most = size;
            }
        largest[i] = most;
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    strong_lengths(u64 n, const I* offsets, const u32* columns, const T* values, R threshold, const R* largest, u32* lengths) {
    if (blockIdx.x == 0 && threadIdx.x == 0) lengths[n] = 0;
    each_row(n, offsets, columns, values, [=](u64 i, const u32* js, const T* row, u32 length) {
        u32 strong = 0;
        for (u32 at = 0; at < length; at++) strong += js[at] != i && is_strong(threshold, largest, i, js[at], row[at]);
        lengths[i] = strong;
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    strong_entries(u64 n, const I* offsets, const u32* columns, const T* values, R threshold, const R* largest,
                   const J* starts, u32* neighbours, f32* weights) {
    each_row(n, offsets, columns, values, [=](u64 i, const u32* js, const T* row, u32 length) {
        u64 place = starts[i];
        for (u32 at = 0; at < length; at++) {
            const u64 j = js[at];
            if (j == i || !is_strong(threshold, largest, i, j, row[at])) continue;
            neighbours[place] = u32(j);
            weights[place++] = f32(magnitude(row[at]) / largest[i]);
        }
    });
}

// Calls `each(is_diagonal, place, column, value)` for the entries of a damped row in their order: strong neighbours,
// and the diagonal, which A's row may lack.
template <typename F>
DEVICE void each_damped(u64 i, const u32* js, const T* row, u32 length, T diagonal, const u32* neighbours, u64 next,
                        u64 last, F each) {
    u64 place = next + i;
    bool before = true;
    for (u32 at = 0; at < length; at++) {
        const u64 j = js[at];
        if (before && j >= i) {
            each(true, place++, u32(i), diagonal);
            before = false;
        }
        if (j != i && next < last && neighbours[next] == j) {
            each(false, place++, u32(j), row[at]);
            next++;
        }
    }
    if (before) each(true, place, u32(i), diagonal);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    damped_entries(u64 n, const I* offsets, const u32* columns, const T* values, const J* starts, const u32* neighbours,
                   R omega, u32* indices, T* damped) {
    each_row(n, offsets, columns, values, [=](u64 i, const u32* js, const T* row, u32 length) {
        const u64 first = starts[i], last = starts[i + 1];
        u64 next = first;
        T diagonal = T(), lumped = T();
        for (u32 at = 0; at < length; at++) {
            if (js[at] == i) diagonal = row[at];
            else if (next < last && neighbours[next] == js[at]) next++;
            else lumped = lumped + row[at];
        }
        const T whole = diagonal + lumped;
        if (real_part(whole) >= R(SMALLEST_LUMPED) * real_part(diagonal)) diagonal = whole;
        R sum = 0;
        each_damped(i, js, row, length, diagonal, neighbours, first, last,
                    [&](bool, u64, u32, T value) { sum += magnitude(value); });
        const T scale = from_real<T>(sum > 0 ? -omega / sum : R(0));
        const auto write = [&](bool own, u64 place, u32 column, T value) {
            indices[place] = column;
            damped[place] = own ? value * scale + from_real<T>(R(1)) : value * scale;
        };
        each_damped(i, js, row, length, diagonal, neighbours, first, last, write);
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    group_entries(u64 n, const u32* group, const R* vector, const J* starts, u32* indices, T* values) {
    EACH(i, n)
        if (group[i] != NO_GROUP) {
            indices[starts[i]] = group[i];
            values[starts[i]] = from_real<T>(vector[i]);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) row_norms(u64 n, const I* offsets, const T* values, R* norms) {
    EACH(i, n) {
        R sum = 0;
        for (u64 at = offsets[i]; at < offsets[i + 1]; at++) sum += abs2(values[at]);
        norms[i] = sqrt(sum);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    divide_by_column(u64 entries, const u32* indices, const R* norms, T* values) {
    EACH(e, entries) values[e] = from_real<T>(real_part(values[e]) / norms[indices[e]]);
}

extern "C" __global__ void __launch_bounds__(THREADS) conjugate(u64 n, T* x) { EACH(i, n) x[i] = conj(x[i]); }

extern "C" __global__ void __launch_bounds__(THREADS)
    diagonal_scales(u64 n, const I* offsets, const u32* columns, const T* values, f64* scales) {
    EACH(i, n) {
        const u64 end = offsets[i + 1], at = first_from(columns, u64(offsets[i]), end, i);
        const f64 diagonal = at < end && columns[at] == i ? f64(real_part(values[at])) : 0;
        scales[i] = diagonal > 0 ? 1 / sqrt(diagonal) : 0;
    }
}

// strong is zero before.
extern "C" __global__ void __launch_bounds__(THREADS)
    scaled_sums(u64 n, const I* offsets, const u32* columns, const T* values, const f64* scales, f64 threshold, R* sums,
                u32* strong) {
    u32 count = 0;
    each_row(n, offsets, columns, values, [=, &count](u64 i, const u32* js, const T* row, u32 length) {
        f64 sum = 0, strongest = 0;
        for (u32 at = 0; at < length; at++) {
            const u64 j = js[at];
            const f64 scaled = f64(magnitude(row[at])) * scales[j];
            sum += scaled;
            if (j != i) strongest = max(strongest, scaled * scales[i]);
        }
        count += strongest > threshold;
        const R inverse = R(scales[i] / sum);
        sums[i] = finite(inverse) ? inverse : R(0);
    });
    count = warp_sum(count);
    if (lane_id() == 0 && count) atomicAdd(strong, count);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scaled_magnitudes(u64 n, const I* offsets, const u32* columns, const T* values, const f64* scales, f32* weights) {
    EACH(i, n)
        for (u64 at = offsets[i]; at < offsets[i + 1]; at++)
            weights[at] = f32(f64(magnitude(values[at])) * scales[i] * scales[columns[at]]);
}

// A warp takes a block: lane i owns row i of it.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    group_inverses(u64 n, const I* offsets, const u32* columns, const T* values, u64 blocks, const u32* member_starts,
                   const u32* members, const f64* scales, const J* starts, u32* indices, T* inverses) {
    __shared__ T systems[WARPS][MOST_OF_BLOCK * (MOST_OF_BLOCK + 1)];
    T* a = systems[threadIdx.x / 32];
    const u32 lane = threadIdx.x % 32, WIDTH = MOST_OF_BLOCK + 1;
    for (u64 k = u64(blockIdx.x) * WARPS + threadIdx.x / 32; k < blocks; k += u64(gridDim.x) * WARPS) {
        const u32 first = member_starts[k], size = member_starts[k + 1] - first;
        const bool own = lane < size;
        const u64 row = own ? members[first + lane] : 0;
        if (own) {
            for (u32 j = 0; j < size; j++) a[lane * WIDTH + j] = T();
            f64 outside = 0;
            for (u64 at = offsets[row]; at < offsets[row + 1]; at++) {
                const u32 column = columns[at], place = first_from(members, first, first + size, column);
                if (place < first + size && members[place] == column) a[lane * WIDTH + place - first] = values[at];
                else outside += f64(magnitude(values[at])) * scales[column];
            }
            if (scales[row] > 0) a[lane * WIDTH + lane] = a[lane * WIDTH + lane] + from_real<T>(R(outside / scales[row]));
        }
        __syncwarp();
        R largest = 0;
        for (u32 i = 0; i < size; i++) largest = max(largest, magnitude(a[i * WIDTH + i]));
        const R epsilon = sizeof(R) == 8 ? R(2.220446049250313e-16) : R(1.1920929e-7f), smallest = largest * epsilon * R(size);
        for (u32 p = 0; p < size; p++) {
            const R pivot = real_part(a[p * WIDTH + p]);
            const T reciprocal = pivot > smallest ? from_real<T>(R(1) / pivot) : T();
            const T factor = own && lane != p ? a[lane * WIDTH + p] : T();
            __syncwarp();
            if (own) a[p * WIDTH + lane] = lane == p ? reciprocal : a[p * WIDTH + lane] * reciprocal;
            __syncwarp();
            if (own && lane != p)
                for (u32 j = 0; j < size; j++) {
                    const T before = j == p ? T() : a[lane * WIDTH + j];
                    a[lane * WIDTH + j] = before - factor * a[p * WIDTH + j];
                }
            __syncwarp();
        }
        if (own) {
            const u64 place = starts[row];
            for (u32 j = 0; j < size; j++) {
                indices[place + j] = members[first + j];
                inverses[place + j] = a[lane * WIDTH + j];
            }
        }
        __syncwarp();
    }
}
