//! Runs loops over numbers in the widest vector registers of the machine.

use pulp::Arch;

/// Runs `work`, including functions inlined into it, compiled for the vector registers of this machine. The order of
/// operations stays the same, and no fused multiply-adds are introduced, so the bits are the same on every machine.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}
