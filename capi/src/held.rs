//! A solver behind its handle, with what can be reached while it is at work.

use crate::engine::Engine;
use crate::handle::find;
use crate::observer::Observer;
use crate::status::{Answer, Fault, RESIDUA_BUSY};
use residua_core::solver::Canceller;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// A solver for one matrix and many right-hand sides.
#[allow(non_camel_case_types, reason = "its name in C")]
pub struct residua_solver {
    _opaque: [u8; 0],
}

/// A solver, with what other threads can use while it solves.
pub(crate) struct Held {
    /// None if it cannot be cancelled.
    pub(crate) canceller: Option<Canceller>,
    inside: Mutex<Inside>,
}

/// A solver with its observer.
pub(crate) struct Inside {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) observer: Option<Observer>,
}

impl Held {
    pub(crate) fn new(engine: Box<dyn Engine>) -> Self {
        Self { canceller: engine.canceller(), inside: Mutex::new(Inside { engine, observer: None }) }
    }

    /// The solver, or an error if it is in use.
    pub(crate) fn idle(&self) -> Answer<MutexGuard<'_, Inside>> {
        match self.inside.try_lock() {
            Ok(inside) => Ok(inside),
            Err(TryLockError::WouldBlock) => Err(Fault::new(
                RESIDUA_BUSY,
                "the solver is in use already, by another thread or by the call that runs this callback",
            )),
            Err(TryLockError::Poisoned(_)) => Err(Fault::new(
                crate::RESIDUA_INTERNAL,
                "an earlier call on this solver ended in an internal error: destroy the solver",
            )),
        }
    }
}

pub(crate) fn engine(solver: *const residua_solver) -> Answer<Arc<Held>> {
    find("solver", solver)
}
