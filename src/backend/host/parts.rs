//! Ranks as threads of this process: a communicator that needs no network.

use super::Host;
use crate::backend::{Communicator, ExchangePlan};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scalar::Scalar;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The data shared by all ranks.
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

/// The state of the current synchronisation.
struct State {
    /// The words that each rank contributes: the bits of its scalars.
    brought: Vec<Vec<[u64; 2]>>,
    /// The number of ranks that have arrived at the current synchronisation, and the number of synchronisations so far.
    present: usize,
    meeting: u64,
    /// The first rank that has ended; no later synchronisation can be complete.
    gone: Option<usize>,
}

/// One of several ranks, each a thread. If a rank is dropped while others still need it, their next synchronisation
/// returns an error instead of waiting forever.
///
/// ```
/// use residua::backend::{Communicator, Host, Parts};
/// let sums: Vec<f64> = std::thread::scope(|scope| {
///     let parts = Parts::new(3).into_iter();
///     let threads: Vec<_> = parts
///         .map(|part| {
///             scope.spawn(move || {
///                 let mut sum = [1.0 + Communicator::<Host>::part(&part) as f64];
///                 part.all_sum(&Host, &mut sum).map(|()| sum[0])
///             })
///         })
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect::<residua::Result<_>>()
/// })?;
/// assert_eq!(sums, [6.0; 3]);
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Clone)]
pub struct Parts {
    shared: Arc<Shared>,
    part: usize,
    parts: usize,
    /// Reports that the rank has ended when its last handle is dropped.
    _leave: Arc<Leave>,
}

/// Reports when it is dropped that the rank has ended.
struct Leave {
    shared: Arc<Shared>,
    part: usize,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.gone.get_or_insert(self.part);
        self.shared.arrived.notify_all();
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {}", self.part, self.parts)
    }
}

impl Parts {
    /// Returns the handles of this number of ranks, one for each thread.
    pub fn new(parts: usize) -> Vec<Self> {
        let state = State { brought: vec![Vec::new(); parts], present: 0, meeting: 0, gone: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), arrived: Condvar::new() });
        let leave = |part| Arc::new(Leave { shared: shared.clone(), part });
        (0..parts).map(|part| Self { shared: shared.clone(), part, parts, _leave: leave(part) }).collect()
    }

    /// Contributes `own`, waits for all ranks, and calls `look` with the data of all. Returns after all ranks have
    /// called theirs.
    fn meet<R>(&self, own: Vec<[u64; 2]>, look: impl FnOnce(&[Vec<[u64; 2]>]) -> R) -> Result<R> {
        lock(&self.shared.state).brought[self.part] = own;
        self.wait()?;
        let seen = look(&lock(&self.shared.state).brought);
        self.wait()?;
        Ok(seen)
    }

    /// Waits until every rank has arrived.
    fn wait(&self) -> Result<()> {
        let mut state = lock(&self.shared.state);
        let meeting = state.meeting;
        state.present += 1;
        if state.present == self.parts {
            (state.present, state.meeting) = (0, meeting + 1);
            self.shared.arrived.notify_all();
            return Ok(());
        }
        while state.meeting == meeting {
            if let Some(gone) = state.gone {
                return Err(Error::InvalidArgument(format!("part {gone} of {} has ended", self.parts)));
            }
            state = self.shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

impl Communicator<Host> for Parts {
    const ALONE: bool = false;

    fn part(&self) -> usize {
        self.part
    }

    fn parts(&self) -> usize {
        self.parts
    }

    fn all_sum<T: Scalar>(&self, _backend: &Host, sums: &mut [T]) -> Result<()> {
        let total = self.meet(sums.iter().map(|sum| sum.bits()).collect(), |brought| {
            let mut total = vec![T::zero(); brought[0].len()];
            for of_part in brought {
                total.iter_mut().zip(of_part).for_each(|(total, &bits)| *total += T::from_bits(bits));
            }
            total
        })?;
        Error::check_dimension("sums of the first part", sums.len(), total.len())?;
        sums.copy_from_slice(&total);
        Ok(())
    }

    fn exchange<T: Scalar>(
        &self,
        _backend: &Host,
        plan: &ExchangePlan,
        send: &[T],
        halo: &mut [T],
    ) -> Result<()> {
        plan.check(self.parts, send.len(), halo.len())?;
        // Each rank sends first the number of entries for every rank, and then the entries.
        let counts = plan.send.iter().map(|&count| [count as u64, 0]);
        let own = counts.chain(send.iter().map(|value| value.bits())).collect();
        let good = self.meet(own, |brought| {
            let mut places = halo.iter_mut();
            brought.iter().zip(&plan.receive).all(|(of_part, &expected)| {
                let counts: Vec<usize> =
                    of_part[..self.parts].iter().map(|count| count[0] as usize).collect();
                let first = self.parts + counts[..self.part].iter().sum::<usize>();
                let values = &of_part[first..first + counts[self.part]];
                values.iter().zip(places.by_ref()).for_each(|(&bits, place)| *place = T::from_bits(bits));
                values.len() == expected
            })
        })?;
        if good { Ok(()) } else { Err(Error::InvalidArgument("parts disagree on what they exchange".into())) }
    }

    fn deliver(&self, to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Error::check_dimension("messages, one for each part", self.parts, to_each.len())?;
        // Sends first the number of bytes for each rank, and then all bytes, one per word.
        let counts = to_each.iter().map(|bytes| [bytes.len() as u64, 0]);
        let own = counts.chain(to_each.iter().flatten().map(|&byte| [u64::from(byte), 0])).collect();
        self.meet(own, |brought| {
            let of_part = |brought: &Vec<[u64; 2]>| {
                let counts: Vec<usize> =
                    brought[..self.parts].iter().map(|count| count[0] as usize).collect();
                let first = self.parts + counts[..self.part].iter().sum::<usize>();
                brought[first..first + counts[self.part]].iter().map(|byte| byte[0] as u8).collect()
            };
            brought.iter().map(of_part).collect()
        })
    }

    fn agree(&self, stop: bool) -> Result<bool> {
        self.meet(vec![[u64::from(stop), 0]], |brought| brought.iter().any(|wish| wish[0][0] != 0))
    }

    fn waits(&self) -> bool {
        true
    }
}
