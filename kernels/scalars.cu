// A program on the scalars of a recurrence, by one block (scalars.cuh).
//
// Constants: SCALAR (element type), THREADS, and those of scalars.cuh.
#include "scalars.cuh"

typedef SCALAR T;

// `if_running` is not zero if an ended state must not be changed, whatever the program begins with.
extern "C" __global__ void __launch_bounds__(THREADS)
    run_program(const uint4* words, u32 instructions, T* state, u32 size, u32 if_running) {
    after_predecessors();
    __shared__ Desk<T> desk;
    desk.load<THREADS>(state, size, words, instructions);
    __syncthreads();
    if (if_running && !is_zero(desk.state[ENDED])) return;
    desk.run<THREADS>(words, instructions);
    desk.store<THREADS>(state, size);
}
