//! The table behind the handles. A handle is a number in the guise of a pointer: it is looked up, never dereferenced,
//! and no number is given twice. So one that was destroyed, or never was one, is told from one that lives.

use crate::engine::Engine;
use crate::options::Settings;
use crate::report::Filed;
use crate::status::{Answer, Fault, RESIDUA_BUSY, RESIDUA_INVALID_HANDLE};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError};

/// What a handle stands for.
#[derive(Clone)]
pub(crate) enum Object {
    Options(Arc<Mutex<Settings>>),
    Solver(Arc<Mutex<Box<dyn Engine>>>),
    Report(Arc<Filed>),
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

/// A new handle, as a pointer of its kind.
pub(crate) fn give<H>(object: Object) -> *mut H {
    let mut table = table();
    table.last += 16; // aligned like any pointer, for tools that look at them
    let number = table.last;
    table.objects.insert(number, object);
    std::ptr::without_provenance_mut(number)
}

fn stale(kind: &str) -> Fault {
    Fault::new(
        RESIDUA_INVALID_HANDLE,
        format!("no {kind} handle: destroyed already, of another kind, or never made"),
    )
}

/// What `pick` finds behind a handle.
pub(crate) fn find<H, T>(kind: &str, handle: *const H, pick: impl FnOnce(Object) -> Option<T>) -> Answer<T> {
    if handle.is_null() {
        return Err(Fault::null(&format!("the {kind} handle")));
    }
    let object = table().objects.get(&handle.addr()).cloned();
    object.and_then(pick).ok_or_else(|| stale(kind))
}

/// Takes a handle back. Null is none, as for `free`.
pub(crate) fn destroy<H>(kind: &str, handle: *mut H, is_kind: impl FnOnce(&Object) -> bool) -> Answer {
    if handle.is_null() {
        return Ok(());
    }
    let mut table = table();
    if !table.objects.get(&handle.addr()).is_some_and(is_kind) {
        return Err(stale(kind));
    }
    let object = table.objects.remove(&handle.addr());
    // What it held is dropped when others can use the table again.
    drop(table);
    drop(object);
    Ok(())
}

/// The engine, unless it is at work.
pub(crate) fn idle(engine: &Mutex<Box<dyn Engine>>) -> Answer<MutexGuard<'_, Box<dyn Engine>>> {
    match engine.try_lock() {
        Ok(engine) => Ok(engine),
        Err(TryLockError::WouldBlock) => {
            Err(Fault::new(RESIDUA_BUSY, "the solver is at work, in another thread or around this callback"))
        }
        Err(TryLockError::Poisoned(_)) => {
            Err(Fault::new(crate::RESIDUA_INTERNAL, "a call on this solver ended in a fault: destroy it"))
        }
    }
}
