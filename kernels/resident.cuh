// A matrix in the shared memory of the blocks of one launch, and a vector that the blocks multiply by it: the part
// common to kernels that do many iterations of a method in one launch (cg_resident.cu, minres_resident.cu).
//
//     block      owns rows_a_block rows; thread t rows t, t + THREADS, ... of them
//     shared     the vector: own rows | the halo     values, in slices of 32 rows, with entry k of a slice's rows
//                adjacent | the place of each halo entry | local columns (cg_layout.cu)
//
// Blocks compute the next vector for their own rows, publish the elements that others need, meet (cg_meeting.cuh), and
// read their halo: from each other's shared memory in a cluster, otherwise through global memory.
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), CLUSTER, THREADS, ROWS (per thread).
#pragma once
#include "cg_meeting.cuh"

typedef STORED V;
typedef OFFSET I;
#define HALO 8

// `entries` and `halo_room`: the maximum over blocks. Dynamic shared memory: (rows_a_block + halo_room + (CLUSTER > 1 ?
// rows_a_block : 0)) sizeof(T) + entries sizeof(V) + 4 halo_room + 2 entries, each term rounded up to 16 bytes.
struct OnChip {
    u32 rows_a_block, first, last, halo_count;
    T *here, *published_here, *published;
    V* a_values;
    u32 *sources, *slice_starts;
    u16* a_columns;

    DEVICE OnChip(uint4* memory, u32* starts, T* published, u32 rows, u32 rows_a_block, u32 entries, u32 halo_room)
        : rows_a_block(rows_a_block), published(published), slice_starts(starts) {
        auto padded = [](u32 bytes) { return (bytes + 15) / 16; };
        uint4* place = memory;
        here = reinterpret_cast<T*>(place);
        place += padded((rows_a_block + halo_room) * sizeof(T));
        published_here = nullptr;
#if CLUSTER > 1
        published_here = reinterpret_cast<T*>(place);
        place += padded(rows_a_block * sizeof(T));
#endif
        a_values = reinterpret_cast<V*>(place);
        place += padded(entries * sizeof(V));
        sources = reinterpret_cast<u32*>(place);
        place += padded(halo_room * 4);
        a_columns = reinterpret_cast<u16*>(place);
        first = min(rows, blockIdx.x * rows_a_block);
        last = min(rows, first + rows_a_block);
    }

    DEVICE u32 local(int k) const { return k * THREADS + threadIdx.x; }
    DEVICE bool owns(int k) const { return local(k) < rows_a_block && first + local(k) < last; }

    // Loads the matrix, with slices each as wide as its longest row, and the vector with its halo.
    DEVICE void load(const I* offsets, const V* values, const u16* locals, const u32* halo_starts, const u32* halo, const T* vector) {
        const u32 warp = threadIdx.x / 32, lane = lane_id();
        u32 length[ROWS];
        u64 begin[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const u32 row = first + local(k);
            begin[k] = owns(k) ? u64(offsets[row]) : 0;
            length[k] = owns(k) ? u32(u64(offsets[row + 1]) - begin[k]) : 0;
            const u32 width = most_of_lanes(length[k]);
            if (lane == 0) slice_starts[k * WARPS + warp + 1] = 32 * width;
        }
        if (threadIdx.x == 0) slice_starts[0] = 0;
        __syncthreads();
        if (threadIdx.x == 0)
            for (u32 s = 0; s < ROWS * WARPS; s++) slice_starts[s + 1] += slice_starts[s];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const u32 start = slice_starts[k * WARPS + warp], end = slice_starts[k * WARPS + warp + 1];
            for (u32 i = start + lane, e = 0; i < end; i += 32, e++) {
                a_values[i] = e < length[k] ? values[begin[k] + e] : V();
                a_columns[i] = e < length[k] ? locals[begin[k] + e] : u16(0);
            }
            if (local(k) < rows_a_block) here[local(k)] = owns(k) ? vector[first + local(k)] : T();
        }
        const u32 start = halo_starts[blockIdx.x];
        halo_count = halo_starts[blockIdx.x + 1] - start;
        for (u32 h = threadIdx.x; h < halo_count; h += THREADS) {
            const u32 row = halo[start + h];
            here[rows_a_block + h] = vector[row];
#if CLUSTER > 1
            sources[h] = address_in(in_shared(published_here + row % rows_a_block), row / rows_a_block);
#else
            sources[h] = row;
#endif
        }
        __syncthreads();
#if CLUSTER > 1
        // No block writes to another's shared memory before that block has started.
        cluster_meet();
#endif
    }

    // Returns the product of the thread's row k with the vector.
    DEVICE T product(int k) const {
        const u32 slice = k * WARPS + threadIdx.x / 32;
        const u32 start = slice_starts[slice], end = slice_starts[slice + 1];
        T sum = T();
#pragma unroll 4
        for (u32 i = start + lane_id(); i < end; i += 32) sum = fused(widen<T>::from(a_values[i]), here[a_columns[i]], sum);
        return sum;
    }

    // Publishes the element of this thread's row k for other blocks. A meeting with PUBLISH must follow.
    DEVICE void publish(int k, T value) const {
#if CLUSTER > 1
        if (local(k) < rows_a_block) published_here[local(k)] = value;
#elif CLUSTER == 0
        if (owns(k)) published[first + local(k)] = value;
#endif
    }

    // Loads HALO entries of the halo, from h on in steps of THREADS, all in flight at once.
    DEVICE void fetch(T (&z)[HALO], u32 h) const {
#pragma unroll
        for (u32 u = 0; u < HALO; u++) {
            if (h + u * THREADS >= halo_count) break;
#if CLUSTER > 1
            z[u] = get_from<T>(sources[h + u * THREADS]);
#else
            z[u] = load_shared_result(published + sources[h + u * THREADS]);
#endif
        }
    }

    // Calls set(entry of the halo, the value that its owner has published), for the whole halo; the first part is
    // loaded while `meanwhile` is done.
    template <typename M, typename F> DEVICE void fetch_halo(M meanwhile, F set) const {
        T fetched[HALO];
        fetch(fetched, threadIdx.x);
        meanwhile();
        for (u32 h = threadIdx.x; h < halo_count; h += HALO * THREADS) {
            if (h != threadIdx.x) fetch(fetched, h);
#pragma unroll
            for (u32 u = 0; u < HALO; u++)
                if (h + u * THREADS < halo_count) set(here[rows_a_block + h + u * THREADS], fetched[u]);
        }
    }
};
