//! Matrix-free solvers, whose operator is a function of the caller.

use crate::engine::{Engine, Given, on_host_alone, vectors};
use crate::options::Settings;
use crate::report::Filed;
use crate::status::{Answer, Fault, RESIDUA_CALLBACK, RESIDUA_UNSUPPORTED};
use residua_core::backend::Space;
use residua_core::krylov::{
    BiConjugateGradients, ConjugateGradients, FlexibleMinimalResidual, Krylov, Method as Recurrence,
    MinimalResidual, SolveOptions,
};
use residua_core::operator::FunctionOperator;
use residua_core::precondition::Identity;
use residua_core::solver::Method;
use residua_core::{Error, Host, Scalar};
use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI32, Ordering};

/// Writes y = A x for the `n` elements of x and y, of the solver's type, and returns 0 on success. It must not throw,
/// jump out or unwind.
#[allow(non_camel_case_types, reason = "its name in C")]
pub type residua_apply =
    Option<unsafe extern "C" fn(user: *mut c_void, n: i64, x: *const c_void, y: *mut c_void) -> i32>;

/// A callback with its user data.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) apply: unsafe extern "C" fn(*mut c_void, i64, *const c_void, *mut c_void) -> i32,
    pub(crate) user: *mut c_void,
}

// SAFETY: the header requires a callback that the solving thread may call, whichever thread that is; calls are one at a
// time, since a solver is used by one call at a time.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    fn call<T>(&self, x: &[T], y: &mut [T]) -> i32 {
        // SAFETY: x and y have as many elements as the callback is told; the caller is responsible for the callback.
        unsafe { (self.apply)(self.user, x.len() as i64, x.as_ptr().cast(), y.as_mut_ptr().cast()) }
    }
}

/// A solver for an operator that is a function, on the CPU, without a preconditioner.
pub(crate) struct MatrixFree<T> {
    n: usize,
    callback: Callback,
    method: Method,
    restart: usize,
    options: SolveOptions,
    histories: Vec<Vec<f64>>,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Scalar> MatrixFree<T> {
    pub(crate) fn new(n: usize, callback: Callback, settings: &Settings) -> Answer<Self> {
        if let Some(name) = &settings.needs_matrix {
            return Err(Fault::argument(format!(
                "option {name} needs a matrix, and this solver is matrix-free"
            )));
        }
        let method = match settings.method {
            // Nothing is known about the function, so the most general method is used.
            Method::Auto => Method::Gmres,
            m @ (Method::Cg | Method::Minres | Method::Gmres | Method::BiCgStab) => m,
            other => return Err(Fault::argument(format!("method {other} needs a matrix"))),
        };
        let (restart, options) = (settings.restart, settings.krylov.clone());
        Ok(Self {
            n,
            callback,
            method,
            restart,
            options,
            histories: Vec::new(),
            of: std::marker::PhantomData,
        })
    }

    fn run<M: Recurrence<T, Host>>(&self, method: M, b: &[T], x: &mut [T]) -> Answer<(Filed, Vec<f64>)> {
        let (failed, callback) = (AtomicI32::new(0), self.callback);
        let a = FunctionOperator::<T, Host, _>::new(self.n, self.n, |_: &Host, x: &[T], y: &mut [T]| {
            match callback.call(x, y) {
                0 => Ok(()),
                code => {
                    failed.store(code, Ordering::Relaxed);
                    Err(Error::InvalidArgument("the callback failed".into()))
                }
            }
        });
        let start = std::time::Instant::now();
        let mut solver = Krylov::with_method(Space::new(Host), method, self.options.clone())?;
        let done = solver.solve(&a, &Identity, b, x, |_, _| ControlFlow::Continue(()));
        match failed.load(Ordering::Relaxed) {
            0 => {}
            code => return Err(Fault::new(RESIDUA_CALLBACK, format!("the callback returned {code}"))),
        }
        let filed = Filed::of_krylov(&done?, self.method, start.elapsed().as_secs_f64());
        Ok((filed, solver.into_history()))
    }
}

impl<T: Scalar> Engine for MatrixFree<T> {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    unsafe fn update(&mut self, _: *const c_void, _: usize, _: Option<u64>) -> Answer {
        Err(Fault::new(RESIDUA_UNSUPPORTED, "a matrix-free solver has no values to update"))
    }

    unsafe fn solve(&mut self, count: usize, b: Given, x: Given, stream: Option<u64>) -> Answer<Vec<Filed>> {
        on_host_alone(stream, "a matrix-free solver")?;
        self.histories.clear();
        // SAFETY: guaranteed by the caller.
        let (b, x): (&[T], &mut [T]) = unsafe { vectors(self.shape(), count, b, x)? };
        let mut filed = Vec::new();
        for (b, x) in b.chunks(self.n.max(1)).zip(x.chunks_mut(self.n.max(1))) {
            let (report, history) = match self.method {
                Method::Cg => self.run(ConjugateGradients::new(&Host, self.n)?, b, x)?,
                Method::Minres => self.run(MinimalResidual::new(&Host, self.n)?, b, x)?,
                Method::BiCgStab => self.run(BiConjugateGradients::new(&Host, self.n)?, b, x)?,
                _ => self.run(FlexibleMinimalResidual::new(&Host, self.n, self.restart)?, b, x)?,
            };
            filed.push(report);
            self.histories.push(history);
        }
        Ok(filed)
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.histories.get(right_hand_side).map_or(&[], |history| history)
    }
}
