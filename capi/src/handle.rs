//! The table of handles. A handle is a number disguised as a pointer: it is looked up, never dereferenced, and no
//! number is used twice. A handle that was destroyed, or never existed, is therefore recognised.

use crate::engine::Engine;
use crate::observe::Observer;
use crate::options::Settings;
use crate::report::Filed;
use crate::status::{Answer, Fault, RESIDUA_BUSY, RESIDUA_INVALID_HANDLE};
use residua_core::solver::Canceller;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError};

/// The object of a handle.
#[derive(Clone)]
pub(crate) enum Object {
    Options(Arc<Mutex<Settings>>),
    Solver(Arc<Held>),
    Report(Arc<Filed>),
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

#[derive(Default)]
struct Table {
    last: usize,
    objects: HashMap<usize, Object>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a handle for an object and returns it as a pointer of the object's type in C.
pub(crate) fn give<H>(object: Object) -> *mut H {
    let mut table = table();
    table.last += 16; // the alignment of memory that is allocated, for tools that check pointers
    let number = table.last;
    table.objects.insert(number, object);
    std::ptr::without_provenance_mut(number)
}

fn stale(kind: &str) -> Fault {
    Fault::new(
        RESIDUA_INVALID_HANDLE,
        format!("not a valid {kind} handle: destroyed already, of another kind, or never made"),
    )
}

/// The result of `pick` on the object of a handle.
pub(crate) fn find<H, T>(kind: &str, handle: *const H, pick: impl FnOnce(Object) -> Option<T>) -> Answer<T> {
    if handle.is_null() {
        return Err(Fault::null(&format!("the {kind} handle")));
    }
    let object = table().objects.get(&handle.addr()).cloned();
    object.and_then(pick).ok_or_else(|| stale(kind))
}

/// Destroys the object of a handle. Null is allowed, as for `free`.
pub(crate) fn destroy<H>(kind: &str, handle: *mut H, is_kind: impl FnOnce(&Object) -> bool) -> Answer {
    if handle.is_null() {
        return Ok(());
    }
    let mut table = table();
    if !table.objects.get(&handle.addr()).is_some_and(is_kind) {
        return Err(stale(kind));
    }
    let object = table.objects.remove(&handle.addr());
    // The object is dropped after the table is unlocked.
    drop(table);
    drop(object);
    Ok(())
}
