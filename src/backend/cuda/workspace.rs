//! Memory of a stream that operations use in passing: made at the first use, kept for the next.

use super::driver::call;
use super::stream::Stream;
use super::tuning::PARTIALS;
use crate::error::Result;
use crate::lock::lock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bytes of a partial result of a reduction.
const PARTIAL_BYTES: usize = 16;
/// Counters of finished blocks, behind the partial results.
const TICKET_BYTES: usize = 256;

/// The workspaces of a stream.
pub(super) struct Workspaces {
    stream: &'static Stream,
    /// For scans by look-back: compact, reduce by key and the like.
    lookback: Mutex<Workspace>,
    /// For radix sort.
    sort: Mutex<Workspace>,
    /// What products leave for a second launch.
    pieces: Mutex<Workspace>,
    /// What blocks of a product post for one another.
    posts: Mutex<Workspace>,
    /// Where blocks meet that are all resident, and the number of the next meeting.
    meetings: Mutex<Workspace>,
    next_meeting: AtomicU32,
    /// Zeroed once; see [`Workspaces::reduction`].
    reduction: u64,
}

/// Memory that kernels leave ready for the next launch: zeroed when it is made, never when it is used. A larger one
/// takes its place when needed; the old one stays, because a recording may refer to it.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) address: u64,
    words: usize,
}

impl Workspaces {
    /// Of a stream. The memory of reductions is there before the first of them.
    pub(super) fn new(stream: &'static Stream) -> Result<Self> {
        let bytes = 2 * PARTIALS * PARTIAL_BYTES + 2 * TICKET_BYTES;
        Ok(Workspaces {
            stream,
            lookback: Mutex::default(),
            sort: Mutex::default(),
            pieces: Mutex::default(),
            posts: Mutex::default(),
            meetings: Mutex::default(),
            // Slots are zero, and no meeting may have their number.
            next_meeting: AtomicU32::new(1),
            reduction: zeroed(stream, bytes)?,
        })
    }

    /// Partial results ([`PARTIALS`] of 16 bytes) and, behind them, counters that every kernel leaves at zero. All
    /// reductions share them: they follow one another on the one stream.
    pub(super) fn reduction(&self) -> (u64, u64) {
        (self.reduction, self.reduction + (PARTIALS * PARTIAL_BYTES) as u64)
    }

    /// The workspace of `kernels/reduce.cu`: as many partial results, behind a header that it leaves at zero.
    pub(super) fn reduce_workspace(&self) -> u64 {
        self.reduction + (PARTIALS * PARTIAL_BYTES + TICKET_BYTES) as u64
    }

    /// The look-back workspace, for `words` words behind its header (`kernels/README.md`).
    pub(super) fn lookback(&self, words: usize) -> Result<MutexGuard<'_, Workspace>> {
        // Words; the fourth holds how many there are behind them.
        const HEADER: usize = 4;
        let mut workspace = lock(&self.lookback);
        if self.grow(&mut workspace, HEADER + words)? {
            let count = (workspace.words - HEADER) as u64;
            // SAFETY: the fourth word of the header lies inside; eight bytes of pageable memory are read at once.
            unsafe {
                let from = (&raw const count).cast();
                call!(
                    &self.stream.name,
                    cuMemcpyHtoDAsync_v2(workspace.address + 24, from, 8, self.stream.main_stream())
                )
            }?;
        }
        Ok(workspace)
    }

    /// The workspace of radix sort, of `words` words.
    pub(super) fn sort_workspace(&self, words: usize) -> Result<MutexGuard<'_, Workspace>> {
        self.grown(&self.sort, words)
    }

    /// Room for `count` sums of up to 16 bytes each, for products that leave pieces of rows or parts of sums for a
    /// second launch behind them: the guard and the address.
    pub(super) fn pieces(&self, count: usize) -> Result<(MutexGuard<'_, Workspace>, u64)> {
        self.grown(&self.pieces, 2 * count).map(with_address)
    }

    /// `words` words that are zero and that each launch leaves at zero: the guard and the address.
    pub(super) fn posts(&self, words: usize) -> Result<(MutexGuard<'_, Workspace>, u64)> {
        self.grown(&self.posts, words).map(with_address)
    }

    /// The address of `words` words that were zero once and belong to meetings of blocks, and the number of the first
    /// of `count` meetings: no two of this stream have the same, of 2^32 in a row.
    pub(super) fn meetings(&self, words: usize, count: u32) -> Result<(u64, u32)> {
        let workspace = self.grown(&self.meetings, words)?;
        Ok((workspace.address, self.next_meeting.fetch_add(count, Ordering::Relaxed)))
    }

    /// A workspace with room for so many words.
    fn grown<'a>(&self, of: &'a Mutex<Workspace>, words: usize) -> Result<MutexGuard<'a, Workspace>> {
        let mut workspace = lock(of);
        self.grow(&mut workspace, words)?;
        Ok(workspace)
    }

    /// Whether a new one had to be made.
    fn grow(&self, workspace: &mut Workspace, words: usize) -> Result<bool> {
        if workspace.words >= words {
            return Ok(false);
        }
        let words = words.max(2 * workspace.words).max(1 << 12);
        *workspace = Workspace { address: zeroed(self.stream, words * 8)?, words };
        Ok(true)
    }

    /// A counter of four bytes for each of 32 places, behind the tickets of reductions: see `misses`.
    pub(super) fn counter(&self, place: u32) -> u64 {
        self.reduction + (PARTIALS * PARTIAL_BYTES + TICKET_BYTES / 2) as u64 + 4 * u64::from(place)
    }
}

fn with_address(workspace: MutexGuard<'_, Workspace>) -> (MutexGuard<'_, Workspace>, u64) {
    let address = workspace.address;
    (workspace, address)
}

/// The address of memory that is zero to what the stream does next, and stays for ever.
fn zeroed(stream: &Stream, bytes: usize) -> Result<u64> {
    let address = stream.allocate(bytes)?.address;
    // SAFETY: the allocation just made, over its whole length.
    unsafe { call!(&stream.name, cuMemsetD8Async(address, 0, bytes, stream.main_stream())) }?;
    Ok(address)
}
