//! Buffers of a device and copies between them.

use super::launch::kernels;
use super::pool::Allocation;
use super::slice::{NOWHERE, Slice, Vec as DeviceVec};
use super::{Cuda, Mailbox, Recording, record, tuning};
use crate::backend::{Backend, Host};
use crate::error::{Error, Result};
use crate::scalar::Element;
use cudarc::driver::sys;
use std::ops::Range;

kernels! {
    "memory.cu", types();
    /// Sets every 8 bytes of `to` to `bits`.
    fn fill8(bits: u64, to: u64, n: usize);
    /// Sets every 16 bytes of `to` to `low` and `high`.
    fn fill16(low: u64, high: u64, to: u64, n: usize);
}

impl Cuda {
    /// Allocates a buffer with undefined content. Any bits are valid for every element type.
    pub(super) fn uninitialised<T: Element>(self, len: usize) -> Result<DeviceVec<T>> {
        if len == 0 {
            return Ok(DeviceVec::new(self, Allocation::none(NOWHERE), 0));
        }
        let too_large = || Error::OutOfMemory {
            device: self.0.name.clone(),
            bytes: (len as u64).saturating_mul(size_of::<T>() as u64),
        };
        let bytes =
            len.checked_mul(size_of::<T>()).filter(|&b| b <= isize::MAX as usize).ok_or_else(too_large)?;
        record::forbid(self, "an allocation")?;
        Ok(DeviceVec::new(self, self.0.allocate(bytes)?, len))
    }
}

impl Cuda {
    /// Calls `look` with the elements, which are not copied on the host if there are few, and returns its result.
    /// `look` must not read from the device.
    pub(super) fn look_at<T: Element, R>(self, from: &Slice<T>, look: impl FnOnce(&[T]) -> R) -> Result<R> {
        record::forbid(self, "a copy to the host")?;
        // SAFETY: the address and length are those of the slice.
        unsafe { self.0.staging.look_at(from.address(), from.len(), look) }
    }

    /// Reads three slices, and waits only once.
    pub(super) fn read_three<A: Element, B: Element, C: Element>(
        self,
        a: (&Slice<A>, &mut [A]),
        b: (&Slice<B>, &mut [B]),
        c: (&Slice<C>, &mut [C]),
    ) -> Result<()> {
        let lengths = [(a.0.len(), a.1.len()), (b.0.len(), b.1.len()), (c.0.len(), c.1.len())];
        lengths
            .iter()
            .try_for_each(|&(n, to)| Error::check_dimension("length of the copy's target", n, to))?;
        record::forbid(self, "a copy to the host")?;
        let parts = [
            (a.0.address(), a.1.as_mut_ptr().cast(), a.0.bytes()),
            (b.0.address(), b.1.as_mut_ptr().cast(), b.0.bytes()),
            (c.0.address(), c.1.as_mut_ptr().cast(), c.0.bytes()),
        ];
        // SAFETY: each target is as long as its source; every bit pattern on the device was written as an element.
        unsafe { self.0.staging.several_to_host(&parts) }
    }
}

impl Backend for Cuda {
    type Vec<T: Element> = DeviceVec<T>;
    type Slice<T: Element> = Slice<T>;
    type Recording<'a> = Recording<'a>;
    type Mailbox<T: Element> = Mailbox<T>;

    const QUEUE_DEPTH: usize = 4;

    fn description(&self) -> String {
        self.0.name.clone()
    }

    fn first_use_seconds(&self) -> f64 {
        self.spent_on_first_uses()
    }

    fn zeros<T: Element>(&self, len: usize) -> Result<DeviceVec<T>> {
        let buffer = self.uninitialised::<T>(len)?;
        if len > 0 {
            // SAFETY: clears the whole allocation, which was just made.
            unsafe {
                super::driver::call!(
                    &self.0.name,
                    cuMemsetD8Async(buffer.address(), 0, buffer.bytes(), self.0.stream())
                )
            }?;
        }
        Ok(buffer)
    }

    fn buffer<T: Element>(&self, len: usize) -> Result<DeviceVec<T>> {
        self.uninitialised(len)
    }

    fn upload<T: Element>(&self, data: Vec<T>) -> Result<DeviceVec<T>> {
        let mut buffer = self.uninitialised(data.len())?;
        self.write(&data, &mut buffer)?;
        Ok(buffer)
    }

    fn download<T: Element>(&self, data: &Slice<T>) -> Result<Vec<T>> {
        let mut copy = Host.zeros(data.len())?;
        self.read(data, &mut copy)?;
        Ok(copy)
    }

    fn read<T: Element>(&self, from: &Slice<T>, to: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the copy's target", from.len(), to.len())?;
        record::forbid(*self, "a copy to the host")?;
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: both have the same length; every bit pattern on the device was written as an element.
        unsafe { self.0.staging.to_host(from.address(), to.as_mut_ptr().cast(), from.bytes()) }
    }

    fn read_parts<T: Element>(&self, from: &Slice<T>, parts: &[Range<usize>], to: &mut [T]) -> Result<()> {
        let all = parts.iter().map(Range::len).sum();
        Error::check_dimension("length of the copies' target", all, to.len())?;
        record::forbid(*self, "a copy to the host")?;
        let (mut rest, mut pieces) = (to, Vec::with_capacity(parts.len()));
        for part in parts {
            let (here, behind) = rest.split_at_mut(part.len());
            let there = from.part(part.clone());
            pieces.push((there.address(), here.as_mut_ptr().cast(), there.bytes()));
            rest = behind;
        }
        // SAFETY: each target is as long as its source; every bit pattern on the device was written as an element.
        unsafe { self.0.staging.several_to_host(&pieces) }
    }

    fn write<T: Element>(&self, from: &[T], to: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the copy's target", from.len(), to.len())?;
        record::forbid(*self, "a copy from the host")?;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: both have the same length; elements are plain bits without padding.
        unsafe { self.0.staging.to_device(from.as_ptr().cast(), to.address(), to.bytes()) }
    }

    fn len<T: Element>(slice: &Slice<T>) -> usize {
        slice.len()
    }

    fn part<T: Element>(slice: &Slice<T>, range: Range<usize>) -> &Slice<T> {
        slice.part(range)
    }

    fn part_mut<T: Element>(slice: &mut Slice<T>, range: Range<usize>) -> &mut Slice<T> {
        slice.part_mut(range)
    }

    fn split_mut<T: Element>(slice: &mut Slice<T>, middle: usize) -> (&mut Slice<T>, &mut Slice<T>) {
        slice.split_mut(middle)
    }

    fn copy<T: Element>(&self, from: &Slice<T>, to: &mut Slice<T>) -> Result<()> {
        Error::check_dimension("length of the copy's target", from.len(), to.len())?;
        if from.is_empty() {
            return Ok(());
        }
        self.0.bind()?;
        // SAFETY: two allocations of the same length; `&` and `&mut` do not overlap.
        unsafe {
            super::driver::call!(
                &self.0.name,
                cuMemcpyDtoDAsync_v2(to.address(), from.address(), from.bytes(), self.0.stream())
            )
        }
    }

    fn fill<T: Element>(&self, value: T, to: &mut Slice<T>) -> Result<()> {
        use super::driver::check;
        let (n, address, stream) = (to.len(), to.address(), self.0.stream());
        if n == 0 {
            return Ok(());
        }
        let bytes = bits(value);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let narrow = word(0);
        self.0.bind()?;
        // SAFETY: fills the whole slice, in units of its element.
        let code = unsafe {
            match size_of::<T>() {
                1 => sys::cuMemsetD8Async(address, narrow as u8, n, stream),
                2 => sys::cuMemsetD16Async(address, narrow as u16, n, stream),
                4 => sys::cuMemsetD32Async(address, narrow as u32, n, stream),
                8 if narrow >> 32 == narrow & 0xffff_ffff => {
                    sys::cuMemsetD32Async(address, narrow as u32, 2 * n, stream)
                }
                8 => return fill8(*self, tuning::elementwise(self.0.chip, n), narrow, address, n),
                _ => {
                    let shape = tuning::elementwise(self.0.chip, n);
                    return fill16(*self, shape, narrow, word(8), address, n);
                }
            }
        };
        check(&self.0.name, "cuMemset", code)
    }

    fn record<'a>(&self, body: impl FnMut() -> Result<()> + Send + 'a) -> Result<Recording<'a>> {
        record::record(*self, body)
    }

    fn mailbox<T: Element>(&self, len: usize) -> Result<Mailbox<T>> {
        Mailbox::new(*self, len)
    }

    fn synchronize(&self) -> Result<()> {
        record::forbid(*self, "waiting for the device")?;
        self.0.synchronize_and_check()
    }
}

/// Returns the bytes of an element, padded with zeros. Elements have at most sixteen bytes.
fn bits<T: Element>(value: T) -> [u8; 16] {
    const { assert!(size_of::<T>() <= 16) };
    let mut bytes = [0; 16];
    // SAFETY: an element is plain bits without padding, and the array is large enough.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), bytes.as_mut_ptr(), size_of::<T>())
    };
    bytes
}
