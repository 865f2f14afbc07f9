//! Shared memory of the ranks of one machine: sums and halos by loads and stores, without system calls.
//!
//! ```text
//! header | a place for the first failure
//! for each rank: that it has gone | two slots of sums
//! for each pair of ranks: a channel of two chunks of bytes
//! ```
//!
//! A sum takes one synchronisation. Each rank writes its values and then the number of the round into its slot; each
//! reads the slots of all ranks in their order, once they have that number. A rank has two slots, used alternately, so
//! no second synchronisation is needed: it overwrites a slot two rounds later, and by then it has seen every other
//! rank's slot of the round between, which that rank wrote after it had read.
//!
//! Shared memory is read and written through atomics, or copied after an atomic has handed it over.

use super::fault::Fault;
use super::wait::Waiting;
use crate::error::{Error, Result};
use memmap2::MmapRaw;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// First word of a window; a different layout has a different one.
const MAGIC: u64 = 0x7265_7369_6475_6101;

/// The layout of the header: the magic word, the number of ranks, and the state and rank of a failure.
const RANKS: usize = 8;
const FAILURE: usize = 64;
const HEADER: usize = 4096;
const CAUSE: usize = HEADER - FAILURE - 24;

/// 8-byte values that are summed in one round: those of a cycle of GMRES.
const VALUES: usize = 78;

/// A slot: the round, the stop request, the values. Six of the values share the cache line of the round.
const SLOT: usize = 8 * (2 + VALUES);

/// A cache line that says whether a rank has left, and two slots.
const SEAT: usize = 64 + 2 * SLOT;

/// Bytes of a chunk.
const CHUNK: usize = 64 << 10;

/// Two cache lines with the numbers of chunks sent and received, and two chunks.
const CHANNEL: usize = 128 + 2 * CHUNK;

/// The window of one rank.
#[derive(Debug)]
pub(super) struct Window {
    map: MmapRaw,
    rank: usize,
    ranks: usize,
    waiting: Waiting,
    /// Rounds of sums so far.
    round: u64,
    /// Chunks sent to each rank so far, and received from each.
    sent: Vec<u64>,
    taken: Vec<u64>,
    /// Bytes of an exchange that were already sent to each rank before it is completed.
    begun: Option<Vec<usize>>,
    fault: Arc<Fault>,
}

impl Window {
    /// Creates the file of a window for this number of ranks, filled with zeros, which only this user may open.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn create(ranks: usize) -> Result<PathBuf> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let shared = Path::new("/dev/shm");
        let folder = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("residua-{}-{number}", std::process::id()));
        let told = |source| Error::Io { path: path.clone(), source };
        // A file of this name is left over from an earlier process with the same number.
        let _ = std::fs::remove_file(&path);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(told)?;
        file.set_len(length(ranks) as u64).map_err(told)?;
        let map = MmapRaw::map_raw(&file).map_err(told)?;
        word(&map, RANKS).store(ranks as u64, Ordering::Relaxed);
        word(&map, 0).store(MAGIC, Ordering::Release);
        Ok(path)
    }

    /// Opens the window in this file, for rank `rank`; `waiting` says how to wait.
    ///
    /// # Errors
    /// [`Error::Io`], or if the file is not a window for this number of ranks.
    pub(super) fn open(
        path: &Path,
        [rank, ranks]: [usize; 2],
        waiting: Waiting,
        fault: Arc<Fault>,
    ) -> Result<Self> {
        let told = |source| Error::Io { path: path.to_path_buf(), source };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(told)?;
        let right = file.metadata().map_err(told)?.len() == length(ranks) as u64;
        let map = MmapRaw::map_raw(&file).map_err(told)?;
        let right = right
            && word(&map, 0).load(Ordering::Acquire) == MAGIC
            && word(&map, RANKS).load(Ordering::Relaxed) == ranks as u64;
        if !right {
            return Err(Error::InvalidArgument(format!(
                "{} is not shared memory of {ranks} ranks",
                path.display()
            )));
        }
        let none = vec![0; ranks];
        Ok(Self { map, rank, ranks, waiting, round: 0, sent: none.clone(), taken: none, begun: None, fault })
    }

    /// `add(rank, first, words)` gets the words of each rank, in the order of ranks, in pieces; `first` is the position
    /// of a piece's first word. Returns whether any rank asks to stop.
    ///
    /// # Errors
    /// If a rank has failed.
    pub(super) fn sums(
        &mut self,
        words: &[u64],
        stop: bool,
        mut add: impl FnMut(usize, usize, &[u64]),
    ) -> Result<bool> {
        let (mut wish, mut first) = (false, 0);
        loop {
            let count = (words.len() - first).min(VALUES);
            self.round += 1;
            let round = self.round;
            let own = self.slot(self.rank, round);
            for (place, &value) in words[first..first + count].iter().enumerate() {
                self.at(own + 16 + 8 * place).store(value, Ordering::Relaxed);
            }
            self.at(own + 8).store(u64::from(stop), Ordering::Relaxed);
            self.at(own).store(round, Ordering::Release);
            let mut read = [0; VALUES];
            for rank in 0..self.ranks {
                let slot = self.slot(rank, round);
                self.wait(Some(rank), || self.at(slot).load(Ordering::Acquire) == round)?;
                for (place, value) in read[..count].iter_mut().enumerate() {
                    *value = self.at(slot + 16 + 8 * place).load(Ordering::Relaxed);
                }
                wish |= self.at(slot + 8).load(Ordering::Relaxed) != 0;
                add(rank, first, &read[..count]);
            }
            first += count;
            if first == words.len() {
                return Ok(wish);
            }
        }
    }

    /// Sends as much of an exchange as fits, so that the others have it when they need it; [`Window::exchange`] with
    /// the same bytes completes it.
    pub(super) fn begin(&mut self, send: &[&[u8]]) {
        let mut sent = vec![0; self.ranks];
        for other in 0..self.ranks {
            if other != self.rank {
                self.push(other, send[other], &mut sent[other]);
            }
        }
        self.begun = Some(sent);
    }

    /// Sends as much as fits to a rank, after the first `sent` bytes. Returns whether anything was sent.
    fn push(&mut self, other: usize, bytes: &[u8], sent: &mut usize) -> bool {
        let (channel, before) = (self.channel(self.rank, other), *sent);
        while *sent < bytes.len() && self.sent[other] - self.at(channel + 64).load(Ordering::Acquire) < 2 {
            let next = (bytes.len() - *sent).min(CHUNK);
            let chunk = self.chunk(channel, self.sent[other]);
            // SAFETY: the chunk is inside of the map and has CHUNK bytes. It belongs to this rank until the count says
            // that it was sent, since the other rank has taken its contents of two chunks ago.
            unsafe { chunk.copy_from_nonoverlapping(bytes[*sent..].as_ptr(), next) };
            self.sent[other] += 1;
            self.at(channel).store(self.sent[other], Ordering::Release);
            *sent += next;
        }
        *sent > before
    }

    /// Sends the bytes for each rank and receives those of each.
    ///
    /// # Errors
    /// If a rank has failed.
    pub(super) fn exchange(&mut self, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<()> {
        receive[self.rank].copy_from_slice(send[self.rank]);
        let (mut sent, mut received) =
            (self.begun.take().unwrap_or_else(|| vec![0; self.ranks]), vec![0; self.ranks]);
        (sent[self.rank], received[self.rank]) = (send[self.rank].len(), receive[self.rank].len());
        loop {
            let (mut moved, mut open) = (false, None);
            for other in 0..self.ranks {
                moved |= self.push(other, send[other], &mut sent[other]);
                if sent[other] < send[other].len() {
                    open = Some(other);
                }
                while received[other] < receive[other].len() {
                    let channel = self.channel(other, self.rank);
                    if self.at(channel).load(Ordering::Acquire) == self.taken[other] {
                        open = Some(other);
                        break;
                    }
                    let next = (receive[other].len() - received[other]).min(CHUNK);
                    let chunk = self.chunk(channel, self.taken[other]);
                    let place = receive[other][received[other]..].as_mut_ptr();
                    // SAFETY: the chunk is inside of the map, has CHUNK bytes, and belongs to this rank because the
                    // count says that it was sent; `place` has at least `next` bytes.
                    unsafe { place.copy_from_nonoverlapping(chunk, next) };
                    self.taken[other] += 1;
                    self.at(channel + 64).store(self.taken[other], Ordering::Release);
                    received[other] += next;
                    moved = true;
                }
            }
            let Some(other) = open else { return Ok(()) };
            if !moved {
                // Waits for any of them: if ranks waited for one each, they could wait for each other in a ring.
                self.wait(Some(other), || {
                    (0..self.ranks).any(|other| {
                        let (out, back) = (self.channel(self.rank, other), self.channel(other, self.rank));
                        let room = self.sent[other] - self.at(out + 64).load(Ordering::Acquire) < 2;
                        let there = self.at(back).load(Ordering::Acquire) != self.taken[other];
                        (sent[other] < send[other].len() && room)
                            || (received[other] < receive[other].len() && there)
                    })
                })?;
            }
        }
    }

    /// Reports that this rank has left.
    pub(super) fn leave(&self) {
        self.at(self.seat(self.rank)).store(1, Ordering::Release);
    }

    /// Records a failure for all ranks, unless there is one. Returns whether it was the first.
    pub(super) fn fail(&self, rank: usize, cause: &str) -> bool {
        let state = self.at(FAILURE);
        if state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let mut length = cause.len().min(CAUSE);
        while !cause.is_char_boundary(length) {
            length -= 1;
        }
        self.at(FAILURE + 8).store(rank as u64, Ordering::Relaxed);
        self.at(FAILURE + 16).store(length as u64, Ordering::Relaxed);
        // SAFETY: the header has CAUSE bytes after its three words, and the state says that they belong to this rank.
        unsafe {
            let place = self.map.as_mut_ptr().add(FAILURE + 24);
            place.copy_from_nonoverlapping(cause.as_ptr(), length);
        }
        state.store(2, Ordering::Release);
        true
    }

    /// Waits until `ready` returns true.
    fn wait(&self, other: Option<usize>, ready: impl Fn() -> bool) -> Result<()> {
        let check = || {
            self.check()?;
            let gone = other.filter(|&other| self.at(self.seat(other)).load(Ordering::Acquire) != 0);
            // Its data may have arrived just before it left.
            fence(Ordering::Acquire);
            match gone.filter(|_| !ready()) {
                Some(rank) => Err(self.error(rank, "has ended while others need it".into())),
                None => Ok(()),
            }
        };
        self.waiting.until(|| Ok(ready()), check)
    }

    /// Returns an error if a rank has failed, according to this process or the window.
    fn check(&self) -> Result<()> {
        self.fault.check()?;
        if self.at(FAILURE).load(Ordering::Acquire) != 2 {
            return Ok(());
        }
        let rank = self.at(FAILURE + 8).load(Ordering::Relaxed) as usize;
        let length = (self.at(FAILURE + 16).load(Ordering::Relaxed) as usize).min(CAUSE);
        let mut cause = vec![0; length];
        // SAFETY: the header has CAUSE bytes after its three words, and they were written before the state.
        unsafe { cause.as_mut_ptr().copy_from_nonoverlapping(self.map.as_ptr().add(FAILURE + 24), length) };
        Err(self.error(rank, String::from_utf8_lossy(&cause).into_owned()))
    }

    fn error(&self, rank: usize, cause: String) -> Error {
        Error::Rank { rank, ranks: self.ranks, cause }
    }

    fn at(&self, place: usize) -> &AtomicU64 {
        word(&self.map, place)
    }

    fn seat(&self, rank: usize) -> usize {
        HEADER + rank * SEAT
    }

    fn slot(&self, rank: usize, round: u64) -> usize {
        self.seat(rank) + 64 + (round % 2) as usize * SLOT
    }

    fn channel(&self, from: usize, to: usize) -> usize {
        channels(self.ranks) + (from * self.ranks + to) * CHANNEL
    }

    fn chunk(&self, channel: usize, number: u64) -> *mut u8 {
        let place = channel + 128 + (number % 2) as usize * CHUNK;
        assert!(place + CHUNK <= self.map.len(), "a chunk beyond the window");
        // SAFETY: the offset is inside of the map.
        unsafe { self.map.as_mut_ptr().add(place) }
    }
}

/// The offset of the channels, aligned to a page.
fn channels(ranks: usize) -> usize {
    (HEADER + ranks * SEAT).next_multiple_of(HEADER)
}

/// Bytes of a window; pages that no rank touches take no memory.
fn length(ranks: usize) -> usize {
    channels(ranks) + ranks * ranks * CHANNEL
}

/// The word at an offset of the map.
fn word(map: &MmapRaw, place: usize) -> &AtomicU64 {
    assert!(place.is_multiple_of(8) && place + 8 <= map.len(), "no word of the window");
    // SAFETY: the word is inside of the map, which is page-aligned, and it is accessed through atomics only.
    unsafe { AtomicU64::from_ptr(map.as_mut_ptr().add(place).cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::wait::processors;
    use std::thread;

    /// Runs `work` in one thread for each rank, with its window, and collects the results.
    fn together<R: Send>(ranks: usize, work: impl Fn(&mut Window) -> R + Sync) -> Vec<R> {
        let path = Window::create(ranks).unwrap();
        let results = thread::scope(|scope| {
            let threads: Vec<_> = (0..ranks)
                .map(|rank| {
                    let (path, work) = (&path, &work);
                    let waiting = Waiting::among(ranks, processors());
                    let open = move || Window::open(path, [rank, ranks], waiting, Arc::default());
                    scope.spawn(move || work(&mut open().unwrap()))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        std::fs::remove_file(path).unwrap();
        results
    }

    #[test]
    fn sums_come_in_the_order_of_ranks_however_many_there_are() {
        let order = together(3, |window| {
            let mut seen = Vec::new();
            for round in 0..50 {
                let words: Vec<u64> = (0..200).map(|k| 1000 * round + 10 * k + window.rank as u64).collect();
                let wish = window.sums(&words, round == 30 && window.rank == 2, |_, first, of_rank| {
                    seen.push((first, of_rank[0], of_rank.len()));
                });
                assert_eq!(wish.unwrap(), round == 30);
            }
            seen
        });
        assert!(order.iter().all(|seen| *seen == order[0]));
        assert_eq!(order[0][..4], [(0, 0, 78), (0, 1, 78), (0, 2, 78), (78, 780, 78)]);
    }

    #[test]
    fn bytes_arrive_whatever_their_number() {
        let good = together(3, |window| {
            let len = |from: usize, to: usize| (from + 2 * to) * 50_001;
            for turn in 0..4_u8 {
                let of = |from: usize, to: usize| vec![turn + (10 * from + to) as u8; len(from, to)];
                let send: Vec<Vec<u8>> = (0..3).map(|to| of(window.rank, to)).collect();
                let mut receive: Vec<Vec<u8>> = (0..3).map(|from| vec![0; len(from, window.rank)]).collect();
                let send: Vec<&[u8]> = send.iter().map(|bytes| &bytes[..]).collect();
                let mut places: Vec<&mut [u8]> = receive.iter_mut().map(|bytes| &mut bytes[..]).collect();
                // Exchanges that were begun before, by no rank, some ranks or all.
                if turn == 1 || (turn == 2 && window.rank == 1) {
                    window.begin(&send);
                }
                window.exchange(&send, &mut places).unwrap();
                assert!((0..3).all(|from| receive[from] == of(from, window.rank)));
            }
            true
        });
        assert_eq!(good, [true; 3]);
    }

    #[test]
    fn nobody_waits_for_a_rank_that_has_failed_or_gone() {
        let failed = together(2, |window| match window.rank {
            0 => window.sums(&[1], false, |_, _, _| ()).unwrap_err().to_string(),
            _ => window.fail(1, "no more memory").to_string(),
        });
        assert_eq!(failed, ["rank 1 of 2: no more memory", "true"]);
        let gone = together(2, |window| match window.rank {
            0 => window.sums(&[1], false, |_, _, _| ()).unwrap_err().to_string(),
            _ => {
                window.leave();
                String::new()
            }
        });
        assert_eq!(gone[0], "rank 1 of 2: has ended while others need it");
    }
}
