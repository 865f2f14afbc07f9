// Many iterations of conjugate gradients in one launch, for systems that fit the chip: the matrix, x, r and p stay in
// registers and shared memory, and blocks exchange only the halo of z = M^-1 r and two sums per iteration.
//
//     resident.cuh    the matrix, p and its halo; x and r of own rows are in registers
//
//     repeat  q = A p                                      own rows, from shared memory
//             alpha = rho / p.q                            sum over all blocks
//             r = r - alpha q;  publish z = d r
//             r.r, r.z                                     sum over all blocks, after every block's z
//             x = x + alpha p;  beta = r.z / rho
//             p = z + beta p                               own rows, and the halo, whose z is read from other blocks
//
// Blocks meet twice per iteration (cg_meeting.cuh) and hold the same scalars (cg_recurrence.cuh), so that p of a row
// has the same bits in its own block and in every halo.
//
// Steps, statuses and messages are those of krylov.cu (CgSlot in src/backend/krylov.rs). Sources: for the recurrence
// see src/krylov/cg.rs; for persistent threads Gupta, Stuart and Owens 2012; PMPP 17.4.
//
// Constants: SCALAR (vectors), DIAGONAL (a diagonal inverse), STORED (values), OFFSET (offsets), CLUSTER, THREADS, ROWS
// (rows per thread).
#include "cg_recurrence.cuh"
#include "resident.cuh"

// d is null unless the inverse is a diagonal. `entries` and `halo_room`: the maximum over blocks. `published`: as long
// as the vectors, used only with CLUSTER = 0, as are `slots` (4 MAX_BLOCKS of 16 bytes); `meeting`: any number that
// grows by 2 count from launch to launch. messages: `count` times status, r.r, curvature. Dynamic shared memory: see
// resident.cuh.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
    cg_resident(u32 rows, u32 rows_a_block, u32 entries, u32 halo_room, const I* offsets, const V* values, const u16* locals, const u32* halo_starts,
                const u32* halo, const D* d, T* r, T* p, T* x, T* published, R* state, R* messages, u32 count, u64* slots, u32 meeting) {
    extern __shared__ uint4 memory[];
    __shared__ u32 slice_starts[ROWS * WARPS + 1];
    OnChip chip(memory, slice_starts, published, rows, rows_a_block, entries, halo_room);
    Recurrence scalars(state);
    // A launch changes the state only if it found it running, at its end, after meetings of all blocks. Therefore
    // either all blocks return here or none.
    if (!scalars.running()) return scalars.repeat_status(messages, count);

    chip.load(offsets, values, locals, halo_starts, halo, p);
    T rs[ROWS], xs[ROWS];
    R ds[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 row = chip.first + chip.local(k);
        rs[k] = chip.owns(k) ? r[row] : T();
        xs[k] = chip.owns(k) ? x[row] : T();
        ds[k] = chip.owns(k) && d ? R(d[row]) : R(1);
    }

    u32 done = 0;
    while (done < count && scalars.running()) {
        T qs[ROWS];
        f64 pq[1] = {0};
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            qs[k] = chip.product(k);
            if (chip.local(k) < rows_a_block) pq[0] += f64(real_part(conj(chip.here[chip.local(k)]) * qs[k]));
        }
        sum_over_all<false>(pq, slots, meeting++);
        scalars.step(pq[0]);

        T zs[ROWS];
        if (scalars.running()) {
            f64 sums[2] = {0, 0};
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                rs[k] = rs[k] - scalars.alpha * qs[k];
                zs[k] = d ? ds[k] * rs[k] : rs[k];
                const R square = abs2(rs[k]);
                sums[0] += f64(square);
                sums[1] += f64(d ? ds[k] * square : square);
                chip.publish(k, zs[k]);
            }
            sum_over_all<true>(sums, slots, meeting++);
            if (scalars.turn(sums[0], sums[1])) {
                const auto own_rows = [&] {
#pragma unroll
                    for (int k = 0; k < ROWS; k++)
                        if (chip.local(k) < rows_a_block) {
                            T& here = chip.here[chip.local(k)];
                            xs[k] = xs[k] + scalars.alpha * here;
                            here = zs[k] + scalars.beta * here;
                        }
                };
                chip.fetch_halo(own_rows, [&](T& p, T z) { p = z + scalars.beta * p; });
            }
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) scalars.tell(messages + MESSAGE * done);
        done++;
        __syncthreads();
    }
#if CLUSTER > 1
    // No block returns while others may read its shared memory.
    cluster_meet();
#endif
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 row = chip.first + chip.local(k);
        if (chip.owns(k)) {
            r[row] = rs[k];
            x[row] = xs[k];
            p[row] = chip.here[chip.local(k)];
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) scalars.store(state);
}
