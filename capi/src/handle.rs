//! The table of handles. A handle is a number disguised as a pointer: it is looked up, never dereferenced, and no
//! number is used twice. A handle that was destroyed, or never existed, is therefore recognised.

use crate::status::{Answer, Fault, RESIDUA_INVALID_HANDLE};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The object of a handle, of any kind.
type Object = Arc<dyn Any + Send + Sync>;

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

/// The object of a handle, if it is of this kind.
pub(crate) fn find<H, T: Any + Send + Sync>(kind: &str, handle: *const H) -> Answer<Arc<T>> {
    if handle.is_null() {
        return Err(Fault::null(&format!("the {kind} handle")));
    }
    let object = table().objects.get(&handle.addr()).cloned();
    object.and_then(|object| object.downcast().ok()).ok_or_else(|| stale(kind))
}

/// Destroys the object of a handle. Null is allowed, as for `free`.
pub(crate) fn destroy<H, T: Any>(kind: &str, handle: *mut H) -> Answer {
    if handle.is_null() {
        return Ok(());
    }
    let mut table = table();
    if !table.objects.get(&handle.addr()).is_some_and(|object| object.is::<T>()) {
        return Err(stale(kind));
    }
    let object = table.objects.remove(&handle.addr());
    // The object is dropped after the table is unlocked.
    drop(table);
    drop(object);
    Ok(())
}
