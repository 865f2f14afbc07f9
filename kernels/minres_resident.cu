// Many iterations of MINRES in one launch, for systems that fit the chip: the matrix and all vectors stay in registers
// and shared memory, and blocks exchange only the halo of v and two sums per iteration.
//
//     resident.cuh    the matrix, v and its halo; x, v_before, w and w_before of own rows are in registers
//
//     repeat  q = A v                                                     own rows, from shared memory
//             delta = v.q / gamma^2                                       sum over all blocks
//             v' = q / gamma - (delta / gamma) v - (gamma / gamma_before) v_before;  publish v'
//             gamma'^2 = v'.v'                                            sum over all blocks, after every block's v'
//             rotation;  w' = (v / gamma - alpha_3 w_before - alpha_2 w) / alpha_1,  x = x + c' eta w'
//             v = v'                                                      own rows; the halo from other blocks
//
// Steps, statuses and messages are those of the programs in src/krylov/minres.rs, without a preconditioner. The state
// is that of a method (src/backend/scalars.rs); seven of its scalars from `first_slot` on are gamma, gamma_before, eta,
// the last two cosines and the last two sines.
//
// Source: for the recurrence see src/krylov/minres.rs; otherwise as for cg_resident.cu.
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), CLUSTER, THREADS, ROWS (per thread).
#include "complex.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

#include "resident.cuh"
#include "scalars.cuh"

enum : u32 { MESSAGE = 3 };

// Every thread of every block holds these and computes them from the same sums, so that all threads take the same
// branches.
struct Rotations {
    R status, rr, threshold, gamma, gamma_before, eta, cosine, cosine_before, sine, sine_before;
    // Factors of q, v and v_before in v', of v, w and w_before in w', and of w' in x.
    R of_q, of_v, of_v_before, of_z, of_w, of_w_before, step;

    DEVICE Rotations(const T* state, u32 first)
        : status(real_part(state[STATUS])), rr(real_part(state[RR])), threshold(real_part(state[THRESHOLD])), gamma(real_part(state[first])),
          gamma_before(real_part(state[first + 1])), eta(real_part(state[first + 2])), cosine(real_part(state[first + 3])),
          cosine_before(real_part(state[first + 4])), sine(real_part(state[first + 5])), sine_before(real_part(state[first + 6])) {}
    DEVICE bool running() const { return status == R(RUNNING); }

    // Called when v.q is known.
    DEVICE void lanczos(f64 vq) {
        of_q = 1 / gamma;
        of_v = -(R(vq) / (gamma * gamma * gamma));
        of_v_before = -(gamma / gamma_before);
        delta = R(vq) / (gamma * gamma);
        if (!finite(R(vq))) status = R(NOT_FINITE);
    }
    // Called when v'.v' is known. Returns whether the iteration is completed.
    DEVICE bool rotate(f64 square) {
        const R vv = R(square), next = root(vv);
        if (!finite(vv)) status = R(NOT_FINITE);
        const R alpha_0 = cosine * delta - cosine_before * sine * gamma, alpha_1 = hypotenuse<R>(alpha_0 < 0 ? -alpha_0 : alpha_0, next);
        if (running() && !(alpha_1 > 0)) status = R(BREAKDOWN);
        if (!running()) return false;
        const R alpha_2 = sine * delta + cosine_before * cosine * gamma, alpha_3 = sine_before * gamma;
        const R c = alpha_0 / alpha_1, s = next / alpha_1;
        step = c * eta;
        of_z = 1 / (gamma * alpha_1);
        of_w = -(alpha_2 / alpha_1);
        of_w_before = -(alpha_3 / alpha_1);
        eta = -(s * eta);
        cosine_before = cosine;
        cosine = c;
        sine_before = sine;
        sine = s;
        gamma_before = gamma;
        gamma = next;
        rr = eta * eta;
        if (!finite(rr)) status = R(NOT_FINITE);
        else if (rr <= threshold) status = R(CONVERGED);
        return status != R(NOT_FINITE);
    }

    // Called by one thread: writes the message of an iteration, and the state for the next launch.
    DEVICE void tell(T* message) const {
        message[0] = from_real<T>(status);
        message[1] = from_real<T>(rr);
        message[2] = T();
    }
    DEVICE void store(T* state, u32 first) const {
        state[STATUS] = from_real<T>(status);
        state[RR] = from_real<T>(rr);
        const R all[7] = {gamma, gamma_before, eta, cosine, cosine_before, sine, sine_before};
        for (u32 i = 0; i < 7; i++) state[first + i] = from_real<T>(all[i]);
    }

private:
    R delta;
};

// `entries`, `halo_room`, `published`, `slots`, `meeting` and shared memory as in cg_resident.cu. v, v_before, w and
// w_before are those of the next iteration, before and after the launch.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
    minres_resident(u32 rows, u32 rows_a_block, u32 entries, u32 halo_room, const I* offsets, const V* values, const u16* locals,
                    const u32* halo_starts, const u32* halo, T* x, T* v, T* v_before, T* w, T* w_before, T* published, T* state, u32 first_slot,
                    T* messages, u32 count, u64* slots, u32 meeting) {
    extern __shared__ uint4 memory[];
    __shared__ u32 slice_starts[ROWS * WARPS + 1];
    OnChip chip(memory, slice_starts, published, rows, rows_a_block, entries, halo_room);
    Rotations scalars(state, first_slot);
    // A launch changes the state only if it found it running, at its end, after meetings of all blocks. Therefore
    // either all blocks return here or none.
    if (!scalars.running()) {
        if (blockIdx.x == 0)
            for (u32 i = threadIdx.x; i < count; i += THREADS) messages[MESSAGE * i] = from_real<T>(scalars.status);
        return;
    }
    chip.load(offsets, values, locals, halo_starts, halo, v);
    T xs[ROWS], olds[ROWS], ws[ROWS], old_ws[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const u32 row = chip.first + chip.local(k);
        xs[k] = chip.owns(k) ? x[row] : T();
        olds[k] = chip.owns(k) ? v_before[row] : T();
        ws[k] = chip.owns(k) ? w[row] : T();
        old_ws[k] = chip.owns(k) ? w_before[row] : T();
    }

    u32 done = 0;
    while (done < count && scalars.running()) {
        T next[ROWS];
        f64 vq[1] = {0};
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            next[k] = chip.product(k);
            if (chip.local(k) < rows_a_block) vq[0] += f64(real_part(conj(chip.here[chip.local(k)]) * next[k]));
        }
        sum_over_all<false>(vq, slots, meeting++);
        scalars.lanczos(vq[0]);

        if (scalars.running()) {
            f64 square[1] = {0};
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                const T now = chip.local(k) < rows_a_block ? chip.here[chip.local(k)] : T();
                next[k] = scalars.of_q * next[k] + scalars.of_v * now + scalars.of_v_before * olds[k];
                square[0] += f64(abs2(next[k]));
                chip.publish(k, next[k]);
            }
            sum_over_all<true>(square, slots, meeting++);
            if (scalars.rotate(square[0])) {
                const auto own_rows = [&] {
#pragma unroll
                    for (int k = 0; k < ROWS; k++)
                        if (chip.local(k) < rows_a_block) {
                            T& here = chip.here[chip.local(k)];
                            const T direction = scalars.of_z * here + scalars.of_w * ws[k] + scalars.of_w_before * old_ws[k];
                            xs[k] = xs[k] + scalars.step * direction;
                            old_ws[k] = ws[k];
                            ws[k] = direction;
                            olds[k] = here;
                            here = next[k];
                        }
                };
                chip.fetch_halo(own_rows, [&](T& v, T fetched) { v = fetched; });
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
            x[row] = xs[k];
            v[row] = chip.here[chip.local(k)];
            v_before[row] = olds[k];
            w[row] = ws[k];
            w_before[row] = old_ws[k];
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) scalars.store(state, first_slot);
}
