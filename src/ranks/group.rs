//! The ranks that work together, as one of them sees them.

use super::fault::Fault;
use super::launch::ENVIRONMENT;
use super::member::Member;
use super::message::Message;
use super::wait::{Waiting, processors};
use super::window::Window;
use crate::backend::{Communicator, ExchangePlan, Host};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scalar::{Element, Scalar};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// One of several processes that work on the same system. Handles are cheap to clone.
///
/// ```no_run
/// use residua::prelude::*;
/// use residua::ranks::Group;
/// let group = Group::from_environment()?.expect("started by `ranks::launch` or by mpirun");
/// let a = residua::generate::poisson2d(100, 100)?;
/// let mut solver = Solver::builder().build_spread(&Host, group.clone(), &a)?;
/// let b = solver.own_part(&[1.0; 10_000]);
/// let mut x = vec![0.0; b.len()];
/// let report = solver.solve_into(&b, &mut x)?;
/// if let Some(whole) = solver.whole(&x)? {
///     println!("rank 0 has all {} entries of x: {}", whole.len(), report.outcome);
/// }
/// group.leave(0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Group(Arc<Inner>);

struct Inner {
    rank: usize,
    ranks: usize,
    window: Mutex<Window>,
    member: Member,
    fault: Arc<Fault>,
    /// Whether this rank wishes to stop, and whether any did in the last sum.
    wish: AtomicBool,
    agreed: AtomicBool,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.ranks())
    }
}

impl Group {
    /// The group that this process was started in, by [`launch`](super::launch()); none where it was started alone. To be called once.
    ///
    /// # Errors
    /// Where the others can't be reached or a rank has failed.
    pub fn from_environment() -> Result<Option<Self>> {
        let Ok(told) = std::env::var(ENVIRONMENT) else { return Ok(None) };
        let mut parts = told.splitn(3, '/');
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<usize>().ok());
        let (rank, ranks) = (number(parts.next()), number(parts.next()));
        let (Some(rank), Some(ranks), Some(socket)) = (rank, ranks, parts.next()) else {
            return Err(Error::InvalidArgument(format!("{ENVIRONMENT}={told}: not rank/ranks/socket")));
        };
        Self::of_starter(Path::new(socket), rank, ranks).map(Some)
    }

    fn of_starter(socket: &Path, rank: usize, ranks: usize) -> Result<Self> {
        let fault = Arc::new(Fault::default());
        let waiting = Waiting::among(ranks, processors());
        let (stream, window) = Member::begin(socket, rank, ranks)?;
        let window = Window::open(Path::new(&window), [rank, ranks], waiting, Arc::clone(&fault))?;
        let member = Member::listen(stream, ranks, &fault)?;
        let (wish, agreed) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self(Arc::new(Inner { rank, ranks, window: Mutex::new(window), member, fault, wish, agreed })))
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.0.ranks
    }

    /// How the ranks reach each other, in words.
    pub fn description(&self) -> String {
        format!("{} processes of this machine, shared memory", self.ranks())
    }

    /// Sends bytes to each rank and receives those of each.
    ///
    /// # Errors
    /// [`Error::Rank`] where a rank has failed.
    pub fn deliver(&self, to_each: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        Error::check_dimension("messages, one for each rank", self.ranks(), to_each.len())?;
        let lengths: Vec<[u8; 8]> = to_each.iter().map(|bytes| (bytes.len() as u64).to_le_bytes()).collect();
        let mut expected = vec![[0; 8]; self.ranks()];
        let send: Vec<&[u8]> = lengths.iter().map(|length| &length[..]).collect();
        let mut receive: Vec<&mut [u8]> = expected.iter_mut().map(|length| &mut length[..]).collect();
        self.move_bytes(&send, &mut receive)?;
        let mut from_each: Vec<Vec<u8>> =
            expected.iter().map(|length| vec![0; u64::from_le_bytes(*length) as usize]).collect();
        let send: Vec<&[u8]> = to_each.iter().map(|bytes| &bytes[..]).collect();
        let mut receive: Vec<&mut [u8]> = from_each.iter_mut().map(|bytes| &mut bytes[..]).collect();
        self.move_bytes(&send, &mut receive)?;
        Ok(from_each)
    }

    /// What each rank has brought, to all.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.deliver(&vec![own.to_vec(); self.ranks()])
    }

    /// What each rank has brought, to rank 0.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn gather(&self, own: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let mut to_each = vec![Vec::new(); self.ranks()];
        to_each[0] = own.to_vec();
        let from_each = self.deliver(&to_each)?;
        Ok((self.rank() == 0).then_some(from_each))
    }

    /// What rank 0 has for each; the others' wish is of no account.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn scatter(&self, to_each: &[Vec<u8>]) -> Result<Vec<u8>> {
        let nothing = vec![Vec::new(); self.ranks()];
        let mut from_each = self.deliver(if self.rank() == 0 { to_each } else { &nothing })?;
        Ok(from_each.swap_remove(0))
    }

    /// What rank 0 says, to all.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn broadcast(&self, own: &[u8]) -> Result<Vec<u8>> {
        self.scatter(&vec![own.to_vec(); self.ranks()])
    }

    /// Makes sure that all ranks have the same bytes.
    ///
    /// # Errors
    /// [`Error::Rank`] on all of them with the first rank whose `what` is another than that of rank 0, and as
    /// [`Group::deliver`].
    pub fn agree_on(&self, what: &str, bytes: &[u8]) -> Result<()> {
        let all = self.all_gather(bytes)?;
        match all.iter().position(|other| *other != all[0]) {
            None => Ok(()),
            Some(rank) => {
                let cause = format!("has another {what} than rank 0");
                Err(Error::Rank { rank, ranks: self.ranks(), cause })
            }
        }
    }

    /// Whether the user wishes the work to stop, as the process that started the ranks has heard.
    pub fn interrupted(&self) -> bool {
        self.0.member.interrupted()
    }

    /// This rank has done its work, with a status for whoever started it. No rank may need it from here on.
    pub fn leave(&self, status: u8) {
        lock(&self.0.window).leave();
        self.0.member.tell(&Message::Bye(status));
    }

    /// This rank can't go on: all others end with an error that names it and the cause. An error that names a rank
    /// ([`Error::Rank`]) is told as that rank's.
    pub fn fail(&self, error: &Error) {
        let (rank, cause) = match error {
            Error::Rank { rank, cause, .. } => (*rank, cause.clone()),
            other => (self.rank(), other.to_string()),
        };
        lock(&self.0.window).fail(rank, &cause);
        self.0.fault.set(rank, self.ranks(), &cause);
        self.0.member.tell(&Message::Fault(rank, cause));
    }

    fn move_bytes(&self, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<()> {
        lock(&self.0.window).exchange(send, receive)
    }
}

/// The bytes of numbers.
fn bytes<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: an element is plain bits without padding, a float or an integer or two floats, and bytes need no
    // alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of numbers, to be written.
fn bytes_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes`, and any bits of the right length are a valid element.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Cuts a slice into pieces of so many elements each.
fn pieces<'a, T>(mut values: &'a [T], counts: &[usize]) -> Vec<&'a [T]> {
    let mut next = |&count: &usize| values.split_off(..count).unwrap_or_default();
    counts.iter().map(&mut next).collect()
}

/// The same, to be written.
fn pieces_mut<'a, T>(mut values: &'a mut [T], counts: &[usize]) -> Vec<&'a mut [T]> {
    let mut next = |&count: &usize| values.split_off_mut(..count).unwrap_or_default();
    counts.iter().map(&mut next).collect()
}

impl Communicator<Host> for Group {
    const ALONE: bool = false;

    fn part(&self) -> usize {
        self.rank()
    }

    fn parts(&self) -> usize {
        self.ranks()
    }

    fn all_sum<T: Scalar>(&self, _backend: &Host, sums: &mut [T]) -> Result<()> {
        let width = if T::COMPLEX { 2 } else { 1 };
        let words: Vec<u64> = sums.iter().flat_map(|sum| sum.bits().into_iter().take(width)).collect();
        let wish = self.0.wish.load(Ordering::Relaxed);
        let add = |rank: usize, first: usize, words: &[u64]| {
            let places = sums[first / width..].iter_mut();
            for (sum, words) in places.zip(words.chunks_exact(width)) {
                let value = T::from_bits([words[0], words.get(1).copied().unwrap_or(0)]);
                *sum = if rank == 0 { value } else { *sum + value };
            }
        };
        let agreed = lock(&self.0.window).sums(&words, wish, add)?;
        self.0.agreed.store(agreed, Ordering::Relaxed);
        Ok(())
    }

    fn exchange<T: Scalar>(
        &self,
        _backend: &Host,
        plan: &ExchangePlan,
        send: &[T],
        halo: &mut [T],
    ) -> Result<()> {
        plan.check(self.ranks(), send.len(), halo.len())?;
        let send: Vec<&[u8]> = pieces(send, &plan.send).into_iter().map(bytes).collect();
        let mut receive: Vec<&mut [u8]> =
            pieces_mut(halo, &plan.receive).into_iter().map(bytes_mut).collect();
        self.move_bytes(&send, &mut receive)
    }

    /// The wish travels with the sums, so that it costs nothing.
    fn agree(&self, stop: bool) -> Result<bool> {
        if stop {
            self.0.wish.store(true, Ordering::Relaxed);
        }
        let agreed = self.0.agreed.swap(false, Ordering::Relaxed);
        if agreed {
            self.0.wish.store(false, Ordering::Relaxed);
        }
        Ok(agreed)
    }

    fn waits(&self) -> bool {
        true
    }
}
