//! The group of ranks, as seen by one of them.

use super::carrier::{Carrier, Messages};
use super::control::Control;
use super::fault::Fault;
use super::launch::ENVIRONMENT;
use super::member::Member;
use super::mpi::{self, Begun, Launcher, Wire};
use super::wait::{Waiting, processors};
use super::window::Window;
use crate::backend::{Communicator, ExchangePlan, Host};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scalar::{Element, Scalar, bytes_of, bytes_of_mut};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A handle of one of several processes that work on the same system. Handles are cheap to clone.
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

/// The shared state of all clones of a group.
struct Inner {
    rank: usize,
    ranks: usize,
    carrier: Mutex<Carrier>,
    control: Control,
    fault: Arc<Fault>,
    description: String,
    /// The number of threads for this rank, if MPI has started it.
    threads: Option<usize>,
    /// Whether this rank asks to stop, and whether any rank did in the last sum.
    wish: AtomicBool,
    agreed: AtomicBool,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.ranks())
    }
}

impl Group {
    /// The group in which [`launch`](super::launch()) or a launcher of MPI such as `mpirun` has started this process
    /// (recognised by the environment, if there is more than one rank); none if it was started alone. To be called
    /// once.
    ///
    /// # Errors
    /// If the others can't be reached or a rank has failed, and as [`Group::mpi_world`].
    pub fn from_environment() -> Result<Option<Self>> {
        let Ok(told) = std::env::var(ENVIRONMENT) else {
            return Launcher::of_this_process()
                .map(|launcher| Self::of_mpi(mpi::of_launcher(&launcher)?))
                .transpose();
        };
        let mut parts = told.splitn(3, '/');
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<usize>().ok());
        let (rank, ranks) = (number(parts.next()), number(parts.next()));
        let (Some(rank), Some(ranks), Some(socket)) = (rank, ranks, parts.next()) else {
            return Err(Error::InvalidArgument(format!(
                "{ENVIRONMENT}={told} is not of the form rank/ranks/socket"
            )));
        };
        Self::of_starter(Path::new(socket), rank, ranks).map(Some)
    }

    /// All processes of `MPI_COMM_WORLD`. If MPI has not been initialised in this process, it is initialised here, and
    /// [`Group::leave`] finalises it.
    ///
    /// The library is the one that the process has loaded already, else the file named by the variable `RESIDUA_MPI`,
    /// else the launcher's, else the one that the system's loader finds: MPICH and all libraries with its binary
    /// interface (`libmpi.so.12`), Open MPI (`libmpi.so.40`), or any with the standard's (`libmpi_abi.so.1`).
    ///
    /// If all ranks are on one machine, sums and halos go through shared memory, else through messages; the bits are
    /// the same. MPI is called by the threads that call the group, one at a time (`MPI_THREAD_SERIALIZED`). If the
    /// program has initialised MPI with less than that, call the group from the thread that initialised it.
    ///
    /// # Errors
    /// [`Error::Mpi`] if no library is found or it fails, and [`Error::Rank`] if a rank runs a different version of
    /// residua than rank 0.
    pub fn mpi_world() -> Result<Self> {
        Self::of_mpi(mpi::world()?)
    }

    /// The processes of a communicator of the calling program, given by its Fortran handle (`MPI_Comm_c2f`,
    /// `comm.py2f()`); all of its processes call this. The communicator is duplicated, and [`Group::leave`] frees the
    /// duplicate. The transport is as with [`Group::mpi_world`].
    ///
    /// # Errors
    /// [`Error::Mpi`] if MPI has not been initialised, and as [`Group::mpi_world`]. An invalid handle ends the process,
    /// as MPI specifies.
    pub fn from_mpi(comm: i32) -> Result<Self> {
        Self::of_mpi(mpi::of_number(comm)?)
    }

    fn of_mpi(wire: Box<dyn Wire>) -> Result<Self> {
        let Begun { window, waiting, threads } = mpi::begin(&*wire)?;
        let wire: Arc<dyn Wire> = wire.into();
        let by = if window.is_some() { "shared memory" } else { "messages" };
        let description = format!("{} processes of {}, {by}", wire.ranks(), wire.library());
        let carrier = match window {
            Some(window) => Carrier::Window(window),
            None => Carrier::Messages(Messages::new(Arc::clone(&wire), waiting)),
        };
        let (rank, ranks) = (wire.rank(), wire.ranks());
        Ok(Self::new([rank, ranks], carrier, Control::Mpi(wire), Arc::default(), description, Some(threads)))
    }

    fn of_starter(socket: &Path, rank: usize, ranks: usize) -> Result<Self> {
        let fault = Arc::new(Fault::default());
        let waiting = Waiting::among(ranks, processors());
        let (stream, window) = Member::begin(socket, rank, ranks)?;
        let window = Window::open(Path::new(&window), [rank, ranks], waiting, Arc::clone(&fault))?;
        let control = Control::Starter(Member::listen(stream, ranks, &fault)?);
        let description = format!("{ranks} processes of this machine, shared memory");
        Ok(Self::new([rank, ranks], Carrier::Window(window), control, fault, description, None))
    }

    fn new(
        [rank, ranks]: [usize; 2],
        carrier: Carrier,
        control: Control,
        fault: Arc<Fault>,
        description: String,
        threads: Option<usize>,
    ) -> Self {
        let (carrier, wish, agreed) = (Mutex::new(carrier), AtomicBool::new(false), AtomicBool::new(false));
        Self(Arc::new(Inner { rank, ranks, carrier, control, fault, description, threads, wish, agreed }))
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.0.ranks
    }

    /// A description of how the ranks communicate.
    pub fn description(&self) -> String {
        self.0.description.clone()
    }

    /// Returns whether the ranks share memory: true if they are on one machine, unless that was disabled.
    pub fn is_one_machine(&self) -> bool {
        matches!(*lock(&self.0.carrier), Carrier::Window(_))
    }

    /// The number of threads for this rank if MPI has started it: the processors that it may use, divided by the ranks
    /// that share them. None if [`launch`](super::launch()) has started it and has already set the number.
    pub fn threads(&self) -> Option<usize> {
        self.0.threads
    }

    /// Sends bytes to each rank and receives those of each.
    ///
    /// # Errors
    /// [`Error::Rank`] if a rank has failed.
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

    /// Sends the bytes of each rank to all.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.deliver(&vec![own.to_vec(); self.ranks()])
    }

    /// Sends the bytes of each rank to rank 0.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn gather(&self, own: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let mut to_each = vec![Vec::new(); self.ranks()];
        to_each[0] = own.to_vec();
        let from_each = self.deliver(&to_each)?;
        Ok((self.rank() == 0).then_some(from_each))
    }

    /// Sends to each rank its bytes from rank 0; the argument of other ranks is ignored.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn scatter(&self, to_each: &[Vec<u8>]) -> Result<Vec<u8>> {
        let nothing = vec![Vec::new(); self.ranks()];
        let mut from_each = self.deliver(if self.rank() == 0 { to_each } else { &nothing })?;
        Ok(from_each.swap_remove(0))
    }

    /// Sends the bytes of rank 0 to all.
    ///
    /// # Errors
    /// As [`Group::deliver`].
    pub fn broadcast(&self, own: &[u8]) -> Result<Vec<u8>> {
        self.scatter(&vec![own.to_vec(); self.ranks()])
    }

    /// Checks that all ranks have the same bytes.
    ///
    /// # Errors
    /// [`Error::Rank`] on all ranks, with the first rank whose `what` differs from that of rank 0, and as
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

    /// Returns whether the process that started the ranks has received a stop request from the user. Launchers of MPI
    /// send every rank a signal instead.
    pub fn interrupted(&self) -> bool {
        self.0.control.interrupted()
    }

    /// Reports that this rank has finished, with an exit status for the process that started it (MPI gets it when the
    /// process ends). No rank may need this one afterwards. Finalises MPI if residua initialised it.
    pub fn leave(&self, status: u8) {
        self.0.control.leave(&lock(&self.0.carrier), status);
    }

    /// Reports that this rank can't go on: all others end with an error that names it and the cause. An error that
    /// already names a rank ([`Error::Rank`]) is reported for that rank. Under MPI one rank prints the error, all
    /// processes end with status 3 (`MPI_Abort`), and this call does not return.
    pub fn fail(&self, error: &Error) {
        let (rank, cause) = match error {
            Error::Rank { rank, cause, .. } => (*rank, cause.clone()),
            other => (self.rank(), other.to_string()),
        };
        let carrier = lock(&self.0.carrier);
        self.0.fault.set(rank, self.ranks(), &cause);
        self.0.control.fail(&carrier, rank, &cause);
    }

    /// Sends elements to each rank and receives those of each, in the order of ranks.
    pub(super) fn exchange_elements<E: Element>(
        &self,
        plan: &ExchangePlan,
        send: &[E],
        receive: &mut [E],
    ) -> Result<()> {
        plan.check(self.ranks(), send.len(), receive.len())?;
        let send: Vec<&[u8]> = pieces(send, &plan.send).into_iter().map(bytes_of).collect();
        let mut receive: Vec<&mut [u8]> =
            pieces_mut(receive, &plan.receive).into_iter().map(bytes_of_mut).collect();
        self.move_bytes(&send, &mut receive)
    }

    fn move_bytes(&self, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<()> {
        lock(&self.0.carrier).exchange(send, receive)
    }
}

/// Cuts a slice into pieces of these lengths.
fn pieces<'a, T>(mut values: &'a [T], counts: &[usize]) -> Vec<&'a [T]> {
    let mut next = |&count: &usize| values.split_off(..count).unwrap_or_default();
    counts.iter().map(&mut next).collect()
}

/// Cuts a mutable slice into pieces of these lengths.
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
        let agreed = lock(&self.0.carrier).sums(&words, wish, add)?;
        self.0.agreed.store(agreed, Ordering::Relaxed);
        Ok(())
    }

    fn begin_exchange<T: Scalar>(&self, _backend: &Host, plan: &ExchangePlan, send: &[T]) -> Result<()> {
        plan.check(self.ranks(), send.len(), plan.receive.iter().sum())?;
        let send: Vec<&[u8]> = pieces(send, &plan.send).into_iter().map(bytes_of).collect();
        lock(&self.0.carrier).begin(&send);
        Ok(())
    }

    fn exchange<T: Scalar>(
        &self,
        _backend: &Host,
        plan: &ExchangePlan,
        send: &[T],
        halo: &mut [T],
    ) -> Result<()> {
        self.exchange_elements(plan, send, halo)
    }

    /// The stop request is sent with the sums, so it costs nothing.
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

    fn deliver(&self, to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Group::deliver(self, &to_each)
    }
}
