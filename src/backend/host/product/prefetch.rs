//! Prefetching.
//!
//! A product reads its matrix once, at the speed of memory. Hardware prefetchers stop at page boundaries and need a few
//! misses to start again; prefetching some kilobytes ahead keeps more loads in flight. Measured on a 2-core AMD EPYC,
//! 7-point stencil on 160^3 points in CSR: 22 GB/s without, 30 with.

/// The value of an entry is prefetched this many entries before its use.
pub(super) const AHEAD: usize = 256;

/// The number of entries between two prefetches: one cache line of values in double precision, half a line of columns.
const STEP: usize = 8;

/// Prefetches the cache line of element `at`, which may be beyond the end of the slice.
#[inline(always)]
pub(in crate::backend::host) fn line<T>(slice: &[T], at: usize) {
    address(slice.as_ptr().wrapping_add(at));
}

/// Prefetches the cache line at an address.
#[inline(always)]
pub(super) fn address<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that changes nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches the values `start..end`, or one if the range is empty.
#[inline(always)]
pub(super) fn values<V>(values: &[V], start: usize, end: usize) {
    line(values, start);
    (start + STEP..end).step_by(STEP).for_each(|at| line(values, at));
}

/// Prefetches the entries `start..end`, or one if the range is empty.
#[inline(always)]
pub(in crate::backend::host) fn entries<V>(indices: &[u32], values: &[V], start: usize, end: usize) {
    // The first cache lines are prefetched separately: a short row needs no more, and to set up the loops would take as
    // long as its product.
    line(values, start);
    line(indices, start);
    let (mut value, mut index) = (start + STEP, start + 2 * STEP);
    while value < end {
        line(values, value);
        value += STEP;
    }
    while index < end {
        line(indices, index);
        index += 2 * STEP;
    }
}
