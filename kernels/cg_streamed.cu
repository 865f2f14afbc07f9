// Many iterations of conjugate gradients in one launch, for systems whose vectors fit the chip while the matrix does
// not: it is read from the second-level cache, or from memory, once per iteration, and little else is moved.
//
//     block      owns rows_a_block rows; thread t rows t, t + THREADS, ... of them: their r and q,
//                which is replaced by z, in registers
//     shared     p and x of own rows, and their diagonal of the inverse
//     global     p of all rows, and the matrix in SELL-32 without an order (sell.cu): a warp has a section
//
//     repeat  q = A p                                      p of any row from global memory
//             alpha = rho / p.q                            sum over all blocks: all have read p
//             r = r - alpha q,  z = d r
//             r.r, r.z                                     sum over all blocks
//             x = x + alpha p;  beta = r.z / rho
//             p = z + beta p, published                    and a third meeting
//
// Bytes per iteration: the matrix (value + 4 per entry, including padding), its lengths, p written once and read as
// often as first-level caches miss it. The remaining cost is three meetings of all blocks, about 1 us each.
//
// Steps, statuses and messages are those of krylov.cu (CgSlot in src/backend/krylov.rs).
// Source: as cg_resident.cu.
//
// Constants: SCALAR (vectors), DIAGONAL (a diagonal inverse), STORED (values), OFFSET (offsets), THREADS, ROWS (per
// thread), UNROLL (entries in flight per thread).
#define CLUSTER 0
#include "cg_meeting.cuh"
#include "cg_recurrence.cuh"

typedef STORED V;
typedef OFFSET I;

// d is null unless the inverse is a diagonal. `meeting`: any number that grows by 3 count from launch to launch.
// messages: `count` times status, r.r, curvature. Dynamic shared memory: rows_a_block (2 sizeof(T) + (d ? sizeof(D) :
// 0)); rows_a_block is a multiple of 32.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    cg_streamed(u32 rows, u32 rows_a_block, const u32* lengths, const I* offsets, const u32* columns, const V* values, const D* d,
                T* r, T* p, T* x, R* state, R* messages, u32 count, u64* slots, u32 meeting) {
    extern __shared__ uint4 memory[];
    T* const p_here = reinterpret_cast<T*>(memory);
    T* const x_here = p_here + rows_a_block;
    D* const d_here = reinterpret_cast<D*>(x_here + rows_a_block);
    const u32 first = min(rows, blockIdx.x * rows_a_block), own = min(rows_a_block, rows - first);
    Recurrence scalars(state);
    // A launch changes the state only if it found it running, at its end, after meetings of all blocks. Therefore
    // either all blocks return here or none.
    if (!scalars.running()) return scalars.repeat_status(messages, count);
    T rs[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 local = k * THREADS + threadIdx.x;
        if (local < own) {
            rs[k] = r[first + local];
            p_here[local] = p[first + local];
            x_here[local] = x[first + local];
            if (d) d_here[local] = d[first + local];
        } else {
            rs[k] = T();
        }
    }

    u32 done = 0;
    while (done < count && scalars.running()) {
        T qs[ROWS];
        f64 pq[1] = {0};
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const u32 local = k * THREADS + threadIdx.x;
            T sum = T();
            if (local < own) {
                const u32 row = first + local, length = lengths[row];
                const u64 base = u64(offsets[row / 32]) + row % 32;
                const u32* const cs = columns + base;
                const V* const vs = values + base;
#pragma unroll UNROLL
                for (u32 e = 0; e < length; e++) sum = fused(widen<T>::from(vs[32 * e]), p[cs[32 * e]], sum);
                pq[0] += f64(real_part(conj(p_here[local]) * sum));
            }
            qs[k] = sum;
        }
        sum_over_all<false>(pq, slots, meeting++);
        scalars.step(pq[0]);

        if (scalars.running()) {
            f64 sums[2] = {0, 0};
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                const u32 local = k * THREADS + threadIdx.x;
                const R scale = d && local < own ? R(d_here[local]) : R(1);
                rs[k] = rs[k] - scalars.alpha * qs[k];
                qs[k] = d ? scale * rs[k] : rs[k];
                const R square = abs2(rs[k]);
                sums[0] += f64(square);
                sums[1] += f64(d ? scale * square : square);
            }
            sum_over_all<false>(sums, slots, meeting++);
            if (scalars.turn(sums[0], sums[1])) {
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    const u32 local = k * THREADS + threadIdx.x;
                    if (local < own) {
                        const T old = p_here[local], next = qs[k] + scalars.beta * old;
                        x_here[local] = x_here[local] + scalars.alpha * old;
                        p_here[local] = next;
                        p[first + local] = next;
                    }
                }
                f64 none[1] = {0};
                sum_over_all<true>(none, slots, meeting++);
            }
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) scalars.tell(messages + MESSAGE * done);
        done++;
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 local = k * THREADS + threadIdx.x;
        if (local < own) {
            r[first + local] = rs[k];
            x[first + local] = x_here[local];
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) scalars.store(state);
}
