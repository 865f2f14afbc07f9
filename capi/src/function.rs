//! Solvers by one Krylov method on the CPU, whose operator or preconditioner is a function of the caller.

use crate::arrays::Raw;
use crate::callback::Callback;
use crate::engine::{Engine, Given, How, on_host_alone, vectors};
use crate::observer::Observer;
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
use residua_core::precondition::{Identity, Preconditioner};
use residua_core::solver::{Canceller, Method};
use residua_core::{Csr, Error, Host, LinearOperator, Scalar};
use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI32, Ordering};

/// z = M^-1 r by a callback.
struct Applied<'a> {
    rows: usize,
    callback: Callback,
    failed: &'a AtomicI32,
}

impl<T: Scalar> Preconditioner<T, Host> for Applied<'_> {
    fn rows(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn apply(&self, _: &Host, r: &[T], z: &mut [T]) -> residua_core::Result<()> {
        self.callback.call(r, z, self.failed)
    }

    /// A function of the caller can't be recorded.
    fn waits(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        2 * self.rows * size_of::<T>()
    }
}

/// The matrix or function that the solver multiplies with.
enum Operator<T: Scalar> {
    Function(Callback, usize),
    /// A matrix, with the map for new values if the caller gives them in another order.
    Stored(Box<(Csr<T>, Option<Assembly<Host>>)>),
}

/// A solver by one method, with functions of the caller.
pub(crate) struct Iterative<T: Scalar> {
    operator: Operator<T>,
    preconditioner: Option<Callback>,
    method: Method,
    restart: usize,
    options: SolveOptions,
    canceller: Canceller,
    histories: Vec<Vec<f64>>,
}

impl<T: Scalar> Iterative<T> {
    /// A matrix-free solver.
    pub(crate) fn of_function(n: usize, callback: Callback, settings: &Settings) -> Answer<Self> {
        if let Some(name) = settings.needs_matrix.first() {
            return Err(Fault::argument(format!(
                "option {name} needs a matrix, and this solver is matrix-free"
            )));
        }
        Self::new(Operator::Function(callback, n), settings)
    }

    /// A solver of a matrix with the preconditioner of the settings.
    ///
    /// # Safety
    /// As for [`Raw::on_host`].
    pub(crate) unsafe fn of_matrix(raw: &Raw, settings: &Settings) -> Answer<Self> {
        if let Some(name) = settings.needs_matrix.iter().find(|name| *name != "updates") {
            return Err(Fault::argument(format!(
                "option {name} cannot be combined with residua_options_set_preconditioner"
            )));
        }
        // SAFETY: guaranteed by the caller.
        let (a, kept) = unsafe { raw.on_host::<T>()? }.build(&Host, true)?;
        if a.rows() != a.columns() {
            let text = format!(
                "your own preconditioner needs a square matrix, but this one is {} x {}",
                a.rows(),
                a.columns()
            );
            return Err(Fault::new(RESIDUA_UNSUPPORTED, text));
        }
        Self::new(Operator::Stored(Box::new((a, kept.map(|(_, map)| map)))), settings)
    }

    fn new(operator: Operator<T>, settings: &Settings) -> Answer<Self> {
        let method = match settings.method {
            // Nothing is known about the functions, so the most general method is used.
            Method::Auto => Method::Gmres,
            m @ (Method::Cg | Method::Minres | Method::Gmres | Method::BiCgStab) => m,
            other => {
                return Err(Fault::argument(format!(
                    "method {other} does not work with functions: choose auto, cg, minres, gmres or bicgstab"
                )));
            }
        };
        Ok(Self {
            operator,
            preconditioner: settings.preconditioner,
            method,
            restart: settings.restart,
            options: settings.krylov.clone(),
            canceller: Canceller::default(),
            histories: Vec::new(),
        })
    }

    fn n(&self) -> usize {
        match &self.operator {
            Operator::Function(_, n) => *n,
            Operator::Stored(stored) => stored.0.rows(),
        }
    }

    fn run<M: Recurrence<T, Host>>(
        &self,
        method: M,
        (b, x): (&[T], &mut [T]),
        (number, observer): (usize, Option<Observer>),
    ) -> Answer<(Filed, Vec<f64>)> {
        let (failed, n) = (AtomicI32::new(0), self.n());
        let (called, on_function, applied);
        let a: &dyn LinearOperator<T, Host> = match &self.operator {
            Operator::Function(callback, n) => {
                called = |_: &Host, x: &[T], y: &mut [T]| callback.call(x, y, &failed);
                on_function = FunctionOperator::<T, Host, _>::new(*n, *n, called);
                &on_function
            }
            Operator::Stored(stored) => &stored.0,
        };
        let m: &dyn Preconditioner<T, Host> = match self.preconditioner {
            Some(callback) => {
                applied = Applied { rows: n, callback, failed: &failed };
                &applied
            }
            None => &Identity,
        };
        let start = std::time::Instant::now();
        let mut solver = Krylov::with_method(Space::new(Host), method, self.options.clone())?;
        let done =
            solver.solve(a, m, b, x, |iteration, norm| match (self.canceller.is_cancelled(), observer) {
                (true, _) => ControlFlow::Break(()),
                (false, Some(observer)) => observer.tell(number, iteration, norm),
                (false, None) => ControlFlow::Continue(()),
            });
        match failed.load(Ordering::Relaxed) {
            0 => {}
            code => return Err(Fault::new(RESIDUA_CALLBACK, format!("the callback returned {code}"))),
        }
        let with = if self.preconditioner.is_some() { "of the caller" } else { "none" };
        let filed = Filed::of_krylov(&done?, (self.method, with), start.elapsed().as_secs_f64());
        Ok((filed, solver.into_history()))
    }
}

impl<T: Scalar> Engine for Iterative<T> {
    fn shape(&self) -> (usize, usize) {
        (self.n(), self.n())
    }

    unsafe fn update(&mut self, values: *const c_void, len: usize, stream: Option<u64>) -> Answer {
        on_host_alone(stream, "a solver with functions of the caller")?;
        let Operator::Stored(stored) = &mut self.operator else {
            return Err(Fault::new(RESIDUA_UNSUPPORTED, "a matrix-free solver has no values to update"));
        };
        let (a, map) = &mut **stored;
        // SAFETY: guaranteed by the caller.
        let values = unsafe { crate::arrays::slice::<T>("values", values, len)? };
        match map {
            Some(map) => map.update(&Host, values, a)?,
            None if len != a.nonzeros() => {
                let text = format!("{len} values were given, but {} are needed", a.nonzeros());
                return Err(Fault::new(RESIDUA_DIMENSION, text));
            }
            None => a.values_mut().copy_from_slice(values),
        }
        Ok(())
    }

    unsafe fn solve(
        &mut self,
        count: usize,
        b: Given,
        x: Given,
        (stream, observer): How,
    ) -> Answer<Vec<Filed>> {
        on_host_alone(stream, "a solver with functions of the caller")?;
        self.histories.clear();
        // SAFETY: guaranteed by the caller.
        let (b, x): (&[T], &mut [T]) = unsafe { vectors(self.shape(), count, b, x)? };
        let (mut filed, n) = (Vec::new(), self.n());
        for (number, pair) in b.chunks(n.max(1)).zip(x.chunks_mut(n.max(1))).enumerate() {
            let heard = (number, observer);
            let (report, history) = match self.method {
                Method::Cg => self.run(ConjugateGradients::new(&Host, n)?, pair, heard)?,
                Method::Minres => self.run(MinimalResidual::new(&Host, n)?, pair, heard)?,
                Method::BiCgStab => self.run(BiConjugateGradients::new(&Host, n)?, pair, heard)?,
                _ => self.run(FlexibleMinimalResidual::new(&Host, n, self.restart)?, pair, heard)?,
            };
            filed.push(report);
            self.histories.push(history);
        }
        Ok(filed)
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.histories.get(right_hand_side).map_or(&[], |history| history)
    }

    fn canceller(&self) -> Option<Canceller> {
        Some(self.canceller.clone())
    }
}
