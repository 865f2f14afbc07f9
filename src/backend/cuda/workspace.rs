//! The workspaces of a stream's operations, which are allocated at their first use and kept for the next.

use super::driver::call;
use super::stream::Stream;
use super::tuning::PARTIALS;
use crate::error::Result;
use crate::lock::lock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Number of bytes for one partial result of a reduction.
const PARTIAL_BYTES: usize = 16;
/// Number of bytes for the counters of finished blocks, which are stored after the partial results.
const TICKET_BYTES: usize = 256;

/// The addresses of memory for the partial results of a reduction, and of a counter of finished blocks; a null counter
/// if another launch adds the results.
pub(super) type Reduction = (u64, u64);

/// The workspaces of a stream.
pub(super) struct Workspaces {
    stream: &'static Stream,
    /// For scans by look-back: compaction, reduction by key and similar operations.
    lookback: Mutex<Workspace>,
    /// For radix sort.
    sort: Mutex<Workspace>,
    /// Partial results of products, which a second launch reads.
    pieces: Mutex<Workspace>,
    /// Partial results that the blocks of one product pass to each other.
    posts: Mutex<Workspace>,
    /// The memory through which resident blocks synchronise, and the number of the next synchronisation.
    meetings: Mutex<Workspace>,
    next_meeting: AtomicU32,
    /// Memory of reductions, which is set to zero once; see [`Workspaces::reduction`].
    reduction: u64,
}

/// Memory that kernels leave as the next launch needs it: it is set to zero when it is allocated, not when it is used.
/// A larger workspace replaces a smaller one when needed. The old memory is kept, because a recording may refer to it.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) address: u64,
    words: usize,
}

impl Workspaces {
    /// Creates the workspaces of a stream. Only the memory of reductions is allocated here.
    pub(super) fn new(stream: &'static Stream) -> Result<Self> {
        let bytes = 2 * PARTIALS * PARTIAL_BYTES + 2 * TICKET_BYTES;
        Ok(Workspaces {
            stream,
            lookback: Mutex::default(),
            sort: Mutex::default(),
            pieces: Mutex::default(),
            posts: Mutex::default(),
            meetings: Mutex::default(),
            // Slots start at zero, so no synchronisation may have that number.
            next_meeting: AtomicU32::new(1),
            reduction: zeroed(stream, bytes)?,
        })
    }

    /// Returns the addresses of the partial results ([`PARTIALS`] of 16 bytes) and of the counters after them, which
    /// every kernel leaves at zero. All reductions share this memory, because they run one after another on the stream.
    pub(super) fn reduction(&self) -> Reduction {
        (self.reduction, self.reduction + (PARTIALS * PARTIAL_BYTES) as u64)
    }

    /// Returns the workspace of `kernels/reduce.cu`: the same number of partial results, after a header that kernels
    /// leave at zero.
    pub(super) fn reduce_workspace(&self) -> u64 {
        self.reduction + (PARTIALS * PARTIAL_BYTES + TICKET_BYTES) as u64
    }

    /// Returns the look-back workspace, with `words` words after its header (`kernels/README.md`).
    pub(super) fn lookback(&self, words: usize) -> Result<MutexGuard<'_, Workspace>> {
        // The number of words of the header. The fourth word is the number of words after the header.
        const HEADER: usize = 4;
        let mut workspace = lock(&self.lookback);
        if self.grow(&mut workspace, HEADER + words)? {
            let count = (workspace.words - HEADER) as u64;
            // SAFETY: the fourth word of the header is inside of the allocation; eight bytes of pageable memory are
            // copied at once.
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

    /// Returns the workspace of radix sort, with `words` words.
    pub(super) fn sort_workspace(&self, words: usize) -> Result<MutexGuard<'_, Workspace>> {
        self.grown(&self.sort, words)
    }

    /// Returns memory for `count` sums of up to 16 bytes each, as the guard and the address. In it, products leave
    /// parts of rows or of sums for a second launch.
    pub(super) fn pieces(&self, count: usize) -> Result<(MutexGuard<'_, Workspace>, u64)> {
        self.grown(&self.pieces, 2 * count).map(with_address)
    }

    /// Returns `words` words that are zero and that each launch leaves at zero, as the guard and the address.
    pub(super) fn posts(&self, words: usize) -> Result<(MutexGuard<'_, Workspace>, u64)> {
        self.grown(&self.posts, words).map(with_address)
    }

    /// Returns the address of `words` words for the synchronisation of blocks, which were set to zero once, and the
    /// number of the first of `count` synchronisations. The numbers of a stream repeat only after 2^32.
    pub(super) fn meetings(&self, words: usize, count: u32) -> Result<(u64, u32)> {
        let workspace = self.grown(&self.meetings, words)?;
        Ok((workspace.address, self.next_meeting.fetch_add(count, Ordering::Relaxed)))
    }

    /// Locks a workspace, and enlarges it to at least `words` words.
    fn grown<'a>(&self, of: &'a Mutex<Workspace>, words: usize) -> Result<MutexGuard<'a, Workspace>> {
        let mut workspace = lock(of);
        self.grow(&mut workspace, words)?;
        Ok(workspace)
    }

    /// Makes the workspace large enough. Returns whether a new one was allocated.
    fn grow(&self, workspace: &mut Workspace, words: usize) -> Result<bool> {
        if workspace.words >= words {
            return Ok(false);
        }
        let words = words.max(2 * workspace.words).max(1 << 12);
        *workspace = Workspace { address: zeroed(self.stream, words * 8)?, words };
        Ok(true)
    }

    /// Returns the address of one of 32 counters of four bytes, which are stored after those of reductions; see
    /// `misses`.
    pub(super) fn counter(&self, place: u32) -> u64 {
        self.reduction + (PARTIALS * PARTIAL_BYTES + TICKET_BYTES / 2) as u64 + 4 * u64::from(place)
    }
}

fn with_address(workspace: MutexGuard<'_, Workspace>) -> (MutexGuard<'_, Workspace>, u64) {
    let address = workspace.address;
    (workspace, address)
}

/// Allocates memory that is never freed, and that is zero for all later work of the stream. Returns its address.
fn zeroed(stream: &Stream, bytes: usize) -> Result<u64> {
    let address = stream.allocate(bytes)?.address;
    // SAFETY: clears the whole allocation, which was just made.
    unsafe { call!(&stream.name, cuMemsetD8Async(address, 0, bytes, stream.main_stream())) }?;
    Ok(address)
}
