//! A team of threads that poll for the next loop instead of sleeping.
//!
//! Waking sleeping threads for a loop takes 10 to 50 microseconds, as long as a whole iteration on 10^4 unknowns.
//! Therefore a caller of many short loops (the replay of a recording) first gathers a team: threads of rayon's pool
//! that poll for the caller's next loop, and return to the pool if none has come for [`LINGER`]. Beginning and ending a
//! loop then costs a few hundred nanoseconds.
//!
//! ```text
//! caller    job = parts, body | state = open | its share, then what others have left | state = closed | wait for count
//! 0 helper    until state is open: look again  | count += 1, its share, others', count -= 1
//! ```
//!
//! Each thread begins with its own share, the same in every loop, so that the data of an iteration stays in its cache.
//! Parts are claimed one by one, so that a thread that is not scheduled delays only the part that it is working on. A
//! helper that comes too late finds nothing left to claim, and the caller never waits for it.
//!
//! Every thread that calls loops has its own team, with threads of the pool that it belongs to.

use crate::lock::lock;
use std::any::Any;
use std::cell::{Cell, OnceCell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// A helper polls for a loop for this long before it returns to the pool.
const LINGER: Duration = Duration::from_micros(50);

/// It polls for this long before it yields to other threads of the machine.
const EAGER: Duration = Duration::from_micros(5);

/// The maximum time that a helper stays, so that other users of the pool can run; the caller then asks for another one.
const STAY: Duration = Duration::from_millis(2);

/// Polls between two readings of the clock.
const LOOKS: u32 = 32;

/// Polls of the helpers' count before the caller yields: there may be more threads than processors.
const PATIENCE: u32 = 1 << 10;

/// Repeated work that takes this long is worth a helper: asking for one takes several microseconds, and it arrives
/// after ten times that.
const WORTH: Duration = Duration::from_micros(7);

/// The maximum number of threads in a team.
const MOST: usize = 256;

/// Bits of the state: the number of helpers in the loop, whether it is open, the number of threads that have a share of
/// it, and the loop's number.
const OPEN: u64 = 1 << 16;
const COUNT: u64 = OPEN - 1;
const SHARES: u32 = 17;
const NUMBER: u32 = 32;

/// Padded, so that it has its cache lines to itself.
#[repr(align(128))]
struct Line<T>(T);

/// The data of one thread of the team.
struct Place {
    /// The loop's number, and in the lower 16 bits the number of claimed parts of this thread's share.
    claimed: AtomicU64,
    occupied: AtomicBool,
}

/// A loop. Its lifetime is that of the arguments of [`Team::run`], which returns when the last helper has left.
#[derive(Clone, Copy)]
struct Job {
    body: *const (dyn Fn(usize) + Sync),
    parts: usize,
    shares: usize,
    number: u64,
}

/// The data that helpers poll: one cache line, so that a helper that sees an open loop has the job too.
#[repr(align(64))]
struct Board {
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
}

/// A caller's thread and its helpers, with the board on which loops are posted.
struct Team {
    board: Line<Board>,
    places: Vec<Line<Place>>,
    /// Helpers that were requested and have not left yet.
    asked: AtomicUsize,
    owner: ThreadId,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: every field except `job` is made for sharing. Only the owner writes `job`, and only while no helper is in a
// loop (the count is 0 and the loop is closed). Helpers read it after they have entered an open loop and before they
// leave it, see `Team::enter`. The target of its pointer is `Sync`.
unsafe impl Send for Team {}
// SAFETY: as above.
unsafe impl Sync for Team {}

/// A thread's own team, and its state.
struct Caller {
    team: Arc<Team>,
    /// Loops so far.
    number: Cell<u64>,
    /// Whether a loop is running: loops inside of it have no team.
    busy: Cell<bool>,
}

thread_local! {
    /// None until the thread gathers a team.
    static CALLER: OnceCell<Caller> = const { OnceCell::new() };
}

/// The processors that this process may use; with more threads than that, threads would wait for each other.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from).min(MOST))
}

/// Requests the number of helpers that is worth it for work that will be repeated; `work` is the time of one iteration.
pub(crate) fn gather(work: Duration) {
    if work >= WORTH {
        let worth = usize::try_from(work.as_nanos() / WORTH.as_nanos()).unwrap_or(MOST);
        gather_threads(rayon::current_num_threads().min(processors()).min(worth.saturating_add(1)));
    }
}

/// Requests helpers until the team has this many threads.
fn gather_threads(threads: usize) {
    // A thread that is about to end gathers no team.
    let _ = CALLER.try_with(|caller| {
        let team = &caller.get_or_init(Caller::new).team;
        let helpers = threads.min(team.places.len()).saturating_sub(1);
        while team.asked.load(Ordering::Relaxed) < helpers {
            team.asked.fetch_add(1, Ordering::Relaxed);
            let team = Arc::clone(team);
            rayon::spawn(move || {
                team.help();
                team.asked.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

/// The number of threads in the caller's team; one if it has none at the moment.
pub(super) fn threads() -> usize {
    CALLER.try_with(|caller| caller.get().map_or(1, Caller::threads)).unwrap_or(1)
}

/// Runs `body` for the numbers below `parts` with the team. Returns whether there is one.
pub(super) fn run(parts: usize, body: &(dyn Fn(usize) + Sync)) -> bool {
    let done = CALLER.try_with(|caller| caller.get().and_then(|caller| caller.run(parts, body)));
    match done.ok().flatten() {
        Some(Err(panic)) => resume_unwind(panic),
        done => done.is_some(),
    }
}

impl Caller {
    fn new() -> Self {
        let place = || Line(Place { claimed: AtomicU64::new(0), occupied: AtomicBool::new(false) });
        let team = Team {
            board: Line(Board { state: AtomicU64::new(0), job: UnsafeCell::new(None) }),
            // Tests gather more threads than there are processors.
            places: (0..processors().max(8)).map(|_| place()).collect(),
            asked: AtomicUsize::new(0),
            owner: thread::current().id(),
            panic: Mutex::new(None),
        };
        Self { team: Arc::new(team), number: Cell::new(0), busy: Cell::new(false) }
    }

    fn threads(&self) -> usize {
        let threads = 1 + self.team.asked.load(Ordering::Relaxed);
        if self.busy.get() { 1 } else { threads.min(self.team.places.len()) }
    }

    /// Runs the loop with a team; `None` if there is no team for it.
    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) -> Option<thread::Result<()>> {
        let threads = self.threads();
        if threads == 1 || parts > COUNT as usize {
            return None;
        }
        self.busy.set(true);
        self.number.set(self.number.get() + 1);
        let done = self.team.run(parts, threads.min(parts), self.number.get(), body);
        self.busy.set(false);
        Some(done)
    }
}

impl Team {
    /// The owner's part of a loop.
    fn run(
        &self,
        parts: usize,
        shares: usize,
        number: u64,
        body: &(dyn Fn(usize) + Sync),
    ) -> thread::Result<()> {
        let body: *const (dyn Fn(usize) + Sync + '_) = body;
        // SAFETY: the two types differ only in the lifetime, and this function returns after the last use of the
        // pointer.
        let body: *const (dyn Fn(usize) + Sync + 'static) = unsafe { std::mem::transmute(body) };
        let job = Job { body, parts, shares, number };
        // SAFETY: the previous loop is closed and no helper is in it, so no thread reads the job.
        unsafe { *self.board.0.job.get() = Some(job) };
        // The count is kept: a helper may be entering at this moment.
        let upper = (number << NUMBER) | ((shares as u64) << SHARES) | OPEN;
        let old = self.board.0.state.load(Ordering::Relaxed) & !COUNT;
        self.board.0.state.fetch_add(upper.wrapping_sub(old), Ordering::Release);
        let mine = catch_unwind(AssertUnwindSafe(|| self.work(job, 0)));
        if mine.is_err() {
            self.claim_all(job);
        }
        self.board.0.state.fetch_sub(OPEN, Ordering::Relaxed);
        let mut looks = 0;
        while self.board.0.state.load(Ordering::Acquire) & COUNT != 0 {
            looks += 1;
            if looks < PATIENCE { std::hint::spin_loop() } else { thread::yield_now() }
        }
        match lock(&self.panic).take() {
            Some(panic) => mine.and(Err(panic)),
            None => mine,
        }
    }

    /// Polls for loops and takes part in them, until it is time to return to the pool.
    fn help(&self) {
        // A caller that waits inside of a loop may execute its own request.
        if thread::current().id() == self.owner {
            return;
        }
        let free = |place: &Line<Place>| !place.0.occupied.swap(true, Ordering::Acquire);
        let Some(place) = (1..self.places.len()).find(|&place| free(&self.places[place])) else { return };
        let arrived = Instant::now();
        let (mut since, mut seen, mut looks) = (arrived, None, 0);
        loop {
            if let Some(number) = self.enter(place, seen) {
                (since, seen, looks) = (Instant::now(), Some(number), 0);
                if since - arrived > STAY {
                    break;
                }
            }
            looks += 1;
            if looks % LOOKS == 0 {
                let waited = since.elapsed();
                if waited > LINGER {
                    break;
                } else if waited > EAGER {
                    thread::yield_now();
                }
            }
            std::hint::spin_loop();
        }
        self.places[place].0.occupied.store(false, Ordering::Release);
    }

    /// Takes part in the open loop, unless there is none or it is `seen`, the last one. Returns the loop's number.
    fn enter(&self, place: usize, seen: Option<u64>) -> Option<u64> {
        let has_share = |state: u64| {
            state & OPEN != 0
                && place < ((state >> SHARES) as usize & 0x7fff)
                && Some(state >> NUMBER) != seen
        };
        if !has_share(self.board.0.state.load(Ordering::Relaxed)) {
            return None;
        }
        let state = self.board.0.state.fetch_add(1, Ordering::Acquire);
        let number = has_share(state).then_some(state >> NUMBER);
        if number.is_some() {
            // SAFETY: the loop was open when this thread was counted in. The owner has therefore written the job
            // before, and does not write it again until this thread is counted out.
            let job = unsafe { *self.board.0.job.get() };
            let worked =
                catch_unwind(AssertUnwindSafe(|| job.into_iter().for_each(|job| self.work(job, place))));
            if let Err(panic) = worked {
                lock(&self.panic).get_or_insert(panic);
            }
        }
        self.board.0.state.fetch_sub(1, Ordering::Release);
        number
    }

    /// Runs the remaining parts of this thread's share, then those of others.
    fn work(&self, job: Job, place: usize) {
        // SAFETY: `Team::run`, which owns the body, waits until all helpers have left.
        let body = unsafe { &*job.body };
        for share in (place..job.shares).chain(0..place) {
            while let Some(part) = self.claim(job, share) {
                body(part);
            }
        }
    }

    /// Claims the next part of a share.
    fn claim(&self, job: Job, share: usize) -> Option<usize> {
        let Range { start, end } = share * job.parts / job.shares..(share + 1) * job.parts / job.shares;
        let claimed = &self.places[share].0.claimed;
        let none = job.number << 16;
        let mut seen = claimed.load(Ordering::Relaxed);
        loop {
            // A count from another loop is ignored.
            let next = if seen >> 16 == none >> 16 { seen } else { none };
            let part = start + (next & COUNT) as usize;
            if part >= end {
                return None;
            }
            match claimed.compare_exchange_weak(seen, next + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(part),
                Err(other) => seen = other,
            }
        }
    }

    /// After a panic: no further part is begun.
    fn claim_all(&self, job: Job) {
        for share in 0..job.shares {
            while self.claim(job, share).is_some() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared;
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Runs a loop with a team of this many threads, and counts how often each part was run.
    fn met(threads: usize, parts: usize, body: impl Fn(usize) + Sync) -> Vec<u32> {
        let counts: Vec<AtomicU32> = (0..parts).map(|_| AtomicU32::new(0)).collect();
        gather_threads(threads);
        shared(parts, &|part| {
            counts[part].fetch_add(1, Ordering::Relaxed);
            body(part);
        });
        counts.into_iter().map(AtomicU32::into_inner).collect()
    }

    fn in_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    }

    #[test]
    fn every_part_is_met_once() {
        // Far more threads than most machines have processors, in a pool and outside of one.
        let many = || {
            for round in 0..2000 {
                let parts = round % 37;
                let counts = met(8, parts, |_| {});
                assert_eq!(counts, vec![1; parts], "{round}");
            }
        };
        in_pool(9, many);
        many();
    }

    #[test]
    fn helpers_help_and_go() {
        in_pool(4, || {
            let caller = thread::current().id();
            let others = AtomicU32::new(0);
            let start = Instant::now();
            while others.load(Ordering::Relaxed) == 0 && start.elapsed() < Duration::from_secs(20) {
                met(4, 16, |_| {
                    others.fetch_add(u32::from(thread::current().id() != caller), Ordering::Relaxed);
                    thread::sleep(Duration::from_micros(20));
                });
            }
            assert!(others.into_inner() > 0, "no helper came");
            while threads() > 1 && start.elapsed() < Duration::from_secs(20) {
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(threads(), 1, "a helper stayed");
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        in_pool(4, || {
            for bad in 0..50 {
                let loop_with_panic = || met(4, 50, |part| assert!(part != bad, "part {part}"));
                let panic = catch_unwind(AssertUnwindSafe(loop_with_panic)).unwrap_err();
                let message = panic.downcast_ref::<String>().expect("a message");
                assert!(message.contains(&format!("part {bad}")), "{message}");
                assert_eq!(met(4, 20, |_| {}), [1; 20]);
            }
        });
    }

    #[test]
    fn a_loop_inside_of_a_loop_has_no_team() {
        in_pool(4, || {
            let inner = AtomicU32::new(0);
            for _ in 0..100 {
                met(4, 8, |_| {
                    // A helper's thread may have its own team.
                    let met = met(3, 5, |_| {});
                    inner.fetch_add(met.iter().sum::<u32>(), Ordering::Relaxed);
                });
            }
            assert_eq!(inner.into_inner(), 100 * 8 * 5);
        });
    }

    #[test]
    fn several_callers_at_once() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| assert_eq!(met(3, 12, |_| {}), [1; 12])));
            }
        });
    }
}
