//! Solvers of the four types of values, and matrix-free ones, behind one trait.

use crate::arrays::{Built, check, slice};
use crate::options::Settings;
use crate::report::Filed;
use crate::status::{Answer, Fault, RESIDUA_CALLBACK, RESIDUA_DIMENSION, RESIDUA_UNSUPPORTED};
use residua_core::assemble::Assembly;
use residua_core::backend::Space;
use residua_core::krylov::{
    BiConjugateGradients, ConjugateGradients, FlexibleMinimalResidual, Krylov, Method as Recurrence,
    MinimalResidual, SolveOptions,
};
use residua_core::operator::FunctionOperator;
use residua_core::precondition::Identity;
use residua_core::solver::{Method, Solvable};
use residua_core::{Csr, Error, Host, Scalar, Solver};
use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI32, Ordering};

/// A solver whatever its values are.
pub(crate) trait Engine: Send {
    fn shape(&self) -> (usize, usize);

    /// Takes `len` new values, in the caller's order.
    ///
    /// # Safety
    /// As [`slice`].
    unsafe fn update(&mut self, values: *const c_void, len: usize) -> Answer;

    /// Solves for `count` right-hand sides; lengths are those of all.
    ///
    /// # Safety
    /// As [`slice`], and nothing else reads x meanwhile, which does not overlap b.
    unsafe fn solve(&mut self, count: usize, b: Given, x: Given) -> Answer<Vec<Filed>>;

    fn history(&self, right_hand_side: usize) -> &[f64];
}

/// A vector of the caller, in elements.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    pub(crate) data: *mut c_void,
    pub(crate) len: usize,
}

/// The caller's vectors as slices, their lengths checked.
///
/// # Safety
/// As [`Engine::solve`].
unsafe fn vectors<'a, T>(
    (rows, columns): (usize, usize),
    count: usize,
    b: Given,
    x: Given,
) -> Answer<(&'a [T], &'a mut [T])> {
    for (what, each, given) in [("b", rows, b.len), ("x", columns, x.len)] {
        if each.checked_mul(count) != Some(given) {
            let text = format!("{what} has {given} elements, and {count} x {each} are needed");
            return Err(Fault::new(RESIDUA_DIMENSION, text));
        }
    }
    // SAFETY: the caller's promise.
    let right = unsafe { slice("b", b.data, b.len)? };
    if x.len == 0 {
        return Ok((right, &mut []));
    }
    check::<T>("x", x.data, x.len)?;
    let (first, second) = (b.data.addr(), x.data.addr());
    if first < second + x.len * size_of::<T>() && second < first + b.len * size_of::<T>() {
        return Err(Fault::argument("b and x overlap"));
    }
    // SAFETY: checked above; the caller promises that nothing else uses it, and it does not overlap b.
    Ok((right, unsafe { std::slice::from_raw_parts_mut(x.data.cast(), x.len) }))
}

/// A solver of a stored matrix.
pub(crate) struct Stored<T: Solvable> {
    solver: Solver<T>,
    entries: usize,
    /// The matrix, where new values have to be put in its order first.
    map: Option<(Csr<T>, Assembly<Host>)>,
}

impl<T: Solvable> Stored<T> {
    pub(crate) fn new((a, assembly): Built<T>, settings: &Settings, entries: usize) -> Answer<Self> {
        if let Some(name) = &settings.needs_function {
            let text = format!("option {name} is for matrix-free solvers, and this one has a matrix");
            return Err(Fault::argument(text));
        }
        Ok(match assembly {
            Some(assembly) => Self { solver: settings.builder.build(&a)?, entries, map: Some((a, assembly)) },
            None => Self { solver: settings.builder.build(a)?, entries, map: None },
        })
    }
}

impl<T: Solvable> Engine for Stored<T> {
    fn shape(&self) -> (usize, usize) {
        (self.solver.rows(), self.solver.columns())
    }

    unsafe fn update(&mut self, values: *const c_void, len: usize) -> Answer {
        if len != self.entries {
            let text = format!("{len} values, and the matrix was made of {}", self.entries);
            return Err(Fault::new(RESIDUA_DIMENSION, text));
        }
        // SAFETY: the caller's promise.
        let values = unsafe { slice("values", values, len)? };
        match &mut self.map {
            Some((a, assembly)) => {
                assembly.update(&Host, values, a)?;
                self.solver.update(a.parts().values)?;
            }
            None => self.solver.update(values)?,
        }
        Ok(())
    }

    unsafe fn solve(&mut self, count: usize, b: Given, x: Given) -> Answer<Vec<Filed>> {
        // SAFETY: the caller's promise.
        let (b, x) = unsafe { vectors(self.shape(), count, b, x)? };
        let reports = match count {
            0 => Vec::new(),
            1 => vec![self.solver.solve_into(b, x)?],
            _ => self.solver.solve_many(b, x)?,
        };
        Ok(reports.into_iter().map(|report| Filed::of_solver(&report)).collect())
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.solver.history_of(right_hand_side)
    }
}

/// Writes y = A x for the `n` elements of x and y, of the solver's type; 0 where that was done. It must not unwind.
#[allow(non_camel_case_types, reason = "its name in C")]
pub type residua_apply =
    Option<unsafe extern "C" fn(user: *mut c_void, n: i64, x: *const c_void, y: *mut c_void) -> i32>;

/// A callback with what belongs to it.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) apply: unsafe extern "C" fn(*mut c_void, i64, *const c_void, *mut c_void) -> i32,
    pub(crate) user: *mut c_void,
}

// SAFETY: the header asks for a callback that the thread which solves may call, whichever that is; calls are one at a
// time, since a solver is used by one call at a time.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    fn call<T>(&self, x: &[T], y: &mut [T]) -> i32 {
        // SAFETY: x and y are of as many elements as are told; the rest is the caller's own.
        unsafe { (self.apply)(self.user, x.len() as i64, x.as_ptr().cast(), y.as_mut_ptr().cast()) }
    }
}

/// A solver of an operator that is a function, on the CPU, without a preconditioner.
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
            // Of a function nothing is known.
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

    unsafe fn update(&mut self, _: *const c_void, _: usize) -> Answer {
        Err(Fault::new(RESIDUA_UNSUPPORTED, "a matrix-free solver has no values to update"))
    }

    unsafe fn solve(&mut self, count: usize, b: Given, x: Given) -> Answer<Vec<Filed>> {
        self.histories.clear();
        // SAFETY: the caller's promise.
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
