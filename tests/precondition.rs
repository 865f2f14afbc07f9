//! Preconditioners and iterative refinement on the host; `gpu.rs` runs the same bodies on a device.

#[path = "common/precondition.rs"]
mod cases;

use residua::Host;

macro_rules! on_host {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            cases::$name(&Host);
        }
    )*};
}
on_host!(
    block_cases,
    natural_block_cases,
    fsai_cases,
    complex_fsai_cases,
    chebyshev_cases,
    long_chebyshev_cases,
    refinement_cases
);
