// The smoothed prolongation (I - omega D^-1 F) P, where row j of P has vector[j] / norms[g] in the column of its group
// g, and F is A without weak couplings (src/backend/coarsen.rs). For very short rows, one thread takes a row
// (coarsen.cu).
//
//     row 1 of A:  -1  3 -1 -1    strong: columns 0 and 2, so F has  -1  2 -1
//     groups:       0  0  1  1    three products, two of column 0 and one of column 1
//
// GROUP lanes take a row. First they collect the entries of F in shared memory, in the order of A's row; then each
// entry is a product in the column of its group, and products are sorted by column and added (sorted_products.cuh).
// Sums are in the order of A's row, so they have the same bits as on the host.
//
// Bytes moved: A once, the strong couplings once, the groups, vector elements and norms of its columns (from the
// caches), P once.
//
// Constants: SCALAR, OFFSET (of A), TARGET (of the graph and P), GROUP (lanes per row), EACH (entries per lane),
// THREADS.
#include "columns.cuh"
#include "groups.cuh"
#include "lanes_of_row.cuh"
#include "sorted_products.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef TARGET J;

extern "C" __global__ void __launch_bounds__(THREADS)
    smoothed_rows(u64 n, const I* offsets, const u32* columns, const T* values, const J* starts, const u32* neighbours,
                  R omega, const u32* group, const R* vector, const R* norms, const J* places, u32* indices,
                  T* smoothed) {
    __shared__ u32 lists[THREADS / GROUP][ROOM];
    __shared__ T products_of[THREADS / GROUP][ROOM];
    u32* list = lists[threadIdx.x / GROUP];
    T* product = products_of[threadIdx.x / GROUP];
    const u32 lane = lane_id() % GROUP, below = (1u << lane) - 1;
    // All lanes of a warp stay together, including those whose rows are beyond the last.
    for (u64 of_warp = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32 * (32 / GROUP); of_warp < n;
         of_warp += u64(gridDim.x) * (THREADS / GROUP)) {
        const u64 i = of_warp + lane_id() / GROUP;
        const bool there = i < n;
        const u64 begin = there ? u64(offsets[i]) : 0, first = there ? u64(starts[i]) : 0;
        const u32 length = there ? u32(offsets[i + 1] - begin) : 0, strong = there ? u32(starts[i + 1] - first) : 0;
        T diagonal = T(), lumped = T();
        u32 kept = 0, before = 0;
        for (u32 tile = 0; __any_sync(ALL, tile < length); tile += GROUP) {
            const bool has = tile + lane < length;
            const u32 j = has ? columns[begin + tile + lane] : 0;
            const T value = has ? values[begin + tile + lane] : T();
            const bool own = has && j == i;
            const u32 of_own = votes_of_row(own);
            // Usually all couplings of a row are strong, and no search is needed.
            bool keeps = has && !own;
            if (keeps && (length > GROUP || strong + (of_own != 0) < length)) {
                const u32 at = first_from(neighbours + first, 0u, strong, j);
                keeps = at < strong && neighbours[first + at] == j;
            }
            const u32 of_strong = votes_of_row(keeps);
            u32 weak = votes_of_row(has && !own && !keeps);
            const T of_lane = from_lane(value, of_own ? __ffs(of_own) - 1 : 0);
            if (of_own) diagonal = of_lane;
            while (__any_sync(ALL, weak)) {
                const T next = from_lane(value, weak ? __ffs(weak) - 1 : 0);
                if (weak) lumped = lumped + next;
                weak &= weak - 1;
            }
            if (keeps) {
                const u32 to = kept + __popc(of_strong & below) + (j > i);
                list[to] = j;
                product[to] = value;
            }
            kept += __popc(of_strong);
            before += __popc(votes_of_row(keeps && j < i));
        }
        diagonal = with_lumped(diagonal, lumped);
        if (lane == 0) {
            list[before] = u32(i);
            product[before] = diagonal;
        }
        __syncwarp();
        const u32 entries = there ? kept + 1 : 0;
        R sum = 0;
        for (u32 e = 0; e < entries; e++) sum += magnitude(product[e]);
        // A row without strong couplings is not changed.
        const T scale = from_real<T>(sum > 0 && strong > 0 ? -omega / sum : R(0));
        __syncwarp();
        u32 keys[EACH];
#pragma unroll
        for (u32 u = 0; u < EACH; u++) {
            const u32 e = u * GROUP + lane;
            keys[u] = NONE;
            if (e >= entries) continue;
            const u32 j = list[e], g = group[j];
            if (g == NO_GROUP) continue;
            keys[u] = g << NUMBER_BITS | e;
            const T damped = e == before ? product[e] * scale + from_real<T>(R(1)) : product[e] * scale;
            product[e] = damped * from_real<T>(vector[j] / norms[g]);
        }
        __syncwarp();
        sort_keys(keys, ALL);
        u32 sums = sum_by_columns(keys, entries, list, product, ALL);
        const u64 place = there ? u64(places[i]) : 0;
        // If the given pattern is not that of the product, nothing is written beyond it.
        if (there) sums = u32(min(u64(sums), places[i + 1] - place));
        for (u32 k = lane; k < sums; k += GROUP) {
            indices[place + k] = list[k];
            smoothed[place + k] = product[k];
        }
        __syncwarp();
    }
}
