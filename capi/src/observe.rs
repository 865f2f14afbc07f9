//! Observers, cancellation and the log: how a caller follows a solve while it runs, and stops it.

use crate::report::Filed;
use crate::solver::{engine, residua_solver};
use crate::status::{Answer, Fault, RESIDUA_UNSUPPORTED, guard};
use residua_core::solver::Progress;
use std::ffi::{CString, c_char, c_void};
use std::ops::ControlFlow;
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

/// An observer with its user data.
#[derive(Clone, Copy)]
pub(crate) struct Observer {
    function: unsafe extern "C" fn(*mut c_void, i64, i64, f64) -> i32,
    user: *mut c_void,
}

// SAFETY: the header requires a function that any thread may call, and one call of a solver at a time.
unsafe impl Send for Observer {}

impl Observer {
    /// Reports an iteration to the observer. Breaks if the observer ends the solve.
    pub(crate) fn tell(&self, right_hand_side: usize, iteration: usize, norm: f64) -> ControlFlow<()> {
        // SAFETY: the caller of residua_solver_set_observer guarantees such a function.
        match unsafe { (self.function)(self.user, right_hand_side as i64, iteration as i64, norm) } {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

/// Returns a closure that calls [`Observer::tell`], if there is an observer.
pub(crate) fn told(observer: Option<Observer>) -> impl FnMut(&Progress) -> ControlFlow<()> {
    move |now| match observer {
        Some(observer) => observer.tell(now.right_hand_side, now.iteration, now.residual_norm),
        None => ControlFlow::Continue(()),
    }
}

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

/// Passes the lines of a report to the log.
pub(crate) fn log(filed: &Filed) {
    // Not locked during the calls, which may call the library.
    let set = *LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Log { function, user, most }) = set else { return };
    for (level, line) in filed.lines().filter(|(level, _)| *level <= most) {
        let line = CString::new(line.replace('\0', "?")).unwrap_or_default();
        // SAFETY: the caller of residua_set_log guarantees such a function.
        unsafe { function(user, level, line.as_ptr()) };
    }
}
