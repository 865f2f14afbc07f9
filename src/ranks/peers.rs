//! Ranks with a GPU each: sums and halos are enqueued on the GPUs, which write to each other's memory.

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

/// The communicator of vectors that are distributed over the GPUs of several processes of one machine. No sum or
/// exchange waits for a host, so iterations can be recorded as on one GPU. Handles are cheap to clone.
///
/// If the ranks are on one machine, sums and halos go through GPU memory that the others write to; else, or if the
/// variable `RESIDUA_PEERS` is `nccl`, through NCCL. The bits are the same.
///
/// All ranks create theirs together, and call the same functions in the same order. A rank that waits on its GPU for
/// another one longer than a minute gives up, and its sums are NaN from then on.
#[derive(Clone)]
pub struct Peers(Arc<Inner>);

/// The shared state of all clones.
struct Inner {
    group: Group,
    state: Mutex<State>,
}

/// The transport, and whether this rank requests a stop.
struct State {
    plane: Plane,
    /// True if this rank asks to stop, and how many times that was checked.
    wish: bool,
    asked: usize,
}

/// The transport of data.
enum Plane {
    /// The windows, the exchange plans that fit them, and separate windows for words once these are needed. Recordings
    /// keep the addresses of the first windows, so exchanges of words must not replace them.
    Windows(PeerWindows, Vec<Plan>, Option<Box<PeerWindows>>),
    Nccl(Nccl),
}

/// The variable that names the transport.
const PLANE: &str = "RESIDUA_PEERS";

/// Iterations between two exchanges of the hosts.
const BETWEEN: usize = 16;

/// Seconds that an iteration of conjugate gradients takes in addition to its share of the work: measured on two H100
/// (docs/internals/scale.md).
const LATENCY: f64 = 30e-6;
const LATENCY_NCCL: f64 = 90e-6;

/// A plan, and the positions at which the entries to send to each rank, and to receive from it, begin.
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
    /// A communicator on the GPU that this rank computes on.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the ranks share no memory and there is no NCCL; if GPUs can't access each other's
    /// memory, and if a rank has failed.
    pub fn new(cuda: Cuda, group: &Group) -> Result<Self> {
        let named = std::env::var(PLANE).unwrap_or_default();
        match &*named {
            "" if group.is_one_machine() => Self::with_windows(cuda, group),
            "windows" => Self::with_windows(cuda, group),
            "" | "nccl" => Self::with_nccl(cuda, group),
            other => Err(Error::InvalidArgument(format!("{PLANE} is {other}, but must be windows or nccl"))),
        }
    }

    /// A communicator with windows, for which all ranks must be on one machine.
    ///
    /// # Errors
    /// As [`Peers::new`].
    pub fn with_windows(cuda: Cuda, group: &Group) -> Result<Self> {
        let windows = opened(cuda, group, 0)?;
        Ok(Self::on(group, Plane::Windows(windows, Vec::new(), None)))
    }

    /// A communicator with NCCL, with one process for each GPU.
    ///
    /// # Errors
    /// As [`Peers::new`].
    pub fn with_nccl(cuda: Cuda, group: &Group) -> Result<Self> {
        // If rank 0 has no name, it sends an empty one, so that no rank waits for it.
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

    /// Returns whether the transport is NCCL.
    pub fn is_nccl(&self) -> bool {
        matches!(lock(&self.0.state).plane, Plane::Nccl(_))
    }

    /// The group of its ranks.
    pub fn group(&self) -> &Group {
        &self.0.group
    }
}

/// New windows with memory for `room` bytes from each rank.
fn opened(cuda: Cuda, group: &Group, room: usize) -> Result<PeerWindows> {
    let made = PeerWindow::new(cuda, group.ranks(), room);
    let handle = made.as_ref().map_or(Vec::new(), |window| window.handle().to_vec());
    let handles = group.all_gather(&handle)?;
    let own = made?;
    if let Some(rank) = handles.iter().position(Vec::is_empty) {
        return Err(Error::Rank {
            rank,
            ranks: group.ranks(),
            cause: "could not share the memory of its GPU".into(),
        });
    }
    PeerWindows::open(own, group.rank(), &handles)
}

/// The start of each part, and the end.
fn starts(counts: &[usize]) -> Vec<u64> {
    let ends = counts.iter().scan(0, |end, &count| {
        *end += count as u64;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

impl State {
    /// The windows, and the plan with its positions.
    fn with(&mut self, plan: &ExchangePlan) -> Result<(&mut PeerWindows, &Plan)> {
        let Plane::Windows(windows, plans, _) = &mut self.plane else {
            return Err(Error::Unsupported(
                "shared-memory windows between GPUs that are connected by NCCL".into(),
            ));
        };
        let plan = plans.iter().find(|known| known.plan == *plan).ok_or_else(|| {
            Error::InvalidArgument("an exchange that was not prepared (`prepare_exchange`)".into())
        })?;
        Ok((windows, plan))
    }

    /// The windows, if they are the transport.
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

    /// Replaces all windows by larger ones if a halo needs it; connects the ranks by NCCL.
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

    /// The hosts exchange stop requests while the GPUs work on, and only from time to time: an exchange takes longer
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

    /// The latency of a sum over all ranks, in seconds.
    fn latency(&self) -> f64 {
        if self.is_nccl() { LATENCY_NCCL } else { LATENCY }
    }

    fn deliver(&self, to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.0.group.deliver(&to_each)
    }
}
