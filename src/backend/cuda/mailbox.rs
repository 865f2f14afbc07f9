//! Sends values from recorded work to the host while the device keeps running.
//!
//! The mailbox is a ring buffer in pinned host memory that the device can write. A kernel writes the message in words
//! of eight bytes: four bytes of the message, and its number. The host reads the words until all of them have the
//! number for which it waits:
//!
//! ```text
//! slot     0                              1                 2 ...
//!          number 4 bytes | number 4 bytes | ...                   host memory, seen by the device
//! counter  messages posted so far                                  device memory, counted by the kernel
//! ```
//!
//! A word is written and read as a whole, so no fence is needed between the message and its number, and a message that
//! was overwritten results in an error, never in a mixture.

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
use std::sync::atomic::{AtomicU64, Ordering};

kernels! {
    "post.cu", types();
    /// Copies `bytes` of `message` into slot `counter % slots` of `ring`, tags each word with the message's number, and
    /// increments the counter. One warp.
    fn post(ring: u64, slot_words: u32, slots: u32, message: u64, bytes: u32, counter: &Slice<u64>);
}

/// The number of messages in the ring: more than any caller leaves unread.
const SLOTS: usize = 4 * (Cuda::QUEUE_DEPTH + 1);
const _: () = assert!(SLOTS > Cuda::QUEUE_DEPTH * <Cuda as VectorOps>::RECORDED);
/// The number of polls of a slot between two queries of the driver, which take a microsecond each.
const LOOKS: u32 = 4096;

/// A ring buffer of messages of type `T`; see the module's documentation.
pub struct Mailbox<T: Element> {
    cuda: Cuda,
    /// Pinned memory of `SLOTS` slots.
    ring: *mut u64,
    on_device: u64,
    slot_words: usize,
    len: usize,
    counter: slice::Vec<u64>,
    taken: Mutex<u64>,
    element: PhantomData<T>,
}

// SAFETY: the host reads the ring through atomics and volatile reads while it holds the lock `taken`; the device writes
// it.
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
        let slot_words = match len.checked_mul(size_of::<T>()) {
            Some(bytes) if bytes <= 1 << 20 => bytes.div_ceil(4),
            _ => {
                return Err(Error::InvalidArgument(format!(
                    "a mailbox for messages of {len} elements: too long"
                )));
            }
        };
        let counter = cuda.zeros(1)?;
        let (mut ring, mut on_device) = (std::ptr::null_mut(), 0);
        // SAFETY: flag 2 maps the memory into the device's address space, and each call writes one pointer. The driver
        // does not initialise the memory, so all of it is zeroed before it is read.
        unsafe {
            let bytes = 8 * slot_words.max(1) * SLOTS;
            call!(&cuda.0.name, cuMemHostAlloc(&raw mut ring, bytes, 2))?;
            std::ptr::write_bytes(ring.cast::<u8>(), 0, bytes);
        }
        let mut mailbox = Mailbox {
            cuda,
            ring: ring.cast(),
            on_device: 0,
            slot_words,
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

    /// Copies the message with this number if it has arrived.
    fn look(&self, number: u64, message: &mut [T]) -> Result<bool> {
        let slot = ((number - 1) % SLOTS as u64) as usize * self.slot_words;
        let bytes = size_of_val(message);
        let to = message.as_mut_ptr().cast::<u8>();
        for i in 0..self.slot_words {
            // SAFETY: the word is inside of the ring, which is page-aligned; the device writes whole words.
            let word = unsafe { AtomicU64::from_ptr(self.ring.add(slot + i)) }.load(Ordering::Acquire);
            match ((word >> 32) as u32).wrapping_sub(number as u32).cast_signed() {
                0 => {}
                ..0 => return Ok(false),
                1.. => {
                    return Err(Error::InvalidArgument(format!(
                        "message {number} of a mailbox was overwritten: read it before posting {SLOTS} more"
                    )));
                }
            }
            let part = (word as u32).to_le_bytes();
            let count = (bytes - 4 * i).min(4);
            // SAFETY: copies `count` bytes of the message from byte 4 i on. The bits are those of an element that the
            // device has copied, and a message that was read only in part is not reported.
            unsafe { to.add(4 * i).copy_from_nonoverlapping(part.as_ptr(), count) };
        }
        Ok(true)
    }
}

impl<T: Element> Drop for Mailbox<T> {
    fn drop(&mut self) {
        // The device may still write messages, so this waits for it. After a fault nothing runs any more.
        let _ = self.cuda.0.synchronize();
        // SAFETY: allocated by `new`, freed once, and no pending work writes to it: recordings borrow the mailbox.
        let _ = unsafe { sys::cuMemFreeHost(self.ring.cast()) };
    }
}

impl<T: Element> Trait<T> for Mailbox<T> {
    type Backend = Cuda;

    fn post(&self, backend: &Cuda, value: &Slice<T>) -> Result<()> {
        Error::check_dimension("length of a mailbox's message", self.len, value.len())?;
        let (bytes, words) = (value.bytes() as u32, self.slot_words as u32);
        let shape = Shape::new(1, 32);
        post(*backend, shape, self.on_device, words, SLOTS as u32, value.address(), bytes, &self.counter)
    }

    fn next(&self, backend: &Cuda, wait: bool, message: &mut [T]) -> Result<bool> {
        Error::check_dimension("length of a mailbox's message", self.len, message.len())?;
        super::record::forbid(*backend, "waiting for a message")?;
        let mut taken = lock(&self.taken);
        let number = *taken + 1;
        let mut turns = 0_u32;
        loop {
            turns = turns.wrapping_add(1);
            // Checks the stream from time to time. If it is idle and no message has arrived, none will arrive; if it
            // has failed, this returns the error.
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
