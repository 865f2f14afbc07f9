//! A caller's arrays, on the host or on a GPU, as those of a matrix.

use crate::status::{Answer, Fault};
use residua_core::assemble::{Arrays, Integers, Layout};
use residua_core::{Backend, Cuda, Element, Host, Scalar};
use std::ffi::c_void;

/// `len` elements of the caller.
///
/// # Safety
/// `data` is null or of `len` elements, which nothing writes to while the slice lives.
pub(crate) unsafe fn slice<'a, T>(what: &str, data: *const c_void, len: usize) -> Answer<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check::<T>(what, data, len)?;
    // SAFETY: not null, aligned, no longer than memory can be; the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// Refuses what no array can be.
pub(crate) fn check<T>(what: &str, data: *const c_void, len: usize) -> Answer {
    if data.is_null() {
        return Err(Fault::null(what));
    }
    if !data.cast::<T>().is_aligned() {
        return Err(Fault::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Fault::argument(format!("{what}: {len} elements are more than memory can hold"))),
    }
}

/// A count of the caller.
pub(crate) fn length(what: &str, count: i64) -> Answer<usize> {
    usize::try_from(count)
        .map_err(|_| Fault::argument(format!("{what} is {count}: a number from 0 on is needed")))
}

/// Where arrays lie.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Host,
    /// On a GPU, written and read by work of the caller's stream.
    Gpu(Cuda, u64),
}

/// The arrays of a matrix as a caller hands them over.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    pub(crate) layout: Layout,
    pub(crate) shape: (i64, i64),
    pub(crate) entries: i64,
    pub(crate) base: i32,
    /// Offsets, or rows, and their bits.
    pub(crate) first: (*const c_void, i32),
    pub(crate) second: (*const c_void, i32),
    pub(crate) values: *const c_void,
}

/// Rows, columns, entries and base of a matrix.
struct Sizes {
    shape: (usize, usize),
    entries: usize,
    base: u32,
    /// Elements of the first array.
    first: usize,
}

impl Raw {
    fn sizes(&self) -> Answer<Sizes> {
        let base = match self.base {
            0 => 0,
            1 => 1,
            other => return Err(Fault::argument(format!("base {other}: 0 or 1 is possible"))),
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
    /// As [`slice`], with the lengths that the sizes tell.
    pub(crate) unsafe fn on_host<'a, T: Scalar>(&self) -> Answer<Arrays<'a, T, Host>> {
        let Sizes { shape, entries, base, first } = self.sizes()?;
        let names = self.names();
        // SAFETY: the caller's promise.
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
    /// As [`on_gpu`], with the lengths that the sizes tell.
    pub(crate) unsafe fn on_gpu<'a, T: Scalar>(&self, cuda: &Cuda) -> Answer<Arrays<'a, T, Cuda>> {
        let Sizes { shape, entries, base, first } = self.sizes()?;
        let names = self.names();
        // SAFETY: the caller's promise.
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
    Fault::argument(format!("{what}: integers of {bits} bits; 32 or 64 are possible"))
}

/// Offsets or indices of the caller, by their bits.
///
/// # Safety
/// As [`slice`], of integers of these bits.
unsafe fn integers<'a>(
    what: &str,
    (data, bits): (*const c_void, i32),
    len: usize,
) -> Answer<Integers<'a, Host>> {
    match bits {
        // SAFETY: the caller's promise.
        32 => Ok(Integers::Short(unsafe { slice(what, data, len)? })),
        // SAFETY: the caller's promise.
        64 => Ok(Integers::Long(unsafe { slice(what, data, len)? })),
        _ => Err(no_width(what, bits)),
    }
}

/// The same on a GPU.
///
/// # Safety
/// As [`on_gpu`].
unsafe fn integers_on<'a>(
    cuda: &Cuda,
    what: &str,
    (data, bits): (*const c_void, i32),
    len: usize,
) -> Answer<Integers<'a, Cuda>> {
    match bits {
        // SAFETY: the caller's promise.
        32 => Ok(Integers::Short(unsafe { on_gpu(cuda, what, data, len)? })),
        // SAFETY: the caller's promise.
        64 => Ok(Integers::Long(unsafe { on_gpu(cuda, what, data, len)? })),
        _ => Err(no_width(what, bits)),
    }
}

/// The GPU on which an array of the caller lies.
pub(crate) fn gpu_of(what: &str, data: *const c_void) -> Answer<Cuda> {
    if data.is_null() {
        return Err(Fault::null(what));
    }
    Cuda::holding(data.addr() as u64)
        .map_err(|error| Fault { text: format!("{what}: {error}"), ..Fault::from(error) })
}

/// Refuses what is no array on this GPU.
pub(crate) fn check_on<T>(cuda: &Cuda, what: &str, data: *const c_void, len: usize) -> Answer {
    check::<T>(what, data, len)?;
    let found = gpu_of(what, data)?.ordinal();
    if found != cuda.ordinal() {
        let text = format!("{what} lies on GPU {found}, other arrays on GPU {}", cuda.ordinal());
        return Err(Fault::argument(text));
    }
    Ok(())
}

/// `len` elements of the caller on a GPU.
///
/// # Safety
/// `data` is null, or of `len` elements there that are written before our stream gets to them, and nothing writes to
/// them while the slice is used.
pub(crate) unsafe fn on_gpu<'a, T: Element>(
    cuda: &Cuda,
    what: &str,
    data: *const c_void,
    len: usize,
) -> Answer<&'a <Cuda as Backend>::Slice<T>> {
    if len > 0 {
        check_on::<T>(cuda, what, data, len)?;
    }
    // SAFETY: it lies on this GPU and is aligned; the caller promises the rest.
    Ok(unsafe { cuda.foreign(data.addr() as u64, len) })
}
