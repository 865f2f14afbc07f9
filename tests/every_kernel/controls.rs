//! Intentional defects, one for each tool.

use residua::Cuda;
use residua::backend::{Backend, Primitives};
use residua::scalar::Sum;

/// A merge sort whose comparison is `less`.
fn sort_by(b: &Cuda, less: &'static str) {
    let mut keys = b.upload((0..3000_u32).rev().collect()).unwrap();
    let sorted = b.merge_sort_by::<u32, u8>(less, &mut keys, None);
    // The device may be lost by now.
    println!("{:?}", sorted.and_then(|()| b.synchronize()));
}

pub fn out_of_bounds(b: &Cuda) {
    sort_by(b, "(*(volatile u32*)64 == 7u) | ((a) < (b))");
}

pub fn uninitialised(b: &Cuda) {
    let (x, mut sum) = (b.buffer::<u32>(1000).unwrap(), b.zeros(1).unwrap());
    b.reduce(Sum, &x, &mut sum).unwrap();
    println!("{:?}", b.download(&sum).unwrap());
}

/// Threads write to one word of shared memory, and read it, without a barrier.
pub fn race(b: &Cuda) {
    sort_by(
        b,
        "[](u32 x, u32 y) { __shared__ volatile u32 word; word = x; return (word == 1000u) | (x < y); }(a, b)",
    );
}

/// A barrier passes two phases without any thread waiting for the first one.
pub fn unwaited(b: &Cuda) {
    sort_by(
        b,
        "[](u32 x, u32 y) { __shared__ u64 box; if (threadIdx.x == 0) asm volatile(\"{ .reg .b64 state; \
         mbarrier.init.shared.b64 [%0], 1; mbarrier.arrive.shared.b64 state, [%0]; \
         mbarrier.arrive.shared.b64 state, [%0]; }\" :: \"r\"(u32(__cvta_generic_to_shared(&box))) : \"memory\"); \
         return x < y; }(a, b)",
    );
}
