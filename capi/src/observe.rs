//! Observers, cancellation and the log: how a caller follows a solve while it runs, and stops it.

use crate::held::{engine, residua_solver};
use crate::observer::Observer;
use crate::status::{Answer, Fault, RESIDUA_UNSUPPORTED, guard};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// Called after each iteration, in the thread that solves: `right_hand_side` counts from 0, `iteration` from 0 at the
/// start, `residual_norm` is that of the method. Another result than 0 ends the solve, with x as good as it is then. It
/// must not throw, jump out or unwind.
#[allow(non_camel_case_types, reason = "its name in C")]
pub type residua_observer = Option<
    unsafe extern "C" fn(user: *mut c_void, right_hand_side: i64, iteration: i64, residual_norm: f64) -> i32,
>;

/// Called with a line of text after each solve, in the thread that solves. `message` is valid during the call. It must
/// not throw, jump out or unwind.
#[allow(non_camel_case_types, reason = "its name in C")]
pub type residua_log = Option<unsafe extern "C" fn(user: *mut c_void, level: i32, message: *const c_char)>;

/// The level of decisions and outcomes.
pub const RESIDUA_LOG_INFO: i32 = 1;
/// The level of each method that was tried.
pub const RESIDUA_LOG_DEBUG: i32 = 2;

/// Sets the function that later solves of this solver call after each iteration; null removes it. On a GPU it is called
/// when later iterations are already in progress.
///
/// # Safety
/// `observer` does not unwind; `user` is valid for it until it is removed or the solver is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_solver_set_observer(
    solver: *mut residua_solver,
    observer: residua_observer,
    user: *mut c_void,
) -> i32 {
    guard(|| {
        let held = engine(solver)?;
        held.idle()?.observer = observer.map(|function| Observer { function, user });
        Ok(())
    })
}

/// Asks a solver to stop, from any thread: the current solve ends as interrupted, with x as good as it is then, and so
/// does each later one at its start, until residua_solver_resume. Never RESIDUA_BUSY. A distributed solver cannot be
/// cancelled: RESIDUA_UNSUPPORTED.
#[unsafe(no_mangle)]
pub extern "C" fn residua_solver_cancel(solver: *mut residua_solver) -> i32 {
    guard(|| {
        canceller(solver)?.cancel();
        Ok(())
    })
}

/// Withdraws the request of residua_solver_cancel.
#[unsafe(no_mangle)]
pub extern "C" fn residua_solver_resume(solver: *mut residua_solver) -> i32 {
    guard(|| {
        canceller(solver)?.reset();
        Ok(())
    })
}

fn canceller(solver: *const residua_solver) -> Answer<residua_core::solver::Canceller> {
    let canceller = engine(solver)?.canceller.clone();
    canceller.ok_or_else(|| Fault::new(RESIDUA_UNSUPPORTED, "a distributed solver cannot be cancelled"))
}

/// The function that gets messages.
#[derive(Clone, Copy)]
struct Log {
    function: unsafe extern "C" fn(*mut c_void, i32, *const c_char),
    user: *mut c_void,
    most: i32,
}

// SAFETY: the header requires a function that any thread may call.
unsafe impl Send for Log {}

static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// Sets the function that gets a line for each decision and outcome (RESIDUA_LOG_INFO) of all solves, and with `level`
/// RESIDUA_LOG_DEBUG one for each method that was tried; null removes it. Solves in several threads may call it at the
/// same time.
///
/// # Safety
/// `log` may be called by any thread that solves and does not unwind; `user` is valid for it until it is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn residua_set_log(log: residua_log, user: *mut c_void, level: i32) -> i32 {
    guard(|| {
        if log.is_some() && !(RESIDUA_LOG_INFO..=RESIDUA_LOG_DEBUG).contains(&level) {
            return Err(Fault::argument(format!(
                "the level is {level}, but must be RESIDUA_LOG_INFO or RESIDUA_LOG_DEBUG"
            )));
        }
        let set = log.map(|function| Log { function, user, most: level });
        *LOG.lock().unwrap_or_else(PoisonError::into_inner) = set;
        Ok(())
    })
}

/// Gives the log the lines of a report, each with whether it tells of a decision or of the outcome.
pub(crate) fn log(lines: impl Iterator<Item = (bool, String)>) {
    // Not locked during the calls, which may call the library.
    let set = *LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Log { function, user, most }) = set else { return };
    let level = |decides| if decides { RESIDUA_LOG_INFO } else { RESIDUA_LOG_DEBUG };
    for (level, line) in
        lines.map(|(decides, line)| (level(decides), line)).filter(|(level, _)| *level <= most)
    {
        let line = CString::new(line.replace('\0', "?")).unwrap_or_default();
        // SAFETY: the caller of residua_set_log guarantees such a function.
        unsafe { function(user, level, line.as_ptr()) };
    }
}
