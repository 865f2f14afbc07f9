//! Runs loops over numbers in the widest vector registers of the machine.

use pulp::{Arch, Simd, WithSimd};

/// Runs `work`, including functions inlined into it, compiled for the vector registers of this machine. The order of
/// operations stays the same, and no fused multiply-adds are introduced, so the bits are the same on every machine.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}

/// Work that is too large for a closure: the compiler calls a large closure instead of inlining it, and then it is
/// compiled for the registers that every machine has.
pub(crate) trait Inlined {
    /// The result.
    type Output;

    /// Does the work. Implementations are `#[inline(always)]`, and so are the functions that they call.
    fn run(self) -> Self::Output;
}

/// Adapts [`Inlined`] to the dispatch.
struct Adapted<W>(W);

impl<W: Inlined> WithSimd for Adapted<W> {
    type Output = W::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> W::Output {
        self.0.run()
    }
}

/// As [`vectorised`], for large work.
#[inline(always)]
pub(crate) fn vectorised_whole<W: Inlined>(work: W) -> W::Output {
    Arch::new().dispatch(Adapted(work))
}
