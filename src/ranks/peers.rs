//! Ranks with a GPU each: sums and halos in the order of the GPU's work, through memory that the others' GPUs write.

use super::group::Group;
use crate::backend::cuda::{Cuda, DeviceVec, PeerWindow, PeerWindows, Slice};
use crate::backend::{Backend, Communicator, ExchangePlan, HaloProduct, Host};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scalar::Scalar;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The communicator of vectors that are spread over the GPUs of several processes of one machine. Nothing of a sum or
/// an exchange waits for a host, so that iterations are recorded as on one GPU. Handles are cheap to clone.
///
/// All ranks make theirs together, and call the same functions in the same order. A rank that waits on its GPU for
/// another one longer than a minute gives up, and its sums are not numbers from there on.
#[derive(Clone)]
pub struct Peers(Arc<Inner>);

struct Inner {
    group: Group,
    state: Mutex<State>,
}

struct State {
    windows: PeerWindows,
    /// Those that room was made for.
    plans: Vec<Plan>,
    /// Whether this rank wishes to stop, and how often it was asked.
    wish: bool,
    asked: usize,
}

/// Iterations between two rounds of the hosts.
const BETWEEN: usize = 16;

/// A plan, and where each part's entries begin, to send and to receive.
struct Plan {
    plan: ExchangePlan,
    send: DeviceVec<u64>,
    receive: DeviceVec<u64>,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with a GPU", self.0.group)
    }
}

impl Peers {
    /// On the GPU that this rank computes on.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the ranks share no memory, on several machines or because that is not wished; where
    /// GPUs can't reach each other's memory, and where a rank has failed.
    pub fn new(cuda: Cuda, group: &Group) -> Result<Self> {
        if !group.is_one_machine() {
            return Err(Error::Unsupported(
                "GPUs of ranks that share no memory; device cpu computes on them".into(),
            ));
        }
        let windows = opened(cuda, group, 0)?;
        let state = Mutex::new(State { windows, plans: Vec::new(), wish: false, asked: 0 });
        Ok(Self(Arc::new(Inner { group: group.clone(), state })))
    }

    /// Its ranks.
    pub fn group(&self) -> &Group {
        &self.0.group
    }
}

/// New windows with room for so many bytes from each rank.
fn opened(cuda: Cuda, group: &Group, room: usize) -> Result<PeerWindows> {
    let made = PeerWindow::new(cuda, group.ranks(), room);
    let handle = made.as_ref().map_or(Vec::new(), |window| window.handle().to_vec());
    let handles = group.all_gather(&handle)?;
    let own = made?;
    if let Some(rank) = handles.iter().position(Vec::is_empty) {
        return Err(Error::Rank { rank, ranks: group.ranks(), cause: "has no memory to share".into() });
    }
    PeerWindows::open(own, group.rank(), &handles)
}

/// Where each part begins, and the end.
fn starts(counts: &[usize]) -> Vec<u64> {
    let ends = counts.iter().scan(0, |end, &count| {
        *end += count as u64;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

impl State {
    /// The windows, and a plan that room was made for.
    fn with(&mut self, plan: &ExchangePlan) -> Result<(&mut PeerWindows, &Plan)> {
        let plan = self.plans.iter().find(|known| known.plan == *plan).ok_or_else(|| {
            Error::InvalidArgument(
                "an exchange by a plan that no room was made for (`prepare_exchange`)".into(),
            )
        })?;
        Ok((&mut self.windows, plan))
    }
}

impl Communicator<Cuda> for Peers {
    const ALONE: bool = false;
    const FUSED: bool = true;

    fn part(&self) -> usize {
        self.0.group.rank()
    }

    fn parts(&self) -> usize {
        self.0.group.ranks()
    }

    fn all_sum<T: Scalar>(&self, _backend: &Cuda, sums: &mut Slice<T>) -> Result<()> {
        lock(&self.0.state).windows.all_sum(sums)
    }

    /// Makes the windows larger, all of them, where a halo needs it.
    fn prepare_exchange<T: Scalar>(&self, backend: &Cuda, plan: &ExchangePlan) -> Result<()> {
        let largest = plan.send.iter().chain(&plan.receive).max().map_or(0, |&count| count * size_of::<T>());
        let all = self.0.group.all_gather(&(largest as u64).to_le_bytes())?;
        let word = |bytes: &Vec<u8>| bytes[..].try_into().map_or(0, u64::from_le_bytes);
        let room = all.iter().map(word).max().unwrap_or(0) as usize;
        let mut state = lock(&self.0.state);
        if room > state.windows.room() {
            backend.synchronize()?;
            state.windows = opened(*backend, &self.0.group, room)?;
        }
        if state.with(plan).is_err() {
            let (send, receive) =
                (backend.upload(starts(&plan.send))?, backend.upload(starts(&plan.receive))?);
            state.plans.push(Plan { plan: plan.clone(), send, receive });
        }
        Ok(())
    }

    fn begin_exchange<T: Scalar>(&self, _backend: &Cuda, plan: &ExchangePlan, send: &Slice<T>) -> Result<()> {
        Error::check_dimension("entries to send", plan.send.iter().sum(), send.len())?;
        let mut state = lock(&self.0.state);
        let (windows, plan) = state.with(plan)?;
        windows.send(&plan.send, None, send)
    }

    fn exchange<T: Scalar>(
        &self,
        _backend: &Cuda,
        plan: &ExchangePlan,
        send: &Slice<T>,
        halo: &mut Slice<T>,
    ) -> Result<()> {
        plan.check(self.0.group.ranks(), send.len(), halo.len())?;
        let mut state = lock(&self.0.state);
        let (windows, plan) = state.with(plan)?;
        windows.receive(&plan.receive, halo)
    }

    fn begin_exchange_of<T: Scalar>(
        &self,
        _backend: &Cuda,
        plan: &ExchangePlan,
        x: &Slice<T>,
        asked: &Slice<u32>,
    ) -> Result<()> {
        Error::check_dimension("entries to send", plan.send.iter().sum(), asked.len())?;
        let mut state = lock(&self.0.state);
        let (windows, plan) = state.with(plan)?;
        windows.send(&plan.send, Some(asked), x)
    }

    fn end_exchange_with<T: Scalar>(
        &self,
        _backend: &Cuda,
        plan: &ExchangePlan,
        halo: HaloProduct<'_, T, Cuda>,
    ) -> Result<()> {
        let mut state = lock(&self.0.state);
        let (windows, plan) = state.with(plan)?;
        windows.add_rows(&plan.receive, halo)
    }

    /// The hosts agree among themselves while the GPUs work on, and only now and then: a round of theirs takes longer
    /// than an iteration of a small system.
    fn agree(&self, stop: bool) -> Result<bool> {
        let mut state = lock(&self.0.state);
        state.wish |= stop;
        state.asked += 1;
        if !state.asked.is_multiple_of(BETWEEN) {
            return Ok(false);
        }
        let mut wishes = [f64::from(u8::from(std::mem::take(&mut state.wish)))];
        self.0.group.all_sum(&Host, &mut wishes)?;
        Ok(wishes[0] > 0.0)
    }

    fn waits(&self) -> bool {
        false
    }
}
