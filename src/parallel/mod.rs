//! Parallel loops on rayon's thread pool.
//!
//! The methods have the names and the meaning of rayon's, but take less time to compile: rayon's machinery (splitting,
//! jobs, latches, panics) is generic and compiled for every loop and type, which was two thirds of this crate's code.
//! Here a loop is one function of a range of indices, and the code that divides such ranges among threads is compiled
//! once. They run on the caller's `team` if it has one, else on any free threads of rayon.
//!
//! Recursive work that divides itself in two uses `join`.
//!
//! The result of a loop never depends on how it is divided: items are independent, and `reduce` is for exact
//! operations.

/// The traits that a loop needs in scope.
pub(crate) mod prelude {
    pub(crate) use super::pieces::Sliced as _;
    pub(crate) use super::{IntoPieces as _, Pieces as _};
}

mod both;
mod pieces;
pub(crate) mod rows;
mod team;
mod vectors;

use crate::lock::lock;
use crate::work;
pub(crate) use both::both;
use pieces::Numbers;
use pieces::Sliced as _;
use pieces::{AtLeast, Zip};
pub(crate) use pieces::{Chunks, ChunksMut, Cut};
use std::ops::{Add, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use team::gather;
pub(crate) use vectors::{Inlined, vectorised, vectorised_whole};

/// Runs both closures, in parallel if another thread is free. If this is part of a setup, both check for its stop
/// request.
pub(crate) fn join<A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match work::asker_of_loops() {
        None => {
            let home = work::home();
            rayon::join(|| work::of_thread(home, first), || work::of_thread(home, second))
        }
        Some(asker) => rayon::join(|| asker.lend(first), || asker.lend(second)),
    }
}

/// Runs `body` on a thread of the pool, so that the loops in `body` start there, and the caller need not submit each
/// one. That thread may have stolen `body` while it waited in another solve; the stop of that solve does not affect
/// `body`.
pub(crate) fn in_pool<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    let home = work::home();
    rayon::scope(|_| work::of_thread(home, body))
}

/// Runs `own` on this thread, and `others` on another one at the same time, or on this one if there is no other. Unlike
/// [`join`] it never moves `own` to another thread, so `own` may be work for a device.
pub(crate) fn beside<A: Send, R>(others: impl FnOnce() -> A + Send, own: impl FnOnce() -> R) -> (A, R) {
    let (mut of_others, mut of_own) = (None, None);
    let (mut others, mut own) = (Some(others), Some(own));
    both_beside(&mut || of_others = others.take().map(|others| others()), &mut || {
        of_own = own.take().map(|own| own());
    });
    let done = "a scope ends when all that it was given is done";
    (of_others.expect(done), of_own.expect(done))
}

/// The body of [`beside`], which is compiled once.
fn both_beside(others: &mut (dyn FnMut() + Send), own: &mut dyn FnMut()) {
    rayon::in_place_scope(|scope| {
        let home = work::home();
        scope.spawn(move |_| work::of_thread(home, others));
        own();
    });
}

/// Parts of a loop for each thread, if there are enough items: threads that finish early take over parts of others.
const PARTS_A_THREAD: usize = 16;

/// The minimum number of parts of a loop in a setup that may be stopped, since stop requests are checked between parts.
const PARTS_THAT_LOOK: usize = 64;

/// The minimum number of tasks for a matrix that is not small.
const TASKS: usize = 32;

/// The maximum number of threads per processor that a user may request, and the number that is always allowed: tests
/// use more threads than processors.
const MOST_A_PROCESSOR: usize = 4;
const MOST_ANYWHERE: usize = 64;

/// The maximum number of threads that are started, whatever the environment requests.
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "only the command starts threads by itself"))]
pub(crate) fn most_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (MOST_A_PROCESSOR * processors).max(MOST_ANYWHERE)
}

/// Returns whether the caller has a team: then loops of a few microseconds are worth dividing.
pub(crate) fn in_team() -> bool {
    team::threads() > 1
}

/// The work of one task for a total of `all`, between `least` (the smallest useful in a team) and `most` (suited to
/// large matrices), such that there are enough tasks to divide small ones evenly. It depends only on the matrix.
pub(crate) fn task_of(all: usize, least: usize, most: usize) -> usize {
    (all / TASKS).clamp(least, most)
}

/// The number of tasks of a few microseconds that are worth a thread: one in a team, else at least `at_once`.
pub(crate) fn worth_a_thread(at_once: usize) -> usize {
    if in_team() { 1 } else { at_once }
}

/// The results of `f` for subranges of `length` numbers, in their order.
pub(crate) fn of_stretches<R: Send>(
    range: &Range<usize>,
    length: usize,
    f: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let stretch = |k: usize| f(range.start + k * length..(range.start + (k + 1) * length).min(range.end));
    (0..range.len().div_ceil(length)).into_par_iter().map(stretch).collect()
}

/// Runs `body` for the numbers below `parts`, divided among threads. If a stop of the setup is requested, no further
/// part begins and the stack is unwound, so that incomplete results are never used.
fn shared(parts: usize, body: &(dyn Fn(usize) + Sync)) {
    let Some(asker) = work::asker_of_loops() else {
        let home = work::home();
        return on_threads(parts, &|part| work::of_thread(home, || body(part)));
    };
    let stopped = AtomicBool::new(false);
    on_threads(parts, &|part| {
        if stopped.load(Ordering::Relaxed) || asker.is_due() {
            stopped.store(true, Ordering::Relaxed);
        } else {
            asker.lend(|| body(part));
        }
    });
    if stopped.into_inner() {
        asker.unwind();
    }
}

fn on_threads(parts: usize, body: &(dyn Fn(usize) + Sync)) {
    if !team::run(parts, body) {
        halves(0..parts, body);
    }
}

/// [`shared`] on rayon's threads.
fn halves(parts: Range<usize>, body: &(dyn Fn(usize) + Sync)) {
    if parts.len() <= 1 {
        parts.for_each(body);
        return;
    }
    let middle = parts.start + parts.len() / 2;
    rayon::join(|| halves(parts.start..middle, body), || halves(middle..parts.end, body));
}

/// Items that are accessed by their index, in any order and from any thread.
///
/// The body of a loop is compiled into one function of a range of indices, which everything below calls through a
/// pointer: dividing, waiting and collecting are compiled once, and not for each loop.
///
/// # Safety
/// Items of different indices share no memory that is written.
pub(crate) unsafe trait Pieces: Sized + Sync {
    /// The type that the body of a loop gets.
    type Item;

    fn len(&self) -> usize;

    /// The item with this index.
    ///
    /// # Safety
    /// The index is below [`Pieces::len`], and no item is requested twice.
    unsafe fn item(&self, number: usize) -> Self::Item;

    /// The minimum number of items for which another thread pays off.
    fn least(&self) -> usize {
        1
    }

    /// Pairs of items, up to the length of the shorter one.
    fn zip<P: IntoPieces>(self, other: P) -> Zip<Self, P::Pieces> {
        Zip(self, other.into_par_iter())
    }

    /// The items with their indices.
    fn enumerate(self) -> Zip<Numbers, Self> {
        Zip(Numbers(0..self.len()), self)
    }

    /// No thread gets fewer than `least` items, unless there are no more.
    fn with_min_len(self, least: usize) -> AtLeast<Self> {
        AtLeast { pieces: self, least }
    }

    fn map<R, F: Fn(Self::Item) -> R + Sync>(self, function: F) -> Mapped<Self, F> {
        Mapped { pieces: self, function }
    }

    fn for_each(self, body: impl Fn(Self::Item) + Sync) {
        let (n, least) = (self.len(), self.least());
        // Moved into the loop, so that the compiler knows that nothing modifies the data that they refer to.
        in_parts(n, least, &move |numbers| {
            for number in numbers {
                // SAFETY: `in_parts` passes each number below `n` once.
                body(unsafe { self.item(number) });
            }
        });
    }

    /// Returns whether `good` holds for all items; stops early if it does not.
    fn all(self, good: impl Fn(Self::Item) -> bool + Sync) -> bool {
        let all = AtomicBool::new(true);
        self.for_each(|item| {
            if all.load(Ordering::Relaxed) && !good(item) {
                all.store(false, Ordering::Relaxed);
            }
        });
        all.into_inner()
    }

    /// The sum of `term` over at most `MOST` items, in order, however the loop is divided. It allocates nothing.
    fn sum<const MOST: usize, S: Copy + Default + Send + Add<Output = S>>(
        self,
        term: impl Fn(Self::Item) -> S + Sync,
    ) -> S {
        let (n, least) = (self.len(), self.least());
        // SAFETY: `sum_of_terms` passes each number below `n` once.
        sum_of_terms::<MOST, S>(n, least, &move |number| term(unsafe { self.item(number) }))
    }
}

/// Types that can be converted to [`Pieces`].
pub(crate) trait IntoPieces {
    type Pieces: Pieces;

    fn into_par_iter(self) -> Self::Pieces;
}

/// The number of parts into which `n` items are divided; one if dividing does not pay off.
pub(crate) fn parts(n: usize, least: usize) -> usize {
    let least = least.max(1);
    if n / 2 < least {
        return 1;
    }
    let parts = n / least;
    match (team::threads(), rayon::current_num_threads()) {
        (1, threads) if crate::work::loops_look() => parts.min(PARTS_THAT_LOOK.max(PARTS_A_THREAD * threads)),
        (1, 1) => 1,
        (1, threads) => parts.min(PARTS_A_THREAD * threads),
        // The same number for each thread, since parts are assigned in advance.
        (threads, _) if parts > threads => (parts / threads).min(PARTS_A_THREAD) * threads,
        _ => parts,
    }
}

/// The indices below `n` in one of `parts` parts.
fn part_of(n: usize, part: usize, parts: usize) -> Range<usize> {
    part * n / parts..(part + 1) * n / parts
}

/// Runs `body` on ranges that contain each index below `n` once.
fn in_parts(n: usize, least: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    match parts(n, least) {
        1 => body(0..n),
        parts => shared(parts, &|part| body(part_of(n, part, parts))),
    }
}

/// The results for ranges that contain each index below `n` once, in order.
fn of_parts<R: Send>(n: usize, least: usize, results: &(dyn Fn(Range<usize>) -> Vec<R> + Sync)) -> Vec<R> {
    let parts = parts(n, least);
    if parts == 1 {
        // Only the result is allocated: the loops of a solver's iteration use this.
        return results(0..n);
    }
    let mut slots = Vec::new();
    slots.resize_with(parts, || Mutex::new(Vec::new()));
    shared(parts, &|part| {
        let own = results(part_of(n, part, parts));
        *lock(&slots[part]) = own;
    });
    let mut all = Vec::with_capacity(n);
    for slot in &slots {
        all.append(&mut lock(slot));
    }
    all
}

/// The body of [`Pieces::sum`].
fn sum_of_terms<const MOST: usize, S: Copy + Default + Send + Add<Output = S>>(
    n: usize,
    least: usize,
    term: &(dyn Fn(usize) -> S + Sync),
) -> S {
    let mut sum = S::default();
    if parts(n, least) == 1 {
        for number in 0..n {
            sum = sum + term(number);
        }
        return sum;
    }
    let mut terms = [S::default(); MOST];
    let terms = &mut terms[..n];
    terms.par_iter_mut().enumerate().with_min_len(least).for_each(|(number, place)| *place = term(number));
    for &mut term in terms {
        sum = sum + term;
    }
    sum
}

/// A function applied to items.
pub(crate) struct Mapped<P, F> {
    pieces: P,
    function: F,
}

impl<P: Pieces, R: Send, F: Fn(P::Item) -> R + Sync> Mapped<P, F> {
    /// All results, in order. For tasks, whose number is small; results for many items are written in place.
    pub(crate) fn collect(self) -> Vec<R> {
        let Self { pieces, function } = self;
        let (n, least) = (pieces.len(), pieces.least());
        of_parts(n, least, &move |numbers| {
            let mut results = Vec::with_capacity(numbers.len());
            for number in numbers {
                // SAFETY: `of_parts` passes each number below `n` once.
                results.push(function(unsafe { pieces.item(number) }));
            }
            results
        })
    }

    /// Combines all results. `combine` must be exactly associative, because the division depends on the number of
    /// threads.
    pub(crate) fn reduce(self, identity: impl Fn() -> R, combine: impl Fn(R, R) -> R + Sync) -> R {
        let Self { pieces, function } = self;
        let (n, least) = (pieces.len(), pieces.least());
        let fold = |numbers: Range<usize>| {
            let mut all = None;
            for number in numbers {
                // SAFETY: each number below `n` is passed once, by `of_parts` or by the one range of all.
                let result = function(unsafe { pieces.item(number) });
                all = Some(match all {
                    Some(all) => combine(all, result),
                    None => result,
                });
            }
            all
        };
        // With one thread nothing is allocated: updates of a diagonal use this.
        let all = match parts(n, least) {
            1 => fold(0..n),
            _ => of_parts(n, least, &|numbers| Vec::from_iter(fold(numbers))).into_iter().reduce(&combine),
        };
        all.unwrap_or_else(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 9] = [0, 1, 2, 3, 31, 64, 65, 1000, 4099];

    #[test]
    fn every_item_is_met_once() {
        for n in SIZES {
            for (chunk, least) in [(1, 1), (7, 1), (3, 100), (5000, 1), (2, usize::MAX)] {
                let mut out = vec![0; n];
                let x: Vec<usize> = (10..10 + n).collect();
                let pieces = out.par_chunks_mut(chunk).zip(x.par_chunks(chunk)).enumerate();
                pieces.with_min_len(least).for_each(|(k, (out, x))| {
                    out.iter_mut().zip(x).for_each(|(out, x)| *out += x * 10 + k % 10);
                });
                assert!(
                    out.iter().enumerate().all(|(i, &v)| v == (10 + i) * 10 + i / chunk % 10),
                    "{n} {chunk}"
                );
            }
        }
    }

    /// All threads of the pool wait in the middle of a setup that is stopped, and one of them takes on other work.
    #[test]
    fn work_that_moves_into_the_pool_is_not_ended_by_the_stop_of_another() {
        use std::sync::Arc;
        use std::sync::atomic::AtomicUsize;
        let (waiting, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let threads = rayon::current_num_threads();
        for _ in 0..threads {
            let (waiting, done) = (Arc::clone(&waiting), Arc::clone(&done));
            rayon::spawn(move || {
                let stopped = work::Work::default();
                let ended: crate::Result<()> = stopped.set_up(|| {
                    stopped.stop();
                    waiting.fetch_add(1, Ordering::SeqCst);
                    while !done.load(Ordering::SeqCst) {
                        rayon::yield_now();
                    }
                    Ok(())
                });
                assert!(ended.is_ok());
            });
        }
        // One of the tasks may run inside of another one that waits; so all begin.
        while waiting.load(Ordering::SeqCst) < threads {
            std::thread::yield_now();
        }
        let is_asked = in_pool(work::is_asked);
        done.store(true, Ordering::SeqCst);
        assert!(!is_asked);
    }

    #[test]
    fn results_keep_their_order() {
        for n in SIZES {
            let expected: Vec<usize> = (0..n).map(|i| i * i).collect();
            assert_eq!((0..n).into_par_iter().map(|i| i * i).collect(), expected);
            let items: Vec<usize> = (0..n).collect();
            assert_eq!(items.into_par_iter().map(|i| i * i).collect(), expected);
            let text = |i: usize| vec![i];
            let all = (0..n).into_par_iter().map(text).reduce(Vec::new, |a, b| [a, b].concat());
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_bad_item_is_found() {
        for n in SIZES {
            assert!((0..n).into_par_iter().all(|i| i < n));
            for bad in [0, n / 2, n.saturating_sub(1)] {
                assert_eq!((0..n).into_par_iter().all(|i| i != bad), n == 0);
            }
        }
    }

    #[test]
    fn the_shorter_of_two_decides() {
        let (long, short) = (vec![1; 100], vec![2; 7]);
        assert_eq!(long.par_iter().zip(&short).map(|(a, b)| a + b).collect(), [3; 7]);
        assert_eq!(short.into_par_iter().zip(long).map(|(a, b)| a + b).collect(), [3; 7]);
    }
}
