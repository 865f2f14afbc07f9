//! A caller's arrays, on the host or on a GPU, as the arrays of a matrix.

use crate::status::{Answer, Fault};
use residua_core::assemble::{Arrays, Integers, Layout};
use residua_core::{Backend, Cuda, Element, Host, Scalar};
use std::ffi::c_void;

/// `len` elements of the caller as a slice.
///
/// # Safety
/// `data` is null or has `len` elements, which nothing writes to as long as the slice exists.
pub(crate) unsafe fn slice<'a, T>(what: &str, data: *const c_void, len: usize) -> Answer<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check::<T>(what, data, len)?;
    // SAFETY: the pointer is not null and aligned, and the length fits memory; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// Returns an error if there can be no array of this length at this address.
pub(crate) fn check<T>(what: &str, data: *const c_void, len: usize) -> Answer {
    if data.is_null() {
        return Err(Fault::null(what));
    }
    if !data.cast::<T>().is_aligned() {
        return Err(Fault::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Fault::argument(format!("{what}: {len} elements do not fit into memory"))),
    }
}

/// A number of elements given by the caller.
pub(crate) fn length(what: &str, count: i64) -> Answer<usize> {
    usize::try_from(count).map_err(|_| Fault::argument(format!("{what} is {count}; it must be at least 0")))
}

/// Where the caller's arrays are.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Host,
    /// On a GPU, where work of the caller's stream writes and reads them.
    Gpu(Cuda, u64),
}

/// The arrays of a matrix as passed by the caller.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    pub(crate) layout: Layout,
    pub(crate) shape: (i64, i64),
    pub(crate) entries: i64,
    pub(crate) base: i32,
    /// Offsets, or rows, and the bits of each.
    pub(crate) first: (*const c_void, i32),
    pub(crate) second: (*const c_void, i32),
    pub(crate) values: *const c_void,
}

/// The checked numbers of rows, columns and entries of a matrix, and the base of its indices.
struct Sizes {
    shape: (usize, usize),
    entries: usize,
    base: u32,
    /// Number of elements of the first array.
    first: usize,
}

impl Raw {
    fn sizes(&self) -> Answer<Sizes> {
        let base = match self.base {
            0 => 0,
            1 => 1,
            other => return Err(Fault::argument(format!("the index base is {other}, but must be 0 or 1"))),
        };
        let shape = (length("rows", self.shape.0)?, length("columns", self.shape.1)?);
        let entries = length("entries", self.entries)?;
        let first = if self.layout == Layout::Triplets { entries } else { shape.0.saturating_add(1) };
        Ok(Sizes { shape, entries, base, first })
    }

    fn names(&self) -> (&'static str, &'static str) {
        (if self.layout == Layout::Triplets { "rows" } else { "offsets" }, "columns")
    }

    /// The arrays on the host.
    ///
    /// # Safety
    /// As for [`slice`], with the lengths that follow from the sizes.
    pub(crate) unsafe fn on_host<'a, T: Scalar>(&self) -> Answer<Arrays<'a, T, Host>> {
        let Sizes { shape, entries, base, first } = self.sizes()?;
        let names = self.names();
        // SAFETY: guaranteed by the caller.
        let (first, second, values) = unsafe {
            (
                integers(names.0, self.first, first)?,
                integers(names.1, self.second, entries)?,
                slice("values", self.values, entries)?,
            )
        };
        Ok(Arrays { layout: self.layout, shape, base, first, second, values })
    }

    /// The arrays on a GPU.
    ///
    /// # Safety
    /// As for [`on_gpu`], with the lengths that follow from the sizes.
    pub(crate) unsafe fn on_gpu<'a, T: Scalar>(&self, cuda: &Cuda) -> Answer<Arrays<'a, T, Cuda>> {
        let Sizes { shape, entries, base, first } = self.sizes()?;
        let names = self.names();
        // SAFETY: guaranteed by the caller.
        let (first, second, values) = unsafe {
            (
                integers_on(cuda, names.0, self.first, first)?,
                integers_on(cuda, names.1, self.second, entries)?,
                on_gpu(cuda, "values", self.values, entries)?,
            )
        };
        Ok(Arrays { layout: self.layout, shape, base, first, second, values })
    }
}

fn no_width(what: &str, bits: i32) -> Fault {
    Fault::argument(format!("{what} are integers of {bits} bits, but must have 32 or 64"))
}

/// The caller's offsets or indices, by their number of bits.
///
/// # Safety
/// As for [`slice`], with integers of `bits` bits.
unsafe fn integers<'a>(
    what: &str,
    (data, bits): (*const c_void, i32),
    len: usize,
) -> Answer<Integers<'a, Host>> {
    match bits {
        // SAFETY: guaranteed by the caller.
        32 => Ok(Integers::Short(unsafe { slice(what, data, len)? })),
        // SAFETY: guaranteed by the caller.
        64 => Ok(Integers::Long(unsafe { slice(what, data, len)? })),
        _ => Err(no_width(what, bits)),
    }
}

/// The same on a GPU.
///
/// # Safety
/// As for [`on_gpu`].
unsafe fn integers_on<'a>(
    cuda: &Cuda,
    what: &str,
    (data, bits): (*const c_void, i32),
    len: usize,
) -> Answer<Integers<'a, Cuda>> {
    match bits {
        // SAFETY: guaranteed by the caller.
        32 => Ok(Integers::Short(unsafe { on_gpu(cuda, what, data, len)? })),
        // SAFETY: guaranteed by the caller.
        64 => Ok(Integers::Long(unsafe { on_gpu(cuda, what, data, len)? })),
        _ => Err(no_width(what, bits)),
    }
}

/// The GPU on which the caller's array is.
pub(crate) fn gpu_of(what: &str, data: *const c_void) -> Answer<Cuda> {
    if data.is_null() {
        return Err(Fault::null(what));
    }
    Cuda::holding(data.addr() as u64)
        .map_err(|error| Fault { text: format!("{what}: {error}"), ..Fault::from(error) })
}

/// Returns an error if this is no array on this GPU.
pub(crate) fn check_on<T>(cuda: &Cuda, what: &str, data: *const c_void, len: usize) -> Answer {
    check::<T>(what, data, len)?;
    let found = gpu_of(what, data)?.ordinal();
    if found != cuda.ordinal() {
        let text = format!("{what} is on GPU {found}, but the other arrays are on GPU {}", cuda.ordinal());
        return Err(Fault::argument(text));
    }
    Ok(())
}

/// `len` elements of the caller on a GPU.
///
/// # Safety
/// `data` is null or has `len` elements there, which are written before our stream reads them, and nothing writes to
/// them as long as the slice is used.
pub(crate) unsafe fn on_gpu<'a, T: Element>(
    cuda: &Cuda,
    what: &str,
    data: *const c_void,
    len: usize,
) -> Answer<&'a <Cuda as Backend>::Slice<T>> {
    if len > 0 {
        check_on::<T>(cuda, what, data, len)?;
    }
    // SAFETY: the array is in this GPU's memory and aligned; the caller guarantees the rest.
    Ok(unsafe { cuda.foreign(data.addr() as u64, len) })
}
