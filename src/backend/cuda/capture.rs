//! The current thread's recording: the stream to which its work goes, and the memory that must live as long as the
//! recording.

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

/// From now on, the work of this thread for the device goes to `stream`.
pub(super) fn begin(ordinal: usize, stream: CUstream) {
    CURRENT.set(Some(Current { ordinal, stream, kept: Vec::new(), written: None }));
}

/// The work of this thread goes to the device's own stream again. Returns the memory that must live as long as the
/// recording.
pub(super) fn end() -> Vec<Allocation> {
    CURRENT.take().map(|current| current.kept).unwrap_or_default()
}

/// Returns the stream of this thread's recording for the device, if there is one.
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

/// Runs `body` as if this thread were not recording: its work is not recorded but executed, on the device's own stream.
/// A recorded operation uses this to examine its operands before it can be enqueued.
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

/// Records the addresses that a launch writes, or `None` if they are not all known.
pub(super) fn launched(ordinal: usize, written: Option<Vec<Range<u64>>>) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current.as_mut().filter(|c| c.ordinal == ordinal) {
            current.written = written;
        }
    });
}

/// Returns whether this thread's recording knows that its last launch does not write to these addresses. That launch
/// has waited for all earlier ones, so a kernel that starts while it ends may read them without waiting. Operations
/// other than launches end before the next one starts.
pub(super) fn settled(ordinal: usize, read: &[Range<u64>]) -> bool {
    let apart = |a: &Range<u64>, b: &Range<u64>| a.end <= b.start || b.end <= a.start;
    CURRENT.with_borrow(|current| {
        let written = current.as_ref().filter(|c| c.ordinal == ordinal).and_then(|c| c.written.as_ref());
        written.is_some_and(|written| written.iter().all(|w| read.iter().all(|r| apart(w, r))))
    })
}
