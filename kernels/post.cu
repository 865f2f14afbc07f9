// Messages to the host.
//
// A message is in a slot of a ring in host memory, in words of eight bytes: four of the message and four of its number,
// which are written and read as a whole. Therefore no fence is needed between payload and number, which would wait for
// a response of the host's memory (as in the protocol LL of NCCL).
#include "common.cuh"

// One warp writes a message to the next slot.
extern "C" __global__ void post(u64* ring, u32 slot_words, u32 slots, const u8* message, u32 bytes, u64* counter) {
    after_predecessors();
    const u64 number = *counter + 1;
    volatile u64* const slot = ring + (number - 1) % slots * slot_words;
    const bool aligned = reinterpret_cast<u64>(message) % 4 == 0;
    for (u32 i = threadIdx.x; 4 * i < bytes; i += 32) {
        u32 word = 0;
        if (aligned && 4 * i + 4 <= bytes) {
            word = reinterpret_cast<const u32*>(message)[i];
        } else {
            for (u32 b = 0; b < 4 && 4 * i + b < bytes; b++) word |= u32(message[4 * i + b]) << 8 * b;
        }
        slot[i] = number << 32 | word;
    }
    __syncwarp();
    if (threadIdx.x == 0) *counter = number;
}
