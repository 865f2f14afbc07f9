//! Ranks with a GPU each: sums and halos in the order of the GPU's work, through memory that the others' GPUs write.

use super::group::Group;
use crate::backend::cuda::{Cuda, DeviceVec, Nccl, PeerWindow, PeerWindows, Slice, unique_id};
use crate::backend::{
    Backend, Communicator, ExchangePlan, HaloProduct, Host, PartDirection, PartResidual, Sends,
    or_by_way_of_hosts,
};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scalar::Scalar;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The communicator of vectors that are spread over the GPUs of several processes of one machine. Nothing of a sum or
/// an exchange waits for a host, so that iterations are recorded as on one GPU. Handles are cheap to clone.
///
/// Where the ranks are on one machine, sums and halos go through memory of the GPUs that the others write; else, or
/// where the variable `RESIDUA_PEERS` says `nccl`, through NCCL. The bits are the same.
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
    plane: Plane,
    /// True if this rank wishes to stop, and how often it was asked.
    wish: bool,
    asked: usize,
}

/// What data goes by.
enum Plane {
    /// Windows, and the plans that room was made for; and those of words, once there were any: recordings keep the
    /// addresses of the first, which words therefore must not make larger.
    Windows(PeerWindows, Vec<Plan>, Option<Box<PeerWindows>>),
    Nccl(Nccl),
}

/// Which of them is wished for.
const PLANE: &str = "RESIDUA_PEERS";

/// Iterations between two rounds of the hosts.
const BETWEEN: usize = 16;

/// What an iteration of conjugate gradients takes beyond its share of the work, in seconds: seen on two H100
/// (docs/internals/scale.md).
const LATENCY: f64 = 30e-6;
const LATENCY_NCCL: f64 = 90e-6;

/// A plan, and where each part's entries begin, to send and to receive.
struct Plan {
    plan: ExchangePlan,
    send: DeviceVec<u64>,
    receive: DeviceVec<u64>,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &lock(&self.0.state).plane {
            Plane::Windows(..) => write!(f, "{:?} with a GPU", self.0.group),
            Plane::Nccl(nccl) => write!(f, "{:?} with a GPU, {nccl:?}", self.0.group),
        }
    }
}

impl Peers {
    /// On the GPU that this rank computes on.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the ranks share no memory and there is no NCCL; if GPUs can't reach each other's
    /// memory, and if a rank has failed.
    pub fn new(cuda: Cuda, group: &Group) -> Result<Self> {
        let named = std::env::var(PLANE).unwrap_or_default();
        match &*named {
            "" if group.is_one_machine() => Self::with_windows(cuda, group),
            "windows" => Self::with_windows(cuda, group),
            "" | "nccl" => Self::with_nccl(cuda, group),
            other => Err(Error::InvalidArgument(format!("{PLANE}={other}: windows or nccl"))),
        }
    }

    /// With windows, which all ranks must be on one machine for.
    ///
    /// # Errors
    /// As [`Peers::new`].
    pub fn with_windows(cuda: Cuda, group: &Group) -> Result<Self> {
        let windows = opened(cuda, group, 0)?;
        Ok(Self::on(group, Plane::Windows(windows, Vec::new(), None)))
    }

    /// With NCCL, one process a GPU.
    ///
    /// # Errors
    /// As [`Peers::new`].
    pub fn with_nccl(cuda: Cuda, group: &Group) -> Result<Self> {
        // Whoever can't say a name sends none, so that nobody waits for it.
        let named = if group.rank() == 0 { unique_id() } else { Ok(Vec::new()) };
        let name = group.broadcast(named.as_ref().map_or(&[], |name| name))?;
        named?;
        if name.is_empty() {
            return Err(Error::Rank { rank: 0, ranks: group.ranks(), cause: "has no NCCL".into() });
        }
        Ok(Self::on(group, Plane::Nccl(Nccl::join(cuda, &name, group.rank(), group.ranks())?)))
    }

    fn on(group: &Group, plane: Plane) -> Self {
        let state = Mutex::new(State { plane, wish: false, asked: 0 });
        Self(Arc::new(Inner { group: group.clone(), state }))
    }

    /// Returns whether data goes by NCCL.
    pub fn is_nccl(&self) -> bool {
        matches!(lock(&self.0.state).plane, Plane::Nccl(_))
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
        let Plane::Windows(windows, plans, _) = &mut self.plane else {
            return Err(Error::Unsupported("windows between GPUs that NCCL connects".into()));
        };
        let plan = plans.iter().find(|known| known.plan == *plan).ok_or_else(|| {
            Error::InvalidArgument(
                "an exchange by a plan that no room was made for (`prepare_exchange`)".into(),
            )
        })?;
        Ok((windows, plan))
    }

    /// The windows, where they are what data goes by.
    fn windows(&mut self) -> Option<&mut PeerWindows> {
        match &mut self.plane {
            Plane::Windows(windows, ..) => Some(windows),
            Plane::Nccl(_) => None,
        }
    }
}

impl Communicator<Cuda> for Peers {
    const ALONE: bool = false;
    fn part(&self) -> usize {
        self.0.group.rank()
    }

    fn parts(&self) -> usize {
        self.0.group.ranks()
    }

    fn is_fused(&self) -> bool {
        !self.is_nccl()
    }

    fn all_sum<T: Scalar>(&self, _backend: &Cuda, sums: &mut Slice<T>) -> Result<()> {
        match &mut lock(&self.0.state).plane {
            Plane::Windows(windows, ..) => windows.all_sum(sums),
            Plane::Nccl(nccl) => nccl.all_sum(sums),
        }
    }

    fn all_or(&self, backend: &Cuda, words: &mut Slice<u32>) -> Result<()> {
        let mut state = lock(&self.0.state);
        let Plane::Windows(_, _, kept) = &mut state.plane else {
            drop(state);
            return or_by_way_of_hosts(self, backend, words);
        };
        let room = size_of::<u32>() * words.len();
        let known = kept.take().filter(|windows| windows.room() >= room);
        let windows = match known {
            Some(windows) => windows,
            None => Box::new(opened(*backend, &self.0.group, room)?),
        };
        kept.insert(windows).all_or(words)
    }

    /// Makes the windows larger, all of them, where a halo needs it; connects the ranks by NCCL.
    fn prepare_exchange<T: Scalar>(&self, backend: &Cuda, plan: &ExchangePlan) -> Result<()> {
        if let Plane::Nccl(nccl) = &mut lock(&self.0.state).plane {
            let send = backend.zeros::<T>(plan.send.iter().sum())?;
            let mut halo = backend.zeros::<T>(plan.receive.iter().sum())?;
            nccl.exchange([&plan.send, &plan.receive], &send, &mut halo)?;
            return backend.synchronize();
        }
        let largest = plan.send.iter().chain(&plan.receive).max().map_or(0, |&count| count * size_of::<T>());
        let all = self.0.group.all_gather(&(largest as u64).to_le_bytes())?;
        let word = |bytes: &Vec<u8>| bytes[..].try_into().map_or(0, u64::from_le_bytes);
        let room = all.iter().map(word).max().unwrap_or(0) as usize;
        let mut state = lock(&self.0.state);
        let known = state.with(plan).is_ok();
        let Plane::Windows(windows, plans, _) = &mut state.plane else { return Ok(()) };
        if room > windows.room() {
            backend.synchronize()?;
            *windows = opened(*backend, &self.0.group, room)?;
        }
        if !known {
            let (send, receive) =
                (backend.upload(starts(&plan.send))?, backend.upload(starts(&plan.receive))?);
            plans.push(Plan { plan: plan.clone(), send, receive });
        }
        Ok(())
    }

    fn begin_exchange<T: Scalar>(&self, _backend: &Cuda, plan: &ExchangePlan, send: &Slice<T>) -> Result<()> {
        Error::check_dimension("entries to send", plan.send.iter().sum(), send.len())?;
        let mut state = lock(&self.0.state);
        if state.windows().is_none() {
            return Ok(());
        }
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
        if let Plane::Nccl(nccl) = &mut state.plane {
            return nccl.exchange([&plan.send, &plan.receive], send, halo);
        }
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

    fn prepare_sends<T: Scalar>(
        &self,
        _backend: &Cuda,
        asked: &[u32],
        n: usize,
    ) -> Result<Option<Sends<Cuda>>> {
        lock(&self.0.state).windows().map_or(Ok(None), |windows| windows.sends::<T>(asked, n))
    }

    fn drop_exchange<T: Scalar>(&self, _backend: &Cuda) -> Result<()> {
        lock(&self.0.state).windows().map_or(Ok(()), PeerWindows::drop_exchange::<T>)
    }

    fn cg_residual<T: Scalar>(&self, _backend: &Cuda, step: PartResidual<'_, T, Cuda>) -> Result<()> {
        match lock(&self.0.state).windows() {
            Some(windows) => windows.residual(step),
            None => Err(Error::Unsupported("fused steps between GPUs that NCCL connects".into())),
        }
    }

    fn cg_direction<T: Scalar>(
        &self,
        _backend: &Cuda,
        plan: &ExchangePlan,
        sends: &Sends<Cuda>,
        step: PartDirection<'_, T, Cuda>,
    ) -> Result<()> {
        let mut state = lock(&self.0.state);
        let (windows, plan) = state.with(plan)?;
        windows.direction(&plan.send, sends, step)
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
        if let Plane::Nccl(nccl) = &state.plane {
            nccl.check_all()?;
        }
        let mut wishes = [f64::from(u8::from(std::mem::take(&mut state.wish)))];
        self.0.group.all_sum(&Host, &mut wishes)?;
        Ok(wishes[0] > 0.0)
    }

    fn waits(&self) -> bool {
        false
    }

    fn latency(&self) -> f64 {
        if self.is_nccl() { LATENCY_NCCL } else { LATENCY }
    }

    fn deliver(&self, to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.0.group.deliver(&to_each)
    }
}
