//! An observer of the caller, called after each iteration.

use residua_core::solver::Progress;
use std::ffi::c_void;
use std::ops::ControlFlow;

/// An observer with its user data.
#[derive(Clone, Copy)]
pub(crate) struct Observer {
    pub(crate) function: unsafe extern "C" fn(*mut c_void, i64, i64, f64) -> i32,
    pub(crate) user: *mut c_void,
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
