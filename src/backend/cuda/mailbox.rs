//! Values on their way from recorded work to the host, without stopping the device.
//!
//! A ring in pinned host memory that the device can write. A kernel copies the message and then its number; the host
//! reads the number until the one it waits for appears:
//!
//! ```text
//! slot     0                1                2 ...
//!          number | payload number | payload number | payload      host memory, seen by the device
//! counter  messages posted so far                                  device memory, counted by the kernel
//! ```
//!
//! The kernel sets the number to zero before it touches the payload, and the host looks at the number again after it
//! has read, so a message that was overwritten is an error and never a mixture.

use super::launch::kernels;
use super::shape::Shape;
use super::slice::Slice;
use super::{Cuda, slice};
use crate::backend::{Backend, Mailbox as Trait, VectorOps};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scalar::Element;
use cudarc::driver::sys;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, fence};

kernels! {
    "memory.cu", types();
    /// Copies `words` of four bytes and then `bytes` single ones from `message` into slot `counter % slots` of `ring`,
    /// numbers it, and counts. One block.
    fn post(ring: u64, slot_bytes: u32, slots: u32, message: u64, words: u32, bytes: u32, counter: &Slice<u64>);
}

/// Messages that fit: more than any caller leaves unread.
const SLOTS: usize = 4 * (Cuda::QUEUE_DEPTH + 1);
const _: () = assert!(SLOTS > Cuda::QUEUE_DEPTH * <Cuda as VectorOps>::RECORDED);
/// Looks at a slot between two questions to the driver, which cost a microsecond each.
const LOOKS: u32 = 4096;

/// A ring of messages of type `T`. See the module's text.
pub struct Mailbox<T: Element> {
    cuda: Cuda,
    /// Pinned memory: `SLOTS` times a number and the payload.
    ring: *mut u8,
    on_device: u64,
    slot_bytes: usize,
    len: usize,
    counter: slice::Vec<u64>,
    taken: Mutex<u64>,
    element: PhantomData<T>,
}

// SAFETY: the ring is read through atomics and volatile reads under the lock of `taken`, and written by the device.
unsafe impl<T: Element> Send for Mailbox<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Mailbox<T> {}

impl<T: Element> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mailbox of {} {} on {}", self.len, T::NAME, self.cuda.0.name)
    }
}

impl<T: Element> Mailbox<T> {
    pub(super) fn new(cuda: Cuda, len: usize) -> Result<Self> {
        use super::driver::call;
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(8 + 15));
        let slot_bytes = match bytes.map(|bytes| bytes & !15) {
            Some(bytes) if bytes <= 1 << 20 => bytes,
            _ => {
                return Err(Error::InvalidArgument(format!(
                    "a mailbox for messages of {len} elements: too long"
                )));
            }
        };
        let counter = cuda.zeros(1)?;
        let (mut ring, mut on_device) = (std::ptr::null_mut(), 0);
        // SAFETY: flag 2: mapped into the device's address space; each call writes one pointer. The memory is not
        // initialised by the driver, so it is zeroed over its whole length before anyone reads it.
        unsafe {
            call!(&cuda.0.name, cuMemHostAlloc(&raw mut ring, slot_bytes * SLOTS, 2))?;
            std::ptr::write_bytes(ring.cast::<u8>(), 0, slot_bytes * SLOTS);
        }
        let mut mailbox = Mailbox {
            cuda,
            ring: ring.cast(),
            on_device: 0,
            slot_bytes,
            len,
            counter,
            taken: Mutex::new(0),
            element: PhantomData,
        };
        // SAFETY: the ring was allocated as mapped memory.
        unsafe { call!(&cuda.0.name, cuMemHostGetDevicePointer_v2(&raw mut on_device, ring, 0)) }?;
        mailbox.on_device = on_device;
        Ok(mailbox)
    }

    /// Copies the message with this number, if it has come.
    fn look(&self, number: u64, message: &mut [T]) -> Result<bool> {
        let slot = ((number - 1) % SLOTS as u64) as usize * self.slot_bytes;
        // SAFETY: the slot lies inside of the ring and is aligned to sixteen bytes; the device writes the number whole.
        let (sequence, payload) =
            unsafe { (AtomicU64::from_ptr(self.ring.add(slot).cast()), self.ring.add(slot + 8)) };
        let seen = sequence.load(Ordering::Acquire);
        if seen < number {
            return Ok(false);
        }
        for (i, element) in message.iter_mut().enumerate() {
            // SAFETY: inside of the slot, eight bytes behind its aligned start; every bit pattern that the device
            // copies was an element there. Volatile: the device may be writing if the message was overwritten, which
            // the check below finds.
            *element = unsafe { payload.cast::<T>().add(i).read_volatile() };
        }
        fence(Ordering::Acquire);
        if seen != number || sequence.load(Ordering::Relaxed) != number {
            return Err(Error::InvalidArgument(format!(
                "message {number} of a mailbox was overwritten: read it before posting {SLOTS} more"
            )));
        }
        Ok(true)
    }
}

impl<T: Element> Drop for Mailbox<T> {
    fn drop(&mut self) {
        // The device may still post: wait for it. After a fault nothing runs any more.
        let _ = self.cuda.0.synchronize();
        // SAFETY: allocated by `new`, freed once, no work that writes to it is left. Recordings borrow the mailbox.
        let _ = unsafe { sys::cuMemFreeHost(self.ring.cast()) };
    }
}

impl<T: Element> Trait<T> for Mailbox<T> {
    type Backend = Cuda;

    fn post(&self, backend: &Cuda, value: &Slice<T>) -> Result<()> {
        Error::check_dimension("length of a mailbox's message", self.len, value.len())?;
        let (bytes, slot) = (value.bytes() as u32, self.slot_bytes as u32);
        let words = if value.address().is_multiple_of(4) { bytes / 4 } else { 0 };
        let shape = Shape::new(1, 32);
        let rest = bytes - 4 * words;
        post(*backend, shape, self.on_device, slot, SLOTS as u32, value.address(), words, rest, &self.counter)
    }

    fn next(&self, backend: &Cuda, wait: bool, message: &mut [T]) -> Result<bool> {
        Error::check_dimension("length of a mailbox's message", self.len, message.len())?;
        super::record::forbid(*backend, "waiting for a message")?;
        let mut taken = lock(&self.taken);
        let number = *taken + 1;
        let mut turns = 0_u32;
        loop {
            turns = turns.wrapping_add(1);
            // Now and then: where the stream is idle and nothing has come, nothing will; where it failed, this tells
            // it.
            let idle = (!wait || turns.is_multiple_of(LOOKS)) && backend.0.idle()?;
            if self.look(number, message)? {
                *taken = number;
                return Ok(true);
            }
            if !wait {
                return Ok(false);
            }
            if idle {
                return Err(Error::InvalidArgument("waiting for a message that was never posted".into()));
            }
            std::hint::spin_loop();
        }
    }
}
