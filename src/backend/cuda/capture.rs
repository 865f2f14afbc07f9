//! The current thread's recording: the stream to which its work goes, and the memory that the recording has to keep.

use super::pool::Allocation;
use cudarc::driver::sys::CUstream;
use std::cell::RefCell;
use std::ops::Range;

/// The recording of a thread: its device and stream, the memory that it keeps, and the addresses that it writes.
struct Current {
    ordinal: usize,
    stream: CUstream,
    kept: Vec<Allocation>,
    written: Option<Vec<Range<u64>>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Directs the work of this thread for the device to `stream` from now on.
pub(super) fn begin(ordinal: usize, stream: CUstream) {
    CURRENT.set(Some(Current { ordinal, stream, kept: Vec::new(), written: None }));
}

/// Directs the work of this thread to the device's own stream again. Returns the memory that must live as long as the
/// recording.
pub(super) fn end() -> Vec<Allocation> {
    CURRENT.take().map(|current| current.kept).unwrap_or_default()
}

/// The stream of this thread's recording for the device, if there is one.
pub(super) fn stream(ordinal: usize) -> Option<CUstream> {
    CURRENT.with_borrow(|current| current.as_ref().filter(|c| c.ordinal == ordinal).map(|c| c.stream))
}

/// Transfers an allocation to this thread's recording. Returns whether there is a recording.
pub(super) fn keep(ordinal: usize, allocation: Allocation) -> bool {
    CURRENT.with_borrow_mut(|current| match current.as_mut().filter(|c| c.ordinal == ordinal) {
        Some(current) => {
            current.kept.push(allocation);
            true
        }
        None => false,
    })
}

/// Runs `body` as if this thread were not recording: its work runs at once, on the device's own stream. For facts about
/// operands that a recorded operation needs before it can be enqueued.
pub(super) fn outside<R>(body: impl FnOnce() -> R) -> R {
    /// Continues the recording when it is dropped, even if `body` panics.
    struct Resume(Option<Current>);
    impl Drop for Resume {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _resume = Resume(CURRENT.take());
    body()
}

/// Notes a launch with the addresses that it writes, if all of them are known.
pub(super) fn launched(ordinal: usize, written: Option<Vec<Range<u64>>>) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current.as_mut().filter(|c| c.ordinal == ordinal) {
            current.written = written;
        }
    });
}

/// Returns whether this thread's recording knows that its last launch does not write to these addresses. That launch
/// has waited for all earlier ones, so a kernel that starts while it ends may read them at once. Operations other than
/// launches end before the next one starts.
pub(super) fn settled(ordinal: usize, read: &[Range<u64>]) -> bool {
    let apart = |a: &Range<u64>, b: &Range<u64>| a.end <= b.start || b.end <= a.start;
    CURRENT.with_borrow(|current| {
        let written = current.as_ref().filter(|c| c.ordinal == ordinal).and_then(|c| c.written.as_ref());
        written.is_some_and(|written| written.iter().all(|w| read.iter().all(|r| apart(w, r))))
    })
}
