// The small dense steps of GMRES: the QR factorisation of the Hessenberg matrix, one column at a time, and the solution
// of the triangular system (src/backend/host/basis.rs). One block each; sizes are those of a basis.
//
// Constants: SCALAR (element type), STEPS (rotations in shared memory at a time), THREADS (triangular_solve), AT_ONCE.
#include "rotation.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

// Column j of at most `columns`, by one warp: lanes add up the products of both passes and load what the next STEPS
// rotations need; the first lane applies the rotations one after another.
extern "C" __global__ void __launch_bounds__(32)
    hessenberg_step(u32 j, u32 columns, const T* first, const T* second, T* r, T* rotations, T* g, T* state, u32 norm) {
    after_predecessors();
    __shared__ T entry[STEPS], cosine[STEPS], sine[STEPS];
    const u32 lane = lane_id();
    const T status = state[STATUS];
    const R below = root(real_part(state[norm]));
    const R threshold = real_part(state[THRESHOLD]);
    __syncwarp();
    if (lane == 0) state[ENDED] = status;
    if (!is_zero(status)) return;
    T* const column = r + u64(j) * (columns + 1);
    T above = first[0] + second[0];
    R size = lane == 0 ? below * below + abs2(above) : R(0);
    for (u32 start = 0; start < j; start += STEPS) {
        const u32 steps = min(j - start, u32(STEPS));
        for (u32 i = lane; i < steps; i += 32) {
            entry[i] = first[start + i + 1] + second[start + i + 1];
            cosine[i] = rotations[2 * (start + i)];
            sine[i] = rotations[2 * (start + i) + 1];
            size = size + abs2(entry[i]);
        }
        __syncwarp();
        if (lane == 0)
            for (u32 i = 0; i < steps; i++) {
                const T c = cosine[i], s = sine[i], under = entry[i];
                entry[i] = c * above + s * under;
                above = c * under - conj(s) * above;
            }
        __syncwarp();
        for (u32 i = lane; i < steps; i += 32) column[start + i] = entry[i];
        __syncwarp();
    }
    size = root(warp_sum(size));
    if (lane > 0) return;
    state[norm] = from_real<T>(below > 0 ? 1 / below : R(0));
    const u32 verdict = rotate(j, above, below, size, column, rotations, g, state, threshold);
    if (verdict == RUNNING) return;
    column[j] = above;
    const T fault = from_real<T>(R(verdict));
    state[STATUS] = fault;
    state[ENDED] = fault;
}

// y = R^-1 g by back substitution: first the last THREADS unknowns, one per thread, then those before them. The entries
// of AT_ONCE columns are in flight at a time.
extern "C" __global__ void __launch_bounds__(THREADS) triangular_solve(u32 count, u64 stride, const T* r, const T* g, T* y) {
    after_predecessors();
    __shared__ T solved;
    for (u32 end = count; end > 0;) {
        const u32 start = end > THREADS ? end - THREADS : 0;
        const u32 i = start + threadIdx.x;
        const T* const row = r + i;
        T value = i < end ? g[i] : T();
        for (u32 j = count; j > end; j--)
            if (i < end) value = value - row[(j - 1) * stride] * y[j - 1];
        for (u32 before = end; before > start;) {
            const u32 columns = min(before - start, u32(AT_ONCE));
            T entry[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                if (k < columns && i < before - k) entry[k] = row[(before - 1 - k) * stride];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                if (k >= columns) break;
                const u32 j = before - 1 - k;
                if (i == j) {
                    value = divide(value, entry[k]);
                    solved = value;
                    y[j] = value;
                }
                __syncthreads();
                if (i < j) value = value - entry[k] * solved;
                __syncthreads();
            }
            before -= columns;
        }
        end = start;
    }
}
