// Many iterations of conjugate gradients in one launch, for systems that fit the chip: the matrix, x, r and p stay in
// registers and shared memory, and what travels between blocks is the halo of z = M^-1 r and two sums an iteration.
//
//     block      owns rows_a_block rows; thread t rows t, t + THREADS, ... of them: their x, r in registers
//     shared     p of own rows | p of the halo | values, in slices of 32 rows, entry k of the slice's rows side by side |
//                where each halo entry's z is found | local columns (cg_layout.cu)
//
//     repeat  q = A p                                      own rows, from shared memory
//             alpha = rho / p.q                            sum over all blocks
//             r = r - alpha q;  publish z = d r
//             r.r, r.z                                     sum over all blocks, behind everyone's z
//             x = x + alpha p;  beta = r.z / rho
//             p = z + beta p                               own rows, and the halo, whose z is fetched
//
// Blocks meet twice an iteration (cg_meeting.cuh) and hold the same scalars (cg_recurrence.cuh), so p of a row has the
// same bits in its block and in every halo.
//
// Steps, statuses and messages are those of krylov.cu (CgSlot in src/backend/krylov.rs).
// Source: the recurrence as in src/krylov/cg.rs; persistent threads: Gupta, Stuart and Owens 2012; PMPP 17.4.
//
// Constants: SCALAR (vectors), DIAGONAL (a diagonal inverse), STORED (values), OFFSET (offsets), CLUSTER, THREADS, ROWS
// (rows a thread).
#include "cg_meeting.cuh"
#include "cg_recurrence.cuh"

typedef STORED V;
typedef OFFSET I;
#define HALO 8

// z of HALO entries of the halo, from h on in steps of THREADS, all under way at once.
DEVICE void fetch_halo(T (&z)[HALO], u32 h, u32 count, const u32* sources, const T* published) {
#pragma unroll
    for (u32 u = 0; u < HALO; u++) {
        if (h + u * THREADS >= count) break;
#if CLUSTER > 1
        z[u] = get_from<T>(sources[h + u * THREADS]);
#else
        z[u] = load_shared_result(published + sources[h + u * THREADS]);
#endif
    }
}

// ---- the iteration
// -----------------------------------------------------------------------------------------------------

// d is null but for a diagonal inverse. `entries` and `halo_room`: the most that a block has. `published`: as long as
// the vectors, of use to CLUSTER = 0 alone, as are `slots` (4 MAX_BLOCKS of 16 bytes); `meeting`: any number, at each
// launch 2 count higher than at the last. messages: `count` times status, r.r, curvature. Dynamic shared memory:
// (rows_a_block + halo_room + (CLUSTER > 1 ? rows_a_block : 0)) sizeof(T) + entries sizeof(V) + 4 halo_room + 2
// entries, each term rounded up to 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
    cg_resident(u32 rows, u32 rows_a_block, u32 entries, u32 halo_room, const I* offsets, const V* values, const u16* locals, const u32* halo_starts,
                const u32* halo, const D* d, T* r, T* p, T* x, T* published, R* state, R* messages, u32 count, u64* slots, u32 meeting) {
    extern __shared__ uint4 memory[];
    __shared__ u32 slice_starts[ROWS * WARPS + 1];
    auto padded = [](u32 bytes) { return (bytes + 15) / 16; };
    uint4* place = memory;
    T* const p_here = reinterpret_cast<T*>(place);
    place += padded((rows_a_block + halo_room) * sizeof(T));
#if CLUSTER > 1
    T* const z_here = reinterpret_cast<T*>(place);
    place += padded(rows_a_block * sizeof(T));
#endif
    V* const a_values = reinterpret_cast<V*>(place);
    place += padded(entries * sizeof(V));
    u32* const sources = reinterpret_cast<u32*>(place);
    place += padded(halo_room * 4);
    u16* const a_columns = reinterpret_cast<u16*>(place);

    const u32 warp = threadIdx.x / 32, lane = lane_id();
    const u32 first = min(rows, blockIdx.x * rows_a_block), last = min(rows, first + rows_a_block);
    Recurrence scalars(state);
    // The state changes at the end of a launch that found it running, behind meetings of all blocks: all leave here or
    // none.
    if (!scalars.running()) return scalars.repeat_status(messages, count);

    // Slices, each as wide as its longest row.
    u32 length[ROWS];
    u64 begin[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 row = first + k * THREADS + threadIdx.x;
        const bool mine = k * THREADS + threadIdx.x < rows_a_block && row < last;
        begin[k] = mine ? u64(offsets[row]) : 0;
        length[k] = mine ? u32(u64(offsets[row + 1]) - begin[k]) : 0;
        const u32 width = most_of_lanes(length[k]);
        if (lane == 0) slice_starts[k * WARPS + warp + 1] = 32 * width;
    }
    if (threadIdx.x == 0) slice_starts[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (u32 s = 0; s < ROWS * WARPS; s++) slice_starts[s + 1] += slice_starts[s];
    __syncthreads();
    T rs[ROWS], xs[ROWS];
    R ds[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 local = k * THREADS + threadIdx.x, row = first + local;
        const bool mine = local < rows_a_block && row < last;
        const u32 start = slice_starts[k * WARPS + warp], end = slice_starts[k * WARPS + warp + 1];
        for (u32 i = start + lane, e = 0; i < end; i += 32, e++) {
            a_values[i] = e < length[k] ? values[begin[k] + e] : V();
            a_columns[i] = e < length[k] ? locals[begin[k] + e] : u16(0);
        }
        rs[k] = mine ? r[row] : T();
        xs[k] = mine ? x[row] : T();
        ds[k] = mine && d ? R(d[row]) : R(1);
        if (local < rows_a_block) p_here[local] = mine ? p[row] : T();
    }
    const u32 halo_start = halo_starts[blockIdx.x], halo_count = halo_starts[blockIdx.x + 1] - halo_start;
    for (u32 h = threadIdx.x; h < halo_count; h += THREADS) {
        const u32 row = halo[halo_start + h];
        p_here[rows_a_block + h] = p[row];
#if CLUSTER > 1
        sources[h] = address_in(in_shared(z_here + row % rows_a_block), row / rows_a_block);
#else
        sources[h] = row;
#endif
    }
    __syncthreads();
#if CLUSTER > 1
    // No block writes into another's shared memory before that has begun.
    cluster_meet();
#endif

    u32 done = 0;
    while (done < count && scalars.running()) {
        T qs[ROWS];
        f64 pq[1] = {0};
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const u32 local = k * THREADS + threadIdx.x;
            const u32 start = slice_starts[k * WARPS + warp], end = slice_starts[k * WARPS + warp + 1];
            T sum = T();
#pragma unroll 4
            for (u32 i = start + lane; i < end; i += 32) sum = fused(widen<T>::from(a_values[i]), p_here[a_columns[i]], sum);
            qs[k] = sum;
            if (local < rows_a_block) pq[0] += f64(real_part(conj(p_here[local]) * sum));
        }
        sum_over_all<false>(pq, slots, meeting++);
        scalars.step(pq[0]);

        T zs[ROWS];
        if (scalars.running()) {
            f64 sums[2] = {0, 0};
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                const u32 local = k * THREADS + threadIdx.x;
                rs[k] = rs[k] - scalars.alpha * qs[k];
                zs[k] = d ? ds[k] * rs[k] : rs[k];
                const R square = abs2(rs[k]);
                sums[0] += f64(square);
                sums[1] += f64(d ? ds[k] * square : square);
#if CLUSTER > 1
                if (local < rows_a_block) z_here[local] = zs[k];
#elif CLUSTER == 0
                if (local < rows_a_block && first + local < last) published[first + local] = zs[k];
#endif
            }
            sum_over_all<true>(sums, slots, meeting++);
            if (scalars.turn(sums[0], sums[1])) {
                // The first of the halo is on its way while own rows are updated.
                T fetched[HALO];
                fetch_halo(fetched, threadIdx.x, halo_count, sources, published);
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    const u32 local = k * THREADS + threadIdx.x;
                    if (local < rows_a_block) {
                        const T old = p_here[local];
                        xs[k] = xs[k] + scalars.alpha * old;
                        p_here[local] = zs[k] + scalars.beta * old;
                    }
                }
                for (u32 h = threadIdx.x; h < halo_count; h += HALO * THREADS) {
                    if (h != threadIdx.x) fetch_halo(fetched, h, halo_count, sources, published);
#pragma unroll
                    for (u32 u = 0; u < HALO; u++) {
                        const u32 i = h + u * THREADS;
                        if (i < halo_count) p_here[rows_a_block + i] = fetched[u] + scalars.beta * p_here[rows_a_block + i];
                    }
                }
            }
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) scalars.tell(messages + MESSAGE * done);
        done++;
        __syncthreads();
    }
#if CLUSTER > 1
    // No block leaves while others may read its shared memory.
    cluster_meet();
#endif
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 local = k * THREADS + threadIdx.x, row = first + local;
        if (local < rows_a_block && row < last) {
            r[row] = rs[k];
            x[row] = xs[k];
            p[row] = p_here[local];
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) scalars.store(state);
}
