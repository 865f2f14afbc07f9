//! Incomplete factorisations and triangular solves on the host; `gpu.rs` runs the same bodies on a device.

#[path = "common/triangular.rs"]
mod cases;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;

cases::each_case!(on_host);
