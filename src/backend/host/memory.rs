//! Host buffers, recordings and mailboxes.

use super::Host;
use crate::backend::{Backend, Mailbox, Replay};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::parallel::{self, prelude::*};
use crate::scalar::Element;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// With fewer elements, a loop is faster on one thread than on several.
pub(super) const PARALLEL_FROM: usize = 1 << 15;

/// The number of elements that one task copies or fills.
const CHUNK: usize = 1 << 16;

/// Requests pages of 2 MiB for a large buffer, on systems that provide them only on request. First use and scattered
/// accesses then take a fraction of the time.
#[cfg(target_os = "linux")]
fn prefer_huge_pages(pointer: *mut u8, bytes: usize) {
    use std::ffi::{c_int, c_void};
    const PAGE: usize = 4096;
    const MADV_HUGEPAGE: c_int = 14;
    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    if bytes < 4 << 20 {
        return;
    }
    let skip = pointer.addr().wrapping_neg() % PAGE;
    // SAFETY: the range is inside of one live allocation of `bytes` bytes. The advice does not change its contents, and
    // the kernel may ignore it, so the result is not checked.
    unsafe {
        madvise(pointer.add(skip).cast(), bytes - skip, MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages(_pointer: *mut u8, _bytes: usize) {}

/// Allocates temporary memory of `len` elements.
pub(super) fn buffer<T: Copy + Default>(len: usize) -> Vec<T> {
    let mut buffer = vec![T::default(); len];
    prefer_huge_pages(buffer.as_mut_ptr().cast(), len * size_of::<T>());
    buffer
}

/// A replay that takes longer than this runs on a thread of the pool. Its loops are long, so the time to hand them over
/// does not matter, and idle threads should take part. With a fixed team of threads instead, CG on 128^3 points takes
/// 1.07 (CSR) to 1.4 times as long (SELL).
const LONG: Duration = Duration::from_micros(400);

impl Backend for Host {
    type Vec<T: Element> = Vec<T>;
    type Slice<T: Element> = [T];
    type Recording<'a> = HostRecording<'a>;
    type Mailbox<T: Element> = HostMailbox<T>;

    const QUEUE_DEPTH: usize = 1;

    fn description(&self) -> String {
        let threads = rayon::current_num_threads();
        format!("cpu ({threads} thread{})", if threads == 1 { "" } else { "s" })
    }

    fn zeros<T: Element>(&self, len: usize) -> Result<Vec<T>> {
        let out_of_memory = || Error::OutOfMemory {
            device: "cpu".into(),
            bytes: (len as u64).saturating_mul(size_of::<T>() as u64),
        };
        let layout = std::alloc::Layout::array::<T>(len).map_err(|_| out_of_memory())?;
        if layout.size() == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the layout has a non-zero size; `Element` promises that zero bits are a valid value, so all `len`
        // elements are initialised; pointer, length and capacity are those of one allocation by the global allocator.
        // This is used instead of `vec![]` because a failed allocation becomes an error instead of an abort.
        unsafe {
            let pointer = std::alloc::alloc_zeroed(layout).cast::<T>();
            if pointer.is_null() {
                return Err(out_of_memory());
            }
            prefer_huge_pages(pointer.cast(), layout.size());
            Ok(Vec::from_raw_parts(pointer, len, len))
        }
    }

    fn upload<T: Element>(&self, data: Vec<T>) -> Result<Vec<T>> {
        Ok(data)
    }

    fn download<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        let mut copy = self.zeros(data.len())?;
        self.copy(data, &mut copy)?;
        Ok(copy)
    }

    fn read<T: Element>(&self, from: &[T], to: &mut [T]) -> Result<()> {
        self.copy(from, to)
    }

    fn write<T: Element>(&self, from: &[T], to: &mut [T]) -> Result<()> {
        self.copy(from, to)
    }

    fn len<T: Element>(slice: &[T]) -> usize {
        slice.len()
    }

    fn part<T: Element>(slice: &[T], range: Range<usize>) -> &[T] {
        &slice[range]
    }

    fn part_mut<T: Element>(slice: &mut [T], range: Range<usize>) -> &mut [T] {
        &mut slice[range]
    }

    fn split_mut<T: Element>(slice: &mut [T], middle: usize) -> (&mut [T], &mut [T]) {
        slice.split_at_mut(middle)
    }

    fn copy<T: Element>(&self, from: &[T], to: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the copy's target", from.len(), to.len())?;
        to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }

    fn fill<T: Element>(&self, value: T, to: &mut [T]) -> Result<()> {
        to.par_chunks_mut(CHUNK).for_each(|to| to.fill(value));
        Ok(())
    }

    fn record<'a>(&self, body: impl FnMut() -> Result<()> + Send + 'a) -> Result<HostRecording<'a>> {
        Ok(HostRecording { body: Box::new(body), last: Duration::ZERO })
    }

    fn mailbox<T: Element>(&self, len: usize) -> Result<HostMailbox<T>> {
        let messages = VecDeque::with_capacity(len * (Self::QUEUE_DEPTH + 1));
        Ok(HostMailbox { len, messages: Mutex::new(messages) })
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// A recording on the host: a closure that is called at each replay.
pub struct HostRecording<'a> {
    body: Box<dyn FnMut() -> Result<()> + Send + 'a>,
    /// The duration of the last replay.
    last: Duration,
}

impl fmt::Debug for HostRecording<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostRecording")
    }
}

impl Replay for HostRecording<'_> {
    /// The duration of the last replay predicts that of the next. For a short one, a team of threads is gathered
    /// before, so that its loops begin and end without waking threads. Which threads take part does not affect results.
    fn replay(&mut self) -> Result<()> {
        let start = Instant::now();
        let done = if self.last > LONG {
            parallel::in_pool(|| (self.body)())
        } else {
            parallel::gather(self.last);
            #[cfg(all(test, feature = "cuda"))]
            let _recording = super::asked::Recording::begins();
            (self.body)()
        };
        self.last = start.elapsed();
        done
    }
}

/// The mailbox of the host: a queue.
#[derive(Debug)]
pub struct HostMailbox<T> {
    len: usize,
    messages: Mutex<VecDeque<T>>,
}

impl<T: Element> Mailbox<T> for HostMailbox<T> {
    type Backend = Host;

    fn post(&self, _backend: &Host, value: &[T]) -> Result<()> {
        Error::check_dimension("length of the message", self.len, value.len())?;
        lock(&self.messages).extend(value);
        Ok(())
    }

    fn next(&self, _backend: &Host, wait: bool, message: &mut [T]) -> Result<bool> {
        Error::check_dimension("length of the message", self.len, message.len())?;
        let mut messages = lock(&self.messages);
        if messages.len() < self.len {
            let never = || Error::InvalidArgument("waiting for a message that was never posted".into());
            return if wait { Err(never()) } else { Ok(false) };
        }
        message.iter_mut().zip(messages.drain(..self.len)).for_each(|(to, from)| *to = from);
        Ok(true)
    }
}
