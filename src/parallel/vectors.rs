//! Loops over numbers in the widest registers that the machine has.

use pulp::Arch;

/// Runs `work` compiled for the vector registers of this machine, functions that are inlined into it included. Nothing
/// is computed in another order, or with fused products that are not written down, so the bits are the same on every
/// machine.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}
