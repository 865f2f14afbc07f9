//! Preconditioners and iterative refinement on the host; `gpu.rs` runs the same bodies on a device.

#[path = "common/precondition.rs"]
mod cases;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;

cases::each_case!(on_host);
